//! Posterior, free energy and pseudo-likelihood by one product, where hidden units are independent given the data.

use super::Look;
use crate::error::Error;
use crate::evaluation::pseudo;
use crate::machine::{Batch, LayerId, Machine, State};
use crate::sampling::{Clamp, Sampler, free_layers, posterior_factorises};

/// A machine whose hidden units are independent given the data, without its offsets: one
/// product gives posterior, free energy and pseudo-likelihood.
pub(super) struct ClosedForm {
    folded: Machine,
    hidden: Vec<LayerId>,
    has_pseudo: bool,
}

impl ClosedForm {
    pub(super) fn of(machine: &Machine) -> Result<Option<Self>, Error> {
        let clamp = Clamp::visible(machine);
        let visible = machine.visible_layers();
        let coupled = |&l: &LayerId| visible.iter().any(|&m| machine.coupled(l, m));
        if !posterior_factorises(machine, &clamp) || visible.iter().any(coupled) {
            return Ok(None);
        }
        let finite = |&l: &LayerId| machine.layer(l).units.is_finite();
        Ok(Some(Self {
            folded: machine.without_offsets()?,
            hidden: free_layers(machine, &clamp),
            has_pseudo: visible.iter().all(finite),
        }))
    }

    /// $\theta$ of each hidden layer.
    pub(super) fn thetas(&self, sampler: &Sampler, x: &mut State) -> Vec<Vec<f64>> {
        self.hidden.iter().map(|&l| sampler.natural_parameters(x, l)).collect()
    }

    /// The free energy of each row.
    pub(super) fn free_energies(
        &self,
        machine: &Machine,
        thetas: &[Vec<f64>],
        x: &State,
    ) -> Vec<f64> {
        let of_row = |row: usize| {
            // With all hidden units at zero only the visible layers have an energy.
            let visible = machine.visible_layers().into_iter();
            let own: f64 = visible.map(|l| self.folded.layer(l).energy(x.row(l, row))).sum();
            let sums = self.hidden.iter().zip(thetas).map(|(&l, theta)| {
                let layer = self.folded.layer(l);
                let theta = &theta[row * layer.len()..(row + 1) * layer.len()];
                layer.units.log_partition(theta, layer.own())
            });
            self.folded.constant() + own - sums.sum::<f64>()
        };
        (0..x.n_rows()).map(of_row).collect()
    }

    /// Adds free energies and pseudo-likelihoods of a batch; returns the posterior means.
    pub(super) fn look(
        &self,
        sampler: &Sampler,
        batch: &Batch,
        visit: pseudo::Visit,
        look: &mut Look,
    ) -> Result<State, Error> {
        let machine = sampler.machine();
        let mut x = batch.to_state(machine)?;
        let thetas = self.thetas(sampler, &mut x);
        look.energies.extend(self.free_energies(machine, &thetas, &x));
        if self.has_pseudo {
            let logs = pseudo::given_thetas(&self.folded, &self.hidden, &thetas, &x, visit)?;
            look.pseudo.get_or_insert_default().extend(logs);
        } else {
            look.pseudo = None;
        }
        for (&l, theta) in self.hidden.iter().zip(thetas) {
            x.set_means(l, theta, |theta| {
                let layer = machine.layer(l);
                for row in theta.chunks_exact_mut(layer.len()) {
                    layer.units.mean_in_place(row, layer.own());
                }
            });
        }
        Ok(x)
    }
}
