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
/// Words whose rows of single precision, 32 columns each, stay in the nearest cache.
const STRIP: usize = 2;

impl Lists {
    /// Reads the rows of `bits` (words, `per_row` to each), `n_bits` bits to a row.
    #[expect(clippy::needless_pass_by_value, reason = "what can be cloned for each block is small")]
    pub fn fill<'a>(&mut self, rows: impl Iterator<Item = &'a [u64]> + Clone, n_bits: usize) {
        self.positions.clear();
        self.starts.clear();
        self.starts.push(0);
        // Blocks hold whole words: 320 = 5 * 64.
        for block in (0..n_bits.div_ceil(64)).step_by(WORDS) {
            for row in rows.clone() {
                for (w, base) in (block..block + WORDS).zip((0_u16..).step_by(64)) {
                    let mut word = row.get(w).copied().unwrap_or(0);
                    while word != 0 {
                        #[expect(clippy::cast_possible_truncation, reason = "below 64")]
                        self.positions.push(base + word.trailing_zeros() as u16);
                        word &= word - 1;
                    }
                    #[expect(
                        clippy::cast_possible_truncation,
                        reason = "a batch has fewer set bits"
                    )]
                    self.starts.push(self.positions.len() as u32);
                }
            }
        }
    }

    /// Those of words `words` of a block in sample `r` of `n`.
    pub(crate) fn of(&self, block: usize, n: usize, r: usize, words: Range<usize>) -> &[u16] {
        let at = (block * n + r) * WORDS;
        let (start, end) = (self.starts[at + words.start], self.starts[at + words.end]);
        &self.positions[start as usize..end as usize]
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
