//! Named tensors of f64 and one text, to bytes and back.
//!
//! The bytes are those of a safetensors file. Tensors stand in the order of their names and the
//! text is the only metadata, so equal content gives equal bytes.

use super::checksum::Checksum;
use super::damaged;
use super::header::{Header, MAX_HEADER, PREFIX, Place};
use crate::error::Error;
use safetensors::{Dtype, View};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The one key of the metadata.
pub(super) const KEY: &str = "harmonium";

/// A tensor to be written.
pub(super) struct Tensor<'a> {
    shape: Vec<usize>,
    values: Cow<'a, [f64]>,
}

impl<'a> Tensor<'a> {
    /// A row of numbers.
    pub(super) fn row(values: &'a [f64]) -> Self {
        Self { shape: vec![values.len()], values: values.into() }
    }

    /// A matrix, row by row.
    pub(super) fn matrix(shape: (usize, usize), values: &'a [f64]) -> Self {
        Self { shape: vec![shape.0, shape.1], values: values.into() }
    }

    /// Adds the name, the shape and the numbers.
    pub(super) fn add_to(&self, name: &str, sum: &mut Checksum) {
        sum.text(name);
        sum.word(self.shape.len() as u64);
        self.shape.iter().for_each(|&n| sum.word(n as u64));
        self.values.iter().for_each(|x| sum.word(x.to_bits()));
    }

    /// A matrix that nobody else holds.
    pub(super) fn owned(shape: (usize, usize), values: Vec<f64>) -> Self {
        Self { shape: vec![shape.0, shape.1], values: values.into() }
    }
}

impl View for Tensor<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F64
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let mut bytes = Vec::with_capacity(self.data_len());
        for value in &*self.values {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.into()
    }

    fn data_len(&self) -> usize {
        size_of_val(&*self.values)
    }
}

/// The bytes of a file with these tensors and this text.
///
/// # Errors
///
/// If the header would be larger than what is read.
pub(super) fn write(tensors: BTreeMap<String, Tensor<'_>>, text: String) -> Result<Vec<u8>, Error> {
    let unwritable = |reason| Error::Unwritable { reason };
    let metadata = [(KEY.to_owned(), text)].into_iter().collect();
    let bytes = safetensors::serialize(tensors, Some(metadata))
        .map_err(|error| unwritable(error.to_string()))?;
    let claimed = bytes.first_chunk::<PREFIX>().map_or(0, |prefix| u64::from_le_bytes(*prefix));
    if claimed > MAX_HEADER {
        return Err(unwritable(format!(
            "its description takes {claimed} bytes, more than {MAX_HEADER}"
        )));
    }
    Ok(bytes)
}

/// The tensors of a file; each is taken out once.
pub(super) struct Tensors<'a> {
    places: BTreeMap<String, Place>,
    data: &'a [u8],
}

impl<'a> Tensors<'a> {
    /// The tensors and the text of a file.
    ///
    /// # Errors
    ///
    /// If the bytes are not a safetensors file, or lack our metadata.
    pub(super) fn read(bytes: &'a [u8]) -> Result<(Self, String), Error> {
        let (Header { mut texts, tensors: places }, data) = Header::read(bytes)?;
        let text = texts.remove(KEY).ok_or_else(|| {
            damaged(format!("it is a safetensors file without the metadata key `{KEY}`"))
        })?;
        Ok((Self { places, data }, text))
    }

    /// Bytes of all tensors.
    pub(super) fn len(&self) -> usize {
        self.data.len()
    }

    /// Takes a tensor out, which must have this shape.
    ///
    /// # Errors
    ///
    /// If it is missing or has another shape.
    pub(super) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f64>, Error> {
        let place = self.places.remove(name).ok_or_else(|| {
            damaged(format!("tensor `{name}` is missing, expected one of shape {shape:?}"))
        })?;
        let found = &place.shape;
        if !found.iter().copied().eq(shape.iter().map(|&d| d as u64)) {
            return Err(damaged(format!(
                "tensor `{name}` must have shape {shape:?}, found {found:?}"
            )));
        }
        Ok(self.values(&place))
    }

    /// Takes out every row whose name starts with `prefix`, and drops the prefix.
    ///
    /// # Errors
    ///
    /// If one of them is not a row.
    pub(super) fn take_rows(&mut self, prefix: &str) -> Result<BTreeMap<String, Vec<f64>>, Error> {
        let mut rows = BTreeMap::new();
        let places = std::mem::take(&mut self.places);
        for (name, place) in places {
            match name.strip_prefix(prefix) {
                Some(_) if place.shape.len() != 1 => {
                    let found = place.shape;
                    return Err(damaged(format!("tensor `{name}` must be a row, found {found:?}")));
                }
                Some(key) => {
                    rows.insert(key.to_owned(), self.values(&place));
                }
                None => {
                    self.places.insert(name, place);
                }
            }
        }
        Ok(rows)
    }

    /// Takes out every tensor whose name starts with `prefix`, and drops the prefix.
    pub(super) fn take_part(&mut self, prefix: &str) -> Self {
        let (inside, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.places)
            .into_iter()
            .partition(|(name, _)| name.starts_with(prefix));
        self.places.extend(rest);
        let inside =
            inside.into_iter().map(|(name, place)| (name[prefix.len()..].to_owned(), place));
        Self { places: inside.collect(), data: self.data }
    }

    /// Adds what [`Tensor::add_to`] adds, for every tensor that has not been taken out.
    pub(super) fn add_to(&self, sum: &mut Checksum) {
        for (name, place) in &self.places {
            sum.text(name);
            sum.word(place.shape.len() as u64);
            place.shape.iter().for_each(|&n| sum.word(n));
            let (numbers, _) = self.data[place.range()].as_chunks();
            numbers.iter().for_each(|&number| sum.word(u64::from_le_bytes(number)));
        }
    }

    /// Whether everything was taken out: a tensor that is ignored could have mattered.
    ///
    /// # Errors
    ///
    /// Names a tensor that is left.
    pub(super) fn all_taken(&self) -> Result<(), Error> {
        match self.places.keys().next() {
            None => Ok(()),
            Some(name) => Err(damaged(format!("tensor `{name}` belongs to no layer or coupling"))),
        }
    }

    fn values(&self, place: &Place) -> Vec<f64> {
        let (numbers, _) = self.data[place.range()].as_chunks();
        numbers.iter().map(|&number| f64::from_le_bytes(number)).collect()
    }
}
