//! $\sum_i \ln(1 + e^{t_i})$ in double precision: the logarithm of the sum over binary units.
//!
//! $\ln(1 + e^t) = \max(t, 0) + \ln(1 + e^{-|t|})$. The exponential is a polynomial of degree 13
//! after removing a power of two, good to 2 units in the last place; the factors $1 + e^{-|t|}$ lie
//! between 1 and 2, so hundreds of them are multiplied before one logarithm is taken.

use crate::dispatch::fast;

/// Lanes of independent products.
const LANES: usize = 8;
/// Factors per lane: $2^{512}$ is far from overflow.
const GROUP: usize = 512 * LANES;

/// $e^{-x}$ for $x \ge 0$; 0 beyond 700.
#[inline(always)]
fn exp_neg(x: f64) -> f64 {
    // Adding 1.5 · 2^52 rounds to a whole number and leaves it in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two parts, so that the reduced argument is exact.
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = if x < 700.0 { x } else { 700.0 };
    let shifted = (-x).mul_add(std::f64::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    let r = k.mul_add(-LN2_LOW, k.mul_add(-LN2_HIGH, -x));
    // 1/n! from n = 13 down.
    let mut p = 1.0 / 6_227_020_800.0;
    for c in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        p = r.mul_add(p, c);
    }
    f64::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 52))
}

fast! {
    /// $\sum_i \ln(1 + e^{t_i})$.
    pub fn sum_softplus[](theta: &[f64]) -> f64 = sum_softplus_portable, wide sum_softplus_portable, widest avx2;
}

#[inline(always)]
fn sum_softplus_portable(theta: &[f64]) -> f64 {
    let mut total = 0.0;
    for group in theta.chunks(GROUP) {
        let (mut product, mut positive) = ([1.0_f64; LANES], [0.0_f64; LANES]);
        let (parts, rest) = group.as_chunks::<LANES>();
        for part in parts {
            for l in 0..LANES {
                positive[l] += if part[l] < 0.0 { 0.0 } else { part[l] };
                product[l] *= 1.0 + exp_neg(part[l].abs());
            }
        }
        for (l, &t) in rest.iter().enumerate() {
            positive[l] += if t < 0.0 { 0.0 } else { t };
            product[l] *= 1.0 + exp_neg(t.abs());
        }
        let logs: f64 = product.iter().map(|p| p.ln()).sum();
        total += positive.iter().sum::<f64>() + logs;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Site, Stream};

    #[test]
    fn it_is_the_sum_of_the_softplus_of_each() {
        for n in (0..=130).chain([784, 5000]) {
            for spread in [0.01, 1.0, 30.0, 2000.0] {
                let mut theta = vec![0.0; n];
                Stream::new(8).normals_into(Site::default(), &mut theta);
                theta.iter_mut().for_each(|t| *t *= spread);
                let exact: f64 = theta.iter().map(|t| t.max(0.0) + (-t.abs()).exp().ln_1p()).sum();
                let (fast, plain) = (sum_softplus(&theta), sum_softplus_portable(&theta));
                assert_eq!(fast.to_bits(), plain.to_bits());
                let error = (fast - exact).abs();
                assert!(error <= 1e-14 * (1.0 + exact) * (1.0 + n as f64).sqrt(), "{n}: {error:e}");
            }
        }
    }

    #[test]
    fn the_exponential_is_good_to_two_units_in_the_last_place() {
        for k in 0..70_000 {
            let x = 0.01 * f64::from(k) + 0.003;
            let (found, exact) = (exp_neg(x), (-x).exp());
            assert!((found / exact - 1.0).abs() <= 2.0 * f64::EPSILON, "{x}: {found} {exact}");
        }
        assert_eq!(exp_neg(0.0), 1.0);
    }

    #[test]
    fn what_is_not_a_number_stays_none() {
        assert!(sum_softplus(&[0.0, f64::NAN]).is_nan());
        assert_eq!(sum_softplus(&[f64::INFINITY]), f64::INFINITY);
        assert!(sum_softplus(&[f64::NEG_INFINITY]).abs() < 1e-300);
    }
}
