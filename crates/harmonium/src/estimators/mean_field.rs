//! The data side by mean field: a lower bound is climbed instead of the likelihood.
//!
//! With $q$ held at its fixed point the gradient of the bound is $\langle s\rangle_q - \langle
//! s\rangle_\text{model}$ (Salakhutdinov & Hinton 2009).

use super::{Context, Deferring, Estimator, Side, normalise};
use crate::error::Error;
use crate::machine::{LayerId, Meaning, State};
use crate::moments::Moments;
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
        let graph = sampler.graph();
        let spreads = |l: LayerId| graph.is_gaussian(l) || graph.layer(l).units.sums_own();
        let real = |l: &LayerId| spreads(*l) && !clamp.holds_layer(*l);
        let free: Vec<LayerId> = graph.layer_ids().filter(real).collect();
        if free.iter().any(|&l| !clamp.frees_layer(l)) {
            // Means of real units and of whole numbers have a spread, which here depends on what each row holds.
            free.iter().for_each(|l| x.layers[l.0].meaning = Meaning::Values);
            let machine = sampler.machine();
            let mut moments = Moments::zeros(machine);
            moments.add(machine, &x, &self.weights);
            moments.add_spread(machine, &x, clamp, &self.weights)?;
            return Ok(Side::Moments(moments));
        }
        Ok(Side::Particles { state: self.particles.insert(x), weights: &self.weights })
    }

    fn convergence(&self) -> Option<Convergence> {
        self.convergence
    }
}
