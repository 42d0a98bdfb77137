//! The variational lower bound.
//!
//! $$\ln p(v) \ge -\langle E\rangle_q + H(q) - \ln Z$$
//!
//! for every factorised $q$ over the free units; the gap is $KL(q\,\|\,p(h\mid v))$. Gaussian units that see
//! each other are one factor of $q$, with the covariance they have given everything else.

use crate::error::Error;
use crate::machine::{FreeReals, LayerId, Machine, State, pair_energy};
use crate::sampling::{self, Clamp};
use rayon::prelude::*;
use serde::Serialize;

/// $-\langle E\rangle_q + H(q)$ of each row: the bound without $\ln Z$. The free layers of `x`
/// hold means, and free Gaussian units have the covariance $\Lambda^{-1}$.
///
/// # Errors
///
/// If clamp or state do not fit the machine, or Gaussian units have no density.
pub fn unnormalised(machine: &Machine, clamp: &Clamp, x: &State) -> Result<Vec<f64>, Error> {
    sampling::bounds(machine, clamp, x)
}

/// The bound of a row, taken apart, in coordinates without offsets:
/// $-\langle E\rangle_q + H(q)$ is the sum of all fields.
///
/// With one visible and one hidden layer and $\mu_j = q(h_j = 1)$ these are the terms of the
/// variational bound of a general Boltzmann machine; $\ln Z$ is what is left to subtract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Terms {
    /// $A = \sum_{ik} v_i W_{ik}\mu_k$: between what is held and what is free.
    pub held_free: f64,
    /// $B = \tfrac12\sum_{j\ne k}\mu_j J_{jk}\mu_k$: among what is free.
    pub free_free: f64,
    /// $C = -\sum_j [\mu_j\ln\mu_j + (1-\mu_j)\ln(1-\mu_j)]$: the entropy; of Gaussian units
    /// $\tfrac12\ln\det 2\pi e\Lambda^{-1}$.
    pub entropy: f64,
    /// $\tfrac12 v^\top L v$: among what is held.
    pub held_held: f64,
    /// $b^\top v + c^\top\mu$, and what units own: the quadratic part of Gaussian ones.
    pub own: f64,
    /// $-E_0$.
    pub constant: f64,
}

impl Terms {
    /// The mean over rows, term by term; zero if there are none.
    #[must_use]
    pub fn mean(rows: &[Self]) -> Self {
        let n = rows.len().max(1) as f64;
        let mean = |term: fn(&Self) -> f64| rows.iter().map(term).sum::<f64>() / n;
        Self {
            held_free: mean(|t| t.held_free),
            free_free: mean(|t| t.free_free),
            entropy: mean(|t| t.entropy),
            held_held: mean(|t| t.held_held),
            own: mean(|t| t.own),
            constant: mean(|t| t.constant),
        }
    }

    /// Adds what the spread of free Gaussian units around their means adds: their entropy, their own
    /// energy and what they send each other.
    fn add_spread(&mut self, machine: &Machine, reals: &FreeReals) {
        let n = reals.units.len();
        let variances: Vec<f64> = match reals.density.variances() {
            Some(variances) => variances.collect(),
            None => reals.density.covariance().into_iter().step_by(n + 1).collect(),
        };
        let own = |(&(l, i), variance): (&(LayerId, usize), &f64)| {
            let layer = machine.layer(l);
            0.5 * layer.units.curvature(layer.own()).map_or(0.0, |own| own[i]) * variance
        };
        let own: f64 = reals.units.iter().zip(&variances).map(own).sum();
        self.entropy += reals.density.constant() + 0.5 * n as f64;
        self.own -= own;
        // Both together are n/2: the trace of precision times covariance.
        self.free_free += own - 0.5 * n as f64;
    }

    /// The bound without $\ln Z$.
    pub fn sum(&self) -> f64 {
        let Self { held_free, free_free, entropy, held_held, own, constant } = *self;
        held_free + free_free + entropy + held_held + own + constant
    }
}

/// What [`unnormalised`] adds up for each row. Layers count as held or free as a whole.
///
/// # Errors
///
/// If clamp or state do not fit the machine, or a layer is held in part.
pub fn terms(machine: &Machine, clamp: &Clamp, x: &State) -> Result<Vec<Terms>, Error> {
    clamp.check(machine, x.n_rows())?;
    x.check(machine)?;
    let plain = machine.without_offsets()?;
    let partly = |l: &LayerId| !clamp.holds_layer(*l) && !clamp.frees_layer(*l);
    if let Some(l) = machine.layer_ids().find(partly) {
        return Err(Error::Topology {
            model: "the terms of a bound",
            expected: "layers that are held or free as a whole",
            found: format!("layer `{}` is held in part", machine.layer(l).name),
        });
    }
    // Held in whole layers, so the same in every row.
    let reals = plain.free_reals(clamp, 1)?;
    let of_row = |row: usize| {
        let mut terms = Terms { constant: -plain.constant(), ..Terms::default() };
        reals.iter().for_each(|reals| terms.add_spread(&plain, reals));
        for c in plain.couplings() {
            let (a, b) = c.between;
            let energy = pair_energy(&c.weights, x.row(a, row), x.row(b, row));
            *match (clamp.holds_layer(a), clamp.holds_layer(b)) {
                (true, true) => &mut terms.held_held,
                (false, false) => &mut terms.free_free,
                _ => &mut terms.held_free,
            } += energy;
        }
        for l in plain.layer_ids() {
            let (layer, values) = (plain.layer(l), x.row(l, row));
            terms.own -= layer.energy(values);
            if clamp.holds_layer(l) || plain.is_gaussian(l) {
                continue;
            }
            let group = layer.units.group();
            for (u, unit) in values.chunks_exact(group).enumerate() {
                let own = layer.own().piece(u * group..(u + 1) * group);
                terms.entropy += layer.units.entropy(unit, own);
            }
        }
        terms
    };
    Ok((0..x.n_rows()).into_par_iter().map(of_row).collect())
}
