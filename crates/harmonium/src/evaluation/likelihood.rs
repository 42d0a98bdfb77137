//! Log-likelihoods of data.
//!
//! $\ln p(v) = \ln\sum_h e^{-E(v,h)} - \ln Z$: both sums exact for machines small enough to
//! enumerate, else put together from what is known of each. A wide $\ln Z$ shifts all rows alike,
//! so its interval stands apart from the spread of the data.

use super::log_partition::{Bracket, Doubt, LogPartition, MARGIN};
use super::row_sums::Sums;
use crate::error::Error;
use crate::exact;
use crate::machine::Machine;
use crate::schema::Feed;
use crate::training::{Measurement, Metric, MetricName, View};
use harmonium_data::Dataset;
use harmonium_kernels::random::Stream;
use serde::Serialize;

/// Rows summed at a time: bounds the memory of states.
const ROWS: usize = 256;

/// The log-likelihood of a set of samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Likelihood {
    /// Weighted mean over the samples, in nats.
    pub mean: f64,
    /// Standard error of the mean, from the spread over the samples; unknown of one sample.
    pub data_std_error: Option<f64>,
    /// Number of samples.
    pub n: usize,
    /// $\ln Z$.
    pub log_partition: f64,
    /// Of each sample.
    #[serde(skip)]
    pub rows: Vec<f64>,
}

impl Likelihood {
    /// Sum over the samples, each counted once.
    pub fn total(&self) -> f64 {
        self.rows.iter().sum()
    }
}

/// The exact log-likelihood of each sample; values that are missing and layers that the data does
/// not have are summed out. Data that is drawn anew at each presentation is drawn
/// once, always the same way, so that scores can be compared.
///
/// # Errors
///
/// If the data does not fit, or a sum has too many terms.
pub fn exact(machine: &Machine, data: &Dataset) -> Result<Likelihood, Error> {
    let log_partition = exact::log_partition(machine)?;
    let feed = Feed::of(machine, data)?;
    let mut batch = feed.batch([], Stream::new(0));
    let mut rows = Vec::with_capacity(data.n_rows());
    for start in (0..data.n_rows()).step_by(ROWS) {
        let these = start..(start + ROWS).min(data.n_rows());
        feed.refill(&mut batch, these, Stream::new(0));
        let logs = exact::log_sums(machine, batch.clamp(), &batch.to_state(machine)?)?;
        rows.extend(logs.into_iter().map(|l| l - log_partition));
    }
    let weights: Vec<f64> = (0..data.n_rows()).map(|r| data.weight(r)).collect();
    let (mean, data_std_error) = weighted_mean(&rows, &weights);
    Ok(Likelihood { mean, data_std_error, n: rows.len(), log_partition, rows })
}

/// The mean log-likelihood of a set of samples, from sums and a $\ln Z$ that may both be estimates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Weighted mean over the samples, in nats.
    pub mean: f64,
    /// Standard error of what was estimated: $\ln Z$, and the sums of the rows.
    pub std_error: f64,
    /// Standard error of the mean, from the spread over the samples; unknown of one sample.
    pub data_std_error: Option<f64>,
    /// The mean over these samples is above it, with a margin of 97.5 %.
    pub lower: f64,
    /// And below it, with a margin of 97.5 %.
    pub upper: f64,
    /// What the two are.
    pub bracket: Bracket,
    /// What speaks against the sums of the rows; $\ln Z$ has its own.
    pub row_doubts: Vec<Doubt>,
    /// The variational bound, with the estimate of $\ln Z$.
    pub bound: f64,
    /// The variational bound with the upper end of $\ln Z$.
    pub bound_lower: f64,
    /// Number of samples.
    pub n: usize,
    /// Of each sample.
    #[serde(skip)]
    pub rows: Vec<f64>,
}

impl Estimate {
    /// Adds something to the log-likelihood of each row, with its mean.
    pub(crate) fn shift(&mut self, by: &[f64], mean: f64) {
        self.rows.iter_mut().zip(by).for_each(|(row, shift)| *row += shift);
        let Self { mean: middle, lower, upper, bound, bound_lower, .. } = self;
        [middle, lower, upper, bound, bound_lower].into_iter().for_each(|x| *x += mean);
    }
}

/// The mean of sums of rows, with both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// The mean is above it, with a margin of 97.5 %.
    pub(crate) lower: f64,
    /// And below it.
    pub(crate) upper: f64,
    /// Standard error of the mean, from those of the rows.
    pub(crate) std_error: f64,
    /// The mean of the variational bounds.
    pub(crate) bound: f64,
}

impl Ends {
    /// Of sums, each with its weight.
    pub(crate) fn of(sums: &Sums, weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        let mean = |values: &[f64]| weighted_mean(values, weights).0;
        // Rows are independent, so their errors hardly add up.
        let error = |side: usize| {
            let weighted = sums.std_errors.iter().zip(weights).map(|(e, w)| (w * e[side]).powi(2));
            weighted.sum::<f64>().sqrt() / total
        };
        let bound = mean(&sums.bounds);
        let lower = (mean(&sums.lower) - MARGIN * error(1)).max(bound);
        // Where the way back ends below the way there, the way there is nearer.
        let upper =
            (mean(&sums.upper) + MARGIN * error(2)).max(mean(&sums.lower) + MARGIN * error(1));
        Self { lower, upper, std_error: error(0), bound }
    }
}

/// Puts the sums of the rows, each with its weight, and $\ln Z$ together.
pub fn estimate(sums: &Sums, weights: &[f64], log_z: &LogPartition) -> Estimate {
    let ends = Ends::of(sums, weights);
    let rows: Vec<f64> = sums.rows.iter().map(|r| r - log_z.log_z).collect();
    let (middle, data_std_error) = weighted_mean(&rows, weights);
    Estimate {
        mean: middle,
        std_error: ends.std_error.hypot(log_z.std_error),
        data_std_error,
        lower: (ends.lower - log_z.upper).min(middle),
        upper: (ends.upper - log_z.lower).max(middle),
        bracket: sums.bracket().and(log_z.bracket),
        row_doubts: sums.doubts(),
        bound: ends.bound - log_z.log_z,
        bound_lower: ends.bound - log_z.upper,
        n: rows.len(),
        rows,
    }
}

/// The weighted mean $m = \sum_i w_i x_i / W$, $W = \sum_i w_i$, and its standard error
///
/// $$\sqrt{\frac{n}{n - 1} \sum_i \frac{w_i^2}{W^2} (x_i - m)^2}, \qquad n = W^2 / \sum_i w_i^2.$$
///
/// With equal weights $n$ is the number of values, and the variance is divided by $n - 1$. Of one
/// value the error is unknown: nothing says how far another would be from it.
pub fn weighted_mean(values: &[f64], weights: &[f64]) -> (f64, Option<f64>) {
    let total: f64 = weights.iter().sum();
    let mean = values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>() / total;
    let spread = values.iter().zip(weights).map(|(v, w)| (w * (v - mean)).powi(2)).sum::<f64>();
    let n = total * total / weights.iter().map(|w| w * w).sum::<f64>();
    // A second value of weight 1e-12 says no more than none.
    let error = (n > 1.0 + 1e-9).then(|| (n / (n - 1.0) * spread).sqrt() / total);
    (mean, error)
}

/// The exact mean log-likelihood of a fixed set, measured while training.
pub struct ExactLikelihood<'d> {
    name: MetricName,
    data: &'d Dataset,
}

impl<'d> ExactLikelihood<'d> {
    /// Scores `data`, and calls the result `name`.
    pub fn new(name: impl Into<MetricName>, data: &'d Dataset) -> Self {
        Self { name: name.into(), data }
    }
}

impl Metric for ExactLikelihood<'_> {
    fn measure(&mut self, view: &View<'_>) -> Result<Vec<Measurement>, Error> {
        let likelihood = exact(view.machine()?, self.data)?;
        let std_error = likelihood.data_std_error;
        Ok(vec![Measurement { name: self.name.clone(), value: likelihood.mean, std_error }])
    }
}

#[cfg(test)]
mod tests {
    use super::weighted_mean;

    #[test]
    fn one_value_has_no_known_error() {
        assert_eq!(weighted_mean(&[3.0], &[2.0]), (3.0, None));
        assert_eq!(weighted_mean(&[3.0, 7.0], &[0.1, 0.0]).1, None);
        assert_eq!(weighted_mean(&[3.0, 3.0], &[1.0, 1.0]), (3.0, Some(0.0)));
    }

    #[test]
    fn equal_weights_give_the_usual_standard_error() {
        let values = [1.0, 2.0, 4.0, 9.0];
        // The sum of squares about 4 is 38, so the variance is 38 / 3.
        let expected = (38.0_f64 / 3.0 / 4.0).sqrt();
        for weight in [1.0, 0.25, 7.0] {
            let (mean, error) = weighted_mean(&values, &[weight; 4]);
            let error = error.unwrap();
            assert!((mean - 4.0).abs() < 1e-12 && (error - expected).abs() < 1e-12, "{error}");
        }
        let (mean, error) = weighted_mean(&[1.0, 3.0, 5.0], &[1.0, 1.0, 0.0]);
        let error = error.unwrap();
        assert!((mean - 2.0).abs() < 1e-12 && (error - 1.0).abs() < 1e-12, "{error}");
    }
}
