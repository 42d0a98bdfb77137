//! Trajectory tempering: the machine that learns is proposed samples of an earlier one.
//!
//! The ladder does not lead to higher temperatures but back along the training. Its lowest rung is
//! the factorised machine that training started from, whose samples are exact; above it stand
//! machines as they were when they were frozen, each known by many samples. A chain $x$ of the machine that learns
//! jumps to a copy of a sample $y$ of the machine that was frozen last with probability
//! $$\min\Bigl(1, \frac{p_1(y)\,p_0(x)}{p_0(y)\,p_1(x)}\Bigr),$$
//! which leaves $p_1$ where it is (Metropolis & Hastings with independent proposals), and then sweeps. When too few jumps are
//! accepted the machine is frozen as well: chains jump and sweep until they have forgotten where they were, and samples are
//! taken from them, apart by as much as it takes to forget.
//! Chains that change places with checkpoints of a training are due to Béreux, Decelle, Furtlehner, Rosset & Seoane 2025; their
//! use for learning, the ladder that grows and its Bennett ratios to arXiv 2607.27077. Here samples are copied and not
//! exchanged: an exchange conserves how many samples there are of each mode in chains and reservoir together, so that what is
//! left behind in the reservoir is what the machine moves away from, and every rung lags a little more than the one below. Where
//! chains do not forget in time, the machine is not frozen: training has gone too far.
//!
//! $x$ is what is left of a state when the layers that a sweep visits first are summed out (`marginal.rs`).
//!
//! **$\ln Z$.** Samples of neighbouring rungs give $\ln Z_1/Z_0$ by Bennett's ratio, and the sum along the ladder, from the lowest
//! rung in closed form, is $\ln Z$ of the machine that learns. Chains and samples live in *groups* that never meet, from the exact
//! end to the top, so that groups are independent however slowly each of them forgets: the spread of their sums is the error.

use super::bridge::{Seen, acceptance, forgetting, mean_and_error};
use super::chains::independent;
use super::marginal::Marginal;
use super::{Clamp, Sampler, bennett};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Base, Layer, Machine, State, check_memory};
use harmonium_kernels::random::{Site, Stream};
use serde::Serialize;
use std::ops::Range;

/// Groups of chains that never meet, if there are chains enough.
const GROUPS: usize = 5;
/// Rounds before a new machine is sampled, for each that a chain takes to forget; at least as many.
const SETTLING: usize = 20;
/// Rounds between two samples of a chain, for each that it takes to forget.
const APART: f64 = 2.0;
/// Most rounds until the chains of a new machine have settled.
const MOST_ROUNDS: usize = 200;
/// The standard error beyond which $\ln Z$ is not to be believed: samples that are so few may all miss the same.
const ROUGH: f64 = 0.5;
/// Rounds before the chains say something about $\ln Z$, and rounds that do.
const LOOKING: (usize, usize) = (12, 4);
/// How often the way to a machine that the factorised one does not reach is halved to find the next
/// rung.
const HALVINGS: usize = 6;
/// Of the way that is left, what is gone in one step at the end.
const NEARLY_THERE: f64 = 1e-3;

/// $\ln Z$ along a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrackedLogPartition {
    /// The estimate, in nats.
    pub log_z: f64,
    /// Its standard error, by the spread of groups of chains that never meet.
    pub std_error: f64,
    /// Frozen machines between the factorised one and this one.
    pub rungs: usize,
    /// The share of jumps from the last of them to this one that are accepted.
    pub acceptance: f64,
    /// Whether the samples of every frozen machine had settled, and the error is small. Elsewhere they may all lag behind their
    /// machines alike, which no error bar knows of.
    pub is_settled: bool,
}

/// How many samples of each frozen machine there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Chains, and rows of a block.
    pub(crate) chains: usize,
    /// Blocks of samples.
    pub(crate) blocks: usize,
}

impl Extent {
    /// The chains of each group.
    fn groups(self) -> impl Iterator<Item = Range<usize>> {
        let n = GROUPS.min(self.chains);
        (0..n).map(move |g| g * self.chains / n..(g + 1) * self.chains / n)
    }
}

/// A frozen machine with its samples.
#[derive(Clone, Debug)]
pub(crate) struct Rung {
    sampler: Sampler,
    marginal: Marginal,
    /// Samples, in blocks of one row for each chain.
    pub(crate) blocks: Vec<State>,
    /// $\ln p^*$ of each sample.
    logs: Vec<Vec<f64>>,
}

impl Rung {
    /// A machine and its samples.
    pub(crate) fn new(
        machine: Machine,
        arithmetic: Arithmetic,
        mut blocks: Vec<State>,
    ) -> Result<Self, Error> {
        let marginal = Marginal::of(&machine)?;
        let sampler = Sampler::new(machine, arithmetic);
        let logs = blocks.iter_mut().map(|x| marginal.log_densities(&sampler, x)).collect();
        Ok(Self { sampler, marginal, blocks, logs })
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &Machine {
        self.sampler.machine()
    }

    /// $u = \ln p^*_1 - \ln p^*_0$ of all samples, block by block, where $p_1$ is another machine.
    fn seen_by(&self, (sampler, marginal): (&Sampler, &Marginal)) -> Vec<f64> {
        let blocks = self.blocks.iter().zip(&self.logs);
        let of = |(x, logs): (&State, &Vec<f64>)| {
            let above = marginal.log_densities(sampler, &mut x.clone());
            above.into_iter().zip(logs).map(|(a, b)| a - b).collect::<Vec<f64>>()
        };
        blocks.flat_map(of).collect()
    }

    /// The same of samples `x` of that machine.
    fn sees(&self, (sampler, marginal): (&Sampler, &Marginal), x: &mut State) -> Vec<f64> {
        let above = marginal.log_densities(sampler, x);
        let below = self.marginal.log_densities(&self.sampler, x);
        above.into_iter().zip(below).map(|(a, b)| a - b).collect()
    }
}

/// A machine that is to be frozen.
struct New {
    sampler: Sampler,
    marginal: Marginal,
}

impl New {
    fn of(machine: &Machine, arithmetic: Arithmetic) -> Result<Self, Error> {
        let marginal = Marginal::of(machine)?;
        Ok(Self { sampler: Sampler::new(machine.clone(), arithmetic), marginal })
    }

    fn both(&self) -> (&Sampler, &Marginal) {
        (&self.sampler, &self.marginal)
    }
}

/// $\ln Z$ of the machine that was frozen last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    /// By all samples.
    pub(crate) log_z: f64,
    /// By those of each group alone.
    pub(crate) of_groups: Vec<f64>,
    /// Machines frozen so far.
    pub(crate) rungs: u64,
    /// Whether the samples of all of them had settled.
    pub(crate) is_settled: bool,
}

/// What became of the attempt to freeze a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frozen {
    /// It is the last rung now.
    Yes,
    /// Its chains did not settle.
    No,
}

/// Whether a machine is frozen although its chains do not settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsettled {
    /// It is, and $\ln Z$ is not to be believed from there on.
    Freeze,
    /// It is not.
    Refuse,
}

/// The machine that was frozen last, and what is known of those before it.
#[derive(Clone, Debug)]
pub(crate) struct Trajectory {
    extent: Extent,
    arithmetic: Arithmetic,
    base: Base,
    rung: Rung,
    known: Known,
    /// Rounds done.
    rounds: u64,
}

impl Trajectory {
    /// The lower end alone: `machine` without its couplings, but for those between Gaussian units.
    pub(crate) fn new(
        machine: &Machine,
        base: Base,
        extent: Extent,
        arithmetic: Arithmetic,
        stream: Stream,
    ) -> Result<Self, Error> {
        check_room(machine, extent)?;
        let ground = machine.temper(&base, 0.0)?;
        let draw = |b: usize| independent(&ground, &base, extent.chains, stream.fork(b as u64));
        let blocks = (0..extent.blocks).map(draw).collect::<Result<_, Error>>()?;
        let log_z = base.log_partition(&ground);
        let of_groups = vec![log_z; extent.groups().count()];
        let known = Known { log_z, of_groups, rungs: 0, is_settled: true };
        let rung = Rung::new(ground, arithmetic, blocks)?;
        Ok(Self { extent, arithmetic, base, rung, known, rounds: 0 })
    }

    /// As it was stored.
    pub(crate) fn restored(
        (machine, base, blocks): (Machine, Base, Vec<State>),
        extent: Extent,
        arithmetic: Arithmetic,
        (known, rounds): (Known, u64),
    ) -> Result<Self, Error> {
        let rung = Rung::new(machine, arithmetic, blocks)?;
        Ok(Self { extent, arithmetic, base, rung, known, rounds })
    }

    /// Climbs from the factorised machine to `machine`, where that is farther than one jump by
    /// way of machines in between, $(1-\beta)E_0 + \beta E$. Neighbours accept a share of about
    /// `wanted`. Returns samples of the machine, one for each chain.
    pub(crate) fn reach(
        &mut self,
        machine: &Machine,
        wanted: f64,
        k: usize,
        stream: Stream,
    ) -> Result<State, Error> {
        let mut x = self.rung.blocks[0].clone();
        let (mut beta, mut step) = (0.0, 0);
        while beta < 1.0 {
            step += 1;
            beta = self.next(machine, beta, wanted)?;
            let between = machine.temper(&self.base, beta)?;
            self.freeze(&between, &mut x, k, Unsettled::Freeze, stream.fork(step))?;
        }
        Ok(x)
    }

    /// The largest inverse temperature up to 1 whose machine should accept a share of `wanted`, judged
    /// by the samples of the last rung and their importance weights.
    fn next(&self, machine: &Machine, from: f64, wanted: f64) -> Result<f64, Error> {
        let mut share = 1.0;
        for _ in 0..HALVINGS {
            let beta = from + share * (1.0 - from);
            let sampler = Sampler::new(machine.temper(&self.base, beta)?, self.arithmetic);
            let marginal = Marginal::of(sampler.machine())?;
            let u = self.rung.seen_by((&sampler, &marginal));
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

    /// Freezes a machine whose chains are `x`; they go on from where they then are.
    pub(crate) fn freeze(
        &mut self,
        machine: &Machine,
        x: &mut State,
        k: usize,
        unsettled: Unsettled,
        stream: Stream,
    ) -> Result<Frozen, Error> {
        let new = New::of(machine, self.arithmetic)?;
        let forgotten = self.settle(&new, x, k, stream.fork(0))?;
        if forgotten.is_none() && unsettled == Unsettled::Refuse {
            return Ok(Frozen::No);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few rounds")]
        let apart = (APART * forgotten.unwrap_or(1.0)).ceil().max(1.0) as usize;
        let (mut blocks, stream) = (Vec::new(), stream.fork(1));
        for b in 0..self.extent.blocks {
            for round in 0..apart {
                self.advance(&new, x, k, b * apart + round, stream)?;
            }
            blocks.push(x.clone());
        }
        let forward = self.rung.seen_by(new.both());
        let backward: Vec<f64> =
            blocks.iter_mut().flat_map(|x| self.rung.sees(new.both(), x)).collect();
        self.known = self.beyond(&forward, &backward);
        self.known.rungs += 1;
        self.known.is_settled &= forgotten.is_some();
        self.rung = Rung::new(machine.clone(), self.arithmetic, blocks)?;
        Ok(Frozen::Yes)
    }

    /// Lets the chains of a new machine jump and sweep until they have forgotten where they were: the rounds that takes a chain, or
    /// nothing if they do not.
    fn settle(
        &self,
        new: &New,
        x: &mut State,
        k: usize,
        stream: Stream,
    ) -> Result<Option<f64>, Error> {
        let mut jumps = Vec::new();
        while jumps.len() < MOST_ROUNDS {
            for _ in 0..SETTLING {
                jumps.push(self.advance(new, x, k, jumps.len(), stream)?);
            }
            let forgotten = forgetting(&jumps);
            if jumps.len() as f64 >= SETTLING as f64 * forgotten {
                return Ok(Some(forgotten));
            }
        }
        Ok(None)
    }

    /// A round of the chains of a new machine: which of them jumped.
    fn advance(
        &self,
        new: &New,
        x: &mut State,
        k: usize,
        round: usize,
        stream: Stream,
    ) -> Result<Vec<bool>, Error> {
        let stream = stream.fork(round as u64);
        let jumped = self.jump(new.both(), x, round % self.extent.blocks, stream.fork(0)).1;
        new.sampler.gibbs(&Clamp::none(), x, k, stream.fork(1))?;
        Ok(jumped)
    }

    /// $\ln Z$ of a machine from $u$ at the samples of the last rung (`forward`) and at its own, both block by block.
    fn beyond(&self, forward: &[f64], backward: &[f64]) -> Known {
        let of = |u: &[f64], group: &Range<usize>| -> Vec<f64> {
            let blocks = u.chunks_exact(self.extent.chains);
            blocks.flat_map(|block| block[group.clone()].iter().copied()).collect()
        };
        let log_z = self.known.log_z + bennett(forward, backward).log;
        let groups = self.known.of_groups.iter().zip(self.extent.groups());
        let of_groups = groups
            .map(|(log_z, g)| log_z + bennett(&of(forward, &g), &of(backward, &g)).log)
            .collect();
        Known { log_z, of_groups, ..self.known.clone() }
    }

    /// Proposes each chain of `x` a sample of its group in a block of the last rung: what was seen before they jumped, and
    /// which of them did.
    fn jump(
        &self,
        new: (&Sampler, &Marginal),
        x: &mut State,
        block: usize,
        stream: Stream,
    ) -> (Seen, Vec<bool>) {
        let mut of: Vec<usize> = (0..self.extent.chains).collect();
        for (g, group) in self.extent.groups().enumerate() {
            stream.fork(1 + g as u64).shuffle(&mut of[group]);
        }
        let mut y = self.rung.blocks[block].select_rows(&of);
        let above = new.1.log_densities(new.0, &mut y);
        let below = of.iter().map(|&row| self.rung.logs[block][row]);
        let lower = above.into_iter().zip(below).map(|(a, b)| a - b).collect();
        let seen = Seen { lower, upper: self.rung.sees(new, x) };
        let uniform = stream.fork(0);
        let jumps = |chain: usize| {
            let ratio = seen.lower[chain] - seen.upper[chain];
            uniform.uniform(Site::new(chain, 0, 0), 0).ln() < ratio
        };
        let jumped: Vec<bool> = (0..x.n_rows()).map(jumps).collect();
        for chain in (0..x.n_rows()).filter(|&chain| jumped[chain]) {
            x.exchange_row(&mut y, chain);
        }
        (seen, jumped)
    }

    /// One round: the chains `x` of the machine of `sampler` are proposed samples of the last rung. Returns the share of all
    /// possible jumps that are accepted.
    pub(crate) fn round(
        &mut self,
        sampler: &Sampler,
        x: &mut State,
        stream: Stream,
    ) -> Result<f64, Error> {
        let turn = self.turn();
        self.rounds += 1;
        let marginal = Marginal::up_to_constant(sampler)?;
        Ok(self.jump((sampler, &marginal), x, turn, stream).0.acceptance())
    }

    fn turn(&self) -> usize {
        usize::try_from(self.rounds % self.extent.blocks as u64).unwrap_or(0)
    }

    /// $\ln Z$ of the machine of `sampler`, whose chains are `x`.
    pub(crate) fn log_partition(
        &self,
        sampler: &Sampler,
        x: &State,
    ) -> Result<TrackedLogPartition, Error> {
        // Quantised weights would shift energies by more than the error.
        let new = New::of(sampler.machine(), self.arithmetic)?;
        let (mut x, stream) = (x.clone(), Stream::new(self.rounds).fork(0x7474));
        let (settling, looking) = LOOKING;
        let mut backward = Vec::new();
        for round in 0..settling + looking {
            // Chains have sampled the machine before its last update: they catch up first.
            self.advance(&new, &mut x, 1, round, stream)?;
            if round >= settling {
                backward.extend(self.rung.sees(new.both(), &mut x));
            }
        }
        let forward = self.rung.seen_by(new.both());
        let Known { log_z, of_groups, rungs, is_settled } = self.beyond(&forward, &backward);
        let acceptance = acceptance(&forward, &backward, &vec![1.0; backward.len()]);
        let (mean, error) = mean_and_error(&of_groups);
        // What few samples shift, fewer samples shift more.
        let std_error = error.hypot(log_z - mean);
        let rungs = usize::try_from(rungs).unwrap_or(usize::MAX);
        let is_settled = is_settled && std_error <= ROUGH;
        Ok(TrackedLogPartition { log_z, std_error, rungs, acceptance, is_settled })
    }

    /// The machine that was frozen last, and the block of its samples whose turn it is.
    pub(crate) fn last(&self) -> (&Machine, &State) {
        (self.rung.machine(), &self.rung.blocks[self.turn()])
    }

    pub(crate) fn base(&self) -> &Base {
        &self.base
    }

    pub(crate) fn blocks(&self) -> &[State] {
        &self.rung.blocks
    }

    /// What is known of $\ln Z$, and the rounds that were made.
    pub(crate) fn known(&self) -> (&Known, u64) {
        (&self.known, self.rounds)
    }

    /// The number of groups.
    pub(crate) fn n_groups(extent: Extent) -> usize {
        extent.groups().count()
    }
}

/// Whether there is room for a frozen machine and the next: their parameters, their layout, and their samples.
fn check_room(machine: &Machine, extent: Extent) -> Result<(), Error> {
    let entries: usize = machine.layers().iter().map(Layer::len).sum();
    let rows = extent.chains as f64 * extent.blocks as f64;
    let one = 24.0 * machine.n_parameters() as f64 + rows * entries as f64 * 8.0;
    check_memory(2.0 * one, || "two frozen machines with their samples".to_owned())
}
