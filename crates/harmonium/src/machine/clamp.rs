//! What keeps its value during a walk.
//!
//! A clamp is an argument of a sampler and not a state of the machine. A [`Batch`](super::Batch)
//! carries one that holds exactly the units whose values it has.

use super::{LayerId, Machine};
use crate::error::Error;
use harmonium_kernels::bits::BitMatrix;
use ndarray::ArrayView2;

/// The units that are held, by layer, by unit, or by row and unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clamp {
    layers: Vec<Held>,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Held {
    #[default]
    Nothing,
    Everything,
    /// The same units in every row.
    Units(Vec<bool>),
    /// One bit per row and unit.
    Entries(BitMatrix),
}

impl Clamp {
    /// Holds nothing: the negative phase.
    pub fn none() -> Self {
        Self::default()
    }

    /// Holds the visible layers: the positive phase.
    pub fn visible(machine: &Machine) -> Self {
        Self::layers(machine.visible_layers())
    }

    /// Holds whole layers.
    pub fn layers(layers: impl IntoIterator<Item = LayerId>) -> Self {
        let mut clamp = Self::none();
        for l in layers {
            *clamp.at(l) = Held::Everything;
        }
        clamp
    }

    /// Also holds the units of layer `l` that are `true`, in every row.
    #[must_use]
    pub fn with_units(mut self, l: LayerId, held: Vec<bool>) -> Self {
        *self.at(l) = Held::Units(held);
        self
    }

    /// Also holds the units of layer `l` that are `true`: a row for each row of the state, a column
    /// for each unit.
    #[must_use]
    pub fn with_mask(mut self, l: LayerId, held: ArrayView2<'_, bool>) -> Self {
        let mut bits = BitMatrix::zeros(0, held.ncols());
        held.rows().into_iter().for_each(|row| bits.push_row(|unit| row[unit]));
        *self.at(l) = Held::Entries(bits);
        self
    }

    /// Also holds all of layer `l`.
    pub(crate) fn hold_layer(&mut self, l: LayerId) {
        *self.at(l) = Held::Everything;
    }

    /// The mask of layer `l`, a row for each row of the state, to add rows to: empty at first,
    /// whatever was held before.
    pub(crate) fn start_mask(&mut self, l: LayerId, n_units: usize) {
        match self.at(l) {
            Held::Entries(bits) if bits.n_columns() == n_units => bits.clear(),
            other => *other = Held::Entries(BitMatrix::zeros(0, n_units)),
        }
    }

    /// Adds a row to the mask that was started.
    pub(crate) fn push_mask_row(&mut self, l: LayerId, held: impl FnMut(usize) -> bool) {
        if let Held::Entries(bits) = self.at(l) {
            bits.push_row(held);
        }
    }

    /// Ends the mask that was started: where it holds every unit, the layer is held as a whole.
    pub(crate) fn finish_mask(&mut self, l: LayerId) {
        if let Held::Entries(bits) = self.at(l)
            && bits.count_ones() == bits.n_rows() as u64 * bits.n_columns() as u64
        {
            *self.at(l) = Held::Everything;
        }
    }

    /// The same for the rows named, in that order.
    #[must_use]
    pub(crate) fn select_rows(&self, rows: &[usize]) -> Self {
        let select = |held: &Held| match held {
            Held::Entries(bits) => {
                let mut chosen = BitMatrix::zeros(0, bits.n_columns());
                rows.iter().for_each(|&row| chosen.push_words(bits.row(row)));
                Held::Entries(chosen)
            }
            other => other.clone(),
        };
        Self { layers: self.layers.iter().map(select).collect() }
    }

    fn at(&mut self, l: LayerId) -> &mut Held {
        if self.layers.len() <= l.0 {
            self.layers.resize(l.0 + 1, Held::Nothing);
        }
        &mut self.layers[l.0]
    }

    /// Whether all of layer `l` is held.
    pub fn holds_layer(&self, l: LayerId) -> bool {
        matches!(self.layers.get(l.0), Some(Held::Everything))
    }

    /// Whether nothing of layer `l` is held.
    pub fn frees_layer(&self, l: LayerId) -> bool {
        matches!(self.layers.get(l.0), None | Some(Held::Nothing))
    }

    /// Whether a unit is held in a row.
    pub fn holds(&self, l: LayerId, row: usize, unit: usize) -> bool {
        match self.layers.get(l.0) {
            None | Some(Held::Nothing) => false,
            Some(Held::Everything) => true,
            Some(Held::Units(units)) => units[unit],
            Some(Held::Entries(bits)) => bits.get(row, unit),
        }
    }

    pub(crate) fn check(&self, machine: &Machine, n_rows: usize) -> Result<(), Error> {
        for (i, held) in self.layers.iter().enumerate() {
            let n_layers = machine.layers().len();
            if i >= n_layers {
                return Err(Error::UnknownLayer { layer: i, n_layers });
            }
            let layer = &machine.layers()[i];
            let what = |of: &str| format!("the clamp's {of} in layer `{}`", layer.name);
            let units = |expected, found| Error::Shape { what: what("units"), expected, found };
            match held {
                Held::Units(u) if u.len() != layer.n_units() => {
                    return Err(units(layer.n_units(), u.len()));
                }
                Held::Entries(b) if b.n_columns() != layer.n_units() => {
                    return Err(units(layer.n_units(), b.n_columns()));
                }
                Held::Entries(b) if b.n_rows() != n_rows => {
                    return Err(Error::Shape {
                        what: what("rows"),
                        expected: n_rows,
                        found: b.n_rows(),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }
}
