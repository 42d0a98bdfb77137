//! A machine laid out for sampling.
//!
//! Offsets are folded into the biases,
//! $$\theta_l = \Bigl(b_l - \sum_m W_{lm}\mu_m - J_l\mu_l\Bigr) + \sum_m W_{lm}x_m + J_l x_l,$$
//! so that centering costs the products nothing, and both
//! orientations of each weight matrix are kept, so that every product runs along rows.

use super::{LayerId, Machine, Weights, add_input};
use crate::units::Units;
use harmonium_kernels::dense::add_scaled;

/// What samplers and inference read instead of the machine; rebuilt or refreshed from it.
#[derive(Clone, Debug)]
pub struct Engine {
    layers: Vec<EngineLayer>,
    schedule: Vec<Vec<LayerId>>,
}

#[derive(Clone, Debug)]
pub(crate) struct EngineLayer {
    pub(crate) units: Units,
    pub(crate) len: usize,
    /// The bias with all offsets folded in.
    pub(crate) bias: Vec<f64>,
    pub(crate) precision: Vec<f64>,
    /// What the layer receives from others.
    inputs: Vec<Input>,
    /// The full symmetric $J$, row-major, if there is one.
    pub(crate) lateral: Option<Vec<f64>>,
}

/// Weights towards one layer: rows belong to the source.
#[derive(Clone, Debug)]
struct Input {
    coupling: usize,
    source: LayerId,
    weights: Vec<f64>,
}

impl Engine {
    /// Lays out `machine`.
    pub fn new(machine: &Machine) -> Self {
        let layers = machine
            .layers()
            .iter()
            .map(|l| EngineLayer {
                units: l.units,
                len: l.len(),
                bias: l.bias.clone(),
                precision: l.precision.clone(),
                inputs: Vec::new(),
                lateral: None,
            })
            .collect();
        let mut engine = Self { layers, schedule: machine.schedule() };
        for (i, c) in machine.couplings().iter().enumerate() {
            let (a, b) = c.between;
            if c.is_lateral() {
                engine.layers[a.0].lateral = Some(c.weights.dense());
            } else {
                let size = c.weights.entries().len();
                for (source, target) in [(a, b), (b, a)] {
                    let input = Input { coupling: i, source, weights: vec![0.0; size] };
                    engine.layers[target.0].inputs.push(input);
                }
            }
        }
        engine.refresh(machine);
        engine
    }

    /// Takes over changed parameters of the machine it was made from.
    pub fn refresh(&mut self, machine: &Machine) {
        for (l, layer) in (0..).map(LayerId).zip(&mut self.layers) {
            let source = machine.layer(l);
            layer.bias.copy_from_slice(&source.bias);
            layer.precision.copy_from_slice(&source.precision);
            for c in machine.couplings() {
                if let Some(m) = c.other_end(l) {
                    let negative: Vec<f64> = machine.layer(m).offset.iter().map(|x| -x).collect();
                    add_input(c, l, &negative, &mut layer.bias);
                }
            }
            for input in &mut layer.inputs {
                let c = &machine.couplings()[input.coupling];
                if let Weights::Between(w) = &c.weights {
                    if c.between.0 == input.source {
                        input.weights.copy_from_slice(c.weights.entries());
                    } else {
                        transpose_into(c.weights.entries(), w.shape(), &mut input.weights);
                    }
                }
            }
            if let Some(lateral) = &mut layer.lateral {
                let c = machine.couplings().iter().find(|c| c.between == (l, l));
                if let Some(c) = c {
                    lateral.copy_from_slice(&c.weights.dense());
                }
            }
        }
    }

    /// Blocks of layers that are updated together.
    pub(crate) fn schedule(&self) -> &[Vec<LayerId>] {
        &self.schedule
    }

    pub(crate) fn layers(&self) -> &[EngineLayer] {
        &self.layers
    }

    /// Writes $\theta_l$ without its lateral part for the given rows of a block of rows: `values`
    /// holds the rows of every layer, `out` one row for each of `rows`.
    pub(crate) fn theta_into(
        &self,
        l: LayerId,
        values: &[&mut [f64]],
        rows: &[usize],
        out: &mut [f64],
    ) {
        let layer = &self.layers[l.0];
        for theta in out.chunks_exact_mut(layer.len).take(rows.len()) {
            theta.copy_from_slice(&layer.bias);
        }
        for input in &layer.inputs {
            let len = self.layers[input.source.0].len;
            let x = &values[input.source.0];
            // Weight rows outside, samples inside: each row of weights is read once per block.
            for (i, w) in input.weights.chunks_exact(layer.len).enumerate() {
                for (theta, row) in out.chunks_exact_mut(layer.len).zip(rows) {
                    let xi = x[row * len + i];
                    if xi != 0.0 {
                        add_scaled(theta, xi, w);
                    }
                }
            }
        }
    }
}

fn transpose_into(data: &[f64], (n_rows, n_columns): (usize, usize), out: &mut [f64]) {
    const TILE: usize = 16;
    for r0 in (0..n_rows).step_by(TILE) {
        for c0 in (0..n_columns).step_by(TILE) {
            for r in r0..(r0 + TILE).min(n_rows) {
                for c in c0..(c0 + TILE).min(n_columns) {
                    out[c * n_rows + r] = data[r * n_columns + c];
                }
            }
        }
    }
}
