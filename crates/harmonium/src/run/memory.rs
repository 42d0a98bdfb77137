//! What a model remembers of the data it was trained on.
//!
//! How the data was read, so that other data is read the same way; the shape of its pictures; its
//! means, from which annealing starts, and its spread, from which baselines are made; the names of its
//! classes; the codebook of a table; a fingerprint.

use super::damaged;
use crate::error::Error;
use crate::schema::Schema;
use crate::spread::Spread;
use harmonium_data::frame::Codebook;
use harmonium_data::{Image, Modality, Reading};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a model file says about the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Memory {
    /// How it was read.
    pub reading: Reading,
    /// Height and width of a sample, if it is a picture.
    pub image: Option<(usize, usize)>,
    /// Number of samples.
    pub rows: usize,
    /// Fingerprint of the content.
    pub hash: String,
    /// Mean of each column.
    pub means: Vec<f64>,
    /// Names of the classes, if labels were learned.
    pub classes: Vec<String>,
    /// Which columns fill which layer; files of earlier versions do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// Variances and correlations of real columns; files of earlier versions do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// How the cells of a table became numbers, where it was a table of columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codebook: Option<Codebook>,
    /// The sources that were learned together, if there were several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modalities: Vec<Modality>,
    /// The numbers that the units, layer after layer, had in the file of factors they were read from; empty if
    /// they stand in that order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<usize>,
}

impl Memory {
    /// As it stands in a model file; nothing where nothing is remembered.
    pub(super) fn to_json(&self) -> Value {
        if *self == Self::default() {
            return Value::Null;
        }
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What a model file says.
    ///
    /// # Errors
    ///
    /// If it is not of the right form.
    pub(super) fn from_json(value: &Value) -> Result<Self, Error> {
        if value.is_null() {
            return Ok(Self::default());
        }
        serde_json::from_value(value.clone())
            .map_err(|error| damaged(format!("what it says of its data is wrong: {error}")))
    }

    /// The picture in each sample of `n` values: the one remembered, or a square.
    pub fn image(&self, n: usize) -> Option<Image> {
        let square = Some((n.isqrt(), n.isqrt())).filter(|s| s.0 * s.1 == n && n > 3);
        let (height, width) = self.image.filter(|s| s.0 * s.1 == n).or(square)?;
        Some(Image { height, width })
    }

    /// The means of the visible entries, if one is remembered for each of `n`.
    pub fn means(&self, n: usize) -> Option<Vec<f64>> {
        let known = self.means.len() == n && self.means.iter().all(|m| m.is_finite());
        known.then(|| self.means.clone())
    }
}
