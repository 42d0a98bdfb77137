//! How each method is run on what is free.

use super::super::averages::{Wanted, average};
use super::super::given::Given;
use super::{Answer, Approach, Course, Inferring, Side};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::log_partition::{self, Settings};
use crate::exact::{self, Budget, By, Query};
use crate::graph::{BucketTree, Elimination, Marginals, Node, Pairwise, Pieces};
use crate::inference::{
    FixedPoints, Iteration, belief_propagation, mean_field, tap, tree_reweighted,
};
use crate::machine::{Clamp, Layer, Machine, Rest, Role, State};
use crate::models::Body;
use crate::progress::Listener;
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::Sampler;

/// Binary logarithm of the entries that a table of a junction tree may have: half a gigabyte.
pub(in crate::model) const MOST_ENTRIES: f64 = 26.0;
/// Temperatures of annealing where it is one method among many; a tenth as many chains.
const BESIDE_OTHERS: usize = 1000;
/// Binary logarithm of the terms of a junction tree that is tried where nobody asked for it, and where somebody did.
pub(in crate::model) const UNASKED_TERMS: f64 = 31.0;
pub(in crate::model) const ASKED_TERMS: f64 = 35.0;

/// A machine with one row of what is known.
pub(in crate::model) struct Place<'m> {
    pub(in crate::model) machine: &'m Machine,
    clamp: Clamp,
    pub(in crate::model) x: State,
    pub(in crate::model) graph: Pairwise,
    /// The machine of what is free; nothing where nothing is.
    pub(in crate::model) rest: Option<Rest>,
}

impl<'m> Place<'m> {
    pub(in crate::model) fn new(given: &Given<'m>) -> Result<Self, Error> {
        let Body::Machine(machine) = &given.model.body else {
            return Err(Error::Topology {
                model: "inference on the graph of units",
                expected: "one energy over all units",
                found: "a deep belief network has directed layers".into(),
            });
        };
        let (x, clamp) = given.held()?;
        if x.n_rows() != 1 {
            let (what, found) = ("what is given: the number of rows".into(), x.n_rows());
            return Err(Error::Shape { what, expected: 1, found });
        }
        let graph = Pairwise::new(machine, &clamp, &x, 0)?;
        let rest = machine.rest(&clamp, &x, 0)?;
        Ok(Self { machine, clamp, x, graph, rest })
    }

    /// The methods that a question asks.
    pub(super) fn approaches(&self, inferring: &Inferring) -> Result<Vec<Approach>, Error> {
        Ok(match inferring.approach {
            Approach::Auto if self.affords_exact()? => vec![Approach::Exact],
            Approach::Auto => vec![Approach::Ais, Approach::Gibbs],
            Approach::All => {
                let single = Approach::NAMES.iter().map(|(approach, _)| *approach);
                single.filter(|a| !matches!(a, Approach::Auto | Approach::All)).collect()
            }
            approach => vec![approach],
        })
    }

    /// $\ln Z$ of the machine with nothing held, where something is and the sum is affordable.
    pub(super) fn log_total(&self, listener: &mut dyn Listener) -> Result<Option<f64>, Error> {
        let all_free = self.machine.layer_ids().all(|l| self.clamp.frees_layer(l));
        if all_free || !exact::cost_of_partition(self.machine)?.is_within(Budget::UNASKED) {
            return Ok(None);
        }
        exact::log_partition_with(self.machine, listener).map(Some)
    }

    fn cost(&self, query: Query) -> Result<exact::Cost, Error> {
        exact::cost(self.machine, &self.clamp, &self.x, query)
    }

    fn affords_exact(&self) -> Result<bool, Error> {
        Ok(self.cost(Query::Means)?.is_within(Budget::UNASKED))
    }

    pub(super) fn answer(
        &self,
        approach: Approach,
        inferring: &Inferring,
        listener: &mut dyn Listener,
    ) -> Result<Answer, Error> {
        let seed = inferring.annealing.seed;
        let with_seed = |iteration: Iteration| Iteration { seed, ..iteration };
        let messages = with_seed(Iteration::of_messages(&self.graph));
        let unasked = inferring.approach == Approach::All;
        match approach {
            Approach::Auto | Approach::All | Approach::Exact => {
                self.exactly(inferring, unasked, listener)
            }
            Approach::JunctionTree => self.by_junction_tree(inferring, unasked, listener),
            Approach::BeliefPropagation => {
                let found = belief_propagation(&self.graph, &messages, listener)?;
                // On a forest it is the exact algorithm.
                let side = if self.graph.is_forest() { Side::Exact } else { Side::Unknown };
                Ok(iterated(approach, side, found))
            }
            Approach::TreeReweighted => {
                let found = tree_reweighted(&self.graph, &messages, listener)?;
                Ok(iterated(approach, Side::Upper, found))
            }
            Approach::Tap => {
                let found = tap(&self.graph, &with_seed(Iteration::of_tap(&self.graph)), listener)?;
                Ok(iterated(approach, Side::Unknown, found))
            }
            Approach::MeanField => {
                let iteration = with_seed(Iteration::of_mean_field(&self.graph));
                let found = mean_field(&self.graph, &iteration, listener)?;
                Ok(iterated(approach, Side::Lower, found))
            }
            Approach::Gibbs => self.by_gibbs(seed, listener),
            Approach::Ais => self.by_annealing(inferring, listener),
        }
    }

    /// The cheapest exact answer; where nobody asked for it alone, only if it is affordable.
    fn exactly(
        &self,
        inferring: &Inferring,
        unasked: bool,
        listener: &mut dyn Listener,
    ) -> Result<Answer, Error> {
        let cost = self.cost(Query::Means)?;
        let budget = if unasked { Budget::UNASKED } else { Budget::LIMIT };
        if !cost.is_within(budget) {
            return self.in_closed_form(budget, cost.log2_total, listener);
        }
        if inferring.pairs || cost.by == By::Elimination || self.has_levels() {
            let answer = self.by_junction_tree(inferring, unasked, listener)?;
            return Ok(Answer { approach: Approach::Exact, ..answer });
        }
        let log_sum = exact::log_sums_with(self.machine, &self.clamp, &self.x, listener)?[0];
        let means = exact::conditional_means_with(self.machine, &self.clamp, &self.x, listener)?;
        let course = Course::Summed {
            by: Some(By::Enumeration),
            log2_terms: cost.log2_terms,
            bytes: 0.0,
            width: 0,
            recomputed: false,
        };
        let marginals = Marginals {
            log_sum,
            nodes: probabilities(&self.graph, &means),
            edges: vec![Vec::new(); self.graph.edges().len()],
        };
        Ok(exact_answer(Approach::Exact, log_sum, Some(marginals), course))
    }

    /// Whether a free unit has one entry and more than two values, whose probabilities its mean does not say.
    fn has_levels(&self) -> bool {
        self.graph.nodes().iter().any(|node| node.values.len() > 2)
    }

    /// $\ln Z$ of a torus without anything held; an error elsewhere.
    fn in_closed_form(
        &self,
        budget: Budget,
        log2_terms: f64,
        listener: &mut dyn Listener,
    ) -> Result<Answer, Error> {
        let all_free = self.machine.layer_ids().all(|l| self.clamp.frees_layer(l));
        if !(all_free && exact::cost_of_partition(self.machine)?.log2_total == 0.0) {
            budget.check(log2_terms)?;
            // Terms are few, but their tables are large.
            BucketTree::narrower(&self.graph, MOST_ENTRIES)?;
            return Err(Error::TooManyTerms { log2_terms, limit: budget.log2_terms() });
        }
        let log_z = exact::log_partition_with(self.machine, listener)?;
        let course =
            Course::Summed { by: None, log2_terms: 0.0, bytes: 0.0, width: 0, recomputed: false };
        Ok(exact_answer(Approach::Exact, log_z, None, course))
    }

    fn by_junction_tree(
        &self,
        inferring: &Inferring,
        unasked: bool,
        listener: &mut dyn Listener,
    ) -> Result<Answer, Error> {
        let tree = BucketTree::narrower(&self.graph, MOST_ENTRIES)?;
        let limit = if unasked { UNASKED_TERMS } else { ASKED_TERMS };
        let memory = inferring.memory.unwrap_or_else(Elimination::usual_budget);
        let pieces = tree.marginals_within(memory);
        let log2_terms = pieces.as_ref().map_or(tree.log2_terms(), Pieces::log2_terms);
        if log2_terms > limit {
            return Err(Error::TooManyTerms { log2_terms, limit });
        }
        let elimination = Elimination::new(&self.graph, &tree).within(memory);
        let found = elimination.marginals(listener)?;
        self.machine.check_finite("the logarithm of a sum over all states", found.log_sum)?;
        let course = Course::Summed {
            by: Some(By::Elimination),
            log2_terms,
            bytes: pieces.as_ref().map_or(0.0, Pieces::bytes),
            width: tree.width(),
            recomputed: pieces.is_some_and(|p| p.recompute()),
        };
        Ok(exact_answer(Approach::JunctionTree, found.log_sum, Some(found), course))
    }

    /// Probabilities as averages over chains of the machine of what is free.
    fn by_gibbs(&self, seed: u64, listener: &mut dyn Listener) -> Result<Answer, Error> {
        let Some(rest) = &self.rest else { return self.nothing_free(Approach::Gibbs) };
        // Every layer is looked at, so all are visible.
        let layers = rest.machine.layers().iter().cloned();
        let layers = layers.map(|layer| Layer { role: Role::Visible, ..layer });
        let machine = Machine::new(layers.collect(), rest.machine.couplings().to_vec())?;
        let model = Model::from(machine.clone());
        let sampler = Sampler::new(machine, Arithmetic::F32);
        let stream = Stream::new(seed);
        let wanted = Wanted { sweeps: None, draws: 0 };
        let found = average(&sampler, &model.freely(), &[0], wanted, stream, listener)?;
        let mut means = State::zeros(sampler.machine(), 1)?;
        let mut errors = means.clone();
        let mut start = 0;
        for l in sampler.machine().layer_ids() {
            let end = start + sampler.machine().layer(l).len();
            means.set_row(l, 0, &found.means[0][start..end])?;
            errors.set_row(l, 0, &found.errors[0][start..end])?;
            start = end;
        }
        let graph = Pairwise::new(sampler.machine(), &Clamp::none(), &means, 0)?;
        let errors = errors_of(&graph, &errors);
        let marginals = Marginals {
            log_sum: f64::NAN,
            nodes: probabilities(&graph, &means),
            edges: vec![Vec::new(); self.graph.edges().len()],
        };
        let (sweeps, r_hat, mixed) = (found.sweeps, found.r_hat, found.have_mixed());
        Ok(Answer {
            approach: Approach::Gibbs,
            log_z: None,
            side: Side::Unknown,
            // Means of whole numbers are averaged, which say nothing of single values.
            marginals: (!self.has_levels()).then_some(marginals),
            course: Course::Sampled { sweeps, r_hat, mixed, errors },
            largest_error: None,
            seconds: 0.0,
        })
    }

    fn by_annealing(
        &self,
        inferring: &Inferring,
        listener: &mut dyn Listener,
    ) -> Result<Answer, Error> {
        let Some(rest) = &self.rest else { return self.nothing_free(Approach::Ais) };
        let asked = &inferring.annealing;
        let mut settings = Settings {
            method: Some(log_partition::Method::Sandwich),
            means: None,
            ..asked.clone()
        };
        // One method among many gets less work than where it is the only one.
        if inferring.approach == Approach::All && asked.betas.is_none() && asked.chains.is_none() {
            (settings.betas, settings.chains) = (Some(BESIDE_OTHERS), Some(BESIDE_OTHERS / 10));
        }
        let found = log_partition::log_partition(&rest.machine, &settings, listener)?;
        Ok(Answer {
            approach: Approach::Ais,
            log_z: Some(found.log_z),
            side: Side::Unknown,
            marginals: None,
            course: Course::Annealed(Box::new(found)),
            largest_error: None,
            seconds: 0.0,
        })
    }

    /// Where everything is held, every method knows everything.
    fn nothing_free(&self, approach: Approach) -> Result<Answer, Error> {
        let log_sum = self.machine.check_finite("minus the energy", self.graph.constant())?;
        let marginals = Marginals { log_sum, nodes: Vec::new(), edges: Vec::new() };
        let course =
            Course::Summed { by: None, log2_terms: 0.0, bytes: 0.0, width: 0, recomputed: false };
        Ok(exact_answer(approach, log_sum, Some(marginals), course))
    }
}

fn exact_answer(
    approach: Approach,
    log_z: f64,
    marginals: Option<Marginals>,
    course: Course,
) -> Answer {
    let largest_error = marginals.as_ref().map(|_| 0.0);
    Answer {
        approach,
        log_z: Some(log_z),
        side: Side::Exact,
        marginals,
        course,
        largest_error,
        seconds: 0.0,
    }
}

fn iterated(approach: Approach, side: Side, found: FixedPoints) -> Answer {
    let (starts, n_converged) = (found.attempts.len(), found.n_converged());
    let best = found.attempts.iter().find(|a| a.log_sum == Some(found.best.log_sum));
    Answer {
        approach,
        log_z: Some(found.best.log_sum),
        side,
        course: Course::Iterated {
            converged: best.is_some_and(|a| a.converged),
            starts,
            n_converged,
            fixed_points: found.distinct,
            spread: found.spread,
            first: found.attempts[0].log_sum,
        },
        marginals: Some(found.best),
        largest_error: None,
        seconds: 0.0,
    }
}

/// The probabilities of the states of each node, from the means of its entries.
fn probabilities(graph: &Pairwise, means: &State) -> Vec<Vec<f64>> {
    let of = |node: &Node, entries: &[f64]| match node.values[..] {
        [low, high] => {
            let p = (entries[0] - low) / (high - low);
            vec![1.0 - p, p]
        }
        _ => entries.to_vec(),
    };
    by_node(graph, means, of)
}

/// The standard errors of the same probabilities.
fn errors_of(graph: &Pairwise, errors: &State) -> Vec<Vec<f64>> {
    let of = |node: &Node, entries: &[f64]| match node.values[..] {
        [low, high] => vec![entries[0] / (high - low); 2],
        _ => entries.to_vec(),
    };
    by_node(graph, errors, of)
}

/// What `of` makes of the entries of each node in the one row of `x`.
fn by_node(graph: &Pairwise, x: &State, of: impl Fn(&Node, &[f64]) -> Vec<f64>) -> Vec<Vec<f64>> {
    let one = |node: &Node| {
        let group = if node.values.is_empty() { node.n_states() } else { 1 };
        of(node, &x.row(node.layer, 0)[node.unit * group..(node.unit + 1) * group])
    };
    graph.nodes().iter().map(one).collect()
}
