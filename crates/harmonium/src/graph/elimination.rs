//! Sums and largest terms of a pairwise graph, one node after the other.
//!
//! Upwards, in the order of the tree, each node leaves
//! $$m_u(x_N) = \sum_{x_u} e^{f_u(x_u)} \prod_{v \in N_u} e^{g_{uv}(x_u, x_v)} \prod_{c} m_c(x_u, x_N),$$
//! $c$ being its children; what the roots leave is the sum over all states. With the largest term instead of
//! the sum it is the weight of the most probable state (Bertelè & Brioschi, Nonserial Dynamic Programming, 1972; Dechter,
//! Artificial Intelligence 113, 1999). What follows downwards is in [`super::downwards`].

use super::bucket::{Bucket, Factor, Fold, Form};
use super::table::{PLAIN_RANGE, Table, product};
use super::{BucketTree, Pairwise};
use crate::error::Error;
use crate::machine::{check_memory, filled, share_of_memory};
use crate::progress::{Listener, tell};

/// Terms between two reports.
const REPORT: f64 = (1_u64 << 24) as f64;
/// Share of the memory that tables may take where no budget is given.
const SHARE_OF_MEMORY: f64 = 0.25;

/// A graph with an order in which its nodes are summed out.
pub struct Elimination<'a> {
    pub(super) graph: &'a Pairwise,
    pub(super) tree: &'a BucketTree,
    /// For each node its edges to nodes that go later.
    pub(super) edges: Vec<Vec<usize>>,
    /// Bytes that tables may take.
    pub(super) budget: f64,
}

/// The factors that belong to a node itself: its field and its edges to those that go later.
pub(super) struct Local {
    /// The other ends of the edges, in the order in which they go.
    pub(super) nodes: Vec<usize>,
    pub(super) table: Table,
}

impl<'a> Elimination<'a> {
    /// A graph, and a tree that was made for it or for one with the same nodes and edges. Tables may take
    /// a quarter of the memory.
    pub fn new(graph: &'a Pairwise, tree: &'a BucketTree) -> Self {
        let mut position = vec![0; graph.nodes().len()];
        tree.order.nodes.iter().enumerate().for_each(|(k, &u)| position[u] = k);
        let mut edges = vec![Vec::new(); graph.nodes().len()];
        for (number, edge) in graph.edges().iter().enumerate() {
            let (i, j) = edge.between;
            edges[if position[i] < position[j] { i } else { j }].push(number);
        }
        Self { graph, tree, edges, budget: Self::usual_budget() }
    }

    /// Bytes that tables take at most where nothing else is said: a quarter of the memory.
    pub fn usual_budget() -> f64 {
        share_of_memory(SHARE_OF_MEMORY)
    }

    /// The same with tables of at most so many bytes together. Those that do not fit are made once more
    /// when they are needed.
    #[must_use]
    pub fn within(self, bytes: f64) -> Self {
        Self { budget: bytes, ..self }
    }

    /// $\ln\sum e^{-E}$ over all states.
    ///
    /// # Errors
    ///
    /// If memory ends, or the listener cancels.
    pub fn log_sum(&self, listener: &mut dyn Listener) -> Result<f64, Error> {
        check_memory(self.tree.bytes_of_sum(), tables_of_sum)?;
        let mut tables = self.no_tables();
        let mut log_sum = self.graph.constant();
        let mut progress = Progress::new("exact sum", self.tree.log2_terms());
        for &node in &self.tree.order.nodes {
            let table = self.leave(node, Fold::Sum, &tables)?;
            self.tree.children[node].iter().for_each(|&c| tables[c] = None);
            if self.tree.order.seen[node].is_empty() {
                log_sum += table.log_scale + table.log(0);
            }
            tables[node] = Some(table);
            progress.add(self.tree, node, listener)?;
        }
        Ok(log_sum)
    }

    pub(super) fn no_tables(&self) -> Vec<Option<Table>> {
        let mut tables: Vec<Option<Table>> = Vec::new();
        tables.resize_with(self.graph.nodes().len(), || None);
        tables
    }

    /// The table that a node leaves, those of its children being there.
    pub(super) fn leave(
        &self,
        node: usize,
        fold: Fold,
        tables: &[Option<Table>],
    ) -> Result<Table, Error> {
        let local = self.local(node);
        self.with_bucket(node, &local, tables, |bucket, log_scale| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "fits into memory"
            )]
            let n = self.tree.n_entries(node) as usize;
            let mut left = filled(n, 0.0, tables_of_sum)?;
            bucket.fold_into(fold, &mut left);
            Ok(Table::relative(bucket.form(), left, log_scale))
        })
    }

    /// Calls `then` with the bucket of a node and the logarithm of its scale.
    pub(super) fn with_bucket<T>(
        &self,
        node: usize,
        local: &Local,
        tables: &[Option<Table>],
        then: impl FnOnce(&Bucket<'_>, f64) -> T,
    ) -> T {
        let near = &self.tree.order.seen[node];
        // The nodes of each factor beside this one, whether it knows this one, and its table.
        let children: Vec<(&[usize], bool, &Table)> = self.tree.children[node]
            .iter()
            .filter_map(|&c| {
                let rest = self.tree.rest_of(c, node);
                Some((rest, rest.len() < self.tree.order.seen[c].len(), tables[c].as_ref()?))
            })
            .chain(std::iter::once((&local.nodes[..], true, &local.table)))
            .collect();
        let range: f64 = children.iter().map(|c| c.2.log_range).sum();
        let plain = range <= PLAIN_RANGE && children.iter().all(|c| c.2.form == Form::Plain);
        let form = if plain { Form::Plain } else { Form::Logs };
        let as_logs: Vec<Option<Vec<f64>>> = children
            .iter()
            .map(|(_, _, t)| (form == Form::Logs && t.form == Form::Plain).then(|| t.logs()))
            .collect();
        let factors = children.iter().zip(&as_logs).map(|((nodes, knows, table), logs)| {
            let values = logs.as_deref().unwrap_or(&table.values);
            let (strides, step) = self.strides(near, nodes);
            Factor { values, step: if *knows { step } else { 0 }, strides }
        });
        let seen: Vec<usize> = near.iter().map(|&v| self.tree.n_states[v]).collect();
        let bucket = Bucket::new(form, self.tree.n_states[node], &seen, factors.collect());
        then(&bucket, children.iter().map(|c| c.2.log_scale).sum())
    }

    /// Strides of a table over `nodes` for each of `near`, and that of a slower node before them.
    fn strides(&self, near: &[usize], nodes: &[usize]) -> (Vec<usize>, usize) {
        let mut strides = vec![0; near.len()];
        let (mut stride, mut at) = (1, near.len());
        for &node in nodes.iter().rev() {
            // Both are in the order in which they go.
            while at > 0 {
                at -= 1;
                if near[at] == node {
                    strides[at] = stride;
                    break;
                }
            }
            stride *= self.tree.n_states[node];
        }
        (strides, stride)
    }

    /// The product of the factors that belong to a node itself.
    pub(super) fn local(&self, node: usize) -> Local {
        let fields = &self.graph.nodes()[node].log_fields;
        let mut pairs: Vec<(usize, Vec<f64>)> = Vec::new();
        for &number in &self.edges[node] {
            let edge = &self.graph.edges()[number];
            let (i, j) = edge.between;
            let other = if i == node { j } else { i };
            let m = self.tree.n_states[other];
            let log = |k: usize| {
                let (s, t) = (k / m, k % m);
                self.graph.log_pair(edge, if i == node { (s, t) } else { (t, s) })
            };
            let logs: Vec<f64> = (0..fields.len() * m).map(log).collect();
            match pairs.iter_mut().find(|p| p.0 == other) {
                Some((_, sum)) => sum.iter_mut().zip(&logs).for_each(|(s, l)| *s += l),
                None => pairs.push((other, logs)),
            }
        }
        let near = &self.tree.order.seen[node];
        let place = |u: usize| near.iter().position(|&v| v == u);
        pairs.sort_by_key(|p| place(p.0));
        let nodes = pairs.iter().map(|p| p.0).collect();
        Local { nodes, table: product(fields, &pairs, &self.tree.n_states) }
    }
}

/// How many terms are done, told now and then.
pub(super) struct Progress {
    what: &'static str,
    done: f64,
    told: f64,
    total: f64,
}

impl Progress {
    pub(super) fn new(what: &'static str, log2_terms: f64) -> Self {
        Self { what, done: 0.0, told: 0.0, total: log2_terms.exp2() }
    }

    pub(super) fn add(
        &mut self,
        tree: &BucketTree,
        node: usize,
        listener: &mut dyn Listener,
    ) -> Result<(), Error> {
        self.done += tree.n_terms(node);
        if self.done - self.told < REPORT {
            return Ok(());
        }
        self.told = self.done;
        // In thousandths: the number of terms may be larger than whole numbers can be.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 1000"
        )]
        let part = (1000.0 * self.done / self.total).clamp(0.0, 1000.0) as u64;
        tell(listener, self.what, part, 1000)
    }
}

pub(super) fn tables_of_sum() -> String {
    "the tables of an exact sum".into()
}
