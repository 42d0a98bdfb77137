//! How data is read: what every DATA can be told, and what a model remembers of it.

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
        }
    }
}

/// The scale of a table, where it is worth remembering.
fn scale_of(table: &Table) -> Option<f32> {
    Some(table.full_scale()).filter(|s| *s != 1.0)
}

#[cfg(feature = "readers")]
mod opened {
    use super::{Reading, scale_of};
    use crate::open::open_with;
    use crate::{About, Binarize, Dataset, Error, Format, Labels, Loaded, Summary, open};

    /// Data as a machine will see it, and how it was read.
    #[derive(Clone, Debug)]
    pub struct Opened {
        /// The samples, with the labels that are used.
        pub dataset: Dataset,
        /// Where they came from.
        pub about: About,
        /// The settings that read them, the automatic ones filled in.
        pub reading: Reading,
        /// Labels that the data holds and that nobody asked for.
        pub unused_labels: Option<Labels>,
    }

    impl Opened {
        /// The labels that are used, or those that could be.
        pub fn labels(&self) -> Option<&Labels> {
            self.dataset.labels().or(self.unused_labels.as_ref())
        }

        /// Where the labels of the data stand, for people.
        pub fn label_source(&self) -> String {
            match &self.reading.label_column {
                Some(column) => format!("column {column}"),
                None if self.about.format == Format::Png => "the names of the folders".into(),
                None => "the data itself".into(),
            }
        }

        fn new(
            loaded: Loaded,
            binarize: Binarize,
            reading: Reading,
            spec: &str,
        ) -> Result<Self, Error> {
            let Loaded { table, labels, about } = loaded;
            if labels.is_none() && reading.labelled {
                return Err(Error::NoLabels.in_file(spec));
            }
            let folders = about.format == Format::Png;
            let asked = reading.label_column.is_some() || reading.labelled || folders;
            let (used, unused) =
                if asked && !reading.no_labels { (labels, None) } else { (None, labels) };
            let mut dataset = Dataset::new(table, binarize).map_err(|e| e.in_file(spec))?;
            if let Some(labels) = used {
                dataset = dataset.with_labels(labels)?;
            }
            Ok(Self { dataset, about, reading, unused_labels: unused })
        }
    }

    impl Reading {
        /// Opens data as these settings say; where nothing is said of binarisation, as what the data
        /// looks like.
        ///
        /// # Errors
        ///
        /// Those of [`open()`] and of [`Dataset::new`].
        pub fn open(&self, spec: &str) -> Result<Opened, Error> {
            let (options, asked) = (self.options()?, self.binarize()?);
            let mut reading = self.clone();
            if let Some(threshold @ Binarize::Threshold(at)) = asked {
                let loaded = open_with(spec, &options, Some(at))?;
                // Images have a fixed scale; elsewhere the scale that was found is remembered.
                let fixed = matches!(loaded.about.format, Format::Idx | Format::Png | Format::Jpeg);
                if !fixed && reading.full_scale.is_none() {
                    reading.full_scale = scale_of(&loaded.table);
                }
                return Opened::new(loaded, threshold, reading, spec);
            }
            let loaded = open(spec, &options)?;
            let binarize = match asked {
                Some(binarize) => binarize,
                None => Summary::of(&loaded.table).binarize,
            };
            reading.binarize = Some(binarize.to_string());
            if binarize == Binarize::Sample && reading.full_scale.is_none() {
                reading.full_scale = scale_of(&loaded.table);
            }
            Opened::new(loaded, binarize, reading, spec)
        }

        /// Opens data for a model of `n_columns` columns that remembers how its own data was read: what
        /// is not said here is as it was there. Where the data lacks the labels that the model's own
        /// had, it is read without, and a note says so.
        ///
        /// # Errors
        ///
        /// Those of [`Reading::open`].
        pub fn open_as(
            &self,
            remembered: &Self,
            n_columns: Option<usize>,
            spec: &str,
        ) -> Result<Opened, Error> {
            let opened = self.or(remembered).open(spec);
            let asked = self.label_column.is_some() || self.labelled;
            let expected = remembered.label_column.is_some() || remembered.labelled;
            let fits =
                |o: &Opened| n_columns.is_none_or(|n_columns| o.dataset.n_columns() == n_columns);
            if asked || !expected || opened.as_ref().is_ok_and(fits) {
                return opened;
            }
            let plain = Self { label_column: None, labelled: false, ..remembered.clone() };
            let Ok(mut without) = self.or(&plain).open(spec) else { return opened };
            if !fits(&without) {
                return opened;
            }
            without.about.notes.push(format!("`{spec}` has no labels"));
            Ok(without)
        }
    }
}

#[cfg(feature = "readers")]
pub use opened::Opened;
