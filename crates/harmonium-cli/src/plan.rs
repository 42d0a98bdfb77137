//! What was typed becomes what is done: flags over a configuration file over defaults.
//!
//! Everything is one flat table whose keys are the flags. `run.toml` holds that table with every
//! default filled in, so a run can be read, repeated (`--config run.toml`) and resumed.

use crate::args::Common;
use crate::args::data::DataArgs;
use crate::args::train::{TrainArgs, TrainSettings};
use crate::failure::Failure;
use clap::{Args as _, Command};
use harmonium::model::Blueprint;
use harmonium::models::{Bm, Dbm, Lateral, Rbm, with_labels};
use harmonium::units::Units;
use harmonium::{DbnShape, Plan};
use harmonium_data::{Opened, Reading, Visible};
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

fn known_keys() -> BTreeSet<String> {
    let command = DataArgs::augment_args(TrainSettings::augment_args(Command::new("train")));
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
    let wrong = |e: toml::de::Error| {
        Failure::new(
            format!("a setting has the wrong type: {}", e.message()),
            "see `harmonium train rbm --help`",
        )
    };
    let value = Value::Table(table.clone());
    let settings: TrainSettings = value.clone().try_into().map_err(wrong)?;
    let reading: Reading = value.try_into().map_err(wrong)?;
    let data = table.get("data").and_then(Value::as_str).map(str::to_owned);
    let seed = table.get("seed").and_then(Value::as_integer).unwrap_or(0);
    let precision = table.get("precision").and_then(Value::as_str).map(str::to_owned);
    Ok(Asked { data, seed: seed.unsigned_abs(), precision, settings, reading })
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
        "rbm" => Rbm::new(visible, (Units::Binary, one(model, &hidden)?))?.into_machine(),
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
    let shallow = matches!(model, "rbm" | "bm");
    let refined = settings.refine_epochs.is_some() || settings.refine_learning_rate.is_some();
    if settings.lateral.is_some() && model != "bm" {
        return Err(belongs("lateral", "bm"));
    }
    if refined && model != "dbn" {
        return Err(belongs("refine-epochs", "dbn"));
    }
    if settings.pretrain_epochs.is_some_and(|n| n > 0) && shallow {
        return Err(belongs("pretrain-epochs", "dbm"));
    }
    if settings.labels.is_some() && model == "bm" {
        return Err(Failure::new("`train bm` takes no labels", "train an rbm or a dbm with them"));
    }
    if settings.patience.is_some() && settings.valid.is_none() {
        return Err(Failure::new(
            "`--patience` has nothing to watch",
            "give it validation data with `--valid DATA`",
        ));
    }
    let later = "leave `--valid` out, and score the model on the validation data afterwards";
    if settings.valid.is_some() && model == "dbn" {
        return Err(Failure::new("`train dbn` does not take `--valid`", later));
    }
    if settings.valid.is_some() && settings.labels.is_some() {
        return Err(Failure::new("`--valid` and `--labels` cannot be used together yet", later));
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

/// The plan: the library's defaults for the model under what was asked.
pub(crate) fn learning(asked: &Asked, blueprint: &Blueprint) -> Result<Plan, Failure> {
    let mut table = as_table(&blueprint.suited_plan()?)?;
    let given = as_table(&asked.settings)?;
    table.extend(given.into_iter().filter(|(key, _)| Plan::KEYS.contains(&key.as_str())));
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
    input: &Opened,
    units: Units,
    plan: &Plan,
) -> Result<Table, Failure> {
    let mut table = as_table(&asked.settings)?;
    table.extend(as_table(&input.reading)?);
    let mut plan = as_table(plan)?;
    plan.remove("center");
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
    provenance.insert("data-hash".into(), format!("{:016x}", input.about.content_hash).into());
    provenance.insert("data-rows".into(), number(input.dataset.n_rows() as u64)?);
    provenance.insert("data-columns".into(), number(input.dataset.n_columns() as u64)?);
    table.insert("provenance".into(), Value::Table(provenance));
    Ok(table)
}

/// The part of the settings that may stand in a model file: no paths.
pub(crate) fn without_paths(table: &Table) -> serde_json::Value {
    let mut table = table.clone();
    for key in ["data", "valid", "labels", "checkpoint-seconds"] {
        table.remove(key);
    }
    serde_json::to_value(table).unwrap_or_default()
}

/// What was asked must be what the run was started with.
pub(crate) fn check_same(stored: &Table, flags: &Table) -> Result<(), Failure> {
    for (key, value) in flags {
        let was = stored.get(key);
        if key != "checkpoint-seconds" && was.map(Value::to_string) != Some(value.to_string()) {
            let was = was.map_or("not set".into(), Value::to_string);
            return Err(Failure::new(
                format!("`--{key} {value}` differs from what the run was started with: {was}"),
                "a run is resumed as it was; leave the flag out, or start another run",
            ));
        }
    }
    Ok(())
}

fn as_table<T: serde::Serialize>(value: &T) -> Result<Table, Failure> {
    Table::try_from(value)
        .map_err(|e| Failure::new(format!("cannot write the settings: {e}"), "choose other values"))
}

fn number(n: u64) -> Result<Value, Failure> {
    let n = i64::try_from(n).map_err(|_| {
        Failure::new(format!("{n} is too large for a setting"), "choose a number below 2^63")
    })?;
    Ok(Value::Integer(n))
}
