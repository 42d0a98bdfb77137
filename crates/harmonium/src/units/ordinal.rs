//! Units that hold one of several levels in an order: $p(k) \propto e^{\theta k - \epsilon_k}$ for $k = 0 \dots q - 1$.
//!
//! Every level has an energy $\epsilon_k$ of its own, learned, so that the shares of the levels may be any; what the
//! rest of the machine sends moves all of them together along the order, by equal steps between neighbours: the model of
//! adjacent categories. $\epsilon_0 = \epsilon_{q-1} = 0$, because the bias and the sum say those two already.
//!
//! Agresti, *Analysis of Ordinal Categorical Data* (2010), section 4.1; Goodman (1979) for equal steps.

use super::levels;
use super::{LearningScale, OwnParameter, OwnParameters, Units};
use std::sync::LazyLock;

/// The most levels: more are counts or numbers.
pub const MOST: usize = 64;

/// Strength of the curvature with which levels start.
const CURVATURE: (f64, f64) = (-2.0, 20.0);

/// $\epsilon_1 \dots \epsilon_{q-2}$, each with the statistic "the value is this level".
pub(super) fn own(levels: usize) -> &'static [OwnParameter] {
    static OWN: LazyLock<Vec<OwnParameter>> = LazyLock::new(|| {
        let level = |k: usize| OwnParameter {
            name: Box::leak(format!("level{k}").into_boxed_str()),
            start: 0.0,
            bounds: -50.0..=50.0,
            scale: LearningScale::Linear,
        };
        (1..MOST - 1).map(level).collect()
    });
    &OWN[..levels.clamp(2, MOST) - 2]
}

/// Whether the value is the level that parameter `j` is about.
pub(super) fn statistic(j: usize, k: usize) -> f64 {
    f64::from(u8::from(k == j + 1))
}

/// $\epsilon_k$ of one entry.
pub(super) fn energy(levels: usize, own: OwnParameters<'_>, k: usize) -> f64 {
    if k == 0 || k + 1 >= levels { 0.0 } else { own.row(k - 1)[0] }
}

/// Energies $-\tfrac12 c\,k(q - 1 - k)$ at which uncoupled units have these means and variances: a Gaussian on the levels.
pub(super) fn set_own(levels: usize, own: &mut [f64], mean: &[f64], variance: &[f64]) {
    let n = mean.len();
    let arch = |k: usize| -0.5 * (k * (levels - 1 - k)) as f64;
    for (i, (m, v)) in mean.iter().zip(variance).enumerate() {
        let set = |c: f64, own: &mut [f64]| {
            own.iter_mut().enumerate().for_each(|(j, e)| *e = c * arch(j + 1));
        };
        let c = levels::coefficient(Units::Ordinal { levels }, (*m, *v), CURVATURE, set);
        own.iter_mut().skip(i).step_by(n).enumerate().for_each(|(j, e)| *e = c * arch(j + 1));
    }
}
