//! A machine as a pairwise graph of its free units, given those that are held.
//!
//! $$-E(x) = c + \sum_u f_u(x_u) + \sum_{(u,v)} g_{uv}(x_u, x_v)$$
//!
//! Nodes are the free units; $x_u$ counts their states from 0. The constant $c$ and the fields $f$
//! have taken up biases, offsets and what held units send. Between units of one entry $g$ is a
//! weight times their coordinates, else a table. Elimination, colourings and files of factors look at
//! a machine in this form.

mod bucket;
mod bucket_tree;
mod downwards;
mod elimination;
mod neighbours;
mod order;
mod pieces;
mod table;
mod topology;
mod values;

pub use bucket_tree::BucketTree;
pub use downwards::Marginals;
pub use elimination::Elimination;
pub use order::Order;
pub use pieces::Pieces;
pub use topology::{Link, Topology, colours};

pub(crate) use neighbours::{Neighbours, SHARED};
pub(crate) use values::Values;

use crate::error::Error;
use crate::machine::{Clamp, LayerId, Machine, State};
use std::collections::BTreeMap;

/// The free units of one row of a state, and how they see each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairwise {
    constant: f64,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// A free unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its layer.
    pub layer: LayerId,
    /// Its number in the layer.
    pub unit: usize,
    /// The value of each state, for a unit of one entry; empty for a group of entries.
    pub values: Vec<f64>,
    /// $f_u$ of each state.
    pub log_fields: Vec<f64>,
}

impl Node {
    /// Number of states.
    pub fn n_states(&self) -> usize {
        self.log_fields.len()
    }
}

/// Two units that see each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The two nodes.
    pub between: (usize, usize),
    /// How they see each other.
    pub pair: Pair,
}

/// $g_{uv}$: the logarithm of a factor of two units.
#[derive(Clone, Debug, PartialEq)]
pub enum Pair {
    /// This weight times the values of both.
    Product(f64),
    /// A number for each pair of states, those of the second node running faster.
    Table(Vec<f64>),
}

impl Pairwise {
    /// The free units of row `row` of `x`, whose held units stand there.
    ///
    /// # Errors
    ///
    /// If a free unit has no finite number of states, or clamp or state do not fit the machine.
    pub fn new(machine: &Machine, clamp: &Clamp, x: &State, row: usize) -> Result<Self, Error> {
        x.check(machine)?;
        clamp.check(machine, x.n_rows())?;
        Self::of_folded(&machine.without_offsets()?, clamp, x, row)
    }

    /// The same for a machine with zero offsets, and clamp and state that fit.
    pub(crate) fn of_folded(
        machine: &Machine,
        clamp: &Clamp,
        x: &State,
        row: usize,
    ) -> Result<Self, Error> {
        let mut parts = Parts::new(machine, clamp, x, row)?;
        parts.couple(machine);
        Ok(parts.into_graph())
    }

    /// $c$: $-E$ without the free units.
    pub fn constant(&self) -> f64 {
        self.constant
    }

    /// The free units, layer after layer.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The pairs that see each other, each once.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Who sees whom.
    pub fn topology(&self) -> Topology {
        Topology::new(self.nodes.len(), self.edges.iter().map(|e| e.between))
    }

    /// $g$ of an edge at two states.
    pub fn log_pair(&self, edge: &Edge, (s, t): (usize, usize)) -> f64 {
        let (a, b) = (&self.nodes[edge.between.0], &self.nodes[edge.between.1]);
        match &edge.pair {
            Pair::Product(w) => w * a.values[s] * b.values[t],
            Pair::Table(logs) => logs[s * b.n_states() + t],
        }
    }

    /// Whether the edges whose $g$ is anything but zero close no circle.
    pub fn is_forest(&self) -> bool {
        let coupled = self.edges.iter().filter(|edge| self.is_coupled(edge)).map(|e| e.between);
        Topology::new(self.nodes.len(), coupled).is_forest()
    }

    /// Whether $g$ of an edge is anything but zero.
    pub fn is_coupled(&self, edge: &Edge) -> bool {
        match &edge.pair {
            Pair::Product(w) => *w != 0.0,
            Pair::Table(logs) => logs.iter().any(|g| *g != 0.0),
        }
    }

    /// $-E$ of the state that each node is in.
    pub fn log_weight(&self, states: &[usize]) -> f64 {
        let fields: f64 = self.nodes.iter().zip(states).map(|(n, &s)| n.log_fields[s]).sum();
        let pair = |e: &Edge| self.log_pair(e, (states[e.between.0], states[e.between.1]));
        self.constant + fields + self.edges.iter().map(pair).sum::<f64>()
    }
}

/// An entry of a layer: held, or part of a node.
#[derive(Clone, Copy)]
enum Entry {
    Held(f64),
    /// The node, and the place of the entry in it.
    Free(usize, usize),
}

/// A graph whose fields are still those of entries.
struct Parts {
    constant: f64,
    nodes: Vec<Node>,
    /// What each state of a unit is, entry by entry, for each layer that has free ones.
    states: Vec<Vec<Vec<f64>>>,
    /// The field on each entry of a node.
    fields: Vec<Vec<f64>>,
    /// The own energy of each state of a node; none of nodes that own nothing.
    own: Vec<Vec<f64>>,
    /// Per layer and entry.
    entries: Vec<Vec<Entry>>,
    edges: Vec<Edge>,
}

impl Parts {
    fn new(machine: &Machine, clamp: &Clamp, x: &State, row: usize) -> Result<Self, Error> {
        let mut parts = Self {
            constant: -machine.constant(),
            nodes: Vec::new(),
            states: Vec::new(),
            fields: Vec::new(),
            own: Vec::new(),
            entries: Vec::new(),
            edges: Vec::new(),
        };
        for l in machine.layer_ids() {
            let (layer, x) = (machine.layer(l), x.row(l, row));
            let group = layer.units.group();
            let states = layer.units.configurations().map_or(Vec::new(), |c| c.0);
            let mut entries = Vec::with_capacity(layer.len());
            for unit in 0..layer.n_units() {
                let range = unit * group..(unit + 1) * group;
                if clamp.holds(l, row, unit) {
                    for i in range {
                        parts.constant += layer.bias[i] * x[i];
                        let own = layer.own().piece(i..i + 1);
                        parts.constant -= layer.units.own_energy(own, &x[i..=i]);
                        entries.push(Entry::Held(x[i]));
                    }
                    continue;
                }
                if states.is_empty() {
                    return Err(endless(&layer.name));
                }
                let values = if group == 1 { states.concat() } else { Vec::new() };
                entries.extend((0..group).map(|k| Entry::Free(parts.nodes.len(), k)));
                parts.nodes.push(Node { layer: l, unit, values, log_fields: Vec::new() });
                let own = layer.own().piece(range.clone());
                let energies = states.iter().map(|x| layer.units.own_energy(own, x));
                parts.own.push(if layer.own.is_empty() { Vec::new() } else { energies.collect() });
                parts.fields.push(layer.bias[range].to_vec());
            }
            parts.entries.push(entries);
            parts.states.push(states);
        }
        Ok(parts)
    }

    /// Takes up the couplings.
    fn couple(&mut self, machine: &Machine) {
        for c in machine.couplings() {
            let (a, b) = c.between;
            // Entries of groups share the table of their units.
            let mut tables: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            c.weights.for_each(|i, j, w| match (self.entries[a.0][i], self.entries[b.0][j]) {
                (Entry::Held(x), Entry::Held(y)) => self.constant += w * x * y,
                (Entry::Free(u, k), Entry::Held(y)) => self.fields[u][k] += w * y,
                (Entry::Held(x), Entry::Free(v, k)) => self.fields[v][k] += w * x,
                (Entry::Free(u, k), Entry::Free(v, m)) if u != v => {
                    if self.fields[u].len() == 1 && self.fields[v].len() == 1 {
                        self.edges.push(Edge { between: (u, v), pair: Pair::Product(w) });
                    } else {
                        let edge = *tables.entry((u, v)).or_insert(self.edges.len());
                        self.add_to_table(edge, ((u, k), (v, m)), w);
                    }
                }
                // Entries of one unit have no weight.
                (Entry::Free(..), Entry::Free(..)) => {}
            });
        }
    }

    /// Adds what a weight between entry `k` of node `u` and entry `m` of node `v` says of their
    /// states.
    fn add_to_table(
        &mut self,
        edge: usize,
        ((u, k), (v, m)): ((usize, usize), (usize, usize)),
        w: f64,
    ) {
        let [of_u, of_v] = [u, v].map(|node| &self.states[self.nodes[node].layer.0]);
        if edge == self.edges.len() {
            let pair = Pair::Table(vec![0.0; of_u.len() * of_v.len()]);
            self.edges.push(Edge { between: (u, v), pair });
        }
        if let Pair::Table(logs) = &mut self.edges[edge].pair {
            for (s, x) in of_u.iter().enumerate() {
                for (t, y) in of_v.iter().enumerate() {
                    logs[s * of_v.len() + t] += w * x[k] * y[m];
                }
            }
        }
    }

    /// Turns the fields of entries into those of states.
    fn into_graph(self) -> Pairwise {
        let Self { constant, mut nodes, states, fields, own, edges, .. } = self;
        for ((node, field), own) in nodes.iter_mut().zip(&fields).zip(&own) {
            let log = |x: &Vec<f64>| field.iter().zip(x).map(|(f, x)| f * x).sum();
            node.log_fields = states[node.layer.0].iter().map(log).collect();
            node.log_fields.iter_mut().zip(own).for_each(|(log, energy)| *log -= energy);
        }
        Pairwise { constant, nodes, edges }
    }
}

fn endless(layer: &str) -> Error {
    Error::RealUnits { layer: layer.into() }
}
