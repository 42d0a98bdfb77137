//! Counter-based random numbers: a variate is a pure function of where it is used.
//!
//! $$u = \mathrm{Philox4x32}_7(\text{key}, (\text{block}, \text{row}, \text{sweep}, \text{lane}))$$
//!
//! 32 neighbouring units share eight blocks, word $k$ of block $l$ belonging to unit $8k + l$, so
//! that eight blocks computed side by side give the units in order.
//!
//! There is no generator state to share between threads or to store in a checkpoint: the same
//! seed gives the same variates in whatever order, on however many threads, they are drawn.
//! Seven rounds are the fewest that pass BigCrush; ten are used where keys are derived
//! (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

use crate::dispatch::fast;
use crate::line::TILE;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Rounds for variates.
const DRAW_ROUNDS: usize = 7;
/// Rounds for keys: they are derived rarely and everything hangs on them.
const KEY_ROUNDS: usize = 10;
/// Fourth counter word of a derived key. A lane never reaches it.
const FORK_LANE: u32 = u32::MAX;

/// Where a row of variates is used: which chain, which sweep, which purpose inside the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Site {
    /// Row of the batch, or number of the chain.
    pub row: u32,
    /// Sweep inside the step.
    pub sweep: u32,
    /// What is drawn there, usually the layer; below `u32::MAX`.
    pub lane: u32,
}

impl Site {
    /// The site of a row, sweep and lane; counts beyond $2^{32}$, which no run reaches, share the
    /// last place.
    pub fn new(row: usize, sweep: usize, lane: usize) -> Self {
        let small = |n: usize| u32::try_from(n).unwrap_or(FORK_LANE - 1);
        Self { row: small(row), sweep: small(sweep), lane: small(lane) }
    }

    /// Whether its row is the first of the two that share their words.
    #[inline(always)]
    fn is_first(self) -> bool {
        self.row.is_multiple_of(2)
    }
}

/// A family of variates addressed by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
}

impl Stream {
    /// The root of all randomness of a run.
    pub fn new(seed: u64) -> Self {
        Self { key: [0x6861_726D, 0x6F6E_6975] }.fork(seed)
    }

    /// The independent sub-stream number `k`.
    #[must_use]
    pub fn fork(self, k: u64) -> Self {
        let counter = [low(k), low(k >> 32), 0, FORK_LANE];
        let [a, b, ..] = philox::<KEY_ROUNDS>(self.key, counter);
        Self { key: [a, b] }
    }

    /// The four words of a block.
    #[inline]
    pub fn words(self, site: Site, block: u32) -> [u32; 4] {
        philox::<DRAW_ROUNDS>(self.key, [block, site.row, site.sweep, site.lane])
    }

    /// The words of the units `32 * tile` to `32 * tile + 31`.
    pub fn tile(self, site: Site, tile: u32) -> [u32; 32] {
        tile_of(self, site, tile)
    }

    /// The same inside of kernels.
    #[inline(always)]
    pub(crate) fn tile_inside(self, site: Site, tile: u32) -> [u32; 32] {
        philox_eight(self.key, tile.wrapping_mul(8), [site.row, site.sweep, site.lane])
    }

    /// A uniform variate in the open interval (0, 1).
    ///
    /// Rows $2k$ and $2k + 1$ read the same word; in the second its halves have changed places. Each
    /// is uniform to the last of its 32 bits. The two depend on each other only where 16 bits leave
    /// a comparison open, once in 65,536 times, and rows are different samples.
    #[inline]
    pub fn uniform(self, site: Site, unit: usize) -> f64 {
        let block = low((unit / 32 * 8 + unit % 8) as u64);
        to_uniform(turned(site.is_first(), self.words(shared(site), block)[unit % 32 / 8]))
    }

    /// Uniform variates of the units `0..out.len()`.
    pub fn uniforms_into(self, site: Site, out: &mut [f64]) {
        self.uniforms_from(site, 0, out);
    }

    /// Uniform variates of the units `start..start + out.len()`.
    pub fn uniforms_from(self, site: Site, start: usize, out: &mut [f64]) {
        let mut tile = [0; 32];
        for (i, (unit, o)) in (start..).zip(out).enumerate() {
            if i == 0 || unit.is_multiple_of(32) {
                tile = tile_of(self, shared(site), low((unit / 32) as u64));
            }
            *o = to_uniform(turned(site.is_first(), tile[unit % 32]));
        }
    }

    /// A standard normal variate.
    pub fn normal(self, site: Site, unit: usize) -> f64 {
        let words = self.words(site, block_of(unit));
        let pair = (unit % 4) / 2;
        let (a, b) = box_muller(words[2 * pair], words[2 * pair + 1]);
        if unit.is_multiple_of(2) { a } else { b }
    }

    /// Standard normal variates of the units `0..out.len()`.
    pub fn normals_into(self, site: Site, out: &mut [f64]) {
        for (block, chunk) in (0_u32..).zip(out.chunks_mut(4)) {
            let w = self.words(site, block);
            let (a, b) = box_muller(w[0], w[1]);
            let (c, d) = box_muller(w[2], w[3]);
            for (o, z) in chunk.iter_mut().zip([a, b, c, d]) {
                *o = z;
            }
        }
    }

    /// A whole number in `0..n`, by multiplication (Lemire 2019); the bias is below $n/2^{32}$.
    ///
    /// # Panics
    ///
    /// If `n` is zero.
    pub fn below(self, site: Site, unit: usize, n: u32) -> u32 {
        assert!(n > 0, "below: there is no number under zero");
        let word = self.words(site, block_of(unit))[unit % 4];
        low((u64::from(word) * u64::from(n)) >> 32)
    }

    /// Puts `items` in random order (Fisher–Yates).
    pub fn shuffle<T>(self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            // 64-bit product of a 32-bit word: fine for any table that fits in memory.
            let word = u64::from(self.words(Site::default(), block_of(i))[i % 4]);
            let j = usize::try_from((word * (i as u64 + 1)) >> 32).unwrap_or(i);
            items.swap(i, j);
        }
    }
}

/// Where the words of a row stand that it shares with its neighbour.
#[inline(always)]
fn shared(site: Site) -> Site {
    Site { row: site.row / 2, ..site }
}

/// A word as the first or the second row of its pair reads it.
#[inline(always)]
fn turned(first: bool, word: u32) -> u32 {
    word.rotate_left(if first { 0 } else { 16 })
}

/// What variates are below: single precision holds 24 bits.
pub(crate) const FULL: f32 = 16_777_216.0;

/// Where the variates of a tile come from.
pub type Place = (Stream, Site, u32);

/// Variates of a run of rows, up to [`Uniforms::ROWS`] of them.
///
/// They are the 24 high bits of [`Stream::uniform`].
pub(crate) struct Uniforms {
    /// Kept in memory, and filled before they are read: the compiler takes the generator apart
    /// where its words stay in registers.
    words: [[u32; TILE]; Self::ROWS / 2 + 1],
    /// Where the first row stands: at 1 if it is the second of its pair.
    lead: usize,
}

impl Uniforms {
    /// Rows at a time.
    pub(crate) const ROWS: usize = 16;

    /// Room for them, made once: it is larger than what a register holds.
    pub(crate) const NONE: Self = Self { words: [[0; TILE]; Self::ROWS / 2 + 1], lead: 0 };

    /// Those of rows `first..first + n` after the site of `place`.
    #[inline(always)]
    pub(crate) fn draw(&mut self, (stream, site, tile): Place, first: usize, n: usize) -> &Self {
        #[expect(clippy::cast_possible_truncation, reason = "rows wrap")]
        let row = site.row.wrapping_add(first as u32);
        self.lead = (row % 2) as usize;
        let n_pairs = (n.min(Self::ROWS) + self.lead).div_ceil(2);
        for (k, words) in (0..).step_by(2).zip(&mut self.words[..n_pairs]) {
            *words =
                stream.tile_inside(shared(Site { row: (row & !1).wrapping_add(k), ..site }), tile);
        }
        self
    }

    /// The variates of row `first + r`; never 0.
    #[inline(always)]
    pub(crate) fn row(&self, r: usize) -> [f32; TILE] {
        let at = r + self.lead;
        let words = &self.words[at / 2];
        // Chosen once for the row: asked for each word, the compiler takes registers apart.
        if at.is_multiple_of(2) { variates::<true>(words) } else { variates::<false>(words) }
    }
}

/// 24 bits of each word as the first or the second row reads it.
#[inline(always)]
fn variates<const FIRST: bool>(words: &[u32; TILE]) -> [f32; TILE] {
    let mut u = [0.0; TILE];
    for (u, words) in u.as_chunks_mut::<8>().0.iter_mut().zip(words.as_chunks::<8>().0) {
        for l in 0..8 {
            u[l] = (turned(FIRST, words[l]) >> 8).cast_signed() as f32 + 0.5;
        }
    }
    u
}

fast! {
    fn tile_of[](stream: Stream, site: Site, tile: u32) -> [u32; 32] = Stream::tile_inside;
}

fast! {
    /// Bits that are 1 with probability `bytes[i] / 255`: the same as comparing
    /// [`Stream::uniform`] with it.
    ///
    /// # Panics
    ///
    /// If there are fewer words than the bytes need.
    pub fn bits_of_bytes[](stream: Stream, site: Site, bytes: &[u8], out: &mut [u64])
        = bits_of_bytes_portable;
}

#[inline(always)]
fn bits_of_bytes_portable(stream: Stream, site: Site, bytes: &[u8], out: &mut [u64]) {
    out[..bytes.len().div_ceil(64)].fill(0);
    for (tile, chunk) in (0_u32..).zip(bytes.chunks(32)) {
        let words =
            stream.tile_inside(shared(site), tile).map(|word| turned(site.is_first(), word));
        let mut grey = [0_u8; 32];
        grey[..chunk.len()].copy_from_slice(chunk);
        let mut on = [0_u32; 32];
        for l in 0..32 {
            let b = u32::from(grey[l]);
            // (w + 1/2) / 2^32 < b / 255 in whole numbers, since 2^32 - 1 = 255 * 0x0101_0101.
            let most = (b * 0x0101_0101).wrapping_sub(u32::from(b < 128));
            on[l] = if b != 0 && words[l] <= most { u32::MAX } else { 0 };
        }
        let shift = tile % 2 * 32;
        out[(tile / 2) as usize] |= u64::from(crate::response::pack(on)) << shift;
    }
}

/// $(w + \tfrac12) 2^{-32}$: never 0, never 1, so that its logarithm is finite.
#[inline]
pub fn to_uniform(word: u32) -> f64 {
    const SCALE: f64 = 1.0 / 4_294_967_296.0;
    (f64::from(word) + 0.5) * SCALE
}

fn box_muller(a: u32, b: u32) -> (f64, f64) {
    let radius = (-2.0 * to_uniform(a).ln()).sqrt();
    let (sin, cos) = (std::f64::consts::TAU * to_uniform(b)).sin_cos();
    (radius * cos, radius * sin)
}

#[expect(clippy::cast_possible_truncation, reason = "the low word is what is wanted")]
fn low(x: u64) -> u32 {
    x as u32
}

/// Blocks wrap after $2^{34}$ units, far beyond any layer that fits in memory.
fn block_of(unit: usize) -> u32 {
    low((unit / 4) as u64)
}

#[inline]
fn philox<const ROUNDS: usize>(mut key: [u32; 2], mut c: [u32; 4]) -> [u32; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let p0 = u64::from(MULTIPLIERS[0]) * u64::from(c[0]);
        let p1 = u64::from(MULTIPLIERS[1]) * u64::from(c[2]);
        c = [low(p1 >> 32) ^ c[1] ^ key[0], low(p1), low(p0 >> 32) ^ c[3] ^ key[1], low(p0)];
    }
    c
}

/// Philox on eight neighbouring blocks: word `k` of block `first + l` at `8 k + l`.
///
/// A 32-bit value lives in the low half of a 64-bit lane, so that a multiplication gives both
/// halves of the product at once; what gathers in the high half is never looked at.
#[inline(always)]
fn philox_eight(mut key: [u32; 2], first: u32, [row, sweep, lane]: [u32; 3]) -> [u32; 32] {
    const LOW: u64 = 0xffff_ffff;
    let [m0, m1] = MULTIPLIERS.map(u64::from);
    let mut c = [[0_u64; 8], [row.into(); 8], [sweep.into(); 8], [lane.into(); 8]];
    // Even blocks in the first four lanes, odd ones in the last, so that merging is one shift.
    for (l, pair) in (0..4).zip((0..).step_by(2)) {
        c[0][l] = u64::from(first.wrapping_add(pair));
        c[0][l + 4] = u64::from(first.wrapping_add(pair + 1));
    }
    for round in 0..DRAW_ROUNDS {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let (mut p0, mut p1) = ([0; 8], [0; 8]);
        for l in 0..8 {
            p0[l] = (c[0][l] & LOW) * m0;
            p1[l] = (c[2][l] & LOW) * m1;
        }
        for l in 0..8 {
            c[0][l] = (p1[l] >> 32) ^ c[1][l] ^ u64::from(key[0]);
            c[2][l] = (p0[l] >> 32) ^ c[3][l] ^ u64::from(key[1]);
        }
        (c[1], c[3]) = (p1, p0);
    }
    let mut out = [0; 32];
    for k in 0..4 {
        for l in 0..4 {
            let pair = c[k][l] & LOW | c[k][l + 4] << 32;
            out[8 * k + 2 * l] = low(pair);
            out[8 * k + 2 * l + 1] = low(pair >> 32);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_agrees_with_the_known_answers_of_random123() {
        let ones = u32::MAX;
        assert_eq!(
            philox::<10>([0, 0], [0; 4]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox::<10>([ones; 2], [ones; 4]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox::<7>([0, 0], [0; 4]),
            [0x5f6f_b709, 0x0d89_3f64, 0x4f12_1f81, 0x4f73_0a48]
        );
    }

    #[test]
    fn values_are_stable() {
        let stream = Stream::new(42).fork(7);
        let site = Site { row: 3, sweep: 2, lane: 1 };
        assert_eq!(stream.words(site, 5), STABLE_WORDS);
        assert_eq!(stream.below(site, 9, 1000), 725);
    }

    const STABLE_WORDS: [u32; 4] = [4_283_578_232, 163_341_592, 2_418_864_033, 3_366_034_537];

    #[test]
    fn eight_blocks_at_once_are_eight_blocks() {
        let stream = Stream::new(3);
        let site = Site { row: 5, sweep: 7, lane: 2 };
        for tile in [0, 1, 77] {
            let (fast, plain) = (stream.tile(site, tile), stream.tile_inside(site, tile));
            assert_eq!(fast, plain);
            for l in 0..8 {
                let words = stream.words(site, 8 * tile + l);
                for k in 0..4 {
                    assert_eq!(fast[8 * k + l as usize], words[k]);
                }
            }
        }
    }

    #[test]
    fn one_at_a_time_equals_all_at_once() {
        let stream = Stream::new(1);
        let site = Site { row: 8, sweep: 0, lane: 2 };
        for n in 0..70 {
            let (mut uniforms, mut normals) = (vec![0.0; n], vec![0.0; n]);
            stream.uniforms_into(site, &mut uniforms);
            stream.normals_into(site, &mut normals);
            for unit in 0..n {
                assert_eq!(uniforms[unit].to_bits(), stream.uniform(site, unit).to_bits());
                assert_eq!(normals[unit].to_bits(), stream.normal(site, unit).to_bits());
            }
        }
    }

    #[test]
    fn uniforms_may_start_anywhere() {
        let stream = Stream::new(2).fork(9);
        let site = Site { row: 4, sweep: 1, lane: 3 };
        let starts = (0..70).chain([95, 96, 97, 1000, 1023, 12_345, (1 << 32) + 33]);
        for start in starts {
            for n in [0, 1, 2, 31, 32, 33, 64, 101] {
                let mut out = vec![0.0; n];
                stream.uniforms_from(site, start, &mut out);
                for (i, u) in out.iter().enumerate() {
                    assert_eq!(u.to_bits(), stream.uniform(site, start + i).to_bits());
                }
            }
        }
    }

    /// What [`bits_of_bytes`] must write: bits of all units, and zeros behind them.
    fn naive_bits(stream: Stream, site: Site, bytes: &[u8]) -> Vec<u64> {
        let mut out = vec![0; bytes.len().div_ceil(64)];
        for (unit, &byte) in bytes.iter().enumerate() {
            let on = stream.uniform(site, unit) < f64::from(byte) / 255.0;
            out[unit / 64] |= u64::from(on) << (unit % 64);
        }
        out
    }

    fn check_bits(stream: Stream, site: Site, bytes: &[u8]) {
        let mut expected = naive_bits(stream, site, bytes);
        // A word that is not needed is left alone.
        expected.push(99);
        for bits in [bits_of_bytes, bits_of_bytes_portable] {
            let mut out = vec![u64::MAX; expected.len()];
            *out.last_mut().expect("one more than needed") = 99;
            bits(stream, site, bytes, &mut out);
            assert_eq!(out, expected, "{site:?}, {} bytes", bytes.len());
        }
    }

    #[test]
    fn bits_of_bytes_compare_uniforms_with_them() {
        let small = crate::arbitrary::small();
        let sites = [Site::default(), Site { row: 7, sweep: 2, lane: 1 }, Site::new(9, 0, 4)];
        for (site, seed) in sites.into_iter().zip(4..) {
            let stream = Stream::new(seed);
            for byte in 0..=255 {
                check_bits(stream, site, &[byte; 130]);
            }
            for n in crate::arbitrary::sizes().into_iter().chain([784, 1000, 4097]) {
                let bytes: Vec<u8> = (0..=255).cycle().skip(n).step_by(37).take(n).collect();
                check_bits(stream, site, &bytes);
                for byte in (0..=255).step_by(if small { 51 } else { 1 }).filter(|_| n <= 130) {
                    check_bits(stream, site, &vec![byte; n]);
                }
            }
        }
    }

    /// Places and units of [`Stream::new`] 21 whose word is the last below a byte, or the first above
    /// it: found by trying $2^{33}$ words, since one in $2^{32}$ is.
    const EDGES: [(u8, bool, u32, usize); 14] = [
        (1, true, 8_434_044, 7),
        (2, true, 8_989_668, 23),
        (2, false, 40_978_820, 19),
        (64, true, 149_271_583, 11),
        (64, false, 193_336_198, 23),
        (126, true, 95_808_906, 17),
        (127, true, 123_229_979, 29),
        (127, false, 49_397_340, 0),
        (128, true, 52_293_426, 28),
        (128, false, 25_646_065, 8),
        (129, false, 32_890_592, 29),
        (200, true, 107_418_786, 8),
        (253, false, 172_671_987, 8),
        (254, false, 155_103_579, 9),
    ];

    #[test]
    fn bytes_are_compared_exactly_where_it_is_close() {
        let stream = Stream::new(21);
        for (byte, on, row, unit) in EDGES {
            // Even rows read words as they are.
            let site = Site { row: 2 * row, ..Site::default() };
            let u = stream.uniform(site, unit);
            let p = f64::from(byte) / 255.0;
            assert!((u - p).abs() < 2.0_f64.powi(-32) && (u < p) == on, "an edge of {byte}");
            for near in byte - 1..=byte + 1 {
                check_bits(stream, site, &[near; 32]);
            }
        }
    }

    #[test]
    #[should_panic(expected = "range end index 2")]
    fn bits_without_room_are_refused() {
        bits_of_bytes(Stream::new(1), Site::default(), &[0; 65], &mut [0]);
    }

    #[test]
    fn every_coordinate_changes_the_variate() {
        let base = Site { row: 1, sweep: 1, lane: 1 };
        let stream = Stream::new(5);
        let sites =
            [base, Site { row: 2, ..base }, Site { sweep: 2, ..base }, Site { lane: 2, ..base }];
        let mut words: Vec<[u32; 4]> = sites.iter().map(|&s| stream.words(s, 0)).collect();
        words.push(stream.words(base, 1));
        words.push(stream.fork(0).words(base, 0));
        words.push(Stream::new(6).words(base, 0));
        for i in 0..words.len() {
            for j in 0..i {
                assert_ne!(words[i], words[j], "{i} and {j}");
            }
        }
    }

    /// Means and variances within 5 standard errors of what the distributions have.
    #[test]
    fn moments_are_those_of_the_distributions() {
        let n = 200_000_usize;
        let (mut u, mut z) = (vec![0.0; n], vec![0.0; n]);
        Stream::new(11).uniforms_into(Site::default(), &mut u);
        Stream::new(12).normals_into(Site::default(), &mut z);
        let mean = |x: &[f64]| x.iter().sum::<f64>() / n as f64;
        let square = |x: &[f64], m: f64| x.iter().map(|x| (x - m).powi(2)).sum::<f64>() / n as f64;
        let root = (n as f64).sqrt();
        assert!((mean(&u) - 0.5).abs() < 5.0 * (1.0_f64 / 12.0).sqrt() / root);
        assert!((square(&u, 0.5) - 1.0 / 12.0).abs() < 5.0 * (1.0_f64 / 180.0).sqrt() / root);
        assert!(mean(&z).abs() < 5.0 / root);
        assert!((square(&z, 0.0) - 1.0).abs() < 5.0 * 2.0_f64.sqrt() / root);
        let products: Vec<f64> = z.windows(2).map(|w| w[0] * w[1]).collect();
        assert!(
            (products.iter().sum::<f64>() / n as f64).abs() < 5.0 / root,
            "neighbours correlate"
        );
    }

    /// Two rows read one word: how often both are below bounds is what independence says, within 5
    /// standard errors.
    #[test]
    fn rows_that_share_words_are_independent() {
        let n = 100_000;
        let (mut even, mut odd) = (vec![0.0; n], vec![0.0; n]);
        Stream::new(31).uniforms_into(Site::new(6, 1, 2), &mut even);
        Stream::new(31).uniforms_into(Site::new(7, 1, 2), &mut odd);
        for p in [0.01, 0.3, 0.5, 0.9] {
            for q in [0.02, 0.5, 0.77] {
                let both = even.iter().zip(&odd).filter(|(u, v)| **u < p && **v < q).count();
                let error = (p * q * (1.0 - p * q) / n as f64).sqrt();
                let mean = both as f64 / n as f64;
                assert!((mean - p * q).abs() < 5.0 * error, "{mean}, not {p} of {q}");
            }
        }
    }

    #[test]
    fn shuffling_is_a_permutation_that_depends_on_the_stream() {
        let mut a: Vec<usize> = (0..100).collect();
        let mut b = a.clone();
        Stream::new(1).shuffle(&mut a);
        Stream::new(2).shuffle(&mut b);
        assert_ne!(a, b);
        a.sort_unstable();
        assert!(a.iter().copied().eq(0..100));
    }
}
