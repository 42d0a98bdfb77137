//! Data that is looked at again and again, and the rows of it that are.

use super::LEAST_ROWS;
use crate::error::Error;
use crate::evaluation::tracking::MOST_ROWS;
use crate::machine::{Batch, Machine};
use crate::schema::Feed;
use harmonium_data::Dataset;
use harmonium_kernels::random::Stream;
use std::sync::OnceLock;

/// Share of the rows that is looked at after each epoch.
const SHARE: usize = 60;

/// Data that is looked at again and again: checked at the first look.
pub(super) struct Looked<'d> {
    pub(super) data: &'d Dataset,
    feed: OnceLock<Feed<'d>>,
    /// See [`Dataset::log_slopes`].
    log_slopes: Option<Vec<f64>>,
}

impl<'d> Looked<'d> {
    pub(super) fn new(data: &'d Dataset) -> Self {
        Self { data, feed: OnceLock::new(), log_slopes: data.log_slopes() }
    }

    /// Log-densities of rows in the units of the data.
    pub(super) fn in_units(&self, rows: &[usize], logs: &mut [f64]) {
        if let Some(slopes) = &self.log_slopes {
            logs.iter_mut().zip(rows).for_each(|(log, &row)| *log += slopes[row]);
        }
    }

    pub(super) fn feed(&self, machine: &Machine) -> Result<&Feed<'d>, Error> {
        if let Some(feed) = self.feed.get() {
            return Ok(feed);
        }
        let feed = Feed::of(machine, self.data)?.filled_but_for_labels()?;
        Ok(self.feed.get_or_init(|| feed))
    }

    /// Whether the labels of the rows are unknown, so that they are summed out.
    pub(super) fn lacks_labels(&self, machine: &Machine) -> Result<bool, Error> {
        Ok(self.feed(machine)?.lacks_labels_alone())
    }

    /// The numbers of the rows that are looked at: every so-many-th.
    pub(super) fn chosen(&self) -> Vec<usize> {
        let n = (self.data.n_rows() / SHARE).max(LEAST_ROWS).min(self.data.n_rows());
        self.spread(n)
    }

    /// The numbers of the rows whose likelihood is tracked.
    pub(super) fn tracked(&self) -> Vec<usize> {
        self.spread(self.data.n_rows().min(MOST_ROWS))
    }

    /// The numbers of `n` rows, evenly over the data.
    fn spread(&self, n: usize) -> Vec<usize> {
        (0..n).map(|k| k * self.data.n_rows() / n).collect()
    }
}

/// Rows as a batch, presented always alike.
pub(super) fn alike(feed: &Feed<'_>, rows: &[usize]) -> Batch {
    feed.batch(rows.iter().copied(), Stream::new(0))
}
