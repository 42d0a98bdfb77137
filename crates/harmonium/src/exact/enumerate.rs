//! The walk over all states in Gray-code order.
//!
//! The last units of the list are fixed inside a chunk and the first ones walk through a reflected
//! mixed-radix Gray code (Knuth, TAOCP 4A, 7.2.1.1, algorithm H), so each step changes one unit by
//! one value. The walk keeps $e^\theta$ of the summed units and multiplies it by precomputed
//! factors; each chunk starts afresh, which keeps the rounding of the products below $10^{-12}$.

use super::gaussian::Block;
use super::problem::{Entry, Problem};
use crate::machine::{Machine, Weights, row_range};
use crate::moments::{Moments, inside_unit};
use crate::units::{BitCoordinates, OwnParameters, Storage, log_sum_exp};
use harmonium_kernels::dense::add_scaled;
use harmonium_kernels::log_product::{group_for, scale_and_log_product};
use rayon::prelude::*;

/// States walked from one fresh start.
const CHUNK: usize = 1 << 12;

/// Above this bound on $|\theta|$ the exponentials are not kept: they might overflow.
const EXPONENT_LIMIT: f64 = 300.0;

/// How the states are cut into chunks.
struct Cut {
    /// Units that walk inside a chunk.
    n_inner: usize,
    /// States of a chunk.
    size: usize,
    n_chunks: usize,
}

/// What the walk multiplies and adds at each step.
struct Tables<'a> {
    problem: &'a Problem,
    /// For each unit and value, the change of $\theta$ of the summed entries on the way up.
    delta: Vec<Vec<Vec<f64>>>,
    /// $e^{\pm\kappa\delta}$ of the leading entries that are binary or spins.
    factors: Vec<Vec<[Vec<f64>; 2]>>,
    /// Number of those leading entries; 0 when the exponentials are not kept.
    n_pairs: usize,
    /// 2 for spins, whose $\ln 2\cosh\theta = \ln(1 + e^{2\theta}) - \theta$, else 1.
    scale: Vec<f64>,
    group: usize,
    ones: Vec<f64>,
}

/// One position of the walk.
struct Walker<'a> {
    tables: &'a Tables<'a>,
    values: Vec<f64>,
    log_weight: f64,
    field: Vec<f64>,
    theta: Vec<f64>,
    /// $e^{\kappa\theta}$ of the pairs.
    exponentials: Vec<f64>,
    gaussian: Vec<f64>,
}

/// A state the walk came by.
pub(super) struct Position {
    /// Of the enumerated entries.
    pub(super) values: Vec<f64>,
    /// Of the summed entries.
    pub(super) theta: Vec<f64>,
}

impl Problem {
    /// $\ln\sum e^{-E}$ over all free units.
    pub(super) fn log_sum(&self) -> f64 {
        log_sum_exp(&Tables::new(self).log_sums(&Cut::new(self)))
    }

    /// For each of `choices` in (0, 1) the state at which the cumulative probability passes it.
    pub(super) fn positions(&self, choices: &[f64]) -> Vec<Position> {
        let tables = Tables::new(self);
        let chunks = Cut::new(self);
        let logs = tables.log_sums(&chunks);
        let log_total = log_sum_exp(&logs);
        let mut order: Vec<usize> = (0..choices.len()).collect();
        order.sort_by(|&a, &b| choices[a].total_cmp(&choices[b]));
        let mut found: Vec<Option<Position>> = choices.iter().map(|_| None).collect();
        let (mut next, mut before) = (0, 0.0);
        for (chunk, log_chunk) in logs.iter().enumerate() {
            let after = before + (log_chunk - log_total).exp();
            // What rounding leaves over goes to the last state of a chunk, and to the last chunk.
            let end = if chunk + 1 == logs.len() { f64::INFINITY } else { after };
            if order.get(next).is_some_and(|&i| choices[i] < end) {
                let (mut total, mut seen) = (before, 0);
                tables.walk(&chunks, chunk, |walker, log_weight| {
                    total += (log_weight - log_total).exp();
                    seen += 1;
                    let reach = if seen == chunks.size { end } else { total.min(end) };
                    while let Some(&i) = order.get(next).filter(|&&i| choices[i] < reach) {
                        let (values, theta) = (walker.values.clone(), walker.theta.clone());
                        found[i] = Some(Position { values, theta });
                        next += 1;
                    }
                });
            }
            before = after;
        }
        found.into_iter().flatten().collect()
    }

    /// Means and products under the normalised weights.
    pub(super) fn expectation(&self) -> Expectation {
        let tables = Tables::new(self);
        let chunks = Cut::new(self);
        // Groups bound the memory of the partial sums; they are fixed, and reduced in order.
        let n_groups = chunks.n_chunks.min(64);
        let parts: Vec<Expectation> = (0..n_groups)
            .into_par_iter()
            .map(|g| {
                let range = g * chunks.n_chunks / n_groups..(g + 1) * chunks.n_chunks / n_groups;
                let mut part = Expectation::new(self);
                for chunk in range {
                    let mut logs = Vec::with_capacity(CHUNK);
                    tables.walk(&chunks, chunk, |_, log_weight| logs.push(log_weight));
                    part.rescale(log_sum_exp(&logs));
                    let mut mean = Vec::new();
                    tables.walk(&chunks, chunk, |walker, log_weight| {
                        walker.means_into(&mut mean);
                        part.add(&walker.values, &mean, log_weight);
                    });
                }
                part
            })
            .collect();
        let mut total = Expectation::new(self);
        for part in parts {
            total.merge(part);
        }
        total.normalise();
        total
    }
}

impl Cut {
    fn new(problem: &Problem) -> Self {
        let mut size = 1;
        let mut n_inner = 0;
        for unit in &problem.units {
            if size * (unit.steps.len() + 1) > CHUNK {
                break;
            }
            size *= unit.steps.len() + 1;
            n_inner += 1;
        }
        let outer = &problem.units[n_inner..];
        Self { n_inner, size, n_chunks: outer.iter().map(|u| u.steps.len() + 1).product() }
    }
}

impl<'a> Tables<'a> {
    fn new(problem: &'a Problem) -> Self {
        let m = problem.n_summed();
        let mut scale = vec![1.0; m];
        let mut n_pairs = 0;
        let mut leading = true;
        for run in &problem.runs {
            leading &= run.units.storage() == Storage::Bits;
            if let Some(bits) = run.units.bit_coordinates() {
                scale[run.entries.clone()].fill(bits.scale);
            }
            if leading {
                n_pairs = run.entries.end;
            }
        }
        let row = |entry: usize| &problem.outer[entry * m..(entry + 1) * m];
        let delta: Vec<Vec<Vec<f64>>> = problem
            .units
            .iter()
            .map(|unit| {
                let step = |changes: &Vec<(usize, f64)>| {
                    let mut delta = vec![0.0; m];
                    changes.iter().for_each(|&(entry, d)| add_scaled(&mut delta, d, row(entry)));
                    delta
                };
                unit.steps.iter().map(step).collect()
            })
            .collect();
        let bound = (0..n_pairs).map(|i| {
            let reach: f64 = delta.iter().map(|u| u.iter().map(|d| d[i].abs()).sum::<f64>()).sum();
            scale[i] * (problem.theta[i].abs() + reach)
        });
        let bound = bound.fold(0.0, f64::max);
        if bound > EXPONENT_LIMIT {
            n_pairs = 0;
        }
        let power = |d: &Vec<f64>, sign: f64| -> Vec<f64> {
            d[..n_pairs].iter().zip(&scale).map(|(d, s)| (sign * s * d).exp()).collect()
        };
        let factors = delta
            .iter()
            .map(|u| u.iter().map(|d| [power(d, 1.0), power(d, -1.0)]).collect())
            .collect();
        let (group, ones) = (group_for(bound), vec![1.0; n_pairs]);
        Self { problem, delta, factors, n_pairs, scale, group, ones }
    }

    /// The logarithm of the total weight of each chunk.
    fn log_sums(&self, chunks: &Cut) -> Vec<f64> {
        (0..chunks.n_chunks)
            .into_par_iter()
            .map(|chunk| {
                let mut logs = Vec::with_capacity(CHUNK);
                self.walk(chunks, chunk, |_, log_weight| logs.push(log_weight));
                log_sum_exp(&logs)
            })
            .collect()
    }

    /// Calls `visit` at every state of a chunk with the logarithm of its weight.
    fn walk(&self, chunks: &Cut, chunk: usize, mut visit: impl FnMut(&Walker<'_>, f64)) {
        let mut walker = Walker::new(self, chunks, chunk);
        let log_weight = walker.log_weight(&self.ones);
        visit(&walker, log_weight);
        // Algorithm H: `focus` points at the next unit to move, which goes up or down by one.
        let n = chunks.n_inner;
        let mut level = vec![0_usize; n];
        let mut upwards = vec![true; n];
        let mut focus: Vec<usize> = (0..=n).collect();
        loop {
            let unit = focus[0];
            focus[0] = 0;
            if unit == n {
                return;
            }
            let log_weight = walker.step(unit, level[unit], upwards[unit]);
            level[unit] = if upwards[unit] { level[unit] + 1 } else { level[unit] - 1 };
            if level[unit] == 0 || level[unit] == self.delta[unit].len() {
                upwards[unit] = !upwards[unit];
                focus[unit] = focus[unit + 1];
                focus[unit + 1] = unit + 1;
            }
            visit(&walker, log_weight);
        }
    }
}

impl<'a> Walker<'a> {
    /// Stands at the first state of a chunk.
    fn new(tables: &'a Tables<'a>, chunks: &Cut, chunk: usize) -> Self {
        let problem = tables.problem;
        let mut walker = Self {
            tables,
            values: problem.values.clone(),
            log_weight: problem.log_weight,
            field: problem.field.clone(),
            theta: problem.theta.clone(),
            exponentials: Vec::new(),
            gaussian: Vec::new(),
        };
        let mut code = chunk;
        for unit in chunks.n_inner..problem.units.len() {
            let levels = problem.units[unit].steps.len() + 1;
            for level in 0..code % levels {
                walker.move_unit(unit, level, true);
            }
            code /= levels;
        }
        let pairs = walker.theta[..tables.n_pairs].iter().zip(&tables.scale);
        walker.exponentials = pairs.map(|(t, s)| (s * t).exp()).collect();
        walker
    }

    /// Moves a unit by one value, everything but the exponentials.
    fn move_unit(&mut self, unit: usize, level: usize, upwards: bool) {
        let problem = self.tables.problem;
        let n = self.values.len();
        let (step, sign) = if upwards { (level, 1.0) } else { (level - 1, -1.0) };
        let changes = &problem.units[unit].steps[step];
        debug_assert!(changes.iter().all(|c| c.0 >= problem.units[unit].start));
        for &(entry, d) in changes {
            self.log_weight += sign * d * self.field[entry];
        }
        for &(entry, d) in changes {
            self.values[entry] += sign * d;
            add_scaled(&mut self.field, sign * d, &problem.inner[entry * n..(entry + 1) * n]);
        }
        add_scaled(&mut self.theta, sign, &self.tables.delta[unit][step]);
    }

    /// Moves a unit by one value; the logarithm of the weight of the new state.
    fn step(&mut self, unit: usize, level: usize, upwards: bool) -> f64 {
        self.move_unit(unit, level, upwards);
        let step = if upwards { level } else { level - 1 };
        let factors = &self.tables.factors[unit][step][usize::from(!upwards)];
        self.log_weight(factors)
    }

    /// $-E$ plus the logarithms of the closed-form sums; multiplies the exponentials by `factors`.
    fn log_weight(&mut self, factors: &[f64]) -> f64 {
        let tables = self.tables;
        let mut log = self.log_weight;
        if tables.n_pairs > 0 {
            log += scale_and_log_product(&mut self.exponentials, factors, tables.group);
        }
        for run in &tables.problem.runs {
            let theta = &self.theta[run.entries.clone()];
            let kept = run.entries.end <= tables.n_pairs;
            log += match run.units.bit_coordinates() {
                // The product has e^(s theta); e^(t theta) is common to both values.
                Some(BitCoordinates::PLAIN) if kept => 0.0,
                Some(bits) if kept => bits.shift * theta.iter().sum::<f64>(),
                _ if run.units.is_finite() => run.units.log_partition(theta, OwnParameters::NONE),
                _ => 0.0,
            };
        }
        log + self.integral()
    }

    fn integral(&mut self) -> f64 {
        let block: &Block = &self.tables.problem.gaussian;
        if block.len() == 0 {
            return 0.0;
        }
        let start = self.theta.len() - block.len();
        block.log_integral(&self.theta[start..], &mut self.gaussian)
    }

    /// Means of the summed entries given the enumerated ones.
    fn means_into(&self, out: &mut Vec<f64>) {
        out.clear();
        out.extend_from_slice(&self.theta);
        let problem = self.tables.problem;
        for run in problem.runs.iter().filter(|r| r.units.is_finite()) {
            run.units.mean_in_place(&mut out[run.entries.clone()], OwnParameters::NONE);
        }
        let start = out.len() - problem.gaussian.len();
        out[start..].copy_from_slice(&self.gaussian);
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
    /// Products of the means of Gaussian entries.
    gg: Vec<f64>,
    n_gaussian: usize,
}

impl Expectation {
    fn new(problem: &Problem) -> Self {
        let (n, m, g) = (problem.values.len(), problem.n_summed(), problem.gaussian.len());
        Self {
            log_total: f64::NEG_INFINITY,
            log_scale: f64::NEG_INFINITY,
            e: vec![0.0; n],
            s: vec![0.0; m],
            ee: vec![0.0; n * n],
            es: vec![0.0; n * m],
            gg: vec![0.0; g * g],
            n_gaussian: g,
        }
    }

    fn sums(&mut self) -> [&mut Vec<f64>; 5] {
        [&mut self.e, &mut self.s, &mut self.ee, &mut self.es, &mut self.gg]
    }

    /// Prepares for states of total weight `log_more`: sums are kept relative to the largest.
    fn rescale(&mut self, log_more: f64) {
        let scale = self.log_scale.max(log_more);
        let factor = (self.log_scale - scale).exp();
        self.sums().into_iter().flatten().for_each(|x| *x *= factor);
        self.log_scale = scale;
        self.log_total = log_sum_exp(&[self.log_total, log_more]);
    }

    fn add(&mut self, e: &[f64], s: &[f64], log_weight: f64) {
        let w = (log_weight - self.log_scale).exp();
        add_scaled(&mut self.e, w, e);
        add_scaled(&mut self.s, w, s);
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
                for k in 0..layer.units.own_parameters().len() {
                    let square = self.product(problem, *entry, *entry);
                    let term = layer.units.own_of_square(k, -weight, square);
                    out.own[l][k * layer.len() + i] += term;
                }
            }
        }
        for (c, out) in machine.couplings().iter().zip(&mut out.weights) {
            let (a, b) = (c.between.0.0, c.between.1.0);
            let (mu_a, mu_b) = (&machine.layers()[a].offset, &machine.layers()[b].offset);
            let centered = |i: usize, j: usize| {
                let (x, y) = (problem.entries[a][i], problem.entries[b][j]);
                self.product(problem, x, y) - mu_a[i] * self.mean(y) - mu_b[j] * self.mean(x)
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

    fn mean(&self, entry: Entry) -> f64 {
        match entry {
            Entry::Clamped(x) => x,
            Entry::Enumerated(i) => self.e[i],
            Entry::Summed(i) => self.s[i],
        }
    }

    fn product(&self, problem: &Problem, x: Entry, y: Entry) -> f64 {
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
                self.gg[i * g + j] + problem.gaussian.covariance(i, j)
            }
        }
    }
}
