//! Values of the visible layers on their way into a machine.
//!
//! A batch holds a number of samples, the weight of each, and the [`Clamp`] that holds exactly the
//! values it has: a layer the data does not fill, or a cell that is missing, is free. Batches are
//! filled by [`Feed`](crate::schema::Feed).

use super::{Clamp, LayerId, Machine, State};
use crate::error::Error;
use harmonium_kernels::bits::BitMatrix;

/// The values of the visible layers for a number of samples, and the weight of each.
#[derive(Clone, Debug)]
pub struct Batch {
    visible: Vec<LayerId>,
    layers: Vec<LayerRows>,
    lens: Vec<usize>,
    weights: Vec<f64>,
    clamp: Clamp,
    /// Buffers for one row of data.
    pub(crate) buffers: RowBuffers,
}

/// One row of data, as numbers and as packed bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowBuffers {
    pub(crate) values: Vec<f64>,
    pub(crate) words: Vec<u64>,
}

/// The rows of one visible layer.
#[derive(Clone, Debug)]
enum LayerRows {
    Numbers(Vec<f64>),
    Bits(BitMatrix),
    /// The data does not have this layer.
    Absent,
}

impl LayerRows {
    /// The rows as numbers, whatever an earlier batch held forgotten.
    fn numbers(&mut self) -> &mut Vec<f64> {
        if !matches!(self, Self::Numbers(_)) {
            *self = Self::Numbers(Vec::new());
        }
        match self {
            Self::Numbers(numbers) => numbers,
            Self::Bits(_) | Self::Absent => unreachable!("made numbers just above"),
        }
    }

    /// The rows as bits, whatever an earlier batch held forgotten.
    fn bits(&mut self, len: usize) -> &mut BitMatrix {
        if !matches!(self, Self::Bits(_)) {
            *self = Self::Bits(BitMatrix::zeros(0, len));
        }
        match self {
            Self::Bits(bits) => bits,
            Self::Numbers(_) | Self::Absent => unreachable!("made bits just above"),
        }
    }
}

impl Batch {
    /// An empty batch for visible layers, each with its number of entries.
    pub(crate) fn of_layers(layers: impl Iterator<Item = (LayerId, usize)>) -> Self {
        let (visible, lens): (Vec<LayerId>, Vec<usize>) = layers.unzip();
        let clamp = Clamp::layers(visible.iter().copied());
        let layers = vec![LayerRows::Numbers(Vec::new()); visible.len()];
        let buffers = RowBuffers::default();
        Self { layers, visible, lens, weights: Vec::new(), clamp, buffers }
    }

    /// Removes all samples, keeping the memory. `clamp` holds what those that follow will have.
    pub(crate) fn restart(&mut self, clamp: &Clamp) {
        for layer in &mut self.layers {
            match layer {
                LayerRows::Numbers(numbers) => numbers.clear(),
                LayerRows::Bits(bits) => bits.clear(),
                LayerRows::Absent => {}
            }
        }
        self.weights.clear();
        if self.clamp != *clamp {
            self.clamp.clone_from(clamp);
        }
    }

    /// The numbers of the `i`-th visible layer, to add a row to.
    pub(crate) fn numbers_of(&mut self, i: usize) -> &mut Vec<f64> {
        self.layers[i].numbers()
    }

    /// The bits of the `i`-th visible layer, to add a row to.
    pub(crate) fn bits_of(&mut self, i: usize) -> &mut BitMatrix {
        self.layers[i].bits(self.lens[i])
    }

    /// Says that the data does not have the `i`-th visible layer.
    pub(crate) fn leave_out(&mut self, i: usize) {
        self.layers[i] = LayerRows::Absent;
    }

    /// Ends a sample: its values are in all layers that the data has.
    pub(crate) fn end_row(&mut self, weight: f64) {
        self.weights.push(weight);
    }

    /// What is held, to change it together with the values.
    pub(crate) fn clamp_mut(&mut self) -> &mut Clamp {
        &mut self.clamp
    }

    /// The visible layers of `x`, with a weight for each row.
    pub(crate) fn from_state(machine: &Machine, x: &State, weights: &[f64]) -> Self {
        let visible = machine.visible_layers().into_iter();
        let mut batch = Self::of_layers(visible.map(|l| (l, machine.layer(l).len())));
        for (l, rows) in batch.visible.iter().zip(&mut batch.layers) {
            let layer = &x.layers[l.0];
            *rows = match layer.bits() {
                Some(bits) => LayerRows::Bits(bits.clone()),
                None => LayerRows::Numbers(layer.numbers().to_vec()),
            };
        }
        batch.weights.extend_from_slice(weights);
        batch
    }

    /// Number of samples.
    pub fn n_rows(&self) -> usize {
        self.weights.len()
    }

    /// The weight of each sample.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The visible layers.
    pub fn visible(&self) -> &[LayerId] {
        &self.visible
    }

    /// Holds every value the samples have, and leaves free what they lack.
    pub fn clamp(&self) -> &Clamp {
        &self.clamp
    }

    /// Gives every sample the same class in the layer of labels `l`.
    pub(crate) fn set_class(&mut self, l: LayerId, class: usize) {
        let n_rows = self.n_rows();
        if let Some(i) = self.visible.iter().position(|v| *v == l) {
            let bits = self.bits_of(i);
            bits.clear();
            (0..n_rows).for_each(|_| bits.push_row(|k| k == class));
        }
    }

    /// Writes the values of a row in single precision, the visible layers side by side; 0 for layers that
    /// the samples lack.
    ///
    /// # Panics
    ///
    /// If there is no such row, or `out` is not as long as all visible layers.
    pub(crate) fn row_into(&self, row: usize, out: &mut [f32]) {
        let mut rest = out;
        for (layer, &len) in self.layers.iter().zip(&self.lens) {
            let (these, others) = rest.split_at_mut(len);
            rest = others;
            match layer {
                LayerRows::Numbers(numbers) => {
                    let numbers = &numbers[row * len..(row + 1) * len];
                    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
                    these.iter_mut().zip(numbers).for_each(|(o, x)| *o = *x as f32);
                }
                LayerRows::Bits(bits) => {
                    let words = bits.row(row);
                    for (k, o) in these.iter_mut().enumerate() {
                        *o = (words[k / 64] >> (k % 64) & 1) as f32;
                    }
                }
                LayerRows::Absent => these.fill(0.0),
            }
        }
        assert!(rest.is_empty(), "row_into: a place for each entry");
    }

    /// A state with these visible values, and everything else at its neutral mean.
    ///
    /// # Errors
    ///
    /// If it does not fit into memory.
    pub fn to_state(&self, machine: &Machine) -> Result<State, Error> {
        let mut state = State::neutral(machine, self.n_rows())?;
        self.write_into(&mut state);
        Ok(state)
    }

    /// Overwrites the visible layers of `state` that the samples have; it has as many rows.
    pub(crate) fn write_into(&self, state: &mut State) {
        for (l, rows) in self.visible.iter().zip(&self.layers) {
            match rows {
                LayerRows::Numbers(numbers) => state.set_layer(*l, numbers),
                LayerRows::Bits(bits) => state.set_bits(*l, bits),
                LayerRows::Absent => {}
            }
        }
    }
}
