//! Feed-forward nets that learn: from a machine, or from random weights, to classes, tags, values or the
//! input itself.
//!
//! $$x_l = m_l \odot f_l(b_l + x_{l-1} W_l), \qquad
//!   \min_{b, W}\; \Bigl\langle \ell(x_L, t) \Bigr\rangle_\text{data} + \tfrac\lambda2\sum_l \|W_l\|^2
//!   \quad\text{with}\quad \|W_{l,\cdot j}\| \le c$$
//!
//! The masks $m_l$ are those of dropout (Srivastava et al. 2014): in training a unit is kept with
//! probability $p_l$. The model that comes out has weights $p_{l-1} W_l$, so that it is used without masks, and the
//! one that goes in is learned from $W_l / p_{l-1}$. The norm of the weights into a unit stays below $c$ after each step.
//!
//! | file | holds |
//! |---|---|
//! | [`NetworkPlan`] | every setting |
//! | [`NetworkLearner`] | makes steps; `drive` runs it as it runs every learner |
//! | [`NetworkRows`] | rows of data as a net sees them, with their targets |
//! | [`NetworkMonitor`] | loss and errors while it learns |
//! | [`classifier`], [`random`] | the net of a machine, or of nothing |
//! | [`Answers`] | what a net says of rows |
//!
//! All products are single precision, by `gemm`, each on one thread. Layers are cut into tiles of units
//! whatever the number of threads is, so that the result does not depend on it.

mod answers;
mod learner;
mod memory;
mod monitor;
mod parameters;
mod passes;
mod plan;
mod rows;
mod start;

pub use answers::Answers;
pub(crate) use answers::hidden_values;
pub use learner::NetworkLearner;
pub use monitor::NetworkMonitor;
pub use plan::{ClassWeights, LOGISTIC_RATE, NetworkPlan};
pub use rows::NetworkRows;
pub use start::{Shape, classifier, random};
