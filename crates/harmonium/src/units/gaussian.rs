//! Real units with own energy $\tfrac12\gamma x^2 - bx$: $x \sim N(\theta/\gamma, 1/\gamma)$.
//!
//! The precision $\gamma$ is learned and kept inside [`PRECISION`]: an unbounded one shrinks the
//! noise onto single samples, or drifts through zero where the density no longer normalises.

use super::Draw;
use std::ops::RangeInclusive;

/// Where learned precisions are kept: standard deviations from 0.01 to 10.
pub const PRECISION: RangeInclusive<f64> = 1e-2..=1e4;

pub(super) fn mean_in_place(theta: &mut [f64], precision: &[f64]) {
    theta.iter_mut().zip(precision).for_each(|(t, g)| *t /= g);
}

pub(super) fn sample_in_place(theta: &mut [f64], precision: &[f64], draw: Draw) {
    for (i, (t, g)) in theta.iter_mut().zip(precision).enumerate() {
        *t = *t / g + draw.stream.normal(draw.site, draw.start + i) / g.sqrt();
    }
}

pub(super) fn log_partition(theta: &[f64], precision: &[f64]) -> f64 {
    let unit = |(t, g): (&f64, &f64)| 0.5 * (t * t / g + (std::f64::consts::TAU / g).ln());
    theta.iter().zip(precision).map(unit).sum()
}

/// $\tfrac12\ln(2\pi e/\gamma)$ for each unit: the entropy of $N(\cdot, 1/\gamma)$.
pub(super) fn entropy(precision: &[f64]) -> f64 {
    precision.iter().map(|g| 0.5 * (1.0 + (std::f64::consts::TAU / g).ln())).sum()
}
