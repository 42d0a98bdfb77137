//! One search for $\ln Z$: what it costs, where it starts, and how it goes on until it has settled.

use super::bases::{self, Floor};
use super::schedule::{self, Schedule};
use super::{Bracket, LogPartition, Method, Settings, Starts, ais, bar, sandwich};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Base, Layer, MOST_STEPS, Machine, State, check_memory};
use crate::progress::{Listener, tell};
use crate::sampling::{Clamp, Collapsed, Sampler};
use harmonium_kernels::random::Stream;
use std::time::Instant;

/// Chains, unless asked for otherwise.
const CHAINS: usize = 100;
/// Temperatures, unless asked for otherwise.
const BETAS: usize = 4000;
/// Rungs of a ladder, unless asked for otherwise: at most as many.
const MOST_RUNGS: f64 = 252.0;
/// Ladders of parallel tempering, unless asked for otherwise.
const LADDERS: usize = 10;
/// How often the work is doubled in search of a width.
const DOUBLINGS: usize = 7;
/// What a sweep of an RBM of 784 by 500 units costs, in parameters: larger machines get less.
const LARGE: f64 = 650_000.0;

/// Counts work and passes it on.
pub(super) struct Report<'a> {
    done: u64,
    total: u64,
    listener: &'a mut dyn Listener,
}

impl Report<'_> {
    /// # Errors
    ///
    /// If the listener wants the work to stop.
    pub(super) fn add(&mut self, sweeps: usize) -> Result<(), Error> {
        self.done += sweeps as u64;
        tell(self.listener, "ln Z", self.done.min(self.total), self.total)
    }

    /// Sweeps of single chains so far.
    pub(super) fn done(&self) -> u64 {
        self.done
    }
}

/// One search for $\ln Z$.
pub(super) struct Search {
    pub(super) sampler: Sampler,
    pub(super) base: Base,
    pub(super) clamp: Clamp,
    pub(super) settings: Settings,
    pub(super) stream: Stream,
    /// How many times as many chains, and temperatures, a small machine gets: a second of work
    /// finds modes that a tenth of it misses.
    ease: usize,
    floor: Floor,
    pub(super) starts: Starts,
}

impl Search {
    pub(super) fn machine(&self) -> &Machine {
        self.sampler.machine()
    }

    pub(super) fn n_betas(&self) -> usize {
        self.settings.betas.unwrap_or(BETAS * self.ease)
    }

    /// Temperatures by which bases are tried, and chains: as many as were asked for at most, which are those
    /// of ladders where ladders are asked for.
    pub(super) fn trial(&self, method: Method) -> (usize, usize) {
        match method {
            Method::Bar => (BETAS * self.ease, bases::CHAINS),
            _ => (self.n_betas(), self.n_chains().min(bases::CHAINS)),
        }
    }

    pub(super) fn n_chains(&self) -> usize {
        self.settings.chains.unwrap_or(CHAINS * self.ease)
    }

    /// Ladders of parallel tempering.
    pub(super) fn n_ladders(&self, method: Method) -> usize {
        match (method, self.settings.chains) {
            (Method::Bar, Some(asked)) => asked,
            _ => LADDERS.min(self.n_chains()),
        }
    }

    /// Sweeps of single chains that parallel tempering takes, unless asked for otherwise: as many
    /// as annealing; `bar` gives each ladder the same, however many are asked for.
    pub(super) fn tempering_sweeps(&self, method: Method) -> usize {
        let usual = match method {
            Method::Bar => CHAINS * BETAS * self.ease * self.n_ladders(method) / LADDERS,
            _ => self.n_chains() * self.n_betas(),
        };
        self.settings.sweeps.unwrap_or(usual)
    }

    /// $\ln p^*(x_K)$ of the machine minus that of the sampler's rounded one: the last step of
    /// chains that were led through rounded machines, and the first of those that go back.
    pub(super) fn rounding(&self, x: &mut State) -> Result<Vec<f64>, Error> {
        let one = vec![1.0; x.n_rows()];
        let mut density = |sampler: &Sampler| {
            let collapsed = Collapsed::new(sampler, &self.base, &self.clamp, x);
            collapsed.map(|mut c| c.log_densities(x, &[&one]).swap_remove(0))
        };
        let rounded = density(&self.sampler)?;
        let exact = density(&Sampler::new(self.machine().clone(), Arithmetic::F64))?;
        Ok(exact.iter().zip(&rounded).map(|(a, b)| a - b).collect())
    }

    pub(super) fn schedule(&self, report: &mut Report<'_>) -> Result<Schedule, Error> {
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
            Method::Bar => pilot + climbing + bar::witnessing(climbing),
            Method::Sandwich if self.starts == Starts::Exact => pilot + 2 * annealing,
            Method::Sandwich => pilot + 2 * annealing + climbing,
        };
        work as u64
    }

    /// One attempt with the settings as they are.
    fn run(&mut self, method: Method, listener: &mut dyn Listener) -> Result<LogPartition, Error> {
        let report = &mut Report { done: 0, total: self.work(method), listener };
        let mut found = match method {
            Method::Exact => super::exactly(self.machine(), &self.settings, report.listener),
            Method::Ais => ais::estimate(self, report),
            Method::Bar => bar::estimate(self, report),
            Method::Sandwich => sandwich::estimate(self, report),
        }?;
        if found.bracket != Bracket::Bound {
            self.floor.hold(&mut found);
        }
        found.check(self.machine())?;
        Ok(found)
    }

    /// Makes ready to search.
    ///
    /// # Errors
    ///
    /// If the means do not fit, memory ends, or the listener cancels.
    pub(super) fn new(
        machine: &Machine,
        settings: &Settings,
        method: Method,
        listener: &mut dyn Listener,
    ) -> Result<Self, Error> {
        let arithmetic = match settings.precision {
            Arithmetic::I16 if !rounds_alike(machine) || method == Method::Bar => Arithmetic::F32,
            arithmetic => arithmetic,
        };
        check_cost(machine, settings, method)?;
        let base = match &settings.means {
            Some(means) => Base::from_visible_means(machine, means)?,
            None => Base::of_biases(machine),
        };
        let mut search = Self {
            sampler: Sampler::new(machine.clone(), arithmetic),
            floor: Floor::NOWHERE,
            base,
            clamp: Clamp::none(),
            settings: settings.clone(),
            stream: Stream::new(settings.seed).fork(0x1062),
            ease: ease(machine),
            starts: match (method, settings.starts) {
                (Method::Sandwich, None) => sandwich::starts(machine)?,
                (_, asked) => asked.unwrap_or(Starts::Tempered),
            },
        };
        let total = search.work(method);
        let mut go_on = || tell(listener, "ln Z", 0, total);
        (search.base, search.floor) = bases::choose(&search, method, &mut go_on)?;
        Ok(search)
    }

    /// Searches until the interval has settled and is as narrow as was asked for, or the budget is
    /// spent. Each attempt starts anew with more work: nothing that was looked at is used again.
    pub(super) fn find(
        &mut self,
        method: Method,
        listener: &mut dyn Listener,
    ) -> Result<LogPartition, Error> {
        let width = self.settings.width;
        let wide = |found: &LogPartition| width.is_some_and(|width| found.width() > width);
        let (mut extensions, mut doublings) = (self.extensions(), DOUBLINGS);
        let mut start = Instant::now();
        let mut found = self.run(method, listener)?;
        loop {
            let before = self.work(method);
            let why = if found.is_unsettled() && extensions > 0 {
                extensions -= 1;
                self.quadruple(&found);
                found.doubts.first().map_or_else(String::new, ToString::to_string)
            } else if let Some(width) = width.filter(|_| wide(&found) && doublings > 0) {
                doublings -= 1;
                self.double(&found);
                format!("the interval is wider than {width} nats after {before} sweeps")
            } else {
                break;
            };
            if check_cost(self.machine(), &self.settings, method).is_err() {
                break;
            }
            let total = self.work(method);
            let seconds = start.elapsed().as_secs_f64() * total as f64 / before.max(1) as f64;
            let most = total.saturating_mul(4_u64.saturating_pow(extensions));
            listener.note(&format!(
                "{why}: once more with {total} sweeps, about {seconds:.0} s; at most {most} at once"
            ));
            start = Instant::now();
            found = self.run(method, listener)?;
        }
        found.width_reached = width.map(|width| found.width() <= width);
        Ok(found)
    }

    /// How often the work may be quadrupled until the interval settles: settings that were asked for
    /// are kept to.
    fn extensions(&self) -> u32 {
        let Settings { betas, chains, sweeps, extensions, .. } = self.settings;
        let usual = if cost(self.machine()) > LARGE { 1 } else { 2 };
        let open = betas.is_none() && chains.is_none() && sweeps.is_none();
        extensions.unwrap_or(if open { usual } else { 0 })
    }

    /// Four times the work: longer ladders; twice as many chains over twice as many temperatures.
    fn quadruple(&mut self, found: &LogPartition) {
        if found.method != Method::Bar {
            self.settings.chains = Some(2 * found.chains);
            self.settings.betas = Some(2 * found.betas);
        }
        if found.method == Method::Bar || self.settings.sweeps.is_some() {
            self.settings.sweeps = Some(4 * self.tempering_sweeps(found.method));
        }
    }

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
    let sweeps = settings.sweeps.map_or(betas * chains, |n| n as f64).min(bar::MOST_KEPT as f64);
    let state = 8.0 * machine.layers().iter().map(Layer::len).sum::<usize>() as f64;
    let bytes = match method {
        Method::Exact => 0.0,
        Method::Ais => chains * (3.0 * state + 64.0) + 32.0 * betas,
        Method::Sandwich => chains * (4.0 * state + 64.0) + 32.0 * betas + 16.0 * sweeps,
        // Rungs are few unless they are asked for.
        Method::Bar => {
            let rungs = settings.betas.map_or(MOST_RUNGS, |n| n as f64);
            chains * rungs * (2.0 * state + 64.0) + 16.0 * bar::MOST_KEPT as f64
        }
    };
    check_memory(bytes, || format!("{chains} chains over {betas} temperatures"))
}

/// A sweep costs about as much as there are parameters, and a unit as much as 200 of them, or 1000
/// where units of a layer wait for each other. No machine gets more work than an RBM of 784 by 500
/// units, nor more than four times as many chains and temperatures.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn ease(machine: &Machine) -> usize {
    (LARGE / cost(machine)).sqrt().clamp(1.0, 4.0) as usize
}

/// Sweeps of single chains that the sums of rows may take beside $\ln Z$: as many as ten searches
/// without extensions, of a machine of this size.
pub(crate) fn sweeps_of_budget(machine: &Machine) -> f64 {
    10.0 * (3 * CHAINS * BETAS) as f64 * LARGE / cost(machine)
}

/// What a sweep costs, in parameters.
fn cost(machine: &Machine) -> f64 {
    let of_units =
        |l| machine.layer(l).bias.len() * if machine.has_lateral(l) { 1000 } else { 200 };
    (machine.n_parameters() + machine.layer_ids().map(of_units).sum::<usize>()) as f64
}

/// Whether a quantised engine has the same weights in both directions, so that it is a machine:
/// samples of real units are multiplied with weights that are not quantised, and so are some of
/// those inside a layer. Bennett's ratio has no step where quantised weights could be made up for.
fn rounds_alike(machine: &Machine) -> bool {
    let bits = machine.layers().iter().all(|l| l.units.bit_coordinates().is_some());
    bits && !machine.layer_ids().any(|l| machine.has_lateral(l))
}
