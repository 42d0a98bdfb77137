//! The header of a safetensors file, read with suspicion.
//!
//! A file is the length of the header (8 bytes, little-endian), the header (JSON: a name, a type,
//! a shape and two offsets per tensor), and the numbers. Nothing the header says is believed
//! before it agrees with the bytes that are really there, and every complaint names its tensor.

use super::damaged;
use crate::error::Error;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::ops::Range;

/// The largest header that is written or read, in bytes.
///
/// The numbers are not in it, only names, shapes and the description of the model.
pub(super) const MAX_HEADER: u64 = 16 << 20;

/// Bytes before the header.
pub(super) const PREFIX: usize = 8;

/// What stands among the tensors without being one.
const METADATA: &str = "__metadata__";

/// The bytes of one number.
const F64: u64 = 8;

/// Where a tensor lies and how it is shaped.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    dtype: String,
    pub(super) shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl Place {
    /// The place inside the data; call after [`Header::read`], which checked it.
    pub(super) fn range(&self) -> Range<usize> {
        let at = |x| usize::try_from(x).unwrap_or(usize::MAX);
        at(self.data_offsets.0)..at(self.data_offsets.1)
    }
}

/// The header of a file: texts by key, tensors by name.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) texts: BTreeMap<String, String>,
    pub(super) tensors: BTreeMap<String, Place>,
}

/// The length of the header of a file of `file_length` bytes.
///
/// # Errors
///
/// If the header would be too large, or longer than the file.
pub(super) fn header_length(prefix: [u8; PREFIX], file_length: u64) -> Result<usize, Error> {
    let claimed = u64::from_le_bytes(prefix);
    let left = file_length.saturating_sub(PREFIX as u64);
    if claimed > MAX_HEADER {
        return Err(damaged(format!(
            "it is not a safetensors file, or its header is too large: it claims {claimed} bytes, \
             at most {MAX_HEADER} are read"
        )));
    }
    if claimed > left {
        return Err(damaged(format!(
            "its header claims {claimed} bytes, but only {left} bytes follow"
        )));
    }
    usize::try_from(claimed).map_err(|_| damaged("its header does not fit into memory"))
}

impl Header {
    /// Reads the header of a whole file and gives the data that follows.
    ///
    /// # Errors
    ///
    /// If the header is not JSON of the right form, or does not agree with the data.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else {
            let found = bytes.len();
            return Err(damaged(format!("it has {found} bytes, fewer than the smallest model")));
        };
        let (text, data) = rest.split_at(header_length(*prefix, bytes.len() as u64)?);
        let header: Self = serde_json::from_slice(text)
            .map_err(|error| damaged(format!("its header is not understood: {error}")))?;
        header.check(data.len() as u64)?;
        Ok((header, data))
    }

    /// Whether the tensors are of the right type and fill the data without gap or overlap.
    fn check(&self, data_length: u64) -> Result<(), Error> {
        let mut places: Vec<_> = self.tensors.iter().collect();
        places.sort_by_key(|(_, place)| place.data_offsets);
        let mut filled = 0;
        for (name, place) in places {
            let (start, end) = place.data_offsets;
            if place.dtype != "F64" {
                let found = &place.dtype;
                return Err(damaged(format!("tensor `{name}` must be F64, found {found}")));
            }
            if start != filled || end < start || end > data_length {
                return Err(damaged(format!(
                    "tensor `{name}` must start at byte {filled} and end by {data_length}, \
                     found {start} to {end}"
                )));
            }
            let n_bytes = place.shape.iter().try_fold(F64, |n, &d| n.checked_mul(d));
            if n_bytes != Some(end - start) {
                let (shape, found) = (&place.shape, end - start);
                return Err(damaged(format!(
                    "tensor `{name}` of shape {shape:?} does not take {found} bytes"
                )));
            }
            filled = end;
        }
        if filled != data_length {
            return Err(damaged(format!(
                "its tensors take {filled} bytes, but {data_length} bytes follow the header"
            )));
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeaderVisitor)
    }
}

/// Adds an entry, once: two of one name would leave open which of them counts.
fn insert_once<V, E: serde::de::Error>(
    map: &mut BTreeMap<String, V>,
    key: String,
    value: V,
) -> Result<(), E> {
    match map.entry(key) {
        Entry::Vacant(free) => {
            free.insert(value);
            Ok(())
        }
        Entry::Occupied(taken) => Err(E::custom(format_args!("`{}` occurs twice", taken.key()))),
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Header;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
        let (mut texts, mut tensors) = (BTreeMap::new(), BTreeMap::new());
        while let Some(name) = map.next_key::<String>()? {
            if name == METADATA {
                insert_once(&mut texts, name, map.next_value::<Texts>()?)?;
            } else {
                insert_once(&mut tensors, name, map.next_value()?)?;
            }
        }
        let texts = texts.remove(METADATA).map(|texts| texts.0).unwrap_or_default();
        Ok(Header { texts, tensors })
    }
}

/// What stands under [`METADATA`].
struct Texts(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Texts, A::Error> {
        let mut texts = BTreeMap::new();
        while let Some((key, text)) = map.next_entry()? {
            insert_once(&mut texts, key, text)?;
        }
        Ok(Texts(texts))
    }
}
