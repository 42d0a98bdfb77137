//! Real units that see each other: over all layers, what is drawn and integrated together.

use super::{Clamp, Coupling, LayerId, Machine, add_input};
use crate::error::Error;
use crate::gaussian::{Block, cholesky};
use std::collections::BTreeMap;

impl Machine {
    /// Whether units of this layer are Gaussian: real, with a quadratic energy of their own.
    pub(crate) fn is_gaussian(&self, l: LayerId) -> bool {
        self.layer(l).units.curvature(self.layer(l).own()).is_some()
    }

    /// Whether a coupling joins Gaussian units with each other.
    pub(crate) fn joins_reals(&self, c: &Coupling) -> bool {
        self.is_gaussian(c.between.0) && self.is_gaussian(c.between.1)
    }

    /// The couplings that join Gaussian units with each other.
    pub(crate) fn joining(&self) -> impl Iterator<Item = &Coupling> {
        self.couplings().iter().filter(|c| self.joins_reals(c))
    }

    /// The sets of layers whose Gaussian units are coupled with each other, directly or by way of other
    /// Gaussian units: each in rising order, and in the order of their first layers.
    pub(crate) fn real_blocks(&self) -> Vec<Vec<LayerId>> {
        let mut blocks: Vec<Vec<LayerId>> = Vec::new();
        for (a, b) in self.joining().map(|c| c.between) {
            let (mut joined, apart): (Vec<_>, Vec<_>) =
                blocks.into_iter().partition(|block| block.contains(&a) || block.contains(&b));
            joined.push(vec![a, b]);
            let mut layers = joined.concat();
            layers.sort_unstable();
            layers.dedup();
            blocks = apart;
            blocks.push(layers);
        }
        blocks.sort();
        blocks
    }

    /// $\Lambda = \mathrm{diag}(\gamma) - J$ of the units of some Gaussian layers, row by row, one layer
    /// after the other.
    pub(crate) fn precision_of(&self, layers: &[LayerId]) -> (Vec<f64>, usize) {
        let mut starts = Vec::with_capacity(layers.len());
        let mut n = 0;
        for &l in layers {
            starts.push(n);
            n += self.layer(l).len();
        }
        let start = |l: LayerId| layers.iter().position(|m| *m == l).map(|k| starts[k]);
        let mut matrix = vec![0.0; n * n];
        for (&l, &start) in layers.iter().zip(&starts) {
            let layer = self.layer(l);
            let own = layer.units.curvature(layer.own()).unwrap_or_default();
            for (i, g) in own.iter().enumerate() {
                matrix[(start + i) * (n + 1)] = *g;
            }
        }
        for c in self.joining() {
            let (Some(a), Some(b)) = (start(c.between.0), start(c.between.1)) else { continue };
            c.weights.for_each(|i, j, w| {
                matrix[(a + i) * n + b + j] -= w;
                matrix[(b + j) * n + a + i] -= w;
            });
        }
        (matrix, n)
    }

    /// The density of some Gaussian layers given everything else.
    ///
    /// # Errors
    ///
    /// [`Error::Diverges`] where there is none.
    pub(crate) fn block_of(&self, layers: &[LayerId]) -> Result<Block, Error> {
        let (precision, n) = self.precision_of(layers);
        Block::new(precision, n)
    }

    /// Whether $\sum_x e^{-E(x)}$ exists: Gaussian units that see each other must leave a positive
    /// precision in every direction.
    ///
    /// # Errors
    ///
    /// [`Error::Diverges`] says where the precision fails.
    pub(crate) fn check_normalises(&self) -> Result<(), Error> {
        self.real_blocks().iter().try_for_each(|block| {
            let (mut precision, n) = self.precision_of(block);
            cholesky(&mut precision, n).map(drop)
        })
    }

    /// Takes from `fields`, one for each layer, what Gaussian units at these `values` send each other.
    pub(crate) fn take_joined(&self, values: &[impl AsRef<[f64]>], fields: &mut [Vec<f64>]) {
        for c in self.joining() {
            let (a, b) = c.between;
            let negative =
                |l: LayerId| -> Vec<f64> { values[l.0].as_ref().iter().map(|x| -x).collect() };
            add_input(c, a, &negative(b), &mut fields[a.0]);
            if a != b {
                add_input(c, b, &negative(a), &mut fields[b.0]);
            }
        }
    }
}

/// Gaussian units that are free in some rows, with their joint density.
#[derive(Clone, Debug)]
pub(crate) struct FreeReals {
    /// Layer and place of each unit.
    pub(crate) units: Vec<(LayerId, usize)>,
    /// Their density given everything else.
    pub(crate) density: Block,
    /// The rows that leave these units, and no others of their block, free.
    pub(crate) rows: Vec<usize>,
}

impl Machine {
    /// The Gaussian units that `clamp` leaves free, block by block, for each set of rows that leave the
    /// same ones free. A layer that sees no other real units is a block of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Diverges`] where free units have no density.
    pub(crate) fn free_reals(&self, clamp: &Clamp, n_rows: usize) -> Result<Vec<FreeReals>, Error> {
        let mut blocks = self.real_blocks();
        let lone = |l: &LayerId| self.is_gaussian(*l) && !blocks.iter().flatten().any(|m| m == l);
        let lone: Vec<LayerId> = self.layer_ids().filter(lone).collect();
        blocks.extend(lone.into_iter().map(|l| vec![l]));
        let mut found = Vec::new();
        for block in blocks.iter().filter(|b| !b.iter().all(|&l| clamp.holds_layer(l))) {
            let units = |l: LayerId| (0..self.layer(l).len()).map(move |i| (l, i));
            let all: Vec<(LayerId, usize)> = block.iter().flat_map(|&l| units(l)).collect();
            let mut rows_of: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
            if block.iter().all(|&l| clamp.holds_layer(l) || clamp.frees_layer(l)) {
                let free = |k: &usize| !clamp.holds_layer(all[*k].0);
                rows_of.insert((0..all.len()).filter(free).collect(), (0..n_rows).collect());
            } else {
                for row in 0..n_rows {
                    let free = |k: &usize| !clamp.holds(all[*k].0, row, all[*k].1);
                    rows_of.entry((0..all.len()).filter(free).collect()).or_default().push(row);
                }
            }
            let lone = if let [l] = block[..] { !self.has_lateral(l) } else { false };
            let (precision, n) = if lone { (Vec::new(), 0) } else { self.precision_of(block) };
            for (free, rows) in rows_of.into_iter().filter(|(free, _)| !free.is_empty()) {
                let density = if lone {
                    let layer = self.layer(block[0]);
                    let own = layer.units.curvature(layer.own()).unwrap_or_default();
                    Block::diagonal(&free.iter().map(|&i| own[i]).collect::<Vec<f64>>())
                } else {
                    let row = |i: usize| free.iter().map(move |&j| (i, j));
                    let entries = free.iter().flat_map(|&i| row(i));
                    let part = entries.map(|(i, j)| precision[i * n + j]).collect();
                    Block::new(part, free.len())?
                };
                let units = free.iter().map(|&k| all[k]).collect();
                found.push(FreeReals { units, density, rows });
            }
        }
        Ok(found)
    }
}
