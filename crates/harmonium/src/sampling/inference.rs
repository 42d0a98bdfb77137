//! What the hidden units say about the data: exactly where their posterior factorises, else by
//! mean field.

use super::mean_field::visit_means;
use super::{Clamp, Convergence, MeanField, Sampler};
use crate::error::Error;
use crate::machine::{LayerId, Machine, State};
use rayon::prelude::*;

/// How the means of the free units were found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inference {
    /// In closed form: given the data the units are independent.
    Exact,
    /// By mean field, which went like this.
    MeanField(Convergence),
}

impl Sampler {
    /// Replaces the free layers of every row by their means given what is held.
    ///
    /// # Errors
    ///
    /// If clamp or state do not fit the machine.
    pub fn infer(
        &self,
        clamp: &Clamp,
        x: &mut State,
        settings: MeanField,
    ) -> Result<Inference, Error> {
        self.check(clamp, x)?;
        let free = free_layers(self.graph(), clamp);
        let whole = free.iter().all(|&l| clamp.frees_layer(l));
        if whole && posterior_factorises(self.graph(), clamp) {
            self.average_block(clamp, x, &free);
            return Ok(Inference::Exact);
        }
        self.mean_field(clamp, x, settings).map(Inference::MeanField)
    }

    /// The mean of each unit of layer `l` given the values of all others, row by row; also where units
    /// of the layer see each other.
    ///
    /// # Errors
    ///
    /// If the state does not fit the machine.
    pub(crate) fn unit_means(&self, x: &mut State, l: LayerId) -> Result<Vec<f64>, Error> {
        x.check(self.graph())?;
        let machine = self.machine();
        let sees_alike = self.engine().layers()[l.0].joint.is_some();
        let mut theta = if machine.has_lateral(l) || sees_alike {
            let rows = (0..x.n_rows()).into_par_iter().map(|row| machine.theta(l, x, row));
            rows.collect::<Result<Vec<_>, Error>>()?.concat()
        } else {
            self.natural_parameters(x, l)
        };
        let layer = machine.layer(l);
        for theta in theta.chunks_exact_mut(layer.len()) {
            layer.units.mean_in_place(theta, layer.own());
        }
        Ok(theta)
    }

    /// A copy of `x` with the free units of `layers`, which must not see each other, at their means
    /// given all the rest. Layers with lateral couplings and Gaussian units that see each other keep their
    /// values: there a mean given the others' means would be another thing.
    ///
    /// # Errors
    ///
    /// If clamp or state do not fit the machine.
    pub fn conditional_means(
        &self,
        clamp: &Clamp,
        x: &State,
        layers: &[LayerId],
    ) -> Result<State, Error> {
        self.check(clamp, x)?;
        let alone = |l: &LayerId| {
            !self.graph().has_lateral(*l) && self.engine().layers()[l.0].joint.is_none()
        };
        let layers: Vec<LayerId> = layers.iter().copied().filter(alone).collect();
        let mut means = x.clone();
        visit_means(self.engine(), clamp, &mut means, &layers);
        Ok(means)
    }
}

/// Whether the layers that are not held see neither each other nor themselves, so that their
/// posterior factorises.
pub fn posterior_factorises(machine: &Machine, clamp: &Clamp) -> bool {
    let free = || machine.layer_ids().filter(|&l| !clamp.holds_layer(l));
    free().all(|l| free().all(|m| !machine.coupled(l, m)))
}

pub(crate) fn free_layers(machine: &Machine, clamp: &Clamp) -> Vec<LayerId> {
    machine.layer_ids().filter(|&l| !clamp.holds_layer(l)).collect()
}
