//! Rows of a text whose quoted cells may hold line ends.
//!
//! A quote opens a cell only where the cell begins: `5" pipe` is text. The line in which a row begins is
//! counted here, so that every message names the line that people see.

use crate::Error;
use crate::read::cells::Cells;
use crate::read::lines::without_mark;
use std::io::{BufRead, Read};

/// Bytes of the longest row: beyond it something else than a table is being read.
const MAX_ROW: u64 = 64 << 20;

/// Cuts a text into rows.
pub(super) struct Records<'r> {
    reader: &'r mut dyn BufRead,
    delimiter: u8,
    /// Lines read so far.
    n_lines: u64,
    /// The row, and the last line of it.
    row: Vec<u8>,
    line: Vec<u8>,
    quote: Quote,
    /// The line in which the row begins, from 1.
    pub(super) first_line: u64,
    /// The cells of the row.
    pub(super) cells: Cells,
}

/// Where in a cell a text has come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    /// Before its first sign.
    Start,
    /// In an unquoted cell, or behind a quoted one.
    Plain,
    /// Between quotes.
    Inside,
    /// Behind a quote that closes the cell, unless another follows.
    Closed,
}

impl<'r> Records<'r> {
    pub(super) fn new(reader: &'r mut dyn BufRead, delimiter: u8) -> Self {
        let (row, line, cells) = (Vec::new(), Vec::new(), Cells::default());
        Self { reader, delimiter, n_lines: 0, row, line, quote: Quote::Start, first_line: 0, cells }
    }

    /// Goes to the next row, unless all were read. Blank lines are passed over, and so are lines of one cell
    /// that begin with `#` before the first row.
    pub(super) fn next(&mut self) -> Result<bool, Error> {
        let leading = self.first_line == 0;
        self.row.clear();
        self.quote = Quote::Start;
        while self.read_line()? {
            if self.row.is_empty() && self.quote == Quote::Start {
                let (line, delimiter) = (self.line.trim_ascii(), self.delimiter);
                let comment = leading && line.starts_with(b"#") && !line.contains(&delimiter);
                let blank = line.is_empty() && delimiter != b'\t';
                if blank || comment || self.line.is_empty() {
                    continue;
                }
                self.first_line = self.n_lines;
            }
            self.row.extend_from_slice(&self.line);
            if self.row.len() as u64 > MAX_ROW {
                return Err(Error::LongLine { line: self.first_line, limit: MAX_ROW });
            }
            self.follow_quotes();
            if self.quote != Quote::Inside {
                self.cells.cut_at(&self.row, self.delimiter);
                return Ok(true);
            }
            self.row.push(b'\n');
        }
        if self.quote == Quote::Inside {
            return Err(Error::OpenQuote { line: self.first_line });
        }
        Ok(false)
    }

    /// The next line without its end.
    fn read_line(&mut self) -> Result<bool, Error> {
        self.line.clear();
        if (&mut *self.reader).take(MAX_ROW + 1).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        self.n_lines += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        if self.n_lines == 1 && without_mark(&self.line).len() < self.line.len() {
            self.line.drain(..3);
        }
        Ok(true)
    }

    /// Whether a quote is open behind the last line.
    fn follow_quotes(&mut self) {
        for &b in &self.line {
            self.quote = match (self.quote, b) {
                (Quote::Inside, b'"') => Quote::Closed,
                (Quote::Inside, _) | (Quote::Start | Quote::Closed, b'"') => Quote::Inside,
                (_, b) if b == self.delimiter => Quote::Start,
                (Quote::Start, b) if b.is_ascii_whitespace() => Quote::Start,
                _ => Quote::Plain,
            };
        }
    }
}
