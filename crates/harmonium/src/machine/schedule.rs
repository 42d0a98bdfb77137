//! Which layers can be updated at the same time.

use super::{LayerId, Machine};
use std::collections::BTreeSet;

impl Machine {
    /// Blocks of layers that do not see each other.
    ///
    /// A greedy colouring of the graph of layers. Layers are taken neighbour after neighbour,
    /// which gives two blocks to every graph that admits two (so to every chain and tree),
    /// however its layers are numbered. A lateral coupling does not split a layer here: its units
    /// are visited one by one inside the block, or colour by colour if it is sparse. Gaussian layers
    /// that see each other stand together in one block, because they are drawn jointly.
    pub fn schedule(&self) -> Vec<Vec<LayerId>> {
        let (seen, joined) = (self.layers_seen(), self.real_blocks());
        let mut blocks: Vec<Vec<LayerId>> = Vec::new();
        let mut block_of: Vec<Option<usize>> = vec![None; seen.len()];
        for l in connected_order(&seen) {
            if block_of[l.0].is_some() {
                continue;
            }
            let alone = [l];
            let together = joined.iter().find(|block| block.contains(&l));
            let together = together.map_or(&alone[..], Vec::as_slice);
            let neighbours = together.iter().flat_map(|l| &seen[l.0]);
            let taken: BTreeSet<usize> = neighbours.filter_map(|m| block_of[m.0]).collect();
            // The first number that is not taken.
            let block = taken.iter().enumerate().take_while(|&(i, &b)| i == b).count();
            if block == blocks.len() {
                blocks.push(Vec::new());
            }
            blocks[block].extend_from_slice(together);
            together.iter().for_each(|l| block_of[l.0] = Some(block));
        }
        blocks
    }

    /// The layers that each layer sees, in rising order; itself, if it has a lateral coupling.
    pub(crate) fn layers_seen(&self) -> Vec<Vec<LayerId>> {
        let mut seen = vec![Vec::new(); self.layers().len()];
        for coupling in self.couplings() {
            let (a, b) = coupling.between;
            seen[a.0].push(b);
            if a != b {
                seen[b.0].push(a);
            }
        }
        seen.iter_mut().for_each(|layers| layers.sort_unstable());
        seen
    }

    /// The set of candidates that do not see each other with the largest sum of `weight`: by trying
    /// all sets of few candidates, else by taking heavy ones first. A candidate is a layer, or several
    /// that go together.
    pub(crate) fn heaviest_uncoupled(
        &self,
        candidates: &[Vec<LayerId>],
        weight: impl Fn(LayerId) -> f64,
    ) -> (Vec<LayerId>, f64) {
        const TRY_ALL: usize = 14;
        let weight = |layers: &[LayerId]| layers.iter().map(|&l| weight(l)).sum::<f64>();
        let apart = |these: &[LayerId], l: LayerId| these.iter().all(|&m| !self.coupled(l, m));
        let mut best: (Vec<LayerId>, f64) = (Vec::new(), 0.0);
        if candidates.len() <= TRY_ALL {
            for mask in 0..1_usize << candidates.len() {
                let chosen = (0..candidates.len()).filter(|i| mask >> i & 1 == 1);
                let mut set: Vec<LayerId> = Vec::new();
                if chosen.map(|i| &candidates[i]).all(|layers| {
                    let fits = layers.iter().all(|&l| apart(&set, l));
                    set.extend_from_slice(layers);
                    fits
                }) {
                    let sum = weight(&set);
                    if sum > best.1 {
                        best = (set, sum);
                    }
                }
            }
        } else {
            let seen = self.layers_seen();
            let mut sorted: Vec<(f64, &Vec<LayerId>)> =
                candidates.iter().map(|layers| (weight(layers), layers)).collect();
            sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut barred = vec![false; seen.len()];
            for (weight, layers) in sorted {
                if !layers.iter().any(|l| barred[l.0]) {
                    best.1 += weight;
                    best.0.extend_from_slice(layers);
                    layers.iter().flat_map(|l| &seen[l.0]).for_each(|m| barred[m.0] = true);
                }
            }
        }
        best
    }
}

/// All layers, each after one it is coupled with, if there is one.
fn connected_order(seen: &[Vec<LayerId>]) -> Vec<LayerId> {
    let mut order: Vec<LayerId> = Vec::with_capacity(seen.len());
    let mut placed = vec![false; seen.len()];
    for start in 0..seen.len() {
        let mut frontier = vec![LayerId(start)];
        while let Some(l) = frontier.pop() {
            if !placed[l.0] {
                placed[l.0] = true;
                order.push(l);
                frontier.extend(seen[l.0].iter().rev().filter(|m| !placed[m.0]));
            }
        }
    }
    order
}
