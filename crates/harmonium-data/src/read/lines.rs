//! Lines of a text with their numbers.
//!
//! A line is held in memory, so its length has a limit: a file without line ends is refused, not
//! read until the memory is full.

use crate::Error;
use std::io::{BufRead, Read};

/// Bytes of the longest line: millions of cells.
const MAX_LINE: u64 = 64 << 20;

/// Walks over the lines that hold something.
pub(crate) struct Lines<'a> {
    reader: &'a mut dyn BufRead,
    comment: u8,
    number: u64,
    line: Vec<u8>,
}

impl<'a> Lines<'a> {
    /// Lines that start with `comment` are passed over.
    pub(crate) fn new(reader: &'a mut dyn BufRead, comment: u8) -> Self {
        Self { reader, comment, number: 0, line: Vec::new() }
    }

    /// The next line without blanks around it, and its number from 1.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        loop {
            match self.advance()? {
                false => return Ok(None),
                true if self.current().trim_ascii().is_empty() => {}
                true => return Ok(Some((self.number, self.current().trim_ascii()))),
            }
        }
    }

    /// The same with the tabs at its ends, which may stand for empty cells.
    pub(crate) fn next_with_tabs(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        Ok(self.advance()?.then(|| (self.number, self.current())))
    }

    /// Goes to the next line that is neither a comment nor blank, unless all were read.
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            self.line.clear();
            let limit = MAX_LINE + 1;
            if (&mut *self.reader).take(limit).read_until(b'\n', &mut self.line)? == 0 {
                return Ok(false);
            }
            self.number += 1;
            if self.line.len() as u64 == limit && self.line.last() != Some(&b'\n') {
                return Err(Error::LongLine { line: self.number, limit: MAX_LINE });
            }
            let first = self.current().iter().find(|b| **b != b' ');
            if first.is_some_and(|b| *b != self.comment) {
                return Ok(true);
            }
        }
    }

    fn current(&self) -> &[u8] {
        let line = without_mark(&self.line);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    }
}

/// Text without the byte order mark that some editors put first.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// A cell for a message: as text, and not too much of it.
pub(crate) fn excerpt(cell: &[u8]) -> String {
    let text = String::from_utf8_lossy(cell);
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// The number in a cell, NaN if the entry is missing; `None` if it is neither.
pub(crate) fn number(cell: &[u8]) -> Option<f32> {
    if let [digit @ b'0'..=b'9'] = cell {
        return Some(f32::from(digit - b'0'));
    }
    let text = std::str::from_utf8(cell).ok()?.trim();
    if super::rows::is_missing(text) { Some(f32::NAN) } else { text.parse().ok() }
}
