//! Between a factorised base and a machine.
//!
//! $$E_\beta(x) = (1-\beta) E_\text{base}(x) + \beta E(x)$$
//!
//! The energy is linear in the parameters, so tempering interpolates them and leaves the offsets
//! where they are. One definition serves annealed importance sampling, parallel tempering and
//! tempered learning on every graph.
//!
//! What units own and what Gaussian units send each other is the same in both, so the precision
//! $\Lambda$ of real units does not depend on $\beta$: a base of coupled Gaussian units is one Gaussian,
//! which is as easy to sample and to normalise as independent units are, and much nearer to the machine.

use super::{Layer, LayerId, Machine, State, add_input, own_energy, pair_energy};
use crate::error::Error;

/// Where the natural parameters of a base end. A unit that never moves at $\beta = 0$ has to be
/// woken by the couplings later, which costs more than it saves.
const STRONGEST: f64 = 5.0;

/// Passes over the hidden layers when they settle at the means of the visible ones.
const SETTLING: usize = 3;

/// A machine over the same layers in which Gaussian units alone see each other: the end of the ladder
/// where sampling and normalising are easy. It has biases of its own, without offsets; what units own
/// and how Gaussian units are coupled is the machine's.
#[derive(Clone, Debug, PartialEq)]
pub struct Base {
    pub(crate) bias: Vec<Vec<f64>>,
    /// How many rows have biases of their own, one row after the other; `None` if all share them.
    n_rows: Option<usize>,
}

impl Base {
    /// Zero biases: every value of a unit that has finitely many is equally likely. Units keep
    /// their own parameters.
    pub fn uniform(machine: &Machine) -> Self {
        Self::of(machine, |layer| vec![0.0; layer.len()])
    }

    /// The machine's own biases at its offsets: what it would be without couplings, but for those
    /// between Gaussian units.
    pub fn of_biases(machine: &Machine) -> Self {
        let mut base = Self::of(machine, |layer| layer.bias.clone());
        let offsets: Vec<&[f64]> = machine.layers().iter().map(|l| &l.offset[..]).collect();
        machine.take_joined(&offsets, &mut base.bias);
        base
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
        let mut bias: Vec<_> = layers.iter().zip(means).map(|(l, m)| l.bias_of_means(m)).collect();
        machine.take_joined(means, &mut bias);
        Ok(Self { bias, n_rows: None })
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
        // Gaussian units that see each other have these means together.
        for &l in machine.real_blocks().iter().flatten() {
            base.bias[l.0] = machine.layer(l).bias_of_means(x.row(l, 0));
        }
        let means: Vec<&[f64]> = machine.layer_ids().map(|l| x.row(l, 0)).collect();
        machine.take_joined(&means, &mut base.bias);
        Ok(base)
    }

    /// For each row of `x` the independent units that have its values as means: where annealing
    /// towards a posterior starts, from what mean field found.
    pub(crate) fn of_rows(machine: &Machine, x: &State) -> Self {
        let mut bias: Vec<Vec<f64>> = vec![Vec::new(); machine.layers().len()];
        for row in 0..x.n_rows() {
            let means: Vec<&[f64]> = machine.layer_ids().map(|l| x.row(l, row)).collect();
            let layers = machine.layers().iter().zip(&means);
            let mut fields: Vec<Vec<f64>> = layers.map(|(l, m)| l.bias_of_means(m)).collect();
            machine.take_joined(&means, &mut fields);
            bias.iter_mut().zip(&fields).for_each(|(all, field)| all.extend_from_slice(field));
        }
        Self { bias, n_rows: Some(x.n_rows()) }
    }

    /// Biases as they were stored, one for each entry of each layer.
    pub(crate) fn from_biases(bias: Vec<Vec<f64>>) -> Self {
        Self { bias, n_rows: None }
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
        Self { bias: machine.layers().iter().map(bias).collect(), n_rows: None }
    }

    /// $\ln Z$ of the base, in closed form; infinite where Gaussian units have no density.
    pub fn log_partition(&self, machine: &Machine) -> f64 {
        self.log_partition_of(machine, &machine.layer_ids().collect::<Vec<_>>(), 0)
    }

    /// The same of some of its layers, in one row. Gaussian layers that see each other are among them
    /// together or not at all.
    pub(crate) fn log_partition_of(
        &self,
        machine: &Machine,
        layers: &[LayerId],
        row: usize,
    ) -> f64 {
        let joined = machine.real_blocks();
        let alone = layers.iter().filter(|l| !joined.iter().flatten().any(|m| m == *l));
        let alone = alone.map(|&l| {
            let layer = machine.layer(l);
            layer.units.log_partition(self.bias_in(l, row), layer.own())
        });
        let together = joined.iter().filter(|block| block.iter().all(|l| layers.contains(l)));
        let together = together.map(|block| {
            let Ok(density) = machine.block_of(block) else { return f64::INFINITY };
            let fields = block.iter().flat_map(|&l| self.bias_in(l, row));
            let mut fields: Vec<f64> = fields.copied().collect();
            density.whiten(&mut fields);
            density.log_integral(&fields)
        });
        alone.sum::<f64>() + together.sum::<f64>()
    }

    /// $E_\text{base}(x)$ of one row.
    pub(crate) fn energy_of_row(&self, machine: &Machine, x: &State, row: usize) -> f64 {
        let energy = |l: LayerId| {
            let layer = machine.layer(l);
            own_energy(layer.units, self.bias_in(l, row), layer.own(), x.row(l, row))
        };
        let joined = machine.joining().map(|c| {
            let (a, b) = c.between;
            pair_energy(&c.weights, x.row(a, row), x.row(b, row))
        });
        machine.layer_ids().map(energy).sum::<f64>() - joined.sum::<f64>()
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
        for (layer, base) in machine.layers.iter_mut().zip(&base.bias) {
            let biases = layer.bias.iter_mut().zip(base);
            biases.for_each(|(x, b)| *x = (1.0 - beta) * b + beta * *x);
        }
        for (c, tempered) in self.couplings.iter().zip(&mut machine.couplings) {
            if !self.joins_reals(c) {
                tempered.weights.entries_mut().iter_mut().for_each(|w| *w *= beta);
                continue;
            }
            // The base has no offsets: what they add to the coupling is tempered alone.
            let (a, b) = c.between;
            let offsets = [a, b].map(|l| -> Vec<f64> {
                self.layer(l).offset.iter().map(|x| (1.0 - beta) * x).collect()
            });
            add_input(c, a, &offsets[1], &mut machine.layers[a.0].bias);
            if a != b {
                add_input(c, b, &offsets[0], &mut machine.layers[b.0].bias);
            }
            let constant = pair_energy(&c.weights, &self.layer(a).offset, &self.layer(b).offset);
            machine.constant += (1.0 - beta) * constant;
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
