//! Contrastive divergence (Hinton 2002): the model side from chains that start at the data.

use super::gibbs::sample_posterior;
use super::{Context, Estimator, Side, deferrable, last_free_block, normalise, particles};
use crate::engine::TileMeans;
use crate::error::Error;
use crate::machine::State;
use crate::sampling::{
    Clamp, average_block, gibbs, open_sweeps, posterior_factorises, sample_with_means,
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
        let data = batch.clamp();
        let factorises = posterior_factorises(machine, data);
        let free = Clamp::none();
        normalise(batch, &mut self.weights);
        let last = last_free_block(engine, &free);
        let defer = deferrable(context, &last);
        let mut data_means = None;
        let mut x = match self.particles.take() {
            // One sweep over hidden units that see only the data forgets where they were.
            Some(mut x) if defer && factorises && x.n_rows() == batch.n_rows() => {
                batch.write_into(&mut x);
                // Whether the last block are the hidden units and nothing else.
                if machine.layer_ids().all(|l| last.contains(&l) != data.holds_layer(l)) {
                    sample_with_means(engine, &mut x, &last, stream.fork(1), &mut self.data_means);
                    data_means = Some(&self.data_means);
                } else {
                    gibbs(machine, engine, data, &mut x, 1, stream.fork(1))?;
                }
                x
            }
            _ => {
                let sweeps = if factorises { 1 } else { POSTERIOR_SWEEPS };
                sample_posterior(context, data, sweeps)?
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Arithmetic, Engine};
    use crate::models::Rbm;
    use crate::sampling::natural_parameters;
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
        for (precision, tolerance) in [(Arithmetic::F32, 1e-5), (Arithmetic::I16, 2e-3)] {
            let engine = Engine::with_arithmetic(&machine, precision);
            let mut estimator = Contrastive::default();
            for turn in 0..3 {
                let rows = (0..5).map(|row| (row + turn) % 7);
                let batch = feed.batch(rows, Stream::new(0));
                let context = Context {
                    machine: &machine,
                    engine: &engine,
                    batch: &batch,
                    k: 1,
                    stream: Stream::new(1),
                    defer: true,
                };
                let Side::Particles { data_means, pending, .. } =
                    estimator.estimate(&context).unwrap()
                else {
                    panic!("chains are particles")
                };
                assert_eq!(pending, [Rbm::HIDDEN]);
                assert_eq!(data_means.is_some(), turn > 0, "there is a state to start from");
                let Some(means) = data_means.and_then(|means| means.get(Rbm::HIDDEN)) else {
                    continue;
                };
                let mut x = batch.to_state(&machine).unwrap();
                let exact = Engine::new(&machine);
                let theta = natural_parameters(&exact, &mut x, Rbm::HIDDEN);
                for (i, theta) in theta.iter().enumerate() {
                    let (row, unit) = (i / 75, i % 75);
                    let found = f64::from(means[unit / TILE * 5 + row].0[unit % TILE]);
                    let expected = 1.0 / (1.0 + (-theta).exp());
                    assert!((found - expected).abs() < tolerance, "{precision:?}: {found}");
                }
            }
        }
    }
}
