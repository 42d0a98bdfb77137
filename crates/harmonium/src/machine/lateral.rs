//! What the units of one layer send each other, laid out for sampling.

use super::coupling::{Edges, Triangle, Weights};
use super::schedule::colours;
use crate::units::Units;

/// The lateral coupling of a layer.
#[derive(Clone, Debug)]
pub(crate) enum Lateral {
    /// The full symmetric $J$, row-major: units are visited one by one.
    Dense(Vec<f64>),
    /// The neighbours of each entry: units of one colour are visited together.
    Sparse(Neighbours),
}

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
const SHARED: usize = 32;

impl Lateral {
    /// Lays out the weights of a lateral coupling; `None` for one between layers.
    pub(super) fn new(weights: &Weights, units: Units) -> Option<Self> {
        let mut lateral = match weights {
            Weights::Between(_) => return None,
            Weights::Lateral(t) => Self::Dense(vec![0.0; t.n() * t.n()]),
            Weights::Sparse(edges) => Self::Sparse(Neighbours::new(edges, units)),
        };
        lateral.refresh(weights);
        Some(lateral)
    }

    /// Takes over changed weights of the same shape.
    pub(super) fn refresh(&mut self, weights: &Weights) {
        match (self, weights) {
            (Self::Dense(full), Weights::Lateral(t)) => fill(full, t),
            (Self::Sparse(neighbours), Weights::Sparse(_)) => {
                let entries = weights.entries();
                neighbours.links.iter_mut().for_each(|l| l.weight = entries[l.at]);
            }
            _ => {}
        }
    }
}

fn fill(full: &mut [f64], t: &Triangle) {
    let n = t.n();
    for i in 0..n {
        full[i * n + i + 1..(i + 1) * n].copy_from_slice(t.row(i));
        for (k, &w) in t.row(i).iter().enumerate() {
            full[(i + 1 + k) * n + i] = w;
        }
    }
}

impl Neighbours {
    pub(super) fn new(edges: &Edges, units: Units) -> Self {
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

    /// What entry `i` sees.
    pub(crate) fn links(&self, i: usize) -> &[Link] {
        &self.links[self.starts[i]..self.starts[i + 1]]
    }

    /// $\sum_j J_{ij} x_j$.
    pub(crate) fn input(&self, i: usize, x: &[f64]) -> f64 {
        self.links(i).iter().map(|l| l.weight * x[l.entry]).sum()
    }
}
