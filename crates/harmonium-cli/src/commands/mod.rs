//! What each command does.

mod autopilot;
pub(crate) mod classify;
pub(crate) mod complete;
pub(crate) mod convert;
pub(crate) mod data;
pub(crate) mod demo;
mod diagnose;
pub(crate) mod features;
pub(crate) mod infer;
pub(crate) mod inspect;
pub(crate) mod logz;
pub(crate) mod report;
pub(crate) mod sample;
pub(crate) mod score;
pub(crate) mod train;

use crate::failure::Failure;
use harmonium::Dataset;
use harmonium_data::{Options, open};
use ndarray::Array2;

/// Opens a mask: 1 is observed; one row holds for all.
fn mask(path: &str, data: &Dataset) -> Result<Array2<bool>, Failure> {
    let table = open(path, &Options::default())?.table;
    let (n, m) = (table.n_rows(), table.n_columns());
    if m != data.n_columns() || (n != data.n_rows() && n != 1) {
        return Err(Failure::new(
            format!("the mask is {n}x{m}, the data {}x{}", data.n_rows(), data.n_columns()),
            "a mask has a column per column of the data, and a row per row, or one row for all",
        ));
    }
    let cells = (0..n).flat_map(|row| (0..m).map(move |column| (row, column)));
    if let Some((row, column)) =
        cells.into_iter().find(|&(r, c)| ![0.0, 1.0].contains(&table.at(r, c)))
    {
        return Err(Failure::new(
            format!("the mask holds {} (row {row}, column {column})", table.at(row, column)),
            "a mask holds 1 for observed and 0 for missing",
        ));
    }
    Ok(Array2::from_shape_fn((n, m), |(row, column)| table.at(row, column) == 1.0))
}
