//! What the layers of a feed-forward net do around their products: bias, activation and dropout in one
//! pass, the slopes on the way back, and the updates.
//!
//! Values are stored unit by unit: `stride` numbers for each unit, of which the first `n`, one for each
//! row of the batch, are meant. The incoming weights of a unit lie side by side.
//!
//! Units may be stored without their offset, $x = f(\cdot) - \mu$: one that is dropped is then at its mean.
//!
//! Dropout (Srivastava et al. 2014) compares 16 bits of a counter-based variate with a threshold, so that a
//! unit is kept with probability `keep / 65536`, and the same mask can be drawn again on the way back.

use crate::dispatch::fast;
use crate::random::{Site, Stream};
use crate::response::exp_neg;

/// Lanes of the sums.
const LANES: usize = 16;

/// What a unit makes of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// $\sigma(x)$.
    Logistic,
    /// $\max(x, 0)$.
    Relu,
    /// $x$.
    Linear,
}

/// Which units are dropped: unit `u` of row `r` is kept where its variate is below `keep`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropout {
    /// The variates of this step.
    pub stream: Stream,
    /// The layer.
    pub lane: u32,
    /// The probability of keeping a unit, in 65536ths.
    pub keep: u32,
}

/// The probability 1 of keeping a unit.
pub const KEEP_ALL: u32 = 1 << 16;

/// Values of units: `stride` numbers for each, of which `n` are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Values of a unit.
    pub n: usize,
    /// From one unit to the next.
    pub stride: usize,
}

impl Rows {
    /// # Panics
    ///
    /// If the values of a unit overlap those of the next.
    fn check(self) {
        assert!(self.n <= self.stride && self.stride > 0, "neurons: units must not overlap");
    }
}

/// Neighbouring units of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Units<'a> {
    /// What each makes of its input.
    pub activation: Activation,
    /// What its values are stored without, for each unit; empty if nothing.
    pub offset: &'a [f32],
    /// Which of them are dropped.
    pub dropout: Option<Dropout>,
    /// The number of the first in its layer.
    pub first: u32,
}

impl Units<'_> {
    #[inline(always)]
    fn offset(&self, k: usize) -> f32 {
        if self.offset.is_empty() { 0.0 } else { self.offset[k] }
    }
}

fast! {
    /// Adds the bias of each unit, applies the activation, takes the offset away, and drops what is to be dropped.
    ///
    /// # Panics
    ///
    /// If there is not a bias for each unit.
    pub fn activate[](x: &mut [f32], rows: Rows, bias: &[f32], units: Units<'_>) = activate_portable;
}

#[inline(always)]
fn activate_portable(x: &mut [f32], rows: Rows, bias: &[f32], units: Units<'_>) {
    rows.check();
    assert_eq!(x.len().div_ceil(rows.stride), bias.len(), "activate: a bias for each unit");
    for ((k, x), &b) in x.chunks_mut(rows.stride).enumerate().zip(bias) {
        let (x, o, unit) = (&mut x[..rows.n], units.offset(k), units.first + low(k));
        match units.activation {
            Activation::Logistic => each(x, |x| 1.0 / (1.0 + exp_neg(x + b)) - o),
            Activation::Relu => each(x, |x| if x + b > 0.0 { x + b - o } else { -o }),
            Activation::Linear => each(x, |x| x + b - o),
        }
        let dropout = units.dropout;
        if let Some(dropout) = dropout {
            drop_values(x, unit, dropout);
        }
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "no layer has more units than 32 bits count")]
fn low(k: usize) -> u32 {
    k as u32
}

/// Replaces every value, sixteen at a time; those that are left over in an array of their own.
#[inline(always)]
fn each(x: &mut [f32], f: impl Fn(f32) -> f32) {
    let (whole, rest) = x.as_chunks_mut::<LANES>();
    for x in whole {
        for l in 0..LANES {
            x[l] = f(x[l]);
        }
    }
    let mut last = [0.0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    for l in 0..LANES {
        last[l] = f(last[l]);
    }
    rest.copy_from_slice(&last[..rest.len()]);
}

fast! {
    /// Drops values of neighbouring units, the first of which has number `first` in its layer.
    pub fn drop_units[](x: &mut [f32], rows: Rows, dropout: Dropout, first: u32) = drop_units_portable;
}

#[inline(always)]
fn drop_units_portable(x: &mut [f32], rows: Rows, dropout: Dropout, first: u32) {
    rows.check();
    for (unit, x) in (first..).zip(x.chunks_mut(rows.stride)) {
        drop_values(&mut x[..rows.n], unit, dropout);
    }
}

/// A word of a tile holds the variates of two values that are 32 apart.
#[inline(always)]
fn drop_values(x: &mut [f32], unit: u32, Dropout { stream, lane, keep }: Dropout) {
    if keep >= KEEP_ALL {
        return;
    }
    let site = Site { row: unit, sweep: 0, lane };
    let (whole, rest) = x.as_chunks_mut::<64>();
    let mut tile = 0;
    for x in whole {
        drop_tile(x, stream.tile_inside(site, tile), keep);
        tile += 1;
    }
    if !rest.is_empty() {
        let mut last = [0.0; 64];
        last[..rest.len()].copy_from_slice(rest);
        drop_tile(&mut last, stream.tile_inside(site, tile), keep);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[inline(always)]
fn drop_tile(x: &mut [f32; 64], words: [u32; 32], keep: u32) {
    for l in 0..32 {
        x[l] = if words[l] & 0xffff < keep { x[l] } else { 0.0 };
    }
    for l in 0..32 {
        x[32 + l] = if words[l] >> 16 < keep { x[32 + l] } else { 0.0 };
    }
}

fast! {
    /// Multiplies with the slope of the activation, given what came out of it. A unit that was dropped has
    /// slope 0: logistic and rectified units without offsets show it by their value, others are drawn again.
    ///
    /// # Panics
    ///
    /// If there are not as many values as slopes are wanted for.
    pub fn multiply_slopes[](delta: &mut [f32], x: &[f32], rows: Rows, units: Units<'_>)
        = multiply_slopes_portable;
}

#[inline(always)]
fn multiply_slopes_portable(delta: &mut [f32], x: &[f32], rows: Rows, units: Units<'_>) {
    rows.check();
    assert_eq!(delta.len(), x.len(), "multiply_slopes: a value for each slope");
    let shown = units.offset.is_empty() && units.activation != Activation::Linear;
    let all = delta.chunks_mut(rows.stride).zip(x.chunks(rows.stride));
    for (k, (delta, x)) in all.enumerate() {
        let (delta, x, o) = (&mut delta[..rows.n], &x[..rows.n], units.offset(k));
        match units.activation {
            Activation::Logistic => with(delta, x, |d, x| d * ((x + o) * (1.0 - (x + o)))),
            Activation::Relu => with(delta, x, |d, x| if x + o > 0.0 { d } else { 0.0 }),
            Activation::Linear => {}
        }
        if let Some(dropout) = units.dropout.filter(|_| !shown) {
            drop_values(delta, units.first + low(k), dropout);
        }
    }
}

fast! {
    /// `x - y`, number by number.
    pub fn subtract[](x: &mut [f32], y: &[f32]) = subtract_portable;
}

#[inline(always)]
fn subtract_portable(x: &mut [f32], y: &[f32]) {
    with(x, y, |x, y| x - y);
}

#[inline(always)]
fn with(y: &mut [f32], x: &[f32], f: impl Fn(f32, f32) -> f32) {
    let ((ys, y_rest), (xs, x_rest)) = (y.as_chunks_mut::<LANES>(), x.as_chunks::<LANES>());
    for (y, x) in ys.iter_mut().zip(xs) {
        for l in 0..LANES {
            y[l] = f(y[l], x[l]);
        }
    }
    y_rest.iter_mut().zip(x_rest).for_each(|(y, x)| *y = f(*y, *x));
}

fast! {
    /// Replaces the values of a group of units by $e^{x_u}/\sum_{u'} e^{x_{u'}}$, row by row.
    pub fn softmax[](x: &mut [f32], rows: Rows) = softmax_portable;
}

#[inline(always)]
fn softmax_portable(x: &mut [f32], rows: Rows) {
    rows.check();
    for start in (0..rows.n).step_by(LANES) {
        let n = LANES.min(rows.n - start);
        let mut most = [f32::NEG_INFINITY; LANES];
        for unit in x.chunks(rows.stride) {
            for (m, x) in most.iter_mut().zip(&unit[start..start + n]) {
                *m = if *x > *m { *x } else { *m };
            }
        }
        let mut sum = [0.0; LANES];
        for unit in x.chunks_mut(rows.stride) {
            for (l, x) in unit[start..start + n].iter_mut().enumerate() {
                *x = exp_neg(most[l] - *x);
                sum[l] += *x;
            }
        }
        for unit in x.chunks_mut(rows.stride) {
            unit[start..start + n].iter_mut().zip(sum).for_each(|(x, s)| *x /= s);
        }
    }
}

fast! {
    /// The sum of the values of each unit.
    pub fn sum_units[](x: &[f32], rows: Rows, sums: &mut [f32]) = sum_units_portable;
}

#[inline(always)]
fn sum_units_portable(x: &[f32], rows: Rows, sums: &mut [f32]) {
    rows.check();
    for (x, sum) in x.chunks(rows.stride).zip(sums) {
        *sum = sum_of(&x[..rows.n]);
    }
}

#[inline(always)]
fn sum_of(x: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        for l in 0..LANES {
            lanes[l] += x[l];
        }
    }
    rest.iter().zip(&mut lanes).for_each(|(x, lane)| *lane += x);
    folded(lanes)
}

/// The lanes, added in a fixed order.
#[inline(always)]
fn folded(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            lanes[l] += lanes[l + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// How a step descends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descent {
    /// The learning rate.
    pub rate: f32,
    /// How much of the last update is repeated, or of the mean gradient kept.
    pub momentum: f32,
    /// $\lambda$ of the penalty $\tfrac\lambda2\sum w^2$.
    pub decay: f32,
}

/// Sums of squares after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Squares {
    /// Of the parameters.
    pub parameters: f32,
    /// Of the update.
    pub update: f32,
    /// Of the gradient, with its penalty.
    pub gradient: f32,
}

/// Sums of squares, lane by lane.
#[derive(Default)]
struct Sums([[f32; LANES]; 3]);

impl Sums {
    #[inline(always)]
    fn add(&mut self, l: usize, parameter: f32, update: f32, slope: f32) {
        for (sum, x) in self.0.iter_mut().zip([parameter, update, slope]) {
            sum[l] = x.mul_add(x, sum[l]);
        }
    }

    #[inline(always)]
    fn squares(self) -> Squares {
        let [parameters, update, gradient] = self.0.map(folded);
        Squares { parameters, update, gradient }
    }
}

/// The first numbers of an array, the others 0.
#[inline(always)]
fn padded(x: &[f32]) -> [f32; LANES] {
    let mut all = [0.0; LANES];
    all[..x.len()].copy_from_slice(x);
    all
}

fast! {
    /// Gradient descent with momentum: $\Delta \leftarrow \alpha\Delta - \eta(g + \lambda w)$,
    /// $w \leftarrow w + \Delta$.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn descend_by_momentum[](w: &mut [f32], velocity: &mut [f32], g: &[f32], step: Descent) -> Squares
        = momentum_portable;
}

#[inline(always)]
fn momentum_portable(w: &mut [f32], velocity: &mut [f32], g: &[f32], step: Descent) -> Squares {
    let n = w.len();
    assert!(velocity.len() == n && g.len() == n, "descend_by_momentum: slices of one length");
    let mut sums = Sums::default();
    let (ws, w_rest) = w.as_chunks_mut();
    let (vs, v_rest) = velocity.as_chunks_mut();
    let (gs, g_rest) = g.as_chunks();
    for ((w, v), g) in ws.iter_mut().zip(vs).zip(gs) {
        momentum_lanes(w, v, g, step, &mut sums);
    }
    let (mut w_last, mut v_last) = (padded(w_rest), padded(v_rest));
    momentum_lanes(&mut w_last, &mut v_last, &padded(g_rest), step, &mut sums);
    w_rest.copy_from_slice(&w_last[..w_rest.len()]);
    v_rest.copy_from_slice(&v_last[..v_rest.len()]);
    sums.squares()
}

#[inline(always)]
fn momentum_lanes(
    w: &mut [f32; LANES],
    velocity: &mut [f32; LANES],
    g: &[f32; LANES],
    Descent { rate, momentum, decay }: Descent,
    sums: &mut Sums,
) {
    for l in 0..LANES {
        let slope = decay.mul_add(w[l], g[l]);
        velocity[l] = (-rate).mul_add(slope, momentum * velocity[l]);
        w[l] += velocity[l];
        sums.add(l, w[l], velocity[l], slope);
    }
}

/// What Adam divides by: how much its averages still lack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// $1 - \prod_t \beta_1$.
    pub first: f32,
    /// $1 - \prod_t \beta_2$.
    pub second: f32,
}

/// The decay of Adam's mean square.
pub const ADAM_SECOND_DECAY: f32 = 0.999;
const ADAM_EPSILON: f32 = 1e-8;

fast! {
    /// Adam (Kingma & Ba 2015), the momentum being its first decay.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn descend_by_adam[](
        w: &mut [f32],
        first: &mut [f32],
        second: &mut [f32],
        g: &[f32],
        step: Descent,
        correction: Correction,
    ) -> Squares = adam_portable;
}

#[inline(always)]
fn adam_portable(
    w: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
    g: &[f32],
    step: Descent,
    correction: Correction,
) -> Squares {
    let n = w.len();
    let lengths = [first.len(), second.len(), g.len()];
    assert_eq!(lengths, [n; 3], "descend_by_adam: slices of one length");
    let mut sums = Sums::default();
    let (ws, w_rest) = w.as_chunks_mut();
    let (firsts, first_rest) = first.as_chunks_mut();
    let (seconds, second_rest) = second.as_chunks_mut();
    let (gs, g_rest) = g.as_chunks();
    for (((w, m), s), g) in ws.iter_mut().zip(firsts).zip(seconds).zip(gs) {
        adam_lanes(w, (m, s), g, step, correction, &mut sums);
    }
    let mut last = (padded(w_rest), padded(first_rest), padded(second_rest));
    let moments = (&mut last.1, &mut last.2);
    adam_lanes(&mut last.0, moments, &padded(g_rest), step, correction, &mut sums);
    w_rest.copy_from_slice(&last.0[..w_rest.len()]);
    first_rest.copy_from_slice(&last.1[..first_rest.len()]);
    second_rest.copy_from_slice(&last.2[..second_rest.len()]);
    sums.squares()
}

#[inline(always)]
fn adam_lanes(
    w: &mut [f32; LANES],
    (first, second): (&mut [f32; LANES], &mut [f32; LANES]),
    g: &[f32; LANES],
    Descent { rate, momentum, decay }: Descent,
    correction: Correction,
    sums: &mut Sums,
) {
    let (a, b) = (rate / correction.first, 1.0 / correction.second);
    for l in 0..LANES {
        let slope = decay.mul_add(w[l], g[l]);
        first[l] = momentum.mul_add(first[l] - slope, slope);
        second[l] = ADAM_SECOND_DECAY.mul_add(second[l] - slope * slope, slope * slope);
        let update = -a * first[l] / ((second[l] * b).sqrt() + ADAM_EPSILON);
        w[l] += update;
        sums.add(l, w[l], update, slope);
    }
}

fast! {
    /// Multiplies every number.
    pub fn scale[](x: &mut [f32], by: f32) = scale_portable;
}

#[inline(always)]
fn scale_portable(x: &mut [f32], by: f32) {
    each(x, |x| x * by);
}

#[cfg(test)]
mod tests;
