//! Dense f64 rows: the reference arithmetic under energies, laws and likelihoods.

/// `y[i] += a * x[i]`, rounded once per element.
///
/// Gives the same bits on every machine: the fallback uses [`f64::mul_add`], which rounds exactly
/// as the vector instruction does.
///
/// # Panics
///
/// If the lengths differ.
#[inline]
pub fn add_scaled(y: &mut [f64], a: f64, x: &[f64]) {
    assert_eq!(y.len(), x.len(), "add_scaled: slices must have one length");
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        #[expect(unsafe_code, reason = "the vector instructions need it")]
        // SAFETY: the two features were just detected.
        return unsafe { x86::add_scaled(y, a, x) };
    }
    add_scaled_portable(y, a, x);
}

#[inline]
fn add_scaled_portable(y: &mut [f64], a: f64, x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = a.mul_add(*x, *y);
    }
}

/// $\sum_i x_i y_i$, summed in eight lanes that are added in a fixed order.
///
/// The same bits on every machine, as for [`add_scaled`].
///
/// # Panics
///
/// If the lengths differ.
#[inline]
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len(), "dot: slices must have one length");
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        #[expect(unsafe_code, reason = "the vector instructions need it")]
        // SAFETY: the two features were just detected.
        return unsafe { x86::dot(x, y) };
    }
    dot_portable(x, y)
}

#[inline]
fn dot_portable(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0.0_f64; 8];
    let (xs, ys) = (x.chunks_exact(8), y.chunks_exact(8));
    let tail = xs.remainder().iter().zip(ys.remainder());
    let tail = tail.fold(0.0, |sum: f64, (x, y)| x.mul_add(*y, sum));
    for (x, y) in xs.zip(ys) {
        for l in 0..8 {
            lanes[l] = x[l].mul_add(y[l], lanes[l]);
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (b + f)) + ((c + g) + (d + h)) + tail
}

/// The portable code compiled once more with wide registers: the compiler vectorises the loops,
/// and a fused multiply-add has one rounding wherever it runs.
#[cfg(target_arch = "x86_64")]
mod x86 {
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn add_scaled(y: &mut [f64], a: f64, x: &[f64]) {
        super::add_scaled_portable(y, a, x);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn dot(x: &[f64], y: &[f64]) -> f64 {
        super::dot_portable(x, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Site, Stream};

    #[test]
    fn fast_and_portable_agree_to_the_bit() {
        for n in 0..=130 {
            let (mut x, mut y) = (vec![0.0; n], vec![0.0; n]);
            Stream::new(1).normals_into(Site::default(), &mut x);
            Stream::new(2).normals_into(Site::default(), &mut y);
            assert_eq!(dot(&x, &y).to_bits(), dot_portable(&x, &y).to_bits());
            let mut z = y.clone();
            add_scaled(&mut y, 0.3, &x);
            add_scaled_portable(&mut z, 0.3, &x);
            assert!(y.iter().zip(&z).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }

    #[test]
    fn a_dot_product_is_a_sum_of_products() {
        for n in 0..40_u32 {
            let x: Vec<f64> = (0..n).map(f64::from).collect();
            let expected = f64::from((0..n).map(|i| i * i).sum::<u32>());
            assert!((dot(&x, &x) - expected).abs() < 1e-12);
        }
    }
}
