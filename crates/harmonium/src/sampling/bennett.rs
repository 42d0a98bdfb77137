//! Bennett's acceptance ratio (Bennett 1976): the ratio of two partition functions from samples
//! of both distributions.
//!
//! With $u = \ln p^*_1 - \ln p^*_0$ the estimate of $C = \ln Z_1/Z_0$ solves
//!
//! $$\sum_{x \sim p_0} \sigma(u - C - M) = \sum_{x \sim p_1} \sigma(C - u + M),
//!   \qquad M = \ln n_0/n_1,$$
//!
//! which has the least variance of all estimates from these samples (Shirts et al. 2003: it is the
//! maximum of a likelihood). The same equation holds for the weights of forward and backward
//! annealing, if every step can be taken back (Crooks 1999).

use crate::units::binary::logistic;

/// $\ln Z_1/Z_0$ and what it takes to know its error.
pub(crate) struct Ratio {
    pub(crate) log: f64,
    /// Standard error if all samples are independent.
    pub(crate) std_error: f64,
    /// Minus the slope of the equation at its solution.
    pub(crate) slope: f64,
}

/// Solves Bennett's equation for $u$ at samples of $p_0$ (`forward`) and of $p_1$ (`backward`).
pub(crate) fn bennett(forward: &[f64], backward: &[f64]) -> Ratio {
    let shift = (forward.len() as f64 / backward.len() as f64).ln();
    let c = solve_bennett(forward, backward, shift);
    let up: Vec<f64> = forward.iter().map(|u| logistic(u - c - shift)).collect();
    let down: Vec<f64> = backward.iter().map(|u| logistic(c - u + shift)).collect();
    let spread = |f: &[f64]| {
        let (n, sum) = (f.len() as f64, f.iter().sum::<f64>());
        let squares: f64 = f.iter().map(|x| x * x).sum();
        if sum > 0.0 { (squares / (sum * sum) - 1.0 / n).max(0.0) } else { f64::INFINITY }
    };
    let slope = up.iter().chain(&down).map(|f| f * (1.0 - f)).sum();
    Ratio { log: c, std_error: (spread(&up) + spread(&down)).sqrt(), slope }
}

/// The root of the equation, whose balance falls with $c$, for $M$ = `shift`: Newton's steps, and halves
/// of what is left where a step would leave it.
pub(crate) fn solve_bennett(forward: &[f64], backward: &[f64], shift: f64) -> f64 {
    let both = || forward.iter().chain(backward);
    let mut low = both().copied().fold(f64::INFINITY, f64::min) - shift.abs() - 1.0;
    let mut high = both().copied().fold(f64::NEG_INFINITY, f64::max) + shift.abs() + 1.0;
    let mut c = 0.5 * (low + high);
    while high - low > 1e-12 * (1.0 + high.abs().max(low.abs())) {
        let (mut balance, mut slope) = (0.0, 0.0);
        let mut add = |f: f64, sign: f64| {
            balance += sign * f;
            slope += f * (1.0 - f);
        };
        forward.iter().for_each(|u| add(logistic(u - c - shift), 1.0));
        backward.iter().for_each(|u| add(logistic(c - u + shift), -1.0));
        if balance > 0.0 {
            low = c;
        } else {
            high = c;
        }
        let step = balance / slope;
        if step.abs() <= 1e-13 * (1.0 + c.abs()) {
            return c;
        }
        let next = c + step;
        c = if next > low && next < high { next } else { 0.5 * (low + high) };
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;
    use harmonium_kernels::random::{Site, Stream};

    /// $p_0 = N(0, 1)$ and $p^*_1 = e^{C} N(d, 1)$: $u = C + dx - d^2/2$.
    #[test]
    fn it_finds_the_ratio_of_two_gaussians() {
        let (c, d) = (3.7, 1.3);
        for (n, m) in [(4000, 4000), (8000, 1000), (500, 6000)] {
            let (mut zero, mut one) = (vec![0.0; n], vec![0.0; m]);
            Stream::new(5).normals_into(Site::new(0, 0, 0), &mut zero);
            Stream::new(5).normals_into(Site::new(1, 0, 0), &mut one);
            let u = |x: f64| c + d * x - 0.5 * d * d;
            let forward: Vec<f64> = zero.iter().map(|x| u(*x)).collect();
            let backward: Vec<f64> = one.iter().map(|x| u(x + d)).collect();
            let found = bennett(&forward, &backward);
            assert!(found.std_error < 0.1 && found.std_error > 0.001);
            let error = (found.log - c).abs();
            assert!(error < 4.0 * found.std_error, "{error} against {}", found.std_error);
        }
    }

    #[test]
    fn equal_ratios_are_found_to_the_last_digit() {
        let found = bennett(&[2.5; 7], &[2.5; 7]);
        assert!((found.log - 2.5).abs() < 1e-11);
        assert!(found.std_error < 1e-7);
    }
}
