//! How a sum over the free units of a row is taken, and what that costs.
//!
//! Every row can be enumerated; where its graph is narrow it can be eliminated too, and the cheaper is
//! taken. Which one, and the order of elimination, depend on which units are held and not on values or
//! weights, so rows that hold the same units share them.

use super::conditional::{By, Query};
use super::problem::Split;
use super::{Budget, eliminate};
use crate::graph::BucketTree;
use crate::machine::{Clamp, Machine, State, fits_memory};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Binary logarithm of the terms of an elimination that take as long as one of an enumeration beside
/// whose units [`USUAL`] others are summed in closed form.
const ELIMINATED_LOG2: f64 = 5.0;
const USUAL: f64 = 64.0;

/// How a sum over the free units of a row is taken.
#[derive(Clone)]
pub(super) enum Way {
    Enumerate { log2_terms: f64 },
    Eliminate(Arc<BucketTree>),
}

impl Way {
    /// The cheaper way to answer `query` for a row.
    pub(super) fn new(
        machine: &Machine,
        clamp: &Clamp,
        (x, row): (&State, usize),
        query: Query,
    ) -> Self {
        let log2_terms = Split::new(machine, clamp, row).log2_terms;
        let enumerate = Self::Enumerate { log2_terms };
        if Budget::ENUMERATION.affords(log2_terms) {
            return enumerate;
        }
        let plan = eliminate::plan(machine, clamp, (x, row), log2_terms);
        let Some(tree) = plan else { return enumerate };
        let entries: usize = machine.layers().iter().map(crate::machine::Layer::len).sum();
        let enumerated = log2_terms + (entries as f64 / USUAL).max(1.0).log2();
        let eliminate = Self::Eliminate(Arc::new(tree));
        if eliminate.log2_work(query) < enumerated && fits_memory(eliminate.bytes(query)) {
            return eliminate;
        }
        enumerate
    }

    pub(super) fn by(&self) -> By {
        match self {
            Self::Enumerate { .. } => By::Enumeration,
            Self::Eliminate(_) => By::Elimination,
        }
    }

    /// Binary logarithm of the number of terms.
    pub(super) fn log2_terms(&self) -> f64 {
        match self {
            Self::Enumerate { log2_terms } => *log2_terms,
            Self::Eliminate(tree) => tree.log2_terms(),
        }
    }

    /// Binary logarithm of the terms of an enumeration that take as long.
    pub(super) fn log2_work(&self, query: Query) -> f64 {
        match self {
            Self::Enumerate { log2_terms } => *log2_terms,
            Self::Eliminate(tree) => (eliminate::cost(tree, query).0 - ELIMINATED_LOG2).max(0.0),
        }
    }

    /// Bytes of the tables.
    pub(super) fn bytes(&self, query: Query) -> f64 {
        match self {
            Self::Enumerate { .. } => 0.0,
            Self::Eliminate(tree) => eliminate::cost(tree, query).1,
        }
    }
}

/// The ways of many rows; each is sought once for all rows that hold the same units.
pub(super) struct Ways<'a> {
    machine: &'a Machine,
    clamp: &'a Clamp,
    x: &'a State,
    query: Query,
    known: BTreeMap<Vec<u64>, Way>,
}

impl<'a> Ways<'a> {
    pub(super) fn new(machine: &'a Machine, clamp: &'a Clamp, x: &'a State, query: Query) -> Self {
        Self { machine, clamp, x, query, known: BTreeMap::new() }
    }

    /// Those of the first of each of several sets of equal rows.
    pub(super) fn of_groups(&mut self, groups: &[Vec<usize>]) -> Vec<Way> {
        groups.iter().map(|rows| self.of_row(rows[0])).collect()
    }

    pub(super) fn of_row(&mut self, row: usize) -> Way {
        let held = held_units(self.machine, self.clamp, row);
        let way = || Way::new(self.machine, self.clamp, (self.x, row), self.query);
        self.known.entry(held).or_insert_with(way).clone()
    }
}

/// Which units a row holds, 64 to a word, layer after layer.
pub(super) fn held_units(machine: &Machine, clamp: &Clamp, row: usize) -> Vec<u64> {
    let mut words = Vec::new();
    for l in machine.layer_ids() {
        let n_units = machine.layer(l).n_units();
        for first in (0..n_units).step_by(64) {
            let units = first..n_units.min(first + 64);
            let bit = |unit: usize| u64::from(clamp.holds(l, row, unit)) << (unit - first);
            words.push(units.map(bit).sum());
        }
    }
    words
}
