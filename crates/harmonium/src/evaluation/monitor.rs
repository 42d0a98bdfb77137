//! Is my training working? Cheap numbers after each epoch, dear ones when they can be afforded.
//!
//! | name | what it is |
//! |---|---|
//! | `log_likelihood.train`, `.valid` | exact, when the sum costs little beside an epoch; or tracked, with what belongs to it: [`super::tracking`] |
//! | `pseudo_likelihood.train`, `.valid` | one random unit per row, times their number |
//! | `free_energy.train`, `.valid`, `.chains` | mean free energy; for deep machines its variational bound |
//! | `free_energy_gap` | valid − train: growing means overfitting (Hinton 2010) |
//! | `reconstruction_error` | mean squared distance after one step down and up (a few sweeps where visible units see each other); not a likelihood |
//! | `trajectory.log_partition`, `.acceptance`, `.machines` | what `--rule ptt` knows on the way: $\ln Z$, exchanges with the last frozen machine, how many there are |
//! | `dead_units`, `saturated_units` | hidden units below 1 % or above 99 % on all but 1 % of the data |
//!
//! Where values are missing, free energies are their variational bound over the hidden and the missing
//! units, there is no pseudo-likelihood, and an exact likelihood sums the missing values out.
//!
//! The rows that are looked at are a fixed part of the data, so that the cost stays a few percent
//! of an epoch and the numbers can be compared over the run.

mod closed_form;
mod confirm;
mod looked;
mod tracked;

pub use confirm::Confirmation;
pub(crate) use confirm::Confirmed;

use closed_form::ClosedForm;
use looked::{Looked, alike};
use tracked::free_energies;

use super::tracking::{Tracking, Watch};
use super::{bound, likelihood, pseudo};
use crate::error::Error;
use crate::exact::{self, Budget};
use crate::machine::{LayerId, Machine, State};
use crate::sampling::{Clamp, ClassSums, Label, MeanField, Sampler, posterior_factorises};
use crate::schema::LABELS;
use crate::training::{Measurement, Metric, MetricName, On, View, Watched};
use harmonium_data::Dataset;
use harmonium_kernels::random::Stream;
use serde_json::Value;

/// Share of the training's time for measurements that are not exact.
const BUDGET: f64 = 0.03;
/// Rows looked at together.
const PIECE: usize = 250;
/// Rows looked at after each epoch at least, if there are so many.
const LEAST_ROWS: usize = 100;
/// Of the rows that are looked at, those whose echo is taken: one in this many, as long as
/// [`LEAST_ROWS`] remain. An echo says least of all numbers and would cost most.
const ECHOES: usize = 4;
/// Where visible units see each other an echo takes a few sweeps: run to their end they would cost more than the epoch.
const ECHO: MeanField = MeanField { tolerance: 1e-2, max_sweeps: 5, damping: 0.0 };

/// Watches one run on its training and validation data.
pub struct Monitor<'d> {
    train: Looked<'d>,
    valid: Option<Looked<'d>>,
    seed: u64,
    watch: Watch,
    tracking: Tracking,
}

impl Metric for Monitor<'_> {
    /// Measures after some epochs what can be measured: everything cheap, and exact likelihoods where
    /// they cost little. A stage that learns from samples of its own is measured on those.
    fn measure(&mut self, view: &View<'_>) -> Result<Vec<Measurement>, Error> {
        let Some(watched) = view.watched() else { return Ok(Vec::new()) };
        let epochs = (view.epoch(), view.epochs());
        let mut found = match watched.data {
            Some(data) => Monitor::new(data, None, self.seed).measure_due(&watched, epochs)?,
            None => self.measure_due(&watched, epochs)?,
        };
        let sweeps = view.report.sweeps;
        if watched.data.is_none() && self.is_likelihood_due(&watched, epochs, sweeps) {
            found.retain(|m| !matches!(m.name, MetricName::LogLikelihood(_)));
            found.extend(self.measure_likelihood(&watched, epochs.0, sweeps)?);
        }
        Ok(found)
    }
}

/// What is known of a set of rows.
#[derive(Default)]
struct Look {
    energies: Vec<f64>,
    pseudo: Option<Vec<f64>>,
    echoes: Vec<f64>,
    /// Rows in which each binary hidden unit is almost surely off, and on.
    off: Vec<usize>,
    on: Vec<usize>,
}

impl<'d> Monitor<'d> {
    /// Looks at fixed rows of both sets.
    pub fn new(train: &'d Dataset, valid: Option<&'d Dataset>, seed: u64) -> Self {
        let tracking = Tracking::new(seed);
        let (train, valid) = (Looked::new(train), valid.map(Looked::new));
        Self { train, valid, seed, watch: Watch::default(), tracking }
    }

    /// The same, watching more or less.
    #[must_use]
    pub fn watching(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }

    /// What the next measurements depend on besides the machine, if there is anything.
    pub fn export(&self) -> Option<Value> {
        (self.watch == Watch::Likelihood).then(|| self.tracking.export())
    }

    /// Takes up what [`Monitor::export`] gave.
    pub fn import(&mut self, state: &Value) {
        self.tracking.import(state);
    }

    /// After how many epochs to measure, so that it costs a few percent of the training: known
    /// beforehand, because a run must not depend on how fast it went. At least ten times in all.
    pub fn every(&self, epochs: u64) -> u64 {
        let rows = |d: &Looked<'_>| d.chosen().len() as f64;
        let looked = rows(&self.train) + self.valid.as_ref().map_or(0.0, rows);
        // A row that is looked at is counted as one and a half that are learned from; in an RBM of
        // 784×500 it takes as long as two and a half.
        let cost = 1.5 * looked / self.train.data.n_rows() as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let every = (cost / BUDGET).ceil() as u64;
        every.clamp(1, (epochs / 10).max(1))
    }

    /// Whether exact likelihoods cost little beside an epoch.
    pub fn affords_exact(&self, machine: &Machine) -> bool {
        let Ok(log2_terms) = exact::log2_terms(machine, &Clamp::none(), 1) else { return false };
        let clamp = Clamp::visible(machine);
        let entries: usize = machine.layers().iter().map(crate::machine::Layer::len).sum();
        // An epoch multiplies each row with all weights about six times.
        let epoch = 6.0 * self.train.data.n_rows() as f64 * machine.n_parameters() as f64;
        posterior_factorises(machine, &clamp) && exact::costs_little(log2_terms, entries, epoch)
    }

    /// Whether the missing values of every row that is looked at can be summed out.
    fn affords_rows(&self, watched: &Watched<'_>) -> Result<bool, Error> {
        let machine = watched.sampler.machine();
        for data in [Some(&self.train), self.valid.as_ref()].into_iter().flatten() {
            let feed = data.feed(machine)?;
            if feed.has_holes() {
                let batch = alike(feed, &data.chosen());
                let log2_terms = exact::log2_terms(machine, batch.clamp(), batch.n_rows())?;
                if !Budget::ROW.affords(log2_terms) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether the end of an epoch is one at which measurements are taken.
    fn is_due(&self, epoch: u64, epochs: u64) -> bool {
        epoch == 1 || epoch == epochs || epoch.is_multiple_of(self.every(epochs))
    }

    /// Everything that can be afforded, at the end of an epoch that asks for it.
    fn measure_due(
        &self,
        watched: &Watched<'_>,
        (epoch, epochs): (u64, u64),
    ) -> Result<Vec<Measurement>, Error> {
        if self.watch == Watch::None || !self.is_due(epoch, epochs) {
            return Ok(Vec::new());
        }
        let mut found = self.measure_cheap(watched.sampler, watched.chains)?;
        found.extend(trajectory(watched)?);
        if self.affords_exact(watched.sampler.machine()) && self.affords_rows(watched)? {
            found.extend(self.measure_exact(watched.sampler.machine())?);
        }
        Ok(found)
    }

    /// Everything that is cheap; `chains` are the model's own samples.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn measure_cheap(
        &self,
        sampler: &Sampler,
        chains: Option<&State>,
    ) -> Result<Vec<Measurement>, Error> {
        let machine = sampler.machine();
        let mut found = Vec::new();
        let mut add = |name, (value, std_error): (f64, Option<f64>)| {
            found.push(Measurement { name, value, std_error });
        };
        let train = self.look(sampler, &self.train)?;
        let train_energy = mean_of(&train.energies);
        add(MetricName::FreeEnergy(On::Train), train_energy);
        if let Some(valid) = &self.valid {
            // With and without labels they are energies of different things.
            let alike = valid.lacks_labels(machine)? == self.train.lacks_labels(machine)?;
            let valid = self.look(sampler, valid)?;
            let energy = mean_of(&valid.energies);
            add(MetricName::FreeEnergy(On::Valid), energy);
            if alike {
                let error = energy.1.zip(train_energy.1).map(|(a, b)| a.hypot(b));
                add(MetricName::FreeEnergyGap, (energy.0 - train_energy.0, error));
            }
            if let Some(logs) = &valid.pseudo {
                add(MetricName::PseudoLikelihood(On::Valid), mean_of(logs));
            }
        }
        if let Some(logs) = &train.pseudo {
            add(MetricName::PseudoLikelihood(On::Train), mean_of(logs));
        }
        if let Some(chains) = chains {
            add(MetricName::ChainsFreeEnergy, mean_of(&free_energies(sampler, chains)?));
        }
        add(MetricName::ReconstructionError, mean_of(&train.echoes));
        let n = train.energies.len() as f64;
        let idle = |rows: &[usize]| rows.iter().filter(|&&r| r as f64 > 0.99 * n).count() as f64;
        for (name, value) in [
            (MetricName::DeadUnits, idle(&train.off)),
            (MetricName::SaturatedUnits, idle(&train.on)),
        ] {
            found.push(Measurement { name, value, std_error: None });
        }
        Ok(found)
    }

    /// Exact mean log-likelihoods of the rows that are looked at.
    ///
    /// # Errors
    ///
    /// If a sum has too many terms.
    pub fn measure_exact(&self, machine: &Machine) -> Result<Vec<Measurement>, Error> {
        let log_z = exact::log_partition(machine)?;
        let mut found = Vec::new();
        for (on, data) in [(On::Train, Some(&self.train)), (On::Valid, self.valid.as_ref())] {
            let Some(data) = data else { continue };
            let mut logs = Vec::new();
            let feed = data.feed(machine)?;
            for rows in data.chosen().chunks(PIECE) {
                let batch = alike(feed, rows);
                logs.extend(exact::log_sums(machine, batch.clamp(), &batch.to_state(machine)?)?);
            }
            data.in_units(&data.chosen(), &mut logs);
            let (mean, error) = mean_of(&logs);
            found.push(Measurement {
                name: MetricName::LogLikelihood(on),
                value: mean - log_z,
                std_error: error,
            });
        }
        Ok(found)
    }

    /// Looks at the rows piece by piece: states are large, and few numbers remain of them.
    fn look(&self, sampler: &Sampler, data: &Looked<'_>) -> Result<Look, Error> {
        let machine = sampler.machine();
        let mut look = Look { pseudo: Some(Vec::new()), ..Look::default() };
        let (feed, chosen) = (data.feed(machine)?, data.chosen());
        let unlabelled = feed.lacks_labels_alone();
        let closed = if feed.has_holes() || unlabelled { None } else { ClosedForm::of(machine)? };
        let labels = machine.layer_ids().find(|&l| machine.layer(l).name == LABELS);
        let by_class =
            if unlabelled && !feed.has_holes() { ClassSums::of(machine, labels)? } else { None };
        let stride = (chosen.len() / LEAST_ROWS).clamp(1, ECHOES);
        for (piece, rows) in (0_u64..).zip(chosen.chunks(PIECE)) {
            let batch = alike(feed, rows);
            let visit = pseudo::Visit::One(Stream::new(self.seed).fork(piece));
            if let Some(closed) = &closed {
                let x = closed.look(sampler, &batch, visit, &mut look)?;
                look.echoes.extend(echoes(sampler, &x.thinned(stride))?);
                look.count_idle(machine, &x);
                continue;
            }
            let (mut x, clamp) = (batch.to_state(machine)?, batch.clamp());
            if let Some(sums) = &by_class {
                let logs = sums.free(&x, &vec![Label::Unknown; x.n_rows()]);
                look.energies.extend(logs.into_iter().map(|log| -log));
                look.pseudo = None;
                continue;
            }
            sampler.infer(clamp, &mut x, MeanField::default())?;
            look.energies.extend(energies(machine, clamp, &x)?);
            look.echoes.extend(echoes(sampler, &x.thinned(stride))?);
            look.count_idle(machine, &x);
            if feed.has_holes() || unlabelled {
                look.pseudo = None;
                continue;
            }
            match pseudo::log_pseudo_likelihood(machine, &batch, visit) {
                Ok(logs) => look.pseudo.get_or_insert_default().extend(logs),
                // Deep machines and real data have none; the run goes on without them.
                Err(Error::Topology { .. }) => look.pseudo = None,
                Err(error) => return Err(error),
            }
        }
        if let Some(logs) = &mut look.pseudo {
            data.in_units(&chosen, logs);
        }
        Ok(look)
    }
}

/// What the model side knows on the way, if its chains exchange with frozen machines.
fn trajectory(watched: &Watched<'_>) -> Result<Vec<Measurement>, Error> {
    let Some(found) = watched.model_side.log_partition(watched.sampler)? else {
        return Ok(Vec::new());
    };
    let one = |name, value, std_error| Measurement { name, value, std_error };
    let mut all = vec![
        one(MetricName::TrajectoryAcceptance, found.acceptance, None),
        one(MetricName::TrajectoryMachines, found.rungs as f64, None),
    ];
    // A ladder that has grown too fast does not know its own error.
    if found.is_settled {
        all.push(one(MetricName::TrajectoryLogPartition, found.log_z, Some(found.std_error)));
    }
    Ok(all)
}

impl Look {
    /// Counts binary hidden units that are almost surely off or on.
    fn count_idle(&mut self, machine: &Machine, posterior: &State) {
        let visible = machine.visible_layers();
        let binary = |l: &LayerId| machine.layer(*l).units.is_zero_or_one();
        let hidden = machine.layer_ids().filter(|l| !visible.contains(l)).filter(binary);
        let hidden: Vec<LayerId> = hidden.collect();
        let n: usize = hidden.iter().map(|&l| machine.layer(l).len()).sum();
        self.off.resize(n, 0);
        self.on.resize(n, 0);
        for row in 0..posterior.n_rows() {
            let means = hidden.iter().flat_map(|&l| posterior.row(l, row));
            for ((m, off), on) in means.zip(&mut self.off).zip(&mut self.on) {
                *off += usize::from(*m < 0.01);
                *on += usize::from(*m > 0.99);
            }
        }
    }
}

/// Minus the bound at the posterior means: the free energy itself where that is exact.
fn energies(machine: &Machine, clamp: &Clamp, x: &State) -> Result<Vec<f64>, Error> {
    Ok(bound::unnormalised(machine, clamp, x)?.into_iter().map(|b| -b).collect())
}

/// Squared distance of each row from its mean-field echo.
fn echoes(sampler: &Sampler, posterior: &State) -> Result<Vec<f64>, Error> {
    let machine = sampler.machine();
    let visible = machine.visible_layers();
    let hidden = machine.layer_ids().filter(|l| !visible.contains(l));
    let mut echo = posterior.clone();
    sampler.infer(&Clamp::layers(hidden), &mut echo, ECHO)?;
    let distance = |row: usize| -> f64 {
        let pairs =
            visible.iter().flat_map(|&l| posterior.row(l, row).iter().zip(echo.row(l, row)));
        pairs.map(|(a, b)| (a - b) * (a - b)).sum()
    };
    Ok((0..echo.n_rows()).map(distance).collect())
}

fn mean_of(values: &[f64]) -> (f64, Option<f64>) {
    likelihood::weighted_mean(values, &vec![1.0; values.len()])
}
