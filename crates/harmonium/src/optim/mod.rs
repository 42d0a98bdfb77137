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

/// Turns gradients into updates. Parameters are slices of numbers: those of a machine
/// ([`crate::moments::Moments::slices_mut`]), of a network, of anything.
pub trait Optimizer: Send {
    /// Its name, as in configuration files.
    fn name(&self) -> &'static str;

    /// Replaces a gradient by the update: what is to be added to the parameters.
    fn update(&mut self, gradient: &mut [&mut [f64]], rate: f64, momentum: f64);

    /// Everything the next update depends on besides the gradient.
    fn export(&self) -> Snapshot;

    /// Takes up what [`Optimizer::export`] gave.
    ///
    /// # Errors
    ///
    /// If the snapshot belongs to other parameters or to another optimiser.
    fn import(&mut self, snapshot: &Snapshot) -> Result<(), Error>;
}

fn export_slices(snapshot: &mut Snapshot, name: &str, slices: &[Vec<f64>]) {
    for (i, slice) in slices.iter().enumerate() {
        snapshot.insert(format!("{name}.{i}"), slice.clone());
    }
}

fn import_slices(snapshot: &Snapshot, name: &str, slices: &mut [Vec<f64>]) -> Result<(), Error> {
    for (i, slice) in slices.iter_mut().enumerate() {
        let stored = snapshot.get(&format!("{name}.{i}"), slice.len())?;
        slice.copy_from_slice(stored);
    }
    Ok(())
}
