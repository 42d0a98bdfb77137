//! Belief propagation: the sum-product algorithm, on graphs with circles too.
//!
//! Messages are sent until they repeat ([`super::messages`], all weights 1). On a tree they are then the exact
//! sums over everything behind them; elsewhere a fixed point is a stationary point of the Bethe free
//! energy (Yedidia, Freeman & Weiss, IEEE Transactions on Information Theory 51, 2005), whose value
//! $$\ln Z_B = \sum_u \ln Z_u + \sum_{uv} \ln\sum_{s,t} p_u(s)\,p_v(t)\,e^{\tilde g_{uv}(s,t)}$$
//! may lie on either side of the truth. There may be several fixed points, or none that the iteration
//! finds; of several the one with the largest value is taken, and how far they are apart is told.

use super::fixed_points::{FixedPoints, Iteration, search};
use super::flat::Flat;
use super::messages::{Channels, Rule};
use crate::error::Error;
use crate::graph::{Marginals, Pairwise};
use crate::progress::Listener;

/// The Bethe value and its probabilities.
///
/// # Errors
///
/// [`Error::NotConverged`] if no start reaches a fixed point; if a setting is out of range, memory ends
/// or the listener cancels.
pub fn belief_propagation(
    graph: &Pairwise,
    iteration: &Iteration,
    listener: &mut dyn Listener,
) -> Result<FixedPoints, Error> {
    let flat = Flat::new(graph)?;
    let weights = vec![1.0; flat.edges.len()];
    let channels = Channels::new(&flat, &weights, Rule::Sum);
    // On a forest there is one fixed point, and every start finds it.
    let n_random = if flat.topology.is_forest() { 0 } else { iteration.random_starts };
    let found = search(
        "belief propagation",
        iteration,
        n_random,
        &flat,
        |start| channels.run(start),
        listener,
    )?;
    let pairs = channels.pairs(&found.end.state);
    let best = Marginals {
        log_sum: found.end.attempt.log_sum.unwrap_or(f64::NAN),
        nodes: flat.nodes(&found.end.nodes),
        edges: flat.pairs(graph, |edge| pairs[edge].clone()),
    };
    Ok(found.into_fixed_points(best))
}
