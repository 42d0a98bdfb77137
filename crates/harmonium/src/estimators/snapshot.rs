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
