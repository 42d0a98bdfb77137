//! The observer that leaves a run behind: events, checkpoints, the best model, patience.
//!
//! Everything that decides how a run goes on (the best score so far, the time spent) is part of its
//! checkpoints, so a run that was stopped and resumed has the events, the best model and the bytes of
//! one that never stopped.

mod record;
mod trust;

pub use record::{Recorded, Recording, record};

use super::event::{Epoch, Event, PretrainingEpoch};
use super::idle::{self, Idle};
use super::model_file::{About, Model};
use super::store::RunStore;
use super::validated::{self, Validated};
use crate::error::Error;
use crate::evaluation::dbn;
use crate::evaluation::monitor::{Confirmation, Monitor};
use crate::evaluation::tracking::Watch;
use crate::evaluation::validation::annealed;
use crate::models::Body;
use crate::training::{
    Checkpoint, Guard, Learner, Measurement, Measurements, Metric, MetricName, Observer, On,
    Rollback, Stage, Steering, Stop, View,
};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use trust::DO_NOT_MIX;

/// The name under which a checkpoint holds what the recorder remembers.
pub(super) const RECORDER: &str = "recorder";

/// Measurements shown beside the progress, the first two that there are.
const SHOWN: [MetricName; 11] = [
    MetricName::ErrorRate(On::Valid),
    MetricName::AveragePrecision(On::Valid),
    MetricName::Loss(On::Valid),
    MetricName::Loss(On::Train),
    MetricName::LogLikelihood(On::Valid),
    MetricName::Bound(On::Valid),
    MetricName::LogLikelihood(On::Train),
    MetricName::Bound(On::Train),
    MetricName::PseudoLikelihood(On::Valid),
    MetricName::PseudoLikelihood(On::Train),
    MetricName::FreeEnergyGap,
];

/// Writes down what a training does, into a run directory or into memory.
pub struct Recorder<'w, 'd> {
    writer: &'w mut dyn RunStore,
    monitor: Monitor<'d>,
    guard: Guard,
    /// What the guard advises after the epoch that has ended.
    steering: Option<Steering>,
    confirmation: Option<Confirmation>,
    recording: Recording<'d>,
    validated: Validated,
    idle: Idle,
    /// What was measured last.
    measurements: Measurements,
    /// The model that it was measured of.
    good: Option<Model>,
    /// Why the model that all epochs led to is not good, if it is not.
    diverged: Option<Error>,
    /// Why the result is not what was tracked, if it is not.
    failed: Option<String>,
    /// The stage that the events speak of.
    stage: Option<Stage>,
    stage_began: bool,
    ended: bool,
    /// What is to be said to those who run the training.
    note: Option<String>,
    /// Seconds of earlier parts of the run.
    seconds_before: f64,
    started: Instant,
    saved: Instant,
    /// Time spent on measurements.
    measuring: Duration,
}

impl<'w, 'd> Recorder<'w, 'd> {
    /// Records into `writer`.
    pub fn new(writer: &'w mut dyn RunStore, recording: Recording<'d>) -> Self {
        let monitor = Monitor::new(recording.train, recording.valid, recording.about.seed);
        Self {
            writer,
            monitor: monitor.watching(recording.watch),
            guard: Guard::new(recording.guarding),
            steering: None,
            confirmation: None,
            recording,
            validated: Validated::default(),
            idle: Idle::default(),
            measurements: Measurements::default(),
            good: None,
            diverged: None,
            failed: None,
            stage: None,
            stage_began: false,
            ended: false,
            note: None,
            seconds_before: 0.0,
            started: Instant::now(),
            saved: Instant::now(),
            measuring: Duration::ZERO,
        }
    }

    /// The first events of a new run, and the checkpoint before its first step.
    fn begin(&mut self, learner: &dyn Learner) -> Result<(), Error> {
        let rows = self.recording.train.n_rows() as u64;
        self.writer.append(&Event::Started { rows })?;
        self.follow_stage(learner.stage())?;
        self.look_at_start(learner)?;
        let mut checkpoint = learner.checkpoint();
        checkpoint.observers.insert(RECORDER.to_owned(), self.state());
        self.save(learner, checkpoint)
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.started.elapsed().as_secs_f64()
    }

    fn state(&self) -> Value {
        let mut state = json!({ "ended": self.ended, "seconds": self.seconds() });
        self.validated.export(&mut state);
        self.idle.export(&mut state);
        if let Some(monitor) = self.monitor.export() {
            state["monitor"] = monitor;
            state["guard"] = self.guard.export();
        }
        state
    }

    fn about(&self, learner: &dyn Learner) -> About {
        let ((epochs, steps), progress) = (learner.before(), learner.progress());
        let (epoch, step) = (epochs + progress.epoch, steps + progress.step);
        About { step, epoch, ..self.recording.about.clone() }
    }

    fn save(&mut self, learner: &dyn Learner, checkpoint: Checkpoint) -> Result<(), Error> {
        self.writer.save_checkpoint(checkpoint, self.about(learner))?;
        self.saved = Instant::now();
        self.stage_began = false;
        Ok(())
    }

    /// Says once that another part of a network is learned from here on.
    fn follow_stage(&mut self, stage: Option<Stage>) -> Result<(), Error> {
        if stage == self.stage {
            return Ok(());
        }
        (self.stage, self.stage_began) = (stage, true);
        match stage {
            Some(stage @ (Stage::Layer(_) | Stage::Refine)) => {
                self.writer.append(&Event::stage(stage))
            }
            Some(Stage::Pretrain(_)) | None => Ok(()),
        }
    }

    /// The event of an epoch; what was measured after it.
    fn event(&mut self, view: &View<'_>) -> Result<(Event, Measurements), Error> {
        if let (Some(Stage::Pretrain(stage)), Some((layer, n))) = (view.stage(), view.described()) {
            let (epoch, seconds) = (view.epoch(), self.seconds());
            let told = PretrainingEpoch::new(&layer, (stage, n), epoch, seconds, &view.report);
            return Ok((Event::Pretraining(told), Measurements::default()));
        }
        let start = Instant::now();
        let measured = self.measure(view).and_then(|found| self.with_score(view, found));
        let found = finite(measured, view.report.step, view.epoch())?;
        self.measuring += start.elapsed();
        let (epochs, steps) = view.before();
        let mut told = Epoch::new(epochs + view.epoch(), self.seconds(), &view.report);
        told.step += steps;
        told.measuring_seconds = view.watched().map(|_| self.measuring.as_secs_f64());
        told.stage = view.stage().map(|stage| stage.to_string());
        told.measurements = found.clone();
        Ok((told.into(), found))
    }

    fn measure(&mut self, view: &View<'_>) -> Result<Vec<Measurement>, Error> {
        let mut found = self.monitor.measure(view)?;
        for metric in &mut self.recording.metrics {
            found.extend(metric.measure(view)?);
        }
        Ok(found)
    }

    /// What was measured, and where no score of the validation data was, a rough one.
    fn with_score(
        &self,
        view: &View<'_>,
        mut found: Vec<Measurement>,
    ) -> Result<Vec<Measurement>, Error> {
        let scored = found.iter().any(|m| validated::SCORES.contains(&m.name))
            || self.recording.watch == Watch::Likelihood;
        if let Some(watched) = view.watched()
            && self.recording.valid.is_some()
            && !found.is_empty()
            && !scored
        {
            let (machine, seed) = (watched.sampler.machine(), self.recording.about.seed);
            found.extend(annealed(machine, &found, seed)?);
        }
        Ok(found)
    }

    /// Keeps the best model; the reason to stop when the score has not risen for too long, or when no
    /// hidden unit says anything any more.
    fn judge(&mut self, view: &View<'_>, found: &Measurements) -> Result<Option<String>, Error> {
        let (epochs, steps) = view.before();
        let (epoch, step) = (epochs + view.epoch(), steps + view.report.step);
        let (writer, about) = (&mut self.writer, &self.recording.about);
        // Where the likelihood is watched, only looks at it can be compared.
        let counts = self.recording.watch != Watch::Likelihood
            || found.get(&MetricName::LogPartition).is_some();
        if counts && self.validated.is_best(found, epoch) {
            let about = About { step, epoch, ..about.clone() };
            self.validated.keep(writer.save_best(&Model { body: view.body(), about })?);
        }
        let n_hidden = view.watched().map_or(0, |w| idle::n_binary_hidden(w.sampler.machine()));
        if let Some(what) = self.idle.look(found, n_hidden, epoch) {
            writer.append(&Event::Warning { epoch, what: what.clone() })?;
            self.note = Some(what);
        }
        let Some(patience) = self.recording.patience else { return Ok(None) };
        Ok(self.validated.is_late(found, epoch, patience).or_else(|| self.idle.is_hopeless(epoch)))
    }
}

/// What was measured, if all of it is finite; else the run has diverged: the model that it was measured
/// of is not one to go on from.
fn finite(
    found: Result<Vec<Measurement>, Error>,
    step: u64,
    epoch: u64,
) -> Result<Measurements, Error> {
    let diverged = |what: String| Error::Diverged { step, epoch, what };
    let found: Measurements = match found {
        Err(error @ (Error::Overflow { .. } | Error::Diverges { .. })) => {
            return Err(diverged(error.to_string()));
        }
        found => found?.into(),
    };
    match found.not_finite() {
        Some((name, value)) => Err(diverged(format!("`{name}` is {value}"))),
        None => Ok(found),
    }
}

impl Observer for Recorder<'_, '_> {
    fn updated(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        self.follow_stage(view.stage())?;
        if let Some(Rollback { acceptance, rate_factor }) = view.report.rollback {
            let (step, seconds) = (view.before().1 + view.report.step, self.seconds());
            self.writer.append(&Event::RolledBack { step, acceptance, rate_factor, seconds })?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn epoch_ended(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        let (event, found) = self.event(view)?;
        self.writer.append(&event)?;
        let failed = self.ask_guard(view, &found)?;
        let late = self.judge(view, &found)?.or(failed).or_else(|| self.writer.stop());
        if !found.is_empty() {
            self.measurements = found;
            let ((epochs, steps), body) = (view.before(), view.body());
            let (epoch, step) = (epochs + view.epoch(), steps + view.report.step);
            let about = About { step, epoch, ..self.recording.about.clone() };
            self.good = Some(Model { body, about });
        }
        Ok(late.map_or(ControlFlow::Continue(()), ControlFlow::Break))
    }

    fn wants_checkpoint(&mut self, _view: &View<'_>) -> bool {
        let interval = Duration::try_from_secs_f64(self.recording.checkpoint_seconds);
        self.stage_began || self.saved.elapsed() >= interval.unwrap_or(Duration::MAX)
    }

    fn keep(&mut self, learner: &dyn Learner, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.save(learner, checkpoint.clone())
    }

    fn ended(
        &mut self,
        learner: &dyn Learner,
        stop: &Stop,
        last: &dyn Fn() -> Checkpoint,
    ) -> Result<(), Error> {
        if matches!(stop, Stop::Finished | Stop::Observer(_)) {
            let failed = self.confirm(learner)?;
            self.failed = failed.map(|reason| format!("{DO_NOT_MIX}: {reason}"));
        }
        let seconds = self.seconds();
        match stop {
            Stop::Finished if self.failed.is_some() => {
                let reason = self.failed.clone().unwrap_or_default();
                self.writer.append(&Event::Stopped { reason, seconds })?;
            }
            Stop::Finished => {
                let mut measurements = Measurements::default();
                if learner.stage().is_some()
                    && let Body::Dbn(dbn) = learner.body()
                {
                    let found = dbn::final_bounds(&dbn, self.recording.train);
                    let progress = learner.progress();
                    measurements = match finite(found, progress.step, progress.epoch) {
                        Err(error @ Error::Diverged { .. }) => {
                            let reason = error.to_string();
                            self.diverged = Some(error);
                            return self.writer.append(&Event::Diverged { reason, seconds });
                        }
                        found => found?,
                    };
                    self.measurements = measurements.clone();
                }
                self.writer.append(&Event::Finished { seconds, measurements })?;
            }
            Stop::Observer(reason) => {
                self.writer.append(&Event::Stopped { reason: reason.clone(), seconds })?;
            }
            Stop::Diverged(error) => {
                // The checkpoint before it is the last whose numbers are all good.
                return self.writer.append(&Event::Diverged { reason: error.to_string(), seconds });
            }
            Stop::Cancelled => {}
        }
        // Nothing can diverge any more: its room goes to the checkpoint.
        self.good = None;
        self.ended = *stop != Stop::Cancelled;
        let mut checkpoint = last();
        checkpoint.observers.insert(RECORDER.to_owned(), self.state());
        self.save(learner, checkpoint)
    }

    fn note(&mut self) -> Option<String> {
        self.note.take()
    }

    fn steering(&mut self) -> Option<Steering> {
        self.steering.take()
    }

    fn summary(&self) -> String {
        let shown = SHOWN.iter().filter_map(|name| self.measurements.get(name));
        let words = shown.take(2).map(|m| match m.std_error {
            Some(error) if !matches!(m.name, MetricName::PseudoLikelihood(_)) => {
                format!("{} {:.3} ± {error:.3}", m.name, m.value)
            }
            _ => format!("{} {:.3}", m.name, m.value),
        });
        words.collect::<Vec<_>>().join("  ")
    }

    fn export(&self) -> Option<(&'static str, Value)> {
        Some((RECORDER, self.state()))
    }

    fn import(&mut self, state: &Value) {
        self.validated = Validated::import(state);
        self.idle = Idle::import(state);
        self.seconds_before = state["seconds"].as_f64().unwrap_or(0.0);
        if let Some(monitor) = state.get("monitor") {
            self.monitor.import(monitor);
            self.guard.import(&state["guard"]);
        }
    }
}
