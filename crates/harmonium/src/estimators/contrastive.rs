//! Contrastive divergence (Hinton 2002): the model side from chains that start at the data.

use super::gibbs::sample_posterior;
use super::{Context, Estimator, Side, last_free_block, normalised};
use crate::error::Error;
use crate::machine::State;
use crate::sampling::{Clamp, average_block, gibbs, posterior_factorises};

/// Sweeps over the hidden units before the chains are let go, where the posterior does not
/// factorise.
const POSTERIOR_SWEEPS: usize = 10;

/// CD-k: hidden states sampled given the data, then `k` free sweeps.
#[derive(Clone, Debug, Default)]
pub struct Contrastive {
    particles: Option<State>,
    weights: Vec<f64>,
}

impl Estimator for Contrastive {
    fn name(&self) -> &'static str {
        "cd"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { machine, engine, batch, k, stream } = *context;
        let data = Clamp::layers(batch.visible().iter().copied());
        let sweeps = if posterior_factorises(machine, &data) { 1 } else { POSTERIOR_SWEEPS };
        let mut x = sample_posterior(context, &data, sweeps)?;
        let free = Clamp::none();
        gibbs(machine, engine, &free, &mut x, k, stream.fork(2))?;
        average_block(engine, &free, &mut x, &last_free_block(machine, &free));
        self.weights = normalised(batch);
        let state = self.particles.insert(x);
        Ok(Side::Particles { state, weights: &self.weights })
    }
}
