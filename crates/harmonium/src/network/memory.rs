//! What the optimiser remembers of each parameter, and the step that uses it.
//!
//! The gradient of a tile of units is a product that stays in the cache while the tile's weights move: it is never
//! written down as a whole.

use super::parameters::{LayerParameters, Parameters, TILE};
use super::plan::NetworkPlan;
use crate::error::Error;
use crate::estimators::Snapshot;
use crate::models::Network;
use crate::training::OptimizerKind;
use harmonium_kernels::neurons::{
    ADAM_SECOND_DECAY, Correction, Descent, Rows, Squares, descend_by_adam, descend_by_momentum,
    scale, sum_units,
};
use harmonium_kernels::real::{View, multiply_into};
use rayon::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is remembered of one layer; `second` is empty without Adam.
#[derive(Clone, Debug, Default)]
struct LayerMemory {
    first: Vec<f32>,
    first_bias: Vec<f32>,
    second: Vec<f32>,
    second_bias: Vec<f32>,
    squares: Vec<TileSquares>,
}

/// Sums of squares of one tile.
#[derive(Clone, Copy, Debug, Default)]
struct TileSquares {
    weights: f64,
    update: f64,
    gradient: f64,
    /// Whether all of its numbers are finite.
    finite: bool,
}

/// Sums of squares of all parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Norms {
    pub(super) weights: f64,
    pub(super) update: f64,
    pub(super) gradient: f64,
}

/// How one layer moves in one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerStep {
    pub(super) descent: Descent,
    /// Largest norm of the weights into one unit.
    pub(super) max_norm: Option<f32>,
    /// Whether several threads take part.
    pub(super) parallel: bool,
}

/// The values below a layer: one for each unit below and row.
#[derive(Clone, Copy)]
pub(super) struct Below<'a> {
    pub(super) values: &'a [f32],
    /// A row for each row of the batch.
    pub(super) view: View,
}

/// The optimiser.
#[derive(Debug)]
pub(super) struct Memory {
    kind: OptimizerKind,
    layers: Vec<LayerMemory>,
    /// $\prod_t \beta_1$ and $\prod_t \beta_2$ of Adam.
    missing: [f32; 2],
    /// A tile of the gradient for each thread.
    scratch: Vec<Mutex<Vec<f32>>>,
}

impl Memory {
    /// Starts at rest.
    pub(super) fn new(plan: &NetworkPlan, parameters: &Parameters) -> Self {
        let adam = plan.optimizer == OptimizerKind::Adam;
        let of = |layer: &LayerParameters| {
            let zeros = |n: usize, wanted: bool| vec![0.0; if wanted { n } else { 0 }];
            let (n, units) = (layer.weights.len(), layer.n_units);
            LayerMemory {
                first: zeros(n, true),
                first_bias: zeros(units, true),
                second: zeros(n, adam),
                second_bias: zeros(units, adam),
                squares: vec![TileSquares::default(); units.div_ceil(TILE)],
            }
        };
        let room = TILE * parameters.widest();
        let threads = rayon::current_num_threads().max(1);
        Self {
            kind: plan.optimizer,
            layers: parameters.layers.iter().map(of).collect(),
            missing: [1.0; 2],
            scratch: (0..threads).map(|_| Mutex::new(vec![0.0; room])).collect(),
        }
    }

    /// Counts a step.
    pub(super) fn begin_step(&mut self, momentum: f32) {
        self.missing = [self.missing[0] * momentum, self.missing[1] * ADAM_SECOND_DECAY];
    }

    /// Moves one layer against its gradient: `delta` is that of the inputs of its units, a row for each.
    pub(super) fn descend(
        &mut self,
        l: usize,
        layer: &mut LayerParameters,
        below: Below<'_>,
        (delta, rows): (&[f32], Rows),
        step: LayerStep,
    ) {
        let [first, second] = self.missing.map(|m| 1.0 - m);
        let correction = Correction { first, second };
        let Self { kind, layers, scratch, .. } = self;
        let memory = &mut layers[l];
        let (stride, n_below) = (layer.stride, layer.n_below);
        let least = if step.parallel { 1 } else { usize::MAX };
        let tiles = layer
            .weights
            .par_chunks_mut(TILE * stride)
            .zip(layer.bias.par_chunks_mut(TILE))
            .zip(delta.par_chunks(TILE * rows.stride))
            .zip(memory.squares.par_iter_mut())
            .zip(memory.first.par_chunks_mut(TILE * stride))
            .zip(memory.first_bias.par_chunks_mut(TILE))
            .with_min_len(least);
        let gradient = |delta: &[f32], n: usize, room: &mut [f32]| {
            let of_rows = (delta, View::strided(n, rows.n, rows.stride));
            multiply_into(
                (room, View::strided(n, n_below, stride)),
                of_rows,
                (below.values, below.view),
            );
        };
        match kind {
            OptimizerKind::Sgd => tiles.for_each(|(((((w, b), delta), squares), v), vb)| {
                let mut room = lock(scratch);
                gradient(delta, b.len(), &mut room);
                *squares = move_tile(
                    (w, b),
                    (delta, rows),
                    &room,
                    (stride, n_below),
                    step,
                    |k, w, g, s| match k {
                        Some(k) => descend_by_momentum(w, &mut v[k * stride..][..w.len()], g, s),
                        None => descend_by_momentum(w, vb, g, s),
                    },
                );
            }),
            OptimizerKind::Adam => {
                let second = memory
                    .second
                    .par_chunks_mut(TILE * stride)
                    .zip(memory.second_bias.par_chunks_mut(TILE));
                tiles.zip(second).for_each(|((((((w, b), delta), squares), m), mb), (s, sb))| {
                    let mut room = lock(scratch);
                    gradient(delta, b.len(), &mut room);
                    *squares = move_tile(
                        (w, b),
                        (delta, rows),
                        &room,
                        (stride, n_below),
                        step,
                        |k, w, g, d| match k {
                            Some(k) => {
                                let at = k * stride..k * stride + w.len();
                                descend_by_adam(w, &mut m[at.clone()], &mut s[at], g, d, correction)
                            }
                            None => descend_by_adam(w, mb, sb, g, d, correction),
                        },
                    );
                });
            }
        }
    }

    /// Sums over all layers of the last step; nothing if a number is not finite.
    pub(super) fn norms(&self) -> Option<Norms> {
        let mut norms = Norms::default();
        for tile in self.layers.iter().flat_map(|l| &l.squares) {
            if !tile.finite {
                return None;
            }
            norms.weights += tile.weights;
            norms.update += tile.update;
            norms.gradient += tile.gradient;
        }
        Some(norms)
    }

    /// Everything the next step depends on.
    pub(super) fn export(&self, network: &Network, parameters: &Parameters) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let names: &[&str] =
            if self.kind == OptimizerKind::Adam { &["first", "second"] } else { &["velocity"] };
        for ((layer, memory), dense) in
            parameters.layers.iter().zip(&self.layers).zip(network.layers())
        {
            let all = [(&memory.first, &memory.first_bias), (&memory.second, &memory.second_bias)];
            for (name, (weights, bias)) in names.iter().zip(all) {
                let key = |what| format!("{name}.{}.{what}", dense.name);
                snapshot.insert(key("weights"), layer.without_padding(weights));
                snapshot.insert(key("bias"), bias.iter().map(|x| f64::from(*x)).collect());
            }
        }
        if self.kind == OptimizerKind::Adam {
            snapshot.insert("missing", self.missing.iter().map(|x| f64::from(*x)).collect());
        }
        snapshot
    }

    /// Takes up what [`Memory::export`] gave.
    #[expect(clippy::cast_possible_truncation, reason = "they were single precision")]
    pub(super) fn import(
        &mut self,
        network: &Network,
        parameters: &Parameters,
        snapshot: &Snapshot,
    ) -> Result<(), Error> {
        let names: &[&str] =
            if self.kind == OptimizerKind::Adam { &["first", "second"] } else { &["velocity"] };
        let layers = parameters.layers.iter().zip(&mut self.layers).zip(network.layers());
        for ((layer, memory), dense) in layers {
            let all = [
                (&mut memory.first, &mut memory.first_bias),
                (&mut memory.second, &mut memory.second_bias),
            ];
            for (name, (weights, bias)) in names.iter().zip(all) {
                let key = |what| format!("{name}.{}.{what}", dense.name);
                let stored = snapshot.get(&key("weights"), layer.n_below * layer.n_units)?;
                layer.with_padding(stored, weights);
                let stored = snapshot.get(&key("bias"), layer.n_units)?;
                bias.iter_mut().zip(stored).for_each(|(b, x)| *b = *x as f32);
            }
        }
        if self.kind == OptimizerKind::Adam {
            let stored = snapshot.get("missing", 2)?;
            self.missing = [stored[0] as f32, stored[1] as f32];
        }
        Ok(())
    }
}

/// The room of this thread; nobody else uses it at the same time.
fn lock(scratch: &[Mutex<Vec<f32>>]) -> MutexGuard<'_, Vec<f32>> {
    let thread = rayon::current_thread_index().unwrap_or(0);
    scratch[thread % scratch.len()].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves the units of a tile, each by `descend`, which is told its place in the tile, or nothing for
/// the biases.
fn move_tile(
    (weights, bias): (&mut [f32], &mut [f32]),
    (delta, rows): (&[f32], Rows),
    gradient: &[f32],
    (stride, n_below): (usize, usize),
    LayerStep { descent, max_norm, .. }: LayerStep,
    mut descend: impl FnMut(Option<usize>, &mut [f32], &[f32], Descent) -> Squares,
) -> TileSquares {
    let mut sums = TileSquares { finite: true, ..TileSquares::default() };
    for (k, w) in weights.chunks_exact_mut(stride).enumerate() {
        let (w, g) = (&mut w[..n_below], &gradient[k * stride..][..n_below]);
        let squares = descend(Some(k), w, g, descent);
        sums.finite &= squares.parameters.is_finite();
        sums.weights += f64::from(squares.parameters);
        sums.update += f64::from(squares.update);
        sums.gradient += f64::from(squares.gradient);
        if let Some(limit) = max_norm.filter(|limit| squares.parameters > limit * limit) {
            scale(w, limit / squares.parameters.sqrt());
        }
    }
    let mut slopes = [0.0; TILE];
    let slopes = &mut slopes[..bias.len()];
    sum_units(delta, rows, slopes);
    let squares = descend(None, bias, slopes, Descent { decay: 0.0, ..descent });
    sums.finite &= squares.parameters.is_finite();
    sums.gradient += f64::from(squares.gradient);
    sums
}
