//! The way up and the way down of a batch.
//!
//! Values are stored unit by unit, the rows of the batch side by side, so that a tile of units is one
//! piece of memory: tiles are computed by different threads, each by one product and one pass over what it gave.
//! The input is stored row by row, as the data has it.

use super::memory::{Below, LayerStep, Memory};
use super::parameters::{LayerParameters, Parameters, TILE, stride};
use super::plan::Keeps;
use crate::models::Loss;
use harmonium_kernels::neurons::{
    Activation, Dropout, KEEP_ALL, Rows, Units, activate, drop_units, multiply_slopes, softmax,
    subtract,
};
use harmonium_kernels::random::Stream;
use harmonium_kernels::real::{View, multiply_into};
use rayon::prelude::*;
use std::ops::Range;

/// Multiplications from which on a product is worth several threads.
const WORTH_THREADS: usize = 1 << 18;

/// What is dropped in a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropping {
    pub(super) keeps: Keeps,
    /// The variates of the step.
    pub(super) stream: Stream,
}

impl Dropping {
    /// What is dropped below layer `l`: 0 is the input.
    fn below(self, l: usize) -> Option<Dropout> {
        let keep = self.keeps.below(l);
        let lane = u32::try_from(l).unwrap_or(u32::MAX - 1);
        (keep < KEEP_ALL).then_some(Dropout { stream: self.stream, lane, keep })
    }
}

/// Rooms for the values of a batch.
#[derive(Debug)]
pub(super) struct Passes {
    /// Rows of the batch that is in it.
    rows: Rows,
    n_inputs: usize,
    input_stride: usize,
    input: Vec<f32>,
    values: Vec<Vec<f32>>,
    deltas: Vec<Vec<f32>>,
}

impl Passes {
    /// Rooms for at most `most` rows; those of the way down only if it `learns`.
    pub(super) fn new(parameters: &Parameters, most: usize, learns: bool) -> Self {
        let rows = stride(most.max(1));
        let n_inputs = parameters.layers.first().map_or(0, |l| l.n_below);
        let room = |l: &LayerParameters| vec![0.0; l.n_units * rows];
        let values: Vec<Vec<f32>> = parameters.layers.iter().map(room).collect();
        Self {
            rows: Rows { n: 0, stride: rows },
            n_inputs,
            input_stride: stride(n_inputs),
            input: vec![0.0; most * stride(n_inputs)],
            deltas: if learns { values.clone() } else { Vec::new() },
            values,
        }
    }

    /// Starts a batch of `n` rows, each of which `fill` writes.
    pub(super) fn start(&mut self, n: usize, mut fill: impl FnMut(usize, &mut [f32])) {
        self.rows.n = n;
        let rows = self.input.chunks_exact_mut(self.input_stride.max(1)).take(n);
        for (row, input) in rows.enumerate() {
            fill(row, &mut input[..self.n_inputs]);
        }
    }

    /// How the values of a layer are stored.
    pub(super) fn rows(&self) -> Rows {
        self.rows
    }

    /// The values of layer `l`, or of the output before its loss is taken.
    pub(super) fn values(&self, l: usize) -> &[f32] {
        &self.values[l]
    }

    /// The mean of every number that comes in, and of every unit of the first layers, over the rows of the batch.
    pub(super) fn means(&self, n_layers: usize) -> Vec<Vec<f64>> {
        let n = self.rows.n.max(1) as f64;
        let mut input = vec![0.0; self.n_inputs];
        for row in self.input.chunks_exact(self.input_stride.max(1)).take(self.rows.n) {
            input.iter_mut().zip(row).for_each(|(m, x)| *m += f64::from(*x) / n);
        }
        let mean = |x: &[f32]| x[..self.rows.n].iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let layers = self.values.iter().take(n_layers);
        let layers = layers.map(|values| values.chunks_exact(self.rows.stride).map(mean).collect());
        [input].into_iter().chain(layers).collect()
    }

    /// Whether a product of a layer is worth several threads.
    pub(super) fn is_parallel(layer: &LayerParameters, n_rows: usize) -> bool {
        layer.n_below * layer.n_units * n_rows > WORTH_THREADS && layer.n_units > TILE
    }

    /// The way up through the first `n_layers` layers.
    pub(super) fn up(
        &mut self,
        parameters: &Parameters,
        n_layers: usize,
        dropping: Option<Dropping>,
    ) {
        let (rows, input_stride) = (self.rows, self.input_stride);
        if !parameters.input_offset.is_empty() {
            for row in self.input.chunks_exact_mut(input_stride.max(1)).take(rows.n) {
                subtract(&mut row[..self.n_inputs], &parameters.input_offset);
            }
        }
        if let Some(dropout) = dropping.and_then(|d| d.below(0)) {
            let of_input = Rows { n: self.n_inputs, stride: input_stride };
            drop_units(&mut self.input[..rows.n * input_stride], of_input, dropout, 0);
        }
        for (l, layer) in parameters.layers.iter().take(n_layers).enumerate() {
            let last = l + 1 == parameters.layers.len();
            let dropout = dropping.and_then(|d| d.below(l + 1)).filter(|_| !last);
            let (done, rest) = self.values.split_at_mut(l);
            let below =
                below(&self.input, (self.n_inputs, input_stride), done, rows, layer.n_below);
            let least = if Self::is_parallel(layer, rows.n) { 1 } else { usize::MAX };
            let tiles = rest[0]
                .par_chunks_mut(TILE * rows.stride)
                .zip(layer.weights.par_chunks(TILE * layer.stride))
                .zip(layer.bias.par_chunks(TILE))
                .enumerate()
                .with_min_len(least);
            tiles.for_each(|(tile, ((x, weights), bias))| {
                let w = (weights, View::strided(bias.len(), layer.n_below, layer.stride));
                let out = View::strided(bias.len(), rows.n, rows.stride);
                multiply_into((x, out), w, (below.values, below.view.transposed()));
                activate(x, rows, bias, units(layer, dropout, tile));
            });
        }
    }

    /// Replaces the output by what its losses make of it: probabilities, or the values themselves.
    pub(super) fn respond(&mut self, losses: &[(Range<usize>, Loss)]) {
        let rows = self.rows;
        let Some(output) = self.values.last_mut() else { return };
        for (units, loss) in losses {
            let x = &mut output[units.start * rows.stride..units.end * rows.stride];
            match loss {
                Loss::Softmax => softmax(x, rows),
                Loss::Sigmoid => {
                    // A bias was added before.
                    let n = units.len();
                    for x in x.chunks_exact_mut(rows.stride).take(n) {
                        let activation = Activation::Logistic;
                        let units = Units { activation, offset: &[], dropout: None, first: 0 };
                        activate(x, rows, &[0.0], units);
                    }
                }
                Loss::Squared => {}
            }
        }
    }

    /// The slopes of the loss at the output, of which all three sorts have the same:
    /// $(x - t)$ times the share of the row. `subtract` takes the targets of a row away from its column.
    pub(super) fn slopes(&mut self, shares: &[f32], subtract: impl FnOnce(&mut [f32], Rows)) {
        let rows = self.rows;
        let (Some(output), Some(delta)) = (self.values.last(), self.deltas.last_mut()) else {
            return;
        };
        delta.copy_from_slice(output);
        subtract(delta, rows);
        for unit in delta.chunks_exact_mut(rows.stride) {
            unit.iter_mut().zip(shares).for_each(|(d, share)| *d *= share);
        }
    }

    /// The way down: every layer gets its slopes from the one above, which then moves.
    pub(super) fn down(
        &mut self,
        parameters: &mut Parameters,
        memory: &mut Memory,
        dropping: Option<Dropping>,
        step: impl Fn(usize, bool) -> LayerStep,
    ) {
        let rows = self.rows;
        for l in (0..parameters.layers.len()).rev() {
            let parallel = Self::is_parallel(&parameters.layers[l], rows.n);
            if l > 0 {
                self.send_down(l, parameters, dropping.and_then(|d| d.below(l)));
            }
            let layer = &mut parameters.layers[l];
            let of_input = (self.n_inputs, self.input_stride);
            let below = below(&self.input, of_input, &self.values[..l], rows, layer.n_below);
            memory.descend(l, layer, below, (&self.deltas[l], rows), step(l, parallel));
        }
    }

    /// The slopes of the units below layer `l`.
    fn send_down(&mut self, l: usize, parameters: &Parameters, dropout: Option<Dropout>) {
        let rows = self.rows;
        let (layer, lower_layer) = (&parameters.layers[l], &parameters.layers[l - 1]);
        let (lower, upper) = self.deltas.split_at_mut(l);
        let delta = (&upper[0][..], View::strided(layer.n_units, rows.n, rows.stride));
        let wide = layer.n_below * layer.n_units * rows.n > WORTH_THREADS && layer.n_below > TILE;
        let tiles = lower[l - 1]
            .par_chunks_mut(TILE * rows.stride)
            .zip(self.values[l - 1].par_chunks(TILE * rows.stride))
            .enumerate()
            .with_min_len(if wide { 1 } else { usize::MAX });
        tiles.for_each(|(tile, (below, values))| {
            let n = below.len() / rows.stride;
            let w = View::strided(layer.n_units, n, layer.stride).transposed();
            let out = View::strided(n, rows.n, rows.stride);
            multiply_into((below, out), (&layer.weights[tile * TILE..], w), delta);
            multiply_slopes(below, values, rows, units(lower_layer, dropout, tile));
        });
    }
}

/// The units of a tile.
fn units(layer: &LayerParameters, dropout: Option<Dropout>, tile: usize) -> Units<'_> {
    let (start, n) = (tile * TILE, layer.offset.len());
    Units {
        activation: layer.activation,
        offset: &layer.offset[start.min(n)..(start + TILE).min(n)],
        dropout,
        first: u32::try_from(start).unwrap_or(u32::MAX),
    }
}

/// The values below a layer, a row for each row of the batch.
fn below<'a>(
    input: &'a [f32],
    (n_inputs, input_stride): (usize, usize),
    values: &'a [Vec<f32>],
    rows: Rows,
    n_below: usize,
) -> Below<'a> {
    match values.last() {
        None => Below { values: input, view: View::strided(rows.n, n_inputs, input_stride) },
        Some(values) => {
            Below { values, view: View::strided(n_below, rows.n, rows.stride).transposed() }
        }
    }
}
