//! Visiting the layers: Gibbs sampling, mean field, annealing and tempering.
//!
//! All of them are one walk over the schedule of the graph. A layer is replaced by its response
//! to $\theta$: a `sample` for Gibbs sampling, the `mean` for mean field, the `mode` at zero
//! temperature. What is held during the walk is a [`Clamp`], an argument and not a state of the
//! machine: nothing clamped is the negative phase, the data the positive phase, part of a picture
//! is inpainting.

mod ancestral;
mod annealing;
mod bennett;
mod bridge;
mod chains;
mod clusters;
mod collapsed;
mod fast_mean_field;
mod gibbs;
mod inference;
mod joint;
mod labelled;
mod lateral_bits;
mod marginal;
mod mean_field;
mod packed;
mod sampler;
mod tempering;
mod trajectory;
mod walk;

pub use crate::machine::Clamp;
pub use ancestral::{DbnSampler, DbnState, Pass};
pub use chains::{Chains, independent};
pub use clusters::Clusters;
pub use inference::{Inference, posterior_factorises};
pub use labelled::{ClassSums, Label};
pub(crate) use mean_field::bounds;
pub use mean_field::{Convergence, MeanField};
pub use sampler::Sampler;
pub use tempering::{SwapRate, Tempering};
pub use trajectory::TrackedLogPartition;

pub(crate) use ancestral::Way;
pub(crate) use bennett::{bennett, solve_bennett};
pub(crate) use collapsed::{Collapsed, Variates, kept_layers};
pub(crate) use inference::free_layers;
pub(crate) use labelled::normalise;
pub(crate) use trajectory::{Extent, Frozen, Known, Trajectory, Unsettled};
