//! Between a factorised base and a machine.
//!
//! $$E_\beta(x) = (1-\beta) E_\text{base}(x) + \beta E(x)$$
//!
//! The energy is linear in the parameters, so tempering interpolates them and leaves the offsets
//! where they are. One definition serves annealed importance sampling, parallel tempering and
//! tempered learning on every graph.

use super::{Layer, LayerId, Machine, State, own_energy};
use crate::error::Error;
use crate::units::OwnParameters;

/// Where the natural parameters of a base end. A unit that never moves at $\beta = 0$ has to be
/// woken by the couplings later, which costs more than it saves.
const STRONGEST: f64 = 5.0;

/// Passes over the hidden layers when they settle at the means of the visible ones.
const SETTLING: usize = 3;

/// A machine without couplings over the same layers: the end of the ladder where sampling and
/// normalising are easy.
#[derive(Clone, Debug, PartialEq)]
pub struct Base {
    pub(crate) bias: Vec<Vec<f64>>,
    /// The own parameters of each layer's units.
    pub(crate) own: Vec<Vec<f64>>,
    /// How many rows have biases of their own, one row after the other; `None` if all share them.
    n_rows: Option<usize>,
}

impl Base {
    /// Zero biases: every value of a unit that has finitely many is equally likely. Units keep
    /// their own parameters.
    pub fn uniform(machine: &Machine) -> Self {
        Self::of(machine, |layer| vec![0.0; layer.len()])
    }

    /// The machine's own biases at its offsets: what it would be without couplings.
    pub fn of_biases(machine: &Machine) -> Self {
        Self::of(machine, |layer| layer.bias.clone())
    }

    /// Each unit as it would be if all others stood in the middle of their range: the biases in
    /// coordinates where both values of a bit weigh the same. Strong biases and couplings that
    /// cancel each other then do not decide where annealing starts.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn of_middle(machine: &Machine) -> Result<Self, Error> {
        let mut x = State::zeros(machine, 1)?;
        for l in machine.layer_ids() {
            let layer = machine.layer(l);
            x.set_row(l, 0, &vec![layer.units.neutral_mean(); layer.len()])?;
        }
        let mut base = Self::of_biases(machine);
        for l in machine.layer_ids() {
            base.bias[l.0] = machine.theta(l, &x, 0)?;
            if machine.layer(l).units.is_finite() {
                base.bias[l.0].iter_mut().for_each(|t| *t = t.clamp(-STRONGEST, STRONGEST));
            }
        }
        Ok(base)
    }

    /// Independent units with the given means in each layer; binary, categorical and spin means
    /// are kept off the ends of their range by `1e-3`.
    ///
    /// # Errors
    ///
    /// If there is not one finite mean for each entry.
    pub fn from_means(machine: &Machine, means: &[Vec<f64>]) -> Result<Self, Error> {
        let fits =
            |(l, m): (&Layer, &Vec<f64>)| l.len() == m.len() && m.iter().all(|x| x.is_finite());
        let layers = machine.layers();
        if layers.len() != means.len() || !layers.iter().zip(means).all(fits) {
            let what = "the means of a base (finite, one per entry)".into();
            let found = means.iter().map(Vec::len).sum();
            let expected = layers.iter().map(Layer::len).sum();
            return Err(Error::Shape { what, expected, found });
        }
        let bias = layers.iter().zip(means).map(|(l, m)| l.bias_of_means(m)).collect();
        let own = layers.iter().map(|l| l.own.clone()).collect();
        Ok(Self { bias, own, n_rows: None })
    }

    /// Visible units with the given means, one for each entry of the visible layers in their order,
    /// and hidden units at the means that their neighbours, at those means, give them. Moving the offsets of
    /// the machine does not change it.
    ///
    /// # Errors
    ///
    /// If there is not one finite mean for each visible entry.
    pub fn from_visible_means(machine: &Machine, means: &[f64]) -> Result<Self, Error> {
        let mut x = State::zeros(machine, 1)?;
        let visible = machine.visible_layers();
        let expected = visible.iter().map(|&l| machine.layer(l).len()).sum();
        if means.len() != expected || means.iter().any(|m| !m.is_finite()) {
            let what = "the means of the visible units (finite, one per entry)".into();
            return Err(Error::Shape { what, expected, found: means.len() });
        }
        let mut base = Self::of_biases(machine);
        let mut at = 0;
        for l in machine.layer_ids() {
            let layer = machine.layer(l);
            if visible.contains(&l) {
                let means = &means[at..at + layer.len()];
                x.set_row(l, 0, means)?;
                base.bias[l.0] = layer.bias_of_means(means);
                at += layer.len();
            } else {
                x.set_row(l, 0, &vec![layer.units.neutral_mean(); layer.len()])?;
            }
        }
        let hidden = || machine.layer_ids().filter(|l| !visible.contains(l));
        for l in (0..SETTLING).flat_map(|_| hidden()) {
            let layer = machine.layer(l);
            let mut theta = machine.theta(l, &x, 0)?;
            if layer.units.is_finite() {
                theta.iter_mut().for_each(|t| *t = t.clamp(-STRONGEST, STRONGEST));
            }
            base.bias[l.0].clone_from(&theta);
            layer.units.mean_in_place(&mut theta, layer.own());
            x.set_row(l, 0, &theta)?;
        }
        Ok(base)
    }

    /// For each row of `x` the independent units that have its values as means: where annealing
    /// towards a posterior starts, from what mean field found.
    pub(crate) fn of_rows(machine: &Machine, x: &State) -> Self {
        let mut base = Self::uniform(machine);
        for l in machine.layer_ids() {
            let rows = x.layer(l).chunks_exact(machine.layer(l).len());
            base.bias[l.0] = rows.flat_map(|m| machine.layer(l).bias_of_means(m)).collect();
        }
        base.n_rows = Some(x.n_rows());
        base
    }

    /// Whether rows have biases of their own.
    pub(crate) fn differs_by_row(&self) -> bool {
        self.n_rows.is_some()
    }

    /// The biases of layer `l` in one row.
    pub(crate) fn bias_in(&self, l: LayerId, row: usize) -> &[f64] {
        let bias = &self.bias[l.0];
        let Some(n_rows) = self.n_rows else { return bias };
        let len = bias.len() / n_rows;
        &bias[row * len..(row + 1) * len]
    }

    fn of(machine: &Machine, bias: impl Fn(&Layer) -> Vec<f64>) -> Self {
        let layers = machine.layers();
        Self {
            bias: layers.iter().map(bias).collect(),
            own: layers.iter().map(|l| l.own.clone()).collect(),
            n_rows: None,
        }
    }

    /// $\ln Z$ of the base, in closed form.
    pub fn log_partition(&self, machine: &Machine) -> f64 {
        let pairs = self.bias.iter().zip(&self.own);
        let layers = machine.layers().iter().zip(pairs);
        layers.map(|(l, (b, own))| l.units.log_partition(b, OwnParameters::new(own, l.len()))).sum()
    }

    /// $E_\text{base}(x)$ of one row.
    pub(crate) fn energy_of_row(&self, machine: &Machine, x: &State, row: usize) -> f64 {
        let energy = |l: LayerId| {
            let (bias, own) =
                (self.bias_in(l, row), OwnParameters::new(&self.own[l.0], x.layers[l.0].len));
            own_energy(machine.layer(l).units, bias, own, x.row(l, row))
        };
        machine.layer_ids().map(energy).sum()
    }
}

impl Layer {
    /// The biases with which uncoupled units have these means.
    pub(crate) fn bias_of_means(&self, means: &[f64]) -> Vec<f64> {
        self.units.bias_of_means(means, self.own())
    }
}

impl Machine {
    /// The machine with energy $(1-\beta)E_\text{base} + \beta E$; its offsets stay.
    ///
    /// # Errors
    ///
    /// If $\beta$ is not between 0 and 1.
    pub fn temper(&self, base: &Base, beta: f64) -> Result<Self, Error> {
        if !(0.0..=1.0).contains(&beta) {
            let (name, value) = ("beta", beta.to_string());
            return Err(Error::Setting { name, value, range: "between 0 and 1" });
        }
        let mut machine = self.clone();
        machine.constant *= beta;
        let mix = |own: &mut [f64], base: &[f64]| {
            own.iter_mut().zip(base).for_each(|(x, b)| *x = (1.0 - beta) * b + beta * *x);
        };
        for (l, layer) in machine.layers.iter_mut().enumerate() {
            mix(&mut layer.bias, &base.bias[l]);
            mix(&mut layer.own, &base.own[l]);
        }
        for c in &mut machine.couplings {
            c.weights.entries_mut().iter_mut().for_each(|w| *w *= beta);
        }
        Ok(machine)
    }

    /// The machine at inverse temperature $\beta$: its energy times $\beta$.
    ///
    /// # Errors
    ///
    /// If $\beta$ is not positive and finite, or a parameter leaves the numbers.
    pub fn scaled(&self, beta: f64) -> Result<Self, Error> {
        if !(beta > 0.0 && beta.is_finite()) {
            let (name, value) = ("beta", beta.to_string());
            return Err(Error::Setting { name, value, range: "positive and finite" });
        }
        let mut machine = self.clone();
        machine.constant *= beta;
        for layer in &mut machine.layers {
            layer.bias.iter_mut().chain(&mut layer.own).for_each(|x| *x *= beta);
        }
        for c in &mut machine.couplings {
            c.weights.entries_mut().iter_mut().for_each(|w| *w *= beta);
        }
        machine.check_finite("a parameter at that temperature", machine.largest_parameter())?;
        Ok(machine)
    }
}
