//! $\ln Z$, never a bare number: an estimate, its standard error, and an interval.
//!
//! | method | estimate | interval |
//! |---|---|---|
//! | `exact` | enumeration | no width |
//! | `ais` | forward annealing | lower end: a stochastic bound; upper end: the spread of the weights |
//! | `sandwich` | forward and backward annealing, joined | both ends stochastic bounds, if the backward chains start at exact samples |
//! | `bar` | parallel tempering and Bennett's ratio | the spread over independent ladders |
//!
//! `lower` and `upper` hold a one-sided margin of 97.5 % each. `bracket` says what they are:
//! `bound` if they hold however badly the chains mix, `heuristic` if that has to be believed,
//! `unsettled` if something speaks against it ([`Doubt`]). Unless settings say otherwise, an
//! unsettled search is made once more with four times the work, and again, up to its budget.

mod ais;
mod bar;
mod bases;
mod doubts;
mod sandwich;
mod schedule;
mod search;
mod track;
mod weights;

pub(crate) use ais::anneal;
pub(crate) use doubts::APART;
pub use doubts::Doubt;
pub(crate) use sandwich::Sides;
pub(crate) use search::sweeps_of_budget;
pub use track::{ROUNDS as TRACKING_ROUNDS, Tracked, Tracker};
pub(crate) use weights::Z as MARGIN;

use crate::engine::Arithmetic;
use crate::error::Error;
use crate::exact::{self, Budget};
use crate::machine::Machine;
use crate::progress::Listener;
use search::Search;
use serde::{Deserialize, Serialize};

/// How $\ln Z$ is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// By enumeration.
    Exact,
    /// By annealed importance sampling.
    Ais,
    /// By annealing from both sides.
    Sandwich,
    /// By parallel tempering and Bennett's acceptance ratio.
    Bar,
}

/// What an interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bracket {
    /// Both ends are bounds, up to their margins, however badly the chains mix.
    Bound,
    /// An end depends on how well chains mixed.
    Heuristic,
    /// The samples contradict each other or are too few: the interval was widened to hold what they
    /// say, and may still miss.
    Unsettled,
}

impl Bracket {
    /// What an interval is that would be `usual` if nothing spoke against it.
    fn judged(usual: Self, believed: bool) -> Self {
        if believed { usual } else { Self::Unsettled }
    }

    /// What an interval is that was put together from two.
    pub(crate) fn and(self, other: Self) -> Self {
        let either = |bracket| self == bracket || other == bracket;
        [Self::Unsettled, Self::Heuristic].into_iter().find(|&b| either(b)).unwrap_or(Self::Bound)
    }
}

/// Where backward chains start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Starts {
    /// At independent samples of the machine.
    Exact,
    /// At samples of parallel tempering.
    Tempered,
}

/// How much work is done, and from where.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How; `None` is exact where that is affordable, else the sandwich.
    pub method: Option<Method>,
    /// Number of temperatures; for `bar`, of the rungs of a ladder.
    pub betas: Option<usize>,
    /// Number of chains; for `bar`, of ladders.
    pub chains: Option<usize>,
    /// Sweeps of parallel tempering, those of all replicas counted.
    pub sweeps: Option<usize>,
    /// The work is doubled until the interval is no wider than this, in nats.
    pub width: Option<f64>,
    /// Means of the visible units in the training data, one for each entry: where the base is.
    pub means: Option<Vec<f64>>,
    /// Where backward chains start; `None` is at exact samples where they are affordable.
    pub starts: Option<Starts>,
    /// How often the work may be quadrupled until the interval settles; `None` is once or twice, by
    /// the size of the machine, where temperatures, chains and sweeps are left open, else never.
    pub extensions: Option<u32>,
    /// The root of all randomness.
    pub seed: u64,
    /// Numbers the transitions run in; single precision where quantised weights would not do.
    pub precision: Arithmetic,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            method: None,
            betas: None,
            chains: None,
            sweeps: None,
            width: None,
            means: None,
            starts: None,
            extensions: None,
            seed: 0,
            precision: Arithmetic::I16,
        }
    }
}

impl Settings {
    fn check(&self) -> Result<(), Error> {
        let few = |name, value: Option<usize>| match value {
            Some(n) if n < 2 => {
                Err(Error::Setting { name, value: n.to_string(), range: "at least 2" })
            }
            _ => Ok(()),
        };
        few("betas", self.betas)?;
        few("chains", self.chains)?;
        match self.width {
            Some(w) if !(w > 0.0 && w.is_finite()) => {
                Err(Error::Setting { name: "width", value: w.to_string(), range: "positive" })
            }
            _ => Ok(()),
        }
    }
}

/// $\ln Z$ with its standard error and interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogPartition {
    /// The estimate, in nats.
    pub log_z: f64,
    /// Its standard error.
    pub std_error: f64,
    /// Below it with a margin of 97.5 %.
    pub lower: f64,
    /// Above it with a margin of 97.5 %.
    pub upper: f64,
    /// What the two are.
    pub bracket: Bracket,
    /// Why the interval is not settled; empty if it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
    /// How it was found.
    pub method: Method,
    /// $(\sum w)^2/\sum w^2$ of the weights, of the worse side if there are two.
    pub effective_samples: Option<f64>,
    /// Chains, or ladders.
    pub chains: usize,
    /// Temperatures, or rungs.
    pub betas: usize,
    /// Sweeps of all chains together.
    pub sweeps: u64,
    /// Where backward chains started.
    pub starts: Option<Starts>,
    /// The least share of accepted swaps between two rungs; below 0.1 a ladder hardly mixes.
    pub least_swaps: Option<f64>,
    /// Ways of replicas from the hot end of their ladder to the machine and back.
    pub round_trips: Option<u64>,
    /// Whether the width that was asked for was reached.
    pub width_reached: Option<bool>,
}

impl LogPartition {
    /// $\ln Z$ that is known.
    fn exactly(log_z: f64) -> Self {
        Self {
            log_z,
            std_error: 0.0,
            lower: log_z,
            upper: log_z,
            bracket: Bracket::Bound,
            doubts: Vec::new(),
            method: Method::Exact,
            effective_samples: None,
            chains: 0,
            betas: 0,
            sweeps: 0,
            starts: None,
            least_swaps: None,
            round_trips: None,
            width_reached: None,
        }
    }

    /// Refuses numbers that are not finite: nothing could be said with them.
    fn check(&self, machine: &Machine) -> Result<(), Error> {
        for (what, value) in [
            ("ln Z", self.log_z),
            ("the standard error of ln Z", self.std_error),
            ("the lower end of ln Z", self.lower),
            ("the upper end of ln Z", self.upper),
            (
                "the number of chains that the weights count as",
                self.effective_samples.unwrap_or(0.0),
            ),
        ] {
            machine.check_finite(what, value)?;
        }
        Ok(())
    }

    /// Whether something speaks against the interval.
    pub fn is_unsettled(&self) -> bool {
        self.bracket == Bracket::Unsettled
    }

    /// How wide the interval is.
    pub fn width(&self) -> f64 {
        self.upper - self.lower
    }
}

/// The method that is used if none is asked for.
///
/// # Errors
///
/// If the machine cannot be looked at.
pub fn choose(machine: &Machine) -> Result<Method, Error> {
    let affordable = exact::cost_of_partition(machine)?.is_within(Budget::UNASKED);
    Ok(if affordable { Method::Exact } else { Method::Sandwich })
}

/// $\ln Z$ by exact sums, telling how far it is.
pub(crate) fn exactly(
    machine: &Machine,
    settings: &Settings,
    listener: &mut dyn Listener,
) -> Result<LogPartition, Error> {
    settings.check()?;
    exact::check_normalises(machine)?;
    let found = LogPartition::exactly(exact::log_partition_with(machine, listener)?);
    Ok(LogPartition { width_reached: settings.width.map(|_| true), ..found })
}

/// $\ln Z$ of a machine.
///
/// ```
/// use harmonium::evaluation::log_partition::{Method, Settings, log_partition};
/// use harmonium::models::Rbm;
/// use harmonium::progress::Silent;
/// let rbm = Rbm::binary(6, 4)?;
/// let settings = Settings { method: Some(Method::Sandwich), ..Settings::default() };
/// let found = log_partition(rbm.machine(), &settings, &mut Silent)?;
/// assert!(found.lower <= found.log_z && found.log_z <= found.upper);
/// # Ok::<(), harmonium::Error>(())
/// ```
///
/// # Errors
///
/// If a setting is out of range, the sum diverges or has too many terms, memory ends, or the
/// listener cancels.
pub fn log_partition(
    machine: &Machine,
    settings: &Settings,
    listener: &mut dyn Listener,
) -> Result<LogPartition, Error> {
    settings.check()?;
    exact::check_normalises(machine)?;
    let method = match settings.method {
        Some(method) => method,
        None => choose(machine)?,
    };
    if method == Method::Exact {
        return exactly(machine, settings, listener);
    }
    Search::new(machine, settings, method, listener)?.find(method, listener)
}
