//! The array format of NumPy: a magic string, a Python dictionary that describes the array, and
//! the values.
//!
//! The dictionary is parsed by hand, so that every damaged header is an error with a reason
//! (NumPy Enhancement Proposal 1 and its versions 2 and 3).

use super::array::{Array, Order};
use super::lines::excerpt;
use super::number::{Endian, Kind, Run};
use super::rows::{Facts, RowSink};
use super::source::{at_end, fill};
use crate::Error;
use std::io::BufRead;

const FORMAT: &str = "npy";
const MAGIC: &[u8] = b"\x93NUMPY";
/// Headers are a line; this is room for any that NumPy writes.
const MAX_HEADER: u64 = 1 << 20;
/// Dimensions of an array in NumPy.
const MAX_DIMS: usize = 64;

/// Whether a file starts like this format.
pub(crate) fn recognise(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// What the header says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) endian: Endian,
    pub(crate) order: Order,
    pub(crate) dims: Vec<u64>,
}

fn damaged(reason: impl Into<String>) -> Error {
    Error::Damaged { format: FORMAT, reason: reason.into() }
}

/// Reads an array; C-ordered arrays row by row, others whole.
pub(crate) fn read(mut reader: &mut dyn BufRead, rows: &mut RowSink) -> Result<Facts, Error> {
    let header = read_header(reader)?;
    let n_values = header.dims.iter().try_fold(1_u64, |n, &d| n.checked_mul(d));
    let facts = if header.order == Order::RowMajor && !rows.options().transpose {
        stream(reader, &header, rows)?
    } else {
        let n_bytes = n_values.and_then(|n| n.checked_mul(header.kind.size() as u64));
        let mut bytes = Vec::new();
        let found = fill(&mut reader, n_bytes.unwrap_or(u64::MAX), &mut bytes)?;
        if Some(found) != n_bytes {
            let expected = n_bytes.unwrap_or(u64::MAX);
            return Err(Error::Truncated { format: FORMAT, what: "bytes", expected, found });
        }
        let Header { kind, endian, order, dims } = header;
        Array { kind, endian, order, dims, bytes: &bytes }.push_rows(rows)?
    };
    if !at_end(&mut reader)? {
        let expected = n_values.unwrap_or(u64::MAX);
        return Err(Error::Trailing { format: FORMAT, what: "values", expected });
    }
    Ok(facts)
}

fn stream(
    mut reader: &mut dyn BufRead,
    header: &Header,
    rows: &mut RowSink,
) -> Result<Facts, Error> {
    let n_rows = header.dims.first().copied().unwrap_or(1);
    let inner = header.dims.get(1..).unwrap_or_default();
    let n_columns = inner.iter().try_fold(1_u64, |n, &d| n.checked_mul(d)).unwrap_or(u64::MAX);
    let row_bytes = n_columns.saturating_mul(header.kind.size() as u64);
    if n_rows == 0 || n_columns == 0 {
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        return Err(Error::Empty { n_rows: size(n_rows), n_columns: size(n_columns) });
    }
    let mut bytes = Vec::new();
    for row in 0..n_rows {
        if fill(&mut reader, row_bytes, &mut bytes)? < row_bytes {
            let (expected, found) = (n_rows, row);
            return Err(Error::Truncated { format: FORMAT, what: "rows", expected, found });
        }
        let (kind, endian) = (header.kind, header.endian);
        rows.push_run(&Run { kind, endian, bytes: &bytes })?;
    }
    Ok(Facts { image: super::array::image_of(inner), ..Facts::default() })
}

/// Reads the header and leaves the reader at the first value.
pub(crate) fn read_header(mut reader: &mut dyn BufRead) -> Result<Header, Error> {
    let mut bytes = Vec::new();
    fill(&mut reader, 8, &mut bytes)?;
    let (true, Some(&[major, _])) = (bytes.starts_with(MAGIC), bytes.get(6..8)) else {
        return Err(damaged("the magic string is missing"));
    };
    let width = match major {
        1 => 2,
        2 | 3 => 4,
        _ => return Err(damaged(format!("unknown version {major}"))),
    };
    fill(&mut reader, width, &mut bytes)?;
    let length = bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
    if bytes.len() as u64 != width || length > MAX_HEADER {
        return Err(damaged(format!("a header of {length} bytes")));
    }
    if fill(&mut reader, length, &mut bytes)? < length {
        return Err(damaged("the header ends early"));
    }
    let text = String::from_utf8_lossy(&bytes);
    parse_header(&text)
}

fn parse_header(text: &str) -> Result<Header, Error> {
    let no_key = |key: &str| damaged(format!("the header does not say `{key}`"));
    let descr = after_key(text, "descr").ok_or_else(|| no_key("descr"))?;
    let fortran = after_key(text, "fortran_order").ok_or_else(|| no_key("fortran_order"))?;
    let shape = after_key(text, "shape").ok_or_else(|| no_key("shape"))?;
    let (kind, endian) = parse_type(descr)?;
    let order = match fortran {
        f if f.starts_with("True") => Order::ColumnMajor,
        f if f.starts_with("False") => Order::RowMajor,
        _ => return Err(damaged("`fortran_order` is neither True nor False")),
    };
    Ok(Header { kind, endian, order, dims: parse_shape(shape)? })
}

/// The text after `'key':`.
fn after_key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    ['\'', '"'].iter().find_map(|quote| {
        let (_, rest) = text.split_once(&format!("{quote}{key}{quote}"))?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    })
}

fn parse_type(text: &str) -> Result<(Kind, Endian), Error> {
    let unsupported = |what: String| Error::Unsupported {
        format: FORMAT,
        what,
        instead: "save a plain array of numbers: `numpy.save(file, array.astype('float32'))`",
    };
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let quote = quote.ok_or_else(|| unsupported("a record type".into()))?;
    let name = text[1..].split(quote).next().unwrap_or_default();
    let (endian, code) = match name.as_bytes() {
        [b'>', ..] => (Endian::Big, &name[1..]),
        [b'<' | b'|' | b'=', ..] => (Endian::Little, &name[1..]),
        _ => (Endian::Little, name),
    };
    let kind = match code {
        "b1" | "?" | "u1" | "B" => Kind::U8,
        "i1" | "b" => Kind::I8,
        "u2" => Kind::U16,
        "i2" => Kind::I16,
        "u4" => Kind::U32,
        "i4" => Kind::I32,
        "u8" => Kind::U64,
        "i8" => Kind::I64,
        "f2" => Kind::F16,
        "f4" => Kind::F32,
        "f8" => Kind::F64,
        _ => return Err(unsupported(format!("values of type `{}`", excerpt(name.as_bytes())))),
    };
    Ok((kind, endian))
}

fn parse_shape(text: &str) -> Result<Vec<u64>, Error> {
    let wrong = || damaged("the shape is not a tuple of whole numbers");
    let inner = text.strip_prefix('(').and_then(|t| t.split_once(')')).ok_or_else(wrong)?.0;
    let number = |part: &str| part.trim().trim_end_matches('L').parse().map_err(|_| wrong());
    let dims: Vec<u64> =
        inner.split(',').filter(|p| !p.trim().is_empty()).map(number).collect::<Result<_, _>>()?;
    if dims.len() > MAX_DIMS {
        return Err(damaged(format!("an array of {} dimensions", dims.len())));
    }
    Ok(dims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_numpy_writes_them() {
        let header =
            parse_header("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }  \n")
                .unwrap();
        assert_eq!((header.kind, header.dims), (Kind::F64, vec![3, 4]));
        let header =
            parse_header("{'descr': '|u1', 'fortran_order': True, 'shape': (7,), }").unwrap();
        assert_eq!((header.order, header.dims), (Order::ColumnMajor, vec![7]));
        assert_eq!(parse_shape("()").unwrap(), Vec::<u64>::new());
    }

    #[test]
    fn objects_and_records_are_refused_with_a_way_out() {
        for descr in ["'|O'", "[('a', '<f4')]", "'<U5'", "'<c8'"] {
            let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (3,), }}");
            assert!(matches!(parse_header(&text), Err(Error::Unsupported { .. })), "{descr}");
        }
        assert!(parse_header("{'descr': '<f8', 'shape': (3,)}").is_err());
        assert!(parse_shape("(3, -1)").is_err());
        assert!(parse_shape("(99999999999999999999999,)").is_err());
    }
}
