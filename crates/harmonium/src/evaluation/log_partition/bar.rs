//! $\ln Z$ from parallel tempering: Bennett's ratios ([`crate::sampling`]) of neighbouring
//! temperatures, chained along the ladder.
//!
//! Samples of parallel tempering depend on each other, but ladders do not: the error is taken from
//! the spread of what each ladder adds to the equations (the infinitesimal jackknife). Ladders that
//! have not settled yet agree with each other and are all wrong; half of what lies between the first
//! and the second half of the rounds has the same standard deviation, and takes its place if it is
//! larger. Where the halves differ by more than a standard error, the interval of the second alone belongs
//! to that of all. What each ladder says on its own, and how often its replicas travelled, is judged in
//! [`doubts`].
//!
//! Replicas first climb: each is led from the base to its own temperature, so that ladders start at
//! independent annealed states, then swaps begin. Replicas that lag behind their temperature say too little,
//! all of them, so ladders are held against chains that are annealed beside them (*witnesses*): those bound
//! $\ln Z$ from below.

use super::ais::forward;
use super::doubts::{self, Doubt, Ladders};
use super::search::{Report, Search};
use super::weights::{Summary, Z, student};
use super::{Bracket, LogPartition, Method};
use crate::error::Error;
use crate::machine::State;
use crate::sampling::{Clamp, Collapsed, Tempering, Variates, bennett, solve_bennett};
use crate::units::binary::logistic;
use harmonium_kernels::random::Stream;
use rayon::prelude::*;
use std::ops::Range;

/// One round in this many leads the replicas to their temperatures, and as many again let them
/// settle there; nothing is taken down before.
const CLIMBING: usize = 6;
/// Fewest rounds.
const FEWEST_ROUNDS: usize = 50;
/// Chains that are annealed beside the ladders, in one sweep for so many of theirs, over at least so many temperatures.
const WITNESSES: usize = 100;
const WITNESSING: usize = 4;
const FEWEST_BETAS: usize = 32;
/// Most numbers that are kept of each of two kinds; of longer runs every second, third … round.
pub(super) const MOST_KEPT: usize = 1 << 23;

/// Replicas of parallel tempering, what they say about $\ln Z$, and samples of the machine.
pub(super) struct Climbed {
    pub(super) log_ratio: f64,
    pub(super) std_error: f64,
    pub(super) n_ladders: usize,
    pub(super) n_rungs: usize,
    /// The same of the second half of the rounds.
    later: (f64, f64),
    /// Least share of swaps that was accepted between two neighbours.
    pub(super) least_swaps: f64,
    /// What the ladders say, each on its own.
    pub(super) ladders: Ladders,
    /// Replicas at $\beta = 1$, spread over the rounds.
    pub(super) samples: State,
}

/// What the replicas saw, for each ladder and rung in turn, round by round.
pub(super) struct Walked {
    /// $\ln p^*_{k+1} - \ln p^*_k$ at samples of $p_k$.
    up: Vec<Vec<f64>>,
    /// $\ln p^*_k - \ln p^*_{k-1}$ at samples of $p_k$.
    down: Vec<Vec<f64>>,
    n_rungs: usize,
    n_ladders: usize,
}

impl Walked {
    pub(super) fn new(n_rungs: usize, n_ladders: usize) -> Self {
        let none = || vec![Vec::new(); n_rungs * n_ladders];
        Self { up: none(), down: none(), n_rungs, n_ladders }
    }

    /// Takes down what a round saw: see [`Tempering::advance_collapsed`].
    pub(super) fn push(&mut self, (higher, lower): (Vec<f64>, Vec<f64>)) {
        self.up.iter_mut().zip(higher).for_each(|(all, u)| all.push(u));
        self.down.iter_mut().zip(lower).for_each(|(all, u)| all.push(-u));
    }

    fn n_rounds(&self) -> usize {
        self.up.first().map_or(0, Vec::len)
    }

    /// $\ln Z_1/Z_0$ of all rounds and its standard error.
    pub(super) fn settled_ratio(&self) -> (f64, f64) {
        self.ratio_and_error(0..self.n_rounds())
    }

    /// $\ln Z_1/Z_0$ of some of the rounds and its standard error: by the spread of the ladders, or by
    /// what lies between the halves of these rounds where that is more.
    fn ratio_and_error(&self, rounds: Range<usize>) -> (f64, f64) {
        let middle = rounds.start.midpoint(rounds.end);
        let (log_ratio, spread) = self.ratio(rounds.clone());
        let drift = self.ratio(rounds.start..middle).0 - self.ratio(middle..rounds.end).0;
        (log_ratio, spread.max(0.5 * drift.abs()))
    }

    /// How far the log-weight moves between each rung and the next, as a standard deviation seen from
    /// both.
    pub(super) fn steps(&self) -> Vec<f64> {
        let (n, n_ladders) = (self.n_rungs, self.n_ladders);
        let spread = |all: &[Vec<f64>], k: usize| {
            let seen = || (0..n_ladders).flat_map(|ladder| all[ladder * n + k].iter().copied());
            let count = seen().count() as f64;
            let mean = seen().sum::<f64>() / count;
            (seen().map(|u| (u - mean).powi(2)).sum::<f64>() / count).sqrt()
        };
        (0..n - 1).map(|k| 0.5 * (spread(&self.up, k) + spread(&self.down, k + 1))).collect()
    }

    /// How far the mean log-weight at samples of each rung is below that at samples of the next: $\ln Z_{k+1}/Z_k$ lies between
    /// the two, however little the samples have in common.
    pub(super) fn gaps(&self) -> Vec<f64> {
        let (n, n_ladders) = (self.n_rungs, self.n_ladders);
        let mean = |all: &[Vec<f64>], k: usize| {
            let seen = || (0..n_ladders).flat_map(|ladder| all[ladder * n + k].iter().copied());
            seen().sum::<f64>() / seen().count() as f64
        };
        (0..n - 1).map(|k| mean(&self.down, k + 1) - mean(&self.up, k)).collect()
    }

    /// $\ln Z_1/Z_0$ of some of the rounds, and its standard error by the spread of the ladders.
    fn ratio(&self, rounds: Range<usize>) -> (f64, f64) {
        let (n, n_ladders) = (self.n_rungs, self.n_ladders);
        let of = |all: &[Vec<f64>], k: usize| -> Vec<f64> {
            let seen = |ladder: usize| &all[ladder * n + k][rounds.clone()];
            (0..n_ladders).flat_map(seen).copied().collect()
        };
        let mut log_ratio = 0.0;
        let mut influence = vec![0.0; n_ladders];
        for k in 0..n - 1 {
            let (above, below) = (of(&self.up, k), of(&self.down, k + 1));
            let ratio = bennett(&above, &below);
            log_ratio += ratio.log;
            let each = above.chunks_exact(rounds.len()).zip(below.chunks_exact(rounds.len()));
            for (sum, (above, below)) in influence.iter_mut().zip(each) {
                let above: f64 = above.iter().map(|u| logistic(u - ratio.log)).sum();
                let below: f64 = below.iter().map(|u| logistic(ratio.log - u)).sum();
                *sum += (above - below) / ratio.slope;
            }
        }
        let count = n_ladders as f64;
        let spread: f64 = influence.iter().map(|x| x * x).sum();
        (log_ratio, (spread * count / (count - 1.0)).sqrt())
    }

    /// $\ln Z_1/Z_0$ of some of the rounds of one ladder.
    fn of_ladder(&self, ladder: usize, rounds: &Range<usize>) -> f64 {
        let seen =
            |all: &'_ [Vec<f64>], k: usize| all[ladder * self.n_rungs + k][rounds.clone()].to_vec();
        (0..self.n_rungs - 1)
            .map(|k| solve_bennett(&seen(&self.up, k), &seen(&self.down, k + 1), 0.0))
            .sum()
    }

    /// What each ladder says on its own.
    fn ladders(&self, rounds: usize, round_trips: u64) -> Ladders {
        let (first, second) = (0..rounds / 2, rounds / 2..rounds);
        let each = |rounds: &Range<usize>| -> Vec<f64> {
            (0..self.n_ladders).into_par_iter().map(|l| self.of_ladder(l, rounds)).collect()
        };
        let halves = each(&first).into_iter().zip(each(&second));
        let drifts = halves.map(|(first, second)| second - first).collect();
        Ladders { each: each(&(0..rounds)), drifts, round_trips }
    }
}

/// How parallel tempering is run.
pub(super) struct Climb {
    pub(super) n_ladders: usize,
    pub(super) rounds: usize,
    /// Samples of the machine to take from each ladder.
    pub(super) samples: usize,
}

/// Runs the ladders over the rungs `betas`.
pub(super) fn climb(
    search: &Search,
    betas: &[f64],
    climb: &Climb,
    stream: Stream,
    report: &mut Report<'_>,
) -> Result<Climbed, Error> {
    let (machine, clamp) = (search.machine(), Clamp::none());
    let (n, n_ladders) = (betas.len(), climb.n_ladders);
    let all = climb.rounds.max(FEWEST_ROUNDS).max(3 * climb.samples + 6);
    let climbing = all / CLIMBING;
    let settling = 2 * climbing;
    let rounds = all - settling;
    let thin = (rounds * n * n_ladders).div_ceil(MOST_KEPT).max(1);
    let mut ladder =
        Tempering::new(machine, n_ladders, betas, search.base.clone(), stream.fork(0))?;
    let mut collapsed = Collapsed::new(&search.sampler, &search.base, &clamp, ladder.replicas())?;
    let mut samples = State::zeros(machine, n_ladders * climb.samples)?;
    let mut walked = Walked::new(n, n_ladders);
    let (mut taken, half) = (0, rounds / 2);
    for round in 0..settling + rounds {
        let variates = Variates { stream: stream.fork(1), sweep: round };
        report.add(n * n_ladders)?;
        if round < climbing {
            let share = (round + 1) as f64 / climbing as f64;
            ladder.climb_collapsed(&mut collapsed, share, variates);
            continue;
        }
        let seen = ladder.advance_collapsed(&mut collapsed, variates);
        if round < settling {
            continue;
        }
        if (round - settling).is_multiple_of(thin) {
            walked.push(seen);
        }
        // The last sample is taken in the last round, the others evenly before it, none in the first half.
        let late = (round + 1).saturating_sub(settling + half);
        if taken < climb.samples && late * climb.samples >= (taken + 1) * (rounds - half) {
            let now = ladder.targets(machine)?;
            for l in machine.layer_ids() {
                for row in 0..n_ladders {
                    samples.set_row(l, taken * n_ladders + row, now.row(l, row))?;
                }
            }
            taken += 1;
        }
    }
    let kept = walked.n_rounds();
    let ladders = walked.ladders(kept, ladder.round_trips());
    let (log_ratio, std_error) = walked.ratio_and_error(0..kept);
    let rates = ladder.swap_rates().iter().map(|s| s.rate());
    Ok(Climbed {
        log_ratio,
        std_error,
        n_ladders,
        n_rungs: n,
        least_swaps: rates.fold(1.0, f64::min),
        later: walked.ratio(kept / 2..kept),
        ladders,
        samples,
    })
}

impl Climbed {
    /// Half the width of the 95 % interval.
    pub(super) fn margin(&self) -> f64 {
        student(self.n_ladders - 1) * self.std_error
    }

    /// The interval, which also holds what follows if the rounds that were not made lie `further` times as
    /// far beyond the second half as that beyond the first.
    fn with_drift(&self, further: f64) -> (f64, f64) {
        let (drift, _) = self.ladders.drift();
        let (later, margin) = (self.later.0, student(self.n_ladders - 1) * self.later.1);
        let upper = later + further * drift.max(0.0) + margin;
        let lower = later + further * drift.min(0.0) - margin;
        (lower.min(self.log_ratio - self.margin()), upper.max(self.log_ratio + self.margin()))
    }

    /// The upper end of what the ladders say, the highest of them included.
    pub(super) fn upper(&self) -> f64 {
        self.with_drift(1.0).1.max(self.ladders.highest())
    }

    /// What speaks against these replicas.
    fn doubts(&self, witnesses: &Summary) -> Vec<Doubt> {
        let forward = (witnesses.log_mean, witnesses.std_error);
        // Forward chains are a lower bound: a ladder above it is as it should be.
        let below = self.log_ratio < witnesses.log_mean;
        let below = doubts::sides(forward, (self.log_ratio, self.std_error)).filter(|_| below);
        let doubts = [self.ladders.disagree(), self.ladders.travelled(), below];
        doubts.into_iter().flatten().collect()
    }

    /// The interval of $\ln Z_1/Z_0$, wider where there are doubts, or nearly so.
    fn interval(&self, witnesses: &Summary, believed: bool) -> (f64, f64) {
        let (drift, error) = self.ladders.drift();
        let (mut lower, mut upper) =
            (self.log_ratio - self.margin(), self.log_ratio + self.margin());
        if !believed || self.ladders.hardly_agree() {
            (lower, upper) = (self.with_drift(1.0).0, self.upper());
        } else if drift > error {
            upper = self.with_drift(0.0).1;
        } else if drift < -error {
            lower = self.with_drift(0.0).0;
        }
        // Forward chains are too low on average: where they are above, a mode may be missing here.
        let above = witnesses.log_mean - self.log_ratio;
        if above > Z * witnesses.std_error.hypot(self.std_error) {
            upper = upper.max(witnesses.log_mean + witnesses.margin_above());
        }
        if !believed {
            // Ladders that miss a mode say too little, and so do those that are still on their way.
            upper = upper.max(witnesses.log_mean + witnesses.reach_above());
        }
        (lower, upper)
    }
}

/// Sweeps of the witnesses beside as many of the ladders.
pub(super) fn witnessing(sweeps: usize) -> usize {
    WITNESSES * (temperatures(sweeps) - 1)
}

fn temperatures(sweeps: usize) -> usize {
    (sweeps / (WITNESSING * WITNESSES)).max(FEWEST_BETAS)
}

/// $\ln Z$ by parallel tempering and Bennett's ratio between neighbours.
pub(super) fn estimate(search: &Search, report: &mut Report<'_>) -> Result<LogPartition, Error> {
    let schedule = search.schedule(report)?;
    let sweeps = search.tempering_sweeps(Method::Bar);
    let betas = schedule.betas(temperatures(sweeps));
    let witnesses = Summary::of(&forward(search, WITNESSES, &betas, report)?);
    let n_ladders = search.n_ladders(Method::Bar);
    let n_rungs = search.settings.betas.unwrap_or_else(|| schedule.rungs());
    let how = Climb { n_ladders, rounds: sweeps / (n_ladders * n_rungs), samples: 0 };
    let found = climb(search, &schedule.betas(n_rungs), &how, search.stream.fork(4), report)?;
    let base = search.base.log_partition(search.machine());
    let doubts = found.doubts(&witnesses);
    let (lower, upper) = found.interval(&witnesses, doubts.is_empty());
    Ok(LogPartition {
        log_z: base + found.log_ratio,
        std_error: found.std_error,
        lower: base + lower,
        upper: base + upper,
        bracket: Bracket::judged(Bracket::Heuristic, doubts.is_empty()),
        doubts,
        method: Method::Bar,
        effective_samples: None,
        chains: found.n_ladders,
        betas: found.n_rungs,
        sweeps: report.done(),
        starts: None,
        least_swaps: Some(found.least_swaps),
        round_trips: Some(found.ladders.round_trips),
        width_reached: None,
    })
}
