//! The two sides of the gradient.
//!
//! The gradient of every log-likelihood here is $\langle s\rangle_\text{data} - \langle
//! s\rangle_\text{model}$. A learning rule is a pair of estimators, one for each side:
//!
//! | rule | data side | model side |
//! |---|---|---|
//! | maximum likelihood | [`ExactPosterior`] | [`ExactModel`] |
//! | CD-k | [`ExactPosterior`] (closed form for an RBM) | [`Contrastive`] |
//! | PCD | [`ExactPosterior`] | [`Persistent`] |
//! | tempered PCD | [`ExactPosterior`] | [`Tempered`] |
//! | trajectory tempering | [`ExactPosterior`] | [`TrajectoryTempered`] |
//! | DBM | [`MeanFieldPosterior`] | [`Persistent`], [`Tempered`] or [`TrajectoryTempered`] |
//! | general BM | [`ClampedGibbs`] | [`Persistent`], [`Tempered`] or [`TrajectoryTempered`] |
//! | discriminative: $\ln p(y \mid v)$ | that of $v$ and $y$ | [`Conditional`]: the same given $v$ alone |
//! | hybrid | that of $v$ and $y$ | [`Blend`] of [`Conditional`] and the rule's model side |
//! | pseudo-likelihood, fully visible | [`ExactPosterior`] (the data itself) | [`PseudoLikelihood`] |
//!
//! Where values are missing, the units without them are free on the data side, as the hidden ones are: what is
//! climbed is the likelihood of what is there. No posterior factorises then, so the data side is [`ClampedGibbs`] unless a
//! plan asks for another.
//!
//! An estimator yields weighted particles, from which one function forms the moments of both
//! sides. Only exact sums yield moments directly: their particles would be all states.

mod conditional;
mod contrastive;
mod deferred;
mod exact;
mod gibbs;
mod mean_field;
mod persistent;
mod pseudo;
mod snapshot;
mod tempered;
mod trajectory;

pub use conditional::{Blend, Conditional};
pub use contrastive::Contrastive;
pub use exact::{ExactModel, ExactPosterior};
pub use gibbs::ClampedGibbs;
pub use mean_field::MeanFieldPosterior;
pub use persistent::Persistent;
pub use pseudo::PseudoLikelihood;
pub use snapshot::Snapshot;
pub use tempered::Tempered;
pub use trajectory::{TrajectorySettings, TrajectoryTempered};

pub(crate) use deferred::{Deferred, Deferring};

use crate::error::Error;
use crate::machine::{Batch, LayerId, Machine, State};
use crate::moments::Moments;
use crate::sampling::{Clamp, Convergence, Sampler, TrackedLogPartition};
use harmonium_kernels::random::Stream;

/// What an estimator sees of one step.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The machine and its layout for sampling.
    pub sampler: &'a Sampler,
    /// The samples of this step.
    pub batch: &'a Batch,
    /// Sweeps of the model side in this step.
    pub k: usize,
    /// Variates of this side in this step.
    pub stream: Stream,
}

/// What an estimator found.
#[derive(Debug)]
pub enum Side<'a> {
    /// States with weights that sum to 1.
    Particles {
        /// One row per particle.
        state: &'a mut State,
        /// The weight of each.
        weights: &'a [f64],
    },
    /// The expectation itself.
    Moments(Moments),
}

impl Side<'_> {
    /// Adds `sign` times the moments of this side.
    pub fn add_to(&self, machine: &Machine, sign: f64, out: &mut Moments) {
        match self {
            Self::Particles { state, weights } => {
                let signed: Vec<f64> = weights.iter().map(|w| sign * w).collect();
                out.add(machine, state, &signed);
            }
            Self::Moments(moments) => out.add_scaled(sign, moments),
        }
    }
}

/// Where training should go back to, and why.
#[derive(Clone, Copy, Debug)]
pub struct Retreat<'a> {
    /// The last machine that the estimator can vouch for.
    pub machine: &'a Machine,
    /// The share of exchanges with it that the machine of this step accepted.
    pub acceptance: f64,
}

/// One side of the gradient.
pub trait Estimator: Send {
    /// Its name, as in configuration files.
    fn name(&self) -> &'static str;

    /// Estimates the distribution of all units.
    ///
    /// # Errors
    ///
    /// If the machine is too large for an exact sum, or memory ends.
    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error>;

    /// How its last fixed-point iteration went, if it runs one.
    fn convergence(&self) -> Option<Convergence> {
        None
    }

    /// Samples of the model it keeps, if it keeps any.
    fn chains(&self) -> Option<&State> {
        None
    }

    /// Where training should go back to after this step, if the machine has left what the estimator
    /// can follow: its last estimate is then not one to learn from.
    fn retreat(&self) -> Option<Retreat<'_>> {
        None
    }

    /// What the learning rate is multiplied with: below 1 once training had to go back.
    fn caution(&self) -> f64 {
        1.0
    }

    /// $\ln Z$ of the machine of `sampler`, which the last estimate was of, if the estimator knows
    /// it on the way.
    ///
    /// # Errors
    ///
    /// If memory ends.
    fn log_partition(&self, _sampler: &Sampler) -> Result<Option<TrackedLogPartition>, Error> {
        Ok(None)
    }

    /// Everything the next estimate depends on besides the machine and the batch: nothing, unless
    /// it keeps chains.
    fn export(&self, _machine: &Machine) -> Snapshot {
        Snapshot::default()
    }

    /// Takes up what [`Estimator::export`] gave.
    ///
    /// # Errors
    ///
    /// If the snapshot belongs to another machine or configuration.
    fn import(&mut self, _machine: &Machine, _snapshot: &Snapshot) -> Result<(), Error> {
        Ok(())
    }
}

/// The batch's weights, summing to 1: a short last batch counts by what it holds.
fn normalise(batch: &Batch, out: &mut Vec<f64>) {
    let total: f64 = batch.weights().iter().sum();
    // Should every sample of a batch have weight zero, it says nothing, but not NaN.
    let scale = |w: &f64| if total > 0.0 { w / total } else { 0.0 };
    out.clear();
    out.extend(batch.weights().iter().map(scale));
}

/// The last block of the schedule that has something free in it: the one whose conditional means
/// replace samples in the statistics.
fn last_free_block(sampler: &Sampler, clamp: &Clamp) -> Vec<LayerId> {
    let free = |l: &LayerId| clamp.frees_layer(*l);
    let last = sampler.engine().schedule().iter().rev().find(|block| block.iter().any(free));
    last.map(|block| block.iter().copied().filter(free).collect()).unwrap_or_default()
}
