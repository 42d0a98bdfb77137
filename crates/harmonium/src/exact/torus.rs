//! $\ln Z$ of the Ising model on a torus without fields, in closed form.
//!
//! With $m$ rows of $n$ spins, $K_1$ between rows and $K_2$ inside them (Kaufman, Phys. Rev. 76, 1949),
//! $$Z = \tfrac12 (2\sinh 2K_1)^{mn/2} \Bigl[\prod_{r=1}^{n} 2\cosh\tfrac m2\gamma_{2r-1}
//!   \quad + \prod_{r=1}^{n} 2\sinh\tfrac m2\gamma_{2r-1} + \prod_{r=1}^{n} 2\cosh\tfrac m2\gamma_{2r}
//!   \quad + \prod_{r=1}^{n} 2\sinh\tfrac m2\gamma_{2r}\Bigr],$$
//! $$\sinh^2\tfrac{\gamma_k}2 = \sinh^2(K_2 - K_1^*) + \frac{\sinh 2K_2}{\sinh 2K_1}\sin^2\frac{\pi k}{2n},
//!   \qquad \tanh K_1^* = e^{-2K_1},$$
//! where $\gamma_{2n}$ has the sign of $K_2 - K_1^*$. Everything is computed as a logarithm, so neither
//! the critical point nor strong couplings cost digits.
//!
//! A machine is recognised by its couplings: one layer of spins, numbered row by row, no fields, one
//! weight along the rows and one along the columns. Sides below three have double bonds or none; they
//! are narrow enough to be eliminated.

use crate::machine::Machine;
use crate::units::{Units, log_sum_exp};
use std::f64::consts::{LN_2, PI};

/// A torus of spins without fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Torus {
    rows: usize,
    columns: usize,
    /// Between neighbours of different rows, and of one row; both positive.
    between_rows: f64,
    in_row: f64,
    /// $E_0$.
    constant: f64,
}

impl Torus {
    /// The torus that a machine is, if it is one whose sum is known. The machine has zero offsets.
    pub(super) fn of(machine: &Machine) -> Option<Self> {
        let ([layer], [coupling]) = (machine.layers(), machine.couplings()) else { return None };
        let n = layer.len();
        if layer.units != Units::Spin || n < 9 || layer.bias.iter().any(|b| *b != 0.0) {
            return None;
        }
        let mut edges = Vec::new();
        let mut enough = true;
        coupling.weights.for_each(|i, j, w| {
            // A torus has two bonds for each spin; a full matrix has far more and is left at once.
            if w != 0.0 && enough {
                edges.push((i.min(j), i.max(j), w));
                enough = edges.len() <= 2 * n;
            }
        });
        if edges.len() != 2 * n {
            return None;
        }
        let mut widths = (3..=n / 3).filter(|w| n.is_multiple_of(*w));
        let (rows, columns, [between_rows, in_row]) =
            widths.find_map(|w| Some((n / w, w, weights(&edges, n, w)?)))?;
        // Turning every other row or column over changes the sign of a weight, if they are even.
        let positive = |k: f64, side: usize| k > 0.0 || side.is_multiple_of(2);
        (positive(between_rows, rows) && positive(in_row, columns)).then(|| Self {
            rows,
            columns,
            between_rows: between_rows.abs(),
            in_row: in_row.abs(),
            constant: machine.constant(),
        })
    }

    /// $\ln Z$.
    pub(super) fn log_partition(&self) -> f64 {
        let (m, n) = (self.rows as f64, self.columns as f64);
        let (k1, k2) = (self.between_rows, self.in_row);
        // K1* = -½ ln tanh K1.
        let dual = -0.5 * (log_one_minus_exp(-2.0 * k1) - (-2.0 * k1).exp().ln_1p());
        let (log_far, log_ratio) =
            (2.0 * log_sinh((k2 - dual).abs()), log_sinh(2.0 * k2) - log_sinh(2.0 * k1));
        let gamma = |k: usize| {
            let log_sine = 2.0 * (0.5 * PI * k as f64 / n).sin().ln();
            2.0 * asinh_of_log(0.5 * log_sum_exp(&[log_far, log_ratio + log_sine]))
        };
        let parts = |first: usize| {
            // The cosines of k and 2n - k are the same.
            let mut logs = (0.0, 0.0);
            for k in (first..2 * self.columns).step_by(2) {
                let gamma = if k == 0 { 2.0 * (k2 - dual).abs() } else { gamma(k) };
                logs.0 += 0.5 * m * gamma + (-m * gamma).exp().ln_1p();
                logs.1 += 0.5 * m * gamma + log_one_minus_exp(-m * gamma);
            }
            logs
        };
        let (odd, even) = (parts(1), parts(0));
        let most = odd.0;
        let sign = if k2 < dual { -1.0 } else { 1.0 };
        // The first product is the largest, and one negative term is never larger than the third.
        let sum = 1.0 + (odd.1 - most).exp() + (even.0 - most).exp() + sign * (even.1 - most).exp();
        let front = 0.5 * m * n * (LN_2 + log_sinh(2.0 * k1));
        front - LN_2 + most + sum.ln() - self.constant
    }
}

/// The weights between and inside rows of `columns` spins, if these are all.
fn weights(edges: &[(usize, usize, f64)], n: usize, columns: usize) -> Option<[f64; 2]> {
    let mut found: [Option<f64>; 2] = [None, None];
    let mut counts = [0, 0];
    for &(i, j, w) in edges {
        let same_row = i / columns == j / columns;
        let direction = if same_row && (j == i + 1 || j == i + columns - 1) {
            1
        } else if j == i + columns || j == i + n - columns {
            0
        } else {
            return None;
        };
        // Not only are all pairs of a torus allowed: each has its place once, so counts decide.
        if same_row && j == i + columns - 1 && i % columns != 0 {
            return None;
        }
        counts[direction] += 1;
        if *found[direction].get_or_insert(w) != w {
            return None;
        }
    }
    (counts == [n, n]).then_some([found[0]?, found[1]?])
}

/// $\ln(1 - e^x)$ for negative $x$.
fn log_one_minus_exp(x: f64) -> f64 {
    if x > -LN_2 { (-x.exp_m1()).ln() } else { (-x.exp()).ln_1p() }
}

/// $\ln\sinh x$ for positive $x$.
fn log_sinh(x: f64) -> f64 {
    x + log_one_minus_exp(-2.0 * x) - LN_2
}

/// $\operatorname{arsinh} e^x$.
fn asinh_of_log(x: f64) -> f64 {
    if x > 20.0 { x + LN_2 } else { x.exp().asinh() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ising_torus;

    #[test]
    fn a_torus_is_known_by_its_couplings() {
        let torus = ising_torus(4, 0.4).expect("a torus").into_machine();
        let found = Torus::of(&torus).expect("known");
        assert_eq!((found.rows, found.columns), (4, 4));
        assert_eq!((found.between_rows, found.in_row), (0.4, 0.4));
        let odd = ising_torus(5, -0.4).expect("a torus").into_machine();
        assert_eq!(Torus::of(&odd), None, "frustrated");
        assert!(Torus::of(&ising_torus(4, -0.4).expect("a torus").into_machine()).is_some());
        assert_eq!(Torus::of(&ising_torus(2, 0.4).expect("a torus").into_machine()), None);
        assert_eq!(Torus::of(&ising_torus(6, 0.0).expect("a torus").into_machine()), None);
    }

    #[test]
    fn strong_and_weak_couplings_keep_their_digits() {
        let log_z = |side: usize, k: f64| {
            let torus = ising_torus(side, k).expect("a torus").into_machine();
            Torus::of(&torus).expect("known").log_partition()
        };
        // Frozen: two states of 2 n bonds; then single spins turned over, each of which costs 8 K.
        for k in [5.0, 50.0, 700.0, 1e6] {
            let n = 1024.0 * 1024.0;
            let expected = 2.0 * n * k + LN_2 + n * (-8.0 * k).exp();
            let found = log_z(1024, k);
            assert!((found - expected).abs() < 1e-15 * expected + 1e-6, "{k}: {found} {expected}");
        }
        // Nearly free: n ln 2 + 2 n ln cosh K, up to loops of four bonds.
        let n = 10_000.0_f64;
        for k in [1e-3_f64, 1e-9] {
            let expected = n * LN_2 + 2.0 * n * k.cosh().ln() + n * k.tanh().powi(4);
            let found = log_z(100, k);
            assert!((found - expected).abs() < 1e-9 * expected, "{k}: {found} {expected}");
        }
    }
}
