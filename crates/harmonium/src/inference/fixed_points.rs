//! Iterations that are started several times, and what came of them.

use super::flat::Flat;
use crate::error::Error;
use crate::graph::{Marginals, Pairwise};
use crate::progress::{Listener, tell};
use crate::random::{Site, Stream};
use rayon::prelude::*;

/// Entries of tables that all starts of a method may look at together: some ten seconds.
const WORK: f64 = 8e8;
/// Starts that are made at one time.
const TOGETHER: usize = 8;
/// Probabilities of two fixed points that differ by less are one.
const SAME: f64 = 1e-4;

/// In which order messages are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Node after node, outwards and back again; each hears what was said before it in the same sweep.
    #[default]
    Sequential,
    /// All at once, from what was said in the sweep before.
    Parallel,
}

/// How an iteration runs, and how often it is started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// How much of the old value is kept at each step. Every other random start keeps more: a fifth
    /// of the step is left.
    pub damping: f64,
    /// A fixed point is reached where nothing would move by more than this.
    pub tolerance: f64,
    /// Sweeps after which the first start ends in any case.
    pub max_sweeps: usize,
    /// The same for random starts.
    pub max_sweeps_of_random: usize,
    /// Random starts after the first, which is from units that know nothing.
    pub random_starts: usize,
    /// The root of all randomness.
    pub seed: u64,
    /// The order of messages.
    pub schedule: Schedule,
}

impl Iteration {
    /// For messages: belief propagation and its relatives.
    pub fn of_messages(graph: &Pairwise) -> Self {
        Self::within(graph, Self::new(0.5, 20), (20_000, 4000))
    }

    /// For mean field.
    pub fn of_mean_field(graph: &Pairwise) -> Self {
        Self::within(graph, Self::new(0.0, 50), (20_000, 4000))
    }

    /// For TAP.
    pub fn of_tap(graph: &Pairwise) -> Self {
        Self::within(graph, Self::new(0.7, 20), (20_000, 4000))
    }

    fn new(damping: f64, random_starts: usize) -> Self {
        Self {
            damping,
            tolerance: 1e-11,
            max_sweeps: 0,
            max_sweeps_of_random: 0,
            random_starts,
            seed: 0,
            schedule: Schedule::Sequential,
        }
    }

    /// As many sweeps and starts as the size of the graph allows.
    fn within(graph: &Pairwise, wanted: Self, (first, random): (usize, usize)) -> Self {
        let states = |u: usize| graph.nodes()[u].n_states() as f64;
        let entries = graph.edges().iter().map(|e| states(e.between.0) * states(e.between.1));
        let sweep = entries.sum::<f64>().max(graph.nodes().len() as f64).max(1.0);
        let affordable = |share: f64, most: usize| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            let n = (share * WORK / sweep).clamp(0.0, most as f64) as usize;
            n
        };
        let max_sweeps = affordable(0.5, first).max(100);
        let max_sweeps_of_random = affordable(0.5, random).max(100);
        let random_starts =
            affordable(0.5 / max_sweeps_of_random as f64, wanted.random_starts).max(2);
        Self { max_sweeps, max_sweeps_of_random, random_starts, ..wanted }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let range = |name, value: String, range| Err(Error::Setting { name, value, range });
        if !(0.0..1.0).contains(&self.damping) {
            return range("damping", self.damping.to_string(), "at least 0, below 1");
        }
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            return range("tolerance", self.tolerance.to_string(), "positive");
        }
        if self.max_sweeps == 0 {
            return range("max-sweeps", "0".into(), "at least 1");
        }
        Ok(())
    }

    /// How start number `k` runs.
    pub(super) fn start(&self, k: usize) -> Start {
        let random = k > 0;
        let damping = if random && k.is_multiple_of(2) {
            1.0 - 0.2 * (1.0 - self.damping)
        } else {
            self.damping
        };
        Start {
            damping,
            tolerance: self.tolerance,
            max_sweeps: if random { self.max_sweeps_of_random } else { self.max_sweeps },
            schedule: self.schedule,
            noise: random.then(|| Stream::new(self.seed).fork(k as u64)),
            tilted: k % 3 == 1,
        }
    }
}

/// One start of an iteration.
#[derive(Clone, Copy)]
pub(super) struct Start {
    pub(super) damping: f64,
    pub(super) tolerance: f64,
    pub(super) max_sweeps: usize,
    pub(super) schedule: Schedule,
    noise: Option<Stream>,
    tilted: bool,
}

impl Start {
    /// Where entry `i` of what is iterated starts, as a logarithm, if it is about the state `state` of a
    /// node: at 0, or anywhere near it. Some starts favour the same states at all nodes, which finds the
    /// ordered phases of a ferromagnet.
    pub(super) fn log(&self, i: usize, state: usize) -> f64 {
        let Some(stream) = self.noise else { return 0.0 };
        let anywhere = |lane: usize, i: usize| 6.0 * stream.uniform(Site::new(0, 0, lane), i) - 3.0;
        anywhere(0, i) + if self.tilted { anywhere(1, state) } else { 0.0 }
    }
}

/// What one start of an iteration did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// Whether it reached a fixed point.
    pub converged: bool,
    /// Sweeps it made.
    pub sweeps: usize,
    /// The largest change that was left in its last sweep.
    pub change: f64,
    /// What it says of $\ln\sum e^{-E}$; `None` where that means nothing, as it does not converge.
    pub log_sum: Option<f64>,
}

/// The fixed points that an iteration found.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedPoints {
    /// The one with the largest value.
    pub best: Marginals,
    /// All starts, the first of them from units that know nothing.
    pub attempts: Vec<Attempt>,
    /// How many different ones there are.
    pub distinct: usize,
    /// How far they are apart: the largest difference between what two of them say of a state.
    pub spread: f64,
}

impl FixedPoints {
    /// Starts that reached a fixed point.
    pub fn n_converged(&self) -> usize {
        self.attempts.iter().filter(|a| a.converged).count()
    }
}

/// Where a start ended.
pub(super) struct End {
    pub(super) attempt: Attempt,
    /// Probabilities of all nodes.
    pub(super) nodes: Vec<f64>,
    /// What the rest follows from: messages, or the same probabilities.
    pub(super) state: Vec<f64>,
}

/// The best end of all starts.
pub(super) struct Best {
    pub(super) attempts: Vec<Attempt>,
    pub(super) end: End,
    distinct: usize,
    spread: f64,
}

impl Best {
    pub(super) fn into_fixed_points(self, best: Marginals) -> FixedPoints {
        let Self { attempts, distinct, spread, .. } = self;
        FixedPoints { best, attempts, distinct, spread }
    }
}

/// Runs the first start and `n_random` others; of ends that have a value the one with the largest.
pub(super) fn search(
    method: &'static str,
    iteration: &Iteration,
    n_random: usize,
    flat: &Flat,
    run: impl Fn(&Start) -> End + Sync,
    listener: &mut dyn Listener,
) -> Result<Best, Error> {
    iteration.check()?;
    let total = n_random + 1;
    let mut attempts = Vec::with_capacity(total);
    let mut best: Option<End> = None;
    let mut points: Vec<Vec<f64>> = Vec::new();
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for first in (0..total).step_by(TOGETHER) {
        let some = first..total.min(first + TOGETHER);
        let ends: Vec<End> =
            some.clone().into_par_iter().map(|k| run(&iteration.start(k))).collect();
        for end in ends {
            attempts.push(end.attempt);
            let Some(value) = end.attempt.log_sum.filter(|v| v.is_finite()) else { continue };
            if end.attempt.converged {
                widen(&mut low, &end.nodes, f64::min);
                widen(&mut high, &end.nodes, f64::max);
                if points.iter().all(|point| far(point, &end.nodes) > SAME) {
                    points.push(end.nodes.clone());
                }
            }
            if best.as_ref().is_none_or(|b| b.attempt.log_sum.is_none_or(|b| value > b)) {
                best = Some(end);
            }
        }
        tell(listener, method, some.end as u64, total as u64)?;
    }
    let Some(end) = best else { return Err(not_converged(method, flat, &attempts)) };
    Ok(Best { attempts, end, distinct: points.len(), spread: far(&low, &high) })
}

fn widen(bound: &mut Vec<f64>, point: &[f64], choose: fn(f64, f64) -> f64) {
    if bound.is_empty() {
        bound.extend_from_slice(point);
    }
    bound.iter_mut().zip(point).for_each(|(b, p)| *b = choose(*b, *p));
}

fn far(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn not_converged(method: &'static str, flat: &Flat, attempts: &[Attempt]) -> Error {
    let least = attempts.iter().map(|a| a.change).fold(f64::INFINITY, f64::min);
    Error::NotConverged {
        method,
        starts: attempts.len(),
        sweeps: attempts.iter().map(|a| a.sweeps).max().unwrap_or(0),
        change: least,
        n_units: flat.n_nodes(),
    }
}
