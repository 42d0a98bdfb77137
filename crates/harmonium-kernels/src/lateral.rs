//! Units that see each other, 32 rows side by side.
//!
//! Rows are independent and units are not, so a vector register holds one unit of many rows: here
//! a unit is a line of natural parameters, one for each of 32 rows, and a word with the bit of
//! each row. Where the coupling is dense, units are sampled in turn and each change is added to
//! those that follow; where it is sparse, a unit gathers what its neighbours send.

use crate::dispatch::fast;
use crate::line::{Line, Row, TILE, Wide};
use crate::random::{FULL, Site, Stream, Uniforms};
use crate::response::{exp_neg, pack};
use crate::update::transpose_four;

/// Rows that stand side by side.
pub const LANES: usize = 32;

/// One unit of 32 rows.
pub type Lanes = Wide;

/// How rows are tempered: $\beta\theta + (1 - \beta)\theta_0$.
#[derive(Clone, Copy, Debug)]
pub struct Heat<'a> {
    /// $\beta$ of each row.
    pub betas: &'a Lanes,
    /// $\theta_0$ of each unit.
    pub base: &'a [f32],
}

/// Which variates a visit of 32 rows uses.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    /// Where they come from.
    pub stream: Stream,
    /// The first row, the sweep and the layer.
    pub site: Site,
}

/// Uniform variates of 32 units in 32 rows.
#[derive(Clone, Debug)]
pub struct Variates {
    units: Vec<Lanes>,
}

impl Default for Variates {
    fn default() -> Self {
        Self { units: vec![Lanes::ZERO; TILE] }
    }
}

impl Variates {
    /// Draws those of units `32 tile..32 tile + 32`: the same as [`crate::response::sample`] uses.
    pub fn draw(&mut self, draws: Draws, tile: u32) {
        draw(draws, tile, &mut self.units);
    }
}

fast! {
    fn draw[](draws: Draws, tile: u32, units: &mut [Lanes]) = draw_portable;
}

#[inline(always)]
fn draw_portable(draws: Draws, tile: u32, units: &mut [Lanes]) {
    let place = (draws.stream, draws.site, tile);
    let (mut rows, mut room) = ([Wide::ZERO; LANES], Uniforms::NONE);
    for (first, rows) in (0..).step_by(Uniforms::ROWS).zip(rows.chunks_mut(Uniforms::ROWS)) {
        let uniforms = room.draw(place, first, rows.len());
        rows.iter_mut().enumerate().for_each(|(r, row)| row.0 = uniforms.row(r));
    }
    to_lanes_portable(&rows, units);
}

/// The bits of one unit.
#[inline(always)]
fn respond(theta: &Lanes, betas: &Lanes, base: f32, u: &Lanes) -> u32 {
    let mut on = [0; LANES];
    for l in 0..LANES {
        let t = betas.0[l].mul_add(theta.0[l] - base, base);
        on[l] = if u.0[l].mul_add(exp_neg(t), u.0[l]) < FULL { u32::MAX } else { 0 };
    }
    pack(on)
}

/// All ones where the bit is set.
#[inline(always)]
fn mask(word: u32, lane: usize) -> u32 {
    if word & 1 << lane == 0 { 0 } else { u32::MAX }
}

fast! {
    /// Samples up to 32 units one after the other. `rows[i]` holds the weights of unit `i`
    /// towards the columns of its panel, in which the units stand from `first` on; what changed,
    /// times `gain`, is added to all units of `theta` that follow, also those that are not
    /// sampled here. `theta` starts with the first unit that is sampled, and `words` are its
    /// bits.
    ///
    /// # Panics
    ///
    /// If there are fewer natural parameters, rows or variates than words.
    pub fn sample_in_turn[](
        theta: &mut [Lanes],
        rows: &[Row],
        first: usize,
        gain: f32,
        heat: Heat<'_>,
        variates: &Variates,
        words: &mut [u32],
    ) = sample_in_turn_portable, wide sample_in_turn_portable, widest avx2;
}

#[inline(always)]
fn sample_in_turn_portable(
    theta: &mut [Lanes],
    rows: &[Row],
    first: usize,
    gain: f32,
    heat: Heat<'_>,
    variates: &Variates,
    words: &mut [u32],
) {
    for (i, word) in words.iter_mut().enumerate() {
        let (now, later) = theta[i..].split_at_mut(1);
        let old = *word;
        *word = respond(&now[0], heat.betas, heat.base[i], &variates.units[i]);
        if *word == old {
            continue;
        }
        let (up, down) = (*word & !old, old & !*word);
        let mut change = Lanes::ZERO;
        for l in 0..LANES {
            let sign = gain.to_bits() | mask(down, l) & 0x8000_0000;
            change.0[l] = f32::from_bits(sign & (mask(up, l) | mask(down, l)));
        }
        let weights = &rows[i].0[first + i + 1..];
        for (theta, &w) in later.iter_mut().zip(weights) {
            for l in 0..LANES {
                theta.0[l] = w.mul_add(change.0[l], theta.0[l]);
            }
        }
    }
}

/// Which units a unit sees, and how strongly.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// `starts[i]..starts[i + 1]` belong to unit `i`.
    pub starts: Vec<u32>,
    /// The units seen.
    pub units: Vec<u32>,
    /// Their weights.
    pub weights: Vec<f32>,
}

/// What units receive besides what their neighbours send.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The same in all rows, a number for each unit.
    Same(&'a [f32]),
    /// A number for each unit and row.
    Each(&'a [Lanes]),
}

fast! {
    /// Samples units `first..first + 32`, which do not see each other; `words` are the bits of all
    /// units.
    ///
    /// Units take the place of even rows among the variates, and 32 rows that of units: then those
    /// of one unit stand side by side. The first row of `draws` must be a multiple of 32.
    ///
    /// # Panics
    ///
    /// If a link leads to no unit, or there are fewer inputs or units than 32.
    pub fn sample_together[](
        input: Input<'_>,
        first: usize,
        links: &Links,
        heat: Heat<'_>,
        draws: Draws,
        words: &mut [u32],
    ) = sample_together_portable;
}

#[inline(always)]
fn sample_together_portable(
    input: Input<'_>,
    first: usize,
    links: &Links,
    heat: Heat<'_>,
    draws: Draws,
    words: &mut [u32],
) {
    let Draws { stream, site } = draws;
    let mut room = Uniforms::NONE;
    for i in 0..TILE {
        let mut theta = match input {
            Input::Same(values) => Line([values[i]; LANES]),
            Input::Each(lanes) => lanes[i],
        };
        let range = links.starts[first + i] as usize..links.starts[first + i + 1] as usize;
        for (&unit, &w) in links.units[range.clone()].iter().zip(&links.weights[range]) {
            let word = words[unit as usize];
            for l in 0..LANES {
                theta.0[l] += f32::from_bits(w.to_bits() & mask(word, l));
            }
        }
        // Two rows share their words, and here rows are units of one sample: only even ones.
        let unit = Site { row: u32::try_from(2 * (first + i)).unwrap_or(u32::MAX), ..site };
        let u = Line(room.draw((stream, unit, site.row / 32), 0, 1).row(0));
        words[first + i] = respond(&theta, heat.betas, heat.base[i], &u);
    }
}

fast! {
    /// Turns rows of 32 units into units of 32 rows; missing rows are zero.
    pub fn to_lanes[](rows: &[Wide], units: &mut [Lanes]) = to_lanes_portable;
}

#[inline(always)]
fn to_lanes_portable(rows: &[Wide], units: &mut [Lanes]) {
    for (part, rows) in (0..LANES / 4).zip((0..).step_by(4).map(|r| rows.get(r..))) {
        let rows = rows.unwrap_or_default();
        let row = |k: usize| rows.get(k).unwrap_or(&Wide::ZERO).0.as_chunks::<4>().0;
        for (square, units) in units.chunks_mut(4).enumerate() {
            let x = std::array::from_fn(|k| row(k)[square]);
            for (lanes, unit) in transpose_four(x).iter().zip(units) {
                unit.0.as_chunks_mut::<4>().0[part] = *lanes;
            }
        }
    }
}

/// Transposes 32 × 32 bits (Hacker's Delight, 7–3).
pub fn transpose_bits(a: &mut [u32; 32]) {
    let (mut width, mut low) = (16, 0x0000_ffff_u32);
    while width != 0 {
        let mut k = 0;
        while k < 32 {
            let t = (a[k] >> width ^ a[k + width]) & low;
            a[k] ^= t << width;
            a[k + width] ^= t;
            k = (k + width + 1) & !width;
        }
        width >>= 1;
        low ^= low << width;
    }
}

#[cfg(test)]
mod tests;
