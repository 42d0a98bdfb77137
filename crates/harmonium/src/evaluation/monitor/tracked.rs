//! The likelihood of the rows that are tracked, and the chains of the training against samples that owe nothing to it.

use super::closed_form::ClosedForm;
use super::looked::{Looked, alike};
use super::{Monitor, PIECE, energies, mean_of};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::bound;
use crate::evaluation::tracking::{self, Normaliser, Watch};
use crate::exact::{self, Budget};
use crate::machine::State;
use crate::sampling::{Clamp, MeanField, Sampler, posterior_factorises};
use crate::training::{Measurement, MetricName, On, Watched};
use harmonium_kernels::random::Stream;

impl Monitor<'_> {
    /// Whether the likelihood is looked at after this epoch: at the end, and before it as often as that can be paid.
    pub(super) fn is_likelihood_due(
        &self,
        watched: &Watched<'_>,
        (epoch, epochs): (u64, u64),
        sweeps: usize,
    ) -> bool {
        let work = (self.train.data.n_rows(), sweeps);
        self.watch == Watch::Likelihood
            && (epoch == epochs
                || self.tracking.is_due(watched.sampler.graph(), (epoch, epochs), work))
    }

    /// The likelihood of the rows that are tracked, what it rests on, and how the chains compare with
    /// samples that owe nothing to the training; `epoch` epochs are done, with `sweeps` sweeps between
    /// updates.
    ///
    /// # Errors
    ///
    /// If the data does not fit, or memory ends.
    pub fn measure_likelihood(
        &mut self,
        watched: &Watched<'_>,
        epoch: u64,
        sweeps: usize,
    ) -> Result<Vec<Measurement>, Error> {
        let machine = watched.sampler.machine();
        let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
        let means = self.train.feed(machine)?.means().concat();
        let Some(found) = self.tracking.look(&sampler, &means, watched.chains, epoch)? else {
            return Ok(Vec::new());
        };
        let Normaliser { log_z, std_error, tracked } = found;
        let one = |name, value, std_error| Measurement { name, value, std_error };
        let mut all = vec![one(MetricName::LogPartition, log_z, Some(std_error))];
        for (on, data) in [(On::Train, Some(&self.train)), (On::Valid, self.valid.as_ref())] {
            let Some(data) = data else { continue };
            let (logs, is_exact) = row_logs(&sampler, data)?;
            let name = if is_exact { MetricName::LogLikelihood(on) } else { MetricName::Bound(on) };
            let (mean, error) = mean_of(&logs);
            all.push(one(name, mean - log_z, error.map(|e| e.hypot(std_error))));
        }
        if let Some(tracked) = tracked {
            all.push(one(MetricName::LadderSwaps, tracked.least_swaps, None));
            if let Some(chains) = watched.chains {
                all.extend(self.compare(&sampler, chains, &tracked.samples, sweeps)?);
            }
        }
        Ok(all)
    }

    /// The chains of the training against samples of the ladders.
    fn compare(
        &self,
        sampler: &Sampler,
        chains: &State,
        samples: &State,
        sweeps: usize,
    ) -> Result<Vec<Measurement>, Error> {
        let before = free_energies(sampler, chains)?;
        let mut moved = chains.clone();
        let stream = Stream::new(self.seed).fork(0x6_a2d0).fork(self.tracking.looks());
        sampler.gibbs(&Clamp::none(), &mut moved, sweeps.max(1), stream)?;
        let after = free_energies(sampler, &moved)?;
        let model = free_energies(sampler, samples)?;
        let lag = tracking::lag(&before, &model);
        let one = |name, value, std_error| Measurement { name, value, std_error };
        let correlation = tracking::correlation(&before, &after);
        let lag = lag.map(|(lag, error)| one(MetricName::ChainsLag, lag, Some(error)));
        let left = correlation.map(|c| one(MetricName::ChainsAutocorrelation, c, None));
        Ok(lag.into_iter().chain(left).collect())
    }
}

/// The free energy of each row, the visible units held; for deep machines its variational bound.
pub(super) fn free_energies(sampler: &Sampler, x: &State) -> Result<Vec<f64>, Error> {
    let (machine, mut x) = (sampler.machine(), x.clone());
    let clamp = Clamp::visible(machine);
    if let Some(closed) = ClosedForm::of(machine)? {
        return Ok(closed.free_energies(machine, &closed.thetas(sampler, &mut x), &x));
    }
    sampler.infer(&clamp, &mut x, MeanField::default())?;
    energies(machine, &clamp, &x)
}

/// The logarithm of the sum over what is free in each row that is tracked, in the units of the data, and whether it
/// is the sum itself or its variational bound.
pub(super) fn row_logs(sampler: &Sampler, data: &Looked<'_>) -> Result<(Vec<f64>, bool), Error> {
    let machine = sampler.machine();
    let feed = data.feed(machine)?;
    // In closed form only where every visible unit is held: labels may be free.
    let held = !feed.has_holes() && feed.filled().len() == machine.visible_layers().len();
    let closed = if held { ClosedForm::of(machine)? } else { None };
    let (mut logs, mut is_exact) = (Vec::new(), true);
    for rows in data.tracked().chunks(PIECE) {
        let batch = alike(feed, rows);
        let (mut x, clamp) = (batch.to_state(machine)?, batch.clamp());
        if let Some(closed) = &closed {
            let energies = closed.free_energies(machine, &closed.thetas(sampler, &mut x), &x);
            logs.extend(energies.into_iter().map(|f| -f));
        } else if Budget::LOOKED_ROW.affords(exact::log2_terms(machine, clamp, x.n_rows())?) {
            logs.extend(exact::log_sums(machine, clamp, &x)?);
        } else {
            sampler.infer(clamp, &mut x, MeanField::default())?;
            logs.extend(bound::unnormalised(machine, clamp, &x)?);
            is_exact &= posterior_factorises(machine, clamp);
        }
    }
    data.in_units(&data.tracked(), &mut logs);
    Ok((logs, is_exact))
}
