//! The data side by mean field: a lower bound is climbed instead of the likelihood.
//!
//! With $q$ held at its fixed point the gradient of the bound is $\langle s\rangle_q - \langle
//! s\rangle_\text{model}$ (Salakhutdinov & Hinton 2009).

use super::{Context, Deferring, Estimator, Side, normalise};
use crate::error::Error;
use crate::machine::State;
use crate::sampling::{Convergence, MeanField};

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

impl Deferring for MeanFieldPosterior {}

impl Estimator for MeanFieldPosterior {
    fn name(&self) -> &'static str {
        "mean-field"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { sampler, batch, .. } = *context;
        let clamp = context.batch.clamp();
        let mut x = batch.to_state(sampler.graph())?;
        sampler.start_outwards(clamp, &mut x)?;
        self.convergence = Some(sampler.mean_field(clamp, &mut x, self.settings)?);
        normalise(batch, &mut self.weights);
        Ok(Side::Particles { state: self.particles.insert(x), weights: &self.weights })
    }

    fn convergence(&self) -> Option<Convergence> {
        self.convergence
    }
}
