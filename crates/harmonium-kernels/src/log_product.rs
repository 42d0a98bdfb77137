//! $\sum_i \ln(1 + t_i)$ with one logarithm for all of them.
//!
//! The factors are multiplied in eight lanes; every `group` factors the exponents are moved into
//! integers, so that no product overflows. Enumeration needs this sum for every one of $2^{20}$
//! states, and it costs a multiplication per unit where `ln_1p` would cost forty.

const MANTISSA: u64 = (1 << 52) - 1;
const ONE: u64 = 1023 << 52;

/// How many factors $1 + t$ may be multiplied when every $\ln t$ is at most `bound`; at least 1,
/// and only valid for bounds up to 600.
pub fn group_for(bound: f64) -> usize {
    // ln(f64::MAX) is 709; a lane starts below 2 after each renormalisation.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small positive quotient"
    )]
    let group = (700.0 / (bound.max(0.0) + 1.0)) as usize;
    group.clamp(1, 512)
}

/// Multiplies each `t[i]` by `factor[i]` and returns $\sum_i \ln(1 + t_i)$ of the results.
///
/// # Panics
///
/// If the lengths differ.
#[inline]
pub fn scale_and_log_product(t: &mut [f64], factor: &[f64], group: usize) -> f64 {
    assert_eq!(t.len(), factor.len(), "scale_and_log_product: slices must have one length");
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the vector instructions need it")]
        // SAFETY: the feature was just detected.
        return unsafe { x86::scale_and_log_product(t, factor, group) };
    }
    portable(t, factor, group)
}

#[inline]
fn portable(t: &mut [f64], factor: &[f64], group: usize) -> f64 {
    let mut lanes = [1.0_f64; 8];
    let mut exponents = [0_i64; 8];
    for (t, factor) in t.chunks_mut(8 * group).zip(factor.chunks(8 * group)) {
        let whole = t.len() / 8 * 8;
        let (body, tail) = t.split_at_mut(whole);
        for (t, f) in body.chunks_exact_mut(8).zip(factor.chunks_exact(8)) {
            for l in 0..8 {
                t[l] *= f[l];
                lanes[l] *= 1.0 + t[l];
            }
        }
        for ((t, f), lane) in tail.iter_mut().zip(&factor[whole..]).zip(&mut lanes) {
            *t *= f;
            *lane *= 1.0 + *t;
        }
        for (lane, exponent) in lanes.iter_mut().zip(&mut exponents) {
            let bits = lane.to_bits();
            *exponent += (bits >> 52).cast_signed() - 1023;
            *lane = f64::from_bits(bits & MANTISSA | ONE);
        }
    }
    let product: f64 = lanes.iter().product();
    product.ln() + exponents.iter().sum::<i64>() as f64 * std::f64::consts::LN_2
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[target_feature(enable = "avx2")]
    pub(super) fn scale_and_log_product(t: &mut [f64], factor: &[f64], group: usize) -> f64 {
        super::portable(t, factor, group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Site, Stream};

    #[test]
    fn it_is_the_sum_of_the_logarithms() {
        for n in (0..=130).chain([784, 1000]) {
            for spread in [0.1, 3.0, 90.0] {
                let mut theta = vec![0.0; n];
                Stream::new(3).normals_into(Site::default(), &mut theta);
                theta.iter_mut().for_each(|x| *x *= spread);
                let bound = theta.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
                let mut t: Vec<f64> = theta.iter().map(|x| (x - 0.5).exp()).collect();
                let mut twin = t.clone();
                let factor = vec![0.5_f64.exp(); n];
                let fast = scale_and_log_product(&mut t, &factor, group_for(bound));
                let slow = portable(&mut twin, &factor, group_for(bound));
                let exact: f64 = theta.iter().map(|x| x.max(0.0) + (-x.abs()).exp().ln_1p()).sum();
                assert_eq!(fast.to_bits(), slow.to_bits());
                assert_eq!(t, twin);
                assert!((fast - exact).abs() <= 1e-12 * (1.0 + exact), "{n}: {fast} != {exact}");
            }
        }
    }
}
