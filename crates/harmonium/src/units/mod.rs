//! What one unit can be, and everything a unit does with the input it receives.
//!
//! Given the rest of the machine the units of a layer are independent, and
//! $p(x_i \mid \text{rest}) \propto e^{\theta_i x_i - E_i(x_i)}$ with the natural parameter
//! $\theta = b + I$. A kind of unit is therefore described by its domain and its own quadratic
//! energy: samplers, estimators and evaluators never look at the kind, they call four verbs.
//!
//! | kind | values | own energy | `mean` | `log_partition` |
//! |---|---|---|---|---|
//! | [`binary`] | 0, 1 | – | $\sigma(\theta)$ | $\ln(1 + e^\theta)$ |
//! | [`spin`] | −1, +1 | – | $\tanh\theta$ | $\ln 2\cosh\theta$ |
//! | [`categorical`] | one-hot of q | – | softmax | $\ln\sum_k e^{\theta_k}$ |
//! | [`gaussian`] | real | $\tfrac12\gamma x^2$ | $\theta/\gamma$ | $\theta^2/2\gamma + \tfrac12\ln(2\pi/\gamma)$ |

pub mod binary;
pub mod categorical;
pub mod gaussian;
pub mod spin;

use harmonium_kernels::random::{Site, Stream};
use harmonium_kernels::softplus::sum_softplus;
use serde::{Deserialize, Serialize};

/// The kind of the units in one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Units {
    /// $x \in \{0, 1\}$.
    Binary,
    /// $x \in \{-1, +1\}$.
    Spin,
    /// One-hot groups of `q` entries: exactly one entry of each group is 1.
    Categorical {
        /// Number of categories of each unit.
        q: usize,
    },
    /// Real values with a precision of their own.
    Gaussian,
}

/// Which variates a piece of a layer uses.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// The family of variates.
    pub stream: Stream,
    /// Row, sweep and layer.
    pub site: Site,
    /// Entry of the layer at which the piece starts.
    pub start: usize,
}

/// Configurations of one unit, for enumeration.
#[derive(Clone, Debug, PartialEq)]
pub struct Configurations(pub Vec<Vec<f64>>);

impl Units {
    /// The kind's name, as it is written in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Spin => "spin",
            Self::Categorical { .. } => "categorical",
            Self::Gaussian => "gaussian",
        }
    }

    /// How many consecutive entries of the state form one unit.
    pub fn group(self) -> usize {
        match self {
            Self::Categorical { q } => q,
            _ => 1,
        }
    }

    /// Whether the units take finitely many values.
    pub fn is_discrete(self) -> bool {
        self != Self::Gaussian
    }

    /// Whether entries `i` and `j` of a layer belong to one unit.
    pub fn same_unit(self, i: usize, j: usize) -> bool {
        i / self.group() == j / self.group()
    }

    /// Writes $E[x \mid \theta]$ over `theta`. `precision` is that of the Gaussian entries, and
    /// empty for the other kinds; so in the other verbs.
    pub fn mean_in_place(self, theta: &mut [f64], precision: &[f64]) {
        match self {
            Self::Binary => binary::mean_in_place(theta),
            Self::Spin => spin::mean_in_place(theta),
            Self::Categorical { q } => {
                theta.chunks_exact_mut(q).for_each(categorical::mean_in_place);
            }
            Self::Gaussian => gaussian::mean_in_place(theta, precision),
        }
    }

    /// Replaces `theta` by a sample of $p(x \mid \theta)$.
    ///
    /// A variate belongs to a position, so the result does not depend on the order in which units
    /// are visited.
    pub fn sample_in_place(self, theta: &mut [f64], precision: &[f64], draw: Draw) {
        match self {
            Self::Binary => binary::sample_in_place(theta, draw),
            Self::Spin => spin::sample_in_place(theta, draw),
            Self::Categorical { q } => {
                for (g, theta) in theta.chunks_exact_mut(q).enumerate() {
                    let unit = draw.start / q + g;
                    categorical::sample_in_place(theta, draw.stream.uniform(draw.site, unit));
                }
            }
            Self::Gaussian => gaussian::sample_in_place(theta, precision, draw),
        }
    }

    /// Replaces `theta` by the most probable value; ties go to the lower one.
    pub fn mode_in_place(self, theta: &mut [f64], precision: &[f64]) {
        match self {
            Self::Binary => theta.iter_mut().for_each(|t| *t = f64::from(*t > 0.0)),
            Self::Spin => theta.iter_mut().for_each(|t| *t = if *t > 0.0 { 1.0 } else { -1.0 }),
            Self::Categorical { q } => {
                theta.chunks_exact_mut(q).for_each(categorical::mode_in_place);
            }
            Self::Gaussian => gaussian::mean_in_place(theta, precision),
        }
    }

    /// $\ln \sum_x e^{\theta x - E_l(x)}$ over the units of the layer, an integral for real ones.
    pub fn log_partition(self, theta: &[f64], precision: &[f64]) -> f64 {
        match self {
            Self::Binary => sum_softplus(theta),
            Self::Spin => theta.iter().map(|&t| spin::log_partition(t)).sum(),
            Self::Categorical { q } => theta.chunks_exact(q).map(log_sum_exp).sum(),
            Self::Gaussian => gaussian::log_partition(theta, precision),
        }
    }

    /// The entropy of independent units with means `mean`; Gaussian ones have variance $1/\gamma$.
    pub fn entropy(self, mean: &[f64], precision: &[f64]) -> f64 {
        match self {
            Self::Binary => mean.iter().map(|&m| binary::entropy(m)).sum(),
            Self::Spin => mean.iter().map(|&m| binary::entropy(0.5 * (1.0 + m))).sum(),
            Self::Categorical { .. } => mean.iter().map(|&m| -x_log_x(m)).sum(),
            Self::Gaussian => gaussian::entropy(precision),
        }
    }

    /// The values one unit can take; `None` for the real line.
    pub fn configurations(self) -> Option<Configurations> {
        match self {
            Self::Binary => Some(Configurations(vec![vec![0.0], vec![1.0]])),
            Self::Spin => Some(Configurations(vec![vec![-1.0], vec![1.0]])),
            Self::Categorical { q } => Some(Configurations(
                (0..q).map(|k| (0..q).map(|i| f64::from(u8::from(i == k))).collect()).collect(),
            )),
            Self::Gaussian => None,
        }
    }

    /// The mean of a unit that receives no input and has no bias.
    pub fn neutral_mean(self) -> f64 {
        match self {
            Self::Binary => 0.5,
            Self::Spin | Self::Gaussian => 0.0,
            Self::Categorical { q } => 1.0 / q as f64,
        }
    }
}

/// $x \ln x$, continued by 0 at 0.
pub(crate) fn x_log_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

/// $\ln \sum_i e^{t_i}$, shifted by the maximum so that it cannot overflow.
pub fn log_sum_exp(ts: &[f64]) -> f64 {
    let max = ts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max.is_infinite() {
        return max;
    }
    max + ts.iter().map(|t| (t - max).exp()).sum::<f64>().ln()
}
