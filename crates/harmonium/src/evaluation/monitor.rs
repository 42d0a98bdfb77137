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

mod confirm;

pub use confirm::Confirmation;
pub(crate) use confirm::Confirmed;

use super::tracking::{self, MOST_ROWS, Normaliser, Tracking, Watch};
use super::{bound, likelihood, pseudo};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::exact::{self, Budget};
use crate::machine::{Batch, LayerId, Machine, State};
use crate::sampling::{
    Clamp, ClassSums, Label, MeanField, Sampler, free_layers, posterior_factorises,
};
use crate::schema::{Feed, LABELS};
use crate::training::{Measurement, Metric, MetricName, On, View, Watched};
use harmonium_data::Dataset;
use harmonium_kernels::random::Stream;
use serde_json::Value;
use std::sync::OnceLock;

/// Share of the training's time for measurements that are not exact.
const BUDGET: f64 = 0.03;
/// Rows looked at together.
const PIECE: usize = 250;
/// Share of the rows that is looked at after each epoch.
const SHARE: usize = 60;
/// But at least this many, if there are.
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

/// Data that is looked at again and again: checked at the first look.
struct Looked<'d> {
    data: &'d Dataset,
    feed: OnceLock<Feed<'d>>,
    /// See [`Dataset::log_slopes`].
    log_slopes: Option<Vec<f64>>,
}

impl<'d> Looked<'d> {
    fn new(data: &'d Dataset) -> Self {
        Self { data, feed: OnceLock::new(), log_slopes: data.log_slopes() }
    }

    /// Log-densities of rows in the units of the data.
    fn in_units(&self, rows: &[usize], logs: &mut [f64]) {
        if let Some(slopes) = &self.log_slopes {
            logs.iter_mut().zip(rows).for_each(|(log, &row)| *log += slopes[row]);
        }
    }

    fn feed(&self, machine: &Machine) -> Result<&Feed<'d>, Error> {
        if let Some(feed) = self.feed.get() {
            return Ok(feed);
        }
        let feed = Feed::of(machine, self.data)?.filled_but_for_labels()?;
        Ok(self.feed.get_or_init(|| feed))
    }

    /// Whether the labels of the rows are unknown, so that they are summed out.
    fn lacks_labels(&self, machine: &Machine) -> Result<bool, Error> {
        Ok(self.feed(machine)?.lacks_labels_alone())
    }

    /// The numbers of the rows that are looked at: every so-many-th.
    fn chosen(&self) -> Vec<usize> {
        let n = (self.data.n_rows() / SHARE).max(LEAST_ROWS).min(self.data.n_rows());
        self.spread(n)
    }

    /// The numbers of the rows whose likelihood is tracked.
    fn tracked(&self) -> Vec<usize> {
        self.spread(self.data.n_rows().min(MOST_ROWS))
    }

    /// The numbers of `n` rows, evenly over the data.
    fn spread(&self, n: usize) -> Vec<usize> {
        (0..n).map(|k| k * self.data.n_rows() / n).collect()
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

    /// Whether the likelihood is looked at after this epoch: at the end, and before it as often as that can be paid.
    fn is_likelihood_due(
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

/// The free energy of each row, the visible units held; for deep machines its variational bound.
fn free_energies(sampler: &Sampler, x: &State) -> Result<Vec<f64>, Error> {
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
fn row_logs(sampler: &Sampler, data: &Looked<'_>) -> Result<(Vec<f64>, bool), Error> {
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

/// Rows as a batch, presented always alike.
fn alike(feed: &Feed<'_>, rows: &[usize]) -> Batch {
    feed.batch(rows.iter().copied(), Stream::new(0))
}

/// A machine whose hidden units are independent given the data, without its offsets: one
/// product gives posterior, free energy and pseudo-likelihood.
struct ClosedForm {
    folded: Machine,
    hidden: Vec<LayerId>,
    has_pseudo: bool,
}

impl ClosedForm {
    fn of(machine: &Machine) -> Result<Option<Self>, Error> {
        let clamp = Clamp::visible(machine);
        let visible = machine.visible_layers();
        let coupled = |&l: &LayerId| visible.iter().any(|&m| machine.coupled(l, m));
        if !posterior_factorises(machine, &clamp) || visible.iter().any(coupled) {
            return Ok(None);
        }
        let finite = |&l: &LayerId| machine.layer(l).units.is_finite();
        Ok(Some(Self {
            folded: machine.without_offsets()?,
            hidden: free_layers(machine, &clamp),
            has_pseudo: visible.iter().all(finite),
        }))
    }

    /// $\theta$ of each hidden layer.
    fn thetas(&self, sampler: &Sampler, x: &mut State) -> Vec<Vec<f64>> {
        self.hidden.iter().map(|&l| sampler.natural_parameters(x, l)).collect()
    }

    /// The free energy of each row.
    fn free_energies(&self, machine: &Machine, thetas: &[Vec<f64>], x: &State) -> Vec<f64> {
        let of_row = |row: usize| {
            // With all hidden units at zero only the visible layers have an energy.
            let visible = machine.visible_layers().into_iter();
            let own: f64 = visible.map(|l| self.folded.layer(l).energy(x.row(l, row))).sum();
            let sums = self.hidden.iter().zip(thetas).map(|(&l, theta)| {
                let layer = self.folded.layer(l);
                let theta = &theta[row * layer.len()..(row + 1) * layer.len()];
                layer.units.log_partition(theta, layer.own())
            });
            self.folded.constant() + own - sums.sum::<f64>()
        };
        (0..x.n_rows()).map(of_row).collect()
    }

    /// Adds free energies and pseudo-likelihoods of a batch; returns the posterior means.
    fn look(
        &self,
        sampler: &Sampler,
        batch: &Batch,
        visit: pseudo::Visit,
        look: &mut Look,
    ) -> Result<State, Error> {
        let machine = sampler.machine();
        let mut x = batch.to_state(machine)?;
        let thetas = self.thetas(sampler, &mut x);
        look.energies.extend(self.free_energies(machine, &thetas, &x));
        if self.has_pseudo {
            let logs = pseudo::given_thetas(&self.folded, &self.hidden, &thetas, &x, visit)?;
            look.pseudo.get_or_insert_default().extend(logs);
        } else {
            look.pseudo = None;
        }
        for (&l, theta) in self.hidden.iter().zip(thetas) {
            x.set_means(l, theta, |theta| {
                let layer = machine.layer(l);
                for row in theta.chunks_exact_mut(layer.len()) {
                    layer.units.mean_in_place(row, layer.own());
                }
            });
        }
        Ok(x)
    }
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
