//! Sums, marginals and samples of a pairwise graph, one node after the other.
//!
//! Upwards, in the order of the tree, each node leaves
//! $$m_u(x_N) = \sum_{x_u} e^{f_u(x_u)} \prod_{v \in N_u} e^{g_{uv}(x_u, x_v)} \prod_{c} m_c(x_u, x_N),$$
//! $c$ being its children; what the roots leave is the sum over all states. Downwards each node is given
//! those it sees: $p(x_u \mid x_N)$ is the share of a term in that sum, so marginals are
//! $p(x_u, x_N) = p(x_N)\,p(x_u \mid x_N)$ and an exact sample draws node after node (Lauritzen &
//! Spiegelhalter, JRSS B 50, 1988; Dechter, Artificial Intelligence 113, 1999).
//!
//! Tables are kept relative to their largest entry. While all factors of a bucket together stay above
//! the smallest number there is, they are multiplied as they are, else their logarithms are added:
//! nothing is lost by underflow.

use super::bucket::{Bucket, Factor, Form, marginal};
use super::{BucketTree, Pairwise};
use crate::error::Error;
use crate::machine::{check_memory, filled};
use crate::progress::{Listener, tell};
use crate::units::log_sum_exp;
use rayon::prelude::*;

/// Products of factors that differ by less than this, as a logarithm, do not underflow.
const PLAIN_RANGE: f64 = 690.0;
/// Entries of a table that are looked at together.
const TOGETHER: usize = 1 << 14;
/// Terms between two reports.
const REPORT: f64 = (1_u64 << 24) as f64;

/// A graph with an order in which its nodes are summed out.
pub struct Elimination<'a> {
    graph: &'a Pairwise,
    tree: &'a BucketTree,
    /// For each node its edges to nodes that go later.
    edges: Vec<Vec<usize>>,
}

/// Probabilities of the states of single nodes and of the pairs that see each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Marginals {
    /// $\ln\sum e^{-E}$.
    pub log_sum: f64,
    /// For each node the probability of each of its states.
    pub nodes: Vec<Vec<f64>>,
    /// For each edge that of each pair of states, those of its second node running faster.
    pub edges: Vec<Vec<f64>>,
}

/// A function of the nodes that a node sees, or of the node and some of them.
struct Table {
    form: Form,
    values: Vec<f64>,
    /// Logarithm of what the values are to be multiplied by.
    log_scale: f64,
    /// Logarithm of the largest value over the smallest.
    log_range: f64,
}

/// The factors that belong to a node itself: its field and its edges to those that go later.
struct Local {
    /// The other ends of the edges, in the order in which they go.
    nodes: Vec<usize>,
    table: Table,
}

/// Whether the tables of nodes are wanted after their parents have taken them up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    Tables,
}

/// All tables of an elimination: for exact samples.
pub struct Tables<'a> {
    of: &'a Elimination<'a>,
    left: Vec<Option<Table>>,
    log_sum: f64,
}

impl<'a> Elimination<'a> {
    /// A graph, and a tree that was made for it or for one with the same nodes and edges.
    pub fn new(graph: &'a Pairwise, tree: &'a BucketTree) -> Self {
        let mut position = vec![0; graph.nodes().len()];
        tree.order.nodes.iter().enumerate().for_each(|(k, &u)| position[u] = k);
        let mut edges = vec![Vec::new(); graph.nodes().len()];
        for (number, edge) in graph.edges().iter().enumerate() {
            let (i, j) = edge.between;
            edges[if position[i] < position[j] { i } else { j }].push(number);
        }
        Self { graph, tree, edges }
    }

    /// $\ln\sum e^{-E}$ over all states.
    ///
    /// # Errors
    ///
    /// If memory ends, or the listener cancels.
    pub fn log_sum(&self, listener: &mut dyn Listener) -> Result<f64, Error> {
        check_memory(self.tree.bytes_of_sum(), tables_of_sum)?;
        Ok(self.upwards(Keep::Nothing, listener)?.1)
    }

    /// The tables of all nodes: exact samples follow from them.
    ///
    /// # Errors
    ///
    /// If memory ends, or the listener cancels.
    pub fn tables(&'a self, listener: &mut dyn Listener) -> Result<Tables<'a>, Error> {
        check_memory(self.tree.bytes_of_samples(), tables_of_sum)?;
        let (left, log_sum) = self.upwards(Keep::Tables, listener)?;
        Ok(Tables { of: self, left, log_sum })
    }

    /// The probabilities of all states of single nodes and of all pairs that see each other.
    ///
    /// # Errors
    ///
    /// If memory ends, or the listener cancels.
    pub fn marginals(&self, listener: &mut dyn Listener) -> Result<Marginals, Error> {
        check_memory(self.tree.bytes_of_marginals(), tables_of_sum)?;
        let (mut tables, log_sum) = self.upwards(Keep::Tables, listener)?;
        let mut found = Marginals {
            log_sum,
            nodes: vec![Vec::new(); self.graph.nodes().len()],
            edges: vec![Vec::new(); self.graph.edges().len()],
        };
        // The probabilities of what a node sees, once its parent knows them.
        let mut seen: Vec<Option<Vec<f64>>> = vec![None; self.graph.nodes().len()];
        let mut progress = Progress::new("exact marginals", self.tree);
        for &node in self.tree.order.nodes.iter().rev() {
            let local = self.local(node);
            let children = &self.tree.children[node];
            let given = seen[node].take().unwrap_or_else(|| vec![1.0]);
            let joint = self.with_bucket(node, &local, &tables, |bucket, _| bucket.joint(&given));
            drop(given);
            let near = &self.tree.order.seen[node];
            let nodes: Vec<(usize, usize)> = std::iter::once(node)
                .chain(near.iter().copied())
                .map(|u| (u, self.tree.n_states[u]))
                .collect();
            for &child in children {
                seen[child] = Some(marginal(&joint, &nodes, &self.tree.order.seen[child]));
                tables[child] = None;
            }
            self.take_marginals(node, &local, &joint, &nodes, &mut found);
            progress.add(self.tree, node, listener)?;
        }
        Ok(found)
    }

    /// Marginals of a node and of its edges to those that go later.
    fn take_marginals(
        &self,
        node: usize,
        local: &Local,
        joint: &[f64],
        nodes: &[(usize, usize)],
        found: &mut Marginals,
    ) {
        let of = |u: usize| (u, self.tree.n_states[u]);
        let keep: Vec<usize> = std::iter::once(node).chain(local.nodes.iter().copied()).collect();
        let small = marginal(joint, nodes, &keep);
        let kept: Vec<(usize, usize)> = keep.iter().map(|&u| of(u)).collect();
        found.nodes[node] = marginal(&small, &kept, &[node]);
        for &number in &self.edges[node] {
            let (i, j) = self.graph.edges()[number].between;
            let other = if i == node { j } else { i };
            let pair = marginal(&small, &kept, &[node, other]);
            let (n, m) = (of(node).1, of(other).1);
            found.edges[number] = if i == node {
                pair
            } else {
                (0..n * m).map(|k| pair[k % n * m + k / n]).collect()
            };
        }
    }

    /// Sums out node after node; the tables that are kept, and the sum over all states.
    fn upwards(
        &self,
        keep: Keep,
        listener: &mut dyn Listener,
    ) -> Result<(Vec<Option<Table>>, f64), Error> {
        let mut tables: Vec<Option<Table>> = Vec::new();
        tables.resize_with(self.graph.nodes().len(), || None);
        let mut log_sum = self.graph.constant();
        let mut progress = Progress::new("exact sum", self.tree);
        for &node in &self.tree.order.nodes {
            let local = self.local(node);
            let table = self.with_bucket(node, &local, &tables, |bucket, log_scale| {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "fits into memory"
                )]
                let n = self.tree.n_entries(node) as usize;
                let mut sums = filled(n, 0.0, tables_of_sum)?;
                bucket.sums_into(&mut sums);
                Ok::<_, Error>(Table::relative(bucket.form(), sums, log_scale))
            })?;
            if keep == Keep::Nothing {
                self.tree.children[node].iter().for_each(|&c| tables[c] = None);
            }
            if self.tree.order.seen[node].is_empty() {
                log_sum += table.log_scale + table.log(0);
            }
            tables[node] = Some(table);
            progress.add(self.tree, node, listener)?;
        }
        Ok((tables, log_sum))
    }

    /// Calls `then` with the bucket of a node and the logarithm of its scale.
    fn with_bucket<T>(
        &self,
        node: usize,
        local: &Local,
        tables: &[Option<Table>],
        then: impl FnOnce(&Bucket<'_>, f64) -> T,
    ) -> T {
        let near = &self.tree.order.seen[node];
        let children: Vec<(&[usize], &Table)> = self.tree.children[node]
            .iter()
            .filter_map(|&c| Some((&self.tree.order.seen[c][1..], tables[c].as_ref()?)))
            .chain(std::iter::once((&local.nodes[..], &local.table)))
            .collect();
        let range: f64 = children.iter().map(|c| c.1.log_range).sum();
        let plain = range <= PLAIN_RANGE && children.iter().all(|c| c.1.form == Form::Plain);
        let form = if plain { Form::Plain } else { Form::Logs };
        let as_logs: Vec<Option<Vec<f64>>> = children
            .iter()
            .map(|(_, t)| (form == Form::Logs && t.form == Form::Plain).then(|| t.logs()))
            .collect();
        let factors = children.iter().zip(&as_logs).map(|((nodes, table), logs)| {
            let values = logs.as_deref().unwrap_or(&table.values);
            let (strides, step) = self.strides(near, nodes);
            Factor { values, step, strides }
        });
        let seen: Vec<usize> = near.iter().map(|&v| self.tree.n_states[v]).collect();
        let bucket = Bucket::new(form, self.tree.n_states[node], &seen, factors.collect());
        then(&bucket, children.iter().map(|c| c.1.log_scale).sum())
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
    fn local(&self, node: usize) -> Local {
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

/// $e^{f(s) + \sum_v g_v(s, x_v)}$ for each state $s$ and all $x$, the states of the last node running
/// fastest.
fn product(fields: &[f64], pairs: &[(usize, Vec<f64>)], n_states: &[usize]) -> Table {
    let ends = |logs: &[f64]| {
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        (most, most - least)
    };
    let all = || std::iter::once(fields).chain(pairs.iter().map(|p| p.1.as_slice()));
    let log_range: f64 = all().map(|logs| ends(logs).1).sum();
    let log_scale: f64 = all().map(|logs| ends(logs).0).sum();
    let form = if log_range <= PLAIN_RANGE { Form::Plain } else { Form::Logs };
    let relative = |logs: &[f64]| -> Vec<f64> {
        let most = ends(logs).0;
        let value = |l: &f64| if form == Form::Plain { (l - most).exp() } else { l - most };
        logs.iter().map(value).collect()
    };
    let factors: Vec<Vec<f64>> = pairs.iter().map(|p| relative(&p.1)).collect();
    let mut values = Vec::new();
    for (s, &field) in relative(fields).iter().enumerate() {
        let mut of_state = vec![field];
        for ((node, _), factors) in pairs.iter().zip(&factors).rev() {
            let m = n_states[*node];
            let mut more = Vec::with_capacity(m * of_state.len());
            for factor in &factors[s * m..(s + 1) * m] {
                match form {
                    Form::Plain => more.extend(of_state.iter().map(|v| v * factor)),
                    Form::Logs => more.extend(of_state.iter().map(|v| v + factor)),
                }
            }
            of_state = more;
        }
        values.extend(of_state);
    }
    Table { form, values, log_scale, log_range }
}

impl Table {
    /// The same relative to its largest value, and as plain numbers where these can hold it.
    fn relative(form: Form, mut values: Vec<f64>, log_scale: f64) -> Self {
        let ends = |part: &[f64]| {
            part.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &v| {
                (f64::min(least, v), f64::max(most, v))
            })
        };
        let join = |a: (f64, f64), b: (f64, f64)| (f64::min(a.0, b.0), f64::max(a.1, b.1));
        let (least, most) = if values.len() <= TOGETHER {
            ends(&values)
        } else {
            let none = || (f64::INFINITY, f64::NEG_INFINITY);
            values.par_chunks(TOGETHER).map(ends).reduce(none, join)
        };
        let (log_most, log_range) = match form {
            Form::Plain => (most.ln(), (most / least).ln()),
            Form::Logs => (most, most - least),
        };
        let plain = form == Form::Plain || log_range <= PLAIN_RANGE;
        let change = |part: &mut [f64]| match (form, plain) {
            (Form::Plain, _) => part.iter_mut().for_each(|v| *v /= most),
            (Form::Logs, true) => part.iter_mut().for_each(|v| *v = (*v - most).exp()),
            (Form::Logs, false) => part.iter_mut().for_each(|v| *v -= most),
        };
        if values.len() <= TOGETHER {
            change(&mut values);
        } else {
            values.par_chunks_mut(TOGETHER).for_each(change);
        }
        let form = if plain { Form::Plain } else { Form::Logs };
        Self { form, values, log_scale: log_scale + log_most, log_range }
    }

    /// The logarithm of an entry, without the scale.
    fn log(&self, at: usize) -> f64 {
        match self.form {
            Form::Plain => self.values[at].ln(),
            Form::Logs => self.values[at],
        }
    }

    fn logs(&self) -> Vec<f64> {
        self.values.par_iter().with_min_len(TOGETHER).map(|v| v.ln()).collect()
    }
}

impl Tables<'_> {
    /// $\ln\sum e^{-E}$ over all states.
    pub fn log_sum(&self) -> f64 {
        self.log_sum
    }

    /// Draws the state of every node, independently of all other draws; node `u` takes `uniform(u)`,
    /// a number between 0 and 1.
    pub fn sample_into(&self, uniform: impl Fn(usize) -> f64, states: &mut [usize]) {
        let (tree, graph) = (self.of.tree, self.of.graph);
        let mut logs = Vec::new();
        for &node in tree.order.nodes.iter().rev() {
            logs.clear();
            logs.extend_from_slice(&graph.nodes()[node].log_fields);
            for &number in &self.of.edges[node] {
                let edge = &graph.edges()[number];
                let (i, j) = edge.between;
                for (s, log) in logs.iter_mut().enumerate() {
                    let at = if i == node { (s, states[j]) } else { (states[i], s) };
                    *log += graph.log_pair(edge, at);
                }
            }
            for &child in &tree.children[node] {
                let Some(table) = &self.left[child] else { continue };
                let (mut at, mut stride) = (0, 1);
                for &v in tree.order.seen[child][1..].iter().rev() {
                    at += states[v] * stride;
                    stride *= tree.n_states[v];
                }
                for (s, log) in logs.iter_mut().enumerate() {
                    *log += table.log(at + s * stride);
                }
            }
            let total = log_sum_exp(&logs);
            let mut left = uniform(node);
            let chosen = logs.iter().position(|log| {
                left -= (log - total).exp();
                left < 0.0
            });
            states[node] = chosen.unwrap_or(logs.len() - 1);
        }
    }
}

/// How many terms are done, told now and then.
struct Progress {
    what: &'static str,
    done: f64,
    told: f64,
    total: f64,
}

impl Progress {
    fn new(what: &'static str, tree: &BucketTree) -> Self {
        Self { what, done: 0.0, told: 0.0, total: tree.log2_terms().exp2() }
    }

    fn add(
        &mut self,
        tree: &BucketTree,
        node: usize,
        listener: &mut dyn Listener,
    ) -> Result<(), Error> {
        self.done += tree.n_entries(node) * tree.n_states[node] as f64;
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

fn tables_of_sum() -> String {
    "the tables of an exact sum".into()
}
