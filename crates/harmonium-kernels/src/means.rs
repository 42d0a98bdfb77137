//! Means times quantised weights, in whole numbers of 16 bits.
//!
//! $$\theta_{rl} \mathrel{+}= \sum_b u_b \sum_{i \in b} \hat m_{ri} q_{il},\qquad
//!   \hat m = 2^{-14}\lfloor 2^{14} m \rceil.$$
//!
//! One instruction multiplies sixteen pairs of 16 bits and adds neighbours, so two rows of weights
//! stand interleaved: twice the products of single precision. Nothing overflows: $|q|$ sums to less
//! than $2^{16}$ over a block, as quantised weights are made, and a mean is at most $2^{14}$.

use crate::dispatch::fast;
use crate::line::{Sums, TILE, Wide};
use crate::tables::BLOCK;

/// What a mean of 1 is rounded to.
const ONE: f32 = 16_384.0;

/// Means of `n` rows, rounded, two neighbours to a word.
#[derive(Clone, Debug, Default)]
pub struct Means {
    words: Vec<u32>,
    per_row: usize,
}

impl Means {
    /// Takes up rows of `len` numbers that `scale` makes means of, between 0 and 1.
    ///
    /// # Panics
    ///
    /// If `len` is zero.
    pub fn fill(&mut self, values: &[f32], len: usize, scale: f32) {
        self.per_row = len.div_ceil(2);
        self.words.resize(values.len() / len * self.per_row, 0);
        for (values, words) in values.chunks_exact(len).zip(self.words.chunks_mut(self.per_row)) {
            round(values, scale * ONE, words);
        }
    }

    fn row(&self, r: usize) -> &[u32] {
        &self.words[r * self.per_row..(r + 1) * self.per_row]
    }
}

fast! {
    fn round[](values: &[f32], scale: f32, words: &mut [u32]) = round_portable;
}

#[inline(always)]
fn round_portable(values: &[f32], scale: f32, words: &mut [u32]) {
    // Adding 2^23 rounds to a whole number and leaves it in the low bits.
    const ROUND: f32 = 8_388_608.0;
    let whole = |x: f32| x.mul_add(scale, ROUND).to_bits() & 0xffff;
    let (pairs, last) = values.as_chunks::<2>();
    for (word, pair) in words.iter_mut().zip(pairs) {
        *word = whole(pair[0]) | whole(pair[1]) << 16;
    }
    if let ([x], Some(word)) = (last, words.last_mut()) {
        *word = whole(*x);
    }
}

fast! {
    /// Adds to rows of natural parameters what the means of `n_rows` units bring through the
    /// weights `row(i)`; `unit` as in [`crate::tables::add_quantised`]. `packed` is a buffer.
    ///
    /// # Panics
    ///
    /// If there are fewer means than natural parameters, or fewer units than blocks.
    pub fn add_means[<'a, R: Fn(usize) -> &'a [i16; TILE] + Copy>](
        means: &Means,
        n_rows: usize,
        row: R,
        unit: &[f32],
        theta: &mut [Wide],
        packed: &mut Vec<Sums>,
    ) = add_means_in::<false, R>, wide add_means_in::<true, R>;
}

#[inline(always)]
fn add_means_in<'a, const WIDE: bool, R: Fn(usize) -> &'a [i16; TILE] + Copy>(
    means: &Means,
    n_rows: usize,
    row: R,
    unit: &[f32],
    theta: &mut [Wide],
    packed: &mut Vec<Sums>,
) {
    assert!(unit.len() >= n_rows.div_ceil(BLOCK), "add_means: a unit for each block");
    assert!(means.per_row >= n_rows.div_ceil(2), "add_means: a mean for each row");
    for (first, unit) in (0..n_rows).step_by(BLOCK).zip(unit) {
        let end = n_rows.min(first + BLOCK);
        interleave::<WIDE>(first, end, row, packed);
        let range = first / 2..first / 2 + packed.len();
        let unit = unit / ONE;
        let words = |r: usize| &means.row(r)[range.clone()];
        let n = theta.len();
        for (theta, r) in theta.chunks_mut(2).zip((0..n).step_by(2)) {
            // The last of an odd number stands twice.
            let words = [words(r), words((r + 1).min(n - 1))];
            add_rows::<WIDE>(packed, words, unit, theta);
        }
    }
}

/// Rows `first..end`, two and two: column `l` of both at `2 l` and `2 l + 1`.
#[inline(always)]
fn interleave<'a, const WIDE: bool>(
    first: usize,
    end: usize,
    row: impl Fn(usize) -> &'a [i16; TILE],
    packed: &mut Vec<Sums>,
) {
    let zero = [0; TILE];
    packed.resize((end - first).div_ceil(2), Sums::ZERO);
    for (i, out) in (first..end).step_by(2).zip(packed) {
        let (a, b) = (row(i), if i + 1 < end { row(i + 1) } else { &zero });
        #[cfg(target_arch = "x86_64")]
        if WIDE {
            out.0 = x86::avx2::interleave(a, b);
            continue;
        }
        for l in 0..TILE {
            out.0[2 * l] = a[l];
            out.0[2 * l + 1] = b[l];
        }
    }
}

/// Two samples at a time: their sums and the weights of a pair of rows fit the registers.
#[inline(always)]
fn add_rows<const WIDE: bool>(packed: &[Sums], words: [&[u32]; 2], unit: f32, theta: &mut [Wide]) {
    #[cfg(target_arch = "x86_64")]
    let sums = if WIDE { x86::avx2::sums(packed, words) } else { sums_portable(packed, words) };
    #[cfg(not(target_arch = "x86_64"))]
    let sums = sums_portable(packed, words);
    for (theta, sums) in theta.iter_mut().zip(sums) {
        for l in 0..TILE {
            theta.0[l] = (sums[l] as f32).mul_add(unit, theta.0[l]);
        }
    }
}

#[inline(always)]
fn sums_portable(packed: &[Sums], words: [&[u32]; 2]) -> [[i32; TILE]; 2] {
    words.map(|words| {
        let mut sums = [0; TILE];
        for (pair, &word) in packed.iter().zip(words) {
            let (a, b) = ((word & 0xffff).cast_signed(), (word >> 16).cast_signed());
            for l in 0..TILE {
                let products = a * i32::from(pair.0[2 * l]) + b * i32::from(pair.0[2 * l + 1]);
                sums[l] += products;
            }
        }
        sums
    })
}

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbitrary::{assert_same, lines, real, sizes};
    use crate::line::Quantum;

    /// Weights whose sums of absolute values stay below $2^{16}$ in every block.
    fn weights(n: usize, seed: u64) -> Vec<Quantum> {
        #[expect(clippy::cast_possible_truncation, reason = "below 205")]
        lines(n, seed, |u| (204.0 * real(u)) as i16)
    }

    #[test]
    fn means_are_rounded_to_the_nearest() {
        for n in sizes().into_iter().filter(|n| *n > 0) {
            let values: Vec<f32> =
                lines::<f32, TILE>(n, 3, real).iter().map(|l| 2.0 * l.0[0].abs()).collect();
            let mut means = Means::default();
            means.fill(&values, n, 0.5);
            let mut twin = vec![9; n.div_ceil(2)];
            round_portable(&values, 0.5 * ONE, &mut twin);
            assert_eq!(means.row(0), twin);
            for (i, x) in values.iter().enumerate() {
                let found = means.row(0)[i / 2] >> (16 * (i % 2)) & 0xffff;
                let error = f64::from(found) - f64::from(*x) * 8192.0;
                assert!(error.abs() <= 0.5 && found <= 16_384, "{x}: {found}");
            }
            assert!(n % 2 == 0 || means.row(0)[n / 2] >> 16 == 0);
        }
        let mut ends = Means::default();
        ends.fill(&[0.0, 1.0, 1.0], 3, 1.0);
        assert_eq!(ends.row(0), [16_384 << 16, 16_384]);
    }

    /// Sums are whole numbers and exact; then one rounding to single precision for each block, and
    /// one of the sum.
    #[test]
    fn sums_equal_the_formula_and_their_twin() {
        let shapes = sizes().into_iter().map(|n| (n, n % 7)).chain([(700, 50), (320, 3), (1, 9)]);
        for (n_rows, n) in shapes.filter(|(n_rows, _)| *n_rows > 0) {
            let weights = weights(n_rows, 1);
            let row = |i: usize| &weights[i].0;
            let values: Vec<f32> =
                (0..n * n_rows).map(|k| (k * 7919 % 1001) as f32 / 1000.0).collect();
            let mut means = Means::default();
            means.fill(&values, n_rows, 1.0);
            let unit = [1e-3, 2e-3, 0.5e-3];
            let before: Vec<Wide> = lines(n, 2, real);
            let (mut theta, mut twin) = (before.clone(), before.clone());
            let packed = &mut Vec::new();
            add_means(&means, n_rows, row, &unit, &mut theta, packed);
            add_means_in::<false, _>(&means, n_rows, row, &unit, &mut twin, packed);
            assert_same(&theta, &twin, "add_means");
            for r in 0..n {
                for l in 0..TILE {
                    let (mut expected, mut size) = (f64::from(before[r].0[l]), 0.0_f64);
                    for i in 0..n_rows {
                        let mean = f64::from(means.row(r)[i / 2] >> (16 * (i % 2)) & 0xffff);
                        let term = f64::from(unit[i / BLOCK]) * mean / 16_384.0
                            * f64::from(weights[i].0[l]);
                        expected += term;
                        size += term.abs();
                    }
                    let bound =
                        5.0 * f64::from(f32::EPSILON) * (size + f64::from(before[r].0[l]).abs());
                    let found = f64::from(theta[r].0[l]);
                    assert!((found - expected).abs() <= bound, "{found}, not {expected}");
                }
            }
        }
    }

    /// The largest sums that quantised weights can have.
    #[test]
    fn the_largest_sums_do_not_overflow() {
        let mut weights = vec![Quantum::ZERO; BLOCK];
        weights[0].0 = [i16::MAX; TILE];
        weights[7].0 = [1 - i16::MAX; TILE];
        weights[319].0 = [1; TILE];
        let mut means = Means::default();
        means.fill(&[1.0; BLOCK], BLOCK, 1.0);
        let mut theta = [Wide::ZERO];
        add_means(&means, BLOCK, |i| &weights[i].0, &[1.0], &mut theta, &mut Vec::new());
        assert_eq!(theta[0].0, [2.0; TILE]);
        weights[7].0 = [i16::MAX - 1; TILE];
        let mut theta = [Wide::ZERO];
        add_means(&means, BLOCK, |i| &weights[i].0, &[1.0], &mut theta, &mut Vec::new());
        assert_eq!(theta[0].0, [65_534.0; TILE]);
    }

    #[test]
    fn what_is_missing_is_refused() {
        let run = |n_means: usize, n_units: usize, n: usize| {
            std::panic::catch_unwind(|| {
                let mut means = Means::default();
                means.fill(&vec![0.5; 2 * n_means], n_means, 1.0);
                let (zero, unit) = ([0; TILE], vec![1.0; n_units]);
                let theta = &mut vec![Wide::ZERO; n];
                add_means(&means, 321, |_| &zero, &unit, theta, &mut Vec::new());
            })
            .is_err()
        };
        assert!(!run(321, 2, 2));
        assert!(run(300, 2, 2) && run(321, 1, 2) && run(321, 2, 3));
    }
}
