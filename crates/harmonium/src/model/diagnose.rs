//! Whether chains of a model mix, and whether its samples look like data.

use super::{arithmetic, pieces};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::diagnose::{
    DataSide, Diagnosis, Questions, Scalar, check_cost, diagnose, samples, watch,
};
use crate::evaluation::two_sample::Samples;
use crate::machine::{Base, LayerId};
use crate::progress::{Listener, Work};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::{Chains, Sampler};
use crate::schema::Feed;
use harmonium_data::Dataset;

/// Rows turned into samples at a time.
const ROWS: usize = 1000;
/// Chains watched for a quick look at how they mix.
const QUICK_CHAINS: usize = 20;
/// Fewest and most of their sweeps, after as many to settle.
const QUICK_SWEEPS: (f64, f64) = (100.0, 1000.0);

/// How a model is diagnosed.
#[derive(Clone, Copy, Debug)]
pub struct Diagnosing {
    /// Chains to watch.
    pub chains: usize,
    /// Sweeps to watch them for, after as many to settle.
    pub sweeps: usize,
    /// The root of all randomness.
    pub seed: u64,
    /// The arithmetic of the chains.
    pub arithmetic: Option<Arithmetic>,
}

impl Default for Diagnosing {
    fn default() -> Self {
        Self { chains: 50, sweeps: 1000, seed: 0, arithmetic: None }
    }
}

impl Model {
    /// Runs chains, tempers, and compares samples with `held_out`; with `train`, whether they repeat
    /// training rows. Of a deep belief network the top RBM is looked at, without data.
    ///
    /// # Errors
    ///
    /// If there are too few chains or sweeps to say anything, the data does not fit, or memory ends.
    pub fn diagnose(
        &self,
        held_out: Option<&Dataset>,
        train: Option<&Dataset>,
        diagnosing: &Diagnosing,
        listener: &mut dyn Listener,
    ) -> Result<Diagnosis, Error> {
        let machine = self.top()?;
        check_cost(machine, diagnosing.chains, diagnosing.sweeps)?;
        let sampler =
            |default| Sampler::new(machine.clone(), arithmetic(diagnosing.arithmetic, default));
        let (chains, drawn) = (sampler(Arithmetic::F32), sampler(Arithmetic::I16));
        let feed = held_out.map(|data| self.whole_rows(data)).transpose()?;
        let layers = feed.as_ref().map(Feed::filled).unwrap_or_default();
        let seen = |data: &Dataset| self.seen(data, &layers);
        let (held_out, train) = (held_out.map(seen).transpose()?, train.map(seen).transpose()?);
        let data = match (&feed, &held_out) {
            (Some(feed), Some(held_out)) => Some(DataSide {
                starts: {
                    let (n, all) = (diagnosing.chains / 2, feed.data().n_rows());
                    let batch = feed.batch((0..n).map(|k| k * all / n), Stream::new(0));
                    (batch.to_state(machine)?, batch.clamp().clone())
                },
                layers: &layers,
                held_out,
                train: train.as_ref(),
                sampler: &drawn,
            }),
            _ => None,
        };
        let base = match self.about.data.means(super::visible_entries(machine)) {
            Some(means) => Base::from_visible_means(machine, &means)?,
            None => Base::of_biases(machine),
        };
        let &Diagnosing { chains: n, sweeps, seed, .. } = diagnosing;
        let questions = Questions { chains: n, sweeps, base, data };
        let stream = Stream::new(seed).fork(300);
        diagnose(&chains, &questions, stream, &mut |what, done, total| {
            listener.at(Work { what, done, total, detail: "" });
        })
    }

    /// How a few chains mix, watched for as long as `work` multiplications allow; nothing where that is
    /// too short to say anything.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub(crate) fn mixing_within(
        &self,
        work: f64,
        seed: u64,
        asked: Option<Arithmetic>,
        listener: &mut dyn Listener,
    ) -> Result<Vec<Scalar>, Error> {
        let machine = self.top()?;
        let affordable = work / ((2 * QUICK_CHAINS) as f64 * machine.n_parameters() as f64);
        if affordable < QUICK_SWEEPS.0 {
            return Ok(Vec::new());
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let sweeps = affordable.min(QUICK_SWEEPS.1) as usize;
        let sampler = Sampler::new(machine.clone(), arithmetic(asked, Arithmetic::F32));
        let stream = Stream::new(seed).fork(201);
        let chains = Chains::new(machine, QUICK_CHAINS, stream.fork(0))?;
        watch(&sampler, chains, sweeps, stream.fork(1), &mut |what, done, total| {
            listener.at(Work { what, done, total, detail: "" });
        })
    }

    fn whole_rows<'d>(&self, data: &'d Dataset) -> Result<Feed<'d>, Error> {
        Feed::new(self.top()?, &self.schema(data)?, data)?.without_holes()
    }

    /// The data as the units see it.
    fn seen(&self, data: &Dataset, layers: &[LayerId]) -> Result<Samples, Error> {
        let (machine, feed) = (self.top()?, self.whole_rows(data)?);
        let state = |rows| feed.batch(rows, Stream::new(0)).to_state(machine);
        samples(machine, layers, pieces(data.n_rows(), ROWS).map(state))
    }
}
