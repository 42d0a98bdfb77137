//! Pseudo-likelihood: each visible unit given all the others (Besag 1975).
//!
//! $$\ln PL(v) = \sum_i \ln p(v_i \mid v_{\setminus i}), \qquad
//!   p(v_i \mid v_{\setminus i}) = \frac{e^{-F(v)}}{\sum_{v_i'} e^{-F(v_i', v_{\setminus i})}}$$
//!
//! No $\ln Z$ is needed. It is a score of its own, not a likelihood. Exact where the hidden units
//! can be summed out in closed form; the stochastic form visits one random unit of each row and
//! multiplies by their number.

use crate::error::Error;
use crate::machine::{Batch, LayerId, Machine, State, Weights};
use crate::models::Rbm;
use crate::sampling::{Clamp, free_layers, posterior_factorises};
use crate::units::{Units, log_sum_exp};
use harmonium_kernels::dense::add_scaled;
use harmonium_kernels::random::{Site, Stream};
use harmonium_kernels::softplus::sum_softplus;
use ndarray::ArrayView2;
use rayon::prelude::*;

/// Which units of a row are visited.
#[derive(Clone, Copy, Debug)]
pub enum Visit {
    /// All of them.
    All,
    /// One, chosen by the variates of this stream, counted as all.
    One(Stream),
}

/// $\ln PL$ of each row, in nats.
///
/// # Errors
///
/// If hidden units see each other, or visible units are real.
pub fn log_pseudo_likelihood(
    machine: &Machine,
    batch: &Batch,
    visit: Visit,
) -> Result<Vec<f64>, Error> {
    let clamp = Clamp::visible(machine);
    let real = |l: &LayerId| !machine.layer(*l).units.is_finite();
    if !posterior_factorises(machine, &clamp) || machine.visible_layers().iter().any(real) {
        return Err(Error::Topology {
            model: "a pseudo-likelihood",
            expected: "discrete visible units, and hidden units that do not see each other",
            found: "this machine has others".into(),
        });
    }
    let folded = machine.without_offsets()?;
    let x = batch.to_state(&folded)?;
    let hidden = free_layers(&folded, &clamp);
    let rows = (0..x.n_rows()).into_par_iter();
    let score = |row| {
        let thetas = hidden.iter().map(|&l| folded.theta(l, &x, row)).collect::<Result<_, _>>()?;
        Row::new(&folded, &hidden, thetas, &x, row).map(|r| r.score(visit))
    };
    rows.map(score).collect()
}

/// The same for rows whose hidden $\theta$ are known: `thetas` holds all rows of each hidden layer.
/// `folded` has no offsets.
pub(crate) fn given_thetas(
    folded: &Machine,
    hidden: &[LayerId],
    thetas: &[Vec<f64>],
    x: &State,
    visit: Visit,
) -> Result<Vec<f64>, Error> {
    let rows = (0..x.n_rows()).into_par_iter();
    let score = |row: usize| {
        let of_row = hidden.iter().zip(thetas).map(|(&l, theta)| {
            let len = folded.layer(l).len();
            theta[row * len..(row + 1) * len].to_vec()
        });
        Row::new(folded, hidden, of_row.collect(), x, row).map(|r| r.score(visit))
    };
    rows.map(score).collect()
}

/// Each value of a row of an RBM of binary units against its complement, summed:
/// $$\sum_i \ln\frac{e^{-F(v)}}{e^{-F(v)} + e^{-F(v^i)}}, \qquad v^i_i = 1 - v_i.$$
/// Of zeros and ones it is the pseudo-likelihood. Values between them are taken as they are, which is how
/// scikit-learn scores rows by one unit each, chosen at random.
///
/// # Errors
///
/// If the rows have more or fewer columns than visible units, or a layer is not binary.
pub fn log_against_complements(rbm: &Rbm, rows: ArrayView2<'_, f64>) -> Result<Vec<f64>, Error> {
    let folded = rbm.machine().without_offsets()?;
    let (visible, hidden) = (folded.layer(Rbm::VISIBLE), folded.layer(Rbm::HIDDEN));
    if visible.units != Units::Binary || hidden.units != Units::Binary {
        return Err(Error::Topology {
            model: "a score against complements",
            expected: "an RBM of binary units",
            found: format!("found {} and {} units", visible.units.name(), hidden.units.name()),
        });
    }
    if rows.ncols() != visible.len() {
        let (expected, found, detail) = (visible.len(), rows.ncols(), String::new());
        return Err(Error::ColumnCount { expected, found, detail });
    }
    let Some(Weights::Between(w)) = folded.couplings().first().map(|c| &c.weights) else {
        return Ok(vec![0.0; rows.nrows()]);
    };
    let score = |row: usize| {
        let v = rows.row(row);
        let mut theta = hidden.bias.clone();
        v.iter().enumerate().for_each(|(i, x)| add_scaled(&mut theta, *x, w.row(i)));
        let sum = sum_softplus(&theta);
        let mut moved = vec![0.0; theta.len()];
        let one = |(i, x): (usize, &f64)| {
            let d = 1.0 - 2.0 * x;
            moved.copy_from_slice(&theta);
            add_scaled(&mut moved, d, w.row(i));
            let gain = d * visible.bias[i] + sum_softplus(&moved) - sum;
            -(gain.max(0.0) + (-gain.abs()).exp().ln_1p())
        };
        v.iter().enumerate().map(one).sum()
    };
    Ok((0..rows.nrows()).into_par_iter().map(score).collect())
}

/// One row with what its units receive.
struct Row<'a> {
    machine: &'a Machine,
    x: &'a State,
    index: usize,
    /// $\theta$ of each hidden layer, and its logarithm of the sum.
    hidden: Vec<(LayerId, Vec<f64>, f64)>,
    /// $\theta$ of each visible layer with the hidden units at zero.
    visible: Vec<(LayerId, Vec<f64>)>,
}

impl<'a> Row<'a> {
    fn new(
        machine: &'a Machine,
        hidden: &[LayerId],
        thetas: Vec<Vec<f64>>,
        x: &'a State,
        row: usize,
    ) -> Result<Self, Error> {
        let with_sum = |(&l, theta): (&LayerId, Vec<f64>)| {
            let layer = machine.layer(l);
            let sum = layer.units.log_partition(&theta, layer.own());
            (l, theta, sum)
        };
        let visible = machine.visible_layers();
        let without_hidden = |&l: &LayerId| {
            if visible.iter().all(|&m| !machine.coupled(l, m)) {
                return Ok((l, machine.layer(l).bias.clone()));
            }
            let mut alone = State::zeros(machine, 1)?;
            for &m in &visible {
                alone.set_row(m, 0, x.row(m, row))?;
            }
            Ok((l, machine.theta(l, &alone, 0)?))
        };
        Ok(Self {
            machine,
            x,
            index: row,
            hidden: hidden.iter().zip(thetas).map(with_sum).collect(),
            visible: visible.iter().map(without_hidden).collect::<Result<_, Error>>()?,
        })
    }

    fn score(&self, visit: Visit) -> f64 {
        let counts: Vec<usize> =
            self.visible.iter().map(|(l, _)| self.machine.layer(*l).n_units()).collect();
        let total: usize = counts.iter().sum();
        match visit {
            Visit::All => (0..counts.len())
                .flat_map(|layer| (0..counts[layer]).map(move |unit| (layer, unit)))
                .map(|(layer, unit)| self.unit(layer, unit))
                .sum(),
            Visit::One(stream) => {
                let row = u32::try_from(self.index).unwrap_or(u32::MAX);
                let n = u32::try_from(total).unwrap_or(u32::MAX);
                let mut unit = stream.below(Site { row, ..Site::default() }, 0, n) as usize;
                let mut layer = 0;
                while unit >= counts[layer] {
                    unit -= counts[layer];
                    layer += 1;
                }
                total as f64 * self.unit(layer, unit)
            }
        }
    }

    /// $\ln p(v_i \mid v_{\setminus i})$.
    fn unit(&self, layer: usize, unit: usize) -> f64 {
        let (l, field) = &self.visible[layer];
        let units = self.machine.layer(*l).units;
        let group = units.group();
        let range = unit * group..(unit + 1) * group;
        let now = &self.x.row(*l, self.index)[range.clone()];
        let Some(choices) = units.configurations() else { return f64::NAN };
        let gains: Vec<f64> = choices
            .0
            .iter()
            .map(|choice| {
                let change: Vec<(usize, f64)> = range
                    .clone()
                    .zip(choice.iter().zip(now).map(|(c, n)| c - n))
                    .filter(|c| c.1 != 0.0)
                    .collect();
                let own = self.machine.layer(*l).own().piece(range.clone());
                let climb = units.own_energy(own, choice) - units.own_energy(own, now);
                self.gain(*l, field, &change) - climb
            })
            .collect();
        -log_sum_exp(&gains)
    }

    /// $F(v) - F(v')$ when the entries of layer `l` change as told.
    fn gain(&self, l: LayerId, field: &[f64], change: &[(usize, f64)]) -> f64 {
        if change.is_empty() {
            return 0.0;
        }
        let mut gain: f64 = change.iter().map(|&(i, d)| d * field[i]).sum();
        for (h, theta, sum) in &self.hidden {
            let seen = self.machine.couplings().iter().find(|c| c.other_end(l) == Some(*h));
            let Some(coupling) = seen else { continue };
            let Weights::Between(w) = &coupling.weights else { continue };
            let mut moved = theta.clone();
            for &(i, d) in change {
                if coupling.between.0 == l {
                    add_scaled(&mut moved, d, w.row(i));
                } else {
                    moved.iter_mut().enumerate().for_each(|(j, m)| *m += d * w.at(j, i));
                }
            }
            let layer = self.machine.layer(*h);
            gain += layer.units.log_partition(&moved, layer.own()) - sum;
        }
        gain
    }
}
