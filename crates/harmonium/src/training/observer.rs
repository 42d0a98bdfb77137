//! Who may watch a run: metrics, early stopping, checkpoints.

use super::metric::{Measurement, Metric};
use super::trainer::View;
use serde::Serialize;
use std::ops::ControlFlow;

/// Watches a run and may end it with a reason; never changes it.
pub trait Observer {
    /// Called after each update.
    fn updated(&mut self, _view: &View<'_, '_>) -> ControlFlow<String> {
        ControlFlow::Continue(())
    }

    /// Called after each epoch.
    fn epoch_ended(&mut self, _view: &View<'_, '_>) -> ControlFlow<String> {
        ControlFlow::Continue(())
    }
}

/// What was measured at the end of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// Epochs finished.
    pub epoch: u64,
    /// Updates done.
    pub step: u64,
    /// All measurements.
    pub measurements: Vec<Measurement>,
}

/// Takes measurements every few epochs and keeps them.
pub struct History<'m> {
    every: u64,
    metrics: Vec<Box<dyn Metric + 'm>>,
    records: Vec<Record>,
}

impl<'m> History<'m> {
    /// Measures after every `every` epochs (0 counts as 1).
    pub fn new(every: u64, metrics: Vec<Box<dyn Metric + 'm>>) -> Self {
        Self { every: every.max(1), metrics, records: Vec::new() }
    }

    /// What was measured so far.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}

impl Observer for History<'_> {
    fn epoch_ended(&mut self, view: &View<'_, '_>) -> ControlFlow<String> {
        if !view.epoch.is_multiple_of(self.every) {
            return ControlFlow::Continue(());
        }
        let mut measurements = Vec::new();
        for metric in &mut self.metrics {
            match metric.measure(view.machine()) {
                Ok(more) => measurements.extend(more),
                Err(error) => return ControlFlow::Break(format!("a metric failed: {error}")),
            }
        }
        self.records.push(Record { epoch: view.epoch, step: view.report.step, measurements });
        ControlFlow::Continue(())
    }
}

/// Ends a run once a metric has not risen for a number of epochs.
pub struct EarlyStop<M> {
    metric: M,
    patience: u64,
    best: f64,
    best_epoch: u64,
}

impl<M: Metric> EarlyStop<M> {
    /// Watches the first measurement of `metric`; higher is better.
    pub fn new(metric: M, patience: u64) -> Self {
        Self { metric, patience, best: f64::NEG_INFINITY, best_epoch: 0 }
    }

    /// The epoch with the highest value so far, and the value.
    pub fn best(&self) -> (u64, f64) {
        (self.best_epoch, self.best)
    }
}

impl<M: Metric> Observer for EarlyStop<M> {
    fn epoch_ended(&mut self, view: &View<'_, '_>) -> ControlFlow<String> {
        let measured = match self.metric.measure(view.machine()) {
            Ok(measured) => measured,
            Err(error) => return ControlFlow::Break(format!("a metric failed: {error}")),
        };
        let Some(first) = measured.first() else { return ControlFlow::Continue(()) };
        // What rounding may do is no improvement: recentering alone moves the last digits.
        let noise = if self.best.is_finite() { 1e-12 * self.best.abs() } else { 0.0 };
        if first.value > self.best + noise {
            (self.best, self.best_epoch) = (first.value, view.epoch);
        } else if view.epoch - self.best_epoch >= self.patience {
            return ControlFlow::Break(format!(
                "{} has not risen above {:.4} since epoch {}",
                first.name, self.best, self.best_epoch
            ));
        }
        ControlFlow::Continue(())
    }
}

/// Calls a function after every few epochs: the hook for checkpoints and progress bars.
pub struct Every<F> {
    epochs: u64,
    call: F,
}

impl<F: FnMut(&View<'_, '_>) -> ControlFlow<String>> Every<F> {
    /// Calls `call` after every `epochs` epochs (0 counts as 1).
    pub fn new(epochs: u64, call: F) -> Self {
        Self { epochs: epochs.max(1), call }
    }
}

impl<F: FnMut(&View<'_, '_>) -> ControlFlow<String>> Observer for Every<F> {
    fn epoch_ended(&mut self, view: &View<'_, '_>) -> ControlFlow<String> {
        if view.epoch.is_multiple_of(self.epochs) {
            return (self.call)(view);
        }
        ControlFlow::Continue(())
    }
}
