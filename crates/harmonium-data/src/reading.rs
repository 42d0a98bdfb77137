//! How data is read: what every DATA can be told, and what a model remembers of it.

use crate::frame::{Kinds, Unknown};
use crate::{Binarize, Dataset, Error, LabelColumn, Options, Summary, Table};

/// How a file becomes samples. The fields are the flags of every DATA on the command line, the keys
/// of configuration files and what a model stores, in the same words.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, rename_all = "kebab-case")
)]
pub struct Reading {
    /// The variable of a file that holds several.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub variable: Option<String>,
    /// Whether samples are columns instead of rows.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub transpose: bool,
    /// The columns to use, `A..B`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub columns: Option<String>,
    /// The column of labels, by its name or its number.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub label_column: Option<LabelColumn>,
    /// Whether labels that the data holds beside its columns are used. Those of class folders always
    /// are.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub labelled: bool,
    /// Whether labels are left out, wherever they come from.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub no_labels: bool,
    /// Bits packed into the bytes of each row.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub packed_bits: Option<usize>,
    /// Whether dark and light are exchanged.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub invert: bool,
    /// How grey values become bits: `sample`, a threshold or `none`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub binarize: Option<String>,
    /// The largest value the source can hold.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub full_scale: Option<f32>,
    /// The picture in each row: `HxW`, or `HxW:column-major`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub image: Option<String>,
    /// What columns of a table hold, by their names; the others are found out.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Kinds::is_empty"))]
    pub kinds: Kinds,
    /// The rows to use: `A..B`, a file of their numbers, or `FILE=WORD`. They belong to one source and are not those of
    /// another.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub rows: Option<String>,
    /// A file with the name of each column.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub names: Option<String>,
    /// What is done about words and columns that the training table did not have.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub unknown: Option<Unknown>,
}

impl Reading {
    /// What the readers are told.
    ///
    /// # Errors
    ///
    /// If the range of columns or the shape of the picture cannot be read.
    pub fn options(&self) -> Result<Options, Error> {
        Ok(Options {
            variable: self.variable.clone(),
            transpose: self.transpose,
            columns: self.columns.as_deref().map(Options::parse_columns).transpose()?,
            label_column: self.label_column.clone(),
            packed_bits: self.packed_bits,
            invert: self.invert,
            full_scale: self.full_scale,
            image: self.image.as_deref().map(str::parse).transpose()?,
        })
    }

    /// The binarisation that was asked for.
    ///
    /// # Errors
    ///
    /// If it is neither a word nor a threshold.
    pub fn binarize(&self) -> Result<Option<Binarize>, Error> {
        self.binarize.as_deref().map(str::parse).transpose()
    }

    /// Presents a table that did not come from a file as these settings say; where nothing is said of
    /// binarisation, as what it looks like. The settings are returned with the automatic ones filled in.
    ///
    /// # Errors
    ///
    /// If a setting cannot be read, the picture does not fit, or values cannot be binarised so.
    pub fn present(&self, mut table: Table) -> Result<(Dataset, Self), Error> {
        let options = self.options()?;
        if let Some(full_scale) = options.full_scale {
            table = table.with_full_scale(full_scale)?;
        }
        if options.invert {
            table = table.inverted();
        }
        if let Some(layout) = options.image {
            table = table.with_layout(layout)?;
        }
        let mut reading = self.clone();
        let binarize = match self.binarize()? {
            Some(binarize) => binarize,
            // Nothing is left to find out.
            None if table.is_bits() => Binarize::None,
            None => Summary::of(&table).binarize,
        };
        reading.binarize = Some(binarize.to_string());
        if binarize != Binarize::None && reading.full_scale.is_none() {
            reading.full_scale = scale_of(&table);
        }
        Ok((Dataset::new(table, binarize)?, reading))
    }

    /// These settings, and where one was not given that of `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mine = self.clone();
        Self {
            variable: mine.variable.or_else(|| other.variable.clone()),
            transpose: mine.transpose || other.transpose,
            columns: mine.columns.or_else(|| other.columns.clone()),
            label_column: mine.label_column.or_else(|| other.label_column.clone()),
            labelled: mine.labelled || other.labelled,
            no_labels: mine.no_labels || other.no_labels,
            packed_bits: mine.packed_bits.or(other.packed_bits),
            invert: mine.invert || other.invert,
            binarize: mine.binarize.or_else(|| other.binarize.clone()),
            full_scale: mine.full_scale.or(other.full_scale),
            image: mine.image.or_else(|| other.image.clone()),
            kinds: if mine.kinds.is_empty() { other.kinds.clone() } else { mine.kinds },
            rows: mine.rows,
            names: mine.names,
            unknown: mine.unknown.or(other.unknown),
        }
    }

    /// The first setting that is about arrays of numbers or pictures, and means nothing for a table of words and
    /// numbers.
    #[cfg(feature = "readers")]
    pub(crate) fn of_arrays(&self) -> Option<&'static str> {
        let set = [
            ("variable", self.variable.is_some()),
            ("transpose", self.transpose),
            ("packed-bits", self.packed_bits.is_some()),
            ("invert", self.invert),
            ("binarize", self.binarize.is_some()),
            ("full-scale", self.full_scale.is_some()),
            ("image", self.image.is_some()),
            ("labelled", self.labelled),
            ("names", self.names.is_some()),
        ];
        set.into_iter().find(|(_, is_set)| *is_set).map(|(name, _)| name)
    }
}

/// The scale of a table, where it is worth remembering.
pub(crate) fn scale_of(table: &Table) -> Option<f32> {
    Some(table.full_scale()).filter(|s| *s != 1.0)
}
