//! What one unit can be, and everything a unit does with the input it receives.
//!
//! Given the rest of the machine the units of a layer are independent, and
//! $p(x_i \mid \text{rest}) \propto e^{\theta_i x_i - E_i(x_i)}$ with the natural parameter
//! $\theta = b + I$. A kind of unit is therefore described by its domain and its own energy:
//! samplers, estimators and evaluators never look at the kind. They call four verbs, and ask how
//! values are stored ([`Units::storage`]), whether they can be enumerated ([`Units::is_finite`]) and
//! which parameters a unit owns ([`Units::own_parameters`]).
//!
//! | kind | values | own energy | `mean` | `log_partition` |
//! |---|---|---|---|---|
//! | [`binary`] | 0, 1 | – | $\sigma(\theta)$ | $\ln(1 + e^\theta)$ |
//! | [`spin`] | −1, +1 | – | $\tanh\theta$ | $\ln 2\cosh\theta$ |
//! | [`categorical`] | one-hot of q | – | softmax | $\ln\sum_k e^{\theta_k}$ |
//! | [`gaussian`] | real | $\tfrac12\gamma x^2$ | $\theta/\gamma$ | $\theta^2/2\gamma + \tfrac12\ln(2\pi/\gamma)$ |
//! | [`binomial`] | 0 … n | $-\ln\binom nx$ | $n\sigma(\theta)$ | $n\ln(1 + e^\theta)$ |
//! | [`counts`] | 0 … n | $\nu\ln x!$ | by sums | $\ln\sum_k e^{\theta k}/(k!)^\nu$ |
//! | [`ordinal`] | 0 … q − 1 | $\epsilon_x$ | by sums | $\ln\sum_k e^{\theta k - \epsilon_k}$ |
//!
//! The last three share the sums over their values ([`levels`]).

pub mod binary;
pub mod binomial;
pub mod categorical;
pub mod counts;
pub mod gaussian;
pub mod levels;
pub mod ordinal;
mod own;
pub mod spin;

pub use own::{LearningScale, OwnParameter, OwnParameters};

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
    /// Successes out of `n`.
    Binomial {
        /// The largest value.
        n: usize,
    },
    /// Whole numbers from 0 on, with a dispersion of their own.
    Counts {
        /// The largest value.
        max: usize,
    },
    /// One of several levels in an order, each with an energy of its own.
    Ordinal {
        /// Number of levels: values are 0 to one less.
        levels: usize,
    },
}

/// How the values of a layer are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storage {
    /// Each entry is a bit, independent of the others of its layer given the rest.
    Bits,
    /// Each entry is a bit; one of each group is set.
    OneHot,
    /// Real numbers.
    Reals,
    /// Whole numbers from 0 to a largest one.
    Levels,
}

/// Values as bits $u$ in other coordinates, $x = s u + t$.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitCoordinates {
    /// $s$: how far the two values are apart.
    pub scale: f64,
    /// $t$: the value of a bit that is off.
    pub shift: f64,
}

impl BitCoordinates {
    /// Values that are 0 and 1 themselves.
    pub const PLAIN: Self = Self { scale: 1.0, shift: 0.0 };
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
            Self::Binomial { .. } => "binomial",
            Self::Counts { .. } => "counts",
            Self::Ordinal { .. } => "ordinal",
        }
    }

    /// The largest value of a unit that holds a whole number; 0 for the other kinds.
    pub(crate) fn largest(self) -> usize {
        match self {
            Self::Binary | Self::Spin | Self::Categorical { .. } | Self::Gaussian => 0,
            Self::Binomial { n } => n,
            Self::Counts { max } => max,
            Self::Ordinal { levels } => levels.saturating_sub(1),
        }
    }

    /// How many values a unit may have at most where sums over them are taken: nothing where it has too few
    /// or too many.
    pub(crate) fn allows_size(self) -> bool {
        match self {
            Self::Binary | Self::Spin | Self::Gaussian => true,
            Self::Categorical { q } => q >= 2,
            Self::Binomial { .. } | Self::Counts { .. } => {
                (1..levels::MOST_LEVELS).contains(&self.largest())
            }
            Self::Ordinal { levels } => (2..=ordinal::MOST).contains(&levels),
        }
    }

    /// How many consecutive entries of the state form one unit.
    pub fn group(self) -> usize {
        match self {
            Self::Categorical { q } => q,
            _ => 1,
        }
    }

    /// How the values are kept.
    pub fn storage(self) -> Storage {
        match self {
            Self::Binary | Self::Spin => Storage::Bits,
            Self::Categorical { .. } => Storage::OneHot,
            Self::Gaussian => Storage::Reals,
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => Storage::Levels,
        }
    }

    /// Whether a unit takes finitely many values, so that [`Units::configurations`] lists them and
    /// sums over it cannot diverge.
    pub fn is_finite(self) -> bool {
        self != Self::Gaussian
    }

    /// The coordinates in which rows of the layer are packed bits; `None` if they cannot be.
    pub fn bit_coordinates(self) -> Option<BitCoordinates> {
        match self {
            Self::Binary | Self::Categorical { .. } => Some(BitCoordinates::PLAIN),
            Self::Spin => Some(spin::COORDINATES),
            _ => None,
        }
    }

    /// Whether each entry is a unit of its own that is 0 or 1.
    pub fn is_zero_or_one(self) -> bool {
        self.storage() == Storage::Bits && self.bit_coordinates() == Some(BitCoordinates::PLAIN)
    }

    /// The parameters that each unit owns besides its bias. The energy is linear in them:
    /// $E_l(x) = \sum_k \text{own}_k s_k(x) - b^\top x$.
    pub fn own_parameters(self) -> &'static [OwnParameter] {
        match self {
            Self::Binary | Self::Spin | Self::Categorical { .. } => &[],
            Self::Gaussian => &gaussian::OWN,
            Self::Binomial { .. } => &binomial::OWN,
            Self::Counts { .. } => &counts::OWN,
            Self::Ordinal { levels } => ordinal::own(levels),
        }
    }

    /// $c\,s_k(x)$: a coefficient times the statistic of the own parameter `k`.
    pub fn own_term(self, k: usize, coefficient: f64, x: f64) -> f64 {
        debug_assert!(k < self.own_parameters().len(), "{self:?} units own no parameter {k}");
        match self {
            Self::Binary | Self::Spin | Self::Categorical { .. } => 0.0,
            Self::Gaussian => gaussian::own_term(coefficient, x),
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => {
                let at = |level: usize| self.statistic(k, level);
                coefficient * levels::between(self.largest(), x, at)
            }
        }
    }

    /// $s_k$ at a level.
    fn statistic(self, k: usize, level: usize) -> f64 {
        match self {
            Self::Binomial { n } => binomial::statistic(n, level),
            Self::Counts { .. } => counts::log_factorial(level),
            Self::Ordinal { .. } => ordinal::statistic(k, level),
            Self::Binary | Self::Spin | Self::Categorical { .. } | Self::Gaussian => 0.0,
        }
    }

    /// The own energy of one entry at a level.
    fn level_energy(self, own: OwnParameters<'_>, level: usize) -> f64 {
        match self {
            Self::Ordinal { levels } => ordinal::energy(levels, own, level),
            _ => own.row(0)[0] * self.statistic(0, level),
        }
    }

    /// Writes $\langle s_k\rangle$ of one unit of a finite kind that receives `theta`; `own` are its parameters.
    pub(crate) fn own_statistics(self, theta: f64, own: OwnParameters<'_>, out: &mut [f64]) {
        levels::statistics(self, theta, own, out);
    }

    /// Writes what the spread of one unit of a finite kind around its mean adds to its statistics:
    /// $\langle s_k\rangle - s_k(\langle x\rangle)$.
    pub(crate) fn own_of_spread(self, mean: f64, own: OwnParameters<'_>, out: &mut [f64]) {
        levels::statistics_of_mean(self, mean, own, out);
        out.iter_mut().enumerate().for_each(|(k, s)| *s -= self.own_term(k, 1.0, mean));
    }

    /// Whether statistics of own parameters are not those of the mean, and have to be summed over values.
    pub(crate) fn sums_own(self) -> bool {
        self.storage() == Storage::Levels
    }

    /// $s_k'$ at a mean: an update of the parameter moves the bias by so much of it, so that the mean stays.
    pub(crate) fn own_slope(self, mean: f64) -> f64 {
        match self {
            Self::Gaussian => mean,
            Self::Counts { .. } => counts::slope(mean),
            _ => 0.0,
        }
    }

    /// $c\langle s_k\rangle$ where $\langle x^2\rangle$ is what is known of a unit.
    pub(crate) fn own_of_square(self, k: usize, coefficient: f64, square: f64) -> f64 {
        debug_assert!(k < self.own_parameters().len(), "{self:?} units own no parameter {k}");
        match self {
            Self::Gaussian => gaussian::own_of_square(coefficient, square),
            _ => 0.0,
        }
    }

    /// $\sum_i \sum_k \text{own}_{ki} s_k(x_i)$: the own energy without the bias.
    pub(crate) fn own_energy(self, own: OwnParameters<'_>, x: &[f64]) -> f64 {
        let row = |k: usize| -> f64 {
            own.row(k).iter().zip(x).map(|(&c, &x)| self.own_term(k, c, x)).sum()
        };
        (0..self.own_parameters().len()).map(row).sum()
    }

    /// The second derivative of the own energy of each entry, where sums over states are Gaussian
    /// integrals; `None` for the other kinds.
    pub(crate) fn curvature(self, own: OwnParameters<'_>) -> Option<&[f64]> {
        match self {
            Self::Gaussian => Some(gaussian::curvature(own)),
            _ => None,
        }
    }

    /// Sets own parameters such that uncoupled units have the means and the variances of the data.
    pub(crate) fn set_own(self, own: &mut [f64], mean: &[f64], variance: &[f64]) {
        match self {
            Self::Binary | Self::Spin | Self::Categorical { .. } | Self::Binomial { .. } => {}
            Self::Gaussian => gaussian::set_own_from_variance(own, variance),
            Self::Counts { max } => counts::set_own(max, own, mean, variance),
            Self::Ordinal { levels } => ordinal::set_own(levels, own, mean, variance),
        }
    }

    /// The biases with which uncoupled units have these means; probabilities are kept off 0 and 1
    /// by `1e-3`.
    pub(crate) fn bias_of_means(self, means: &[f64], own: OwnParameters<'_>) -> Vec<f64> {
        match self {
            Self::Binary => means.iter().map(|&m| binary::bias_of_mean(m)).collect(),
            Self::Spin => means.iter().map(|&m| spin::bias_of_mean(m)).collect(),
            Self::Categorical { .. } => means.iter().map(|&m| inside(m).ln()).collect(),
            Self::Gaussian => gaussian::bias_of_means(means, own),
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => {
                levels::bias_of_means(self, means, own)
            }
        }
    }

    /// The first entry of a unit that it cannot hold. A categorical unit may be given as one whole
    /// number.
    pub(crate) fn impossible(self, unit: &[f64]) -> Option<usize> {
        if let Some(i) = unit.iter().position(|x| !x.is_finite()) {
            return Some(i);
        }
        match self {
            Self::Binary => binary::impossible(unit),
            Self::Spin => spin::impossible(unit),
            Self::Categorical { q } => categorical::impossible(q, unit),
            Self::Gaussian => None,
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => {
                levels::impossible(self.largest(), unit)
            }
        }
    }

    /// Whether entries `i` and `j` of a layer belong to one unit.
    pub fn same_unit(self, i: usize, j: usize) -> bool {
        i / self.group() == j / self.group()
    }

    /// Writes $E[x \mid \theta]$ over `theta`. `own` are the own parameters of the same entries; so
    /// in the other verbs.
    pub fn mean_in_place(self, theta: &mut [f64], own: OwnParameters<'_>) {
        match self {
            Self::Binary => binary::mean_in_place(theta),
            Self::Spin => spin::mean_in_place(theta),
            Self::Categorical { q } => {
                theta.chunks_exact_mut(q).for_each(categorical::mean_in_place);
            }
            Self::Gaussian => gaussian::mean_in_place(theta, own),
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => {
                levels::mean_in_place(self, theta, own);
            }
        }
    }

    /// Replaces `theta` by a sample of $p(x \mid \theta)$.
    ///
    /// A variate belongs to a position, so the result does not depend on the order in which units
    /// are visited.
    pub fn sample_in_place(self, theta: &mut [f64], own: OwnParameters<'_>, draw: Draw) {
        match self {
            Self::Binary => binary::sample_in_place(theta, draw),
            Self::Spin => spin::sample_in_place(theta, draw),
            Self::Categorical { q } => {
                for (g, theta) in theta.chunks_exact_mut(q).enumerate() {
                    let unit = draw.start / q + g;
                    categorical::sample_in_place(theta, draw.stream.uniform(draw.site, unit));
                }
            }
            Self::Gaussian => gaussian::sample_in_place(theta, own, draw),
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => {
                levels::sample_in_place(self, theta, own, draw);
            }
        }
    }

    /// Replaces `theta` by the most probable value; ties go to the lower one.
    pub fn mode_in_place(self, theta: &mut [f64], own: OwnParameters<'_>) {
        match self {
            Self::Binary => theta.iter_mut().for_each(|t| *t = f64::from(*t > 0.0)),
            Self::Spin => theta.iter_mut().for_each(|t| *t = if *t > 0.0 { 1.0 } else { -1.0 }),
            Self::Categorical { q } => {
                theta.chunks_exact_mut(q).for_each(categorical::mode_in_place);
            }
            Self::Gaussian => gaussian::mean_in_place(theta, own),
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => {
                levels::mode_in_place(self, theta, own);
            }
        }
    }

    /// $\ln \sum_x e^{\theta x - E_l(x)}$ over the units of the layer, an integral for real ones.
    pub fn log_partition(self, theta: &[f64], own: OwnParameters<'_>) -> f64 {
        match self {
            Self::Binary => sum_softplus(theta),
            Self::Spin => theta.iter().map(|&t| spin::log_partition(t)).sum(),
            Self::Categorical { q } => theta.chunks_exact(q).map(log_sum_exp).sum(),
            Self::Gaussian => gaussian::log_partition(theta, own),
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => {
                levels::log_partition(self, theta, own)
            }
        }
    }

    /// The entropy of independent units with means `mean`; Gaussian ones have variance $1/\gamma$. Of units that hold a whole
    /// number it is less what their spread adds to the own energy at the mean, $H - \langle E_l\rangle +
    /// E_l(\langle x\rangle)$: what bounds add to the energy at the means.
    pub fn entropy(self, mean: &[f64], own: OwnParameters<'_>) -> f64 {
        match self {
            Self::Binary => mean.iter().map(|&m| binary::entropy(m)).sum(),
            Self::Spin => mean.iter().map(|&m| binary::entropy(0.5 * (1.0 + m))).sum(),
            Self::Categorical { .. } => mean.iter().map(|&m| -x_log_x(m)).sum(),
            Self::Gaussian => gaussian::entropy(own),
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => {
                levels::entropy(self, mean, own)
            }
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
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => {
                Some(Configurations((0..=self.largest()).map(|k| vec![k as f64]).collect()))
            }
        }
    }

    /// The mean of a unit that receives no input and has no bias.
    pub fn neutral_mean(self) -> f64 {
        match self {
            Self::Binary => 0.5,
            Self::Spin | Self::Gaussian => 0.0,
            Self::Categorical { q } => 1.0 / q as f64,
            Self::Binomial { .. } | Self::Counts { .. } | Self::Ordinal { .. } => {
                let own: Vec<f64> = self.own_parameters().iter().map(|p| p.start).collect();
                let mut mean = [0.0];
                levels::mean_in_place(self, &mut mean, OwnParameters::new(&own, 1));
                mean[0]
            }
        }
    }
}

/// A probability, kept off 0 and 1.
fn inside(p: f64) -> f64 {
    p.clamp(1e-3, 1.0 - 1e-3)
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
