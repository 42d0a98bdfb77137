//! What was typed becomes what is done: flags over a configuration file over defaults.
//!
//! Everything is one flat table whose keys are the flags. `run.toml` holds that table with every
//! default filled in, so a run can be read, repeated (`--config run.toml`) and resumed.

use crate::args::Common;
use crate::args::data::DataArgs;
use crate::args::train::{TrainArgs, TrainSettings};
use crate::failure::Failure;
use crate::load::Input;
use clap::{Args as _, Command};
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role};
use harmonium::models::{Bm, Dbm, Lateral, Rbm};
use harmonium::training::Plan;
use harmonium::units::Units;
use harmonium_data::{Binarize, Summary};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// Keys of a run that are no flags of `train`.
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
    pub(crate) reading: DataArgs,
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

/// Reads a table and refuses what is no flag.
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
    let reading: DataArgs = value.try_into().map_err(wrong)?;
    let data = table.get("data").and_then(Value::as_str).map(str::to_owned);
    let seed = table.get("seed").and_then(Value::as_integer).unwrap_or(0);
    let precision = table.get("precision").and_then(Value::as_str).map(str::to_owned);
    Ok(Asked { data, seed: seed.unsigned_abs(), precision, settings, reading })
}

/// The kind of visible units: as asked, or as the data looks.
pub(crate) fn visible_units(asked: &Asked, input: &Input) -> Result<Units, Failure> {
    let table = input.dataset.table();
    let summary = Summary::of(table);
    let bits = input.dataset.is_sampled() || input.reading.binarize()? != Some(Binarize::None);
    let kind = match asked.settings.visible.as_deref() {
        Some(kind) => kind.to_owned(),
        None if bits => "binary".into(),
        None => summary.visible.to_string(),
    };
    match kind.as_str() {
        "binary" => Ok(Units::Binary),
        "spin" => Ok(Units::Spin),
        "gaussian" => Ok(Units::Gaussian),
        "categorical" => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let seen = summary.max.max(0.0) as usize + 1;
            Ok(Units::Categorical { q: asked.settings.categories.unwrap_or(seen.max(2)) })
        }
        _ => Err(Failure::new(
            format!("the data looks like {kind}, and there are no such units yet: {}", summary.why),
            "say what it is with `--visible binary|spin|gaussian|categorical`",
        )),
    }
}

/// How grey values should be read when nothing was said: as the visible units need.
pub(crate) fn default_binarize(asked: &Asked) -> Option<String> {
    match asked.settings.visible.as_deref() {
        Some("gaussian" | "categorical" | "spin") => Some("none".into()),
        _ => None,
    }
}

/// The machine that was asked for, its parameters zero.
pub(crate) fn machine(
    model: &str,
    asked: &Asked,
    units: Units,
    n_columns: usize,
    n_classes: usize,
) -> Result<Machine, Failure> {
    let machine = unlabelled(model, asked, units, n_columns)?;
    if n_classes == 0 {
        return Ok(machine);
    }
    if model == "bm" {
        return Err(Failure::new("`train bm` takes no labels", "train an rbm or a dbm with them"));
    }
    with_label_layer(&machine, n_classes)
}

/// The machine with a visible layer of one categorical unit, coupled with the top hidden layer.
fn with_label_layer(machine: &Machine, n_classes: usize) -> Result<Machine, Failure> {
    let labels = Layer::new("labels", Role::Visible, Units::Categorical { q: n_classes }, 1)?;
    // After the visible layer, where the columns of the data expect it.
    let mut layers = machine.layers().to_vec();
    layers.insert(1, labels);
    let moved = |l: LayerId| if l.0 == 0 { l } else { LayerId(l.0 + 1) };
    let mut couplings = machine.couplings().to_vec();
    for c in &mut couplings {
        c.between = (moved(c.between.0), moved(c.between.1));
    }
    let top = LayerId(layers.len() - 1);
    let weights = Matrix::zeros(n_classes, layers[top.0].len())?;
    couplings.push(Coupling::between(LayerId(1), top, weights));
    Ok(Machine::new(layers, couplings)?)
}

fn unlabelled(
    model: &str,
    asked: &Asked,
    units: Units,
    n_columns: usize,
) -> Result<Machine, Failure> {
    let hidden = asked.settings.hidden.clone().unwrap_or_default();
    let need = |n: &str| {
        Failure::new(
            format!("`train {model}` needs {n}, found `--hidden {}`", list(&hidden)),
            format!(
                "for example `harmonium train {model} DATA --hidden {} --out RUN`",
                if model == "dbm" { "500,1000" } else { "64" }
            ),
        )
    };
    // Categories come as whole numbers, one column each.
    let n_units = n_columns;
    let one = || match hidden[..] {
        [n] => Ok(n),
        _ => Err(need("one number of hidden units")),
    };
    if let (Some(_), true) = (&asked.settings.lateral, model != "bm") {
        return Err(Failure::new(
            format!("`--lateral` belongs to `train bm`, not to `train {model}`"),
            "leave it out, or train a bm",
        ));
    }
    let refined =
        asked.settings.refine_epochs.is_some() || asked.settings.refine_learning_rate.is_some();
    if refined && model != "dbn" {
        return Err(Failure::new(
            format!("`--refine-epochs` and its rate belong to `train dbn`, not to `train {model}`"),
            "leave them out, or train a dbn",
        ));
    }
    if asked.settings.pretrain_epochs.is_some_and(|n| n > 0) && matches!(model, "rbm" | "bm") {
        return Err(Failure::new(
            format!("`--pretrain-epochs` is for stacks of layers, and `train {model}` has one"),
            "leave it out, or train a dbm",
        ));
    }
    Ok(match model {
        "rbm" => Rbm::new((units, n_units), (Units::Binary, one()?))?.into_machine(),
        "bm" => {
            let lateral = asked.settings.lateral.clone().unwrap_or_default();
            let has = |s: &str| lateral.iter().any(|l| l == s);
            let kind = match (has("visible"), has("hidden")) {
                (true, true) => Lateral::Both,
                (true, false) => Lateral::Visible,
                (false, true) => Lateral::Hidden,
                (false, false) => {
                    return Err(Failure::new(
                        "`train bm` needs to know which layers are coupled inside",
                        "add `--lateral visible`, `hidden` or `visible,hidden`; without any it is an rbm",
                    ));
                }
            };
            Bm::new((units, n_units), (Units::Binary, one()?), kind)?.into_machine()
        }
        _ if hidden.is_empty() => return Err(need("a number of hidden units per layer")),
        _ => {
            let layers: Vec<(Units, usize)> = hidden.iter().map(|&n| (Units::Binary, n)).collect();
            Dbm::new((units, n_units), &layers)?.into_machine()
        }
    })
}

fn list(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The plan: the library's defaults for the machine under what was asked.
pub(crate) fn learning(asked: &Asked, machine: &Machine) -> Result<Plan, Failure> {
    let mut table = as_table(&Plan::suited_to(machine))?;
    let given = as_table(&asked.settings)?;
    let optional = ["sparsity-target", "max-norm", "clip", "pretrain-epochs"];
    for (key, value) in given {
        if table.contains_key(&key) || optional.contains(&key.as_str()) {
            table.insert(key, value);
        }
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

/// Everything, with the defaults filled in: the text of `run.toml`.
pub(crate) fn resolved(
    model: &str,
    asked: &Asked,
    input: &Input,
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
