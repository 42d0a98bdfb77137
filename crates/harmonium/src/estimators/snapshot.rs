//! State that can be saved: named rows of numbers.

use crate::error::Error;
use crate::machine::{Base, Layer, LayerId, Machine, State};
use crate::units::BitCoordinates;
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
        machine.set_constant(self.get(&format!("{prefix}.constant"), 1)?[0]);
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

/// Bits in one number of a snapshot: whole numbers below $2^{53}$ are exact.
const BITS: usize = 48;

impl Snapshot {
    /// Adds samples, every name behind `prefix.`; bits are packed, since reservoirs hold many.
    pub(crate) fn insert_samples(&mut self, prefix: &str, machine: &Machine, x: &State) {
        for (l, layer) in machine.layers().iter().enumerate() {
            let values = x.layer(LayerId(l));
            let stored = match layer.units.bit_coordinates() {
                Some(bits) => values.chunks(BITS).map(|some| packed(some, bits)).collect(),
                None => values.to_vec(),
            };
            self.insert(format!("{prefix}.{}", layer.name), stored);
        }
    }

    /// `n_rows` samples that [`Snapshot::insert_samples`] stored.
    pub(crate) fn samples(
        &self,
        prefix: &str,
        machine: &Machine,
        n_rows: usize,
    ) -> Result<State, Error> {
        let mut x = State::zeros(machine, n_rows)?;
        for (l, layer) in machine.layers().iter().enumerate() {
            let (key, n) = (format!("{prefix}.{}", layer.name), n_rows * layer.len());
            match layer.units.bit_coordinates() {
                Some(bits) => {
                    let stored = self.get(&key, n.div_ceil(BITS))?;
                    let mut values = vec![0.0; n];
                    for (some, word) in values.chunks_mut(BITS).zip(stored) {
                        unpack(*word, bits, some);
                    }
                    x.set_layer(LayerId(l), &values);
                }
                None => x.set_layer(LayerId(l), self.get(&key, n)?),
            }
        }
        Ok(x)
    }

    /// Adds the factorised end of a ladder.
    pub(crate) fn insert_base(&mut self, machine: &Machine, base: &Base) {
        for (l, layer) in machine.layers().iter().enumerate() {
            self.insert(format!("base.{}.bias", layer.name), base.bias[l].clone());
        }
    }

    /// What [`Snapshot::insert_base`] stored.
    pub(crate) fn base(&self, machine: &Machine) -> Result<Base, Error> {
        let bias = |layer: &Layer| {
            self.get(&format!("base.{}.bias", layer.name), layer.len()).map(<[f64]>::to_vec)
        };
        machine.layers().iter().map(bias).collect::<Result<_, _>>().map(Base::from_biases)
    }

    /// Adds counters below $2^{53}$.
    pub(crate) fn insert_counters(&mut self, key: &str, counters: &[u64]) {
        self.insert(key, counters.iter().map(|n| *n as f64).collect());
    }

    /// What [`Snapshot::insert_counters`] stored.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counters below 2^53 are whole numbers in f64"
    )]
    pub(crate) fn counters<const N: usize>(&self, key: &str) -> Result<[u64; N], Error> {
        let stored = self.get(key, N)?;
        Ok(std::array::from_fn(|i| stored[i] as u64))
    }
}

/// At most 48 values as the bits of one number.
fn packed(values: &[f64], bits: BitCoordinates) -> f64 {
    let on = bits.scale + bits.shift;
    let word = values.iter().rev().fold(0_u64, |word, x| word << 1 | u64::from(*x == on));
    word as f64
}

/// The values whose bits a number holds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "48 bits")]
fn unpack(word: f64, bits: BitCoordinates, out: &mut [f64]) {
    let word = word as u64;
    for (i, x) in out.iter_mut().enumerate() {
        *x = bits.shift + bits.scale * (word >> i & 1) as f64;
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
