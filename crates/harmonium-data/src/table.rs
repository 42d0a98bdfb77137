//! A rectangle of numbers, stored as narrowly as it allows.

use crate::Error;
use harmonium_kernels::bits::BitMatrix;

/// The entries of a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// Zeros and ones.
    Bits(BitMatrix),
    /// Whole numbers from 0 to 255, row by row.
    Bytes(Vec<u8>),
    /// Real numbers, row by row; NaN is a missing entry.
    Real(Vec<f32>),
}

/// The shape of the picture in each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Pixels from top to bottom.
    pub height: usize,
    /// Pixels from left to right.
    pub width: usize,
}

/// One sample per row.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    n_rows: usize,
    n_columns: usize,
    values: Values,
    /// The largest value the source can hold: 255 for a grey image, 16 for the digits.
    full_scale: f32,
    image: Option<Image>,
}

impl Table {
    /// A table of bits.
    ///
    /// # Errors
    ///
    /// If it has no rows or no columns.
    pub fn from_bits(bits: BitMatrix) -> Result<Self, Error> {
        Self::checked(bits.n_rows(), bits.n_columns(), 1.0, Values::Bits(bits))
    }

    /// A table of bytes whose largest possible value is `full_scale`.
    ///
    /// # Errors
    ///
    /// If it is empty, or the values do not fill whole rows.
    pub fn from_bytes(values: Vec<u8>, n_columns: usize, full_scale: u8) -> Result<Self, Error> {
        let n_rows = whole_rows(values.len(), n_columns)?;
        Self::checked(n_rows, n_columns, f32::from(full_scale), Values::Bytes(values))
    }

    /// A table of real numbers, NaN where an entry is missing.
    ///
    /// # Errors
    ///
    /// If it is empty, or the values do not fill whole rows.
    pub fn from_real(values: Vec<f32>, n_columns: usize) -> Result<Self, Error> {
        let n_rows = whole_rows(values.len(), n_columns)?;
        Self::checked(n_rows, n_columns, 1.0, Values::Real(values))
    }

    fn checked(
        n_rows: usize,
        n_columns: usize,
        full_scale: f32,
        values: Values,
    ) -> Result<Self, Error> {
        if n_rows == 0 || n_columns == 0 {
            return Err(Error::Empty { n_rows, n_columns });
        }
        Ok(Self { n_rows, n_columns, values, full_scale, image: None })
    }

    /// Says that each row is a picture, row-major; ignored when the shape does not fit.
    #[must_use]
    pub fn with_image(mut self, image: Image) -> Self {
        if image.height * image.width == self.n_columns {
            self.image = Some(image);
        }
        self
    }

    /// Says what the largest value of the source stands for "fully on".
    ///
    /// # Errors
    ///
    /// If it is not a positive number. Bits keep their 1.
    pub fn with_full_scale(mut self, full_scale: f32) -> Result<Self, Error> {
        if !full_scale.is_finite() || full_scale <= 0.0 {
            return Err(Error::Setting {
                what: "full scale",
                text: full_scale.to_string(),
                expected: "give a number above 0, such as 255",
            });
        }
        if !matches!(self.values, Values::Bits(_)) {
            self.full_scale = full_scale;
        }
        Ok(self)
    }

    /// Every value `x` as full scale − `x`; missing entries stay missing.
    #[must_use]
    pub fn inverted(mut self) -> Self {
        let full_scale = self.full_scale;
        self.values = match self.values {
            Values::Bits(bits) => {
                let mut flipped = BitMatrix::zeros(0, self.n_columns);
                (0..self.n_rows).for_each(|r| flipped.push_row(|c| !bits.get(r, c)));
                Values::Bits(flipped)
            }
            Values::Bytes(mut bytes) => match top_byte(&bytes, full_scale) {
                Some(top) => {
                    for b in &mut bytes {
                        *b = top - *b;
                    }
                    Values::Bytes(bytes)
                }
                None => Values::Real(bytes.iter().map(|&b| full_scale - f32::from(b)).collect()),
            },
            Values::Real(mut reals) => {
                for x in &mut reals {
                    *x = full_scale - *x;
                }
                Values::Real(reals)
            }
        };
        self
    }

    /// Number of samples.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of values in a sample.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The entries.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The largest value the source can hold.
    pub fn full_scale(&self) -> f32 {
        self.full_scale
    }

    /// The shape of the picture in each row, if it is one.
    pub fn image(&self) -> Option<Image> {
        self.image
    }

    /// One entry.
    ///
    /// # Panics
    ///
    /// If the position is outside the table.
    pub fn at(&self, row: usize, column: usize) -> f32 {
        assert!(column < self.n_columns, "column {column} of {}", self.n_columns);
        match &self.values {
            Values::Bits(bits) => f32::from(u8::from(bits.get(row, column))),
            Values::Bytes(bytes) => f32::from(bytes[row * self.n_columns + column]),
            Values::Real(reals) => reals[row * self.n_columns + column],
        }
    }

    /// The rows named, in that order.
    ///
    /// # Errors
    ///
    /// If no row is named.
    ///
    /// # Panics
    ///
    /// If a row is outside the table.
    pub fn select_rows(&self, rows: &[usize]) -> Result<Self, Error> {
        let n = self.n_columns;
        let values = match &self.values {
            Values::Bits(bits) => {
                let mut chosen = BitMatrix::zeros(0, n);
                for &r in rows {
                    chosen.push_row(|c| bits.get(r, c));
                }
                Values::Bits(chosen)
            }
            Values::Bytes(b) => Values::Bytes(gather(b, rows, n)),
            Values::Real(x) => Values::Real(gather(x, rows, n)),
        };
        let chosen = Self::checked(rows.len(), n, self.full_scale, values)?;
        Ok(Self { image: self.image, ..chosen })
    }
}

/// The full scale as a byte, if it is one that no value exceeds.
fn top_byte(bytes: &[u8], full_scale: f32) -> Option<u8> {
    let largest = bytes.iter().copied().max().unwrap_or(0);
    (largest..=u8::MAX).find(|&b| f32::from(b).total_cmp(&full_scale).is_eq())
}

fn gather<T: Copy>(values: &[T], rows: &[usize], n: usize) -> Vec<T> {
    rows.iter().flat_map(|&r| &values[r * n..(r + 1) * n]).copied().collect()
}

fn whole_rows(n_values: usize, n_columns: usize) -> Result<usize, Error> {
    let n_rows = n_values.checked_div(n_columns).unwrap_or(0);
    if n_rows * n_columns == n_values {
        Ok(n_rows)
    } else {
        let expected = n_rows * n_columns;
        Err(Error::Shape { n_rows, n_columns, expected, found: n_values })
    }
}
