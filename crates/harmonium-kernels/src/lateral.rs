//! Units that see each other, 32 rows side by side.
//!
//! Rows are independent and units are not, so a vector register holds one unit of many rows: here
//! a unit is a line of natural parameters, one for each of 32 rows, and a word with the bit of
//! each row. Where the coupling is dense, units are sampled in turn and each change is added to
//! those that follow; where it is sparse, a unit gathers what its neighbours send.

use crate::dispatch::fast;
use crate::line::{Row, TILE, Wide};
use crate::random::{Site, Stream};
use crate::response::{Resolution, Uniforms, exp_neg, pack};

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

/// Uniform variates of 32 units in 32 rows, and what they are compared with.
#[derive(Clone, Debug)]
pub struct Variates {
    units: Vec<Lanes>,
    full: f32,
}

impl Default for Variates {
    fn default() -> Self {
        Self { units: vec![Lanes::ZERO; TILE], full: 1.0 }
    }
}

impl Variates {
    /// Draws those of units `32 tile..32 tile + 32` in the rows from that of `site` on: the same
    /// as [`crate::response::sample`] uses.
    pub fn draw(&mut self, stream: Stream, site: Site, tile: u32, resolution: Resolution) {
        self.full = draw(stream, site, tile, resolution, &mut self.units);
    }
}

fast! {
    fn draw[](
        stream: Stream,
        site: Site,
        tile: u32,
        resolution: Resolution,
        units: &mut [Lanes],
    ) -> f32 = draw_portable;
}

#[inline(always)]
fn draw_portable(
    stream: Stream,
    site: Site,
    tile: u32,
    resolution: Resolution,
    units: &mut [Lanes],
) -> f32 {
    let mut uniforms = Uniforms::new(stream, site, tile, resolution);
    for row in 0..LANES {
        let u = uniforms.next();
        for (unit, u) in units.iter_mut().zip(u) {
            unit.0[row] = u;
        }
    }
    uniforms.full()
}

/// The bits of one unit.
#[inline(always)]
fn respond(theta: &Lanes, betas: &Lanes, base: f32, u: &Lanes, full: f32) -> u32 {
    let mut on = [0; LANES];
    for l in 0..LANES {
        let t = betas.0[l].mul_add(theta.0[l] - base, base);
        on[l] = if u.0[l].mul_add(exp_neg(t), u.0[l]) < full { u32::MAX } else { 0 };
    }
    pack(on)
}

/// All ones where the bit is set.
#[inline(always)]
fn mask(word: u32, lane: usize) -> u32 {
    (word >> lane & 1).wrapping_neg()
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
    ) = sample_in_turn_portable;
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
        *word = respond(&now[0], heat.betas, heat.base[i], &variates.units[i], variates.full);
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

fast! {
    /// Samples units `first..first + theta.len()`, at most 32 that do not see each other:
    /// `theta` is what they receive besides, `words` the bits of all units.
    ///
    /// # Panics
    ///
    /// If a link leads to no unit, or there are more than 32.
    pub fn sample_together[](
        theta: &mut [Lanes],
        first: usize,
        links: &Links,
        heat: Heat<'_>,
        variates: &Variates,
        words: &mut [u32],
    ) = sample_together_portable;
}

#[inline(always)]
fn sample_together_portable(
    theta: &mut [Lanes],
    first: usize,
    links: &Links,
    heat: Heat<'_>,
    variates: &Variates,
    words: &mut [u32],
) {
    for (i, theta) in theta.iter_mut().enumerate() {
        let range = links.starts[first + i] as usize..links.starts[first + i + 1] as usize;
        for (&unit, &w) in links.units[range.clone()].iter().zip(&links.weights[range]) {
            let word = words[unit as usize];
            for l in 0..LANES {
                theta.0[l] += f32::from_bits(w.to_bits() & mask(word, l));
            }
        }
        let u = &variates.units[i];
        words[first + i] = respond(theta, heat.betas, heat.base[i], u, variates.full);
    }
}

fast! {
    /// Turns rows of 32 units into units of 32 rows; missing rows are zero.
    pub fn to_lanes[](rows: &[Wide], units: &mut [Lanes]) = to_lanes_portable;
}

#[inline(always)]
fn to_lanes_portable(rows: &[Wide], units: &mut [Lanes]) {
    for (i, unit) in units.iter_mut().enumerate() {
        unit.0 = [0.0; LANES];
        for (lane, row) in unit.0.iter_mut().zip(rows) {
            *lane = row.0[i];
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
