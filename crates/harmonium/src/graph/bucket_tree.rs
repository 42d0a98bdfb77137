//! Which tables an elimination makes, who uses them, and what that takes.
//!
//! Summing out node $u$ leaves a table $m_u$ over the nodes it still sees, $N_u$. The first of them to
//! go, its parent, takes the table up when it is summed out itself; so the nodes are a forest, and each
//! bucket $\{u\} \cup N_u$ holds what its children left over (bucket elimination: Dechter, Artificial
//! Intelligence 113, 1999).
//!
//! Large tables over the same nodes, as all units of one side of an RBM leave them, are multiplied one into
//! the other instead: a node that sees exactly what the next one will see gives its table to that one, and one
//! table is there at a time where there would be hundreds.

use super::{Order, Pairwise};
use crate::error::Error;
use std::collections::BTreeMap;

/// Entries of a table from which on it is given to the next node that leaves one over the same nodes.
const LARGE: f64 = 1024.0;
/// Binary logarithm of the entries of tables up to which it is said what they would take.
const SURVEYED: f64 = 1000.0;

/// An order of elimination with its tables, before any of them is made.
#[derive(Clone, Debug, PartialEq)]
pub struct BucketTree {
    pub(super) order: Order,
    pub(super) n_states: Vec<usize>,
    /// For each node the one that takes up its table.
    pub(super) parents: Vec<Option<usize>>,
    /// For each node those whose tables it takes up.
    pub(super) children: Vec<Vec<usize>>,
    bytes_of_sum: f64,
    bytes_of_marginals: f64,
}

impl BucketTree {
    /// The tree of the best order that is found; `None` if none is found whose tables have at most two
    /// to the power of `most_log2` entries.
    pub fn narrow(graph: &Pairwise, most_log2: f64) -> Option<Self> {
        let n_states: Vec<usize> = graph.nodes().iter().map(super::Node::n_states).collect();
        let order = Order::narrow(&graph.topology(), &n_states, most_log2)?;
        Some(Self::new(order, n_states))
    }

    /// The same, or an error that says how large the tables would be.
    ///
    /// # Errors
    ///
    /// [`Error::TooWide`] with the size of the largest table.
    pub fn narrower(graph: &Pairwise, most_log2: f64) -> Result<Self, Error> {
        if let Some(tree) = Self::narrow(graph, most_log2) {
            return Ok(tree);
        }
        let wide = Self::narrow(graph, SURVEYED);
        let entries = |tree: &Self| {
            tree.order.nodes.iter().map(|&u| tree.n_entries(u).log2()).fold(0.0, f64::max)
        };
        let least = graph.nodes().iter().map(|n| n.n_states() as f64).fold(f64::INFINITY, f64::min);
        let bound = || graph.topology().least_width() as f64 * least.log2();
        let log2_entries = wide.as_ref().map_or_else(bound, entries).max(most_log2);
        Err(Error::TooWide {
            n_units: graph.nodes().len(),
            log2_entries,
            at_least: wide.is_none(),
            bytes: 8.0 * log2_entries.exp2(),
            limit: most_log2,
        })
    }

    /// The tree of an order.
    pub fn new(order: Order, n_states: Vec<usize>) -> Self {
        let mut parents: Vec<Option<usize>> =
            order.seen.iter().map(|seen| seen.first().copied()).collect();
        // The last node so far that left a large table over some nodes.
        let mut last: BTreeMap<&[usize], usize> = BTreeMap::new();
        for &node in &order.nodes {
            let seen = &order.seen[node][..];
            let entries: f64 = seen.iter().map(|&v| n_states[v] as f64).product();
            if entries >= LARGE
                && let Some(before) = last.insert(seen, node)
            {
                parents[before] = Some(node);
            }
        }
        let mut children = vec![Vec::new(); order.nodes.len()];
        for &node in &order.nodes {
            if let Some(parent) = parents[node] {
                children[parent].push(node);
            }
        }
        let mut tree =
            Self { order, n_states, parents, children, bytes_of_sum: 0.0, bytes_of_marginals: 0.0 };
        tree.count_bytes();
        tree
    }

    /// Binary logarithm of the number of terms of a sum.
    pub fn log2_terms(&self) -> f64 {
        self.order.log2_terms
    }

    /// The most nodes that a table ranges over.
    pub fn width(&self) -> usize {
        self.order.seen.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Bytes of the tables of [`log_sum`](super::Elimination::log_sum), most of them at one time.
    pub fn bytes_of_sum(&self) -> f64 {
        self.bytes_of_sum
    }

    /// Bytes of all tables that samples and the most probable state need, if all of them are kept.
    pub fn bytes_of_samples(&self) -> f64 {
        self.order.nodes.iter().map(|&u| self.bytes(u)).sum::<f64>() + self.bytes_of_sum
    }

    /// Bytes of the tables of [`marginals`](super::Elimination::marginals), if all of them are kept.
    pub fn bytes_of_marginals(&self) -> f64 {
        self.bytes_of_marginals
    }

    /// Entries of the table that a node leaves.
    pub(super) fn n_entries(&self, node: usize) -> f64 {
        self.order.seen[node].iter().map(|&v| self.n_states[v] as f64).product()
    }

    /// Terms of the table that a node leaves.
    pub(super) fn n_terms(&self, node: usize) -> f64 {
        self.n_entries(node) * self.n_states[node] as f64
    }

    /// The nodes of the table that a child left, without the one that takes it up.
    pub(super) fn rest_of(&self, child: usize, node: usize) -> &[usize] {
        let seen = &self.order.seen[child][..];
        if seen[0] == node { &seen[1..] } else { seen }
    }

    pub(super) fn bytes(&self, node: usize) -> f64 {
        8.0 * self.n_entries(node)
    }

    /// Walks through the work without doing it.
    fn count_bytes(&mut self) {
        let (mut live, mut most, mut all) = (0.0_f64, 0.0_f64, 0.0_f64);
        for &node in &self.order.nodes {
            let (mine, bucket) = (self.bytes(node), self.bytes(node) * self.n_states[node] as f64);
            // The factors of the node itself may need a table as large as the bucket, and once more
            // while it is made.
            most = most.max(live + mine + 2.0 * bucket);
            live += mine - self.children[node].iter().map(|&c| self.bytes(c)).sum::<f64>();
            all += mine;
        }
        let (mut waiting, mut most_waiting) = (0.0_f64, 0.0_f64);
        for &node in self.order.nodes.iter().rev() {
            let bucket = self.bytes(node) * self.n_states[node] as f64;
            let below: f64 = self.children[node].iter().map(|&c| self.bytes(c)).sum();
            most_waiting = most_waiting.max(waiting + 4.0 * bucket + below);
            waiting += below - self.bytes(node);
        }
        self.bytes_of_sum = most;
        self.bytes_of_marginals = all + f64::max(most, most_waiting);
    }
}
