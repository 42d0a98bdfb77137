//! Max-product: messages for the most probable state, and what no state can exceed.
//!
//! Belief propagation with the largest term instead of the sum ([`super::messages`]). On a tree it finds the best state; elsewhere a
//! state is read off the messages, node after node, and then improved unit by unit. With the weights of
//! spanning trees the same messages bound the weight of every state from above (Wainwright, Jaakkola & Willsky, IEEE Transactions on
//! Information Theory 51, 2005; Kolmogorov, IEEE Transactions on Pattern Analysis and Machine Intelligence 28, 2006): where the state
//! reaches the bound it is proved to be the best, as it often is for images and other machines whose couplings do not
//! frustrate each other.

use super::alternating::Climber;
use super::fixed_points::Iteration;
use super::flat::Flat;
use super::messages::{Channels, Rule};
use super::mode::Mode;
use super::resistance::effective_resistances;
use crate::error::Error;
use crate::graph::Pairwise;
use crate::progress::{Listener, tell};

/// The best state that the messages lead to, plain and with the weights of spanning trees, and the bound
/// of the latter. It need not converge: a state and a bound are right wherever the messages stop.
///
/// # Errors
///
/// If a setting is out of range, the graph is too large for its resistances, memory ends or the listener cancels.
pub fn max_product(
    graph: &Pairwise,
    iteration: &Iteration,
    listener: &mut dyn Listener,
) -> Result<Mode, Error> {
    iteration.check()?;
    let flat = Flat::new(graph)?;
    let climber = Climber::new(&flat);
    let resistances = effective_resistances(&flat.topology, &flat.edges)?;
    let ones = vec![1.0; flat.edges.len()];
    let mut found = Vec::new();
    let ways: &[&[f64]] = if flat.topology.is_forest() { &[&ones] } else { &[&resistances, &ones] };
    for (k, &weights) in ways.iter().enumerate() {
        let channels = Channels::new(&flat, weights, Rule::Max);
        let messages = channels.run(&iteration.start(0)).state;
        let mode = Mode::of(graph, climber.climb(channels.decode(&messages)));
        // On a forest the weights of spanning trees are 1.
        let bounds = flat.topology.is_forest() || k == 0;
        let upper = if bounds { channels.bound(&messages) } else { f64::INFINITY };
        // Nothing that was reached can be out of reach: what is left is rounding.
        found.push(Mode { upper: upper.max(mode.log_weight), ..mode });
        tell(listener, "max-product", k as u64 + 1, ways.len() as u64)?;
    }
    let upper = found.iter().map(|mode| mode.upper).fold(f64::INFINITY, f64::min);
    let best = Mode::best_of(found).ok_or(Error::Empty { what: "the search".into() })?;
    Ok(Mode { upper: upper.max(best.log_weight), ..best })
}
