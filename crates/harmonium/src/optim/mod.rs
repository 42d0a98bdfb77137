//! From a gradient to an update of the parameters.

mod adam;
mod penalties;
mod schedule;
mod sgd;

pub use adam::Adam;
pub use penalties::{Penalties, Sparsity};
pub use schedule::{Progress, Schedule};
pub use sgd::Sgd;

use crate::error::Error;
use crate::estimators::Snapshot;
use crate::machine::Machine;
use crate::moments::Moments;

/// Turns gradients into updates.
pub trait Optimizer: Send {
    /// Its name, as in configuration files.
    fn name(&self) -> &'static str;

    /// The update for this gradient: what is to be added to the parameters.
    fn update(&mut self, gradient: &Moments, rate: f64, momentum: f64) -> &Moments;

    /// Everything the next update depends on besides the gradient.
    fn export(&self) -> Snapshot;

    /// Takes up what [`Optimizer::export`] gave.
    ///
    /// # Errors
    ///
    /// If the snapshot belongs to another machine or optimiser.
    fn import(&mut self, machine: &Machine, snapshot: &Snapshot) -> Result<(), Error>;
}

fn export_moments(snapshot: &mut Snapshot, name: &str, moments: &Moments) {
    for (i, slice) in moments.slices().into_iter().enumerate() {
        snapshot.insert(format!("{name}.{i}"), slice.to_vec());
    }
}

fn import_moments(snapshot: &Snapshot, name: &str, moments: &mut Moments) -> Result<(), Error> {
    for (i, slice) in moments.slices_mut().into_iter().enumerate() {
        slice.copy_from_slice(snapshot.get(&format!("{name}.{i}"), slice.len())?);
    }
    Ok(())
}
