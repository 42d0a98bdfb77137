//! The walk over all states in Gray-code order.
//!
//! The last units of the list are fixed inside a chunk and the first ones walk through a reflected
//! mixed-radix Gray code (Knuth, TAOCP 4A, 7.2.1.1, algorithm H), so each step changes one unit by
//! one value. The walk keeps $e^\theta$ of the summed units and multiplies it by precomputed
//! factors; each chunk starts afresh, which keeps the rounding of the products below $10^{-12}$.

use super::problem::{Entry, Problem};
use crate::gaussian::Block;
use crate::units::{BitCoordinates, Storage, log_sum_exp};
use harmonium_kernels::dense::add_scaled;
use harmonium_kernels::log_product::{group_for, scale_and_log_product};
use rayon::prelude::*;

/// States walked from one fresh start.
pub(super) const CHUNK: usize = 1 << 12;

/// Above this bound on $|\theta|$ the exponentials are not kept: they might overflow.
const EXPONENT_LIMIT: f64 = 300.0;

/// How the states are cut into chunks.
pub(super) struct Cut {
    /// Units that walk inside a chunk.
    n_inner: usize,
    /// States of a chunk.
    size: usize,
    pub(super) n_chunks: usize,
}

/// What the walk multiplies and adds at each step.
pub(super) struct Tables<'a> {
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
pub(super) struct Walker<'a> {
    tables: &'a Tables<'a>,
    pub(super) values: Vec<f64>,
    log_weight: f64,
    field: Vec<f64>,
    theta: Vec<f64>,
    /// $e^{\kappa\theta}$ of the pairs.
    exponentials: Vec<f64>,
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
}

impl Cut {
    pub(super) fn new(problem: &Problem) -> Self {
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
    pub(super) fn new(problem: &'a Problem) -> Self {
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
    pub(super) fn walk(&self, chunks: &Cut, chunk: usize, mut visit: impl FnMut(&Walker<'_>, f64)) {
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
        self.log_weight -= sign * problem.units[unit].own[step];
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
                _ if run.units.is_finite() => run.units.log_partition(theta, run.own()),
                _ => 0.0,
            };
        }
        log + self.integral()
    }

    fn integral(&self) -> f64 {
        let block: &Block = &self.tables.problem.gaussian;
        if block.is_empty() {
            return 0.0;
        }
        let start = self.theta.len() - block.len();
        block.log_integral(&self.theta[start..])
    }

    /// Means of the summed entries given the enumerated ones, Gaussian ones in their own coordinates.
    pub(super) fn means_into(&self, out: &mut Vec<f64>) {
        out.clear();
        out.extend_from_slice(&self.theta);
        let problem = self.tables.problem;
        for run in problem.runs.iter().filter(|r| r.units.is_finite()) {
            run.units.mean_in_place(&mut out[run.entries.clone()], run.own());
        }
    }

    /// The statistics of own parameters that are sums over values, owner by owner.
    pub(super) fn statistics_into(&self, out: &mut Vec<f64>) {
        out.clear();
        for owner in &self.tables.problem.owners {
            let (units, first) = (owner.units, out.len());
            out.resize(first + units.own_parameters().len(), 0.0);
            let out = &mut out[first..];
            let mut at = |x: f64| {
                out.iter_mut().enumerate().for_each(|(k, s)| *s = units.own_term(k, 1.0, x));
            };
            match owner.entry {
                Entry::Clamped(x) => at(x),
                Entry::Enumerated(i) => at(self.values[i]),
                Entry::Summed(i) => units.own_statistics(self.theta[i], owner.own(), out),
            }
        }
    }
}
