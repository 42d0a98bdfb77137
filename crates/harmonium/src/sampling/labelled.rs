//! Sums over the hidden units of an RBM with one layer of labels, class by class.
//!
//! $$s_y(x) = \ln\sum_h e^{-E(x, y, h)}, \qquad p(y \mid x) \propto e^{s_y(x)}, \qquad
//!   E[h \mid x] = \sum_y p(y \mid x)\, E[h \mid x, y]$$
//!
//! The labels exclude each other, so their sum has as many terms as there are classes, and what
//! the data sends the hidden units is computed once for all of them (Hinton, Osindero & Teh 2006,
//! section 6: classification by free energy).

use super::Sampler;
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Layer, State, Weights};
use crate::models::Dbn;
use crate::units::log_sum_exp;

/// The top RBM of a [`Dbn`], prepared for these sums, in double precision.
#[derive(Clone, Debug)]
pub struct TopSums {
    /// The same energy without offsets.
    sampler: Sampler,
    /// What each class sends the hidden units; one class that sends nothing without labels.
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

impl TopSums {
    /// Prepares the top RBM of `dbn`.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn new(dbn: &Dbn) -> Result<Self, Error> {
        let machine = dbn.top().without_offsets()?;
        let hidden = dbn.top_hidden();
        let n_hidden = machine.layer(hidden).len();
        let mut classes = vec![vec![0.0; n_hidden]];
        if dbn.labels().is_some() {
            let from = machine.couplings().iter().find(|c| c.other_end(Dbn::LABELS).is_some());
            if let Some(Weights::Between(w)) = from.map(|c| &c.weights) {
                let rows = from.is_some_and(|c| c.between.0 == Dbn::LABELS);
                let weight = |y, j| if rows { w.at(y, j) } else { w.at(j, y) };
                classes = (0..dbn.n_classes())
                    .map(|y| (0..n_hidden).map(|j| weight(y, j)).collect())
                    .collect();
            }
        }
        Ok(Self { sampler: Sampler::new(machine, Arithmetic::F64), classes })
    }

    fn hidden(&self) -> &Layer {
        let layers = self.sampler.machine().layers();
        &layers[layers.len() - 1]
    }

    /// Number of classes; 1 without labels.
    pub fn n_classes(&self) -> usize {
        self.classes.len()
    }

    /// $s_y$ of each row, class after class. Only the layer below the top counts in `x`.
    pub fn by_class(&self, x: &State) -> Vec<f64> {
        let mut sums = Vec::with_capacity(x.n_rows() * self.n_classes());
        self.each_row(x, |logs, _| sums.extend_from_slice(logs));
        sums
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
        let layer = self.hidden();
        let mut means = Vec::with_capacity(x.n_rows() * layer.len());
        let mut row = 0;
        self.each_row(x, |logs, theta| {
            let mut p = logs.to_vec();
            match labels[row] {
                Label::Unknown => normalise(&mut p),
                Label::Known(y) => {
                    (0..).zip(&mut p).for_each(|(k, p)| *p = f64::from(u8::from(k == y)));
                }
            }
            let mut mean = vec![0.0; layer.len()];
            for (p, class) in p.iter().zip(&self.classes).filter(|(p, _)| **p > 0.0) {
                let mut given: Vec<f64> = theta.iter().zip(class).map(|(t, u)| t + u).collect();
                layer.units.mean_in_place(&mut given, layer.own());
                mean.iter_mut().zip(given).for_each(|(m, g)| *m += p * g);
            }
            means.extend(mean);
            row += 1;
        });
        means
    }

    /// Calls `f` with the $s_y$ of each row and what the layer below sends the hidden units.
    fn each_row(&self, x: &State, mut f: impl FnMut(&[f64], &[f64])) {
        let mut x = x.clone();
        let machine = self.sampler.machine();
        let n_layers = machine.layers().len();
        if n_layers == 3 {
            x.layers[Dbn::LABELS.0].numbers_mut().fill(0.0);
        }
        let hidden = crate::machine::LayerId(n_layers - 1);
        let thetas = self.sampler.natural_parameters(&mut x, hidden);
        let (below, above) = (machine.layer(Dbn::BELOW_TOP), machine.layer(hidden));
        let mut logs = vec![0.0; self.n_classes()];
        for (row, theta) in thetas.chunks_exact(above.len()).enumerate() {
            let own = below.energy(x.row(Dbn::BELOW_TOP, row));
            for (y, (log, class)) in logs.iter_mut().zip(&self.classes).enumerate() {
                let given: Vec<f64> = theta.iter().zip(class).map(|(t, u)| t + u).collect();
                let label = if n_layers == 3 { machine.layer(Dbn::LABELS).bias[y] } else { 0.0 };
                *log = label - machine.constant() - own
                    + above.units.log_partition(&given, above.own());
            }
            f(&logs, theta);
        }
    }
}

/// Logarithms to probabilities.
fn normalise(logs: &mut [f64]) {
    let total = log_sum_exp(logs);
    logs.iter_mut().for_each(|l| *l = (*l - total).exp());
}
