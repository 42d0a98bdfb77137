//! Real units with own energy $\tfrac12\gamma x^2 - bx$: $x \sim N(\theta/\gamma, 1/\gamma)$.
//!
//! The precision $\gamma$ is learned and kept inside [`PRECISION`] times where the data let it start: an
//! unbounded one shrinks the noise onto single samples, or drifts through zero where the density no longer
//! normalises.

use super::{Draw, LearningScale, OwnParameter, OwnParameters};
use std::ops::RangeInclusive;

/// Where learned precisions are kept, in units of where they start: standard deviations from a hundredth of
/// that of the data to ten times as much.
pub const PRECISION: RangeInclusive<f64> = 1e-2..=1e4;

/// $\gamma$, with the statistic $\tfrac12 x^2$.
pub(super) static OWN: [OwnParameter; 1] =
    [OwnParameter { name: "precision", start: 1.0, bounds: PRECISION, scale: LearningScale::Log }];

fn precision(own: OwnParameters<'_>) -> &[f64] {
    own.row(0)
}

pub(super) fn mean_in_place(theta: &mut [f64], own: OwnParameters<'_>) {
    theta.iter_mut().zip(precision(own)).for_each(|(t, g)| *t /= g);
}

pub(super) fn sample_in_place(theta: &mut [f64], own: OwnParameters<'_>, draw: Draw) {
    for (i, (t, g)) in theta.iter_mut().zip(precision(own)).enumerate() {
        *t = *t / g + draw.stream.normal(draw.site, draw.start + i) / g.sqrt();
    }
}

pub(super) fn log_partition(theta: &[f64], own: OwnParameters<'_>) -> f64 {
    let unit = |(t, g): (&f64, &f64)| 0.5 * (t * t / g + (std::f64::consts::TAU / g).ln());
    theta.iter().zip(precision(own)).map(unit).sum()
}

/// $\tfrac12\ln(2\pi e/\gamma)$ for each unit: the entropy of $N(\cdot, 1/\gamma)$.
pub(super) fn entropy(own: OwnParameters<'_>) -> f64 {
    precision(own).iter().map(|g| 0.5 * (1.0 + (std::f64::consts::TAU / g).ln())).sum()
}

/// $c\cdot\tfrac12 x^2$.
pub(super) fn own_term(coefficient: f64, x: f64) -> f64 {
    0.5 * coefficient * x * x
}

/// $c\cdot\tfrac12\langle x^2\rangle$.
pub(super) fn own_of_square(coefficient: f64, square: f64) -> f64 {
    0.5 * coefficient * square
}

/// $\gamma$: the own energy's second derivative.
pub(super) fn curvature(own: OwnParameters<'_>) -> &[f64] {
    precision(own)
}

/// The precisions at which uncoupled units have these variances.
pub(super) fn set_own_from_variance(own: &mut [f64], variance: &[f64]) {
    for (g, v) in own.iter_mut().zip(variance) {
        *g = v.max(f64::MIN_POSITIVE).recip();
    }
}

pub(super) fn bias_of_means(means: &[f64], own: OwnParameters<'_>) -> Vec<f64> {
    means.iter().zip(precision(own)).map(|(m, g)| m * g).collect()
}
