//! What is measured of a net after each epoch.
//!
//! | name | what it is |
//! |---|---|
//! | `error_rate.train`, `.valid` | the share of rows whose most probable class is not their label |
//! | `average_precision.train`, `.valid` | the mean over tags of how well they order the rows |
//! | `loss.train`, `.valid` | mean loss in nats, or half the mean squared distance; nothing is dropped |
//!
//! Training rows are a fixed part of the data; validation rows are all looked at.

use super::answers::Answers;
use super::rows::NetworkRows;
use crate::error::Error;
use crate::evaluation::error_rate::ErrorRate;
use crate::evaluation::ranking::Ranking;
use crate::models::{Body, Network, Target};
use crate::progress::Silent;
use crate::training::{Measurement, Metric, MetricName, On, View};

/// Measures a net on fixed rows.
#[derive(Debug)]
pub struct NetworkMonitor<'d> {
    train: NetworkRows<'d>,
    valid: Option<NetworkRows<'d>>,
}

impl<'d> NetworkMonitor<'d> {
    /// Looks at these training rows and at all of the validation rows.
    pub fn new(train: NetworkRows<'d>, valid: Option<NetworkRows<'d>>) -> Self {
        Self { train, valid }
    }

    /// What can be said of a net now.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn look(&self, network: &Network) -> Result<Vec<Measurement>, Error> {
        let mut found = Vec::new();
        for (on, rows) in [(On::Valid, self.valid.as_ref()), (On::Train, Some(&self.train))] {
            if let Some(rows) = rows.filter(|rows| rows.has_targets()) {
                measure(network, rows, on, &mut found)?;
            }
        }
        Ok(found)
    }
}

impl Metric for NetworkMonitor<'_> {
    fn measure(&mut self, view: &View<'_>) -> Result<Vec<Measurement>, Error> {
        match view.body() {
            Body::Network(network) => self.look(&network),
            _ => Ok(Vec::new()),
        }
    }
}

fn measure(
    network: &Network,
    rows: &NetworkRows<'_>,
    on: On,
    found: &mut Vec<Measurement>,
) -> Result<(), Error> {
    let answers = Answers::of(network, rows, &mut Silent)?;
    let n = answers.losses.len();
    if let Some(known) = rows.classes() {
        let weights: Vec<f64> = (0..n).map(|row| rows.data().weight(row)).collect();
        let errors = ErrorRate::new(known, &answers.largest(), &weights, answers.n_outputs);
        let name = MetricName::ErrorRate(on);
        found.push(Measurement { name, value: errors.rate, std_error: errors.std_error });
    }
    if network.target() == Target::Tags {
        let ranking = Ranking::new(&answers.values, &rows.all_targets(), answers.n_outputs);
        let name = MetricName::AveragePrecision(on);
        found.push(Measurement { name, value: ranking.by_tag, std_error: None });
    }
    if let Some((value, std_error)) = answers.loss(rows) {
        found.push(Measurement { name: MetricName::Loss(on), value, std_error });
    }
    Ok(())
}
