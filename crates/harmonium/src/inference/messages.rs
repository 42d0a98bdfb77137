//! Messages along the edges of a pairwise graph, each edge with a weight $\rho$.
//!
//! With $\lambda_{v\to u}$ the logarithm of what $v$ tells $u$,
//! $$b_u(s) = f_u(s) + \sum_v \rho_{uv}\lambda_{v\to u}(s), \qquad
//!   \lambda_{u\to v}(t) \leftarrow \ln\sum_s e^{g_{uv}(s,t)/\rho_{uv} + b_u(s) - \lambda_{v\to u}(s)}.$$
//! All weights 1 is belief propagation (Pearl 1988), the probabilities of edges in random spanning trees
//! are tree-reweighted belief propagation (Wainwright, Jaakkola & Willsky, IEEE Transactions on Information Theory 51,
//! 2005).
//!
//! Whatever the messages are, the energy can be written around them: $\tilde f_u = b_u$ and
//! $\tilde g_{uv}(s,t) = g_{uv}(s,t) - \rho_{uv}(\lambda_{u\to v}(t) + \lambda_{v\to u}(s))$ have the same sum. With
//! $p_u \propto e^{b_u}$, $Z_u$ its sum and $k_{uv}(s) = \sum_t p_v(t)\,e^{\tilde g_{uv}(s,t)/\rho_{uv}}$,
//! $$\sum_u \ln Z_u + \sum_{uv} \rho_{uv} \ln\sum_s p_u(s)\,k_{uv}(s)$$
//! is the Bethe value at a fixed point, where $k$ does not depend on $s$. With $\max_s$ of both directions instead of the
//! mean it bounds $\ln\sum e^{-E}$ from above for **any** messages, if the weights are those of spanning trees: every tree is
//! summed leaf by leaf, each leaf adding at most its largest factor, and Jensen's inequality averages
//! over the trees. With the largest term instead of the sum over $s$ (max-product) all of this holds for the weight of
//! the most probable state.

use super::fixed_points::{Attempt, End, Schedule, Start};
use super::flat::{Flat, largest, normalise};
use crate::units::log_sum_exp;

/// Factors whose logarithms differ by less are multiplied as they are.
const PLAIN_RANGE: f64 = 300.0;

/// What becomes of the states of the unit that speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Their sum: probabilities.
    Sum,
    /// The largest: the most probable state.
    Max,
}

impl Rule {
    /// $\ln\sum_i e^{t_i}$, or the largest.
    fn fold(self, logs: &[f64]) -> f64 {
        match self {
            Self::Sum => log_sum_exp(logs),
            Self::Max => logs.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// A graph with the weights of its edges, ready for messages.
pub(super) struct Channels<'a> {
    pub(super) flat: &'a Flat,
    weights: &'a [f64],
    rule: Rule,
    /// $g/\rho$ of each edge less its largest, as it is or as its exponential.
    tables: Vec<f64>,
    /// Where the table of each edge begins.
    places: Vec<usize>,
    plain: Vec<bool>,
    /// Where each message begins: $2e$ goes along edge $e$, $2e + 1$ against it.
    starts: Vec<usize>,
    /// The nodes from first to last, each near one that was before it.
    order: Vec<usize>,
}

/// Room for the states of one node.
struct Scratch {
    belief: Vec<f64>,
    cavity: Vec<f64>,
    sent: Vec<f64>,
}

impl<'a> Channels<'a> {
    pub(super) fn new(flat: &'a Flat, weights: &'a [f64], rule: Rule) -> Self {
        let mut tables = Vec::with_capacity(flat.n_entries());
        let (mut places, mut plain, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        for (edge, rho) in weights.iter().enumerate() {
            let logs = flat.table(edge).iter().map(|g| g / rho);
            let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
            let least = logs.clone().fold(f64::INFINITY, f64::min);
            let is_plain = rule == Rule::Sum && most - least <= PLAIN_RANGE;
            places.push(tables.len());
            tables.extend(logs.map(|g| if is_plain { (g - most).exp() } else { g - most }));
            plain.push(is_plain);
            let (u, v) = flat.edges[edge];
            for to in [v, u] {
                starts.push(starts[starts.len() - 1] + flat.n_states[to]);
            }
        }
        let order = flat.topology.outwards().0;
        Self { flat, weights, rule, tables, places, plain, starts, order }
    }

    /// Entries of all messages.
    fn n_entries(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    fn message(&self, number: usize) -> std::ops::Range<usize> {
        self.starts[number]..self.starts[number + 1]
    }

    /// The message to node `u` along an edge, and the one back.
    fn to_and_from(&self, u: usize, edge: usize) -> (usize, usize) {
        if self.flat.edges[edge].1 == u {
            (2 * edge, 2 * edge + 1)
        } else {
            (2 * edge + 1, 2 * edge)
        }
    }

    /// $b_u$ of one node.
    fn belief_into(&self, u: usize, messages: &[f64], belief: &mut Vec<f64>) {
        belief.clear();
        belief.extend_from_slice(&self.flat.fields[self.flat.states(u)]);
        for link in self.flat.topology.links(u) {
            let (rho, (to, _)) = (self.weights[link.edge], self.to_and_from(u, link.edge));
            let heard = &messages[self.message(to)];
            belief.iter_mut().zip(heard).for_each(|(b, m)| *b += rho * m);
        }
    }

    /// What node `u` has to say along an edge, from its belief; into `sent`.
    fn speak(&self, u: usize, edge: usize, messages: &[f64], scratch: &mut Scratch) {
        let Scratch { belief, cavity, sent } = scratch;
        let (first, second) = self.flat.edges[edge];
        let (to, _) = self.to_and_from(u, edge);
        cavity.clear();
        cavity.extend(belief.iter().zip(&messages[self.message(to)]).map(|(b, m)| b - m));
        let n = self.flat.n_states[if u == first { second } else { first }];
        let table = &self.tables[self.places[edge]..][..n * cavity.len()];
        sent.clear();
        sent.resize(n, 0.0);
        if !self.plain[edge] {
            let mut terms = vec![0.0; cavity.len()];
            for (t, sent) in sent.iter_mut().enumerate() {
                for (s, term) in terms.iter_mut().enumerate() {
                    let at = if u == first { s * n + t } else { t * cavity.len() + s };
                    *term = table[at] + cavity[s];
                }
                *sent = self.rule.fold(&terms);
            }
            let total = self.rule.fold(sent);
            sent.iter_mut().for_each(|m| *m -= total);
            return;
        }
        normalise(cavity);
        if u == first {
            for (row, c) in table.chunks_exact(n).zip(&*cavity) {
                sent.iter_mut().zip(row).for_each(|(m, g)| *m += g * c);
            }
        } else {
            for (row, m) in table.chunks_exact(cavity.len()).zip(sent.iter_mut()) {
                *m = row.iter().zip(&*cavity).map(|(g, c)| g * c).sum();
            }
        }
        let total: f64 = sent.iter().sum();
        sent.iter_mut().for_each(|m| *m = (*m / total).ln());
    }

    /// Where a start begins: with what units would say that know nothing, the mean of $g/\rho$ over their
    /// states, so that it does not matter how the energy is shared out between pairs and fields.
    fn started(&self, start: &Start) -> Vec<f64> {
        let mut messages = Vec::with_capacity(self.n_entries());
        for message in self.starts.windows(2) {
            messages.extend((message[0]..message[1]).map(|i| start.log(i, i - message[0])));
        }
        for (edge, &(u, v)) in self.flat.edges.iter().enumerate() {
            let (n, m) = (self.flat.n_states[u], self.flat.n_states[v]);
            let (along, against) = (self.starts[2 * edge], self.starts[2 * edge + 1]);
            for (k, g) in self.flat.table(edge).iter().enumerate() {
                let g = g / self.weights[edge];
                messages[along + k % m] += g / n as f64;
                messages[against + k / m] += g / m as f64;
            }
        }
        messages
    }

    /// Runs one start to its end; the value and the probabilities are of where it stopped.
    pub(super) fn run(&self, start: &Start) -> End {
        let mut messages = self.started(start);
        // On a tree every message is right once all behind it are: nothing to damp.
        let damping = if self.flat.topology.is_forest() { 0.0 } else { start.damping };
        let mut before = Vec::new();
        let mut attempt = Attempt { converged: false, sweeps: 0, change: 0.0, log_sum: None };
        while attempt.sweeps < start.max_sweeps && !attempt.converged {
            let mut scratch = Scratch { belief: Vec::new(), cavity: Vec::new(), sent: Vec::new() };
            attempt.change = match start.schedule {
                Schedule::Sequential => {
                    let back = attempt.sweeps.is_multiple_of(2);
                    self.sweep(&mut messages, damping, back, &mut scratch)
                }
                Schedule::Parallel => {
                    before.clone_from(&messages);
                    self.shout(&before, &mut messages, damping, &mut scratch)
                }
            };
            attempt.sweeps += 1;
            attempt.converged = attempt.change <= start.tolerance;
            if !attempt.change.is_finite() {
                break;
            }
        }
        if attempt.converged {
            attempt.log_sum = Some(self.bethe(&messages));
        }
        let nodes = self.log_nodes(&messages).0.iter().map(|log| log.exp()).collect();
        End { attempt, nodes, state: messages }
    }

    /// One node after the other, outwards or back; the largest change.
    fn sweep(&self, messages: &mut [f64], damping: f64, back: bool, scratch: &mut Scratch) -> f64 {
        let n = self.order.len();
        let mut change = 0.0;
        for k in 0..n {
            let u = self.order[if back { n - 1 - k } else { k }];
            self.belief_into(u, messages, &mut scratch.belief);
            for link in self.flat.topology.links(u) {
                self.speak(u, link.edge, messages, scratch);
                let (_, from) = self.to_and_from(u, link.edge);
                change = f64::max(
                    change,
                    mix(&mut messages[self.message(from)], &scratch.sent, damping),
                );
            }
        }
        change
    }

    /// All nodes at once, from what was said before; the largest change.
    fn shout(
        &self,
        before: &[f64],
        messages: &mut [f64],
        damping: f64,
        scratch: &mut Scratch,
    ) -> f64 {
        let mut change = 0.0;
        for u in 0..self.flat.n_nodes() {
            self.belief_into(u, before, &mut scratch.belief);
            for link in self.flat.topology.links(u) {
                self.speak(u, link.edge, before, scratch);
                let (_, from) = self.to_and_from(u, link.edge);
                change = f64::max(
                    change,
                    mix(&mut messages[self.message(from)], &scratch.sent, damping),
                );
            }
        }
        change
    }

    /// $\ln p_u$ of all nodes, and $c + \sum_u \ln Z_u$.
    fn log_nodes(&self, messages: &[f64]) -> (Vec<f64>, f64) {
        let (mut all, mut belief) = (Vec::with_capacity(self.flat.fields.len()), Vec::new());
        let mut log_sums = self.flat.constant;
        for u in 0..self.flat.n_nodes() {
            self.belief_into(u, messages, &mut belief);
            let log_sum = self.rule.fold(&belief);
            all.extend(belief.iter().map(|b| b - log_sum));
            log_sums += log_sum;
        }
        (all, log_sums)
    }

    /// $\tilde g/\rho$ of an edge at two states.
    fn log_factor(&self, edge: usize, messages: &[f64], (s, t): (usize, usize)) -> f64 {
        let m = self.flat.n_states[self.flat.edges[edge].1];
        let along = messages[self.starts[2 * edge] + t];
        let against = messages[self.starts[2 * edge + 1] + s];
        self.flat.table(edge)[s * m + t] / self.weights[edge] - along - against
    }

    /// The probabilities of all pairs, edge by edge.
    pub(super) fn pairs(&self, messages: &[f64]) -> Vec<Vec<f64>> {
        let log_nodes = self.log_nodes(messages).0;
        let of = |edge: usize| {
            let mut logs = self.log_terms(edge, messages, &log_nodes);
            normalise(&mut logs);
            logs
        };
        (0..self.flat.edges.len()).map(of).collect()
    }

    /// $\ln p_u(s)\,p_v(t) + \tilde g(s,t)/\rho$ of an edge.
    fn log_terms(&self, edge: usize, messages: &[f64], log_nodes: &[f64]) -> Vec<f64> {
        let (p, q) = self.of_ends(edge, log_nodes);
        let states = (0..p.len()).flat_map(|s| (0..q.len()).map(move |t| (s, t)));
        states.map(|(s, t)| p[s] + q[t] + self.log_factor(edge, messages, (s, t))).collect()
    }

    /// What a list over all states says of the two nodes of an edge.
    fn of_ends<'l>(&self, edge: usize, list: &'l [f64]) -> (&'l [f64], &'l [f64]) {
        let (u, v) = self.flat.edges[edge];
        (&list[self.flat.states(u)], &list[self.flat.states(v)])
    }

    /// The value at a fixed point.
    fn bethe(&self, messages: &[f64]) -> f64 {
        let (log_nodes, log_sums) = self.log_nodes(messages);
        let of = |(edge, rho): (usize, &f64)| {
            rho * self.rule.fold(&self.log_terms(edge, messages, &log_nodes))
        };
        log_sums + self.weights.iter().enumerate().map(of).sum::<f64>()
    }

    /// A bound from above, whatever the messages are, if the weights are those of spanning trees.
    pub(super) fn bound(&self, messages: &[f64]) -> f64 {
        let (log_nodes, log_sums) = self.log_nodes(messages);
        let of = |(edge, rho): (usize, &f64)| rho * self.log_largest(edge, messages, &log_nodes);
        log_sums + self.weights.iter().enumerate().map(of).sum::<f64>()
    }

    /// A state of all nodes: one after the other takes its best state given those that have one, hearing the
    /// messages of the others.
    pub(super) fn decode(&self, messages: &[f64]) -> Vec<usize> {
        let mut states: Vec<Option<usize>> = vec![None; self.flat.n_nodes()];
        let mut score = Vec::new();
        for &u in &self.order {
            score.clear();
            score.extend_from_slice(&self.flat.fields[self.flat.states(u)]);
            for link in self.flat.topology.links(u) {
                let (rho, (to, _)) = (self.weights[link.edge], self.to_and_from(u, link.edge));
                let heard = &messages[self.message(to)];
                for (s, score) in score.iter_mut().enumerate() {
                    *score += match states[link.node] {
                        Some(t) => self.flat.pair(link.edge, u, (s, t)),
                        None => rho * heard[s],
                    };
                }
            }
            states[u] = Some(largest(&score));
        }
        states.into_iter().flatten().collect()
    }

    /// $\max\ln k$ of an edge, over the states of both ends.
    fn log_largest(&self, edge: usize, messages: &[f64], log_nodes: &[f64]) -> f64 {
        let (p, q) = self.of_ends(edge, log_nodes);
        let factor = |s, t| self.log_factor(edge, messages, (s, t));
        let of_first =
            (0..p.len()).map(|s| (0..q.len()).map(|t| q[t] + factor(s, t)).collect::<Vec<f64>>());
        let of_second =
            (0..q.len()).map(|t| (0..p.len()).map(|s| p[s] + factor(s, t)).collect::<Vec<f64>>());
        let logs = of_first.chain(of_second).map(|terms| self.rule.fold(&terms));
        logs.fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Moves a message towards what was sent; how far that is, relative to its size.
fn mix(message: &mut [f64], sent: &[f64], damping: f64) -> f64 {
    let mut change = 0.0;
    for (old, new) in message.iter_mut().zip(sent) {
        let step = new - *old;
        if !step.is_finite() {
            return f64::INFINITY;
        }
        change = f64::max(change, step.abs() / (1.0 + old.abs()));
        *old += (1.0 - damping) * step;
    }
    change
}
