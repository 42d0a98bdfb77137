//! Several sources side by side: a row holds what each of them says about one thing.
//!
//! A joined [`Dataset`] has the columns of all its modalities, one after the other, and remembers which are whose. Rows
//! belong together by their order, or by a key that stands in each source; a row that a source lacks is missing there.

use crate::frame::Codebook;
use crate::{Dataset, Error, Image, Reading, Table, Visible};
use harmonium_kernels::bits::BitMatrix;
use ndarray::ArrayView1;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// One of the sources of a joined data set.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, rename_all = "kebab-case")
)]
pub struct Modality {
    /// What it is called: letters, digits, `-` and `_`.
    pub name: String,
    /// Its columns in the joined data.
    pub columns: Range<usize>,
    /// What its columns are called; empty if unknown.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub names: Vec<String>,
    /// Height and width of its pictures, if it has some.
    pub image: Option<(usize, usize)>,
    /// How it was read.
    pub reading: Reading,
    /// How the cells of a table became numbers, where it was a table of columns.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub codebook: Option<Codebook>,
    /// The kind of units that was asked for; nothing where its values decide.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub visible: Option<Visible>,
}

impl Modality {
    /// The shape of its pictures: the one remembered, or a square.
    pub fn picture(&self) -> Option<Image> {
        let (height, width) = self.image?;
        Some(Image { height, width })
    }

    /// The names of its columns with the largest of `values`, largest first, with their values. A column without a name
    /// has its number.
    pub fn top(&self, values: ArrayView1<'_, f64>, n: usize) -> Vec<(String, f64)> {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
        let name = |c: usize| self.names.get(c).cloned().unwrap_or_else(|| c.to_string());
        order.into_iter().take(n).map(|c| (name(c), values[c])).collect()
    }
}

/// One source, before it stands beside others.
#[derive(Clone, Debug)]
pub struct Source {
    /// What it is called.
    pub name: String,
    /// Its rows.
    pub data: Dataset,
    /// How they were read.
    pub reading: Reading,
    /// The kind of units that was asked for.
    pub visible: Option<Visible>,
}

impl Source {
    /// Rows under a name, read in no particular way.
    pub fn new(name: impl Into<String>, data: Dataset) -> Self {
        Self { name: name.into(), data, reading: Reading::default(), visible: None }
    }
}

/// Whether a name can be that of a modality.
///
/// # Errors
///
/// If it is empty or has other signs than letters, digits, `-` and `_`.
pub fn check_name(name: &str) -> Result<(), Error> {
    let sign = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(sign) || ["labels", "joint"].contains(&name) {
        return Err(Error::Setting {
            what: "name of a modality",
            text: name.to_owned(),
            expected: "use letters, digits, `-` and `_`; `labels` and `joint` are names of layers already",
        });
    }
    Ok(())
}

impl Dataset {
    /// Sources side by side, row by row.
    ///
    /// # Errors
    ///
    /// If there is no source, two have one name, or their numbers of rows differ.
    pub fn join(sources: Vec<Source>) -> Result<Self, Error> {
        let mut modalities: Vec<Modality> = Vec::new();
        let mut joined: Option<Self> = None;
        for Source { name, data, reading, visible } in sources {
            check_name(&name)?;
            if modalities.iter().any(|m| m.name == name) {
                return Err(Error::SameName { name, columns: (0, 1) });
            }
            let start = joined.as_ref().map_or(0, Self::n_columns);
            let table = data.table();
            modalities.push(Modality {
                name,
                columns: start..start + data.n_columns(),
                names: table.names().unwrap_or_default(),
                image: table.image().map(|i| (i.height, i.width)),
                // Another file has its own variables and rows.
                reading: Reading { variable: None, rows: None, names: None, ..reading },
                codebook: data.book().cloned(),
                visible,
            });
            joined = Some(match joined {
                None => data.without_labels(),
                Some(before) => before.beside(data)?,
            });
        }
        let joined = joined.ok_or(Error::Empty { n_rows: 0, n_columns: 0 })?;
        Ok(joined.with_modalities(modalities))
    }

    /// Rows of `n_columns` columns of which nothing is known.
    ///
    /// # Errors
    ///
    /// If there are no rows or no columns.
    pub fn unknown(n_rows: usize, n_columns: usize) -> Result<Self, Error> {
        let mut table = Table::from_bits(BitMatrix::zeros(n_rows, n_columns))?;
        let mut missing = BitMatrix::zeros(0, n_columns);
        (0..n_rows).for_each(|_| missing.push_row(|_| true));
        table.set_missing(missing);
        Self::new(table, crate::Binarize::None)
    }

    /// The rows named, in that order; `None` is a row of which nothing is known.
    ///
    /// # Errors
    ///
    /// If no row is named.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn rearranged(&self, rows: &[Option<usize>]) -> Result<Self, Error> {
        let filled: Vec<usize> = rows.iter().map(|row| row.unwrap_or(0)).collect();
        let chosen = self.select_rows(&filled)?;
        if rows.iter().all(Option::is_some) {
            return Ok(chosen);
        }
        let shape = (rows.len(), self.n_columns());
        let there = ndarray::Array2::from_shape_fn(shape, |(row, _)| rows[row].is_some());
        chosen.with_mask(there.view())
    }
}

/// Rows of several sources that belong together by a key of each row: all keys in the order in which they first appear. A
/// source that lacks a key has nothing known there.
///
/// # Errors
///
/// If a source has not a key for each row, or one twice.
pub fn matched(sources: Vec<(Source, Vec<String>)>) -> Result<Vec<Source>, Error> {
    let mut order: Vec<&str> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (source, keys) in &sources {
        let (n_rows, found) = (source.data.n_rows(), keys.len());
        if n_rows != found {
            return Err(Error::WeightCount { n_rows, found });
        }
        let mut own = HashMap::new();
        for (row, key) in keys.iter().enumerate() {
            if let Some(first) = own.insert(key.as_str(), row) {
                let (modality, key) = (source.name.clone(), key.clone());
                return Err(Error::SameKey { modality, key, rows: (first, row) });
            }
            places.entry(key).or_insert_with(|| {
                order.push(key);
                order.len() - 1
            });
        }
    }
    let mut arranged = Vec::new();
    for (source, keys) in &sources {
        let mut rows = vec![None; order.len()];
        for (row, key) in keys.iter().enumerate() {
            rows[places[key.as_str()]] = Some(row);
        }
        arranged.push(Source { data: source.data.rearranged(&rows)?, ..source.clone() });
    }
    Ok(arranged)
}

/// The modalities of a data set, shared by what is made of it.
pub(crate) type Modalities = Option<Arc<[Modality]>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Binarize;
    use harmonium_kernels::random::Stream;
    use ndarray::array;

    fn grey() -> Dataset {
        let table = Table::from_bytes(vec![0, 255, 255, 0, 0, 0], 2, 255).unwrap();
        Dataset::new(table, Binarize::Sample).unwrap()
    }

    fn numbers() -> Dataset {
        Dataset::from_array(array![[1.5_f32], [-2.0], [f32::NAN]].view()).unwrap()
    }

    #[test]
    fn drawn_values_stand_beside_values_as_they_are() {
        let joined =
            Dataset::join(vec![Source::new("a", grey()), Source::new("b", numbers())]).unwrap();
        assert!(joined.is_sampled() && !joined.is_bits());
        let values = joined.to_array(Stream::new(0));
        assert_eq!(values.row(0).to_vec(), [0.0, 1.0, 1.5]);
        assert_eq!(values.row(1).to_vec(), [1.0, 0.0, -2.0]);
        assert!(values[[2, 2]].is_nan());
        let means = joined.column_means();
        assert_eq!((means[0], means[2]), (1.0 / 3.0, -0.25));
        assert_eq!(joined.modalities()[1].columns, 2..3);
        let again = joined.select_rows(&[1]).unwrap();
        assert_eq!(again.to_array(Stream::new(0)).row(0).to_vec(), [1.0, 0.0, -2.0]);
        let own = joined.select_columns(&[2..3]).unwrap();
        assert!(!own.is_sampled() && own.modalities().is_empty());
        assert_eq!(own.to_array(Stream::new(0))[[1, 0]], -2.0);
        let other = joined.select_columns(&[0..2]).unwrap();
        assert!(other.is_bits());
    }

    #[test]
    fn rows_are_matched_by_their_keys() {
        let keys = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let parts = vec![
            (Source::new("a", grey()), keys(&["x", "y", "z"])),
            (Source::new("b", numbers()), keys(&["z", "w", "x"])),
        ];
        let joined = Dataset::join(matched(parts.clone()).unwrap()).unwrap();
        let values = joined.to_array(Stream::new(0));
        assert_eq!(values.nrows(), 4);
        assert_eq!(values.row(2).to_vec(), [0.0, 0.0, 1.5], "z");
        assert!(values[[1, 2]].is_nan() && values[[1, 0]] == 1.0, "y has no number");
        assert!(values[[3, 0]].is_nan() && values[[3, 2]] == -2.0, "w has no picture");
        let mut twice = parts;
        twice[1].1[1] = "z".into();
        assert!(matches!(matched(twice), Err(Error::SameKey { rows: (0, 1), .. })));
    }

    #[test]
    fn names_and_rows_are_checked() {
        let two = |a: &str, b: &str| {
            Dataset::join(vec![Source::new(a, grey()), Source::new(b, numbers())])
        };
        assert!(two("a", "a").is_err() && two("a", "b.c").is_err() && two("", "b").is_err());
        let fewer = numbers().select_rows(&[0]).unwrap();
        assert!(Dataset::join(vec![Source::new("a", grey()), Source::new("b", fewer)]).is_err());
    }
}
