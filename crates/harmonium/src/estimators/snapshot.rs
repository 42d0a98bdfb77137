//! State that can be saved: named rows of numbers.

use crate::error::Error;
use crate::machine::{LayerId, Machine, State};
use std::collections::BTreeMap;

/// Named rows of numbers, in sorted order, so that equal states give equal bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot(pub BTreeMap<String, Vec<f64>>);

impl Snapshot {
    /// The entry of that name, which must hold `expected` numbers.
    ///
    /// # Errors
    ///
    /// If it is missing or of another length.
    pub fn get(&self, key: &str, expected: usize) -> Result<&[f64], Error> {
        let found = self.0.get(key).map_or(&[][..], Vec::as_slice);
        if found.len() == expected && self.0.contains_key(key) {
            return Ok(found);
        }
        Err(Error::Snapshot { key: key.into(), expected, found: found.len() })
    }

    /// Adds an entry.
    pub fn insert(&mut self, key: impl Into<String>, values: Vec<f64>) {
        self.0.insert(key.into(), values);
    }

    /// Adds everything of `other` with `prefix.` before each name.
    pub fn nest(&mut self, prefix: &str, other: Self) {
        self.0.extend(other.0.into_iter().map(|(k, v)| (format!("{prefix}.{k}"), v)));
    }

    /// What [`Snapshot::nest`] added under `prefix`.
    #[must_use]
    pub fn nested(&self, prefix: &str) -> Self {
        let prefix = format!("{prefix}.");
        let inside = self.0.iter().filter_map(|(k, v)| Some((k.strip_prefix(&prefix)?, v)));
        Self(inside.map(|(k, v)| (k.to_owned(), v.clone())).collect())
    }

    /// Adds all parameters of a machine, every name behind `prefix.`.
    pub(crate) fn insert_machine(&mut self, prefix: &str, machine: &Machine) {
        for (name, values) in parameters(machine) {
            self.insert(format!("{prefix}.{name}"), values.clone());
        }
        self.insert(format!("{prefix}.constant"), vec![machine.constant()]);
    }

    /// Gives a machine of the same graph the parameters that [`Snapshot::insert_machine`] stored.
    pub(crate) fn machine_into(&self, prefix: &str, machine: &mut Machine) -> Result<(), Error> {
        let mut stored = Vec::new();
        for (name, values) in parameters(machine) {
            stored.push(self.get(&format!("{prefix}.{name}"), values.len())?.to_vec());
        }
        let mut stored = stored.into_iter();
        for layer in machine.layers_mut() {
            for values in [&mut layer.bias, &mut layer.offset, &mut layer.own] {
                *values = stored.next().unwrap_or_default();
            }
        }
        for (c, values) in machine.couplings_mut().iter_mut().zip(stored) {
            c.weights.entries_mut().copy_from_slice(&values);
        }
        let constant = self.get(&format!("{prefix}.constant"), 1)?[0] - machine.constant();
        machine.add_to_constant(constant);
        Ok(())
    }

    pub(crate) fn insert_state(&mut self, machine: &Machine, x: &State) {
        for (l, layer) in machine.layers().iter().enumerate() {
            self.insert(format!("chains.{}", layer.name), x.layer(LayerId(l)).to_vec());
        }
    }

    pub(crate) fn state(&self, machine: &Machine, n_rows: usize) -> Result<State, Error> {
        let mut x = State::zeros(machine, n_rows)?;
        for (l, layer) in machine.layers().iter().enumerate() {
            let key = format!("chains.{}", layer.name);
            x.set_layer(LayerId(l), self.get(&key, n_rows * layer.len())?);
        }
        Ok(x)
    }
}

/// The parameters of a machine with their names, layer by layer, then coupling by coupling.
fn parameters(machine: &Machine) -> Vec<(String, Vec<f64>)> {
    let mut all = Vec::new();
    for layer in machine.layers() {
        for (what, values) in
            [("bias", &layer.bias), ("offset", &layer.offset), ("own", &layer.own)]
        {
            all.push((format!("{}.{what}", layer.name), values.clone()));
        }
    }
    for (i, c) in machine.couplings().iter().enumerate() {
        all.push((format!("weights.{i}"), c.weights.entries().to_vec()));
    }
    all
}
