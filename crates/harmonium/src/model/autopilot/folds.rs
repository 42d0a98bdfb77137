//! Few rows are all validated with in turn, and all learned from in the end.
//!
//! The likelihood of a tenth of a hundred rows says little of two settings: its standard error is larger than what they differ by.
//! Where a training costs little, the rows are cut into parts and each setting is learned once without each of them (cross-validation,
//! Stone 1974). A trial scores the mean over all rows at the look at which that is highest.
//!
//! What was found is learned from all rows, with nothing left to stop it by: for as long as rates that fall over the whole of it move as
//! far as those of the trial had until its best look,
//! $$E' = \sum_{e < e^*} d(e / E) \Big/ \int_0^1 d.$$

use super::trial::Made;
use super::{Autopilot, Trial};
use crate::error::Error;
use crate::optim::{Progress, Schedule};
use crate::progress::Listener;
use crate::training::{Plan, Rule};
use harmonium_data::Dataset;
use harmonium_kernels::random::Stream;
use std::collections::BTreeMap;

/// Rows up to which all of them are validated with.
const MOST_ROWS: usize = 1000;
/// Parts of the rows that were not set apart; those that were are one more.
const PARTS: usize = 4;
/// The variates that choose them.
const FOLDS: u64 = 312;

/// Rows to learn from, and those to validate with.
pub(super) type Fold = (Dataset, Dataset);

/// A look at the validation rows of one fold: their number, the sum of their logs, the square of its standard error.
#[derive(Clone, Copy, Default)]
struct Sum {
    folds: usize,
    rows: f64,
    log: f64,
    variance: f64,
}

impl Autopilot<'_> {
    /// Whether all rows are validated with.
    pub(super) fn is_folded(&self) -> bool {
        let rows = self.train.n_rows() + self.valid.n_rows();
        let exact = self.candidates().iter().all(|trial| trial.rule == Rule::Exact);
        self.apart && exact && rows <= MOST_ROWS && self.train.n_rows() > PARTS
    }

    /// The folds of few rows; of many there are none.
    pub(super) fn folds(&self) -> Result<Vec<Fold>, Error> {
        if !self.is_folded() {
            return Ok(Vec::new());
        }
        let mut order: Vec<usize> = (0..self.train.n_rows()).collect();
        Stream::new(self.plan.seed).fork(FOLDS).shuffle(&mut order);
        let side = |part: usize, inside: bool| {
            let mut rows: Vec<usize> = order
                .iter()
                .enumerate()
                .filter(|(k, _)| (k % PARTS == part) == inside)
                .map(|(_, &row)| row)
                .collect();
            rows.sort_unstable();
            self.train.select_rows(&rows).map_err(|_| Error::Empty { what: "the data".into() })
        };
        let parts = (0..PARTS).map(|part| Ok((side(part, false)?, side(part, true)?)));
        std::iter::once(Ok((self.train.clone(), self.valid.clone()))).chain(parts).collect()
    }

    /// Scores a candidate by all rows.
    pub(super) fn score_folds(
        &self,
        mut trial: Trial,
        folds: &[Fold],
        work: (u64, u64),
        listener: &mut dyn Listener,
    ) -> Result<Made, Error> {
        let mut looks: BTreeMap<u64, Sum> = BTreeMap::new();
        for (train, valid) in folds {
            // As many updates in every fold, so that all are looked at after the same ones.
            let batch = even_batch(train.n_rows(), self.batches(self.train.n_rows()));
            let plan = Plan { batch, ..trial.plan(&self.plan) };
            let Some(curve) = self.curve(&trial, (train, valid), &plan, work, listener)? else {
                return Ok(Made { trial, machine: None, is_sure: true });
            };
            let n = valid.n_rows() as f64;
            for (epoch, score, error) in curve {
                let sum = looks.entry(epoch).or_default();
                sum.folds += 1;
                sum.rows += n;
                sum.log += n * score;
                sum.variance += (n * error.unwrap_or(0.0)).powi(2);
            }
        }
        let whole = looks.iter().filter(|(_, sum)| sum.folds == folds.len());
        let best = whole.max_by(|a, b| (a.1.log / a.1.rows).total_cmp(&(b.1.log / b.1.rows)));
        if let Some((&epoch, sum)) = best {
            let (score, error) = (sum.log / sum.rows, sum.variance.sqrt() / sum.rows);
            (trial.score, trial.std_error, trial.lower) = (Some(score), Some(error), Some(score));
            trial.best_epoch = Some(epoch);
        }
        Ok(Made { trial, machine: None, is_sure: true })
    }

    /// Updates of an epoch.
    pub(super) fn batches(&self, n_rows: usize) -> u64 {
        (n_rows.div_ceil(self.plan.batch.max(1)) as u64).max(1)
    }

    /// The plan with which the best trial is learned from all rows.
    pub(super) fn on_all_rows(&self, best: &Trial) -> Plan {
        let rows = self.train.n_rows() + self.valid.n_rows();
        let plan = Plan { batch: even_batch(rows, self.batches(rows)), ..best.plan(&self.plan) };
        let until = best.best_epoch.unwrap_or(best.epochs);
        let epochs = as_far(&plan.decay, until, best.epochs);
        let updates = epochs * self.batches(self.train.n_rows()) as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small, rounded"
        )]
        let epochs = (updates / self.batches(rows) as f64).round().max(1.0) as u64;
        Plan { epochs, ..plan }
    }
}

/// The size of batches that are alike: a last one of few rows would count as much as all others.
fn even_batch(n_rows: usize, batches: u64) -> usize {
    n_rows.div_ceil(usize::try_from(batches).unwrap_or(usize::MAX)).max(1)
}

/// Passes over the data after which rates that fall over all of them have moved as far as those of `epochs` passes until one of these.
fn as_far(decay: &Schedule, until: u64, epochs: u64) -> f64 {
    let moved = |until| -> f64 {
        (0..until).map(|epoch| decay.at(Progress::new(epoch, 0, 1, epochs))).sum()
    };
    let (all, some) = (moved(epochs), moved(until.min(epochs)));
    if all > 0.0 { some / all * epochs as f64 } else { until as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_rates_move_as_far_in_fewer_passes() {
        let falling = Schedule::Linear { from: 1.0, to: 0.0 };
        assert!((as_far(&falling, 1000, 1000) - 1000.0).abs() < 1e-9);
        // Half of the way in time is three quarters of it in steps.
        assert!((as_far(&falling, 500, 1000) - 750.0).abs() < 1.0);
        assert!((as_far(&Schedule::Constant(0.5), 300, 1000) - 300.0).abs() < 1e-9);
        assert!((as_far(&Schedule::Constant(0.0), 300, 1000) - 300.0).abs() < 1e-9);
    }
}
