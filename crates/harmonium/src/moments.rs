//! Expected sufficient statistics of a machine, in the shape of its parameters.
//!
//! The energy is linear in the parameters, $-E(x) = \sum_k \vartheta_k s_k(x) + \text{const}$, with
//! $s = x_l$ for a bias, $-\tfrac12 x_l^2$ for a precision, and $\tilde x_l \tilde x_m^\top$ for
//! weights. The gradient of the log-likelihood is $\langle s\rangle_\text{data} - \langle
//! s\rangle_\text{model}$ for every parameter of every machine.

use crate::machine::{Coupling, LayerId, Machine, Meaning, State, Weights, row_range};
use crate::units::Units;
use harmonium_kernels::dense::add_scaled;
use rayon::prelude::*;

/// Rows of a weight matrix whose moments one task sums: few enough to stay in the cache.
const ROWS_PER_TASK: usize = 32;

/// Edges of a sparse coupling whose moments one task sums.
const EDGES_PER_TASK: usize = 1024;

/// Products below which waking other threads costs more than they save.
const WORTH_THREADS: usize = 500_000;

/// One number per parameter: moments, a gradient, or what an optimiser keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// $\langle x_l \rangle$ for each layer.
    pub bias: Vec<Vec<f64>>,
    /// $\langle -\tfrac12 x_l^2 \rangle$ for each Gaussian layer; empty for the others.
    pub precision: Vec<Vec<f64>>,
    /// $\langle \tilde x_l \tilde x_m^\top \rangle$ for each coupling, stored as its weights are.
    pub weights: Vec<Vec<f64>>,
}

impl Moments {
    /// All zero.
    pub fn zeros(machine: &Machine) -> Self {
        Self {
            bias: machine.layers().iter().map(|l| vec![0.0; l.len()]).collect(),
            precision: machine.layers().iter().map(|l| vec![0.0; l.precision.len()]).collect(),
            weights: machine
                .couplings()
                .iter()
                .map(|c| vec![0.0; c.weights.entries().len()])
                .collect(),
        }
    }

    /// Adds the statistics of each row with its weight.
    ///
    /// Layers that hold means stand for independent units: a Gaussian one then has the second
    /// moment $m^2 + 1/\gamma$, and a unit has no moment with itself to correct.
    pub fn add(&mut self, machine: &Machine, x: &State, weights: &[f64]) {
        let total: f64 = weights.iter().sum();
        let sums: Vec<Vec<f64>> =
            machine.layer_ids().map(|l| weighted_sum(x, l, weights)).collect();
        for l in machine.layer_ids() {
            add_to(&mut self.bias[l.0], &sums[l.0]);
            self.add_squares(machine, x, l, weights, total);
        }
        for (c, out) in machine.couplings().iter().zip(&mut self.weights) {
            add_products(machine, c, x, weights, &sums, total, out);
        }
    }

    fn add_squares(&mut self, machine: &Machine, x: &State, l: LayerId, w: &[f64], total: f64) {
        let layer = machine.layer(l);
        let out = &mut self.precision[l.0];
        if out.is_empty() {
            return;
        }
        for (row, w) in x.layer(l).chunks_exact(layer.len()).zip(w) {
            out.iter_mut().zip(row).for_each(|(o, x)| *o -= 0.5 * w * x * x);
        }
        if x.layers[l.0].meaning == Meaning::Means {
            out.iter_mut().zip(&layer.precision).for_each(|(o, g)| *o -= 0.5 * total / g);
        }
    }

    /// Adds `scale` times another set of moments.
    pub fn add_scaled(&mut self, scale: f64, other: &Self) {
        for (mine, theirs) in self.slices_mut().into_iter().zip(other.slices()) {
            add_scaled(mine, scale, theirs);
        }
    }

    /// `self - other`, the gradient when `self` is the data side.
    #[must_use]
    pub fn minus(mut self, other: &Self) -> Self {
        self.add_scaled(-1.0, other);
        self
    }

    /// Sets everything to zero, keeping the memory.
    pub fn clear(&mut self) {
        self.slices_mut().into_iter().for_each(|s| s.fill(0.0));
    }

    /// All numbers: biases, precisions, weights.
    pub fn slices(&self) -> Vec<&[f64]> {
        self.bias.iter().chain(&self.precision).chain(&self.weights).map(Vec::as_slice).collect()
    }

    /// All numbers, to change them.
    pub fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        let (b, p, w) = (&mut self.bias, &mut self.precision, &mut self.weights);
        b.iter_mut().chain(p).chain(w).map(Vec::as_mut_slice).collect()
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.slices().into_iter().flatten().all(|x| x.is_finite())
    }

    /// $\sqrt{\sum_k s_k^2}$.
    pub fn norm(&self) -> f64 {
        self.slices().into_iter().flatten().map(|x| x * x).sum::<f64>().sqrt()
    }
}

fn add_to(out: &mut [f64], x: &[f64]) {
    out.iter_mut().zip(x).for_each(|(o, x)| *o += x);
}

fn weighted_sum(x: &State, l: LayerId, weights: &[f64]) -> Vec<f64> {
    let len = x.layers[l.0].len;
    let mut sum = vec![0.0; len];
    for (row, &w) in x.layer(l).chunks_exact(len).zip(weights) {
        add_scaled(&mut sum, w, row);
    }
    sum
}

/// Adds $\sum_r w_r \tilde a_r \tilde b_r^\top$, which is
/// $\sum_r w_r a_r b_r^\top - s_a\mu_b^\top - \mu_a s_b^\top + (\sum_r w_r)\mu_a\mu_b^\top$ with
/// $s = \sum_r w_r x_r$: the sum runs over the plain values, of which many are zero, and centering is a correction of rank two.
///
/// A fixed number of output rows is one task, so the result does not depend on the number of
/// threads.
fn add_products(
    machine: &Machine,
    c: &Coupling,
    x: &State,
    weights: &[f64],
    sums: &[Vec<f64>],
    total: f64,
    out: &mut [f64],
) {
    let (a, b) = c.between;
    let (mu_a, mu_b) = (&machine.layer(a).offset, &machine.layer(b).offset);
    let (n_a, n_b) = (mu_a.len(), mu_b.len());
    let (x_a, x_b) = (x.layer(a), x.layer(b));
    let units = machine.layer(a).units;
    // Entry `i` of the first layer with the entries of the second from column `from` on.
    let add_samples = |first: usize, from: usize, rows: &mut [f64], width: usize| {
        let n = rows.len() / width;
        for ((xa, xb), w) in x_a.chunks_exact(n_a).zip(x_b.chunks_exact(n_b)).zip(weights) {
            for (row, x) in rows.chunks_exact_mut(width).zip(&xa[first..first + n]) {
                let scale = w * x;
                if scale != 0.0 {
                    add_scaled(row, scale, &xb[from..from + width]);
                }
            }
        }
        for (row, i) in rows.chunks_exact_mut(width).zip(first..) {
            add_scaled(row, total * mu_a[i] - sums[a.0][i], &mu_b[from..from + width]);
            add_scaled(row, -mu_a[i], &sums[b.0][from..from + width]);
        }
    };
    if let Weights::Sparse(edges) = &c.weights {
        // Rows outside: each is read from one place of the cache, edge after edge.
        let add_edges = |(pairs, out): (&[(usize, usize)], &mut [f64])| {
            for (xa, w) in x_a.chunks_exact(n_a).zip(weights) {
                pairs.iter().zip(&mut *out).for_each(|(&(i, j), o)| *o += w * xa[i] * xa[j]);
            }
            for (&(i, j), o) in pairs.iter().zip(&mut *out) {
                let sums = &sums[a.0];
                *o += total * mu_a[i] * mu_a[j] - sums[i] * mu_a[j] - mu_a[i] * sums[j];
            }
        };
        let parallel = out.len() * weights.len() >= WORTH_THREADS;
        if parallel {
            let pairs = edges.pairs().par_chunks(EDGES_PER_TASK);
            pairs.zip(out.par_chunks_mut(EDGES_PER_TASK)).for_each(add_edges);
        } else {
            add_edges((edges.pairs(), out));
        }
    } else if c.is_lateral() {
        for i in 0..n_a {
            let inside = inside_unit(units, i, n_a);
            let row = &mut out[row_range(n_a, i)][inside..];
            if !row.is_empty() {
                let width = row.len();
                add_samples(i, i + 1 + inside, row, width);
            }
        }
    } else {
        let size = ROWS_PER_TASK * n_b;
        if out.len() * weights.len() < WORTH_THREADS {
            let pieces = out.chunks_mut(size).enumerate();
            pieces.for_each(|(k, rows)| add_samples(k * ROWS_PER_TASK, 0, rows, n_b));
        } else {
            let pieces = out.par_chunks_mut(size).enumerate();
            pieces.for_each(|(k, rows)| add_samples(k * ROWS_PER_TASK, 0, rows, n_b));
        }
    }
}

/// How many entries right of `i` belong to the same unit: they have no moment with it.
pub(crate) fn inside_unit(units: Units, i: usize, n: usize) -> usize {
    let group = units.group();
    ((i / group + 1) * group).min(n) - i - 1
}
