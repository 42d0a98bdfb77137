//! Real units that see each other: one density, drawn and integrated together.
//!
//! Given everything else, Gaussian units that are coupled with each other have the density
//! $$p(x) \propto e^{\theta^\top x - \frac12 x^\top\Lambda x}, \qquad
//!   \Lambda = \mathrm{diag}(\gamma) - J,$$
//! so $x \sim N(\Lambda^{-1}\theta, \Lambda^{-1})$, and
//! $$\ln\int e^{\theta^\top x - \frac12 x^\top\Lambda x}\,dx
//!   = \tfrac12\theta^\top\Lambda^{-1}\theta + \tfrac12\bigl(n\ln 2\pi - \ln\det\Lambda\bigr).$$
//! It exists if and only if $\Lambda$ is positive definite, which its Cholesky factor
//! $\Lambda = LL^\top$ decides. With $u = L^{-1}\theta$ everything else is a product with a triangle:
//! the integral is $\tfrac12|u|^2$ and a constant, the mean $L^{-\top}u$, a sample
//! $L^{-\top}(u + z)$ with standard normal $z$. A [`Block`] keeps $L^{-1}$, so that many rows are
//! two products. Of units that are held in part the others have the block $\Lambda_{FF}$ and the input
//! $\theta_F - \Lambda_{FH}x_H$.

mod cholesky;
mod shrinkage;

pub(crate) use cholesky::cholesky;
pub(crate) use shrinkage::{Sample, shrinkage};

use crate::error::Error;
use cholesky::inverse_of_lower;
use harmonium_kernels::dense::{add_scaled, dot};

/// The density of real units given everything else, ready to be drawn from and integrated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    n: usize,
    /// $L^{-1}$: its diagonal if no two units are coupled, else row by row with zeros above it.
    inverse_factor: Vec<f64>,
    log_det: f64,
}

impl Block {
    /// Units whose precision matrix $\Lambda$ stands in `precision` row by row.
    ///
    /// # Errors
    ///
    /// [`Error::Diverges`] where $\Lambda$ is not positive definite, so that there is no density.
    ///
    /// # Panics
    ///
    /// If `precision` does not have $n^2$ entries.
    pub fn new(mut precision: Vec<f64>, n: usize) -> Result<Self, Error> {
        assert_eq!(precision.len(), n * n, "a precision matrix is square");
        let log_det = cholesky(&mut precision, n)?;
        inverse_of_lower(&mut precision, n);
        Ok(Self { n, inverse_factor: precision, log_det })
    }

    /// Units that do not see each other, with these precisions, all of them positive.
    pub fn diagonal(precision: &[f64]) -> Self {
        let inverse_factor = precision.iter().map(|g| g.sqrt().recip()).collect();
        let log_det = precision.iter().map(|g| g.ln()).sum();
        Self { n: precision.len(), inverse_factor, log_det }
    }

    /// Units with these precisions, coupled by `pairs` of places and weights.
    ///
    /// # Errors
    ///
    /// As [`Block::new`].
    pub(crate) fn coupled(precision: &[f64], pairs: &[(usize, usize, f64)]) -> Result<Self, Error> {
        if pairs.iter().all(|p| p.2 == 0.0) {
            return Ok(Self::diagonal(precision));
        }
        let n = precision.len();
        let mut matrix = vec![0.0; n * n];
        for (i, g) in precision.iter().enumerate() {
            matrix[i * n + i] = *g;
        }
        for &(i, j, w) in pairs {
            matrix[i * n + j] -= w;
            matrix[j * n + i] -= w;
        }
        Self::new(matrix, n)
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// $\ln\det\Lambda$.
    pub fn log_det(&self) -> f64 {
        self.log_det
    }

    /// $L^{-1}$ row by row, if it is kept that way.
    pub(crate) fn dense(&self) -> Option<&[f64]> {
        (self.inverse_factor.len() == self.n * self.n).then_some(&self.inverse_factor)
    }

    /// The variances of units that are not coupled; nothing where they are.
    pub(crate) fn variances(&self) -> Option<impl Iterator<Item = f64> + '_> {
        self.is_diagonal().then(|| self.inverse_factor.iter().map(|l| l * l))
    }

    fn is_diagonal(&self) -> bool {
        self.inverse_factor.len() == self.n
    }

    /// Replaces $\theta$ by $u = L^{-1}\theta$.
    ///
    /// # Panics
    ///
    /// If there is not one number for each unit.
    pub fn whiten(&self, theta: &mut [f64]) {
        assert_eq!(theta.len(), self.n, "one number for each unit");
        if self.is_diagonal() {
            theta.iter_mut().zip(&self.inverse_factor).for_each(|(t, l)| *t *= l);
            return;
        }
        // From the last on: each needs those before it as they were.
        for i in (0..self.n).rev() {
            theta[i] = dot(&self.row(i)[..=i], &theta[..=i]);
        }
    }

    /// Replaces $u$ by $L^{-\top}u$: what is independent with unit variance becomes values of the units.
    ///
    /// # Panics
    ///
    /// If there is not one number for each unit.
    pub fn colour(&self, u: &mut [f64]) {
        assert_eq!(u.len(), self.n, "one number for each unit");
        if self.is_diagonal() {
            u.iter_mut().zip(&self.inverse_factor).for_each(|(u, l)| *u *= l);
            return;
        }
        for i in 0..self.n {
            let ui = std::mem::take(&mut u[i]);
            add_scaled(&mut u[..=i], ui, &self.row(i)[..=i]);
        }
    }

    /// The logarithm of the integral, from $u = L^{-1}\theta$.
    pub fn log_integral(&self, u: &[f64]) -> f64 {
        self.constant() + 0.5 * dot(u, u)
    }

    /// $\tfrac12(n\ln 2\pi - \ln\det\Lambda)$: the logarithm of the integral without input.
    pub fn constant(&self) -> f64 {
        0.5 * (self.n as f64 * std::f64::consts::TAU.ln() - self.log_det)
    }

    /// The covariance $\Lambda^{-1}$, row by row.
    pub fn covariance(&self) -> Vec<f64> {
        let n = self.n;
        let mut covariance = vec![0.0; n * n];
        if self.is_diagonal() {
            for (i, l) in self.inverse_factor.iter().enumerate() {
                covariance[i * n + i] = l * l;
            }
            return covariance;
        }
        // The sum of the outer products of the rows of L^-1; each ends at the diagonal.
        for k in 0..n {
            let row = &self.row(k)[..=k];
            for (i, x) in row.iter().enumerate() {
                add_scaled(&mut covariance[i * n..=i * n + i], *x, &row[..=i]);
            }
        }
        for i in 0..n {
            for j in 0..i {
                covariance[j * n + i] = covariance[i * n + j];
            }
        }
        covariance
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.inverse_factor[i * self.n..(i + 1) * self.n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harmonium_kernels::random::{Site, Stream};

    /// A positive definite matrix of `n` rows.
    fn precision(n: usize) -> Vec<f64> {
        let mut a = vec![0.0; n * n];
        Stream::new(3).normals_into(Site::default(), &mut a);
        let row = |i: usize| &a[i * n..(i + 1) * n];
        let entry = |k: usize| dot(row(k / n), row(k % n)) + if k / n == k % n { 0.5 } else { 0.0 };
        (0..n * n).map(entry).collect()
    }

    #[test]
    fn covariance_is_the_inverse_of_precision() {
        for n in [1, 2, 5, 17] {
            let a = precision(n);
            let covariance = Block::new(a.clone(), n).unwrap().covariance();
            for i in 0..n {
                for j in 0..n {
                    let column: Vec<f64> = (0..n).map(|k| covariance[k * n + j]).collect();
                    let one = dot(&a[i * n..(i + 1) * n], &column);
                    assert!(
                        (one - f64::from(u8::from(i == j))).abs() < 1e-9,
                        "{n}: {i}, {j}: {one}"
                    );
                }
            }
        }
    }

    #[test]
    fn whitening_and_colouring_give_mean_and_integral() {
        let n = 6;
        let a = precision(n);
        let block = Block::new(a, n).unwrap();
        let theta: Vec<f64> = (0..n).map(|i| (i as f64).cos()).collect();
        let covariance = block.covariance();
        let mean: Vec<f64> = (0..n).map(|i| dot(&covariance[i * n..(i + 1) * n], &theta)).collect();
        let mut u = theta.clone();
        block.whiten(&mut u);
        let quadratic = 0.5 * dot(&theta, &mean);
        assert!((block.log_integral(&u) - block.constant() - quadratic).abs() < 1e-10);
        block.colour(&mut u);
        assert!(u.iter().zip(&mean).all(|(a, b)| (a - b).abs() < 1e-10));
    }

    #[test]
    fn units_that_are_not_coupled_need_no_matrix() {
        let precision = [0.5, 2.0, 9.0];
        let block = Block::coupled(&precision, &[(0, 1, 0.0)]).unwrap();
        assert!(block.dense().is_none());
        let full = Block::new(vec![0.5, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 9.0], 3).unwrap();
        assert!((block.constant() - full.constant()).abs() < 1e-12);
        let (mut a, mut b) = ([1.0, -2.0, 3.0], [1.0, -2.0, 3.0]);
        block.whiten(&mut a);
        full.whiten(&mut b);
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12));
        let covariance = block.covariance();
        for (k, expected) in [2.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0 / 9.0].iter().enumerate()
        {
            assert!((covariance[k] - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn what_has_no_density_is_refused_with_its_pivot() {
        let error = Block::coupled(&[1.0, 1.0], &[(0, 1, 1.5)]).unwrap_err();
        assert!(matches!(error, Error::Diverges { unit: 1, n_units: 2, .. }), "{error}");
    }
}
