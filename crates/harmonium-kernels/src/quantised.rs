//! Quantised copies of a panel of weights, in both orientations, and the update that keeps them.
//!
//! A square of [`BLOCK`] rows and as many columns has one scale, so that a weight is rounded once
//! for both orientations. The scale is such that neither a subset of the square's rows nor one of
//! its columns can leave 16 bits: the update counts what is needed to know.

#[cfg(target_arch = "x86_64")]
use crate::dispatch::WIDE;
use crate::dispatch::{PORTABLE, WIDEST, fast};
use crate::line::{HALF, PANEL, Quantum, Row, TILE};
use crate::tables::BLOCK;
#[cfg(target_arch = "x86_64")]
use crate::update::advance_register;
use crate::update::{
    BOTH, Dot, Dots, FREE, Gradient, RankOne, SQUARES, Slope, Step, add_columns, advance,
    specialise,
};

/// The quantised copies of a panel, in both orientations.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// `forward[t * n + i]`: tile `t` of row `i`.
    pub forward: Vec<Quantum>,
    /// `backward[t * 64 + j]`: rows `32 t..32 t + 32` of column `j`.
    pub backward: Vec<Quantum>,
    /// Subset sums of each column in each [`BLOCK`] of rows.
    columns: Vec<Tally<PANEL>>,
    /// The largest subset sums over the 64 columns of each row, eight rows at a time.
    rows: Vec<[u16; 8]>,
}

/// A subset sum that reaches this may hold a weight that was cut off.
pub const FULL: u16 = 32_767;

/// $\sum|q|$, stopping at 65535, and $\sum q$ modulo 65536: from the two follows the larger of the
/// sums of positive and of negative numbers, and whether it left 16 bits.
#[derive(Clone, Copy, Debug)]
struct Tally<const N: usize> {
    size: [u16; N],
    sum: [i16; N],
}

impl<const N: usize> Tally<N> {
    const ZERO: Self = Self { size: [0; N], sum: [0; N] };

    #[inline(always)]
    fn add(&mut self, q: &[i16; N]) {
        for l in 0..N {
            self.size[l] = self.size[l].saturating_add(q[l].unsigned_abs());
            self.sum[l] = self.sum[l].wrapping_add(q[l]);
        }
    }

    /// The largest subset sum of column `l`, or at least [`FULL`] if it does not fit.
    ///
    /// With $P$ and $N$ the sums of both signs, $(P + N + |P - N|)/2 = \max(P, N)$. Should $P - N$
    /// have wrapped, the same expression gives $32768 + N$.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the mean of two numbers of 16 bits")]
    fn most(&self, l: usize) -> u16 {
        (u32::from(self.size[l]) + u32::from(self.sum[l].unsigned_abs())).div_ceil(2) as u16
    }
}

impl Tally<HALF> {
    /// Two tallies of the same eight rows as one.
    #[inline(always)]
    fn halves(&self) -> Tally<8> {
        let mut out = Tally::ZERO;
        for l in 0..8 {
            out.size[l] = self.size[l].saturating_add(self.size[l + 8]);
            out.sum[l] = self.sum[l].wrapping_add(self.sum[l + 8]);
        }
        out
    }
}

impl Copies {
    /// Room for the copies of a panel of `n` rows.
    pub fn new(n: usize) -> Self {
        Self {
            forward: vec![Quantum::ZERO; PANEL / TILE * n],
            backward: vec![Quantum::ZERO; n.div_ceil(TILE) * PANEL],
            columns: vec![Tally::ZERO; n.div_ceil(BLOCK)],
            rows: vec![[0; 8]; n.div_ceil(8)],
        }
    }

    /// The largest subset sum of a column over the rows of a block; at least [`FULL`] if one does
    /// not fit.
    pub fn column_most(&self, block: usize) -> u16 {
        largest(&self.columns[block])
    }

    /// Adds the largest subset sums over the 64 columns, eight rows to a group; the last group may
    /// reach beyond the rows. At least [`FULL`] is added if one does not fit; sums stop at 65535.
    ///
    /// # Panics
    ///
    /// If there are fewer groups than the rows need.
    pub fn add_row_bounds(&self, bounds: &mut [[u16; 8]]) {
        let bounds = &mut bounds[..self.rows.len()];
        add_bounds(self.rows.as_flattened(), bounds.as_flattened_mut());
    }

    /// Quantises a block of rows.
    pub fn quantise(&mut self, weights: &[Row], block: usize, scale: f32) {
        quantise_block(weights, block, scale, self);
    }

    /// What eight rows from `first` on are copied to.
    #[inline(always)]
    fn strip(&mut self, first: usize, n: usize) -> Strip<'_> {
        let (low, high) = self.forward.split_at_mut(n);
        let (tile, end) = (first / TILE, n.min(first + 8));
        Strip {
            low: &mut low[first..end],
            high: &mut high[first..end],
            backward: &mut self.backward[tile * PANEL..(tile + 1) * PANEL],
            place: first % TILE / 8,
            columns: &mut self.columns[first / BLOCK],
            rows: &mut self.rows[first / 8],
        }
    }
}

fast! {
    fn largest[](tally: &Tally<PANEL>) -> u16 = largest_portable;
}

#[inline(always)]
fn largest_portable(tally: &Tally<PANEL>) -> u16 {
    let mut most = [0; PANEL];
    for l in 0..PANEL {
        most[l] = tally.most(l);
    }
    most.into_iter().fold(0, u16::max)
}

fast! {
    fn add_bounds[](most: &[u16], bounds: &mut [u16]) = add_bounds_portable;
}

#[inline(always)]
fn add_bounds_portable(most: &[u16], bounds: &mut [u16]) {
    bounds.iter_mut().zip(most).for_each(|(b, m)| *b = b.saturating_add(*m));
}

/// The copies of up to eight rows.
struct Strip<'a> {
    low: &'a mut [Quantum],
    high: &'a mut [Quantum],
    backward: &'a mut [Quantum],
    /// Which quarter of the transposed lines is theirs.
    place: usize,
    columns: &'a mut Tally<PANEL>,
    rows: &'a mut [u16; 8],
}

impl Strip<'_> {
    /// Where columns `32 part..32 part + 32` of row `k` stand.
    #[inline(always)]
    fn line(&mut self, k: usize, part: usize) -> &mut [i16; TILE] {
        if part == 0 { &mut self.low[k].0 } else { &mut self.high[k].0 }
    }

    /// Columns `16 part..16 part + 16` of all rows; rows that are missing are zero.
    #[inline(always)]
    fn square(&self, part: usize) -> [[i16; HALF]; 8] {
        let lines = if part < 2 { &*self.low } else { &*self.high };
        let half = |line: &Quantum| line.0.as_chunks::<HALF>().0[part % 2];
        if let Ok(lines) = <&[Quantum; 8]>::try_from(lines) {
            return lines.each_ref().map(half);
        }
        let mut square = [[0; HALF]; 8];
        square.iter_mut().zip(lines).for_each(|(out, line)| *out = half(line));
        square
    }

    /// Counts a square down its columns.
    #[inline(always)]
    fn count(&mut self, part: usize, square: &[[i16; HALF]; 8]) {
        let sizes = &mut self.columns.size.as_chunks_mut::<HALF>().0[part];
        let sums = &mut self.columns.sum.as_chunks_mut::<HALF>().0[part];
        let mut columns = Tally { size: *sizes, sum: *sums };
        square.iter().for_each(|q| columns.add(q));
        (*sizes, *sums) = (columns.size, columns.sum);
    }

    /// Counts rows that stay as they are: of their own sums nothing changes.
    #[inline(always)]
    fn rest(&mut self) {
        for part in 0..PANEL / HALF {
            let square = self.square(part);
            self.count(part, &square);
        }
    }

    /// Transposes and counts what stands in the rows, while it is in the nearest cache.
    #[inline(always)]
    fn finish<const SET: u8>(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if SET == WIDEST
            && let (Ok(low), Ok(high)) = ((&*self.low).try_into(), (&*self.high).try_into())
        {
            let Self { backward, place, columns, rows, .. } = self;
            #[expect(unsafe_code, reason = "a function with more features")]
            // SAFETY: the caller is compiled for AVX-512 and runs only where it was detected.
            unsafe {
                x86::avx512::finish(low, high, backward, *place, columns, rows);
            }
            return;
        }
        let mut rows = Tally::<HALF>::ZERO;
        for part in 0..PANEL / HALF {
            let square = self.square(part);
            self.count(part, &square);
            let (left, right) = self.backward[part * HALF..(part + 1) * HALF].split_at_mut(8);
            let pairs = transpose_pair::<SET>(square);
            count_pairs::<SET>(&mut rows, &pairs);
            for ((pair, left), right) in pairs.iter().zip(left).zip(right) {
                let (halves, _) = pair.as_chunks::<8>();
                left.0.as_chunks_mut::<8>().0[self.place] = halves[0];
                right.0.as_chunks_mut::<8>().0[self.place] = halves[1];
            }
        }
        let rows = rows.halves();
        for l in 0..8 {
            self.rows[l] = rows.most(l);
        }
    }
}

fast! {
    fn quantise_block[](weights: &[Row], block: usize, scale: f32, copies: &mut Copies)
        = quantise_block_in::<PORTABLE>,
        wide quantise_block_in::<WIDE>,
        widest quantise_block_in::<WIDEST>;
}

#[inline(always)]
fn quantise_block_in<const SET: u8>(
    weights: &[Row],
    block: usize,
    scale: f32,
    copies: &mut Copies,
) {
    let n = weights.len();
    copies.columns[block] = Tally::ZERO;
    for first in (block * BLOCK..n.min((block + 1) * BLOCK)).step_by(8) {
        let mut strip = copies.strip(first, n);
        for (k, row) in weights[first..n.min(first + 8)].iter().enumerate() {
            for (part, w) in row.0.as_chunks::<TILE>().0.iter().enumerate() {
                *strip.line(k, part) = quantise_line::<SET>(*w, scale);
            }
        }
        strip.finish::<SET>();
    }
}

fast! {
    /// [`update`](crate::update::update), together with the quantised copies of what it writes and its dot products.
    ///
    /// `scales` holds one for each [`BLOCK`] of rows. They stay as they are: where sums outgrow one,
    /// as [`Copies::column_most`] and [`Copies::add_row_bounds`] tell, [`Copies::quantise`] must
    /// follow.
    ///
    /// # Panics
    ///
    /// If there are fewer factors, velocities or shifts than rows, or fewer scales than blocks.
    pub fn update_quantised[<const K: usize, G: Gradient>](
        gradient: &G,
        terms: RankOne<'_, K>,
        step: Step,
        weights: &mut [Row],
        velocity: &mut [Row],
        copies: &mut Copies,
        scales: &[f32],
        dots: Dots<'_>,
    ) = update_quantised_in::<PORTABLE, K, G>,
        wide update_quantised_in::<WIDE, K, G>,
        widest update_quantised_in::<WIDEST, K, G>;
}

#[inline(always)]
fn update_quantised_in<const SET: u8, const K: usize, G: Gradient>(
    gradient: &G,
    terms: RankOne<'_, K>,
    step: Step,
    weights: &mut [Row],
    velocity: &mut [Row],
    copies: &mut Copies,
    scales: &[f32],
    dots: Dots<'_>,
) {
    let moves = step.moves(velocity, weights.len());
    let arguments = (gradient, terms, step, weights, velocity, copies, scales, dots);
    specialise!(step, moves, |P, M| move_quantised::<K, P, M, SET, G>(arguments));
}

/// All arguments of [`update_quantised`].
type Arguments<'a, const K: usize, G> = (
    &'a G,
    RankOne<'a, K>,
    Step,
    &'a mut [Row],
    &'a mut [Row],
    &'a mut Copies,
    &'a [f32],
    Dots<'a>,
);

/// Eight rows at a time: moved, rounded and multiplied row by row, then copied and counted down the
/// columns.
#[inline(always)]
fn move_quantised<const K: usize, const P: u8, const M: bool, const SET: u8, G: Gradient>(
    (gradient, terms, step, weights, velocity, copies, scales, dots): Arguments<'_, K, G>,
) {
    let n = weights.len();
    let scales = &scales[..n.div_ceil(BLOCK)];
    let (row_shifts, rows) = (&dots.row_shifts[..n], &mut dots.rows[..n]);
    let slope = Slope::new(gradient, terms, step, step.rate);
    let mut columns = Row::ZERO;
    let mut moved_rows = [Row::ZERO; 8];
    for first in (0..n).step_by(8) {
        let (block, end) = (first / BLOCK, n.min(first + 8));
        let scale = scales[block];
        if first.is_multiple_of(BLOCK) {
            copies.columns[block] = Tally::ZERO;
        }
        let mut strip = copies.strip(first, n);
        let resting = slope.resting::<P, M>(first..end);
        if resting == end - first {
            strip.rest();
            continue;
        }
        let moving = if M { &mut velocity[first..end] } else { &mut moved_rows[..end - first] };
        for (i, v) in (first..end).zip(&mut *moving) {
            if resting > 0 && slope.rests::<P, M>(i) {
                continue;
            }
            let (w, row) = (&mut weights[i], slope.row(i));
            let mut dot = Dot::ZERO;
            for part in 0..PANEL / TILE {
                let mut line = [0.0; TILE];
                #[cfg(target_arch = "x86_64")]
                if SET == WIDEST {
                    for (k, half) in line.as_chunks_mut::<HALF>().0.iter_mut().enumerate() {
                        let part = 2 * part + k;
                        let (after, moved) =
                            advance_register::<K, P, M, G>(&slope, row, step.momentum, part, w, v);
                        *half = after.lanes();
                        if K > 0 {
                            dot.add_register(part, moved, dots.column_shifts);
                        }
                    }
                }
                if SET != WIDEST {
                    for (k, eight) in line.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                        let part = 4 * part + k;
                        let moved;
                        (*eight, moved) =
                            advance::<K, P, M, 8, G>(&slope, row, step.momentum, part, w, v);
                        if K > 0 {
                            dot.add(part, moved, dots.column_shifts);
                        }
                    }
                }
                *strip.line(i - first, part) = quantise_line::<SET>(line, scale);
            }
            if K > 0 {
                rows[i] = dot.total();
            }
        }
        strip.finish::<SET>();
        if K > 0 {
            add_columns(moving, &row_shifts[first..end], &mut columns);
        }
    }
    if K > 0 {
        *dots.columns = columns;
    }
}

/// 32 weights rounded to 16 bits.
#[inline(always)]
fn quantise_line<const SET: u8>(w: [f32; TILE], scale: f32) -> [i16; TILE] {
    #[cfg(target_arch = "x86_64")]
    if SET == WIDEST {
        #[expect(unsafe_code, reason = "a function with more features")]
        // SAFETY: the caller is compiled for AVX-512 and runs only where it was detected.
        return unsafe { x86::avx512::quantise(w, scale) };
    }
    let mut q = [0; TILE];
    for (q, w) in q.as_chunks_mut::<HALF>().0.iter_mut().zip(w.as_chunks::<HALF>().0) {
        *q = quantise_half::<SET>(*w, scale);
    }
    q
}

/// Half of them.
#[inline(always)]
fn quantise_half<const SET: u8>(w: [f32; HALF], scale: f32) -> [i16; HALF] {
    #[cfg(target_arch = "x86_64")]
    if SET >= WIDE {
        return x86::avx2::quantise_half(w, scale);
    }
    let mut q = [0; HALF];
    for l in 0..HALF {
        q[l] = to_i16(w[l] * scale);
    }
    q
}

/// Adds eight pairs of columns to the tally of their rows.
#[inline(always)]
fn count_pairs<const SET: u8>(rows: &mut Tally<HALF>, pairs: &[[i16; HALF]; 8]) {
    #[cfg(target_arch = "x86_64")]
    if SET >= WIDE {
        x86::avx2::count_pairs(rows, pairs);
        return;
    }
    pairs.iter().for_each(|pair| rows.add(pair));
}

/// Transposes 8 × 16 into eight pairs of columns: `j` and `j + 8`.
#[inline(always)]
fn transpose_pair<const SET: u8>(x: [[i16; HALF]; 8]) -> [[i16; HALF]; 8] {
    #[cfg(target_arch = "x86_64")]
    if SET >= WIDE {
        return x86::avx2::transpose_pair(x);
    }
    let mut out = [[0; HALF]; 8];
    for (j, pair) in out.iter_mut().enumerate() {
        for k in 0..8 {
            pair[k] = x[k][j];
            pair[k + 8] = x[k][j + 8];
        }
    }
    out
}

/// What the largest subset sum of a block may be, so that rounding each weight up and the sums'
/// own rounding still fit into 16 bits.
const CEILING: f32 = 32_767.0 - BLOCK as f32 / 2.0 - 8.0;

/// $1.5\cdot2^{23}$: adding it rounds to a whole number and leaves that in the low bits.
const ROUND: f32 = 12_582_912.0;

/// The nearest whole number. What does not fit becomes 32767 or -32768, whichever, so that a
/// [`Tally`] sees it: see [`FULL`].
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are the number")]
fn to_i16(x: f32) -> i16 {
    // Beyond that the machine's own conversion gives the least number; a NaN does not fit.
    let x = if x < 2_147_483_648.0 { x } else { -32_768.0 };
    let x = if x < 32_767.0 { x } else { 32_767.0 };
    let x = if x > -32_768.0 { x } else { -32_768.0 };
    (x + ROUND).to_bits() as i16
}

/// How much of the room is used when a scale is chosen, so that weights can grow for a while.
const USED: f32 = 0.75;

/// Sums below this are treated as zero.
const SMALLEST: f32 = 1e-30;

/// The scale of sums that are at most `most`; 0 where they left single precision.
pub fn scale_for(most: f32) -> f32 {
    USED * CEILING / most.max(SMALLEST)
}

fast! {
    /// The larger of the sums of positive and of negative weights, of the column where it is
    /// largest.
    pub fn largest_column_sum[](rows: &[Row]) -> f32 = largest_column_sum_portable;
}

#[inline(always)]
fn largest_column_sum_portable(rows: &[Row]) -> f32 {
    let (mut up, mut down) = ([0.0_f32; PANEL], [0.0_f32; PANEL]);
    for row in rows {
        for l in 0..PANEL {
            up[l] += if row.0[l] > 0.0 { row.0[l] } else { 0.0 };
            down[l] -= if row.0[l] < 0.0 { row.0[l] } else { 0.0 };
        }
    }
    // Not `max`, which loses what is not a number.
    up.iter().chain(&down).fold(0.0, |most, &x| if x <= most { most } else { x })
}

fast! {
    /// For each row of a panel the sums of its positive and of its negative weights are added.
    pub fn add_row_sums[](weights: &[Row], sums: &mut [[f32; 2]]) = add_row_sums_portable;
}

#[inline(always)]
fn add_row_sums_portable(weights: &[Row], sums: &mut [[f32; 2]]) {
    for (row, out) in weights.iter().zip(sums) {
        let (mut up, mut down) = ([0.0_f32; HALF], [0.0_f32; HALF]);
        for part in row.0.as_chunks::<HALF>().0 {
            for l in 0..HALF {
                let w = part[l];
                up[l] += if w > 0.0 { w } else { 0.0 };
                down[l] -= if w < 0.0 { w } else { 0.0 };
            }
        }
        out[0] += up.iter().sum::<f32>();
        out[1] += down.iter().sum::<f32>();
    }
}

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
pub(crate) mod tests;
