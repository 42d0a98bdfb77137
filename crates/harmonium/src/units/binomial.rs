//! Units that count successes: the sum of $n$ binary units that share one $\theta$.
//!
//! $p(k) \propto \binom{n}{k} e^{\theta k}$, so that $\langle x\rangle = n\sigma(\theta)$ and
//! $\ln Z = n\ln(1 + e^\theta)$. The number of ways is an own energy $-\ln\binom nk$ whose factor stays 1; at another
//! temperature it is tempered with the rest of the energy.

use super::counts::log_factorial;
use super::{LearningScale, OwnParameter};

/// The factor of $-\ln\binom nk$, which is not learned.
pub(super) static OWN: [OwnParameter; 1] =
    [OwnParameter { name: "ways", start: 1.0, bounds: 1.0..=1.0, scale: LearningScale::Fixed }];

/// $-\ln\binom nk$.
pub(super) fn statistic(n: usize, k: usize) -> f64 {
    log_factorial(k) + log_factorial(n - k) - log_factorial(n)
}
