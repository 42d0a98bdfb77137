//! Units that are 0 or 1: $p(x = 1) = \sigma(\theta)$.

use super::{Draw, inside, x_log_x};

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

/// The bias with which an uncoupled unit has this mean.
pub(super) fn bias_of_mean(mean: f64) -> f64 {
    (inside(mean) / (1.0 - inside(mean))).ln()
}

/// The first entry that is neither 0 nor 1.
pub(super) fn impossible(unit: &[f64]) -> Option<usize> {
    unit.iter().position(|x| *x != 0.0 && *x != 1.0)
}

/// Maps each entry together with the uniform variate of its place.
pub(super) fn each_uniform(theta: &mut [f64], draw: Draw, f: impl Fn(f64, f64) -> f64) {
    let Draw { stream, site, start } = draw;
    let mut uniforms = [0.0; 32];
    let mut at = start;
    // Pieces end where 32 units share their blocks.
    while at < start + theta.len() {
        let end = (at / 32 * 32 + 32).min(start + theta.len());
        let u = &mut uniforms[..end - at];
        stream.uniforms_from(site, at, u);
        for (t, &u) in theta[at - start..end - start].iter_mut().zip(&*u) {
            *t = f(*t, u);
        }
        at = end;
    }
}
