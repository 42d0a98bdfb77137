//! Tables as people have them: names, words, numbers, dates and holes, cell by cell as they were written.
//!
//! A [`Frame`] holds the text of every cell, so that what is not learned can be given back unchanged. A
//! [`Codebook`] says how each column becomes numbers for a machine and how numbers become cells again:
//! categories by their names, numbers centered and scaled, perhaps on a logarithmic scale. It is fitted
//! once, on the training table, and stored with the model.

mod code;
mod codebook;
mod detect;
mod kind;
#[cfg(feature = "readers")]
mod read;

pub use code::{Code, Curve};
pub use codebook::{Codebook, Coded, Encoded, Group, LeftOut, Unknown};
pub use kind::Kind;
#[cfg(feature = "readers")]
pub use read::read_frame;

use crate::Error;
use std::fmt::Write;

/// The cells of one column, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    text: String,
    /// Where each cell ends; missing cells are empty.
    ends: Vec<usize>,
    missing: Vec<bool>,
}

impl Cells {
    /// Adds a cell; nothing where it is missing.
    pub fn push(&mut self, cell: Option<&str>) {
        self.text.push_str(cell.unwrap_or_default());
        self.ends.push(self.text.len());
        self.missing.push(cell.is_none());
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A cell; nothing where it is missing.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn get(&self, row: usize) -> Option<&str> {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        (!self.missing[row]).then(|| &self.text[start..self.ends[row]])
    }

    /// All cells in their order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Cells that are missing.
    pub fn n_missing(&self) -> usize {
        self.missing.iter().filter(|m| **m).count()
    }
}

impl<'a> FromIterator<Option<&'a str>> for Cells {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(cells: I) -> Self {
        let mut all = Self::default();
        cells.into_iter().for_each(|cell| all.push(cell));
        all
    }
}

/// A table of cells with a name for each column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    names: Vec<String>,
    columns: Vec<Cells>,
}

impl Frame {
    /// Columns by their names.
    ///
    /// # Errors
    ///
    /// If there is none, their lengths differ, or two have one name.
    pub fn new(columns: Vec<(String, Cells)>) -> Result<Self, Error> {
        let (names, columns): (Vec<String>, Vec<Cells>) = columns.into_iter().unzip();
        let n_rows = columns.first().map_or(0, Cells::len);
        if n_rows == 0 {
            return Err(Error::Empty { n_rows, n_columns: columns.len() });
        }
        if let Some(other) = columns.iter().find(|c| c.len() != n_rows) {
            let (n_columns, expected) = (columns.len(), n_rows * columns.len());
            let found = expected - n_rows + other.len();
            return Err(Error::Shape { n_rows, n_columns, expected, found });
        }
        for (i, name) in names.iter().enumerate() {
            if let Some(first) = names[..i].iter().position(|n| n == name) {
                return Err(Error::SameName { name: name.clone(), columns: (first, i) });
            }
        }
        Ok(Self { names, columns })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.columns.first().map_or(0, Cells::len)
    }

    /// What the columns are called.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The cells of each column.
    pub fn columns(&self) -> &[Cells] {
        &self.columns
    }

    /// The cells of the column of that name.
    pub fn column(&self, name: &str) -> Option<&Cells> {
        self.names.iter().position(|n| n == name).map(|i| &self.columns[i])
    }

    /// The rows named, in that order.
    ///
    /// # Errors
    ///
    /// If no row is named.
    ///
    /// # Panics
    ///
    /// If a row is outside the table.
    pub fn select_rows(&self, rows: &[usize]) -> Result<Self, Error> {
        let select = |c: &Cells| rows.iter().map(|&row| c.get(row)).collect();
        let columns: Vec<Cells> = self.columns.iter().map(select).collect();
        Self::new(self.names.iter().cloned().zip(columns).collect())
    }

    /// The table as comma-separated text with a header; missing cells are empty.
    pub fn to_csv(&self) -> String {
        let mut text = String::new();
        let line = |cells: &mut dyn Iterator<Item = &str>, text: &mut String| {
            for (i, cell) in cells.enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                quote(cell, text);
            }
            text.push('\n');
        };
        line(&mut self.names.iter().map(String::as_str), &mut text);
        for row in 0..self.n_rows() {
            line(&mut self.columns.iter().map(|c| c.get(row).unwrap_or_default()), &mut text);
        }
        text
    }
}

/// Adds a cell, in quotes where it holds a comma, a quote or a line end.
fn quote(cell: &str, text: &mut String) {
    if cell.contains([',', '"', '\n', '\r']) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\"{}\"", cell.replace('"', "\"\""));
    } else {
        text.push_str(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back_as_they_were_written() {
        let cells: Cells = [Some("a"), None, Some(""), Some("b,c")].into_iter().collect();
        assert_eq!(cells.iter().collect::<Vec<_>>(), [Some("a"), None, Some(""), Some("b,c")]);
        assert_eq!((cells.len(), cells.n_missing()), (4, 1));
    }

    #[test]
    fn text_is_quoted_where_it_must_be() {
        let cells: Cells = [Some("a \"b\", c"), None].into_iter().collect();
        let frame = Frame::new(vec![("x".into(), cells)]).unwrap();
        assert_eq!(frame.to_csv(), "x\n\"a \"\"b\"\", c\"\n\n");
    }

    #[test]
    fn a_name_stands_for_one_column() {
        let one = || [Some("1")].into_iter().collect::<Cells>();
        let error = Frame::new(vec![("x".into(), one()), ("x".into(), one())]).unwrap_err();
        assert!(matches!(error, Error::SameName { columns: (0, 1), .. }), "{error}");
    }
}
