//! What a model without couplings reaches: the score every machine has to beat.

use super::likelihood::weighted_mean;
use crate::error::Error;
use crate::machine::{Layer, Machine};
use crate::training::{Plan, initialise};
use harmonium_data::Dataset;

/// Mean log-likelihood of `test` under independent units with the means of `train`, and its
/// standard error.
///
/// # Errors
///
/// If the data does not fit the visible layers of `machine`.
pub fn independent(
    machine: &Machine,
    train: &Dataset,
    test: &Dataset,
) -> Result<(f64, Option<f64>), Error> {
    let visible: Vec<Layer> =
        machine.visible_layers().into_iter().map(|l| machine.layer(l).clone()).collect();
    let mut alone = Machine::new(visible, Vec::new())?;
    initialise(&mut alone, train, &Plan::default())?;
    let scored = super::likelihood::exact(&alone, test)?;
    let weights: Vec<f64> = (0..test.n_rows()).map(|r| test.weight(r)).collect();
    Ok(weighted_mean(&scored.rows, &weights))
}
