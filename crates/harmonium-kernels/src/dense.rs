//! Dense f64 rows: the reference arithmetic under energies, laws and likelihoods.
//!
//! The same bits on every machine: sums keep their order, and a fused multiply-add has one rounding wherever it runs.

use crate::dispatch::fast;

fast! {
    /// `y[i] += a * x[i]`, rounded once per element.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    #[inline]
    pub fn add_scaled[](y: &mut [f64], a: f64, x: &[f64]) = add_scaled_portable, wide add_scaled_portable, widest avx2;
}

#[inline(always)]
fn add_scaled_portable(y: &mut [f64], a: f64, x: &[f64]) {
    assert_eq!(y.len(), x.len(), "add_scaled: slices must have one length");
    for (y, x) in y.iter_mut().zip(x) {
        *y = a.mul_add(*x, *y);
    }
}

fast! {
    /// Adds the counts, `x` and `z`, each times its factor: counts that are centered, in one pass.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub fn add_counted[](
        y: &mut [f64],
        counts: (f64, &[u32]),
        x: (f64, &[f64]),
        z: (f64, &[f64]),
    ) = add_counted_portable, wide add_counted_portable, widest avx2;
}

#[inline(always)]
fn add_counted_portable(
    y: &mut [f64],
    (unit, counts): (f64, &[u32]),
    (a, x): (f64, &[f64]),
    (b, z): (f64, &[f64]),
) {
    let n = y.len();
    assert!([counts.len(), x.len(), z.len()] == [n; 3], "add_counted: slices of one length");
    for (((y, n), x), z) in y.iter_mut().zip(counts).zip(x).zip(z) {
        *y = unit.mul_add(f64::from(*n), a.mul_add(*x, b.mul_add(*z, *y)));
    }
}

fast! {
    /// $\sum_i x_i y_i$, summed in eight lanes that are added in a fixed order.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    #[inline]
    pub fn dot[](x: &[f64], y: &[f64]) -> f64 = dot_portable, wide dot_portable, widest avx2;
}

#[inline(always)]
fn dot_portable(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len(), "dot: slices must have one length");
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
            let counts: Vec<u32> = (0..).map(|i| i * i % 101).take(n).collect();
            let (before, x, w) = (z.clone(), (0.7, &*x), (-1.3, &*z));
            add_counted(&mut y, (0.01, &counts), x, w);
            let mut twin = before.clone();
            add_counted_portable(&mut twin, (0.01, &counts), x, w);
            assert!(y.iter().zip(&twin).all(|(a, b)| a.to_bits() == b.to_bits()));
            for (i, y) in y.iter().enumerate() {
                let sum = 0.01 * f64::from(counts[i]) + 0.7 * x.1[i] - 0.3 * before[i];
                assert!((y - sum).abs() < 1e-14 * (2.0 + x.1[i].abs() + before[i].abs()), "{i}");
            }
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
