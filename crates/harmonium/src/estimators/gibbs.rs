//! The data side by Gibbs sampling with the data clamped.

use super::{Context, Estimator, Side, deferrable, last_free_block, normalise, particles};
use crate::error::Error;
use crate::machine::{Base, State};
use crate::sampling::{Clamp, average_block, gibbs, independent};

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
    let Context { machine, engine, batch, stream, .. } = *context;
    let base = Base::uniform(machine);
    let mut x = independent(machine, &base, batch.n_rows(), stream.fork(0))?;
    batch.write_into(&mut x);
    gibbs(machine, engine, clamp, &mut x, sweeps, stream.fork(1))?;
    Ok(x)
}

impl Estimator for ClampedGibbs {
    fn name(&self) -> &'static str {
        "gibbs"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { engine, batch, .. } = *context;
        let clamp = batch.clamp();
        let mut x = sample_posterior(context, clamp, self.sweeps)?;
        normalise(batch, &mut self.weights);
        let last = last_free_block(engine, clamp);
        if deferrable(context, &last) {
            let state = self.particles.insert(x);
            return Ok(Side::Particles {
                state,
                weights: &self.weights,
                pending: last,
                draw: None,
                data_means: None,
            });
        }
        average_block(engine, clamp, &mut x, &last);
        Ok(particles(self.particles.insert(x), &self.weights))
    }
}
