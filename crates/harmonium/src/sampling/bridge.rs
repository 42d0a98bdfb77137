//! $\ln Z_1/Z_0$ of two machines that exchange samples again and again.
//!
//! Each exchange shows $u = \ln p^*_1 - \ln p^*_0$ at samples of both. With a first solution $C$ of
//! Bennett's equation ([`super::bennett()`]) the identity
//!
//! $$\ln\frac{Z_1}{Z_0} = C + \ln\frac{\langle\sigma(u - C)\rangle_0}{\langle\sigma(C - u)\rangle_1}$$
//!
//! holds for later samples too, and with almost the least variance, so that two sums are all that has
//! to be kept. They are kept for each *column* of chains: chains exchange inside their column alone, so
//! that columns are independent however slowly each of them forgets, and their spread is the error
//! (the infinitesimal jackknife). What all columns have in common, samples that have not caught up with
//! their machine, does not show there: it shows as a drift from the first half of the first exchanges to the second.

use super::bennett;
use crate::units::binary::logistic;

/// What two machines saw of each other: $u$ at one sample of each column.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// At samples of the lower machine.
    pub(crate) lower: Vec<f64>,
    /// At samples of the upper machine.
    pub(crate) upper: Vec<f64>,
}

impl Seen {
    /// $\ln$ of the ratio with which the samples of a column change places.
    pub(crate) fn log_ratio(&self, column: usize) -> f64 {
        self.lower[column] - self.upper[column]
    }

    /// The share of exchanges that are accepted, over all pairs of a lower and an upper sample: less
    /// noisy than what the columns happen to do, at the same energies.
    pub(crate) fn acceptance(&self) -> f64 {
        let weights = vec![1.0; self.upper.len()];
        acceptance(&self.lower, &self.upper, &weights)
    }
}

/// The mean of $\min(1, e^{a - b})$ over all pairs, each `b` with its weight.
pub(crate) fn acceptance(lower: &[f64], upper: &[f64], weights: &[f64]) -> f64 {
    let mut sorted: Vec<(f64, f64)> = upper.iter().copied().zip(weights.iter().copied()).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Behind each place, the sum of what lies there, seen from there; before it, the weights alone.
    let mut behind = vec![0.0; sorted.len() + 1];
    for i in (0..sorted.len()).rev() {
        let step = sorted.get(i + 1).map_or(0.0, |next| (sorted[i].0 - next.0).exp());
        behind[i] = sorted[i].1 + step * behind[i + 1];
    }
    let mut before = vec![0.0; sorted.len() + 1];
    for (i, (_, w)) in sorted.iter().enumerate() {
        before[i + 1] = before[i] + w;
    }
    let total = before[sorted.len()] * lower.len() as f64;
    let of = |&a: &f64| {
        let first = sorted.partition_point(|(b, _)| *b <= a);
        let rest = sorted.get(first).map_or(0.0, |(b, _)| (a - b).exp() * behind[first]);
        before[first] + rest
    };
    lower.iter().map(of).sum::<f64>() / total
}

/// The sums that are kept of all exchanges of two machines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bridge {
    /// $C$.
    pub(crate) reference: f64,
    /// $\ln Z_1/Z_0$ of the second half of the first exchanges minus that of the first half.
    pub(crate) drift: f64,
    /// $\sum\sigma(u - C)$ of each column over samples of the lower machine.
    pub(crate) lower: Vec<f64>,
    /// $\sum\sigma(C - u)$ of each column over samples of the upper machine.
    pub(crate) upper: Vec<f64>,
}

impl Bridge {
    /// From the first exchanges.
    pub(crate) fn new(first: &[Seen]) -> Self {
        let all = |of: &dyn Fn(&Seen) -> Vec<f64>| first.iter().flat_map(of).collect::<Vec<f64>>();
        let (lower, upper) = (all(&|s| s.lower.clone()), all(&|s| s.upper.clone()));
        let n = first.first().map_or(0, |seen| seen.lower.len());
        // Two halves of equally many samples, one after the other.
        let half = n * (first.len() / 2);
        let tail = lower.len() - half;
        let drift = if half == 0 {
            0.0
        } else {
            bennett(&lower[tail..], &upper[tail..]).log
                - bennett(&lower[..half], &upper[..half]).log
        };
        let mut bridge = Self {
            reference: bennett(&lower, &upper).log,
            drift,
            lower: vec![0.0; n],
            upper: vec![0.0; n],
        };
        first.iter().for_each(|seen| bridge.add(seen));
        bridge
    }

    /// Takes another exchange into account.
    pub(crate) fn add(&mut self, seen: &Seen) {
        let c = self.reference;
        self.lower.iter_mut().zip(&seen.lower).for_each(|(sum, u)| *sum += logistic(u - c));
        self.upper.iter_mut().zip(&seen.upper).for_each(|(sum, u)| *sum += logistic(c - u));
    }

    /// $\ln Z_1/Z_0$; what each column adds to its error is added to `influence`.
    pub(crate) fn log_ratio(&self, influence: &mut [f64]) -> f64 {
        let sum = |xs: &[f64]| xs.iter().sum::<f64>();
        let (lower, upper) = (sum(&self.lower), sum(&self.upper));
        for ((i, a), b) in influence.iter_mut().zip(&self.lower).zip(&self.upper) {
            *i += a / lower - b / upper;
        }
        self.reference + (lower / upper).ln()
    }
}

/// The standard error of a sum of logarithms, from what each column adds to it.
pub(crate) fn spread(influence: &[f64]) -> f64 {
    let n = influence.len() as f64;
    if n < 2.0 {
        return f64::INFINITY;
    }
    (influence.iter().map(|x| x * x).sum::<f64>() * n / (n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harmonium_kernels::random::{Site, Stream};

    fn normals(n: usize, row: usize) -> Vec<f64> {
        let mut out = vec![0.0; n];
        Stream::new(8).normals_into(Site::new(row, 0, 0), &mut out);
        out
    }

    #[test]
    fn acceptance_is_the_mean_over_all_pairs() {
        let (lower, upper) = (normals(13, 0), normals(7, 1));
        let weights: Vec<f64> = (1..=7).map(f64::from).collect();
        let pairs = lower
            .iter()
            .flat_map(|a| upper.iter().zip(&weights).map(move |(b, w)| w * (a - b).exp().min(1.0)));
        let expected = pairs.sum::<f64>() / (13.0 * weights.iter().sum::<f64>());
        assert!((acceptance(&lower, &upper, &weights) - expected).abs() < 1e-12);
        assert_eq!(acceptance(&[2.0], &[2.0, 1.0], &[1.0, 1.0]), 1.0);
        assert_eq!(acceptance(&[-1e6], &[1e6], &[1.0]), 0.0);
    }

    /// $p_0 = N(0, 1)$, $p^*_1 = e^C N(d, 1)$; later exchanges refine what the first one found.
    #[test]
    fn later_exchanges_refine_the_ratio_of_two_gaussians() {
        let (c, d, n) = (-2.3, 1.1, 400);
        let seen = |round: usize| {
            let u = |x: &f64| c + d * x - 0.5 * d * d;
            let upper = normals(n, 2 * round + 1).iter().map(|x| u(&(x + d))).collect();
            Seen { lower: normals(n, 2 * round).iter().map(u).collect(), upper }
        };
        let mut bridge = Bridge::new(&[seen(0)]);
        let error = |bridge: &Bridge| {
            let mut influence = vec![0.0; n];
            let found = bridge.log_ratio(&mut influence);
            (found - c, spread(&influence))
        };
        let (_, first) = error(&bridge);
        (1..16).for_each(|round| bridge.add(&seen(round)));
        let (off, last) = error(&bridge);
        assert!(off.abs() < 4.0 * last, "{off} against {last}");
        assert!((last / first - 0.25).abs() < 0.05, "{first} -> {last}: sixteen times as many");
    }
}
