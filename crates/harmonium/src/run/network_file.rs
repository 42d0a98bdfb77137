//! The parts of a feed-forward net in a model file.
//!
//! `network.<name>.weights`, a row for each unit below and a column for each unit of the layer, and `network.<name>.bias`;
//! where a machine stands beside the data, its tensors behind `posterior.`.

use super::damaged;
use super::metadata::{LayerEntry, MachineEntry};
use super::parameters::escaped;
use super::tensors::{Tensor, Tensors};
use crate::error::Error;
use crate::machine::{Layer, LayerId, Machine, Matrix, Role};
use crate::models::{Activation, Dense, Network, Posterior, Target};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stands before the tensors of the machine beside the data.
pub(super) const POSTERIOR: &str = "posterior.";

/// Most layers of a net in a file.
const MOST_LAYERS: usize = 10_000;

/// A net without its numbers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NetworkEntry {
    inputs: Vec<LayerEntry>,
    layers: Vec<DenseEntry>,
    target: Target,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) posterior: Option<PosteriorEntry>,
}

/// A layer of a net without its numbers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DenseEntry {
    name: String,
    activation: Activation,
    n_units: usize,
}

/// The machine beside the data, and the layer whose means are taken.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PosteriorEntry {
    layer: String,
    pub(super) machine: MachineEntry,
}

impl NetworkEntry {
    pub(super) fn of(network: &Network) -> Self {
        let input = |l: &Layer| LayerEntry {
            name: l.name.clone(),
            role: l.role,
            units: l.units,
            n_units: l.n_units(),
        };
        let dense = |l: &Dense| DenseEntry {
            name: l.name.clone(),
            activation: l.activation,
            n_units: l.len(),
        };
        let posterior = |p: &Posterior| PosteriorEntry {
            layer: p.machine.layer(p.layer).name.clone(),
            machine: MachineEntry::of(&p.machine),
        };
        Self {
            inputs: network.inputs().iter().map(input).collect(),
            layers: network.layers().iter().map(dense).collect(),
            target: network.target(),
            posterior: network.posterior().map(posterior),
        }
    }

    /// Whether there are not more parts than any net should have.
    pub(super) fn check(&self, version: u64) -> Result<(), Error> {
        for (what, n) in [("inputs", self.inputs.len()), ("layers", self.layers.len())] {
            if n > MOST_LAYERS {
                return Err(damaged(format!("{n} {what} are more than {MOST_LAYERS}")));
            }
        }
        self.posterior.as_ref().map_or(Ok(()), |posterior| posterior.machine.check(version))
    }

    /// Takes the net out of the tensors; the machine beside the data was taken before.
    ///
    /// # Errors
    ///
    /// If a tensor is missing or of another shape, or the parts do not make a net.
    pub(super) fn take(
        self,
        machine: Option<Machine>,
        tensors: &mut Tensors<'_>,
    ) -> Result<Network, Error> {
        let wrong = |error: Error| damaged(error.to_string());
        let mut inputs = Vec::with_capacity(self.inputs.len());
        let mut n_below = 0_usize;
        for LayerEntry { name, units, n_units, .. } in self.inputs {
            // What a file merely claims is not made room for: the first layer's tensor has to be as large.
            let entries = n_units.checked_mul(units.group());
            let sum = entries.and_then(|n| n_below.checked_add(n)).filter(|n| *n <= tensors.len());
            n_below =
                sum.ok_or_else(|| damaged(format!("input `{name}` claims {n_units} units")))?;
            inputs.push(Layer::new(name, Role::Visible, units, n_units).map_err(wrong)?);
        }
        let posterior = match (self.posterior, machine) {
            (Some(PosteriorEntry { layer, .. }), Some(machine)) => {
                let found = machine.layers().iter().position(|l| l.name == layer);
                let id = found.map(LayerId).ok_or_else(|| {
                    damaged(format!("the machine beside the data has no layer `{layer}`"))
                })?;
                n_below += machine.layer(id).len();
                Some(Posterior { machine, layer: id })
            }
            _ => None,
        };
        let mut layers = Vec::with_capacity(self.layers.len());
        for DenseEntry { name, activation, n_units } in self.layers {
            let weights = tensors.take(&tensor_name(&name, "weights"), &[n_below, n_units])?;
            let bias = tensors.take(&tensor_name(&name, "bias"), &[n_units])?;
            let weights = Matrix::from_rows(n_below, n_units, weights).map_err(wrong)?;
            layers.push(Dense { name, activation, weights, bias });
            n_below = n_units;
        }
        Network::new(inputs, posterior, layers, self.target).map_err(wrong)
    }
}

/// The tensors of the layers of a net.
pub(super) fn tensors_of(network: &Network) -> BTreeMap<String, Tensor<'_>> {
    let mut tensors = BTreeMap::new();
    for layer in network.layers() {
        let weights = Tensor::matrix(layer.weights.shape(), layer.weights.entries());
        tensors.insert(tensor_name(&layer.name, "weights"), weights);
        tensors.insert(tensor_name(&layer.name, "bias"), Tensor::row(&layer.bias));
    }
    tensors
}

fn tensor_name(layer: &str, what: &str) -> String {
    format!("network.{}.{what}", escaped(layer))
}
