//! What the numbers of a run mean, in sentences with what to do about it.
//!
//! Each rule looks at one symptom in the [`Evidence`] and is silent where it has nothing to look
//! at. A [`Remedy`] carries a value that is taken from the run's [`Plan`]. The healthy size of
//! updates and the free-energy gap are advice of Hinton (*A practical guide to training
//! restricted Boltzmann machines*, 2010); the other thresholds are rules of thumb of our own.

mod chains;
mod health;
mod remedy;
mod samples;
mod score;
#[cfg(test)]
mod tests;
mod trend;
pub mod words;

pub use remedy::Remedy;

use crate::evaluation::baseline::Gain;
use crate::evaluation::diagnose::Scalar;
use crate::evaluation::two_sample::TwoSample;
use crate::run::{Ending, Epoch, Event};
use crate::training::{MetricName, Plan};
use serde::Serialize;
use words::{number, one_digit};

/// What is known of a run. Rules whose part is empty are silent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// What was asked of the run.
    pub plan: Plan,
    /// Its epochs, in the order of time.
    pub epochs: Vec<Epoch>,
    /// How it ended.
    pub ending: Ending,
    /// Some samples of the data, as values or probabilities.
    pub data_samples: Vec<Vec<f64>>,
    /// Some samples of the model, as probabilities or means.
    pub model_samples: Vec<Vec<f64>>,
    /// The weights of each coupling.
    pub weights: Vec<Named>,
    /// The mean activity, over the data, of each unit of each hidden layer.
    pub activities: Vec<Named>,
    /// What was noticed while it went on.
    pub warnings: Vec<String>,
    /// The epoch of the model that is the result, where that is not the last one.
    pub result: Option<u64>,
    /// How chains of the finished model mix.
    pub mixing: Vec<Scalar>,
    /// Its samples against data.
    pub two_sample: Option<TwoSample>,
    /// By how much it is better than a model without couplings.
    pub gain: Option<Gain>,
    /// How many real columns have a precision at the end of its range, and how many there are.
    pub at_bounds: Option<(usize, usize)>,
}

impl Evidence {
    /// What the events of a run say.
    pub fn of(events: &[Event]) -> Self {
        let warning = |event: &Event| match event {
            Event::Warning { what, .. } => Some(what.clone()),
            _ => None,
        };
        Self {
            epochs: events.iter().filter_map(Event::as_epoch).cloned().collect(),
            ending: Ending::of(events),
            warnings: events.iter().filter_map(warning).collect(),
            ..Self::default()
        }
    }

    /// What was not looked at, in words.
    fn missing(&self) -> Vec<&'static str> {
        let looked = [
            (!self.mixing.is_empty(), "whether chains mix"),
            (self.two_sample.is_some(), "samples against data"),
            (self.gain.is_some(), "the score against a baseline"),
        ];
        looked.into_iter().filter(|(seen, _)| !seen).map(|(_, what)| what).collect()
    }
}

/// Numbers with a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Named {
    /// Of which layer or coupling.
    pub name: String,
    /// The numbers.
    pub values: Vec<f64>,
}

/// How much a finding matters, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The result should not be used.
    Problem,
    /// Something to mend or to watch.
    Warning,
    /// Worth knowing.
    Note,
    /// As it should be.
    Good,
}

/// Sentences about a run, with their numbers, and what to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What was seen. Names stand between backticks.
    pub what: String,
    /// What may mend it, the most promising first; one of them may be enough.
    pub remedies: Vec<Remedy>,
}

impl Finding {
    fn new(level: Level, what: impl Into<String>, remedies: impl Into<Vec<Remedy>>) -> Self {
        Self { level, what: what.into(), remedies: remedies.into() }
    }

    fn good(what: impl Into<String>) -> Self {
        Self::new(Level::Good, what, [])
    }
}

/// Everything to be said about a run, worst first.
pub fn findings(evidence: &Evidence) -> Vec<Finding> {
    let rules = [
        ending,
        score::rise,
        score::overfitting,
        score::baseline,
        score::warned,
        health::update_ratio,
        health::dead_units,
        health::saturated_units,
        chains::free_energy,
        chains::mixing,
        samples::samples,
        health::mean_field,
        health::weights,
        health::precisions,
        score::missing,
    ];
    let mut found: Vec<Finding> = rules.iter().filter_map(|rule| rule(evidence)).collect();
    found.sort_by_key(|f| f.level);
    let judged = found.iter().any(|f| f.level == Level::Good);
    if judged && found.iter().all(|f| f.level > Level::Warning) {
        let missing = evidence.missing();
        let what = match missing.split_last() {
            None => "No problem was found.".to_owned(),
            Some((last, rest)) => format!(
                "No problem was found in what was looked at. Not looked at: {}.",
                [rest.join(", "), (*last).to_owned()]
                    .into_iter()
                    .filter(|t| !t.is_empty())
                    .collect::<Vec<_>>()
                    .join(" and ")
            ),
        };
        let level = if missing.is_empty() { Level::Good } else { Level::Note };
        found.insert(0, Finding::new(level, what, []));
    }
    found
}

/// One word for everything that was found: how much the worst of it matters; `None` if nothing was
/// judged.
pub fn verdict(found: &[Finding]) -> Option<Level> {
    found.first().map(|worst| worst.level)
}

/// Numbers that ran away, or a run that did not end as planned.
fn ending(evidence: &Evidence) -> Option<Finding> {
    let broken = evidence.epochs.iter().find_map(|epoch| {
        let (name, value) = numbers(epoch).into_iter().find(|(_, x)| !x.is_finite())?;
        Some(format!("`{name}` became {} in epoch {}", number(value), epoch.epoch))
    });
    let runaway = |what: String| {
        let slower = Remedy::LowerLearningRate(one_digit(evidence.plan.learning_rate / 3.0));
        let what = format!("{what} The model that was kept is the last good one.");
        let remedies = [slower, Remedy::Standardise].into_iter().chain(centering(&evidence.plan));
        Some(Finding::new(Level::Problem, what, remedies.collect::<Vec<_>>()))
    };
    match (&evidence.ending, broken) {
        (Ending::Diverged(why), _) => {
            runaway(format!("Training diverged and was stopped: {}.", sentence_end(why)))
        }
        (_, Some(broken)) => runaway(format!("Numbers ran away: {broken}.")),
        (Ending::Stopped(why), None) => {
            let what = format!("The run was ended early: {}.", sentence_end(why));
            Some(Finding::new(Level::Note, what, []))
        }
        (Ending::Unfinished, None) => Some(Finding::new(
            Level::Note,
            "The run has not finished its epochs; this is how it stands so far.",
            [Remedy::LetItRun, Remedy::Resume],
        )),
        (Ending::Finished, None) => None,
    }
}

/// All numbers of an epoch that should be finite, by name.
fn numbers(epoch: &Epoch) -> Vec<(&str, f64)> {
    let own = [("gradient_norm", epoch.gradient_norm), ("update_ratio", epoch.update_ratio)];
    let measured = epoch.measurements.iter().map(|m| (m.name.as_str(), m.value));
    own.into_iter().chain(measured).collect()
}

/// Centering, where it was left out.
fn centering(plan: &Plan) -> Option<Remedy> {
    (!plan.center).then_some(Remedy::KeepCentering)
}

fn sentence_end(text: &str) -> &str {
    text.trim_end_matches(['.', ' ', '\n'])
}

/// The values of a metric, where it was measured.
fn metric(evidence: &Evidence, name: &MetricName) -> Vec<f64> {
    evidence.epochs.iter().filter_map(|e| e.measurements.value(name)).collect()
}
