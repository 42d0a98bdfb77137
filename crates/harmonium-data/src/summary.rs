//! What a table holds, and which units would fit it.

use crate::{Binarize, BlockValues, Table};
use harmonium_kernels::bits::BitMatrix;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// Distinct values are counted up to this many.
const MAX_DISTINCT: usize = 256;
/// Whole numbers up to this one are more likely names of classes than counts.
const MAX_CATEGORY: f32 = 9.0;

/// The kind of visible units that would fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Visible {
    /// 0 or 1.
    Binary,
    /// −1 or 1.
    Spin,
    /// Real numbers.
    Gaussian,
    /// One of a few classes.
    Categorical,
    /// 0, 1, 2, …
    Counts,
}

impl fmt::Display for Visible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary",
            Self::Spin => "spin",
            Self::Gaussian => "gaussian",
            Self::Categorical => "categorical",
            Self::Counts => "counts",
        })
    }
}

/// Shape and range of a table, and what would be made of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of samples.
    pub n_rows: usize,
    /// Number of values in a sample.
    pub n_columns: usize,
    /// Smallest value; NaN if all are missing.
    pub min: f32,
    /// Largest value; NaN if all are missing.
    pub max: f32,
    /// Mean of all values that are not missing.
    pub mean: f64,
    /// Share of entries that are 0.
    pub zeros: f64,
    /// Share of entries that are missing.
    pub missing: f64,
    /// Columns whose values are all the same.
    pub n_constant: usize,
    /// Number of distinct values; `None` beyond 256.
    pub n_distinct: Option<usize>,
    /// The value that is fully on.
    pub full_scale: f32,
    /// The units that would be picked.
    pub visible: Visible,
    /// How values would be binarised.
    pub binarize: Binarize,
    /// Why, in one sentence.
    pub why: String,
}

/// What one pass over the values finds.
struct Tally {
    min: f32,
    max: f32,
    sum: f64,
    n_zero: u64,
    n_missing: u64,
    n_whole: u64,
    distinct: BTreeSet<u32>,
    /// The value of each column so far; `Err` once it has several.
    columns: Vec<Result<Option<f32>, ()>>,
}

impl Tally {
    fn of(table: &Table) -> Self {
        let mut tally = Self {
            min: f32::INFINITY,
            max: f32::NEG_INFINITY,
            sum: 0.0,
            n_zero: 0,
            n_missing: 0,
            n_whole: 0,
            distinct: BTreeSet::new(),
            columns: vec![Ok(None); table.n_columns()],
        };
        for block in table.blocks() {
            let columns = block.columns();
            match block.values() {
                BlockValues::Bits(bits) if !table.has_missing() => {
                    tally.count_bits(bits, columns.start);
                }
                BlockValues::Bytes(bytes) if !table.has_missing() => {
                    tally.count_bytes(bytes, columns);
                }
                _ => {
                    for row in 0..table.n_rows() {
                        let columns = columns.clone();
                        columns.for_each(|column| tally.count(column, table.at(row, column)));
                    }
                }
            }
        }
        tally
    }

    /// The same for bits, by columns.
    fn count_bits(&mut self, bits: &BitMatrix, first: usize) {
        let (n_rows, mut ones) = (bits.n_rows() as u64, vec![0; bits.n_columns()]);
        bits.add_column_counts(&mut ones);
        for (column, &ones) in (first..).zip(&ones) {
            let ones = u64::from(ones);
            for (value, n) in [(0.0, n_rows - ones), (1.0, ones)] {
                self.count_many(column, value, n);
            }
        }
    }

    /// The same for bytes, by the number of each.
    fn count_bytes(&mut self, bytes: &[u8], columns: Range<usize>) {
        let n_columns = columns.len().max(1);
        let mut range = vec![(u8::MAX, u8::MIN); n_columns];
        for row in bytes.chunks_exact(n_columns) {
            let cells = range.iter_mut().zip(row);
            cells.for_each(|((low, high), &b)| (*low, *high) = ((*low).min(b), (*high).max(b)));
        }
        // Neighbours are often equal: side by side they do not wait for each other's count.
        let mut counts = [[0_u64; 256]; 4];
        let (fours, rest) = bytes.as_chunks::<4>();
        for four in fours {
            counts.iter_mut().zip(four).for_each(|(counts, &b)| counts[usize::from(b)] += 1);
        }
        rest.iter().for_each(|&b| counts[0][usize::from(b)] += 1);
        // Which column a count belongs to does not matter for anything but its constancy.
        for byte in 0..=u8::MAX {
            let n = counts.iter().map(|counts| counts[usize::from(byte)]).sum();
            self.count_many(columns.start, f32::from(byte), n);
        }
        for (column, (low, high)) in self.columns[columns].iter_mut().zip(range) {
            *column = match low.cmp(&high) {
                Ordering::Less => Err(()),
                Ordering::Equal => Ok(Some(f32::from(low))),
                // There are no rows.
                Ordering::Greater => Ok(None),
            };
        }
    }

    /// Counts a value `n` times.
    fn count_many(&mut self, column: usize, value: f32, n: u64) {
        if n == 0 {
            return;
        }
        self.count(column, value);
        self.sum += f64::from(value) * (n - 1) as f64;
        self.n_zero += u64::from(value == 0.0) * (n - 1);
        self.n_whole += n - 1;
    }

    fn count(&mut self, column: usize, value: f32) {
        if value.is_nan() {
            self.n_missing += 1;
            return;
        }
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += f64::from(value);
        self.n_zero += u64::from(value == 0.0);
        self.n_whole += u64::from(value.fract() == 0.0);
        if self.distinct.len() <= MAX_DISTINCT {
            self.distinct.insert((value + 0.0).to_bits());
        }
        self.columns[column] = match self.columns[column] {
            Ok(None) => Ok(Some(value)),
            Ok(Some(known)) if known.to_bits() == value.to_bits() => Ok(Some(known)),
            _ => Err(()),
        };
    }

    fn holds_only(&self, allowed: &[f32]) -> bool {
        self.distinct.iter().all(|bits| allowed.contains(&f32::from_bits(*bits)))
    }
}

impl Summary {
    /// Looks at every value once.
    pub fn of(table: &Table) -> Self {
        let tally = Tally::of(table);
        let n = (table.n_rows() as f64) * (table.n_columns() as f64);
        let n_present = n - tally.n_missing as f64;
        let (visible, binarize, why) = suggest(table, &tally, n_present);
        let or_nan = |x: f32| if x.is_finite() { x } else { f32::NAN };
        Self {
            n_rows: table.n_rows(),
            n_columns: table.n_columns(),
            min: or_nan(tally.min),
            max: or_nan(tally.max),
            mean: tally.sum / n_present,
            zeros: tally.n_zero as f64 / n,
            missing: tally.n_missing as f64 / n,
            n_constant: tally.columns.iter().filter(|c| c.is_ok()).count(),
            n_distinct: (tally.distinct.len() <= MAX_DISTINCT).then_some(tally.distinct.len()),
            full_scale: table.full_scale(),
            visible,
            binarize,
            why,
        }
    }
}

fn suggest(table: &Table, tally: &Tally, n_present: f64) -> (Visible, Binarize, String) {
    let (min, max) = (tally.min, tally.max);
    let whole = tally.n_whole as f64 >= n_present;
    if tally.holds_only(&[0.0, 1.0]) {
        return (Visible::Binary, Binarize::None, "every value is 0 or 1".into());
    }
    if tally.holds_only(&[-1.0, 1.0]) {
        return (Visible::Spin, Binarize::None, "every value is -1 or 1".into());
    }
    if is_grey(table, tally) {
        let top = table.full_scale();
        let why = format!("grey levels from 0 to {top}, each a probability that is drawn anew");
        return (Visible::Binary, Binarize::Sample, why);
    }
    if min >= 0.0 && max <= 1.0 {
        let why = "values between 0 and 1, each a probability that is drawn anew".into();
        return (Visible::Binary, Binarize::Sample, why);
    }
    if whole && min >= 0.0 && max <= MAX_CATEGORY {
        let why = format!(
            "whole numbers from {min} to {max}: likely classes; if they are counts, use `--visible counts`"
        );
        return (Visible::Categorical, Binarize::None, why);
    }
    if whole && min >= 0.0 {
        let why = format!(
            "whole numbers from {min} to {max}: likely counts; if they are grey levels, use `--visible binary --binarize sample`"
        );
        return (Visible::Counts, Binarize::None, why);
    }
    (Visible::Gaussian, Binarize::None, format!("real numbers from {min} to {max}"))
}

/// Bytes that are a picture, use the range of one, or fill a square with a usual number of levels.
fn is_grey(table: &Table, tally: &Tally) -> bool {
    if !matches!(table.only_block(), Some(BlockValues::Bytes(_))) {
        return false;
    }
    let n = table.n_columns();
    let square = n >= 16 && n.isqrt().pow(2) == n;
    let levels = [15.0, 16.0, 31.0, 32.0, 63.0, 64.0, 127.0, 128.0];
    let usual = levels.contains(&tally.max) && tally.max <= table.full_scale();
    table.image().is_some() || table.full_scale() >= 255.0 || (square && usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;

    fn real(values: &[f32]) -> Summary {
        Summary::of(&Table::from_real(values.to_vec(), 2).unwrap())
    }

    #[test]
    fn kinds_follow_from_the_values() {
        assert_eq!(real(&[0.0, 1.0, f32::NAN, 1.0]).visible, Visible::Binary);
        assert_eq!(real(&[-1.0, 1.0, f32::NAN, 1.0]).visible, Visible::Spin);
        assert_eq!(real(&[0.5, 1.0, 0.25, 1.0]).binarize, Binarize::Sample);
        assert_eq!(real(&[-0.5, 1.0, 3.25, 1.0]).visible, Visible::Gaussian);
        assert_eq!(real(&[0.0, 1000.0, 3.0, 1.0]).visible, Visible::Counts);
        let bytes = |b: Vec<u8>, scale| Table::from_bytes(b, 4, scale).unwrap();
        assert_eq!(Summary::of(&bytes(vec![0, 1, 2, 3], 3)).visible, Visible::Categorical);
        assert_eq!(Summary::of(&bytes(vec![0, 1, 2, 33], 33)).visible, Visible::Counts);
        assert_eq!(Summary::of(&bytes(vec![0, 1, 2, 200], 255)).binarize, Binarize::Sample);
        let image = bytes(vec![0, 1, 2, 9], 9).with_image(Image { height: 2, width: 2 });
        assert_eq!(Summary::of(&image).binarize, Binarize::Sample);
    }

    #[test]
    fn shares_and_constants_are_counted() {
        let s = real(&[0.0, 2.5, 0.0, f32::NAN, 0.0, 2.5, 0.0, 2.5]);
        assert_eq!((s.n_rows, s.n_columns, s.n_constant, s.n_distinct), (4, 2, 2, Some(2)));
        assert!((s.zeros - 0.5).abs() < 1e-12 && (s.missing - 0.125).abs() < 1e-12);
        assert!((s.mean - 7.5 / 7.0).abs() < 1e-12);
        let many: Vec<f32> = (0..600_u16).map(f32::from).collect();
        assert_eq!(real(&many).n_distinct, None);
    }

    #[test]
    fn a_table_of_nothing_but_gaps_has_a_summary() {
        let s = real(&[f32::NAN, f32::NAN]);
        assert!(s.min.is_nan() && s.mean.is_nan());
        assert!((s.missing - 1.0).abs() < 1e-12);
    }
}
