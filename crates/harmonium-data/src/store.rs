//! Values while they are read, kept as narrowly as those seen so far allow.
//!
//! Zeros and ones are packed bits until a third value appears; whole numbers up to 255 are bytes
//! until a fraction or a sign appears. Gaps are noted in a mask and widen nothing. A picture of 0 and 255 only is black and white, so
//! it is kept as bits too.

use crate::{Error, Table};
use harmonium_kernels::bits::BitMatrix;

/// A threshold applied while reading, in the units of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) full_scale: f32,
    pub(crate) threshold: f32,
    pub(crate) invert: bool,
}

impl Cut {
    fn is_on(self, value: u8) -> bool {
        let value = f32::from(value);
        let value = if self.invert { self.full_scale - value } else { value };
        value >= self.threshold * self.full_scale
    }
}

/// What the values needed so far.
#[derive(Debug)]
enum Needed {
    /// Zeros and one other value, 1 or 255, once it is known.
    Bits {
        bits: BitMatrix,
        one: Option<u8>,
    },
    /// Thresholded: the grey values are gone.
    Cut {
        bits: BitMatrix,
        cut: Cut,
    },
    Bytes {
        bytes: Vec<u8>,
        largest: u8,
    },
    Real(Vec<f32>),
}

/// A growing table.
#[derive(Debug)]
pub(crate) struct Store {
    values: Needed,
    n_columns: usize,
    cut: Option<Cut>,
    n_rows: usize,
    /// A bit for each missing entry, once there is one.
    missing: Option<BitMatrix>,
    /// A buffer for a row.
    bytes: Vec<u8>,
}

/// What was stored, and what is still to be done to it.
pub(crate) struct Stored {
    pub(crate) table: Table,
    /// Whether a threshold (and with it an inversion) has been applied.
    #[cfg_attr(not(feature = "readers"), expect(dead_code, reason = "arrays are not thresholded"))]
    pub(crate) cut: bool,
}

impl Store {
    pub(crate) fn new(n_columns: usize, cut: Option<Cut>) -> Self {
        let bits = BitMatrix::zeros(0, n_columns);
        let values = Needed::Bits { bits, one: None };
        Self { values, n_columns, cut, n_rows: 0, missing: None, bytes: Vec::new() }
    }

    /// Adds a row of bytes, none of which is missing.
    pub(crate) fn push_bytes(&mut self, row: &[u8]) -> Result<(), Error> {
        self.note_missing(&[]);
        self.keep_bytes(row)
    }

    fn keep_bytes(&mut self, row: &[u8]) -> Result<(), Error> {
        match &mut self.values {
            Needed::Bits { bits, one } => {
                if fits_bits(row, one) {
                    bits.push_bytes(row, |byte| byte != 0);
                    return Ok(());
                }
                self.leave_bits()?;
                self.keep_bytes(row)
            }
            Needed::Cut { bits, cut } => {
                bits.push_bytes(row, |byte| cut.is_on(byte));
                Ok(())
            }
            Needed::Bytes { bytes, largest } => {
                *largest = row.iter().copied().fold(*largest, u8::max);
                grow(bytes, row.iter().copied())
            }
            Needed::Real(reals) => grow(reals, row.iter().map(|&b| f32::from(b))),
        }
    }

    /// Adds a row of numbers, NaN where one is missing.
    pub(crate) fn push_reals(&mut self, row: &[f32]) -> Result<(), Error> {
        let holed = row.iter().fold(false, |any, x| any | x.is_nan());
        self.note_missing(if holed { row } else { &[] });
        if holed {
            let filled: Vec<f32> = row.iter().map(|&x| if x.is_nan() { 0.0 } else { x }).collect();
            return self.keep_reals(&filled);
        }
        self.keep_reals(row)
    }

    /// Counts a row and notes where it holds NaN.
    fn note_missing(&mut self, row: &[f32]) {
        let gap = |c: usize| row.get(c).is_some_and(|x| x.is_nan());
        if self.missing.is_none() && (0..row.len()).any(gap) {
            self.missing = Some(BitMatrix::zeros(self.n_rows, self.n_columns));
        }
        if let Some(missing) = &mut self.missing {
            missing.push_row(gap);
        }
        self.n_rows += 1;
    }

    fn keep_reals(&mut self, row: &[f32]) -> Result<(), Error> {
        if let Needed::Real(reals) = &mut self.values {
            return grow(reals, row.iter().copied());
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        let whole = bytes_into(row, &mut bytes);
        let kept = if whole { self.keep_bytes(&bytes) } else { Ok(()) };
        self.bytes = bytes;
        if whole {
            return kept;
        }
        self.become_real()?;
        self.keep_reals(row)
    }

    /// Grey values appeared: from here on bytes, or thresholded bits where that was asked for.
    fn leave_bits(&mut self) -> Result<(), Error> {
        let Needed::Bits { bits, one } = &self.values else { return Ok(()) };
        let (n_rows, one) = (bits.n_rows(), one.unwrap_or(1));
        let value = |row, column| if bits.get(row, column) { one } else { 0 };
        if let Some(cut) = self.cut {
            let mut cut_bits = BitMatrix::zeros(0, self.n_columns);
            (0..n_rows).for_each(|r| cut_bits.push_row(|c| cut.is_on(value(r, c))));
            self.values = Needed::Cut { bits: cut_bits, cut };
            return Ok(());
        }
        let mut bytes = Vec::new();
        for r in 0..n_rows {
            grow(&mut bytes, (0..self.n_columns).map(|c| value(r, c)))?;
        }
        self.values = Needed::Bytes { bytes, largest: one };
        Ok(())
    }

    fn become_real(&mut self) -> Result<(), Error> {
        self.cut = None;
        self.leave_bits()?;
        if let Needed::Bytes { bytes, .. } = &self.values {
            let mut reals = Vec::new();
            grow(&mut reals, bytes.iter().map(|&b| f32::from(b)))?;
            self.values = Needed::Real(reals);
        }
        Ok(())
    }

    /// The table; `full_scale` of bytes is 255 where `known`, else what the largest suggests.
    pub(crate) fn finish(self, known: Option<u8>) -> Result<Stored, Error> {
        let n = self.n_columns;
        let (mut table, cut) = match self.values {
            Needed::Bits { bits, .. } => (Table::from_bits(bits)?, false),
            Needed::Cut { bits, .. } => (Table::from_bits(bits)?, true),
            Needed::Bytes { mut bytes, largest } => {
                bytes.shrink_to_fit();
                (Table::from_bytes(bytes, n, known.unwrap_or(full_scale_of(largest)))?, false)
            }
            Needed::Real(mut reals) => {
                reals.shrink_to_fit();
                (Table::from_real(reals, n)?, false)
            }
        };
        if let Some(missing) = self.missing {
            table.set_missing(missing);
        }
        Ok(Stored { table, cut })
    }
}

/// Grey levels end at 255 as soon as half that range is used; below that at the largest seen,
/// such as the 16 of the 8×8 digits.
fn full_scale_of(largest: u8) -> u8 {
    if largest > 127 { 255 } else { largest }
}

fn fits_bits(row: &[u8], one: &mut Option<u8>) -> bool {
    let on = match *one {
        Some(on) => on,
        None => match row.iter().copied().find(|&b| b != 0) {
            None => return true,
            Some(b) if b == 1 || b == 255 => b,
            Some(_) => return false,
        },
    };
    // To the end, which takes less than to look for the first that does not fit.
    let fits = row.iter().filter(|&&b| b != 0 && b != on).count() == 0;
    if fits {
        *one = Some(on);
    }
    fits
}

#[cfg(feature = "readers")]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the comparison lets only whole numbers from 0 to 255 through"
)]
pub(crate) fn to_byte(value: f32) -> Option<u8> {
    let byte = value as u8;
    // Adding 0 makes -0 a plain 0.
    f32::from(byte).total_cmp(&(value + 0.0)).is_eq().then_some(byte)
}

/// Writes a row as bytes; says whether all of it are whole numbers from 0 to 255.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the comparison lets only whole numbers from 0 to 255 through"
)]
fn bytes_into(row: &[f32], bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    bytes.extend(row.iter().map(|&x| x as u8));
    // To the end, which takes less than to look for the first that is not.
    row.iter().zip(&*bytes).fold(true, |all, (&x, &b)| all & (f32::from(b) == x))
}

/// Appends values, with an error instead of an abort where memory ends.
fn grow<T>(values: &mut Vec<T>, more: impl ExactSizeIterator<Item = T>) -> Result<(), Error> {
    let (have, extra) = (values.len() as u64, more.len() as u64);
    values.try_reserve(more.len()).map_err(|_| Error::TooLarge {
        what: "the table",
        needed: have + extra,
        unit: "values",
        limit: have,
    })?;
    values.extend(more);
    Ok(())
}
