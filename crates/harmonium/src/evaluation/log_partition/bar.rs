//! Bennett's acceptance ratio (Bennett 1976): the ratio of two partition functions from samples
//! of both distributions.
//!
//! With $u = \ln p^*_1 - \ln p^*_0$ the estimate of $C = \ln Z_1/Z_0$ solves
//!
//! $$\sum_{x \sim p_0} \sigma(u - C - M) = \sum_{x \sim p_1} \sigma(C - u + M),
//!   \qquad M = \ln n_0/n_1,$$
//!
//! which has the least variance of all estimates from these samples (Shirts et al. 2003: it is the
//! maximum of a likelihood). The same equation holds for the weights of forward and backward
//! annealing, if every step can be taken back (Crooks 1999).
//!
//! Along a ladder of temperatures the ratios of neighbours are chained. Samples of parallel
//! tempering depend on each other, but ladders do not: the error is taken from the spread of what
//! each ladder adds to the equations (the infinitesimal jackknife). Ladders that have not settled
//! yet agree with each other and are all wrong; half of what lies between the first and the second
//! half of the rounds has the same standard deviation, and takes its place if it is larger.

use super::weights::student;
use super::{Bracket, LogPartition, Method, Report, Search};
use crate::error::Error;
use crate::machine::State;
use crate::sampling::{Clamp, Collapsed, Tempering, Variates};
use harmonium_kernels::random::Stream;
use std::ops::Range;

/// One round in this many is thrown away at the start, while the replicas settle.
const SETTLING: usize = 5;
/// Fewest rounds.
const FEWEST_ROUNDS: usize = 50;

/// $\ln Z_1/Z_0$ and what it takes to know its error.
pub(super) struct Ratio {
    pub(super) log: f64,
    /// Standard error if all samples are independent.
    pub(super) std_error: f64,
    /// Minus the slope of the equation at its solution.
    slope: f64,
}

/// Solves Bennett's equation for $u$ at samples of $p_0$ (`forward`) and of $p_1$ (`backward`).
pub(super) fn bennett(forward: &[f64], backward: &[f64]) -> Ratio {
    let shift = (forward.len() as f64 / backward.len() as f64).ln();
    let balance = |c: f64| -> f64 {
        let up: f64 = forward.iter().map(|u| logistic(u - c - shift)).sum();
        let down: f64 = backward.iter().map(|u| logistic(c - u + shift)).sum();
        up - down
    };
    let both = || forward.iter().chain(backward);
    let mut low = both().copied().fold(f64::INFINITY, f64::min) - shift.abs() - 1.0;
    let mut high = both().copied().fold(f64::NEG_INFINITY, f64::max) + shift.abs() + 1.0;
    // The balance falls with c. Each halving gains a bit, so this ends at the last one.
    while high - low > 1e-12 * (1.0 + high.abs().max(low.abs())) {
        let middle = 0.5 * (low + high);
        if balance(middle) > 0.0 { low = middle } else { high = middle }
    }
    let c = 0.5 * (low + high);
    let up: Vec<f64> = forward.iter().map(|u| logistic(u - c - shift)).collect();
    let down: Vec<f64> = backward.iter().map(|u| logistic(c - u + shift)).collect();
    let spread = |f: &[f64]| {
        let (n, sum) = (f.len() as f64, f.iter().sum::<f64>());
        let squares: f64 = f.iter().map(|x| x * x).sum();
        if sum > 0.0 { (squares / (sum * sum) - 1.0 / n).max(0.0) } else { f64::INFINITY }
    };
    let slope = up.iter().chain(&down).map(|f| f * (1.0 - f)).sum();
    Ratio { log: c, std_error: (spread(&up) + spread(&down)).sqrt(), slope }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use harmonium_kernels::random::Site;

    /// $p_0 = N(0, 1)$ and $p^*_1 = e^{C} N(d, 1)$: $u = C + dx - d^2/2$.
    #[test]
    fn it_finds_the_ratio_of_two_gaussians() {
        let (c, d) = (3.7, 1.3);
        for (n, m) in [(4000, 4000), (8000, 1000), (500, 6000)] {
            let (mut zero, mut one) = (vec![0.0; n], vec![0.0; m]);
            Stream::new(5).normals_into(Site::new(0, 0, 0), &mut zero);
            Stream::new(5).normals_into(Site::new(1, 0, 0), &mut one);
            let u = |x: f64| c + d * x - 0.5 * d * d;
            let forward: Vec<f64> = zero.iter().map(|x| u(*x)).collect();
            let backward: Vec<f64> = one.iter().map(|x| u(x + d)).collect();
            let found = bennett(&forward, &backward);
            assert!(found.std_error < 0.1 && found.std_error > 0.001);
            let error = (found.log - c).abs();
            assert!(error < 4.0 * found.std_error, "{error} against {}", found.std_error);
        }
    }

    #[test]
    fn equal_ratios_are_found_to_the_last_digit() {
        let found = bennett(&[2.5; 7], &[2.5; 7]);
        assert!((found.log - 2.5).abs() < 1e-11);
        assert!(found.std_error < 1e-7);
    }
}
