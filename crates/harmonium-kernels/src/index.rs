//! Packed bits as index words for the tables.

use crate::bits::{BitMatrix, add_counts, columns_of};
use crate::dispatch::fast;
use crate::lists::Lists;
use crate::pairs::{self, FillStrip, Listing, Pairs, Strip};
use crate::tables::{BLOCK, CHUNK};

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
        assert!((1..=64).contains(&chunk), "a word holds at most 64 rows");
        let (n_rows, n) = (bits.n_rows(), bits.n_columns());
        self.n = n;
        self.words.resize(n_rows.div_ceil(chunk) * n, 0);
        for (k, out) in self.words.chunks_mut(n.max(1)).enumerate() {
            let rows = k * chunk..n_rows.min((k + 1) * chunk);
            for (w, out) in out.chunks_mut(64).enumerate() {
                let columns = columns_of(bits, rows.clone(), w);
                out.copy_from_slice(&columns.as_flattened()[..out.len()]);
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

    /// Tells how many bits each column has, after [`Words::fill_columns`]: up to 64 columns at a
    /// time, and which is the first.
    pub fn each_count(&self, mut tell: impl FnMut(usize, &[u32])) {
        let n_chunks = self.words.len().checked_div(self.n).unwrap_or(0);
        let mut counts = [0; 64];
        for first in (0..self.n).step_by(64) {
            let counts = &mut counts[..64.min(self.n - first)];
            counts.fill(0);
            for k in 0..n_chunks {
                add_counts(&self.words[k * self.n + first..][..counts.len()], u64::MAX, counts);
            }
            tell(first, counts);
        }
    }

    /// Counts the rows that have column `c` and each of the columns of `other` from `first` on, after
    /// [`Words::fill_columns`] of the same chunk for both: one instruction for the bits of 64 rows.
    ///
    /// # Panics
    ///
    /// If there are no such columns. Rows that only one of the two has are not counted.
    pub fn count_common(&self, c: usize, other: &Self, first: usize, counts: &mut [u32]) {
        counts.fill(0);
        let columns = self.words.chunks(self.n.max(1)).zip(other.words.chunks(other.n.max(1)));
        for (mine, theirs) in columns {
            add_counts(&theirs[first..first + counts.len()], mine[c], counts);
        }
    }

    /// The words.
    pub fn as_slice(&self) -> &[u64] {
        &self.words
    }
}

fn rows<'a>(parts: &'a [&'a BitMatrix]) -> impl Iterator<Item = &'a [u64]> + Clone + Sync {
    parts.iter().flat_map(|p| (0..p.n_rows()).map(|r| p.row(r)))
}

/// Samples of bits in the form that is cheapest to multiply.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    words: Words,
    lists: Lists,
    pairs: Pairs,
    used: Used,
    kind: Kind,
    n: usize,
}

/// Which form [`Samples`] were put into.
#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    #[default]
    Words,
    Lists,
    Pairs,
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
    /// Marks the columns and says how many bits the samples have, and how many pairs; their numbers
    /// come with [`Used::number`].
    fn mark(&mut self, parts: &[&BitMatrix]) -> Counts {
        self.mask.clear();
        self.mask.resize(parts.first().map_or(0, |p| p.words_per_row()), 0);
        let mut counts = Counts::default();
        for row in rows(parts) {
            mark_row(row, &mut self.mask, &mut counts);
        }
        counts.used = self.mask.iter().map(|m| m.count_ones() as usize).sum();
        counts
    }

    fn number(&mut self) {
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

/// What decides which form is cheapest.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    ones: usize,
    pairs: usize,
    used: usize,
}

fast! {
    fn mark_row[](row: &[u64], mask: &mut [u64], counts: &mut Counts) = mark_row_portable;
}

#[inline(always)]
fn mark_row_portable(row: &[u64], mask: &mut [u64], counts: &mut Counts) {
    for (mask, &word) in mask.iter_mut().zip(row) {
        *mask |= word;
        counts.ones += word.count_ones() as usize;
        counts.pairs += pairs::of(word).count_ones() as usize;
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
    /// As lists of pairs.
    Pairs(&'a Pairs),
}

impl Samples {
    /// Takes up the rows of stacked matrices, choosing the form by their number and density and by
    /// what they are to be multiplied with.
    ///
    /// # Panics
    ///
    /// If the matrices have different widths.
    pub fn fill(&mut self, parts: &[&BitMatrix], entries: Entries) {
        self.fill_by(parts, entries, one_by_one);
    }

    /// The same, with the strips of pairs filled by `spread`: see [`Pairs::fill`].
    ///
    /// # Panics
    ///
    /// If the matrices have different widths.
    pub fn fill_by(
        &mut self,
        parts: &[&BitMatrix],
        entries: Entries,
        spread: impl FnOnce(&mut [Strip], &mut Listing, &FillStrip<'_>),
    ) {
        self.n = parts.iter().map(|p| p.n_rows()).sum();
        let n_columns = parts.first().map_or(0, |p| p.n_columns());
        assert!(parts.iter().all(|p| p.n_columns() == n_columns), "stacked rows have one width");
        let counts = self.used.mark(parts);
        self.kind = Kind::cheapest(counts, self.n, n_columns, entries);
        match self.kind {
            Kind::Words => {
                self.used.number();
                self.words.fill_used(parts, &self.used);
            }
            Kind::Lists => self.lists.fill(rows(parts), (self.n, n_columns), counts.ones),
            Kind::Pairs => self.pairs.fill(&rows(parts), n_columns, &self.used.mask, spread),
        }
    }

    /// Number of samples.
    pub fn n_rows(&self) -> usize {
        self.n
    }

    /// The bits.
    pub fn form(&self) -> Form<'_> {
        match self.kind {
            Kind::Words => Form::Words(self.words.as_slice(), &self.used),
            Kind::Lists => Form::Lists(&self.lists),
            Kind::Pairs => Form::Pairs(&self.pairs),
        }
    }
}

/// Fills one strip after the other on this thread.
pub(crate) fn one_by_one(strips: &mut [Strip], listing: &mut Listing, fill: &FillStrip<'_>) {
    strips.iter_mut().enumerate().for_each(|(s, strip)| fill(s, strip, listing));
}

/// What the samples are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// Quantised weights, 32 columns at a time.
    Quantised,
    /// Weights of single precision, 32 columns at a time as lists and 16 as tables or pairs.
    Single,
}

/// About how many cycles a tile of 32 columns takes by each form, fitted on one core (Zen 3, AVX2).
struct Costs {
    /// A table of five rows: for each sample, and to build it.
    table: [f64; 2],
    /// For each pair that a sample has, each sample in each column, and each column.
    pair: [f64; 3],
    /// For each set bit, each sample in each column, and each column that is used.
    list: [f64; 3],
}

const QUANTISED: Costs =
    Costs { table: [1.6, 75.0], pair: [1.3, 0.045, 3.0], list: [2.7, 0.08, 0.0] };
const SINGLE: Costs =
    Costs { table: [2.9, 142.0], pair: [2.6, 0.09, 13.0], list: [2.8, 0.25, 2.5] };

impl Kind {
    fn cheapest(counts: Counts, n: usize, n_columns: usize, entries: Entries) -> Self {
        let Costs { table, pair, list } = match entries {
            Entries::Quantised => QUANTISED,
            Entries::Single => SINGLE,
        };
        let [ones, pairs, used, rows, columns] =
            [counts.ones, counts.pairs, counts.used, n, n_columns].map(|x| x as f64);
        let by_tables = used / 5.0 * (table[0] * rows + table[1]);
        // Four samples go together, however few there are.
        let filled = n.next_multiple_of(4) as f64;
        let by_pairs =
            pair[0] * pairs * filled / rows.max(1.0) + columns * (pair[1] * filled + pair[2]);
        let by_lists = list[0] * ones + list[1] * columns * rows + list[2] * used;
        if by_tables <= by_pairs.min(by_lists) {
            Self::Words
        } else if by_pairs <= by_lists {
            Self::Pairs
        } else {
            Self::Lists
        }
    }
}

fast! {
    /// Writes the used bits of one row, [`CHUNK`] to a word and words `stride` apart, each block
    /// on its own.
    fn gather_used[](row: &[u64], mask: &[u64], at: usize, stride: usize, out: &mut [u64])
        = gather_used_portable, wide x86::bmi2::gather_used;
}

#[inline(always)]
fn gather_used_portable(row: &[u64], mask: &[u64], at: usize, stride: usize, out: &mut [u64]) {
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

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;
