//! What was typed becomes what is done: flags over a configuration file over defaults.
//!
//! Everything is one flat table whose keys are the flags. `run.toml` holds that table with every
//! default filled in, so a run can be read, repeated (`--config run.toml`) and resumed.

use crate::args::Common;
use crate::args::data::DataArgs;
use crate::args::train::{TrainArgs, TrainSettings};
use crate::failure::Failure;
use clap::builder::PossibleValue;
use clap::{Args as _, Command};
use harmonium::evaluation::tracking::Watch;
use harmonium::model::Blueprint;
use harmonium::models::{Bm, Dbm, Lateral, Rbm, with_coupled_columns, with_labels};
use harmonium::optim::Schedule;
use harmonium::units::Units;
use harmonium::{Dataset, DbnShape, Plan};
use harmonium_data::{Opened, Reading, Visible};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use toml::{Table, Value};

/// Keys of a run that are not flags of `train`.
const OWN_KEYS: [&str; 5] = ["model", "data", "seed", "precision", "provenance"];
/// Flags that decide where and how, not what is learned.
const NOT_SETTINGS: [&str; 4] = ["out", "config", "resume", "force"];

/// The settings of a run, merged and typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) data: Option<String>,
    pub(crate) seed: u64,
    pub(crate) precision: Option<String>,
    pub(crate) settings: TrainSettings,
    pub(crate) reading: Reading,
}

/// Everything a run reads.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// What is learned, with its labels.
    pub(crate) data: Opened,
    /// Fingerprint of the file of labels.
    pub(crate) labels: Option<u64>,
    /// What the training is watched with.
    pub(crate) valid: Option<Opened>,
    /// The same, where it is a part of the data that was set apart.
    pub(crate) apart: Option<Dataset>,
}

impl Inputs {
    /// What the training is validated with.
    pub(crate) fn validation(&self) -> Option<&Dataset> {
        self.valid.as_ref().map(|valid| &valid.dataset).or(self.apart.as_ref())
    }

    /// The fingerprint of each input, under its name in `run.toml`.
    pub(crate) fn fingerprints(&self) -> Vec<(&'static str, String)> {
        let valid = self.valid.as_ref().map(|valid| valid.about.content_hash);
        let data = Some(self.data.about.content_hash);
        let all = [("data-hash", data), ("labels-hash", self.labels), ("valid-hash", valid)];
        let written = |(key, hash): (_, Option<u64>)| Some((key, format!("{:016x}", hash?)));
        all.into_iter().filter_map(written).collect()
    }

    /// Refuses inputs that are not those a run was started with.
    pub(crate) fn check_same(&self, provenance: &Table) -> Result<(), Failure> {
        for (key, found) in self.fingerprints() {
            let was = provenance.get(key).and_then(Value::as_str);
            if was.is_some_and(|was| was != found) {
                let what = match key {
                    "labels-hash" => "the labels are",
                    "valid-hash" => "the validation data is",
                    _ => "the data is",
                };
                return Err(Failure::new(
                    format!(
                        "{what} not what the run was started with: the fingerprint has changed"
                    ),
                    "put the old file back, or start another run",
                ));
            }
        }
        Ok(())
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
    let table: Table = text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(1, |s| text[..s.start].lines().count().max(1));
        Failure::new(
            format!("`{path}`, line {line}: {}", e.message()),
            "a key is written `epochs = 20`",
        )
    })?;
    let known = known_keys();
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

fn known_keys() -> BTreeSet<String> {
    let command = all_flags();
    let flags = command.get_arguments().filter_map(|a| a.get_long().map(str::to_owned));
    let flags = flags.filter(|f| !NOT_SETTINGS.contains(&f.as_str()));
    flags.chain(OWN_KEYS.map(str::to_owned)).collect()
}

/// Flags over the configuration file.
pub(crate) fn merge(mut config: Table, flags: Table) -> Table {
    config.remove("provenance");
    config.extend(flags);
    config
}

/// The merged table with its types.
pub(crate) fn typed(table: &Table) -> Result<Asked, Failure> {
    check_words(table)?;
    let OwnSettings { data, seed, precision, .. } = read_as(table)?;
    Ok(Asked { data, seed, precision, settings: read_as(table)?, reading: read_as(table)? })
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
fn read_as<T: DeserializeOwned>(table: &Table) -> Result<T, Failure> {
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
fn check_words(table: &Table) -> Result<(), Failure> {
    for flag in all_flags().get_arguments() {
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

/// The kind of visible units that was asked for.
pub(crate) fn visible(asked: &Asked) -> Option<Visible> {
    match asked.settings.visible.as_deref()? {
        "binary" => Some(Visible::Binary),
        "spin" => Some(Visible::Spin),
        "gaussian" => Some(Visible::Gaussian),
        "categorical" => Some(Visible::Categorical),
        _ => None,
    }
}

/// The model that was asked for, to be trained on data of these units.
pub(crate) fn blueprint(
    model: &str,
    asked: &Asked,
    visible: (Units, usize),
    n_classes: usize,
) -> Result<Blueprint, Failure> {
    check_flags(model, asked)?;
    let hidden = asked.settings.hidden.clone().unwrap_or_default();
    if model == "dbn" {
        if hidden.len() < 2 {
            return Err(Failure::new(
                format!("`train dbn` needs at least two hidden layers, found {}", hidden.len()),
                "for example `--hidden 500,500,2000`; with one layer it is an rbm",
            ));
        }
        return Ok(Blueprint::Dbn(DbnShape { visible, hidden, n_classes }));
    }
    let machine = match model {
        "rbm" => {
            let machine = Rbm::new(visible, (Units::Binary, one(model, &hidden)?))?.into_machine();
            if is_uncoupled(asked) { machine } else { with_coupled_columns(&machine)? }
        }
        "bm" => {
            Bm::new(visible, (Units::Binary, one(model, &hidden)?), lateral(asked)?)?.into_machine()
        }
        _ if hidden.is_empty() => {
            return Err(need(model, "a number of hidden units per layer", &[]));
        }
        _ => {
            let layers: Vec<(Units, usize)> = hidden.iter().map(|&n| (Units::Binary, n)).collect();
            Dbm::new(visible, &layers)?.into_machine()
        }
    };
    Ok(Blueprint::Machine(if n_classes > 0 { with_labels(&machine, n_classes)? } else { machine }))
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

/// The one number of hidden units.
fn one(model: &str, hidden: &[usize]) -> Result<usize, Failure> {
    match hidden {
        [n] => Ok(*n),
        _ => Err(need(model, "one number of hidden units", hidden)),
    }
}

fn need(model: &str, what: &str, hidden: &[usize]) -> Failure {
    let example = if model == "dbm" { "500,1000" } else { "64" };
    Failure::new(
        format!("`train {model}` needs {what}, found `--hidden {}`", list(hidden)),
        format!("for example `harmonium train {model} DATA --hidden {example} --out RUN`"),
    )
}

/// Whether real columns are not to be coupled with each other.
fn is_uncoupled(asked: &Asked) -> bool {
    asked.settings.lateral.iter().flatten().any(|l| l == "none")
}

/// Which layers are coupled inside.
fn lateral(asked: &Asked) -> Result<Lateral, Failure> {
    let lateral = asked.settings.lateral.clone().unwrap_or_default();
    let has = |s: &str| lateral.iter().any(|l| l == s);
    match (has("visible"), has("hidden")) {
        (true, true) => Ok(Lateral::Both),
        (true, false) => Ok(Lateral::Visible),
        (false, true) => Ok(Lateral::Hidden),
        (false, false) => Err(Failure::new(
            "`train bm` needs to know which layers are coupled inside",
            "add `--lateral visible`, `hidden` or `visible,hidden`; without any it is an rbm",
        )),
    }
}

fn list(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The word for sweeps that follow what a guard advises.
pub(crate) const AUTO: &str = "auto";

/// What is measured.
pub(crate) fn watch(asked: &Asked) -> Watch {
    match asked.settings.watch.as_deref() {
        Some("none") => Watch::None,
        Some("pseudo") => Watch::Pseudo,
        _ => Watch::Likelihood,
    }
}

/// The plan: the library's defaults for the model under what was asked.
pub(crate) fn learning(asked: &Asked, blueprint: &Blueprint) -> Result<Plan, Failure> {
    let mut table = as_table(&blueprint.suited_plan()?)?;
    let given = as_table(&asked.settings)?;
    table.extend(given.into_iter().filter(|(key, _)| Plan::KEYS.contains(&key.as_str())));
    if asked.settings.k.as_deref() == Some(AUTO) {
        table.insert("k".into(), "1".into());
        table.insert("steer".into(), true.into());
    }
    table.insert("seed".into(), number(asked.seed)?);
    if let Some(precision) = &asked.precision {
        table.insert("precision".into(), precision.clone().into());
    }
    table.insert("center".into(), (!asked.settings.no_center).into());
    let plan: Plan = Value::Table(table).try_into().map_err(|e: toml::de::Error| {
        Failure::new(
            format!("a setting is out of range: {}", e.message()),
            "see `harmonium train rbm --help`",
        )
    })?;
    plan.check()?;
    Ok(plan)
}

/// The learning rate of the refinement of a deep belief network, before decay.
const REFINE_RATE: f64 = 0.001;

/// The plan with which all layers of a deep belief network are refined together.
pub(crate) fn refinement(asked: &Asked, plan: &Plan) -> Plan {
    Plan {
        epochs: asked.settings.refine_epochs.unwrap_or(0),
        learning_rate: asked.settings.refine_learning_rate.unwrap_or(REFINE_RATE),
        ..plan.clone()
    }
}

/// Everything, with the defaults filled in: the text of `run.toml`.
pub(crate) fn resolved(
    model: &str,
    asked: &Asked,
    inputs: &Inputs,
    units: Units,
    plan: &Plan,
) -> Result<Table, Failure> {
    let input = &inputs.data;
    let mut table = as_table(&asked.settings)?;
    table.extend(as_table(&input.reading)?);
    let mut plan = as_table(plan)?;
    plan.remove("center");
    if plan.remove("steer").is_some() {
        plan.insert("k".into(), AUTO.into());
    }
    table.extend(plan);
    table.insert("model".into(), model.into());
    table.insert("data".into(), asked.data.clone().unwrap_or_default().into());
    table.insert("visible".into(), units.name().into());
    table.insert("no-center".into(), asked.settings.no_center.into());
    if let Units::Categorical { q } = units {
        table.insert("categories".into(), number(q as u64)?);
    }
    let mut provenance = Table::new();
    provenance.insert("library-version".into(), env!("CARGO_PKG_VERSION").into());
    for (key, hash) in inputs.fingerprints() {
        provenance.insert(key.into(), hash.into());
    }
    provenance.insert("data-rows".into(), number(input.dataset.n_rows() as u64)?);
    provenance.insert("data-columns".into(), number(input.dataset.n_columns() as u64)?);
    if let Some(valid) = inputs.validation() {
        provenance.insert("validation-rows".into(), number(valid.n_rows() as u64)?);
    }
    table.insert("provenance".into(), Value::Table(provenance));
    Ok(table)
}

/// The part of the settings that may stand in a model file: no paths.
pub(crate) fn without_paths(table: &Table) -> serde_json::Value {
    let mut table = table.clone();
    for key in ["data", "valid", "labels", "valid-labels", "checkpoint-seconds"] {
        table.remove(key);
    }
    serde_json::to_value(table).unwrap_or_default()
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

fn number(n: u64) -> Result<Value, Failure> {
    let n = i64::try_from(n).map_err(|_| {
        Failure::new(format!("{n} is too large for a setting"), "choose a number below 2^63")
    })?;
    Ok(Value::Integer(n))
}
