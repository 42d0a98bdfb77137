//! The values of all layers for a batch of samples or chains.
//!
//! Samples are rows. What a row is made of is private to this crate: layers of bits may be packed,
//! and nobody outside should notice.

use super::Machine;
use super::layer::{LayerId, filled};
use crate::error::Error;

/// What the numbers of a layer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Values the units really take.
    Values,
    /// Means of independent units, whose variance the moments have to add.
    Means,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LayerState {
    pub(crate) data: Vec<f64>,
    pub(crate) len: usize,
    pub(crate) meaning: Meaning,
}

/// One value per unit of every layer, for each of a number of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    n_rows: usize,
    pub(crate) layers: Vec<LayerState>,
}

impl State {
    /// `n_rows` rows of zeros.
    ///
    /// # Errors
    ///
    /// If it does not fit into memory.
    pub fn zeros(machine: &Machine, n_rows: usize) -> Result<Self, Error> {
        let layers = machine.layers().iter().map(|layer| {
            let what = || format!("{n_rows} states of layer `{}`", layer.name);
            let bytes = n_rows as f64 * layer.len() as f64 * 8.0;
            let size = n_rows.checked_mul(layer.len());
            let size = size.ok_or(Error::Memory { what: what(), bytes })?;
            let data = filled(size, 0.0, what)?;
            Ok(LayerState { data, len: layer.len(), meaning: Meaning::Values })
        });
        Ok(Self { n_rows, layers: layers.collect::<Result<_, Error>>()? })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The values of layer `l` in one row.
    pub fn row(&self, l: LayerId, row: usize) -> &[f64] {
        let layer = &self.layers[l.0];
        &layer.data[row * layer.len..(row + 1) * layer.len]
    }

    /// All rows of layer `l`, one after the other.
    pub fn layer(&self, l: LayerId) -> &[f64] {
        &self.layers[l.0].data
    }

    /// Overwrites layer `l` in one row.
    ///
    /// # Errors
    ///
    /// If there are not as many values as the layer has entries, or no such row.
    pub fn set_row(&mut self, l: LayerId, row: usize, values: &[f64]) -> Result<(), Error> {
        let (n_rows, n_layers) = (self.n_rows, self.layers.len());
        let shape =
            |what: &str, expected, found| Error::Shape { what: what.into(), expected, found };
        let layer = self.layers.get_mut(l.0).ok_or(shape("a layer number", n_layers, l.0))?;
        if values.len() != layer.len {
            return Err(shape("a row of values", layer.len, values.len()));
        }
        if row >= n_rows {
            return Err(shape("a row number", n_rows, row));
        }
        layer.data[row * layer.len..(row + 1) * layer.len].copy_from_slice(values);
        Ok(())
    }

    /// Overwrites layer `l` in all rows, marking its numbers as values of units.
    pub(crate) fn set_layer(&mut self, l: LayerId, values: &[f64]) {
        self.layers[l.0].data.copy_from_slice(values);
        self.layers[l.0].meaning = Meaning::Values;
    }

    /// Overwrites all rows with those of `other`, which has the same shape.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        for (mine, theirs) in self.layers.iter_mut().zip(&other.layers) {
            mine.data.copy_from_slice(&theirs.data);
            mine.meaning = theirs.meaning;
        }
    }

    /// Exchanges two rows.
    pub(crate) fn swap_rows(&mut self, a: usize, b: usize) {
        for layer in &mut self.layers {
            for i in 0..layer.len {
                layer.data.swap(a * layer.len + i, b * layer.len + i);
            }
        }
    }

    pub(crate) fn check(&self, machine: &Machine) -> Result<(), Error> {
        let layers = machine.layers();
        if self.layers.len() != layers.len() {
            let (expected, found) = (layers.len(), self.layers.len());
            return Err(Error::Shape { what: "the number of layers".into(), expected, found });
        }
        for (mine, layer) in self.layers.iter().zip(layers) {
            if mine.len != layer.len() {
                let what = format!("layer `{}`", layer.name);
                return Err(Error::Shape { what, expected: layer.len(), found: mine.len });
            }
        }
        Ok(())
    }
}
