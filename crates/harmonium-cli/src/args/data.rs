//! How data is read: the flags that every DATA takes.

use crate::failure::Failure;
use clap::Args;
use harmonium_data::Reading;
use serde::{Deserialize, Serialize};

/// Flags of every DATA; the same words are keys of configuration files.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "How data is read")]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct DataArgs {
    /// Variable of a .mat or .npz file, e.g. `train_data` or `data.X1`
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variable: Option<String>,
    /// Samples are columns, not rows
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) transpose: bool,
    /// Columns to use, from 0, the end left out, e.g. `0..64`
    #[arg(long, value_name = "A..B")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) columns: Option<String>,
    /// Column that holds the label; negative counts from the end
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label_column: Option<isize>,
    /// Each row packs N bits into bytes, most significant first
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) packed_bits: Option<usize>,
    /// Exchange dark and light: x becomes its full scale minus x
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) invert: bool,
    /// Grey values to bits: `sample` draws anew at each presentation, a number T is a threshold
    #[arg(long, value_name = "sample|T|none")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) binarize: Option<String>,
    /// Largest value the source can hold [default: 255 for images, else the largest seen]
    #[arg(long, value_name = "X")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) full_scale: Option<f32>,
    /// Each row is a picture of height H and width W, listed along its rows or down its columns
    #[arg(long, value_name = "HxW[:column-major]")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
}

impl DataArgs {
    /// The same as the library takes it.
    pub(crate) fn reading(&self) -> Result<Reading, Failure> {
        // Both have the same words.
        serde_json::to_value(self).and_then(serde_json::from_value).map_err(|error| {
            Failure::new(format!("the flags of the data cannot be read: {error}"), "see `--help`")
        })
    }
}
