//! The best model of a run by its score on validation data, and patience.
//!
//! The result of a run with validation data is the model of the epoch whose score was highest, not the
//! last one: what follows the best epoch has learned its samples by heart, or has run away. A run is
//! judged by one score from its beginning to its end, the most telling of those that its first
//! measurement has; two scores cannot be compared. Of a likelihood whose $\ln Z$ is estimated the lower end counts.

use super::directory::part::BEST;
use super::model_file::Model;
use super::store::RunStore;
use crate::evaluation::validation::ANNEALED;
use crate::progress::Listener;
use crate::training::{Best, Measurements, MetricName, On};
use serde_json::{Value, json};

/// Scores by which the best model is chosen, the most telling first.
pub(super) static SCORES: [MetricName; 7] = [
    MetricName::ErrorRate(On::Valid),
    MetricName::AveragePrecision(On::Valid),
    MetricName::Loss(On::Valid),
    MetricName::LogLikelihood(On::Valid),
    MetricName::Bound(On::Valid),
    MetricName::PseudoLikelihood(On::Valid),
    ANNEALED,
];

/// The best score of a run on its validation data.
#[derive(Clone, Debug, PartialEq)]
pub struct BestScore {
    /// What was measured.
    pub name: MetricName,
    /// Its best value; of a likelihood with an error bar its highest lower end.
    pub value: f64,
    /// The epoch after which it was measured: that of the result.
    pub epoch: u64,
}

/// Which model of a run is the best so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Validated {
    /// The score that decides.
    score: Option<MetricName>,
    best: Best,
    /// The checksum of the file of the best model.
    checksum: Option<String>,
}

impl Validated {
    /// Whether what was measured after an epoch makes its model the best so far.
    pub(super) fn is_best(&mut self, found: &Measurements, epoch: u64) -> bool {
        if self.score.is_none() {
            self.score = SCORES.iter().find(|name| found.get(name).is_some()).cloned();
        }
        let Some(name) = &self.score else { return false };
        let value = found.lower_end(name).map(|value| self.sign() * value);
        value.is_some_and(|value| self.best.look(value, epoch))
    }

    /// Makes the model of `epoch` the best: a second look found `value` for it, and less for the one before.
    pub(super) fn replace(&mut self, value: f64, epoch: u64) {
        self.best.set(Some((value, epoch)));
    }

    /// Takes up the checksum of the file that the best model was written to.
    pub(super) fn keep(&mut self, checksum: String) {
        self.checksum = Some(checksum);
    }

    /// The reason to stop, if the score was measured and has not risen for `patience` epochs.
    pub(super) fn is_late(
        &self,
        found: &Measurements,
        epoch: u64,
        patience: u64,
    ) -> Option<String> {
        let name = self.score.as_ref()?;
        let (_, of) = self.best.found()?;
        found.get(name)?;
        if of == epoch {
            return None;
        }
        let late = self.best.is_late(name.as_str(), epoch, patience)?;
        let best = self.best()?;
        Some(if name.is_cost() {
            format!("{name} has not fallen below {:.4} since epoch {}", best.value, best.epoch)
        } else {
            late
        })
    }

    /// −1 where less of the score is better: what is kept rises.
    fn sign(&self) -> f64 {
        if self.score.as_ref().is_some_and(MetricName::is_cost) { -1.0 } else { 1.0 }
    }

    /// The best score.
    pub(super) fn best(&self) -> Option<BestScore> {
        let (value, epoch) = self.best.found()?;
        Some(BestScore { name: self.score.clone()?, value: self.sign() * value, epoch })
    }

    /// Writes what a checkpoint holds of it.
    pub(super) fn export(&self, state: &mut Value) {
        state["best"] = json!(self.best.found().map(|b| b.0));
        state["best_epoch"] = json!(self.best.found().map(|b| b.1));
        state["best_checksum"] = json!(self.checksum);
        state["best_score"] = json!(self.score.as_ref().map(MetricName::as_str));
    }

    /// What a checkpoint says. Those of earlier versions do not name the score: it is found anew.
    pub(super) fn import(state: &Value) -> Self {
        let mut best = Best::default();
        best.set(state["best"].as_f64().zip(state["best_epoch"].as_u64()));
        let score = state["best_score"].as_str().map(MetricName::from);
        Self { score, best, checksum: state["best_checksum"].as_str().map(str::to_owned) }
    }

    /// The result of a run that ended with the model `last`: the best model, where there is one and its
    /// file is as it was written.
    pub(super) fn result(
        &self,
        store: &dyn RunStore,
        last: Model,
        listener: &mut dyn Listener,
    ) -> Model {
        let Some((_, epoch)) = self.best.found() else { return last };
        match store.read_best() {
            Ok(Some((model, checksum)))
                if model.about.epoch == epoch
                    && self.checksum.as_ref().is_none_or(|known| *known == checksum) =>
            {
                model
            }
            _ => {
                listener.note(&format!(
                    "the best model, of epoch {epoch}, is lost: the result is the last one, of epoch {}",
                    last.about.epoch
                ));
                last
            }
        }
    }

    /// What is wrong with the file of the best model that a checkpoint knows of. A later one is as it
    /// should be: it was written after the checkpoint, and will be written again.
    pub(super) fn lost(&self, store: &dyn RunStore) -> Option<String> {
        let (score, epoch) =
            self.best.found().map(|(value, epoch)| (self.sign() * value, epoch))?;
        let wrong = match store.read_best() {
            Ok(None) => "is missing".to_owned(),
            Ok(Some((model, _))) if model.about.epoch < epoch => {
                format!("is of epoch {}", model.about.epoch)
            }
            Ok(Some((model, checksum))) => {
                let known = self.checksum.as_ref().filter(|_| model.about.epoch == epoch);
                known.filter(|known| **known != checksum)?;
                "has changed since it was written".to_owned()
            }
            Err(error) => format!("cannot be read ({error})"),
        };
        Some(format!(
            "the best model so far, of epoch {epoch} with a score of {score:.4}, is lost: `{BEST}` {wrong}; \
             training goes on and keeps only a better one"
        ))
    }
}
