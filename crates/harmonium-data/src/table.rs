//! Samples in rows, values in columns, and where values are missing.
//!
//! Columns of one sort that stand side by side share a [`Block`], stored as narrowly as its values
//! allow: a table of black and white pictures is one block of packed bits. What is missing is a
//! mask of its own, so that a hole does not widen the values around it. Under the mask values are
//! zero, so that equal tables compare equal.

use crate::{Error, ImageLayout};
use harmonium_kernels::bits::BitMatrix;
use ndarray::{Array2, ArrayView2};
use std::ops::Range;

/// The values of a block, row by row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BlockValues {
    /// Zeros and ones.
    Bits(BitMatrix),
    /// Whole numbers from 0 to 255.
    Bytes(Vec<u8>),
    /// Real numbers.
    Real(Vec<f32>),
}

/// Neighbouring columns whose values are stored alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    columns: Range<usize>,
    values: BlockValues,
    /// The largest value the source can hold: 255 for a grey image, 16 for the digits.
    full_scale: f32,
}

impl Block {
    /// The columns of the table it holds.
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// The values; those that are missing in the table are zero.
    pub fn values(&self) -> &BlockValues {
        &self.values
    }

    /// The largest value the source can hold.
    pub fn full_scale(&self) -> f32 {
        self.full_scale
    }

    /// Whether every value is 0 or 1.
    pub fn is_bits(&self) -> bool {
        matches!(self.values, BlockValues::Bits(_))
    }

    fn at(&self, row: usize, column: usize) -> f32 {
        let (n, c) = (self.columns.len(), column - self.columns.start);
        match &self.values {
            BlockValues::Bits(bits) => f32::from(u8::from(bits.get(row, c))),
            BlockValues::Bytes(bytes) => f32::from(bytes[row * n + c]),
            BlockValues::Real(reals) => reals[row * n + c],
        }
    }

    /// Writes a zero: what stands under the mask.
    fn clear(&mut self, row: usize, column: usize) {
        let (n, c) = (self.columns.len(), column - self.columns.start);
        match &mut self.values {
            BlockValues::Bits(bits) => bits.set(row, c, false),
            BlockValues::Bytes(bytes) => bytes[row * n + c] = 0,
            BlockValues::Real(reals) => reals[row * n + c] = 0.0,
        }
    }

    fn select_rows(&self, rows: &[usize]) -> Self {
        let n = self.columns.len();
        let values = match &self.values {
            BlockValues::Bits(bits) => BlockValues::Bits(chosen_rows(bits, rows)),
            BlockValues::Bytes(b) => BlockValues::Bytes(gather(b, rows, n)),
            BlockValues::Real(x) => BlockValues::Real(gather(x, rows, n)),
        };
        Self { values, ..self.clone_shape() }
    }

    /// Some of its columns, of a table of `n_rows` rows, as a block that begins at `start`.
    fn part(&self, columns: Range<usize>, n_rows: usize, start: usize) -> Self {
        let n = self.columns.len();
        let own = columns.start - self.columns.start..columns.end - self.columns.start;
        let cells = || (0..n_rows).map(|row| row * n + own.start..row * n + own.end);
        let values = match &self.values {
            BlockValues::Bits(bits) => {
                let mut part = BitMatrix::zeros(0, own.len());
                (0..n_rows).for_each(|row| part.push_row(|c| bits.get(row, own.start + c)));
                BlockValues::Bits(part)
            }
            BlockValues::Bytes(b) => {
                BlockValues::Bytes(cells().flat_map(|run| &b[run]).copied().collect())
            }
            BlockValues::Real(x) => {
                BlockValues::Real(cells().flat_map(|run| &x[run]).copied().collect())
            }
        };
        Self { columns: start..start + own.len(), values, full_scale: self.full_scale }
    }

    /// The block without its values.
    fn clone_shape(&self) -> Self {
        let values = BlockValues::Bytes(Vec::new());
        Self { columns: self.columns.clone(), values, full_scale: self.full_scale }
    }

    fn inverted(mut self) -> Self {
        let full_scale = self.full_scale;
        self.values = match self.values {
            BlockValues::Bits(bits) => {
                let mut flipped = BitMatrix::zeros(0, bits.n_columns());
                (0..bits.n_rows()).for_each(|r| flipped.push_row(|c| !bits.get(r, c)));
                BlockValues::Bits(flipped)
            }
            BlockValues::Bytes(mut bytes) => match top_byte(&bytes, full_scale) {
                Some(top) => {
                    for b in &mut bytes {
                        *b = top - *b;
                    }
                    BlockValues::Bytes(bytes)
                }
                None => {
                    BlockValues::Real(bytes.iter().map(|&b| full_scale - f32::from(b)).collect())
                }
            },
            BlockValues::Real(mut reals) => {
                for x in &mut reals {
                    *x = full_scale - *x;
                }
                BlockValues::Real(reals)
            }
        };
        self
    }
}

/// What is known of a column besides its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// What the source calls it.
    pub name: Option<String>,
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
    columns: Vec<Column>,
    blocks: Vec<Block>,
    /// A bit for each cell that has no value, if there are such cells.
    missing: Option<BitMatrix>,
    image: Option<Image>,
}

impl Table {
    /// A table of bits.
    ///
    /// # Errors
    ///
    /// If it has no rows or no columns.
    pub fn from_bits(bits: BitMatrix) -> Result<Self, Error> {
        Self::checked(bits.n_rows(), bits.n_columns(), 1.0, BlockValues::Bits(bits))
    }

    /// A table of bytes whose largest possible value is `full_scale`.
    ///
    /// # Errors
    ///
    /// If it is empty, or the values do not fill whole rows.
    pub fn from_bytes(values: Vec<u8>, n_columns: usize, full_scale: u8) -> Result<Self, Error> {
        let n_rows = whole_rows(values.len(), n_columns)?;
        Self::checked(n_rows, n_columns, f32::from(full_scale), BlockValues::Bytes(values))
    }

    /// A table of real numbers, NaN where an entry is missing.
    ///
    /// # Errors
    ///
    /// If it is empty, or the values do not fill whole rows.
    pub fn from_real(mut values: Vec<f32>, n_columns: usize) -> Result<Self, Error> {
        let n_rows = whole_rows(values.len(), n_columns)?;
        let mut missing = None;
        if values.iter().any(|x| x.is_nan()) {
            let mask: &mut BitMatrix = missing.insert(BitMatrix::zeros(0, n_columns));
            for row in values.chunks_exact_mut(n_columns.max(1)) {
                mask.push_row(|c| row[c].is_nan());
                row.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
            }
        }
        let table = Self::checked(n_rows, n_columns, 1.0, BlockValues::Real(values))?;
        Ok(Self { missing, ..table })
    }

    fn checked(
        n_rows: usize,
        n_columns: usize,
        full_scale: f32,
        values: BlockValues,
    ) -> Result<Self, Error> {
        if n_rows == 0 || n_columns == 0 {
            return Err(Error::Empty { n_rows, n_columns });
        }
        let blocks = vec![Block { columns: 0..n_columns, values, full_scale }];
        let columns = vec![Column::default(); n_columns];
        Ok(Self { n_rows, columns, blocks, missing: None, image: None })
    }

    /// The same rows with the columns of `other` behind them.
    ///
    /// # Errors
    ///
    /// If `other` has more or fewer rows.
    pub fn beside(mut self, other: Self) -> Result<Self, Error> {
        if other.n_rows != self.n_rows {
            let (n_rows, n_columns) = (self.n_rows, other.n_columns());
            let (expected, found) = (n_rows * n_columns, other.n_rows * n_columns);
            return Err(Error::Shape { n_rows, n_columns, expected, found });
        }
        let n = self.n_columns();
        if self.missing.is_some() || other.missing.is_some() {
            let mut both = BitMatrix::zeros(0, n + other.n_columns());
            for r in 0..self.n_rows {
                let gap =
                    |c| if c < n { self.is_missing(r, c) } else { other.is_missing(r, c - n) };
                both.push_row(gap);
            }
            self.missing = Some(both);
        }
        let moved = |b: Block| Block { columns: b.columns.start + n..b.columns.end + n, ..b };
        self.blocks.extend(other.blocks.into_iter().map(moved));
        self.columns.extend(other.columns);
        self.image = None;
        Ok(self)
    }

    /// Says that each row is a picture, row-major; ignored when the shape does not fit.
    #[must_use]
    pub fn with_image(mut self, image: Image) -> Self {
        if image.height * image.width == self.n_columns() {
            self.image = Some(image);
        }
        self
    }

    /// Says that each row is a picture, and puts its pixels into the order of rows.
    ///
    /// # Errors
    ///
    /// If the shape does not fit.
    pub fn with_layout(mut self, layout: ImageLayout) -> Result<Self, Error> {
        let (ImageLayout { height, width, .. }, n_columns) = (layout, self.n_columns());
        if height.checked_mul(width) != Some(n_columns) {
            return Err(Error::ImageShape { height, width, n_columns });
        }
        if layout.column_major {
            let places: Vec<usize> = layout.places().collect();
            self = self.reordered(&places);
        }
        Ok(self.with_image(layout.image()))
    }

    /// The same with the columns in another order. Blocks of several sorts become one of numbers.
    fn reordered(&self, places: &[usize]) -> Self {
        let (n_rows, n) = (self.n_rows, places.len());
        let bits = |get: &dyn Fn(usize, usize) -> bool| {
            let mut bits = BitMatrix::zeros(0, n);
            (0..n_rows).for_each(|r| bits.push_row(|c| get(r, places[c])));
            bits
        };
        let cells = || (0..n_rows).flat_map(|r| places.iter().map(move |&c| (r, c)));
        let values = match self.only_block() {
            Some(BlockValues::Bits(old)) => BlockValues::Bits(bits(&|r, c| old.get(r, c))),
            Some(BlockValues::Bytes(old)) => {
                BlockValues::Bytes(cells().map(|(r, c)| old[r * n + c]).collect())
            }
            _ => BlockValues::Real(cells().map(|(r, c)| self.stored(r, c)).collect()),
        };
        Self {
            n_rows,
            columns: places.iter().map(|&c| self.columns[c].clone()).collect(),
            blocks: vec![Block { columns: 0..n, values, full_scale: self.full_scale() }],
            missing: self.missing.as_ref().map(|old| bits(&|r, c| old.get(r, c))),
            image: None,
        }
    }

    /// One entry as it is stored: zero where it is missing.
    fn stored(&self, row: usize, column: usize) -> f32 {
        let block = self.blocks.iter().find(|b| b.columns.contains(&column));
        block.map_or(0.0, |b| b.at(row, column))
    }

    /// Says what the columns are called; ignored when there are more or fewer names.
    #[must_use]
    pub fn with_names(mut self, names: &[String]) -> Self {
        if names.len() == self.n_columns() {
            for (column, name) in self.columns.iter_mut().zip(names) {
                column.name = Some(name.clone());
            }
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
        for block in self.blocks.iter_mut().filter(|b| !b.is_bits()) {
            block.full_scale = full_scale;
        }
        Ok(self)
    }

    /// Takes the values away that were not observed: `false` in a row for each row of the table,
    /// or in one row that holds for all.
    ///
    /// # Errors
    ///
    /// If the mask has another shape.
    #[expect(clippy::needless_pass_by_value, reason = "a view is a reference already")]
    pub fn with_mask(mut self, observed: ArrayView2<'_, bool>) -> Result<Self, Error> {
        let (n, m) = observed.dim();
        if m != self.n_columns() || (n != self.n_rows && n != 1) {
            return Err(Error::MaskShape {
                expected: (self.n_rows, self.n_columns()),
                found: (n, m),
            });
        }
        let mut missing = BitMatrix::zeros(0, m);
        for r in 0..self.n_rows {
            missing.push_row(|c| !observed[[r % n, c]] || self.is_missing(r, c));
        }
        self.set_missing(missing);
        Ok(self)
    }

    /// The same table with a bit for each value; those of missing ones are 0.
    pub(crate) fn with_bits(&self, bits: BitMatrix) -> Self {
        let columns = 0..self.n_columns();
        let blocks = vec![Block { columns, values: BlockValues::Bits(bits), full_scale: 1.0 }];
        let (columns, missing) = (self.columns.clone(), self.missing.clone());
        Self { n_rows: self.n_rows, columns, blocks, missing, image: self.image }
    }

    /// Replaces the mask, and clears what stands under it.
    pub(crate) fn set_missing(&mut self, missing: BitMatrix) {
        for r in 0..self.n_rows {
            for block in &mut self.blocks {
                let gaps = block.columns.clone().filter(|&c| missing.get(r, c));
                gaps.collect::<Vec<_>>().into_iter().for_each(|c| block.clear(r, c));
            }
        }
        self.missing = Some(missing).filter(|m| m.count_ones() > 0);
    }

    /// Every value `x` as full scale − `x`; missing entries stay missing.
    #[must_use]
    pub fn inverted(mut self) -> Self {
        self.blocks = self.blocks.into_iter().map(Block::inverted).collect();
        if let Some(missing) = self.missing.take() {
            self.set_missing(missing);
        }
        self
    }

    /// Number of samples.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of values in a sample.
    pub fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// What is known of each column besides its values.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// What the columns are called, if every one has a name.
    pub fn names(&self) -> Option<Vec<String>> {
        self.columns.iter().map(|c| c.name.clone()).collect()
    }

    /// The values, in runs of columns that are stored alike.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The values of a table whose columns are all stored alike.
    pub fn only_block(&self) -> Option<&BlockValues> {
        match &self.blocks[..] {
            [one] => Some(&one.values),
            _ => None,
        }
    }

    /// Whether every value that is there is 0 or 1 and stored as a bit.
    pub fn is_bits(&self) -> bool {
        self.blocks.iter().all(Block::is_bits)
    }

    /// The largest value the source can hold.
    pub fn full_scale(&self) -> f32 {
        self.blocks.iter().map(|b| b.full_scale).fold(0.0, f32::max)
    }

    /// The shape of the picture in each row, if it is one.
    pub fn image(&self) -> Option<Image> {
        self.image
    }

    /// Whether values are missing anywhere.
    pub fn has_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// Number of cells without a value.
    pub fn n_missing(&self) -> u64 {
        self.missing.as_ref().map_or(0, BitMatrix::count_ones)
    }

    /// Whether a cell has no value.
    ///
    /// # Panics
    ///
    /// If the position is outside the table.
    pub fn is_missing(&self, row: usize, column: usize) -> bool {
        self.missing.as_ref().is_some_and(|m| m.get(row, column))
    }

    pub(crate) fn missing(&self) -> Option<&BitMatrix> {
        self.missing.as_ref()
    }

    /// One entry, NaN where it is missing.
    ///
    /// # Panics
    ///
    /// If the position is outside the table.
    pub fn at(&self, row: usize, column: usize) -> f32 {
        assert!(column < self.n_columns(), "column {column} of {}", self.n_columns());
        if self.is_missing(row, column) {
            return f32::NAN;
        }
        let block = self.blocks.iter().find(|b| b.columns.contains(&column));
        block.map_or(f32::NAN, |b| b.at(row, column))
    }

    /// All values, NaN where one is missing.
    pub fn to_array(&self) -> Array2<f32> {
        Array2::from_shape_fn((self.n_rows, self.n_columns()), |(row, c)| self.at(row, c))
    }

    /// Some runs of columns, in that order.
    ///
    /// # Errors
    ///
    /// If no column is named.
    ///
    /// # Panics
    ///
    /// If a column is outside the table.
    pub fn select_columns(&self, runs: &[Range<usize>]) -> Result<Self, Error> {
        let n: usize = runs.iter().map(ExactSizeIterator::len).sum();
        if n == 0 {
            return Err(Error::Empty { n_rows: self.n_rows, n_columns: 0 });
        }
        let (mut blocks, mut start) = (Vec::new(), 0);
        for run in runs {
            for block in &self.blocks {
                let first = run.start.max(block.columns.start);
                let own = first..run.end.min(block.columns.end).max(first);
                if !own.is_empty() {
                    blocks.push(block.part(own.clone(), self.n_rows, start));
                    start += own.len();
                }
            }
        }
        let places: Vec<usize> = runs.iter().cloned().flatten().collect();
        let missing = self.missing.as_ref().map(|old| {
            let mut mask = BitMatrix::zeros(0, n);
            (0..self.n_rows).for_each(|row| mask.push_row(|c| old.get(row, places[c])));
            mask
        });
        Ok(Self {
            n_rows: self.n_rows,
            columns: places.iter().map(|&c| self.columns[c].clone()).collect(),
            blocks,
            missing: missing.filter(|m| m.count_ones() > 0),
            image: None,
        })
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
        if rows.is_empty() {
            return Err(Error::Empty { n_rows: 0, n_columns: self.n_columns() });
        }
        let missing = self.missing.as_ref().map(|m| chosen_rows(m, rows));
        Ok(Self {
            n_rows: rows.len(),
            columns: self.columns.clone(),
            blocks: self.blocks.iter().map(|b| b.select_rows(rows)).collect(),
            missing: missing.filter(|m| m.count_ones() > 0),
            image: self.image,
        })
    }
}

/// The full scale as a byte, if it is one that no value exceeds.
fn top_byte(bytes: &[u8], full_scale: f32) -> Option<u8> {
    let largest = bytes.iter().copied().max().unwrap_or(0);
    (largest..=u8::MAX).find(|&b| f32::from(b).total_cmp(&full_scale).is_eq())
}

fn chosen_rows(bits: &BitMatrix, rows: &[usize]) -> BitMatrix {
    let mut chosen = BitMatrix::zeros(0, bits.n_columns());
    rows.iter().for_each(|&r| chosen.push_words(bits.row(r)));
    chosen
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
