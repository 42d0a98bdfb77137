//! Units that are 0 or 1: $p(x = 1) = \sigma(\theta)$.

use super::{Draw, x_log_x};
use harmonium_kernels::random::to_uniform;

/// $\sigma(t) = 1/(1 + e^{-t})$, without overflow on either side.
pub fn logistic(t: f64) -> f64 {
    // e^-t may be infinite, and 1/inf is the 0 that is wanted.
    1.0 / (1.0 + (-t).exp())
}

pub(super) fn mean_in_place(theta: &mut [f64]) {
    theta.iter_mut().for_each(|t| *t = logistic(*t));
}

pub(super) fn sample_in_place(theta: &mut [f64], draw: Draw) {
    each_uniform(theta, draw, |t, u| f64::from(u < logistic(t)));
}

/// $\ln(1 + e^t)$ (softplus), exact on both tails.
pub fn log_partition(t: f64) -> f64 {
    t.max(0.0) + (-t.abs()).exp().ln_1p()
}

pub(super) fn entropy(p: f64) -> f64 {
    -x_log_x(p) - x_log_x(1.0 - p)
}

/// Maps each entry together with the uniform variate of its place; four units share a block.
pub(super) fn each_uniform(theta: &mut [f64], draw: Draw, f: impl Fn(f64, f64) -> f64) {
    let Draw { stream, site, start } = draw;
    let mut words = [0; 4];
    for (i, t) in (start..).zip(theta) {
        if i == start || i.is_multiple_of(4) {
            words = stream.words(site, u32::try_from(i / 4).unwrap_or(u32::MAX));
        }
        *t = f(*t, to_uniform(words[i % 4]));
    }
}
