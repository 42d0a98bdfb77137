//! The one walk under every sampler: layer by layer; where a lateral coupling demands it, unit by
//! unit, or colour by colour if it is sparse; Gaussian units that see each other at once ([`super::joint`]).

use super::joint::Parts;
use super::{Clamp, packed};
use crate::engine::{Engine, Lateral, Reference, Sparse};
use crate::machine::{Base, LayerId, State};
use crate::units::{Draw, OwnParameters, Units};
use harmonium_kernels::dense::add_scaled;
use harmonium_kernels::random::{Site, Stream};
use rayon::prelude::*;

/// Rows that are walked together by one thread. Fixed, so that results do not depend on the
/// number of threads.
const ROWS_PER_TASK: usize = 16;

/// Entries of a state below which waking other threads costs more than they save.
const WORTH_THREADS: usize = 20_000;

/// How the energy is tempered.
#[derive(Clone, Copy)]
pub(crate) enum Heat<'a> {
    /// $E$.
    None,
    /// $\beta E$.
    Scaled(f64),
    /// $(1-\beta_r) E_\text{base} + \beta_r E$, a $\beta$ for each row.
    Mixed { base: &'a Base, betas: &'a [f64] },
}

impl Heat<'_> {
    /// Whether rows differ in more than $\beta$.
    pub(super) fn differs_by_row(self) -> bool {
        matches!(self, Self::Mixed { base, .. } if base.differs_by_row())
    }
}

/// What units make of their natural parameters.
#[derive(Clone, Copy)]
pub(crate) enum Response {
    /// A sample, with the variates of a sweep.
    Sample { stream: Stream, sweep: usize },
    /// The mean.
    Mean,
    /// The most probable value.
    Mode,
}

impl Response {
    /// Replaces `theta` by the response.
    fn of(self, units: Units, place: Place<'_>, theta: &mut [f64], own: OwnParameters<'_>) {
        match self {
            Self::Sample { stream, sweep } => {
                let site = Site::new(place.row, sweep, place.layer.0);
                let draw = Draw { stream, site, start: place.start };
                units.sample_in_place(theta, own, draw);
            }
            Self::Mean => units.mean_in_place(theta, own),
            Self::Mode => units.mode_in_place(theta, own),
        }
    }
}

/// Where a response happens.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) layer: LayerId,
    /// Row of the whole state.
    pub(crate) row: usize,
    /// First entry of the piece of the layer, where its variates are.
    pub(crate) start: usize,
    /// The entries of the piece, if it is not a contiguous run of the layer.
    pub(crate) entries: Option<&'a [usize]>,
}

impl Place<'_> {
    /// Entry `i` of the piece.
    fn entry(&self, i: usize) -> usize {
        self.entries.map_or(self.start + i, |entries| entries[i])
    }
}

/// A run of rows, every layer's part of it.
pub(crate) struct Rows<'a> {
    pub(crate) first: usize,
    pub(crate) n: usize,
    pub(super) values: Vec<&'a mut [f64]>,
}

/// What a walk needs besides the rows.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) clamp: &'a Clamp,
    pub(crate) heat: Heat<'a>,
    /// How far a value moves towards the response: 1 for all samplers, less for damped mean field.
    pub(crate) step: f64,
}

/// Buffers of one thread.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(super) theta: Vec<f64>,
    piece: Vec<f64>,
    values: Vec<f64>,
    own: Vec<f64>,
    pub(super) parts: Parts,
    /// Largest change of each row since it was last cleared.
    pub(crate) change: Vec<f64>,
}

/// Runs `work` on every run of rows, in parallel.
pub(crate) fn in_tasks<R: Send>(
    x: &mut State,
    work: impl Fn(&mut Rows<'_>, &mut Scratch) -> R + Sync,
) -> Vec<R> {
    let n_rows = x.n_rows();
    let entries: usize = x.layers.iter().map(|l| l.len * n_rows).sum();
    let starts = (0..n_rows).step_by(ROWS_PER_TASK);
    let mut tasks: Vec<Rows<'_>> = starts
        .map(|first| Rows { first, n: ROWS_PER_TASK.min(n_rows - first), values: Vec::new() })
        .collect();
    for layer in &mut x.layers {
        let size = ROWS_PER_TASK * layer.len;
        for (task, values) in tasks.iter_mut().zip(layer.numbers_mut().chunks_mut(size)) {
            task.values.push(values);
        }
    }
    if entries < WORTH_THREADS {
        let mut scratch = Scratch::default();
        return tasks.iter_mut().map(|rows| work(rows, &mut scratch)).collect();
    }
    tasks.par_iter_mut().map_init(Scratch::default, |scratch, rows| work(rows, scratch)).collect()
}

impl Walk<'_> {
    /// Visits layers in the order given, in all rows. By the kernels rows are not cut, columns are.
    pub(crate) fn visit_all(&self, x: &mut State, layers: &[LayerId], response: Response) {
        match self.engine {
            Engine::Packed(engine) => {
                let layers = self.engine.visits(layers);
                layers.for_each(|l| packed::visit_all_rows(self, engine, x, l, response));
            }
            Engine::Reference(engine) => {
                in_tasks(x, |rows, scratch| {
                    let all: Vec<usize> = (0..rows.n).collect();
                    for l in self.engine.visits(layers) {
                        self.visit(engine, l, rows, &all, scratch, response);
                    }
                });
            }
        }
    }

    /// Updates every free layer once in the given rows of the task.
    pub(crate) fn sweep(
        &self,
        engine: &Reference,
        rows: &mut Rows<'_>,
        active: &[usize],
        scratch: &mut Scratch,
        response: Response,
    ) {
        for l in self.engine.visits(self.engine.schedule().iter().flatten()) {
            self.visit(engine, l, rows, active, scratch, response);
        }
    }

    /// Replaces the free part of layer `l` by its response to $\theta$.
    pub(crate) fn visit(
        &self,
        engine: &Reference,
        l: LayerId,
        rows: &mut Rows<'_>,
        active: &[usize],
        scratch: &mut Scratch,
        response: Response,
    ) {
        if let Some(joint) = self.engine.joint_of(l) {
            return self.visit_joint(engine, joint, rows, active, scratch, response);
        }
        if self.clamp.holds_layer(l) {
            return;
        }
        let layer = &engine.layers()[l.0];
        scratch.change.resize(rows.n, 0.0);
        scratch.theta.resize(rows.n * layer.len, 0.0);
        let mut theta = std::mem::take(&mut scratch.theta);
        engine.theta_into(l, &rows.values, active, &mut theta);
        for (&r, theta) in active.iter().zip(theta.chunks_exact_mut(layer.len)) {
            let x = &mut rows.values[l.0][r * layer.len..(r + 1) * layer.len];
            let row = rows.first + r;
            let place = Place { layer: l, row, start: 0, entries: None };
            self.respond_row(place, theta, x, r, scratch, response);
        }
        scratch.theta = theta;
    }

    /// Replaces one row of a layer by its response to $\theta$, which still lacks the lateral part.
    pub(super) fn respond_row(
        &self,
        place: Place<'_>,
        theta: &mut [f64],
        x: &mut [f64],
        r: usize,
        scratch: &mut Scratch,
        response: Response,
    ) {
        match &self.engine.layers()[place.layer.0].lateral {
            None => self.respond(place, theta, x, r, scratch, response),
            Some(Lateral::Dense(dense)) => {
                let j = &dense.full[..];
                for (&xi, j) in x.iter().zip(j.chunks_exact(theta.len())) {
                    add_scaled(theta, xi, j);
                }
                self.unit_by_unit(place, theta, x, r, scratch, response);
            }
            Some(Lateral::Sparse(_)) => {
                self.colour_by_colour(place, theta, x, r, scratch, response);
            }
        }
    }

    /// Visits the units of a laterally coupled layer in order, each seeing the new values of those
    /// before it. $\theta$ is kept up to date by the rows of $J$ of what changed.
    fn unit_by_unit(
        &self,
        place: Place<'_>,
        theta: &mut [f64],
        x: &mut [f64],
        r: usize,
        scratch: &mut Scratch,
        response: Response,
    ) {
        let layer = &self.engine.layers()[place.layer.0];
        let Some(Lateral::Dense(dense)) = &layer.lateral else { return };
        let (j, group) = (&dense.full, layer.units.group());
        let mut piece = std::mem::take(&mut scratch.piece);
        let mut before = vec![0.0; group];
        for start in (0..layer.len).step_by(group) {
            piece.clear();
            piece.extend_from_slice(&theta[start..start + group]);
            let unit = &mut x[start..start + group];
            before.copy_from_slice(unit);
            self.respond(Place { start, ..place }, &mut piece, unit, r, scratch, response);
            for (i, (new, old)) in unit.iter().zip(&before).enumerate() {
                if new != old {
                    let row = start + i;
                    add_scaled(theta, new - old, &j[row * layer.len..(row + 1) * layer.len]);
                }
            }
        }
        scratch.piece = piece;
    }

    /// Visits the colours of a sparsely coupled layer in order: the units of one do not see each
    /// other, so they respond together.
    fn colour_by_colour(
        &self,
        place: Place<'_>,
        theta: &[f64],
        x: &mut [f64],
        r: usize,
        scratch: &mut Scratch,
        response: Response,
    ) {
        let layer = &self.engine.layers()[place.layer.0];
        let Some(Lateral::Sparse(Sparse { neighbours, .. })) = &layer.lateral else { return };
        let group = layer.units.group();
        let mut piece = std::mem::take(&mut scratch.piece);
        let mut values = std::mem::take(&mut scratch.values);
        for colour in &neighbours.colours {
            let entries = &colour.entries[..];
            piece.clear();
            piece.extend(entries.iter().map(|&i| theta[i] + neighbours.input(i, x)));
            values.clear();
            values.extend(entries.iter().map(|&i| x[i]));
            let start = colour.slot * group;
            let place = Place { start, entries: Some(entries), ..place };
            self.respond(place, &mut piece, &mut values, r, scratch, response);
            entries.iter().zip(&values).for_each(|(&i, v)| x[i] = *v);
        }
        (scratch.piece, scratch.values) = (piece, values);
    }

    /// Tempers $\theta$, lets the units respond to it and writes what is not held.
    fn respond(
        &self,
        place: Place<'_>,
        theta: &mut [f64],
        x: &mut [f64],
        r: usize,
        scratch: &mut Scratch,
        response: Response,
    ) {
        let layer = &self.engine.layers()[place.layer.0];
        let at = |i: usize| place.entry(i);
        let n = theta.len();
        scratch.own.clear();
        for row in layer.own.chunks_exact(layer.len) {
            scratch.own.extend((0..n).map(|i| row[at(i)]));
        }
        let own = &mut scratch.own[..];
        match self.heat {
            Heat::None => {}
            Heat::Scaled(beta) => {
                theta.iter_mut().chain(own.iter_mut()).for_each(|t| *t *= beta);
            }
            Heat::Mixed { base, betas } => {
                let (beta, bias) = (betas[place.row], base.bias_in(place.layer, place.row));
                for (i, t) in theta.iter_mut().enumerate() {
                    *t = (1.0 - beta) * bias[at(i)] + beta * *t;
                }
            }
        }
        response.of(layer.units, place, theta, OwnParameters::new(own, n));
        let group = layer.units.group();
        let free = self.clamp.frees_layer(place.layer);
        let change = &mut scratch.change[r];
        for (i, (x, t)) in x.iter_mut().zip(theta).enumerate() {
            if free || !self.clamp.holds(place.layer, place.row, at(i) / group) {
                let moved = self.step * (*t - *x);
                // A full step takes the response itself: adding a difference would round.
                *x = if self.step < 1.0 { *x + moved } else { *t };
                *change = change.max(moved.abs());
            }
        }
    }
}
