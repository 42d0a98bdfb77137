//! Adam (Kingma & Ba 2015), with the momentum schedule as its first decay.

use super::{Optimizer, export_slices, import_slices};
use crate::error::Error;
use crate::estimators::Snapshot;

const SECOND_DECAY: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Steps of a size that does not depend on the size of the gradient.
#[derive(Clone, Debug)]
pub struct Adam {
    first: Vec<Vec<f64>>,
    second: Vec<Vec<f64>>,
    /// $\prod_t \alpha_t$ and $\prod_t 0.999$: what the averages still lack.
    missing: [f64; 2],
}

impl Adam {
    /// Starts with empty averages, for slices of parameters of these lengths.
    pub fn new(lengths: impl IntoIterator<Item = usize>) -> Self {
        let zeros: Vec<Vec<f64>> = lengths.into_iter().map(|n| vec![0.0; n]).collect();
        Self { first: zeros.clone(), second: zeros, missing: [1.0; 2] }
    }
}

impl Optimizer for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn update(&mut self, gradient: &mut [&mut [f64]], rate: f64, momentum: f64) {
        self.missing = [self.missing[0] * momentum, self.missing[1] * SECOND_DECAY];
        let [a, b] = self.missing.map(|m| 1.0 - m);
        let averages = self.first.iter_mut().zip(&mut self.second);
        for ((first, second), gradient) in averages.zip(gradient) {
            for (i, g) in gradient.iter_mut().enumerate() {
                first[i] = momentum * first[i] + (1.0 - momentum) * *g;
                second[i] = SECOND_DECAY * second[i] + (1.0 - SECOND_DECAY) * *g * *g;
                *g = rate * (first[i] / a) / ((second[i] / b).sqrt() + EPSILON);
            }
        }
    }

    fn export(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        export_slices(&mut snapshot, "first", &self.first);
        export_slices(&mut snapshot, "second", &self.second);
        snapshot.insert("missing", self.missing.to_vec());
        snapshot
    }

    fn import(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        import_slices(snapshot, "first", &mut self.first)?;
        import_slices(snapshot, "second", &mut self.second)?;
        self.missing.copy_from_slice(snapshot.get("missing", 2)?);
        Ok(())
    }
}
