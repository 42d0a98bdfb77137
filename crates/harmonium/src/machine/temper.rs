//! Between a factorised base and a machine.
//!
//! $$E_\beta(x) = (1-\beta) E_\text{base}(x) + \beta E(x)$$
//!
//! The energy is linear in the parameters, so tempering interpolates them and leaves the offsets
//! where they are. One definition serves annealed importance sampling, parallel tempering and
//! tempered learning on every graph.

use super::{Layer, Machine, State, own_energy};
use crate::error::Error;

/// A machine without couplings over the same layers: the end of the ladder where sampling and
/// normalising are easy.
#[derive(Clone, Debug, PartialEq)]
pub struct Base {
    pub(crate) bias: Vec<Vec<f64>>,
    pub(crate) precision: Vec<Vec<f64>>,
}

impl Base {
    /// Zero biases: every value of a discrete unit is equally likely. Gaussian units keep their
    /// precision.
    pub fn uniform(machine: &Machine) -> Self {
        Self::of(machine, |layer| vec![0.0; layer.len()])
    }

    /// The machine's own biases at its offsets: what it would be without couplings.
    pub fn of_biases(machine: &Machine) -> Self {
        Self::of(machine, |layer| layer.bias.clone())
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
        Ok(Self { bias, precision: layers.iter().map(|l| l.precision.clone()).collect() })
    }

    fn of(machine: &Machine, bias: impl Fn(&Layer) -> Vec<f64>) -> Self {
        let layers = machine.layers();
        Self {
            bias: layers.iter().map(bias).collect(),
            precision: layers.iter().map(|l| l.precision.clone()).collect(),
        }
    }

    /// $\ln Z$ of the base, in closed form.
    pub fn log_partition(&self, machine: &Machine) -> f64 {
        let pairs = self.bias.iter().zip(&self.precision);
        let layers = machine.layers().iter().zip(pairs);
        layers.map(|(l, (b, g))| l.units.log_partition(b, g)).sum()
    }

    /// $E_\text{base}(x)$ of one row.
    pub(crate) fn energy_of_row(&self, x: &State, row: usize) -> f64 {
        let layers = (0..).map(super::LayerId).zip(self.bias.iter().zip(&self.precision));
        layers.map(|(l, (b, g))| own_energy(b, g, x.row(l, row))).sum()
    }
}

impl Layer {
    /// The biases with which uncoupled units have these means.
    pub(crate) fn bias_of_means(&self, means: &[f64]) -> Vec<f64> {
        use crate::units::Units;
        let inside = |p: f64| p.clamp(1e-3, 1.0 - 1e-3);
        let logit = |p: f64| (inside(p) / (1.0 - inside(p))).ln();
        match self.units {
            Units::Binary => means.iter().map(|&m| logit(m)).collect(),
            Units::Spin => means.iter().map(|&m| 0.5 * logit(0.5 * (1.0 + m))).collect(),
            Units::Categorical { .. } => means.iter().map(|&m| inside(m).ln()).collect(),
            Units::Gaussian => means.iter().zip(&self.precision).map(|(m, g)| m * g).collect(),
        }
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
            mix(&mut layer.precision, &base.precision[l]);
        }
        for c in &mut machine.couplings {
            c.weights.entries_mut().iter_mut().for_each(|w| *w *= beta);
        }
        Ok(machine)
    }
}
