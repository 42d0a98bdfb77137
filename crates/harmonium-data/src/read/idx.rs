//! IDX, the format of MNIST: a magic number, big-endian dimensions, values row by row.
//!
//! Bytes 0 and 1 are zero, byte 2 is the type, byte 3 the number of dimensions. The first
//! dimension counts samples; two more are the height and the width of a picture.

use super::number::{Endian, Kind, Run};
use super::rows::{Facts, RowSink};
use super::source::{at_end, fill};
use crate::{Error, Image};
use std::io::BufRead;

const FORMAT: &str = "IDX";

/// Whether a file starts like this format.
pub(crate) fn recognise(head: &[u8]) -> bool {
    matches!(head, [0, 0, kind, 1..=8, ..] if kind_of(*kind).is_some())
}

fn kind_of(byte: u8) -> Option<Kind> {
    Some(match byte {
        0x08 => Kind::U8,
        0x09 => Kind::I8,
        0x0b => Kind::I16,
        0x0c => Kind::I32,
        0x0d => Kind::F32,
        0x0e => Kind::F64,
        _ => return None,
    })
}

/// Reads row by row; grey levels (bytes) have a full scale of 255.
pub(crate) fn read(mut reader: &mut dyn BufRead, rows: &mut RowSink) -> Result<Facts, Error> {
    let (kind, dims) = header(reader)?;
    let n_rows = dims[0];
    let n_columns = dims[1..].iter().try_fold(1_u64, |n, &d| n.checked_mul(d));
    let row_bytes = n_columns.and_then(|n| n.checked_mul(kind.size() as u64)).unwrap_or(u64::MAX);
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    if n_rows == 0 || row_bytes == 0 {
        let n_columns = size(n_columns.unwrap_or(u64::MAX));
        return Err(Error::Empty { n_rows: size(n_rows), n_columns });
    }
    if kind == Kind::U8 && dims.len() > 1 {
        rows.set_full_scale(255);
    }
    let mut bytes = Vec::new();
    for row in 0..n_rows {
        if fill(&mut reader, row_bytes, &mut bytes)? < row_bytes {
            let (expected, found) = (n_rows, row);
            return Err(Error::Truncated { format: FORMAT, what: "rows", expected, found });
        }
        rows.push_run(&Run { kind, endian: Endian::Big, bytes: &bytes })?;
    }
    if !at_end(&mut reader)? {
        return Err(Error::Trailing { format: FORMAT, what: "rows", expected: n_rows });
    }
    let image = match dims[1..] {
        [h, w] => Some(Image { height: size(h), width: size(w) }),
        _ => None,
    };
    Ok(Facts { image, ..Facts::default() })
}

fn header(mut reader: &mut dyn BufRead) -> Result<(Kind, Vec<u64>), Error> {
    let damaged = |reason: &str| Error::Damaged { format: FORMAT, reason: reason.into() };
    let mut bytes = Vec::new();
    fill(&mut reader, 4, &mut bytes)?;
    let &[0, 0, kind, n_dims @ 1..=8] = bytes.as_slice() else {
        return Err(damaged("the magic number is missing"));
    };
    let kind = kind_of(kind).ok_or_else(|| damaged("unknown type of numbers"))?;
    if fill(&mut reader, u64::from(n_dims) * 4, &mut bytes)? < u64::from(n_dims) * 4 {
        return Err(damaged("the header ends early"));
    }
    let dims =
        bytes.chunks_exact(4).map(|d| d.iter().fold(0, |n, &b| n << 8 | u64::from(b))).collect();
    Ok((kind, dims))
}
