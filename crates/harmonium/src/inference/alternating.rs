//! Alternating maximisation: every unit takes its best state given the others, until none moves.
//!
//! $$x_u \leftarrow \arg\max_s f_u(s) + \sum_v g_{uv}(s, x_v)$$
//! Units of one colour do not see each other and move together; for an RBM these are its two sides, in turn
//! (iterated conditional modes: Besag, Journal of the Royal Statistical Society B 48, 1986; on a machine of spins the recall of a
//! Hopfield network). Each move raises the weight, so it ends at a state that no single unit can
//! improve. From many random starts the best of these is often the best of all.

use super::flat::{Flat, largest};
use super::mode::{Mode, Search};
use crate::error::Error;
use crate::graph::Pairwise;
use crate::progress::{Listener, tell};
use crate::random::{Site, Stream};
use rayon::prelude::*;

/// Starts between two reports.
const TOGETHER: usize = 64;

/// The best state of `search.starts` random starts.
///
/// # Errors
///
/// If there is no start, memory ends or the listener cancels.
pub fn alternating(
    graph: &Pairwise,
    search: &Search,
    listener: &mut dyn Listener,
) -> Result<Mode, Error> {
    check_starts(search)?;
    let flat = Flat::new(graph)?;
    let climber = Climber::new(&flat);
    let stream = Stream::new(search.seed);
    let mut found: Vec<Mode> = Vec::new();
    for first in (0..search.starts).step_by(TOGETHER) {
        let some = first..search.starts.min(first + TOGETHER);
        let one = |k: usize| {
            let any = |u: usize| {
                let n = flat.n_states[u] as f64;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "below n"
                )]
                let state = (n * stream.uniform(Site::new(k, 0, 0), u)) as usize;
                state.min(flat.n_states[u] - 1)
            };
            let states = (0..flat.n_nodes()).map(any).collect();
            Mode::of(graph, climber.climb(states))
        };
        let modes: Vec<Mode> = some.clone().into_par_iter().map(one).collect();
        found = Mode::best_of(found.into_iter().chain(modes)).into_iter().collect();
        tell(listener, "alternating maximisation", some.end as u64, search.starts as u64)?;
    }
    found.pop().ok_or(Error::Empty { what: "the search".into() })
}

pub(super) fn check_starts(search: &Search) -> Result<(), Error> {
    if search.starts == 0 {
        return Err(Error::Setting { name: "starts", value: "0".into(), range: "at least 1" });
    }
    Ok(())
}

/// Brings states to where no unit alone can improve them.
pub(super) struct Climber<'a> {
    flat: &'a Flat,
    colours: Vec<Vec<usize>>,
}

impl<'a> Climber<'a> {
    pub(super) fn new(flat: &'a Flat) -> Self {
        Self { flat, colours: flat.topology.colours() }
    }

    pub(super) fn climb(&self, mut states: Vec<usize>) -> Vec<usize> {
        let flat = self.flat;
        // What each state of each node would weigh, given the others.
        let mut weights = flat.fields.clone();
        for (edge, &(u, v)) in flat.edges.iter().enumerate() {
            for s in 0..flat.n_states[u] {
                weights[flat.starts[u] + s] += flat.pair(edge, u, (s, states[v]));
            }
            for t in 0..flat.n_states[v] {
                weights[flat.starts[v] + t] += flat.pair(edge, v, (t, states[u]));
            }
        }
        let mut moved = true;
        while moved {
            moved = false;
            for &u in self.colours.iter().flatten() {
                let mine = &weights[flat.states(u)];
                let (before, after) = (states[u], largest(mine));
                // Sums that were changed many times are not exact: a gain that small is none.
                let gain = mine[after] - mine[before];
                if gain <= 1e-12 * (1.0 + mine[after].abs()) {
                    continue;
                }
                moved = true;
                states[u] = after;
                for link in flat.topology.links(u) {
                    let v = link.node;
                    for t in 0..flat.n_states[v] {
                        let change = flat.pair(link.edge, v, (t, after))
                            - flat.pair(link.edge, v, (t, before));
                        weights[flat.starts[v] + t] += change;
                    }
                }
            }
        }
        states
    }
}
