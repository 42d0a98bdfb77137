//! `harmonium train`: learns from data and leaves a run directory.

use super::belief_train;
use crate::args::Common;
use crate::args::train::{TrainArgs, TrainCommand};
use crate::failure::Failure;
use crate::load::{self, Input, Remembered};
use crate::plan::{self, Asked};
use crate::render::{self, progress};
use crate::watch::{self, Settings, Training, Watch};
use harmonium::machine::Machine;
use harmonium::run::{About, Event, Model, Overwrite, RunDirectory, RunWriter, SavedCheckpoint};
use harmonium::training::{Plan, Stop, Trainer, initialise};
use harmonium::units::Units;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use toml::Table;

/// Everything a run is made of before it starts.
pub(crate) struct Prepared {
    pub(crate) asked: Asked,
    pub(crate) input: Input,
    pub(crate) valid: Option<Input>,
    pub(crate) plan: Plan,
    /// The text of `run.toml`.
    pub(crate) table: Table,
    /// Names of the classes, if labels are learned.
    pub(crate) classes: Vec<String>,
}

pub(crate) fn run(command: &TrainCommand, common: &Common) -> Result<(), Failure> {
    let (model, args) = command.parts();
    let resumed = args.resume && Path::new(&args.out).join("run.toml").is_file();
    let outcome = match (model, resumed) {
        ("dbn", true) => belief_train::resume(args, common)?,
        ("dbn", false) => belief_train::begin(args, common)?,
        (_, true) => resume(model, args, common)?,
        (_, false) => begin(model, args, common)?,
    };
    if common.json {
        return render::json(&outcome.json);
    }
    render::result(&outcome.text)
}

/// What is told at the end.
pub(crate) struct Told {
    pub(crate) json: Value,
    pub(crate) text: String,
}

/// What was asked: the flags over the configuration file.
pub(super) fn asked(model: &str, args: &TrainArgs, common: &Common) -> Result<Asked, Failure> {
    let config = args.config.as_deref().map(plan::config).transpose()?.unwrap_or_default();
    if let Some(other) = config.get("model").and_then(toml::Value::as_str).filter(|m| *m != model) {
        return Err(Failure::new(
            format!("the configuration is that of a {other}, not of a {model}"),
            format!("use `harmonium train {other}`"),
        ));
    }
    plan::typed(&plan::merge(config, plan::flags(args, common)?))
}

fn begin(model: &str, args: &TrainArgs, common: &Common) -> Result<Told, Failure> {
    let (prepared, machine) = prepare(model, asked(model, args, common)?)?;
    let overwrite = if args.force { Overwrite::Yes } else { Overwrite::No };
    let mut writer = RunDirectory::create(&args.out, overwrite)?;
    start(&prepared, machine, &mut writer, common)
        .and_then(|(ended, model)| finish(&ended, &model, writer, &args.out))
}

/// The data of a run, and what it says about the machine.
pub(super) struct Opened {
    pub(super) input: Input,
    pub(super) units: Units,
    /// Columns without those of the classes.
    pub(super) n_columns: usize,
    /// Names of the classes, if labels are learned.
    pub(super) classes: Vec<String>,
}

/// Opens the data as it was asked for.
pub(super) fn open(model: &str, asked: &mut Asked) -> Result<Opened, Failure> {
    let Some(spec) = asked.data.clone() else {
        return Err(Failure::new(
            "no data was given",
            format!("`harmonium train {model} DATA …`; `digits` is built in"),
        ));
    };
    if asked.reading.binarize.is_none() {
        asked.reading.binarize = plan::default_binarize(asked);
    }
    let input = load::data(&spec, &asked.reading)?;
    let units = plan::visible_units(asked, &input)?;
    let n_columns = input.dataset.n_columns();
    let (input, classes) = match &asked.settings.labels {
        Some(path) => load::with_labels(input, path, None)?,
        None => (input, Vec::new()),
    };
    if classes.len() == 1 {
        return Err(Failure::new(
            "the labels are all of one class",
            "labels that never differ say nothing: leave them out",
        ));
    }
    Ok(Opened { input, units, n_columns, classes })
}

/// Opens the data and builds the machine: everything that can fail before a file is written.
pub(crate) fn prepare(model: &str, mut asked: Asked) -> Result<(Prepared, Machine), Failure> {
    if asked.settings.patience.is_some() && asked.settings.valid.is_none() {
        return Err(Failure::new(
            "`--patience` has nothing to watch",
            "give it validation data with `--valid DATA`",
        ));
    }
    let Opened { input, units, n_columns, classes } = open(model, &mut asked)?;
    let mut machine = plan::machine(model, &asked, units, n_columns, classes.len())?;
    let learning = plan::learning(&asked, &machine)?;
    initialise(&mut machine, &input.dataset, &learning)?;
    let valid = match &asked.settings.valid {
        Some(_) if !classes.is_empty() => {
            return Err(Failure::new(
                "`--valid` and `--labels` cannot be used together yet",
                "leave `--valid` out, and score the model on the validation data afterwards",
            ));
        }
        Some(spec) => {
            let mut reading = input.reading.clone();
            reading.variable.clone_from(&asked.reading.variable);
            let valid = load::data(spec, &reading)?;
            if valid.dataset.n_columns() != input.dataset.n_columns() {
                return Err(Failure::new(
                    format!(
                        "the validation data has {} columns, the training data {}",
                        valid.dataset.n_columns(),
                        input.dataset.n_columns()
                    ),
                    "both are read with the same flags",
                ));
            }
            Some(valid)
        }
        None => None,
    };
    let table = plan::resolved(model, &asked, &input, units, &learning)?;
    Ok((Prepared { asked, input, valid, plan: learning, table, classes }, machine))
}

/// Writes what was asked and checkpoint 0, then trains.
pub(crate) fn start(
    prepared: &Prepared,
    machine: Machine,
    writer: &mut RunWriter,
    common: &Common,
) -> Result<(Ended, Model), Failure> {
    let text = toml::to_string(&prepared.table).map_err(|e| {
        Failure::new(format!("cannot write run.toml: {e}"), "choose other settings")
    })?;
    writer.write_config(&text)?;
    from_the_start(prepared, machine, writer, common)
}

/// Pre-trains if that was asked for, then trains.
fn from_the_start(
    prepared: &Prepared,
    mut machine: Machine,
    writer: &mut RunWriter,
    common: &Common,
) -> Result<(Ended, Model), Failure> {
    let Prepared { input, plan, .. } = prepared;
    writer.append(&Event::Started { rows: input.dataset.n_rows() as u64 })?;
    if plan.pretrain_epochs > 0 {
        watch::pretrain(&mut machine, &input.dataset, plan, writer, common)?;
    }
    let trainer = Trainer::new(machine, &input.dataset, plan)?;
    learn(prepared, trainer, None, writer, common)
}

/// The settings of a run that is to go on, checked against what is asked now, and the fingerprint
/// of its data.
pub(super) fn stored(
    model: &str,
    writer: &RunWriter,
    args: &TrainArgs,
    common: &Common,
) -> Result<(Asked, Option<String>), Failure> {
    let stored = plan::parse(&writer.directory().config()?, "run.toml")?;
    plan::check_same(&stored, &plan::flags(args, common)?)?;
    if stored.get("model").and_then(toml::Value::as_str) != Some(model) {
        return Err(Failure::new(
            format!("`{}` is no run of a {model}", args.out),
            "resume it with the model it was started with",
        ));
    }
    let hash = stored.get("provenance").and_then(|p| p.get("data-hash"));
    let hash = hash.and_then(toml::Value::as_str).map(str::to_owned);
    Ok((plan::typed(&plan::merge(stored, Table::new()))?, hash))
}

/// Whether the data is still what it was.
pub(super) fn check_data(input: &Input, hash: Option<&str>) -> Result<(), Failure> {
    let found = format!("{:016x}", input.about.content_hash);
    if hash.is_some_and(|h| h != found) {
        return Err(Failure::new(
            "the data is not what the run was started with: its fingerprint has changed",
            "put the old data back, or start another run",
        ));
    }
    Ok(())
}

fn resume(model: &str, args: &TrainArgs, common: &Common) -> Result<Told, Failure> {
    let mut writer = RunDirectory::resume(&args.out)?;
    let (asked, hash) = stored(model, &writer, args, common)?;
    let (prepared, machine) = prepare(model, asked)?;
    check_data(&prepared.input, hash.as_deref())?;
    let nothing_left = |model: &Model| {
        let ended = Ended { stop: Stop::Finished, seconds: 0.0, metrics: json!({}) };
        Ok(tell(&ended, &model.about, &args.out))
    };
    if let Some(model) = writer.directory().model()? {
        load::note_on_stderr("this run has finished; nothing was left to do");
        return nothing_left(&model);
    }
    let checkpoint = writer.directory().last_checkpoint()?;
    if let Some(saved) = checkpoint.as_ref().filter(|c| watch::has_ended(c)) {
        // Killed between the last checkpoint and the model.
        let model = Model::from(saved.clone());
        writer.finish(&model)?;
        return nothing_left(&model);
    }
    let Some(saved) = checkpoint else {
        // Killed before the first checkpoint, which follows pre-training: the same from the start.
        writer.truncate_events(0)?;
        let (ended, model) = from_the_start(&prepared, machine, &mut writer, common)?;
        return finish(&ended, &model, writer, &args.out);
    };
    writer.truncate_events(saved.events_length)?;
    let trainer = Trainer::resume(&saved.checkpoint, &prepared.input.dataset, &prepared.plan)?;
    let (ended, model) = learn(&prepared, trainer, Some(&saved), &mut writer, common)?;
    finish(&ended, &model, writer, &args.out)
}

/// How a run ended, and what was measured last.
pub(crate) struct Ended {
    pub(crate) stop: Stop,
    pub(crate) seconds: f64,
    pub(crate) metrics: Value,
}

fn learn(
    prepared: &Prepared,
    mut trainer: Trainer<'_>,
    from: Option<&SavedCheckpoint>,
    writer: &mut RunWriter,
    common: &Common,
) -> Result<(Ended, Model), Failure> {
    let about = About {
        seed: prepared.plan.seed,
        config: plan::without_paths(&prepared.table),
        data: serde_json::to_value(Remembered::of(&prepared.input, &prepared.classes))
            .unwrap_or_default(),
        ..About::default()
    };
    let bar = progress::bar(prepared.plan.epochs, "training", common);
    bar.set_position(trainer.progress().epoch);
    let settings = Settings {
        about,
        epochs: prepared.plan.epochs,
        batches_per_epoch: prepared.input.dataset.n_rows().div_ceil(prepared.plan.batch) as u64,
        patience: prepared.asked.settings.patience,
        checkpoint_seconds: prepared.asked.settings.checkpoint_seconds.unwrap_or(30.0),
        part: None,
    };
    let valid = prepared.valid.as_ref().map(|v| &v.dataset);
    let extra = from.map(|f| &f.extra);
    let mut watch = Watch::new(writer, &prepared.input.dataset, valid, settings, extra, bar)?;
    if from.is_none() {
        watch.save(trainer.checkpoint(), Training::GoesOn)?;
    }
    let start = Instant::now();
    let stop = trainer.run(&mut [&mut watch])?;
    let seconds = start.elapsed().as_secs_f64();
    let left = watch.end(&stop, trainer.checkpoint())?;
    let outcome = trainer.finish(stop);
    let model = Model { about: left.about, machine: outcome.machine };
    Ok((Ended { stop: outcome.stop, seconds, metrics: left.metrics }, model))
}

fn finish(ended: &Ended, model: &Model, writer: RunWriter, out: &str) -> Result<Told, Failure> {
    check_stop(&ended.stop, model.about.epoch, out)?;
    writer.finish(model)?;
    Ok(tell(ended, &model.about, out))
}

/// Whether a run ended so that there is a model.
pub(super) fn check_stop(stop: &Stop, epoch: u64, out: &str) -> Result<(), Failure> {
    match stop {
        Stop::Diverged(error) => Err(Failure::new(error.to_string(), error.hint())),
        Stop::Observer(reason) if reason == watch::INTERRUPTED => Err(Failure::new(
            format!("interrupted after {epoch} epochs; the run is kept in `{out}`"),
            format!(
                "go on with the same command and `--resume`, e.g. `harmonium train … --out {out} --resume`"
            ),
        )),
        _ => Ok(()),
    }
}

pub(super) fn tell(ended: &Ended, about: &About, out: &str) -> Told {
    let mut value = json!({ "run": out, "epochs": about.epoch, "seconds": ended.seconds });
    let mut text =
        format!("{} epochs in {:.1} s; the run is in `{out}`", about.epoch, ended.seconds);
    if let Stop::Observer(reason) = &ended.stop {
        text = format!("{text}\nstopped early: {reason}");
        value["stopped"] = json!(reason);
    }
    if let Some(metrics) = ended.metrics.as_object() {
        for (key, number) in metrics {
            value[key] = number.clone();
            text = format!("{text}\n  {key:24} {number:.4}");
        }
    }
    Told { json: value, text }
}
