//! Bits times numbers by lists of set bits: for few samples or sparse ones, for which building
//! tables would cost more than it saves.

use crate::dispatch::fast;
use crate::line::{Element, TILE, Wide};
use crate::tables::{BLOCK, add, widen};
use std::ops::Range;

/// Lists of the set bits of each sample, block by block: for few samples or sparse ones.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// Positions inside their block.
    positions: Vec<u16>,
    /// Word `w` of a block in sample `r` begins at `starts[(block * n + r) * WORDS + w]`.
    starts: Vec<u32>,
}

/// Words of a block.
const WORDS: usize = BLOCK / 64;
/// Bits that are listed at once: a loop that ends after each would seldom be foreseen.
const AHEAD: usize = 8;
/// Words whose rows of single precision, 32 columns each, stay in the nearest cache.
const STRIP: usize = 2;

impl Lists {
    /// Reads `n` rows of `n_bits` bits, in words, with `ones` bits set in all.
    ///
    /// # Panics
    ///
    /// If there are more rows, or more bits set.
    pub fn fill<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a [u64]> + Clone,
        (n, n_bits): (usize, usize),
        ones: usize,
    ) {
        self.positions.resize(ones + AHEAD, 0);
        self.starts.resize(n_bits.div_ceil(64 * WORDS) * n * WORDS + 1, 0);
        list(rows, (n, n_bits.div_ceil(64)), &mut self.positions, &mut self.starts);
    }

    /// Those of words `words` of a block in sample `r` of `n`.
    pub(crate) fn of(&self, block: usize, n: usize, r: usize, words: Range<usize>) -> &[u16] {
        let at = (block * n + r) * WORDS;
        let (start, end) = (self.starts[at + words.start], self.starts[at + words.end]);
        &self.positions[start as usize..end as usize]
    }
}

fast! {
    /// Lists the set bits of `n` rows of `n_words` words, as [`Lists`] holds them.
    fn list[<'a, I: Iterator<Item = &'a [u64]> + Clone>](
        rows: I,
        shape: (usize, usize),
        positions: &mut [u16],
        starts: &mut [u32],
    ) = list_portable;
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a batch has fewer set bits")]
#[expect(clippy::needless_pass_by_value, reason = "what can be cloned for each block is small")]
fn list_portable<'a, I: Iterator<Item = &'a [u64]> + Clone>(
    rows: I,
    (n, n_words): (usize, usize),
    positions: &mut [u16],
    starts: &mut [u32],
) {
    let mut at = 0;
    // Blocks hold whole words: 320 = 5 * 64.
    for (block, first) in (0..n_words).step_by(WORDS).enumerate() {
        let starts = starts[block * n * WORDS..].as_chunks_mut::<WORDS>().0;
        for (row, starts) in rows.clone().zip(starts) {
            let words = &row[first..n_words.min(first + WORDS)];
            for (w, start) in starts.iter_mut().enumerate() {
                *start = at as u32;
                let Some(&word) = words.get(w) else { continue };
                let (mut word, mut next) = (word, at);
                at += word.count_ones() as usize;
                while next < at {
                    // What stands beyond the last bit is written over.
                    for position in &mut positions[next..next + AHEAD] {
                        *position = (64 * w) as u16 + word.trailing_zeros() as u16;
                        word &= word.wrapping_sub(1);
                    }
                    next += AHEAD;
                }
            }
        }
    }
    if let Some(end) = starts.last_mut() {
        *end = at as u32;
    }
}

fast! {
    /// What [`crate::tables::add_single`] does for both halves of a tile, for bits given as lists. Rows pass in
    /// strips that stay in the nearest cache while all samples pick from them.
    ///
    /// # Panics
    ///
    /// If the lists are of fewer samples or rows.
    pub fn add_single_listed[<'a, R: Fn(usize) -> &'a [f32; TILE] + Copy>](
        lists: &Lists,
        n_rows: usize,
        row: R,
        gain: f32,
        theta: &mut [Wide],
    ) = add_single_listed_portable;
}

#[inline(always)]
pub(crate) fn add_single_listed_portable<'a, R: Fn(usize) -> &'a [f32; TILE] + Copy>(
    lists: &Lists,
    n_rows: usize,
    row: R,
    gain: f32,
    theta: &mut [Wide],
) {
    let n = theta.len();
    for (block, first) in (0..n_rows).step_by(BLOCK).enumerate() {
        for word in (0..WORDS.min((n_rows - first).div_ceil(64))).step_by(STRIP) {
            for (r, theta) in theta.iter_mut().enumerate() {
                let list = lists.of(block, n, r, word..WORDS.min(word + STRIP));
                let sum = listed(list, first, row);
                for l in 0..TILE {
                    theta.0[l] = sum[l].mul_add(gain, theta.0[l]);
                }
            }
        }
    }
}

fast! {
    /// What [`crate::tables::add_quantised`] does, for bits given as lists.
    ///
    /// # Panics
    ///
    /// If the lists are of fewer samples or rows, or there are fewer units than blocks.
    pub fn add_quantised_listed[<'a, R: Fn(usize) -> &'a [i16; TILE] + Copy>](
        lists: &Lists,
        n_rows: usize,
        row: R,
        unit: &[f32],
        theta: &mut [Wide],
    ) = add_quantised_listed_portable;
}

#[inline(always)]
pub(crate) fn add_quantised_listed_portable<'a, R: Fn(usize) -> &'a [i16; TILE] + Copy>(
    lists: &Lists,
    n_rows: usize,
    row: R,
    unit: &[f32],
    theta: &mut [Wide],
) {
    assert!(unit.len() >= n_rows.div_ceil(BLOCK), "add_quantised_listed: a unit for each block");
    let n = theta.len();
    for (block, (first, &unit)) in (0..n_rows).step_by(BLOCK).zip(unit).enumerate() {
        for (r, theta) in theta.iter_mut().enumerate() {
            let sum = listed(lists.of(block, n, r, 0..WORDS), first, row);
            widen::<1>(&sum, unit, &Wide::ZERO, theta);
        }
    }
}

/// The sum of the rows listed, in two alternating sums.
#[inline(always)]
fn listed<'a, T: Element + 'a, const L: usize>(
    list: &[u16],
    first: usize,
    row: impl Fn(usize) -> &'a [T; L],
) -> [T; L] {
    let (mut a, mut b) = ([T::ZERO; L], [T::ZERO; L]);
    let (pairs, last) = list.as_chunks::<2>();
    for pair in pairs {
        add(&mut a, row(first + pair[0] as usize));
        add(&mut b, row(first + pair[1] as usize));
    }
    for &i in last {
        add(&mut a, row(first + i as usize));
    }
    add(&mut a, &b);
    a
}
