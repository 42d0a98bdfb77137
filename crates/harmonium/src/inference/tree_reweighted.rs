//! An upper bound from trees: tree-reweighted belief propagation.
//!
//! The couplings are shared out among spanning trees, each of which can be summed; as $\ln\sum e^{-E}$
//! is convex in the couplings, the mean over the trees bounds it (Wainwright, Jaakkola & Willsky, IEEE Transactions on
//! Information Theory 51, 2005). All trees at once are messages whose edges have the probability of
//! standing in a tree as their weight ([`super::messages`]); taken over all spanning trees alike it
//! is the effective resistance of the edge, so nothing has to be tuned. The messages
//! have one fixed point, at which the bound is tightest, but it holds for every message, converged or
//! not: what is given is always a bound.

use super::fixed_points::{End, FixedPoints, Iteration, search};
use super::flat::Flat;
use super::messages::{Channels, Rule};
use super::resistance::effective_resistances;
use crate::error::Error;
use crate::graph::{Marginals, Pairwise};
use crate::progress::Listener;

/// The upper bound, and the probabilities that go with it. One start is enough; others are not made.
///
/// # Errors
///
/// If the graph is too large for its resistances, a setting is out of range, memory ends or the listener
/// cancels.
pub fn tree_reweighted(
    graph: &Pairwise,
    iteration: &Iteration,
    listener: &mut dyn Listener,
) -> Result<FixedPoints, Error> {
    let flat = Flat::new(graph)?;
    let weights = effective_resistances(&flat.topology, &flat.edges)?;
    let channels = Channels::new(&flat, &weights, Rule::Sum);
    let run = |start: &super::fixed_points::Start| {
        let mut end: End = channels.run(start);
        end.attempt.log_sum = Some(channels.bound(&end.state));
        end
    };
    let found = search("tree-reweighted messages", iteration, 0, &flat, run, listener)?;
    let pairs = channels.pairs(&found.end.state);
    let best = Marginals {
        log_sum: found.end.attempt.log_sum.unwrap_or(f64::INFINITY),
        nodes: flat.nodes(&found.end.nodes),
        edges: flat.pairs(graph, |edge| pairs[edge].clone()),
    };
    Ok(found.into_fixed_points(best))
}
