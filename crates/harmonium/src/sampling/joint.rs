//! Visits of Gaussian units that see each other: all of them at once, from their joint density.
//!
//! Where a row leaves all of them free, its values are $L^{-\top}(L^{-1}\theta + z)$, and by the kernels many
//! rows are two products. Where some are held, the others have a density of their own, found once for all
//! rows that hold the same units.

use super::packed::{Buffers, panels_of_theta, rows_of_panels};
use super::walk::{Heat, Response, Rows, Scratch, Walk};
use crate::engine::{Joint, Packed, Reference};
use crate::gaussian::Block;
use crate::machine::{LayerId, State};
use harmonium_kernels::random::Site;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Rows that one thread multiplies together. Fixed, so that results do not depend on the number of
/// threads.
const ROWS_PER_TASK: usize = 64;
/// Products below which waking other threads costs more than they save.
const WORTH_THREADS: usize = 1_000_000;
/// Densities of partly held units that are remembered.
const REMEMBERED: usize = 64;

/// Densities of units that are held in part, by which of them are free.
#[derive(Default)]
pub(crate) struct Parts {
    known: BTreeMap<(LayerId, Vec<usize>), Option<Block>>,
}

impl Parts {
    fn of(&mut self, joint: &Joint, free: &[usize]) -> Option<&Block> {
        let key = (joint.layers()[0], free.to_vec());
        if self.known.len() >= REMEMBERED && !self.known.contains_key(&key) {
            self.known.clear();
        }
        self.known.entry(key).or_insert_with(|| joint.density_of(free)).as_ref()
    }
}

impl Walk<'_> {
    /// Whether no unit of these is held in any row.
    fn frees(&self, joint: &Joint) -> bool {
        joint.layers().iter().all(|&l| self.clamp.frees_layer(l))
    }

    /// Whether all of them are held in every row.
    fn holds(&self, joint: &Joint) -> bool {
        joint.layers().iter().all(|&l| self.clamp.holds_layer(l))
    }

    /// The units that are free in a row.
    fn free_units(&self, joint: &Joint, row: usize) -> Vec<usize> {
        let free = |(l, range): (LayerId, std::ops::Range<usize>)| {
            let start = range.start;
            range.filter(move |i| !self.clamp.holds(l, row, i - start))
        };
        joint.parts().flat_map(free).collect()
    }

    /// Replaces the free units of a joint by their response, in the reference arithmetic.
    pub(super) fn visit_joint(
        &self,
        engine: &Reference,
        joint: &Joint,
        rows: &mut Rows<'_>,
        active: &[usize],
        scratch: &mut Scratch,
        response: Response,
    ) {
        if self.holds(joint) {
            return;
        }
        let n = joint.len();
        scratch.change.resize(rows.n, 0.0);
        let mut inputs = vec![0.0; active.len() * n];
        for (l, range) in joint.parts() {
            let mut theta = vec![0.0; active.len() * range.len()];
            engine.theta_into(l, &rows.values, active, &mut theta);
            for (all, own) in inputs.chunks_exact_mut(n).zip(theta.chunks_exact(range.len())) {
                all[range.clone()].copy_from_slice(own);
            }
        }
        let mut x = vec![0.0; n];
        for (&r, theta) in active.iter().zip(inputs.chunks_exact_mut(n)) {
            for (l, range) in joint.parts() {
                let len = range.len();
                x[range].copy_from_slice(&rows.values[l.0][r * len..(r + 1) * len]);
            }
            let change = self.respond_joint(
                joint,
                rows.first + r,
                theta,
                &mut x,
                &mut scratch.parts,
                response,
            );
            scratch.change[r] = scratch.change[r].max(change);
            for (l, range) in joint.parts() {
                let len = range.len();
                rows.values[l.0][r * len..(r + 1) * len].copy_from_slice(&x[range]);
            }
        }
    }

    /// Replaces the free units of one row by their response to $\theta$, which is used up; returns the
    /// largest change.
    fn respond_joint(
        &self,
        joint: &Joint,
        row: usize,
        theta: &mut [f64],
        x: &mut [f64],
        parts: &mut Parts,
        response: Response,
    ) -> f64 {
        if let Heat::Mixed { base, betas } = self.heat {
            let beta = betas[row];
            for (l, range) in joint.parts() {
                for (t, b) in theta[range].iter_mut().zip(base.bias_in(l, row)) {
                    *t = (1.0 - beta) * b + beta * *t;
                }
            }
        }
        let free: Option<Vec<usize>> = (!self.frees(joint)).then(|| self.free_units(joint, row));
        let mut values = match &free {
            None => theta.to_vec(),
            Some(free) => {
                let mut held = x.to_vec();
                free.iter().for_each(|&i| held[i] = 0.0);
                let mut theta: Vec<f64> = free.iter().map(|&i| theta[i]).collect();
                joint.take_held(free, &held, &mut theta);
                theta
            }
        };
        let density = match &free {
            None => joint.density(),
            Some(free) if free.is_empty() => return 0.0,
            Some(free) => parts.of(joint, free),
        };
        let Some(density) = density else { return 0.0 };
        density.whiten(&mut values);
        if let Response::Sample { stream, sweep } = response {
            let scale = self.noise();
            let mut normals = vec![0.0; joint.len()];
            for (l, range) in joint.parts() {
                stream.normals_into(Site::new(row, sweep, l.0), &mut normals[range]);
            }
            for (k, u) in values.iter_mut().enumerate() {
                *u += scale * normals[free.as_ref().map_or(k, |free| free[k])];
            }
        }
        density.colour(&mut values);
        let mut change = 0.0_f64;
        for (k, &value) in values.iter().enumerate() {
            let x = &mut x[free.as_ref().map_or(k, |free| free[k])];
            let moved = self.step * (value - *x);
            *x = if self.step < 1.0 { *x + moved } else { value };
            change = change.max(moved.abs());
        }
        change
    }

    /// The standard deviation of what is drawn, in units of that of the energy as it is: $\beta E$ has
    /// the precision $\beta\Lambda$.
    fn noise(&self) -> f64 {
        match self.heat {
            Heat::Scaled(beta) => beta.sqrt().recip(),
            Heat::None | Heat::Mixed { .. } => 1.0,
        }
    }
}

/// Replaces the free units of a joint by their response in the rows that are active, by the kernels;
/// `change` receives the largest change of each row.
pub(super) fn visit_by_kernels(
    (walk, engine): (&Walk<'_>, &Packed),
    x: &mut State,
    joint: &Joint,
    active: &[usize],
    response: Response,
    (change, buffers): (&mut [f64], &mut Buffers),
) {
    if walk.holds(joint) {
        return;
    }
    let (n_rows, n) = (x.n_rows(), joint.len());
    let mut inputs = std::mem::take(&mut buffers.inputs);
    inputs.resize(n_rows * n, 0.0);
    for (l, range) in joint.parts() {
        engine.prepare(l, x, &mut buffers.sources);
        panels_of_theta(engine, l, x, &buffers.sources, &mut buffers.theta);
        rows_of_panels(&buffers.theta, n_rows, range, n, &mut inputs);
    }
    let whole = walk.frees(joint) && active.len() == n_rows && walk.step >= 1.0;
    if whole && joint.density().is_some() {
        let values = &mut buffers.values;
        values.resize(n_rows * n, 0.0);
        draw_rows(walk, joint, &mut inputs, values, response);
        write_rows(x, joint, values, change);
    } else {
        respond_by_row(walk, x, joint, active, &inputs, response, change);
    }
    buffers.inputs = inputs;
}

/// All rows at once, in single precision: `inputs` are used up.
fn draw_rows(
    walk: &Walk<'_>,
    joint: &Joint,
    inputs: &mut [f32],
    values: &mut [f32],
    response: Response,
) {
    let n = joint.len();
    let noise = walk.noise();
    let draw = |(task, (inputs, values)): (usize, (&mut [f32], &mut [f32]))| {
        let first = task * ROWS_PER_TASK;
        temper(walk, joint, first, inputs);
        joint.whiten(inputs.len() / n, inputs, values);
        if let Response::Sample { stream, sweep } = response {
            let mut normals = vec![0.0; n];
            for (row, u) in (first..).zip(values.chunks_exact_mut(n)) {
                for (l, range) in joint.parts() {
                    stream.normals_into(Site::new(row, sweep, l.0), &mut normals[range]);
                }
                #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
                u.iter_mut().zip(&normals).for_each(|(u, z)| *u += (noise * z) as f32);
            }
        }
        inputs.copy_from_slice(values);
        joint.colour(inputs.len() / n, inputs, values);
    };
    let size = ROWS_PER_TASK * n;
    if inputs.len() * n > WORTH_THREADS && rayon::current_num_threads() > 1 {
        inputs.par_chunks_mut(size).zip(values.par_chunks_mut(size)).enumerate().for_each(draw);
    } else {
        inputs.chunks_mut(size).zip(values.chunks_mut(size)).enumerate().for_each(draw);
    }
}

/// Mixes rows of inputs, the first of them `first`, with those of the base.
fn temper(walk: &Walk<'_>, joint: &Joint, first: usize, inputs: &mut [f32]) {
    let Heat::Mixed { base, betas } = walk.heat else { return };
    for (row, inputs) in (first..).zip(inputs.chunks_exact_mut(joint.len())) {
        let beta = betas[row];
        for (l, range) in joint.parts() {
            for (t, b) in inputs[range].iter_mut().zip(base.bias_in(l, row)) {
                #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
                let mixed = ((1.0 - beta) * b + beta * f64::from(*t)) as f32;
                *t = mixed;
            }
        }
    }
}

/// Takes over rows of values; `change` receives the largest change of each.
fn write_rows(x: &mut State, joint: &Joint, values: &[f32], change: &mut [f64]) {
    for (l, range) in joint.parts() {
        let rows = x.layers[l.0].numbers_mut().chunks_exact_mut(range.len());
        for ((row, values), change) in rows.zip(values.chunks_exact(joint.len())).zip(&mut *change)
        {
            for (x, value) in row.iter_mut().zip(&values[range.clone()]) {
                let value = f64::from(*value);
                *change = change.max((value - *x).abs());
                *x = value;
            }
        }
    }
}

/// Responses one row at a time, in double precision.
fn respond_by_row(
    walk: &Walk<'_>,
    x: &mut State,
    joint: &Joint,
    active: &[usize],
    inputs: &[f32],
    response: Response,
    change: &mut [f64],
) {
    let n = joint.len();
    let before = &*x;
    let respond = |parts: &mut Parts, &row: &usize| {
        let inputs = &inputs[row * n..(row + 1) * n];
        let mut theta: Vec<f64> = inputs.iter().map(|t| f64::from(*t)).collect();
        let rows = joint.layers().iter().flat_map(|&l| before.row(l, row));
        let mut values: Vec<f64> = rows.copied().collect();
        let change = walk.respond_joint(joint, row, &mut theta, &mut values, parts, response);
        (row, values, change)
    };
    let rows: Vec<(usize, Vec<f64>, f64)> =
        active.par_iter().with_min_len(16).map_init(Parts::default, respond).collect();
    for (l, range) in joint.parts() {
        let numbers = x.layers[l.0].numbers_mut();
        for (row, values, _) in &rows {
            numbers[row * range.len()..(row + 1) * range.len()]
                .copy_from_slice(&values[range.clone()]);
        }
    }
    rows.iter().for_each(|(row, _, moved)| change[*row] = change[*row].max(*moved));
}
