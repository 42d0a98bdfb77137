//! Exact log-likelihoods of data, for machines small enough to enumerate.
//!
//! $\ln p(v) = \ln\sum_h e^{-E(v,h)} - \ln Z$, both sums exact.

use crate::error::Error;
use crate::exact;
use crate::machine::{Batch, Columns, Machine};
use crate::sampling::Clamp;
use crate::training::{Measurement, Metric};
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
    /// Standard error of the mean, from the spread over the samples.
    pub data_std_error: f64,
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

/// The exact log-likelihood of each sample. Data that is drawn anew at each presentation is drawn
/// once, always the same way, so that scores can be compared.
///
/// # Errors
///
/// If the data does not fit, or a sum has too many terms.
pub fn exact(machine: &Machine, data: &Dataset) -> Result<Likelihood, Error> {
    let log_partition = exact::log_partition(machine)?;
    let columns = Columns::of(machine);
    let clamp = Clamp::visible(machine);
    let mut batch = Batch::new(machine);
    let mut values = vec![0.0; data.n_columns()];
    let mut rows = Vec::with_capacity(data.n_rows());
    for row in 0..data.n_rows() {
        data.present_into(row, Stream::new(0), &mut values);
        columns.check(machine, row, &values)?;
        batch.push(machine, &values, data.weight(row));
        if batch.n_rows() == ROWS || row + 1 == data.n_rows() {
            let logs = exact::log_sums(machine, &clamp, &batch.to_state(machine)?)?;
            rows.extend(logs.into_iter().map(|l| l - log_partition));
            batch.clear();
        }
    }
    let weights: Vec<f64> = (0..data.n_rows()).map(|r| data.weight(r)).collect();
    let (mean, data_std_error) = weighted_mean(&rows, &weights);
    Ok(Likelihood { mean, data_std_error, n: rows.len(), log_partition, rows })
}

/// The weighted mean and its standard error.
pub(crate) fn weighted_mean(values: &[f64], weights: &[f64]) -> (f64, f64) {
    let total: f64 = weights.iter().sum();
    let mean = values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>() / total;
    let spread = values.iter().zip(weights).map(|(v, w)| (w * (v - mean)).powi(2)).sum::<f64>();
    (mean, spread.sqrt() / total)
}

/// The exact mean log-likelihood of a fixed set, measured while training.
pub struct ExactLikelihood<'d> {
    name: String,
    data: &'d Dataset,
}

impl<'d> ExactLikelihood<'d> {
    /// Scores `data`, and calls the result `name`.
    pub fn new(name: impl Into<String>, data: &'d Dataset) -> Self {
        Self { name: name.into(), data }
    }
}

impl Metric for ExactLikelihood<'_> {
    fn measure(&mut self, machine: &Machine) -> Result<Vec<Measurement>, Error> {
        let likelihood = exact(machine, self.data)?;
        let std_error = Some(likelihood.data_std_error);
        Ok(vec![Measurement { name: self.name.clone(), value: likelihood.mean, std_error }])
    }
}
