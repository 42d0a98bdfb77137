//! The model side of pseudo-likelihood (Besag 1975): no chains, no sums over states.
//!
//! For a fully visible machine $\ln PL = \sum_i \ln p(x_i \mid x_{\setminus i})$ has the slopes
//! $$\frac{\partial \ln PL}{\partial b_i} = x_i - m_i,\qquad
//!   \frac{\partial \ln PL}{\partial J_{ij}} = (x_i - m_i)\tilde x_j + (x_j - m_j)\tilde x_i,\qquad
//!   m_i = E[x_i \mid x_{\setminus i}].$$
//! Beside the data's own moments $x_i$ and $\tilde x_i\tilde x_j$ the model side is therefore $m_i$
//! and $\tilde m_i\tilde x_j + \tilde x_i\tilde m_j - \tilde x_i\tilde x_j
//! = \tilde m_i\tilde m_j - (m_i - x_i)(m_j - x_j)$. Where the data come from a machine of this
//! kind its maximum is at that machine, as that of the likelihood is.

use super::{Context, Deferring, Estimator, Side, normalise};
use crate::error::Error;
use crate::machine::{Machine, Meaning, Role, State};
use crate::moments::Moments;

/// Every unit given all the others, at the data.
#[derive(Clone, Debug, Default)]
pub struct PseudoLikelihood;

impl PseudoLikelihood {
    /// For a machine of discrete visible units.
    ///
    /// # Errors
    ///
    /// If there are hidden or real-valued units.
    pub fn new(machine: &Machine) -> Result<Self, Error> {
        let fits = |l: &&crate::machine::Layer| l.role == Role::Visible && l.units.is_finite();
        match machine.layers().iter().find(|l| !fits(l)) {
            None => Ok(Self),
            Some(layer) => Err(Error::Topology {
                model: "learning by pseudo-likelihood",
                expected: "a fully visible machine of discrete units",
                found: format!("layer `{}` is hidden or real-valued", layer.name),
            }),
        }
    }
}

impl Deferring for PseudoLikelihood {}

impl Estimator for PseudoLikelihood {
    fn name(&self) -> &'static str {
        "pseudo"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let (machine, batch) = (context.sampler.machine(), context.batch);
        let mut weights = Vec::new();
        normalise(batch, &mut weights);
        let x = batch.to_state(machine)?;
        let mut means = State::zeros(machine, x.n_rows())?;
        let mut misses = State::zeros(machine, x.n_rows())?;
        for row in 0..x.n_rows() {
            for l in machine.layer_ids() {
                let layer = machine.layer(l);
                let mut mean = machine.theta(l, &x, row)?;
                layer.units.mean_in_place(&mut mean, layer.own());
                means.set_row(l, row, &mean)?;
                // Moments subtract the offset: what is left is the difference itself.
                let entries = mean.iter().zip(x.row(l, row)).zip(&layer.offset);
                let miss: Vec<f64> = entries.map(|((m, x), o)| m - x + o).collect();
                misses.set_row(l, row, &miss)?;
            }
        }
        for l in machine.layer_ids().filter(|&l| machine.layer(l).units.sums_own()) {
            means.layers[l.0].meaning = Meaning::Means;
        }
        let mut model = Moments::zeros(machine);
        model.add(machine, &means, &weights);
        let mut products = Moments::zeros(machine);
        products.add(machine, &misses, &weights);
        products.bias.iter_mut().chain(&mut products.own).for_each(|b| b.fill(0.0));
        Ok(Side::Moments(model.minus(&products)))
    }
}
