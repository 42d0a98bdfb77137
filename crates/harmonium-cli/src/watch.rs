//! Watches a training: metrics, progress, checkpoints, and the wish to stop.

use crate::args::Common;
use crate::failure::Failure;
use crate::render::progress;
use harmonium::evaluation::monitor::Monitor;
use harmonium::machine::Machine;
use harmonium::models::Dbn;
use harmonium::run::{About, Epoch, Event, Model, PretrainingEpoch, RunWriter, SavedCheckpoint};
use harmonium::training::{
    self, Checkpoint, DbnCheckpoint, Measurements, MetricName, Observer, On, Plan, Stage, Stop,
    View,
};
use harmonium_data::Dataset;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The reason a run ends for when somebody pressed Ctrl-C.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// Measurements shown beside the progress, the first two that there are.
const SHOWN: [MetricName; 5] = [
    MetricName::LogLikelihood(On::Valid),
    MetricName::LogLikelihood(On::Train),
    MetricName::PseudoLikelihood(On::Valid),
    MetricName::PseudoLikelihood(On::Train),
    MetricName::FreeEnergyGap,
];

/// Scores that can be compared over a run, the best first.
const SCORES: [MetricName; 2] =
    [MetricName::LogLikelihood(On::Valid), MetricName::PseudoLikelihood(On::Valid)];

/// What a watch is told.
pub(crate) struct Settings {
    pub(crate) about: About,
    pub(crate) batches_per_epoch: u64,
    pub(crate) epochs: u64,
    pub(crate) patience: Option<u64>,
    pub(crate) checkpoint_seconds: f64,
    /// What the machine is a part of, if it is not the whole.
    pub(crate) part: Option<Part>,
}

/// A machine that is the top RBM of a network under construction.
pub(crate) struct Part {
    /// The network.
    pub(crate) dbn: Dbn,
    /// Epochs and updates of the stages before.
    pub(crate) epochs_before: u64,
    pub(crate) steps_before: u64,
}

/// The observer of `harmonium train`.
pub(crate) struct Watch<'w, 'd> {
    writer: &'w mut RunWriter,
    monitor: Monitor<'d>,
    settings: Settings,
    bar: ProgressBar,
    /// The best validation score, and its epoch.
    best: Option<(f64, u64)>,
    metrics: Value,
    /// Seconds of earlier parts of the run.
    seconds_before: f64,
    started: Instant,
    saved: Instant,
    /// Time spent on measurements.
    measuring: Duration,
    failure: Option<Failure>,
}

/// Whether a checkpoint is the last of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Training {
    /// There is more to learn.
    GoesOn,
    /// Only the model is left to be written.
    HasEnded,
}

/// Whether only the model was left to be written when this checkpoint was.
pub(crate) fn has_ended(saved: &SavedCheckpoint) -> bool {
    saved.extra.get("ended") == Some(&Value::Bool(true))
}

/// What is left when a run ends.
pub(crate) struct Left {
    pub(crate) about: About,
    pub(crate) metrics: Value,
}

impl<'w, 'd> Watch<'w, 'd> {
    pub(crate) fn new(
        writer: &'w mut RunWriter,
        train: &'d Dataset,
        valid: Option<&'d Dataset>,
        settings: Settings,
        extra: Option<&Value>,
        bar: ProgressBar,
    ) -> Result<Self, Failure> {
        listen()?;
        let number = |key: &str| extra.and_then(|e| e.get(key)).and_then(Value::as_f64);
        let epoch = extra.and_then(|e| e.get("best_epoch")).and_then(Value::as_u64);
        Ok(Self {
            monitor: Monitor::new(train, valid, settings.about.seed),
            best: number("best").zip(epoch),
            seconds_before: number("seconds").unwrap_or(0.0),
            metrics: json!({}),
            started: Instant::now(),
            saved: Instant::now(),
            measuring: Duration::ZERO,
            failure: None,
            writer,
            settings,
            bar,
        })
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.started.elapsed().as_secs_f64()
    }

    /// Writes a checkpoint.
    pub(crate) fn save(
        &mut self,
        checkpoint: Checkpoint,
        training: Training,
    ) -> Result<(), Failure> {
        let extra = json!({
            "ended": training == Training::HasEnded,
            "best": self.best.map(|b| b.0),
            "best_epoch": self.best.map(|b| b.1),
            "seconds": self.seconds(),
        });
        let about = self.about(&checkpoint);
        match &self.settings.part {
            None => self.writer.save_checkpoint(checkpoint, about, extra)?,
            Some(part) => {
                let checkpoint = DbnCheckpoint::of_layer(&part.dbn, checkpoint)?;
                self.writer.save_dbn_checkpoint(checkpoint, about, extra)?;
            }
        }
        self.saved = Instant::now();
        Ok(())
    }

    fn about(&self, checkpoint: &Checkpoint) -> About {
        let step = checkpoint.epoch * self.settings.batches_per_epoch + checkpoint.batches_done;
        let (epochs, steps) = self.before();
        let (epoch, step) = (epochs + checkpoint.epoch, steps + step);
        About { epoch, step, ..self.settings.about.clone() }
    }

    /// Epochs and updates of earlier stages.
    fn before(&self) -> (u64, u64) {
        self.settings.part.as_ref().map_or((0, 0), |p| (p.epochs_before, p.steps_before))
    }

    /// Measures, writes the event and shows it.
    fn record(&mut self, view: &View<'_, '_>) -> Result<Option<String>, Failure> {
        let start = Instant::now();
        let mut found = Vec::new();
        if self.is_due(view.epoch) {
            found = self.monitor.measure(view.machine(), view.engine(), view.chains())?;
            if self.monitor.affords_exact(view.machine()) {
                found.extend(self.monitor.measure_exact(view.machine())?);
            }
        }
        self.measuring += start.elapsed();
        let report = view.report;
        let (epochs, steps) = self.before();
        let measurements = Measurements::from(found);
        let stage = self.settings.part.as_ref().map(|p| Stage::Layer(p.dbn.depth()).to_string());
        let event = Epoch {
            step: steps + report.step,
            measuring_seconds: Some(self.measuring.as_secs_f64()),
            stage,
            measurements: measurements.clone(),
            ..Epoch::new(epochs + view.epoch, self.seconds(), &report)
        };
        self.writer.append(&event.into())?;
        if !measurements.is_empty() {
            self.metrics = values(&measurements);
        }
        self.bar.set_position(view.epoch);
        self.bar.set_message(self.message());
        self.follow_best(view, &measurements)
    }

    fn is_due(&self, epoch: u64) -> bool {
        let every = self.monitor.every(self.settings.epochs);
        epoch == 1 || epoch == self.settings.epochs || epoch.is_multiple_of(every)
    }

    fn message(&self) -> String {
        let shown =
            SHOWN.iter().filter_map(|key| Some((key, self.metrics.get(key.as_str())?.as_f64()?)));
        shown.take(2).map(|(key, value)| format!("{key} {value:.3}")).collect::<Vec<_>>().join("  ")
    }

    /// Keeps the best machine; says so when the score has not risen for too long.
    fn follow_best(
        &mut self,
        view: &View<'_, '_>,
        found: &Measurements,
    ) -> Result<Option<String>, Failure> {
        let score = SCORES.iter().find_map(|key| found.get(key));
        let Some(score) = score else { return Ok(None) };
        if self.best.is_none_or(|(best, _)| score.value > best) {
            self.best = Some((score.value, view.epoch));
            let step = view.report.step;
            let about = About { epoch: view.epoch, step, ..self.settings.about.clone() };
            self.writer.save_best(&Model { machine: view.machine().clone(), about })?;
        }
        let (best, epoch) = self.best.unwrap_or_default();
        let late = self.settings.patience.is_some_and(|p| view.epoch - epoch >= p);
        Ok(late
            .then(|| format!("{} has not risen above {best:.4} since epoch {epoch}", score.name)))
    }

    /// Ends the watch: the last event and the last checkpoint.
    pub(crate) fn end(mut self, stop: &Stop, last: Checkpoint) -> Result<Left, Failure> {
        self.bar.finish_and_clear();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut training = Training::HasEnded;
        match stop {
            // The next stage begins with a checkpoint of its own.
            Stop::Finished if self.settings.part.is_some() => {
                let about = self.about(&last);
                return Ok(Left { about, metrics: self.metrics });
            }
            Stop::Finished => {
                self.writer.append(&Event::finished(self.seconds()))?;
            }
            Stop::Observer(reason) if reason != INTERRUPTED => {
                let (reason, seconds) = (reason.clone(), self.seconds());
                self.writer.append(&Event::Stopped { reason, seconds })?;
            }
            Stop::Diverged(error) => {
                let (reason, seconds) = (error.to_string(), self.seconds());
                self.writer.append(&Event::Diverged { reason, seconds })?;
            }
            Stop::Observer(_) => training = Training::GoesOn,
        }
        if matches!(stop, Stop::Diverged(_)) {
            training = Training::GoesOn;
        }
        let about = self.about(&last);
        self.save(last, training)?;
        Ok(Left { about, metrics: self.metrics })
    }

    fn or_break(&mut self, done: Result<(), Failure>) -> ControlFlow<String> {
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break("a file could not be written".into())
            }
        }
    }
}

impl Observer for Watch<'_, '_> {
    fn updated(&mut self, view: &View<'_, '_>) -> ControlFlow<String> {
        if stop_wanted() {
            return ControlFlow::Break(INTERRUPTED.into());
        }
        let interval = Duration::try_from_secs_f64(self.settings.checkpoint_seconds);
        if self.saved.elapsed() >= interval.unwrap_or(Duration::MAX) {
            let done = self.save(view.checkpoint(), Training::GoesOn);
            return self.or_break(done);
        }
        ControlFlow::Continue(())
    }

    fn epoch_ended(&mut self, view: &View<'_, '_>) -> ControlFlow<String> {
        match self.record(view) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(reason)) => ControlFlow::Break(reason),
            Err(failure) => self.or_break(Err(failure)),
        }
    }
}

/// The values alone, as they are told at the end.
fn values(found: &Measurements) -> Value {
    found.iter().map(|m| (m.name.to_string(), json!(m.value))).collect()
}

/// Whether somebody wants the training to stop.
pub(crate) fn stop_wanted() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Pre-trains the machine; an event for each epoch says which layer it is.
pub(crate) fn pretrain(
    machine: &mut Machine,
    data: &Dataset,
    plan: &Plan,
    writer: &mut RunWriter,
    common: &Common,
) -> Result<(), Failure> {
    listen()?;
    let started = Instant::now();
    let mut bar = ProgressBar::hidden();
    let mut failure = None;
    let stop = training::pretrain(machine, data, plan, &mut |at| {
        if STOP.load(Ordering::Relaxed) {
            return ControlFlow::Break(INTERRUPTED.into());
        }
        if !at.epoch_ended {
            return ControlFlow::Continue(());
        }
        if at.view.epoch == 1 {
            bar.finish_and_clear();
            bar =
                progress::bar(plan.pretrain_epochs, &format!("pre-training {}", at.layer), common);
        }
        bar.set_position(at.view.epoch);
        let report = at.view.report;
        let seconds = started.elapsed().as_secs_f64();
        let event = PretrainingEpoch::new(at.layer, at.stage, at.view.epoch, seconds, &report);
        match writer.append(&Event::Pretraining(event)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(Failure::from(error));
                ControlFlow::Break("a file could not be written".into())
            }
        }
    })?;
    bar.finish_and_clear();
    match (failure, stop) {
        (Some(failure), _) => Err(failure),
        (None, Stop::Finished) => Ok(()),
        (None, Stop::Diverged(error)) => Err(Failure::new(
            format!("pre-training ran away: {error}"),
            "lower `--pretrain-learning-rate`",
        )),
        (None, Stop::Observer(_)) => Err(Failure::new(
            "interrupted while the layers were pre-trained, which leaves no checkpoint",
            "`--resume` pre-trains again from the start, with the same result",
        )),
    }
}

static STOP: AtomicBool = AtomicBool::new(false);

/// Turns Ctrl-C into a wish; pressed twice, it ends the process at once.
fn listen() -> Result<(), Failure> {
    static LISTENING: OnceLock<Result<(), String>> = OnceLock::new();
    let listening = LISTENING.get_or_init(|| {
        ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(2);
            }
            anstream::eprintln!("\nfinishing the batch; press Ctrl-C again to stop at once");
        })
        .map_err(|e| e.to_string())
    });
    listening.clone().map_err(|e| {
        Failure::new(format!("cannot listen for Ctrl-C: {e}"), "run it from a terminal")
    })
}
