//! Trajectory tempering: the machine that learns exchanges samples with frozen earlier ones.
//!
//! The ladder does not lead to higher temperatures but back along the training. Its lowest rung is
//! the factorised machine that training started from, whose samples are exact; above it stand
//! machines as they were when they were frozen, each with a reservoir of its samples. In a round
//!
//! 1. one pair of neighbouring rungs exchanges a block of samples, and the upper one sweeps its
//!    block. Pairs take turns from below, with the same block, so that a sample can climb from the
//!    exact end to the top in one pass;
//! 2. the chains of the machine that learns exchange with a block of the highest rung.
//!
//! Two samples change places with probability
//! $$\min\Bigl(1, \frac{p_1(x_0)\,p_0(x_1)}{p_0(x_0)\,p_1(x_1)}\Bigr),$$
//! which leaves the joint distribution of all samples where it is (Béreux, Decelle, Furtlehner, Rosset
//! & Seoane 2025; its use for learning: arXiv 2607.27077). $x$ is what is left of a state when the
//! layers that a sweep visits first are summed out (`marginal.rs`).
//!
//! The ratios of exchanges also tell $\ln Z_1/Z_0$ of neighbours (`bridge.rs`), so that the sum
//! along the ladder, from the lowest rung in closed form, is $\ln Z$ of the machine that learns.

use super::bridge::{Bridge, Seen, acceptance, spread};
use super::chains::independent;
use super::marginal::Marginal;
use super::{Clamp, Sampler, bennett};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Base, Layer, Machine, State, check_memory};
use crate::units::binary::logistic;
use harmonium_kernels::random::{Site, Stream};
use serde::Serialize;

/// Sweeps between two blocks of a new reservoir, as a multiple of those between two exchanges: a
/// block should not repeat the one before it.
const FILLING: usize = 4;
/// Sweeps of copies of the chains before they say something about $\ln Z$: the machine has moved
/// since the chains did.
const CATCHING_UP: usize = 2;
/// How often the way to a machine that the factorised one does not reach is halved to find the next
/// rung.
const HALVINGS: usize = 6;
/// Of the way that is left, what is gone in one step at the end.
const NEARLY_THERE: f64 = 1e-3;

/// Passes of a block that settle a ladder, for each square of its length.
const PASSES: f64 = 2.0;

/// $\ln Z$ along a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrackedLogPartition {
    /// The estimate, in nats.
    pub log_z: f64,
    /// Its standard error: by the spread of independent columns of chains, or, where that is more, by
    /// how far samples drifted while reservoirs were filled, or by how far later exchanges moved it.
    pub std_error: f64,
    /// Frozen machines between the factorised one and this one.
    pub rungs: usize,
    /// The share of exchanges between the last of them and this one that are accepted.
    pub acceptance: f64,
    /// Whether there were rounds enough for samples to come through from the exact end. Elsewhere all
    /// samples may lag behind their machines alike, which no error bar knows of.
    pub is_settled: bool,
}

/// How many samples of each frozen machine there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Chains, and rows of a block.
    pub(crate) columns: usize,
    /// Blocks of a reservoir.
    pub(crate) blocks: usize,
}

/// The factorised machine at the lower end.
#[derive(Clone, Debug)]
struct Ground {
    base: Base,
    sampler: Sampler,
    marginal: Marginal,
}

/// A frozen machine with its samples.
#[derive(Clone, Debug)]
pub(crate) struct Rung {
    sampler: Sampler,
    marginal: Marginal,
    pub(crate) blocks: Vec<State>,
    /// What it and the rung below saw of each other.
    pub(crate) bridge: Bridge,
}

impl Rung {
    /// A frozen machine as it was stored.
    pub(crate) fn stored(
        machine: Machine,
        arithmetic: Arithmetic,
        blocks: Vec<State>,
        bridge: Bridge,
    ) -> Result<Self, Error> {
        let marginal = Marginal::of(&machine)?;
        Ok(Self { sampler: Sampler::new(machine, arithmetic), marginal, blocks, bridge })
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &Machine {
        self.sampler.machine()
    }
}

/// Frozen machines, and where the next round is.
#[derive(Clone, Debug)]
pub(crate) struct Trajectory {
    extent: Extent,
    arithmetic: Arithmetic,
    ground: Ground,
    rungs: Vec<Rung>,
    /// Rounds done.
    rounds: u64,
    /// The rung and the block that exchange next with the rung below.
    place: (usize, usize),
}

impl Trajectory {
    /// The lower end alone: `machine` without its couplings, but for those between Gaussian units.
    pub(crate) fn new(
        machine: &Machine,
        base: Base,
        extent: Extent,
        arithmetic: Arithmetic,
    ) -> Result<Self, Error> {
        let ground = machine.temper(&base, 0.0)?;
        let marginal = Marginal::of(&ground)?;
        let ground = Ground { base, sampler: Sampler::new(ground, arithmetic), marginal };
        Ok(Self { extent, arithmetic, ground, rungs: Vec::new(), rounds: 0, place: (0, 0) })
    }

    /// Climbs from the factorised machine to `machine`, where that is farther than one exchange by
    /// way of machines in between, $(1-\beta)E_0 + \beta E$. Neighbours accept a share of about
    /// `wanted`. Returns samples of the machine, one for each column.
    pub(crate) fn reach(
        &mut self,
        machine: &Machine,
        wanted: f64,
        k: usize,
        stream: Stream,
    ) -> Result<State, Error> {
        let mut x = self.draw(stream.fork(0))?;
        let mut beta = 0.0;
        let mut step = 0;
        while beta < 1.0 {
            step += 1;
            let stream = stream.fork(step);
            beta = self.next(machine, beta, wanted)?;
            let between = machine.temper(&self.ground.base, beta)?;
            // The samples are those of the rung below: they settle before they are kept.
            self.push(between, &mut x, self.extent.blocks, k, stream)?;
        }
        Ok(x)
    }

    /// The largest inverse temperature up to 1 whose machine should accept a share of `wanted`, judged
    /// by the samples of the highest rung and their importance weights.
    fn next(&mut self, machine: &Machine, from: f64, wanted: f64) -> Result<f64, Error> {
        let mut samples = match self.rungs.last() {
            Some(rung) => rung.blocks[0].clone(),
            None => self.draw(Stream::new(0).fork(from.to_bits()))?,
        };
        let (low, marginal) = self.top();
        let below = marginal.log_densities(low, &mut samples);
        let mut share = 1.0;
        for _ in 0..HALVINGS {
            let beta = from + share * (1.0 - from);
            let sampler = Sampler::new(machine.temper(&self.ground.base, beta)?, self.arithmetic);
            let above = Marginal::of(sampler.machine())?.log_densities(&sampler, &mut samples);
            let u: Vec<f64> = above.iter().zip(&below).map(|(a, b)| a - b).collect();
            let most = u.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = u.iter().map(|u| (u - most).exp()).collect();
            if acceptance(&u, &u, &weights) >= wanted {
                break;
            }
            share *= 0.5;
        }
        let beta = from + share * (1.0 - from);
        Ok(if 1.0 - beta < NEARLY_THERE { 1.0 } else { beta })
    }

    /// The highest rung, with its weights.
    fn top(&self) -> (&Sampler, &Marginal) {
        match self.rungs.last() {
            Some(rung) => (&rung.sampler, &rung.marginal),
            None => (&self.ground.sampler, &self.ground.marginal),
        }
    }

    /// Freezes the machine of `sampler`, whose chains are `x`; they go on from where they then are.
    pub(crate) fn freeze(
        &mut self,
        sampler: &Sampler,
        x: &mut State,
        k: usize,
        stream: Stream,
    ) -> Result<(), Error> {
        // The machine has moved while the chains followed: they settle before they are kept.
        self.push(sampler.machine().clone(), x, self.extent.blocks, k, stream)
    }

    /// Adds a rung. Its reservoir is filled with what `x` passes through, after `settling` rounds.
    fn push(
        &mut self,
        machine: Machine,
        x: &mut State,
        settling: usize,
        k: usize,
        stream: Stream,
    ) -> Result<(), Error> {
        self.check_room(&machine)?;
        let marginal = Marginal::of(&machine)?;
        let sampler = Sampler::new(machine, self.arithmetic);
        let (mut blocks, mut seen) = (Vec::new(), Vec::new());
        let n_blocks = self.extent.blocks;
        for round in 0..settling + n_blocks {
            let stream = stream.fork(round as u64);
            let mut fresh =
                if self.rungs.is_empty() { Some(self.draw(stream.fork(0))?) } else { None };
            let (low, low_marginal, block) = match self.rungs.last_mut() {
                Some(rung) => {
                    let block = &mut rung.blocks[round % n_blocks];
                    (&rung.sampler, &rung.marginal, Some(block))
                }
                None => (&self.ground.sampler, &self.ground.marginal, fresh.as_mut()),
            };
            let Some(block) = block else { continue };
            let found =
                exchange((&sampler, &marginal, x), (low, low_marginal, block), stream.fork(1));
            sampler.gibbs(&Clamp::none(), x, FILLING * k, stream.fork(2))?;
            if round >= settling {
                seen.push(found);
                blocks.push(x.clone());
            }
        }
        self.rungs.push(Rung { sampler, marginal, blocks, bridge: Bridge::new(&seen) });
        Ok(())
    }

    /// Whether there is room for another rung: its parameters, their layout, and its samples.
    fn check_room(&self, machine: &Machine) -> Result<(), Error> {
        let entries: usize = machine.layers().iter().map(Layer::len).sum();
        let rows = (self.extent.columns * self.extent.blocks) as f64;
        let one = 24.0 * machine.n_parameters() as f64 + rows * entries as f64 * 8.0;
        let n = self.rungs.len() + 1;
        check_memory(n as f64 * one, || format!("{n} frozen machines with their samples"))
    }

    /// One round: a pair of rungs exchanges and sweeps, then the chains `x` exchange with the highest
    /// rung. Returns the share of exchanges that the chains accept.
    pub(crate) fn round(
        &mut self,
        sampler: &Sampler,
        x: &mut State,
        k: usize,
        stream: Stream,
    ) -> Result<f64, Error> {
        self.climb(k, stream.fork(0))?;
        let turn = usize::try_from(self.rounds % self.extent.blocks as u64).unwrap_or(0);
        self.rounds += 1;
        let marginal = Marginal::up_to_constant(sampler)?;
        let Some(rung) = self.rungs.last_mut() else { return Ok(1.0) };
        let low = (&rung.sampler, &rung.marginal, &mut rung.blocks[turn]);
        Ok(exchange((sampler, &marginal, x), low, stream.fork(1)).acceptance())
    }

    /// Lets the next pair of rungs exchange a block, and the upper one sweep it.
    fn climb(&mut self, k: usize, stream: Stream) -> Result<(), Error> {
        let (at, block) = self.place;
        let mut fresh = if at == 0 { Some(self.draw(stream.fork(0))?) } else { None };
        let (below, above) = self.rungs.split_at_mut(at);
        let Some(rung) = above.first_mut() else { return Ok(()) };
        let low = match (below.last_mut(), &mut fresh) {
            (Some(low), _) => (&low.sampler, &low.marginal, &mut low.blocks[block]),
            (None, Some(x)) => (&self.ground.sampler, &self.ground.marginal, x),
            (None, None) => return Ok(()),
        };
        let x = &mut rung.blocks[block];
        let seen = exchange((&rung.sampler, &rung.marginal, x), low, stream.fork(1));
        rung.bridge.add(&seen);
        rung.sampler.gibbs(&Clamp::none(), x, k, stream.fork(2))?;
        self.place = if at + 1 < self.rungs.len() {
            (at + 1, block)
        } else {
            (0, (block + 1) % self.extent.blocks)
        };
        Ok(())
    }

    /// Exact samples of the factorised machine, one for each column.
    fn draw(&self, stream: Stream) -> Result<State, Error> {
        independent(self.ground.sampler.machine(), &self.ground.base, self.extent.columns, stream)
    }

    /// $\ln Z$ of the machine of `sampler`, whose chains are `x`.
    pub(crate) fn log_partition(
        &self,
        sampler: &Sampler,
        x: &State,
    ) -> Result<TrackedLogPartition, Error> {
        // Quantised weights would shift energies by more than the error.
        let arithmetic = self.arithmetic;
        let sampler = Sampler::new(sampler.machine().clone(), arithmetic);
        let marginal = Marginal::of(sampler.machine())?;
        let mut x = x.clone();
        let stream = Stream::new(self.rounds).fork(0x7474);
        sampler.gibbs(&Clamp::none(), &mut x, CATCHING_UP, stream)?;
        let mut influence = vec![0.0; self.extent.columns];
        let ratios = self.rungs.iter().map(|rung| rung.bridge.log_ratio(&mut influence));
        let ratios: f64 = ratios.sum();
        let mut log_z = self.ground.base.log_partition(self.ground.sampler.machine()) + ratios;
        let (low, low_marginal) = self.top();
        let u = |mut x: State| -> Vec<f64> {
            let above = marginal.log_densities(&sampler, &mut x);
            let below = low_marginal.log_densities(low, &mut x);
            above.iter().zip(below).map(|(a, b)| a - b).collect()
        };
        let backward = u(x);
        let blocks = self.rungs.last().map_or(&[][..], |rung| &rung.blocks);
        let forward: Vec<f64> = blocks.iter().flat_map(|block| u(block.clone())).collect();
        let ratio = bennett(&forward, &backward);
        let shift = (forward.len() as f64 / backward.len() as f64).ln();
        for row in forward.chunks_exact(self.extent.columns) {
            for (i, u) in influence.iter_mut().zip(row) {
                *i += logistic(u - ratio.log - shift) / ratio.slope;
            }
        }
        for (i, u) in influence.iter_mut().zip(&backward) {
            *i -= logistic(ratio.log - u + shift) / ratio.slope;
        }
        log_z += ratio.log;
        let acceptance = acceptance(&forward, &backward, &vec![1.0; backward.len()]);
        // Half of what lies between two halves has the standard deviation of their mean.
        let drift = 0.5 * self.rungs.iter().map(|rung| rung.bridge.drift).sum::<f64>();
        // Later exchanges that disagree with the first ones say that those had not settled.
        let moved = ratios - self.rungs.iter().map(|rung| rung.bridge.reference).sum::<f64>();
        let std_error = spread(&influence).max(drift.abs()).max(moved.abs());
        let (rungs, is_settled) = (self.rungs.len(), self.is_settled());
        Ok(TrackedLogPartition { log_z, std_error, rungs, acceptance, is_settled })
    }

    /// Whether every block had passes enough to diffuse from end to end: $n$ rungs take about $n^2$ of
    /// them, twice as many where a third to a half of the exchanges are accepted.
    fn is_settled(&self) -> bool {
        let (n, blocks) = (self.rungs.len() as f64, self.extent.blocks as f64);
        self.rounds as f64 >= PASSES * n * n * n * blocks
    }

    /// The machine that was frozen last, and the block of its samples whose turn it is.
    pub(crate) fn last(&self) -> Option<(&Machine, &State)> {
        let turn = usize::try_from(self.rounds % self.extent.blocks as u64).unwrap_or(0);
        self.rungs.last().map(|rung| (rung.machine(), &rung.blocks[turn]))
    }

    /// The machine at the lower end.
    pub(crate) fn ground(&self) -> &Machine {
        self.ground.sampler.machine()
    }

    pub(crate) fn base(&self) -> &Base {
        &self.ground.base
    }

    pub(crate) fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// Rounds done, and the rung and the block that are next.
    pub(crate) fn counters(&self) -> [u64; 3] {
        [self.rounds, self.place.0 as u64, self.place.1 as u64]
    }

    /// Takes up rungs and counters as they were stored.
    pub(crate) fn restore(&mut self, rungs: Vec<Rung>, [rounds, rung, block]: [u64; 3]) {
        let small = |n: u64| usize::try_from(n).unwrap_or(0);
        let place = (small(rung).min(rungs.len()), small(block) % self.extent.blocks.max(1));
        (self.rungs, self.rounds, self.place) = (rungs, rounds, place);
    }
}

/// Lets the rows of two blocks change places, column by column: what was seen before they did.
fn exchange(
    upper: (&Sampler, &Marginal, &mut State),
    lower: (&Sampler, &Marginal, &mut State),
    stream: Stream,
) -> Seen {
    let ((above, above_marginal, x), (below, below_marginal, y)) = (upper, lower);
    let u = |x: &mut State| -> Vec<f64> {
        let log = above_marginal.log_densities(above, x);
        log.iter().zip(below_marginal.log_densities(below, x)).map(|(a, b)| a - b).collect()
    };
    let seen = Seen { upper: u(x), lower: u(y) };
    for column in 0..x.n_rows() {
        if stream.uniform(Site::new(column, 0, 0), 0).ln() < seen.log_ratio(column) {
            x.exchange_row(y, column);
        }
    }
    seen
}
