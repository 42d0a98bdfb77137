//! The data side by mean field: a lower bound is climbed instead of the likelihood.
//!
//! With $q$ held at its fixed point the gradient of the bound is $\langle s\rangle_q - \langle
//! s\rangle_\text{model}$ (Salakhutdinov & Hinton 2009).

use super::{Context, Estimator, Side, normalise, particles};
use crate::error::Error;
use crate::machine::State;
use crate::sampling::{Convergence, MeanField, mean_field, start_outwards};

/// Means of the factorised posterior of each sample.
#[derive(Clone, Debug, Default)]
pub struct MeanFieldPosterior {
    settings: MeanField,
    particles: Option<State>,
    weights: Vec<f64>,
    convergence: Option<Convergence>,
}

impl MeanFieldPosterior {
    /// Stops as `settings` say.
    pub fn new(settings: MeanField) -> Self {
        Self { settings, ..Self::default() }
    }
}

impl Estimator for MeanFieldPosterior {
    fn name(&self) -> &'static str {
        "mean-field"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { machine, engine, batch, .. } = *context;
        let clamp = batch.clamp();
        let mut x = batch.to_state(machine)?;
        start_outwards(machine, engine, clamp, &mut x)?;
        self.convergence = Some(mean_field(machine, engine, clamp, &mut x, self.settings)?);
        normalise(batch, &mut self.weights);
        Ok(particles(self.particles.insert(x), &self.weights))
    }

    fn convergence(&self) -> Option<Convergence> {
        self.convergence
    }
}
