//! The machine of what is free, given what is held.
//!
//! With the held units at their values the energy of the free ones is again one over a graph of layers:
//! $$E(x_F \mid x_H) = E(x_H, 0) + \sum_l E_l(x_{F,l}) - \tfrac12\sum_{l,m} x_{F,l}^\top W_{lm} x_{F,m},
//!   \qquad b_F \to b_F + W_{FH}\, x_H.$$
//! Its $\ln Z$ is the logarithm of the sum over the free units, so whatever estimates a $\ln Z$ estimates
//! the probability of a row in which values are missing.

use super::coupling::{Coupling, Edges, Matrix, Triangle, Weights};
use super::{Clamp, Layer, LayerId, Machine, State};
use crate::error::Error;

/// The free units of one row as a machine of their own.
#[derive(Clone, Debug)]
pub struct Rest {
    /// The machine, with zero offsets; layers without a free unit are left out.
    pub machine: Machine,
    /// Where each of its layers comes from, and which entries of that layer it has.
    pub entries: Vec<(LayerId, Vec<usize>)>,
}

impl Rest {
    /// The free entries of one row of `x` as a state of this machine.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn state(&self, x: &State, row: usize) -> Result<State, Error> {
        let mut state = State::zeros(&self.machine, 1)?;
        for (l, (from, entries)) in self.machine.layer_ids().zip(&self.entries) {
            let values: Vec<f64> = entries.iter().map(|&i| x.row(*from, row)[i]).collect();
            state.set_row(l, 0, &values)?;
        }
        Ok(state)
    }
}

impl Machine {
    /// The machine of the units that `clamp` leaves free in a row of `x`, given the values of those it
    /// holds; `None` where nothing is free.
    ///
    /// # Errors
    ///
    /// If clamp or state do not fit the machine.
    pub fn rest(&self, clamp: &Clamp, x: &State, row: usize) -> Result<Option<Rest>, Error> {
        x.check(self)?;
        clamp.check(self, x.n_rows())?;
        let folded = self.without_offsets()?;
        let mut held = State::zeros(&folded, 1)?;
        let mut entries = Vec::new();
        for l in folded.layer_ids() {
            let group = folded.layer(l).units.group();
            let is_free = |i: &usize| !clamp.holds(l, row, i / group);
            let free: Vec<usize> = (0..folded.layer(l).len()).filter(is_free).collect();
            let mut values = x.row(l, row).to_vec();
            free.iter().for_each(|&i| values[i] = 0.0);
            held.set_row(l, 0, &values)?;
            entries.push((l, free));
        }
        let fields: Vec<Vec<f64>> =
            folded.layer_ids().map(|l| folded.theta(l, &held, 0)).collect::<Result<_, _>>()?;
        let constant = folded.energy_of_row(&held, 0);
        entries.retain(|(_, free)| !free.is_empty());
        if entries.is_empty() {
            return Ok(None);
        }
        let layers = entries.iter().map(|(l, free)| part(folded.layer(*l), &fields[l.0], free));
        let couplings = folded.couplings.iter().filter_map(|c| restricted(c, &entries));
        let couplings: Vec<Coupling> = couplings.collect::<Result<_, _>>()?;
        let mut machine = Self::new(layers.collect(), couplings)?;
        machine.add_to_constant(constant);
        Ok(Some(Rest { machine, entries }))
    }
}

/// Some entries of a layer, with what they receive from those that are held as their bias.
fn part(layer: &Layer, field: &[f64], free: &[usize]) -> Layer {
    let own = layer.own.chunks_exact(layer.len());
    Layer {
        bias: free.iter().map(|&i| field[i]).collect(),
        own: own.flat_map(|row| free.iter().map(|&i| row[i])).collect(),
        offset: vec![0.0; free.len()],
        ..layer.clone()
    }
}

/// A coupling between the entries that are left; nothing where one end has none.
fn restricted(c: &Coupling, entries: &[(LayerId, Vec<usize>)]) -> Option<Result<Coupling, Error>> {
    let place = |l: LayerId| entries.iter().position(|(from, _)| *from == l);
    let (a, b) = (place(c.between.0)?, place(c.between.1)?);
    let (rows, columns) = (&entries[a].1, &entries[b].1);
    let (a, b) = (LayerId(a), LayerId(b));
    Some(match &c.weights {
        Weights::Between(w) => {
            Matrix::from_fn(rows.len(), columns.len(), |i, j| w.at(rows[i], columns[j]))
                .map(|w| Coupling::between(a, b, w))
        }
        Weights::Lateral(t) => Triangle::from_fn(rows.len(), |i, j| t.at(rows[i], rows[j]))
            .map(|t| Coupling::lateral(a, t)),
        Weights::Sparse(edges) => {
            let left = |i: usize| rows.binary_search(&i).ok();
            let edges = edges.iter().filter_map(|(i, j, w)| Some((left(i)?, left(j)?, w)));
            Edges::new(rows.len(), edges).map(|edges| Coupling::sparse(a, edges))
        }
    })
}
