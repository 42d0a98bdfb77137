//! What each command does.

pub(crate) mod complete;
pub(crate) mod convert;
pub(crate) mod data;
pub(crate) mod demo;
pub(crate) mod features;
pub(crate) mod inspect;
pub(crate) mod logz;
pub(crate) mod report;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod train;

use crate::failure::Failure;
use harmonium::machine::{Batch, Machine};
use harmonium::random::Stream;
use harmonium_data::Dataset;
use std::ops::Range;

/// Some rows of the data as a batch, each checked against the units.
pub(crate) fn batch(
    machine: &Machine,
    data: &Dataset,
    rows: Range<usize>,
    draw: Stream,
) -> Result<Batch, Failure> {
    let first = rows.start;
    let mut values = vec![0.0; rows.len() * data.n_columns()];
    for (row, out) in rows.zip(values.chunks_mut(data.n_columns())) {
        data.present_into(row, draw, out);
    }
    Batch::from_rows(machine, data.n_columns(), &values)
        .map_err(|error| Failure::from(error.in_rows_from(first)))
}
