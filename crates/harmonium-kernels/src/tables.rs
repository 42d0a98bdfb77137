//! Bits times numbers by tables of partial sums ("four Russians").
//!
//! Take 5 rows of weights and write down the 32 sums of their subsets; every sample then adds one
//! entry where a dense product multiplies and adds five times. 8 tables of 32 cache lines are
//! 16 KiB and stay in the first-level cache while all samples pass
//! (Arlazarov, Dinic, Kronrod & Faradžev 1970).

#[cfg(target_arch = "x86_64")]
use crate::dispatch::WIDE;
use crate::dispatch::{PORTABLE, WIDEST, fast};
use crate::index::Used;
use crate::line::{Element, HALF, Line, Quantum, Row, TILE, Wide};
use crate::response::start_rows;

/// Rows of one table.
const GROUP: usize = 5;
/// Tables that are alive at the same time.
const TABLES: usize = 8;
/// The same for gradients.
const MOST_TABLES: usize = 12;
/// Samples up to which half of the tables are alive at a time where entries have two lines: so that they and the
/// sums fit the nearest cache. More samples go through it anyway, and it is better if they do so less often.
const FEW: usize = 256;
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

/// Room for the tables of one chunk: a line for each entry, or two of neighbouring columns.
#[derive(Clone, Debug)]
pub struct Tables<T: Element, const L: usize> {
    lines: Box<[Line<T, L>; LINES]>,
    /// Whether the nearest cache holds all of them with two lines to an entry. Where it does not, those of
    /// single precision keep to one; quantised ones, of which fewer are alive, do not feel it.
    fit: bool,
}

/// Lines of all tables, two to an entry.
const LINES: usize = 2 * MOST_TABLES * ENTRIES;

impl<T: Element, const L: usize> Default for Tables<T, L> {
    fn default() -> Self {
        #[cfg(target_arch = "x86_64")]
        let fit = crate::dispatch::nearest_cache() >= LINES * size_of::<Line<T, L>>();
        #[cfg(not(target_arch = "x86_64"))]
        let fit = false;
        Self { lines: Box::new([Line::ZERO; LINES]), fit }
    }
}

/// Natural parameters of neighbouring tiles of 32 columns, those of all samples for one after the
/// other.
#[derive(Debug)]
pub struct Tiles<'a> {
    /// `theta[t * n + r]` belongs to tile `t` of sample `r` of `n`.
    pub theta: &'a mut [Wide],
    /// What stands for them before anything is added, for each tile, if it does.
    pub start: Option<&'a [Wide]>,
    /// Number of tiles.
    pub n_tiles: usize,
}

impl Tiles<'_> {
    /// Number of samples.
    #[inline(always)]
    pub fn n(&self) -> usize {
        self.theta.len() / self.n_tiles.max(1)
    }

    /// Tiles `first..first + n_tiles`.
    #[inline(always)]
    pub(crate) fn part(&mut self, first: usize, n_tiles: usize) -> Tiles<'_> {
        let n = self.n();
        Tiles {
            theta: &mut self.theta[first * n..(first + n_tiles) * n],
            start: self.start.map(|start| &start[first..first + n_tiles]),
            n_tiles,
        }
    }

    /// Starts them, where what follows would not do it or nothing is added.
    pub fn begin(&mut self) {
        let n = self.n().max(1);
        let start = self.start.take().unwrap_or_default();
        self.theta.chunks_mut(n).zip(start).for_each(|(theta, start)| start_rows(theta, start));
    }
}

/// What the five bits `5 G..5 G + 5` of a word pick from table `G`.
#[inline(always)]
fn entry<const G: usize, const WIDE: bool, T: Element, const L: usize>(
    tables: &Tables<T, L>,
    word: u64,
) -> &[T; L] {
    #[cfg(target_arch = "x86_64")]
    let word = if WIDE { x86::avx2::turned::<G>(word) >> ENTRY } else { word >> (GROUP * G) };
    #[cfg(not(target_arch = "x86_64"))]
    let word = word >> (GROUP * G);
    #[expect(clippy::cast_possible_truncation, reason = "five bits are wanted")]
    let index = word as usize & INDEX;
    &tables.lines[G * ENTRIES + index].0
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
        return x86::avx2::stay(word);
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

/// Rows of a word whose tables are alive at the same time, with two lines to an entry.
#[inline(always)]
fn two_lines_at_once(n: usize) -> usize {
    if n <= FEW { CHUNK / 2 } else { CHUNK }
}

/// Which tables are at hand.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "all have one line"))]
struct Pass {
    /// How many.
    n_tables: usize,
    /// Lines of an entry; two only by AVX-512.
    n_lines: usize,
    /// Bits of a word before those of the first table; none where an entry has one line.
    shift: usize,
}

impl Pass {
    #[inline(always)]
    fn of_one_line(n_tables: usize) -> Self {
        Self { n_tables, n_lines: 1, shift: 0 }
    }
}

fast! {
    /// `theta[r][l] += gain * Σ_i x[r][i] row(i)[l]` for bits given as index words over
    /// the rows of weights that are used, see [`Form::Words`](crate::index::Form).
    ///
    /// # Panics
    ///
    /// If there are fewer words than the rows need.
    pub fn add_single[<'a, R: Fn(usize) -> &'a [f32; TILE] + Copy>](
        words: &[u64],
        used: &Used,
        row: R,
        gain: f32,
        theta: &mut [Wide],
        tables: &mut Tables<f32, HALF>,
    ) = add_single_in::<PORTABLE, R>,
        wide add_single_in::<WIDE, R>,
        widest add_single_in::<WIDEST, R>;
}

#[inline(always)]
fn add_single_in<'a, const SET: u8, R: Fn(usize) -> &'a [f32; TILE] + Copy>(
    words: &[u64],
    used: &Used,
    row: R,
    gain: f32,
    theta: &mut [Wide],
    tables: &mut Tables<f32, HALF>,
) {
    let half = |i: usize, half: usize| &row(i).as_chunks::<HALF>().0[half];
    let (n, mut words) = (theta.len(), words);
    for block in 0..used.n_blocks() {
        for columns in used.block(block).chunks(CHUNK) {
            let (now, rest) = words.split_at(n);
            words = rest;
            let at = |i: usize| columns[i] as usize;
            if SET == WIDEST && tables.fit {
                let row = |w: usize, i: usize| half(at(i), w);
                let at_once = two_lines_at_once(n);
                for first in (0..columns.len()).step_by(at_once) {
                    let end = columns.len().min(first + at_once);
                    let n_tables = build_singles(tables, first, end, row, gain);
                    let pass = Pass { n_tables, n_lines: 2, shift: first };
                    sum_halves(now, tables, pass, false, 0, theta);
                }
                continue;
            }
            for part in 0..2 {
                let row = |i: usize| half(at(i), part);
                let n_tables =
                    build_chunk::<_, HALF, 8>(tables, 0, columns.len(), row, |w| w * gain);
                sum_halves(now, tables, Pass::of_one_line(n_tables), false, part, theta);
            }
        }
    }
}

fast! {
    /// Adds to columns `16 part..` of each line, 16 or 32 of them, what its word picks from the
    /// tables, or starts with that.
    fn sum_halves[<const N: usize>](
        words: &[u64],
        tables: &Tables<f32, HALF>,
        pass: Pass,
        starts: bool,
        part: usize,
        lines: &mut [Line<f32, N>],
    ) = sum_halves_in::<PORTABLE, N>,
        wide sum_halves_in::<WIDE, N>,
        widest sum_halves_in::<WIDEST, N>;
}

#[inline(always)]
fn sum_halves_in<const SET: u8, const N: usize>(
    words: &[u64],
    tables: &Tables<f32, HALF>,
    pass: Pass,
    starts: bool,
    part: usize,
    lines: &mut [Line<f32, N>],
) {
    #[cfg(target_arch = "x86_64")]
    if SET == WIDEST && pass.n_lines == 2 {
        macro_rules! two_lines {
            ($U:literal) => {{
                #[expect(unsafe_code, reason = "a function with more features")]
                // SAFETY: the caller is compiled for AVX-512 and runs only where it was detected.
                unsafe {
                    x86::avx512::sum_singles::<$U, N>(
                        words, tables, pass.shift, starts, part, lines,
                    );
                }
            }};
        }
        with_tables!(pass.n_tables, two_lines, 1 2 3 4 5 6 7 8 9 10 11, 12);
        return;
    }
    macro_rules! one_line {
        ($U:literal) => {
            sum_lines::<$U, SET, N>(words, tables, starts, part, lines)
        };
    }
    with_tables!(pass.n_tables, one_line, 1 2 3 4 5 6 7 8 9 10 11, 12);
}

#[inline(always)]
fn sum_lines<const U: usize, const SET: u8, const N: usize>(
    words: &[u64],
    tables: &Tables<f32, HALF>,
    starts: bool,
    part: usize,
    lines: &mut [Line<f32, N>],
) {
    let (pairs, last) = lines.as_chunks_mut::<2>();
    let (word_pairs, last_word) = words.as_chunks::<2>();
    #[cfg(target_arch = "x86_64")]
    let pairs = if SET >= WIDE {
        #[expect(unsafe_code, reason = "a function with more features")]
        // SAFETY: the caller is compiled for AVX2 and runs only where it was detected.
        unsafe {
            x86::avx2::sum_pairs::<U, N>(word_pairs, tables, starts, part, pairs);
        }
        &mut []
    } else {
        pairs
    };
    for ([a, b], &w) in pairs.iter_mut().zip(word_pairs) {
        let (a, b) = (part_of(a, part), part_of(b, part));
        let (mut x, mut y) = if starts { ([0.0; HALF], [0.0; HALF]) } else { (*a, *b) };
        gather_two::<U, false, _, HALF>((&mut x, &mut y), tables, w);
        (*a, *b) = (x, y);
    }
    for (line, &w) in last.iter_mut().zip(last_word) {
        let sum = part_of(line, part);
        let mut x = if starts { [0.0; HALF] } else { *sum };
        gather::<U, false, _, HALF>(&mut x, tables, w);
        *sum = x;
    }
}

/// Columns `16 part..16 part + 16` of a line.
#[inline(always)]
fn part_of<const N: usize>(line: &mut Line<f32, N>, part: usize) -> &mut [f32; HALF] {
    &mut line.0.as_chunks_mut::<HALF>().0[part]
}

mod build;
#[cfg(target_arch = "x86_64")]
mod x86;
use build::{build_chunk, build_quanta, build_singles};

fast! {
    /// `theta[r][l] += unit[i / BLOCK] * Σ_i x[r][i] row(t, i)[l]` for bits given as index words over
    /// the rows of weights that are used, with 16-bit sums that are widened after each [`BLOCK`] of
    /// rows. The scale of a block must be such that no subset of its rows can overflow.
    ///
    /// # Panics
    ///
    /// If there are fewer words or units than the rows need, or less room for sums than samples and
    /// tiles.
    pub fn add_quantised[<'a, R: Fn(usize, usize) -> &'a [i16; TILE] + Copy>](
        words: &[u64],
        used: &Used,
        row: R,
        unit: &[f32],
        out: Tiles<'_>,
        sums: &mut [Quantum],
        tables: &mut Tables<i16, TILE>,
    ) = add_quantised_in::<PORTABLE, R>,
        wide add_quantised_in::<WIDE, R>,
        widest add_quantised_in::<WIDEST, R>;
}

#[inline(always)]
fn add_quantised_in<'a, const SET: u8, R: Fn(usize, usize) -> &'a [i16; TILE] + Copy>(
    words: &[u64],
    used: &Used,
    row: R,
    unit: &[f32],
    mut out: Tiles<'_>,
    sums: &mut [Quantum],
    tables: &mut Tables<i16, TILE>,
) {
    assert!(unit.len() >= used.n_blocks(), "add_quantised: a unit for each block");
    let sums = &mut sums[..out.theta.len()];
    let mut tile = 0;
    while tile < out.n_tiles {
        let width = if SET == WIDEST && tile + 2 <= out.n_tiles { 2 } else { 1 };
        let row = |w: usize, i: usize| row(tile + w, i);
        let part = out.part(tile, width);
        let sums = &mut sums[..part.theta.len()];
        if width == 2 {
            quantised_tiles::<2, _>(words, used, row, unit, part, sums, tables);
        } else {
            quantised_tiles::<1, _>(words, used, row, unit, part, sums, tables);
        }
        tile += width;
    }
}

/// `W` neighbouring tiles.
#[inline(always)]
fn quantised_tiles<'a, const W: usize, R: Fn(usize, usize) -> &'a [i16; TILE] + Copy>(
    words: &[u64],
    used: &Used,
    row: R,
    unit: &[f32],
    mut out: Tiles<'_>,
    sums: &mut [Quantum],
    tables: &mut Tables<i16, TILE>,
) {
    let n = out.n();
    let (mut start, mut words) = (out.start, words);
    let at_once = if W == 2 { two_lines_at_once(n) } else { CHUNK };
    for (block, &unit) in (0..used.n_blocks()).zip(unit) {
        let of_block = used.block(block);
        for (k, columns) in of_block.chunks(CHUNK).enumerate() {
            let row = |w: usize, i: usize| row(w, columns[i] as usize);
            let (now, rest) = words.split_at(n);
            words = rest;
            for first in (0..columns.len()).step_by(at_once) {
                let stop = columns.len().min(first + at_once);
                let n_tables = if W == 2 {
                    build_quanta(tables, first, stop, row)
                } else {
                    build_chunk::<_, TILE, 16>(tables, first, stop, |i| row(0, i), |w| w)
                };
                let end = match (start, k * CHUNK + stop < of_block.len()) {
                    (_, true) => End::Open,
                    (Some(start), false) => End::Start(unit, start),
                    (None, false) => End::Add(unit),
                };
                let pass = Pass { n_tables, n_lines: W, shift: first };
                quantised_chunk(now, tables, pass, k == 0 && first == 0, end, out.theta, sums);
            }
        }
        if !of_block.is_empty() {
            start = None;
        }
    }
    if start.is_some() {
        out.begin();
    }
}

/// What becomes of 16-bit sums after a chunk.
#[derive(Clone, Copy)]
enum End<'a> {
    /// They go on.
    Open,
    /// Times a unit they are added to what is there.
    Add(f32),
    /// Times a unit they are added to a start for each tile.
    Start(f32, &'a [Wide]),
}

/// The same for functions that are compiled once for each: values of their constant `END`.
pub(crate) mod ending {
    /// The sums stay in 16 bits, and the next tables add to them.
    pub(crate) const OPEN: u8 = 0;
    /// $\theta \leftarrow \theta + \text{unit} \cdot \text{sum}$.
    pub(crate) const ADD: u8 = 1;
    /// $\theta \leftarrow \text{start} + \text{unit} \cdot \text{sum}$.
    pub(crate) const START: u8 = 2;
}

fast! {
    /// Some tables of a block, which may be its first.
    fn quantised_chunk[](
        words: &[u64],
        tables: &Tables<i16, TILE>,
        pass: Pass,
        starts: bool,
        end: End<'_>,
        theta: &mut [Wide],
        sums: &mut [Quantum],
    ) = quantised_chunk_in::<PORTABLE>,
        wide quantised_chunk_in::<WIDE>,
        widest quantised_chunk_in::<WIDEST>;
}

#[inline(always)]
fn quantised_chunk_in<const SET: u8>(
    words: &[u64],
    tables: &Tables<i16, TILE>,
    pass: Pass,
    starts: bool,
    end: End<'_>,
    theta: &mut [Wide],
    sums: &mut [Quantum],
) {
    // What comes before the sum and what follows it are chosen outside the loop over samples.
    macro_rules! ends {
        ($run:ident, $U:literal) => {
            match (starts, end) {
                (true, End::Open) => $run!($U, true, OPEN, 0.0, &[]),
                (true, End::Add(unit)) => $run!($U, true, ADD, unit, &[]),
                (true, End::Start(unit, start)) => $run!($U, true, START, unit, start),
                (false, End::Open) => $run!($U, false, OPEN, 0.0, &[]),
                (false, End::Add(unit)) => $run!($U, false, ADD, unit, &[]),
                (false, End::Start(unit, start)) => $run!($U, false, START, unit, start),
            }
        };
    }
    #[cfg(target_arch = "x86_64")]
    if SET == WIDEST && pass.n_lines == 2 {
        macro_rules! run {
            ($U:literal, $starts:literal, $end:ident, $unit:expr, $start:expr) => {{
                let (words, end): (_, (f32, &[Wide])) = ((words, pass.shift), ($unit, $start));
                #[expect(unsafe_code, reason = "a function with more features")]
                // SAFETY: the caller is compiled for AVX-512 and runs only where it was detected.
                unsafe {
                    x86::avx512::sum_quantised::<$U, $starts, { ending::$end }>(
                        words, tables, end, theta, sums,
                    );
                }
            }};
        }
        macro_rules! two_lines {
            ($U:literal) => {
                ends!(run, $U)
            };
        }
        with_tables!(pass.n_tables, two_lines, 1 2 3 4 5 6 7, 8);
        return;
    }
    macro_rules! run {
        ($U:literal, $starts:literal, $end:ident, $unit:expr, $start:expr) => {
            pass_two::<$U, $starts, { ending::$end }, SET>(
                words,
                tables,
                ($unit, $start),
                theta,
                sums,
            )
        };
    }
    macro_rules! one_line {
        ($U:literal) => {
            ends!(run, $U)
        };
    }
    with_tables!(pass.n_tables, one_line, 1 2 3 4 5 6 7, 8);
}

/// Sums what all samples pick, two at a time; `END` is one of [`ending`].
#[inline(always)]
fn pass_two<const U: usize, const STARTS: bool, const END: u8, const SET: u8>(
    words: &[u64],
    tables: &Tables<i16, TILE>,
    (unit, start): (f32, &[Wide]),
    theta: &mut [Wide],
    sums: &mut [Quantum],
) {
    let start = start.first().unwrap_or(&Wide::ZERO);
    let (pairs, last) = sums.as_chunks_mut::<2>();
    let (theta_pairs, last_theta) = theta.as_chunks_mut::<2>();
    let (word_pairs, last_word) = words.as_chunks::<2>();
    if SET == PORTABLE {
        pass_pairs::<U, STARTS, END, false>(word_pairs, tables, (unit, start), theta_pairs, pairs);
    } else {
        pass_pairs::<U, STARTS, END, true>(word_pairs, tables, (unit, start), theta_pairs, pairs);
    }
    for ((s, t), &w) in last.iter_mut().zip(last_theta).zip(last_word) {
        let mut sum = if STARTS { [0; TILE] } else { s.0 };
        gather::<U, false, _, TILE>(&mut sum, tables, w);
        if END == ending::OPEN {
            s.0 = sum;
        } else {
            widen::<END>(&sum, unit, start, t);
        }
    }
}

#[inline(always)]
fn pass_pairs<const U: usize, const STARTS: bool, const END: u8, const WIDE: bool>(
    words: &[[u64; 2]],
    tables: &Tables<i16, TILE>,
    (unit, start): (f32, &Wide),
    theta: &mut [[Wide; 2]],
    sums: &mut [[Quantum; 2]],
) {
    let mut ahead = Ahead::<WIDE, 2>::new(words);
    for (pair, t) in sums.iter_mut().zip(theta) {
        let w = ahead.take();
        let (mut a, mut b) = if STARTS { ([0; TILE], [0; TILE]) } else { (pair[0].0, pair[1].0) };
        gather_two::<U, WIDE, _, TILE>((&mut a, &mut b), tables, w);
        if END == ending::OPEN {
            (pair[0].0, pair[1].0) = (a, b);
        } else {
            widen::<END>(&a, unit, start, &mut t[0]);
            widen::<END>(&b, unit, start, &mut t[1]);
        }
    }
}

/// Adds 16-bit sums, times a unit, to what is there or to a start, as `END` of [`ending`] says.
#[inline(always)]
pub(crate) fn widen<const END: u8>(sum: &[i16; TILE], unit: f32, start: &Wide, theta: &mut Wide) {
    for l in 0..TILE {
        let before = if END == ending::START { start.0[l] } else { theta.0[l] };
        theta.0[l] = f32::from(sum[l]).mul_add(unit, before);
    }
}

fast! {
    /// `sums[i] += factor * Σ_r x[r][i] row(r)` for columns `32 half..32 half + 32` of single-precision
    /// numbers, or `=` where the sum starts; `words` as for [`sum_fields`].
    ///
    /// # Panics
    ///
    /// If there are fewer words than the rows need, or `half` is neither 0 nor 1.
    pub fn sum_single[<'a, R: Fn(usize) -> &'a [f32; TILE] + Copy>](
        words: &[u64],
        n_rows: usize,
        row: R,
        factor: f32,
        half: usize,
        starts: bool,
        sums: &mut [Row],
        tables: &mut Tables<f32, HALF>,
    ) = sum_single_in::<PORTABLE, R>,
        wide sum_single_in::<WIDE, R>,
        widest sum_single_in::<WIDEST, R>;
}

#[inline(always)]
fn sum_single_in<'a, const SET: u8, R: Fn(usize) -> &'a [f32; TILE] + Copy>(
    words: &[u64],
    n_rows: usize,
    row: R,
    factor: f32,
    half: usize,
    starts: bool,
    sums: &mut [Row],
    tables: &mut Tables<f32, HALF>,
) {
    assert!(half < 2, "sum_single: a panel has two halves");
    let n = sums.len();
    if n_rows == 0 && starts {
        sums.iter_mut().for_each(|s| s.0.as_chunks_mut::<TILE>().0[half] = [0.0; TILE]);
    }
    let part = |r: usize, part: usize| &row(r).as_chunks::<HALF>().0[part];
    for (k, first) in (0..n_rows).step_by(COLUMN_CHUNK).enumerate() {
        let (end, starts) = (n_rows.min(first + COLUMN_CHUNK), starts && k == 0);
        let words = &words[k * n..(k + 1) * n];
        if SET == WIDEST && tables.fit {
            let row = |w: usize, r: usize| part(r, w);
            let n_tables = build_singles(tables, first, end, row, factor);
            let pass = Pass { n_tables, n_lines: 2, shift: 0 };
            sum_halves(words, tables, pass, starts, 2 * half, sums);
            continue;
        }
        for w in 0..2 {
            let row = |r: usize| part(r, w);
            let used = build_chunk::<_, HALF, 8>(tables, first, end, row, |w| factor * w);
            sum_halves(words, tables, Pass::of_one_line(used), starts, 2 * half + w, sums);
        }
    }
}

mod fields;
pub use fields::{Sign, subtract_fields, sum_fields};

#[cfg(test)]
mod tests;
