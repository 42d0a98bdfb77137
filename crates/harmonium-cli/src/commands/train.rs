//! `harmonium train`: learns from data and leaves a run directory.

use super::autopilot;
use crate::args::Common;
use crate::args::train::{TrainArgs, TrainCommand};
use crate::failure::Failure;
use crate::inputs::Validation;
use crate::plan::{self, Asked, Inputs};
use crate::render;
use crate::render::progress::{Terminal, listen};
use crate::{load, modalities};
use harmonium::evaluation::monitor::Confirmation;
use harmonium::findings::{Evidence, Finding, findings};
use harmonium::model::{
    Blueprint, Judging, LabelMonitor, Training, fitting_binarize, groups_note, set_apart,
};
use harmonium::models::Body;
use harmonium::progress::Listener;
use harmonium::run::{
    About, BestScore, Ending, Memory, Overwrite, Recorded, Recording, RunDirectory, RunWriter,
    SavedCheckpoint,
};
use harmonium::training::{Learner, Metric, Stop};
use harmonium::{Dataset, Plan};
use harmonium_data::{Labels, Opened};
use serde_json::{Value, json};
use std::path::Path;
use toml::Table;

/// Everything a run is made of before it starts.
pub(crate) struct Prepared {
    pub(super) asked: Asked,
    pub(super) inputs: Inputs,
    pub(super) plan: Plan,
    /// What `run.toml` holds.
    table: Table,
}

pub(crate) fn run(command: &TrainCommand, common: &Common) -> Result<(), Failure> {
    let (model, args) = command.parts();
    let resumed = args.resume && Path::new(&args.out).join("run.toml").is_file();
    let told = if resumed { resume(model, args, common)? } else { begin(model, args, common)? };
    if common.json {
        render::json(&told.json)?;
    } else if told.failure.is_none() {
        render::result(&told.text)?;
    }
    told.failure.map_or(Ok(()), Err)
}

/// What is told at the end.
pub(super) struct Told {
    pub(super) json: Value,
    pub(super) text: String,
    /// Why there is no finished model.
    pub(super) failure: Option<Failure>,
}

fn begin(model: &str, args: &TrainArgs, common: &Common) -> Result<Told, Failure> {
    let mut terminal = Terminal::new(common);
    let asked = asked(model, args, common)?;
    let objective = asked.settings.objective.as_deref().filter(|o| *o != "generative");
    if let Some(objective) = objective.filter(|_| autopilot::is_wanted(model, &asked)) {
        return Err(Failure::new(
            format!(
                "the autopilot compares likelihoods, which `--objective {objective}` does not climb"
            ),
            "say how long to learn with `--epochs N`; the best epoch is chosen by `--valid-share`",
        ));
    }
    if autopilot::is_wanted(model, &asked) {
        return autopilot::fly(model, args, asked, common, &mut terminal);
    }
    let (prepared, blueprint) = prepare(model, asked, &mut terminal)?;
    let overwrite = if args.force { Overwrite::Yes } else { Overwrite::No };
    let recorded = start(&prepared, blueprint, &args.out, overwrite, &mut terminal)?;
    Ok(judged(tell(&recorded, &args.out), &recorded, &prepared, &args.out, common, &mut terminal))
}

/// Adds the verdict of all evidence to what is told of a run that has ended.
pub(super) fn judged(
    mut told: Told,
    recorded: &Recorded,
    prepared: &Prepared,
    out: &str,
    common: &Common,
    terminal: &mut Terminal,
) -> Told {
    let classifies = !prepared.plan.objective.is_generative();
    if classifies || matches!(recorded.stop, Stop::Cancelled | Stop::Diverged(_)) {
        return told;
    }
    match found(recorded, prepared, out, common, terminal) {
        Ok(found) => {
            told.text = format!("{}\n{}", told.text, render::verdict::text(&found));
            if let (Some(json), Value::Object(more)) =
                (told.json.as_object_mut(), render::verdict::json(&found))
            {
                json.extend(more);
            }
        }
        // The run itself is complete: what could not be judged is said and no failure.
        Err(failure) => terminal.note(&format!("the model could not be judged: {failure}")),
    }
    told
}

/// What is to be said of a run that has ended.
fn found(
    recorded: &Recorded,
    prepared: &Prepared,
    out: &str,
    common: &Common,
    terminal: &mut Terminal,
) -> Result<Vec<Finding>, Failure> {
    let (model, inputs) = (&recorded.model, &prepared.inputs);
    let train = &inputs.data.dataset;
    let events = RunDirectory::open(out)?.read_events()?.events;
    let plan = prepared.plan.clone();
    let mut evidence = Evidence { plan, result: Some(model.about.epoch), ..Evidence::of(&events) };
    let (seed, arithmetic) = (prepared.plan.seed, common.arithmetic());
    let judging = Judging::after_training(model, recorded.epochs, train.n_rows(), seed, arithmetic);
    model.judge(&mut evidence, inputs.validation().or(Some(train)), &judging, terminal)?;
    Ok(findings(&evidence))
}

/// What was asked: the flags over the configuration file.
fn asked(model: &str, args: &TrainArgs, common: &Common) -> Result<Asked, Failure> {
    let config = args.config.as_deref().map(plan::config).transpose()?.unwrap_or_default();
    if let Some(other) = config.get("model").and_then(toml::Value::as_str).filter(|m| *m != model) {
        return Err(Failure::new(
            format!("the configuration is that of a {other}, not of a {model}"),
            format!("use `harmonium train {other}`"),
        ));
    }
    plan::typed(&plan::merge(config, plan::flags(args, common)?))
}

/// Says which columns are categories.
fn note_groups(data: &Dataset, asked: &Asked, terminal: &mut Terminal) {
    let Some(found) = groups_note(data) else { return };
    let what = match asked.settings.groups.as_deref() {
        Some("auto") => "each is learned as one categorical unit",
        Some(_) => "as asked for, they are learned as bits",
        None => "they are learned as bits; `--groups auto` learns each as one categorical unit",
    };
    terminal.note(&format!("{found}; {what}"));
}

/// Opens the data and plans the run: everything that can fail before a file is written.
pub(crate) fn prepare(
    model: &str,
    mut asked: Asked,
    terminal: &mut Terminal,
) -> Result<(Prepared, Blueprint), Failure> {
    let (opened, labels) = open(&mut asked, terminal)?;
    note_groups(&opened.dataset, &asked, terminal);
    let visible = asked.request()?.layers(&opened.dataset)?;
    let n_classes = opened.dataset.labels().map_or(0, Labels::n_classes);
    let blueprint = plan::blueprint(model, &asked, visible.clone(), n_classes)?;
    let plan = plan::learning(&asked, &blueprint)?;
    if let Blueprint::Machine(machine) = &blueprint {
        let request = asked.request()?;
        request.notes(plan::family(model), machine).iter().for_each(|note| terminal.note(note));
    }
    let inputs = with_validation(&mut asked, opened, labels, terminal)?;
    let table = plan::resolved(model, &asked, &inputs, &visible, &plan)?;
    Ok((Prepared { asked, inputs, plan, table }, blueprint))
}

/// Everything a run reads.
pub(crate) fn inputs(asked: &mut Asked, terminal: &mut Terminal) -> Result<Inputs, Failure> {
    let (opened, labels) = open(asked, terminal)?;
    with_validation(asked, opened, labels, terminal)
}

/// The data with what it is validated with: a file of its own, or a part that is set apart.
fn with_validation(
    asked: &mut Asked,
    opened: Opened,
    labels: Option<u64>,
    terminal: &mut Terminal,
) -> Result<Inputs, Failure> {
    let valid = validation(asked, &opened, terminal)?;
    let (data, apart) = apart(asked, opened, terminal)?;
    Ok(Inputs { data, labels, valid, apart })
}

/// Opens the data as it was asked for, with its labels and their fingerprint.
fn open(asked: &mut Asked, terminal: &mut Terminal) -> Result<(Opened, Option<u64>), Failure> {
    if !asked.settings.modality.is_empty() {
        let (settings, reading) = (&asked.settings, &asked.flags);
        let key = settings.key.as_deref();
        return Ok((
            modalities::sources(&settings.modality, reading, (key, None), terminal)?,
            None,
        ));
    }
    let Some(spec) = asked.data.clone() else {
        return Err(Failure::new(
            "no data was given",
            "`harmonium train rbm DATA …`; `digits` is built in",
        ));
    };
    if asked.reading.binarize.is_none() {
        let binarize = fitting_binarize(plan::visible(asked));
        asked.reading.binarize = binarize.map(|binarize| binarize.to_string());
    }
    let opened = load::data(&spec, &asked.reading, terminal)?;
    let (opened, source) = labelled(opened, asked, terminal)?;
    let Some(labels) = opened.dataset.labels() else { return Ok((opened, None)) };
    if labels.n_classes() == 1 {
        return Err(Failure::new(
            "the labels are all of one class",
            "labels that never differ say nothing: leave them out with `--no-labels`",
        ));
    }
    let n = labels.n_classes();
    terminal.note(&format!("{n} classes are learned together with the data, from {source}"));
    let fingerprint = asked.settings.labels.as_ref().map(|_| labels.fingerprint());
    Ok((opened, fingerprint))
}

/// The data with the classes that are learned, and where those come from: the file of labels, or the
/// data itself.
fn labelled(
    mut opened: Opened,
    asked: &Asked,
    terminal: &mut Terminal,
) -> Result<(Opened, String), Failure> {
    let mut source = opened.label_source();
    if let Some(path) = &asked.settings.labels {
        source = format!("`{path}`");
        opened.dataset = load::with_labels(opened.dataset, path, None, terminal)?;
    } else if let Some(labels) = opened.dataset.labels() {
        let labels = labels.compacted();
        opened.dataset = opened.dataset.with_labels(labels)?;
    }
    Ok((opened, source))
}

/// Opens the validation data, with its labels if there are any.
fn validation(
    asked: &Asked,
    opened: &Opened,
    terminal: &mut Terminal,
) -> Result<Option<Validation>, Failure> {
    let Some(spec) = &asked.settings.valid else { return Ok(None) };
    let labels = asked.settings.valid_labels.as_deref();
    let valid = if asked.settings.modality.is_empty() {
        Validation::open(spec, labels, (opened, &asked.reading), terminal)?
    } else {
        let (settings, reading) = (&asked.settings, &asked.flags);
        let chosen = (settings.key.as_deref(), Some(spec.as_str()));
        let opened = modalities::sources(&settings.modality, reading, chosen, terminal)?;
        Validation { opened, labels: None }
    };
    if opened.dataset.labels().is_some() && valid.opened.dataset.labels().is_none() {
        terminal.note(
            "the validation rows have no labels: they are summed out, so that its scores are those of the \
             data alone; `--valid-labels FILE` gives them",
        );
    }
    Ok(Some(valid))
}

/// Sets rows apart for validation where that was asked for, or where patience needs them.
fn apart(
    asked: &mut Asked,
    mut opened: Opened,
    terminal: &mut Terminal,
) -> Result<(Opened, Option<Dataset>), Failure> {
    if asked.settings.valid.is_none() {
        asked.settings.valid_share = asked.request()?.valid_share()?;
    }
    let Some(share) = asked.settings.valid_share else { return Ok((opened, None)) };
    let (train, valid) = set_apart(&opened.dataset, share, asked.seed)?;
    terminal.note(&format!(
        "{} of {} rows, a share of {share} chosen by seed {}, are set apart for validation",
        valid.n_rows(),
        opened.dataset.n_rows(),
        asked.seed
    ));
    opened.dataset = train;
    Ok((opened, Some(valid)))
}

impl Prepared {
    /// What `run.toml` holds, as text.
    pub(super) fn config(&self) -> Result<String, Failure> {
        toml::to_string(&self.table).map_err(|e| {
            Failure::new(format!("cannot write run.toml: {e}"), "choose other settings")
        })
    }

    pub(super) fn training(&self, blueprint: Blueprint) -> Result<Training<'_>, Failure> {
        let (data, plan) = (&self.inputs.data.dataset, self.plan.clone());
        let refinement = plan::refinement(&self.asked, &plan)?;
        Ok(Training { blueprint, data, plan, refinement })
    }

    fn recording(&self, training: &Training<'_>) -> Result<Recording<'_>, Failure> {
        let mut reading = self.inputs.data.reading.clone();
        // Another file has its own variables and rows.
        (reading.variable, reading.rows, reading.names) = (None, None, None);
        let hash = format!("{:016x}", self.inputs.data.about.content_hash);
        let about = About {
            seed: self.plan.seed,
            config: plan::without_paths(&self.table),
            data: Memory { reading, hash, ..training.memory()? },
            ..About::default()
        };
        let settings = &self.asked.settings;
        let (train, valid) = (&self.inputs.data.dataset, self.inputs.validation());
        let mut metrics: Vec<Box<dyn Metric>> = Vec::new();
        if !self.plan.objective.is_generative() {
            metrics.push(Box::new(LabelMonitor::new(train, valid)?));
        }
        Ok(Recording {
            about,
            train,
            valid,
            patience: settings.patience,
            checkpoint_seconds: settings.checkpoint_seconds.unwrap_or(30.0),
            watch: plan::watch(&self.asked)?,
            guarding: self.plan.guarding(),
            metrics,
        })
    }
}

/// Trains, from the start or from a checkpoint.
fn record(
    mut learner: Box<dyn Learner + '_>,
    recording: Recording<'_>,
    writer: &mut RunWriter,
    from: Option<&SavedCheckpoint>,
    terminal: &mut Terminal,
) -> Result<Recorded, Failure> {
    listen()?;
    Ok(writer.record(learner.as_mut(), recording, from, terminal)?)
}

/// Makes the run directory, writes what was asked, and trains.
pub(crate) fn start(
    prepared: &Prepared,
    blueprint: Blueprint,
    out: &str,
    overwrite: Overwrite,
    terminal: &mut Terminal,
) -> Result<Recorded, Failure> {
    start_in(prepared, blueprint, || Ok(RunDirectory::create(out, overwrite)?), terminal)
}

/// The same in a directory that `make` makes: what does not fit is refused before there is one.
pub(super) fn start_in(
    prepared: &Prepared,
    blueprint: Blueprint,
    make: impl FnOnce() -> Result<RunWriter, Failure>,
    terminal: &mut Terminal,
) -> Result<Recorded, Failure> {
    let training = prepared.training(blueprint)?;
    let recording = prepared.recording(&training)?;
    let learner = training.learner()?;
    let text = prepared.config()?;
    let mut writer = make()?;
    writer.write_config(&text)?;
    record(learner, recording, &mut writer, None, terminal)
}

fn resume(model: &str, args: &TrainArgs, common: &Common) -> Result<Told, Failure> {
    let mut terminal = Terminal::new(common);
    let mut writer = RunDirectory::resume(&args.out)?;
    let (asked, provenance) = stored(model, &writer, args, common)?;
    let (prepared, blueprint) = prepare(model, asked, &mut terminal)?;
    prepared.inputs.fingerprints().check_same(&provenance)?;
    let checkpoint = writer.directory().last_checkpoint()?;
    if let Some(model) = writer.directory().model()? {
        let epochs = checkpoint.as_ref().map_or(model.about.epoch, |c| c.model().about.epoch);
        let best = checkpoint.as_ref().and_then(SavedCheckpoint::best);
        let told = tell(&Recorded { epochs, best, ..Recorded::of(model) }, &args.out);
        let events = writer.directory().read_events()?.events;
        if let Ending::Diverged(reason) = Ending::of(&events) {
            return Ok(diverged(told, &reason));
        }
        terminal.note("this run has finished; nothing was left to do");
        return Ok(told);
    }
    if let Some(saved) = checkpoint.as_ref().filter(|saved| saved.has_ended()) {
        return Ok(tell(&writer.conclude(saved, &mut terminal)?, &args.out));
    }
    writer.truncate_events(checkpoint.as_ref().map_or(0, |saved| saved.events_length))?;
    let training = prepared.training(blueprint)?;
    let recording = prepared.recording(&training)?;
    let learner = match &checkpoint {
        None => training.learner()?,
        Some(saved) => training.resumed(&saved.checkpoint)?,
    };
    let from = checkpoint.as_ref();
    let recorded = record(learner, recording, &mut writer, from, &mut terminal)?;
    Ok(judged(tell(&recorded, &args.out), &recorded, &prepared, &args.out, common, &mut terminal))
}

/// What is told of a run that had diverged before.
pub(super) fn diverged(mut told: Told, reason: &str) -> Told {
    told.json["stop"] = json!("diverged");
    told.json["reason"] = json!(reason);
    let what = format!("this run has diverged: {reason}");
    told.failure = Some(Failure::new(what, "start another run with a lower `--learning-rate`"));
    told
}

/// The settings of a run that is to go on, checked against what is asked now, and where they came
/// from: the fingerprints of its inputs.
fn stored(
    model: &str,
    writer: &RunWriter,
    args: &TrainArgs,
    common: &Common,
) -> Result<(Asked, Table), Failure> {
    let stored = plan::parse(&writer.directory().config()?, "run.toml")?;
    plan::check_same(&stored, &plan::flags(args, common)?)?;
    if stored.get("model").and_then(toml::Value::as_str) != Some(model) {
        return Err(Failure::new(
            format!("`{}` holds the run of another model than a {model}", args.out),
            "resume it with the model it was started with",
        ));
    }
    let provenance = stored.get("provenance").and_then(toml::Value::as_table);
    let provenance = provenance.cloned().unwrap_or_default();
    Ok((plan::typed(&plan::merge(stored, Table::new()))?, provenance))
}

/// Why a run ended without a finished model, if it did.
fn failure(recorded: &Recorded, out: &str) -> Option<Failure> {
    match &recorded.stop {
        Stop::Diverged(error) => Some(Failure::new(error.to_string(), error.hint())),
        Stop::Cancelled => {
            let epoch = recorded.epochs;
            Some(Failure::new(
                format!("interrupted after {epoch} epochs; the run is kept in `{out}`"),
                format!(
                    "go on with the same command and `--resume`, e.g. `harmonium {} … --out {out} --resume`",
                    if matches!(recorded.model.body, Body::Network(_)) {
                        "finetune"
                    } else {
                        "train"
                    }
                ),
            ))
        }
        Stop::Finished | Stop::Observer(_) => None,
    }
}

pub(super) fn tell(recorded: &Recorded, out: &str) -> Told {
    let Recorded { stop, model, epochs, seconds, measurements, best, confirmation } = recorded;
    let mut json = json!({
        "run": out, "epochs": epochs, "seconds": seconds,
        "best_epoch": best.as_ref().map(|best| best.epoch), "stop": stop.word(),
    });
    let mut text = format!("{epochs} epochs in {seconds:.1} s; the run is in `{out}`");
    if let Some(BestScore { name, value, epoch }) = best {
        json["best_score"] = json!({ "name": name, "value": value });
        if model.about.epoch == *epoch {
            let nats = if name.is_likelihood() { " nats" } else { "" };
            text = format!(
                "{text}\nthe result is the model of epoch {epoch}, the best by `{name}` ({value:.4}{nats}); \
                 that of epoch {epochs} is in `checkpoints/last.safetensors`"
            );
        }
    }
    if let Stop::Observer(reason) = stop {
        text = format!("{text}\nstopped early: {reason}");
        json["reason"] = json!(reason);
    }
    if let Stop::Diverged(error) = stop {
        json["reason"] = json!(error.to_string());
    }
    for found in measurements {
        let (name, value) = (found.name.as_str(), found.value);
        json[name] = json!(value);
        text = format!("{text}\n  {name:24} {value:.4}");
    }
    if let Some(found) = confirmation {
        let Confirmation { tracked: (log_z, error), fresh: (lower, upper), .. } = found;
        let trust = match (found.agrees(), found.is_telling()) {
            (true, true) => None,
            (true, false) => Some("the likelihoods of this run are rough"),
            (false, _) => Some("do not trust the likelihoods of this run"),
        };
        if let Some(trust) = trust {
            text = format!(
                "{text}\nln Z was tracked as {log_z:.3} ± {error:.3}, and lies between {lower:.3} and {upper:.3} by an \
                 estimate from both sides: {trust}"
            );
        }
        json["log_partition.agrees"] = json!(found.agrees());
        json["log_partition.telling"] = json!(found.is_telling());
    }
    Told { json, text, failure: failure(recorded, out) }
}
