//! Tables as people have them: names, words, numbers, dates and holes, cell by cell as they were written.
//!
//! A [`Frame`] holds the text of every cell, so that what is not learned can be given back unchanged. A
//! [`Codebook`] says how each column becomes numbers for a machine and how numbers become cells again:
//! categories by their names, numbers centered and scaled, perhaps on a logarithmic scale. It is fitted
//! once, on the training table, and stored with the model.
//!
//! ```
//! use harmonium_data::frame::{Cells, Codebook, Frame, Kinds, Unknown};
//!
//! let mass = Cells::from_numbers([3.5, 4.1, f64::NAN, 9.5, 3.9, 7.2]);
//! let kind = ["cat", "dog", "cat", "owl", "cat", "owl"].into_iter().map(Some).collect();
//! let frame = Frame::new(vec![("mass".into(), mass), ("kind".into(), kind)])?;
//! let book = Codebook::fit(&frame, &Kinds::new())?;
//! let data = book.encode(&frame, Unknown::Refuse)?.dataset;
//! assert_eq!((data.n_rows(), data.n_columns()), (6, 2));
//! assert!(data.has_missing());
//! # Ok::<(), harmonium_data::Error>(())
//! ```

mod cells;
mod code;
mod codebook;
mod decode;
mod detect;
mod encode;
mod filled;
mod kind;
#[cfg(feature = "readers")]
mod read;
#[cfg(feature = "readers")]
mod records;

pub use cells::Cells;
pub use code::{Code, Curve, counting_room};
pub use codebook::{Codebook, Coded, Group, LeftOut};
pub use encode::{Encoded, Unknown};
pub use filled::FilledRows;
pub use kind::{Asked, Kind, Kinds};
#[cfg(feature = "readers")]
pub use read::read_frame;
#[cfg(feature = "readers")]
pub(crate) use read::read_with_notes;

use crate::Error;
use ndarray::ArrayView2;
use std::fmt::Write;

/// A table of cells with a name for each column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    names: Vec<String>,
    columns: Vec<Cells>,
    /// The line of the file in which each row begins, from 1; empty where there is no file.
    lines: Vec<u64>,
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
        Ok(Self { names, columns, lines: Vec::new() })
    }

    /// Says in which line of a file each row begins.
    #[cfg(feature = "readers")]
    fn with_lines(mut self, lines: Vec<u64>) -> Self {
        self.lines = lines;
        self
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

    /// A row as people find it: its number from 1, and its line where the table came from a file.
    pub fn place(&self, row: usize) -> Place {
        Place { row: row + 1, line: self.lines.get(row).copied() }
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
        let columns: Vec<Cells> = self.columns.iter().map(|c| c.select_rows(rows)).collect();
        let chosen = Self::new(self.names.iter().cloned().zip(columns).collect())?;
        let lines = rows.iter().filter_map(|&row| self.lines.get(row).copied()).collect();
        Ok(Self { lines, ..chosen })
    }

    /// The same table with one more column.
    #[cfg(feature = "readers")]
    pub(crate) fn with_column(mut self, column: Option<(String, Cells)>) -> Result<Self, Error> {
        let Some((name, cells)) = column else { return Ok(self) };
        self.names.push(name);
        self.columns.push(cells);
        let lines = self.lines;
        Ok(Self { lines, ..Self::new(self.names.into_iter().zip(self.columns).collect())? })
    }

    /// The columns of a range, by their places.
    ///
    /// # Errors
    ///
    /// If there are none.
    #[cfg(feature = "readers")]
    pub(crate) fn select_columns(self, range: std::ops::Range<usize>) -> Result<Self, Error> {
        let n_columns = self.names.len();
        let end = if range.end == usize::MAX { n_columns } else { range.end };
        let range = range.start..end;
        if range.is_empty() || range.end > n_columns {
            return Err(Error::Columns { range, n_columns });
        }
        let pairs = self.names.into_iter().zip(self.columns);
        let chosen = Self::new(pairs.skip(range.start).take(range.len()).collect())?;
        Ok(Self { lines: self.lines, ..chosen })
    }

    /// The same table without the cells for which `hides` says so, by row and column.
    #[must_use]
    pub fn without_cells(&self, hides: impl Fn(usize, usize) -> bool) -> Self {
        let column = |(c, cells): (usize, &Cells)| cells.without(|row| hides(row, c));
        let columns = self.columns.iter().enumerate().map(column).collect();
        Self { columns, ..self.clone_shape() }
    }

    /// The same table without the cells that were not observed: `false` in a row for each row of the table, or in one
    /// row that holds for all. The mask has a column for each column of the table, or for those that it names.
    ///
    /// # Errors
    ///
    /// If the mask has another shape, or names a column that is not there.
    #[expect(clippy::needless_pass_by_value, reason = "a view is a reference already")]
    pub fn observed(
        &self,
        mask: ArrayView2<'_, bool>,
        names: Option<&[String]>,
    ) -> Result<Self, Error> {
        let (n, m) = mask.dim();
        let names = names.unwrap_or(&self.names);
        if m != names.len() || (n != self.n_rows() && n != 1) {
            let expected = (self.n_rows(), names.len());
            return Err(Error::MaskShape { expected, found: (n, m) });
        }
        let mut of_column = vec![None; self.names.len()];
        for (c, name) in names.iter().enumerate() {
            match self.names.iter().position(|n| n == name) {
                Some(place) => of_column[place] = Some(c),
                None => return Err(codebook::no_column(name, &self.names)),
            }
        }
        Ok(self.without_cells(|row, c| of_column[c].is_some_and(|c| !mask[[row % n, c]])))
    }

    /// The same table with one value in all cells of a column, which need not be there yet.
    #[must_use]
    pub fn with_value(&self, name: &str, value: &str) -> Self {
        let cells = std::iter::repeat_n(Some(value), self.n_rows()).collect();
        let mut changed = self.clone();
        if let Some(c) = changed.names.iter().position(|n| n == name) {
            changed.columns[c] = cells;
        } else {
            changed.names.push(name.to_owned());
            changed.columns.push(cells);
        }
        changed
    }

    fn clone_shape(&self) -> Self {
        Self { names: self.names.clone(), columns: Vec::new(), lines: self.lines.clone() }
    }

    /// The table as comma-separated text with a header; cells are written as they were.
    pub fn to_csv(&self) -> String {
        let mut text = String::new();
        let line = |cells: &mut dyn Iterator<Item = &str>, text: &mut String| {
            let start = text.len();
            for (i, cell) in cells.enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                quote(cell, text);
            }
            // A line with nothing in it would not be a row.
            if text.len() == start {
                text.push_str("\"\"");
            }
            text.push('\n');
        };
        line(&mut self.names.iter().map(String::as_str), &mut text);
        for row in 0..self.n_rows() {
            line(&mut self.columns.iter().map(|c| c.written(row)), &mut text);
        }
        text
    }
}

/// Where a row stands, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The row, from 1; the header does not count.
    pub row: usize,
    /// The line of the file, from 1.
    pub line: Option<u64>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "row {} (line {line})", self.row),
            None => write!(f, "row {}", self.row),
        }
    }
}

/// Adds a cell, in quotes where it holds a comma, a quote, a line end or blanks around it.
fn quote(cell: &str, text: &mut String) {
    if cell.contains([',', '"', '\n', '\r', ';', '\t']) || cell.trim() != cell {
        // Writing to a string cannot fail.
        let _ = write!(text, "\"{}\"", cell.replace('"', "\"\""));
    } else {
        text.push_str(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(cells: &[Option<&str>]) -> Cells {
        cells.iter().copied().collect()
    }

    #[test]
    fn text_is_quoted_where_it_must_be() {
        let frame = Frame::new(vec![("x".into(), one(&[Some("a \"b\", c"), None]))]).unwrap();
        assert_eq!(frame.to_csv(), "x\n\"a \"\"b\"\", c\"\n\"\"\n");
    }

    #[test]
    fn a_name_stands_for_one_column() {
        let cells = || one(&[Some("1")]);
        let error = Frame::new(vec![("x".into(), cells()), ("x".into(), cells())]).unwrap_err();
        assert!(matches!(error, Error::SameName { columns: (0, 1), .. }), "{error}");
    }

    #[test]
    fn cells_can_be_taken_away_and_set() {
        let (x, y) = (one(&[Some("1"), Some("2")]), one(&[Some("a"), Some("b")]));
        let frame = Frame::new(vec![("x".into(), x), ("y".into(), y)]).unwrap();
        let holed = frame.without_cells(|row, column| row == 1 && column == 0);
        assert_eq!(holed.to_csv(), "x,y\n1,a\n,b\n");
        assert_eq!(
            holed.with_value("x", "7").with_value("z", "q").to_csv(),
            "x,y,z\n7,a,q\n7,b,q\n"
        );
        assert!(frame.clone().select_columns(1..usize::MAX).unwrap().names() == ["y"]);
        assert!(frame.select_columns(1..3).is_err());
    }
}
