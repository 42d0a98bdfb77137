//! Packed bit matrices: one bit per entry, each row starting at a fresh word.

use crate::dispatch::fast;
use std::ops::Range;

/// A matrix of bits, row by row, 64 to a word, lowest bit first.
///
/// The bits after the last column of a row are always zero.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BitMatrix {
    n_rows: usize,
    n_columns: usize,
    words: Vec<u64>,
}

impl BitMatrix {
    /// All bits zero.
    pub fn zeros(n_rows: usize, n_columns: usize) -> Self {
        Self { n_rows, n_columns, words: vec![0; n_rows * n_columns.div_ceil(64)] }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Words in one row.
    pub fn words_per_row(&self) -> usize {
        self.n_columns.div_ceil(64)
    }

    /// The words of a row.
    pub fn row(&self, row: usize) -> &[u64] {
        let n = self.words_per_row();
        &self.words[row * n..(row + 1) * n]
    }

    /// Whether the bit is set.
    ///
    /// # Panics
    ///
    /// If the position is outside the matrix.
    pub fn get(&self, row: usize, column: usize) -> bool {
        assert!(column < self.n_columns, "column {column} of {}", self.n_columns);
        self.row(row)[column / 64] >> (column % 64) & 1 == 1
    }

    /// Sets or clears a bit.
    ///
    /// # Panics
    ///
    /// If the position is outside the matrix.
    pub fn set(&mut self, row: usize, column: usize, on: bool) {
        assert!(column < self.n_columns, "column {column} of {}", self.n_columns);
        let word = &mut self.words[row * self.n_columns.div_ceil(64) + column / 64];
        *word = *word & !(1 << (column % 64)) | u64::from(on) << (column % 64);
    }

    /// Adds a row from a function of the column.
    pub fn push_row(&mut self, mut on: impl FnMut(usize) -> bool) {
        self.n_rows += 1;
        for start in (0..self.n_columns).step_by(64) {
            let end = (start + 64).min(self.n_columns);
            self.words.push((start..end).fold(0, |w, c| w | u64::from(on(c)) << (c - start)));
        }
    }

    /// Adds a row with the bits of the bytes that are `on`.
    ///
    /// # Panics
    ///
    /// If there are not as many as columns.
    pub fn push_bytes(&mut self, row: &[u8], on: impl Fn(u8) -> bool) {
        assert_eq!(row.len(), self.n_columns, "push_bytes: a byte for each column");
        self.n_rows += 1;
        for bytes in row.chunks(64) {
            let mut bits = [0; 64];
            bits.iter_mut().zip(bytes).for_each(|(bit, &byte)| *bit = u8::from(on(byte)));
            // Eight bytes of 0 or 1, lowest first, come to the highest byte as bits.
            let eight = |bits: &[u8; 8]| {
                u64::from_le_bytes(*bits).wrapping_mul(0x0102_0408_1020_4080) >> 56
            };
            let words = bits.as_chunks().0.iter().enumerate();
            self.words.push(words.fold(0, |w, (k, bits)| w | eight(bits) << (8 * k)));
        }
    }

    /// Adds a row of words.
    ///
    /// # Panics
    ///
    /// If there are not as many as a row has, or a bit beyond the last column is set.
    pub fn push_words(&mut self, words: &[u64]) {
        assert_eq!(words.len(), self.words_per_row(), "push_words: a row of words");
        let used = self.n_columns % 64;
        let clean = used == 0 || words.last().is_none_or(|w| w >> used == 0);
        assert!(clean, "push_words: bits beyond the last column");
        self.n_rows += 1;
        self.words.extend_from_slice(words);
    }

    /// Removes all rows, keeping the memory.
    pub fn clear(&mut self) {
        self.n_rows = 0;
        self.words.clear();
    }

    /// Overwrites 64 columns from `64 * panel` on, one word for each row; bits beyond the last
    /// column are dropped.
    ///
    /// # Panics
    ///
    /// If there is not one word per row, or no such panel.
    pub fn set_panel(&mut self, panel: usize, words: &[u64]) {
        assert_eq!(words.len(), self.n_rows, "set_panel: one word per row");
        let per_row = self.words_per_row();
        assert!(panel < per_row, "set_panel: panel {panel} of {per_row}");
        let used = (self.n_columns - 64 * panel).min(64);
        let mask = u64::MAX >> (64 - used);
        for (row, word) in self.words.chunks_exact_mut(per_row).zip(words) {
            row[panel] = word & mask;
        }
    }

    /// Asks for rows that will be read soon: rows in random order come from far away.
    pub fn fetch(&self, rows: impl Iterator<Item = usize>) {
        for row in rows {
            // Rows begin anywhere in a cache line.
            let words = self.row(row);
            words.iter().step_by(8).chain(words.last()).for_each(fetch);
        }
    }

    /// Adds the number of set bits of each column to `counts`.
    ///
    /// # Panics
    ///
    /// If `counts` is not as long as a row.
    pub fn add_column_counts(&self, counts: &mut [u32]) {
        assert_eq!(counts.len(), self.n_columns, "add_column_counts: one count per column");
        for first in (0..self.n_rows).step_by(64) {
            let rows = first..self.n_rows.min(first + 64);
            for (w, counts) in counts.chunks_mut(64).enumerate() {
                add_counts(columns_of(self, rows.clone(), w).as_flattened(), u64::MAX, counts);
            }
        }
    }

    /// Exchanges two rows.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn swap_rows(&mut self, a: usize, b: usize) {
        let n = self.words_per_row();
        for w in 0..n {
            self.words.swap(a * n + w, b * n + w);
        }
    }

    /// Exchanges a row with the same row of `other`.
    ///
    /// # Panics
    ///
    /// If it has another number of columns, or one of the two has no such row.
    pub fn exchange_row(&mut self, other: &mut Self, row: usize) {
        assert_eq!(self.n_columns, other.n_columns, "exchange_row: one number of columns");
        let words = row * self.words_per_row()..(row + 1) * self.words_per_row();
        self.words[words.clone()].swap_with_slice(&mut other.words[words]);
    }

    /// Overwrites all rows with those of `other`, which has the same shape.
    ///
    /// # Panics
    ///
    /// If it has another shape.
    pub fn copy_from(&mut self, other: &Self) {
        assert_eq!((self.n_rows, self.n_columns), (other.n_rows, other.n_columns), "copy_from");
        self.words.copy_from_slice(&other.words);
    }

    /// Number of set bits.
    pub fn count_ones(&self) -> u64 {
        count(&self.words)
    }

    /// Writes a row as zeros and ones.
    ///
    /// # Panics
    ///
    /// If `out` is not as long as a row.
    pub fn unpack_row_into(&self, row: usize, out: &mut [f64]) {
        assert_eq!(out.len(), self.n_columns, "unpack_row_into: one entry per column");
        for (chunk, &word) in out.chunks_mut(64).zip(self.row(row)) {
            for (bit, o) in chunk.iter_mut().enumerate() {
                *o = (word >> bit & 1) as f64;
            }
        }
    }
}

/// Asks for the cache line of `x`.
fn fetch(x: &u64) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "the instruction needs it")]
    // SAFETY: a prefetch changes nothing that a program can see; SSE is part of every x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(x).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = x;
}

fast! {
    fn count[](words: &[u64]) -> u64 = count_portable;
}

#[inline(always)]
fn count_portable(words: &[u64]) -> u64 {
    words.iter().map(|w| u64::from(w.count_ones())).sum()
}

/// Columns `64 w..64 w + 64` of up to 64 rows, a word for each, eight by eight.
pub(crate) fn columns_of(bits: &BitMatrix, rows: Range<usize>, w: usize) -> [[u64; 8]; 8] {
    let mut square = [[0; 8]; 8];
    for (i, r) in rows.enumerate() {
        square[i % 8][i / 8] = bits.row(r)[w];
    }
    transpose_64(&square)
}

fast! {
    /// Transposes 64 × 64 bits (Hacker's Delight, 7–3): row $8a + r$ stands in `rows[r][a]`, column
    /// $8a + r$ comes to `[a][r]`. Either way eight words lie next to each other that are treated
    /// alike.
    fn transpose_64[](rows: &[[u64; 8]; 8]) -> [[u64; 8]; 8]
        = transpose_64_portable, wide transpose_64_portable, widest avx2;
}

#[inline(always)]
fn transpose_64_portable(rows: &[[u64; 8]; 8]) -> [[u64; 8]; 8] {
    let mut x = *rows;
    exchange::<4, 1>(&mut x, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2, 1>(&mut x, 0x3333_3333_3333_3333);
    exchange::<1, 1>(&mut x, 0x5555_5555_5555_5555);
    let mut x = std::array::from_fn(|a| x.map(|row| row[a]));
    exchange::<4, 8>(&mut x, 0x0000_0000_ffff_ffff);
    exchange::<2, 8>(&mut x, 0x0000_ffff_0000_ffff);
    exchange::<1, 8>(&mut x, 0x00ff_00ff_00ff_00ff);
    x
}

/// Exchanges bits $c + ub$ of words `k` with bits $c$ of words `k + b`, where the mask has $c$.
#[inline(always)]
fn exchange<const B: usize, const U: usize>(x: &mut [[u64; 8]; 8], mask: u64) {
    for k in (0..8).filter(|k| k & B == 0) {
        for l in 0..8 {
            let t = (x[k][l] >> (U * B) ^ x[k + B][l]) & mask;
            x[k + B][l] ^= t;
            x[k][l] ^= t << (U * B);
        }
    }
}

fast! {
    /// Adds how many of the bits of `mask` each word has.
    pub(crate) fn add_counts[](words: &[u64], mask: u64, counts: &mut [u32])
        = add_counts_portable;
}

#[inline(always)]
fn add_counts_portable(words: &[u64], mask: u64, counts: &mut [u32]) {
    counts.iter_mut().zip(words).for_each(|(c, w)| *c += (w & mask).count_ones());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbitrary::bits;

    #[test]
    fn bits_come_back_at_every_width() {
        for columns in 0..=130 {
            let on = |r: usize, c: usize| (r * 7 + c * 3).is_multiple_of(5);
            let mut pushed = BitMatrix::zeros(0, columns);
            let mut set = BitMatrix::zeros(4, columns);
            for r in 0..4 {
                pushed.push_row(|c| on(r, c));
                for c in 0..columns {
                    set.set(r, c, true);
                    set.set(r, c, on(r, c));
                }
            }
            assert_eq!(pushed, set);
            let mut total = 0;
            for r in 0..4 {
                let mut row = vec![9.0; columns];
                pushed.unpack_row_into(r, &mut row);
                for (c, &x) in row.iter().enumerate() {
                    assert_eq!(x == 1.0, on(r, c));
                    assert_eq!(pushed.get(r, c), on(r, c));
                    total += u64::from(on(r, c));
                }
            }
            assert_eq!(pushed.count_ones(), total);
        }
    }

    #[test]
    fn rows_of_words_are_rows_of_bits() {
        for columns in 0..=130 {
            let matrix = bits(5, columns, 0.5, 1);
            let mut pushed = BitMatrix::zeros(2, columns);
            pushed.clear();
            (0..5).for_each(|r| pushed.push_words(matrix.row(r)));
            assert_eq!(pushed, matrix);
            pushed.clear();
            for r in 0..5 {
                let on = (0..columns).map(|c| matrix.get(r, c));
                let bytes: Vec<u8> = on.zip(100..).map(|(on, b)| if on { b } else { 99 }).collect();
                pushed.push_bytes(&bytes, |b| b >= 100);
            }
            assert_eq!(pushed, matrix);
            let mut copy = BitMatrix::zeros(5, columns);
            copy.copy_from(&matrix);
            assert_eq!(copy, matrix);
            copy.swap_rows(1, 4);
            copy.swap_rows(2, 2);
            for (r, from) in [0, 4, 2, 3, 1].into_iter().enumerate() {
                assert_eq!(copy.row(r), matrix.row(from));
            }
        }
    }

    #[test]
    fn panels_overwrite_their_columns_and_nothing_else() {
        for columns in 1..=130 {
            let old = bits(4, columns, 0.5, 1);
            for panel in 0..columns.div_ceil(64) {
                let mut new = old.clone();
                let words = [0, u64::MAX, 0x0123_4567_89ab_cdef, 1 << 63];
                new.set_panel(panel, &words);
                for (r, word) in words.into_iter().enumerate() {
                    for c in 0..columns {
                        let inside = c / 64 == panel;
                        let expected =
                            if inside { word >> (c % 64) & 1 == 1 } else { old.get(r, c) };
                        assert_eq!(new.get(r, c), expected, "row {r}, column {c} of {columns}");
                    }
                    let last = new.row(r).last().expect("there is a column");
                    assert!(columns % 64 == 0 || last >> (columns % 64) == 0, "stray bits");
                }
            }
        }
    }

    #[test]
    fn columns_are_counted() {
        for columns in 0..=130 {
            let matrix = bits(7, columns, 0.4, 2);
            let mut counts = vec![10; columns];
            matrix.add_column_counts(&mut counts);
            for (c, count) in (0..columns).zip(counts) {
                let ones = (0..7).filter(|&r| matrix.get(r, c)).count();
                assert_eq!(count as usize, 10 + ones);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |change: fn(&mut BitMatrix)| {
            std::panic::catch_unwind(|| change(&mut BitMatrix::zeros(3, 70))).is_err()
        };
        assert!(!refused(|m| m.push_words(&[u64::MAX, 0x3f])));
        assert!(refused(|m| m.push_words(&[0, 0x40])));
        assert!(refused(|m| m.push_words(&[0])));
        assert!(!refused(|m| m.set_panel(1, &[0; 3])));
        assert!(refused(|m| m.set_panel(2, &[0; 3])));
        assert!(refused(|m| m.set_panel(1, &[0; 2])));
        assert!(refused(|m| m.add_column_counts(&mut [0; 69])));
        assert!(refused(|m| m.swap_rows(0, 3)));
        assert!(refused(|m| m.copy_from(&BitMatrix::zeros(3, 71))));
        assert!(refused(|m| m.set(0, 70, true)));
    }
}
