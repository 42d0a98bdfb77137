//! What an estimator leaves to a caller that forms the means together with the gradient.
//!
//! Where the engine learns, a panel of weights stays in the cache while natural parameters, means,
//! samples and gradient are computed. Estimators then leave the last layers of the schedule
//! *pending*: their means given the rest are taken by the caller.

use super::{Context, Estimator, Side};
use crate::engine::TileMeans;
use crate::error::Error;
use crate::machine::{LayerId, State};
use crate::units::Storage;
use harmonium_kernels::random::Stream;

/// States with weights that sum to 1, some layers of which are still to be replaced by their means.
pub(crate) struct Deferred<'a> {
    /// One row per particle.
    pub(crate) state: &'a mut State,
    /// The weight of each.
    pub(crate) weights: &'a [f64],
    /// Layers that the caller replaces by their means given the rest.
    pub(crate) pending: Vec<LayerId>,
    /// The variates and the sweep with which it samples them in `state` as well.
    pub(crate) draw: Option<(Stream, usize)>,
    /// Means of hidden layers given the batch, which a model side that starts from the data came
    /// across.
    pub(crate) data_means: Option<&'a TileMeans>,
}

/// An estimator that can leave its last layers to the caller.
pub(crate) trait Deferring: Estimator {
    /// As [`Estimator::estimate`], with the last layers pending where that can be; nothing where the
    /// estimate has no particles.
    fn estimate_deferred(&mut self, context: &Context<'_>) -> Result<Option<Deferred<'_>>, Error> {
        Ok(self.estimate(context)?.into_deferred())
    }
}

impl<'a> Side<'a> {
    /// The particles, with nothing pending.
    pub(super) fn into_deferred(self) -> Option<Deferred<'a>> {
        let Self::Particles { state, weights } = self else { return None };
        Some(Deferred { state, weights, pending: Vec::new(), draw: None, data_means: None })
    }
}

/// Whether the caller can take the means of these layers together with the moments: all of them
/// are bits, come last in the schedule, and do not see each other.
pub(super) fn deferrable(context: &Context<'_>, layers: &[LayerId]) -> bool {
    let graph = context.sampler.graph();
    let bits =
        |l: LayerId| graph.layer(l).units.storage() == Storage::Bits && !graph.has_lateral(l);
    let last = context.sampler.engine().schedule().last();
    last.is_some_and(|last| layers.iter().all(|&l| last.contains(&l) && bits(l)))
}
