//! Units that are −1 or +1: $\langle x\rangle = \tanh\theta$.
//!
//! A spin is a binary unit in other coordinates, $s = 2x - 1$ with $\theta_x = 2\theta_s$.

use super::Draw;
use super::binary::{each_uniform, log_partition as softplus, logistic};

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
