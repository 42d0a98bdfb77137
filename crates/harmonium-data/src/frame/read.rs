//! Comma-separated text as a [`Frame`].

use super::{Cells, Frame};
use crate::Error;
use crate::read::lines::{excerpt, number};
use crate::read::rows::is_missing;
use crate::read::source::ByteSource;
use crate::read::text::{Cut, style_of};
use csv::{ByteRecord, ReaderBuilder};
use std::io::Read;

/// Bytes of the longest row: beyond it something else than a table is being read.
const MAX_ROW: usize = 64 << 20;

/// Reads a table with a header: quoted cells, which may hold line ends, words, numbers and holes. The
/// delimiter is found as for tables of numbers; gzip is inflated.
///
/// # Errors
///
/// If it is empty, has no header, a row has more or fewer cells than the header, or text is not UTF-8.
pub fn read_frame(reader: impl Read) -> Result<Frame, Error> {
    let ByteSource { head, reader, .. } = ByteSource::new(reader)?;
    let delimiter = match style_of(&head).cut {
        Cut::At(delimiter) => delimiter,
        // One column of words may hold blanks.
        Cut::Blanks => b',',
    };
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(reader);
    let mut record = ByteRecord::new();
    if !next(&mut reader, &mut record)? {
        return Err(Error::Empty { n_rows: 0, n_columns: 0 });
    }
    let names = header(&record)?;
    let mut columns = vec![Cells::default(); names.len()];
    while next(&mut reader, &mut record)? {
        let line = record.position().map_or(0, csv::Position::line);
        // A last delimiter too many, or a blank line.
        let n = record.len()
            - usize::from(record.len() == names.len() + 1 && record[names.len()].is_empty());
        if n == 1 && record[0].is_empty() && names.len() > 1 {
            continue;
        }
        if n != names.len() {
            return Err(Error::Ragged { line, expected: names.len(), found: n });
        }
        for (column, cell) in columns.iter_mut().zip(&record) {
            let text = std::str::from_utf8(cell)
                .map_err(|_| Error::NotText { line, cell: excerpt(cell) })?;
            column.push(Some(text).filter(|t| !is_missing(t)));
        }
    }
    Frame::new(names.into_iter().zip(columns).collect())
}

fn next(
    reader: &mut csv::Reader<Box<dyn std::io::BufRead + '_>>,
    record: &mut ByteRecord,
) -> Result<bool, Error> {
    let more = reader.read_byte_record(record).map_err(|e| Error::Io(e.into()))?;
    if record.as_slice().len() > MAX_ROW {
        let line = record.position().map_or(0, csv::Position::line);
        return Err(Error::LongLine { line, limit: MAX_ROW as u64 });
    }
    Ok(more)
}

/// The names of the columns; a column without one is called by its place.
fn header(record: &ByteRecord) -> Result<Vec<String>, Error> {
    let first = record.get(0).unwrap_or_default();
    let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
    let cells = std::iter::once(first).chain(record.iter().skip(1));
    let names: Vec<String> = cells
        .enumerate()
        .map(|(i, cell)| match String::from_utf8_lossy(cell).trim() {
            "" => format!("column{i}"),
            name => name.to_owned(),
        })
        .collect();
    if record.iter().all(|cell| number(cell).is_some()) {
        return Err(Error::NoHeader { first: excerpt(first) });
    }
    Ok(names)
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
        let again = read(&frame.to_csv()).unwrap();
        assert_eq!(again, frame, "written and read again");
    }

    #[test]
    fn broken_tables_are_refused_with_their_line() {
        assert!(matches!(
            read("a,b\n1,2\n3\n"),
            Err(Error::Ragged { line: 3, expected: 2, found: 1 })
        ));
        assert!(matches!(read("a,b\n"), Err(Error::Empty { .. })));
        assert!(matches!(read(""), Err(Error::Empty { .. })));
        assert!(matches!(read("1,2\n3,4\n"), Err(Error::NoHeader { .. })));
        assert!(matches!(read("a,a\n3,4\n"), Err(Error::SameName { .. })));
        let bytes: &[u8] = b"a,b\n1,\xff\xfe\n";
        assert!(matches!(read_frame(bytes), Err(Error::NotText { line: 2, .. })));
    }

    #[test]
    fn other_delimiters_are_found() {
        let frame = read("a;b\n1,5;x\n2,5;y\n").unwrap();
        assert_eq!(frame.column("a").unwrap().get(0), Some("1,5"));
        assert_eq!(read("a\tb\n1\tx y\n").unwrap().column("b").unwrap().get(0), Some("x y"));
    }
}
