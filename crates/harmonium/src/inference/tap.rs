//! TAP: mean field with the reaction of its own mean on each unit taken out.
//!
//! Expanded in the strength of the couplings at fixed probabilities of all units (Plefka, Journal of Physics A 15,
//! 1982; Georges & Yedidia, Journal of Physics A 24, 1991),
//! $$\ln\sum e^{-E} \approx c + \langle\textstyle\sum f + \sum g\rangle_q + H(q) + \tfrac12\sum_{uv}\langle\hat g_{uv}^2\rangle_q, \qquad
//!   \hat g(s,t) = g(s,t) - \langle g\rangle_v(s) - \langle g\rangle_u(t) + \langle g\rangle.$$
//! The first order is mean field. For spins the last term is $\tfrac12 J^2(1-m_u^2)(1-m_v^2)$, and its
//! stationary points are the equations of Thouless, Anderson & Palmer (Philosophical Magazine 35, 1977),
//! $m_u = \tanh(h_u + \sum_v J m_v - m_u\sum_v J^2(1 - m_v^2))$; the form above holds for units of any number of
//! states. It is good where couplings are many and weak (the Sherrington–Kirkpatrick model above its
//! transition, hidden layers of trained machines). Where they are few and strong the iteration runs
//! away or in circles, and that is an error: its value would mean nothing.

use super::fixed_points::{Attempt, End, FixedPoints, Iteration, Start, search};
use super::flat::{Flat, normalise};
use crate::error::Error;
use crate::graph::{Marginals, Pairwise};
use crate::progress::Listener;

/// The second-order value and its probabilities.
///
/// # Errors
///
/// [`Error::NotConverged`] if no start reaches a fixed point; if a setting is out of range, memory ends
/// or the listener cancels.
pub fn tap(
    graph: &Pairwise,
    iteration: &Iteration,
    listener: &mut dyn Listener,
) -> Result<FixedPoints, Error> {
    let flat = Flat::new(graph)?;
    let random = if flat.edges.is_empty() { 0 } else { iteration.random_starts };
    let found = search("TAP", iteration, random, &flat, |start| run(&flat, start), listener)?;
    let q = &found.end.nodes;
    let best = Marginals {
        log_sum: found.end.attempt.log_sum.unwrap_or(f64::NAN),
        nodes: flat.nodes(q),
        edges: flat.pairs(graph, |edge| pair(&flat, edge, q)),
    };
    Ok(found.into_fixed_points(best))
}

fn run(flat: &Flat, start: &Start) -> End {
    let mut q = flat.started(start);
    let mut attempt = Attempt { converged: false, sweeps: 0, change: 0.0, log_sum: None };
    let mut means = Means::new(flat);
    let mut input = vec![0.0; q.len()];
    while attempt.sweeps < start.max_sweeps && !attempt.converged {
        // All units at once: one after the other the reaction would be taken out of another mean.
        input.copy_from_slice(&flat.fields);
        for edge in 0..flat.edges.len() {
            means.add_input(edge, &q, &mut input);
        }
        attempt.change = 0.0;
        for u in 0..flat.n_nodes() {
            normalise(&mut input[flat.states(u)]);
        }
        for (q, new) in q.iter_mut().zip(&input) {
            attempt.change = f64::max(attempt.change, (new - *q).abs());
            *q += (1.0 - start.damping) * (new - *q);
        }
        attempt.sweeps += 1;
        attempt.converged = attempt.change <= start.tolerance;
    }
    if attempt.converged {
        let second: f64 = (0..flat.edges.len()).map(|edge| means.square(edge, &q)).sum();
        attempt.log_sum = Some(flat.variational(&q) + 0.5 * second);
    }
    End { attempt, state: Vec::new(), nodes: q }
}

/// $q_u q_v (1 + \hat g)$, the derivative of the value by $g$; where couplings are too strong for it to be
/// positive it is cut at 0.
fn pair(flat: &Flat, edge: usize, q: &[f64]) -> Vec<f64> {
    let mut means = Means::new(flat);
    let total = means.take(edge, q);
    let (u, v) = flat.edges[edge];
    let (p, q) = (&q[flat.states(u)], &q[flat.states(v)]);
    let of = |(k, g): (usize, &f64)| {
        let (s, t) = (k / q.len(), k % q.len());
        p[s] * q[t] * (1.0 + g - means.of_first[s] - means.of_second[t] + total).max(0.0)
    };
    let mut pair: Vec<f64> = flat.table(edge).iter().enumerate().map(of).collect();
    let sum: f64 = pair.iter().sum();
    pair.iter_mut().for_each(|p| *p /= sum);
    pair
}

/// Room for what the ends of an edge expect of it.
struct Means<'a> {
    flat: &'a Flat,
    /// $\langle g\rangle_v(s)$ for each state of the first node.
    of_first: Vec<f64>,
    /// $\langle g\rangle_u(t)$ for each state of the second.
    of_second: Vec<f64>,
}

impl<'a> Means<'a> {
    fn new(flat: &'a Flat) -> Self {
        Self { flat, of_first: Vec::new(), of_second: Vec::new() }
    }

    /// Takes them; returns $\langle g\rangle$.
    fn take(&mut self, edge: usize, q: &[f64]) -> f64 {
        let (u, v) = self.flat.edges[edge];
        let (p, q) = (&q[self.flat.states(u)], &q[self.flat.states(v)]);
        self.of_first.clear();
        self.of_second.clear();
        self.of_second.resize(q.len(), 0.0);
        for (row, p) in self.flat.table(edge).chunks_exact(q.len()).zip(p) {
            self.of_first.push(row.iter().zip(q).map(|(g, q)| g * q).sum());
            self.of_second.iter_mut().zip(row).for_each(|(mean, g)| *mean += p * g);
        }
        self.of_first.iter().zip(p).map(|(mean, p)| mean * p).sum()
    }

    /// Adds the derivative of $\langle g\rangle + \tfrac12\langle\hat g^2\rangle$ by the probabilities of both ends.
    fn add_input(&mut self, edge: usize, q: &[f64], input: &mut [f64]) {
        let total = self.take(edge, q);
        let (u, v) = self.flat.edges[edge];
        let (states_u, states_v) = (self.flat.states(u), self.flat.states(v));
        let (p, q) = (&q[states_u.clone()], &q[states_v.clone()]);
        let (a, b) = (&self.of_first, &self.of_second);
        for (s, row) in self.flat.table(edge).chunks_exact(q.len()).enumerate() {
            let mut of_s = a[s] - 0.5 * a[s] * a[s] + total * a[s];
            for (t, g) in row.iter().enumerate() {
                of_s += q[t] * g * (0.5 * g - b[t]);
                input[states_v.start + t] += p[s] * g * (0.5 * g - a[s]);
            }
            input[states_u.start + s] += of_s;
        }
        for (b, input) in b.iter().zip(&mut input[states_v]) {
            *input += b - 0.5 * b * b + total * b;
        }
    }

    /// $\langle\hat g^2\rangle$.
    fn square(&mut self, edge: usize, q: &[f64]) -> f64 {
        let total = self.take(edge, q);
        let (u, v) = self.flat.edges[edge];
        let (p, q) = (&q[self.flat.states(u)], &q[self.flat.states(v)]);
        let rows = self.flat.table(edge).chunks_exact(q.len()).zip(p).zip(&self.of_first);
        rows.map(|((row, p), a)| {
            let square = |((g, q), b): ((&f64, &f64), &f64)| q * (g - a - b + total).powi(2);
            p * row.iter().zip(q).zip(&self.of_second).map(square).sum::<f64>()
        })
        .sum()
    }
}
