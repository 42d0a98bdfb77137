//! `harmonium train dbn`: one RBM after the other, then all layers together.

use super::belief::bounds;
use super::train::{self, Ended, Opened, Told};
use crate::args::Common;
use crate::args::train::TrainArgs;
use crate::failure::Failure;
use crate::load::{self, Remembered};
use crate::plan::{self, Asked};
use crate::render::progress;
use crate::watch::{self, Part, Settings, Training, Watch};
use harmonium::models::{Dbn, Rbm};
use harmonium::run::{
    About, DbnModel, Epoch, Event, Overwrite, RunDirectory, RunWriter, SavedDbnCheckpoint,
};
use harmonium::training::{
    DbnCheckpoint, DbnShape, Measurement, Plan, Rule, Source, Stack, Stage, Stop, Trainer, UpDown,
};
use harmonium::units::Units;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use toml::Table;

/// The learning rate of the refinement, before decay.
const REFINE_RATE: f64 = 0.001;

/// Everything a run is made of before it starts.
struct Prepared {
    asked: Asked,
    opened: Opened,
    shape: DbnShape,
    plan: Plan,
    /// The text of `run.toml`.
    table: Table,
}

pub(super) fn begin(args: &TrainArgs, common: &Common) -> Result<Told, Failure> {
    let prepared = prepare(train::asked("dbn", args, common)?)?;
    let overwrite = if args.force { Overwrite::Yes } else { Overwrite::No };
    let mut writer = RunDirectory::create(&args.out, overwrite)?;
    let text = toml::to_string(&prepared.table).map_err(|e| {
        Failure::new(format!("cannot write run.toml: {e}"), "choose other settings")
    })?;
    writer.write_config(&text)?;
    Run::new(&prepared, common, &args.out).go(writer, None)
}

pub(super) fn resume(args: &TrainArgs, common: &Common) -> Result<Told, Failure> {
    let mut writer = RunDirectory::resume(&args.out)?;
    let (asked, hash) = train::stored("dbn", &writer, args, common)?;
    let prepared = prepare(asked)?;
    train::check_data(&prepared.opened.input, hash.as_deref())?;
    if let Some(model) = writer.directory().dbn_model()? {
        load::note_on_stderr("this run has finished; nothing was left to do");
        let ended = Ended { stop: Stop::Finished, seconds: 0.0, metrics: json!({}) };
        return Ok(train::tell(&ended, &model.about, &args.out));
    }
    let saved = writer.directory().last_dbn_checkpoint()?;
    writer.truncate_events(saved.as_ref().map_or(0, |s| s.events_length))?;
    Run::new(&prepared, common, &args.out).go(writer, saved)
}

fn prepare(mut asked: Asked) -> Result<Prepared, Failure> {
    let hidden = asked.settings.hidden.clone().unwrap_or_default();
    if hidden.len() < 2 {
        return Err(Failure::new(
            format!("`train dbn` needs at least two hidden layers, found {}", hidden.len()),
            "for example `--hidden 500,500,2000`; with one layer it is an rbm",
        ));
    }
    for (given, flag) in [
        (asked.settings.valid.is_some(), "valid"),
        (asked.settings.patience.is_some(), "patience"),
        (asked.settings.lateral.is_some(), "lateral"),
    ] {
        if given {
            return Err(Failure::new(
                format!("`train dbn` does not take `--{flag}`"),
                "leave it out, and score the model on other data afterwards",
            ));
        }
    }
    let opened = train::open("dbn", &mut asked)?;
    let visible = (opened.units, opened.n_columns);
    let first = Rbm::new(visible, (Units::Binary, hidden[0]))?;
    let plan = plan::learning(&asked, first.machine())?;
    if plan.rule == Rule::Exact && asked.settings.refine_epochs.is_some_and(|n| n > 0) {
        return Err(Failure::new(
            "`--rule exact` has no samples, and the refinement starts from samples",
            "use `--rule pcd`, or leave `--refine-epochs` out",
        ));
    }
    let shape = DbnShape { visible, hidden, n_classes: opened.classes.len() };
    let table = plan::resolved("dbn", &asked, &opened.input, opened.units, &plan)?;
    let prepared = Prepared { asked, opened, shape, plan, table };
    prepared.refinement(0).check()?;
    Ok(prepared)
}

impl Prepared {
    /// The plan of the refinement.
    fn refinement(&self, seed: u64) -> Plan {
        Plan {
            seed,
            epochs: self.asked.settings.refine_epochs.unwrap_or(0),
            learning_rate: self.asked.settings.refine_learning_rate.unwrap_or(REFINE_RATE),
            ..self.plan.clone()
        }
    }

    fn batches_per_epoch(&self) -> u64 {
        self.opened.input.dataset.n_rows().div_ceil(self.plan.batch) as u64
    }
}

/// A run while it goes on.
struct Run<'p> {
    prepared: &'p Prepared,
    common: &'p Common,
    out: &'p str,
    about: About,
    started: Instant,
    seconds_before: f64,
}

impl<'p> Run<'p> {
    fn new(prepared: &'p Prepared, common: &'p Common, out: &'p str) -> Self {
        let remembered = Remembered::of(&prepared.opened.input, &prepared.opened.classes);
        let about = About {
            seed: prepared.plan.seed,
            config: plan::without_paths(&prepared.table),
            data: serde_json::to_value(remembered).unwrap_or_default(),
            ..About::default()
        };
        Self { prepared, common, out, about, started: Instant::now(), seconds_before: 0.0 }
    }

    fn seconds(&self) -> f64 {
        self.seconds_before + self.started.elapsed().as_secs_f64()
    }

    fn extra(&self) -> Value {
        json!({ "seconds": self.seconds() })
    }

    fn checkpoint_seconds(&self) -> f64 {
        self.prepared.asked.settings.checkpoint_seconds.unwrap_or(30.0)
    }

    /// Everything that is left to do.
    fn go(
        mut self,
        mut writer: RunWriter,
        from: Option<SavedDbnCheckpoint>,
    ) -> Result<Told, Failure> {
        let data = &self.prepared.opened.input.dataset;
        let stack = Stack::new(self.prepared.shape.clone(), data, &self.prepared.plan)?;
        let refinement = self.prepared.refinement(stack.plan(stack.depth() + 1).seed);
        if let Some(saved) = &from {
            self.seconds_before = saved.extra["seconds"].as_f64().unwrap_or(0.0);
        } else {
            writer.append(&Event::Started { rows: data.n_rows() as u64 })?;
        }
        let mut from = from.map(|saved| saved.checkpoint);
        let dbn = match &from {
            Some(DbnCheckpoint { stage: Stage::Refine, dbn, .. }) => dbn.clone(),
            _ => self.layers(&stack, from.take(), &mut writer)?,
        };
        let dbn = self.refine(&stack, dbn, from.as_ref(), &refinement, &mut writer)?;
        let epoch = self.prepared.plan.epochs * stack.depth() as u64 + refinement.epochs;
        let step = epoch * self.prepared.batches_per_epoch();
        let about = About { epoch, step, ..self.about.clone() };
        let metrics = bounds(&dbn, data)?;
        let measurements = metrics
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| {
                let (name, value) = (name.as_str().into(), value.as_f64()?);
                Some(Measurement { name, value, std_error: None })
            })
            .collect::<Vec<_>>();
        writer.append(&Event::Finished {
            seconds: self.seconds(),
            measurements: measurements.into(),
        })?;
        let model = DbnModel { dbn, about };
        writer.finish_dbn(&model)?;
        let seconds = self.started.elapsed().as_secs_f64();
        let ended = Ended { stop: Stop::Finished, seconds, metrics };
        Ok(train::tell(&ended, &model.about, self.out))
    }

    /// The greedy stack.
    fn layers(
        &self,
        stack: &Stack<'_>,
        from: Option<DbnCheckpoint>,
        writer: &mut RunWriter,
    ) -> Result<Dbn, Failure> {
        let mut dbn = match &from {
            Some(checkpoint) => checkpoint.dbn.clone(),
            None => stack.first()?,
        };
        let mut from = from.map(|checkpoint| checkpoint.to_layer());
        loop {
            let machine = self.layer(stack, &dbn, from.take().as_ref(), writer)?;
            let (directed, _) = dbn.into_parts();
            dbn = Dbn::new(directed, machine)?;
            if stack.is_complete(&dbn) {
                return Ok(dbn);
            }
            dbn = stack.next(dbn)?;
        }
    }

    /// The top RBM of the network so far.
    fn layer(
        &self,
        stack: &Stack<'_>,
        dbn: &Dbn,
        from: Option<&harmonium::training::Checkpoint>,
        writer: &mut RunWriter,
    ) -> Result<harmonium::machine::Machine, Failure> {
        let (data, plan, stage) =
            (stack.data(dbn), stack.plan(dbn.depth()), Stage::Layer(dbn.depth()));
        let mut trainer = if let Some(checkpoint) = from {
            Trainer::resume(checkpoint, data.presented(), &plan)?
        } else {
            writer.append(&Event::stage(stage))?;
            Trainer::new(stack.initial(dbn, &data)?, data.presented(), &plan)?
        };
        let before = plan.epochs * (dbn.depth() as u64 - 1);
        let settings = Settings {
            about: self.about.clone(),
            epochs: plan.epochs,
            batches_per_epoch: self.prepared.batches_per_epoch(),
            patience: None,
            checkpoint_seconds: self.checkpoint_seconds(),
            part: Some(Part {
                dbn: dbn.clone(),
                epochs_before: before,
                steps_before: before * self.prepared.batches_per_epoch(),
            }),
        };
        let bar = progress::bar(plan.epochs, &stage.to_string(), self.common);
        bar.set_position(trainer.progress().epoch);
        let watched = data.in_epoch(0)?;
        let mut watch = Watch::new(writer, &watched, None, settings, Some(&self.extra()), bar)?;
        if from.is_none() {
            watch.save(trainer.checkpoint(), Training::GoesOn)?;
        }
        let stop = trainer.run(&mut [&mut watch])?;
        let left = watch.end(&stop, trainer.checkpoint())?;
        train::check_stop(&stop, left.about.epoch, self.out)?;
        Ok(trainer.finish(stop).machine)
    }

    /// Wake–sleep learning, if it was asked for.
    fn refine(
        &self,
        stack: &Stack<'_>,
        dbn: Dbn,
        from: Option<&DbnCheckpoint>,
        plan: &Plan,
        writer: &mut RunWriter,
    ) -> Result<Dbn, Failure> {
        if plan.epochs == 0 {
            return Ok(dbn);
        }
        let data = &self.prepared.opened.input.dataset;
        let before = self.prepared.plan.epochs * stack.depth() as u64;
        let steps_before = before * self.prepared.batches_per_epoch();
        let stage = Stage::Refine.to_string();
        let about = |up_down: &UpDown<'_>| {
            let progress = up_down.progress();
            let (epoch, step) = (before + progress.epoch, steps_before + progress.step);
            About { epoch, step, ..self.about.clone() }
        };
        let mut up_down = if let Some(checkpoint) = from {
            UpDown::resume(checkpoint, data, plan)?
        } else {
            let up_down = UpDown::new(dbn, data, plan)?;
            writer.append(&Event::stage(&stage))?;
            writer.save_dbn_checkpoint(up_down.checkpoint(), about(&up_down), self.extra())?;
            up_down
        };
        let bar = progress::bar(plan.epochs, &stage, self.common);
        let interval =
            Duration::try_from_secs_f64(self.checkpoint_seconds()).unwrap_or(Duration::MAX);
        let mut saved = Instant::now();
        while !up_down.is_done() {
            let report = match up_down.step() {
                Ok(report) => report,
                Err(error) => {
                    let reason = error.to_string();
                    writer.append(&Event::Diverged { reason, seconds: self.seconds() })?;
                    return Err(error.into());
                }
            };
            if up_down.epoch_ended() {
                let epoch = up_down.progress().epoch;
                bar.set_position(epoch);
                let event = Epoch {
                    step: steps_before + report.step,
                    stage: Some(stage.clone()),
                    ..Epoch::new(before + epoch, self.seconds(), &report)
                };
                writer.append(&event.into())?;
            }
            let stopped = watch::stop_wanted() && !up_down.is_done();
            if stopped || saved.elapsed() >= interval {
                writer.save_dbn_checkpoint(up_down.checkpoint(), about(&up_down), self.extra())?;
                saved = Instant::now();
            }
            if stopped {
                bar.finish_and_clear();
                let stop = Stop::Observer(watch::INTERRUPTED.into());
                train::check_stop(&stop, before + up_down.progress().epoch, self.out)?;
            }
        }
        bar.finish_and_clear();
        Ok(up_down.dbn().clone())
    }
}
