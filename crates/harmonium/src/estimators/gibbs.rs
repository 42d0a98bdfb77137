//! The data side by Gibbs sampling with the data clamped.

use super::deferred::deferrable;
use super::{Context, Deferred, Deferring, Estimator, Side, last_free_block, normalise};
use crate::error::Error;
use crate::machine::{Base, State};
use crate::sampling::{Clamp, independent};

/// Samples of the posterior of each data point, from chains started anew for each batch.
#[derive(Clone, Debug)]
pub struct ClampedGibbs {
    sweeps: usize,
    particles: Option<State>,
    weights: Vec<f64>,
}

impl ClampedGibbs {
    /// Runs `sweeps` sweeps over the hidden units.
    pub fn new(sweeps: usize) -> Self {
        Self { sweeps, particles: None, weights: Vec::new() }
    }
}

/// The batch with the free layers sampled from their posterior by `sweeps` sweeps.
pub(super) fn sample_posterior(
    context: &Context<'_>,
    clamp: &Clamp,
    sweeps: usize,
) -> Result<State, Error> {
    let Context { sampler, batch, stream, .. } = *context;
    let base = Base::uniform(sampler.graph());
    let mut x = independent(sampler.graph(), &base, batch.n_rows(), stream.fork(0))?;
    batch.write_into(&mut x);
    sampler.gibbs(clamp, &mut x, sweeps, stream.fork(1))?;
    Ok(x)
}

impl Estimator for ClampedGibbs {
    fn name(&self) -> &'static str {
        "gibbs"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { sampler, batch, .. } = *context;
        let clamp = context.batch.clamp();
        let mut x = sample_posterior(context, clamp, self.sweeps)?;
        normalise(batch, &mut self.weights);
        sampler.average_block(clamp, &mut x, &last_free_block(sampler, clamp));
        Ok(Side::Particles { state: self.particles.insert(x), weights: &self.weights })
    }
}

impl Deferring for ClampedGibbs {
    fn estimate_deferred(&mut self, context: &Context<'_>) -> Result<Option<Deferred<'_>>, Error> {
        let clamp = context.batch.clamp();
        let last = last_free_block(context.sampler, clamp);
        if !deferrable(context, &last) {
            return Ok(self.estimate(context)?.into_deferred());
        }
        let x = sample_posterior(context, clamp, self.sweeps)?;
        normalise(context.batch, &mut self.weights);
        let (state, weights) = (self.particles.insert(x), &self.weights[..]);
        Ok(Some(Deferred { state, weights, pending: last, draw: None, data_means: None }))
    }
}
