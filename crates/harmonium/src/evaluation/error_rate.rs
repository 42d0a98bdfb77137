//! How often a prediction is not the label, with its interval.
//!
//! $$\hat p \pm \sqrt{\hat p(1 - \hat p)/(n - 1)}, \qquad
//!   \frac{\hat p + z^2/2n \pm z\sqrt{\hat p(1 - \hat p)/n + z^2/4n^2}}{1 + z^2/n}$$
//!
//! The second is Wilson's interval (1927), which holds where few or no rows are wrong: there the standard
//! error is too small to say anything. Rows with weights count as $n = (\sum w)^2/\sum w^2$.

use super::likelihood::weighted_mean;
use super::log_partition::MARGIN;
use ndarray::Array2;
use serde::Serialize;

/// The share of rows whose label is not the predicted class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorRate {
    /// The share, by the weights of the rows.
    pub rate: f64,
    /// Its standard error; unknown of one row.
    pub std_error: Option<f64>,
    /// The lower end of its 95 % interval.
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
    /// Number of rows.
    pub n: usize,
    /// Rows of each class (a row of the table) and prediction (a column).
    #[serde(skip)]
    pub confusion: Array2<usize>,
}

impl ErrorRate {
    /// Compares predictions with the classes of the rows, of which there are `q`.
    ///
    /// # Panics
    ///
    /// If a class is `q` or more.
    pub fn new(known: &[usize], predicted: &[usize], weights: &[f64], q: usize) -> Self {
        let mut confusion = Array2::zeros((q, q));
        known.iter().zip(predicted).for_each(|(&y, &p)| confusion[(y, p)] += 1);
        let wrong: Vec<f64> =
            known.iter().zip(predicted).map(|(y, p)| f64::from(u8::from(y != p))).collect();
        let (rate, std_error) = weighted_mean(&wrong, weights);
        let total: f64 = weights.iter().sum();
        let n = total * total / weights.iter().map(|w| w * w).sum::<f64>();
        let (lower, upper) = wilson(rate, n);
        Self { rate, std_error, lower, upper, n: known.len(), confusion }
    }
}

/// Wilson's 95 % interval of a share of `n` rows.
fn wilson(p: f64, n: f64) -> (f64, f64) {
    let z2 = MARGIN * MARGIN;
    let (middle, half) =
        (p + z2 / (2.0 * n), MARGIN * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt());
    let scale = 1.0 + z2 / n;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_are_counted_by_class() {
        let found = ErrorRate::new(&[0, 1, 1, 2], &[0, 1, 2, 2], &[1.0; 4], 3);
        assert_eq!((found.rate.to_bits(), found.n), (0.25_f64.to_bits(), 4));
        assert_eq!(found.confusion.row(1).to_vec(), [0, 1, 1]);
        // Of 4 rows the variance is 3/16 · 4/3 / 4.
        assert!((found.std_error.unwrap() - 0.25).abs() < 1e-12);
        let weighted = ErrorRate::new(&[0, 1], &[0, 0], &[3.0, 1.0], 2);
        assert!((weighted.rate - 0.25).abs() < 1e-12);
    }

    /// The interval of a share that was never wrong is not empty, and 95 % of all intervals hold.
    #[test]
    fn intervals_hold() {
        let never = ErrorRate::new(&[0; 50], &[0; 50], &[1.0; 50], 1);
        assert!(never.lower.abs() < 1e-12 && never.upper > 0.05 && never.upper < 0.1);
        // Every number of wrong rows of 40, with its probability under p.
        for p in [0.02_f64, 0.1, 0.5] {
            let n = 40_u32;
            let mut log_choose = 0.0_f64;
            let mut holds = 0.0;
            for k in 0..=n {
                let (k_, n_) = (f64::from(k), f64::from(n));
                let (lower, upper) = wilson(k_ / n_, n_);
                let log = log_choose + k_ * p.ln() + (n_ - k_) * (1.0 - p).ln();
                holds += if (lower..=upper).contains(&p) { log.exp() } else { 0.0 };
                log_choose += ((n_ - k_) / (k_ + 1.0)).ln();
            }
            assert!(holds > 0.92, "{p}: {holds}");
        }
    }
}
