//! What was typed becomes what is learned: flags over a configuration file over defaults.

use crate::args::Common;
use crate::args::data::DataArgs;
use crate::args::finetune::{FinetuneArgs, FinetuneSettings};
use crate::failure::Failure;
use crate::plan;
use clap::{Args as _, Command};
use harmonium::Model;
use harmonium::models::{Activation, Target};
use harmonium::network::NetworkPlan;
use harmonium_data::Reading;
use serde::Deserialize;
use toml::{Table, Value};

/// The word for nets in `run.toml`.
pub(crate) const NETWORK: &str = "network";
/// Keys of a run that are not flags of `finetune`.
const OWN_KEYS: [&str; 7] =
    ["model", "from", "data", "seed", "precision", "labelled-rows", "provenance"];

/// The settings of a run, merged and typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// The model that the net is made of, or `none`.
    pub(crate) from: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) seed: u64,
    pub(crate) settings: FinetuneSettings,
    pub(crate) reading: Reading,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnSettings {
    from: Option<String>,
    data: Option<String>,
    seed: u64,
}

fn all_flags() -> Command {
    DataArgs::augment_args(FinetuneSettings::augment_args(Command::new("finetune")))
}

/// The settings of a file, every key known.
pub(crate) fn parse(text: &str, path: &str) -> Result<Table, Failure> {
    let table = plan::parse_as(text, path, &all_flags(), &OWN_KEYS)?;
    match table.get("model").and_then(Value::as_str) {
        Some(other) if other != NETWORK => Err(Failure::new(
            format!("`{path}` is the configuration of a {other}, not of a net"),
            format!("use `harmonium train {other}`"),
        )),
        _ => Ok(table),
    }
}

/// The flags that were given, as a table.
pub(crate) fn flags(args: &FinetuneArgs, common: &Common) -> Result<Table, Failure> {
    let settings = FinetuneSettings { labelled_rows: args.labelled.rows, ..args.settings.clone() };
    let mut table = plan::as_table(&settings)?;
    table.extend(plan::as_table(&args.labelled.reading)?);
    for (key, given) in [("from", &args.model), ("data", &args.data)] {
        if let Some(given) = given {
            table.insert(key.into(), given.clone().into());
        }
    }
    if let Some(seed) = common.seed {
        table.insert("seed".into(), plan::number(seed)?);
    }
    Ok(table)
}

/// The merged table with its types.
pub(crate) fn typed(table: &Table) -> Result<Asked, Failure> {
    plan::check_words(table, &all_flags())?;
    let OwnSettings { from, data, seed } = plan::read_as(table)?;
    let (settings, reading) = (plan::read_as(table)?, plan::read_as(table)?);
    Ok(Asked { from, data, seed, settings, reading })
}

impl Asked {
    /// The data to learn from.
    pub(crate) fn data(&self) -> Result<&str, Failure> {
        self.data.as_deref().ok_or_else(|| {
            Failure::new(
                "no data was given",
                "`harmonium finetune MODEL DATA …`; `digits` is built in",
            )
        })
    }

    /// The plan: the library's defaults under what was asked.
    pub(crate) fn plan(&self, model: Option<&Model>) -> Result<NetworkPlan, Failure> {
        let hidden = match model {
            None => self.activation(),
            Some(model) if NetworkPlan::is_logistic(&model.body) => Activation::Logistic,
            Some(_) => Activation::Relu,
        };
        let wrong = |e: serde_json::Error| {
            Failure::new(
                format!("a setting is out of range: {e}"),
                "see `harmonium finetune --help`",
            )
        };
        let mut given =
            match serde_json::to_value(plan::as_table(&self.settings)?).map_err(wrong)? {
                serde_json::Value::Object(given) => given,
                _ => serde_json::Map::new(),
            };
        given.insert("seed".into(), self.seed.into());
        given.insert("center".into(), (!self.settings.no_center).into());
        Ok(NetworkPlan::asked(&given, hidden)?)
    }

    /// What the units of further hidden layers are.
    pub(crate) fn activation(&self) -> Activation {
        match self.settings.units.as_deref() {
            Some("logistic") => Activation::Logistic,
            Some("linear") => Activation::Linear,
            _ => Activation::Relu,
        }
    }

    /// What is learned, where that was said.
    pub(crate) fn target(&self) -> Option<Target> {
        match self.settings.target.as_deref()? {
            "tags" => Some(Target::Tags),
            "values" => Some(Target::Values),
            "input" => Some(Target::Input),
            _ => Some(Target::Classes),
        }
    }

    /// Flags that do not go together.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let settings = &self.settings;
        if let Some(s) = settings.checkpoint_seconds.filter(|s| !(s.is_finite() && *s >= 0.0)) {
            return Err(Failure::new(
                format!(
                    "`--checkpoint-seconds {s}` is not possible: it must be finite and not negative"
                ),
                "leave it out for a checkpoint every 30 seconds",
            ));
        }
        if settings.valid.is_some() && settings.valid_share.is_some() {
            return Err(Failure::new(
                "`--valid` and `--valid-share` both say what is validated with",
                "give the validation data, or the share of the training data to set apart",
            ));
        }
        let table = matches!(self.target(), Some(Target::Tags | Target::Values));
        if table && settings.targets.is_none() {
            return Err(Failure::new(
                "tags and values are learned from a table of targets, and there is none",
                "give it with `--targets DATA`",
            ));
        }
        if matches!(self.target(), Some(Target::Classes | Target::Input))
            && settings.targets.is_some()
        {
            return Err(Failure::new(
                "`--targets` is a table of tags or values, and classes or the input are to be learned",
                "leave one of `--targets` and `--target` out",
            ));
        }
        if settings.targets.is_some()
            && (settings.valid.is_some() || settings.labelled_rows.is_some())
        {
            return Err(Failure::new(
                "`--valid` and `--labelled N` go with classes, not with a table of targets",
                "set a share of the rows apart with `--valid-share`",
            ));
        }
        Ok(())
    }
}

/// Everything, with the defaults filled in: the text of `run.toml`.
pub(crate) fn resolved(
    asked: &Asked,
    reading: &Reading,
    plan_: &NetworkPlan,
    provenance: Table,
) -> Result<Table, Failure> {
    let mut table = plan::as_table(&asked.settings)?;
    table.extend(plan::as_table(reading)?);
    let mut planned = plan::as_table(plan_)?;
    planned.remove("center");
    table.extend(planned);
    table.insert("model".into(), NETWORK.into());
    table.insert("from".into(), asked.from.clone().unwrap_or_default().into());
    table.insert("data".into(), asked.data.clone().unwrap_or_default().into());
    table.insert("provenance".into(), Value::Table(provenance));
    Ok(table)
}

/// The part of the settings that may stand in a model file: no paths.
pub(crate) fn without_paths(table: &Table) -> serde_json::Value {
    let mut table = table.clone();
    for key in ["from", "targets"] {
        table.remove(key);
    }
    plan::without_paths(&table)
}
