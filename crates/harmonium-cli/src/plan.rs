//! What was typed becomes what is done: flags over a configuration file over defaults.
//!
//! Everything is one flat table whose keys are the flags. `run.toml` holds that table with every
//! default filled in, so a run can be read, repeated (`--config run.toml`) and resumed.

use crate::args::Common;
use crate::args::data::DataArgs;
use crate::args::train::{TrainArgs, TrainSettings};
use crate::failure::Failure;
use crate::inputs::{Fingerprints, Validation};
use clap::builder::PossibleValue;
use clap::{Args as _, Command};
use harmonium::evaluation::tracking::Watch;
use harmonium::machine::Layer;
use harmonium::model::{Blueprint, Family, Request, Sources};
use harmonium::optim::Schedule;
use harmonium::{Dataset, Plan};
use harmonium_data::{Opened, Reading, Visible};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// Keys of a run that are not flags of `train`.
const OWN_KEYS: [&str; 6] = ["model", "data", "seed", "precision", "provenance", KINDS];
/// The key of the kinds of columns: a table, where `--kind` is a flag for each of them.
const KINDS: &str = "kinds";
/// Flags that decide where and how, not what is learned.
const NOT_SETTINGS: [&str; 5] = ["out", "config", "resume", "force", "kind"];

/// The settings of a run, merged and typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) data: Option<String>,
    pub(crate) seed: u64,
    pub(crate) precision: Option<String>,
    pub(crate) settings: TrainSettings,
    pub(crate) reading: Reading,
    /// How data is read, with the settings of single modalities.
    pub(crate) flags: DataArgs,
}

/// Everything a run reads.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// What is learned, with its labels.
    pub(crate) data: Opened,
    /// Fingerprint of the file of labels.
    pub(crate) labels: Option<u64>,
    /// What the training is watched with.
    pub(crate) valid: Option<Validation>,
    /// The same, where it is a part of the data that was set apart.
    pub(crate) apart: Option<Dataset>,
}

impl Inputs {
    /// What the training is validated with.
    pub(crate) fn validation(&self) -> Option<&Dataset> {
        self.valid.as_ref().map(|valid| &valid.opened.dataset).or(self.apart.as_ref())
    }

    /// The fingerprint of each input.
    pub(crate) fn fingerprints(&self) -> Fingerprints {
        let valid = self.valid.as_ref();
        [
            ("data-hash", Some(self.data.about.content_hash)),
            ("labels-hash", self.labels),
            ("valid-hash", valid.map(|valid| valid.opened.about.content_hash)),
            ("valid-labels-hash", valid.and_then(|valid| valid.labels)),
        ]
        .into_iter()
        .collect()
    }
}

/// The flags that were given, as a table.
pub(crate) fn flags(args: &TrainArgs, common: &Common) -> Result<Table, Failure> {
    let mut table = as_table(&args.settings)?;
    table.extend(as_table(&args.reading)?);
    if let Some(data) = &args.data {
        table.insert("data".into(), data.clone().into());
    }
    if let Some(seed) = common.seed {
        table.insert("seed".into(), number(seed)?);
    }
    if let Some(precision) = &common.precision {
        table.insert("precision".into(), precision.clone().into());
    }
    Ok(table)
}

/// The settings of a configuration file, every key known.
pub(crate) fn config(path: &str) -> Result<Table, Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        Failure::new(format!("cannot read `{path}`: {e}"), "`--config` takes a TOML file")
    })?;
    parse(&text, path)
}

/// Reads a table and refuses keys that are not flags.
pub(crate) fn parse(text: &str, path: &str) -> Result<Table, Failure> {
    parse_as(text, path, &all_flags(), &OWN_KEYS)
}

/// The same for the flags of another command, and keys of its own.
pub(crate) fn parse_as(
    text: &str,
    path: &str,
    flags: &Command,
    own: &[&str],
) -> Result<Table, Failure> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(1, |s| text[..s.start].lines().count().max(1));
        Failure::new(
            format!("`{path}`, line {line}: {}", e.message()),
            "a key is written `epochs = 20`",
        )
    })?;
    let known = known_keys(flags, own);
    if let Some(key) = table.keys().find(|k| !known.contains(k.as_str())) {
        return Err(Failure::new(
            format!("`{path}` has a key `{key}`, which no flag has"),
            "keys are the flags of `harmonium train rbm --help` without their dashes",
        ));
    }
    Ok(table)
}

/// The flags that are keys of configuration files.
fn all_flags() -> Command {
    DataArgs::augment_args(TrainSettings::augment_args(Command::new("train")))
}

fn known_keys(command: &Command, own: &[&str]) -> BTreeSet<String> {
    let flags = command.get_arguments().filter_map(|a| a.get_long().map(str::to_owned));
    let flags = flags.filter(|f| !NOT_SETTINGS.contains(&f.as_str()));
    flags.chain(own.iter().map(|&key| key.to_owned())).collect()
}

/// Flags over the configuration file.
pub(crate) fn merge(mut config: Table, mut flags: Table) -> Table {
    config.remove("provenance");
    // Of several columns each has a kind of its own.
    if let Some(Value::Table(said)) = flags.remove(KINDS) {
        match config.get_mut(KINDS) {
            Some(Value::Table(kinds)) => kinds.extend(said),
            _ => config.extend([(KINDS.to_owned(), Value::Table(said))]),
        }
    }
    config.extend(flags);
    config
}

/// The merged table with its types.
pub(crate) fn typed(table: &Table) -> Result<Asked, Failure> {
    check_words(table, &all_flags())?;
    let OwnSettings { data, seed, precision, .. } = read_as(table)?;
    let (settings, reading, flags) = (read_as(table)?, read_as(table)?, read_as(table)?);
    Ok(Asked { data, seed, precision, settings, reading, flags })
}

/// The settings behind [`OWN_KEYS`].
#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnSettings {
    model: Option<String>,
    data: Option<String>,
    seed: u64,
    precision: Option<String>,
}

/// The table as settings of one sort; a value of the wrong type is named with its key.
pub(crate) fn read_as<T: DeserializeOwned>(table: &Table) -> Result<T, Failure> {
    let read = |table: Table| Value::Table(table).try_into::<T>();
    read(table.clone()).map_err(|error| {
        let alone = |(key, value): &(&String, &Value)| {
            read(Table::from_iter([((*key).clone(), (*value).clone())])).is_err()
        };
        let what = match table.iter().find(alone) {
            Some((key, value)) => format!("`{key} = {value}` has the wrong type"),
            None => "a setting has the wrong type".into(),
        };
        Failure::new(format!("{what}: {}", error.message()), "see `harmonium train rbm --help`")
    })
}

/// Settings that are one of a few words must be one of them, in a file as on the command line.
pub(crate) fn check_words(table: &Table, flags: &Command) -> Result<(), Failure> {
    for flag in flags.get_arguments() {
        let words = flag.get_possible_values();
        let Some((key, value)) = flag.get_long().and_then(|key| table.get_key_value(key)) else {
            continue;
        };
        let given = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let unknown = |word: &&str| !words.iter().any(|known| known.matches(word, false));
        let wrong = given.iter().filter_map(Value::as_str).find(unknown);
        if let Some(word) = wrong.filter(|_| !words.is_empty() && !value.is_bool()) {
            let words: Vec<&str> = words.iter().map(PossibleValue::get_name).collect();
            return Err(Failure::new(
                format!("`{key}` is `{word}`; it must be one of {}", words.join(", ")),
                "see `harmonium train rbm --help`",
            ));
        }
    }
    Ok(())
}

impl Asked {
    /// What was asked, in the library's words.
    pub(crate) fn request(&self) -> Result<Request, Failure> {
        let wrong =
            |e| Failure::new(format!("cannot read the settings: {e}"), "choose other values");
        let mut given: Map<String, Json> =
            serde_json::to_value(&self.settings).and_then(serde_json::from_value).map_err(wrong)?;
        // As large as a configuration file can hold.
        number(self.seed)?;
        given.insert("seed".into(), self.seed.into());
        given
            .extend(self.precision.clone().map(|precision| ("precision".into(), precision.into())));
        Ok(Request { given })
    }

    /// The same with the settings of a request.
    pub(crate) fn with(&self, request: &Request) -> Result<Self, Failure> {
        let given = request.given.iter().filter(|(_, value)| !value.is_null());
        let given: Map<String, Json> = given.map(|(k, v)| (k.clone(), v.clone())).collect();
        let mut table = as_table(&self.settings)?;
        // A number that JSON cannot hold stays as it was given, and is refused by its name.
        table.retain(|key, _| request.given.contains_key(key));
        table.extend(as_table(&given)?);
        Ok(Self { settings: read_as(&table)?, ..self.clone() })
    }
}

/// The kind of visible units that was asked for.
pub(crate) fn visible(asked: &Asked) -> Option<Visible> {
    asked.request().ok()?.visible().ok()?
}

/// The model of a name.
pub(crate) fn family(model: &str) -> Family {
    match model {
        "bm" => Family::Bm,
        "dbm" => Family::Dbm,
        "dbn" => Family::Dbn,
        "multimodal" => Family::Multimodal,
        _ => Family::Rbm,
    }
}

/// The model that was asked for, to be trained on data of these visible layers.
pub(crate) fn blueprint(
    model: &str,
    asked: &Asked,
    visible: Vec<Layer>,
    n_classes: usize,
) -> Result<Blueprint, Failure> {
    check_flags(model, asked)?;
    Ok(asked.request()?.blueprint(family(model), visible, n_classes)?)
}

/// Flags that belong to some models only, or not together.
fn check_flags(model: &str, asked: &Asked) -> Result<(), Failure> {
    let settings = &asked.settings;
    let belongs = |flag: &str, to: &str| {
        Failure::new(
            format!("`--{flag}` belongs to `train {to}`, not to `train {model}`"),
            format!("leave it out, or train a {to}"),
        )
    };
    if let Some(seconds) = settings.checkpoint_seconds.filter(|s| !(s.is_finite() && *s >= 0.0)) {
        return Err(Failure::new(
            format!(
                "`--checkpoint-seconds {seconds}` is not possible: it must be finite and not negative"
            ),
            "leave it out for a checkpoint every 30 seconds",
        ));
    }
    let several = !settings.modality.is_empty();
    let of_several = [
        ("modality", several),
        ("joint", settings.joint.is_some()),
        ("key", settings.key.is_some()),
    ];
    if let Some((flag, _)) = of_several.iter().find(|(_, set)| *set && model != "multimodal") {
        return Err(belongs(flag, "multimodal"));
    }
    if model == "multimodal" && (asked.data.is_some() || settings.labels.is_some()) {
        return Err(Failure::new(
            "`train multimodal` learns modalities, each with a name",
            "give each source with `--modality NAME=DATA`, labels too",
        ));
    }
    if model == "multimodal" && (settings.hidden.is_some() || settings.visible.is_some()) {
        return Err(Failure::new(
            "hidden layers and kinds of units belong to one modality each",
            "write `--hidden NAME=N,…` and `--kind NAME=KIND`; `--joint N` is the layer above all",
        ));
    }
    let shallow = matches!(model, "rbm" | "bm");
    let refined = settings.refine_epochs.is_some() || settings.refine_learning_rate.is_some();
    let real = settings.visible.as_deref().is_none_or(|visible| visible == "gaussian");
    let of_columns = |l: &String| l == "none" || l == "visible" && real;
    let lateral = settings.lateral.iter().flatten();
    let fits = model == "bm" || model == "rbm" && lateral.clone().all(of_columns);
    if settings.lateral.is_some() && !fits {
        return Err(belongs("lateral", "bm"));
    }
    if lateral.clone().any(|l| l == "none") && lateral.count() > 1 {
        return Err(Failure::new(
            "`--lateral none` and another coupling contradict each other",
            "give it `none` alone, or the layers that are coupled inside",
        ));
    }
    if refined && model != "dbn" {
        return Err(belongs("refine-epochs", "dbn"));
    }
    if settings.objective.as_deref().is_some_and(|o| o != "generative") && model == "dbn" {
        return Err(belongs("objective", "rbm"));
    }
    if settings.pretrain_epochs.is_some_and(|n| n > 0) && shallow {
        return Err(belongs("pretrain-epochs", "dbm"));
    }
    if settings.valid_labels.is_some() && settings.valid.is_none() {
        return Err(Failure::new(
            "`--valid-labels` has no validation data",
            "give it with `--valid DATA`",
        ));
    }
    if settings.valid.is_some() && settings.valid_share.is_some() {
        return Err(Failure::new(
            "`--valid` and `--valid-share` both say what is validated with",
            "give the validation data, or the share of the training data to set apart",
        ));
    }
    if (settings.patience.is_some() || settings.valid_share.is_some()) && model == "dbn" {
        return Err(Failure::new(
            "`train dbn` cannot be stopped by `--patience`: its layers are learned one after the \
             other, each for all its epochs, and no score compares them",
            "leave `--patience` and `--valid-share` out, and score the network afterwards",
        ));
    }
    let later = "leave `--valid` out, and score the model on the validation data afterwards";
    if settings.valid.is_some() && model == "dbn" {
        return Err(Failure::new("`train dbn` does not take `--valid`", later));
    }
    Ok(())
}

/// What is measured.
pub(crate) fn watch(asked: &Asked) -> Result<Watch, Failure> {
    Ok(asked.request()?.watch()?)
}

/// The plan: the library's defaults for the model under what was asked.
pub(crate) fn learning(asked: &Asked, blueprint: &Blueprint) -> Result<Plan, Failure> {
    Ok(asked.request()?.plan(blueprint)?)
}

/// The plan with which all layers of a deep belief network are refined together.
pub(crate) fn refinement(asked: &Asked, plan: &Plan) -> Result<Plan, Failure> {
    Ok(asked.request()?.refinement(plan)?)
}

/// Everything, with the defaults filled in: the text of `run.toml`.
pub(crate) fn resolved(
    model: &str,
    asked: &Asked,
    inputs: &Inputs,
    visible: &[Layer],
    plan: &Plan,
) -> Result<Table, Failure> {
    let sources = Sources {
        train: &inputs.data.dataset,
        valid: inputs.validation(),
        reading: &inputs.data.reading,
        fingerprints: &inputs.fingerprints().written(),
    };
    let mut table = asked.request()?.configuration(family(model), &sources, visible, plan);
    if asked.settings.modality.is_empty() {
        table.insert("data".into(), asked.data.clone().unwrap_or_default().into());
        return as_table(&table);
    }
    // Each modality is read in its own way.
    let mut table = as_table(&table)?;
    table.extend(as_table(&asked.flags)?);
    Ok(table)
}

/// The part of the settings that may stand in a model file: no paths.
pub(crate) fn without_paths(table: &Table) -> Json {
    let table = serde_json::to_value(table).and_then(serde_json::from_value).unwrap_or_default();
    Request::remembered(&table)
}

/// What was asked must be what the run was started with, however it is spelt.
pub(crate) fn check_same(stored: &Table, flags: &Table) -> Result<(), Failure> {
    for (key, value) in flags {
        let was = stored.get(key);
        if key != "checkpoint-seconds" && !was.is_some_and(|was| is_same(key, was, value)) {
            let was = was.map_or("not set".into(), Value::to_string);
            return Err(Failure::new(
                format!("`--{key} {value}` differs from what the run was started with: {was}"),
                "a run is resumed as it was; leave the flag out, or start another run",
            ));
        }
    }
    Ok(())
}

/// Whether two values of a setting mean the same: `1.0` is `1`, and the schedule `1:0.010` is `1:0.01`.
fn is_same(key: &str, a: &Value, b: &Value) -> bool {
    let schedule = |value: &Value| value.as_str()?.parse::<Schedule>().ok();
    // Two whole numbers are equal or not; as f64, large ones could seem so.
    if let (Value::Integer(a), Value::Integer(b)) = (a, b) {
        return a == b;
    }
    let number = |value: &Value| match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        Value::String(text) => text.trim().parse::<f64>().ok(),
        _ => None,
    };
    let is_schedule = ["k", "decay", "momentum"].contains(&key);
    // Paths that look like numbers are different paths.
    let is_path =
        ["data", "valid", "labels", "valid-labels", "variable", "label-column"].contains(&key);
    a == b
        || (is_schedule && schedule(a).is_some_and(|a| schedule(b) == Some(a)))
        || (!is_path && number(a).is_some_and(|a| number(b) == Some(a)))
}

pub(crate) fn as_table<T: serde::Serialize>(value: &T) -> Result<Table, Failure> {
    Table::try_from(value)
        .map_err(|e| Failure::new(format!("cannot write the settings: {e}"), "choose other values"))
}

pub(crate) fn number(n: u64) -> Result<Value, Failure> {
    let n = i64::try_from(n).map_err(|_| {
        Failure::new(format!("{n} is too large for a setting"), "choose a number below 2^63")
    })?;
    Ok(Value::Integer(n))
}
