//! A search that is asked for in words: settings that were given stay, the others are searched for.

use super::{Autopilot, Effort, Hidden, Note, Open, Trial};
use crate::error::Error;
use crate::model::request::{AUTO, Family, Request, Sources};
use crate::model::train::VALID_SHARE;
use crate::models::{Dbm, Lateral};
use crate::progress::Listener;
use crate::training::Rule;
use harmonium_data::Labels;
use serde_json::json;

/// A search that has ended.
#[derive(Clone, Debug)]
pub struct Searched {
    /// What was asked, and what was found: the settings of the best trial.
    pub request: Request,
    /// All trials, in the order they were made.
    pub trials: Vec<Trial>,
}

impl Request {
    /// The same with what a search needs besides: rows to validate with, unless there are some, and the usual couplings.
    ///
    /// # Errors
    ///
    /// If the model has no likelihood to choose by, or its length was given, which is what a search is for.
    pub fn to_search(&self, model: Family, is_validated: bool) -> Result<Self, Error> {
        if model == Family::Dbn {
            return Err(Error::Topology {
                model: "the autopilot",
                expected: "a machine, whose likelihood is tracked while it learns",
                found: "a deep belief network".into(),
            });
        }
        let refused = |name, value: String, range| Err(Error::Setting { name, value, range });
        if let Some(epochs) = self.given.get("epochs") {
            let range = "left out where the autopilot is to find it";
            return refused("epochs", epochs.to_string(), range);
        }
        if !self.objective()?.is_generative() {
            let value = self.given.get("objective").map_or(String::new(), ToString::to_string);
            return refused("objective", value, "generative where likelihoods are compared");
        }
        let mut given = self.given.clone();
        if !is_validated && !given.contains_key("valid-share") {
            given.insert("valid-share".into(), json!(VALID_SHARE));
        }
        if model == Family::Bm && !given.contains_key("lateral") {
            let layers = Lateral::default().layers();
            given.insert("lateral".into(), json!(layers));
        }
        Ok(Self { given })
    }

    /// The hidden units that were given, or those that are to be found.
    ///
    /// # Errors
    ///
    /// If they are of the wrong type.
    pub fn hidden(&self, model: Family) -> Result<Hidden, Error> {
        let layers = if model == Family::Dbm { Dbm::USUAL_LAYERS } else { 1 };
        Ok(Hidden::given_or(self.setting("hidden")?, layers))
    }

    /// Searches for the settings that were not given, by the likelihood of the validation rows. Trials in `done` are not made
    /// again; `note` hears of each that is.
    ///
    /// # Errors
    ///
    /// As [`Request::to_search`]; if there are no validation rows, the data does not fit, or the listener asks to stop.
    pub fn search(
        &self,
        model: Family,
        sources: &Sources<'_>,
        (done, note): (&[Trial], &mut Note<'_>),
        listener: &mut dyn Listener,
    ) -> Result<Searched, Error> {
        let asked = self.to_search(model, sources.valid.is_some())?;
        let Some(valid) = sources.valid else {
            return Err(Error::Topology {
                model: "the autopilot",
                expected: "rows to choose by",
                found: "no validation rows".into(),
            });
        };
        let n_classes = sources.train.labels().map_or(0, Labels::n_classes);
        let layers = asked.layers(sources.train)?;
        let shape = |hidden: &[usize]| {
            let mut request = asked.clone();
            request.given.insert("hidden".into(), json!(hidden));
            request.blueprint(model, layers.clone(), n_classes)
        };
        let hidden = asked.hidden(model)?;
        let is_open = |name: &str| !asked.given.contains_key(name);
        let autopilot = Autopilot {
            train: sources.train,
            valid,
            apart: asked.given.contains_key("valid-share"),
            plan: asked.plan(&shape(&hidden.some())?)?,
            shape: &shape,
            hidden,
            open: Open {
                rule: is_open("rule"),
                learning_rate: is_open("learning-rate"),
                k: is_open("k"),
                l2: is_open("l2"),
            },
            effort: asked.setting::<Effort>("effort")?.unwrap_or_default(),
        };
        let (n, updates) = autopilot.work();
        listener.announce(&format!(
            "the autopilot makes at most {n} trials, {updates} updates of {} rows in all, then trains the best again",
            autopilot.plan.batch
        ));
        let (best, trials) = autopilot.run(done, note, listener)?;
        let mut request = asked.with(&best);
        // Where nothing is left to chance on the way, nothing has to be watched: every row is learned from.
        if autopilot.apart && best.rule == Rule::Exact && is_open("patience") {
            let plan = autopilot.on_all_rows(&best);
            request.given.remove("valid-share");
            request.given.insert("epochs".into(), json!(plan.epochs));
            if plan.batch != autopilot.plan.batch {
                request.given.insert("batch".into(), json!(plan.batch));
            }
        }
        Ok(Searched { request, trials })
    }

    /// What was given, and what a trial found.
    #[must_use]
    pub fn with(&self, best: &Trial) -> Self {
        let mut given = self.given.clone();
        // The run is that of the settings, however they were found.
        given.remove("effort");
        let steered = given.get("k").and_then(|k| k.as_str()) == Some(AUTO);
        for (key, value) in best.settings() {
            if key != "k" || !steered {
                given.insert(key.into(), value);
            }
        }
        Self { given }
    }
}
