//! The likelihood itself, watched while a machine learns.
//!
//! $$\ln p(v) = \ln\sum_h e^{-E(v,h)} - \ln Z$$
//!
//! Of the rows the sum is taken in closed form or by enumeration where that is cheap, else it is the
//! variational bound; $\ln Z$ is enumerated where that costs less than a look, else ladders of replicas that are
//! carried along give it with an error bar ([`Tracker`]). The cold ends of these ladders are samples of
//! the machine that owe nothing to the training, and the chains of the training are held against them:
//!
//! | name | what it is |
//! |---|---|
//! | `log_partition` | $\ln Z$; its standard error is that of the ladders, 0 where it was enumerated |
//! | `log_likelihood.train`, `.valid` | mean of rows; the standard error holds that of $\ln Z$ and the spread of the rows |
//! | `bound.train`, `.valid` | the same where rows are only bounded |
//! | `chains.lag` | mean free energy of the training's chains minus that of the ladders, in standard deviations |
//! | `chains.autocorrelation` | how much of a chain's free energy is left after the sweeps of one update |
//! | `ladder.swaps` | least share of swaps that neighbours on a ladder accepted |
//!
//! Looks are paid from a share of the training's work, counted beforehand: a run must not depend on how fast
//! it went.

use super::log_partition::{Method, Settings, TRACKING_ROUNDS, Tracked, Tracker};
use crate::error::Error;
use crate::exact;
use crate::machine::{Layer, Machine, State};
use crate::sampling::{Clamp, Sampler};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is measured while a machine learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watch {
    /// Nothing.
    None,
    /// What is cheap: pseudo-likelihood, free energies, idle units; the exact likelihood where it
    /// costs next to nothing.
    #[default]
    Pseudo,
    /// The same, and the likelihood, for a fifth of the training's work at most, or half a second.
    Likelihood,
}

/// Share of the training's work that looks at the likelihood may take.
const SHARE: f64 = 0.1;
/// Work that looks may take in any case, in the measure of [`LEARNED_ROW`]: about half a second in all, so that short trainings
/// are watched too.
const LEAST_WORK: f64 = 1e11;
/// Share of it for an estimate from both sides at the end, and the chains on each side.
const CONFIRMING: f64 = 0.04;
const CONFIRMING_CHAINS: usize = 40;
/// Its temperatures: fewer make intervals of strong machines wide, so as many as cost [`LEAST_WORK`], within these
/// ends.
const CONFIRMING_BETAS: (f64, f64) = (100.0, 500.0);
/// Most temperatures of it.
const MOST_BETAS: f64 = 2000.0;
/// What a row that is learned from costs: multiples of the number of parameters and of the number of units,
/// measured on RBMs from 16×200 to 180×200 units.
const LEARNED_ROW: (f64, f64) = (4.5, 250.0);
/// What a sweep of a replica costs in the same measure: its densities are summed in double precision.
const REPLICA: (f64, f64) = (10.0, 2500.0);
/// What a term of an enumeration costs for each unit.
const TERM: f64 = 100.0;
/// How many times the cost of a look an enumeration may have: it leaves no doubt.
const EXACT: f64 = 4.0;
/// Looks are at least this part of a training apart.
const APART: u64 = 25;
/// Most rows of a set whose likelihood is watched.
pub(super) const MOST_ROWS: usize = 1000;

/// $\ln Z$ with its standard error, and what else the ladders said.
pub(super) struct Normaliser {
    pub(super) log_z: f64,
    pub(super) std_error: f64,
    pub(super) tracked: Option<Tracked>,
}

/// Follows $\ln Z$ and keeps the books of what it costs.
pub(super) struct Tracking {
    seed: u64,
    tracker: Option<Tracker>,
    /// What a checkpoint said of the ladders, until the machine is there.
    stored: Value,
    looks: u64,
    /// The epoch of the last look.
    looked: u64,
    /// $\ln Z$ and its standard error at the last look, if ladders gave it.
    found: Option<(f64, f64)>,
    /// Work of all looks so far.
    spent: f64,
}

fn cost(machine: &Machine, (products, units): (f64, f64)) -> f64 {
    let entries: usize = machine.layers().iter().map(Layer::len).sum();
    products * machine.n_parameters() as f64 + units * entries as f64
}

/// Work of enumerating $\ln Z$.
fn exact_cost(machine: &Machine) -> f64 {
    let entries: usize = machine.layers().iter().map(Layer::len).sum();
    let terms = exact::log2_terms(machine, &Clamp::none(), 1);
    terms.map_or(f64::INFINITY, |log2| TERM * log2.exp2() * entries as f64)
}

impl Tracking {
    pub(super) fn new(seed: u64) -> Self {
        let (tracker, stored) = (None, Value::Null);
        Self { seed, tracker, stored, looks: 0, looked: 0, found: None, spent: 0.0 }
    }

    /// Looks so far.
    pub(super) fn looks(&self) -> u64 {
        self.looks
    }

    /// $\ln Z$ and its standard error at the last look, if ladders gave it.
    pub(super) fn last_found(&self) -> Option<(f64, f64)> {
        self.found
    }

    /// Whether a look is due after an epoch. Training data that is learned by heart is noticed only by early looks, so
    /// those of epochs 1, 2, 4, 8 … may take half of what all looks may cost; the others are paid from the work done so far,
    /// that of epochs of `rows` rows with `sweeps` sweeps between updates, and are not too soon after the last.
    pub(super) fn is_due(
        &self,
        machine: &Machine,
        (epoch, epochs): (u64, u64),
        (rows, sweeps): (usize, usize),
    ) -> bool {
        // A sweep costs a quarter of what the rest of an update does.
        let learned = 0.25 * (3.0 + sweeps as f64) * rows as f64 * cost(machine, LEARNED_ROW);
        let (part, all) = (epoch as f64, epochs.max(1) as f64);
        let may_cost = |epochs: f64| (SHARE * epochs * learned).max(epochs / all * LEAST_WORK);
        // One look may have cost much, because the ladders had to be built anew.
        let usual = self.spent / self.looks.max(1) as f64;
        let next = self.spent + exact_cost(machine).min(usual);
        if epoch.is_power_of_two() && next <= 0.5 * may_cost(all) {
            return true;
        }
        epoch >= self.looked + epochs / APART && next <= may_cost(part)
    }

    /// $\ln Z$ of the machine as it is now; none if the ladders say nothing. `means` are those of the visible
    /// units in the training data.
    pub(super) fn look(
        &mut self,
        sampler: &Sampler,
        means: &[f64],
        chains: Option<&State>,
        epoch: u64,
    ) -> Result<Option<Normaliser>, Error> {
        let machine = sampler.machine();
        self.looks += 1;
        self.looked = epoch;
        self.found = None;
        let sweeps = (TRACKING_ROUNDS * 2 * Tracked::LADDERS * 4) as f64;
        let enumerated = exact_cost(machine);
        if enumerated <= EXACT * sweeps * cost(machine, REPLICA) {
            self.spent += enumerated;
            let log_z = exact::log_partition(machine)?;
            return Ok(Some(Normaliser { log_z, std_error: 0.0, tracked: None }));
        }
        let tracker = match &mut self.tracker {
            Some(tracker) => tracker,
            none => {
                let tracker = none.insert(Tracker::new(means.to_vec(), self.seed));
                tracker.import(machine, &self.stored.take())?;
                tracker
            }
        };
        let found = tracker.look(sampler, chains, TRACKING_ROUNDS)?;
        self.spent += found.sweeps as f64 * cost(machine, REPLICA);
        let Tracked { log_z, std_error, .. } = found;
        if !log_z.is_finite() || !std_error.is_finite() {
            return Ok(None);
        }
        self.found = Some((log_z, std_error));
        Ok(Some(Normaliser { log_z, std_error, tracked: Some(found) }))
    }

    pub(super) fn export(&self) -> Value {
        let tracker = self.tracker.as_ref().map_or_else(|| self.stored.clone(), Tracker::export);
        json!({
            "tracker": tracker, "looks": self.looks, "looked": self.looked, "found": self.found,
            "spent": self.spent,
        })
    }

    pub(super) fn import(&mut self, state: &Value) {
        self.stored = state["tracker"].clone();
        self.looks = state["looks"].as_u64().unwrap_or(0);
        self.looked = state["looked"].as_u64().unwrap_or(0);
        self.found = serde_json::from_value(state["found"].clone()).unwrap_or_default();
        self.spent = state["spent"].as_f64().unwrap_or(0.0);
    }
}

/// How $\ln Z$ is found anew when a training has ended: from both sides, for a small share of the work of
/// `rows` rows that were learned from.
pub(super) fn confirming(machine: &Machine, rows: f64) -> Settings {
    let sweeps = CONFIRMING * rows * cost(machine, LEARNED_ROW) / cost(machine, REPLICA);
    // Forward, backward, and the tempering that the way back starts from.
    let of = |sweeps: f64| sweeps / (3 * CONFIRMING_CHAINS) as f64;
    let (fewest, enough) = CONFIRMING_BETAS;
    let least = of(LEAST_WORK / cost(machine, REPLICA)).clamp(fewest, enough);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let betas = of(sweeps).clamp(least, MOST_BETAS) as usize;
    let (chains, method) = (Some(CONFIRMING_CHAINS), Some(Method::Sandwich));
    Settings { method, betas: Some(betas), chains, ..Settings::default() }
}

/// How far the mean of `chains` is from that of `model`, samples of the ladders in turn, in standard
/// deviations of the latter, and the standard error of that. None where the model does not vary.
pub(super) fn lag(chains: &[f64], model: &[f64]) -> Option<(f64, f64)> {
    let moments = |x: &[f64]| {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        (mean, x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0))
    };
    let n_ladders = Tracked::LADDERS.min(model.len());
    if chains.len() < 2 || n_ladders < 2 {
        return None;
    }
    let of_ladder = |ladder: usize| {
        let seen: Vec<f64> = model.iter().skip(ladder).step_by(n_ladders).copied().collect();
        seen.iter().sum::<f64>() / seen.len() as f64
    };
    let ladders: Vec<f64> = (0..n_ladders).map(of_ladder).collect();
    let ((model, spread), (chain, own)) = (moments(model), moments(chains));
    let scale = spread.max(own).sqrt();
    let error = (moments(&ladders).1 / n_ladders as f64 + own / chains.len() as f64).sqrt();
    (scale > 0.0).then(|| ((chain - model) / scale, error / scale))
}

/// The correlation of two lists of numbers; none where one of them does not vary.
pub(super) fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (p, q) = (mean(a), mean(b));
    let product = |x: &[f64], x0: f64, y: &[f64], y0: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - x0) * (y - y0)).sum()
    };
    let scale = (product(a, p, a, p) * product(b, q, b, q)).sqrt();
    (scale > 0.0).then(|| product(a, p, b, q) / scale)
}
