//! Triangular factors of symmetric matrices, row by row in double precision.

use crate::error::Error;
use harmonium_kernels::dense::{add_scaled, dot};

/// Writes $L$ with $A = LL^\top$ over the lower triangle of `a` and zeros above it; returns
/// $\ln\det A$.
pub(crate) fn cholesky(a: &mut [f64], n: usize) -> Result<f64, Error> {
    let mut log_det = 0.0;
    for j in 0..n {
        let (above, rest) = a.split_at_mut(j * n);
        let row_j = &mut rest[..n];
        for k in 0..j {
            let row_k = &above[k * n..k * n + k];
            row_j[k] = (row_j[k] - dot(&row_j[..k], row_k)) / above[k * n + k];
        }
        let pivot = row_j[j] - dot(&row_j[..j], &row_j[..j]);
        // Written so that no number at all is refused too.
        if !(pivot > 0.0 && pivot.is_finite()) {
            return Err(Error::Diverges { pivot, unit: j, n_units: n });
        }
        row_j[j] = pivot.sqrt();
        row_j[j + 1..].fill(0.0);
        log_det += pivot.ln();
    }
    Ok(log_det)
}

/// Writes $L^{-1}$ over a lower triangle $L$.
pub(super) fn inverse_of_lower(l: &mut [f64], n: usize) {
    for i in 0..n {
        let (above, rest) = l.split_at_mut(i * n);
        let row = &mut rest[..=i];
        let diagonal = row[i].recip();
        // Row i of L^-1 is that of the unit matrix minus L_ik times row k of L^-1, over L_ii.
        let factors: Vec<f64> = row[..i].iter().map(|l| -l * diagonal).collect();
        row.fill(0.0);
        for (k, factor) in factors.into_iter().enumerate() {
            add_scaled(&mut row[..=k], factor, &above[k * n..=k * n + k]);
        }
        row[i] = diagonal;
    }
}
