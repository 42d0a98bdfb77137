//! Means and products of all entries under the exact distribution.
//!
//! A group of chunks is walked twice: once for its total weight, which decides the scale that its sums
//! are kept in, and once to add up. Groups are fixed and merged in order.

use super::enumerate::{CHUNK, Cut, Tables};
use super::problem::{Entry, Problem};
use crate::gaussian::Block;
use crate::machine::{Machine, Weights, row_range};
use crate::moments::{Moments, inside_unit};
use crate::units::log_sum_exp;
use harmonium_kernels::dense::add_scaled;
use rayon::prelude::*;

/// What is averaged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Means alone.
    First,
    /// Means, and the products of all pairs.
    Second,
}

impl Problem {
    /// Means and products under the normalised weights.
    pub(super) fn expectation(&self, order: Order) -> Expectation {
        let tables = Tables::new(self);
        let chunks = Cut::new(self);
        // Groups bound the memory of the partial sums; they are fixed, and reduced in order.
        let n_groups = chunks.n_chunks.min(64);
        let parts: Vec<Expectation> = (0..n_groups)
            .into_par_iter()
            .map(|g| {
                let range = g * chunks.n_chunks / n_groups..(g + 1) * chunks.n_chunks / n_groups;
                let mut part = Expectation::new(self, order);
                for chunk in range {
                    let mut logs = Vec::with_capacity(CHUNK);
                    tables.walk(&chunks, chunk, |_, log_weight| logs.push(log_weight));
                    part.rescale(log_sum_exp(&logs));
                    let (mut mean, mut own) = (Vec::new(), Vec::new());
                    tables.walk(&chunks, chunk, |walker, log_weight| {
                        walker.means_into(&mut mean);
                        if order == Order::Second {
                            walker.statistics_into(&mut own);
                        }
                        part.add(&walker.values, &mean, &own, log_weight);
                    });
                }
                part
            })
            .collect();
        let mut total = Expectation::new(self, order);
        for part in parts {
            total.merge(part);
        }
        total.normalise();
        total.colour(&self.gaussian);
        total
    }
}

/// Weighted means and products of enumerated ($e$) and summed ($s$) entries.
pub(super) struct Expectation {
    /// Logarithm of the total weight that was added, and of the scale the sums are in.
    log_total: f64,
    log_scale: f64,
    e: Vec<f64>,
    s: Vec<f64>,
    ee: Vec<f64>,
    es: Vec<f64>,
    /// Products of Gaussian entries: of their means, until their covariance is added.
    gg: Vec<f64>,
    /// Statistics of own parameters that are sums over values.
    own: Vec<f64>,
    n_gaussian: usize,
    order: Order,
}

impl Expectation {
    fn new(problem: &Problem, order: Order) -> Self {
        let (n, m, g) = (problem.values.len(), problem.n_summed(), problem.gaussian.len());
        let n_own = problem.owners.iter().map(|o| o.units.own_parameters().len()).sum();
        let pairs = |a: usize, b: usize| vec![0.0; if order == Order::Second { a * b } else { 0 }];
        Self {
            log_total: f64::NEG_INFINITY,
            log_scale: f64::NEG_INFINITY,
            e: vec![0.0; n],
            s: vec![0.0; m],
            ee: pairs(n, n),
            es: pairs(n, m),
            gg: pairs(g, g),
            own: pairs(n_own, 1),
            n_gaussian: g,
            order,
        }
    }

    fn sums(&mut self) -> [&mut Vec<f64>; 6] {
        let Self { e, s, ee, es, gg, own, .. } = self;
        [e, s, ee, es, gg, own]
    }

    /// Prepares for states of total weight `log_more`: sums are kept relative to the largest.
    fn rescale(&mut self, log_more: f64) {
        let scale = self.log_scale.max(log_more);
        let factor = (self.log_scale - scale).exp();
        self.sums().into_iter().flatten().for_each(|x| *x *= factor);
        self.log_scale = scale;
        self.log_total = log_sum_exp(&[self.log_total, log_more]);
    }

    fn add(&mut self, e: &[f64], s: &[f64], own: &[f64], log_weight: f64) {
        let w = (log_weight - self.log_scale).exp();
        add_scaled(&mut self.e, w, e);
        add_scaled(&mut self.s, w, s);
        if self.order == Order::First {
            return;
        }
        add_scaled(&mut self.own, w, own);
        let (n, m) = (e.len(), s.len());
        for (i, x) in e.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            add_scaled(&mut self.ee[i * n..(i + 1) * n], w * x, e);
            add_scaled(&mut self.es[i * m..(i + 1) * m], w * x, s);
        }
        let g = self.n_gaussian;
        let means = &s[m - g..];
        for (i, x) in means.iter().enumerate() {
            add_scaled(&mut self.gg[i * g..(i + 1) * g], w * x, means);
        }
    }

    fn merge(&mut self, mut other: Self) {
        self.rescale(other.log_total);
        let factor = (other.log_scale - self.log_scale).exp();
        for (mine, theirs) in self.sums().into_iter().zip(other.sums()) {
            add_scaled(mine, factor, theirs);
        }
    }

    fn normalise(&mut self) {
        let factor = (self.log_scale - self.log_total).exp();
        self.sums().into_iter().flatten().for_each(|x| *x *= factor);
    }

    /// Takes Gaussian entries from coordinates in which they are independent and have unit variance to
    /// their own, and adds their covariance to their products.
    fn colour(&mut self, block: &Block) {
        let (m, g) = (self.s.len(), self.n_gaussian);
        if g == 0 {
            return;
        }
        block.colour(&mut self.s[m - g..]);
        self.es.chunks_exact_mut(m).for_each(|row| block.colour(&mut row[m - g..]));
        // A row and then a column at a time: the matrix is symmetric, so both are rows.
        for i in 0..if self.gg.is_empty() { 0 } else { g } {
            self.gg[i * g + i] += 1.0;
        }
        for _ in 0..2 {
            self.gg.chunks_exact_mut(g).for_each(|row| block.colour(row));
            transpose(&mut self.gg, g);
        }
    }

    /// Adds `weight` times these moments, in the machine's own (centered) coordinates.
    pub(super) fn add_to(
        &self,
        problem: &Problem,
        machine: &Machine,
        weight: f64,
        out: &mut Moments,
    ) {
        for (l, layer) in machine.layers().iter().enumerate() {
            for (i, entry) in problem.entries[l].iter().enumerate() {
                out.bias[l][i] += weight * self.mean(*entry);
                let real =
                    if layer.units.sums_own() { 0 } else { layer.units.own_parameters().len() };
                for k in 0..real {
                    let square = self.product(*entry, *entry);
                    let term = layer.units.own_of_square(k, -weight, square);
                    out.own[l][k * layer.len() + i] += term;
                }
            }
        }
        let mut own = self.own.iter();
        for owner in &problem.owners {
            let (l, n) = (owner.layer, machine.layer(owner.layer).len());
            for (k, s) in own.by_ref().take(owner.units.own_parameters().len()).enumerate() {
                out.own[l.0][k * n + owner.index] -= weight * s;
            }
        }
        for (c, out) in machine.couplings().iter().zip(&mut out.weights) {
            let (a, b) = (c.between.0.0, c.between.1.0);
            let (mu_a, mu_b) = (&machine.layers()[a].offset, &machine.layers()[b].offset);
            let centered = |i: usize, j: usize| {
                let (x, y) = (problem.entries[a][i], problem.entries[b][j]);
                self.product(x, y) - mu_a[i] * self.mean(y) - mu_b[j] * self.mean(x)
                    + mu_a[i] * mu_b[j]
            };
            match &c.weights {
                Weights::Between(w) => {
                    let (_, n) = w.shape();
                    for (k, out) in out.iter_mut().enumerate() {
                        *out += weight * centered(k / n, k % n);
                    }
                }
                Weights::Lateral(t) => {
                    for i in 0..t.n() {
                        let inside = inside_unit(machine.layers()[a].units, i, t.n());
                        let row = &mut out[row_range(t.n(), i)];
                        for (k, out) in row.iter_mut().enumerate().skip(inside) {
                            *out += weight * centered(i, i + 1 + k);
                        }
                    }
                }
                Weights::Sparse(edges) => {
                    for (out, &(i, j)) in out.iter_mut().zip(edges.pairs()) {
                        *out += weight * centered(i, j);
                    }
                }
            }
        }
    }

    pub(super) fn mean(&self, entry: Entry) -> f64 {
        match entry {
            Entry::Clamped(x) => x,
            Entry::Enumerated(i) => self.e[i],
            Entry::Summed(i) => self.s[i],
        }
    }

    fn product(&self, x: Entry, y: Entry) -> f64 {
        let (n, m, g) = (self.e.len(), self.s.len(), self.n_gaussian);
        match (x, y) {
            (Entry::Clamped(x), y) => x * self.mean(y),
            (x, Entry::Clamped(y)) => self.mean(x) * y,
            (Entry::Enumerated(i), Entry::Enumerated(j)) => self.ee[i * n + j],
            (Entry::Enumerated(i), Entry::Summed(j)) | (Entry::Summed(j), Entry::Enumerated(i)) => {
                self.es[i * m + j]
            }
            (Entry::Summed(i), Entry::Summed(j)) => {
                // Only Gaussian entries are summed together with what they see.
                let (i, j) = (i - (m - g), j - (m - g));
                self.gg[i * g + j]
            }
        }
    }
}

/// Exchanges rows and columns of a square matrix; of none, nothing.
fn transpose(a: &mut [f64], n: usize) {
    for i in 0..a.len() / n.max(1) {
        for j in 0..i {
            a.swap(i * n + j, j * n + i);
        }
    }
}
