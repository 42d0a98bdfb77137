//! Contrastive divergence (Hinton 2002): the model side from chains that start at the data.

use super::deferred::deferrable;
use super::gibbs::sample_posterior;
use super::{Context, Deferred, Deferring, Estimator, Side, last_free_block, normalise};
use crate::engine::TileMeans;
use crate::error::Error;
use crate::machine::State;
use crate::sampling::{Clamp, posterior_factorises};

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
        let Context { sampler, batch, k, stream, .. } = *context;
        normalise(batch, &mut self.weights);
        let mut x = sample_posterior(context, context.batch.clamp(), sweeps_of_posterior(context))?;
        let free = Clamp::none();
        sampler.gibbs(&free, &mut x, k, stream.fork(2))?;
        sampler.average_block(&free, &mut x, &last_free_block(sampler, &free));
        Ok(Side::Particles { state: self.particles.insert(x), weights: &self.weights })
    }
}

impl Deferring for Contrastive {
    fn estimate_deferred(&mut self, context: &Context<'_>) -> Result<Option<Deferred<'_>>, Error> {
        let Context { sampler, batch, k, stream, .. } = *context;
        let last = last_free_block(sampler, &Clamp::none());
        if !deferrable(context, &last) {
            return Ok(self.estimate(context)?.into_deferred());
        }
        normalise(batch, &mut self.weights);
        let (graph, data) = (sampler.graph(), context.batch.clamp());
        let mut data_means = None;
        let mut x = match self.particles.take() {
            // One sweep over hidden units that see only the data forgets where they were.
            Some(mut x) if posterior_factorises(graph, data) && x.n_rows() == batch.n_rows() => {
                batch.write_into(&mut x);
                // Whether the last block are the hidden units and nothing else.
                if graph.layer_ids().all(|l| last.contains(&l) != data.holds_layer(l)) {
                    let means = &mut self.data_means;
                    sampler.sample_with_means(&mut x, &last, stream.fork(1), means);
                    data_means = Some(&self.data_means);
                } else {
                    sampler.gibbs(data, &mut x, 1, stream.fork(1))?;
                }
                x
            }
            _ => sample_posterior(context, data, sweeps_of_posterior(context))?,
        };
        sampler.open_sweeps(&mut x, k, stream.fork(2));
        let (state, weights) = (self.particles.insert(x), &self.weights[..]);
        Ok(Some(Deferred { state, weights, pending: last, draw: None, data_means }))
    }
}

/// Sweeps over the hidden units given the data: one, where they are independent.
fn sweeps_of_posterior(context: &Context<'_>) -> usize {
    let factorises = posterior_factorises(context.sampler.graph(), context.batch.clamp());
    if factorises { 1 } else { POSTERIOR_SWEEPS }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Arithmetic;
    use crate::models::Rbm;
    use crate::sampling::Sampler;
    use crate::schema::Feed;
    use harmonium_data::{Binarize, Dataset, Table};
    use harmonium_kernels::line::TILE;
    use harmonium_kernels::random::Stream;

    /// From the second batch on the chains start in the state that is there, and what they were
    /// drawn by are the means given the batch: tile after tile, none of the batch before.
    #[test]
    fn chains_start_by_the_means_of_the_data() {
        let rows: Vec<f32> = (0..7 * 70).map(|i| f32::from(u8::from(i % 3 == i % 7))).collect();
        let data = Dataset::new(Table::from_real(rows, 70).unwrap(), Binarize::None).unwrap();
        let mut machine = Rbm::binary(70, 75).unwrap().into_machine();
        for (i, w) in machine.couplings_mut()[0].weights.entries_mut().iter_mut().enumerate() {
            *w = (i as f64).sin();
        }
        let feed = Feed::of(&machine, &data).unwrap();
        for (arithmetic, tolerance) in [(Arithmetic::F32, 1e-5), (Arithmetic::I16, 2e-3)] {
            let sampler = Sampler::new(machine.clone(), arithmetic);
            let mut estimator = Contrastive::default();
            for turn in 0..3 {
                let rows = (0..5).map(|row| (row + turn) % 7);
                let batch = feed.batch(rows, Stream::new(0));
                let stream = Stream::new(1);
                let context = Context { sampler: &sampler, batch: &batch, k: 1, stream };
                let Deferred { data_means, pending, .. } =
                    estimator.estimate_deferred(&context).unwrap().unwrap();
                assert_eq!(pending, [Rbm::HIDDEN]);
                assert_eq!(data_means.is_some(), turn > 0, "there is a state to start from");
                let Some(means) = data_means.and_then(|means| means.get(Rbm::HIDDEN)) else {
                    continue;
                };
                let mut x = batch.to_state(&machine).unwrap();
                let exact = Sampler::new(machine.clone(), Arithmetic::F64);
                let theta = exact.natural_parameters(&mut x, Rbm::HIDDEN);
                for (i, theta) in theta.iter().enumerate() {
                    let (row, unit) = (i / 75, i % 75);
                    let found = f64::from(means[unit / TILE * 5 + row].0[unit % TILE]);
                    let expected = 1.0 / (1.0 + (-theta).exp());
                    assert!((found - expected).abs() < tolerance, "{arithmetic:?}: {found}");
                }
            }
        }
    }
}
