//! Both sides by exact sums: what the others approximate.

use super::deferred::deferrable;
use super::{Context, Deferred, Deferring, Estimator, Side, normalise};
use crate::error::Error;
use crate::exact;
use crate::machine::State;
use crate::sampling::{Clamp, free_layers, posterior_factorises};

/// The exact posterior of the hidden units: in closed form where it factorises (every RBM), by
/// enumeration otherwise.
#[derive(Clone, Debug, Default)]
pub struct ExactPosterior {
    particles: Option<State>,
    weights: Vec<f64>,
}

impl Estimator for ExactPosterior {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { sampler, batch, .. } = *context;
        let clamp = context.batch.clamp();
        normalise(batch, &mut self.weights);
        let mut x = batch.to_state(sampler.graph())?;
        if !posterior_factorises(sampler.graph(), clamp) {
            let machine = sampler.machine();
            return Ok(Side::Moments(exact::moments(machine, clamp, &x, &self.weights)?));
        }
        sampler.average_block(clamp, &mut x, &free_layers(sampler.graph(), clamp));
        Ok(Side::Particles { state: self.particles.insert(x), weights: &self.weights })
    }
}

impl Deferring for ExactPosterior {
    fn estimate_deferred(&mut self, context: &Context<'_>) -> Result<Option<Deferred<'_>>, Error> {
        let (graph, batch, clamp) = (context.sampler.graph(), context.batch, context.batch.clamp());
        let free = free_layers(graph, clamp);
        if !deferrable(context, &free) || !posterior_factorises(graph, clamp) {
            return Ok(self.estimate(context)?.into_deferred());
        }
        normalise(batch, &mut self.weights);
        let state = match self.particles.take() {
            Some(state) if state.n_rows() == batch.n_rows() => state,
            _ => State::zeros(graph, batch.n_rows())?,
        };
        let state = self.particles.insert(state);
        batch.write_into(state);
        let weights = &self.weights;
        Ok(Some(Deferred { state, weights, pending: free, draw: None, data_means: None }))
    }
}

/// The model's own distribution by enumeration.
#[derive(Clone, Debug, Default)]
pub struct ExactModel;

impl Deferring for ExactModel {}

impl Estimator for ExactModel {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let machine = context.sampler.machine();
        let x = State::zeros(machine, 1)?;
        Ok(Side::Moments(exact::moments(machine, &Clamp::none(), &x, &[1.0])?))
    }
}
