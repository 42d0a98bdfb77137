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
use harmonium::machine::{Batch, LayerId, Machine, State};
use harmonium::random::Stream;
use harmonium::sampling::Clamp;
use harmonium_data::Dataset;
use std::ops::Range;

/// Some rows of the data as states, each checked against the units, with what they hold clamped.
/// Data that fills only the first visible layers leaves the others free: labels, for example.
pub(crate) fn states(
    machine: &Machine,
    data: &Dataset,
    rows: Range<usize>,
) -> Result<(State, Clamp), Failure> {
    let given = given_layers(machine, data.n_columns());
    if given.len() == machine.visible_layers().len() {
        let x = batch(machine, data, rows)?.to_state(machine)?;
        return Ok((x, Clamp::visible(machine)));
    }
    let layers = given.iter().map(|&l| machine.layer(l).clone()).collect();
    let part = Machine::new(layers, Vec::new())?;
    let known = batch(&part, data, rows)?.to_state(&part)?;
    let mut x = State::zeros(machine, known.n_rows())?;
    for l in machine.layer_ids() {
        let layer = machine.layer(l);
        for row in 0..x.n_rows() {
            match given.iter().position(|&g| g == l) {
                Some(at) => x.set_row(l, row, known.row(LayerId(at), row))?,
                None => x.set_row(l, row, &vec![layer.units.neutral_mean(); layer.len()])?,
            }
        }
    }
    Ok((x, Clamp::layers(given)))
}

/// The first visible layers that rows of `n_columns` fill, or all of them.
pub(crate) fn given_layers(machine: &Machine, n_columns: usize) -> Vec<LayerId> {
    let visible = machine.visible_layers();
    let mut n = 0;
    for (i, &l) in visible.iter().enumerate() {
        n += machine.layer(l).len();
        if n == n_columns {
            return visible[..=i].to_vec();
        }
    }
    visible
}

/// Some rows of the data as a batch, each checked against the units.
pub(crate) fn batch(
    machine: &Machine,
    data: &Dataset,
    rows: Range<usize>,
) -> Result<Batch, Failure> {
    let first = rows.start;
    let mut values = vec![0.0; rows.len() * data.n_columns()];
    for (row, out) in rows.zip(values.chunks_mut(data.n_columns())) {
        data.present_into(row, Stream::new(0), out);
    }
    Batch::from_rows(machine, data.n_columns(), &values)
        .map_err(|error| Failure::from(error.in_rows_from(first)))
}
