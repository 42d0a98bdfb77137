//! Adam (Kingma & Ba 2015), with the momentum schedule as its first decay.

use super::{Optimizer, export_moments, import_moments};
use crate::error::Error;
use crate::estimators::Snapshot;
use crate::machine::Machine;
use crate::moments::Moments;

const SECOND_DECAY: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Steps of a size that does not depend on the size of the gradient.
#[derive(Clone, Debug)]
pub struct Adam {
    first: Moments,
    second: Moments,
    update: Moments,
    /// $\prod_t \alpha_t$ and $\prod_t 0.999$: what the averages still lack.
    missing: [f64; 2],
}

impl Adam {
    /// Starts with empty averages.
    pub fn new(machine: &Machine) -> Self {
        let zeros = Moments::zeros(machine);
        Self { first: zeros.clone(), second: zeros.clone(), update: zeros, missing: [1.0; 2] }
    }
}

impl Optimizer for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn update(&mut self, gradient: &Moments, rate: f64, momentum: f64) -> &Moments {
        self.missing = [self.missing[0] * momentum, self.missing[1] * SECOND_DECAY];
        let [a, b] = self.missing.map(|m| 1.0 - m);
        let averages = self.first.slices_mut().into_iter().zip(self.second.slices_mut());
        let outs = self.update.slices_mut().into_iter().zip(gradient.slices());
        for ((first, second), (out, gradient)) in averages.zip(outs) {
            for (i, &g) in gradient.iter().enumerate() {
                first[i] = momentum * first[i] + (1.0 - momentum) * g;
                second[i] = SECOND_DECAY * second[i] + (1.0 - SECOND_DECAY) * g * g;
                out[i] = rate * (first[i] / a) / ((second[i] / b).sqrt() + EPSILON);
            }
        }
        &self.update
    }

    fn export(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        export_moments(&mut snapshot, "first", &self.first);
        export_moments(&mut snapshot, "second", &self.second);
        snapshot.insert("missing", self.missing.to_vec());
        snapshot
    }

    fn import(&mut self, machine: &Machine, snapshot: &Snapshot) -> Result<(), Error> {
        *self = Self::new(machine);
        import_moments(snapshot, "first", &mut self.first)?;
        import_moments(snapshot, "second", &mut self.second)?;
        self.missing.copy_from_slice(snapshot.get("missing", 2)?);
        Ok(())
    }
}
