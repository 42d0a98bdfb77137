//! Bits times numbers by lists of neighbouring pairs: for sparse samples, and for so few that
//! tables would cost more than they save.
//!
//! Two neighbouring rows of weights have three sums besides zero. They are written down for a strip
//! of rows, 15 KiB in all; a sample then adds one for each pair of which it has a bit. Samples pass
//! four at a time, which hides what the loop around them costs, and in the order of their lengths,
//! so that four that go together are about equally long.

#[cfg(target_arch = "x86_64")]
use crate::dispatch::WIDE;
use crate::dispatch::{PORTABLE, WIDEST, fast};
use crate::line::{Element, HALF, Line, Quantum, TILE, Wide};
use crate::tables::{BLOCK, Tiles, add, ending, widen};

/// Rows whose sums are alive at the same time.
const STRIP: usize = BLOCK / 2;
/// Rows that are asked for together: a strip has whole halves of words.
const RUN: usize = 32;
const RUNS: usize = STRIP / RUN;
/// Samples that go together.
const FOUR: usize = 4;
/// Bits that are listed at once.
const STEP: usize = 16;
/// Entries that are moved at once.
const AHEAD: usize = 16;
/// Room for the entries of one strip of a sample, and for a step beyond them.
const ROOM: usize = STRIP / 2 + AHEAD;
/// Entries that may be read after those of a group.
const BEYOND: usize = 2;
/// Samples up to which sums of two lines, which fill the nearest cache, cost more to write down than they save.
const FEW: usize = 32;
/// No sample.
const NONE: u32 = u32::MAX;

/// Lists of the pairs of each sample, strip by strip.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    strips: Vec<Strip>,
    listing: Listing,
}

/// What does the same for each strip: on any thread, with any room for the listing.
pub type FillStrip<'a> = dyn Fn(usize, &mut Strip, &mut Listing) + Sync + 'a;

/// Room for the entries of a strip in the order of the samples, and for their numbers.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    entries: Vec<[u8; ROOM]>,
    lengths: Vec<usize>,
}

/// The pairs of all samples in one strip of rows.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    /// Entry $3k + v$ stands for the bits $v$ of pair $k$ of the strip, entry 0 for none; those of
    /// four samples next to each other.
    entries: Vec<[u8; FOUR]>,
    /// Where the entries of four samples begin, and where the last end.
    starts: Vec<usize>,
    /// Which samples they are; [`NONE`] fills the last four up.
    order: Vec<[u32; FOUR]>,
    /// For each [`RUN`] the pairs that some sample has, as [`of`] marks them.
    used: [u32; RUNS],
}

impl Pairs {
    /// Reads rows of `n_bits` bits, in words; `mask` has those that any row has. Strips do not know
    /// of each other: `spread` has to call what it is given for each of them.
    pub fn fill<'a>(
        &mut self,
        rows: &(impl Iterator<Item = &'a [u64]> + Clone + Sync),
        n_bits: usize,
        mask: &[u64],
        spread: impl FnOnce(&mut [Strip], &mut Listing, &FillStrip<'_>),
    ) {
        let n = rows.clone().count();
        self.strips.resize_with(n_bits.div_ceil(STRIP), Strip::default);
        spread(&mut self.strips, &mut self.listing, &|s, strip, listing| {
            listing.entries.resize(n.next_multiple_of(FOUR), [0; ROOM]);
            listing.lengths.resize(n, 0);
            list_strip(rows.clone(), s * STRIP, &mut listing.entries, &mut listing.lengths);
            strip.mark_used(mask, s * STRIP);
            strip.join(listing);
        });
    }

    /// The samples of a strip, four at a time, and their entries with [`BEYOND`] after them.
    #[inline(always)]
    fn strip(&self, strip: usize, n: usize) -> impl Iterator<Item = Four<'_>> {
        let Strip { entries, starts, order, .. } = &self.strips[strip];
        let n_fours = n.div_ceil(FOUR);
        let spans = starts[..=n_fours].windows(2);
        order[..n_fours].iter().zip(spans.map(|span| &entries[span[0]..span[1] + BEYOND]))
    }
}

impl Strip {
    /// Notes which pairs some sample has.
    #[expect(clippy::cast_possible_truncation, reason = "half of a word at a time")]
    fn mark_used(&mut self, mask: &[u64], first: usize) {
        for (run, bit) in (first..).step_by(RUN).take(RUNS).enumerate() {
            self.used[run] = mask.get(bit / 64).map_or(0, |word| of(word >> (bit % 64)) as u32);
        }
    }

    /// Puts the samples together, four by four in the order of their lengths.
    fn join(&mut self, Listing { entries: listed, lengths }: &Listing) {
        // Counting sort: `at[l]` is where the next sample of length `l` goes.
        let mut at = [0; STRIP / 2 + 2];
        let mut longest = 0;
        for &length in lengths {
            at[length + 1] += 1;
            longest = length.max(longest);
        }
        for l in 1..=longest {
            at[l] += at[l - 1];
        }
        self.order.clear();
        self.order.resize(lengths.len().div_ceil(FOUR), [NONE; FOUR]);
        for (r, &length) in (0_u32..).zip(lengths) {
            let place = &mut at[length];
            self.order[*place / FOUR][*place % FOUR] = r;
            *place += 1;
        }
        self.entries.clear();
        self.starts.clear();
        for four in &self.order {
            self.starts.push(self.entries.len());
            let lists = four.map(|r| listed.get(r as usize).unwrap_or(&[0; ROOM]));
            let longest = four.iter().filter_map(|r| lengths.get(*r as usize)).max().unwrap_or(&0);
            let end = self.entries.len() + longest;
            interleave(lists, *longest, &mut self.entries);
            self.entries.truncate(end);
        }
        self.starts.push(self.entries.len());
        self.entries.extend([[0; FOUR]; BEYOND]);
    }
}

/// Four samples, their entries and [`BEYOND`] that are not theirs.
type Four<'a> = (&'a [u32; FOUR], &'a [[u8; FOUR]]);

/// Appends the first entries of four lists, `longest` of them or a few more.
fn interleave(lists: [&[u8; ROOM]; FOUR], longest: usize, out: &mut Vec<[u8; FOUR]>) {
    let [a, b, c, d] = lists.map(|list| list.as_chunks::<AHEAD>().0);
    for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d).take(longest.div_ceil(AHEAD)) {
        #[cfg(target_arch = "x86_64")]
        out.extend_from_slice(&x86::sse2::interleave([*a, *b, *c, *d]));
        #[cfg(not(target_arch = "x86_64"))]
        out.extend_from_slice(&interleave_portable([*a, *b, *c, *d]));
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn interleave_portable(lists: [[u8; AHEAD]; FOUR]) -> [[u8; FOUR]; AHEAD] {
    std::array::from_fn(|k| lists.map(|list| list[k]))
}

#[cfg(target_arch = "x86_64")]
mod x86;

/// A bit for each pair that has one.
#[inline(always)]
pub(crate) fn of(word: u64) -> u64 {
    (word | word >> 1) & 0x5555_5555_5555_5555
}

const ONES: u64 = 0x0101_0101_0101_0101;

fast! {
    /// Lists the entries of the strip that begins with bit `first`, zeros after the last.
    fn list_strip[<'a, I: Iterator<Item = &'a [u64]>>](
        rows: I,
        first: usize,
        listed: &mut [[u8; ROOM]],
        lengths: &mut [usize],
    ) = list_strip_portable,
        wide x86::avx2::list_strip,
        widest x86::avx512::list_strip;
}

#[inline(always)]
fn list_strip_portable<'a, I: Iterator<Item = &'a [u64]>>(
    rows: I,
    first: usize,
    listed: &mut [[u8; ROOM]],
    lengths: &mut [usize],
) {
    let spread = |bits: u64| (0..STEP / 2).map(|k| (bits >> (2 * k) & 3) << (8 * k)).sum();
    let pack = |bytes: u64, mask: u64| {
        let (mut out, mut at) = (0, 0);
        for k in 0..STEP / 2 {
            if mask >> (8 * k) & 1 == 1 {
                out |= (bytes >> (8 * k) & 0xff) << at;
                at += 8;
            }
        }
        out
    };
    list_strip_by(spread, pack, rows, first, listed, lengths);
}

/// `spread` gives two bits of 16 to each byte, `pack` moves the bytes of a mask next to each other.
#[inline(always)]
fn list_strip_by<'a>(
    spread: impl Fn(u64) -> u64,
    pack: impl Fn(u64, u64) -> u64,
    rows: impl Iterator<Item = &'a [u64]>,
    first: usize,
    listed: &mut [[u8; ROOM]],
    lengths: &mut [usize],
) {
    // 3k for the eight pairs of a step.
    let places = (0..8).map(|k| (3 * k) << (8 * k)).sum::<u64>();
    for ((row, out), length) in rows.zip(listed).zip(lengths) {
        let mut at = 0;
        *out = [0; ROOM];
        for half in 0..STRIP / 32 {
            let bit = first + 32 * half;
            let Some(word) = row.get(bit / 64) else { break };
            let bits = word >> (bit % 64);
            for k in 0..32 / STEP {
                let v = spread(bits >> (STEP * k) & 0xffff);
                let used = (v | v >> 1) & ONES;
                let entries = v + places + 24 * (2 * half + k) as u64 * ONES;
                out[at..at + 8].copy_from_slice(&pack(entries, 255 * used).to_le_bytes());
                at += used.count_ones() as usize;
            }
        }
        *length = at;
    }
}

/// Room for the sums of one strip: two lines for each, of neighbouring tiles or halves of one.
#[derive(Clone, Debug)]
pub struct PairSums<T: Element, const L: usize>(Box<[Line<T, L>; LINES]>);

/// Entries of a strip, and lines of them.
const ENTRIES: usize = 256;
const LINES: usize = 2 * ENTRIES;

impl<T: Element, const L: usize> Default for PairSums<T, L> {
    fn default() -> Self {
        Self(Box::new([Line::ZERO; LINES]))
    }
}

impl<T: Element, const L: usize> PairSums<T, L> {
    /// Writes down the sums of the pairs of one [`RUN`] that `used` marks, `W` lines for each.
    #[inline(always)]
    fn build<'a, const W: usize>(
        &mut self,
        run: usize,
        mut used: u32,
        row: impl Fn(usize, usize) -> &'a [T; L],
        scale: impl Fn(T) -> T,
    ) where
        T: 'a,
    {
        let scaled = |w: usize, i: usize| {
            let mut out = *row(w, i);
            out.iter_mut().for_each(|w| *w = scale(*w));
            out
        };
        let sums = self.0[2..].as_chunks_mut::<W>().0.as_chunks_mut::<3>().0;
        let sums = &mut sums.as_chunks_mut::<{ RUN / 2 }>().0[run];
        while used != 0 {
            let i = used.trailing_zeros() as usize;
            used &= used - 1;
            for w in 0..W {
                // The first of a pair is even.
                let (a, b, sums) = (scaled(w, i), scaled(w, i | 1), &mut sums[i / 2]);
                sums[0][w].0 = a;
                sums[1][w].0 = b;
                for l in 0..L {
                    sums[2][w].0[l] = a[l].plus(b[l]);
                }
            }
        }
    }

    /// The lines of each entry. The first two stay zero, which is what entry 0 stands for.
    #[inline(always)]
    fn entries<const W: usize>(&self) -> &[[Line<T, L>; W]; ENTRIES] {
        self.0[2 - W..].as_chunks().0.first_chunk().expect("there are two lines for each")
    }

    /// Adds to the sums of a group of samples what their entries name.
    #[inline(always)]
    fn gather<const W: usize>(
        &self,
        (group, entries): Four<'_>,
        sums: [[[T; L]; W]; FOUR],
    ) -> [[[T; L]; W]; FOUR] {
        let lines = self.entries::<W>();
        let [mut a, mut b, mut c, mut d] = sums;
        for e in &entries[..entries.len() - BEYOND] {
            for w in 0..W {
                add(&mut a[w], &lines[e[0] as usize][w].0);
                add(&mut b[w], &lines[e[1] as usize][w].0);
                if !is_half(group) {
                    add(&mut c[w], &lines[e[2] as usize][w].0);
                    add(&mut d[w], &lines[e[3] as usize][w].0);
                }
            }
        }
        [a, b, c, d]
    }
}

/// [`PairSums::gather`] for one kind of number, by hand where the caller is compiled for it.
macro_rules! gather_in {
    ($number:ty, $len:ident, $gather:ident, $two:ident) => {
        impl PairSums<$number, $len> {
            #[inline(always)]
            fn gather_in<const SET: u8, const W: usize>(
                &self,
                (group, entries): Four<'_>,
                sums: [[[$number; $len]; W]; FOUR],
            ) -> [[[$number; $len]; W]; FOUR] {
                #[cfg(target_arch = "x86_64")]
                #[expect(unsafe_code, reason = "functions with more features")]
                if SET == WIDEST && W == 2 {
                    let sums = sums.map(|lines| [lines[0], lines[W - 1]]);
                    // SAFETY: the caller is compiled for AVX-512 and runs only where it was detected.
                    let sums = unsafe { x86::avx512::$two(self.entries(), entries, sums) };
                    return sums.map(|lines| std::array::from_fn(|w| lines[w]));
                } else if SET == WIDEST && W == 1 {
                    let sums = sums.map(|lines| [lines[0]]);
                    // SAFETY: as above.
                    let sums = unsafe { x86::avx512::$gather(self.entries(), entries, sums) };
                    return sums.map(|lines| [lines[0]; W]);
                } else if SET == WIDE && W == 1 && !is_half(group) {
                    let sums = sums.map(|lines| lines[0]);
                    // SAFETY: the caller is compiled for AVX2 and runs only where it was detected.
                    let sums = unsafe { x86::avx2::$gather(self.entries(), entries, sums) };
                    return sums.map(|line| [line; W]);
                }
                self.gather((group, entries), sums)
            }
        }
    };
}
gather_in!(f32, HALF, gather_single, gather_single_two);
gather_in!(i16, TILE, gather_quantised, gather_quantised_two);

/// Whether a group has two samples at most.
#[inline(always)]
fn is_half(group: &[u32; FOUR]) -> bool {
    group[2] == NONE
}

fast! {
    /// What [`crate::tables::add_single`] does, for bits given as pairs.
    ///
    /// # Panics
    ///
    /// If the pairs are of fewer samples or rows.
    pub fn add_single_pairs[<'a, R: Fn(usize) -> &'a [f32; TILE] + Copy>](
        pairs: &Pairs,
        n_rows: usize,
        row: R,
        gain: f32,
        theta: &mut [Wide],
        sums: &mut PairSums<f32, HALF>,
    ) = add_single_pairs_in::<PORTABLE, R>,
        wide add_single_pairs_in::<WIDE, R>,
        widest add_single_pairs_in::<WIDEST, R>;
}

#[inline(always)]
pub(crate) fn add_single_pairs_in<'a, const SET: u8, R: Fn(usize) -> &'a [f32; TILE] + Copy>(
    pairs: &Pairs,
    n_rows: usize,
    row: R,
    gain: f32,
    theta: &mut [Wide],
    sums: &mut PairSums<f32, HALF>,
) {
    let half = |i: usize, half: usize| &row(i).as_chunks::<HALF>().0[half];
    if SET == WIDEST && theta.len() > FEW {
        let row = |w: usize, i: usize| half(i, w);
        single_halves::<SET, 2, _>(pairs, n_rows, row, gain, 0, theta, sums);
    } else {
        for first in 0..2 {
            let row = |_: usize, i: usize| half(i, first);
            single_halves::<SET, 1, _>(pairs, n_rows, row, gain, first, theta, sums);
        }
    }
}

/// Halves `first..first + W` of a tile.
#[inline(always)]
fn single_halves<'a, const SET: u8, const W: usize, R: Fn(usize, usize) -> &'a [f32; HALF]>(
    pairs: &Pairs,
    n_rows: usize,
    row: R,
    gain: f32,
    first_half: usize,
    theta: &mut [Wide],
    sums: &mut PairSums<f32, HALF>,
) {
    for (strip, first) in (0..n_rows).step_by(STRIP).enumerate() {
        for (run, first) in (first..n_rows).step_by(RUN).take(RUNS).enumerate() {
            let row = |w: usize, i: usize| {
                if first + i < n_rows { row(w, first + i) } else { &[0.0; HALF] }
            };
            sums.build::<W>(run, pairs.strips[strip].used[run], row, |w| w * gain);
        }
        for (four, entries) in pairs.strip(strip, theta.len()) {
            let mut now = [[[0.0; HALF]; W]; FOUR];
            for (now, &r) in now.iter_mut().zip(four) {
                if let Some(theta) = theta.get(r as usize) {
                    let halves = &theta.0.as_chunks::<HALF>().0[first_half..first_half + W];
                    now.iter_mut().zip(halves).for_each(|(now, half)| *now = *half);
                }
            }
            let now = sums.gather_in::<SET, W>((four, entries), now);
            for (now, &r) in now.iter().zip(four) {
                if let Some(theta) = theta.get_mut(r as usize) {
                    let halves = &mut theta.0.as_chunks_mut::<HALF>().0[first_half..first_half + W];
                    halves.copy_from_slice(now);
                }
            }
        }
    }
}

fast! {
    /// What [`crate::tables::add_quantised`] does, for bits given as pairs. `rows` gives the rows of a tile from one on
    /// that lie next to each other: up to the next multiple of 32, or to the last.
    ///
    /// # Panics
    ///
    /// If the pairs are of fewer samples or rows, there are fewer units than blocks or less room
    /// for sums than samples.
    pub fn add_quantised_pairs[<'a, R: Fn(usize, usize) -> &'a [Quantum] + Copy>](
        pairs: &Pairs,
        n_rows: usize,
        rows: R,
        unit: &[f32],
        out: Tiles<'_>,
        kept: &mut [Quantum],
        sums: &mut PairSums<i16, TILE>,
    ) = add_quantised_pairs_in::<PORTABLE, R>,
        wide add_quantised_pairs_in::<WIDE, R>,
        widest add_quantised_pairs_in::<WIDEST, R>;
}

#[inline(always)]
pub(crate) fn add_quantised_pairs_in<
    'a,
    const SET: u8,
    R: Fn(usize, usize) -> &'a [Quantum] + Copy,
>(
    pairs: &Pairs,
    n_rows: usize,
    rows: R,
    unit: &[f32],
    mut out: Tiles<'_>,
    kept: &mut [Quantum],
    sums: &mut PairSums<i16, TILE>,
) {
    assert!(unit.len() >= n_rows.div_ceil(BLOCK), "add_quantised_pairs: a unit for each block");
    let (n, kept) = (out.n(), &mut kept[..out.theta.len()]);
    let mut tile = 0;
    while tile < out.n_tiles {
        let width = if SET == WIDEST && n > FEW && tile + 2 <= out.n_tiles { 2 } else { 1 };
        let rows = |w: usize, i: usize| rows(tile + w, i);
        let part = out.part(tile, width);
        if width == 2 {
            quantised_tiles::<SET, 2, _>(pairs, n_rows, rows, unit, part, kept, sums);
        } else {
            quantised_tiles::<SET, 1, _>(pairs, n_rows, rows, unit, part, kept, sums);
        }
        tile += width;
    }
}

/// `W` neighbouring tiles.
#[inline(always)]
fn quantised_tiles<'a, const SET: u8, const W: usize, R: Fn(usize, usize) -> &'a [Quantum]>(
    pairs: &Pairs,
    n_rows: usize,
    rows: R,
    unit: &[f32],
    mut out: Tiles<'_>,
    kept: &mut [Quantum],
    sums: &mut PairSums<i16, TILE>,
) {
    let n = out.n();
    if n_rows == 0 {
        out.begin();
    }
    let (start, theta) = (out.start, &mut out.theta[..W * n]);
    for (strip, first) in (0..n_rows).step_by(STRIP).enumerate() {
        for (run, first) in (first..n_rows).step_by(RUN).take(RUNS).enumerate() {
            let rows: [&[Quantum]; W] = std::array::from_fn(|w| rows(w, first));
            let used = pairs.strips[strip].used[run];
            if rows.iter().all(|rows| rows.len() >= RUN) {
                sums.build::<W>(run, used, |w, i| &rows[w][i].0, |w| w);
            } else {
                let row = |w: usize, i: usize| rows[w].get(i).map_or(&[0; TILE], |row| &row.0);
                sums.build::<W>(run, used, row, |w| w);
            }
        }
        let (block, begins) = (first / BLOCK, first.is_multiple_of(BLOCK));
        let ends = !begins || first + STRIP >= n_rows;
        for (four, entries) in pairs.strip(strip, n) {
            let mut now = [[[0; TILE]; W]; FOUR];
            if !begins {
                for (now, &r) in now.iter_mut().zip(four) {
                    if r != NONE {
                        for (w, now) in now.iter_mut().enumerate() {
                            *now = kept[w * n + r as usize].0;
                        }
                    }
                }
            }
            let now = sums.gather_in::<SET, W>((four, entries), now);
            for (now, &r) in now.iter().zip(four) {
                if r == NONE {
                    continue;
                }
                for (w, now) in now.iter().enumerate() {
                    let at = w * n + r as usize;
                    if !ends {
                        kept[at].0 = *now;
                        continue;
                    }
                    match start {
                        Some(start) if block == 0 => {
                            widen::<{ ending::START }>(now, unit[0], &start[w], &mut theta[at]);
                        }
                        _ => {
                            widen::<{ ending::ADD }>(now, unit[block], &Wide::ZERO, &mut theta[at]);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
