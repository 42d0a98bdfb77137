//! The values of all layers for a batch of samples or chains.
//!
//! Samples are rows. What a row is made of is private to this crate: samples of discrete layers
//! are packed bits while the kernels work on them, and become numbers when they are read.

use super::layer::LayerId;
use super::memory::{check_memory, filled};
use super::{Clamp, Machine};
use crate::error::Error;
use crate::units::BitCoordinates;
use harmonium_kernels::bits::BitMatrix;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// What the numbers of a layer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Values the units really take.
    Values,
    /// Means of independent units, whose variance the moments have to add.
    Means,
}

/// The rows of one layer.
#[derive(Clone, Debug)]
pub(crate) struct LayerState {
    form: Form,
    pub(crate) len: usize,
    pub(crate) meaning: Meaning,
    /// What its bits stand for.
    coordinates: BitCoordinates,
}

#[derive(Clone, Debug)]
enum Form {
    Numbers(Vec<f64>),
    /// One bit per entry, and the same as numbers once they were asked for.
    Bits {
        bits: BitMatrix,
        numbers: OnceLock<Vec<f64>>,
    },
}

impl PartialEq for LayerState {
    fn eq(&self, other: &Self) -> bool {
        self.meaning == other.meaning && self.numbers() == other.numbers()
    }
}

impl LayerState {
    /// All entries as numbers, row by row.
    pub(crate) fn numbers(&self) -> &[f64] {
        match &self.form {
            Form::Numbers(numbers) => numbers,
            Form::Bits { bits, numbers } => numbers.get_or_init(|| unpack(bits, self.coordinates)),
        }
    }

    /// The same, to change them; they stay numbers.
    pub(crate) fn numbers_mut(&mut self) -> &mut [f64] {
        if let Form::Bits { bits, numbers } = &mut self.form {
            let numbers = numbers.take().unwrap_or_else(|| unpack(bits, self.coordinates));
            self.form = Form::Numbers(numbers);
        }
        match &mut self.form {
            Form::Numbers(numbers) => numbers,
            Form::Bits { .. } => &mut [],
        }
    }

    /// The packed bits, if that is what the layer holds.
    pub(crate) fn bits(&self) -> Option<&BitMatrix> {
        match &self.form {
            Form::Numbers(_) => None,
            Form::Bits { bits, .. } => Some(bits),
        }
    }

    /// The packed bits to overwrite, whatever the layer held before: they are then its values.
    pub(crate) fn bits_mut(&mut self, n_rows: usize) -> &mut BitMatrix {
        self.meaning = Meaning::Values;
        if self.bits().is_none_or(|b| b.n_rows() != n_rows) {
            let bits = BitMatrix::zeros(n_rows, self.len);
            self.form = Form::Bits { bits, numbers: OnceLock::new() };
        }
        match &mut self.form {
            Form::Bits { bits, numbers } => {
                numbers.take();
                bits
            }
            Form::Numbers(_) => unreachable!("made bits just above"),
        }
    }

    /// Packs values that are all one of the two a bit can stand for; others stay numbers.
    pub(crate) fn pack(&mut self) {
        let Form::Numbers(numbers) = &self.form else { return };
        let BitCoordinates { scale, shift: off } = self.coordinates;
        let on = scale + off;
        if self.meaning == Meaning::Means || numbers.iter().any(|x| *x != off && *x != on) {
            return;
        }
        let mut bits = BitMatrix::zeros(0, self.len);
        for row in numbers.chunks_exact(self.len) {
            bits.push_row(|i| row[i] == on);
        }
        self.form = Form::Bits { bits, numbers: OnceLock::new() };
    }
}

fn unpack(bits: &BitMatrix, coordinates: BitCoordinates) -> Vec<f64> {
    let mut numbers = vec![0.0; bits.n_rows() * bits.n_columns()];
    for (r, row) in numbers.chunks_exact_mut(bits.n_columns().max(1)).enumerate() {
        bits.unpack_row_into(r, row);
        if coordinates != BitCoordinates::PLAIN {
            let BitCoordinates { scale, shift } = coordinates;
            row.iter_mut().for_each(|x| *x = scale * *x + shift);
        }
    }
    numbers
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
        let entries: usize = machine.layers().iter().map(super::Layer::len).sum();
        check_memory(n_rows as f64 * entries as f64 * 8.0, || format!("{n_rows} states"))?;
        let layers = machine.layers().iter().map(|layer| {
            let what = || format!("{n_rows} states of layer `{}`", layer.name);
            let bytes = n_rows as f64 * layer.len() as f64 * 8.0;
            let size = n_rows.checked_mul(layer.len());
            let size = size.ok_or(Error::Memory { what: what(), bytes })?;
            let form = Form::Numbers(filled(size, 0.0, what)?);
            let coordinates = layer.units.bit_coordinates().unwrap_or(BitCoordinates::PLAIN);
            Ok(LayerState { form, len: layer.len(), meaning: Meaning::Values, coordinates })
        });
        Ok(Self { n_rows, layers: layers.collect::<Result<_, Error>>()? })
    }

    /// `n_rows` rows with every unit at its neutral mean.
    ///
    /// # Errors
    ///
    /// If it does not fit into memory.
    pub(crate) fn neutral(machine: &Machine, n_rows: usize) -> Result<Self, Error> {
        let mut state = Self::zeros(machine, n_rows)?;
        for (layer, mine) in machine.layers().iter().zip(&mut state.layers) {
            mine.numbers_mut().fill(layer.units.neutral_mean());
        }
        Ok(state)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The values of layer `l` in one row.
    pub fn row(&self, l: LayerId, row: usize) -> &[f64] {
        let layer = &self.layers[l.0];
        &layer.numbers()[row * layer.len..(row + 1) * layer.len]
    }

    /// All rows of layer `l`, one after the other.
    pub fn layer(&self, l: LayerId) -> &[f64] {
        self.layers[l.0].numbers()
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
        let len = layer.len;
        layer.numbers_mut()[row * len..(row + 1) * len].copy_from_slice(values);
        Ok(())
    }

    /// Overwrites layer `l` in all rows, marking its numbers as values of units.
    pub(crate) fn set_layer(&mut self, l: LayerId, values: &[f64]) {
        self.layers[l.0].numbers_mut().copy_from_slice(values);
        self.layers[l.0].meaning = Meaning::Values;
    }

    /// Overwrites layer `l` in all rows by the means that `respond` makes of `theta`.
    pub(crate) fn set_means(
        &mut self,
        l: LayerId,
        mut theta: Vec<f64>,
        respond: impl FnOnce(&mut [f64]),
    ) {
        respond(&mut theta);
        self.layers[l.0].form = Form::Numbers(theta);
        self.layers[l.0].meaning = Meaning::Means;
    }

    /// Overwrites layer `l` in all rows by bits.
    pub(crate) fn set_bits(&mut self, l: LayerId, bits: &BitMatrix) {
        self.layers[l.0].bits_mut(self.n_rows).copy_from(bits);
    }

    /// Overwrites all rows with those of `other`, which has the same shape.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.layers.clone_from(&other.layers);
    }

    /// Every `stride`-th row, the first included.
    pub(crate) fn thinned(&self, stride: usize) -> Self {
        let thin = |layer: &LayerState| {
            let rows = layer.numbers().chunks_exact(layer.len.max(1)).step_by(stride);
            let form = Form::Numbers(rows.flatten().copied().collect());
            LayerState { form, ..*layer }
        };
        Self {
            n_rows: self.n_rows.div_ceil(stride),
            layers: self.layers.iter().map(thin).collect(),
        }
    }

    /// The rows named, in that order.
    #[must_use]
    pub(crate) fn select_rows(&self, rows: &[usize]) -> Self {
        let select = |layer: &LayerState| {
            let form = match &layer.form {
                Form::Bits { bits, .. } => {
                    let mut chosen = BitMatrix::zeros(0, bits.n_columns());
                    rows.iter().for_each(|&row| chosen.push_words(bits.row(row)));
                    Form::Bits { bits: chosen, numbers: OnceLock::new() }
                }
                Form::Numbers(numbers) => {
                    let row = |&row: &usize| &numbers[row * layer.len..(row + 1) * layer.len];
                    Form::Numbers(rows.iter().flat_map(row).copied().collect())
                }
            };
            LayerState { form, ..*layer }
        };
        Self { n_rows: rows.len(), layers: self.layers.iter().map(select).collect() }
    }

    /// Overwrites the held units of each row by the values of row `of[row]` of `held`, whose row of
    /// the clamp it has.
    ///
    /// # Errors
    ///
    /// If shapes differ.
    pub(crate) fn hold(
        &mut self,
        machine: &Machine,
        clamp: &Clamp,
        held: &Self,
        of: &[usize],
    ) -> Result<(), Error> {
        for l in machine.layer_ids().filter(|&l| !clamp.frees_layer(l)) {
            let group = machine.layer(l).units.group();
            for (row, &of) in of.iter().enumerate() {
                let mut cells = self.row(l, row).to_vec();
                for (i, (cell, value)) in cells.iter_mut().zip(held.row(l, of)).enumerate() {
                    if clamp.holds(l, of, i / group) {
                        *cell = *value;
                    }
                }
                self.set_row(l, row, &cells)?;
            }
        }
        Ok(())
    }

    /// Exchanges two rows.
    pub(crate) fn swap_rows(&mut self, a: usize, b: usize) {
        for layer in &mut self.layers {
            if layer.bits().is_some() {
                layer.bits_mut(self.n_rows).swap_rows(a, b);
                continue;
            }
            let len = layer.len;
            let numbers = layer.numbers_mut();
            for i in 0..len {
                numbers.swap(a * len + i, b * len + i);
            }
        }
    }

    /// Exchanges a row with the same row of `other`, which has the same shape.
    pub(crate) fn exchange_row(&mut self, other: &mut Self, row: usize) {
        let (n_rows, other_rows) = (self.n_rows, other.n_rows);
        for (mine, other) in self.layers.iter_mut().zip(&mut other.layers) {
            if mine.bits().is_some() && other.bits().is_some() {
                mine.bits_mut(n_rows).exchange_row(other.bits_mut(other_rows), row);
                continue;
            }
            let place = row * mine.len..(row + 1) * mine.len;
            mine.numbers_mut()[place.clone()].swap_with_slice(&mut other.numbers_mut()[place]);
        }
    }

    /// All values as JSON: a text of hexadecimal digits for layers whose values are bits, four to
    /// a digit, else a list of numbers.
    pub(crate) fn written(&self) -> Value {
        let layer = |layer: &LayerState| {
            let BitCoordinates { scale, shift: off } = layer.coordinates;
            let numbers = layer.numbers();
            if numbers.iter().any(|x| *x != off && *x != off + scale) {
                return json!(numbers);
            }
            let digit = |four: &[f64]| {
                let bits = four.iter().enumerate().map(|(k, x)| u32::from(*x != off) << k);
                char::from_digit(bits.sum(), 16).unwrap_or('0')
            };
            Value::String(numbers.chunks(4).map(digit).collect())
        };
        self.layers.iter().map(layer).collect()
    }

    /// What [`State::written`] wrote; none if it does not fit.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub(crate) fn read(
        machine: &Machine,
        n_rows: usize,
        written: &Value,
    ) -> Result<Option<Self>, Error> {
        let mut state = Self::zeros(machine, n_rows)?;
        for (l, layer) in state.layers.iter_mut().enumerate() {
            let BitCoordinates { scale, shift: off } = layer.coordinates;
            let numbers: Option<Vec<f64>> = match &written[l] {
                Value::String(digits) => {
                    let bits = |digit: char| {
                        let four = digit.to_digit(16)?;
                        Some((0..4).map(move |k| off + scale * f64::from(four >> k & 1)))
                    };
                    let fours: Option<Vec<_>> = digits.chars().map(bits).collect();
                    let all = |fours: Vec<_>| fours.into_iter().flatten();
                    let n = layer.len * n_rows;
                    fours.filter(|f| f.len() == n.div_ceil(4)).map(|f| all(f).take(n).collect())
                }
                list => serde_json::from_value(list.clone()).ok(),
            };
            match numbers.filter(|found| found.len() == layer.len * n_rows) {
                Some(found) => layer.numbers_mut().copy_from_slice(&found),
                None => return Ok(None),
            }
        }
        Ok(Some(state))
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
