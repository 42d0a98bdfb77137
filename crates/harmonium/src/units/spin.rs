//! Units that are −1 or +1: $\langle x\rangle = \tanh\theta$.
//!
//! A spin is a binary unit in other coordinates, $s = 2x - 1$ with $\theta_x = 2\theta_s$.

use super::binary::{self, each_uniform, log_partition as softplus, logistic};
use super::{BitCoordinates, Draw};

/// $s = 2x - 1$.
pub(super) const COORDINATES: BitCoordinates = BitCoordinates { scale: 2.0, shift: -1.0 };

pub(super) fn mean_in_place(theta: &mut [f64]) {
    theta.iter_mut().for_each(|t| *t = t.tanh());
}

pub(super) fn sample_in_place(theta: &mut [f64], draw: Draw) {
    each_uniform(theta, draw, |t, u| if u < logistic(2.0 * t) { 1.0 } else { -1.0 });
}

/// $\ln 2\cosh t$.
pub fn log_partition(t: f64) -> f64 {
    softplus(2.0 * t) - t
}

/// The bias with which an uncoupled unit has this mean.
pub(super) fn bias_of_mean(mean: f64) -> f64 {
    0.5 * binary::bias_of_mean(0.5 * (1.0 + mean))
}

/// The first entry that is neither -1 nor +1.
pub(super) fn impossible(unit: &[f64]) -> Option<usize> {
    unit.iter().position(|x| x.abs() != 1.0)
}
