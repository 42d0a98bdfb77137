//! $\ln Z$ from parallel tempering: Bennett's ratios ([`crate::sampling`]) of neighbouring
//! temperatures, chained along the ladder.
//!
//! Samples of parallel tempering depend on each other, but ladders do not: the error is taken from
//! the spread of what each ladder adds to the equations (the infinitesimal jackknife). Ladders that
//! have not settled yet agree with each other and are all wrong; half of what lies between the first
//! and the second half of the rounds has the same standard deviation, and takes its place if it is
//! larger. What each ladder says on its own, and how often its replicas travelled, is judged in
//! [`doubts`].
//!
//! Replicas first climb: each is led from the base to its own temperature, so that ladders start at
//! independent annealed states, then swaps begin.

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
/// Most numbers that are kept of each of two kinds; of longer runs every second, third … round.
pub(super) const MOST_KEPT: usize = 1 << 23;

/// Replicas of parallel tempering, what they say about $\ln Z$, and samples of the machine.
pub(super) struct Climbed {
    pub(super) log_ratio: f64,
    pub(super) std_error: f64,
    pub(super) n_ladders: usize,
    pub(super) n_rungs: usize,
    pub(super) rounds: usize,
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

    /// $\ln Z_1/Z_0$ of all rounds and its standard error: by the spread of the ladders, or by what
    /// lies between the halves of the rounds where that is more.
    pub(super) fn settled_ratio(&self) -> (f64, f64) {
        let rounds = self.n_rounds();
        let (log_ratio, spread) = self.ratio(0..rounds);
        let drift = self.ratio(0..rounds / 2).0 - self.ratio(rounds / 2..rounds).0;
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
    let all = climb.rounds.max(FEWEST_ROUNDS).max(2 * climb.samples);
    let climbing = all / CLIMBING;
    let settling = 2 * climbing;
    let rounds = all - settling;
    let thin = (rounds * n * n_ladders).div_ceil(MOST_KEPT).max(1);
    let mut ladder =
        Tempering::new(machine, n_ladders, betas, search.base.clone(), stream.fork(0))?;
    let mut collapsed = Collapsed::new(&search.sampler, &search.base, &clamp, ladder.replicas())?;
    let mut samples = State::zeros(machine, n_ladders * climb.samples)?;
    let mut walked = Walked::new(n, n_ladders);
    let mut taken = 0;
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
        // The last sample is taken in the last round, the others evenly before it.
        if taken < climb.samples && (round - settling + 1) * climb.samples >= (taken + 1) * rounds {
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
    let (log_ratio, spread) = walked.ratio(0..kept);
    let ladders = walked.ladders(kept, ladder.round_trips());
    let rates = ladder.swap_rates().iter().map(|s| s.rate());
    Ok(Climbed {
        log_ratio,
        std_error: spread.max(0.5 * ladders.drift().0.abs()),
        n_ladders,
        n_rungs: n,
        rounds: settling + rounds,
        least_swaps: rates.fold(1.0, f64::min),
        ladders,
        samples,
    })
}

impl Climbed {
    /// Half the width of the 95 % interval.
    pub(super) fn margin(&self) -> f64 {
        student(self.n_ladders - 1) * self.std_error
    }

    /// What speaks against these replicas.
    fn doubts(&self, pilot: &Summary) -> Vec<Doubt> {
        let forward = (pilot.log_mean, pilot.std_error);
        // Forward chains are a lower bound: a ladder above it is as it should be.
        let below = self.log_ratio < pilot.log_mean;
        let below = doubts::sides(forward, (self.log_ratio, self.std_error)).filter(|_| below);
        let doubts = [self.ladders.disagree(), self.ladders.travelled(), below];
        doubts.into_iter().flatten().collect()
    }
}

/// $\ln Z$ by parallel tempering and Bennett's ratio between neighbours.
pub(super) fn estimate(search: &Search, report: &mut Report<'_>) -> Result<LogPartition, Error> {
    let schedule = search.schedule(report)?;
    let n_ladders = search.n_ladders(Method::Bar);
    let n_rungs = search.settings.betas.unwrap_or_else(|| schedule.rungs());
    let rounds = search.tempering_sweeps(Method::Bar) / (n_ladders * n_rungs);
    let how = Climb { n_ladders, rounds, samples: 0 };
    let found = climb(search, &schedule.betas(n_rungs), &how, search.stream.fork(4), report)?;
    let base = search.base.log_partition(search.machine());
    let pilot = Summary::of(&schedule.weights);
    let doubts = found.doubts(&pilot);
    let (mut lower, mut upper) =
        (found.log_ratio - found.margin(), found.log_ratio + found.margin());
    if found.ladders.hardly_agree() {
        upper = upper.max(found.ladders.highest());
    }
    // Forward chains are too low on average: where they are above, a mode may be missing here.
    let above = pilot.log_mean - found.log_ratio;
    if above > Z * pilot.std_error.hypot(found.std_error) {
        upper = upper.max(pilot.log_mean + pilot.margin_above());
    }
    if !doubts.is_empty() {
        // Ladders that miss a mode say too little, and so do those that are still on their way.
        let forward = pilot.log_mean - pilot.margin_below();
        let drift = found.ladders.drift().0.abs();
        upper = (upper + drift).max(found.ladders.highest()).max(forward + pilot.margin_above());
        lower = lower.min(found.log_ratio - drift);
    }
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
        sweeps: (found.n_ladders * found.n_rungs * found.rounds) as u64,
        starts: None,
        least_swaps: Some(found.least_swaps),
        round_trips: Some(found.ladders.round_trips),
        width_reached: None,
    })
}
