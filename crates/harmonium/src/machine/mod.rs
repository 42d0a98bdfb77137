//! A pairwise energy over a graph of layers.
//!
//! $$E(x) = E_0 + \sum_l E_l(x_l) - \sum_{(l,m)} \tilde x_l^\top W_{lm} \tilde x_m
//!          - \tfrac12 \sum_l \tilde x_l^\top J_l \tilde x_l, \qquad \tilde x_l = x_l - \mu_l$$
//!
//! Two coupled layers are an RBM, a chain is a DBM, a tree is a multimodal DBM, and a layer
//! coupled to itself ($J_l$) gives the general Boltzmann machine. The offsets $\mu$ are part of
//! the energy, so every sampler, estimator and evaluator is centered without knowing it
//! (Montavon & Müller 2012; Melchior, Fischer & Wiskott, JMLR 17, 2016).

mod base;
mod batch;
mod clamp;
mod coupling;
mod given;
mod layer;
mod memory;
mod reals;
mod rewrite;
mod schedule;
mod state;

pub use base::Base;
pub use batch::Batch;
pub use clamp::Clamp;
pub use coupling::{Coupling, Edges, Matrix, Triangle, Weights};
pub use given::Rest;
pub use layer::{Layer, LayerId, Role};
pub use state::State;

pub(crate) use coupling::row_range;
pub(crate) use layer::own_energy;
pub(crate) use memory::{MOST_STEPS, check_memory, filled, fits_memory, share_of_memory};
pub(crate) use reals::FreeReals;
pub(crate) use state::{LayerState, Meaning};

use crate::error::Error;
use harmonium_kernels::dense::{add_scaled, dot};
use std::collections::BTreeSet;

/// Layers and the couplings between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    layers: Vec<Layer>,
    couplings: Vec<Coupling>,
    constant: f64,
}

impl Machine {
    /// Builds a machine, checking every parameter against the graph.
    ///
    /// # Errors
    ///
    /// Names the first layer or coupling that is empty, double, of the wrong shape, not finite,
    /// or lateral inside one unit.
    pub fn new(layers: Vec<Layer>, couplings: Vec<Coupling>) -> Result<Self, Error> {
        if layers.is_empty() {
            return Err(Error::Empty { what: "the machine".into() });
        }
        let mut names = BTreeSet::new();
        for layer in &layers {
            layer.check()?;
            if !names.insert(layer.name.as_str()) {
                return Err(Error::Duplicate { what: format!("layer `{}`", layer.name) });
            }
        }
        let mut pairs = BTreeSet::new();
        for coupling in &couplings {
            check_coupling(coupling, &layers)?;
            let (a, b) = coupling.between;
            if !pairs.insert((a.min(b), a.max(b))) {
                let (a, b) = (&layers[a.0].name, &layers[b.0].name);
                return Err(Error::Duplicate { what: format!("the coupling of `{a}` and `{b}`") });
            }
        }
        Ok(Self { layers, couplings, constant: 0.0 })
    }

    /// The same machine with $E_0$ set.
    ///
    /// # Errors
    ///
    /// If the constant is not finite.
    pub fn with_constant(mut self, constant: f64) -> Result<Self, Error> {
        if !constant.is_finite() {
            let (place, what) = ("the machine".into(), "constant");
            return Err(Error::ParameterValue { place, what, entry: 0, value: constant });
        }
        self.constant = constant;
        Ok(self)
    }

    /// The layers, in the order they were given.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The couplings, in the order they were given.
    pub fn couplings(&self) -> &[Coupling] {
        &self.couplings
    }

    /// $E_0$: what makes energies comparable after a change of coordinates.
    pub fn constant(&self) -> f64 {
        self.constant
    }

    /// One layer.
    pub fn layer(&self, l: LayerId) -> &Layer {
        &self.layers[l.0]
    }

    /// The numbers of all layers.
    pub fn layer_ids(&self) -> impl DoubleEndedIterator<Item = LayerId> + use<> {
        (0..self.layers.len()).map(LayerId)
    }

    /// The layers that data goes into.
    pub fn visible_layers(&self) -> Vec<LayerId> {
        self.layer_ids().filter(|&l| self.layer(l).role == Role::Visible).collect()
    }

    /// All others.
    pub(crate) fn hidden_layers(&self) -> Vec<LayerId> {
        self.layer_ids().filter(|&l| self.layer(l).role == Role::Hidden).collect()
    }

    /// Whether units of `l` see units of `m`; with `l == m`, whether there is a lateral coupling.
    pub fn coupled(&self, l: LayerId, m: LayerId) -> bool {
        self.couplings.iter().any(|c| c.between == (l, m) || c.between == (m, l))
    }

    /// Whether the units of `l` are coupled with each other.
    pub fn has_lateral(&self, l: LayerId) -> bool {
        self.coupled(l, l)
    }

    /// The largest parameter, without its sign; a precision counts as its inverse where that is larger.
    pub(crate) fn largest_parameter(&self) -> f64 {
        let largest = |xs: &[f64]| xs.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let own = |x: &f64| if *x == 0.0 { 0.0 } else { x.abs().max(1.0 / x.abs()) };
        let layers = self.layers.iter().map(|l| {
            let own = l.own.iter().map(own).fold(0.0, f64::max);
            largest(&l.bias).max(largest(&l.offset)).max(own)
        });
        let couplings = self.couplings.iter().map(|c| largest(c.weights.entries()));
        layers.chain(couplings).fold(self.constant.abs(), f64::max)
    }

    /// `value`, which was computed of this machine, if it is finite.
    pub(crate) fn check_finite(&self, what: &str, value: f64) -> Result<f64, Error> {
        if value.is_finite() {
            return Ok(value);
        }
        Err(Error::Overflow { what: what.into(), value, largest: self.largest_parameter() })
    }

    /// Number of parameters: biases, own parameters of units and weights.
    pub fn n_parameters(&self) -> usize {
        let own = self.layers.iter().map(|l| l.bias.len() + l.own.len()).sum::<usize>();
        own + self.couplings.iter().map(|c| c.weights.entries().len()).sum::<usize>()
    }

    /// $E(x)$ of each row.
    ///
    /// # Errors
    ///
    /// If the state belongs to a machine of another shape.
    pub fn energies(&self, x: &State) -> Result<Vec<f64>, Error> {
        x.check(self)?;
        Ok((0..x.n_rows()).map(|row| self.energy_of_row(x, row)).collect())
    }

    /// $E(x)$ of one row.
    pub(crate) fn energy_of_row(&self, x: &State, row: usize) -> f64 {
        let own: f64 = self.layer_ids().map(|l| self.layer(l).energy(x.row(l, row))).sum();
        let pairs: f64 = self
            .couplings
            .iter()
            .map(|c| {
                let (a, b) =
                    (self.centered(c.between.0, x, row), self.centered(c.between.1, x, row));
                pair_energy(&c.weights, &a, &b)
            })
            .sum();
        self.constant + own - pairs
    }

    /// $\theta_l = b_l + \sum_m W_{lm}\tilde x_m + J_l \tilde x_l$ in one row: bias plus the input
    /// from every coupled layer.
    ///
    /// # Errors
    ///
    /// If the state belongs to a machine of another shape.
    pub fn theta(&self, l: LayerId, x: &State, row: usize) -> Result<Vec<f64>, Error> {
        x.check(self)?;
        let mut theta = self.layer(l).bias.clone();
        for c in &self.couplings {
            if let Some(m) = c.other_end(l) {
                add_input(c, l, &self.centered(m, x, row), &mut theta);
            }
        }
        Ok(theta)
    }

    /// $F(x) = -\ln \sum_{x_S} e^{-E(x)}$ of each row: the energy left once the layers `summed`
    /// are summed out. Their values in `x` do not matter.
    ///
    /// For an RBM with $S = \{h\}$ this is the free energy; for a DBM, summing out every other
    /// layer is what makes $\ln Z$ affordable.
    ///
    /// # Errors
    ///
    /// If two of the layers are coupled, or one with itself.
    pub fn free_energy_over(&self, summed: &[LayerId], x: &State) -> Result<Vec<f64>, Error> {
        x.check(self)?;
        for (i, &l) in summed.iter().enumerate() {
            if let Some(&m) = summed[..=i].iter().find(|&&m| self.coupled(l, m)) {
                let (first, second) = (self.layer(l).name.clone(), self.layer(m).name.clone());
                return Err(Error::Coupled { first, second });
            }
        }
        // At its offset a layer meets no weight, so only its own energy is left to take back.
        let mut x = x.clone();
        for &l in summed {
            let rows = self.layer(l).offset.repeat(x.n_rows());
            x.set_layer(l, &rows);
        }
        let mut free_energies = self.energies(&x)?;
        for (row, f) in free_energies.iter_mut().enumerate() {
            for &l in summed {
                let (layer, theta) = (self.layer(l), self.theta(l, &x, row)?);
                let own = layer.energy(&layer.offset);
                let shift = dot(&theta, &layer.offset) - dot(&layer.bias, &layer.offset);
                *f += shift - own - layer.units.log_partition(&theta, layer.own());
            }
        }
        Ok(free_energies)
    }

    /// $\tilde x_l = x_l - \mu_l$ in one row.
    fn centered(&self, l: LayerId, x: &State, row: usize) -> Vec<f64> {
        x.row(l, row).iter().zip(&self.layer(l).offset).map(|(x, m)| x - m).collect()
    }

    pub(crate) fn layers_mut(&mut self) -> &mut [Layer] {
        &mut self.layers
    }

    pub(crate) fn couplings_mut(&mut self) -> &mut [Coupling] {
        &mut self.couplings
    }

    /// Takes over the parameters of a machine with the same graph.
    pub(crate) fn copy_parameters(&mut self, other: &Self) {
        for (mine, layer) in self.layers.iter_mut().zip(&other.layers) {
            mine.bias.copy_from_slice(&layer.bias);
            mine.own.copy_from_slice(&layer.own);
            mine.offset.copy_from_slice(&layer.offset);
        }
        for (mine, c) in self.couplings.iter_mut().zip(&other.couplings) {
            mine.weights.entries_mut().copy_from_slice(c.weights.entries());
        }
        self.constant = other.constant;
    }

    pub(crate) fn set_constant(&mut self, constant: f64) {
        self.constant = constant;
    }

    pub(crate) fn add_to_constant(&mut self, shift: f64) {
        self.constant += shift;
    }
}

/// Adds what layer `l` receives through `c` from the centered state `x` of the other end.
pub(crate) fn add_input(c: &Coupling, l: LayerId, x: &[f64], theta: &mut [f64]) {
    match &c.weights {
        Weights::Between(w) if c.between.0 == l => {
            for (i, t) in theta.iter_mut().enumerate() {
                *t += dot(w.row(i), x);
            }
        }
        Weights::Between(w) => {
            for (i, &xi) in x.iter().enumerate() {
                add_scaled(theta, xi, w.row(i));
            }
        }
        Weights::Lateral(j) => {
            for (i, &xi) in x.iter().enumerate() {
                theta[i] += dot(j.row(i), &x[i + 1..]);
                add_scaled(&mut theta[i + 1..], xi, j.row(i));
            }
        }
        Weights::Sparse(edges) => {
            for (i, j, w) in edges.iter() {
                theta[i] += w * x[j];
                theta[j] += w * x[i];
            }
        }
    }
}

/// $a^\top W b$, or $\tfrac12 a^\top J a$.
pub(crate) fn pair_energy(weights: &Weights, a: &[f64], b: &[f64]) -> f64 {
    match weights {
        Weights::Between(w) => a.iter().enumerate().map(|(i, a)| a * dot(w.row(i), b)).sum(),
        Weights::Lateral(j) => {
            a.iter().enumerate().map(|(i, x)| x * dot(j.row(i), &a[i + 1..])).sum()
        }
        Weights::Sparse(edges) => edges.iter().map(|(i, j, w)| w * a[i] * a[j]).sum(),
    }
}

fn check_coupling(coupling: &Coupling, layers: &[Layer]) -> Result<(), Error> {
    let (a, b) = coupling.between;
    let find = |l: LayerId| {
        layers.get(l.0).ok_or(Error::UnknownLayer { layer: l.0, n_layers: layers.len() })
    };
    let (first, second) = (find(a)?, find(b)?);
    let found = match &coupling.weights {
        Weights::Between(w) => w.shape(),
        Weights::Lateral(j) => (j.n(), j.n()),
        Weights::Sparse(edges) => (edges.n(), edges.n()),
    };
    let expected = (first.len(), second.len());
    if found != expected || coupling.is_lateral() != (a == b) {
        let (first, second) = (first.name.clone(), second.name.clone());
        return Err(Error::WeightShape { first, second, expected, found });
    }
    let entries = coupling.weights.entries();
    if let Some(entry) = entries.iter().position(|w| !w.is_finite()) {
        let place = format!("{}, {}", first.name, second.name);
        return Err(Error::ParameterValue { place, what: "weights", entry, value: entries[entry] });
    }
    let inside = match &coupling.weights {
        Weights::Between(_) => None,
        Weights::Lateral(j) => {
            let near =
                |i: usize| (i + 1..(i + first.units.group()).min(j.n())).map(move |k| (i, k));
            let mut pairs = (0..j.n()).flat_map(near);
            pairs.find(|&(i, k)| first.units.same_unit(i, k) && j.at(i, k) != 0.0)
        }
        // Here even a zero would be a parameter that does not exist.
        Weights::Sparse(edges) => {
            edges.pairs().iter().copied().find(|&(i, k)| first.units.same_unit(i, k))
        }
    };
    match inside {
        Some(entry) => Err(Error::InsideOneUnit { layer: first.name.clone(), entry }),
        None => Ok(()),
    }
}
