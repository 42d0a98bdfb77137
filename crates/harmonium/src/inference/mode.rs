//! The most probable state of all units together, and how sure that is.
//!
//! $$x^* = \arg\max_x p(x) = \arg\min_x E(x)$$
//! The weight of any state that was found is a bound from below, and what no state can exceed is one from
//! above: where the two meet, the state is proved to be the best.

use crate::graph::Pairwise;

/// Two bounds that are no farther apart, relative to their size, have met.
const MET: f64 = 1e-9;

/// How much work a search for the best state does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// Starts of alternating maximisation, or chains of annealing and ladders of tempering.
    pub starts: usize,
    /// Sweeps of each chain.
    pub sweeps: usize,
    /// The root of all randomness.
    pub seed: u64,
}

/// Multiplications that a search may take: about ten seconds.
const WORK: f64 = 1e10;

impl Search {
    /// For alternating maximisation: a thousand starts, fewer on large graphs.
    pub fn of_alternating(graph: &Pairwise) -> Self {
        // Each start settles within some twenty sweeps.
        Self { starts: affordable(graph, 20.0, (20, 1000)), sweeps: 0, seed: 0 }
    }

    /// For annealing: 100 chains of 2000 sweeps, fewer on large graphs.
    pub fn of_annealing(graph: &Pairwise) -> Self {
        let sweeps = affordable(graph, 100.0, (200, 2000));
        Self { starts: 100, sweeps, seed: 0 }
    }

    /// For tempering: 4 ladders of 2000 sweeps, fewer on large graphs.
    pub fn of_tempering(graph: &Pairwise) -> Self {
        let sweeps = affordable(graph, 100.0, (200, 2000));
        Self { starts: 4, sweeps, seed: 0 }
    }
}

/// How often something that looks `times` times at every pair can be done.
fn affordable(graph: &Pairwise, times: f64, (least, most): (usize, usize)) -> usize {
    let states = |u: usize| graph.nodes()[u].n_states() as f64;
    let entries = graph.edges().iter().map(|e| states(e.between.0) * states(e.between.1));
    let sweep = times * entries.sum::<f64>().max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let n = (WORK / sweep).clamp(least as f64, most as f64) as usize;
    n
}

/// The best state that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// The state of each node of the graph.
    pub states: Vec<usize>,
    /// Its $-E$.
    pub log_weight: f64,
    /// What $-E$ of no state exceeds; infinite where nothing is known.
    pub upper: f64,
    /// How often it was sought.
    pub starts: usize,
    /// How often it, or one as good, was found.
    pub hits: usize,
}

impl Mode {
    /// A state that was found once.
    pub(super) fn of(graph: &Pairwise, states: Vec<usize>) -> Self {
        let log_weight = graph.log_weight(&states);
        Self { states, log_weight, upper: f64::INFINITY, starts: 1, hits: 1 }
    }

    /// The best state there is, as an exact method found it.
    pub fn exact(graph: &Pairwise, states: Vec<usize>) -> Self {
        let found = Self::of(graph, states);
        Self { upper: found.log_weight, ..found }
    }

    /// Whether no other state can be better.
    pub fn is_proved(&self) -> bool {
        self.upper - self.log_weight <= MET * (1.0 + self.log_weight.abs())
    }

    /// The better of the two, with the tighter bound.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let upper = self.upper.min(other.upper);
        let best = if other.log_weight > self.log_weight { other } else { self };
        Self { upper, ..best }
    }

    /// The best of several starts, the first of equals.
    pub(super) fn best_of(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut best: Option<Self> = None;
        for found in all {
            best = Some(match best {
                None => found,
                Some(best) => {
                    let slack = MET * (1.0 + best.log_weight.abs());
                    let (starts, sum) = (best.starts + found.starts, best.hits + found.hits);
                    let gain = found.log_weight - best.log_weight;
                    let hits = match gain {
                        g if g > slack => found.hits,
                        g if g < -slack => best.hits,
                        _ => sum,
                    };
                    Self { starts, hits, ..best.or(found) }
                }
            });
        }
        best
    }
}
