//! The tagged elements of a MATLAB 5 file, and the arrays made of them.
//!
//! An element is a type, a size and data padded to 8 bytes; up to 4 bytes of data may sit in the
//! tag itself. An array (type 14) is itself a run of elements: flags, dimensions, name, values.

use super::super::lines::excerpt;
use super::super::number::{Endian, Kind};
use super::super::source::{Budget, Guarded, Inflation, fill};
use super::super::sparse::{PER_ENTRY, check_dense};
use super::damaged;
use crate::Error;
use std::borrow::Cow;
use std::io::BufRead;

const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// Structs inside cells inside structs …: deeper than anyone nests.
const MAX_DEPTH: usize = 32;
/// Dimensions of an array; more than any program writes.
const MAX_DIMS: usize = 64;
/// Bytes of a name: MATLAB's own end at 63.
const MAX_NAME: usize = 1 << 10;
/// About what an array costs besides its values: itself, its place in a list, its buffers.
const ARRAY_COST: u64 = 256;

/// An array with its name.
#[derive(Clone, Debug)]
pub(crate) struct Matrix<'a> {
    pub(crate) name: String,
    pub(crate) dims: Vec<u64>,
    pub(crate) content: Content<'a>,
}

#[derive(Clone, Debug)]
pub(crate) enum Content<'a> {
    Numbers {
        kind: Kind,
        endian: Endian,
        bytes: Cow<'a, [u8]>,
    },
    /// Column by column.
    Cells(Vec<Matrix<'a>>),
    Fields(Vec<(String, Matrix<'a>)>),
    Text(String),
    /// What is not read, by name.
    Other(&'static str),
}

impl Matrix<'_> {
    /// Number of entries; `None` beyond what can be counted.
    pub(crate) fn n_values(&self) -> Option<u64> {
        self.dims.iter().try_fold(1_u64, |n, &d| n.checked_mul(d))
    }

    /// The shape and what is in it, for people.
    pub(crate) fn shape(&self) -> String {
        let dims: Vec<String> = self.dims.iter().map(u64::to_string).collect();
        let what = match &self.content {
            Content::Numbers { .. } => "",
            Content::Cells(_) => " cells",
            Content::Fields(_) => " struct",
            Content::Text(_) => " text",
            Content::Other(what) => return format!("({} {what})", dims.join("x")),
        };
        format!("({}{what})", dims.join("x"))
    }
}

/// The byte order that the header's last two bytes tell.
pub(crate) fn endian_of(header: &[u8]) -> Result<Endian, Error> {
    if header.starts_with(b"MATLAB 7.3") {
        return Err(Error::Unsupported {
            format: ".mat",
            what: "version 7.3 (HDF5)".into(),
            instead: "save it in MATLAB with `save(file, 'name', '-v7')`",
        });
    }
    match header.get(126..128) {
        Some(b"IM") => Ok(Endian::Little),
        Some(b"MI") => Ok(Endian::Big),
        _ => Err(damaged("the header does not tell the byte order")),
    }
}

/// The bodies of the arrays of a file, one after the other.
pub(crate) struct Blocks<'a> {
    reader: &'a mut dyn BufRead,
    endian: Endian,
    inflation: Inflation,
    file_bytes: u64,
}

impl<'a> Blocks<'a> {
    /// Reads on after the header.
    pub(crate) fn new(reader: &'a mut dyn BufRead, endian: Endian) -> Self {
        Self { reader, endian, inflation: Inflation::default(), file_bytes: 0 }
    }

    /// What may be made of the blocks read so far.
    pub(crate) fn budget(&self) -> Budget {
        Budget::for_file_of(self.file_bytes)
    }

    /// The body of the next array, inflated; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            let mut tag = Vec::new();
            match fill(&mut self.reader, 8, &mut tag)? {
                0 => return Ok(None),
                8 => {}
                _ => return Err(damaged("the file ends inside a tag")),
            }
            let (kind, size) = self.tag(&tag);
            let mut body = Vec::new();
            let found = fill(&mut self.reader, size, &mut body)?;
            if found < size {
                let (format, what) = (super::FORMAT, "bytes of a variable");
                return Err(Error::Truncated { format, what, expected: size, found });
            }
            self.file_bytes = self.file_bytes.saturating_add(size);
            match kind {
                MATRIX => return Ok(Some(body)),
                COMPRESSED => {
                    if let Some(body) = self.inflate(&body)? {
                        return Ok(Some(body));
                    }
                }
                _ => {}
            }
        }
    }

    fn tag(&self, tag: &[u8]) -> (u32, u64) {
        (word(&tag[..4], self.endian), u64::from(word(&tag[4..], self.endian)))
    }

    /// The body of a compressed array; `None` if something else was compressed.
    fn inflate(&mut self, packed: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let zlib = flate2::bufread::ZlibDecoder::new(packed);
        let mut reader = Guarded::after(zlib, self.inflation);
        let mut tag = Vec::new();
        if fill(&mut reader, 8, &mut tag)? < 8 {
            return Err(damaged("a compressed variable ends inside its tag"));
        }
        let (kind, size) = self.tag(&tag);
        let mut body = Vec::new();
        let found = fill(&mut reader, size, &mut body)?;
        if found < size {
            let (format, what) = (super::FORMAT, "bytes of a compressed variable");
            return Err(Error::Truncated { format, what, expected: size, found });
        }
        self.inflation = reader.inflation();
        Ok((kind == MATRIX).then_some(body))
    }
}

fn word(bytes: &[u8], endian: Endian) -> u32 {
    let fold = |n: u32, b: &u8| n << 8 | u32::from(*b);
    match endian {
        Endian::Big => bytes.iter().fold(0, fold),
        Endian::Little => bytes.iter().rev().fold(0, fold),
    }
}

/// Takes arrays apart and counts what they cost.
pub(crate) struct Parser {
    endian: Endian,
    pub(crate) budget: Budget,
}

/// The elements in the body of an array.
struct Elements<'a> {
    rest: &'a [u8],
    endian: Endian,
}

impl<'a> Elements<'a> {
    fn next(&mut self) -> Result<(u32, &'a [u8]), Error> {
        let early = || damaged("an array ends early");
        let (tag, rest) = self.rest.split_at_checked(8).ok_or_else(early)?;
        let first = word(&tag[..4], self.endian);
        if first >> 16 != 0 {
            let size = (first >> 16) as usize;
            self.rest = rest;
            let data =
                tag[4..].get(..size).ok_or_else(|| damaged("a small element of over 4 bytes"))?;
            return Ok((first & 0xffff, data));
        }
        let size = word(&tag[4..], self.endian) as usize;
        let data = rest.get(..size).ok_or_else(early)?;
        // The last element may lack its padding.
        self.rest = rest.get(size.next_multiple_of(8)..).unwrap_or_default();
        Ok((first, data))
    }
}

impl Parser {
    pub(crate) fn new(endian: Endian, budget: Budget) -> Self {
        Self { endian, budget }
    }

    /// The array whose body is `bytes`.
    pub(crate) fn matrix<'a>(
        &mut self,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<Matrix<'a>, Error> {
        self.budget.count(1)?;
        self.budget.spend(ARRAY_COST)?;
        if depth > MAX_DEPTH {
            return Err(damaged(format!("more than {MAX_DEPTH} arrays inside one another")));
        }
        if bytes.is_empty() {
            let content = Content::Other("empty");
            return Ok(Matrix { name: String::new(), dims: vec![0, 0], content });
        }
        let mut elements = Elements { rest: bytes, endian: self.endian };
        let (_, flags) = elements.next()?;
        let flags =
            word(flags.get(..4).ok_or_else(|| damaged("an array without flags"))?, self.endian);
        let class = flags & 0xff;
        if class == 17 {
            let content = Content::Other("object");
            return Ok(Matrix { name: "(object)".into(), dims: vec![1, 1], content });
        }
        let dims = dims(elements.next()?.1, self.endian)?;
        let name = self.name(elements.next()?.1)?;
        let mut matrix = Matrix { name, dims, content: Content::Other("empty") };
        matrix.content = match class {
            _ if flags & 0x800 != 0 => Content::Other("complex numbers"),
            1 => Content::Cells(self.cells(&mut elements, matrix.n_values(), depth)?),
            2 => Content::Fields(self.fields(&mut elements, &matrix, depth)?),
            4 => self.characters(&mut elements)?,
            5 => self.sparse(&mut elements, &matrix)?,
            6..=15 => numbers(&mut elements, &matrix)?,
            _ => Content::Other("object"),
        };
        Ok(matrix)
    }

    fn cells<'a>(
        &mut self,
        elements: &mut Elements<'a>,
        n: Option<u64>,
        depth: usize,
    ) -> Result<Vec<Matrix<'a>>, Error> {
        let mut cells = Vec::new();
        for _ in 0..n.unwrap_or(u64::MAX) {
            cells.push(self.nested(elements, depth)?);
        }
        Ok(cells)
    }

    fn nested<'a>(
        &mut self,
        elements: &mut Elements<'a>,
        depth: usize,
    ) -> Result<Matrix<'a>, Error> {
        match elements.next()? {
            (MATRIX, body) => self.matrix(body, depth + 1),
            (kind, _) => {
                Err(damaged(format!("an element of type {kind} where an array should be")))
            }
        }
    }

    /// Fields of a struct; those of a struct array become cells.
    fn fields<'a>(
        &mut self,
        elements: &mut Elements<'a>,
        matrix: &Matrix,
        depth: usize,
    ) -> Result<Vec<(String, Matrix<'a>)>, Error> {
        let (_, length) = elements.next()?;
        let length = length.get(..4).map_or(0, |b| word(b, self.endian) as usize);
        let (_, names) = elements.next()?;
        if length == 0 {
            return Err(damaged("a struct whose field names have no length"));
        }
        self.budget.count(names.len().div_ceil(length) as u64)?;
        let mut fields: Vec<(String, Vec<Matrix<'a>>)> = Vec::new();
        for name in names.chunks(length) {
            fields.push((self.name(name)?, Vec::new()));
        }
        let n = if fields.is_empty() { 0 } else { matrix.n_values().unwrap_or(u64::MAX) };
        for _ in 0..n {
            for (_, values) in &mut fields {
                values.push(self.nested(elements, depth)?);
            }
        }
        let (dims, n_fields) = (&matrix.dims, fields.len() as u64);
        self.budget.spend(n_fields * (ARRAY_COST + 8 * dims.len() as u64))?;
        let join = |(name, mut values): (String, Vec<Matrix<'a>>)| {
            if values.len() == 1 {
                (name, values.swap_remove(0))
            } else {
                let content = Content::Cells(values);
                (name.clone(), Matrix { name, dims: dims.clone(), content })
            }
        };
        Ok(fields.into_iter().map(join).collect())
    }

    fn name(&mut self, bytes: &[u8]) -> Result<String, Error> {
        let name = text_of(bytes);
        if name.len() > MAX_NAME {
            let (found, start) = (name.len(), excerpt(name.as_bytes()));
            return Err(damaged(format!("a name of {found} bytes, `{start}`")));
        }
        self.budget.spend(name.len() as u64)?;
        Ok(name)
    }

    fn characters<'a>(&mut self, elements: &mut Elements<'a>) -> Result<Content<'a>, Error> {
        let (kind, bytes) = elements.next()?;
        self.budget.grow(2 * bytes.len() as u64)?;
        Ok(characters(kind, bytes, self.endian))
    }

    fn sparse<'a>(
        &mut self,
        elements: &mut Elements<'a>,
        matrix: &Matrix,
    ) -> Result<Content<'a>, Error> {
        let endian = self.endian;
        let (_, rows) = elements.next()?;
        let (_, starts) = elements.next()?;
        let (kind, bytes) = elements.next()?;
        // MATLAB tags the values of logical sparse arrays as doubles and writes bytes.
        let kind = if bytes.len() == rows.len() / 4 { Kind::U8 } else { kind_of(kind)? };
        let needed = matrix.n_values().unwrap_or(u64::MAX);
        let n_stored = (bytes.len() / kind.size()) as u64;
        check_dense(needed, 1, n_stored)?;
        let decoded = 2 * (rows.len() + starts.len()) as u64 + 4 * n_stored;
        self.budget.grow(needed.saturating_mul(4).saturating_add(decoded))?;
        self.budget.spend(needed.saturating_sub(n_stored.saturating_mul(PER_ENTRY)) * 4)?;
        let indices = |bytes: &[u8]| -> Vec<usize> {
            bytes.chunks_exact(4).map(|b| word(b, endian) as usize).collect()
        };
        let mut values = Vec::new();
        kind.decode_into(bytes, endian, &mut values);
        dense(matrix, &indices(rows), &indices(starts), &values)
    }
}

fn dims(bytes: &[u8], endian: Endian) -> Result<Vec<u64>, Error> {
    if bytes.len() / 4 > MAX_DIMS {
        return Err(damaged(format!("an array of {} dimensions", bytes.len() / 4)));
    }
    let dims: Vec<u64> = bytes.chunks_exact(4).map(|d| u64::from(word(d, endian))).collect();
    if dims.len() < 2 || dims.iter().any(|&d| d > u64::from(u32::MAX >> 1)) {
        return Err(damaged("an array without dimensions, or with negative ones"));
    }
    Ok(dims)
}

fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn kind_of(kind: u32) -> Result<Kind, Error> {
    Ok(match kind {
        1 => Kind::I8,
        2 => Kind::U8,
        3 => Kind::I16,
        4 => Kind::U16,
        5 => Kind::I32,
        6 => Kind::U32,
        7 => Kind::F32,
        9 => Kind::F64,
        12 => Kind::I64,
        13 => Kind::U64,
        _ => return Err(damaged(format!("unknown type of numbers {kind}"))),
    })
}

fn characters<'a>(kind: u32, bytes: &[u8], endian: Endian) -> Content<'a> {
    let text = match kind {
        // 16-bit characters, in one of two spellings.
        4 | 17 => {
            let units: Vec<u16> = bytes
                .chunks_exact(2)
                .map(|c| u16::try_from(word(c, endian)).unwrap_or_default())
                .collect();
            String::from_utf16_lossy(&units)
        }
        _ => text_of(bytes),
    };
    Content::Text(text)
}

fn numbers<'a>(elements: &mut Elements<'a>, matrix: &Matrix) -> Result<Content<'a>, Error> {
    let endian = elements.endian;
    if matrix.n_values() == Some(0) {
        return Ok(Content::Numbers { kind: Kind::U8, endian, bytes: Cow::Borrowed(&[]) });
    }
    let (kind, bytes) = elements.next()?;
    let kind = kind_of(kind)?;
    let found = (bytes.len() / kind.size()) as u64;
    if matrix.n_values() != Some(found) || !bytes.len().is_multiple_of(kind.size()) {
        return Err(damaged(format!("`{}` {} holds {found} values", matrix.name, matrix.shape())));
    }
    Ok(Content::Numbers { kind, endian, bytes: Cow::Borrowed(bytes) })
}

/// Fills a sparse array (compressed columns: `rows` of the entries, where each column `starts`) up
/// with zeros.
fn dense<'a>(
    matrix: &Matrix,
    rows: &[usize],
    starts: &[usize],
    values: &[f32],
) -> Result<Content<'a>, Error> {
    let needed = matrix.n_values().unwrap_or(u64::MAX);
    let broken = || damaged(format!("`{}` {} has broken indices", matrix.name, matrix.shape()));
    let n_rows = usize::try_from(matrix.dims[0]).map_err(|_| broken())?;
    let n = usize::try_from(needed).map_err(|_| broken())?;
    let mut dense = vec![0_u8; n * 4];
    for (column, span) in starts.windows(2).enumerate() {
        let rows = rows.get(span[0]..span[1]).ok_or_else(broken)?;
        let values = values.get(span[0]..span[1]).ok_or_else(broken)?;
        for (&row, value) in rows.iter().zip(values) {
            let place = (column * n_rows + row) * 4;
            let cell = dense.get_mut(place..place + 4).filter(|_| row < n_rows);
            cell.ok_or_else(broken)?.copy_from_slice(&value.to_le_bytes());
        }
    }
    let bytes = Cow::Owned(dense);
    Ok(Content::Numbers { kind: Kind::F32, endian: Endian::Little, bytes })
}
