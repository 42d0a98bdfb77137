//! $\ln Z$ from parallel tempering: Bennett's ratios ([`crate::sampling`]) of neighbouring
//! temperatures, chained along the ladder.
//!
//! Samples of parallel tempering depend on each other, but ladders do not: the error is taken from
//! the spread of what each ladder adds to the equations (the infinitesimal jackknife). Ladders that
//! have not settled yet agree with each other and are all wrong; half of what lies between the first
//! and the second half of the rounds has the same standard deviation, and takes its place if it is
//! larger.

use super::weights::student;
use super::{Bracket, LogPartition, Method, Report, Search};
use crate::error::Error;
use crate::machine::State;
use crate::sampling::{Clamp, Collapsed, Tempering, Variates, bennett};
use crate::units::binary::logistic;
use harmonium_kernels::random::Stream;
use std::ops::Range;

/// One round in this many is thrown away at the start, while the replicas settle.
const SETTLING: usize = 5;
/// Fewest rounds.
const FEWEST_ROUNDS: usize = 50;

/// Replicas of parallel tempering, what they say about $\ln Z$, and samples of the machine.
pub(super) struct Climbed {
    pub(super) log_ratio: f64,
    pub(super) std_error: f64,
    pub(super) n_ladders: usize,
    pub(super) n_rungs: usize,
    pub(super) rounds: usize,
    /// Least share of swaps that was accepted between two neighbours.
    pub(super) least_swaps: f64,
    /// Replicas at $\beta = 1$, spread over the rounds.
    pub(super) samples: State,
}

/// What the replicas saw, for each ladder and rung in turn, round by round.
struct Walked {
    /// $\ln p^*_{k+1} - \ln p^*_k$ at samples of $p_k$.
    up: Vec<Vec<f64>>,
    /// $\ln p^*_k - \ln p^*_{k-1}$ at samples of $p_k$.
    down: Vec<Vec<f64>>,
    n_rungs: usize,
    n_ladders: usize,
}

impl Walked {
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
    let settling = all / SETTLING;
    let rounds = all - settling;
    let mut ladder =
        Tempering::new(machine, n_ladders, betas, search.base.clone(), stream.fork(0))?;
    let mut collapsed = Collapsed::new(&search.sampler, &search.base, &clamp, ladder.replicas())?;
    let mut samples = State::zeros(machine, n_ladders * climb.samples)?;
    let (mut up, mut down) = (vec![Vec::new(); n * n_ladders], vec![Vec::new(); n * n_ladders]);
    let mut taken = 0;
    for round in 0..settling + rounds {
        let variates = Variates { stream: stream.fork(1), sweep: round };
        let (higher, lower) = ladder.advance_collapsed(&mut collapsed, variates);
        report.add(n * n_ladders);
        if round < settling {
            continue;
        }
        up.iter_mut().zip(higher).for_each(|(all, u)| all.push(u));
        down.iter_mut().zip(lower).for_each(|(all, u)| all.push(-u));
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
    let walked = Walked { up, down, n_rungs: n, n_ladders };
    let (log_ratio, spread) = walked.ratio(0..rounds);
    let drift = walked.ratio(0..rounds / 2).0 - walked.ratio(rounds / 2..rounds).0;
    let rates = ladder.swap_rates().iter().map(|s| s.rate());
    Ok(Climbed {
        log_ratio,
        std_error: spread.max(0.5 * drift.abs()),
        n_ladders,
        n_rungs: n,
        rounds,
        least_swaps: rates.fold(1.0, f64::min),
        samples,
    })
}

/// $\ln Z$ by parallel tempering and Bennett's ratio between neighbours.
pub(super) fn estimate(search: &Search, report: &mut Report<'_>) -> Result<LogPartition, Error> {
    let schedule = search.schedule(report)?;
    let n_ladders = search.n_ladders(Method::Bar);
    let n_rungs = search.settings.betas.unwrap_or_else(|| schedule.rungs());
    let rounds = search.tempering_sweeps(Method::Bar) / (n_ladders * n_rungs);
    let how = Climb { n_ladders, rounds, samples: 0 };
    let found = climb(search, &schedule.betas(n_rungs), &how, search.stream.fork(4), report)?;
    let log_z = search.base.log_partition(search.machine()) + found.log_ratio;
    let margin = student(n_ladders - 1) * found.std_error;
    Ok(LogPartition {
        log_z,
        std_error: found.std_error,
        lower: log_z - margin,
        upper: log_z + margin,
        bracket: Bracket::Heuristic,
        method: Method::Bar,
        effective_samples: None,
        chains: found.n_ladders,
        betas: found.n_rungs,
        sweeps: (found.n_ladders * found.n_rungs * found.rounds) as u64,
        starts: None,
        least_swaps: Some(found.least_swaps),
        width_reached: None,
    })
}
