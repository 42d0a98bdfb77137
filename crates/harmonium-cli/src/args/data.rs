//! How data is read: the flags that every DATA takes.

use crate::failure::Failure;
use clap::Args;
use harmonium_data::frame::{Asked, Kinds};
use harmonium_data::{LabelColumn, Reading};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use std::str::FromStr;

/// What a column is said to hold, `NAME=KIND`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnKind {
    name: String,
    kind: Asked,
}

impl FromStr for ColumnKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Names may hold the sign, kinds do not.
        let (name, kind) = text.rsplit_once('=').ok_or("write `NAME=KIND`")?;
        let kind = kind.parse::<Asked>().map_err(|e| format!("{e}: {}", e.hint()))?;
        Ok(Self { name: name.to_owned(), kind })
    }
}

/// Kinds of columns are a table in a file: one key for each column.
mod as_kinds {
    use super::{ColumnKind, Deserialize, Deserializer, Kinds, Serialize, Serializer};

    #[expect(clippy::ptr_arg, reason = "what serde asks for")]
    pub(super) fn serialize<S: Serializer>(
        kinds: &Vec<ColumnKind>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let kinds: Kinds = kinds.iter().map(|k| (k.name.clone(), k.kind)).collect();
        kinds.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<ColumnKind>, D::Error> {
        let kinds = Kinds::deserialize(deserializer)?;
        Ok(kinds.into_iter().map(|(name, kind)| ColumnKind { name, kind }).collect())
    }
}

/// Flags of every DATA; the same words are keys of configuration files.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "How data is read")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
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
    /// Column that holds the label, by its name in the header or its number from 0; -1 is the last
    #[arg(long, value_name = "NAME|N", allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label_column: Option<LabelColumn>,
    /// Use the labels that the data holds beside its columns: digits, svmlight, classes of a .mat file
    /// (those of class folders are used unasked)
    #[arg(long, conflicts_with_all = ["label_column", "no_labels"])]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) labelled: bool,
    /// Leave the labels of the data out
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_labels: bool,
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
    /// What a column of a table holds: binary, gaussian, categorical, ordinal, counts, binomial:N, label or ignore;
    /// repeatable [default: what it looks like]
    #[arg(long, value_name = "NAME=KIND")]
    #[serde(rename = "kinds", with = "as_kinds", skip_serializing_if = "Vec::is_empty")]
    pub(crate) kind: Vec<ColumnKind>,
    /// Rows to use: A..B from 0, the end left out; a file of row numbers; or FILE=WORD, the rows to which a file
    /// with a word for each row gives that word
    #[arg(long, value_name = "A..B|FILE|FILE=WORD")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<String>,
    /// A file with the name of each column, one in each line
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) names: Option<String>,
    /// Settings of one modality, as `NAME:FLAG=VALUE`: what `--FLAG NAME=VALUE` becomes
    #[arg(long, value_name = "NAME:FLAG=VALUE", hide = true)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reading_of: Vec<String>,
    /// Words and columns that the training table did not have: an error, or missing [default: refuse]
    #[arg(long, value_parser = ["refuse", "missing"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<String>,
}

impl DataArgs {
    /// The same as the library takes it.
    pub(crate) fn reading(&self) -> Result<Reading, Failure> {
        // Both have the same words.
        serde_json::to_value(self).and_then(serde_json::from_value).map_err(|error| wrong(&error))
    }

    /// How one modality is read, and the kind of its units if one was said: the flags of all under those of its own.
    pub(crate) fn reading_of(&self, name: &str) -> Result<(Reading, Option<String>), Failure> {
        let mut table = serde_json::to_value(self).map_err(|error| wrong(&error))?;
        let mut visible = None;
        for text in &self.reading_of {
            let Some((flag, value)) = text
                .split_once(':')
                .filter(|(of, _)| *of == name)
                .and_then(|(_, setting)| setting.split_once('='))
            else {
                continue;
            };
            match flag {
                "kind" => visible = Some(value.to_owned()),
                "transpose" | "invert" | "no-labels" => table[flag] = json!(true),
                "packed-bits" | "full-scale" => {
                    let number: serde_json::Number = value.parse().map_err(|_| {
                        Failure::new(
                            format!("`--{flag} {name}={value}` is not a number"),
                            "write `--packed-bits NAME=N`",
                        )
                    })?;
                    table[flag] = json!(number);
                }
                _ => table[flag] = json!(value),
            }
        }
        Ok((serde_json::from_value(table).map_err(|error| wrong(&error))?, visible))
    }
}

fn wrong(error: &serde_json::Error) -> Failure {
    Failure::new(format!("the flags of the data cannot be read: {error}"), "see `--help`")
}
