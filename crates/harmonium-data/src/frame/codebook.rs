//! How the columns of a table become numbers for a machine, and back.

use super::code::{Code, number};
use super::detect::{Detected, detect};
use super::{Cells, Curve, Frame, Kind};
use crate::{Dataset, Error};
use ndarray::{Array2, ArrayView2};
use std::collections::{BTreeMap, BTreeSet};

/// The columns that are learned, each with its code, and those that are not.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Codebook {
    /// The columns that are learned, in the order of the table.
    pub columns: Vec<Coded>,
    /// The columns that are not.
    pub left_out: Vec<LeftOut>,
}

/// A column that is learned.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Coded {
    /// What the table calls it.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// How its cells are written as numbers.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub code: Code,
    /// What was seen in it.
    pub why: String,
}

/// A column that is not learned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LeftOut {
    /// What the table calls it.
    pub name: String,
    /// Why.
    pub why: String,
}

/// What is done about cells and columns that the training table did not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// They are an error.
    #[default]
    Refuse,
    /// They count as missing.
    Missing,
}

/// Columns whose units are alike, and so stand in one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Numbers.
    Numbers,
    /// Two values.
    Bits,
    /// So many values.
    Categories(usize),
    /// The class of the row, one of so many.
    Label(usize),
}

/// A table as numbers.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The columns of each group side by side: standardised numbers, bits, places in lists of words.
    pub dataset: Dataset,
    /// Columns of the table that a model does not know, which were passed over.
    pub passed_over: Vec<String>,
    /// Columns of the model that the table does not have.
    pub lacking: Vec<String>,
}

impl Coded {
    fn group(&self) -> Group {
        match &self.code {
            Code::Level { levels } if self.kind == Kind::Label => Group::Label(levels.len()),
            Code::Level { levels } if levels.len() == 2 => Group::Bits,
            Code::Level { levels } => Group::Categories(levels.len()),
            Code::Number { .. } => Group::Numbers,
        }
    }

    /// Entries of its unit in a machine.
    fn n_entries(&self) -> usize {
        match self.group() {
            Group::Numbers | Group::Bits => 1,
            Group::Categories(q) | Group::Label(q) => q,
        }
    }
}

impl Codebook {
    /// Looks at every column of a table; `asked` says what some of them hold.
    ///
    /// # Errors
    ///
    /// If a column that is asked for is not there or does not hold what is asked, or nothing is left to
    /// learn.
    pub fn fit(frame: &Frame, asked: &BTreeMap<String, Kind>) -> Result<Self, Error> {
        if let Some(name) = asked.keys().find(|name| frame.column(name).is_none()) {
            return Err(no_column(name, frame.names()));
        }
        let mut book = Self { columns: Vec::new(), left_out: Vec::new() };
        for (name, cells) in frame.names().iter().zip(frame.columns()) {
            let mut found = detect(cells);
            if let Some(&kind) = asked.get(name) {
                found = as_asked(kind, found);
            }
            let Detected { kind, curve, why } = found;
            let name = name.clone();
            if kind == Kind::Ignore {
                book.left_out.push(LeftOut { name, why });
                continue;
            }
            let code = fit_code(&name, cells, kind, curve)?;
            book.columns.push(Coded { name, kind, code, why });
        }
        let n_labels = book.columns.iter().filter(|c| c.kind == Kind::Label).count();
        if n_labels > 1 {
            return Err(Error::Setting {
                what: "kind of a column",
                text: format!("label, of {n_labels} columns"),
                expected: "one column can be the label",
            });
        }
        if book.columns.iter().all(|c| c.kind == Kind::Label) {
            return Err(Error::NothingToLearn { n_columns: frame.names().len() });
        }
        Ok(book)
    }

    /// The columns of each layer, by their places in [`Codebook::columns`]: groups in the order of
    /// their first column, the label last.
    pub fn groups(&self) -> Vec<(Group, Vec<usize>)> {
        let mut groups: Vec<(Group, Vec<usize>)> = Vec::new();
        for (i, column) in self.columns.iter().enumerate() {
            let group = column.group();
            match groups.iter_mut().find(|(g, _)| *g == group) {
                Some((_, columns)) => columns.push(i),
                None => groups.push((group, vec![i])),
            }
        }
        groups.sort_by_key(|(group, _)| matches!(group, Group::Label(_)));
        groups
    }

    /// The places of the columns, as they stand in the encoded table.
    fn order(&self) -> Vec<usize> {
        self.groups().into_iter().flat_map(|(_, columns)| columns).collect()
    }

    /// The table as numbers, columns found by their names. Columns that are not there are missing in
    /// every row.
    ///
    /// # Errors
    ///
    /// If a cell or a column is unknown and `unknown` says that it must not be, or the table has none of
    /// the columns.
    pub fn encode(&self, frame: &Frame, unknown: Unknown) -> Result<Encoded, Error> {
        let known: BTreeSet<&str> = self.names().collect();
        let passed_over: Vec<String> =
            frame.names().iter().filter(|n| !known.contains(n.as_str())).cloned().collect();
        if let Some(name) = passed_over.first().filter(|_| unknown == Unknown::Refuse) {
            return Err(Error::UnknownColumn { name: name.clone(), known: self.known() });
        }
        let there = |c: &&Coded| frame.column(&c.name).is_some();
        let lacking: Vec<String> =
            self.columns.iter().filter(|c| !there(c)).map(|c| c.name.clone()).collect();
        if lacking.len() == self.columns.len() {
            return Err(no_column(&lacking[0], frame.names()));
        }
        let (order, n_rows) = (self.order(), frame.n_rows());
        let mut values = Array2::from_elem((n_rows, order.len()), f32::NAN);
        let mut log_slopes = vec![0.0; n_rows];
        for (place, &i) in order.iter().enumerate() {
            let column = &self.columns[i];
            let Some(cells) = frame.column(&column.name) else { continue };
            for (row, cell) in cells.iter().enumerate() {
                let Some(cell) = cell else { continue };
                match column.code.encode(cell) {
                    #[expect(clippy::cast_possible_truncation, reason = "tables are f32")]
                    Some(z) => {
                        values[[row, place]] = z as f32;
                        log_slopes[row] += column.code.log_slope(cell);
                    }
                    None if unknown == Unknown::Missing => {}
                    None => return Err(column.refuse(row, cell)),
                }
            }
        }
        let dataset = Dataset::from_array(values.view())?.with_log_slopes(log_slopes)?;
        Ok(Encoded { dataset, passed_over, lacking })
    }

    /// Rows of a machine's visible entries as a table of the columns that are learned. The word of a
    /// unit is that of its largest entry.
    ///
    /// # Errors
    ///
    /// If the rows have another number of entries.
    pub fn decode(&self, values: ArrayView2<'_, f64>) -> Result<Frame, Error> {
        let decoded = self.cells(values)?;
        let columns = decoded.into_iter().zip(&self.columns).map(|(texts, column)| {
            let cells = texts.iter().map(|t| Some(t.as_str())).collect::<Cells>();
            (column.name.clone(), cells)
        });
        Frame::new(columns.collect())
    }

    /// A table with its missing cells filled from rows of visible entries; all other cells, and
    /// columns that are not learned, stay as they were. Columns that the table does not have come last.
    ///
    /// # Errors
    ///
    /// If the numbers of rows or entries differ.
    pub fn fill(&self, frame: &Frame, values: ArrayView2<'_, f64>) -> Result<Frame, Error> {
        if values.nrows() != frame.n_rows() {
            let (n_rows, n_columns) = (frame.n_rows(), values.ncols());
            let (expected, found) = (n_rows * n_columns, values.len());
            return Err(Error::Shape { n_rows, n_columns, expected, found });
        }
        let decoded = self.cells(values)?;
        let place = |name: &str| self.columns.iter().position(|c| c.name == name);
        let mut columns: Vec<(String, Cells)> = Vec::new();
        for (name, cells) in frame.names().iter().zip(frame.columns()) {
            let filled = match place(name) {
                None => cells.clone(),
                Some(i) => {
                    let fill = |(row, cell): (usize, Option<&'_ str>)| {
                        cell.map_or_else(|| decoded[i][row].clone(), str::to_owned)
                    };
                    let texts: Vec<String> = cells.iter().enumerate().map(fill).collect();
                    texts.iter().map(|t| Some(t.as_str())).collect()
                }
            };
            columns.push((name.clone(), filled));
        }
        for (column, texts) in self.columns.iter().zip(&decoded) {
            if frame.column(&column.name).is_none() {
                let cells = texts.iter().map(|t| Some(t.as_str())).collect();
                columns.push((column.name.clone(), cells));
            }
        }
        Frame::new(columns)
    }

    /// The cells of each learned column for rows of visible entries.
    fn cells(&self, values: ArrayView2<'_, f64>) -> Result<Vec<Vec<String>>, Error> {
        let order = self.order();
        let n_columns: usize = self.columns.iter().map(Coded::n_entries).sum();
        if values.ncols() != n_columns {
            let n_rows = values.nrows();
            let (expected, found) = (n_rows * n_columns, values.len());
            return Err(Error::Shape { n_rows, n_columns, expected, found });
        }
        let mut cells = vec![Vec::with_capacity(values.nrows()); self.columns.len()];
        let mut start = 0;
        for i in order {
            let (column, n) = (&self.columns[i], self.columns[i].n_entries());
            for row in values.rows() {
                let unit = (start..start + n).map(|c| row[c]);
                let z = if n == 1 { row[start] } else { largest(unit) as f64 };
                cells[i].push(column.code.decode(z));
            }
            start += n;
        }
        Ok(cells)
    }

    /// The place of the value of a column among the entries, and the number it has there; for single
    /// values that are given.
    ///
    /// # Errors
    ///
    /// If there is no such column, or it cannot hold the value.
    pub fn place(&self, name: &str, cell: &str) -> Result<(usize, f64), Error> {
        let order = self.order();
        let place = order.iter().position(|&i| self.columns[i].name == name);
        let place = place.ok_or_else(|| {
            let learned: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
            no_column(name, &learned)
        })?;
        let column = &self.columns[order[place]];
        column.code.encode(cell).map(|z| (place, z)).ok_or_else(|| column.refuse(0, cell))
    }

    /// Names of all columns, learned and left out.
    fn names(&self) -> impl Iterator<Item = &str> {
        let left = self.left_out.iter().map(|c| c.name.as_str());
        self.columns.iter().map(|c| c.name.as_str()).chain(left)
    }

    fn known(&self) -> Vec<String> {
        self.names().map(str::to_owned).collect()
    }
}

impl Coded {
    /// The error of a cell that the code does not know.
    fn refuse(&self, row: usize, cell: &str) -> Error {
        let (column, cell) = (self.name.clone(), cell.to_owned());
        match &self.code {
            Code::Level { levels } => {
                Error::UnknownLevel { row, column, cell, levels: levels.clone() }
            }
            Code::Number { curve: Curve::Linear, .. } => Error::NoNumber { row, column, cell },
            Code::Number { .. } if number(&cell).is_none() => Error::NoNumber { row, column, cell },
            Code::Number { .. } => Error::BelowLogarithm { row, column, cell },
        }
    }
}

/// What a column is, where people say so.
fn as_asked(kind: Kind, found: Detected) -> Detected {
    let curve = if found.kind == Kind::Gaussian { found.curve } else { Curve::Linear };
    Detected { kind, curve, why: "as asked for".into() }
}

/// The code of a column that holds what is said.
fn fit_code(name: &str, cells: &Cells, kind: Kind, curve: Curve) -> Result<Code, Error> {
    if kind == Kind::Gaussian {
        let wrong = |(row, cell): (usize, Option<&str>)| {
            cell.filter(|cell| number(cell).is_none()).map(|cell| (row, cell.to_owned()))
        };
        if let Some((row, cell)) = cells.iter().enumerate().find_map(wrong) {
            return Err(Error::NoNumber { row, column: name.to_owned(), cell });
        }
        return Ok(Code::fit_number(cells, curve));
    }
    let code = Code::fit_levels(cells);
    let found = match &code {
        Code::Level { levels } => levels.len(),
        Code::Number { .. } => 0,
    };
    let enough = if kind == Kind::Binary { found == 2 } else { found >= 2 };
    if enough { Ok(code) } else { Err(Error::LevelCount { column: name.to_owned(), kind, found }) }
}

fn no_column(name: &str, names: &[String]) -> Error {
    Error::NoColumn { name: name.to_owned(), names: names.to_vec() }
}

/// The place of the largest number.
fn largest(values: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (i, x) in values.enumerate() {
        if x > best.1 {
            best = (i, x);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(columns: &[(&str, &[Option<&str>])]) -> Frame {
        let column = |(name, cells): &(&str, &[Option<&str>])| {
            ((*name).to_owned(), cells.iter().copied().collect())
        };
        Frame::new(columns.iter().map(column).collect()).unwrap()
    }

    fn animals() -> Frame {
        frame(&[
            ("id", &[Some("a1"), Some("a2"), Some("a3"), Some("a4"), Some("a5"), Some("a6")]),
            ("mass", &[Some("3.5"), Some("4.0"), None, Some("9.5"), Some("3.0"), Some("4.5")]),
            (
                "kind",
                &[Some("cat"), Some("dog"), Some("cat"), Some("owl"), Some("cat"), Some("owl")],
            ),
            ("tame", &[Some("yes"), Some("yes"), Some("no"), None, Some("yes"), Some("no")]),
        ])
    }

    fn book() -> Codebook {
        Codebook::fit(&animals(), &BTreeMap::new()).unwrap()
    }

    #[test]
    fn each_column_is_found_out_about() {
        let book = book();
        let kinds: Vec<_> = book.columns.iter().map(|c| (c.name.as_str(), c.kind)).collect();
        let expected =
            [("mass", Kind::Gaussian), ("kind", Kind::Categorical), ("tame", Kind::Binary)];
        assert_eq!(kinds, expected);
        assert_eq!(book.left_out[0].name, "id");
        let groups: Vec<Group> = book.groups().into_iter().map(|(g, _)| g).collect();
        assert_eq!(groups, [Group::Numbers, Group::Categories(3), Group::Bits]);
    }

    #[test]
    fn a_table_goes_in_and_comes_back() {
        let (book, frame) = (book(), animals());
        let encoded = book.encode(&frame, Unknown::Refuse).unwrap();
        let table = encoded.dataset.table();
        assert_eq!((table.n_columns(), table.n_missing()), (3, 2));
        // As a machine has it: one number, three entries, one bit.
        let entries = Array2::from_shape_fn((6, 5), |(row, e)| match e {
            0 => f64::from(table.at(row, 0)),
            4 => f64::from(table.at(row, 2)),
            k => f64::from(u8::from(table.at(row, 1) == (k - 1) as f32)),
        });
        let mut entries = entries;
        entries[[2, 0]] = 0.0;
        entries[[3, 4]] = 0.8;
        let back = book.fill(&frame, entries.view()).unwrap();
        assert_eq!(back.column("id"), frame.column("id"), "carried through");
        assert_eq!(back.column("mass").unwrap().get(2), Some("4.9"));
        assert_eq!(back.column("tame").unwrap().get(3), Some("yes"));
        let cells = |name: &str| {
            frame
                .column(name)
                .unwrap()
                .iter()
                .zip(back.column(name).unwrap().iter())
                .filter(|(a, _)| a.is_some())
                .all(|(a, b)| a == b)
        };
        assert!(["mass", "kind", "tame"].iter().all(|n| cells(n)), "{}", back.to_csv());
        let drawn = book.decode(entries.view()).unwrap();
        assert_eq!(drawn.names(), ["mass", "kind", "tame"]);
    }

    #[test]
    fn columns_are_found_by_name() {
        let book = book();
        let other = frame(&[("tame", &[Some("no")]), ("kind", &[Some("dog")])]);
        let encoded = book.encode(&other, Unknown::Refuse).unwrap();
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
        assert!(matches!(error, Error::UnknownLevel { row: 1, .. }), "{error}");
        let encoded = book.encode(&level, Unknown::Missing).unwrap();
        assert!(encoded.dataset.table().is_missing(1, 1));
        let column = frame(&[("kind", &[Some("cat")]), ("size", &[Some("1")])]);
        let error = book.encode(&column, Unknown::Refuse).unwrap_err();
        assert!(matches!(error, Error::UnknownColumn { .. }), "{error}");
        assert_eq!(book.encode(&column, Unknown::Missing).unwrap().passed_over, ["size"]);
        let words = frame(&[("mass", &[Some("heavy")])]);
        assert!(matches!(
            book.encode(&words, Unknown::Refuse),
            Err(Error::NoNumber { row: 0, .. })
        ));
        let none = frame(&[("size", &[Some("1")])]);
        assert!(book.encode(&none, Unknown::Missing).is_err());
    }

    #[test]
    fn kinds_can_be_said() {
        let asked = |pairs: &[(&str, Kind)]| {
            Codebook::fit(&animals(), &pairs.iter().map(|(n, k)| ((*n).to_owned(), *k)).collect())
        };
        let book =
            asked(&[("kind", Kind::Label), ("id", Kind::Categorical), ("tame", Kind::Ignore)])
                .unwrap();
        let groups: Vec<Group> = book.groups().into_iter().map(|(g, _)| g).collect();
        assert_eq!(groups, [Group::Categories(6), Group::Numbers, Group::Label(3)]);
        assert!(matches!(asked(&[("kind", Kind::Gaussian)]), Err(Error::NoNumber { row: 0, .. })));
        assert!(matches!(
            asked(&[("kind", Kind::Binary)]),
            Err(Error::LevelCount { found: 3, .. })
        ));
        assert!(matches!(asked(&[("size", Kind::Binary)]), Err(Error::NoColumn { .. })));
        let nothing = ["mass", "kind", "tame"].map(|n| (n, Kind::Ignore));
        assert!(matches!(asked(&nothing), Err(Error::NothingToLearn { n_columns: 4 })));
    }
}
