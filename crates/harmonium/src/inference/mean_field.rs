//! Mean field unit by unit: the best bound from below that independent units give.
//!
//! $$\ln\sum e^{-E} \;\ge\; c + \langle\textstyle\sum_u f_u + \sum_{uv} g_{uv}\rangle_q + H(q), \qquad q(x) = \prod_u q_u(x_u).$$
//! Given all others the best $q_u$ is $\propto e^{f_u(s) + \sum_v\sum_t q_v(t) g_{uv}(s,t)}$; taking one
//! unit after the other never lowers the bound (Peterson & Anderson, Complex Systems 1, 1987). Where
//! it ends depends on where it starts, often by nats, so it is started many times and the best end
//! is kept; the bound holds wherever an iteration stops.
//!
//! [`Sampler::mean_field`](crate::sampling::Sampler::mean_field) is the same for whole layers and many
//! rows at once, started once.

use super::fixed_points::{Attempt, End, FixedPoints, Iteration, Start, search};
use super::flat::{Flat, normalise};
use crate::error::Error;
use crate::graph::{Marginals, Pairwise};
use crate::progress::Listener;

/// The lower bound, and the probabilities that go with it.
///
/// # Errors
///
/// If a setting is out of range, memory ends or the listener cancels.
pub fn mean_field(
    graph: &Pairwise,
    iteration: &Iteration,
    listener: &mut dyn Listener,
) -> Result<FixedPoints, Error> {
    let flat = Flat::new(graph)?;
    let random = if flat.edges.is_empty() { 0 } else { iteration.random_starts };
    let found = search("mean field", iteration, random, &flat, |s| run(&flat, s), listener)?;
    let q = &found.end.nodes;
    let best = Marginals {
        log_sum: found.end.attempt.log_sum.unwrap_or(f64::NEG_INFINITY),
        nodes: flat.nodes(q),
        edges: flat.pairs(graph, |edge| flat.independent(edge, q)),
    };
    Ok(found.into_fixed_points(best))
}

fn run(flat: &Flat, start: &Start) -> End {
    let mut q = flat.started(start);
    let mut attempt = Attempt { converged: false, sweeps: 0, change: 0.0, log_sum: None };
    let mut input = Vec::new();
    while attempt.sweeps < start.max_sweeps && !attempt.converged {
        attempt.change = 0.0;
        for u in 0..flat.n_nodes() {
            input.clear();
            input.extend_from_slice(&flat.fields[flat.states(u)]);
            for link in flat.topology.links(u) {
                flat.add_input(u, link.edge, &q, &mut input);
            }
            normalise(&mut input);
            for (q, new) in q[flat.states(u)].iter_mut().zip(&input) {
                attempt.change = f64::max(attempt.change, (new - *q).abs());
                *q += (1.0 - start.damping) * (new - *q);
            }
        }
        attempt.sweeps += 1;
        attempt.converged = attempt.change <= start.tolerance;
    }
    attempt.log_sum = Some(flat.variational(&q));
    End { attempt, state: Vec::new(), nodes: q }
}
