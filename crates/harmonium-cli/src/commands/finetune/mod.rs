//! `harmonium finetune`: a net of a model, or of random weights, trained to tell classes, tags or values.

pub(crate) mod inputs;
pub(crate) mod settings;

use super::train::{Told, diverged, tell};
use crate::args::Common;
use crate::args::finetune::FinetuneArgs;
use crate::failure::Failure;
use crate::load;
use crate::plan;
use crate::render;
use crate::render::progress::{Terminal, listen};
use harmonium::Model;
use harmonium::evaluation::tracking::Watch;
use harmonium::model::Finetuning;
use harmonium::models::{Body, Target};
use harmonium::network::NetworkPlan;
use harmonium::progress::Listener;
use harmonium::run::{
    About, Ending, Memory, Overwrite, Recorded, Recording, RunDirectory, RunWriter, SavedCheckpoint,
};
use harmonium::training::Guarding;
use harmonium_data::Labels;
use inputs::Inputs;
use settings::Asked;
use std::path::Path;
use toml::Table;

pub(crate) fn run(args: &FinetuneArgs, common: &Common) -> Result<(), Failure> {
    let resumed = args.resume && Path::new(&args.out).join("run.toml").is_file();
    let told = if resumed { resume(args, common)? } else { begin(args, common)? };
    if common.json {
        render::json(&told.json)?;
    } else if told.failure.is_none() {
        render::result(&told.text)?;
    }
    told.failure.map_or(Ok(()), Err)
}

/// Everything a run is made of before it starts.
struct Prepared {
    asked: Asked,
    inputs: Inputs,
    plan: NetworkPlan,
    table: Table,
}

fn begin(args: &FinetuneArgs, common: &Common) -> Result<Told, Failure> {
    let mut terminal = Terminal::new(common);
    let config = match &args.config {
        None => Table::new(),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|e| {
                Failure::new(format!("cannot read `{path}`: {e}"), "`--config` takes a TOML file")
            })?;
            settings::parse(&text, path)?
        }
    };
    let asked = settings::typed(&plan::merge(config, settings::flags(args, common)?))?;
    let model = match asked.from.as_deref() {
        None => {
            return Err(Failure::new(
                "no model was given",
                "`harmonium finetune MODEL DATA …`, or `none` in the place of the model for random weights",
            ));
        }
        Some("none") => None,
        Some(spec) => {
            // Said before a file of data is opened as a model.
            asked.data()?;
            Some(load::model(spec, &mut terminal)?)
        }
    };
    let prepared = prepare(asked, model.as_ref(), &mut terminal)?;
    let finetuning = prepared.start(model.as_ref())?;
    let overwrite = if args.force { Overwrite::Yes } else { Overwrite::No };
    let text = toml::to_string(&prepared.table).map_err(|e| {
        Failure::new(format!("cannot write run.toml: {e}"), "choose other settings")
    })?;
    // What does not fit is refused before there is a directory.
    let (recording, learner) =
        (prepared.recording(&finetuning)?, finetuning.learner(&mut terminal)?);
    let mut writer = RunDirectory::create(&args.out, overwrite)?;
    writer.write_config(&text)?;
    let recorded =
        Prepared::record(&finetuning, learner, recording, &mut writer, None, &mut terminal)?;
    Ok(tell(&recorded, &args.out))
}

/// Opens the data and plans the run.
fn prepare(
    mut asked: Asked,
    model: Option<&Model>,
    terminal: &mut Terminal,
) -> Result<Prepared, Failure> {
    asked.check()?;
    let inputs = Inputs::open(&mut asked, model, terminal)?;
    let plan = asked.plan(model)?;
    let table = settings::resolved(&asked, &inputs.data.reading, &plan, inputs.provenance()?)?;
    Ok(Prepared { asked, inputs, plan, table })
}

impl Prepared {
    /// The net before its first step.
    fn start(&self, model: Option<&Model>) -> Result<Finetuning<'_>, Failure> {
        let data = &self.inputs.data.dataset;
        let (target, targets) = (self.inputs.target, self.inputs.targets.as_ref());
        if let Some(Model { body: Body::Network(network), .. }) = model {
            let n_outputs = match (target, targets) {
                (Target::Classes, _) => data.labels().map_or(0, Labels::n_classes),
                (_, Some(targets)) => targets.n_columns(),
                (_, None) => 0,
            };
            self.check_goes_on(network.n_outputs(), n_outputs)?;
        }
        let layers = (self.asked.settings.hidden.clone(), self.asked.activation());
        let finetuning = Finetuning::begin(model, (data, targets), layers, target, &self.plan)?;
        Ok(self.with_inputs(finetuning))
    }

    /// A net that goes on learning has to have the outputs that are asked for.
    fn check_goes_on(&self, has: usize, wanted: usize) -> Result<(), Failure> {
        if self.asked.settings.hidden.is_some() || has != wanted {
            return Err(Failure::new(
                format!("the model is a net of {has} outputs already; {wanted} are asked for"),
                "a net goes on learning as it is: leave `--hidden` out and give labels of the same classes",
            ));
        }
        Ok(())
    }

    /// The same with what is to be answered and what is validated with.
    fn with_inputs<'d>(&'d self, finetuning: Finetuning<'d>) -> Finetuning<'d> {
        let Inputs { targets, valid, valid_targets, .. } = &self.inputs;
        let valid = valid.as_ref().map(|valid| (valid, valid_targets.as_ref()));
        Finetuning { targets: targets.as_ref(), valid, ..finetuning }
    }

    fn recording(&self, finetuning: &Finetuning<'_>) -> Result<Recording<'_>, Failure> {
        let mut reading = self.inputs.data.reading.clone();
        // Another file has its own variables and rows.
        (reading.variable, reading.rows, reading.names) = (None, None, None);
        let hash = format!("{:016x}", self.inputs.data.about.content_hash);
        let about = About {
            seed: self.plan.seed,
            config: settings::without_paths(&self.table),
            data: Memory { reading, hash, ..finetuning.memory()? },
            ..About::default()
        };
        let settings = &self.asked.settings;
        Ok(Recording {
            about,
            train: &self.inputs.data.dataset,
            valid: self.inputs.valid.as_ref(),
            patience: settings.patience,
            checkpoint_seconds: settings.checkpoint_seconds.unwrap_or(30.0),
            watch: Watch::None,
            guarding: Guarding::Warn,
            metrics: Vec::new(),
        })
    }

    /// Trains, from the start or from a checkpoint.
    fn record(
        finetuning: &Finetuning<'_>,
        mut learner: harmonium::network::NetworkLearner<'_>,
        recording: Recording<'_>,
        writer: &mut RunWriter,
        from: Option<&SavedCheckpoint>,
        terminal: &mut Terminal,
    ) -> Result<Recorded, Failure> {
        let looked = finetuning.looked()?;
        let monitor = finetuning.monitor(&looked, terminal)?;
        listen()?;
        let recording = Recording { metrics: vec![Box::new(monitor)], ..recording };
        Ok(writer.record(&mut learner, recording, from, terminal)?)
    }
}

fn resume(args: &FinetuneArgs, common: &Common) -> Result<Told, Failure> {
    let mut terminal = Terminal::new(common);
    let mut writer = RunDirectory::resume(&args.out)?;
    let stored = settings::parse(&writer.directory().config()?, "run.toml")?;
    plan::check_same(&stored, &settings::flags(args, common)?)?;
    let provenance = stored.get("provenance").and_then(toml::Value::as_table).cloned();
    let asked = settings::typed(&plan::merge(stored, Table::new()))?;
    let prepared = prepare(asked, None, &mut terminal)?;
    prepared.inputs.fingerprints().check_same(&provenance.unwrap_or_default())?;
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
    // Without a checkpoint nothing was learned, and the model is read again.
    let Some(saved) = checkpoint else {
        return Err(Failure::new(
            format!("the run in `{}` was stopped before it began", args.out),
            "start it again with `--force`",
        ));
    };
    if saved.has_ended() {
        return Ok(tell(&writer.conclude(&saved, &mut terminal)?, &args.out));
    }
    let Body::Network(network) = &saved.checkpoint.body else {
        return Err(Failure::new(
            format!("`{}` holds the run of another model than a net", args.out),
            "resume it with `harmonium train`",
        ));
    };
    writer.truncate_events(saved.events_length)?;
    let data = &prepared.inputs.data.dataset;
    let schema = saved.about.data.schema.as_ref();
    let finetuning = prepared.with_inputs(Finetuning::of_network(
        network.clone(),
        schema,
        data,
        &prepared.plan,
    )?);
    let recording = Recording { about: saved.about.clone(), ..prepared.recording(&finetuning)? };
    let learner = finetuning.resumed(&saved.checkpoint, &mut terminal)?;
    let recorded = Prepared::record(
        &finetuning,
        learner,
        recording,
        &mut writer,
        Some(&saved),
        &mut terminal,
    )?;
    Ok(tell(&recorded, &args.out))
}
