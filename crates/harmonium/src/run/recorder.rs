//! The observer that leaves a run directory behind: events, checkpoints, the best model, patience.
//!
//! Everything that decides how a run goes on (the best score so far, the time spent) is part of its
//! checkpoints, so a run that was stopped and resumed has the events, the best model and the bytes of
//! one that never stopped.

use super::checkpoint::SavedCheckpoint;
use super::directory::part::BEST;
use super::event::{Epoch, Event, PretrainingEpoch};
use super::model_file::{About, Model};
use super::writer::RunWriter;
use crate::error::Error;
use crate::evaluation::dbn;
use crate::evaluation::monitor::Monitor;
use crate::models::Body;
use crate::progress::Listener;
use crate::training::{
    Best, Checkpoint, Learner, Measurement, Measurements, Metric, MetricName, Observer, On,
    Rollback, Stage, Stop, View, drive,
};
use harmonium_data::Dataset;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The name under which a checkpoint holds what the recorder remembers.
pub(super) const RECORDER: &str = "recorder";

/// Measurements shown beside the progress, the first two that there are.
const SHOWN: [MetricName; 5] = [
    MetricName::LogLikelihood(On::Valid),
    MetricName::LogLikelihood(On::Train),
    MetricName::PseudoLikelihood(On::Valid),
    MetricName::PseudoLikelihood(On::Train),
    MetricName::FreeEnergyGap,
];

/// Scores by which the best model is chosen, the most telling first.
const SCORES: [MetricName; 2] =
    [MetricName::LogLikelihood(On::Valid), MetricName::PseudoLikelihood(On::Valid)];

/// What a run is recorded with.
pub struct Recording<'d> {
    /// Where the model comes from; epoch and step are filled in.
    pub about: About,
    /// The data that is learned from.
    pub train: &'d Dataset,
    /// Data to watch the training with.
    pub valid: Option<&'d Dataset>,
    /// Epochs without a better score on the validation data after which training stops.
    pub patience: Option<u64>,
    /// Time between checkpoints.
    pub checkpoint_seconds: f64,
}

/// How a recorded run ended.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Why.
    pub stop: Stop,
    /// The model it leaves, the last good one.
    pub model: Model,
    /// Time of this part of the run.
    pub seconds: f64,
    /// What was measured last.
    pub measurements: Measurements,
    /// The epoch with the best score on the validation data.
    pub best_epoch: Option<u64>,
}

/// Writes what a training does into its run directory.
pub struct Recorder<'w, 'd> {
    writer: &'w mut RunWriter,
    monitor: Monitor<'d>,
    recording: Recording<'d>,
    best: Best,
    /// The checksum of the file of the best model.
    best_checksum: Option<String>,
    /// What was measured last.
    measurements: Measurements,
    /// The model that it was measured of.
    good: Option<Model>,
    /// Why the model that all epochs led to is not good, if it is not.
    diverged: Option<Error>,
    /// The stage that the events speak of.
    stage: Option<Stage>,
    stage_began: bool,
    ended: bool,
    /// Seconds of earlier parts of the run.
    seconds_before: f64,
    started: Instant,
    saved: Instant,
    /// Time spent on measurements.
    measuring: Duration,
}

impl<'w, 'd> Recorder<'w, 'd> {
    /// Records into `writer`.
    pub fn new(writer: &'w mut RunWriter, recording: Recording<'d>) -> Self {
        let monitor = Monitor::new(recording.train, recording.valid, recording.about.seed);
        Self {
            writer,
            monitor,
            recording,
            best: Best::default(),
            best_checksum: None,
            measurements: Measurements::default(),
            good: None,
            diverged: None,
            stage: None,
            stage_began: false,
            ended: false,
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
        let mut checkpoint = learner.checkpoint();
        checkpoint.observers.insert(RECORDER.to_owned(), self.state());
        self.save(learner, checkpoint)
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.started.elapsed().as_secs_f64()
    }

    fn state(&self) -> Value {
        json!({
            "ended": self.ended,
            "best": self.best.found().map(|b| b.0),
            "best_epoch": self.best.found().map(|b| b.1),
            "best_checksum": self.best_checksum,
            "seconds": self.seconds(),
        })
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
        let found = finite(self.monitor.measure(view), view.report.step, view.epoch())?;
        self.measuring += start.elapsed();
        let (epochs, steps) = view.before();
        let mut told = Epoch::new(epochs + view.epoch(), self.seconds(), &view.report);
        told.step += steps;
        told.measuring_seconds = view.watched().map(|_| self.measuring.as_secs_f64());
        told.stage = view.stage().map(|stage| stage.to_string());
        told.measurements = found.clone();
        Ok((told.into(), found))
    }

    /// What is wrong with the file of the best model that the checkpoint knows of. A later one is as it
    /// should be: it was written after the checkpoint, and will be written again.
    fn lost_best(&self) -> Option<String> {
        let (score, epoch) = self.best.found()?;
        let wrong = match self.writer.directory().read_best() {
            Ok(None) => "is missing".to_owned(),
            Ok(Some((model, _))) if model.about.epoch < epoch => {
                format!("is of epoch {}", model.about.epoch)
            }
            Ok(Some((model, checksum))) => {
                let known = self.best_checksum.as_ref().filter(|_| model.about.epoch == epoch);
                known.filter(|known| **known != checksum)?;
                "has changed since it was written".to_owned()
            }
            Err(error) => format!("cannot be read ({error})"),
        };
        Some(format!(
            "the best model so far, of epoch {epoch} with a score of {score:.4}, is lost: `{BEST}` {wrong}; \
             training goes on and keeps only a better one"
        ))
    }

    /// Keeps the best model; the reason to stop when the score has not risen for too long.
    fn follow_best(
        &mut self,
        view: &View<'_>,
        found: &Measurements,
    ) -> Result<Option<String>, Error> {
        let Some(score) = SCORES.iter().find_map(|name| found.get(name)) else { return Ok(None) };
        if self.best.look(score.value, view.epoch()) {
            let (epoch, step) = (view.epoch(), view.report.step);
            let about = About { step, epoch, ..self.recording.about.clone() };
            let checksum = self.writer.save_best(&Model { body: view.body(), about })?;
            self.best_checksum = Some(checksum);
            return Ok(None);
        }
        let patience = self.recording.patience;
        let late = |patience| self.best.is_late(score.name.as_str(), view.epoch(), patience);
        Ok(patience.and_then(late))
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
        Err(error @ Error::Overflow { .. }) => return Err(diverged(error.to_string())),
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
        let late = self.follow_best(view, &found)?;
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
        let seconds = self.seconds();
        match stop {
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

    fn summary(&self) -> String {
        let shown = SHOWN.iter().filter_map(|name| Some((name, self.measurements.value(name)?)));
        let words = shown.take(2).map(|(name, value)| format!("{name} {value:.3}"));
        words.collect::<Vec<_>>().join("  ")
    }

    fn export(&self) -> Option<(&'static str, Value)> {
        Some((RECORDER, self.state()))
    }

    fn import(&mut self, state: &Value) {
        let best = state["best"].as_f64().zip(state["best_epoch"].as_u64());
        self.best.set(best);
        self.best_checksum = state["best_checksum"].as_str().map(str::to_owned);
        self.seconds_before = state["seconds"].as_f64().unwrap_or(0.0);
    }
}

impl RunWriter {
    /// Trains what `learner` learns, from its start or from a checkpoint, and records it. The model is
    /// in the directory afterwards unless the training was cancelled.
    ///
    /// # Errors
    ///
    /// If a step fails, or the system refuses to write.
    pub fn record(
        &mut self,
        learner: &mut dyn Learner,
        recording: Recording<'_>,
        from: Option<&SavedCheckpoint>,
        listener: &mut dyn Listener,
    ) -> Result<Recorded, Error> {
        let mut recorder = Recorder::new(self, recording);
        match from.map(|saved| &saved.checkpoint) {
            None => recorder.begin(&*learner)?,
            Some(checkpoint) => {
                recorder.stage = checkpoint.stage;
                if let Some(state) = checkpoint.observers.get(RECORDER) {
                    recorder.import(state);
                }
                if let Some(lost) = recorder.lost_best() {
                    listener.note(&lost);
                }
            }
        }
        let stop = drive(learner, &mut [&mut recorder], listener)?;
        let seconds = recorder.started.elapsed().as_secs_f64();
        let stop = recorder.diverged.take().map_or(stop, Stop::Diverged);
        let best_epoch = recorder.best.found().map(|b| b.1);
        let mut model = Model { body: learner.body(), about: recorder.about(&*learner) };
        let (measurements, good) = (recorder.measurements, recorder.good);
        if let Stop::Diverged(_) = stop {
            // The checkpoint before the first step is there at least.
            let saved = || Ok(self.directory().last_checkpoint()?.map(|saved| saved.model()));
            let good = good.map_or_else(saved, |good| Ok::<_, Error>(Some(good)))?;
            model = good.unwrap_or(model);
        }
        if stop != Stop::Cancelled {
            self.finish(&model)?;
        }
        Ok(Recorded { stop, model, seconds, measurements, best_epoch })
    }
}

impl SavedCheckpoint {
    /// Whether only the model was left to be written when this checkpoint was.
    pub fn has_ended(&self) -> bool {
        let state = self.checkpoint.observers.get(RECORDER);
        state.is_some_and(|state| state["ended"] == Value::Bool(true))
    }
}
