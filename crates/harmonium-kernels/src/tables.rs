//! Bits times numbers by tables of partial sums ("four Russians").
//!
//! Take 5 rows of weights and write down the 32 sums of their subsets; every sample then adds one
//! entry where a dense product multiplies and adds five times. 8 tables of 32 cache lines are
//! 16 KiB and stay in the first-level cache while all samples pass
//! (Arlazarov, Dinic, Kronrod & Faradžev 1970).

use crate::dispatch::fast;
use crate::index::Used;
use crate::line::{Element, HALF, Line, PANEL, Quantum, Row, TILE, Wide};

/// Rows of one table.
const GROUP: usize = 5;
/// Tables that are alive at the same time.
const TABLES: usize = 8;
/// The same for gradients.
const MOST_TABLES: usize = 12;
/// Rows that one word of indices covers.
pub const CHUNK: usize = GROUP * TABLES;
/// Rows whose quantised sums are kept in 16 bits before they are widened.
pub const BLOCK: usize = 320;
/// Tables of small fields that are summed in 8 bits before they are widened.
const FIELD_TABLES: usize = 4;
/// Most levels of a field: 20 rows of them, which four tables hold, stay below 256.
pub const LEVELS: u32 = 12;
/// Samples that one word of a column covers: there are more sums in a gradient than samples in a product, so it
/// pays to touch them less often.
pub const COLUMN_CHUNK: usize = GROUP * MOST_TABLES;

const ENTRIES: usize = 1 << GROUP;
const INDEX: usize = ENTRIES - 1;
/// Bits of an address inside an entry of 64 bytes.
#[cfg(target_arch = "x86_64")]
const ENTRY: usize = 6;

/// Room for the tables of one chunk, `L` columns each.
#[derive(Clone, Debug)]
pub struct Tables<T: Element, const L: usize>(Box<[[Line<T, L>; ENTRIES]; MOST_TABLES]>);

impl<T: Element, const L: usize> Default for Tables<T, L> {
    fn default() -> Self {
        Self(Box::new([[Line::ZERO; ENTRIES]; MOST_TABLES]))
    }
}

/// Writes all subset sums of five rows, `H` columns at a time so that eight entries stay in
/// registers.
#[inline(always)]
fn build<T: Element, const L: usize, const H: usize>(
    table: &mut [Line<T, L>; ENTRIES],
    rows: [&[T; L]; GROUP],
    scale: impl Fn(T) -> T,
) {
    let mut start = 0;
    while start < L {
        let mut r = [[T::ZERO; H]; GROUP];
        for k in 0..GROUP {
            for l in 0..H {
                r[k][l] = scale(rows[k][start + l]);
            }
        }
        let mut low = [[T::ZERO; H]; 8];
        for k in 0..3 {
            for q in 0..1 << k {
                for l in 0..H {
                    low[(1 << k) + q][l] = low[q][l].plus(r[k][l]);
                }
            }
        }
        for q in 0..8 {
            for l in 0..H {
                table[q].0[start + l] = low[q][l];
            }
        }
        for high in 1..4 {
            let mut base = [T::ZERO; H];
            for l in 0..H {
                base[l] = match high {
                    1 => r[3][l],
                    2 => r[4][l],
                    _ => r[3][l].plus(r[4][l]),
                };
            }
            for q in 0..8 {
                for l in 0..H {
                    table[high * 8 + q].0[start + l] = low[q][l].plus(base[l]);
                }
            }
        }
        start += H;
    }
}

/// Builds the tables of the rows `first..end`, at most [`CHUNK`] of them; rows beyond are zero.
/// Returns how many tables hold something.
#[inline(always)]
fn build_chunk<'a, T: Element + 'a, const L: usize, const H: usize>(
    tables: &mut Tables<T, L>,
    first: usize,
    end: usize,
    row: impl Fn(usize) -> &'a [T; L],
    scale: impl Fn(T) -> T,
) -> usize {
    let zero = [T::ZERO; L];
    let used = (end - first).div_ceil(GROUP).min(MOST_TABLES);
    for (g, table) in tables.0.iter_mut().enumerate().take(used) {
        let at = first + g * GROUP;
        let last = |i: usize| if i < end { row(i) } else { &zero };
        let rows = if at + GROUP <= end {
            [row(at), row(at + 1), row(at + 2), row(at + 3), row(at + 4)]
        } else {
            [row(at), last(at + 1), last(at + 2), last(at + 3), last(at + 4)]
        };
        build::<T, L, H>(table, rows, &scale);
    }
    used
}

/// What the five bits `5 G..5 G + 5` of a word pick from table `G`.
#[inline(always)]
fn entry<const G: usize, const WIDE: bool, T: Element, const L: usize>(
    tables: &Tables<T, L>,
    word: u64,
) -> &[T; L] {
    #[cfg(target_arch = "x86_64")]
    let word = if WIDE { x86::turned::<G>(word) >> ENTRY } else { word >> (GROUP * G) };
    #[cfg(not(target_arch = "x86_64"))]
    let word = word >> (GROUP * G);
    #[expect(clippy::cast_possible_truncation, reason = "five bits are wanted")]
    let index = word as usize & INDEX;
    &tables.0[G][index].0
}

#[inline(always)]
pub(crate) fn add<T: Element, const L: usize>(sum: &mut [T; L], entry: &[T; L]) {
    for l in 0..L {
        sum[l] = sum[l].plus(entry[l]);
    }
}

/// Words in runs of `N`, read two runs before they are needed where `WIDE`: an entry whose address
/// comes late keeps the loads behind it waiting.
struct Ahead<'a, const WIDE: bool, const N: usize> {
    next: [[u64; N]; 2],
    rest: std::slice::Iter<'a, [u64; N]>,
}

impl<'a, const WIDE: bool, const N: usize> Ahead<'a, WIDE, N> {
    #[inline(always)]
    fn new(words: &'a [[u64; N]]) -> Self {
        let mut rest = words.iter();
        let mut next = || rest.next().map_or([0; N], |run| *run);
        Self { next: [next(), next()], rest }
    }

    #[inline(always)]
    fn take(&mut self) -> [u64; N] {
        let [now, next] = self.next;
        let after = self.rest.next().map_or([0; N], |run| *run);
        self.next = [next, after.map(stay::<WIDE>)];
        now
    }
}

/// The same word, read here and not later.
#[inline(always)]
fn stay<const WIDE: bool>(word: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        return x86::stay(word);
    }
    word
}

/// Does `$work` for each of the first `U` tables, whose number is a constant in it: the compiler
/// would keep a loop, whose branches cost more than the sums.
macro_rules! each_table {
    ($U:ident, $G:ident, $work:block) => {
        each_table!(@ $U, $G, $work, 0 1 2 3 4 5 6 7 8 9 10 11)
    };
    (@ $U:ident, $G:ident, $work:block, $($g:literal)*) => {
        $(if $g < $U {
            const $G: usize = $g;
            $work
        })*
    };
}

/// Adds to `sum` what `word` picks from the first `U` tables.
#[inline(always)]
fn gather<const U: usize, const WIDE: bool, T: Element, const L: usize>(
    sum: &mut [T; L],
    tables: &Tables<T, L>,
    word: u64,
) {
    each_table!(U, G, { add(sum, entry::<G, WIDE, T, L>(tables, word)) });
}

/// The same for two samples at once, which hides the latency of the loads.
#[inline(always)]
fn gather_two<const U: usize, const WIDE: bool, T: Element, const L: usize>(
    (a, b): (&mut [T; L], &mut [T; L]),
    tables: &Tables<T, L>,
    words: [u64; 2],
) {
    each_table!(U, G, {
        add(a, entry::<G, WIDE, T, L>(tables, words[0]));
        add(b, entry::<G, WIDE, T, L>(tables, words[1]));
    });
}

/// Runs `$pass` with a constant that equals `$used`.
macro_rules! with_tables {
    ($used:expr, $pass:ident, $($n:literal)*, $last:literal) => {
        match $used {
            $($n => $pass!($n),)*
            _ => $pass!($last),
        }
    };
}

fast! {
    /// `theta[r][16 half + l] += gain * Σ_i x[r][i] row(i)[l]` for bits given as index words over
    /// the rows of weights that are used, see [`Form::Words`](crate::index::Form).
    ///
    /// # Panics
    ///
    /// If there are fewer words than the rows need, or `half` is neither 0 nor 1.
    pub fn add_single[<'a, R: Fn(usize) -> &'a [f32; HALF] + Copy>](
        words: &[u64],
        used: &Used,
        row: R,
        gain: f32,
        half: usize,
        theta: &mut [Wide],
        tables: &mut Tables<f32, HALF>,
    ) = add_single_portable;
}

#[inline(always)]
fn add_single_portable<'a, R: Fn(usize) -> &'a [f32; HALF] + Copy>(
    words: &[u64],
    used: &Used,
    row: R,
    gain: f32,
    half: usize,
    theta: &mut [Wide],
    tables: &mut Tables<f32, HALF>,
) {
    assert!(half < 2, "add_single: a tile has two halves");
    let n = theta.len();
    let mut words = words;
    for block in 0..used.n_blocks() {
        for columns in used.block(block).chunks(CHUNK) {
            let row = |i: usize| row(columns[i] as usize);
            let n_tables = build_chunk::<_, HALF, 8>(tables, 0, columns.len(), row, |w| w * gain);
            let (now, rest) = words.split_at(n);
            words = rest;
            add_chunk(now, tables, n_tables, half, theta);
        }
    }
}

fast! {
    /// Adds what the samples pick from the first `n_tables` tables.
    fn add_chunk[](
        words: &[u64],
        tables: &Tables<f32, HALF>,
        n_tables: usize,
        half: usize,
        theta: &mut [Wide],
    ) = add_chunk_in::<false>, wide add_chunk_in::<true>;
}

#[inline(always)]
fn add_chunk_in<const WIDE: bool>(
    words: &[u64],
    tables: &Tables<f32, HALF>,
    n_tables: usize,
    half: usize,
    theta: &mut [Wide],
) {
    macro_rules! pass {
        ($U:literal) => {
            sum_lines::<$U, WIDE, TILE>(words, tables, false, half, theta)
        };
    }
    with_tables!(n_tables, pass, 1 2 3 4 5 6 7, 8);
}

/// Adds to columns `16 part..16 part + 16` of each line what its word picks from the first `U`
/// tables, or starts with that.
#[inline(always)]
fn sum_lines<const U: usize, const WIDE: bool, const W: usize>(
    words: &[u64],
    tables: &Tables<f32, HALF>,
    starts: bool,
    part: usize,
    lines: &mut [Line<f32, W>],
) {
    let (pairs, last) = lines.as_chunks_mut::<2>();
    let (word_pairs, last_word) = words.as_chunks::<2>();
    #[cfg(target_arch = "x86_64")]
    let pairs = if WIDE {
        #[expect(unsafe_code, reason = "a function with more features")]
        // SAFETY: the caller is compiled for AVX2 and runs only where it was detected.
        unsafe {
            x86::sum_pairs::<U, W>(word_pairs, tables, starts, part, pairs);
        }
        &mut []
    } else {
        pairs
    };
    for ([a, b], &w) in pairs.iter_mut().zip(word_pairs) {
        let (a, b) = (part_of(a, part), part_of(b, part));
        let (mut x, mut y) = if starts { ([0.0; HALF], [0.0; HALF]) } else { (*a, *b) };
        gather_two::<U, WIDE, _, HALF>((&mut x, &mut y), tables, w);
        (*a, *b) = (x, y);
    }
    for (line, &w) in last.iter_mut().zip(last_word) {
        let sum = part_of(line, part);
        let mut x = if starts { [0.0; HALF] } else { *sum };
        gather::<U, WIDE, _, HALF>(&mut x, tables, w);
        *sum = x;
    }
}

/// Columns `16 part..16 part + 16` of a line.
#[inline(always)]
fn part_of<const W: usize>(line: &mut Line<f32, W>, part: usize) -> &mut [f32; HALF] {
    &mut line.0.as_chunks_mut::<HALF>().0[part]
}

#[cfg(target_arch = "x86_64")]
mod x86;

fast! {
    /// `theta[r][l] += unit[i / BLOCK] * Σ_i x[r][i] row(i)[l]` for bits given as index words over
    /// the rows of weights that are used, with 16-bit sums that are widened after each [`BLOCK`] of
    /// rows; `start[l]` stands for what was there, if it is given. The scale of a block must be
    /// such that no subset of its rows can overflow.
    ///
    /// # Panics
    ///
    /// If there are fewer words or units than the rows need, or less room for sums than samples.
    pub fn add_quantised[<'a, R: Fn(usize) -> &'a [i16; TILE] + Copy>](
        words: &[u64],
        used: &Used,
        row: R,
        unit: &[f32],
        start: Option<&Wide>,
        theta: &mut [Wide],
        sums: &mut [Quantum],
        tables: &mut Tables<i16, TILE>,
    ) = add_quantised_portable;
}

#[inline(always)]
fn add_quantised_portable<'a, R: Fn(usize) -> &'a [i16; TILE] + Copy>(
    words: &[u64],
    used: &Used,
    row: R,
    unit: &[f32],
    mut start: Option<&Wide>,
    theta: &mut [Wide],
    sums: &mut [Quantum],
    tables: &mut Tables<i16, TILE>,
) {
    assert!(unit.len() >= used.n_blocks(), "add_quantised: a unit for each block");
    let n = theta.len();
    let sums = &mut sums[..n];
    let mut words = words;
    for (block, &unit) in (0..used.n_blocks()).zip(unit) {
        let of_block = used.block(block);
        for (k, columns) in of_block.chunks(CHUNK).enumerate() {
            let row = |i: usize| row(columns[i] as usize);
            let n_tables = build_chunk::<_, TILE, 16>(tables, 0, columns.len(), row, |w| w);
            let (now, rest) = words.split_at(n);
            words = rest;
            let end = match (start, (k + 1) * CHUNK < of_block.len()) {
                (_, true) => End::Open,
                (Some(start), false) => End::Start(unit, start),
                (None, false) => End::Add(unit),
            };
            quantised_chunk(now, tables, n_tables, k == 0, end, theta, sums);
        }
        if !of_block.is_empty() {
            start = None;
        }
    }
    if let Some(start) = start {
        theta.fill(*start);
    }
}

/// What becomes of 16-bit sums after a chunk.
#[derive(Clone, Copy)]
enum End<'a> {
    /// They go on.
    Open,
    /// Times a unit they are added to what is there.
    Add(f32),
    /// Times a unit they are added to a start.
    Start(f32, &'a Wide),
}

fast! {
    /// One chunk of a block, which may be its first.
    fn quantised_chunk[](
        words: &[u64],
        tables: &Tables<i16, TILE>,
        n_tables: usize,
        starts: bool,
        end: End<'_>,
        theta: &mut [Wide],
        sums: &mut [Quantum],
    ) = quantised_chunk_in::<false>, wide quantised_chunk_in::<true>;
}

#[inline(always)]
fn quantised_chunk_in<const WIDE: bool>(
    words: &[u64],
    tables: &Tables<i16, TILE>,
    n_tables: usize,
    starts: bool,
    end: End<'_>,
    theta: &mut [Wide],
    sums: &mut [Quantum],
) {
    macro_rules! pass {
        ($U:literal) => {
            if starts {
                quantised_tables::<$U, true, WIDE>(words, tables, end, theta, sums);
            } else {
                quantised_tables::<$U, false, WIDE>(words, tables, end, theta, sums);
            }
        };
    }
    with_tables!(n_tables, pass, 1 2 3 4 5 6 7, 8);
}

#[inline(always)]
fn quantised_tables<const U: usize, const STARTS: bool, const WIDE: bool>(
    words: &[u64],
    tables: &Tables<i16, TILE>,
    end: End<'_>,
    theta: &mut [Wide],
    sums: &mut [Quantum],
) {
    // What follows the sum is chosen outside the loop over samples.
    match end {
        End::Open => pass_two::<U, STARTS, 0, WIDE>(words, tables, (0.0, &Wide::ZERO), theta, sums),
        End::Add(unit) => {
            pass_two::<U, STARTS, 1, WIDE>(words, tables, (unit, &Wide::ZERO), theta, sums);
        }
        End::Start(unit, start) => {
            pass_two::<U, STARTS, 2, WIDE>(words, tables, (unit, start), theta, sums);
        }
    }
}

/// Sums what all samples pick, two at a time. `END` is 0 to go on, 1 to add, 2 to start.
#[inline(always)]
fn pass_two<const U: usize, const STARTS: bool, const END: u8, const WIDE: bool>(
    words: &[u64],
    tables: &Tables<i16, TILE>,
    (unit, start): (f32, &Wide),
    theta: &mut [Wide],
    sums: &mut [Quantum],
) {
    let (pairs, last) = sums.as_chunks_mut::<2>();
    let (theta_pairs, last_theta) = theta.as_chunks_mut::<2>();
    let (word_pairs, last_word) = words.as_chunks::<2>();
    let mut ahead = Ahead::<WIDE, 2>::new(word_pairs);
    for (pair, t) in pairs.iter_mut().zip(theta_pairs) {
        let w = ahead.take();
        let (mut a, mut b) = if STARTS { ([0; TILE], [0; TILE]) } else { (pair[0].0, pair[1].0) };
        gather_two::<U, WIDE, _, TILE>((&mut a, &mut b), tables, w);
        if END == 0 {
            (pair[0].0, pair[1].0) = (a, b);
        } else {
            widen::<END>(&a, unit, start, &mut t[0]);
            widen::<END>(&b, unit, start, &mut t[1]);
        }
    }
    for ((s, t), &w) in last.iter_mut().zip(last_theta).zip(last_word) {
        let mut sum = if STARTS { [0; TILE] } else { s.0 };
        gather::<U, WIDE, _, TILE>(&mut sum, tables, w);
        if END == 0 {
            s.0 = sum;
        } else {
            widen::<END>(&sum, unit, start, t);
        }
    }
}

#[inline(always)]
pub(crate) fn widen<const END: u8>(sum: &[i16; TILE], unit: f32, start: &Wide, theta: &mut Wide) {
    for l in 0..TILE {
        let before = if END == 2 { start.0[l] } else { theta.0[l] };
        theta.0[l] = f32::from(sum[l]).mul_add(unit, before);
    }
}

fast! {
    /// `sums[i] += factor * Σ_r x[r][i] row(r)` for columns `16 sub..16 sub + 16` of single-precision
    /// numbers, or `=` where the sum starts; `words` as for [`sum_fields`].
    ///
    /// # Panics
    ///
    /// If there are fewer words than the rows need, or `sub` is not below 4.
    pub fn sum_single[<'a, R: Fn(usize) -> &'a [f32; HALF] + Copy>](
        words: &[u64],
        n_rows: usize,
        row: R,
        factor: f32,
        sub: usize,
        starts: bool,
        sums: &mut [Row],
        tables: &mut Tables<f32, HALF>,
    ) = sum_single_portable;
}

#[inline(always)]
fn sum_single_portable<'a, R: Fn(usize) -> &'a [f32; HALF] + Copy>(
    words: &[u64],
    n_rows: usize,
    row: R,
    factor: f32,
    sub: usize,
    starts: bool,
    sums: &mut [Row],
    tables: &mut Tables<f32, HALF>,
) {
    let n = sums.len();
    if n_rows == 0 && starts {
        sums.iter_mut().for_each(|s| *part_of(s, sub) = [0.0; HALF]);
    }
    for (k, first) in (0..n_rows).step_by(COLUMN_CHUNK).enumerate() {
        let end = n_rows.min(first + COLUMN_CHUNK);
        let used = build_chunk::<_, HALF, 8>(tables, first, end, row, |w| factor * w);
        let words = &words[k * n..(k + 1) * n];
        sum_chunk(words, tables, used, starts && k == 0, sub, sums);
    }
}

fast! {
    /// Adds what the columns pick from the first `n_tables` tables.
    fn sum_chunk[](
        words: &[u64],
        tables: &Tables<f32, HALF>,
        n_tables: usize,
        starts: bool,
        sub: usize,
        sums: &mut [Row],
    ) = sum_chunk_in::<false>, wide sum_chunk_in::<true>;
}

#[inline(always)]
fn sum_chunk_in<const WIDE: bool>(
    words: &[u64],
    tables: &Tables<f32, HALF>,
    n_tables: usize,
    starts: bool,
    sub: usize,
    sums: &mut [Row],
) {
    macro_rules! pass {
        ($U:literal) => {
            sum_lines::<$U, WIDE, PANEL>(words, tables, starts, sub, sums)
        };
    }
    with_tables!(n_tables, pass, 1 2 3 4 5 6 7 8 9 10 11, 12);
}

mod fields;
pub use fields::{Sign, subtract_fields, sum_fields};

#[cfg(test)]
mod tests;
