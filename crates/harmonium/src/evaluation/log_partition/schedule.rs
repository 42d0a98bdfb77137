//! Where the temperatures lie.
//!
//! Between neighbours the log-weight of a chain moves by $\Delta\beta\,g(\beta)$, where
//! $g^2 = \mathrm{Var}(\partial_\beta \ln p^*_\beta)$. Weights keep most of their effective number
//! over each step, and replicas swap equally often everywhere, if $\Delta\beta \propto 1/g$ (Zhou,
//! Johansen & Aston 2016: constant conditional effective sample size). $g$ is measured by a short
//! run of its own, so the temperatures do not depend on the variates they are used with. A part of
//! them stays evenly spread: $g$ is only measured, and where it is small chains still need time.

use super::search::{Report, Search};
use crate::error::Error;
use crate::sampling::{Clamp, Collapsed, Variates, independent};

/// Share of the temperatures that is spread evenly.
const EVEN: f64 = 0.3;
/// Fewest and most temperatures of the short run.
const PILOT: (usize, usize) = (32, 400);
/// Even cells into which what a ladder saw is sorted.
const CELLS: usize = 256;
/// Chains of the short run.
const CHAINS: usize = 48;

/// Temperatures per $\beta$, as a rising piecewise linear function from 0 to 1.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// The share of temperatures below each of the evenly spaced $\beta$.
    below: Vec<f64>,
    /// $\int g\,d\beta$: how many standard deviations apart base and machine are.
    length: f64,
}

impl Schedule {
    /// For standard deviations of the log-weight's steps between evenly spaced $\beta$.
    fn new(steps: &[f64]) -> Self {
        let n = steps.len();
        let smooth = |k: usize| {
            let near = &steps[k.saturating_sub(2)..(k + 3).min(n)];
            near.iter().sum::<f64>() / near.len() as f64
        };
        let smooth: Vec<f64> = (0..n).map(smooth).collect();
        let length: f64 = smooth.iter().sum();
        let mut below = vec![0.0];
        let mut total = 0.0;
        for step in &smooth {
            let share = if length > 0.0 { step / length } else { 1.0 / n as f64 };
            total += EVEN / n as f64 + (1.0 - EVEN) * share;
            below.push(total);
        }
        below.iter_mut().for_each(|b| *b /= total);
        Self { below, length }
    }

    /// For standard deviations of the log-weight's steps between rungs at `betas`.
    pub(super) fn of_rungs(betas: &[f64], steps: &[f64]) -> Self {
        let cell = 1.0 / CELLS as f64;
        let mut even = vec![0.0; CELLS];
        for (k, sum) in even.iter_mut().enumerate() {
            let (low, high) = (k as f64 * cell, (k + 1) as f64 * cell);
            for (pair, step) in betas.windows(2).zip(steps) {
                let common = (pair[1].min(high) - pair[0].max(low)).max(0.0);
                *sum += step * common / (pair[1] - pair[0]);
            }
        }
        Self::new(&even)
    }

    /// `n` inverse temperatures from 0 to 1, at least two.
    pub(super) fn betas(&self, n: usize) -> Vec<f64> {
        let intervals = (self.below.len() - 1) as f64;
        let mut at = 0;
        let place = |k: usize| {
            let share = k as f64 / (n - 1) as f64;
            while at + 2 < self.below.len() && self.below[at + 1] < share {
                at += 1;
            }
            let (a, b) = (self.below[at], self.below[at + 1]);
            ((at as f64 + (share - a) / (b - a)) / intervals).clamp(0.0, 1.0)
        };
        let mut betas: Vec<f64> = (0..n).map(place).collect();
        (betas[0], betas[n - 1]) = (0.0, 1.0);
        betas
    }

    /// How many rungs of a ladder let neighbours swap about every other time.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    pub(super) fn rungs(&self) -> usize {
        (self.length.ceil().clamp(0.0, 250.0) as usize + 2).max(4)
    }
}

/// Work of the short run, in sweeps of one chain.
pub(super) fn work(betas: usize) -> usize {
    CHAINS * (pilot(betas) - 1)
}

fn pilot(betas: usize) -> usize {
    (betas / 10).clamp(PILOT.0, PILOT.1)
}

/// Measures $g$ by annealing a few chains.
pub(super) fn measure(search: &Search, report: &mut Report<'_>) -> Result<Schedule, Error> {
    let (machine, stream, clamp) = (search.machine(), search.stream.fork(1), Clamp::none());
    let n = pilot(search.n_betas());
    let mut x = independent(machine, &search.base, CHAINS, stream.fork(0))?;
    let mut collapsed = Collapsed::new(&search.sampler, &search.base, &clamp, &x)?;
    let mut steps = Vec::with_capacity(n - 1);
    for k in 1..n {
        let beta = |k: usize| k as f64 / (n - 1) as f64;
        let mut moves = vec![0.0; CHAINS];
        let variates = Variates { stream: stream.fork(1), sweep: k };
        collapsed.step(&mut x, (beta(k - 1), beta(k)), &mut moves, variates);
        report.add(CHAINS)?;
        let mean = moves.iter().sum::<f64>() / CHAINS as f64;
        let spread = moves.iter().map(|m| (m - mean).powi(2)).sum::<f64>();
        let step = (spread / (CHAINS - 1) as f64).sqrt();
        steps.push(machine.check_finite("the spread of the weights of annealing", step)?);
    }
    Ok(Schedule::new(&steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_rise_from_zero_to_one_and_gather_where_weights_move() {
        for steps in [vec![0.0; 9], vec![1.0; 9], vec![0.0, 0.0, 5.0, 0.1, 0.0, 0.0, 0.0]] {
            let schedule = Schedule::new(&steps);
            for n in [2, 3, 10, 1000] {
                let betas = schedule.betas(n);
                assert_eq!((betas.len(), betas[0], betas[n - 1]), (n, 0.0, 1.0));
                assert!(betas.windows(2).all(|w| w[0] < w[1]), "{betas:?}");
            }
        }
        let steps: Vec<f64> = (0..100).map(|k| if k < 20 { 1.0 } else { 0.01 }).collect();
        let betas = Schedule::new(&steps).betas(1001);
        assert!(betas.iter().filter(|b| **b < 0.2).count() > 700);
    }
}
