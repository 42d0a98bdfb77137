//! What is known unit by unit: by name, or by the numbers of a file of evidence.
//!
//! A unit is named by its layer and its number from 0, `visible[3]`, or by the column of the data it was learned from.
//! Variables are the units layer after layer, or as they were numbered in the file of factors that the
//! machine was read from.

use super::given::{Given, Known};
use super::table::Observed;
use crate::error::Error;
use crate::machine::{Clamp, Layer, LayerId, Machine, State};
use crate::models::Body;
use crate::run::Model;
use crate::schema::{Encoding, Filling, LABELS};
use ndarray::Array2;

/// A unit and what it is held at.
struct Held {
    layer: LayerId,
    unit: usize,
    entries: Vec<f64>,
    /// How it was written.
    name: String,
    value: String,
}

/// Names and values.
type Values = Vec<(String, String)>;

/// What is known when one question is asked: any of these, together.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// One row with holes.
    pub rows: Option<Observed>,
    /// Its class; not beside a row.
    pub class: Option<String>,
    /// Values of columns and of single units, by their names.
    pub values: Vec<(String, String)>,
    /// States of variables, both by their numbers.
    pub variables: Vec<(usize, usize)>,
}

impl Model {
    /// Holds what is known.
    ///
    /// # Errors
    ///
    /// If there is no such column, unit, variable or class, it cannot hold the value, or two things contradict each other.
    pub fn known(&self, known: Knowledge) -> Result<Given<'_>, Error> {
        let (columns, units) = self.columns_and_units(known.values);
        let given = match (known.rows, &known.class) {
            (Some(rows), _) => self.given(&rows.with_values(self, &columns)?.data, None)?,
            (None, Some(name)) => self.of_class(name)?,
            (None, None) if columns.is_empty() => self.freely(),
            (None, None) => self.given(&self.know(&columns)?.data, None)?,
        };
        let given = if units.is_empty() { given } else { given.and_values(&units)? };
        if known.variables.is_empty() { Ok(given) } else { given.and_evidence(&known.variables) }
    }

    /// The units by the numbers of their variables: layer after layer, or as in the file of factors that they were read
    /// from. A net has none.
    pub fn variables(&self) -> Vec<(LayerId, usize)> {
        let Ok(machine) = self.top() else { return Vec::new() };
        let of = |l: LayerId| (0..machine.layer(l).n_units()).map(move |unit| (l, unit));
        let units: Vec<(LayerId, usize)> = machine.layer_ids().flat_map(of).collect();
        let numbers = &self.about.data.variables;
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..units.len()) {
            return units;
        }
        let mut by_number = units.clone();
        numbers.iter().zip(&units).for_each(|(&number, &unit)| by_number[number] = unit);
        by_number
    }

    /// What a unit is called: the column it was learned from, or its layer and number.
    pub fn unit_name(&self, l: LayerId, unit: usize) -> String {
        let Ok(machine) = self.top() else { return format!("unit {unit}") };
        let layer = machine.layer(l);
        let filling = self.filling(layer);
        let named = filling.filter(|f| f.names.len() == layer.n_units());
        named.map_or_else(|| format!("{}[{unit}]", layer.name), |f| f.names[unit].clone())
    }

    /// How a layer is filled from columns, one to a unit.
    fn filling(&self, layer: &Layer) -> Option<&Filling> {
        let filling = self.about.data.schema.as_ref()?.layer(&layer.name)?;
        let one_each = match &filling.encoding {
            Encoding::Entries { .. } => layer.units.group() == 1,
            Encoding::Codes { .. } => true,
            Encoding::Label { .. } => false,
        };
        one_each.then_some(filling)
    }

    /// The unit of a name.
    ///
    /// # Errors
    ///
    /// If the model has none of that name.
    pub fn unit_named(&self, name: &str) -> Result<(LayerId, usize), Error> {
        let machine = self.top()?;
        for l in machine.layer_ids() {
            let layer = machine.layer(l);
            let number = name
                .strip_prefix(&layer.name)
                .and_then(|rest| rest.strip_prefix('[')?.strip_suffix(']')?.parse::<usize>().ok());
            if let Some(unit) = number.filter(|&unit| unit < layer.n_units()) {
                return Ok((l, unit));
            }
            if layer.name == name && layer.n_units() == 1 {
                return Ok((l, 0));
            }
            let names = self.filling(layer).map_or(&[][..], |f| &f.names);
            if let Some(unit) = names.iter().position(|n| n == name) {
                return Ok((l, unit));
            }
        }
        let known = machine.layers().iter().map(|layer| match layer.n_units() {
            1 => layer.name.clone(),
            n => format!("{0}[0] to {0}[{1}]", layer.name, n - 1),
        });
        let known = known.collect::<Vec<_>>().join(", ");
        Err(Error::NoUnit { what: format!("unit `{name}`"), known })
    }

    /// Values by their names, `(name, value)`: those of columns of the table that the model learned, and those
    /// of single units.
    pub fn columns_and_units(&self, values: Vec<(String, String)>) -> (Values, Values) {
        let is_column = |(name, _): &(String, String)| {
            self.codebook().is_some_and(|book| book.learned(name).is_ok())
        };
        values.into_iter().partition(is_column)
    }

    /// Holds variables at states, both by their numbers: what a file of evidence says.
    ///
    /// # Errors
    ///
    /// If there is no such variable, it has no such state, or the model is a deep belief network.
    pub fn with_evidence(&self, evidence: &[(usize, usize)]) -> Result<Given<'_>, Error> {
        self.freely().and_evidence(evidence)
    }
}

impl Given<'_> {
    /// Holds variables at states in addition, both by their numbers.
    ///
    /// # Errors
    ///
    /// As [`Model::with_evidence`]; and if a variable is held at something else already.
    pub fn and_evidence(self, evidence: &[(usize, usize)]) -> Result<Self, Error> {
        let variables = self.model.variables();
        let held = |&(variable, state): &(usize, usize)| {
            let name = format!("variable {variable}");
            let Some(&(layer, unit)) = variables.get(variable) else {
                let known = format!("{} variables, numbered from 0", variables.len());
                return Err(Error::NoUnit { what: name, known });
            };
            let states = self.model.top()?.layer(layer).units.configurations();
            let states = states.map_or(Vec::new(), |c| c.0);
            let Some(entries) = states.get(state).cloned() else {
                let states = match states.len() {
                    0 => "real values, which evidence by states cannot give".into(),
                    n => format!("{n} states, 0 to {}", n - 1),
                };
                return Err(Error::NoState { unit: name, state: state.to_string(), states });
            };
            Ok(Held { layer, unit, entries, name, value: state.to_string() })
        };
        let held = evidence.iter().map(held).collect::<Result<_, Error>>()?;
        self.and_units(held)
    }

    /// Holds units at values in addition, by their names.
    ///
    /// # Errors
    ///
    /// If there is no such unit, it cannot have the value, it is held at something else already, or the model is
    /// a deep belief network.
    pub fn and_values(self, values: &[(String, String)]) -> Result<Self, Error> {
        let held = |(name, value): &(String, String)| {
            let (layer, unit) = self.model.unit_named(name)?;
            let of = self.model.top()?.layer(layer);
            let entries = self.entries_of(of, value).ok_or_else(|| {
                let states = self.values_of(of);
                Error::NoState { unit: format!("`{name}`"), state: format!("`{value}`"), states }
            })?;
            Ok(Held { layer, unit, entries, name: format!("`{name}`"), value: value.clone() })
        };
        let held = values.iter().map(held).collect::<Result<_, Error>>()?;
        self.and_units(held)
    }

    /// A value of a unit, from how it is written.
    fn entries_of(&self, layer: &Layer, value: &str) -> Option<Vec<f64>> {
        let classes = &self.model.about.data.classes;
        if layer.name == LABELS && layer.units.group() == classes.len() {
            let class = classes.iter().position(|c| c == value)?;
            return layer.units.configurations()?.0.get(class).cloned();
        }
        let number: f64 = value.trim().parse().ok().filter(|x: &f64| x.is_finite())?;
        let Some(listed) = layer.units.configurations() else { return Some(vec![number]) };
        if layer.units.group() == 1 {
            return listed.0.into_iter().find(|entries| entries[0] == number);
        }
        let place = (0..listed.0.len()).find(|&k| k as f64 == number)?;
        listed.0.get(place).cloned()
    }

    /// What a unit of a layer takes, in words.
    fn values_of(&self, layer: &Layer) -> String {
        let classes = &self.model.about.data.classes;
        if layer.name == LABELS && layer.units.group() == classes.len() {
            return classes.join(", ");
        }
        match layer.units.configurations() {
            None => "finite numbers".into(),
            Some(listed) if layer.units.group() == 1 => {
                let values = listed.0.iter().map(|entries| entries[0].to_string());
                values.collect::<Vec<_>>().join(" or ")
            }
            Some(listed) => format!("categories 0 to {}", listed.0.len() - 1),
        }
    }

    /// Holds single units in every row.
    fn and_units(self, units: Vec<Held>) -> Result<Self, Error> {
        let Body::Machine(machine) = &self.model.body else {
            return Err(Error::Topology {
                model: "holding single units",
                expected: "a machine",
                found: "a deep belief network can only be given a class".into(),
            });
        };
        let (mut values, mut clamp) = self.held()?;
        for held in units {
            let (l, unit) = (held.layer, held.unit);
            for row in 0..values.n_rows() {
                let before = entries(machine, &values, (l, row, unit));
                if clamp.holds(l, row, unit) && before != held.entries {
                    let first = written(machine.layer(l), &before);
                    return Err(Error::Contradiction {
                        unit: held.name,
                        first,
                        second: held.value,
                    });
                }
                let group = machine.layer(l).units.group();
                let mut all = values.row(l, row).to_vec();
                all[unit * group..(unit + 1) * group].copy_from_slice(&held.entries);
                values.set_row(l, row, &all)?;
            }
            clamp = with_unit(machine, clamp, values.n_rows(), (l, unit));
        }
        Ok(Given { model: self.model, known: Known::Rows { values, clamp } })
    }
}

fn entries(machine: &Machine, x: &State, (l, row, unit): (LayerId, usize, usize)) -> Vec<f64> {
    let group = machine.layer(l).units.group();
    x.row(l, row)[unit * group..(unit + 1) * group].to_vec()
}

/// A value as a person writes it: the category of a group, else the number.
fn written(layer: &Layer, entries: &[f64]) -> String {
    match layer.units.group() {
        1 => entries[0].to_string(),
        _ => entries.iter().position(|x| *x == 1.0).unwrap_or(0).to_string(),
    }
}

/// The clamp with one more unit held, in every row.
fn with_unit(machine: &Machine, clamp: Clamp, n_rows: usize, (l, unit): (LayerId, usize)) -> Clamp {
    let held = |(row, u): (usize, usize)| u == unit || clamp.holds(l, row, u);
    let mask = Array2::from_shape_fn((n_rows, machine.layer(l).n_units()), held);
    clamp.with_mask(l, mask.view())
}
