//! Expected sufficient statistics of a machine, in the shape of its parameters.
//!
//! The energy is linear in the parameters, $-E(x) = \sum_k \vartheta_k s_k(x) + \text{const}$, with
//! $s = x_l$ for a bias, $-\tfrac12 x_l^2$ for a precision, and $\tilde x_l \tilde x_m^\top$ for
//! weights. The gradient of the log-likelihood is $\langle s\rangle_\text{data} - \langle
//! s\rangle_\text{model}$ for every parameter of every machine.

use crate::error::Error;
use crate::machine::{
    Clamp, Coupling, FreeReals, Layer, LayerId, Machine, Meaning, State, Weights, row_range,
};
use crate::units::{BitCoordinates, Units};
use harmonium_kernels::dense::{add_counted, add_scaled};
use harmonium_kernels::index::Words;
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;

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
    /// $\langle -s_k(x_l) \rangle$ for each layer and each parameter that its units own, one row of
    /// entries after the other: $\langle -\tfrac12 x_l^2\rangle$ for the precision of Gaussian units.
    pub own: Vec<Vec<f64>>,
    /// $\langle \tilde x_l \tilde x_m^\top \rangle$ for each coupling, stored as its weights are.
    pub weights: Vec<Vec<f64>>,
}

impl Moments {
    /// All zero.
    pub fn zeros(machine: &Machine) -> Self {
        Self {
            bias: machine.layers().iter().map(|l| vec![0.0; l.len()]).collect(),
            own: machine.layers().iter().map(|l| vec![0.0; l.own.len()]).collect(),
            weights: machine
                .couplings()
                .iter()
                .map(|c| vec![0.0; c.weights.entries().len()])
                .collect(),
        }
    }

    /// Adds the statistics of each row with its weight.
    ///
    /// Layers that hold means stand for units that are free in all rows, and independent unless they are
    /// Gaussian units that see each other: real ones then have the second moment $mm^\top + \Lambda^{-1}$,
    /// and the others have no moment with themselves to correct.
    pub fn add(&mut self, machine: &Machine, x: &State, weights: &[f64]) {
        let rows = MomentRows::new(machine, x, weights);
        for l in machine.layer_ids() {
            add_to(&mut self.bias[l.0], &rows.sums[l.0]);
            self.add_own(machine, x, l, weights);
        }
        for (c, out) in machine.couplings().iter().zip(&mut self.weights) {
            rows.add_products(machine, c, out);
        }
        let is_mean = |l: &LayerId| x.layers[l.0].meaning == Meaning::Means;
        let spreads = |l: LayerId| machine.is_gaussian(l) || machine.layer(l).units.sums_own();
        if machine.layer_ids().any(|l| is_mean(&l) && spreads(l)) {
            let held = Clamp::layers(machine.layer_ids().filter(|l| !is_mean(l)));
            // Without a density there were no means to begin with.
            let _ = self.add_spread(machine, x, &held, weights);
        }
    }

    /// Adds the statistics of a mixture: each row in several states, which share the layers `same` and of which
    /// state `k` of row `r` has the weight `weights[k][r]`.
    ///
    /// A product with a layer that is the same in all states needs the mean of the other alone.
    pub(crate) fn add_mixture(
        &mut self,
        machine: &Machine,
        states: &[State],
        weights: &[Vec<f64>],
        same: &[LayerId],
    ) {
        let own = |l: &Layer| !l.units.own_parameters().is_empty();
        let plain = machine.layer_ids().all(|l| same.contains(&l) || !own(machine.layer(l)));
        let Some(first) = states.first().filter(|_| plain) else {
            states.iter().zip(weights).for_each(|(x, w)| self.add(machine, x, w));
            return;
        };
        let totals: Vec<f64> =
            (0..first.n_rows()).map(|r| weights.iter().map(|w| w[r]).sum()).collect();
        let mut mean = first.clone();
        for l in machine.layer_ids().filter(|l| !same.contains(l)) {
            let n = machine.layer(l).len();
            let mut values = vec![0.0; first.n_rows() * n];
            for (x, w) in states.iter().zip(weights) {
                let rows = values.chunks_exact_mut(n).zip(x.layer(l).chunks_exact(n));
                for (r, (out, x)) in rows.enumerate() {
                    let share = if totals[r] > 0.0 { w[r] / totals[r] } else { 0.0 };
                    add_scaled(out, share, x);
                }
            }
            mean.set_layer(l, &values);
        }
        let rows = MomentRows::new(machine, &mean, &totals);
        let each: Vec<MomentRows<'_>> =
            states.iter().zip(weights).map(|(x, w)| MomentRows::new(machine, x, w)).collect();
        for l in machine.layer_ids() {
            add_to(&mut self.bias[l.0], &rows.sums[l.0]);
            self.add_own(machine, &mean, l, &totals);
        }
        for (c, out) in machine.couplings().iter().zip(&mut self.weights) {
            if same.contains(&c.between.0) || same.contains(&c.between.1) {
                rows.add_products(machine, c, out);
            } else {
                each.iter().for_each(|rows| rows.add_products(machine, c, out));
            }
        }
    }

    fn add_own(&mut self, machine: &Machine, x: &State, l: LayerId, w: &[f64]) {
        let layer = machine.layer(l);
        for (k, out) in self.own[l.0].chunks_exact_mut(layer.len()).enumerate() {
            for (row, w) in x.layer(l).chunks_exact(layer.len()).zip(w) {
                let entries = out.iter_mut().zip(row);
                entries.for_each(|(o, &x)| *o += layer.units.own_term(k, -w, x));
            }
        }
    }

    /// Adds what the spread of free units around their means brings to rows of a state that counts as
    /// values: the covariance of Gaussian ones given everything else, the statistics of whole numbers.
    pub(crate) fn add_spread(
        &mut self,
        machine: &Machine,
        x: &State,
        clamp: &Clamp,
        weights: &[f64],
    ) -> Result<(), Error> {
        for l in machine.layer_ids().filter(|&l| machine.layer(l).units.sums_own()) {
            self.add_levels_spread(machine, x, l, clamp, weights);
        }
        for FreeReals { units, density, rows } in machine.free_reals(clamp, weights.len())? {
            let n = units.len();
            let weight: f64 = rows.iter().map(|&row| weights[row]).sum();
            let mut add_own = |(l, i): (LayerId, usize), variance: f64| {
                let layer = machine.layer(l);
                for row in 0..layer.units.own_parameters().len() {
                    let term = layer.units.own_of_square(row, -weight, variance);
                    self.own[l.0][row * layer.len() + i] += term;
                }
            };
            if let Some(variances) = density.variances() {
                units.iter().zip(variances).for_each(|(&unit, v)| add_own(unit, v));
                continue;
            }
            let covariance = density.covariance();
            let mut place: BTreeMap<(LayerId, usize), usize> = BTreeMap::new();
            for (k, &unit) in units.iter().enumerate() {
                place.insert(unit, k);
                add_own(unit, covariance[k * (n + 1)]);
            }
            for (c, out) in machine.couplings().iter().zip(&mut self.weights) {
                if !machine.joins_reals(c) {
                    continue;
                }
                let (a, b) = c.between;
                let mut out = out.iter_mut();
                c.weights.for_each(|i, j, _| {
                    let (Some(out), at) = (out.next(), |l, i| place.get(&(l, i))) else { return };
                    if let (Some(x), Some(y)) = (at(a, i), at(b, j)) {
                        *out += weight * covariance[x * n + y];
                    }
                });
            }
        }
        Ok(())
    }

    /// The same of one layer of whole numbers.
    fn add_levels_spread(
        &mut self,
        machine: &Machine,
        x: &State,
        l: LayerId,
        clamp: &Clamp,
        weights: &[f64],
    ) {
        let layer = machine.layer(l);
        let mut spread = vec![0.0; layer.units.own_parameters().len()];
        for (row, w) in weights.iter().enumerate() {
            for (i, &mean) in x.row(l, row).iter().enumerate() {
                if clamp.holds(l, row, i) {
                    continue;
                }
                layer.units.own_of_spread(mean, layer.own().piece(i..i + 1), &mut spread);
                for (k, s) in spread.iter().enumerate() {
                    self.own[l.0][k * layer.len() + i] -= w * s;
                }
            }
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

    /// How many numbers each of [`Moments::slices`] holds for a machine.
    pub fn lengths(machine: &Machine) -> Vec<usize> {
        Self::zeros(machine).slices().iter().map(|slice| slice.len()).collect()
    }

    /// All numbers: biases, own parameters, weights.
    pub fn slices(&self) -> Vec<&[f64]> {
        self.bias.iter().chain(&self.own).chain(&self.weights).map(Vec::as_slice).collect()
    }

    /// All numbers, given away in the order of [`Moments::slices`].
    pub(crate) fn into_slices(self) -> Vec<Vec<f64>> {
        self.bias.into_iter().chain(self.own).chain(self.weights).collect()
    }

    /// All numbers, to change them.
    pub fn slices_mut(&mut self) -> Vec<&mut [f64]> {
        let (b, o, w) = (&mut self.bias, &mut self.own, &mut self.weights);
        b.iter_mut().chain(o).chain(w).map(Vec::as_mut_slice).collect()
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

/// Weighted rows, and what all products of their layers share.
struct MomentRows<'a> {
    x: &'a State,
    weights: &'a [f64],
    /// $\sum_r w_r$.
    total: f64,
    /// $\sum_r w_r x_r$ of each layer.
    sums: Vec<Vec<f64>>,
    /// The bits of each layer column by column, where all rows weigh the same and two layers with bits are coupled.
    columns: Vec<Option<Words>>,
}

impl<'a> MomentRows<'a> {
    fn new(machine: &Machine, x: &'a State, weights: &'a [f64]) -> Self {
        let alike = weights.iter().all(|w| *w == weights[0]);
        let bits = |l: LayerId| x.layers[l.0].bits().filter(|_| alike);
        let mut columns: Vec<Option<Words>> = vec![None; machine.layers().len()];
        for (a, b) in machine.couplings().iter().map(|c| c.between) {
            let (Some(of_a), Some(of_b)) = (bits(a), bits(b)) else { continue };
            for (l, bits) in [(a, of_a), (b, of_b)] {
                columns[l.0].get_or_insert_with(|| {
                    let mut words = Words::default();
                    words.fill_columns(bits, 64);
                    words
                });
            }
        }
        Self {
            x,
            weights,
            total: weights.iter().sum(),
            sums: machine.layer_ids().map(|l| weighted_sum(x, l, weights)).collect(),
            columns,
        }
    }

    /// Adds $\sum_r w_r \tilde a_r \tilde b_r^\top$, which is
    /// $\sum_r w_r a_r b_r^\top - s_a\mu_b^\top - \mu_a s_b^\top + (\sum_r w_r)\mu_a\mu_b^\top$ with
    /// $s = \sum_r w_r x_r$: the sum runs over the plain values, of which many are zero, and centering is a correction of rank two.
    ///
    /// Where both layers hold bits and all rows weigh the same, the sum counts rows in which both are set. A spin is
    /// such a bit times two, with everything moved by one.
    ///
    /// A fixed number of output rows is one task, so the result does not depend on the number of
    /// threads.
    fn add_products(&self, machine: &Machine, c: &Coupling, out: &mut [f64]) {
        let (a, b) = c.between;
        let counted = self.columns[a.0].as_ref().zip(self.columns[b.0].as_ref());
        let [of_a, of_b] = [a, b].map(|l| self.side(machine, l, counted.is_some()));
        let (n_a, n_b) = (of_a.offset.len(), of_b.offset.len());
        let unit = self.weights.first().map_or(0.0, |w| w * of_a.gain * of_b.gain);
        // Entry `i` of the first layer with the entries of the second from column `from` on.
        let add_samples = |first: usize, from: usize, rows: &mut [f64], width: usize| {
            let mut counts = vec![0; if counted.is_some() { width } else { 0 }];
            if counted.is_none() {
                self.add_numbers((a, first), (b, from), rows, width);
            }
            let [mu_b, sums_b] = [&of_b.offset, &of_b.sums].map(|of| &of[from..from + width]);
            for (row, i) in rows.chunks_exact_mut(width).zip(first..) {
                let (mu, sum) = (of_a.offset[i], of_a.sums[i]);
                let (by_mu, by_sums) = ((self.total * mu - sum, mu_b), (-mu, sums_b));
                if let Some((columns_a, columns_b)) = counted {
                    columns_a.count_common(i, columns_b, from, &mut counts);
                    add_counted(row, (unit, &counts), by_mu, by_sums);
                } else {
                    add_scaled(row, by_mu.0, by_mu.1);
                    add_scaled(row, by_sums.0, by_sums.1);
                }
            }
        };
        let parallel = out.len() * self.weights.len() >= WORTH_THREADS;
        if let Weights::Sparse(edges) = &c.weights {
            let add_edges = |(pairs, out): (&[(usize, usize)], &mut [f64])| {
                if let Some((columns, _)) = counted {
                    for (&(i, j), o) in pairs.iter().zip(&mut *out) {
                        let mut count = [0];
                        columns.count_common(i, columns, j, &mut count);
                        *o += unit * f64::from(count[0]);
                    }
                } else {
                    // Rows outside: each is read from one place of the cache, edge after edge.
                    for (x, w) in self.x.layer(a).chunks_exact(n_a).zip(self.weights) {
                        pairs.iter().zip(&mut *out).for_each(|(&(i, j), o)| *o += w * x[i] * x[j]);
                    }
                }
                for (&(i, j), o) in pairs.iter().zip(&mut *out) {
                    let (mu, sums) = (&of_a.offset, &of_a.sums);
                    *o += self.total * mu[i] * mu[j] - sums[i] * mu[j] - mu[i] * sums[j];
                }
            };
            if parallel {
                let pairs = edges.pairs().par_chunks(EDGES_PER_TASK);
                pairs.zip(out.par_chunks_mut(EDGES_PER_TASK)).for_each(add_edges);
            } else {
                add_edges((edges.pairs(), out));
            }
        } else if c.is_lateral() {
            let units = machine.layer(a).units;
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
            let add = |(k, rows): (usize, &mut [f64])| {
                add_samples(k * ROWS_PER_TASK, 0, rows, n_b);
            };
            if parallel {
                out.par_chunks_mut(size).enumerate().for_each(add);
            } else {
                out.chunks_mut(size).enumerate().for_each(add);
            }
        }
    }

    /// Adds $\sum_r w_r a_r b_r^\top$ for some entries of two layers, of the second `width`.
    fn add_numbers(
        &self,
        (a, first): (LayerId, usize),
        (b, from): (LayerId, usize),
        rows: &mut [f64],
        width: usize,
    ) {
        let n = rows.len() / width;
        let [x_a, x_b] = [a, b].map(|l| self.x.layer(l).chunks_exact(self.x.layers[l.0].len));
        for ((xa, xb), w) in x_a.zip(x_b).zip(self.weights) {
            for (row, x) in rows.chunks_exact_mut(width).zip(&xa[first..first + n]) {
                let scale = w * x;
                if scale != 0.0 {
                    add_scaled(row, scale, &xb[from..from + width]);
                }
            }
        }
    }

    /// A layer as its products see it, its bits counted or not.
    fn side<'s>(&'s self, machine: &'s Machine, l: LayerId, counted: bool) -> Side<'s> {
        let (layer, sums) = (machine.layer(l), &self.sums[l.0]);
        let bits = layer.units.bit_coordinates().filter(|&bits| bits != BitCoordinates::PLAIN);
        if let Some(BitCoordinates { scale, shift }) = bits.filter(|_| counted) {
            let moved = |values: &[f64], by: f64| values.iter().map(|x| x - by).collect();
            let offset = moved(&layer.offset, shift);
            return Side { gain: scale, offset, sums: moved(sums, shift * self.total) };
        }
        Side { gain: 1.0, offset: Cow::from(&layer.offset), sums: Cow::from(sums) }
    }
}

/// $\mu$ and $\sum_r w_r x_r$ of a layer whose values are zero or more than it by its gain.
struct Side<'a> {
    gain: f64,
    offset: Cow<'a, [f64]>,
    sums: Cow<'a, [f64]>,
}

/// How many entries right of `i` belong to the same unit: they have no moment with it.
pub(crate) fn inside_unit(units: Units, i: usize, n: usize) -> usize {
    let group = units.group();
    ((i / group + 1) * group).min(n) - i - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Edges, Layer, LayerState, Matrix, Role, Triangle};
    use harmonium_kernels::random::{Site, Stream};

    fn noise(seed: u64, i: usize) -> f64 {
        Stream::new(seed).uniform(Site::default(), i) - 0.5
    }

    /// Binary, spin and categorical units, each coupled with the others and with themselves.
    fn machine() -> Machine {
        let kinds = [(Units::Binary, 70), (Units::Spin, 9), (Units::Categorical { q: 3 }, 4)];
        let layers: Vec<Layer> = (0..)
            .zip(kinds)
            .map(|(l, (units, n))| {
                let mut layer = Layer::new(format!("{l}"), Role::Visible, units, n).unwrap();
                (0..).zip(&mut layer.offset).for_each(|(i, m)| *m = noise(l, i));
                layer
            })
            .collect();
        let [a, b, c] = [0, 1, 2].map(LayerId);
        let between = |l: LayerId, m: LayerId| {
            let weights = Matrix::zeros(layers[l.0].len(), layers[m.0].len()).unwrap();
            Coupling::between(l, m, weights)
        };
        let ring = Edges::new(9, (0..9).map(|i| (i, (i + 2) % 9, 0.0))).unwrap();
        let lateral =
            |l: LayerId| Coupling::lateral(l, Triangle::zeros(layers[l.0].len()).unwrap());
        let couplings = vec![
            lateral(a),
            Coupling::sparse(b, ring),
            lateral(c),
            between(a, b),
            between(a, c),
            between(b, c),
        ];
        Machine::new(layers, couplings).unwrap()
    }

    #[test]
    fn counted_bits_have_the_moments_of_their_numbers() {
        let machine = machine();
        for n in [0, 1, 63, 64, 65, 200] {
            let mut numbers = State::zeros(&machine, n).unwrap();
            for row in 0..n {
                let on = |l: u64, i: usize| noise(100 + 3 * row as u64 + l, i) > 0.1;
                let bits: Vec<f64> = (0..70).map(|i| f64::from(u8::from(on(0, i)))).collect();
                let spins: Vec<f64> = (0..9).map(|i| if on(1, i) { 1.0 } else { -1.0 }).collect();
                let mut groups = vec![0.0; 12];
                (0..4).for_each(|g| groups[3 * g + (row + g * g) % 3] = 1.0);
                for (l, values) in [bits, spins, groups].iter().enumerate() {
                    numbers.set_row(LayerId(l), row, values).unwrap();
                }
            }
            let mut packed = numbers.clone();
            packed.layers.iter_mut().for_each(LayerState::pack);
            assert!(packed.layers.iter().all(|layer| layer.bits().is_some()));
            let alike = vec![-0.7; n];
            let others: Vec<f64> = (0..n).map(|row| noise(9, row)).collect();
            for weights in [alike, others] {
                let moments = |x: &State| {
                    let mut moments = Moments::zeros(&machine);
                    moments.add(&machine, x, &weights);
                    moments
                };
                let (found, expected) = (moments(&packed), moments(&numbers));
                let size: f64 = weights.iter().map(|w| w.abs()).sum();
                for (a, b) in found.slices().concat().iter().zip(expected.slices().concat()) {
                    assert!((a - b).abs() <= 1e-13 * size, "{n} rows: {a} for {b}");
                }
            }
        }
    }
}
