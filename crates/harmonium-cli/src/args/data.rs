//! How data is read: the flags that every DATA takes.

use crate::failure::Failure;
use clap::Args;
use harmonium_data::{Binarize, Options};
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
}

impl DataArgs {
    /// What the readers are told.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let mut options = Options::default();
        options.variable.clone_from(&self.variable);
        options.transpose = self.transpose;
        options.columns = self.columns.as_deref().map(Options::parse_columns).transpose()?;
        options.label_column = self.label_column;
        options.packed_bits = self.packed_bits;
        options.invert = self.invert;
        options.full_scale = self.full_scale;
        Ok(options)
    }

    /// The binarisation that was asked for.
    pub(crate) fn binarize(&self) -> Result<Option<Binarize>, Failure> {
        Ok(self.binarize.as_deref().map(str::parse).transpose()?)
    }

    /// These flags, and where one was not given that of `other`.
    #[must_use]
    pub(crate) fn or(&self, other: &Self) -> Self {
        let mine = self.clone();
        Self {
            variable: mine.variable.or_else(|| other.variable.clone()),
            transpose: mine.transpose || other.transpose,
            columns: mine.columns.or_else(|| other.columns.clone()),
            label_column: mine.label_column.or(other.label_column),
            packed_bits: mine.packed_bits.or(other.packed_bits),
            invert: mine.invert || other.invert,
            binarize: mine.binarize.or_else(|| other.binarize.clone()),
            full_scale: mine.full_scale.or(other.full_scale),
        }
    }
}
