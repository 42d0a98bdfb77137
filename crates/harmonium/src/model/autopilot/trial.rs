//! One trial: settings, a training that is watched, and what came of it.

use super::Autopilot;
use super::candidates::MOST_SUMMED;
use super::folds::Fold;
use crate::error::Error;
use crate::evaluation::monitor::Monitor;
use crate::evaluation::tracking::Watch;
use crate::machine::Machine;
use crate::model::train::Training;
use crate::models::Body;
use crate::optim::Schedule;
use crate::progress::{Listener, Work};
use crate::training::{
    Best, Guard, Learner, Measurements, Metric, MetricName, Observer, On, Plan, Rule, Steering,
    Stop, View, drive,
};
use harmonium_data::Dataset;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// Settings that were tried, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The round, from 1.
    pub round: usize,
    /// Hidden units of each layer.
    pub hidden: Vec<usize>,
    /// The learning rate before decay.
    pub learning_rate: f64,
    /// Where the model side of the gradient comes from.
    #[serde(default = "usual_rule")]
    pub rule: Rule,
    /// Sweeps between updates.
    pub k: Schedule,
    /// Weight decay.
    pub l2: f64,
    /// Passes over the data.
    pub epochs: u64,
    /// The best likelihood of the validation data; none if the trial diverged or was never settled.
    pub score: Option<f64>,
    /// Its standard error, that of the rows included.
    pub std_error: Option<f64>,
    /// Its lower end, with $\ln Z$ found anew: what trials are ranked by.
    #[serde(default)]
    pub lower: Option<f64>,
    /// The epoch it was reached in.
    pub best_epoch: Option<u64>,
    /// Whether the guard had something to say against the end of it.
    pub failing: bool,
}

impl Trial {
    /// Whether it is about the same settings and length.
    pub(super) fn is_about(&self, other: &Self) -> bool {
        let key = |t: &Self| (t.round, t.hidden.clone(), t.rule, t.k.clone(), t.epochs);
        key(self) == key(other) && (self.learning_rate, self.l2) == (other.learning_rate, other.l2)
    }

    /// The same settings, without what came of them.
    pub(super) fn untried(&self) -> Self {
        let (score, std_error, lower, best_epoch, failing) = (None, None, None, None, false);
        Self { score, std_error, lower, best_epoch, failing, ..self.clone() }
    }

    /// What has to be given to train it again, by the names that settings have everywhere; all others are those of the search.
    pub fn settings(&self) -> Vec<(&'static str, Value)> {
        let mut settings = vec![
            ("hidden", json!(self.hidden)),
            ("epochs", json!(self.epochs)),
            ("learning-rate", json!(self.learning_rate)),
            ("k", json!(self.k)),
            ("l2", json!(self.l2)),
        ];
        // The one rule that a search may choose.
        if self.rule == Rule::Exact {
            settings.push(("rule", json!(self.rule)));
        }
        settings
    }

    /// The plan that trains it.
    pub fn plan(&self, base: &Plan) -> Plan {
        Plan {
            learning_rate: self.learning_rate,
            rule: self.rule,
            k: self.k.clone(),
            l2: self.l2,
            epochs: self.epochs,
            ..base.clone()
        }
    }
}

/// The rule of trials that were stored without one.
fn usual_rule() -> Rule {
    Plan::default().rule
}

impl Autopilot<'_> {
    /// Trains a candidate and scores it.
    pub(super) fn score(
        &self,
        mut trial: Trial,
        folds: &[Fold],
        work: (u64, u64),
        listener: &mut dyn Listener,
    ) -> Result<Made, Error> {
        if !folds.is_empty() {
            return self.score_folds(trial, folds, work, listener);
        }
        let plan = trial.plan(&self.plan);
        let mut watching = Watching::of(self.train, self.valid, &plan);
        let training = Training::new((self.shape)(&trial.hidden)?, self.train, &plan);
        let mut learner = training.learner()?;
        let diverged = watching.watch(learner.as_mut(), work, listener)?;
        let (mut machine, mut is_sure) = (None, false);
        if let Some(mut found) = watching.found.take().filter(|_| !diverged) {
            let lower = watching.second_look(&mut found, learner.as_ref())?;
            (trial.score, trial.std_error) = (Some(found.score), found.std_error);
            (trial.lower, trial.best_epoch) = (Some(lower), Some(found.epoch));
            (machine, is_sure) = (Some(found.machine), found.is_exact);
        }
        trial.failing = watching.guard.failing().is_some();
        Ok(Made { trial, machine, is_sure })
    }

    /// The likelihoods of validation rows while others are learned from: at which epochs, how high, with which errors; nothing if
    /// the training diverged.
    pub(super) fn curve(
        &self,
        trial: &Trial,
        (train, valid): (&Dataset, &Dataset),
        plan: &Plan,
        work: (u64, u64),
        listener: &mut dyn Listener,
    ) -> Result<Option<Vec<Looked>>, Error> {
        let mut watching = Watching::of(train, valid, plan);
        let training = Training::new((self.shape)(&trial.hidden)?, train, plan);
        let mut learner = training.learner()?;
        let diverged = watching.watch(learner.as_mut(), work, listener)?;
        Ok((!diverged).then_some(watching.curve))
    }
}

/// An epoch, the likelihood of the validation rows after it, and its standard error.
type Looked = (u64, f64, Option<f64>);

/// What an update of a trial costs, beside one of another: products with the weights, for the data and for each
/// sweep; or the states of the hidden units, where they are summed over.
pub(super) fn cost(trial: &Trial) -> u64 {
    let units: usize = trial.hidden.iter().sum();
    if trial.rule == Rule::Exact {
        return 20 + (1 << units.min(MOST_SUMMED));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few sweeps")]
    let sweeps = trial.k.range().1.clamp(1.0, 1e6) as u64;
    (units as u64 + 20) * (2 + sweeps)
}

pub(super) fn value(trial: &Trial) -> f64 {
    trial.lower.unwrap_or(f64::NEG_INFINITY)
}

/// A trial that was made.
pub(super) struct Made {
    pub(super) trial: Trial,
    /// Its best model, where it was made just now.
    pub(super) machine: Option<Machine>,
    /// Whether its lower end is exact, or was looked at thoroughly.
    pub(super) is_sure: bool,
}

/// The best look at a trial.
struct Found {
    score: f64,
    std_error: Option<f64>,
    lower: f64,
    /// Whether $\ln Z$ was enumerated.
    is_exact: bool,
    epoch: u64,
    machine: Machine,
}

/// Scores a trial while it learns.
struct Watching<'d> {
    monitor: Monitor<'d>,
    guard: Guard,
    best: Best,
    found: Option<Found>,
    curve: Vec<Looked>,
    steering: Option<Steering>,
}

impl Observer for Watching<'_> {
    fn epoch_ended(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        let found: Measurements = self.monitor.measure(view)?.into();
        if let Some((name, value)) = found.not_finite() {
            let what = format!("`{name}` is {value}");
            return Err(Error::Diverged { step: view.report.step, epoch: view.epoch(), what });
        }
        let scores = [MetricName::LogLikelihood(On::Valid), MetricName::Bound(On::Valid)];
        let log_z = found.get(&MetricName::LogPartition);
        let score = scores.iter().find_map(|name| found.get(name));
        if let (Some(log_z), Some(score)) = (log_z, score) {
            let lower = found.lower_end(&score.name).unwrap_or(score.value);
            self.curve.push((view.epoch(), score.value, score.std_error));
            if self.best.look(lower, view.epoch()) {
                self.found = Some(Found {
                    score: score.value,
                    std_error: score.std_error,
                    lower,
                    is_exact: log_z.std_error == Some(0.0),
                    epoch: view.epoch(),
                    machine: view.machine()?.clone(),
                });
            }
        }
        self.steering = self.guard.look(&found).and_then(|advice| advice.steering);
        Ok(ControlFlow::Continue(()))
    }

    fn steering(&mut self) -> Option<Steering> {
        self.steering.take()
    }
}

impl<'d> Watching<'d> {
    fn of(train: &'d Dataset, valid: &'d Dataset, plan: &Plan) -> Self {
        Self {
            monitor: Monitor::new(train, Some(valid), plan.seed).watching(Watch::Likelihood),
            guard: Guard::new(plan.guarding()),
            best: Best::default(),
            found: None,
            curve: Vec::new(),
            steering: None,
        }
    }

    /// Lets a trial learn to its end: whether it diverged.
    fn watch(
        &mut self,
        learner: &mut (dyn Learner + '_),
        (spent, total): (u64, u64),
        listener: &mut dyn Listener,
    ) -> Result<bool, Error> {
        let mut heard = Heard { listener, spent, total, cancelled: false };
        let stop = drive(learner, &mut [self], &mut heard)?;
        if stop == Stop::Cancelled || heard.cancelled {
            let what = "the search for settings".into();
            return Err(Error::Cancelled { what, done: spent, total });
        }
        Ok(matches!(stop, Stop::Diverged(_)))
    }

    /// The lower end of a trial that was tracked, by a second look at its best model and at its last; `found` is then the
    /// better of the two.
    fn second_look(&self, found: &mut Found, learner: &dyn Learner) -> Result<f64, Error> {
        if found.is_exact {
            return Ok(found.lower);
        }
        let epoch = learner.progress().epoch;
        let again = self.monitor.look_again(&found.machine, epoch)?;
        let lower = again.lower_end((found.score, found.lower));
        let Body::Machine(machine) = learner.body() else { return Ok(lower) };
        if found.epoch == epoch {
            return Ok(lower);
        }
        let (end, other) = self.monitor.look_again(&machine, epoch)?.likelihood();
        if end <= lower {
            return Ok(lower);
        }
        (found.score, found.epoch, found.machine) = (0.5 * (end + other), epoch, machine);
        Ok(end)
    }
}

/// Tells of the search instead of the trial.
struct Heard<'a> {
    listener: &'a mut dyn Listener,
    spent: u64,
    total: u64,
    cancelled: bool,
}

impl Listener for Heard<'_> {
    fn at(&mut self, work: Work<'_>) {
        let detail = format!("{} of {} epochs  {}", work.done, work.total, work.detail);
        let (done, total) = (self.spent, self.total);
        self.listener.at(Work { what: "trials", done, total, detail: &detail });
    }

    fn cancelled(&mut self) -> bool {
        self.cancelled |= self.listener.cancelled();
        self.cancelled
    }
}
