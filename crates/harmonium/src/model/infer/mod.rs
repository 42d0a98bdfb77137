//! Inference on the units that are free, by one method or by all of them side by side.
//!
//! Every method answers the same two questions about the machine given what is known: $\ln\sum e^{-E}$ over
//! the free units, and the probabilities of their states. What a value is worth stands beside it: which side it
//! bounds, whether the iteration converged or the chains mixed, and where the exact answer is affordable how far
//! the probabilities are from it.

mod place;
mod told;

pub(super) use place::{ASKED_TERMS, MOST_ENTRIES, Place, UNASKED_TERMS};

use super::given::Given;
use crate::error::Error;
use crate::evaluation::log_partition::{Bracket, LogPartition, Settings};
use crate::exact::By;
use crate::graph::{Marginals, Pairwise};
use crate::machine::LayerId;
use crate::progress::{Listener, Silent};
use crate::run::Model;
use std::collections::BTreeMap;
use std::time::Instant;

/// How free units are inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Approach {
    /// Exactly where that is affordable; else probabilities by Gibbs sampling and $\ln Z$ by annealing.
    #[default]
    Auto,
    /// By every method, side by side.
    All,
    /// By enumeration, junction tree or closed form, whichever is cheapest.
    Exact,
    /// By junction tree, within a budget of memory.
    JunctionTree,
    /// By belief propagation.
    BeliefPropagation,
    /// By tree-reweighted belief propagation: an upper bound.
    TreeReweighted,
    /// By the equations of Thouless, Anderson and Palmer.
    Tap,
    /// By mean field: a lower bound.
    MeanField,
    /// By Gibbs sampling: probabilities alone.
    Gibbs,
    /// By annealed importance sampling from both ends: $\ln Z$ alone.
    Ais,
}

impl Approach {
    /// All of them, by the names they have on the command line.
    pub const NAMES: [(Self, &'static str); 10] = [
        (Self::Auto, "auto"),
        (Self::All, "all"),
        (Self::Exact, "exact"),
        (Self::JunctionTree, "junction-tree"),
        (Self::BeliefPropagation, "bp"),
        (Self::TreeReweighted, "trw"),
        (Self::Tap, "tap"),
        (Self::MeanField, "mean-field"),
        (Self::Gibbs, "gibbs"),
        (Self::Ais, "ais"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(approach, _)| *approach == self).map_or("", |(_, name)| name)
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(approach, _)| *approach)
    }
}

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Inferring {
    /// How.
    pub approach: Approach,
    /// Whether the probabilities of pairs are wanted: exact ones are then sought by junction tree.
    pub pairs: bool,
    /// Bytes that the tables of a junction tree may take; by default a quarter of the memory.
    pub memory: Option<f64>,
    /// How much work annealing does; and the root of all randomness.
    pub annealing: Settings,
}

/// Which side of $\ln\sum e^{-E}$ a value is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It is the value itself.
    Exact,
    /// Below.
    Lower,
    /// Above.
    Upper,
    /// Either.
    Unknown,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    /// A sum over all states.
    Summed {
        /// How; `None` is a closed form.
        by: Option<By>,
        /// Binary logarithm of its terms.
        log2_terms: f64,
        /// Bytes of its tables.
        bytes: f64,
        /// The most units that a table ranges over; 0 if there are no tables.
        width: usize,
        /// Whether tables were made more than once to keep to the memory.
        recomputed: bool,
    },
    /// An iteration.
    Iterated {
        /// Whether the best start reached a fixed point.
        converged: bool,
        /// Starts.
        starts: usize,
        /// Those that reached a fixed point.
        n_converged: usize,
        /// How many different ones.
        fixed_points: usize,
        /// The largest difference between two of them in the probability of a state.
        spread: f64,
        /// What the first start, from units that know nothing, found.
        first: Option<f64>,
    },
    /// Chains.
    Sampled {
        /// Sweeps that were averaged.
        sweeps: usize,
        /// The largest $\hat R$ of units whose error is larger than the one sought.
        r_hat: Option<f64>,
        /// Whether no chain sticks.
        mixed: bool,
        /// The standard error of each probability.
        errors: Vec<Vec<f64>>,
    },
    /// Annealing.
    Annealed(Box<LogPartition>),
    /// Nothing came of it.
    Failed(Error),
}

/// What one method says.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The method.
    pub approach: Approach,
    /// $\ln\sum e^{-E}$ over the free units.
    pub log_z: Option<f64>,
    /// Which side it is on.
    pub side: Side,
    /// Probabilities of units and pairs; of pairs where the method has them.
    pub marginals: Option<Marginals>,
    /// What happened.
    pub course: Course,
    /// The largest difference to an exact probability of a unit, where that is known.
    pub largest_error: Option<f64>,
    /// How long it took.
    pub seconds: f64,
}

impl Answer {
    /// Whether it is the truth.
    pub fn is_exact(&self) -> bool {
        self.side == Side::Exact
    }
}

/// What all methods that were asked say.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    /// The free units: marginals follow its nodes and edges.
    pub graph: Pairwise,
    /// One for each method.
    pub answers: Vec<Answer>,
    /// $\ln p$ of what is given, where it is known exactly; nothing if nothing is given.
    pub log_evidence: Option<f64>,
}

impl Inferred {
    /// The answer about $\ln Z$ to rely on: an exact one, else an annealed interval that has settled; where one method was
    /// asked, its answer.
    pub fn trusted_log_z(&self) -> Option<&Answer> {
        let known = || self.answers.iter().filter(|a| a.log_z.is_some());
        let settled = |a: &&Answer| matches!(&a.course, Course::Annealed(found) if found.bracket != Bracket::Unsettled);
        let exact = known().find(|a| a.is_exact());
        let only = || known().next().filter(|_| self.answers.len() == 1);
        exact.or_else(|| known().find(settled)).or_else(only)
    }

    /// The answer about probabilities to rely on: an exact one, else chains that have mixed, else an iteration with one
    /// fixed point; where one method was asked, its answer.
    pub fn trusted_marginals(&self) -> Option<&Answer> {
        let known = || self.answers.iter().filter(|a| a.marginals.is_some());
        let mixed = |a: &&Answer| matches!(a.course, Course::Sampled { mixed: true, .. });
        let single = |a: &&Answer| {
            let bethe = a.approach == Approach::BeliefPropagation;
            let one = matches!(a.course, Course::Iterated { fixed_points: 1, converged: true, .. });
            bethe && one
        };
        let exact = known().find(|a| a.is_exact());
        let only = || known().next().filter(|_| self.answers.len() <= 2);
        exact.or_else(|| known().find(mixed)).or_else(|| known().find(single)).or_else(only)
    }

    /// The tightest bounds on $\ln\sum e^{-E}$ among the answers that hold for certain.
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        let of = |side: Side| {
            let on = move |a: &&Answer| a.side == side || a.side == Side::Exact;
            self.answers.iter().filter(on).filter_map(|a| a.log_z)
        };
        (of(Side::Lower).reduce(f64::max), of(Side::Upper).reduce(f64::min))
    }
}

impl Model {
    /// Infers all units, nothing being given.
    ///
    /// # Errors
    ///
    /// As [`Given::infer`].
    pub fn infer(&self, approach: Approach) -> Result<Inferred, Error> {
        let inferring = Inferring { approach, ..Inferring::default() };
        self.freely().infer(&inferring, &mut Silent)
    }
}

impl Given<'_> {
    /// Infers the units that are free, given one row of what is known.
    ///
    /// # Errors
    ///
    /// If free units are real, several rows are given, the method that was asked for does not converge or takes too much,
    /// memory ends or the listener cancels. Where all methods are asked, those that fail say so in their answer.
    pub fn infer(
        &self,
        inferring: &Inferring,
        listener: &mut dyn Listener,
    ) -> Result<Inferred, Error> {
        let place = Place::new(self)?;
        let mut answers: Vec<Answer> = Vec::new();
        for approach in place.approaches(inferring)? {
            let started = Instant::now();
            let answer = match place.answer(approach, inferring, listener) {
                Ok(answer) => answer,
                Err(error @ Error::Cancelled { .. }) => return Err(error),
                Err(error) if inferring.approach != Approach::All => return Err(error),
                Err(error) => failed(approach, error),
            };
            answers.push(Answer { seconds: started.elapsed().as_secs_f64(), ..answer });
        }
        let exact = answers.iter().find(|a| a.is_exact() && a.marginals.is_some());
        if let Some(exact) = exact.and_then(|a| a.marginals.clone()) {
            for answer in answers.iter_mut().filter(|a| a.largest_error.is_none()) {
                answer.largest_error = answer.marginals.as_ref().map(|m| largest_error(m, &exact));
            }
        }
        let exact = answers.iter().find(|a| a.is_exact()).and_then(|a| a.log_z);
        let log_evidence = match exact {
            Some(log_sum) => place.log_total(listener)?.map(|log_z| log_sum - log_z),
            None => None,
        };
        Ok(Inferred { graph: place.graph, answers, log_evidence })
    }
}

impl Given<'_> {
    /// The probabilities of the states of every unit, by the numbers of the variables; units that are given are certain.
    ///
    /// # Errors
    ///
    /// If units are real: they have no list of states.
    pub fn by_variable(
        &self,
        inferred: &Inferred,
        marginals: &Marginals,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let machine = self.model.top()?;
        let (x, _) = self.held()?;
        let free: BTreeMap<(usize, usize), &Vec<f64>> = inferred
            .graph
            .nodes()
            .iter()
            .zip(&marginals.nodes)
            .map(|(node, p)| ((node.layer.0, node.unit), p))
            .collect();
        let of = |(l, unit): (LayerId, usize)| {
            if let Some(&p) = free.get(&(l.0, unit)) {
                return Ok(p.clone());
            }
            let units = machine.layer(l).units;
            let states = units
                .configurations()
                .ok_or_else(|| Error::RealUnits { layer: machine.layer(l).name.clone() })?;
            let group = units.group();
            let entries = &x.row(l, 0)[unit * group..(unit + 1) * group];
            Ok(states.0.iter().map(|state| f64::from(u8::from(state == entries))).collect())
        };
        self.model.variables().into_iter().map(of).collect()
    }
}

fn largest_error(found: &Marginals, exact: &Marginals) -> f64 {
    let far = |(a, b): (&Vec<f64>, &Vec<f64>)| {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    found.nodes.iter().zip(&exact.nodes).map(far).fold(0.0, f64::max)
}

fn failed(approach: Approach, error: Error) -> Answer {
    Answer {
        approach,
        log_z: None,
        side: Side::Unknown,
        marginals: None,
        course: Course::Failed(error),
        largest_error: None,
        seconds: 0.0,
    }
}
