//! Bits times numbers by lists of set bits: for few samples or sparse ones, for which building
//! tables would cost more than it saves.

use crate::dispatch::fast;
use crate::line::{Element, HALF, TILE, Wide};
use crate::tables::{BLOCK, add, half_of, widen};

/// Lists of the set bits of each sample, block by block: for few samples or sparse ones.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// Positions inside their block.
    positions: Vec<u16>,
    /// `starts[block * n + r]..starts[block * n + r + 1]`.
    starts: Vec<u32>,
}

impl Lists {
    /// Reads the rows of `bits` (words, `per_row` to each), `n_bits` bits to a row.
    #[expect(clippy::needless_pass_by_value, reason = "what can be cloned for each block is small")]
    pub fn fill<'a>(&mut self, rows: impl Iterator<Item = &'a [u64]> + Clone, n_bits: usize) {
        self.positions.clear();
        self.starts.clear();
        self.starts.push(0);
        // Blocks hold whole words: 320 = 5 * 64.
        for block in (0..n_bits.div_ceil(64)).step_by(BLOCK / 64) {
            for row in rows.clone() {
                let words = &row[block..row.len().min(block + BLOCK / 64)];
                for (base, &word) in (0_u16..).step_by(64).zip(words) {
                    let mut word = word;
                    while word != 0 {
                        #[expect(clippy::cast_possible_truncation, reason = "below 64")]
                        self.positions.push(base + word.trailing_zeros() as u16);
                        word &= word - 1;
                    }
                }
                #[expect(clippy::cast_possible_truncation, reason = "a batch has fewer set bits")]
                self.starts.push(self.positions.len() as u32);
            }
        }
    }

    pub(crate) fn of(&self, block: usize, n: usize, r: usize) -> &[u16] {
        let at = block * n + r;
        &self.positions[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

fast! {
    /// What [`add_single`] does, for bits given as lists.
    ///
    /// # Panics
    ///
    /// If the lists are of fewer samples or rows.
    pub fn add_single_listed[<'a, R: Fn(usize) -> &'a [f32; HALF] + Copy>](
        lists: &Lists,
        n_rows: usize,
        row: R,
        gain: f32,
        half: usize,
        theta: &mut [Wide],
    ) = add_single_listed_portable;
}

#[inline(always)]
pub(crate) fn add_single_listed_portable<'a, R: Fn(usize) -> &'a [f32; HALF] + Copy>(
    lists: &Lists,
    n_rows: usize,
    row: R,
    gain: f32,
    half: usize,
    theta: &mut [Wide],
) {
    assert!(half < 2, "add_single_listed: a tile has two halves");
    let n = theta.len();
    for (block, first) in (0..n_rows).step_by(BLOCK).enumerate() {
        for (r, theta) in theta.iter_mut().enumerate() {
            let sum = listed(lists.of(block, n, r), first, row);
            let theta = half_of(theta, half);
            for l in 0..HALF {
                theta[l] = sum[l].mul_add(gain, theta[l]);
            }
        }
    }
}

fast! {
    /// What [`add_quantised`] does, for bits given as lists.
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
            let sum = listed(lists.of(block, n, r), first, row);
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
