//! What is added to the gradient of the likelihood: weight decay, sparsity, norms.

use crate::machine::{Coupling, LayerId, Machine, Role, Weights};
use crate::moments::Moments;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Pulls the activity of hidden units towards a target (Lee et al. 2008; Hinton 2010).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sparsity {
    /// Wanted mean of the hidden units.
    pub target: f64,
    /// How strongly they are pulled.
    pub cost: f64,
    /// Decay of the running mean.
    pub decay: f64,
}

impl Default for Sparsity {
    fn default() -> Self {
        Self { target: 0.1, cost: 1e-3, decay: 0.9 }
    }
}

/// Penalties on weights (never on biases) and on activity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Penalties {
    /// $\lambda$ of $-\lambda\sum|W|$.
    pub l1: f64,
    /// $\lambda$ of $-\tfrac\lambda2\sum W^2$.
    pub l2: f64,
    /// The sparsity target, if there is one.
    pub sparsity: Option<Sparsity>,
    /// Largest norm of the weights into a unit of the second layer of a coupling.
    pub max_norm: Option<f64>,
    /// Largest norm of the whole gradient.
    pub clip: Option<f64>,
}

impl Penalties {
    /// Adds the slopes of weight decay to those of the weights of each coupling, which are given as they
    /// are learned; none where there is no decay.
    pub(crate) fn add_decay(&self, weights: &[Cow<'_, [f64]>], gradient: &mut Moments) {
        for (weights, g) in weights.iter().zip(&mut gradient.weights) {
            for (g, w) in g.iter_mut().zip(weights.iter()) {
                let sign = f64::from(i8::from(*w > 0.0) - i8::from(*w < 0.0));
                *g -= self.l2 * w + self.l1 * sign;
            }
        }
    }

    /// Adds the slopes of the sparsity target, if there is one. `activity` is the running mean of each
    /// layer, `centered_mean` the data-phase mean of $x - \mu$.
    pub(crate) fn add_sparsity(
        &self,
        machine: &Machine,
        activity: &[Vec<f64>],
        centered_mean: &[Vec<f64>],
        gradient: &mut Moments,
    ) {
        if let Some(sparsity) = self.sparsity {
            sparsity.add_to(machine, activity, centered_mean, gradient);
        }
    }

    /// Shrinks a gradient whose norm is too large.
    pub(crate) fn clip(&self, gradient: &mut Moments) {
        if let Some(limit) = self.clip {
            let norm = gradient.norm();
            if norm > limit {
                let scale = limit / norm;
                gradient.slices_mut().into_iter().flatten().for_each(|g| *g *= scale);
            }
        }
    }

    /// Shrinks the weights into units whose norm is too large; `learned` gives the weights of each coupling as
    /// they are learned.
    pub(crate) fn project(
        &self,
        machine: &mut Machine,
        learned: impl Fn(&Machine) -> Vec<Cow<'_, [f64]>>,
    ) {
        let Some(limit) = self.max_norm else { return };
        let scales = |(w, c): (Cow<'_, [f64]>, &Coupling)| -> Vec<f64> {
            let Weights::Between(shape) = &c.weights else { return Vec::new() };
            let mut squares = vec![0.0; shape.shape().1];
            for row in w.chunks_exact(squares.len()) {
                squares.iter_mut().zip(row).for_each(|(s, w)| *s += w * w);
            }
            squares.iter().map(|s: &f64| (limit / s.sqrt()).min(1.0)).collect()
        };
        let scales: Vec<Vec<f64>> =
            learned(machine).into_iter().zip(machine.couplings()).map(scales).collect();
        for (c, scales) in machine.couplings_mut().iter_mut().zip(&scales) {
            for row in c.weights.entries_mut().chunks_exact_mut(scales.len().max(1)) {
                row.iter_mut().zip(scales).for_each(|(w, s)| *w *= s);
            }
        }
    }
}

impl Sparsity {
    /// The slope of the mean activity along a bias is taken as 1, along a weight as the mean of
    /// the centered unit at its other end.
    fn add_to(
        self,
        machine: &Machine,
        activity: &[Vec<f64>],
        centered_mean: &[Vec<f64>],
        gradient: &mut Moments,
    ) {
        let pull = |l: LayerId| -> Option<Vec<f64>> {
            let hidden =
                machine.layer(l).role == Role::Hidden && machine.layer(l).units.is_finite();
            hidden.then(|| activity[l.0].iter().map(|q| self.cost * (self.target - q)).collect())
        };
        for l in machine.layer_ids() {
            if let Some(pull) = pull(l) {
                gradient.bias[l.0].iter_mut().zip(&pull).for_each(|(g, p)| *g += p);
            }
        }
        for (c, g) in machine.couplings().iter().zip(&mut gradient.weights) {
            let (a, b) = c.between;
            if c.is_lateral() {
                continue;
            }
            let n = centered_mean[b.0].len();
            let (pull_a, pull_b) = (pull(a), pull(b));
            for (i, row) in g.chunks_exact_mut(n).enumerate() {
                for (j, g) in row.iter_mut().enumerate() {
                    *g += pull_b.as_ref().map_or(0.0, |p| p[j] * centered_mean[a.0][i]);
                    *g += pull_a.as_ref().map_or(0.0, |p| p[i] * centered_mean[b.0][j]);
                }
            }
        }
    }
}
