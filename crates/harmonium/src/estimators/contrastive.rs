//! Contrastive divergence (Hinton 2002): the model side from chains that start at the data.

use super::gibbs::sample_posterior;
use super::{Context, Estimator, Side, deferrable, last_free_block, normalise, particles};
use crate::error::Error;
use crate::machine::{State, TileMeans};
use crate::sampling::{
    Clamp, average_block, free_layers, gibbs, open_sweeps, posterior_factorises, sample_with_means,
};

/// Sweeps over the hidden units before the chains are let go, where the posterior does not
/// factorise.
const POSTERIOR_SWEEPS: usize = 10;

/// CD-k: hidden states sampled given the data, then `k` free sweeps.
#[derive(Clone, Debug, Default)]
pub struct Contrastive {
    particles: Option<State>,
    weights: Vec<f64>,
    data_means: TileMeans,
}

impl Estimator for Contrastive {
    fn name(&self) -> &'static str {
        "cd"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { machine, engine, batch, k, stream, .. } = *context;
        let data = Clamp::layers(batch.visible().iter().copied());
        let factorises = posterior_factorises(machine, &data);
        let free = Clamp::none();
        normalise(batch, &mut self.weights);
        let last = last_free_block(engine, &free);
        let defer = deferrable(context, &last);
        let mut data_means = None;
        let mut x = match self.particles.take() {
            // One sweep over hidden units that see only the data forgets where they were.
            Some(mut x) if defer && factorises && x.n_rows() == batch.n_rows() => {
                batch.write_into(&mut x);
                if last.len() == free_layers(machine, &data).len() {
                    sample_with_means(engine, &mut x, &last, stream.fork(1), &mut self.data_means);
                    data_means = Some(&self.data_means);
                } else {
                    gibbs(machine, engine, &data, &mut x, 1, stream.fork(1))?;
                }
                x
            }
            _ => {
                let sweeps = if factorises { 1 } else { POSTERIOR_SWEEPS };
                sample_posterior(context, &data, sweeps)?
            }
        };
        if defer {
            open_sweeps(engine, &mut x, k, stream.fork(2));
            let state = self.particles.insert(x);
            return Ok(Side::Particles {
                state,
                weights: &self.weights,
                pending: last,
                draw: None,
                data_means,
            });
        }
        gibbs(machine, engine, &free, &mut x, k, stream.fork(2))?;
        average_block(engine, &free, &mut x, &last);
        Ok(particles(self.particles.insert(x), &self.weights))
    }
}
