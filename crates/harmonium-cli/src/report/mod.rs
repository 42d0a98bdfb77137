//! What a run looks like to people: one HTML page that needs nothing else.
//!
//! Pure: the caller gathers the numbers of a run into [`Contents`], and [`html`] turns them into
//! a page without scripts, fonts or pictures from elsewhere. Findings in plain words come first,
//! then the curves, filters and samples they rest on. [`mosaic`] alone draws the pictures of
//! `harmonium sample --out FILE.png`.

mod axis;
mod charts;
mod curves;
mod histogram;
mod markup;
pub(crate) mod mosaic;
mod page;
mod pictures;
mod plot;
#[cfg(test)]
mod tests;

pub(crate) use page::html;

use harmonium::findings::{Evidence, Finding};
pub(crate) use harmonium::model::Filters;
use harmonium_data::Image;

/// Everything a report tells. What is empty is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Contents {
    /// The heading.
    pub(crate) title: String,
    /// The model in a paragraph: its kind, layers with their kinds of units, parameters.
    pub(crate) description: String,
    /// What the numbers mean.
    pub(crate) findings: Vec<Finding>,
    /// The numbers: epochs, samples, weights, activities.
    pub(crate) evidence: Evidence,
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
    /// Rows that were put in another class than their label.
    pub(crate) mistakes: Vec<Mistake>,
}

/// A row that was put in another class than its label.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mistake {
    /// Its values, from 0 to 1.
    pub(crate) values: Vec<f64>,
    /// Its label.
    pub(crate) label: String,
    /// The class that was found, and its probability.
    pub(crate) found: (String, f64),
}
