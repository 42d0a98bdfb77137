//! Exact answers about rows of which some units are held: means, and independent samples.
//!
//! $$E[x_\text{free} \mid x_\text{held}], \qquad x_\text{free} \sim p(x_\text{free} \mid x_\text{held})$$
//!
//! Rows that hold the same units at the same values share one sum. What it takes is known before it
//! starts ([`cost`]).

use super::expectation::Order;
use super::problem::Problem;
use super::way::{Way, Ways, held_units};
use super::{Budget, eliminate};
use crate::error::Error;
use crate::machine::{Clamp, Machine, State, check_memory, fits_memory};
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

/// How exact answers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// All states of some units, the others summed in closed form.
    Enumeration,
    /// One unit after the other.
    Elimination,
}

/// What exact answers take, known before they are sought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// How the row that takes most is answered.
    pub by: By,
    /// Binary logarithm of the number of terms of that row.
    pub log2_terms: f64,
    /// The same for all rows that differ, in terms of an enumeration: 32 terms of an elimination take
    /// as long as one.
    pub log2_total: f64,
    /// Bytes of memory beside those of the machine and the answer.
    pub bytes: f64,
    log2_work: f64,
}

/// Share of the memory that may be taken unasked.
const SHARE_OF_MEMORY: f64 = 0.25;

impl Cost {
    /// One term.
    pub(super) const NOTHING: Self =
        Self { by: By::Enumeration, log2_terms: 0.0, log2_total: 0.0, bytes: 0.0, log2_work: 0.0 };

    /// Binary logarithm of the work of the row that takes most, as `log2_total`.
    pub fn log2_work(&self) -> f64 {
        self.log2_work
    }

    /// Whether all rows together are worth their work on this occasion, and take no more than a
    /// quarter of the memory.
    pub fn is_within(&self, budget: Budget) -> bool {
        budget.affords(self.log2_total) && fits_memory(self.bytes / SHARE_OF_MEMORY)
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
    Ok(cost_of(
        &Ways::new(machine, clamp, x, query).of_groups(&equal_rows(machine, clamp, x)),
        query,
    ))
}

/// What these ways cost together.
fn cost_of(ways: &[Way], query: Query) -> Cost {
    let mut cost = Cost::NOTHING;
    let mut total = 0.0_f64;
    for way in ways {
        let work = way.log2_work(query);
        total += work.exp2();
        cost.bytes = cost.bytes.max(way.bytes(query));
        if work >= cost.log2_work {
            cost.log2_work = work;
            cost.log2_terms = way.log2_terms();
            cost.by = way.by();
        }
    }
    cost.log2_total = total.max(1.0).log2();
    cost
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
    let folded = machine.without_offsets()?;
    let (groups, ways) = checked(&folded, clamp, x, Query::Means)?;
    let mut means = x.clone();
    let mean_of = |row: usize, way: &Way, listener: &mut dyn Listener| {
        let values = match way {
            Way::Eliminate(tree) => eliminate::means(&folded, clamp, (x, row), tree, listener)?,
            Way::Enumerate { .. } => {
                let problem = Problem::new(&folded, clamp, x, row)?;
                let expected = problem.expectation(Order::First);
                let of = |entries: &Vec<_>| entries.iter().map(|&e| expected.mean(e)).collect();
                problem.entries.iter().map(of).collect()
            }
        };
        for value in values.iter().flatten() {
            machine.check_finite("the mean of a unit", *value)?;
        }
        Ok(values)
    };
    let mut done = 0;
    while done < groups.len() {
        // Small sums run side by side, large ones one after the other with all threads.
        let n = together(&ways[done..], Query::Means);
        let some = done..done + n;
        let found: Vec<Vec<Vec<f64>>> = if n == 1 {
            vec![mean_of(groups[done][0], &ways[done], listener)?]
        } else {
            let rows = some.clone().into_par_iter();
            let means = rows.map(|k| mean_of(groups[k][0], &ways[k], &mut Silent));
            means.collect::<Result<_, Error>>()?
        };
        for (rows, values) in groups[some].iter().zip(&found) {
            for (l, values) in machine.layer_ids().zip(values) {
                rows.iter().try_for_each(|&row| means.set_row(l, row, values))?;
            }
        }
        done += n;
        tell(listener, "exact means", done as u64, groups.len() as u64)?;
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
    let folded = machine.without_offsets()?;
    let (groups, ways) = checked(&folded, clamp, x, Query::Samples)?;
    let n_rows = x.n_rows().checked_mul(n).ok_or_else(|| {
        let bytes = x.n_rows() as f64 * n as f64;
        Error::Memory { what: "the samples".into(), bytes }
    })?;
    let mut samples = State::zeros(machine, n_rows)?;
    for (k, (rows, way)) in groups.iter().zip(&ways).enumerate() {
        let drawn: Vec<usize> = rows.iter().flat_map(|r| r * n..(r + 1) * n).collect();
        let of = (x, rows[0]);
        match way {
            Way::Eliminate(tree) => {
                let into = (&drawn[..], &mut samples);
                eliminate::draw(&folded, clamp, of, tree, into, stream, listener)?;
            }
            Way::Enumerate { .. } => {
                let problem = Problem::new(&folded, clamp, x, rows[0])?;
                let log_sum = problem.log_sum();
                machine.check_finite("the logarithm of a sum over all states", log_sum)?;
                problem.draw(machine, &drawn, stream, &mut samples)?;
            }
        }
        tell(listener, "exact samples", k as u64 + 1, groups.len() as u64)?;
    }
    Ok(samples)
}

/// $\ln \sum_{x_\text{free}} e^{-E(x)}$ of each row, telling how far it is.
///
/// # Errors
///
/// As [`log_sums`](super::log_sums); and if the listener cancels.
pub fn log_sums_with(
    machine: &Machine,
    clamp: &Clamp,
    x: &State,
    listener: &mut dyn Listener,
) -> Result<Vec<f64>, Error> {
    let folded = machine.without_offsets()?;
    let (groups, ways) = checked(&folded, clamp, x, Query::LogSum)?;
    let sum_of = |row: usize, way: &Way, listener: &mut dyn Listener| {
        let value = match way {
            Way::Eliminate(tree) => eliminate::log_sum(&folded, clamp, (x, row), tree, listener)?,
            Way::Enumerate { .. } => Problem::new(&folded, clamp, x, row)?.log_sum(),
        };
        machine.check_finite("the logarithm of a sum over all states", value)
    };
    let mut sums = vec![0.0; x.n_rows()];
    let mut done = 0;
    while done < groups.len() {
        let n = together(&ways[done..], Query::LogSum);
        let some = done..done + n;
        let found: Vec<f64> = if n == 1 {
            vec![sum_of(groups[done][0], &ways[done], listener)?]
        } else {
            let rows = some.clone().into_par_iter();
            let found = rows.map(|k| sum_of(groups[k][0], &ways[k], &mut Silent));
            found.collect::<Result<_, Error>>()?
        };
        for (rows, sum) in groups[some].iter().zip(found) {
            rows.iter().for_each(|&row| sums[row] = sum);
        }
        done += n;
        if groups.len() > 1 {
            tell(listener, "exact sums", done as u64, groups.len() as u64)?;
        }
    }
    Ok(sums)
}

/// How many of the next rows are answered side by side: those that are cheap, or one.
fn together(ways: &[Way], query: Query) -> usize {
    let cheap = |way: &&Way| Budget::ROW.affords(way.log2_work(query));
    ways.iter().take(TOGETHER).take_while(cheap).count().max(1)
}

/// The rows that are equal and their ways, if everything fits and each row is allowed at all.
fn checked(
    machine: &Machine,
    clamp: &Clamp,
    x: &State,
    query: Query,
) -> Result<(Vec<Vec<usize>>, Vec<Way>), Error> {
    x.check(machine)?;
    clamp.check(machine, x.n_rows())?;
    let groups = equal_rows(machine, clamp, x);
    let ways = Ways::new(machine, clamp, x, query).of_groups(&groups);
    let cost = cost_of(&ways, query);
    Budget::LIMIT.check(cost.log2_work)?;
    check_memory(cost.bytes, || "the tables of an exact sum".into())?;
    Ok((groups, ways))
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
