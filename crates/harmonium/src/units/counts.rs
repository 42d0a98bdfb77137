//! Units that count: $p(k) \propto e^{\theta k} / (k!)^\nu$ for $k = 0 \dots n$ (Conway and Maxwell 1962).
//!
//! The dispersion $\nu$ is learned: 1 is the Poisson distribution, 0 the geometric one; real counts, which vary more than
//! Poisson's do, lie between them. A Poisson unit beside finitely many states has a density whatever its parameters are, but
//! its mean $e^\theta$ grows beyond all numbers within a few weights; what bounds it here is the largest value $n$,
//! which every layer has: all sums are finite, and no step of learning can leave them.
//!
//! Shmueli et al., *A useful distribution for fitting discrete data*, J. R. Stat. Soc. C 54 (2005).

use super::levels::{self, MOST_LEVELS};
use super::{LearningScale, OwnParameter, Units};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// Where the dispersion is kept: from nearly geometric to nearly a single value.
const DISPERSION: RangeInclusive<f64> = 1e-3..=50.0;

/// $\nu$, with the statistic $\ln k!$.
pub(super) static OWN: [OwnParameter; 1] = [OwnParameter {
    name: "dispersion",
    start: 1.0,
    bounds: DISPERSION,
    scale: LearningScale::Log,
}];

/// $\ln k!$.
pub(super) fn log_factorial(k: usize) -> f64 {
    static TABLE: LazyLock<Vec<f64>> = LazyLock::new(|| {
        let mut table = vec![0.0; MOST_LEVELS + 1];
        for k in 1..table.len() {
            table[k] = table[k - 1] + (k as f64).ln();
        }
        table
    });
    TABLE[k]
}

/// The slope of $\ln k!$ at a mean: where it is taken does not change what is learned.
pub(super) fn slope(mean: f64) -> f64 {
    (mean.max(0.0) + 0.5).ln()
}

/// The dispersions at which uncoupled units have these means and variances.
pub(super) fn set_own(max: usize, own: &mut [f64], mean: &[f64], variance: &[f64]) {
    let bounds = (*DISPERSION.start(), *DISPERSION.end());
    for ((own, m), v) in own.iter_mut().zip(mean).zip(variance) {
        let found = levels::coefficient(Units::Counts { max }, (*m, *v), bounds, |c, own| {
            own[0] = c;
        });
        *own = found;
    }
}
