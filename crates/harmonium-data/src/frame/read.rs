//! Comma-separated text as a [`Frame`].
//!
//! Cells are kept as they were written. The first line is the header unless the columns below speak against
//! it: a number on top of numbers, or a word that stands in its column again.

use super::code::number;
use super::records::Records;
use super::{Cells, Frame};
use crate::Error;
use crate::read::cells;
use crate::read::lines::excerpt;
use crate::read::rows::is_missing;
use crate::read::source::ByteSource;
use crate::read::text::{Cut, style_of};
use std::io::{BufRead, Read};

/// Reads a table: quoted cells, which may hold line ends, words, numbers and holes. The delimiter is
/// found as for tables of numbers; gzip is inflated. Columns without a header are called `column0`, `column1`, …
///
/// # Errors
///
/// If it is empty, a row has more or fewer cells than the first, or text is not UTF-8.
pub fn read_frame(reader: impl Read) -> Result<Frame, Error> {
    let ByteSource { head, mut reader, .. } = ByteSource::new(reader)?;
    Ok(read_with_notes(&head, &mut reader)?.0)
}

/// The same of a stream whose first bytes are `head`, with what was guessed, for people.
pub(crate) fn read_with_notes(
    head: &[u8],
    reader: &mut dyn BufRead,
) -> Result<(Frame, Vec<String>), Error> {
    let delimiter = match style_of(head).cut {
        Cut::At(delimiter) => delimiter,
        // One column of words may hold blanks.
        Cut::Blanks => b',',
    };
    let mut records = Records::new(reader, delimiter);
    if !records.next()? {
        return Err(Error::Empty { n_rows: 0, n_columns: 0 });
    }
    let (first, first_line) = (first_cells(&records.cells)?, records.first_line);
    let (mut columns, mut lines) = (vec![Cells::default(); first.len()], Vec::new());
    while records.next()? {
        let line = records.first_line;
        check_width(&records.cells, line, first.len())?;
        for (column, cell) in columns.iter_mut().zip(records.cells.iter()) {
            let text = text_of(cell, line)?;
            column.push_written(text, is_missing(text));
        }
        lines.push(line);
    }
    let mut notes = Vec::new();
    let names = if is_header(&first, &columns) {
        header(&first)
    } else {
        notes.push(format!(
            "the first line was taken as data and not as a header: `{}` stands above values like it; the \
             columns are called column0, column1, …",
            excerpt(first[0].as_bytes())
        ));
        for (column, cell) in columns.iter_mut().zip(&first) {
            let below = std::mem::take(column);
            column.push_written(cell, is_missing(cell));
            (0..below.len())
                .for_each(|row| column.push_written(below.written(row), below.get(row).is_none()));
        }
        lines.insert(0, first_line);
        (0..first.len()).map(|i| format!("column{i}")).collect()
    };
    let frame = Frame::new(names.into_iter().zip(columns).collect())?.with_lines(lines);
    Ok((frame, notes))
}

/// Whether a row has as many cells as the first; a delimiter too many at the end is passed over.
fn check_width(cells: &cells::Cells, line: u64, expected: usize) -> Result<(), Error> {
    let found = cells.len();
    let trailing = found == expected + 1 && cells.get(expected).is_some_and(<[u8]>::is_empty);
    if found == expected || trailing {
        return Ok(());
    }
    Err(Error::Ragged { line, expected, found })
}

fn text_of(cell: &[u8], line: u64) -> Result<&str, Error> {
    std::str::from_utf8(cell).map_err(|_| Error::NotText { line, cell: excerpt(cell) })
}

/// The cells of the first line, without a delimiter too many at the end.
fn first_cells(cells: &cells::Cells) -> Result<Vec<String>, Error> {
    let mut first = Vec::with_capacity(cells.len());
    for cell in cells.iter() {
        first.push(text_of(cell, 1)?.trim().to_owned());
    }
    if first.len() > 2 && first.last().is_some_and(String::is_empty) {
        first.pop();
    }
    Ok(first)
}

/// Whether the first line holds names: a word stands above numbers, or no cell is like those below it.
fn is_header(first: &[String], columns: &[Cells]) -> bool {
    let (mut names, mut values) = (0, 0);
    for (cell, column) in first.iter().zip(columns).filter(|(cell, _)| !is_missing(cell)) {
        let there = column.len() - column.n_missing();
        let numbers = column.iter().flatten().filter(|c| number(c).is_some()).count();
        let above_numbers = numbers * 2 > there;
        let again = column.iter().flatten().any(|c| c == cell);
        if above_numbers && number(cell).is_none() && !again {
            names += 1;
        } else if (above_numbers && number(cell).is_some()) || again {
            values += 1;
        }
    }
    // No number stands under a word in a table of values; years may be names.
    names > 0 || values == 0
}

/// The names of the columns; one without a name is called by its place.
fn header(first: &[String]) -> Vec<String> {
    let name = |(i, cell): (usize, &String)| {
        if cell.is_empty() { format!("column{i}") } else { cell.clone() }
    };
    first.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Frame, Error> {
        read_frame(text.as_bytes())
    }

    #[test]
    fn quotes_line_ends_and_holes_are_read() {
        let text = "\u{feff}a, b ,c\r\n1,\"x, \"\"y\"\"\nz\",NA\r\n,plain,?\r\n\r\n3,None,2.50";
        let frame = read(text).unwrap();
        assert_eq!(frame.names(), ["a", "b", "c"]);
        let column = |name: &str| frame.column(name).unwrap().iter().collect::<Vec<_>>();
        assert_eq!(column("a"), [Some("1"), None, Some("3")]);
        assert_eq!(column("b"), [Some("x, \"y\"\nz"), Some("plain"), Some("None")]);
        assert_eq!(column("c"), [None, None, Some("2.50")]);
        assert_eq!(frame.column("c").unwrap().written(1), "?");
        assert_eq!(frame.place(2).to_string(), "row 3 (line 6)");
        let again = read(&frame.to_csv()).unwrap();
        assert_eq!(again.columns(), frame.columns(), "written and read again");
    }

    #[test]
    fn broken_tables_are_refused_with_their_line() {
        assert!(matches!(
            read("a,b\n1,2\n3\n"),
            Err(Error::Ragged { line: 3, expected: 2, found: 1 })
        ));
        assert!(matches!(read("a,b\n"), Err(Error::Empty { .. })));
        assert!(matches!(read(""), Err(Error::Empty { .. })));
        assert!(matches!(read("a,a\n3,4\n"), Err(Error::SameName { .. })));
        assert!(matches!(read("a,b\n1,\"x\n2,y\n3,z\n"), Err(Error::OpenQuote { line: 2 })));
        let bytes: &[u8] = b"a,b\n1,\xff\xfe\n";
        assert!(matches!(read_frame(bytes), Err(Error::NotText { line: 2, .. })));
    }

    #[test]
    fn other_delimiters_are_found() {
        let frame = read("a;b\n1,5;x\n2,5;y\n").unwrap();
        assert_eq!(frame.column("a").unwrap().get(0), Some("1,5"));
        assert_eq!(read("a\tb\n1\tx y\n").unwrap().column("b").unwrap().get(0), Some("x y"));
    }

    #[test]
    fn a_table_without_a_header_is_told_by_its_columns() {
        let text = "39,State-gov,Male\n50,Self-emp,Male\n38,Private,Female\n53,Private,Male\n";
        let (frame, notes) = read_with_notes(text.as_bytes(), &mut text.as_bytes()).unwrap();
        assert_eq!((frame.n_rows(), frame.names().len(), notes.len()), (4, 3, 1));
        assert_eq!(frame.names()[1], "column1");
        assert_eq!(frame.column("column1").unwrap().get(0), Some("State-gov"));
        assert_eq!(frame.place(0).to_string(), "row 1 (line 1)");
        // Years are names, where the others are too.
        let years = read("city,area,2019,2020\nBonn,141,1,2\nKiel,118,3,4\n").unwrap();
        assert_eq!(years.names()[2], "2019");
        assert_eq!(read("x\nx\ny\n").unwrap().names(), ["column0"], "a word again");
    }
}
