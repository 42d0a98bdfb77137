//! What units make of their natural parameters: probabilities, bits, small fields.
//!
//! $\sigma(\theta) = 1/(1 + e^{-\theta})$ with an exponential of degree five. Its relative error is
//! below $(2 + |\theta|/8)\,2^{-23}$ for $|\theta| < 87$, and its absolute error below $10^{-7}$
//! everywhere. A bit needs no division: $u < \sigma(\theta)$ is $u(1 + e^{-\theta}) < 1$.

use crate::dispatch::{PORTABLE, fast};
#[cfg(target_arch = "x86_64")]
use crate::dispatch::{WIDE, WIDEST};
use crate::line::{Fields, TILE, Wide};
use crate::random::{FULL, Place, Site, Stream, Uniforms};
use crate::tables::LEVELS;

/// $e^{-x}$, between $2^{-126}$ and $2^{126}$.
#[inline(always)]
#[expect(clippy::approx_constant, reason = "a coefficient that is close to ln 2 and is not it")]
pub(crate) fn exp_neg(x: f32) -> f32 {
    // Adding 1.5 · 2^23 rounds to a whole number and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const MOST: f32 = 126.0 * std::f32::consts::LN_2;
    // Written so that each is one instruction; a NaN becomes a bound.
    let x = if x < MOST { x } else { MOST };
    let x = if x > -MOST { x } else { -MOST };
    let shifted = x.mul_add(-std::f32::consts::LOG2_E, ROUND);
    // Fused, so that what is left keeps the digits that the whole number took from the product.
    let f = x.mul_add(-std::f32::consts::LOG2_E, ROUND - shifted);
    // Of all polynomials with p(0) = 1 the one whose largest relative error is least: 0.9 · 2^-23
    // on |f| <= 1/2, where Taylor's of the same degree has 28 · 2^-23.
    let mut p = 1.326_472_7e-3_f32;
    for c in [9.671_513e-3, 5.550_733_6e-2, 0.240_222_42, 0.693_147, 1.0] {
        p = p.mul_add(f, c);
    }
    f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23))
}

fast! {
    /// Starts every row with the same natural parameters.
    pub(crate) fn start_rows[](theta: &mut [Wide], line: &Wide) = start_rows_portable;
}

#[inline(always)]
fn start_rows_portable(theta: &mut [Wide], line: &Wide) {
    for row in theta {
        *row = *line;
    }
}

fast! {
    /// Replaces each natural parameter by its probability.
    pub fn probabilities[](theta: &mut [Wide]) = probabilities_portable;
}

#[inline(always)]
fn probabilities_portable(theta: &mut [Wide]) {
    for row in theta {
        for t in &mut row.0 {
            *t = 1.0 / (1.0 + exp_neg(*t));
        }
    }
}

fast! {
    /// Moves `means` by `step` of the way to `scale` times `p`, and returns the longest way.
    pub fn move_towards[](means: &mut [f32], p: &[f32], scale: f32, step: f32) -> f32
        = move_towards_portable;
}

#[inline(always)]
fn move_towards_portable(means: &mut [f32], p: &[f32], scale: f32, step: f32) -> f32 {
    let mut most = [0.0_f32; 8];
    let one = |m: &mut f32, p: f32, most: &mut f32| {
        let moved = step * (scale * p - *m);
        *m += moved;
        *most = if moved.abs() > *most { moved.abs() } else { *most };
    };
    let p = &p[..means.len()];
    let (eights, rest) = means.as_chunks_mut::<8>();
    let (p_eights, p_rest) = p.as_chunks::<8>();
    for (m, p) in eights.iter_mut().zip(p_eights) {
        for l in 0..8 {
            one(&mut m[l], p[l], &mut most[l]);
        }
    }
    rest.iter_mut().zip(p_rest).for_each(|(m, p)| one(m, *p, &mut most[0]));
    most.iter().fold(0.0, |a, b| a.max(*b))
}

fast! {
    /// `theta[r] = beta[r] theta[r] + (1 - beta[r]) base`.
    pub fn temper[](theta: &mut [Wide], betas: &[f32], base: &Wide)
        = temper_portable, wide temper_portable, widest avx2;
}

#[inline(always)]
fn temper_portable(theta: &mut [Wide], betas: &[f32], base: &Wide) {
    for (row, &beta) in theta.iter_mut().zip(betas) {
        for (t, b) in row.0.iter_mut().zip(base.0) {
            *t = beta.mul_add(*t - b, b);
        }
    }
}

/// How far a natural parameter may move in one step of [`anneal`]: the first term that its series
/// leaves out is then below $3\cdot10^{-8}$.
pub const FARTHEST: f32 = 0.05;

/// Packs 32 lanes that are all ones or all zeros.
#[inline(always)]
pub(crate) fn pack(lanes: [u32; TILE]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    return x86::sse2::pack(lanes);
    #[cfg(not(target_arch = "x86_64"))]
    return pack_portable(lanes);
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn pack_portable(lanes: [u32; TILE]) -> u32 {
    (0..TILE).fold(0, |bits, l| bits | lanes[l] & 1 << l)
}

/// A bit for each lane in which `x` is below `y`.
#[inline(always)]
fn below<const SET: u8>(x: [f32; TILE], y: [f32; TILE]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if SET == WIDEST {
        return x86::avx512::below(x, y);
    }
    let mut on = [0; TILE];
    for l in 0..TILE {
        on[l] = if x[l] < y[l] { u32::MAX } else { 0 };
    }
    pack(on)
}

#[cfg(target_arch = "x86_64")]
mod x86;

fast! {
    /// Bits with the given natural parameters: row `r` uses the variates of `site` moved by `r`
    /// rows, units `32 tile..32 tile + 32`.
    pub fn sample[](
        theta: &[Wide],
        stream: Stream,
        site: Site,
        tile: u32,
        bits: &mut [u32],
    ) = sample_in::<PORTABLE>, wide sample_in::<WIDE>, widest sample_in::<WIDEST>;
}

#[inline(always)]
fn sample_in<const SET: u8>(
    theta: &[Wide],
    stream: Stream,
    site: Site,
    tile: u32,
    bits: &mut [u32],
) {
    let mut room = Uniforms::NONE;
    let blocks = theta.chunks(Uniforms::ROWS).zip(bits.chunks_mut(Uniforms::ROWS));
    for (first, (theta, bits)) in (0..).step_by(Uniforms::ROWS).zip(blocks) {
        let uniforms = room.draw((stream, site, tile), first, theta.len());
        for (r, (theta, out)) in theta.iter().zip(bits).enumerate() {
            let (u, mut x) = (uniforms.row(r), [0.0; TILE]);
            for l in 0..TILE {
                x[l] = u[l].mul_add(exp_neg(theta.0[l]), u[l]);
            }
            *out = below::<SET>(x, [FULL; TILE]);
        }
    }
}

fast! {
    /// Bits with the given probabilities, from the same variates as [`sample`].
    pub fn sample_means[](
        p: &[Wide],
        stream: Stream,
        site: Site,
        tile: u32,
        bits: &mut [u32],
    ) = sample_means_in::<PORTABLE>, wide sample_means_in::<WIDE>, widest sample_means_in::<WIDEST>;
}

#[inline(always)]
fn sample_means_in<const SET: u8>(
    p: &[Wide],
    stream: Stream,
    site: Site,
    tile: u32,
    bits: &mut [u32],
) {
    let mut room = Uniforms::NONE;
    let blocks = p.chunks(Uniforms::ROWS).zip(bits.chunks_mut(Uniforms::ROWS));
    for (first, (p, bits)) in (0..).step_by(Uniforms::ROWS).zip(blocks) {
        let uniforms = room.draw((stream, site, tile), first, p.len());
        for (r, (p, out)) in p.iter().zip(bits).enumerate() {
            let (u, mut y) = (uniforms.row(r), [0.0; TILE]);
            for l in 0..TILE {
                y[l] = p.0[l] * FULL;
            }
            *out = below::<SET>(u, y);
        }
    }
}

/// One step of annealing: from which $\beta$ to which.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warmth {
    /// $\beta$ after the step.
    pub to: f32,
    /// How far it went: the $\beta$ before is `to - step`, without its rounding.
    pub step: f32,
}

fast! {
    /// For each row $\sum_l g(a) - g(a - \delta)$ with $g(t) = \ln(1 + e^t) + c\,t$, where
    /// $a = \text{base} + \text{to}\,(\theta - \text{base})$ and
    /// $\delta = \text{step}\,(\theta - \text{base})$ is small:
    /// $$\delta\Bigl(p + c - \delta\bigl(\tfrac12 q - \delta\,\tfrac16 q(1-2p)\bigr)\Bigr),
    ///   \qquad p = \sigma(a),\; q = p(1-p);$$
    /// and bits with the probabilities $p$, from the same variates as [`sample`]. The sums are added
    /// to `sums`, each in eight parts, and the largest $|\delta|$ is returned.
    pub fn anneal[](
        theta: &[Wide],
        base: &Wide,
        warmth: Warmth,
        c: f32,
        place: Place,
        sums: &mut [[f32; 8]],
        bits: &mut [u32],
    ) -> f32 = anneal_portable;
}

#[inline(always)]
fn anneal_portable(
    theta: &[Wide],
    base: &Wide,
    warmth: Warmth,
    c: f32,
    place: Place,
    sums: &mut [[f32; 8]],
    bits: &mut [u32],
) -> f32 {
    let (mut most, mut room) = ([0.0_f32; 8], Uniforms::NONE);
    for (first, theta) in (0..).step_by(Uniforms::ROWS).zip(theta.chunks(Uniforms::ROWS)) {
        let uniforms = room.draw(place, first, theta.len());
        for (r, theta) in theta.iter().enumerate() {
            let (u, sum) = (uniforms.row(r), &mut sums[first + r]);
            bits[first + r] = anneal_row(theta, base, warmth, c, &u, sum, &mut most);
        }
    }
    most.iter().fold(0.0, |a, b| a.max(*b))
}

#[inline(always)]
fn anneal_row(
    theta: &Wide,
    base: &Wide,
    Warmth { to, step }: Warmth,
    c: f32,
    u: &[f32; TILE],
    sum: &mut [f32; 8],
    most: &mut [f32; 8],
) -> u32 {
    let mut on = [0; TILE];
    for part in 0..TILE / 8 {
        for l in 0..8 {
            let i = 8 * part + l;
            let gap = theta.0[i] - base.0[i];
            let delta = step * gap;
            let p = 1.0 / (1.0 + exp_neg(to.mul_add(gap, base.0[i])));
            on[i] = if u[i] < p * FULL { u32::MAX } else { 0 };
            let q = p * (1.0 - p);
            let cubic = q * (-2.0_f32).mul_add(p, 1.0) * (1.0 / 6.0);
            let slope = delta.mul_add(delta.mul_add(cubic, -0.5 * q), p + c);
            sum[l] = delta.mul_add(slope, sum[l]);
            most[l] = if delta.abs() > most[l] { delta.abs() } else { most[l] };
        }
    }
    pack(on)
}

fast! {
    /// Adds up the rows.
    pub fn sum_rows[](p: &[Wide]) -> Wide = sum_rows_portable;
}

#[inline(always)]
fn sum_rows_portable(p: &[Wide]) -> Wide {
    let mut sum = Wide::ZERO;
    for row in p {
        for l in 0..TILE {
            sum.0[l] += row.0[l];
        }
    }
    sum
}

/// Which half of a word a tile's fields go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Byte {
    /// The first tile of a panel; overwrites the word.
    Low,
    /// The second tile; adds to it.
    High,
}

fast! {
    /// Rounds probabilities to whole multiples of 1/[`LEVELS`], up or down at random so that the
    /// mean is kept. `dither` holds a random byte for each column; rows step through the bytes
    /// with stride 159 (the golden section of 256), so each sees a uniform one and neighbours see
    /// different ones.
    pub fn to_fields[](p: &[Wide], dither: &[u32; TILE], byte: Byte, q: &mut [Fields])
        = to_fields_portable;
}

#[inline(always)]
fn to_fields_portable(p: &[Wide], dither: &[u32; TILE], byte: Byte, q: &mut [Fields]) {
    // Adding 2^23 rounds to a whole number and leaves it in the low bits.
    const ROUND: f32 = 8_388_608.0;
    const SCALE: f32 = (LEVELS * 256) as f32;
    let mut dither = *dither;
    for (p, q) in p.iter().zip(q) {
        let mut fields = [0_u16; TILE];
        for l in 0..TILE {
            let fixed = p.0[l].mul_add(SCALE, ROUND).to_bits() & 0xffff;
            #[expect(clippy::cast_possible_truncation, reason = "at most the number of levels")]
            let field = ((fixed + dither[l]) >> 8) as u16;
            fields[l] = field;
            dither[l] = (dither[l] + 159) & 255;
        }
        match byte {
            Byte::Low => q.0 = fields,
            Byte::High => {
                for l in 0..TILE {
                    q.0[l] |= fields[l] << 8;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
