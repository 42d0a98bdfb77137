//! Small sets whose best possible likelihood is known.
//!
//! A model that spreads its mass evenly over the patterns has a total log-likelihood of
//! $-\sum_k n_k \ln(N / n_k)$ where pattern $k$ occurs $n_k$ times among $N$ rows; none can do
//! better. [`best_total`] computes it.

use crate::{Error, Image, Table};
use harmonium_kernels::bits::BitMatrix;
use std::collections::BTreeMap;

/// Which patterns of bars and stripes are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// $2^{N+1}$ rows: the empty and the full picture occur twice, as bars and as stripes.
    Counted,
    /// Each pattern once.
    Distinct,
}

/// Bars and stripes on `n` × `n` pixels: each column on or off, or each row on or off
/// (MacKay, "Information Theory, Inference, and Learning Algorithms", 2003, section 43).
///
/// # Errors
///
/// If `n` is 0 or more than 12.
pub fn bars_and_stripes(n: usize, repeats: Repeats) -> Result<Table, Error> {
    if n == 0 || n > 12 {
        return Err(Error::BuiltIn {
            name: format!("bars-and-stripes:{n}"),
            reason: "the side goes from 1 to 12".into(),
        });
    }
    let mut bits = BitMatrix::zeros(0, n * n);
    for pattern in 0..1_usize << n {
        bits.push_row(|p| pattern >> (p % n) & 1 == 1);
    }
    for pattern in 0..1_usize << n {
        if repeats == Repeats::Distinct && (pattern == 0 || pattern == (1 << n) - 1) {
            continue;
        }
        bits.push_row(|p| pattern >> (p / n) & 1 == 1);
    }
    Ok(Table::from_bits(bits)?.with_image(Image { height: n, width: n }))
}

/// The labelled shifter: 8 pixels, the same pixels shifted left by one, not at all or right by
/// one with wrap-around, and 3 label bits (Hinton & Sejnowski 1986). 768 patterns of 19 bits.
///
/// # Errors
///
/// Never; the signature is that of every generator.
pub fn shifter() -> Result<Table, Error> {
    let mut bits = BitMatrix::zeros(0, 19);
    for picture in 0..256_usize {
        for shift in 0..3 {
            bits.push_row(|c| match c {
                0..8 => picture >> c & 1 == 1,
                // Shift 0 moves left: position c shows what stood one to its right.
                8..16 => picture >> ((c - 8 + 1 + 8 - shift) % 8) & 1 == 1,
                _ => c - 16 == shift,
            });
        }
    }
    Table::from_bits(bits)
}

/// The highest total log-likelihood, in nats, that any model can give the rows of `table`.
pub fn best_total(table: &Table) -> f64 {
    let mut counts: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    for row in 0..table.n_rows() {
        let key = (0..table.n_columns()).map(|c| table.at(row, c).to_bits()).collect();
        *counts.entry(key).or_default() += 1;
    }
    let n = table.n_rows() as f64;
    counts.values().map(|&k| f64::from(k) * (f64::from(k) / n).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_totals_are_the_known_ones() {
        let total = |n, repeats| best_total(&bars_and_stripes(n, repeats).unwrap());
        assert!((total(3, Repeats::Counted) + 41.5888).abs() < 1e-4);
        assert!((total(4, Repeats::Counted) + 108.1310).abs() < 1e-4);
        assert!((total(4, Repeats::Distinct) + 102.0359).abs() < 1e-4);
        assert!((best_total(&shifter().unwrap()) + 5102.4305).abs() < 1e-4);
    }

    #[test]
    fn rows_are_counted_as_announced() {
        assert_eq!(bars_and_stripes(3, Repeats::Counted).unwrap().n_rows(), 16);
        assert_eq!(bars_and_stripes(4, Repeats::Distinct).unwrap().n_rows(), 30);
        assert_eq!(shifter().unwrap().n_rows(), 768);
        assert!(bars_and_stripes(0, Repeats::Counted).is_err());
        assert!(bars_and_stripes(13, Repeats::Counted).is_err());
    }

    #[test]
    fn the_shifter_shifts() {
        let table = shifter().unwrap();
        for row in 0..table.n_rows() {
            let shift = (16..19).position(|c| table.at(row, c) > 0.5).unwrap();
            for i in 0..8 {
                let from = (i + 1 + 8 - shift) % 8;
                assert_eq!(table.at(row, 8 + i).to_bits(), table.at(row, from).to_bits());
            }
        }
    }
}
