//! Is my training working? Cheap numbers after each epoch, dear ones when they can be afforded.
//!
//! | name | what it is |
//! |---|---|
//! | `log_likelihood.train`, `.valid` | exact, when the sum costs little beside an epoch |
//! | `pseudo_likelihood.train`, `.valid` | one random unit per row, times their number |
//! | `free_energy.train`, `.valid`, `.chains` | mean free energy; for deep machines its variational bound |
//! | `free_energy_gap` | valid − train: growing means overfitting (Hinton 2010) |
//! | `reconstruction_error` | mean squared distance after one step down and up; not a likelihood |
//! | `dead_units`, `saturated_units` | hidden units below 1 % or above 99 % on all but 1 % of the data |
//!
//! The rows that are looked at are a fixed part of the data, so that the cost stays a few percent
//! of an epoch and the numbers can be compared over the run.

use super::{bound, likelihood, pseudo};
use crate::error::Error;
use crate::exact;
use crate::machine::{Batch, Engine, Machine, State};
use crate::sampling::{Clamp, MeanField, infer, posterior_factorises};
use crate::training::Measurement;
use harmonium_data::Dataset;
use harmonium_kernels::random::Stream;

/// Share of the rows that is looked at after each epoch.
const SHARE: usize = 60;
/// But at least this many, if there are.
const LEAST_ROWS: usize = 100;

/// Watches one run on its training and validation data.
pub struct Monitor<'d> {
    train: &'d Dataset,
    valid: Option<&'d Dataset>,
    seed: u64,
}

/// One set of rows as the machine sees it.
struct Look {
    batch: Batch,
    posterior: State,
}

impl<'d> Monitor<'d> {
    /// Looks at fixed rows of both sets.
    pub fn new(train: &'d Dataset, valid: Option<&'d Dataset>, seed: u64) -> Self {
        Self { train, valid, seed }
    }

    /// Whether exact likelihoods cost less than a twentieth of an epoch.
    pub fn affords_exact(&self, machine: &Machine) -> bool {
        let Ok(log2_terms) = exact::log2_terms(machine, &Clamp::none(), 1) else { return false };
        let clamp = Clamp::visible(machine);
        let entries: usize = machine.layers().iter().map(crate::machine::Layer::len).sum();
        // An epoch multiplies each row with all weights about six times.
        let epoch = 6.0 * self.train.n_rows() as f64 * machine.n_parameters() as f64;
        posterior_factorises(machine, &clamp) && log2_terms.exp2() * entries as f64 <= 0.03 * epoch
    }

    /// Everything that is cheap; `chains` are the model's own samples.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn measure(
        &self,
        machine: &Machine,
        chains: Option<&State>,
    ) -> Result<Vec<Measurement>, Error> {
        let engine = Engine::new(machine);
        let mut found = Vec::new();
        let mut add = |name: &str, value: f64, std_error: Option<f64>| {
            found.push(Measurement { name: name.into(), value, std_error });
        };
        let train = Self::look(machine, &engine, self.train)?;
        let train_energy = free_energies(machine, &train)?;
        add("free_energy.train", train_energy.0, Some(train_energy.1));
        if let Some(valid) = self.valid {
            let valid = Self::look(machine, &engine, valid)?;
            let energy = free_energies(machine, &valid)?;
            add("free_energy.valid", energy.0, Some(energy.1));
            let error = energy.1.hypot(train_energy.1);
            add("free_energy_gap", energy.0 - train_energy.0, Some(error));
            if let Some((mean, error)) = self.pseudo(machine, &valid)? {
                add("pseudo_likelihood.valid", mean, Some(error));
            }
        }
        if let Some((mean, error)) = self.pseudo(machine, &train)? {
            add("pseudo_likelihood.train", mean, Some(error));
        }
        if let Some(chains) = chains {
            let clamp = Clamp::visible(machine);
            let mut x = chains.clone();
            infer(machine, &engine, &clamp, &mut x, MeanField::default())?;
            let (mean, error) = mean_of(&energies(machine, &clamp, &x)?);
            add("free_energy.chains", mean, Some(error));
        }
        let (error, spread) = reconstruction(machine, &engine, &train)?;
        add("reconstruction_error", error, Some(spread));
        let (dead, saturated) = idle_units(machine, &train.posterior);
        add("dead_units", dead, None);
        add("saturated_units", saturated, None);
        Ok(found)
    }

    /// Exact mean log-likelihoods of the rows that are looked at.
    ///
    /// # Errors
    ///
    /// If a sum has too many terms.
    pub fn measure_exact(&self, machine: &Machine) -> Result<Vec<Measurement>, Error> {
        let log_z = exact::log_partition(machine)?;
        let clamp = Clamp::visible(machine);
        let mut found = Vec::new();
        for (name, data) in [("train", Some(self.train)), ("valid", self.valid)] {
            let Some(data) = data else { continue };
            let x = Self::rows(machine, data).to_state(machine)?;
            let logs = exact::log_sums(machine, &clamp, &x)?;
            let (mean, error) = mean_of(&logs);
            found.push(Measurement {
                name: format!("log_likelihood.{name}"),
                value: mean - log_z,
                std_error: Some(error),
            });
        }
        Ok(found)
    }

    /// The rows that are looked at: every so-many-th, presented always alike.
    fn rows(machine: &Machine, data: &Dataset) -> Batch {
        let n = (data.n_rows() / SHARE).max(LEAST_ROWS).min(data.n_rows());
        let mut batch = Batch::new(machine);
        let mut values = vec![0.0; data.n_columns()];
        for k in 0..n {
            let row = k * data.n_rows() / n;
            data.present_into(row, Stream::new(0), &mut values);
            batch.push(machine, &values, 1.0);
        }
        batch
    }

    fn look(machine: &Machine, engine: &Engine, data: &Dataset) -> Result<Look, Error> {
        let batch = Self::rows(machine, data);
        let mut posterior = batch.to_state(machine)?;
        let clamp = Clamp::visible(machine);
        infer(machine, engine, &clamp, &mut posterior, MeanField::default())?;
        Ok(Look { batch, posterior })
    }

    fn pseudo(&self, machine: &Machine, look: &Look) -> Result<Option<(f64, f64)>, Error> {
        let visit = pseudo::Visit::One(Stream::new(self.seed));
        match pseudo::log_pseudo_likelihood(machine, &look.batch, visit) {
            Ok(logs) => Ok(Some(mean_of(&logs))),
            // Deep machines and real data have none; that is no failure of the run.
            Err(Error::Topology { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Minus the bound at the posterior means: the free energy itself where that is exact.
fn energies(machine: &Machine, clamp: &Clamp, x: &State) -> Result<Vec<f64>, Error> {
    Ok(bound::unnormalised(machine, clamp, x)?.into_iter().map(|b| -b).collect())
}

fn free_energies(machine: &Machine, look: &Look) -> Result<(f64, f64), Error> {
    Ok(mean_of(&energies(machine, &Clamp::visible(machine), &look.posterior)?))
}

/// Squared distance of the data from its mean-field echo, per row.
fn reconstruction(machine: &Machine, engine: &Engine, look: &Look) -> Result<(f64, f64), Error> {
    let visible = machine.visible_layers();
    let hidden = machine.layer_ids().filter(|l| !visible.contains(l));
    let mut echo = look.posterior.clone();
    infer(machine, engine, &Clamp::layers(hidden), &mut echo, MeanField::default())?;
    let distance = |row: usize| -> f64 {
        let pairs =
            visible.iter().flat_map(|&l| look.posterior.row(l, row).iter().zip(echo.row(l, row)));
        pairs.map(|(a, b)| (a - b) * (a - b)).sum()
    };
    Ok(mean_of(&(0..echo.n_rows()).map(distance).collect::<Vec<f64>>()))
}

/// Binary hidden units that are almost always off, and almost always on.
fn idle_units(machine: &Machine, posterior: &State) -> (f64, f64) {
    let n = posterior.n_rows() as f64;
    let (mut dead, mut saturated) = (0, 0);
    let visible = machine.visible_layers();
    for l in machine.layer_ids().filter(|l| !visible.contains(l)) {
        if machine.layer(l).units != crate::units::Units::Binary {
            continue;
        }
        for i in 0..machine.layer(l).len() {
            let share = |on: &dyn Fn(f64) -> bool| {
                (0..posterior.n_rows()).filter(|&r| on(posterior.row(l, r)[i])).count() as f64 / n
            };
            dead += u32::from(share(&|m| m < 0.01) > 0.99);
            saturated += u32::from(share(&|m| m > 0.99) > 0.99);
        }
    }
    (f64::from(dead), f64::from(saturated))
}

fn mean_of(values: &[f64]) -> (f64, f64) {
    likelihood::weighted_mean(values, &vec![1.0; values.len()])
}
