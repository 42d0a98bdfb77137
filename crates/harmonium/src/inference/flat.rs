//! The pairwise graph laid out for iterations: every state of every node has its place in one list,
//! and every edge its table of $g_{uv}$ in another.

use super::fixed_points::Start;
use crate::error::Error;
use crate::graph::{Node, Pairwise, Topology};
use crate::machine::check_memory;
use crate::units::x_log_x;

/// A pairwise graph; edges whose $g$ is zero everywhere are left out.
pub(super) struct Flat {
    /// States of each node.
    pub(super) n_states: Vec<usize>,
    /// Where the states of each node begin, and where those of the last one end.
    pub(super) starts: Vec<usize>,
    /// $f_u$ of each state.
    pub(super) fields: Vec<f64>,
    /// $c$.
    pub(super) constant: f64,
    /// The nodes of each edge.
    pub(super) edges: Vec<(usize, usize)>,
    /// Its number in the graph.
    numbers: Vec<usize>,
    /// Who sees whom along these edges.
    pub(super) topology: Topology,
    tables: Vec<f64>,
    /// Where the table of each edge begins, and where the last one ends.
    places: Vec<usize>,
}

impl Flat {
    pub(super) fn new(graph: &Pairwise) -> Result<Self, Error> {
        let n_states: Vec<usize> = graph.nodes().iter().map(Node::n_states).collect();
        let entries = |(u, v): (usize, usize)| n_states[u] as f64 * n_states[v] as f64;
        let bytes: f64 = graph.edges().iter().map(|e| 8.0 * entries(e.between) + 64.0).sum();
        check_memory(bytes, || "the tables of all pairs".into())?;
        let (mut edges, mut numbers) = (Vec::new(), Vec::new());
        let (mut tables, mut places) = (Vec::new(), vec![0]);
        for (number, edge) in graph.edges().iter().enumerate() {
            let (n, m) = (n_states[edge.between.0], n_states[edge.between.1]);
            let start = tables.len();
            tables.extend((0..n * m).map(|k| graph.log_pair(edge, (k / m, k % m))));
            if tables[start..].iter().all(|g| *g == 0.0) {
                tables.truncate(start);
                continue;
            }
            edges.push(edge.between);
            numbers.push(number);
            places.push(tables.len());
        }
        let mut starts = vec![0];
        n_states.iter().for_each(|n| starts.push(starts[starts.len() - 1] + n));
        Ok(Self {
            fields: graph.nodes().iter().flat_map(|node| node.log_fields.clone()).collect(),
            constant: graph.constant(),
            topology: Topology::new(n_states.len(), edges.iter().copied()),
            n_states,
            starts,
            edges,
            numbers,
            tables,
            places,
        })
    }

    pub(super) fn n_nodes(&self) -> usize {
        self.n_states.len()
    }

    /// Where the states of node `u` stand.
    pub(super) fn states(&self, u: usize) -> std::ops::Range<usize> {
        self.starts[u]..self.starts[u + 1]
    }

    /// $g$ of an edge, the states of its second node running faster.
    pub(super) fn table(&self, edge: usize) -> &[f64] {
        &self.tables[self.places[edge]..self.places[edge + 1]]
    }

    /// $g$ of an edge where node `u`, one of its ends, is in state `s` and the other in state `t`.
    pub(super) fn pair(&self, edge: usize, u: usize, (s, t): (usize, usize)) -> f64 {
        let (first, second) = self.edges[edge];
        let (s, t) = if u == first { (s, t) } else { (t, s) };
        self.table(edge)[s * self.n_states[second] + t]
    }

    /// The standard deviation of what a state of a node weighs, all others being in any state: the mean over the
    /// nodes.
    pub(super) fn spread(&self) -> f64 {
        let variance = |list: &[f64]| {
            let n = list.len() as f64;
            let mean = list.iter().sum::<f64>() / n;
            list.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n
        };
        let mut of: Vec<f64> =
            (0..self.n_nodes()).map(|u| variance(&self.fields[self.states(u)])).collect();
        for (edge, &(u, v)) in self.edges.iter().enumerate() {
            let more = variance(self.table(edge));
            of[u] += more;
            of[v] += more;
        }
        of.iter().map(|v| v.sqrt()).sum::<f64>() / self.n_nodes().max(1) as f64
    }

    /// Entries of all tables.
    pub(super) fn n_entries(&self) -> usize {
        self.tables.len()
    }

    /// Probabilities of all nodes where an iteration starts.
    pub(super) fn started(&self, start: &Start) -> Vec<f64> {
        let mut q = Vec::with_capacity(self.fields.len());
        for u in 0..self.n_nodes() {
            q.extend((0..self.n_states[u]).map(|s| start.log(self.starts[u] + s, s)));
            normalise(&mut q[self.states(u)]);
        }
        q
    }

    /// Adds $\sum_t q_v(t)\,g_{uv}(s, t)$ to each state of node `u`, given all probabilities.
    pub(super) fn add_input(&self, u: usize, edge: usize, q: &[f64], input: &mut [f64]) {
        let (table, (first, second)) = (self.table(edge), self.edges[edge]);
        if u == first {
            let q = &q[self.states(second)];
            for (input, row) in input.iter_mut().zip(table.chunks_exact(q.len())) {
                *input += row.iter().zip(q).map(|(g, q)| g * q).sum::<f64>();
            }
        } else {
            for (row, q) in table.chunks_exact(input.len()).zip(&q[self.states(first)]) {
                input.iter_mut().zip(row).for_each(|(input, g)| *input += g * q);
            }
        }
    }

    /// $c + \langle\sum f + \sum g\rangle_q + H(q)$ where all nodes are independent: never more than
    /// $\ln\sum e^{-E}$.
    pub(super) fn variational(&self, q: &[f64]) -> f64 {
        let own: f64 = self.fields.iter().zip(q).map(|(f, q)| f * q - x_log_x(*q)).sum();
        let pairs: f64 = (0..self.edges.len()).map(|e| self.expected_pair(e, q)).sum();
        self.constant + own + pairs
    }

    /// $\langle g_{uv}\rangle$ where all nodes are independent.
    pub(super) fn expected_pair(&self, edge: usize, q: &[f64]) -> f64 {
        let (u, v) = self.edges[edge];
        let (of_u, of_v) = (&q[self.states(u)], &q[self.states(v)]);
        let rows = self.table(edge).chunks_exact(of_v.len()).zip(of_u);
        rows.map(|(row, p)| p * row.iter().zip(of_v).map(|(g, q)| g * q).sum::<f64>()).sum()
    }

    /// The probabilities of each node.
    pub(super) fn nodes(&self, q: &[f64]) -> Vec<Vec<f64>> {
        (0..self.n_nodes()).map(|u| q[self.states(u)].to_vec()).collect()
    }

    /// The probabilities of the pairs of the graph: as `of` says for those that feel each other, nothing
    /// for the others.
    pub(super) fn pairs(&self, graph: &Pairwise, of: impl Fn(usize) -> Vec<f64>) -> Vec<Vec<f64>> {
        let mut pairs: Vec<Vec<f64>> = vec![Vec::new(); graph.edges().len()];
        self.numbers.iter().enumerate().for_each(|(edge, &number)| pairs[number] = of(edge));
        pairs
    }

    /// The probabilities of a pair if its two nodes were independent.
    pub(super) fn independent(&self, edge: usize, q: &[f64]) -> Vec<f64> {
        let (u, v) = self.edges[edge];
        let of_v = &q[self.states(v)];
        q[self.states(u)].iter().flat_map(|p| of_v.iter().map(move |q| p * q)).collect()
    }
}

/// Where the largest of some numbers stands; the first of several.
pub(super) fn largest(numbers: &[f64]) -> usize {
    (1..numbers.len()).fold(0, |best, k| if numbers[k] > numbers[best] { k } else { best })
}

/// Replaces logarithms by probabilities.
pub(super) fn normalise(logs: &mut [f64]) {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for log in logs.iter_mut() {
        *log = (*log - most).exp();
        total += *log;
    }
    logs.iter_mut().for_each(|p| *p /= total);
}
