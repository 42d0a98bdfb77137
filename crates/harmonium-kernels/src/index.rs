//! Packed bits as index words for the tables.

use crate::bits::BitMatrix;
use crate::tables::{CHUNK, Lists};
use std::ops::Range;

const MASK: u64 = (1 << CHUNK) - 1;

/// Index words: [`CHUNK`] bits each, all samples of a chunk next to each other.
#[derive(Clone, Debug, Default)]
pub struct Words {
    n: usize,
    words: Vec<u64>,
}

impl Words {
    /// Words along the rows of stacked matrices of one width: word `k * n_rows + r` holds columns
    /// `40 k..40 k + 40` of row `r`.
    ///
    /// # Panics
    ///
    /// If the matrices differ in width.
    pub fn fill_rows(&mut self, parts: &[&BitMatrix]) {
        let n_columns = parts.first().map_or(0, |p| p.n_columns());
        assert!(parts.iter().all(|p| p.n_columns() == n_columns), "stacked rows have one width");
        self.n = parts.iter().map(|p| p.n_rows()).sum();
        let n_chunks = n_columns.div_ceil(CHUNK);
        self.words.resize(n_chunks * self.n, 0);
        for (r, row) in rows(parts).enumerate() {
            for k in 0..n_chunks {
                let (word, bit) = (k * CHUNK / 64, k * CHUNK % 64);
                let mut x = row[word] >> bit;
                if bit + CHUNK > 64 && word + 1 < row.len() {
                    x |= row[word + 1] << (64 - bit);
                }
                self.words[k * self.n + r] = x & MASK;
            }
        }
    }

    /// Words down the columns of a matrix: word `k * n_columns + c` holds rows
    /// `chunk k..chunk k + chunk` of column `c`.
    ///
    /// # Panics
    ///
    /// If a word cannot hold the chunk.
    pub fn fill_columns(&mut self, bits: &BitMatrix, chunk: usize) {
        assert!(chunk <= 64 && chunk.is_multiple_of(4), "a word holds at most 64 rows");
        let (n_rows, n) = (bits.n_rows(), bits.n_columns());
        self.n = n;
        self.words.clear();
        self.words.resize(n_rows.div_ceil(chunk) * n, 0);
        for (k, out) in self.words.chunks_mut(n.max(1)).enumerate() {
            let end = n_rows.min((k + 1) * chunk);
            for first in (k * chunk..end).step_by(8) {
                add_eight_rows(bits, first..end.min(first + 8), first - k * chunk, out);
            }
        }
    }

    /// The words.
    pub fn as_slice(&self) -> &[u64] {
        &self.words
    }
}

/// Puts up to eight rows into the words of their columns, from bit `shift` on.
fn add_eight_rows(bits: &BitMatrix, rows: Range<usize>, shift: usize, out: &mut [u64]) {
    for (w, out) in out.chunks_mut(64).enumerate() {
        let mut words = [0; 8];
        for (word, r) in words.iter_mut().zip(rows.clone()) {
            *word = bits.row(r)[w];
        }
        for (byte, out) in out.chunks_mut(8).enumerate() {
            let mut square = 0;
            for (k, word) in words.iter().enumerate() {
                square |= (word >> (8 * byte) & 0xff) << (8 * k);
            }
            let square = transpose_8(square);
            for (c, o) in out.iter_mut().enumerate() {
                *o |= (square >> (8 * c) & 0xff) << shift;
            }
        }
    }
}

/// Transposes 8 × 8 bits (Hacker's Delight, 7–3).
#[inline]
fn transpose_8(mut x: u64) -> u64 {
    for (shift, mask) in
        [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)]
    {
        let t = (x ^ (x >> shift)) & mask;
        x ^= t ^ (t << shift);
    }
    x
}

fn rows<'a>(parts: &'a [&'a BitMatrix]) -> impl Iterator<Item = &'a [u64]> + Clone {
    parts.iter().flat_map(|p| (0..p.n_rows()).map(|r| p.row(r)))
}

/// Samples of bits in the form that is cheapest to multiply.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    words: Words,
    lists: Lists,
    listed: bool,
    n: usize,
}

/// How [`Samples`] hold their bits.
#[derive(Clone, Copy, Debug)]
pub enum Form<'a> {
    /// As index words for tables.
    Words(&'a [u64]),
    /// As lists of set bits.
    Lists(&'a Lists),
}

impl Samples {
    /// Takes up the rows of stacked matrices, choosing the form by their number and density.
    ///
    /// A table costs about 40 additions to build for 5 rows of weights and then one per sample; a
    /// list costs a little more than one per set bit.
    pub fn fill(&mut self, parts: &[&BitMatrix]) {
        self.n = parts.iter().map(|p| p.n_rows()).sum();
        let n_columns = parts.first().map_or(0, |p| p.n_columns());
        let ones: u64 = parts.iter().map(|p| p.count_ones()).sum();
        let by_tables = n_columns as f64 / 5.0 * (self.n as f64 + BUILD);
        self.listed = ones as f64 * LISTED < by_tables;
        if self.listed {
            self.lists.fill(rows(parts), n_columns);
        } else {
            self.words.fill_rows(parts);
        }
    }

    /// Number of samples.
    pub fn n_rows(&self) -> usize {
        self.n
    }

    /// The bits.
    pub fn form(&self) -> Form<'_> {
        if self.listed { Form::Lists(&self.lists) } else { Form::Words(self.words.as_slice()) }
    }
}

/// Additions that building a table of 5 rows costs.
const BUILD: f64 = 40.0;
/// What a listed addition costs against one from a table.
const LISTED: f64 = 1.3;

#[cfg(test)]
mod tests;
