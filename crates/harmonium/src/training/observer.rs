//! Who may watch a training: metrics, early stopping, checkpoints.

use super::driver::Stop;
use super::guard::Steering;
use super::learner::{Checkpoint, Learner, Stage, StepReport, Watched};
use super::metric::{Measurements, Metric};
use crate::error::Error;
use crate::machine::Machine;
use crate::models::Body;
use crate::optim::Progress;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// What observers see: the learner after a step, and what the step did.
pub struct View<'a> {
    pub(super) learner: &'a dyn Learner,
    /// The last update.
    pub report: StepReport,
}

impl<'a> View<'a> {
    /// Where the stage under way is.
    pub fn progress(&self) -> Progress {
        self.learner.progress()
    }

    /// Epochs of the stage that are finished.
    pub fn epoch(&self) -> u64 {
        self.progress().epoch
    }

    /// Epochs that the stage will have.
    pub fn epochs(&self) -> u64 {
        let Progress { n_steps, .. } = self.progress();
        n_steps / self.progress().per_epoch.max(1)
    }

    /// Whether the step was the last of its epoch.
    pub fn ends_epoch(&self) -> bool {
        let progress = self.progress();
        progress.step == progress.epoch * progress.per_epoch
    }

    /// Which stage is under way.
    pub fn stage(&self) -> Option<Stage> {
        self.learner.stage()
    }

    /// The hidden layer that the stage is about, and how many stages there are.
    pub fn described(&self) -> Option<(String, usize)> {
        self.learner.described()
    }

    /// Epochs and updates of all stages before this one.
    pub fn before(&self) -> (u64, u64) {
        self.learner.before()
    }

    /// The model as it is now.
    pub fn body(&self) -> Body {
        self.learner.body()
    }

    /// The machine that can be measured, if the stage learns one.
    pub fn watched(&self) -> Option<Watched<'a>> {
        self.learner.watched()
    }

    /// The machine that can be measured.
    ///
    /// # Errors
    ///
    /// If the stage learns several at once.
    pub fn machine(&self) -> Result<&'a Machine, Error> {
        self.watched().map(|w| w.sampler.machine()).ok_or_else(|| Error::Topology {
            model: "a metric of a machine",
            expected: "a stage that learns one machine",
            found: "this stage learns several at once".into(),
        })
    }

    /// Everything that is needed to go on from here, without the observers' own state.
    pub fn checkpoint(&self) -> Checkpoint {
        self.learner.checkpoint()
    }
}

/// Watches a training and may end it with a reason. It never changes it, but may advise the learner.
///
/// Every observer sees every step, also one after which another observer ends the training.
pub trait Observer {
    /// Called after each update.
    ///
    /// # Errors
    ///
    /// If what it does fails, for example for want of disk space. The training ends.
    fn updated(&mut self, _view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        Ok(ControlFlow::Continue(()))
    }

    /// Called after each epoch, once all observers have seen the update.
    ///
    /// # Errors
    ///
    /// As [`Observer::updated`].
    fn epoch_ended(&mut self, _view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        Ok(ControlFlow::Continue(()))
    }

    /// Whether it wants a checkpoint now. Asked once all observers have seen the step.
    fn wants_checkpoint(&mut self, _view: &View<'_>) -> bool {
        false
    }

    /// Takes the checkpoint it wanted, which holds the state of all observers.
    ///
    /// # Errors
    ///
    /// As [`Observer::updated`].
    fn keep(&mut self, _learner: &dyn Learner, _checkpoint: &Checkpoint) -> Result<(), Error> {
        Ok(())
    }

    /// Called when the training has ended; `last` makes the checkpoint of where it ended.
    ///
    /// # Errors
    ///
    /// As [`Observer::updated`].
    fn ended(
        &mut self,
        _learner: &dyn Learner,
        _stop: &Stop,
        _last: &dyn Fn() -> Checkpoint,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// What those who run the training should hear now, told once.
    fn note(&mut self) -> Option<String> {
        None
    }

    /// How it advises the learner to go on, asked after an epoch that all observers have seen.
    fn steering(&mut self) -> Option<Steering> {
        None
    }

    /// What it knows by now in a few words, shown beside the progress.
    fn summary(&self) -> String {
        String::new()
    }

    /// Its name and what it remembers, for the checkpoint.
    fn export(&self) -> Option<(&'static str, Value)> {
        None
    }

    /// Takes up what [`Observer::export`] gave.
    fn import(&mut self, _state: &Value) {}
}

/// What was measured at the end of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Epochs finished.
    pub epoch: u64,
    /// Updates done.
    pub step: u64,
    /// All measurements.
    pub measurements: Measurements,
}

/// Takes measurements every few epochs and keeps them.
pub struct History<'m> {
    every: u64,
    metrics: Vec<Box<dyn Metric + 'm>>,
    records: Vec<Record>,
}

impl<'m> History<'m> {
    /// Measures after every `every` epochs (0 counts as 1).
    pub fn new(every: u64, metrics: Vec<Box<dyn Metric + 'm>>) -> Self {
        Self { every: every.max(1), metrics, records: Vec::new() }
    }

    /// What was measured so far.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}

impl Observer for History<'_> {
    fn epoch_ended(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        if view.epoch().is_multiple_of(self.every) {
            let mut measurements = Vec::new();
            for metric in &mut self.metrics {
                measurements.extend(metric.measure(view)?);
            }
            let (epoch, step) = (view.epoch(), view.report.step);
            self.records.push(Record { epoch, step, measurements: measurements.into() });
        }
        Ok(ControlFlow::Continue(()))
    }

    fn export(&self) -> Option<(&'static str, Value)> {
        Some(("history", json!(self.records)))
    }

    fn import(&mut self, state: &Value) {
        self.records = serde_json::from_value(state.clone()).unwrap_or_default();
    }
}

/// The best value of a score so far, and how long ago it was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Best {
    /// The value and the epoch it was reached in.
    found: Option<(f64, u64)>,
}

impl Best {
    /// The value and its epoch.
    pub fn found(&self) -> Option<(f64, u64)> {
        self.found
    }

    /// Takes up a value that was stored.
    pub(crate) fn set(&mut self, found: Option<(f64, u64)>) {
        self.found = found;
    }

    /// Looks at the value of an epoch: whether it is the best so far. A rise within rounding counts
    /// as none: recentering alone moves the last digits.
    pub(crate) fn look(&mut self, value: f64, epoch: u64) -> bool {
        let rises = self.found.is_none_or(|(best, _)| value > best + 1e-12 * best.abs());
        if rises && value.is_finite() {
            self.found = Some((value, epoch));
        }
        rises && value.is_finite()
    }

    /// The reason to stop, if the best value is `patience` epochs old.
    pub(crate) fn is_late(&self, name: &str, epoch: u64, patience: u64) -> Option<String> {
        let (best, of) = self.found?;
        (epoch.saturating_sub(of) >= patience)
            .then(|| format!("{name} has not risen above {best:.4} since epoch {of}"))
    }
}

/// Ends a training once a metric has not risen for a number of epochs.
pub struct EarlyStop<M> {
    metric: M,
    patience: u64,
    best: Best,
}

impl<M: Metric> EarlyStop<M> {
    /// Watches the first measurement of `metric`; higher is better.
    pub fn new(metric: M, patience: u64) -> Self {
        Self { metric, patience, best: Best::default() }
    }

    /// The epoch with the highest value so far, and the value.
    pub fn best(&self) -> (u64, f64) {
        self.best.found().map_or((0, f64::NEG_INFINITY), |(value, epoch)| (epoch, value))
    }
}

impl<M: Metric> Observer for EarlyStop<M> {
    fn epoch_ended(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        let measured = self.metric.measure(view)?;
        let Some(first) = measured.first() else { return Ok(ControlFlow::Continue(())) };
        if self.best.look(first.value, view.epoch()) {
            return Ok(ControlFlow::Continue(()));
        }
        let late = self.best.is_late(first.name.as_str(), view.epoch(), self.patience);
        Ok(late.map_or(ControlFlow::Continue(()), ControlFlow::Break))
    }

    fn export(&self) -> Option<(&'static str, Value)> {
        Some(("early-stop", json!({ "best": self.best.found() })))
    }

    fn import(&mut self, state: &Value) {
        self.best.set(serde_json::from_value(state["best"].clone()).unwrap_or_default());
    }
}

/// Calls a function after every few epochs: the hook for what a caller wants to do itself.
pub struct Every<F> {
    epochs: u64,
    call: F,
}

impl<F: FnMut(&View<'_>) -> ControlFlow<String>> Every<F> {
    /// Calls `call` after every `epochs` epochs (0 counts as 1).
    pub fn new(epochs: u64, call: F) -> Self {
        Self { epochs: epochs.max(1), call }
    }
}

impl<F: FnMut(&View<'_>) -> ControlFlow<String>> Observer for Every<F> {
    fn epoch_ended(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        if view.epoch().is_multiple_of(self.epochs) {
            return Ok((self.call)(view));
        }
        Ok(ControlFlow::Continue(()))
    }
}
