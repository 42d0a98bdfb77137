//! Which layers, and which units of a layer, can be updated at the same time.

use super::neighbours::{Colour, Neighbours};
use super::{LayerId, Machine, Weights};
use std::collections::VecDeque;

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

    /// Blocks of units of layer `l` that are updated together, in the order of a sweep: all of
    /// them where nothing couples them, the colours of a sparse lateral coupling, or one by one.
    pub fn unit_blocks(&self, l: LayerId) -> Vec<Vec<usize>> {
        let (units, n_units) = (self.layer(l).units, self.layer(l).n_units());
        let lateral = self.couplings.iter().find(|c| c.between == (l, l));
        match lateral.map(|c| &c.weights) {
            None | Some(Weights::Between(_)) => vec![(0..n_units).collect()],
            Some(Weights::Lateral(_)) => (0..n_units).map(|u| vec![u]).collect(),
            Some(Weights::Sparse(edges)) => {
                let group = units.group();
                let of_colour =
                    |c: Colour| c.entries.into_iter().step_by(group).map(|e| e / group).collect();
                Neighbours::new(edges, units).colours.into_iter().map(of_colour).collect()
            }
        }
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

/// Sets of units that do not see each other, by greedy colouring.
///
/// Units are taken neighbour after neighbour, so a graph that admits two colours gets two (an open
/// grid, a torus of even length), and any other at most one more than its largest degree.
pub(super) fn colours<I: Iterator<Item = usize>>(
    n_units: usize,
    neighbours: impl Fn(usize) -> I,
) -> Vec<Vec<usize>> {
    let mut colour_of: Vec<Option<usize>> = vec![None; n_units];
    let mut seen = vec![false; n_units];
    // The last unit that met a neighbour of each colour.
    let mut taken_by: Vec<usize> = Vec::new();
    let mut queue = VecDeque::new();
    for start in 0..n_units {
        if !std::mem::replace(&mut seen[start], true) {
            queue.push_back(start);
        }
        while let Some(unit) = queue.pop_front() {
            for other in neighbours(unit) {
                match colour_of[other] {
                    Some(colour) => taken_by[colour] = unit,
                    None if !std::mem::replace(&mut seen[other], true) => queue.push_back(other),
                    None => {}
                }
            }
            let colour = taken_by.iter().position(|&u| u != unit).unwrap_or(taken_by.len());
            if colour == taken_by.len() {
                taken_by.push(n_units);
            }
            colour_of[unit] = Some(colour);
        }
    }
    let mut sets = vec![Vec::new(); taken_by.len()];
    for (unit, colour) in colour_of.into_iter().enumerate() {
        sets[colour.unwrap_or_default()].push(unit);
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::colours;

    /// The neighbours of a torus of the given length.
    fn torus(n: usize) -> impl Fn(usize) -> std::vec::IntoIter<usize> {
        move |u| {
            let (r, c) = (u / n, u % n);
            let at = |r: usize, c: usize| (r % n) * n + c % n;
            let near = [at(r + 1, c), at(r + n - 1, c), at(r, c + 1), at(r, c + n - 1)];
            near.into_iter().filter(|&v| v != u).collect::<Vec<_>>().into_iter()
        }
    }

    #[test]
    fn units_of_a_colour_do_not_see_each_other() {
        for n in [1, 2, 3, 4, 7, 16] {
            let sets = colours(n * n, torus(n));
            assert_eq!(sets.iter().map(Vec::len).sum::<usize>(), n * n);
            for set in &sets {
                assert!(set.iter().all(|&u| torus(n)(u).all(|v| !set.contains(&v))));
            }
            if n.is_multiple_of(2) {
                assert_eq!(sets.len(), 2, "an even torus is a chessboard");
            }
            assert!(sets.len() <= 5);
        }
    }

    #[test]
    fn units_without_edges_have_one_colour_and_cliques_have_many() {
        assert_eq!(colours(5, |_| std::iter::empty()).len(), 1);
        assert_eq!(colours(5, |u| (0..5).filter(move |&v| v != u)).len(), 5);
        assert!(colours(0, |_| std::iter::empty()).is_empty());
    }
}
