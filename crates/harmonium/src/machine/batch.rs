//! Samples on their way into the visible layers.

use super::{Layer, LayerId, Machine, Role, State};
use crate::error::Error;
use crate::units::Storage;
use harmonium_kernels::bits::BitMatrix;

/// The values of the visible layers for a number of samples, and the weight of each.
#[derive(Clone, Debug)]
pub struct Batch {
    visible: Vec<LayerId>,
    layers: Vec<Rows>,
    lens: Vec<usize>,
    weights: Vec<f64>,
}

/// The rows of one visible layer.
#[derive(Clone, Debug)]
enum Rows {
    Numbers(Vec<f64>),
    Bits(BitMatrix),
}

impl Rows {
    /// The rows as numbers, bits of an earlier batch forgotten.
    fn numbers(&mut self) -> &mut Vec<f64> {
        if let Self::Bits(_) = self {
            *self = Self::Numbers(Vec::new());
        }
        match self {
            Self::Numbers(numbers) => numbers,
            Self::Bits(_) => unreachable!("made numbers just above"),
        }
    }

    /// The rows as bits, numbers of an earlier batch forgotten.
    fn bits(&mut self, len: usize) -> &mut BitMatrix {
        if let Self::Numbers(_) = self {
            *self = Self::Bits(BitMatrix::zeros(0, len));
        }
        match self {
            Self::Bits(bits) => bits,
            Self::Numbers(_) => unreachable!("made bits just above"),
        }
    }
}

impl Batch {
    /// An empty batch for the visible layers of `machine`.
    pub fn new(machine: &Machine) -> Self {
        let visible = machine.visible_layers();
        let lens: Vec<usize> = visible.iter().map(|&l| machine.layer(l).len()).collect();
        let layers = vec![Rows::Numbers(Vec::new()); visible.len()];
        Self { layers, visible, lens, weights: Vec::new() }
    }

    /// A batch of samples of weight 1, given row by row. The columns of a row fill the visible
    /// layers in their order: one column per entry, or one per unit where categories are given as
    /// whole numbers.
    ///
    /// # Errors
    ///
    /// If the columns do not fit, the values do not fill whole rows, or one is impossible for its
    /// units.
    pub fn from_rows(machine: &Machine, n_columns: usize, values: &[f64]) -> Result<Self, Error> {
        let columns = Columns::of(machine);
        if values.is_empty() {
            return Err(Error::Empty { what: "the batch".into() });
        }
        columns.accept(n_columns, machine)?;
        if !values.len().is_multiple_of(n_columns) {
            let (what, found) = (format!("rows of {n_columns} columns"), values.len());
            return Err(Error::Shape { what, expected: n_columns, found });
        }
        let mut batch = Self::new(machine);
        for (row, values) in values.chunks_exact(n_columns).enumerate() {
            columns.check(machine, row, values)?;
            batch.push(machine, values, 1.0);
        }
        Ok(batch)
    }

    /// Removes all samples, keeping the memory.
    pub fn clear(&mut self) {
        for layer in &mut self.layers {
            match layer {
                Rows::Numbers(numbers) => numbers.clear(),
                Rows::Bits(bits) => bits.clear(),
            }
        }
        self.weights.clear();
    }

    /// Adds a sample that is known to fit.
    pub(crate) fn push(&mut self, machine: &Machine, values: &[f64], weight: f64) {
        let one_hot = values.len() == self.lens.iter().sum::<usize>();
        let mut at = 0;
        for (l, out) in self.visible.iter().zip(&mut self.layers) {
            let (layer, out) = (machine.layer(*l), out.numbers());
            if layer.units.storage() == Storage::OneHot && !one_hot {
                for &k in &values[at..at + layer.n_units()] {
                    let entries = 0..layer.units.group();
                    out.extend(entries.map(|i| f64::from(u8::from(i as f64 == k))));
                }
                at += layer.n_units();
            } else {
                out.extend_from_slice(&values[at..at + layer.len()]);
                at += layer.len();
            }
        }
        self.weights.push(weight);
    }

    /// Adds a sample of packed bits, one for each entry of the visible layers in their order.
    pub(crate) fn push_bits(&mut self, words: &[u64], weight: f64) {
        let mut at = 0;
        for (&len, out) in self.lens.iter().zip(&mut self.layers) {
            let bits = out.bits(len);
            if at == 0 && len.div_ceil(64) == words.len() && self.lens.len() == 1 {
                bits.push_words(words);
            } else {
                bits.push_row(|i| words[(at + i) / 64] >> ((at + i) % 64) & 1 == 1);
            }
            at += len;
        }
        self.weights.push(weight);
    }

    /// The visible layers of `x`, with a weight for each row.
    pub(crate) fn from_state(machine: &Machine, x: &State, weights: &[f64]) -> Self {
        let mut batch = Self::new(machine);
        for (l, rows) in batch.visible.iter().zip(&mut batch.layers) {
            let layer = &x.layers[l.0];
            *rows = match layer.bits() {
                Some(bits) => Rows::Bits(bits.clone()),
                None => Rows::Numbers(layer.numbers().to_vec()),
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

    /// The numbers of each visible layer, row by row; empty where it holds bits.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &[f64]> {
        self.layers.iter().map(|rows| match rows {
            Rows::Numbers(numbers) => numbers.as_slice(),
            Rows::Bits(_) => &[],
        })
    }

    /// The visible layers.
    pub fn visible(&self) -> &[LayerId] {
        &self.visible
    }

    /// A state with these visible values, and the others at their neutral mean.
    ///
    /// # Errors
    ///
    /// If it does not fit into memory.
    pub fn to_state(&self, machine: &Machine) -> Result<State, Error> {
        let mut state = State::neutral(machine, self.n_rows())?;
        self.write_into(&mut state);
        Ok(state)
    }

    /// Overwrites the visible layers of `state`, which has as many rows.
    pub(crate) fn write_into(&self, state: &mut State) {
        for (l, rows) in self.visible.iter().zip(&self.layers) {
            match rows {
                Rows::Numbers(numbers) => state.set_layer(*l, numbers),
                Rows::Bits(bits) => state.set_bits(*l, bits),
            }
        }
    }
}

/// How many columns the visible layers take: one per entry, or one per unit where categories are
/// given as whole numbers.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    entries: usize,
    units: usize,
}

impl Columns {
    pub(crate) fn of(machine: &Machine) -> Self {
        let visible = || machine.layers().iter().filter(|layer| layer.role == Role::Visible);
        Self {
            entries: visible().map(Layer::len).sum(),
            units: visible().map(Layer::n_units).sum(),
        }
    }

    /// How many there are with one per entry.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// Whether rows of `n_columns` columns fill the visible layers.
    pub(crate) fn accept(&self, n_columns: usize, machine: &Machine) -> Result<(), Error> {
        if n_columns == self.entries || n_columns == self.units {
            return Ok(());
        }
        Err(self.mismatch(n_columns, machine))
    }

    fn mismatch(&self, found: usize, machine: &Machine) -> Error {
        let visible = machine.visible_layers();
        let part =
            |&l: &LayerId| format!("{} of `{}`", machine.layer(l).len(), machine.layer(l).name);
        let mut detail = String::new();
        if visible.len() > 1 {
            let parts: Vec<String> = visible.iter().map(part).collect();
            detail = format!(" ({})", parts.join(" + "));
        }
        if self.units != self.entries {
            let units = self.units;
            detail = format!("{detail}, or {units} with categories as whole numbers");
        }
        Error::ColumnCount { expected: self.entries, found, detail }
    }

    /// Whether each value is one its units can take; `row` is for the message.
    pub(crate) fn check(&self, machine: &Machine, row: usize, values: &[f64]) -> Result<(), Error> {
        self.accept(values.len(), machine)?;
        let one_hot = values.len() == self.entries;
        let mut at = 0;
        for l in machine.visible_layers() {
            let layer = machine.layer(l);
            let width = if one_hot { layer.len() } else { layer.n_units() };
            let group = if one_hot { layer.units.group() } else { 1 };
            for (u, unit) in values[at..at + width].chunks_exact(group).enumerate() {
                if let Some(i) = layer.units.impossible(unit) {
                    return Err(Error::Value {
                        units: if unit[i].is_finite() { layer.units.name() } else { "finite" },
                        layer: layer.name.clone(),
                        row,
                        column: at + u * group + i,
                        value: unit[i],
                    });
                }
            }
            at += width;
        }
        Ok(())
    }
}
