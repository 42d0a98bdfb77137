//! Both sides by exact sums: what the others approximate.

use super::{Context, Estimator, Side, deferrable, normalise, particles};
use crate::error::Error;
use crate::exact;
use crate::machine::State;
use crate::sampling::{Clamp, average_block, free_layers, posterior_factorises};

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
        let Context { machine, engine, batch, .. } = *context;
        let clamp = batch.clamp();
        normalise(batch, &mut self.weights);
        let free = free_layers(machine, clamp);
        if deferrable(context, &free) && posterior_factorises(machine, clamp) {
            let state = match self.particles.take() {
                Some(state) if state.n_rows() == batch.n_rows() => state,
                _ => State::zeros(machine, batch.n_rows())?,
            };
            let state = self.particles.insert(state);
            batch.write_into(state);
            return Ok(Side::Particles {
                state,
                weights: &self.weights,
                pending: free,
                draw: None,
                data_means: None,
            });
        }
        let mut x = batch.to_state(machine)?;
        if !posterior_factorises(machine, clamp) {
            return Ok(Side::Moments(exact::moments(machine, clamp, &x, &self.weights)?));
        }
        average_block(engine, clamp, &mut x, &free);
        Ok(particles(self.particles.insert(x), &self.weights))
    }
}

/// The model's own distribution by enumeration.
#[derive(Clone, Debug, Default)]
pub struct ExactModel;

impl Estimator for ExactModel {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let x = State::zeros(context.machine, 1)?;
        Ok(Side::Moments(exact::moments(context.machine, &Clamp::none(), &x, &[1.0])?))
    }
}
