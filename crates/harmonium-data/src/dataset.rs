//! A table and the way it is presented.

use crate::frame::{Codebook, Group};
use crate::modality::{Modalities, Modality};
use crate::{Block, BlockValues, Error, Labels, Table};
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::random::{Site, Stream, bits_of_bytes};
use ndarray::{Array2, ArrayView2};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

/// How grey values become bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binarize {
    /// The value over its full scale is a probability, drawn anew at each presentation.
    Sample,
    /// 1 where the value over its full scale is at least the threshold.
    Threshold(f32),
    /// Values as they are.
    None,
}

impl fmt::Display for Binarize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sample => f.write_str("sample"),
            Self::Threshold(at) => write!(f, "{at}"),
            Self::None => f.write_str("none"),
        }
    }
}

impl FromStr for Binarize {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Setting {
            what: "way to binarise",
            text: text.to_owned(),
            expected: "write `sample`, `none` or a threshold such as 0.5, where 1 is the full scale",
        };
        match text {
            "sample" => Ok(Self::Sample),
            "none" => Ok(Self::None),
            number => {
                let at: f32 = number.parse().map_err(|_| wrong())?;
                if at.is_finite() { Ok(Self::Threshold(at)) } else { Err(wrong()) }
            }
        }
    }
}

/// Samples as a machine sees them, with a weight for each.
#[derive(Clone, Debug)]
pub struct Dataset {
    table: Table,
    sampled: bool,
    /// Whether the means over presentations are presented instead: see [`Dataset::as_means`].
    means: bool,
    weights: Option<Vec<f64>>,
    labels: Option<Labels>,
    /// How the cells of a table became these values, where they did.
    book: Option<Arc<Codebook>>,
    /// Columns that are presented as they are although others are drawn.
    plain: Vec<Range<usize>>,
    /// The sources that stand side by side, if there are several.
    modalities: Modalities,
}

impl<'d> From<&'d Dataset> for Cow<'d, Dataset> {
    fn from(data: &'d Dataset) -> Self {
        Cow::Borrowed(data)
    }
}

impl From<Dataset> for Cow<'_, Dataset> {
    fn from(data: Dataset) -> Self {
        Cow::Owned(data)
    }
}

impl Dataset {
    /// Presents `table` as `binarize` says. A threshold is applied once, here, and the bits are
    /// kept packed; sampling keeps the bytes and draws at each presentation. What is missing stays
    /// missing.
    ///
    /// # Errors
    ///
    /// If values that should be sampled are not in the range from 0 to the full scale, or if the
    /// threshold of grey levels would make them all equal.
    pub fn new(table: Table, binarize: Binarize) -> Result<Self, Error> {
        let is_bits = table.is_bits();
        let sampled = binarize == Binarize::Sample && !is_bits;
        if sampled {
            check_probabilities(&table)?;
        }
        let bytes = |b: &Block| matches!(b.values(), BlockValues::Bytes(_));
        if let (Binarize::Threshold(at), true) = (binarize, table.blocks().iter().any(bytes)) {
            check_threshold(at)?;
        }
        let table = match binarize {
            Binarize::Threshold(at) if !is_bits => threshold(&table, at),
            _ => table,
        };
        Ok(Self {
            table,
            sampled,
            means: false,
            weights: None,
            labels: None,
            book: None,
            plain: Vec::new(),
            modalities: None,
        })
    }

    /// The same samples, binarised: see [`Dataset::new`]. Bits stay as they are.
    ///
    /// # Errors
    ///
    /// As [`Dataset::new`].
    pub fn binarized(self, binarize: Binarize) -> Result<Self, Error> {
        let Self { table, weights, labels, book, modalities, .. } = self;
        Ok(Self { weights, labels, book, modalities, ..Self::new(table, binarize)? })
    }

    /// Takes the values away that were not observed: `false` in a row for each sample, or in one
    /// row that holds for all.
    ///
    /// # Errors
    ///
    /// If the mask has another shape.
    #[expect(clippy::needless_pass_by_value, reason = "a view is a reference already")]
    pub fn with_mask(mut self, observed: ArrayView2<'_, bool>) -> Result<Self, Error> {
        self.table = self.table.with_mask(observed)?;
        Ok(self)
    }

    /// Says which class each sample belongs to. Labels stand beside the columns: they are not
    /// counted by [`Dataset::n_columns`].
    ///
    /// # Errors
    ///
    /// If there is not one label per row.
    pub fn with_labels(mut self, labels: Labels) -> Result<Self, Error> {
        labels.check_rows(self.n_rows())?;
        self.labels = Some(labels);
        Ok(self)
    }

    /// The same samples, their weights and labels, with other values: row by row what `table`
    /// holds, as it is.
    ///
    /// # Errors
    ///
    /// If there are more or fewer rows.
    pub fn with_values(&self, table: Table) -> Result<Self, Error> {
        if table.n_rows() != self.n_rows() {
            let (n_rows, n_columns) = (self.n_rows(), table.n_columns());
            let (expected, found) = (n_rows * n_columns, table.n_rows() * n_columns);
            return Err(Error::Shape { n_rows, n_columns, expected, found });
        }
        let (weights, labels) = (self.weights.clone(), self.labels.clone());
        let modalities = self.modalities.clone().filter(|_| table.n_columns() == self.n_columns());
        let (plain, book) = (Vec::new(), None);
        Ok(Self { table, sampled: false, means: false, weights, labels, book, plain, modalities })
    }

    /// Gives each sample a weight.
    ///
    /// # Errors
    ///
    /// If there is not one finite, non-negative weight per row with a positive sum.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self, Error> {
        let n_rows = self.n_rows();
        if weights.len() != n_rows {
            return Err(Error::WeightCount { n_rows, found: weights.len() });
        }
        if let Some(row) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            return Err(Error::Weight { row, value: weights[row] });
        }
        if weights.iter().all(|w| *w == 0.0) {
            return Err(Error::Weight { row: 0, value: 0.0 });
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// Says how the cells of a table became these values.
    pub(crate) fn with_book(mut self, book: Arc<Codebook>) -> Self {
        self.book = Some(book);
        self
    }

    /// How the cells of a table became these values, where they did.
    pub fn book(&self) -> Option<&Codebook> {
        self.book.as_deref()
    }

    /// $\sum \ln |dz/dx|$ over the values that each row has: what the logarithm of a density in the units of
    /// the table has more than one of the values, which are scaled and perhaps bent. Nothing where the values
    /// are those of the source.
    pub fn log_slopes(&self) -> Option<Vec<f64>> {
        let columns = self.book.as_ref()?.encoded();
        let scaled: Vec<_> =
            columns.into_iter().enumerate().filter(|(_, c)| c.group() == Group::Numbers).collect();
        let of_row = |row: usize| {
            let there = scaled.iter().filter(|(c, _)| !self.table.is_missing(row, *c));
            there.map(|(c, column)| column.log_slope(f64::from(self.table.at(row, *c)))).sum()
        };
        (!scaled.is_empty()).then(|| (0..self.n_rows()).map(of_row).collect())
    }

    /// The rows named, in that order, with their weights and labels.
    ///
    /// # Errors
    ///
    /// If no row is named.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn select_rows(&self, rows: &[usize]) -> Result<Self, Error> {
        let weights = self.weights.as_ref().map(|w| rows.iter().map(|&r| w[r]).collect());
        let labels = self.labels.as_ref().map(|l| l.select_rows(rows));
        let (table, sampled, means) = (self.table.select_rows(rows)?, self.sampled, self.means);
        let (plain, modalities) = (self.plain.clone(), self.modalities.clone());
        let book = self.book.clone();
        Ok(Self { table, sampled, means, weights, labels, book, plain, modalities })
    }

    /// The same samples with some runs of their columns, in that order, presented as they were; without labels.
    ///
    /// # Errors
    ///
    /// If no column is named.
    ///
    /// # Panics
    ///
    /// If there is no such column.
    pub fn select_columns(&self, runs: &[Range<usize>]) -> Result<Self, Error> {
        let table = self.table.select_columns(runs)?;
        let (mut plain, mut start) = (Vec::new(), 0);
        for run in runs {
            for part in &self.plain {
                let first = run.start.max(part.start);
                let own = first..run.end.min(part.end).max(first);
                if !own.is_empty() {
                    plain.push(own.start - run.start + start..own.end - run.start + start);
                }
            }
            start += run.len();
        }
        let drawn = |c: usize| !plain.iter().any(|run| run.contains(&c));
        let any = (0..table.n_columns()).any(drawn);
        let (sampled, means) = (self.sampled && any, self.means && any);
        let weights = self.weights.clone();
        let plain = if sampled || means { plain } else { Vec::new() };
        let (labels, book, modalities) = (None, None, None);
        Ok(Self { table, sampled, means, weights, labels, book, plain, modalities })
    }

    /// The same rows with the columns of `other` behind them, each presented as it was; without labels, with the
    /// weights of the first.
    ///
    /// # Errors
    ///
    /// If `other` has more or fewer rows.
    pub fn beside(self, other: Self) -> Result<Self, Error> {
        let n = self.n_columns();
        let plain_of = |data: &Self, shift: usize| -> Vec<Range<usize>> {
            let drawn = data.sampled || data.means;
            let runs = if drawn {
                data.plain.clone()
            } else {
                let numbers = data.table.blocks().iter().filter(|b| !b.is_bits());
                numbers.map(Block::columns).collect()
            };
            runs.into_iter().map(|run| run.start + shift..run.end + shift).collect()
        };
        let (sampled, means) = (self.sampled || other.sampled, self.means || other.means);
        let mut plain = plain_of(&self, 0);
        plain.extend(plain_of(&other, n));
        let plain = if sampled || means { plain } else { Vec::new() };
        let table = self.table.beside(other.table)?;
        let (weights, labels, book) = (self.weights, None, None);
        Ok(Self { table, sampled, means, weights, labels, book, plain, modalities: None })
    }

    /// Says which sources stand side by side.
    pub(crate) fn with_modalities(mut self, modalities: Vec<Modality>) -> Self {
        self.modalities = Some(modalities.into());
        self
    }

    /// The sources that stand side by side; empty where there is only one.
    pub fn modalities(&self) -> &[Modality] {
        self.modalities.as_deref().unwrap_or_default()
    }

    /// The rows of one source, presented as they are among the others.
    ///
    /// # Errors
    ///
    /// If it has no columns.
    pub fn of_modality(&self, modality: &Modality) -> Result<Self, Error> {
        let mut own = self.select_columns(std::slice::from_ref(&modality.columns))?;
        if let Some(image) = modality.picture() {
            own.table = own.table.with_image(image);
        }
        own.book = modality.codebook.clone().map(Arc::new);
        Ok(own)
    }

    /// Whether a column is drawn anew at each presentation.
    fn is_drawn(&self, column: usize) -> bool {
        !self.plain.iter().any(|run| run.contains(&column))
    }

    /// Number of samples.
    pub fn n_rows(&self) -> usize {
        self.table.n_rows()
    }

    /// Number of values in a sample; its label is not one of them.
    pub fn n_columns(&self) -> usize {
        self.table.n_columns()
    }

    /// The same samples without their labels.
    #[must_use]
    pub fn without_labels(mut self) -> Self {
        self.labels = None;
        self
    }

    /// The same samples, each as heavy as the others.
    #[must_use]
    pub fn without_weights(mut self) -> Self {
        self.weights = None;
        self
    }

    /// The class of each sample, if it is known.
    pub fn labels(&self) -> Option<&Labels> {
        self.labels.as_ref()
    }

    /// What is presented.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Whether each presentation is drawn anew.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// The same samples at the means over all presentations: where values are drawn, their probabilities.
    #[must_use]
    pub fn as_means(mut self) -> Self {
        self.means |= std::mem::take(&mut self.sampled);
        self
    }

    /// Whether probabilities are presented instead of what is drawn with them.
    pub fn is_means(&self) -> bool {
        self.means
    }

    /// The weight of a sample: 1 unless weights were given.
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| w[row])
    }

    /// Writes one presentation of a row, NaN where a value is missing; `draw` belongs to the epoch.
    ///
    /// # Panics
    ///
    /// If `out` is not as long as a row, or there is no such row.
    pub fn present_into(&self, row: usize, draw: Stream, out: &mut [f64]) {
        assert_eq!(out.len(), self.n_columns(), "present_into: one entry per column");
        self.means_into(row, out);
        if self.sampled {
            let site = Site { row: u32::try_from(row).unwrap_or(u32::MAX), sweep: 0, lane: 0 };
            let mut uniforms = [0.0; 32];
            for (first, chunk) in (0..).step_by(32).zip(out.chunks_mut(32)) {
                draw.uniforms_from(site, first, &mut uniforms[..chunk.len()]);
                // Bits are drawn as they are: no variate is below 0 or above 1.
                let cells = chunk.iter_mut().zip(uniforms).enumerate();
                for (i, (o, u)) in cells.filter(|(_, (o, _))| !o.is_nan()) {
                    if self.plain.is_empty() || self.is_drawn(first + i) {
                        *o = f64::from(u < *o);
                    }
                }
            }
        }
    }

    /// One presentation of all rows, NaN where a value is missing.
    pub fn to_array(&self, draw: Stream) -> Array2<f64> {
        let mut values = Array2::zeros((self.n_rows(), self.n_columns()));
        let mut buffer = vec![0.0; self.n_columns()];
        for (row, mut out) in values.rows_mut().into_iter().enumerate() {
            self.present_into(row, draw, &mut buffer);
            out.iter_mut().zip(&buffer).for_each(|(o, x)| *o = *x);
        }
        values
    }

    /// Whether every value that is presented is 0 or 1.
    pub fn is_bits(&self) -> bool {
        (self.sampled && self.plain.is_empty()) || self.table.is_bits()
    }

    /// Whether values are missing anywhere.
    pub fn has_missing(&self) -> bool {
        self.table.has_missing()
    }

    /// Says which rows will be presented soon, so that they are near by then.
    pub fn fetch(&self, rows: impl Iterator<Item = usize>) {
        if let Some(BlockValues::Bits(bits)) = self.table.only_block() {
            bits.fetch(rows);
        }
    }

    /// Writes one presentation of a row as packed bits, 64 columns to a word: the same bits as
    /// [`Dataset::present_into`] gives, and 0 where a value is missing. `row_values` is a buffer.
    ///
    /// # Panics
    ///
    /// If the data are not bits, `out` has not as many words as the columns need, or there is no
    /// such row.
    pub fn present_bits_into(
        &self,
        row: usize,
        draw: Stream,
        row_values: &mut Vec<f64>,
        out: &mut [u64],
    ) {
        assert!(self.is_bits(), "present_bits_into: the data are not bits");
        assert_eq!(out.len(), self.n_columns().div_ceil(64), "present_bits_into: words of a row");
        let n = self.n_columns();
        match self.table.only_block() {
            Some(BlockValues::Bits(bits)) => out.copy_from_slice(bits.row(row)),
            Some(BlockValues::Bytes(bytes)) if self.table.full_scale() == 255.0 => {
                out.fill(0);
                let site = Site { row: u32::try_from(row).unwrap_or(u32::MAX), sweep: 0, lane: 0 };
                bits_of_bytes(draw, site, &bytes[row * n..(row + 1) * n], out);
            }
            _ => {
                row_values.resize(n, 0.0);
                self.present_into(row, draw, row_values);
                for (word, values) in out.iter_mut().zip(row_values.chunks(64)) {
                    *word = (0..).zip(values).fold(0, |w, (b, x)| w | u64::from(*x == 1.0) << b);
                }
            }
        }
    }

    /// Writes the mean over presentations of a row: probabilities where values are sampled, NaN
    /// where they are missing.
    ///
    /// # Panics
    ///
    /// If `out` is not as long as a row, or there is no such row.
    pub fn means_into(&self, row: usize, out: &mut [f64]) {
        assert_eq!(out.len(), self.n_columns(), "means_into: one entry per column");
        for block in self.table.blocks() {
            let scaled = (self.sampled || self.means) && self.is_drawn(block.columns().start);
            let scale = if scaled { 1.0 / f64::from(block.full_scale()) } else { 1.0 };
            let (n, out) = (block.columns().len(), &mut out[block.columns()]);
            match block.values() {
                BlockValues::Bits(bits) => bits.unpack_row_into(row, out),
                BlockValues::Bytes(bytes) => {
                    for (o, b) in out.iter_mut().zip(&bytes[row * n..(row + 1) * n]) {
                        *o = f64::from(*b) * scale;
                    }
                }
                BlockValues::Real(reals) => {
                    for (o, x) in out.iter_mut().zip(&reals[row * n..(row + 1) * n]) {
                        *o = f64::from(*x) * scale;
                    }
                }
            }
        }
        if let Some(missing) = self.table.missing() {
            let cells = out.iter_mut().enumerate();
            cells.filter(|(c, _)| missing.get(row, *c)).for_each(|(_, o)| *o = f64::NAN);
        }
    }

    /// The weighted mean of each column over the rows that have it and over presentations; NaN
    /// where no row has it.
    pub fn column_means(&self) -> Vec<f64> {
        if let (None, Some(means)) = (&self.weights, self.counted_means()) {
            return means;
        }
        let mut sums = vec![0.0; self.n_columns()];
        let (mut weights, mut row_values) = (sums.clone(), sums.clone());
        for row in 0..self.n_rows() {
            self.means_into(row, &mut row_values);
            let w = self.weight(row);
            for ((sum, weight), x) in sums.iter_mut().zip(&mut weights).zip(&row_values) {
                if !x.is_nan() {
                    *sum += w * x;
                    *weight += w;
                }
            }
        }
        sums.iter().zip(&weights).map(|(s, w)| s / w).collect()
    }

    /// The share of the samples in each class, by their weights; empty without labels.
    pub fn class_shares(&self) -> Vec<f64> {
        let Some(labels) = &self.labels else { return Vec::new() };
        let mut shares = vec![0.0; labels.n_classes()];
        let mut weight = 0.0;
        for (row, &class) in labels.values().iter().enumerate() {
            shares[class as usize] += self.weight(row);
            weight += self.weight(row);
        }
        shares.iter_mut().for_each(|s| *s /= weight);
        shares
    }
}

impl Dataset {
    /// Column means by counting, where all values are whole and none is missing.
    fn counted_means(&self) -> Option<Vec<f64>> {
        if self.has_missing() {
            return None;
        }
        let n = self.n_rows() as f64;
        let mut means = Vec::with_capacity(self.n_columns());
        for block in self.table.blocks() {
            let n_columns = block.columns().len();
            match block.values() {
                BlockValues::Bits(bits) => {
                    let mut ones = vec![0; n_columns];
                    bits.add_column_counts(&mut ones);
                    means.extend(ones.into_iter().map(|c| f64::from(c) / n));
                }
                BlockValues::Bytes(bytes) => {
                    let drawn = self.is_drawn(block.columns().start);
                    let scaled = (self.sampled || self.means) && drawn;
                    let scale = if scaled { f64::from(block.full_scale()) } else { 1.0 };
                    let mut sums = vec![0_u64; n_columns];
                    for row in bytes.chunks_exact(n_columns.max(1)) {
                        sums.iter_mut().zip(row).for_each(|(s, b)| *s += u64::from(*b));
                    }
                    means.extend(sums.into_iter().map(|s| s as f64 / (n * scale)));
                }
                BlockValues::Real(_) => return None,
            }
        }
        Some(means)
    }
}

/// Grey levels lie between 0 and 1 once they are scaled; real numbers may lie anywhere.
fn check_threshold(at: f32) -> Result<(), Error> {
    if at > 0.0 && at <= 1.0 {
        return Ok(());
    }
    Err(Error::Setting {
        what: "threshold for grey levels",
        text: at.to_string(),
        expected: "give a threshold above 0 and up to 1, where 1 is the full scale, such as 0.5",
    })
}

fn check_probabilities(table: &Table) -> Result<(), Error> {
    for block in table.blocks() {
        let (n, scale) = (block.columns().len(), block.full_scale());
        let wrong = |(place, value): (usize, f32)| {
            let (row, column) = (place / n, block.columns().start + place % n);
            Error::NotAProbability { row, column, value }
        };
        let outside = match block.values() {
            BlockValues::Bits(_) => None,
            BlockValues::Bytes(_) if scale >= 255.0 => None,
            BlockValues::Bytes(bytes) => {
                let values = bytes.iter().map(|b| f32::from(*b));
                values.enumerate().find(|(_, x)| *x > scale)
            }
            BlockValues::Real(reals) => {
                let values = reals.iter().copied().enumerate();
                values.into_iter().find(|(_, x)| !x.is_nan() && !(0.0..=scale).contains(x))
            }
        };
        if let Some(found) = outside {
            return Err(wrong(found));
        }
    }
    Ok(())
}

fn threshold(table: &Table, at: f32) -> Table {
    let of = |b: &Block| (b.columns().len(), if b.is_bits() { 1.0 } else { at * b.full_scale() });
    let cuts = table.blocks().iter().map(of);
    let cuts: Vec<f32> = cuts.flat_map(|(n, cut)| std::iter::repeat_n(cut, n)).collect();
    let mut bits = BitMatrix::zeros(0, table.n_columns());
    for row in 0..table.n_rows() {
        bits.push_row(|c| table.at(row, c) >= cuts[c]);
    }
    table.with_bits(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_binarise_read_as_they_are_written() {
        for way in [Binarize::Sample, Binarize::None, Binarize::Threshold(0.25)] {
            assert_eq!(way.to_string().parse::<Binarize>().unwrap(), way);
        }
        for wrong in ["", "Sample", "nan", "inf", "50%"] {
            assert!(wrong.parse::<Binarize>().is_err(), "{wrong}");
        }
    }
}
