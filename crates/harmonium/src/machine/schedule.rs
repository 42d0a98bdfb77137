//! Which layers can be updated at the same time.

use super::{LayerId, Machine};

impl Machine {
    /// Blocks of layers that do not see each other.
    ///
    /// A greedy colouring of the graph of layers. Layers are taken neighbour after neighbour,
    /// which gives two blocks to every graph that admits two (so to every chain and tree),
    /// however its layers are numbered. A lateral coupling does not split a layer here: its units
    /// are visited one by one inside the block, or colour by colour if it is sparse.
    pub fn schedule(&self) -> Vec<Vec<LayerId>> {
        let mut blocks: Vec<Vec<LayerId>> = Vec::new();
        for l in self.connected_order() {
            let uncoupled = |block: &&mut Vec<LayerId>| block.iter().all(|&m| !self.coupled(l, m));
            match blocks.iter_mut().find(uncoupled) {
                Some(block) => block.push(l),
                None => blocks.push(vec![l]),
            }
        }
        blocks
    }

    /// All layers, each after one it is coupled with, if there is one.
    fn connected_order(&self) -> Vec<LayerId> {
        let mut order: Vec<LayerId> = Vec::new();
        for start in self.layer_ids() {
            let mut frontier = vec![start];
            while let Some(l) = frontier.pop() {
                if !order.contains(&l) {
                    order.push(l);
                    frontier.extend(self.layer_ids().rev().filter(|&m| self.coupled(l, m)));
                }
            }
        }
        order
    }

    /// The set of candidates that do not see each other with the largest sum of `weight`: by trying
    /// all sets of few layers, else by taking heavy layers first.
    pub(crate) fn heaviest_uncoupled(
        &self,
        candidates: &[LayerId],
        weight: impl Fn(LayerId) -> f64,
    ) -> (Vec<LayerId>, f64) {
        const TRY_ALL: usize = 14;
        let independent = |set: &[LayerId], l: LayerId| set.iter().all(|&m| !self.coupled(l, m));
        let mut best: (Vec<LayerId>, f64) = (Vec::new(), 0.0);
        if candidates.len() <= TRY_ALL {
            for mask in 0..1_usize << candidates.len() {
                let chosen = (0..candidates.len()).filter(|i| mask >> i & 1 == 1);
                let mut set = Vec::new();
                if chosen.map(|i| candidates[i]).all(|l| {
                    let fits = independent(&set, l);
                    set.push(l);
                    fits
                }) {
                    let sum = set.iter().map(|&l| weight(l)).sum();
                    if sum > best.1 {
                        best = (set, sum);
                    }
                }
            }
        } else {
            let mut sorted = candidates.to_vec();
            sorted.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
            for l in sorted {
                if independent(&best.0, l) {
                    best.1 += weight(l);
                    best.0.push(l);
                }
            }
        }
        best
    }
}
