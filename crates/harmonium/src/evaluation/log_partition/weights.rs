//! What a set of importance weights says about the ratio it estimates.
//!
//! The mean of $n$ independent weights is an unbiased estimate of $r = Z_1/Z_0$, so its logarithm
//! is a stochastic lower bound on $\ln r$ (Jensen), and by Markov's inequality
//! $P(\hat r \ge r\,e^a) \le e^{-a}$ however wild the weights are.

use crate::units::log_sum_exp;

/// The normal quantile of a one-sided 97.5 %.
pub(crate) const Z: f64 = 1.959_963_984_540_054;

/// Importance weights, summed up.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    /// $\ln$ of their mean.
    pub(super) log_mean: f64,
    /// Standard error of the mean, relative to it: by the delta method that of `log_mean`.
    pub(super) std_error: f64,
    /// $(\sum w)^2/\sum w^2$.
    pub(super) effective_samples: f64,
    skewness: f64,
    /// Student's quantile of the margins.
    quantile: f64,
    n: usize,
    /// The logarithm of their mean if the upper half of the logarithms is that of a normal distribution.
    tail: f64,
}

impl Summary {
    pub(super) fn of(log_weights: &[f64]) -> Self {
        let n = log_weights.len();
        let count = n as f64;
        let log_mean = log_sum_exp(log_weights) - count.ln();
        let mut relative: Vec<f64> = log_weights.iter().map(|l| (l - log_mean).exp()).collect();
        let total: f64 = relative.iter().sum();
        if (total - count).abs() > 1e-6 * count {
            // Logarithms of a billion and more are too coarse to hold that of a mean.
            relative.iter_mut().for_each(|w| *w *= count / total);
        }
        let moment =
            |power: i32| relative.iter().map(|w| (w - 1.0).powi(power)).sum::<f64>() / count;
        let variance = moment(2);
        let squares: f64 = relative.iter().map(|w| w * w).sum();
        Self {
            log_mean,
            std_error: (variance / (count - 1.0).max(1.0)).sqrt(),
            effective_samples: count * count / squares,
            skewness: if variance > 0.0 { moment(3) / variance.powf(1.5) } else { 0.0 },
            quantile: student(n.saturating_sub(1)),
            n,
            tail: tail(log_weights),
        }
    }

    /// Of weights of which every `n_groups`-th comes from the same group and may depend on the others of
    /// it: where the means of the groups differ by more than those of independent weights would, they
    /// decide about the error.
    pub(super) fn of_groups(log_weights: &[f64], n_groups: usize) -> Self {
        let summary = Self::of(log_weights);
        let mean = |group: usize| {
            let of: Vec<f64> = log_weights.iter().skip(group).step_by(n_groups).copied().collect();
            (log_sum_exp(&of) - (of.len() as f64).ln() - summary.log_mean).exp()
        };
        let count = n_groups as f64;
        let squares: f64 = (0..n_groups).map(|g| (mean(g) - 1.0).powi(2)).sum();
        let between = (squares / (count * (count - 1.0))).sqrt();
        let quantile = student(n_groups.saturating_sub(1));
        Self { std_error: summary.std_error.max(between), quantile, ..summary }
    }

    /// How far $\ln r$ may lie above `log_mean` where the weights are so wild that a few of them
    /// decide: the usual margin, or as far as the upper half of the logarithms promises if it is
    /// that of a normal distribution.
    pub(super) fn reach_above(&self) -> f64 {
        self.margin_above().max(self.tail - self.log_mean)
    }

    /// How far $\ln r$ may lie below `log_mean`, one-sided 97.5 %: Student's interval of the mean,
    /// or Markov's inequality where the weights are too wild for it.
    pub(super) fn margin_below(&self) -> f64 {
        self.below(self.quantile, 40.0)
    }

    /// The same, beyond which chance alone goes once in a thousand times at most.
    pub(super) fn sure_margin_below(&self) -> f64 {
        self.below(self.quantile * 4.0 / Z, 1000.0)
    }

    fn below(&self, quantile: f64, markov: f64) -> f64 {
        let normal = 1.0 - quantile * self.std_error;
        if normal > 0.0 { (-normal.ln()).min(markov.ln()) } else { markov.ln() }
    }

    /// How far $\ln r$ may lie above `log_mean`, one-sided 97.5 %. The weights are skewed to the
    /// right, so a mean that misses the large ones looks surer than it is: Student's quantile is
    /// corrected for it (Hall 1992, the first term of the Edgeworth expansion).
    pub(super) fn margin_above(&self) -> f64 {
        let skew = self.skewness.max(0.0) * (2.0 * Z * Z + 1.0) / (6.0 * (self.n as f64).sqrt());
        (self.quantile + skew) * self.std_error
    }
}

/// $m + s^2/2$ with the median $m$ and the distance $s$ from it to the upper sixth: the logarithm of the
/// mean of $e^x$ for a normal $x$. The lower half is of chains that ended nowhere near, and is left out.
fn tail(log_weights: &[f64]) -> f64 {
    let mut sorted = log_weights.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (sorted.len() - 1) as f64;
        let (below, part) = (place.floor(), place.fract());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let below = below as usize;
        let above = (below + 1).min(sorted.len() - 1);
        sorted[below] + part * (sorted[above] - sorted[below])
    };
    let (median, upper) = (at(0.5), at(0.841_344_746));
    median + 0.5 * (upper - median).powi(2)
}

/// Student's quantile of a one-sided 97.5 %.
pub(super) fn student(degrees: usize) -> f64 {
    // Beyond the table, Fisher's expansion in 1/degrees is good to three decimals.
    const FIRST: [f64; 10] =
        [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    if degrees == 0 {
        return f64::INFINITY;
    }
    if let Some(t) = FIRST.get(degrees - 1) {
        return *t;
    }
    let nu = degrees as f64;
    let first = (Z.powi(3) + Z) / 4.0;
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
    let third = (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0;
    Z + first / nu + second / nu.powi(2) + third / nu.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (degrees, t) in [(1, 12.706), (11, 2.201), (20, 2.086), (30, 2.042), (99, 1.984)] {
            assert!((student(degrees) - t).abs() < 1e-3, "{degrees}");
        }
        assert!((student(1_000_000) - Z).abs() < 1e-5);
        assert!(student(0).is_infinite());
    }

    #[test]
    fn equal_weights_leave_no_doubt() {
        let summary = Summary::of(&[-700.0; 8]);
        assert!((summary.log_mean + 700.0).abs() < 1e-12);
        assert!((summary.effective_samples - 8.0).abs() < 1e-9);
        assert_eq!(summary.std_error, 0.0);
        assert_eq!((summary.margin_below(), summary.margin_above()), (0.0, 0.0));
    }

    #[test]
    fn one_huge_weight_counts_as_one() {
        let summary = Summary::of(&[6e39, 1e39, 2e39, 0.0]);
        assert!((summary.effective_samples - 1.0).abs() < 1e-9, "{}", summary.effective_samples);
        assert!((summary.std_error - 1.0).abs() < 1e-9, "{}", summary.std_error);
    }

    /// Ten groups of ten weights that are equal within a group are worth ten weights.
    #[test]
    fn weights_that_depend_on_each_other_count_once() {
        let value = |group: usize| 0.1 * group as f64;
        let each: Vec<f64> = (0..10).map(value).collect();
        let copied: Vec<f64> = (0..100).map(|i| value(i % 10)).collect();
        let (ten, groups) = (Summary::of(&each), Summary::of_groups(&copied, 10));
        assert!((ten.std_error - groups.std_error).abs() < 1e-9);
        assert!((ten.margin_below() - groups.margin_below()).abs() < 1e-9);
        assert!(Summary::of(&copied).std_error < 0.35 * ten.std_error);
        // Independent weights lose only Student's quantile of nine degrees of freedom, or a little more.
        let alone: Vec<f64> = (0..100).map(|i| value(i * 37 % 100 / 10)).collect();
        let (plain, groups) = (Summary::of(&alone), Summary::of_groups(&alone, 10));
        assert!(groups.std_error < 1.5 * plain.std_error, "{}", groups.std_error);
    }

    #[test]
    fn wild_weights_are_left_to_markov() {
        let summary = Summary::of(&[0.0, -50.0, -60.0, -80.0]);
        assert!((summary.effective_samples - 1.0).abs() < 1e-9);
        assert!((summary.margin_below() - 40.0_f64.ln()).abs() < 1e-12);
    }
    #[test]
    fn the_tail_of_normal_logarithms_is_the_mean_of_their_exponentials() {
        use harmonium_kernels::random::{Site, Stream};
        for sigma in [0.5, 2.0, 4.0] {
            let mut x = vec![0.0; 40_000];
            Stream::new(9).normals_into(Site::new(0, 0, 0), &mut x);
            x.iter_mut().for_each(|x| *x *= sigma);
            // The quantiles of 40,000 have errors of 0.008 sigma: three of those times sigma.
            let error = (tail(&x) - 0.5 * sigma * sigma).abs();
            assert!(error < 0.03 * sigma * (1.0 + sigma), "{sigma}: {error}");
        }
    }
}
