//! Sums over the hidden units of a machine with one layer of labels, class by class.
//!
//! $$s_y(x) = \ln\sum_h e^{-E(x, y, h)} = b_y - E(x) + \sum_j \ln\sum_{h_j} e^{(\theta_j(x) + w_{jy}) h_j},
//!   \qquad p(y \mid x) \propto e^{s_y(x)}, \qquad
//!   E[h \mid x] = \sum_y p(y \mid x)\, E[h \mid x, y]$$
//!
//! The labels exclude each other, so their sum has as many terms as there are classes, and what
//! the data sends the hidden units, $\theta_j$, is computed once for all of them (Hinton, Osindero & Teh
//! 2006, section 6: classification by free energy; Larochelle & Bengio 2008).

use super::Sampler;
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Clamp, Coupling, LayerId, Machine, State, Weights, pair_energy};
use crate::models::Dbn;
use crate::sampling::posterior_factorises;
use crate::units::log_sum_exp;
use rayon::prelude::*;

/// A machine whose hidden units are independent given data and label, prepared for these sums in
/// double precision: an RBM with labels, or the top of a [`Dbn`].
#[derive(Clone, Debug)]
pub struct ClassSums {
    /// The same energy without offsets.
    sampler: Sampler,
    labels: Option<LayerId>,
    /// The layers that are summed out.
    summed: Vec<LayerId>,
    /// What each class sends them, side by side; one class that sends nothing without labels.
    classes: Vec<Vec<f64>>,
}

/// What is known of the label in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Nothing: it is summed out.
    Unknown,
    /// The class.
    Known(usize),
}

impl ClassSums {
    /// Prepares `machine`, whose layer `labels` holds the label; `None` where its hidden layers see each
    /// other, so that no closed form exists.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn of(machine: &Machine, labels: Option<LayerId>) -> Result<Option<Self>, Error> {
        let summed = machine.hidden_layers();
        if !posterior_factorises(machine, &Clamp::visible(machine)) {
            return Ok(None);
        }
        Self::new(machine, labels, summed).map(Some)
    }

    /// Prepares the top RBM of `dbn`.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn of_top(dbn: &Dbn) -> Result<Self, Error> {
        Self::new(dbn.top(), dbn.labels().map(|_| Dbn::LABELS), vec![dbn.top_hidden()])
    }

    fn new(
        machine: &Machine,
        labels: Option<LayerId>,
        summed: Vec<LayerId>,
    ) -> Result<Self, Error> {
        let machine = machine.without_offsets()?;
        let n_classes = labels.map_or(1, |l| machine.layer(l).len());
        let inputs = |y: usize| {
            let of = |&l: &LayerId| inputs_of_class(&machine, labels, y, l);
            summed.iter().flat_map(of).collect()
        };
        let classes = (0..n_classes).map(inputs).collect();
        Ok(Self { sampler: Sampler::new(machine, Arithmetic::F64), labels, summed, classes })
    }

    /// Number of classes; 1 without labels.
    pub fn n_classes(&self) -> usize {
        self.classes.len()
    }

    /// $s_y$ of each row, class after class. Labels and hidden units do not count in `x`.
    pub fn by_class(&self, x: &State) -> Vec<f64> {
        let logs: Vec<Vec<f64>> = self.map_rows(x, |logs, _| logs.to_vec());
        logs.concat()
    }

    /// $\ln\sum_{y,h} e^{-E(x, y, h)}$ of each row, or with its label known $s_y$.
    pub fn free(&self, x: &State, labels: &[Label]) -> Vec<f64> {
        let sums = self.by_class(x);
        let rows = sums.chunks_exact(self.n_classes()).zip(labels);
        rows.map(|(logs, label)| match *label {
            Label::Unknown => log_sum_exp(logs),
            Label::Known(y) => logs[y],
        })
        .collect()
    }

    /// $p(y \mid x)$ of each row, class after class.
    pub fn class_probabilities(&self, x: &State) -> Vec<f64> {
        let mut all = self.by_class(x);
        all.chunks_exact_mut(self.n_classes()).for_each(normalise);
        all
    }

    /// $E[h \mid x]$ of each row, labels that are not known summed out.
    pub fn hidden_means(&self, x: &State, labels: &[Label]) -> Vec<f64> {
        let sums = self.map_rows(x, |logs, theta| (logs.to_vec(), theta.to_vec()));
        let machine = self.sampler.machine();
        let of_row = |((mut p, theta), label): ((Vec<f64>, Vec<f64>), &Label)| {
            match *label {
                Label::Unknown => normalise(&mut p),
                Label::Known(y) => {
                    (0..).zip(&mut p).for_each(|(k, p)| *p = f64::from(u8::from(k == y)));
                }
            }
            let mut mean = vec![0.0; theta.len()];
            for (p, class) in p.iter().zip(&self.classes).filter(|(p, _)| **p > 0.0) {
                let mut given: Vec<f64> = theta.iter().zip(class).map(|(t, u)| t + u).collect();
                let mut rest = &mut given[..];
                for &l in &self.summed {
                    let layer = machine.layer(l);
                    let (these, others) = rest.split_at_mut(layer.len());
                    layer.units.mean_in_place(these, layer.own());
                    rest = others;
                }
                mean.iter_mut().zip(given).for_each(|(m, g)| *m += p * g);
            }
            mean
        };
        sums.into_iter().zip(labels).flat_map(of_row).collect()
    }

    /// What `f` says of each row, given its $s_y$ and what the data sends the summed layers, side by side.
    fn map_rows<T: Send>(&self, x: &State, f: impl Fn(&[f64], &[f64]) -> T + Sync) -> Vec<T> {
        let (machine, mut x) = (self.sampler.machine(), x.clone());
        for l in self.labels.iter().chain(&self.summed) {
            x.layers[l.0].numbers_mut().fill(0.0);
        }
        let fields: Option<Vec<f64>> =
            self.labels.map(|labels| self.sampler.natural_parameters(&mut x, labels));
        let thetas: Vec<Vec<f64>> =
            self.summed.iter().map(|&l| self.sampler.natural_parameters(&mut x, l)).collect();
        let held: Vec<LayerId> = machine
            .layer_ids()
            .filter(|l| Some(*l) != self.labels && !self.summed.contains(l))
            .collect();
        let is_held = |c: &&Coupling| held.contains(&c.between.0) && held.contains(&c.between.1);
        let pairs: Vec<&Coupling> = machine.couplings().iter().filter(is_held).collect();
        let q = self.n_classes();
        let of_row = |row: usize, (theta, given, logs): &mut Buffers| {
            let own: f64 = held.iter().map(|&l| machine.layer(l).energy(x.row(l, row))).sum();
            let between = |c: &&Coupling| {
                pair_energy(&c.weights, x.row(c.between.0, row), x.row(c.between.1, row))
            };
            let base = pairs.iter().map(between).sum::<f64>() - machine.constant() - own;
            theta.clear();
            for (&l, thetas) in self.summed.iter().zip(&thetas) {
                let n = machine.layer(l).len();
                theta.extend_from_slice(&thetas[row * n..(row + 1) * n]);
            }
            logs.clear();
            for (y, class) in self.classes.iter().enumerate() {
                given.clear();
                given.extend(theta.iter().zip(class).map(|(t, u)| t + u));
                let field = fields.as_ref().map_or(0.0, |fields| fields[row * q + y]);
                logs.push(base + field + self.log_partitions(given));
            }
            f(logs, theta)
        };
        let rows = (0..x.n_rows()).into_par_iter();
        rows.map_init(Buffers::default, |buffers, row| of_row(row, buffers)).collect()
    }

    /// $\sum_j \ln\sum_{h_j} e^{\theta_j h_j}$ over the summed layers, whose parameters stand side by side.
    fn log_partitions(&self, theta: &[f64]) -> f64 {
        let (machine, mut rest) = (self.sampler.machine(), theta);
        let of = |&l: &LayerId| {
            let layer = machine.layer(l);
            let (these, others) = rest.split_at(layer.len());
            rest = others;
            layer.units.log_partition(these, layer.own())
        };
        self.summed.iter().map(of).sum()
    }
}

/// Buffers for a row: what the data sends the summed layers, the same with a class, and the sums.
type Buffers = (Vec<f64>, Vec<f64>, Vec<f64>);

/// What class `y` sends the units of layer `l`.
fn inputs_of_class(machine: &Machine, labels: Option<LayerId>, y: usize, l: LayerId) -> Vec<f64> {
    let mut inputs = vec![0.0; machine.layer(l).len()];
    let Some(labels) = labels else { return inputs };
    for c in machine.couplings().iter().filter(|c| c.other_end(labels) == Some(l)) {
        if let Weights::Between(w) = &c.weights {
            let rows = c.between.0 == labels;
            let weight = |j| if rows { w.at(y, j) } else { w.at(j, y) };
            inputs.iter_mut().enumerate().for_each(|(j, input)| *input += weight(j));
        }
    }
    inputs
}

/// Logarithms to probabilities.
pub(crate) fn normalise(logs: &mut [f64]) {
    let total = log_sum_exp(logs);
    logs.iter_mut().for_each(|l| *l = (*l - total).exp());
}
