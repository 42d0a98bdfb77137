//! From states of the nodes back to values of the layers.

use super::Node;
use crate::machine::{Machine, State};

/// The values of all layers in a row, of which free units are set one by one.
pub(crate) struct Values {
    pub(crate) layers: Vec<Vec<f64>>,
    /// What each state of a unit is, entry by entry, for each layer.
    states: Vec<Vec<Vec<f64>>>,
}

impl Values {
    pub(crate) fn new(machine: &Machine, x: &State, row: usize) -> Self {
        let states = |l| machine.layer(l).units.configurations().map_or(Vec::new(), |c| c.0);
        Self {
            layers: machine.layer_ids().map(|l| x.row(l, row).to_vec()).collect(),
            states: machine.layer_ids().map(states).collect(),
        }
    }

    /// Sets a unit to the mean of its states, each of them weighted.
    pub(crate) fn set(&mut self, node: &Node, weight: impl Fn(usize) -> f64) {
        let states = &self.states[node.layer.0];
        let group = states[0].len();
        let entries = &mut self.layers[node.layer.0][node.unit * group..(node.unit + 1) * group];
        for (k, entry) in entries.iter_mut().enumerate() {
            *entry = states.iter().enumerate().map(|(s, x)| weight(s) * x[k]).sum();
        }
    }
}
