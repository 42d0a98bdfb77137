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
//! `bound` if they hold however badly the chains mix, `heuristic` if that has to be believed.

mod ais;
mod bar;
mod sandwich;
mod schedule;
mod weights;

pub(crate) use ais::anneal;
pub(crate) use sandwich::Sides;
pub(crate) use weights::Z as MARGIN;

use crate::engine::Arithmetic;
use crate::error::Error;
use crate::exact::{self, Budget};
use crate::machine::{Base, Layer, MOST_STEPS, Machine, State, check_memory};
use crate::progress::{Listener, Work};
use crate::sampling::{Clamp, Collapsed, Sampler, independent};
use harmonium_kernels::random::Stream;
use schedule::Schedule;
use serde::Serialize;

/// Fewest and most temperatures, and most chains, that try a base.
const PILOT_BETAS: (usize, usize) = (8, 200);
const PILOT_CHAINS: usize = 100;
/// Chains, unless asked for otherwise.
const CHAINS: usize = 100;
/// Temperatures, unless asked for otherwise.
const BETAS: usize = 4000;
/// Rungs of a ladder, unless asked for otherwise: at most as many.
const MOST_RUNGS: f64 = 252.0;
/// Ladders of parallel tempering, unless asked for otherwise.
const LADDERS: usize = 20;
/// How often the work is doubled in search of a width.
const DOUBLINGS: usize = 7;

/// How $\ln Z$ is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
            method: Method::Exact,
            effective_samples: None,
            chains: 0,
            betas: 0,
            sweeps: 0,
            starts: None,
            least_swaps: None,
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

    /// How wide the interval is.
    pub fn width(&self) -> f64 {
        self.upper - self.lower
    }
}

/// How far the work is: sweeps of single chains done, and in all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Counts work and passes it on.
struct Report<'a> {
    done: u64,
    total: u64,
    tell: Progress<'a>,
}

impl Report<'_> {
    fn add(&mut self, sweeps: usize) {
        self.done += sweeps as u64;
        (self.tell)(self.done.min(self.total), self.total);
    }
}

/// One search for $\ln Z$.
struct Search {
    sampler: Sampler,
    base: Base,
    clamp: Clamp,
    settings: Settings,
    stream: Stream,
    /// How many times as many chains, and temperatures, a small machine gets: a second of work
    /// finds modes that a tenth of it misses.
    ease: usize,
}

impl Search {
    fn machine(&self) -> &Machine {
        self.sampler.machine()
    }

    fn n_betas(&self) -> usize {
        self.settings.betas.unwrap_or(BETAS * self.ease)
    }

    fn n_chains(&self) -> usize {
        self.settings.chains.unwrap_or(CHAINS * self.ease)
    }

    /// Ladders of parallel tempering.
    fn n_ladders(&self, method: Method) -> usize {
        match (method, self.settings.chains) {
            (Method::Bar, Some(asked)) => asked,
            _ => LADDERS.min(self.n_chains()),
        }
    }

    /// Sweeps of single chains that parallel tempering takes, unless asked for otherwise: as many
    /// as annealing; `bar` gives each ladder the same, however many are asked for.
    fn tempering_sweeps(&self, method: Method) -> usize {
        let usual = match method {
            Method::Bar => CHAINS * BETAS * self.ease * self.n_ladders(method) / LADDERS,
            _ => self.n_chains() * self.n_betas(),
        };
        self.settings.sweeps.unwrap_or(usual)
    }

    /// Of several bases takes the one from which a few chains find the most on average:
    /// $\langle\ln w\rangle$ is below $\ln Z_1/Z_0$ by the divergence of the two directions, whatever
    /// the base. The logarithm of the mean weight is nearer to it, but of so few chains the largest
    /// decides, and it is largest where weights are wild. Nothing of these chains is used again.
    fn choose_base(&mut self) -> Result<(), Error> {
        let bases =
            [self.base.clone(), Base::of_middle(self.machine())?, Base::uniform(self.machine())];
        let n = (self.n_betas() / 20).clamp(PILOT_BETAS.0, PILOT_BETAS.1);
        let n_chains = self.n_chains().min(PILOT_CHAINS);
        let betas: Vec<f64> = (0..n).map(|k| k as f64 / (n - 1) as f64).collect();
        let mut best = f64::NEG_INFINITY;
        for (k, base) in (0..).zip(bases) {
            let stream = self.stream.fork(4).fork(k);
            let mut x = independent(self.machine(), &base, n_chains, stream.fork(0))?;
            let mut collapsed = Collapsed::new(&self.sampler, &base, &self.clamp, &x)?;
            let weights = ais::anneal(&mut collapsed, &mut x, &betas, stream.fork(1), &mut |_| {});
            let mean = weights.iter().sum::<f64>() / n_chains as f64;
            let found = base.log_partition(self.machine()) + mean;
            if found > best {
                (best, self.base) = (found, base);
            }
        }
        Ok(())
    }

    /// $\ln p^*(x_K)$ of the machine minus that of the sampler's rounded one: the last step of
    /// chains that were led through rounded machines, and the first of those that go back.
    fn rounding(&self, x: &mut State) -> Result<Vec<f64>, Error> {
        let one = vec![1.0; x.n_rows()];
        let mut density = |sampler: &Sampler| {
            let collapsed = Collapsed::new(sampler, &self.base, &self.clamp, x);
            collapsed.map(|mut c| c.log_densities(x, &[&one]).swap_remove(0))
        };
        let rounded = density(&self.sampler)?;
        let exact = density(&Sampler::new(self.machine().clone(), Arithmetic::F64))?;
        Ok(exact.iter().zip(&rounded).map(|(a, b)| a - b).collect())
    }

    fn schedule(&self, report: &mut Report<'_>) -> Result<Schedule, Error> {
        schedule::measure(self, report)
    }

    /// About how many sweeps of single chains a method takes.
    fn work(&self, method: Method) -> u64 {
        let annealing = self.n_chains() * (self.n_betas() - 1);
        let climbing = self.tempering_sweeps(method);
        let pilot = schedule::work(self.n_betas());
        let work = match method {
            Method::Exact => 0,
            Method::Ais => pilot + annealing,
            Method::Bar => pilot + climbing,
            Method::Sandwich if sandwich::starts(self) == Starts::Exact => pilot + 2 * annealing,
            Method::Sandwich => pilot + 2 * annealing + climbing,
        };
        work as u64
    }

    fn run(&self, method: Method, tell: Progress<'_>) -> Result<LogPartition, Error> {
        let report = &mut Report { done: 0, total: self.work(method), tell };
        match method {
            Method::Exact => exact::log_partition(self.machine()).map(LogPartition::exactly),
            Method::Ais => ais::estimate(self, report),
            Method::Bar => bar::estimate(self, report),
            Method::Sandwich => sandwich::estimate(self, report),
        }
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

/// Passes the progress of exact sums on.
struct Told<'a>(Progress<'a>);

impl Listener for Told<'_> {
    fn at(&mut self, work: Work<'_>) {
        (self.0)(work.done, work.total);
    }
}

/// $\ln Z$ of a machine.
///
/// ```
/// use harmonium::evaluation::log_partition::{Method, Settings, log_partition};
/// use harmonium::models::Rbm;
/// let rbm = Rbm::binary(6, 4)?;
/// let settings = Settings { method: Some(Method::Sandwich), ..Settings::default() };
/// let found = log_partition(rbm.machine(), &settings, &mut |_, _| {})?;
/// assert!(found.lower <= found.log_z && found.log_z <= found.upper);
/// # Ok::<(), harmonium::Error>(())
/// ```
///
/// # Errors
///
/// If a setting is out of range, the sum diverges or has too many terms, or memory ends.
pub fn log_partition(
    machine: &Machine,
    settings: &Settings,
    progress: Progress<'_>,
) -> Result<LogPartition, Error> {
    settings.check()?;
    exact::check_normalises(machine)?;
    let method = match settings.method {
        Some(method) => method,
        None => choose(machine)?,
    };
    if method == Method::Exact {
        return exactly(machine, settings, &mut Told(progress));
    }
    let arithmetic = match settings.precision {
        Arithmetic::I16 if !rounds_alike(machine) || method == Method::Bar => Arithmetic::F32,
        arithmetic => arithmetic,
    };
    check_cost(machine, settings, method)?;
    let mut search = Search {
        sampler: Sampler::new(machine.clone(), arithmetic),
        base: match &settings.means {
            Some(means) => Base::from_visible_means(machine, means)?,
            None => Base::of_biases(machine),
        },
        clamp: Clamp::none(),
        settings: settings.clone(),
        stream: Stream::new(settings.seed).fork(0x1062),
        ease: ease(machine),
    };
    if settings.means.is_none() {
        search.choose_base()?;
    }
    let mut found = search.run(method, &mut *progress)?;
    found.check(machine)?;
    let Some(width) = settings.width else { return Ok(found) };
    for _ in 0..DOUBLINGS {
        if found.width() <= width {
            break;
        }
        search.double(&found);
        if check_cost(machine, &search.settings, method).is_err() {
            break;
        }
        found = search.run(method, &mut *progress)?;
        found.check(machine)?;
    }
    found.width_reached = Some(found.width() <= width);
    Ok(found)
}

/// Whether the work can be done at all, and fits into memory: chains, temperatures, and what
/// parallel tempering keeps of each sweep.
fn check_cost(machine: &Machine, settings: &Settings, method: Method) -> Result<(), Error> {
    let ease = ease(machine);
    let betas = settings.betas.unwrap_or(BETAS * ease) as f64;
    let chains = settings.chains.unwrap_or(CHAINS * ease) as f64;
    if betas * chains > MOST_STEPS as f64 {
        let (name, n) = match (settings.betas, settings.chains) {
            (Some(n), asked) if asked.is_none_or(|chains| chains < n) => ("betas", n),
            (_, asked) => ("chains", asked.unwrap_or(CHAINS * ease)),
        };
        let range = "so small that chains times temperatures are at most 10^15";
        return Err(Error::Setting { name, value: n.to_string(), range });
    }
    let sweeps = settings.sweeps.map_or(betas * chains, |n| n as f64);
    let state = 8.0 * machine.layers().iter().map(Layer::len).sum::<usize>() as f64;
    let bytes = match method {
        Method::Exact => 0.0,
        Method::Ais => chains * (3.0 * state + 64.0) + 32.0 * betas,
        Method::Sandwich => chains * (4.0 * state + 64.0) + 32.0 * betas + 16.0 * sweeps,
        // Rungs are few unless they are asked for.
        Method::Bar => {
            let rungs = settings.betas.map_or(MOST_RUNGS, |n| n as f64);
            chains * rungs * (2.0 * state + 64.0) + 16.0 * settings.sweeps.unwrap_or(0) as f64
        }
    };
    check_memory(bytes, || format!("{chains} chains over {betas} temperatures"))
}

/// A sweep costs about as much as there are parameters, and a unit as much as 200 of them, or 1000
/// where units of a layer wait for each other. No machine gets more work than an RBM of 784 by 500
/// units, nor more than four times as many chains and temperatures.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn ease(machine: &Machine) -> usize {
    let of_units =
        |l| machine.layer(l).bias.len() * if machine.has_lateral(l) { 1000 } else { 200 };
    let cost = machine.n_parameters() + machine.layer_ids().map(of_units).sum::<usize>();
    (650_000.0 / cost as f64).sqrt().clamp(1.0, 4.0) as usize
}

/// Whether a quantised engine has the same weights in both directions, so that it is a machine:
/// samples of real units are multiplied with weights that are not quantised, and so are some of
/// those inside a layer. Bennett's ratio has no step where quantised weights could be made up for.
fn rounds_alike(machine: &Machine) -> bool {
    let bits = machine.layers().iter().all(|l| l.units.bit_coordinates().is_some());
    bits && !machine.layer_ids().any(|l| machine.has_lateral(l))
}

impl Search {
    /// Twice the work: longer ladders, more chains where the margins are wide, else more
    /// temperatures.
    fn double(&mut self, found: &LogPartition) {
        let noise = 4.0 * found.std_error;
        if found.method == Method::Bar {
            self.settings.sweeps = Some(2 * self.tempering_sweeps(found.method));
        } else if 2.0 * noise > found.width() {
            self.settings.chains = Some(2 * found.chains);
        } else {
            self.settings.betas = Some(2 * found.betas);
        }
    }
}
