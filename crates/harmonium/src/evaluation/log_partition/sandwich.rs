//! Forward and backward annealing: $\ln Z$ between two stochastic bounds (Burda, Grosse &
//! Salakhutdinov 2015; Grosse, Ancha & Roy 2016).
//!
//! Forward chains underestimate $\ln Z$; backward chains that start at samples of the machine
//! underestimate $\ln Z_0/Z_1$, so they overestimate it. With exact samples the upper end is a
//! bound; with samples of parallel tempering it holds only as far as tempering has reached the
//! machine, and the report says so. In between the two sets of weights are joined by Bennett's equation, or, where
//! steps cannot be taken back, by their variances.

use super::ais::{anneal, forward};
use super::bar::{Climb, climb};
use super::schedule::Schedule;
use super::weights::{Summary, Z};
use super::{Bracket, LogPartition, Method, Report, Search, Starts};
use crate::error::Error;
use crate::exact::{self, Budget};
use crate::machine::State;
use crate::sampling::{Collapsed, bennett};

/// Whether the backward chains start at exact samples.
pub(super) fn starts(search: &Search) -> Starts {
    let terms = exact::log2_states(search.machine());
    if Budget::SAMPLES.affords(terms) { Starts::Exact } else { Starts::Tempered }
}

/// Samples of the machine, one for each chain.
fn draw(
    search: &Search,
    schedule: &Schedule,
    starts: Starts,
    report: &mut Report<'_>,
) -> Result<(State, Option<f64>), Error> {
    let (n, stream) = (search.n_chains(), search.stream.fork(3));
    if starts == Starts::Exact {
        return Ok((exact::samples(search.machine(), n, stream.fork(0))?, None));
    }
    let n_ladders = search.n_ladders(Method::Sandwich);
    let betas = schedule.betas(schedule.rungs());
    let rounds = search.tempering_sweeps(Method::Sandwich) / (n_ladders * betas.len());
    let how = Climb { n_ladders, rounds, samples: n.div_ceil(n_ladders) };
    let found = climb(search, &betas, &how, stream.fork(0), report)?;
    let mut x = State::zeros(search.machine(), n)?;
    for l in search.machine().layer_ids() {
        for row in 0..n {
            x.set_row(l, row, found.samples.row(l, row))?;
        }
    }
    Ok((x, Some(found.least_swaps)))
}

/// $\ln Z$ from both sides.
pub(super) fn estimate(search: &Search, report: &mut Report<'_>) -> Result<LogPartition, Error> {
    let schedule = search.schedule(report)?;
    let betas = schedule.betas(search.n_betas());
    let up = forward(search, &betas, report)?;
    let starts = starts(search);
    let (mut x, least_swaps) = draw(search, &schedule, starts, report)?;
    let mut collapsed = Collapsed::new(&search.sampler, &search.base, &search.clamp, &x)?;
    let backwards: Vec<f64> = betas.iter().rev().copied().collect();
    let stream = search.stream.fork(3).fork(1);
    let rounding = search.rounding(&mut x)?;
    let mut down = anneal(&mut collapsed, &mut x, &backwards, stream, &mut |n| report.add(n));
    down.iter_mut().zip(rounding).for_each(|(w, r)| *w -= r);
    let base = search.base.log_partition(search.machine());
    let sides = Sides::new(&up, &down, collapsed.is_reversible());
    Ok(LogPartition {
        log_z: base + sides.middle,
        std_error: sides.std_error,
        lower: base + sides.lower,
        upper: base + sides.upper,
        bracket: match starts {
            Starts::Exact => Bracket::Bound,
            Starts::Tempered => Bracket::Heuristic,
        },
        method: Method::Sandwich,
        effective_samples: Some(sides.effective_samples),
        chains: search.n_chains(),
        betas: betas.len(),
        sweeps: (2 * search.n_chains() * (betas.len() - 1)) as u64,
        starts: Some(starts),
        least_swaps,
        width_reached: None,
    })
}

/// What forward and backward weights say together.
pub(crate) struct Sides {
    /// The two sides without a margin, and their standard errors.
    pub(crate) forward: f64,
    pub(crate) backward: f64,
    pub(crate) forward_error: f64,
    pub(crate) backward_error: f64,
    /// The two sides joined.
    pub(crate) middle: f64,
    pub(crate) std_error: f64,
    /// The two sides with a margin of 97.5 % each.
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) effective_samples: f64,
}

impl Sides {
    /// `forward` weights have mean $r$, `backward` ones $1/r$; all numbers are about $\ln r$.
    pub(crate) fn new(forward: &[f64], backward: &[f64], reversible: bool) -> Self {
        let (up, down) = (Summary::of(forward), Summary::of(backward));
        let below = up.log_mean - up.margin_below();
        let above = -down.log_mean + down.margin_below();
        let (middle, std_error) = if reversible {
            let backward: Vec<f64> = backward.iter().map(|w| -w).collect();
            let ratio = bennett(forward, &backward);
            (ratio.log, ratio.std_error)
        } else {
            join((up.log_mean, up.std_error), (-down.log_mean, down.std_error))
        };
        // The interval of the joined estimate belongs to it as well: the two sides alone would
        // miss as often as they promise at most, and sometimes contradict each other.
        let (lower, upper) = (below.min(above), above.max(below));
        let margin = Z * std_error;
        Self {
            forward: up.log_mean,
            backward: -down.log_mean,
            forward_error: up.std_error,
            backward_error: down.std_error,
            lower: lower.min(middle - margin),
            middle,
            upper: upper.max(middle + margin),
            std_error,
            effective_samples: up.effective_samples.min(down.effective_samples),
        }
    }
}

/// Two estimates, each counted by the inverse of its variance.
fn join(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    // Weights that are all equal are exact; the small number only keeps 0/0 away.
    let precision = |e: f64| 1.0 / (e * e + 1e-30);
    let (p, q) = (precision(a.1), precision(b.1));
    ((a.0 * p + b.0 * q) / (p + q), (1.0 / (p + q)).sqrt())
}
