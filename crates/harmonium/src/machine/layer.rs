//! A group of units of one kind, with the parameters of its own energy.

use crate::error::Error;
use crate::units::Units;
use serde::{Deserialize, Serialize};

/// Position of a layer in its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayerId(pub usize);

/// Whether data goes into a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Data goes here.
    Visible,
    /// Inferred from the data.
    Hidden,
}

/// A group of units of one kind: $E_l(x) = \tfrac12\gamma x^2 - b^\top x$, and the offset $\mu$.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// What people call it; unique in its machine.
    pub name: String,
    /// Whether data goes into it.
    pub role: Role,
    /// What the units are.
    pub units: Units,
    /// $b$: the linear term of the energy.
    pub bias: Vec<f64>,
    /// $\gamma$ of Gaussian units; empty for the other kinds.
    pub precision: Vec<f64>,
    /// $\mu$: subtracted from the state before it meets a weight.
    pub offset: Vec<f64>,
}

impl Layer {
    /// `n_units` units with zero bias, zero offset and unit precision.
    ///
    /// # Errors
    ///
    /// If the layer is empty or does not fit into memory.
    pub fn new(
        name: impl Into<String>,
        role: Role,
        units: Units,
        n_units: usize,
    ) -> Result<Self, Error> {
        let name = name.into();
        let len = n_units.saturating_mul(units.group());
        if len == 0 {
            return Err(Error::Empty { what: format!("layer `{name}`") });
        }
        let what = || format!("layer `{name}`");
        let bias = filled(len, 0.0, what)?;
        let offset = filled(len, 0.0, what)?;
        let precision = filled(if units.is_discrete() { 0 } else { len }, 1.0, what)?;
        Ok(Self { name, role, units, bias, precision, offset })
    }

    /// Number of entries in the state of this layer.
    #[expect(clippy::len_without_is_empty, reason = "a layer is never empty")]
    pub fn len(&self) -> usize {
        self.bias.len()
    }

    /// Number of units.
    pub fn n_units(&self) -> usize {
        self.len() / self.units.group()
    }

    /// $E_l(x) = \sum_i \tfrac12\gamma_i x_i^2 - b_i x_i$.
    pub fn energy(&self, x: &[f64]) -> f64 {
        own_energy(&self.bias, &self.precision, x)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let (len, group) = (self.bias.len(), self.units.group());
        if len == 0 {
            return Err(Error::Empty { what: format!("layer `{}`", self.name) });
        }
        if group == 0 || self.units == (Units::Categorical { q: 1 }) || !len.is_multiple_of(group) {
            return Err(Error::UnitSize { layer: self.name.clone(), len, group });
        }
        let n_precisions = if self.units.is_discrete() { 0 } else { len };
        for (what, values, expected) in [
            ("bias", &self.bias, len),
            ("offset", &self.offset, len),
            ("precision", &self.precision, n_precisions),
        ] {
            if values.len() != expected {
                let (layer, found) = (self.name.clone(), values.len());
                return Err(Error::ParameterCount { layer, what, expected, found });
            }
            let bad = |x: &f64| !x.is_finite() || (what == "precision" && *x <= 0.0);
            if let Some(entry) = values.iter().position(bad) {
                let (place, value) = (self.name.clone(), values[entry]);
                return Err(Error::ParameterValue { place, what, entry, value });
            }
        }
        Ok(())
    }
}

/// $\sum_i \tfrac12\gamma_i x_i^2 - b_i x_i$; no quadratic part where `precision` is empty.
pub(crate) fn own_energy(bias: &[f64], precision: &[f64], x: &[f64]) -> f64 {
    let linear: f64 = bias.iter().zip(x).map(|(b, x)| b * x).sum();
    let quadratic: f64 = precision.iter().zip(x).map(|(g, x)| 0.5 * g * x * x).sum();
    quadratic - linear
}

/// A vector of `len` times `value`, or an error where memory ends.
pub(crate) fn filled(len: usize, value: f64, what: impl Fn() -> String) -> Result<Vec<f64>, Error> {
    let mut values = Vec::new();
    let too_much = |_| Error::Memory { what: what(), bytes: len as f64 * 8.0 };
    values.try_reserve_exact(len).map_err(too_much)?;
    values.resize(len, value);
    Ok(values)
}
