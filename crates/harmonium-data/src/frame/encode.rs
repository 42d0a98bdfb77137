//! From the cells of a table to the numbers of a data set.

use super::codebook::no_column;
use super::{Codebook, Coded, Frame, Group, Kinds};
use crate::{Binarize, Dataset, Error, Labels, Table};
use ndarray::Array2;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

/// What is done about cells and columns that the training table did not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum Unknown {
    /// They are an error.
    #[default]
    Refuse,
    /// They count as missing.
    Missing,
}

impl FromStr for Unknown {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "missing" => Ok(Self::Missing),
            _ => Err(Error::Setting {
                what: "way to treat unknown values",
                text: text.to_owned(),
                expected: "write `refuse` or `missing`",
            }),
        }
    }
}

/// A table as numbers.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The columns of each group side by side: standardised numbers, bits, places in lists of words. The
    /// label stands beside them.
    pub dataset: Dataset,
    /// Columns of the table that a model does not know, which were passed over.
    pub passed_over: Vec<String>,
    /// Columns of the model that the table does not have: they count as missing.
    pub lacking: Vec<String>,
    /// Cells that the codebook does not know, which count as missing.
    pub n_unknown: usize,
}

impl Encoded {
    /// What of a table counts as missing because one side does not know it, for people.
    pub fn notes(&self) -> Vec<String> {
        let Self { passed_over, lacking, n_unknown, .. } = self;
        let list = |names: &[String]| {
            names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
        };
        let mut notes = Vec::new();
        if !lacking.is_empty() {
            notes.push(format!(
                "columns that the data does not have count as missing: {}",
                list(lacking)
            ));
        }
        if !passed_over.is_empty() {
            notes.push(format!(
                "columns that the model does not know are passed over: {}",
                list(passed_over)
            ));
        }
        if *n_unknown > 0 {
            notes.push(format!(
                "{n_unknown} cells hold what the model does not know and count as missing"
            ));
        }
        notes
    }
}

impl Dataset {
    /// A table that is to be learned: kinds are found out or as `asked`, and the codebook goes with the data.
    ///
    /// # Errors
    ///
    /// Those of [`Codebook::fit`] and [`Codebook::encode`].
    pub fn from_frame(frame: &Frame, asked: &Kinds) -> Result<Self, Error> {
        Ok(Codebook::fit(frame, asked)?.encode(frame, Unknown::Refuse)?.dataset)
    }
}

impl Codebook {
    /// The table as numbers, columns found by their names. Columns that are not there are missing in
    /// every row.
    ///
    /// # Errors
    ///
    /// If a cell or a column is unknown and `unknown` says that it must not be, the table has none of
    /// the columns, or some rows have a label and others have not.
    pub fn encode(&self, frame: &Frame, unknown: Unknown) -> Result<Encoded, Error> {
        let known: BTreeSet<&str> = self.names().collect();
        let passed_over: Vec<String> =
            frame.names().iter().filter(|n| !known.contains(n.as_str())).cloned().collect();
        if let Some(name) = passed_over.first().filter(|_| unknown == Unknown::Refuse) {
            let known = self.names().map(str::to_owned).collect();
            return Err(Error::UnknownColumn { name: name.clone(), known });
        }
        let there = |c: &&Coded| frame.column(&c.name).is_some();
        let lacking: Vec<String> =
            self.columns.iter().filter(|c| !there(c)).map(|c| c.name.clone()).collect();
        if lacking.len() == self.columns.len() {
            return Err(no_column(&lacking[0], frame.names()));
        }
        let mut n_unknown = 0;
        let mut table: Option<Table> = None;
        let mut labels = None;
        for (group, places) in self.groups() {
            let columns: Vec<&Coded> = places.iter().map(|&i| &self.columns[i]).collect();
            let values = encode_group(&columns, frame, unknown, &mut n_unknown)?;
            if let (Group::Label(_), [label]) = (group, &columns[..]) {
                labels = label_column(label, frame, &values)?;
                continue;
            }
            let beside = as_table(group, values)?;
            table = Some(match table {
                None => beside,
                Some(table) => table.beside(beside)?,
            });
        }
        let table = table.ok_or_else(|| self.nothing())?;
        let names: Vec<String> = self.encoded().iter().map(|c| c.name.clone()).collect();
        let mut dataset = Dataset::new(table.with_names(&names), Binarize::None)?;
        if let Some(labels) = labels {
            dataset = dataset.with_labels(labels)?;
        }
        let dataset = dataset.with_book(Arc::new(self.clone()));
        Ok(Encoded { dataset, passed_over, lacking, n_unknown })
    }
}

/// The numbers of columns of one group, NaN where a cell is missing.
fn encode_group(
    columns: &[&Coded],
    frame: &Frame,
    unknown: Unknown,
    n_unknown: &mut usize,
) -> Result<Array2<f32>, Error> {
    let mut values = Array2::from_elem((frame.n_rows(), columns.len()), f32::NAN);
    for (place, column) in columns.iter().enumerate() {
        let Some(cells) = frame.column(&column.name) else { continue };
        let encoder = column.code.encoder();
        for (row, cell) in cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            match encoder.encode(cell) {
                #[expect(clippy::cast_possible_truncation, reason = "tables are f32")]
                Some(z) => values[[row, place]] = z as f32,
                None if unknown == Unknown::Missing => *n_unknown += 1,
                None => return Err(column.refuse(frame, row, cell)),
            }
        }
    }
    Ok(values)
}

/// Stored as narrowly as the group allows, whatever values happen to occur.
fn as_table(group: Group, values: Array2<f32>) -> Result<Table, Error> {
    if group == Group::Numbers {
        let n_columns = values.ncols();
        return Table::from_real(values.into_iter().collect(), n_columns);
    }
    Table::from_array(values.view())
}

/// The class of each row; nothing where no row has one.
fn label_column(
    label: &Coded,
    frame: &Frame,
    values: &Array2<f32>,
) -> Result<Option<Labels>, Error> {
    if values.iter().all(|x| x.is_nan()) {
        return Ok(None);
    }
    if let Some(row) = values.iter().position(|x| x.is_nan()) {
        return Err(Error::NoClass { place: frame.place(row), column: label.name.clone() });
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "places in a list")]
    let classes = values.iter().map(|&x| x as u32).collect();
    Labels::named(classes, label.levels().to_vec()).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::codebook::tests::{animals, asked, book, frame};
    use super::*;
    use crate::{Block, BlockValues};

    #[test]
    fn groups_are_stored_narrowly() {
        let data = book().encode(&animals(), Unknown::Refuse).unwrap().dataset;
        let kinds: Vec<bool> = data.table().blocks().iter().map(Block::is_bits).collect();
        assert_eq!(kinds, [false, false, true]);
        assert!(matches!(data.table().blocks()[1].values(), BlockValues::Bytes(_)));
        assert_eq!(data.table().names().unwrap(), ["mass", "kind", "tame"]);
        assert_eq!((data.table().n_missing(), data.book().is_some()), (2, true));
    }

    #[test]
    fn columns_are_found_by_name() {
        let other = frame(&[("tame", &[Some("no")]), ("kind", &[Some("dog")])]);
        let encoded = book().encode(&other, Unknown::Refuse).unwrap();
        assert_eq!(encoded.lacking, ["mass"]);
        let table = encoded.dataset.table();
        assert!(table.is_missing(0, 0));
        assert_eq!((table.at(0, 1), table.at(0, 2)), (1.0, 0.0));
    }

    #[test]
    fn what_is_unknown_is_named_or_missing() {
        let book = book();
        let level = frame(&[("kind", &[Some("cat"), Some("eel")])]);
        let error = book.encode(&level, Unknown::Refuse).unwrap_err();
        assert!(matches!(&error, Error::UnknownLevel { place, .. } if place.row == 2), "{error}");
        let encoded = book.encode(&level, Unknown::Missing).unwrap();
        assert!(encoded.dataset.table().is_missing(1, 1));
        assert_eq!(encoded.n_unknown, 1);
        let column = frame(&[("kind", &[Some("cat")]), ("size", &[Some("1")])]);
        let error = book.encode(&column, Unknown::Refuse).unwrap_err();
        assert!(matches!(error, Error::UnknownColumn { .. }), "{error}");
        assert_eq!(book.encode(&column, Unknown::Missing).unwrap().passed_over, ["size"]);
        let words = frame(&[("mass", &[Some("heavy")])]);
        let error = book.encode(&words, Unknown::Refuse).unwrap_err();
        assert!(matches!(error, Error::NoNumber { .. }), "{error}");
        let none = frame(&[("size", &[Some("1")])]);
        assert!(book.encode(&none, Unknown::Missing).is_err());
    }

    #[test]
    fn a_label_stands_beside_the_columns() {
        let book = asked(&[("kind", "label")]).unwrap();
        let data = book.encode(&animals(), Unknown::Refuse).unwrap().dataset;
        assert_eq!(data.n_columns(), 2);
        let labels = data.labels().unwrap();
        assert_eq!((labels.values()[3], labels.name(2)), (2, "owl".to_owned()));
        let without = animals().without_cells(|_, c| c == 2);
        assert!(book.encode(&without, Unknown::Refuse).unwrap().dataset.labels().is_none());
        let holed = animals().without_cells(|row, c| c == 2 && row == 4);
        let error = book.encode(&holed, Unknown::Refuse).unwrap_err();
        assert!(matches!(&error, Error::NoClass { place, .. } if place.row == 5), "{error}");
    }

    #[test]
    fn slopes_are_those_of_the_cells_that_are_there() {
        let book = asked(&[("mass", "gaussian:log")]).unwrap();
        let data = book.encode(&animals(), Unknown::Refuse).unwrap().dataset;
        let expected = |mass: f64| {
            let z = |x: f64| book.columns[0].code.encode(&x.to_string()).unwrap();
            ((z(mass + 1e-4) - z(mass - 1e-4)) / 2e-4).ln()
        };
        let slopes = data.log_slopes().unwrap();
        assert!((slopes[0] - expected(3.5)).abs() < 1e-5);
        assert_eq!(slopes[2], 0.0, "its mass is missing");
        let hidden = Array2::from_shape_fn((1, 3), |(_, c)| c != 0);
        let hidden = data.with_mask(hidden.view()).unwrap();
        assert_eq!(hidden.log_slopes().unwrap()[0], 0.0);
    }
}
