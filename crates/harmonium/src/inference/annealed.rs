//! The most probable state by sampling at falling temperature, and by exchange between temperatures.
//!
//! Annealing draws sweeps from $p_\beta(x) \propto e^{-\beta E(x)}$ at rising $\beta$ (Kirkpatrick, Gelatt & Vecchi, Science 220, 1983);
//! tempering lets replicas at many temperatures exchange places, so that the cold ones are renewed for as long as it runs
//! (Swendsen & Wang 1986). Both are the samplers of [`crate::sampling`]; where a chain stands at the end, every unit takes its
//! best state given the others until none moves. Nothing is proved by either.

use super::alternating::{Climber, check_starts};
use super::flat::Flat;
use super::mode::{Mode, Search};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::graph::Pairwise;
use crate::machine::{Base, Clamp, LayerId, Machine, State};
use crate::progress::{Listener, tell};
use crate::random::Stream;
use crate::sampling::{Sampler, Tempering, independent};
use rayon::prelude::*;

/// The coldest and the hottest temperature, in units of the spread of what a unit receives.
const COLD: f64 = 0.1;
const HOT: f64 = 5.0;
/// Sweeps between two reports, and between two looks at the cold replicas.
const TOGETHER: usize = 20;
/// Temperatures of a ladder.
const RUNGS: usize = 24;

/// The best end of `search.starts` chains that are cooled in `search.sweeps` sweeps. All units of `machine` are free
/// and finite.
///
/// # Errors
///
/// If a unit is real, a setting is out of range, memory ends or the listener cancels.
pub fn annealed(
    machine: &Machine,
    search: &Search,
    listener: &mut dyn Listener,
) -> Result<Mode, Error> {
    let place = Place::new(machine, search)?;
    let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
    let stream = Stream::new(search.seed);
    let mut x = independent(machine, &Base::uniform(machine), search.starts, stream.fork(0))?;
    // The temperature falls by the same factor from sweep to sweep.
    let beta = |k: usize| {
        let share = k as f64 / search.sweeps.max(2).saturating_sub(1) as f64;
        1.0 / (place.spread * HOT * (COLD / HOT).powf(share.min(1.0)))
    };
    let betas: Vec<f64> = (0..search.sweeps).map(beta).collect();
    for (k, some) in betas.chunks(TOGETHER).enumerate() {
        sampler.anneal(&Clamp::none(), &mut x, some, stream.fork(1).fork(k as u64))?;
        tell(listener, "annealing", (k * TOGETHER + some.len()) as u64, betas.len() as u64)?;
    }
    place.best(&x, 0..search.starts)
}

/// The best state that the cold end of any of `search.starts` ladders was in, over `search.sweeps` sweeps. All units of
/// `machine` are free and finite.
///
/// # Errors
///
/// As [`annealed`].
pub fn tempered(
    machine: &Machine,
    search: &Search,
    listener: &mut dyn Listener,
) -> Result<Mode, Error> {
    let place = Place::new(machine, search)?;
    // The machine at the coldest temperature; the ladder goes from there to independent units.
    let cold = machine.scaled(1.0 / (COLD * place.spread))?;
    let sampler = Sampler::new(cold.clone(), Arithmetic::F32);
    let stream = Stream::new(search.seed);
    let rung = |k: usize| (COLD / HOT).powf(1.0 - k as f64 / (RUNGS - 1) as f64);
    let betas: Vec<f64> = (0..RUNGS).map(rung).collect();
    let mut ladders =
        Tempering::new(&cold, search.starts, &betas, Base::uniform(&cold), stream.fork(0))?;
    let mut best: Option<Mode> = None;
    let total = search.sweeps.div_ceil(TOGETHER).max(1);
    for k in 0..total {
        ladders.advance(&sampler, TOGETHER, stream.fork(1).fork(k as u64))?;
        let coldest = (1..=search.starts).flat_map(|l| [l * RUNGS - 1, l * RUNGS - 2]);
        let found = place.best(ladders.replicas(), coldest)?;
        best = Mode::best_of(best.into_iter().chain([found]));
        tell(listener, "tempering", k as u64 + 1, total as u64)?;
    }
    best.ok_or(Error::Empty { what: "the search".into() })
}

/// A machine whose best state is sought.
struct Place<'m> {
    machine: &'m Machine,
    graph: Pairwise,
    flat: Flat,
    /// How much the weights of the states of a unit differ, by and large.
    spread: f64,
}

impl<'m> Place<'m> {
    fn new(machine: &'m Machine, search: &Search) -> Result<Self, Error> {
        check_starts(search)?;
        let graph = Pairwise::new(machine, &Clamp::none(), &State::zeros(machine, 1)?, 0)?;
        let flat = Flat::new(&graph)?;
        let spread = flat.spread().max(f64::MIN_POSITIVE.sqrt());
        Ok(Self { machine, graph, flat, spread })
    }

    /// The best of some rows, after every unit has taken its best state given the others.
    fn best(&self, x: &State, rows: impl IntoIterator<Item = usize>) -> Result<Mode, Error> {
        let climber = Climber::new(&self.flat);
        let rows: Vec<usize> = rows.into_iter().collect();
        let one = |&row: &usize| Mode::of(&self.graph, climber.climb(self.states(x, row)));
        let modes: Vec<Mode> = rows.par_iter().map(one).collect();
        Mode::best_of(modes).ok_or(Error::Empty { what: "the search".into() })
    }

    /// The states of the nodes in a row.
    fn states(&self, x: &State, row: usize) -> Vec<usize> {
        let mut states = Vec::with_capacity(self.graph.nodes().len());
        for (l, layer) in self.machine.layers().iter().enumerate() {
            let listed = layer.units.configurations().map_or(Vec::new(), |c| c.0);
            for unit in x.row(LayerId(l), row).chunks_exact(layer.units.group()) {
                states.push(listed.iter().position(|s| s == unit).unwrap_or(0));
            }
        }
        states
    }
}
