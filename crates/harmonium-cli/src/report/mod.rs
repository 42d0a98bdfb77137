//! What a run looks like to people: one HTML page that needs nothing else.
//!
//! Pure: the caller gathers the numbers of a run into an [`Input`], and [`html`] turns them into
//! a page without scripts, fonts or pictures from elsewhere. Findings in plain words come first,
//! then the curves, filters and samples they rest on. [`mosaic`] alone draws the pictures of
//! `harmonium sample --out FILE.png`.

mod axis;
mod charts;
mod curves;
mod findings;
mod histogram;
mod markup;
pub(crate) mod mosaic;
mod page;
mod pictures;
mod plot;
#[cfg(test)]
mod tests;

pub(crate) use page::html;

use harmonium_data::Image;
use std::collections::BTreeMap;

/// Everything a report tells. What is empty is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Input {
    /// The heading.
    pub(crate) title: String,
    /// The model in a paragraph: its kind, layers with their kinds of units, parameters.
    pub(crate) description: String,
    /// What was measured, in the order of time.
    pub(crate) records: Vec<Record>,
    /// How the run ended.
    pub(crate) ended: Ended,
    /// What the run said while it went: notes and warnings.
    pub(crate) notes: Vec<String>,
    /// Scores of the final model, with their intervals as text.
    pub(crate) scores: Vec<(String, String)>,
    /// Whether chains of the final model mix, scalar by scalar.
    pub(crate) mixing: Vec<(String, String)>,
    /// The text of `run.toml`.
    pub(crate) config: String,
    /// Facts about the data.
    pub(crate) data: Vec<(String, String)>,
    /// The shape of a sample, if it is a picture.
    pub(crate) image: Option<Image>,
    /// What the units of each hidden layer look for.
    pub(crate) filters: Vec<Filters>,
    /// Some samples of the data, as values or probabilities.
    pub(crate) data_samples: Vec<Vec<f64>>,
    /// Some samples of the model, as probabilities or means.
    pub(crate) model_samples: Vec<Vec<f64>>,
    /// The weights of each coupling.
    pub(crate) weights: Vec<Values>,
    /// The mean activity, over the data, of each unit of each hidden layer.
    pub(crate) activities: Vec<Values>,
}

/// What was measured at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// Epochs finished.
    pub(crate) epoch: u64,
    /// Updates done.
    pub(crate) step: u64,
    /// Time since the start.
    pub(crate) seconds: Option<f64>,
    /// Metrics by name: `family` or `family.part`, such as `log_likelihood.valid`.
    pub(crate) values: BTreeMap<String, f64>,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All epochs are done.
    #[default]
    Finished,
    /// It is still going on, or was interrupted.
    Unfinished,
    /// An observer ended it, for this reason.
    Early(String),
    /// A number was none; what happened.
    Diverged(String),
}

/// Filters of one layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filters {
    /// The layer's name.
    pub(crate) layer: String,
    /// The weights of each unit to a sample, through the layers between.
    pub(crate) tiles: Vec<Vec<f64>>,
    /// The mean activity of each unit, or nothing.
    pub(crate) activity: Vec<f64>,
}

/// Numbers with a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Values {
    /// Of which layer or coupling.
    pub(crate) name: String,
    /// The numbers.
    pub(crate) values: Vec<f64>,
}
