//! The numbers of a net as its products want them: single precision, the weights into a unit side by side.

use super::plan::Keeps;
use crate::machine::Matrix;
use crate::models::{Dense, Network};
use harmonium_kernels::neurons::Activation;

/// Units that one thread works on at a time, whatever the number of threads is.
pub(super) const TILE: usize = 64;

/// Numbers of a row of weights are padded to whole vectors.
const VECTOR: usize = 16;
/// Rows that are whole multiples of this apart share the places of a cache.
const ALIAS: usize = 256;

/// One layer.
#[derive(Clone, Debug)]
pub(super) struct LayerParameters {
    pub(super) activation: Activation,
    pub(super) n_below: usize,
    pub(super) n_units: usize,
    /// From the weights into one unit to those into the next.
    pub(super) stride: usize,
    pub(super) weights: Vec<f32>,
    /// $b + W\mu$: what a unit receives where all units below are at their offsets.
    pub(super) bias: Vec<f32>,
    /// What the values of its units are stored without; empty if nothing.
    pub(super) offset: Vec<f32>,
}

/// All layers, with weights as they are while units are dropped.
#[derive(Clone, Debug)]
pub(super) struct Parameters {
    pub(super) layers: Vec<LayerParameters>,
    /// What the input is stored without; empty if nothing.
    pub(super) input_offset: Vec<f32>,
    keeps: Keeps,
}

impl Parameters {
    /// The numbers of a net, its weights divided by the probability of keeping the units below. Values are stored
    /// without `offsets`, those of the input first; none if it is empty.
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    pub(super) fn new(network: &Network, keeps: Keeps, offsets: &[Vec<f32>]) -> Self {
        let offset = |l: usize| offsets.get(l).cloned().unwrap_or_default();
        let of = |(l, dense): (usize, &Dense)| {
            let (n_below, n_units) = dense.weights.shape();
            let (stride, keep) = (stride(n_below), keeps.probability_below(l));
            let mut weights = vec![0.0; n_units * stride];
            for (i, row) in dense.weights.entries().chunks_exact(n_units).enumerate() {
                for (j, w) in row.iter().enumerate() {
                    weights[j * stride + i] = (w / keep) as f32;
                }
            }
            let mut bias = dense.bias.clone();
            for (i, mu) in offset(l).iter().enumerate() {
                let row = bias.iter_mut().zip(dense.weights.row(i));
                row.for_each(|(b, w)| *b += f64::from(*mu) * w);
            }
            LayerParameters {
                activation: dense.activation.kernel(),
                n_below,
                n_units,
                stride,
                weights,
                bias: bias.into_iter().map(|b| b as f32).collect(),
                offset: offset(l + 1),
            }
        };
        let layers = network.layers().iter().enumerate().map(of).collect();
        Self { layers, input_offset: offset(0), keeps }
    }

    /// Writes the numbers back into the net they came from: weights for use without dropout.
    pub(super) fn write_into(&self, network: &mut Network) {
        let layers = self.layers.iter().zip(network.layers_mut());
        for (l, (from, to)) in layers.enumerate() {
            let keep = self.keeps.probability_below(l);
            write_matrix(from, &from.weights, keep, &mut to.weights);
            to.bias.iter_mut().zip(&from.bias).for_each(|(t, b)| *t = f64::from(*b));
            let below = if l == 0 { &self.input_offset } else { &self.layers[l - 1].offset };
            for (i, mu) in below.iter().enumerate() {
                let row = to.bias.iter_mut().zip(to.weights.row(i));
                row.for_each(|(b, w)| *b -= f64::from(*mu) * w);
            }
        }
    }

    /// Whether every number is finite.
    pub(super) fn is_finite(&self) -> bool {
        self.layers.iter().all(|l| l.weights.iter().chain(&l.bias).all(|x| x.is_finite()))
    }

    /// The widest row of weights, with its padding.
    pub(super) fn widest(&self) -> usize {
        self.layers.iter().map(|l| l.stride).max().unwrap_or(0)
    }
}

impl LayerParameters {
    /// Numbers like the weights, without padding, unit by unit.
    pub(super) fn without_padding(&self, values: &[f32]) -> Vec<f64> {
        let rows = values.chunks_exact(self.stride);
        rows.flat_map(|row| &row[..self.n_below]).map(|x| f64::from(*x)).collect()
    }

    /// The inverse of [`LayerParameters::without_padding`].
    #[expect(clippy::cast_possible_truncation, reason = "they were single precision")]
    pub(super) fn with_padding(&self, values: &[f64], out: &mut [f32]) {
        let rows = out.chunks_exact_mut(self.stride).zip(values.chunks_exact(self.n_below));
        for (out, row) in rows {
            out.iter_mut().zip(row).for_each(|(o, x)| *o = *x as f32);
        }
    }
}

fn write_matrix(layer: &LayerParameters, weights: &[f32], scale: f64, to: &mut Matrix) {
    let n = layer.n_units;
    for (i, row) in to.entries_mut().chunks_exact_mut(n).enumerate() {
        for (j, w) in row.iter_mut().enumerate() {
            *w = f64::from(weights[j * layer.stride + i]) * scale;
        }
    }
}

/// A row of weights with its padding.
pub(super) fn stride(n: usize) -> usize {
    let whole = n.div_ceil(VECTOR) * VECTOR;
    if whole.is_multiple_of(ALIAS) { whole + VECTOR } else { whole }
}
