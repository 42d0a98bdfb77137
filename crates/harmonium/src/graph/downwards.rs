//! Marginals, samples and the most probable state of a pairwise graph: what follows on the way down.
//!
//! Downwards each node is given those it sees: $p(x_u \mid x_N)$ is the share of a term in the sum $m_u(x_N)$
//! of [`super::elimination`], so marginals are $p(x_u, x_N) = p(x_N)\,p(x_u \mid x_N)$, an exact sample draws node
//! after node, and the most probable state takes the largest term at each (Lauritzen &
//! Spiegelhalter, Journal of the Royal Statistical Society B 50, 1988; Dechter, Artificial Intelligence 113, 1999). Which tables of the way up are
//! still there, and which are made again, is decided before ([`super::Pieces`]).

use super::bucket::{Fold, marginal};
use super::elimination::{Elimination, Local, Progress, tables_of_sum};
use super::pieces::{Piece, Pieces};
use super::table::Table;
use crate::error::Error;
use crate::machine::check_memory;
use crate::progress::Listener;
use crate::units::log_sum_exp;
use rayon::prelude::*;

/// Samples whose states at a node one thread draws.
const TOGETHER: usize = 256;

/// Probabilities of the states of single nodes and of the pairs that see each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Marginals {
    /// $\ln\sum e^{-E}$.
    pub log_sum: f64,
    /// For each node the probability of each of its states.
    pub nodes: Vec<Vec<f64>>,
    /// For each edge that of each pair of states, those of its second node running faster; empty where a
    /// method does not say anything about a pair, as its weight is zero.
    pub edges: Vec<Vec<f64>>,
}

/// The way up and down, piece by piece.
struct Walk<'a, 'l> {
    of: &'a Elimination<'a>,
    fold: Fold,
    tables: Vec<Option<Table>>,
    /// Nodes whose tables stay until those that take them up were visited on the way down.
    kept: Vec<bool>,
    log_sum: f64,
    progress: Progress,
    listener: &'l mut dyn Listener,
}

/// What is done at a node on the way down, the tables of its children being there.
type Visit<'v> = dyn FnMut(usize, &[Option<Table>]) -> Result<(), Error> + 'v;

impl Walk<'_, '_> {
    /// Goes up through a piece, then down. The table of the last node of a `part` is there already.
    fn through(
        &mut self,
        piece: &Piece,
        is_part: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let tree = self.of.tree;
        if piece.parts.is_empty() {
            piece.nodes.iter().for_each(|&u| self.kept[u] = true);
        } else {
            piece.tops().for_each(|u| self.kept[u] = true);
        }
        let n = piece.nodes.len() - usize::from(is_part);
        for &node in &piece.nodes[..n] {
            let table = self.of.leave(node, self.fold, &self.tables)?;
            for &child in tree.children[node].iter().filter(|&&c| !self.kept[c]) {
                self.tables[child] = None;
            }
            if !is_part && tree.order.seen[node].is_empty() {
                self.log_sum += table.log_scale + table.log(0);
            }
            self.tables[node] = Some(table);
            self.progress.add(tree, node, self.listener)?;
        }
        for part in piece.parts.iter().rev() {
            self.through(part, true, visit)?;
        }
        if piece.parts.is_empty() {
            for &node in piece.nodes.iter().rev() {
                visit(node, &self.tables)?;
                for &child in &tree.children[node] {
                    self.tables[child] = None;
                    self.kept[child] = false;
                }
            }
        }
        Ok(())
    }
}

impl Elimination<'_> {
    /// Goes up and down; $\ln$ of the sum or of the largest term over all states.
    fn walk(
        &self,
        what: &'static str,
        fold: Fold,
        pieces: &Pieces,
        visit: &mut Visit<'_>,
        listener: &mut dyn Listener,
    ) -> Result<f64, Error> {
        check_memory(pieces.bytes(), tables_of_sum)?;
        let mut walk = Walk {
            of: self,
            fold,
            tables: self.no_tables(),
            kept: vec![false; self.graph.nodes().len()],
            log_sum: self.graph.constant(),
            progress: Progress::new(what, pieces.log2_terms()),
            listener,
        };
        walk.through(&pieces.top, false, visit)?;
        Ok(walk.log_sum)
    }

    /// The budget does not do; `within` says what does, and `all` bytes keep every table.
    fn too_little(&self, all: f64, within: impl Fn(f64) -> bool) -> Error {
        let least = least_budget((self.budget, all), within);
        Error::MemoryBudget { budget: self.budget, least, all }
    }

    /// The probabilities of all states of single nodes and of all pairs that see each other.
    ///
    /// # Errors
    ///
    /// If memory or the budget ends, or the listener cancels.
    pub fn marginals(&self, listener: &mut dyn Listener) -> Result<Marginals, Error> {
        let pieces = self.tree.marginals_within(self.budget);
        let pieces = pieces.ok_or_else(|| {
            self.too_little(self.tree.bytes_of_marginals(), |b| {
                self.tree.marginals_within(b).is_some()
            })
        })?;
        let mut found = Marginals {
            log_sum: 0.0,
            nodes: vec![Vec::new(); self.graph.nodes().len()],
            edges: vec![Vec::new(); self.graph.edges().len()],
        };
        // The probabilities of what a node sees, once its parent knows them.
        let mut seen: Vec<Option<Vec<f64>>> = vec![None; self.graph.nodes().len()];
        let mut visit = |node: usize, tables: &[Option<Table>]| {
            let local = self.local(node);
            let given = seen[node].take().unwrap_or_else(|| vec![1.0]);
            let joint = self.with_bucket(node, &local, tables, |bucket, _| bucket.joint(&given));
            drop(given);
            let near = &self.tree.order.seen[node];
            let nodes: Vec<(usize, usize)> = std::iter::once(node)
                .chain(near.iter().copied())
                .map(|u| (u, self.tree.n_states[u]))
                .collect();
            for &child in &self.tree.children[node] {
                seen[child] = Some(marginal(&joint, &nodes, &self.tree.order.seen[child]));
            }
            self.take_marginals(node, &local, &joint, &nodes, &mut found);
            Ok(())
        };
        let log_sum = self.walk("exact marginals", Fold::Sum, &pieces, &mut visit, listener)?;
        Ok(Marginals { log_sum, ..found })
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

    /// Writes $\ln p(x_u \mid x_N)$ of each state of a node, up to a constant, given the states of those that go
    /// later.
    fn log_weights_into(
        &self,
        node: usize,
        state: impl Fn(usize) -> u32,
        tables: &[Option<Table>],
        logs: &mut Vec<f64>,
    ) {
        let (tree, graph) = (self.tree, self.graph);
        logs.clear();
        logs.extend_from_slice(&graph.nodes()[node].log_fields);
        for &number in &self.edges[node] {
            let edge = &graph.edges()[number];
            let (i, j) = edge.between;
            for (s, log) in logs.iter_mut().enumerate() {
                let at = if i == node { (s, state(j) as usize) } else { (state(i) as usize, s) };
                *log += graph.log_pair(edge, at);
            }
        }
        for &child in &tree.children[node] {
            let Some(table) = &tables[child] else { continue };
            let (mut at, mut stride) = (0, 1);
            let rest = tree.rest_of(child, node);
            for &v in rest.iter().rev() {
                at += state(v) as usize * stride;
                stride *= tree.n_states[v];
            }
            if rest.len() == tree.order.seen[child].len() {
                // The same for all states of this node.
                continue;
            }
            for (s, log) in logs.iter_mut().enumerate() {
                *log += table.log(at + s * stride);
            }
        }
    }

    /// Draws `n` independent samples. Node `u` of sample `k` takes `uniform(k, u)`, a number between 0 and 1;
    /// `take` is given each sample, as the states of all nodes. Returns $\ln\sum e^{-E}$.
    ///
    /// # Errors
    ///
    /// If memory or the budget ends, the listener cancels, or `take` fails.
    pub fn samples(
        &self,
        n: usize,
        uniform: impl Fn(usize, usize) -> f64 + Sync,
        mut take: impl FnMut(usize, &[u32]) -> Result<(), Error>,
        listener: &mut dyn Listener,
    ) -> Result<f64, Error> {
        let pieces = self.tree.samples_within(self.budget);
        let pieces = pieces.ok_or_else(|| {
            self.too_little(self.tree.bytes_of_samples(), |b| self.tree.samples_within(b).is_some())
        })?;
        let n_nodes = self.graph.nodes().len();
        check_memory(4.0 * n as f64 * n_nodes as f64, || "the samples".into())?;
        // For each node its state in every sample.
        let mut all: Vec<Vec<u32>> = vec![Vec::new(); n_nodes];
        let mut visit = |node: usize, tables: &[Option<Table>]| {
            let draw = |logs: &mut Vec<f64>, k: usize| {
                self.log_weights_into(node, |v| all[v][k], tables, logs);
                drawn(logs, uniform(k, node))
            };
            all[node] = if n <= TOGETHER {
                let mut logs = Vec::new();
                (0..n).map(|k| draw(&mut logs, k)).collect()
            } else {
                let samples = (0..n).into_par_iter().with_min_len(TOGETHER);
                samples.map_init(Vec::new, draw).collect()
            };
            Ok(())
        };
        let log_sum = self.walk("exact samples", Fold::Sum, &pieces, &mut visit, listener)?;
        let mut states = vec![0; n_nodes];
        for k in 0..n {
            states.iter_mut().zip(&all).for_each(|(s, node)| *s = node[k]);
            take(k, &states)?;
        }
        Ok(log_sum)
    }

    /// The most probable state of all nodes together. Of several the one found first.
    ///
    /// # Errors
    ///
    /// If memory or the budget ends, or the listener cancels.
    pub fn mode(&self, listener: &mut dyn Listener) -> Result<Vec<usize>, Error> {
        let pieces = self.tree.samples_within(self.budget);
        let pieces = pieces.ok_or_else(|| {
            self.too_little(self.tree.bytes_of_samples(), |b| self.tree.samples_within(b).is_some())
        })?;
        let mut states = vec![0_u32; self.graph.nodes().len()];
        let mut logs = Vec::new();
        let mut visit = |node: usize, tables: &[Option<Table>]| {
            self.log_weights_into(node, |v| states[v], tables, &mut logs);
            let most =
                logs.iter().enumerate().fold(0, |a, (s, l)| if *l > logs[a] { s } else { a });
            states[node] = u32::try_from(most).unwrap_or(u32::MAX);
            Ok(())
        };
        self.walk("most probable state", Fold::Max, &pieces, &mut visit, listener)?;
        Ok(states.into_iter().map(|s| s as usize).collect())
    }
}

/// The state that a number between 0 and 1 picks.
fn drawn(logs: &[f64], uniform: f64) -> u32 {
    let total = log_sum_exp(logs);
    let mut left = uniform;
    let chosen = logs.iter().position(|log| {
        left -= (log - total).exp();
        left < 0.0
    });
    u32::try_from(chosen.unwrap_or(logs.len() - 1)).unwrap_or(u32::MAX)
}

/// The least budget that does, to a hundredth: between one that does not and one that does.
fn least_budget((mut too_little, mut enough): (f64, f64), does: impl Fn(f64) -> bool) -> f64 {
    // Room beside the tables may be needed even where all of them are kept.
    while !does(enough) && enough.is_finite() {
        enough *= 1.1;
    }
    while enough > 1.01 * too_little.max(1.0) {
        let middle = (enough * too_little.max(1.0)).sqrt();
        if does(middle) { enough = middle } else { too_little = middle }
    }
    enough
}
