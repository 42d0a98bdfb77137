//! Which columns of a table fill which visible layer, and how.
//!
//! A [`Schema`] names every visible layer and says where its values come from: one column per entry
//! of the layer, one column of whole numbers per categorical unit, or the label of the row. It is
//! stored with a model, so that other data is read the same way and samples can be written as the
//! table they came from. [`Schema::of`] derives it where a model has none; nothing else in the
//! library looks at numbers of columns.
//!
//! A [`Feed`] is the one door from rows of data to a [`Batch`](crate::machine::Batch): it checks
//! every value once and then presents rows, packed where the data is bits.
//!
//! **One kind and one size per layer.** All units of a layer are of one kind and, if categorical, of
//! one number of categories. A table whose columns differ in kind or in their number of categories
//! needs a machine with one visible layer for each kind and size, in the order in which they first
//! appear; the schema says which column is which unit of which layer. Groups of several sizes inside one layer
//! would make every kernel ask for the borders of a unit.

mod book;
mod feed;
mod table;

pub use book::book_layers;
pub use feed::Feed;
pub use table::{Layout, Listing};

use crate::error::Error;
use crate::machine::{Layer, Machine};
use crate::units::{Storage, Units};
use harmonium_data::Dataset;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The name of the visible layer that holds the label of a row: one categorical unit.
pub const LABELS: &str = "labels";

/// Where the values of each visible layer come from.
///
/// As JSON it is a list of layers. Later versions may add fields, which this one ignores; an
/// encoding it does not know is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    layers: Vec<Filling>,
}

/// How one visible layer is filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filling {
    /// Where the values come from and how they are written there.
    #[serde(flatten)]
    pub encoding: Encoding,
    /// The layer's name.
    pub layer: String,
    /// What the columns are called, in their order; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The kind of its units.
    pub units: Units,
}

impl Filling {
    /// How `layer` is filled, by columns without names.
    pub fn new(layer: &Layer, encoding: Encoding) -> Self {
        Self { encoding, layer: layer.name.clone(), names: Vec::new(), units: layer.units }
    }
}

/// Where the values of a layer come from and how they are written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "encoding", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Encoding {
    /// One column per entry of the layer.
    Entries {
        /// The columns of the table, in the order of the entries.
        columns: Vec<Range<usize>>,
    },
    /// One column per categorical unit, which holds the number of its category, from 0.
    Codes {
        /// The columns of the table, in the order of the units.
        columns: Vec<Range<usize>>,
    },
    /// The label of the row; a layer of one categorical unit.
    Label {
        /// What the classes are called, in the order of the entries; empty if unknown.
        classes: Vec<String>,
    },
}

impl Encoding {
    /// The columns of the table; none for labels.
    pub fn columns(&self) -> &[Range<usize>] {
        match self {
            Self::Entries { columns } | Self::Codes { columns } => columns,
            Self::Label { .. } => &[],
        }
    }
}

/// How categories are written where no schema says so.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Entries,
    Codes,
}

impl Schema {
    /// A schema that says how each layer is filled.
    pub fn new(layers: Vec<Filling>) -> Self {
        Self { layers }
    }

    /// Derives how `data` fills the visible layers of `machine`, from the number of its columns:
    /// layer after layer, one column per entry or one per unit. A layer of one categorical unit
    /// called [`LABELS`] takes the labels of the data, and stays free where the data has none. Data
    /// that fills only the first layers leaves the others free.
    ///
    /// # Errors
    ///
    /// If no such way leads to the number of columns that the data has.
    pub fn of(machine: &Machine, data: &Dataset) -> Result<Self, Error> {
        let names = |labels: &harmonium_data::Labels| {
            (0..).take(labels.n_classes()).map(|class| labels.name(class)).collect()
        };
        let mut schema = Self::of_columns(machine, data.n_columns(), data.labels().map(names))?;
        if let Some(names) = data.table().names() {
            for filling in &mut schema.layers {
                let columns = filling.encoding.columns().iter();
                filling.names = columns.flat_map(|c| &names[c.clone()]).cloned().collect();
            }
        }
        Ok(schema)
    }

    /// The schema that a model has stored, where data of this width can follow it; otherwise the
    /// one derived from the data.
    ///
    /// # Errors
    ///
    /// As [`Schema::of`].
    pub fn stored_or_of(
        stored: Option<&Self>,
        machine: &Machine,
        data: &Dataset,
    ) -> Result<Self, Error> {
        match stored.filter(|schema| schema.n_columns() == data.n_columns()) {
            Some(schema) => Ok(schema.clone()),
            None => Self::of(machine, data),
        }
    }

    /// The same for rows of `n_columns` columns, beside which there may be labels of `classes`.
    pub(crate) fn of_columns(
        machine: &Machine,
        n_columns: usize,
        classes: Option<Vec<String>>,
    ) -> Result<Self, Error> {
        let visible: Vec<&Layer> =
            machine.visible_layers().into_iter().map(|l| machine.layer(l)).collect();
        let several = visible.len() > 1;
        let rest: Vec<&Layer> =
            visible.iter().copied().filter(|l| !(several && is_label(l))).collect();
        let has_labels = rest.len() < visible.len();
        let mut ways: Vec<(&[&Layer], Written)> = Vec::new();
        let labelled = has_labels && classes.is_some();
        if !labelled {
            ways.extend([(&visible[..], Written::Entries), (&visible[..], Written::Codes)]);
        }
        if has_labels {
            ways.extend([(&rest[..], Written::Entries), (&rest[..], Written::Codes)]);
        }
        if !labelled {
            ways.extend((1..visible.len()).map(|k| (&visible[..k], Written::Entries)));
        }
        let Some((layers, written)) = ways.into_iter().find(|way| width(way) == n_columns) else {
            let taking = if labelled { &rest } else { &visible };
            return Err(mismatch(&taking.iter().map(|l| takes(l)).collect::<Vec<_>>(), n_columns));
        };
        let mut schema = Self::side_by_side(layers, written);
        if let Some(label) = visible.iter().find(|l| several && is_label(l))
            && schema.layer(&label.name).is_none()
        {
            let encoding = Encoding::Label { classes: classes.unwrap_or_default() };
            schema.layers.push(Filling::new(label, encoding));
        }
        Ok(schema)
    }

    /// Layers that take neighbouring columns, one layer after the other.
    fn side_by_side(layers: &[&Layer], written: Written) -> Self {
        let mut end = 0;
        let fill = |layer: &&Layer| {
            let start = end;
            let codes = written == Written::Codes && layer.units.storage() == Storage::OneHot;
            end += if codes { layer.n_units() } else { layer.len() };
            let columns = std::iter::once(start..end).collect();
            let encoding =
                if codes { Encoding::Codes { columns } } else { Encoding::Entries { columns } };
            Filling::new(layer, encoding)
        };
        Self { layers: layers.iter().map(fill).collect() }
    }

    /// How each layer is filled.
    pub fn layers(&self) -> &[Filling] {
        &self.layers
    }

    /// How the layer of a name is filled.
    pub fn layer(&self, name: &str) -> Option<&Filling> {
        self.layers.iter().find(|f| f.layer == name)
    }

    /// Columns that a table needs to fill every layer.
    pub fn n_columns(&self) -> usize {
        let ends = self.layers.iter().flat_map(|f| f.encoding.columns()).map(|c| c.end);
        ends.max().unwrap_or(0)
    }

    /// What the classes of the labels are called; empty if the model has no labels or they are unknown.
    pub fn classes(&self) -> &[String] {
        let of = |f: &'_ Filling| matches!(f.encoding, Encoding::Label { .. });
        match self.layers.iter().find(|f| of(f)).map(|f| &f.encoding) {
            Some(Encoding::Label { classes }) => classes,
            _ => &[],
        }
    }
}

/// Whether a layer takes the label of the row.
fn is_label(layer: &Layer) -> bool {
    let one = layer.units.storage() == Storage::OneHot && layer.n_units() == 1;
    one && layer.name == LABELS
}

fn width((layers, written): &(&[&Layer], Written)) -> usize {
    match written {
        Written::Entries => layers.iter().map(|l| l.len()).sum(),
        Written::Codes => layers.iter().map(|l| l.n_units()).sum(),
    }
}

/// What a layer takes from a row of data.
struct Takes<'a> {
    name: &'a str,
    entries: usize,
    units: usize,
}

fn takes(layer: &Layer) -> Takes<'_> {
    Takes { name: &layer.name, entries: layer.len(), units: layer.n_units() }
}

/// Data with another number of columns than the layers take.
fn mismatch(layers: &[Takes<'_>], found: usize) -> Error {
    let part = |t: &Takes<'_>| format!("{} of `{}`", t.entries, t.name);
    let entries = layers.iter().map(|t| t.entries).sum();
    let units: usize = layers.iter().map(|t| t.units).sum();
    let mut detail = String::new();
    if layers.len() > 1 {
        detail = format!(" ({})", layers.iter().map(part).collect::<Vec<_>>().join(" + "));
    }
    if units != entries {
        detail = format!("{detail}, or {units} with categories as whole numbers");
    }
    Error::ColumnCount { expected: entries, found, detail }
}
