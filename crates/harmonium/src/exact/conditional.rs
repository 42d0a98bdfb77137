//! Exact answers about rows of which some units are held: means, and independent samples.
//!
//! $$E[x_\text{free} \mid x_\text{held}], \qquad x_\text{free} \sim p(x_\text{free} \mid x_\text{held})$$
//!
//! Rows that hold the same units at the same values share one sum. What it takes is known before it
//! starts ([`cost`]).

use super::expectation::Order;
use super::problem::{Problem, Split};
use super::{Budget, Way};
use crate::error::Error;
use crate::machine::{Clamp, Machine, State, check_memory};
use crate::progress::{Listener, Silent, tell};
use harmonium_kernels::random::Stream;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Different rows between two reports of how far the work is.
const TOGETHER: usize = 64;

/// What is asked of the free units of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// $\ln\sum_{x_\text{free}} e^{-E(x)}$.
    LogSum,
    /// The mean of every free unit.
    Means,
    /// Independent samples.
    Samples,
}

/// What exact answers take, known before they are sought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Binary logarithm of the number of terms of the row that has most.
    pub log2_terms: f64,
    /// Binary logarithm of the number of terms of all rows that differ.
    pub log2_total: f64,
    /// Bytes of memory beside those of the machine and the answer.
    pub bytes: f64,
}

impl Cost {
    /// Whether all rows together are worth their work on this occasion, and fit into memory.
    pub fn is_within(&self, budget: Budget) -> bool {
        budget.affords(self.log2_total) && check_memory(self.bytes, String::new).is_ok()
    }
}

/// What it takes to answer `query` for every row of `x`; equal rows count once.
///
/// ```
/// use harmonium::exact::{self, Budget, Query};
/// use harmonium::{machine::State, models::Rbm, sampling::Clamp};
/// let rbm = Rbm::binary(784, 20)?;
/// let x = State::zeros(rbm.machine(), 3)?;
/// let cost = exact::cost(rbm.machine(), &Clamp::none(), &x, Query::Means)?;
/// assert_eq!(cost.log2_total, 20.0);
/// assert!(cost.is_within(Budget::SAMPLES));
/// # Ok::<(), harmonium::Error>(())
/// ```
///
/// # Errors
///
/// If clamp or state do not fit the machine.
pub fn cost(machine: &Machine, clamp: &Clamp, x: &State, query: Query) -> Result<Cost, Error> {
    x.check(machine)?;
    clamp.check(machine, x.n_rows())?;
    let mut cost = Cost { log2_terms: 0.0, log2_total: 0.0, bytes: 0.0 };
    let mut total = 0.0_f64;
    // What a row takes depends on which units it holds, not on their values.
    let mut known: BTreeMap<Vec<u64>, f64> = BTreeMap::new();
    for rows in equal_rows(machine, clamp, x) {
        let row = rows[0];
        let log2_terms = *known.entry(held_units(machine, clamp, row)).or_insert_with(|| {
            let enumerated = Split::new(machine, clamp, row).log2_terms;
            match query {
                Query::LogSum => Way::new(machine, clamp, x, row).log2_terms(),
                Query::Means | Query::Samples => enumerated,
            }
        });
        cost.log2_terms = cost.log2_terms.max(log2_terms);
        total += log2_terms.exp2();
    }
    cost.log2_total = total.max(1.0).log2();
    Ok(cost)
}

/// $E[x \mid x_\text{held}]$ of each row: held units keep their values, free ones get their means.
///
/// # Errors
///
/// If a row takes more than $2^{30}$ terms, Gaussian units diverge, parameters are so large that no
/// number holds the sums, or clamp or state do not fit the machine.
pub fn conditional_means(machine: &Machine, clamp: &Clamp, x: &State) -> Result<State, Error> {
    conditional_means_with(machine, clamp, x, &mut Silent)
}

/// The same, telling how far it is.
///
/// # Errors
///
/// As [`conditional_means`]; and if the listener cancels.
pub fn conditional_means_with(
    machine: &Machine,
    clamp: &Clamp,
    x: &State,
    listener: &mut dyn Listener,
) -> Result<State, Error> {
    let groups = checked(machine, clamp, x, Query::Means)?;
    let folded = machine.without_offsets()?;
    let mut means = x.clone();
    let mean_of = |rows: &Vec<usize>| -> Result<Vec<Vec<f64>>, Error> {
        let problem = Problem::new(&folded, clamp, x, rows[0])?;
        let expected = problem.expectation(Order::First);
        let of = |entries: &Vec<_>| entries.iter().map(|&entry| expected.mean(entry)).collect();
        let values: Vec<Vec<f64>> = problem.entries.iter().map(of).collect();
        for value in values.iter().flatten() {
            machine.check_finite("the mean of a unit", *value)?;
        }
        Ok(values)
    };
    for (k, some) in groups.chunks(TOGETHER).enumerate() {
        let found: Vec<_> = some.par_iter().map(mean_of).collect::<Result<_, Error>>()?;
        for (rows, values) in some.iter().zip(&found) {
            for (l, values) in machine.layer_ids().zip(values) {
                rows.iter().try_for_each(|&row| means.set_row(l, row, values))?;
            }
        }
        tell(listener, "exact means", (k * TOGETHER + some.len()) as u64, groups.len() as u64)?;
    }
    Ok(means)
}

/// `n` independent samples of the free units for each row, the held ones at their values: row `r` of
/// `x` becomes the rows `r n` to `(r + 1) n`. With nothing held these are samples of the machine.
///
/// # Errors
///
/// As [`conditional_means`], and if memory ends.
pub fn conditional_samples(
    machine: &Machine,
    clamp: &Clamp,
    x: &State,
    n: usize,
    stream: Stream,
) -> Result<State, Error> {
    conditional_samples_with(machine, clamp, x, n, stream, &mut Silent)
}

/// The same, telling how far it is.
///
/// # Errors
///
/// As [`conditional_samples`]; and if the listener cancels.
pub fn conditional_samples_with(
    machine: &Machine,
    clamp: &Clamp,
    x: &State,
    n: usize,
    stream: Stream,
    listener: &mut dyn Listener,
) -> Result<State, Error> {
    let groups = checked(machine, clamp, x, Query::Samples)?;
    let folded = machine.without_offsets()?;
    let n_rows = x.n_rows().checked_mul(n).ok_or_else(|| {
        let bytes = x.n_rows() as f64 * n as f64;
        Error::Memory { what: "the samples".into(), bytes }
    })?;
    let mut samples = State::zeros(machine, n_rows)?;
    for (k, rows) in groups.iter().enumerate() {
        let drawn: Vec<usize> = rows.iter().flat_map(|r| r * n..(r + 1) * n).collect();
        let problem = Problem::new(&folded, clamp, x, rows[0])?;
        machine.check_finite("the logarithm of a sum over all states", problem.log_sum())?;
        problem.draw(machine, &drawn, stream, &mut samples)?;
        tell(listener, "exact samples", k as u64 + 1, groups.len() as u64)?;
    }
    Ok(samples)
}

/// The rows that are equal, if everything fits and each row is allowed at all.
fn checked(
    machine: &Machine,
    clamp: &Clamp,
    x: &State,
    query: Query,
) -> Result<Vec<Vec<usize>>, Error> {
    let cost = cost(machine, clamp, x, query)?;
    Budget::LIMIT.check(cost.log2_terms)?;
    check_memory(cost.bytes, || "the tables of an exact sum".into())?;
    Ok(equal_rows(machine, clamp, x))
}

/// Sets of rows that hold the same units at the same values, in the order of their first row.
pub(crate) fn equal_rows(machine: &Machine, clamp: &Clamp, x: &State) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = Vec::new();
    let mut set_of: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    for row in 0..x.n_rows() {
        let mut key = held_units(machine, clamp, row);
        for l in machine.layer_ids() {
            let group = machine.layer(l).units.group();
            for (unit, values) in x.row(l, row).chunks_exact(group).enumerate() {
                if clamp.holds(l, row, unit) {
                    key.extend(values.iter().map(|v| v.to_bits()));
                }
            }
        }
        let set = *set_of.entry(key).or_insert(sets.len());
        if set == sets.len() {
            sets.push(Vec::new());
        }
        sets[set].push(row);
    }
    sets
}

/// Which units a row holds, 64 to a word, layer after layer.
fn held_units(machine: &Machine, clamp: &Clamp, row: usize) -> Vec<u64> {
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
