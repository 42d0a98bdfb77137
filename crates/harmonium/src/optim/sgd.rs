//! Gradient ascent with momentum: $\Delta \leftarrow \alpha\Delta + \eta g$ (Hinton 2010).

use super::{Optimizer, export_moments, import_moments};
use crate::error::Error;
use crate::estimators::Snapshot;
use crate::machine::Machine;
use crate::moments::Moments;

/// Plain ascent with momentum.
#[derive(Clone, Debug)]
pub struct Sgd {
    velocity: Moments,
}

impl Sgd {
    /// Starts at rest.
    pub fn new(machine: &Machine) -> Self {
        Self { velocity: Moments::zeros(machine) }
    }

    /// Goes on from the last update.
    pub(crate) fn from_velocity(velocity: Moments) -> Self {
        Self { velocity }
    }

    /// The last update.
    pub(crate) fn into_velocity(self) -> Moments {
        self.velocity
    }
}

impl Optimizer for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn update(&mut self, gradient: &Moments, rate: f64, momentum: f64) -> &Moments {
        for (v, g) in self.velocity.slices_mut().into_iter().zip(gradient.slices()) {
            v.iter_mut().zip(g).for_each(|(v, g)| *v = momentum * *v + rate * g);
        }
        &self.velocity
    }

    fn export(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        export_moments(&mut snapshot, "velocity", &self.velocity);
        snapshot
    }

    fn import(&mut self, machine: &Machine, snapshot: &Snapshot) -> Result<(), Error> {
        self.velocity = Moments::zeros(machine);
        import_moments(snapshot, "velocity", &mut self.velocity)
    }
}
