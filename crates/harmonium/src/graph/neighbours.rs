//! Who sees whom inside a sparsely coupled layer: the edges by entries, and the units by colours.

use super::{Topology, colours};
use crate::machine::{Edges, LayerId, Machine, Weights};
use crate::units::Units;

/// A sparse symmetric matrix by rows, and units that do not see each other.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    /// The entries of the layer.
    topology: Topology,
    /// The weight of each link, in the order of the topology.
    weights: Vec<f64>,
    pub(crate) colours: Vec<Colour>,
}

/// Units that do not see each other.
#[derive(Clone, Debug)]
pub(crate) struct Colour {
    /// Their entries, unit after unit.
    pub(crate) entries: Vec<usize>,
    /// Where their variates start: a multiple of 32 units, so that 32 units of one colour share
    /// their blocks of random words.
    pub(crate) slot: usize,
}

/// Units that share their blocks of random words.
pub(crate) const SHARED: usize = 32;

impl Neighbours {
    pub(crate) fn new(edges: &Edges, units: Units) -> Self {
        let group = units.group();
        let topology = Topology::new(edges.n(), edges.pairs().iter().copied());
        let of_unit = |u: usize| {
            let entries = u * group..(u + 1) * group;
            entries.flat_map(|i| topology.neighbours(i)).map(move |i| i / group)
        };
        let mut slot = 0;
        let as_entries = |units: Vec<usize>| {
            let n_units = units.len();
            let entries = units.into_iter().flat_map(|u| u * group..(u + 1) * group).collect();
            let colour = Colour { entries, slot };
            slot += n_units.next_multiple_of(SHARED);
            colour
        };
        let colours = colours(edges.n() / group, of_unit).into_iter().map(as_entries).collect();
        let weights = vec![0.0; topology.all_links().len()];
        Self { topology, weights, colours }
    }

    /// Number of entries.
    pub(crate) fn n(&self) -> usize {
        self.topology.n()
    }

    /// Takes over the weights of the coupling, in its order.
    pub(crate) fn set_weights(&mut self, entries: &[f64]) {
        let links = self.weights.iter_mut().zip(self.topology.all_links());
        links.for_each(|(w, link)| *w = entries[link.edge]);
    }

    /// The entries that entry `i` sees.
    pub(crate) fn of(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        self.topology.neighbours(i)
    }

    /// The weights with which entry `i` sees them.
    pub(crate) fn weights(&self, i: usize) -> &[f64] {
        &self.weights[self.topology.places(i)]
    }

    /// $\sum_j J_{ij} x_j$.
    pub(crate) fn input(&self, i: usize, x: &[f64]) -> f64 {
        self.weights(i).iter().zip(self.of(i)).map(|(w, j)| w * x[j]).sum()
    }
}

impl Machine {
    /// Blocks of units of layer `l` that are updated together, in the order of a sweep: all of
    /// them where nothing couples them or they are Gaussian, the colours of a sparse lateral coupling, or
    /// one by one.
    pub fn unit_blocks(&self, l: LayerId) -> Vec<Vec<usize>> {
        let (units, n_units) = (self.layer(l).units, self.layer(l).n_units());
        let lateral = self.couplings().iter().find(|c| c.between == (l, l));
        let lateral = lateral.filter(|c| !self.joins_reals(c));
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
}
