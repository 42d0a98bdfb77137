//! Several NumPy arrays in one zip archive.

use super::npy;
use super::rows::{Facts, RowSink};
use super::source::{Entry, Guarded};
use crate::Error;
use std::io::{BufReader, Read, Seek};
use zip::ZipArchive;
use zip::result::ZipError;

const FORMAT: &str = "npz";
/// Arrays whose headers are read for a list of what there is; messages show no more of them.
const SHAPES: usize = 20;

/// Whether a file starts like this format.
pub(crate) fn recognise(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

fn damaged(error: ZipError) -> Error {
    match error {
        ZipError::Io(e) => e.into(),
        other => Error::Damaged { format: FORMAT, reason: other.to_string() },
    }
}

/// Reads the array that the options name, or the only one.
pub(crate) fn read(reader: impl Read + Seek, rows: &mut RowSink) -> Result<Facts, Error> {
    let mut archive = ZipArchive::new(reader).map_err(damaged)?;
    let names = (0..archive.len())
        .map(|i| {
            Ok(archive.by_index_raw(i).map_err(damaged)?.name().map_err(damaged)?.into_owned())
        })
        .collect::<Result<Vec<String>, Error>>()?;
    let plain = |name: &String| name.strip_suffix(".npy").unwrap_or(name).to_owned();
    let asked = rows.options().variable.clone();
    let chosen = match (&asked, names.as_slice()) {
        (Some(asked), names) => names.iter().position(|n| plain(n) == *asked || n == asked),
        (None, [_]) => Some(0),
        (None, _) => None,
    };
    let Some(index) = chosen else {
        let mut shape =
            |i: usize| if i < SHAPES { shape_of(&mut archive, i) } else { String::new() };
        let shape = |(i, n): (usize, &String)| format!("`{}`{}", plain(n), shape(i));
        let available = names.iter().enumerate().map(shape).collect();
        return Err(Error::Variable { asked, available });
    };
    let file = archive.by_index(index).map_err(damaged)?;
    let packed = file.compressed_size();
    npy::read(&mut BufReader::new(Guarded::new(Entry { inner: file, packed })), rows)
}

/// The shape of an array for a list; nothing if it cannot be told.
fn shape_of(archive: &mut ZipArchive<impl Read + Seek>, index: usize) -> String {
    let Ok(file) = archive.by_index(index) else { return String::new() };
    match npy::read_header(&mut BufReader::new(file)) {
        Ok(header) => {
            let dims: Vec<String> = header.dims.iter().map(u64::to_string).collect();
            format!(" ({})", dims.join("x"))
        }
        Err(_) => String::new(),
    }
}
