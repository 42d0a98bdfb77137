//! The fused update of a panel of weights, and its transposed copy in single precision.

#[cfg(target_arch = "x86_64")]
use crate::dispatch::WIDE;
use crate::dispatch::{PORTABLE, WIDEST, fast};
use crate::line::{HALF, PANEL, Row, Sums, TILE, Wide};
use crate::tables::LEVELS;
use std::ops::Range;

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

/// Which penalties a step has: none, $\lambda_2$ alone, or both.
pub(crate) const FREE: u8 = 0;
pub(crate) const SQUARES: u8 = 1;
pub(crate) const BOTH: u8 = 2;

impl Step {
    pub(crate) fn penalties(&self) -> u8 {
        match (self.l1 == 0.0, self.l2 == 0.0) {
            (true, true) => FREE,
            (true, false) => SQUARES,
            _ => BOTH,
        }
    }

    /// Whether velocities are kept for this number of rows of weights.
    ///
    /// # Panics
    ///
    /// If there are some, but fewer than rows, or none where there is momentum.
    pub(crate) fn moves(&self, velocity: &[Row], n: usize) -> bool {
        let kept = !velocity.is_empty();
        let fits = if kept { velocity.len() >= n } else { self.momentum == 0.0 || n == 0 };
        assert!(fits, "update: a velocity for each row, or none and no momentum");
        kept
    }
}

/// Runs `$run` with constants that say which penalties there are and whether velocities are kept.
macro_rules! specialise {
    ($step:expr, $moves:expr, |$penalties:ident, $kept:ident| $run:expr) => {
        $crate::update::specialise! {
            @ ($step.penalties(), $moves), $penalties, $kept, $run,
            (FREE, true) => FREE true, (SQUARES, true) => SQUARES true, (_, true) => BOTH true,
            (FREE, false) => FREE false, (_, false) => BOTH false,
        }
    };
    (@ $which:expr, $penalties:ident, $kept:ident, $run:expr, $($pattern:pat => $p:ident $k:literal,)*) => {
        match $which {
            $($pattern => {
                const $penalties: u8 = $p;
                const $kept: bool = $k;
                $run
            })*
        }
    };
}
pub(crate) use specialise;

/// What is added to the products of bits: terms of rank one, $\sum_k a_{ik} z_{kj}$, that carry
/// centering. Without any (`K` = 0) nothing is centered, and no [`Dots`] are taken.
#[derive(Clone, Copy, Debug)]
pub struct RankOne<'a, const K: usize> {
    /// $a$, for each row.
    pub rows: &'a [[f32; K]],
    /// $z$, for each term.
    pub columns: &'a [Row; K],
}

/// What adds $\eta$ times the slope of the likelihood and the penalties to a number.
#[derive(Clone, Copy)]
pub(crate) struct Slope<'a, const K: usize, G> {
    gradient: G,
    terms: RankOne<'a, K>,
    /// $\eta$, $\eta\lambda_1$ and $-\eta\lambda_2$.
    rate: f32,
    l1: f32,
    decay: f32,
}

impl<'a, const K: usize, G: Gradient> Slope<'a, K, G> {
    #[inline(always)]
    pub(crate) fn new(gradient: &G, terms: RankOne<'a, K>, step: Step, rate: f32) -> Self {
        let (l1, decay) = (rate * step.l1, -rate * step.l2);
        Self { gradient: gradient.scaled(rate), terms, rate, l1, decay }
    }

    /// Row `i` of the gradient and its factors.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> (G::Row, [f32; K]) {
        (self.gradient.row(i), self.terms.rows[i].map(|a| self.rate * a))
    }

    /// Whether nothing moves row `i`.
    #[inline(always)]
    pub(crate) fn rests<const P: u8, const M: bool>(&self, i: usize) -> bool {
        K == 0 && P == FREE && !M && self.gradient.is_zero(i)
    }

    /// How many of some rows nothing moves.
    #[inline(always)]
    pub(crate) fn resting<const P: u8, const M: bool>(&self, rows: Range<usize>) -> usize {
        if K == 0 && P == FREE && !M { self.gradient.count_zeros(rows) } else { 0 }
    }

    /// $x + \eta(g + \sum_k a_{ik} z_{kj} - \lambda_2 w - \lambda_1\,\mathrm{sgn}\,w)$ for
    /// the columns of a part.
    #[inline(always)]
    fn add<const P: u8, const N: usize>(
        &self,
        (row, factors): (G::Row, [f32; K]),
        part: usize,
        w: [f32; N],
        x: [f32; N],
    ) -> [f32; N] {
        let mut x = self.gradient.add(row, part, x);
        for k in 0..K {
            let z = &self.terms.columns[k].0.as_chunks::<N>().0[part];
            for l in 0..N {
                x[l] = factors[k].mul_add(z[l], x[l]);
            }
        }
        if P != FREE {
            for l in 0..N {
                x[l] = self.decay.mul_add(w[l], x[l]);
            }
        }
        if P == BOTH {
            for l in 0..N {
                x[l] -= if w[l] == 0.0 { 0.0 } else { self.l1.copysign(w[l]) };
            }
        }
        x
    }
}

/// $v \leftarrow \alpha v + \eta g$ and $w \leftarrow w + v$ for one part of a row; without momentum (not `M`)
/// $v$ is not read, and written only where dots are taken of it. Both are returned, so that they need not be read again.
#[inline(always)]
pub(crate) fn advance<const K: usize, const P: u8, const M: bool, const N: usize, G: Gradient>(
    slope: &Slope<'_, K, G>,
    row: (G::Row, [f32; K]),
    momentum: f32,
    part: usize,
    w: &mut Row,
    v: &mut Row,
) -> ([f32; N], [f32; N]) {
    let (w, v) = (&mut w.0.as_chunks_mut::<N>().0[part], &mut v.0.as_chunks_mut::<N>().0[part]);
    let mut moved = [0.0; N];
    if !M && K == 0 {
        // Nobody asks for the update itself.
        *w = slope.add::<P, N>(row, part, *w, *w);
        return (*w, moved);
    }
    if M {
        for l in 0..N {
            moved[l] = momentum * v[l];
        }
    }
    moved = slope.add::<P, N>(row, part, *w, moved);
    *v = moved;
    for l in 0..N {
        w[l] += moved[l];
    }
    (*w, moved)
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
    /// $v \leftarrow \alpha v + \eta g$ and $w \leftarrow w + v$, with the slope $g$ of the
    /// likelihood and the penalties. `transposed` becomes what [`transpose_single`] makes of the new
    /// weights, strip after strip of 32 rows, unless it is empty.
    ///
    /// Without momentum `velocity` may be empty. Then rows without a sample stay as they are where nothing else moves them.
    ///
    /// # Panics
    ///
    /// If there are fewer factors, velocities or shifts than rows, or room for some strips alone.
    pub fn update[<const K: usize, G: Gradient>](
        gradient: &G,
        terms: RankOne<'_, K>,
        step: Step,
        weights: &mut [Row],
        velocity: &mut [Row],
        dots: Dots<'_>,
        transposed: &mut [Wide],
    ) = update_in::<PORTABLE, K, G>,
        wide update_in::<WIDE, K, G>,
        widest update_in::<WIDEST, K, G>;
}

#[inline(always)]
fn update_in<const SET: u8, const K: usize, G: Gradient>(
    gradient: &G,
    terms: RankOne<'_, K>,
    step: Step,
    weights: &mut [Row],
    velocity: &mut [Row],
    mut dots: Dots<'_>,
    transposed: &mut [Wide],
) {
    let slope = Slope::new(gradient, terms, step, step.rate);
    let momentum = step.momentum;
    let moves = step.moves(velocity, weights.len());
    specialise!(step, moves, |P, M| update_rows::<SET, K, P, M, G>(
        &slope, momentum, weights, velocity, &mut dots, transposed,
    ));
}

#[inline(always)]
fn update_rows<const SET: u8, const K: usize, const P: u8, const M: bool, G: Gradient>(
    slope: &Slope<'_, K, G>,
    momentum: f32,
    weights: &mut [Row],
    velocity: &mut [Row],
    dots: &mut Dots<'_>,
    transposed: &mut [Wide],
) {
    let n = weights.len();
    let (shifts, rows) = (&dots.row_shifts[..n], &mut dots.rows[..n]);
    let mut columns = Row::ZERO;
    let mut moved_rows = [Row::ZERO; 8];
    for first in (0..n).step_by(8) {
        let end = n.min(first + 8);
        let strip = if M { &mut velocity[first..end] } else { &mut moved_rows[..end - first] };
        for (i, v) in (first..end).zip(&mut *strip) {
            if slope.rests::<P, M>(i) {
                continue;
            }
            let (w, row) = (&mut weights[i], slope.row(i));
            let mut dot = Dot::ZERO;
            #[cfg(target_arch = "x86_64")]
            if SET == WIDEST {
                for part in 0..PANEL / HALF {
                    let (_, moved) =
                        advance_register::<K, P, M, G>(slope, row, momentum, part, w, v);
                    if K > 0 {
                        dot.add_register(part, moved, dots.column_shifts);
                    }
                }
            }
            if SET != WIDEST {
                for part in 0..PANEL / 8 {
                    let (_, moved) = advance::<K, P, M, 8, G>(slope, row, momentum, part, w, v);
                    if K > 0 {
                        dot.add(part, moved, dots.column_shifts);
                    }
                }
            }
            if K > 0 {
                rows[i] = dot.total();
            }
        }
        if K > 0 {
            // While the rows are in the nearest cache.
            add_columns(strip, &shifts[first..end], &mut columns);
        }
        if !transposed.is_empty() && (end.is_multiple_of(TILE) || end == n) {
            let strip = (end - 1) / TILE;
            let out = &mut transposed[strip * PANEL..][..PANEL];
            transpose_single_portable(weights, strip * TILE, out);
        }
    }
    if K > 0 {
        *dots.columns = columns;
    }
}

/// Adds $\sum_i v_{ij} a_i$ to `columns`.
#[inline(always)]
pub(crate) fn add_columns(velocity: &[Row], a: &[f32], columns: &mut Row) {
    for part in 0..PANEL / HALF {
        let sum = &mut columns.0.as_chunks_mut::<HALF>().0[part];
        for (v, a) in velocity.iter().zip(a) {
            let v = &v.0.as_chunks::<HALF>().0[part];
            for l in 0..HALF {
                sum[l] = a.mul_add(v[l], sum[l]);
            }
        }
    }
}

fast! {
    /// Writes the gradient and its terms of rank one, row by row: what others may add theirs to
    /// before a step is made of it.
    ///
    /// # Panics
    ///
    /// If there are fewer factors than rows.
    pub fn gradient_into[<const K: usize, G: Gradient>](
        gradient: &G,
        terms: RankOne<'_, K>,
        out: &mut [Row],
    ) = gradient_into_portable;
}

#[inline(always)]
fn gradient_into_portable<const K: usize, G: Gradient>(
    gradient: &G,
    terms: RankOne<'_, K>,
    out: &mut [Row],
) {
    let slope =
        Slope::new(gradient, terms, Step { rate: 1.0, momentum: 0.0, l1: 0.0, l2: 0.0 }, 1.0);
    for (i, out) in out.iter_mut().enumerate() {
        out.0 = slope.add::<FREE, PANEL>(slope.row(i), 0, [0.0; PANEL], [0.0; PANEL]);
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
    let slope = Slope::new(gradient, terms, step, 1.0);
    let free = step.penalties() == FREE;
    for (i, w) in weights.iter().enumerate() {
        if free && slope.rests::<FREE, false>(i) {
            continue;
        }
        let row = slope.row(i);
        let g = slope.add::<BOTH, PANEL>(row, 0, w.0, [0.0; PANEL]);
        let mut squares = [0.0_f32; 8];
        for g in g.as_chunks::<8>().0 {
            for k in 0..8 {
                squares[k] = g[k].mul_add(g[k], squares[k]);
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

/// $\sum_l x_l y_l$ of one row, eight columns at a time in two alternating sums.
#[derive(Clone, Copy)]
pub(crate) struct Dot([[f32; 8]; 2]);

impl Dot {
    pub(crate) const ZERO: Self = Self([[0.0; 8]; 2]);

    /// Adds columns `8 part..8 part + 8`.
    #[inline(always)]
    pub(crate) fn add(&mut self, part: usize, x: [f32; 8], y: &Row) {
        let (sum, y) = (&mut self.0[part % 2], &y.0.as_chunks::<8>().0[part]);
        for l in 0..8 {
            sum[l] = x[l].mul_add(y[l], sum[l]);
        }
    }

    /// Adds columns `16 part..16 part + 16`, for code that is compiled for AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn add_register(&mut self, part: usize, x: Register, y: &Row) {
        let y = Register::of(&y.0.as_chunks::<HALF>().0[part]);
        self.0 = Register::of_halves(self.0).add_product(x, y).halves();
    }

    #[inline(always)]
    pub(crate) fn total(self) -> f32 {
        #[cfg(target_arch = "x86_64")]
        return x86::sse2::total(self.0);
        #[cfg(not(target_arch = "x86_64"))]
        return total_portable(self.0);
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn total_portable([a, b]: [[f32; 8]; 2]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|l| a[l] + b[l]);
    let four: [f32; 4] = std::array::from_fn(|l| eight[l] + eight[l + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Where the entries of a gradient come from.
pub trait Gradient: Copy {
    /// What one row is read from.
    type Row: Copy;

    /// Row `i`.
    fn row(&self, i: usize) -> Self::Row;

    /// Whether no sample has row `i`.
    fn is_zero(&self, i: usize) -> bool;

    /// How many of some rows no sample has.
    #[inline(always)]
    fn count_zeros(&self, rows: Range<usize>) -> usize {
        rows.filter(|&i| self.is_zero(i)).count()
    }

    /// Adds part `part` of it, `N` columns to a part.
    fn add<const N: usize>(&self, row: Self::Row, part: usize, to: [f32; N]) -> [f32; N];

    /// Adds columns `16 part..16 part + 16` of it; only for code that is compiled for AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    fn add_register(&self, row: Self::Row, part: usize, to: Register) -> Register;

    /// The same gradient times a factor.
    #[must_use]
    fn scaled(&self, factor: f32) -> Self;
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
    /// gradient stands at `places[i]`. The last of the sums is zero and belongs to rows without any sample.
    pub fn new(sums: &'a [Sums], places: &'a [u32], weight: f32) -> Self {
        debug_assert!(sums.last().is_none_or(|last| *last == Sums::ZERO), "the last is zero");
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
    fn is_zero(&self, i: usize) -> bool {
        self.places[i] as usize + 1 == self.sums.len()
    }

    /// Of eight without a branch.
    #[inline(always)]
    fn count_zeros(&self, rows: Range<usize>) -> usize {
        let is_last = |place: &u32| u32::from(*place as usize + 1 == self.sums.len());
        let places = &self.places[rows];
        let count: u32 = match <&[u32; 8]>::try_from(places) {
            Ok(eight) => eight.iter().map(is_last).sum(),
            Err(_) => places.iter().map(is_last).sum(),
        };
        count as usize
    }

    #[inline(always)]
    fn add<const N: usize>(&self, row: Self::Row, part: usize, mut to: [f32; N]) -> [f32; N] {
        let sums = &row.as_chunks::<N>().0[part];
        for l in 0..N {
            to[l] = f32::from(sums[l]).mul_add(self.unit, to[l]);
        }
        to
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn add_register(&self, row: Self::Row, part: usize, to: Register) -> Register {
        to.add_scaled(Register::of_sums(&row.as_chunks::<HALF>().0[part]), self.unit)
    }

    fn scaled(&self, factor: f32) -> Self {
        Self { unit: factor * self.unit, ..*self }
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
    fn is_zero(&self, i: usize) -> bool {
        self[0].is_zero(i) && self[1].is_zero(i)
    }

    #[inline(always)]
    fn add<const N: usize>(&self, row: Self::Row, part: usize, to: [f32; N]) -> [f32; N] {
        self[1].add(row[1], part, self[0].add(row[0], part, to))
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn add_register(&self, row: Self::Row, part: usize, to: Register) -> Register {
        self[1].add_register(row[1], part, self[0].add_register(row[0], part, to))
    }

    fn scaled(&self, factor: f32) -> Self {
        self.map(|side| side.scaled(factor))
    }
}

/// Sums in single precision; places as in [`FieldSums::new`].
#[derive(Clone, Copy, Debug)]
pub struct SingleSums<'a> {
    sums: &'a [Row],
    places: &'a [u32],
    unit: f32,
}

impl<'a> SingleSums<'a> {
    /// Sums that include the weights of their samples.
    pub fn new(sums: &'a [Row], places: &'a [u32]) -> Self {
        debug_assert!(sums.last().is_none_or(|last| *last == Row::ZERO), "the last is zero");
        Self { sums, places, unit: 1.0 }
    }
}

impl<'a> Gradient for SingleSums<'a> {
    type Row = &'a [f32; PANEL];

    #[inline(always)]
    fn row(&self, i: usize) -> Self::Row {
        &self.sums[self.places[i] as usize].0
    }

    #[inline(always)]
    fn is_zero(&self, i: usize) -> bool {
        self.places[i] as usize + 1 == self.sums.len()
    }

    #[inline(always)]
    fn add<const N: usize>(&self, row: Self::Row, part: usize, mut to: [f32; N]) -> [f32; N] {
        let sums = &row.as_chunks::<N>().0[part];
        for l in 0..N {
            to[l] = sums[l].mul_add(self.unit, to[l]);
        }
        to
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn add_register(&self, row: Self::Row, part: usize, to: Register) -> Register {
        to.add_scaled(Register::of(&row.as_chunks::<HALF>().0[part]), self.unit)
    }

    fn scaled(&self, factor: f32) -> Self {
        Self { unit: factor * self.unit, ..*self }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
pub use x86::avx512::Register;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::avx512::advance_register;

#[cfg(any(test, not(target_arch = "x86_64")))]
fn transpose_portable<const N: usize>(x: [[f32; N]; N]) -> [[f32; N]; N] {
    std::array::from_fn(|i| std::array::from_fn(|j| x[j][i]))
}

/// Transposes 4 × 4.
#[inline(always)]
pub(crate) fn transpose_four(x: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    #[cfg(target_arch = "x86_64")]
    return x86::sse2::transpose_four(x);
    #[cfg(not(target_arch = "x86_64"))]
    return transpose_portable(x);
}

fast! {
    /// Copies rows `first..first + 32` of a panel, transposed: `out[j]` holds column `j`. Rows
    /// beyond the last are zero.
    ///
    /// # Panics
    ///
    /// If `out` has no room for 64 columns.
    pub fn transpose_single[](weights: &[Row], first: usize, out: &mut [Wide])
        = transpose_single_portable, wide transpose_single_wide, widest avx2;
}

/// Square by square; a macro, since a function that is handed on is not compiled for the
/// instructions that it is written in.
macro_rules! transpose_by {
    ($transpose:path, $N:literal, $weights:expr, $first:expr, $out:expr) => {{
        let (out, zero) = (&mut $out[..PANEL], Row::ZERO);
        for part in 0..TILE / $N {
            let row = |k: usize| $weights.get($first + part * $N + k).unwrap_or(&zero);
            let rows: [&Row; $N] = std::array::from_fn(row);
            for square in 0..PANEL / $N {
                let x = rows.map(|row| row.0.as_chunks::<$N>().0[square]);
                for (j, column) in $transpose(x).into_iter().enumerate() {
                    out[square * $N + j].0.as_chunks_mut::<$N>().0[part] = column;
                }
            }
        }
    }};
}

#[inline(always)]
fn transpose_single_portable(weights: &[Row], first: usize, out: &mut [Wide]) {
    transpose_by!(transpose_four, 4, weights, first, out);
}

#[inline(always)]
#[cfg(target_arch = "x86_64")]
fn transpose_single_wide(weights: &[Row], first: usize, out: &mut [Wide]) {
    transpose_by!(x86::avx2::transpose_eight, 8, weights, first, out);
}

#[cfg(test)]
pub(crate) mod tests;
