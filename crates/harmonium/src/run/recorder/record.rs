//! A training and the run that it leaves: what is recorded, and how it ended.

use super::{RECORDER, Recorder};
use crate::error::Error;
use crate::evaluation::monitor::Confirmation;
use crate::evaluation::tracking::Watch;
use crate::progress::Listener;
use crate::run::checkpoint::SavedCheckpoint;
use crate::run::model_file::{About, Model};
use crate::run::store::RunStore;
use crate::run::validated::{BestScore, Validated};
use crate::run::writer::RunWriter;
use crate::training::{Guarding, Learner, Measurements, Metric, Observer as _, Stop, drive};
use harmonium_data::Dataset;
use serde_json::Value;

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
    /// What is measured.
    pub watch: Watch,
    /// What follows if the training fails.
    pub guarding: Guarding,
    /// What is measured besides: of a net its errors.
    pub metrics: Vec<Box<dyn Metric + 'd>>,
}

/// How a recorded run ended.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Why.
    pub stop: Stop,
    /// The model it leaves: the best by its score on the validation data, else the last good one.
    pub model: Model,
    /// Epochs that were learned, those after the model's own included.
    pub epochs: u64,
    /// Time of this part of the run.
    pub seconds: f64,
    /// What was measured last.
    pub measurements: Measurements,
    /// The best score on the validation data: its name, its value and its epoch.
    pub best: Option<BestScore>,
    /// $\ln Z$ as it was tracked, and anew at the end, if it was tracked.
    pub confirmation: Option<Confirmation>,
}

/// Trains what `learner` learns, from its start or from a checkpoint, and records it in `store`.
///
/// # Errors
///
/// If a step fails, or the store does.
pub fn record(
    store: &mut dyn RunStore,
    learner: &mut dyn Learner,
    recording: Recording<'_>,
    from: Option<&SavedCheckpoint>,
    listener: &mut dyn Listener,
) -> Result<Recorded, Error> {
    let mut recorder = Recorder::new(store, recording);
    match from.map(|saved| &saved.checkpoint) {
        None => recorder.begin(&*learner)?,
        Some(checkpoint) => {
            recorder.stage = checkpoint.stage;
            if let Some(state) = checkpoint.observers.get(RECORDER) {
                recorder.import(state);
            }
            if let Some(lost) = recorder.validated.lost(recorder.writer) {
                listener.note(&lost);
            }
        }
    }
    let stop = drive(learner, &mut [&mut recorder], listener)?;
    let seconds = recorder.started.elapsed().as_secs_f64();
    let stop = recorder.diverged.take().map_or(stop, Stop::Diverged);
    let stop = match (stop, recorder.failed.take()) {
        (Stop::Finished, Some(reason)) => Stop::Observer(reason),
        (stop, _) => stop,
    };
    let validated = std::mem::take(&mut recorder.validated);
    let mut model = Model { body: learner.body(), about: recorder.about(&*learner) };
    let epochs = model.about.epoch;
    let confirmation = recorder.confirmation;
    let (measurements, good) = (recorder.measurements, recorder.good);
    if let Stop::Diverged(_) = stop {
        // The checkpoint before the first step is there at least.
        let good = good.map_or_else(|| store.last_model(), |good| Ok(Some(good)))?;
        model = good.unwrap_or(model);
    }
    if stop != Stop::Cancelled {
        model = validated.result(store, model, listener);
        store.finish(&model)?;
    }
    let best = validated.best();
    Ok(Recorded { stop, model, epochs, seconds, measurements, best, confirmation })
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
        record(self, learner, recording, from, listener)
    }

    /// Writes the result of a run that was killed between its last checkpoint and the model.
    ///
    /// # Errors
    ///
    /// If the system refuses to write.
    pub fn conclude(
        &mut self,
        saved: &SavedCheckpoint,
        listener: &mut dyn Listener,
    ) -> Result<Recorded, Error> {
        let (validated, last) = (saved.validated(), saved.model());
        let epochs = last.about.epoch;
        let model = validated.result(self, last, listener);
        self.finish(&model)?;
        Ok(Recorded { epochs, best: validated.best(), ..Recorded::of(model) })
    }
}

impl Recorded {
    /// A run that had ended before.
    pub fn of(model: Model) -> Self {
        let (epochs, measurements) = (model.about.epoch, Measurements::default());
        let (stop, seconds, best, confirmation) = (Stop::Finished, 0.0, None, None);
        Self { stop, model, epochs, seconds, measurements, best, confirmation }
    }
}

impl SavedCheckpoint {
    /// Whether only the model was left to be written when this checkpoint was.
    pub fn has_ended(&self) -> bool {
        let state = self.checkpoint.observers.get(RECORDER);
        state.is_some_and(|state| state["ended"] == Value::Bool(true))
    }

    /// Which model of the run was the best so far.
    fn validated(&self) -> Validated {
        self.checkpoint.observers.get(RECORDER).map(Validated::import).unwrap_or_default()
    }

    /// The best score on the validation data so far.
    pub fn best(&self) -> Option<BestScore> {
        self.validated().best()
    }
}
