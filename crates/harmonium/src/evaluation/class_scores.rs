//! How far the probabilities of classes can be believed.
//!
//! $$\text{ECE} = \sum_b \frac{n_b}{n}\,\bigl|\overline{\text{right}}_b - \overline{\text{confidence}}_b\bigr|$$
//!
//! over fifteen equal ranges $b$ of the probability of the predicted class (Guo et al. 2017); a model whose rows of
//! confidence 0.9 are right nine times in ten has an error of 0. Sums are by the weights of the rows.

use serde::Serialize;

/// Ranges of confidence.
const BINS: usize = 15;
/// The most probable classes that are looked at.
const MOST: usize = 5;

/// How probabilities agree with labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassScores {
    /// The share of rows whose label is not among the $k$ most probable classes, from $k = 1$ to at most 5.
    pub top_errors: Vec<f64>,
    /// The mean gap between confidence and how often it is right.
    pub calibration_error: f64,
    /// Mean $-\ln p$ of the label, in nats.
    pub log_loss: f64,
}

impl ClassScores {
    /// Compares probabilities, `q` for each row, with the classes of the rows.
    ///
    /// # Panics
    ///
    /// If there are fewer probabilities than rows need, or a class is `q` or more.
    pub fn new(known: &[usize], probabilities: &[f64], weights: &[f64], q: usize) -> Self {
        let total: f64 = weights.iter().sum();
        let mut top = vec![0.0; MOST.min(q)];
        let (mut loss, mut bins) = (0.0, [[0.0; 2]; BINS]);
        for ((row, &class), w) in probabilities.chunks_exact(q).zip(known).zip(weights) {
            // Of equal probabilities the first counts as the larger, as it does for predictions.
            let above = |k: usize| row[k] > row[class] || row[k] == row[class] && k < class;
            let rank = (0..q).filter(|&k| above(k)).count();
            top.iter_mut().take(rank).for_each(|error| *error += w);
            loss -= w * row[class].max(f64::MIN_POSITIVE).ln();
            let confidence = row.iter().copied().fold(0.0, f64::max);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "from 0 to 1"
            )]
            let bin = ((confidence * BINS as f64) as usize).min(BINS - 1);
            bins[bin][0] += w * confidence;
            bins[bin][1] += if rank == 0 { *w } else { 0.0 };
        }
        top.iter_mut().for_each(|error| *error /= total);
        let gap: f64 = bins.iter().map(|[confidence, right]| (confidence - right).abs()).sum();
        Self { top_errors: top, calibration_error: gap / total, log_loss: loss / total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_counted() {
        let p = [0.7, 0.2, 0.1, 0.3, 0.6, 0.1, 0.25, 0.25, 0.5];
        let found = ClassScores::new(&[0, 0, 0], &p, &[1.0, 1.0, 2.0], 3);
        // The third row: classes 0 and 1 are equal, so class 0 comes second.
        assert_eq!(found.top_errors, [0.75, 0.0, 0.0]);
        let loss = -(0.7_f64.ln() + 0.3_f64.ln() + 2.0 * 0.25_f64.ln()) / 4.0;
        assert!((found.log_loss - loss).abs() < 1e-12);
        // Confidences 0.7 (right), 0.6 (wrong) and twice 0.5 (wrong) stand in three ranges.
        assert!((found.calibration_error - (0.3 + 0.6 + 1.0) / 4.0).abs() < 1e-12);
    }

    /// Labels drawn from the probabilities themselves are calibrated, those that are surer are not.
    #[test]
    fn honest_probabilities_have_no_error() {
        use harmonium_kernels::random::{Site, Stream};
        let n = 20_000;
        let (mut honest, mut sure, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..n {
            let u = |k| Stream::new(1).uniform(Site::new(row, 0, 0), k);
            let p = 0.5 + 0.5 * u(0);
            honest.extend([p, 1.0 - p]);
            let surer = p.sqrt();
            sure.extend([surer, 1.0 - surer]);
            known.push(usize::from(u(40) > p));
        }
        let weights = vec![1.0; n];
        let error = |p: &[f64]| ClassScores::new(&known, p, &weights, 2).calibration_error;
        // Each of eight ranges has 2,500 rows: a standard error below 0.01.
        assert!(error(&honest) < 0.02, "{}", error(&honest));
        assert!(error(&sure) > 0.08, "{}", error(&sure));
    }
}
