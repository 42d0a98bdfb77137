//! The fused update of a panel of weights, and the quantised and transposed copies of it.

use crate::dispatch::fast;
use crate::line::{HALF, PANEL, Quantum, Row, Single, Sums, TILE};
use crate::tables::{BLOCK, LEVELS};

/// How far, and against which penalties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The learning rate.
    pub rate: f32,
    /// How much of the last update is repeated.
    pub momentum: f32,
    /// $\lambda$ of $-\lambda\sum|W|$.
    pub l1: f32,
    /// $\lambda$ of $-\tfrac\lambda2\sum W^2$.
    pub l2: f32,
}

/// What is added to the products of bits: terms of rank one, $\sum_k a_{ik} z_{kj}$, that carry
/// centering and sparsity.
#[derive(Clone, Copy, Debug)]
pub struct RankOne<'a, const K: usize> {
    /// $a$, for each row.
    pub rows: &'a [[f32; K]],
    /// $z$, for each term.
    pub columns: &'a [Row; K],
}

impl<const K: usize> RankOne<'_, K> {
    /// $g + \sum_k a_{ik} z_{kj} - \lambda_2 w - \lambda_1\,\mathrm{sgn}\,w$ for one entry.
    #[inline(always)]
    fn slope<const L1: bool>(&self, mut g: f32, i: usize, l: usize, step: Step, w: f32) -> f32 {
        for k in 0..K {
            g = self.rows[i][k].mul_add(self.columns[k].0[l], g);
        }
        g = step.l2.mul_add(-w, g);
        if L1 {
            g -= if w == 0.0 { 0.0 } else { step.l1.copysign(w) };
        }
        g
    }
}

/// $v \leftarrow \alpha v + \eta g$ and $w \leftarrow w + v$ for row `i`.
#[inline(always)]
fn advance<const K: usize, const L1: bool, G: Gradient>(
    gradient: &G,
    terms: &RankOne<'_, K>,
    step: Step,
    i: usize,
    w: &mut Row,
    v: &mut Row,
) {
    let row = gradient.row(i);
    for l in 0..PANEL {
        let g = terms.slope::<L1>(gradient.lane(row, l), i, l, step, w.0[l]);
        v.0[l] = step.momentum.mul_add(v.0[l], step.rate * g);
        w.0[l] += v.0[l];
    }
}

fast! {
    /// $v \leftarrow \alpha v + \eta g$ and $w \leftarrow w + v$, with the slope $g$ of the
    /// likelihood and the penalties.
    ///
    /// # Panics
    ///
    /// If there are fewer factors or velocities than rows.
    pub fn update[<const K: usize, G: Gradient>](
        gradient: &G,
        terms: RankOne<'_, K>,
        step: Step,
        weights: &mut [Row],
        velocity: &mut [Row],
    ) = update_portable;
}

#[inline(always)]
fn update_portable<const K: usize, G: Gradient>(
    gradient: &G,
    terms: RankOne<'_, K>,
    step: Step,
    weights: &mut [Row],
    velocity: &mut [Row],
) {
    let velocity = &mut velocity[..weights.len()];
    for (i, (w, v)) in weights.iter_mut().zip(velocity).enumerate() {
        if step.l1 == 0.0 {
            advance::<K, false, G>(gradient, &terms, step, i, w, v);
        } else {
            advance::<K, true, G>(gradient, &terms, step, i, w, v);
        }
    }
}

fast! {
    /// $\sum g^2$ over a panel, before the update.
    pub fn slope_squared[<const K: usize, G: Gradient>](
        gradient: &G,
        terms: RankOne<'_, K>,
        step: Step,
        weights: &[Row],
    ) -> f64 = slope_squared_portable;
}

#[inline(always)]
fn slope_squared_portable<const K: usize, G: Gradient>(
    gradient: &G,
    terms: RankOne<'_, K>,
    step: Step,
    weights: &[Row],
) -> f64 {
    let mut total = 0.0;
    for (i, w) in weights.iter().enumerate() {
        let row = gradient.row(i);
        let mut squares = [0.0_f32; 8];
        for part in 0..PANEL / 8 {
            for k in 0..8 {
                let l = part * 8 + k;
                let g = terms.slope::<true>(gradient.lane(row, l), i, l, step, w.0[l]);
                squares[k] = g.mul_add(g, squares[k]);
            }
        }
        total += f64::from(squares.iter().sum::<f32>());
    }
    total
}

fast! {
    /// $\sum w^2$ over a panel.
    pub fn squared[](weights: &[Row]) -> f64 = squared_portable;
}

#[inline(always)]
fn squared_portable(weights: &[Row]) -> f64 {
    let mut total = 0.0;
    for row in weights {
        let mut squares = [0.0_f32; HALF];
        for part in row.0.as_chunks::<HALF>().0 {
            for l in 0..HALF {
                squares[l] = part[l].mul_add(part[l], squares[l]);
            }
        }
        total += f64::from(squares.iter().sum::<f32>());
    }
    total
}

/// The quantised copies of a panel, in both orientations.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// `forward[t * n + i]`: tile `t` of row `i`.
    pub forward: Vec<Quantum>,
    /// The scale of each column in each [`BLOCK`] of rows.
    pub scales: Vec<[f32; PANEL]>,
    /// Subset sums of each column and block.
    sums: Vec<Tally<PANEL>>,
    /// `backward[t * 64 + j]`: rows `32 t..32 t + 32` of column `j`.
    pub backward: Vec<Quantum>,
    /// Subset sums over the 64 columns of each row, eight rows at a time.
    row_sums: Vec<Tally<8>>,
}

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

    /// The largest subset sum of column `l`, or more than 32767 if it does not fit.
    ///
    /// With $P$ and $N$ the sums of both signs, $(P + N + |P - N|)/2 = \max(P, N)$. Should $P - N$
    /// have wrapped, the same expression gives $32768 + N$.
    fn most(&self, l: usize) -> u32 {
        (u32::from(self.size[l]) + u32::from(self.sum[l].unsigned_abs())).div_ceil(2)
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
        let n_blocks = n.div_ceil(BLOCK);
        Self {
            forward: vec![Quantum::ZERO; PANEL / TILE * n],
            scales: vec![[1.0; PANEL]; n_blocks],
            sums: vec![Tally::ZERO; n_blocks],
            backward: vec![Quantum::ZERO; n.div_ceil(TILE) * PANEL],
            row_sums: vec![Tally::ZERO; n.div_ceil(8)],
        }
    }

    /// Whether some subset of a block's rows may overflow at the present scales.
    fn overflows(&self, block: usize) -> bool {
        (0..PANEL).any(|l| self.sums[block].most(l) > 32_767)
    }

    /// An upper bound of the subset sums of row `i` over the 64 columns.
    pub fn row_most(&self, i: usize) -> u32 {
        self.row_sums[i / 8].most(i % 8)
    }

    /// Adds the bounds of all rows, eight to a group; the last group may reach beyond them.
    ///
    /// # Panics
    ///
    /// If there are fewer groups than the rows need.
    pub fn add_row_bounds(&self, bounds: &mut [[u32; 8]]) {
        for (tally, bounds) in self.row_sums.iter().zip(&mut bounds[..self.row_sums.len()]) {
            for l in 0..8 {
                bounds[l] += tally.most(l);
            }
        }
    }

    /// Quantises the columns anew wherever their sums outgrew their scale, and says whether that
    /// was so.
    pub fn rescale(&mut self, weights: &[Row]) -> bool {
        let mut any = false;
        for block in 0..self.scales.len() {
            if self.overflows(block) {
                self.quantise_block(weights, block);
                any = true;
            }
        }
        any
    }

    /// Chooses fresh scales for all columns and quantises them.
    pub fn quantise(&mut self, weights: &[Row]) {
        for block in 0..self.scales.len() {
            self.quantise_block(weights, block);
        }
    }

    fn quantise_block(&mut self, weights: &[Row], block: usize) {
        let n = weights.len();
        let (first, end) = (block * BLOCK, n.min((block + 1) * BLOCK));
        self.scales[block] = column_scales(&weights[first..end]);
        let (low, high) = self.forward.split_at_mut(n);
        self.sums[block] = quantise_columns(
            &weights[first..end],
            &self.scales[block],
            &mut low[first..end],
            &mut high[first..end],
        );
    }

    /// Quantises all columns with scales that are given.
    pub fn restore(&mut self, weights: &[Row], scales: &[[f32; PANEL]]) {
        let n = weights.len();
        self.scales.copy_from_slice(scales);
        let (low, high) = self.forward.split_at_mut(n);
        for block in 0..self.scales.len() {
            let (first, end) = (block * BLOCK, n.min((block + 1) * BLOCK));
            self.sums[block] = quantise_columns(
                &weights[first..end],
                &self.scales[block],
                &mut low[first..end],
                &mut high[first..end],
            );
        }
        self.rescale(weights);
    }

    /// Quantises rows `32 tile..32 tile + 32` transposed, with a scale for each row.
    pub fn quantise_backward(&mut self, weights: &[Row], tile: usize, scales: &[f32]) {
        let first = tile * TILE;
        for strip in (first..weights.len().min(first + TILE)).step_by(8) {
            let out = &mut self.backward[tile * PANEL..(tile + 1) * PANEL];
            self.row_sums[strip / 8] = quantise_rows(weights, strip, scales, out);
        }
    }
}

/// What recentering asks of an update: $\sum_i \Delta w_{ij} a_i$ for each column and
/// $\sum_j \Delta w_{ij} z_j$ for each row.
#[derive(Debug)]
pub struct Dots<'a> {
    /// $a$.
    pub row_shifts: &'a [f32],
    /// $z$.
    pub column_shifts: &'a Row,
    /// The sums over rows.
    pub columns: &'a mut Row,
    /// The sums over columns.
    pub rows: &'a mut [f32],
}

fast! {
    /// [`update`], together with the quantised copies of what it writes and its dot products.
    ///
    /// The scales stay as they are: where sums outgrow them, [`Copies::rescale`] must follow.
    ///
    /// # Panics
    ///
    /// If there are fewer factors, velocities, shifts or scales than rows.
    pub fn update_quantised[<const K: usize, G: Gradient>](
        gradient: &G,
        terms: RankOne<'_, K>,
        step: Step,
        weights: &mut [Row],
        velocity: &mut [Row],
        copies: &mut Copies,
        row_scales: &[f32],
        dots: Dots<'_>,
    ) = update_quantised_portable, wide update_quantised_wide;
}

#[inline(always)]
fn update_quantised_portable<const K: usize, G: Gradient>(
    gradient: &G,
    terms: RankOne<'_, K>,
    step: Step,
    weights: &mut [Row],
    velocity: &mut [Row],
    copies: &mut Copies,
    row_scales: &[f32],
    dots: Dots<'_>,
) {
    let arguments = (gradient, terms, step, weights, velocity, copies, row_scales, dots);
    if step.l1 == 0.0 {
        move_quantised::<K, false, false, G>(arguments);
    } else {
        move_quantised::<K, true, false, G>(arguments);
    }
}

#[inline(always)]
#[cfg(target_arch = "x86_64")]
fn update_quantised_wide<const K: usize, G: Gradient>(
    gradient: &G,
    terms: RankOne<'_, K>,
    step: Step,
    weights: &mut [Row],
    velocity: &mut [Row],
    copies: &mut Copies,
    row_scales: &[f32],
    dots: Dots<'_>,
) {
    let arguments = (gradient, terms, step, weights, velocity, copies, row_scales, dots);
    if step.l1 == 0.0 {
        move_quantised::<K, false, true, G>(arguments);
    } else {
        move_quantised::<K, true, true, G>(arguments);
    }
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

/// Eight rows and sixteen columns at a time, so that all copies of a square are made while it is
/// in registers.
#[inline(always)]
fn move_quantised<const K: usize, const L1: bool, const WIDE: bool, G: Gradient>(
    (gradient, terms, step, weights, velocity, copies, row_scales, dots): Arguments<'_, K, G>,
) {
    let n = weights.len();
    let (velocity, row_scales) = (&mut velocity[..n], &row_scales[..n]);
    let (row_shifts, rows) = (&dots.row_shifts[..n], &mut dots.rows[..n]);
    let (low, high) = copies.forward.split_at_mut(n);
    let high = &mut high[..n];
    let mut columns = Row::ZERO;
    for first in (0..n).step_by(8) {
        let block = first / BLOCK;
        if first.is_multiple_of(BLOCK) {
            copies.sums[block] = Tally::ZERO;
        }
        let (scales, tally) = (&copies.scales[block], &mut copies.sums[block]);
        let end = n.min(first + 8);
        let mut squares = [[[0_i16; HALF]; 8]; PANEL / HALF];
        let strip = weights[first..end].iter_mut().zip(&mut velocity[first..end]);
        let lines = low[first..end].iter_mut().zip(&mut high[first..end]);
        for (k, ((w, v), (low, high))) in strip.zip(lines).enumerate() {
            let i = first + k;
            advance::<K, L1, G>(gradient, &terms, step, i, w, v);
            rows[i] = dot::<WIDE>(v, dots.column_shifts);
            let row_scale = [row_scales[i]; HALF];
            for part in 0..PANEL / HALF {
                let w = &w.0.as_chunks::<HALF>().0[part];
                let line = if part < 2 { &mut *low } else { &mut *high };
                let scale = &scales.as_chunks::<HALF>().0[part];
                line.0.as_chunks_mut::<HALF>().0[part % 2] = quantise_half::<WIDE>(w, scale);
                squares[part][k] = quantise_half::<WIDE>(w, &row_scale);
            }
        }
        // What runs down the columns, while the strip is in the nearest cache.
        let mut row_tally = Tally::<HALF>::ZERO;
        let (place, tile) = (first % TILE / 8, first / TILE);
        let out = &mut copies.backward[tile * PANEL..(tile + 1) * PANEL];
        for part in 0..PANEL / HALF {
            let mut dot = columns.0.as_chunks::<HALF>().0[part];
            let sizes = &mut tally.size.as_chunks_mut::<HALF>().0[part];
            let sums = &mut tally.sum.as_chunks_mut::<HALF>().0[part];
            let mut column_tally = Tally { size: *sizes, sum: *sums };
            let lines = if part < 2 { &low[first..end] } else { &high[first..end] };
            let rows = velocity[first..end].iter().zip(&row_shifts[first..end]);
            for ((v, shift), line) in rows.zip(lines) {
                let v = &v.0.as_chunks::<HALF>().0[part];
                for l in 0..HALF {
                    dot[l] = shift.mul_add(v[l], dot[l]);
                }
                column_tally.add(&line.0.as_chunks::<HALF>().0[part % 2]);
            }
            (*sizes, *sums) = (column_tally.size, column_tally.sum);
            columns.0.as_chunks_mut::<HALF>().0[part] = dot;
            let (left, right) = out[part * HALF..(part + 1) * HALF].split_at_mut(8);
            let pairs = transpose_pair::<WIDE>(squares[part]);
            for ((pair, left), right) in pairs.iter().zip(left).zip(right) {
                row_tally.add(pair);
                let (halves, _) = pair.as_chunks::<8>();
                left.0.as_chunks_mut::<8>().0[place] = halves[0];
                right.0.as_chunks_mut::<8>().0[place] = halves[1];
            }
        }
        copies.row_sums[first / 8] = row_tally.halves();
    }
    *dots.columns = columns;
}

/// $\sum_l x_l y_l$, always added in the same order, in short chains: many rows wait for theirs.
#[inline(always)]
fn dot<const WIDE: bool>(x: &Row, y: &Row) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        return x86::dot(&x.0, &y.0);
    }
    let (x, y) = (x.0.as_chunks::<8>().0, y.0.as_chunks::<8>().0);
    let lane = |k: usize, l: usize| x[k][l].mul_add(y[k][l], x[k + 4][l] * y[k + 4][l]);
    let mut sum = [0.0_f32; 8];
    for l in 0..8 {
        sum[l] = (lane(0, l) + lane(1, l)) + (lane(2, l) + lane(3, l));
    }
    let four = [sum[0] + sum[4], sum[1] + sum[5], sum[2] + sum[6], sum[3] + sum[7]];
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Sixteen weights rounded to 16 bits.
#[inline(always)]
fn quantise_half<const WIDE: bool>(w: &[f32; HALF], scale: &[f32; HALF]) -> [i16; HALF] {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        return x86::quantise_half(w, scale);
    }
    let mut q = [0; HALF];
    for l in 0..HALF {
        q[l] = to_i16(w[l] * scale[l]);
    }
    q
}

/// Transposes 8 × 16 into eight pairs of columns: `j` and `j + 8`.
#[inline(always)]
fn transpose_pair<const WIDE: bool>(x: [[i16; HALF]; 8]) -> [[i16; HALF]; 8] {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        return x86::transpose_pair(x);
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

/// Writes eight rows as part `part` of 64 transposed lines.
#[inline(always)]
fn transpose_strip(strip: &[[i16; PANEL]; 8], part: usize, out: &mut [Quantum]) -> Tally<8> {
    let mut tally = Tally::ZERO;
    let (squares, _) = out.as_chunks_mut::<8>();
    for (square, out) in squares.iter_mut().enumerate() {
        let x = std::array::from_fn(|k| strip[k].as_chunks::<8>().0[square]);
        for (column, line) in transpose(x).iter().zip(out) {
            tally.add(column);
            line.0.as_chunks_mut::<8>().0[part] = *column;
        }
    }
    tally
}

/// Where the entries of a gradient come from.
pub trait Gradient {
    /// What one row is read from.
    type Row: Copy;

    /// Row `i`.
    fn row(&self, i: usize) -> Self::Row;

    /// Its column `l`.
    fn lane(&self, row: Self::Row, l: usize) -> f32;
}

/// Summed fields and what one level of them counts; see [`FieldSums::new`].
#[derive(Clone, Copy, Debug)]
pub struct FieldSums<'a> {
    sums: &'a [Sums],
    places: &'a [u32],
    unit: f32,
}

impl<'a> FieldSums<'a> {
    /// Sums of samples that weigh `weight` each, the sign of their side included. Row `i` of the
    /// gradient stands at `places[i]`: rows without any sample may share one of zeros.
    pub fn new(sums: &'a [Sums], places: &'a [u32], weight: f32) -> Self {
        Self { sums, places, unit: weight / LEVELS as f32 }
    }
}

impl<'a> Gradient for FieldSums<'a> {
    type Row = &'a [i16; PANEL];

    #[inline(always)]
    fn row(&self, i: usize) -> Self::Row {
        &self.sums[self.places[i] as usize].0
    }

    #[inline(always)]
    fn lane(&self, row: Self::Row, l: usize) -> f32 {
        f32::from(row[l]) * self.unit
    }
}

/// The data side and the model side.
impl<'a> Gradient for [FieldSums<'a>; 2] {
    type Row = [&'a [i16; PANEL]; 2];

    #[inline(always)]
    fn row(&self, i: usize) -> Self::Row {
        [self[0].row(i), self[1].row(i)]
    }

    #[inline(always)]
    fn lane(&self, row: Self::Row, l: usize) -> f32 {
        f32::from(row[1][l]).mul_add(self[1].unit, f32::from(row[0][l]) * self[0].unit)
    }
}

/// Sums in single precision; row `i` of the gradient stands at `places[i]`.
#[derive(Clone, Copy, Debug)]
pub struct SingleSums<'a> {
    /// The sums.
    pub sums: &'a [Row],
    /// Where they are.
    pub places: &'a [u32],
}

impl<'a> Gradient for SingleSums<'a> {
    type Row = &'a [f32; PANEL];

    #[inline(always)]
    fn row(&self, i: usize) -> Self::Row {
        &self.sums[self.places[i] as usize].0
    }

    #[inline(always)]
    fn lane(&self, row: Self::Row, l: usize) -> f32 {
        row[l]
    }
}

/// What the largest subset sum of a block may be, so that rounding each weight up and the sums'
/// own rounding still fit into 16 bits.
const CEILING: f32 = 32_767.0 - BLOCK as f32 / 2.0 - 8.0;

/// $1.5\cdot2^{23}$: adding it rounds to a whole number and leaves that in the low bits.
const ROUND: f32 = 12_582_912.0;

/// The nearest whole number. What does not fit below 32767 becomes -32768 on either side, which no
/// sum that fits contains, so that a [`Tally`] sees it.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are the number")]
fn to_i16(x: f32) -> i16 {
    const BEYOND: f32 = 32_768.0;
    // Written so that each is one instruction; a NaN does not fit.
    let x = if x < BEYOND { x } else { BEYOND };
    let x = if x > -BEYOND { x } else { -BEYOND };
    let q = (x + ROUND).to_bits() as i16;
    if q == i16::MAX { i16::MIN } else { q }
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
    /// A scale for each column such that no subset of the rows overflows.
    fn column_scales[](rows: &[Row]) -> [f32; PANEL] = column_scales_portable;
}

#[inline(always)]
fn column_scales_portable(rows: &[Row]) -> [f32; PANEL] {
    let (mut up, mut down) = ([0.0_f32; PANEL], [0.0_f32; PANEL]);
    for row in rows {
        for l in 0..PANEL {
            up[l] += if row.0[l] > 0.0 { row.0[l] } else { 0.0 };
            down[l] -= if row.0[l] < 0.0 { row.0[l] } else { 0.0 };
        }
    }
    std::array::from_fn(|l| scale_for(up[l].max(down[l])))
}

fast! {
    /// Quantises rows with a scale for each column, the first and the last 32 columns apart.
    fn quantise_columns[](
        rows: &[Row],
        scales: &[f32; PANEL],
        low: &mut [Quantum],
        high: &mut [Quantum],
    ) -> Tally<PANEL> = quantise_columns_portable;
}

#[inline(always)]
fn quantise_columns_portable(
    rows: &[Row],
    scales: &[f32; PANEL],
    low: &mut [Quantum],
    high: &mut [Quantum],
) -> Tally<PANEL> {
    let mut tally = Tally::ZERO;
    for ((row, low), high) in rows.iter().zip(low).zip(high) {
        let mut q = [0_i16; PANEL];
        for l in 0..PANEL {
            q[l] = to_i16(row.0[l] * scales[l]);
        }
        tally.add(&q);
        let (halves, _) = q.as_chunks::<TILE>();
        (low.0, high.0) = (halves[0], halves[1]);
    }
    tally
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

fast! {
    /// Quantises eight rows from `first` on with a scale for each, into their place in the 64
    /// transposed lines `out`.
    fn quantise_rows[](weights: &[Row], first: usize, scales: &[f32], out: &mut [Quantum])
        -> Tally<8> = quantise_rows_portable;
}

#[inline(always)]
fn quantise_rows_portable(
    weights: &[Row],
    first: usize,
    scales: &[f32],
    out: &mut [Quantum],
) -> Tally<8> {
    let mut strip = [[0_i16; PANEL]; 8];
    for (i, strip) in (first..weights.len().min(first + 8)).zip(&mut strip) {
        for l in 0..PANEL {
            strip[l] = to_i16(weights[i].0[l] * scales[i]);
        }
    }
    transpose_strip(&strip, first % TILE / 8, out)
}

/// Transposes 8 × 8.
#[inline(always)]
fn transpose(x: [[i16; 8]; 8]) -> [[i16; 8]; 8] {
    #[cfg(target_arch = "x86_64")]
    return x86::transpose(x);
    #[cfg(not(target_arch = "x86_64"))]
    return transpose_portable(x);
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn transpose_portable<T: Copy, const N: usize>(x: [[T; N]; N]) -> [[T; N]; N] {
    std::array::from_fn(|i| std::array::from_fn(|j| x[j][i]))
}

/// Transposes 4 × 4.
#[inline(always)]
pub(crate) fn transpose_four(x: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    #[cfg(target_arch = "x86_64")]
    return x86::transpose_four(x);
    #[cfg(not(target_arch = "x86_64"))]
    return transpose_portable(x);
}

/// Interleaving in registers, with instructions that every x86-64 has: the compiler does not find
/// them by itself.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{HALF, PANEL};
    use std::arch::x86_64::{
        __m128, __m128i, __m256, __m256i, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehl_ps,
        _mm_movelh_ps, _mm_shuffle_ps, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64,
        _mm_unpackhi_ps, _mm_unpacklo_epi16, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
        _mm_unpacklo_ps, _mm256_add_ps, _mm256_castps256_ps128, _mm256_cmpeq_epi16,
        _mm256_cvtps_epi32, _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_mul_ps,
        _mm256_packs_epi32, _mm256_permute4x64_epi64, _mm256_set1_epi16, _mm256_unpackhi_epi16,
        _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi16, _mm256_unpacklo_epi32,
        _mm256_unpacklo_epi64, _mm256_xor_si256,
    };
    use std::mem::transmute;

    #[inline(always)]
    #[expect(unsafe_code, reason = "arrays and registers of one size")]
    pub(super) fn transpose(x: [[i16; 8]; 8]) -> [[i16; 8]; 8] {
        // SAFETY: eight arrays of 16 bytes are eight registers of 16 bytes, and any bits are valid
        // in both; SSE2 is part of every x86-64.
        unsafe {
            let x: [__m128i; 8] = transmute(x);
            let two = |a, b| [_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)];
            let four = |a, b| [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)];
            let eight = |a, b| [_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)];
            let [a0, a1] = two(x[0], x[1]);
            let [a2, a3] = two(x[2], x[3]);
            let [a4, a5] = two(x[4], x[5]);
            let [a6, a7] = two(x[6], x[7]);
            let [b0, b1] = four(a0, a2);
            let [b2, b3] = four(a1, a3);
            let [b4, b5] = four(a4, a6);
            let [b6, b7] = four(a5, a7);
            let (c0, c1) = (eight(b0, b4), eight(b1, b5));
            let (c2, c3) = (eight(b2, b6), eight(b3, b7));
            transmute([c0[0], c0[1], c1[0], c1[1], c2[0], c2[1], c3[0], c3[1]])
        }
    }

    /// Only for code that is compiled for AVX2.
    #[inline(always)]
    #[expect(unsafe_code, reason = "arrays and registers of one size")]
    pub(super) fn quantise_half(w: &[f32; HALF], scale: &[f32; HALF]) -> [i16; HALF] {
        // SAFETY: arrays of 64 bytes are two registers of 32, and any bits are valid in both; the
        // callers are compiled for AVX2 and run only where it was detected.
        unsafe {
            let w: [__m256; 2] = transmute(*w);
            let s: [__m256; 2] = transmute(*scale);
            let a = _mm256_cvtps_epi32(_mm256_mul_ps(w[0], s[0]));
            let b = _mm256_cvtps_epi32(_mm256_mul_ps(w[1], s[1]));
            // Packing stops at 32767, which becomes -32768: see `to_i16`.
            let q = _mm256_packs_epi32(a, b);
            let q = _mm256_xor_si256(q, _mm256_cmpeq_epi16(q, _mm256_set1_epi16(i16::MAX)));
            // It also works inside each half of the registers; the permutation mends the order.
            transmute(_mm256_permute4x64_epi64::<0b11_01_10_00>(q))
        }
    }

    /// Only for code that is compiled for AVX2 and FMA.
    #[inline(always)]
    #[expect(unsafe_code, reason = "arrays and registers of one size")]
    pub(super) fn dot(x: &[f32; PANEL], y: &[f32; PANEL]) -> f32 {
        // SAFETY: arrays of 256 bytes are eight registers of 32, and any bits are valid in both;
        // the callers are compiled for these features and run only where they were detected.
        unsafe {
            let x: [__m256; 8] = transmute(*x);
            let y: [__m256; 8] = transmute(*y);
            let lane = |k: usize| _mm256_fmadd_ps(x[k], y[k], _mm256_mul_ps(x[k + 4], y[k + 4]));
            let sum =
                _mm256_add_ps(_mm256_add_ps(lane(0), lane(1)), _mm256_add_ps(lane(2), lane(3)));
            let four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    /// Only for code that is compiled for AVX2.
    #[inline(always)]
    #[expect(unsafe_code, reason = "arrays and registers of one size")]
    pub(super) fn transpose_pair(x: [[i16; HALF]; 8]) -> [[i16; HALF]; 8] {
        // SAFETY: as above, with eight arrays of 32 bytes.
        unsafe {
            let x: [__m256i; 8] = transmute(x);
            let two = |a, b| [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)];
            let four = |a, b| [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)];
            let eight = |a, b| [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)];
            let [a0, a1] = two(x[0], x[1]);
            let [a2, a3] = two(x[2], x[3]);
            let [a4, a5] = two(x[4], x[5]);
            let [a6, a7] = two(x[6], x[7]);
            let [b0, b1] = four(a0, a2);
            let [b2, b3] = four(a1, a3);
            let [b4, b5] = four(a4, a6);
            let [b6, b7] = four(a5, a7);
            let (c0, c1) = (eight(b0, b4), eight(b1, b5));
            let (c2, c3) = (eight(b2, b6), eight(b3, b7));
            transmute([c0[0], c0[1], c1[0], c1[1], c2[0], c2[1], c3[0], c3[1]])
        }
    }

    #[inline(always)]
    #[expect(unsafe_code, reason = "arrays and registers of one size")]
    pub(super) fn transpose_four(x: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
        // SAFETY: four arrays of 16 bytes are four registers of 16 bytes, and any bits are valid
        // in both; SSE is part of every x86-64.
        unsafe {
            let [a, b, c, d]: [__m128; 4] = transmute(x);
            let (low, high) = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
            let (low2, high2) = (_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
            transmute([
                _mm_movelh_ps(low, low2),
                _mm_movehl_ps(low2, low),
                _mm_movelh_ps(high, high2),
                _mm_movehl_ps(high2, high),
            ])
        }
    }
}

fast! {
    /// Copies rows `first..first + 16` of a panel, transposed: `out[j]` holds column `j`. Rows
    /// beyond the last are zero.
    ///
    /// # Panics
    ///
    /// If `out` has no room for 64 columns.
    pub fn transpose_single[](weights: &[Row], first: usize, out: &mut [Single])
        = transpose_single_portable;
}

#[inline(always)]
fn transpose_single_portable(weights: &[Row], first: usize, out: &mut [Single]) {
    let out = &mut out[..PANEL];
    let zero = Row::ZERO;
    for part in 0..HALF / 4 {
        let rows: [&Row; 4] =
            std::array::from_fn(|k| weights.get(first + part * 4 + k).unwrap_or(&zero));
        for square in 0..PANEL / 4 {
            let x = rows.map(|row| row.0.as_chunks::<4>().0[square]);
            for (j, column) in transpose_four(x).into_iter().enumerate() {
                out[square * 4 + j].0.as_chunks_mut::<4>().0[part] = column;
            }
        }
    }
}

fast! {
    /// Adds $\sum_i w_{ij} a_i$ to `columns` and $\sum_j w_{ij} z_j$ to `rows`.
    ///
    /// # Panics
    ///
    /// If there are fewer factors than rows.
    pub fn add_dots[](
        weights: &[Row],
        a: &[f32],
        z: &Row,
        columns: &mut Row,
        rows: &mut [f32],
    ) = add_dots_portable, wide add_dots_wide;
}

#[inline(always)]
fn add_dots_portable(weights: &[Row], a: &[f32], z: &Row, columns: &mut Row, rows: &mut [f32]) {
    add_dots_in::<false>(weights, a, z, columns, rows);
}

#[inline(always)]
#[cfg(target_arch = "x86_64")]
fn add_dots_wide(weights: &[Row], a: &[f32], z: &Row, columns: &mut Row, rows: &mut [f32]) {
    add_dots_in::<true>(weights, a, z, columns, rows);
}

#[inline(always)]
fn add_dots_in<const WIDE: bool>(
    weights: &[Row],
    a: &[f32],
    z: &Row,
    columns: &mut Row,
    rows: &mut [f32],
) {
    let n = weights.len();
    let (a, rows) = (&a[..n], &mut rows[..n]);
    for (w, row) in weights.iter().zip(rows) {
        *row += dot::<WIDE>(w, z);
    }
    for part in 0..PANEL / TILE {
        let out = &mut columns.0.as_chunks_mut::<TILE>().0[part];
        let mut sum = *out;
        for i in 0..n {
            let w = &weights[i].0.as_chunks::<TILE>().0[part];
            for l in 0..TILE {
                sum[l] = a[i].mul_add(w[l], sum[l]);
            }
        }
        *out = sum;
    }
}

#[cfg(test)]
mod tests;
