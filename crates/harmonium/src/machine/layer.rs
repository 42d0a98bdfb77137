//! A group of units of one kind, with the parameters of its own energy.

use super::memory::filled;
use crate::error::Error;
use crate::units::{OwnParameters, Units};
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

/// A group of units of one kind: $E_l(x) = \sum_k \text{own}_k s_k(x) - b^\top x$, and the offset
/// $\mu$. Gaussian units own a precision $\gamma$ with $s(x) = \tfrac12 x^2$, the other kinds nothing.
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
    /// The parameters that the units own, as [`Units::own_parameters`] declares them: a row of
    /// numbers for each, one row after the other.
    pub own: Vec<f64>,
    /// $\mu$: subtracted from the state before it meets a weight.
    pub offset: Vec<f64>,
}

impl Layer {
    /// `n_units` units with zero bias, zero offset and own parameters where their kind starts them.
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
        let mut own = Vec::new();
        for parameter in units.own_parameters() {
            own.extend(filled(len, parameter.start, what)?);
        }
        Ok(Self { name, role, units, bias, own, offset })
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

    /// The own parameters of all entries.
    pub fn own(&self) -> OwnParameters<'_> {
        OwnParameters::new(&self.own, self.len())
    }

    /// The own parameter of that name, of each entry; empty if the units own none.
    pub fn own_named(&self, name: &str) -> &[f64] {
        let place = self.units.own_parameters().iter().position(|p| p.name == name);
        place.map_or(&[], |k| self.own().row(k))
    }

    /// $E_l(x) = \sum_i \sum_k \text{own}_{ki} s_k(x_i) - b_i x_i$.
    pub fn energy(&self, x: &[f64]) -> f64 {
        self.energy_with(&self.bias, x)
    }

    /// The own energy with other biases.
    pub(crate) fn energy_with(&self, bias: &[f64], x: &[f64]) -> f64 {
        own_energy(self.units, bias, self.own(), x)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let (len, group) = (self.bias.len(), self.units.group());
        if len == 0 {
            return Err(Error::Empty { what: format!("layer `{}`", self.name) });
        }
        if !self.units.allows_size() && self.units.sums_own() {
            let value = format!("{} in layer `{}`", self.units.largest(), self.name);
            let range = "from 1 to 1023, and at most 63 for ordered levels";
            return Err(Error::Setting { name: "largest value of a unit", value, range });
        }
        if !self.units.allows_size() || !len.is_multiple_of(group) {
            return Err(Error::UnitSize { layer: self.name.clone(), len, group });
        }
        let count = |what, expected, found| {
            let layer = self.name.clone();
            Err(Error::ParameterCount { layer, what, expected, found })
        };
        for (what, values) in [("bias", &self.bias), ("offset", &self.offset)] {
            if values.len() != len {
                return count(what, len, values.len());
            }
            self.check_values(what, values, f64::is_finite)?;
        }
        let declared = self.units.own_parameters();
        if self.own.len() != declared.len() * len {
            let what = if let [one] = declared { one.name } else { "own parameters" };
            return count(what, declared.len() * len, self.own.len());
        }
        for (k, parameter) in declared.iter().enumerate() {
            self.check_values(parameter.name, self.own().row(k), |x| parameter.accepts(x))?;
        }
        Ok(())
    }

    fn check_values(
        &self,
        what: &'static str,
        values: &[f64],
        accepts: impl Fn(f64) -> bool,
    ) -> Result<(), Error> {
        match values.iter().position(|&x| !accepts(x)) {
            None => Ok(()),
            Some(entry) => {
                let (place, value) = (self.name.clone(), values[entry]);
                Err(Error::ParameterValue { place, what, entry, value })
            }
        }
    }
}

/// $\sum_i \sum_k \text{own}_{ki} s_k(x_i) - b_i x_i$.
pub(crate) fn own_energy(units: Units, bias: &[f64], own: OwnParameters<'_>, x: &[f64]) -> f64 {
    let linear: f64 = bias.iter().zip(x).map(|(b, x)| b * x).sum();
    units.own_energy(own, x) - linear
}
