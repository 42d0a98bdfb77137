//! Packed bits as index words for the tables.

use crate::bits::BitMatrix;
use crate::dispatch::fast;
use crate::lists::Lists;
use crate::tables::{BLOCK, CHUNK};
use std::ops::Range;

const MASK: u64 = (1 << CHUNK) - 1;

/// Index words: [`CHUNK`] bits each, all samples of a chunk next to each other.
#[derive(Clone, Debug, Default)]
pub struct Words {
    n: usize,
    words: Vec<u64>,
}

impl Words {
    /// Words along the rows of stacked matrices, columns that nobody uses left out.
    fn fill_used(&mut self, parts: &[&BitMatrix], used: &Used) {
        self.n = parts.iter().map(|p| p.n_rows()).sum();
        let n = self.n;
        let chunks = (0..used.n_blocks()).map(|b| used.block(b).len().div_ceil(CHUNK));
        self.words.resize(chunks.sum::<usize>() * n, 0);
        for (r, row) in rows(parts).enumerate() {
            gather_used(row, &used.mask, r, n, &mut self.words);
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

    /// Keeps the columns named, which rise.
    ///
    /// # Panics
    ///
    /// If they do not, or there is no such column.
    pub fn keep_columns(&mut self, columns: &[u32]) {
        assert!(columns.is_sorted_by(|a, b| a < b), "keep_columns: columns rise");
        let beyond = columns.last().is_some_and(|&c| c as usize >= self.n);
        assert!(!beyond, "keep_columns: there are {} columns", self.n);
        let n = self.n.max(1);
        let n_chunks = self.words.len() / n;
        // Columns rise, so what is read has not been overwritten.
        for k in 0..n_chunks {
            for (at, &c) in columns.iter().enumerate() {
                self.words[k * columns.len() + at] = self.words[k * n + c as usize];
            }
        }
        self.words.truncate(n_chunks * columns.len());
        self.n = columns.len();
    }

    /// Tells how many bits each column has, after [`Words::fill_columns`].
    pub fn each_count(&self, mut tell: impl FnMut(u32)) {
        let n_chunks = self.words.len().checked_div(self.n).unwrap_or(0);
        let mut counts = [0; 64];
        for first in (0..self.n).step_by(64) {
            let counts = &mut counts[..64.min(self.n - first)];
            counts.fill(0);
            for k in 0..n_chunks {
                add_counts(&self.words[k * self.n + first..][..counts.len()], counts);
            }
            counts.iter().for_each(|c| tell(*c));
        }
    }

    /// The words.
    pub fn as_slice(&self) -> &[u64] {
        &self.words
    }
}

fast! {
    fn add_counts[](words: &[u64], counts: &mut [u32]) = add_counts_portable;
}

#[inline(always)]
fn add_counts_portable(words: &[u64], counts: &mut [u32]) {
    counts.iter_mut().zip(words).for_each(|(c, w)| *c += w.count_ones());
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
    used: Used,
    listed: bool,
    n: usize,
}

/// The columns that at least one sample has, block by block.
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// Their numbers.
    columns: Vec<u32>,
    /// `starts[block]..starts[block + 1]` of them belong to a block.
    starts: Vec<usize>,
    /// One bit for each column.
    mask: Vec<u64>,
}

impl Used {
    fn fill(&mut self, parts: &[&BitMatrix]) {
        self.mask.clear();
        self.mask.resize(parts.first().map_or(0, |p| p.words_per_row()), 0);
        for row in rows(parts) {
            self.mask.iter_mut().zip(row).for_each(|(m, w)| *m |= w);
        }
        self.columns.clear();
        self.starts.clear();
        self.starts.push(0);
        for (block, mask) in self.mask.chunks(BLOCK / 64).enumerate() {
            for (w, &word) in mask.iter().enumerate() {
                let mut word = word;
                while word != 0 {
                    let column = block * BLOCK + w * 64 + word.trailing_zeros() as usize;
                    self.columns.push(u32::try_from(column).unwrap_or(u32::MAX));
                    word &= word - 1;
                }
            }
            self.starts.push(self.columns.len());
        }
    }

    /// The columns of a block that some sample has.
    #[inline]
    pub fn block(&self, block: usize) -> &[u32] {
        &self.columns[self.starts[block]..self.starts[block + 1]]
    }

    /// Number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
}

/// How [`Samples`] hold their bits.
#[derive(Clone, Copy, Debug)]
pub enum Form<'a> {
    /// As index words for tables over the columns that are used: in each block [`CHUNK`] of them
    /// to a word, the words of a block after those of the blocks before it.
    Words(&'a [u64], &'a Used),
    /// As lists of set bits.
    Lists(&'a Lists),
}

impl Samples {
    /// Takes up the rows of stacked matrices, choosing the form by their number and density.
    ///
    /// A table costs about 40 additions to build for 5 rows of weights and then one per sample; a
    /// list costs nearly two per set bit.
    ///
    /// # Panics
    ///
    /// If the matrices have different widths.
    pub fn fill(&mut self, parts: &[&BitMatrix]) {
        self.n = parts.iter().map(|p| p.n_rows()).sum();
        let n_columns = parts.first().map_or(0, |p| p.n_columns());
        assert!(parts.iter().all(|p| p.n_columns() == n_columns), "stacked rows have one width");
        let ones: u64 = parts.iter().map(|p| p.count_ones()).sum();
        self.used.fill(parts);
        let by_tables = self.used.columns.len() as f64 / 5.0 * (self.n as f64 + BUILD);
        self.listed = ones as f64 * LISTED < by_tables;
        if self.listed {
            let ones = usize::try_from(ones).unwrap_or(usize::MAX);
            self.lists.fill(rows(parts), (self.n, n_columns), ones);
        } else {
            self.words.fill_used(parts, &self.used);
        }
    }

    /// Number of samples.
    pub fn n_rows(&self) -> usize {
        self.n
    }

    /// The bits.
    pub fn form(&self) -> Form<'_> {
        if self.listed {
            Form::Lists(&self.lists)
        } else {
            Form::Words(self.words.as_slice(), &self.used)
        }
    }
}

/// Additions that building a table of 5 rows costs.
const BUILD: f64 = 40.0;
/// What a listed addition costs against one from a table.
const LISTED: f64 = 1.9;

fast! {
    /// Writes the used bits of one row, [`CHUNK`] to a word and words `stride` apart, each block
    /// on its own.
    fn gather_used[](row: &[u64], mask: &[u64], at: usize, stride: usize, out: &mut [u64])
        = gather_used_portable, wide gather_used_wide;
}

#[inline(always)]
fn gather_used_portable(row: &[u64], mask: &[u64], at: usize, stride: usize, out: &mut [u64]) {
    gather_used_by(extract, row, mask, at, stride, out);
}

#[inline(always)]
#[cfg(target_arch = "x86_64")]
fn gather_used_wide(row: &[u64], mask: &[u64], at: usize, stride: usize, out: &mut [u64]) {
    let extract = |word, mask| {
        #[expect(unsafe_code, reason = "the instruction needs it")]
        // SAFETY: the caller is compiled for BMI2 and runs only where it was detected.
        unsafe {
            std::arch::x86_64::_pext_u64(word, mask)
        }
    };
    gather_used_by(extract, row, mask, at, stride, out);
}

#[inline(always)]
fn gather_used_by(
    extract: impl Fn(u64, u64) -> u64,
    row: &[u64],
    mask: &[u64],
    mut at: usize,
    stride: usize,
    out: &mut [u64],
) {
    for (mask, words) in mask.chunks(BLOCK / 64).zip(row.chunks(BLOCK / 64)) {
        // Bits that wait for a full word.
        let (mut waiting, mut n_waiting) = (0_u64, 0);
        for (&word, &mask) in words.iter().zip(mask) {
            let (mut bits, mut n_bits) = (extract(word, mask), mask.count_ones() as usize);
            while n_waiting + n_bits >= CHUNK {
                let taken = CHUNK - n_waiting;
                out[at] = (waiting | bits << n_waiting) & MASK;
                at += stride;
                (waiting, n_waiting) = (0, 0);
                bits = if taken < 64 { bits >> taken } else { 0 };
                n_bits -= taken;
            }
            waiting |= bits << n_waiting;
            n_waiting += n_bits;
        }
        if n_waiting > 0 {
            out[at] = waiting;
            at += stride;
        }
    }
}

/// Moves the bits of `word` that `mask` has next to each other.
#[inline(always)]
fn extract(word: u64, mut mask: u64) -> u64 {
    let (mut out, mut at) = (0, 0);
    while mask != 0 {
        let bit = mask.trailing_zeros();
        out |= (word >> bit & 1) << at;
        at += 1;
        mask &= mask - 1;
    }
    out
}

#[cfg(test)]
mod tests;
