//! What is asked of a training, in words: the settings that the command line, configuration files and
//! Python share.
//!
//! Settings are a table whose keys are those of `run.toml`. What is not given has the default of the
//! model ([`Blueprint::suited_plan`]), so every face trains the same model from the same words and seed.

use super::LabelMonitor;
use super::train::{Blueprint, Training, VALID_SHARE};
use crate::error::Error;
use crate::evaluation::tracking::Watch;
use crate::machine::{Layer, Machine, Role};
use crate::models::{
    Above, Lateral, MOST_COUPLED_COLUMNS, MultimodalDbm, coupled_columns, over,
    with_coupled_columns, with_labels,
};
use crate::optim::Schedule;
use crate::run::{About, Memory, Model, Recording};
use crate::training::{Guarding, Metric, Objective, Plan};
use crate::units::Units;
use harmonium_data::{Dataset, Labels, Reading, Visible};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::fmt;

/// The learning rate of the refinement of a deep belief network, before decay.
const REFINE_RATE: f64 = 0.001;
/// Passes over the data for each layer of the pathways of several modalities, before all are trained together.
const PATHWAY_EPOCHS: u64 = 20;
/// The word for sweeps that follow what a guard advises.
pub(super) const AUTO: &str = "auto";
/// Settings that name files or depend on the clock: no part of what a model was asked.
const NOT_REMEMBERED: [&str; 9] = [
    "data",
    "valid",
    "labels",
    "valid-labels",
    "checkpoint-seconds",
    "modality",
    "reading-of",
    "rows",
    "names",
];

/// The models that can be trained, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Family {
    /// A restricted Boltzmann machine.
    Rbm,
    /// A general Boltzmann machine.
    Bm,
    /// A deep Boltzmann machine.
    Dbm,
    /// A deep belief network.
    Dbn,
    /// A multimodal deep Boltzmann machine.
    Multimodal,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rbm => "rbm",
            Self::Bm => "bm",
            Self::Dbm => "dbm",
            Self::Dbn => "dbn",
            Self::Multimodal => "multimodal",
        })
    }
}

/// The data of a training, and how it was read.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'d> {
    /// What is learned from, with its labels if they are learned.
    pub train: &'d Dataset,
    /// What the training is watched with.
    pub valid: Option<&'d Dataset>,
    /// How both were read.
    pub reading: &'d Reading,
    /// Fingerprints of what was read, by the names they have in `run.toml`.
    pub fingerprints: &'d [(&'static str, String)],
}

/// A training that can begin.
pub struct Prepared<'d> {
    /// What is trained, on what, and how.
    pub training: Training<'d>,
    /// How it is recorded.
    pub recording: Recording<'d>,
    /// What `run.toml` holds, but for the names of files.
    pub configuration: Map<String, Value>,
}

/// The settings of a training that were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Their values by their names.
    pub given: Map<String, Value>,
}

impl Request {
    /// A setting that was given, in its type.
    pub(super) fn setting<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let Some(value) = self.given.get(name) else { return Ok(None) };
        serde_json::from_value(value.clone()).map(Some).map_err(|error| wrong(name, value, &error))
    }

    /// The visible layers that fit the data: of the units asked for, or of those that its values suggest.
    ///
    /// # Errors
    ///
    /// If there are no such units.
    pub fn layers(&self, data: &Dataset) -> Result<Vec<Layer>, Error> {
        if self.setting::<String>("groups")?.as_deref() == Some("auto")
            && let Some(layers) = super::grouped_layers(data)?
        {
            return Ok(layers);
        }
        super::fitting_layers(data, self.visible()?, self.setting("categories")?)
    }

    /// The model that was asked for with all parameters at zero, for `n_visible` visible units.
    ///
    /// # Errors
    ///
    /// As [`Request::blueprint`]; and for a deep belief network, which is made by learning alone.
    pub fn blank(&self, model: Family, n_visible: usize) -> Result<Model, Error> {
        let units = match self.visible()? {
            None | Some(Visible::Binary) => Units::Binary,
            Some(Visible::Spin) => Units::Spin,
            Some(Visible::Categorical) => {
                Units::Categorical { q: self.setting("categories")?.unwrap_or(2) }
            }
            Some(Visible::Counts) => {
                let most = self.setting::<usize>("categories")?.map(|q| q.saturating_sub(1));
                Units::Counts { max: most.unwrap_or(15) }
            }
            Some(_) => Units::Gaussian,
        };
        let visible = Layer::new("visible", Role::Visible, units, n_visible)?;
        match self.blueprint(model, vec![visible], 0)? {
            Blueprint::Machine(machine) => Ok(Model::from(machine)),
            Blueprint::Dbn(_) => Err(Error::Topology {
                model: "a model without training",
                expected: "a machine",
                found: "a deep belief network is made of what its layers learn".into(),
            }),
        }
    }

    /// The kind of visible units that was asked for.
    ///
    /// # Errors
    ///
    /// If there is no kind of that name.
    pub fn visible(&self) -> Result<Option<Visible>, Error> {
        let named = |name: &str| match name {
            "binary" => Ok(Visible::Binary),
            "spin" => Ok(Visible::Spin),
            "gaussian" => Ok(Visible::Gaussian),
            "categorical" => Ok(Visible::Categorical),
            "counts" => Ok(Visible::Counts),
            _ => Err(Error::Setting {
                name: "visible",
                value: format!("`{name}`"),
                range: "binary, spin, gaussian, categorical or counts",
            }),
        };
        self.setting::<String>("visible")?.as_deref().map(named).transpose()
    }

    /// The model that was asked for, to be trained on these visible layers.
    ///
    /// # Errors
    ///
    /// If its layers are not those that such a model has, or memory ends.
    pub fn blueprint(
        &self,
        model: Family,
        visible: Vec<Layer>,
        n_classes: usize,
    ) -> Result<Blueprint, Error> {
        if model == Family::Multimodal {
            return self.multimodal(visible);
        }
        let hidden: Vec<usize> = self.setting("hidden")?.unwrap_or_default();
        let above = match model {
            Family::Dbn if hidden.len() < 2 => {
                return Err(Error::Hidden {
                    model: "a dbn",
                    expected: "at least two hidden layers",
                    found: hidden,
                });
            }
            Family::Dbn => return Blueprint::dbn(&visible, hidden, n_classes),
            Family::Rbm => Above::Rbm(one("an rbm", hidden)?),
            Family::Bm => Above::Bm(one("a bm", hidden)?, self.lateral()?),
            Family::Dbm if hidden.is_empty() => {
                let expected = "a number of hidden units for each layer";
                return Err(Error::Hidden { model: "a dbm", expected, found: hidden });
            }
            Family::Dbm | Family::Multimodal => Above::Dbm(&hidden),
        };
        let machine = over(visible, above)?;
        let machine = if model == Family::Rbm { self.coupled(machine)? } else { machine };
        let machine = if n_classes > 0 { with_labels(&machine, n_classes)? } else { machine };
        Ok(Blueprint::Machine(machine))
    }

    /// Pathways of the modalities that the layers are named after, which meet in a joint layer: `pathway` is a list of
    /// `NAME=N,…`, `joint` a number of units.
    fn multimodal(&self, visible: Vec<Layer>) -> Result<Blueprint, Error> {
        let joint: Option<usize> = self.setting("joint")?;
        let joint = joint.ok_or(Error::Setting {
            name: "joint",
            value: "not given".into(),
            range: "a number of hidden units in which the modalities meet",
        })?;
        let pathways: Vec<String> = self.setting("pathway")?.unwrap_or_default();
        let hidden: Vec<_> = pathways.iter().map(|p| pathway(p)).collect::<Result<_, _>>()?;
        Ok(Blueprint::from(MultimodalDbm::over(visible, &hidden, joint)?))
    }

    /// An RBM with its real columns coupled with each other, unless that is not wanted.
    fn coupled(&self, machine: Machine) -> Result<Machine, Error> {
        let lateral: Vec<String> = self.setting("lateral")?.unwrap_or_default();
        if lateral == ["none"] {
            return Ok(machine);
        }
        let machine = with_coupled_columns(&machine)?;
        if lateral.is_empty() || lateral == ["visible"] && coupled_columns(&machine) > 0 {
            return Ok(machine);
        }
        Err(Error::Setting {
            name: "lateral",
            value: lateral.join(","),
            range: "none, or visible where an rbm has from 2 to 256 real columns; everything else is a bm",
        })
    }

    /// What a person should know of the machine that was made: how real columns start, where nothing was asked about that.
    pub fn notes(&self, model: Family, machine: &Machine) -> Vec<String> {
        if model != Family::Rbm || self.given.contains_key("lateral") {
            return Vec::new();
        }
        let n = coupled_columns(machine);
        if n > 0 {
            return vec![format!(
                "the {n} real columns are coupled with each other and start as one Gaussian, the inverse of their \
                 shrunken covariance (the setting `lateral` with `none` leaves that out)"
            )];
        }
        let real = |l: &&Layer| l.role == Role::Visible && l.units == Units::Gaussian;
        let widest = machine.layers().iter().filter(real).map(Layer::len).max().unwrap_or(0);
        if widest <= MOST_COUPLED_COLUMNS {
            return Vec::new();
        }
        vec![format!(
            "{widest} real columns are not coupled with each other: that is done for up to {MOST_COUPLED_COLUMNS}"
        )]
    }

    /// Which layers are coupled inside.
    fn lateral(&self) -> Result<Lateral, Error> {
        let lateral: Vec<String> = self.setting("lateral")?.unwrap_or_default();
        let has = |layer: &str| lateral.iter().any(|l| l == layer);
        match (has("visible"), has("hidden")) {
            (true, true) => Ok(Lateral::Both),
            (true, false) => Ok(Lateral::Visible),
            (false, true) => Ok(Lateral::Hidden),
            (false, false) => Err(Error::Setting {
                name: "lateral",
                value: if lateral.is_empty() { "not given".into() } else { lateral.join(",") },
                range: "visible, hidden or both: which layers of a bm are coupled inside; without any it is an rbm",
            }),
        }
    }

    /// The plan: the defaults of the model under what was asked.
    ///
    /// # Errors
    ///
    /// If a setting is of the wrong type or out of range.
    pub fn plan(&self, blueprint: &Blueprint) -> Result<Plan, Error> {
        let mut plan = blueprint.suited_plan()?;
        if self.given.contains_key("joint") {
            plan.pretrain_epochs = PATHWAY_EPOCHS;
        }
        self.over(plan)
    }

    /// What was asked, over a plan.
    fn over(&self, plan: Plan) -> Result<Plan, Error> {
        let mut plan = as_map(&plan);
        let given = self.given.iter().filter(|(key, _)| Plan::KEYS.contains(&key.as_str()));
        let mut given: Map<String, Value> =
            given.map(|(key, value)| (key.clone(), value.clone())).collect();
        if given.get("k").and_then(Value::as_str) == Some(AUTO) {
            given.extend([("k".into(), json!("1")), ("steer".into(), json!(true))]);
        }
        if let Some(off) = self.setting::<bool>("no-center")? {
            given.insert("center".into(), json!(!off));
        }
        for (name, value) in &given {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            serde_json::from_value::<Plan>(Value::Object(alone))
                .map_err(|error| wrong(name, value, &error))?;
        }
        plan.extend(given);
        let plan: Plan = serde_json::from_value(Value::Object(plan)).map_err(|error| {
            Error::SettingType { name: "a setting".into(), reason: error.to_string() }
        })?;
        plan.check()?;
        Ok(plan)
    }

    /// A plan of plain ascent, for callers that learn on step by step: a rate that stays, no momentum, no
    /// penalties, no centering, unless they are given.
    ///
    /// # Errors
    ///
    /// As [`Request::plan`].
    pub fn plain_plan(&self) -> Result<Plan, Error> {
        let plain = Plan {
            decay: Schedule::Constant(1.0),
            momentum: Schedule::Constant(0.0),
            l2: 0.0,
            center: false,
            ..Plan::default()
        };
        self.over(plain)
    }

    /// The plan with which all layers of a deep belief network are refined together.
    ///
    /// # Errors
    ///
    /// If a setting is of the wrong type.
    pub fn refinement(&self, plan: &Plan) -> Result<Plan, Error> {
        Ok(Plan {
            epochs: self.setting("refine-epochs")?.unwrap_or(0),
            learning_rate: self.setting("refine-learning-rate")?.unwrap_or(REFINE_RATE),
            ..plan.clone()
        })
    }

    /// The root of all randomness.
    ///
    /// # Errors
    ///
    /// If it is of the wrong type.
    pub fn seed(&self) -> Result<u64, Error> {
        Ok(self.setting("seed")?.unwrap_or_default())
    }

    /// The share of the rows that is set apart for validation where there are no rows for that: the one
    /// asked for, or the usual one where patience needs it.
    ///
    /// # Errors
    ///
    /// If a setting is of the wrong type.
    pub fn valid_share(&self) -> Result<Option<f64>, Error> {
        let patience: Option<u64> = self.setting("patience")?;
        Ok(self.setting("valid-share")?.or(patience.map(|_| VALID_SHARE)))
    }

    /// What is climbed.
    ///
    /// # Errors
    ///
    /// If it is not a word for that.
    pub fn objective(&self) -> Result<Objective, Error> {
        Ok(self.setting("objective")?.unwrap_or(Objective::Generative))
    }

    /// What is measured.
    ///
    /// # Errors
    ///
    /// If it is not a word for that.
    pub fn watch(&self) -> Result<Watch, Error> {
        let name: Option<String> = self.setting("watch")?;
        let objective = self.objective()?;
        match name.as_deref() {
            // Where classes are what counts, a likelihood is not what a run is judged by.
            None if !objective.is_generative() => Ok(Watch::None),
            Some("none") => Ok(Watch::None),
            Some("pseudo") => Ok(Watch::Pseudo),
            None | Some("likelihood") => Ok(Watch::Likelihood),
            Some(other) => Err(Error::Setting {
                name: "watch",
                value: format!("`{other}`"),
                range: "none, pseudo or likelihood",
            }),
        }
    }

    /// Everything, with the defaults filled in: what `run.toml` holds.
    pub fn configuration(
        &self,
        model: Family,
        sources: &Sources<'_>,
        visible: &[Layer],
        plan: &Plan,
    ) -> Map<String, Value> {
        let mut table = self.given.clone();
        table.extend(as_map(sources.reading));
        let mut settings = as_map(plan);
        settings.remove("center");
        if settings.remove("steer").is_some() {
            settings.insert("k".into(), json!(AUTO));
        }
        table.extend(settings);
        table.insert("model".into(), json!(model.to_string()));
        table.insert("no-center".into(), json!(!plan.center));
        // Columns of a table have kinds of their own.
        if let ([layer], None) = (visible, sources.train.book()) {
            table.insert("visible".into(), json!(layer.units.name()));
            if let Units::Categorical { q } = layer.units {
                table.insert("categories".into(), json!(q));
            }
            if let Units::Counts { max } = layer.units {
                table.insert("categories".into(), json!(max + 1));
            }
        }
        let mut provenance = Map::new();
        provenance.insert("library-version".into(), json!(env!("CARGO_PKG_VERSION")));
        for (key, hash) in sources.fingerprints {
            provenance.insert((*key).to_owned(), json!(hash));
        }
        provenance.insert("data-rows".into(), json!(sources.train.n_rows()));
        provenance.insert("data-columns".into(), json!(sources.train.n_columns()));
        if let Some(valid) = sources.valid {
            provenance.insert("validation-rows".into(), json!(valid.n_rows()));
        }
        table.insert("provenance".into(), Value::Object(provenance));
        table
    }

    /// The part of a configuration that a model remembers: no paths, no times.
    pub fn remembered(configuration: &Map<String, Value>) -> Value {
        let kept = |(key, _): &(&String, &Value)| !NOT_REMEMBERED.contains(&key.as_str());
        let kept = configuration.iter().filter(kept).map(|(k, v)| (k.clone(), v.clone()));
        Value::Object(kept.collect())
    }

    /// The training that was asked for, and how it is recorded.
    ///
    /// # Errors
    ///
    /// If the data does not fit, or a setting is out of range.
    pub fn prepare<'d>(&self, model: Family, sources: Sources<'d>) -> Result<Prepared<'d>, Error> {
        let data = sources.train;
        let visible = self.layers(data)?;
        let n_classes = data.labels().map_or(0, Labels::n_classes);
        let blueprint = self.blueprint(model, visible.clone(), n_classes)?;
        let plan = self.plan(&blueprint)?;
        let refinement = self.refinement(&plan)?;
        let configuration = self.configuration(model, &sources, &visible, &plan);
        let guarding = if plan.steer { Guarding::Steer } else { Guarding::Warn };
        let hash = sources.fingerprints.iter().find(|(name, _)| *name == "data-hash");
        let mut metrics: Vec<Box<dyn Metric>> = Vec::new();
        if !plan.objective.is_generative() {
            metrics.push(Box::new(LabelMonitor::new(data, sources.valid)?));
        }
        let training = Training { blueprint, data, plan, refinement };
        // Another file has its own variables and rows.
        let reading =
            Reading { variable: None, rows: None, names: None, ..sources.reading.clone() };
        let hash = hash.map(|(_, hash)| hash.clone()).unwrap_or_default();
        let recording = Recording {
            about: About {
                seed: training.plan.seed,
                config: Self::remembered(&configuration),
                data: Memory { reading, hash, ..training.memory()? },
                ..About::default()
            },
            train: data,
            valid: sources.valid,
            patience: self.setting("patience")?,
            checkpoint_seconds: self.setting("checkpoint-seconds")?.unwrap_or(30.0),
            watch: self.watch()?,
            guarding,
            metrics,
        };
        Ok(Prepared { training, recording, configuration })
    }
}

/// The hidden layers of a modality, `NAME=N,…`.
fn pathway(text: &str) -> Result<(String, Vec<usize>), Error> {
    let read = || {
        let (name, sizes) = text.split_once('=')?;
        let sizes: Option<Vec<usize>> = sizes.split(',').map(|n| n.trim().parse().ok()).collect();
        Some((name.trim().to_owned(), sizes?))
    };
    read().ok_or_else(|| Error::Setting {
        name: "hidden",
        value: format!("`{text}`"),
        range: "NAME=N,… for each modality: the numbers of hidden units of its layers, from below",
    })
}

/// The one number of hidden units.
fn one(model: &'static str, found: Vec<usize>) -> Result<usize, Error> {
    match found[..] {
        [n] => Ok(n),
        _ => Err(Error::Hidden { model, expected: "one number of hidden units", found }),
    }
}

fn wrong(name: &str, value: &Value, error: &serde_json::Error) -> Error {
    Error::SettingType { name: name.to_owned(), reason: format!("{value} ({error})") }
}

/// A struct as a table.
fn as_map<T: serde::Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}
