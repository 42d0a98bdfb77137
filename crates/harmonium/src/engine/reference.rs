//! The reference layout: weights in double precision, row by row, in both orientations.

use super::{EngineLayer, Frame};
use crate::machine::{Coupling, LayerId, Machine, Weights};
use harmonium_kernels::dense::add_scaled;

/// A machine in double precision, multiplied term by term.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    frame: Frame,
    /// What each layer receives from others.
    inputs: Vec<Vec<Inflow>>,
}

/// Weights towards one layer: rows belong to the source.
#[derive(Clone, Debug)]
struct Inflow {
    coupling: usize,
    source: LayerId,
    weights: Vec<f64>,
}

impl Reference {
    /// Room for the weights; they follow with [`Reference::refresh`].
    pub(super) fn new(machine: &Machine, frame: Frame) -> Self {
        let mut inputs: Vec<Vec<Inflow>> = machine.layers().iter().map(|_| Vec::new()).collect();
        // What Gaussian units send each other is part of their joint density.
        let sent = |(_, c): &(usize, &Coupling)| !c.is_lateral() && !machine.joins_reals(c);
        for (i, c) in machine.couplings().iter().enumerate().filter(sent) {
            let ((a, b), size) = (c.between, c.weights.entries().len());
            for (source, target) in [(a, b), (b, a)] {
                inputs[target.0].push(Inflow { coupling: i, source, weights: vec![0.0; size] });
            }
        }
        Self { frame, inputs }
    }

    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    pub(crate) fn layers(&self) -> &[EngineLayer] {
        &self.frame.layers
    }

    /// Takes over changed parameters of the machine it was made from.
    pub(super) fn refresh(&mut self, machine: &Machine) {
        self.frame.refresh(machine);
        for (layer, inputs) in self.frame.layers.iter().zip(&mut self.inputs) {
            for input in inputs {
                let c = &machine.couplings()[input.coupling];
                let Weights::Between(w) = &c.weights else { continue };
                if c.between.0 == input.source {
                    input.weights.copy_from_slice(c.weights.entries());
                } else {
                    transpose_into(c.weights.entries(), w.shape(), &mut input.weights);
                }
                input.weights.iter_mut().for_each(|w| *w *= layer.copies);
            }
        }
    }

    /// Writes $\kappa_l\theta_l$ without its lateral part, and without what Gaussian units that are drawn
    /// together send each other, for the given rows of a block of rows: `values`
    /// holds the rows of every layer, `out` one row for each of `rows`.
    pub(crate) fn theta_into(
        &self,
        l: LayerId,
        values: &[&mut [f64]],
        rows: &[usize],
        out: &mut [f64],
    ) {
        let layer = &self.frame.layers[l.0];
        for theta in out.chunks_exact_mut(layer.len).take(rows.len()) {
            theta.iter_mut().zip(&layer.bias).for_each(|(t, b)| *t = layer.copies * b);
        }
        for input in &self.inputs[l.0] {
            let len = self.frame.layers[input.source.0].len;
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
