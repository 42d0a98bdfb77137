//! The integral over Gaussian units, alone or coupled with each other.
//!
//! $$\ln\int e^{\theta^\top x - \frac12 x^\top A x}\,dx
//!   = \tfrac12\theta^\top A^{-1}\theta + \tfrac12\bigl(n\ln 2\pi - \ln\det A\bigr)$$
//!
//! with $A = \mathrm{diag}(\gamma) - W$. The integral exists if and only if $A$ is positive
//! definite, which the Cholesky factorisation decides.

use crate::error::Error;
use harmonium_kernels::dense::dot;

/// Gaussian units that are integrated together.
#[derive(Default)]
pub(super) struct Block {
    /// $A^{-1}$: its diagonal if no two units are coupled, else row-major.
    inverse: Vec<f64>,
    n: usize,
    constant: f64,
}

impl Block {
    /// Units with these precisions, coupled by `pairs` of positions and weights.
    pub(super) fn new(precision: &[f64], pairs: &[(usize, usize, f64)]) -> Result<Self, Error> {
        let n = precision.len();
        let half_log = |log_det: f64| 0.5 * (n as f64 * std::f64::consts::TAU.ln() - log_det);
        if pairs.iter().all(|p| p.2 == 0.0) {
            let constant = half_log(precision.iter().map(|g| g.ln()).sum());
            return Ok(Self { inverse: precision.iter().map(|g| 1.0 / g).collect(), n, constant });
        }
        let mut a = vec![0.0; n * n];
        for (i, g) in precision.iter().enumerate() {
            a[i * n + i] = *g;
        }
        for &(i, j, w) in pairs {
            a[i * n + j] -= w;
            a[j * n + i] -= w;
        }
        let log_det = cholesky(&mut a, n)?;
        Ok(Self { inverse: inverse_of(&a, n), n, constant: half_log(log_det) })
    }

    fn is_diagonal(&self) -> bool {
        self.inverse.len() == self.n
    }

    /// $A^{-1}\theta$.
    pub(super) fn mean(&self, theta: &[f64], out: &mut Vec<f64>) {
        out.clear();
        if self.is_diagonal() {
            out.extend(theta.iter().zip(&self.inverse).map(|(t, v)| t * v));
        } else {
            out.extend(self.inverse.chunks_exact(self.n).map(|row| dot(row, theta)));
        }
    }

    /// The integral's logarithm; `scratch` holds the mean afterwards.
    pub(super) fn log_integral(&self, theta: &[f64], scratch: &mut Vec<f64>) -> f64 {
        self.mean(theta, scratch);
        self.constant + 0.5 * dot(theta, scratch)
    }

    /// A sample from the density, made of as many standard normal variates as there are units.
    pub(super) fn sample(&self, theta: &[f64], normals: &[f64]) -> Vec<f64> {
        let mut x = Vec::new();
        self.mean(theta, &mut x);
        if self.is_diagonal() {
            x.iter_mut().zip(&self.inverse).zip(normals).for_each(|((x, v), z)| *x += v.sqrt() * z);
        } else {
            // The inverse of a positive definite matrix is one too.
            let mut factor = self.inverse.clone();
            if cholesky(&mut factor, self.n).is_ok() {
                for (i, x) in x.iter_mut().enumerate() {
                    *x += dot(&factor[i * self.n..=i * self.n + i], &normals[..=i]);
                }
            }
        }
        x
    }

    /// The covariance of two units.
    pub(super) fn covariance(&self, i: usize, j: usize) -> f64 {
        match (self.is_diagonal(), i == j) {
            (true, true) => self.inverse[i],
            (true, false) => 0.0,
            (false, _) => self.inverse[i * self.n + j],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.n
    }
}

/// Writes $L$ with $A = LL^\top$ over the lower triangle; returns $\ln\det A$.
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
        if pivot <= 0.0 {
            return Err(Error::Diverges { pivot, unit: j, n_units: n });
        }
        row_j[j] = pivot.sqrt();
        log_det += pivot.ln();
    }
    Ok(log_det)
}

/// $(LL^\top)^{-1}$, column by column.
fn inverse_of(l: &[f64], n: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; n * n];
    let mut y = vec![0.0; n];
    for column in 0..n {
        for i in 0..n {
            let e = f64::from(u8::from(i == column));
            y[i] = (e - dot(&l[i * n..i * n + i], &y[..i])) / l[i * n + i];
        }
        for i in (0..n).rev() {
            let below: f64 = (i + 1..n).map(|k| l[k * n + i] * y[k]).sum();
            y[i] = (y[i] - below) / l[i * n + i];
            inverse[i * n + column] = y[i];
        }
    }
    inverse
}
