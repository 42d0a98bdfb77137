//! Forward and backward annealing: $\ln Z$ between two stochastic bounds (Burda, Grosse &
//! Salakhutdinov 2015; Grosse, Ancha & Roy 2016).
//!
//! Forward chains underestimate $\ln Z$; backward chains that start at samples of the machine
//! underestimate $\ln Z_0/Z_1$, so they overestimate it. With exact samples the upper end is a
//! bound; with samples of parallel tempering it holds only as far as tempering has reached the
//! machine, and the report says so. In between the two sets of weights are joined by Bennett's equation, or, where
//! steps cannot be taken back, by their variances.

use super::ais::{anneal, forward};
use super::bar::{Climb, Climbed, climb};
use super::doubts::{self, Doubt};
use super::schedule::Schedule;
use super::search::{Report, Search};
use super::weights::{Summary, Z, student};
use super::{Bracket, LogPartition, Method, Starts};
use crate::error::Error;
use crate::exact::{self, Budget, Query};
use crate::machine::{Clamp, Machine, State};
use crate::sampling::{Collapsed, bennett};

/// Share of effective samples below which an interval holds what its ladders say as well.
const THIN: f64 = 0.25;

/// Where backward chains start unless asked for otherwise: at exact samples where they are affordable.
pub(super) fn starts(machine: &Machine) -> Result<Starts, Error> {
    let one = State::zeros(machine, 1)?;
    let cost = exact::cost(machine, &Clamp::none(), &one, Query::Samples)?;
    let exact = cost.is_within(Budget::SAMPLES);
    Ok(if exact { Starts::Exact } else { Starts::Tempered })
}

/// Samples of the machine, one for each chain, and the ladders that they come from.
fn draw(
    search: &Search,
    schedule: &Schedule,
    starts: Starts,
    report: &mut Report<'_>,
) -> Result<(State, Option<Climbed>), Error> {
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
    Ok((x, Some(found)))
}

/// $\ln Z$ from both sides.
pub(super) fn estimate(search: &Search, report: &mut Report<'_>) -> Result<LogPartition, Error> {
    let schedule = search.schedule(report)?;
    let betas = schedule.betas(search.n_betas());
    let up = forward(search, search.n_chains(), &betas, report)?;
    let starts = search.starts;
    let (mut x, climbed) = draw(search, &schedule, starts, report)?;
    let mut collapsed = Collapsed::new(&search.sampler, &search.base, &search.clamp, &x)?;
    let backwards: Vec<f64> = betas.iter().rev().copied().collect();
    let stream = search.stream.fork(3).fork(1);
    let rounding = search.rounding(&mut x)?;
    let mut tell = |n| report.add(n);
    let mut down = anneal(&mut collapsed, &mut x, &backwards, stream, &mut tell)?;
    down.iter_mut().zip(rounding).for_each(|(w, r)| *w -= r);
    let base = search.base.log_partition(search.machine());
    let ladders = climbed.as_ref().map(|climbed| climbed.n_ladders);
    let mut sides = Sides::new(&up, &down, collapsed.is_reversible(), ladders);
    let doubts = climbed.as_ref().map_or_else(Vec::new, |climbed| sides.doubts(climbed));
    let loose = |climbed: &&Climbed| {
        climbed.ladders.hardly_agree() || sides.is_thin() || !doubts.is_empty()
    };
    if let Some(climbed) = climbed.as_ref().filter(loose) {
        sides.widen(climbed);
    }
    let usual = match starts {
        Starts::Exact => Bracket::Bound,
        Starts::Tempered => Bracket::Heuristic,
    };
    Ok(LogPartition {
        log_z: base + sides.middle,
        std_error: sides.std_error,
        lower: base + sides.lower,
        upper: base + sides.upper,
        bracket: Bracket::judged(usual, doubts.is_empty()),
        doubts,
        method: Method::Sandwich,
        effective_samples: Some(sides.effective_samples),
        chains: search.n_chains(),
        betas: betas.len(),
        sweeps: report.done(),
        starts: Some(starts),
        least_swaps: climbed.as_ref().map(|c| c.least_swaps),
        round_trips: climbed.as_ref().map(|c| c.ladders.round_trips),
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
    pub(crate) effective_samples: f64,
    n: usize,
    /// How far above the forward side the truth may lie if its upper half is to be believed.
    reach: f64,
}

impl Sides {
    /// What speaks against an interval whose backward chains started at the samples of ladders.
    fn doubts(&self, climbed: &Climbed) -> Vec<Doubt> {
        let forward = (self.forward, self.forward_error);
        let backward = (self.backward, self.backward_error);
        let few = doubts::few(self.effective_samples, self.n);
        let sides = doubts::sides(forward, backward);
        // What ladders disagree about matters where it is more than the interval holds anyway.
        let (middle, half) = (climbed.log_ratio, climbed.margin());
        let outside = middle + half < self.lower || middle - half > self.upper;
        let loose = outside || 2.0 * half > self.upper - self.lower;
        let ladders = climbed.ladders.disagree().filter(|_| loose);
        // Replicas that did not travel leave the backward side no better than the forward one.
        let stuck = climbed.ladders.travelled().filter(|_| loose || self.is_thin());
        [few, sides, ladders, stuck].into_iter().flatten().collect()
    }

    /// Whether so few chains decide that the interval leans on the ladders.
    fn is_thin(&self) -> bool {
        self.effective_samples < THIN * self.n as f64
    }

    /// Widens the interval to hold what forward chains, backward chains and ladders say. The lower
    /// end stays: forward chains bound from below whatever the samples are.
    fn widen(&mut self, climbed: &Climbed) {
        self.upper = self.upper.max(climbed.upper()).max(self.forward + self.reach);
        self.middle = self.middle.max(self.forward);
        self.std_error = self.std_error.max(self.forward_error);
    }

    /// `forward` weights have mean $r$, `backward` ones $1/r$; all numbers are about $\ln r$. Backward
    /// chains may start at samples of several ladders in turn: those of one ladder depend on each other.
    pub(crate) fn new(
        forward: &[f64],
        backward: &[f64],
        reversible: bool,
        ladders: Option<usize>,
    ) -> Self {
        let up = Summary::of(forward);
        let down =
            ladders.map_or_else(|| Summary::of(backward), |n| Summary::of_groups(backward, n));
        let below = up.log_mean - up.margin_below();
        let above = -down.log_mean + down.margin_below();
        let (middle, std_error) = if reversible {
            let backward: Vec<f64> = backward.iter().map(|w| -w).collect();
            let ratio = bennett(forward, &backward);
            let between = ladders.map_or(0.0, |n| between_groups(forward, &backward, n));
            (ratio.log, ratio.std_error.max(between))
        } else {
            join((up.log_mean, up.std_error), (-down.log_mean, down.std_error))
        };
        // The interval of the joined estimate belongs to it as well: the two sides alone would
        // miss as often as they promise at most, and sometimes contradict each other.
        let (lower, upper) = (below.min(above), above.max(below));
        let margin = ladders.map_or(Z, |n| student(n - 1)) * std_error;
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
            n: forward.len(),
            reach: up.reach_above(),
        }
    }
}

/// The standard error of Bennett's ratio if every `n`-th weight of a side is of one group: the jackknife,
/// which leaves out a group of each side at a time.
fn between_groups(forward: &[f64], backward: &[f64], n: usize) -> f64 {
    let without = |group: usize| {
        let rest = |all: &[f64]| -> Vec<f64> {
            let kept = all.iter().enumerate().filter(|(i, _)| i % n != group);
            kept.map(|(_, w)| *w).collect()
        };
        bennett(&rest(forward), &rest(backward)).log
    };
    let each: Vec<f64> = (0..n).map(without).collect();
    let count = n as f64;
    let mean = each.iter().sum::<f64>() / count;
    let squares: f64 = each.iter().map(|c| (c - mean).powi(2)).sum();
    (squares * (count - 1.0) / count).sqrt()
}

/// Two estimates, each counted by the inverse of its variance.
fn join(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    // Weights that are all equal are exact; the small number only keeps 0/0 away.
    let precision = |e: f64| 1.0 / (e * e + 1e-30);
    let (p, q) = (precision(a.1), precision(b.1));
    ((a.0 * p + b.0 * q) / (p + q), (1.0 / (p + q)).sqrt())
}
