//! Who sees whom inside a sparsely coupled layer: the edges by units, and the units by colours.

use super::coupling::Edges;
use super::schedule::colours;
use crate::units::Units;

/// A sparse symmetric matrix by rows, and units that do not see each other.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    /// `starts[i]..starts[i + 1]` of the links belong to entry `i`.
    starts: Vec<usize>,
    links: Vec<Link>,
    pub(crate) colours: Vec<Colour>,
}

/// One end of an edge, seen from the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) entry: usize,
    pub(crate) weight: f64,
    /// Place of the weight in the coupling.
    at: usize,
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
        let mut starts = vec![0; edges.n() + 1];
        for &(i, j) in edges.pairs() {
            starts[i + 1] += 1;
            starts[j + 1] += 1;
        }
        for i in 0..edges.n() {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut links = vec![Link { entry: 0, weight: 0.0, at: 0 }; 2 * edges.pairs().len()];
        for (at, &(i, j)) in edges.pairs().iter().enumerate() {
            for (from, to) in [(i, j), (j, i)] {
                links[next[from]] = Link { entry: to, weight: 0.0, at };
                next[from] += 1;
            }
        }
        let of_unit = |u: usize| {
            let links = &links[starts[u * group]..starts[(u + 1) * group]];
            links.iter().map(move |l| l.entry / group)
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
        Self { starts, links, colours }
    }

    /// Number of entries.
    pub(crate) fn n(&self) -> usize {
        self.starts.len() - 1
    }

    /// Takes over the weights of the coupling, in its order.
    pub(crate) fn set_weights(&mut self, entries: &[f64]) {
        self.links.iter_mut().for_each(|l| l.weight = entries[l.at]);
    }

    /// What entry `i` sees.
    pub(crate) fn links(&self, i: usize) -> &[Link] {
        &self.links[self.starts[i]..self.starts[i + 1]]
    }

    /// $\sum_j J_{ij} x_j$.
    pub(crate) fn input(&self, i: usize, x: &[f64]) -> f64 {
        self.links(i).iter().map(|l| l.weight * x[l.entry]).sum()
    }
}
