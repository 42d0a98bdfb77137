//! What each command does.

pub(crate) mod belief;
pub(crate) mod belief_train;
pub(crate) mod complete;
pub(crate) mod convert;
pub(crate) mod data;
pub(crate) mod demo;
mod diagnose;
pub(crate) mod features;
pub(crate) mod inspect;
pub(crate) mod logz;
pub(crate) mod report;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod train;

use crate::failure::Failure;
use harmonium::machine::{Machine, State};
use harmonium::random::Stream;
use harmonium::sampling::Clamp;
use harmonium::schema::Feed;
use std::ops::Range;

/// Some rows of the data as states, with what they hold clamped: missing values and layers that the
/// data does not have are free.
pub(crate) fn states(
    machine: &Machine,
    feed: &Feed<'_>,
    rows: Range<usize>,
) -> Result<(State, Clamp), Failure> {
    let batch = feed.batch(rows, Stream::new(0));
    Ok((batch.to_state(machine)?, batch.clamp().clone()))
}
