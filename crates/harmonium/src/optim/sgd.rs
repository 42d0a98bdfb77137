//! Gradient ascent with momentum: $\Delta \leftarrow \alpha\Delta + \eta g$ (Hinton 2010).

use super::{Optimizer, export_slices, import_slices};
use crate::error::Error;
use crate::estimators::Snapshot;

/// Plain ascent with momentum.
#[derive(Clone, Debug)]
pub struct Sgd {
    velocity: Vec<Vec<f64>>,
}

impl Sgd {
    /// Starts at rest, for slices of parameters of these lengths.
    pub fn new(lengths: impl IntoIterator<Item = usize>) -> Self {
        Self { velocity: lengths.into_iter().map(|n| vec![0.0; n]).collect() }
    }

    /// What [`Optimizer::export`] would give for this velocity, without a copy of it.
    pub(crate) fn snapshot(velocity: Vec<Vec<f64>>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (i, slice) in velocity.into_iter().enumerate() {
            snapshot.insert(format!("velocity.{i}"), slice);
        }
        snapshot
    }

    /// The last update.
    pub(crate) fn velocity(&self) -> &[Vec<f64>] {
        &self.velocity
    }
}

impl Optimizer for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn update(&mut self, gradient: &mut [&mut [f64]], rate: f64, momentum: f64) {
        for (velocity, gradient) in self.velocity.iter_mut().zip(gradient) {
            for (v, g) in velocity.iter_mut().zip(gradient.iter_mut()) {
                *v = momentum * *v + rate * *g;
                *g = *v;
            }
        }
    }

    fn export(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        export_slices(&mut snapshot, "velocity", &self.velocity);
        snapshot
    }

    fn import(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        import_slices(snapshot, "velocity", &mut self.velocity)
    }
}
