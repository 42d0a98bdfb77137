//! $\ln Z$ of a machine that learns: ladders of replicas that are carried along.
//!
//! Parallel tempering needs time to settle, and Bennett's ratio between neighbouring temperatures
//! then gives $\ln Z$ ([`Method::Bar`](super::Method::Bar)). Between two looks a machine changes
//! little, so the replicas of the last look have almost settled when the next begins: a look costs a
//! few rounds instead of hundreds (Desjardins, Courville & Bengio 2011 follow $\ln Z$ over a training
//! by the same means). Each look is a whole estimate from a base whose $\ln Z$ is known, so errors do
//! not add up over a training.
//!
//! Where the rungs lie is measured on the way: a look in which the log-weight moves by more than
//! [`LONGEST`] standard deviations between neighbours, or in which neighbours hardly swap, spreads them
//! anew and begins again, a few times at most. What is left shows in the standard error: ladders that
//! do not mix disagree with each other, and the first half of the rounds with the second.
//!
//! Ladders that all miss the same mode agree and are all wrong. But states that are known say how
//! much there is at least,
//!
//! $$\ln Z \ge \ln \sum_{x \in \text{seen}} p^*(x_K),$$
//!
//! where the layers $K$ are those that the ladders do not sum out, and the modes above the replicas,
//! above the chains of the training and above states of the base are easy to reach. If an estimate is below that, half of the ladders are started
//! at these modes and the look is made once more; if it still is, the bound takes its place, and the
//! distance becomes part of the error.

use super::bar::Walked;
use super::schedule::Schedule;
use crate::error::Error;
use crate::exact;
use crate::machine::{Base, LayerId, Machine, State};
use crate::sampling::{Clamp, Collapsed, Sampler, Tempering, Variates, independent, kept_layers};
use crate::units::log_sum_exp;
use harmonium_kernels::random::Stream;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Ladders that are carried along: their spread is the error bar.
const LADDERS: usize = 12;
/// Rungs of the first ladder.
const FIRST_RUNGS: usize = 4;
/// Rounds after which it is judged whether the rungs lie well.
const FITTING: usize = 4;
/// How often rungs are spread anew in one look.
const FITTINGS: usize = 8;
/// The longest step of a log-weight between neighbours, in standard deviations.
const LONGEST: f64 = 2.0;
/// Rounds of a look that count, unless asked for otherwise.
pub const ROUNDS: usize = 24;
/// One round in this many is made before those that count.
const SETTLING: usize = 4;
/// Replicas, and chains of the training, above which modes are sought: at most as many of each.
const SOUGHT: usize = 96;
/// States of the base above which modes are sought as well.
const RANDOM: usize = 48;
/// Sweeps to a mode.
const CLIMBING: usize = 10;
/// A distance that is not put down to chance, in nats.
const CLEARLY: f64 = 0.1;
/// Relative error of numbers of single precision, once many were added.
const ROUNDING: f64 = 4e-6;
/// Rounds of a look of which the replicas at $\beta = 1$ are kept.
const KEPT: usize = 4;

/// What a look found.
#[derive(Clone, Debug)]
pub struct Tracked {
    /// $\ln Z$.
    pub log_z: f64,
    /// Its standard error.
    pub std_error: f64,
    /// The least share of swaps between two rungs that was accepted.
    pub least_swaps: f64,
    /// Rungs of each ladder.
    pub rungs: usize,
    /// Sweeps of single replicas that it took.
    pub sweeps: u64,
    /// Samples of the machine: replicas at $\beta = 1$, those of all ladders after each of some rounds.
    pub samples: State,
}

impl Tracked {
    /// Ladders that the samples come from, one after the other in turn.
    pub const LADDERS: usize = LADDERS;
}

/// Replicas, and where they stand.
#[derive(Clone, Debug)]
struct Carried {
    betas: Vec<f64>,
    replicas: State,
}

/// Follows $\ln Z$ of one machine over its training.
#[derive(Clone, Debug)]
pub struct Tracker {
    /// Means of the visible units in the training data: where the base is.
    means: Vec<f64>,
    stream: Stream,
    looks: u64,
    carried: Option<Carried>,
}

/// A walk of all ladders in one look.
struct Walk<'a> {
    sampler: &'a Sampler,
    base: Base,
    stream: Stream,
    /// Rounds made so far.
    round: usize,
    sweeps: u64,
}

/// What the rounds of a look say.
struct Estimate {
    log_z: f64,
    std_error: f64,
    walked: Walked,
    samples: State,
}

impl Tracker {
    /// Follows a machine of which the training data has these means, one for each visible entry.
    pub fn new(means: Vec<f64>, seed: u64) -> Self {
        Self { means, stream: Stream::new(seed).fork(0x7_2ac4), looks: 0, carried: None }
    }

    /// Looks at the machine as it is now; `rounds` of all ladders count. `chains` are samples of the machine
    /// that somebody has, if anybody has any: they need not have settled.
    ///
    /// # Errors
    ///
    /// If the machine has no distribution or other layers than before, or memory ends.
    pub fn look(
        &mut self,
        sampler: &Sampler,
        chains: Option<&State>,
        rounds: usize,
    ) -> Result<Tracked, Error> {
        let machine = sampler.machine();
        exact::check_normalises(machine)?;
        let mut walk = Walk {
            sampler,
            base: Base::from_visible_means(machine, &self.means)?,
            stream: self.stream.fork(self.looks),
            round: 0,
            sweeps: 0,
        };
        self.looks += 1;
        let mut ladders = match self.carried.take() {
            Some(carried) => walk.ladders(&carried.betas, Some(&carried))?,
            None => walk.ladders(&Tempering::even_ladder(FIRST_RUNGS), None)?,
        };
        walk.fit(&mut ladders)?;
        let mut found = walk.estimate(&mut ladders, rounds)?;
        if let Some((mass, modes)) = walk.seen(&ladders, chains)? {
            if mass > found.log_z + found.std_error.min(CLEARLY) {
                walk.start_half_at(&mut ladders, &modes)?;
                walk.fit(&mut ladders)?;
                found = walk.estimate(&mut ladders, rounds)?;
            }
            let missing = mass - found.log_z;
            if missing > 0.0 {
                (found.log_z, found.std_error) = (mass, found.std_error.hypot(missing));
            }
        }
        let rates = ladders.swap_rates().iter().map(|s| s.rate());
        let (least_swaps, carried) = (rates.fold(1.0, f64::min), Carried::of(&ladders));
        let schedule = Schedule::of_rungs(&carried.betas, &found.walked.steps());
        self.carried = Some(carried.moved_to(machine, &schedule.betas(schedule.rungs()))?);
        Ok(Tracked {
            log_z: found.log_z,
            std_error: found.std_error,
            least_swaps,
            rungs: carried.betas.len(),
            sweeps: walk.sweeps,
            samples: found.samples,
        })
    }

    /// Everything that the next look depends on besides the machine.
    pub fn export(&self) -> Value {
        let carried = self.carried.as_ref();
        json!({
            "looks": self.looks,
            "betas": carried.map(|c| &c.betas),
            "replicas": carried.map(|c| c.replicas.written()),
        })
    }

    /// Takes up what [`Tracker::export`] gave, for a machine of the same layers. What was written for
    /// another machine is left: the next look then starts new ladders.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn import(&mut self, machine: &Machine, state: &Value) -> Result<(), Error> {
        self.looks = state["looks"].as_u64().unwrap_or(0);
        let betas: Option<Vec<f64>> = serde_json::from_value(state["betas"].clone()).ok().flatten();
        let betas = betas.filter(|b| b.len() >= 2 && b.windows(2).all(|w| w[0] < w[1]));
        self.carried = None;
        if let Some(betas) = betas {
            let replicas = State::read(machine, betas.len() * LADDERS, &state["replicas"])?;
            self.carried = replicas.map(|replicas| Carried { betas, replicas });
        }
        Ok(())
    }
}

impl Carried {
    fn of(tempering: &Tempering) -> Self {
        Self { betas: tempering.betas().to_vec(), replicas: tempering.replicas().clone() }
    }

    /// Ladders over other rungs: each takes the replica that stood nearest to it.
    fn moved_to(&self, machine: &Machine, betas: &[f64]) -> Result<Self, Error> {
        let (old, new) = (self.betas.len(), betas.len());
        let distance = |beta: f64, k: usize| (self.betas[k] - beta).abs();
        let nearest = |beta: f64| {
            (0..old)
                .fold(0, |best, k| if distance(beta, k) < distance(beta, best) { k } else { best })
        };
        let from: Vec<usize> = betas.iter().map(|&beta| nearest(beta)).collect();
        let rows: Vec<usize> =
            (0..LADDERS).flat_map(|ladder| from.iter().map(move |k| ladder * old + k)).collect();
        let mut replicas = State::zeros(machine, LADDERS * new)?;
        for l in machine.layer_ids() {
            for (row, &at) in rows.iter().enumerate() {
                replicas.set_row(l, row, self.replicas.row(l, at))?;
            }
        }
        Ok(Self { betas: betas.to_vec(), replicas })
    }
}

/// Other rungs, if those of the ladders do not do.
fn better(tempering: &Tempering, walked: &Walked) -> Option<Vec<f64>> {
    let (betas, steps) = (tempering.betas(), walked.steps());
    let schedule = Schedule::of_rungs(betas, &steps);
    let far = steps.iter().any(|s| *s > LONGEST) || schedule.rungs() > 2 * betas.len();
    let apart = tempering.swap_rates().iter().any(|s| s.rate() < 0.1);
    // Rungs that are as many as can be and still lie badly are left to the error bar.
    let wanted = schedule.betas(schedule.rungs());
    ((far || apart) && wanted.len() > betas.len()).then_some(wanted)
}

impl Walk<'_> {
    fn machine(&self) -> &Machine {
        self.sampler.machine()
    }

    /// Ladders over the rungs `betas`, started where `carried` stands.
    fn ladders(&self, betas: &[f64], carried: Option<&Carried>) -> Result<Tempering, Error> {
        let stream = self.stream.fork(1 + self.round as u64);
        let mut ladders =
            Tempering::new(self.machine(), LADDERS, betas, self.base.clone(), stream)?;
        if let Some(carried) = carried {
            let moved = carried.moved_to(self.machine(), betas)?;
            ladders.set_replicas(self.machine(), moved.replicas)?;
        }
        Ok(ladders)
    }

    /// Spreads the rungs until they lie well.
    fn fit(&mut self, ladders: &mut Tempering) -> Result<(), Error> {
        for _ in 0..FITTINGS {
            let (walked, _) = self.rounds(ladders, FITTING, 0)?;
            let Some(betas) = better(ladders, &walked) else { break };
            *ladders = self.ladders(&betas, Some(&Carried::of(ladders)))?;
        }
        Ok(())
    }

    /// $\ln Z$ by rounds that count, after some that do not.
    fn estimate(&mut self, ladders: &mut Tempering, rounds: usize) -> Result<Estimate, Error> {
        self.rounds(ladders, rounds.div_ceil(SETTLING), 0)?;
        let (walked, samples) = self.rounds(ladders, rounds.max(2), KEPT)?;
        let (log_ratio, error) = walked.settled_ratio();
        let base = self.base.log_partition(self.machine());
        let rounding = ROUNDING * (base.abs() + log_ratio.abs());
        // Neighbours that never swap have nothing in common, and their ratio is anywhere between what both say.
        let apart: f64 = (walked.gaps().iter().zip(ladders.swap_rates()))
            .map(|(gap, swaps)| (0.5 * gap * (-(swaps.accepted as f64)).exp()).powi(2))
            .sum();
        let error = error.hypot(rounding).hypot(apart.sqrt());
        // Ladders that share no state with each other say nothing.
        let std_error = if error.is_nan() { f64::INFINITY } else { error };
        Ok(Estimate { log_z: base + log_ratio, std_error, walked, samples })
    }

    /// Makes `n` rounds: what they saw, and the replicas at $\beta = 1$ after `kept` of them.
    fn rounds(
        &mut self,
        ladders: &mut Tempering,
        n: usize,
        kept: usize,
    ) -> Result<(Walked, State), Error> {
        let (machine, clamp) = (self.sampler.machine(), Clamp::none());
        let mut collapsed = Collapsed::new(self.sampler, &self.base, &clamp, ladders.replicas())?;
        let mut walked = Walked::new(ladders.betas().len(), LADDERS);
        let kept = kept.min(n);
        let mut samples = State::zeros(machine, kept * LADDERS)?;
        let mut taken = 0;
        for k in 0..n {
            let variates = Variates { stream: self.stream.fork(0), sweep: self.round };
            walked.push(ladders.advance_collapsed(&mut collapsed, variates));
            self.round += 1;
            self.sweeps += ladders.replicas().n_rows() as u64;
            if taken < kept && (k + 1) * kept >= (taken + 1) * n {
                let (now, at) = (ladders.targets(machine)?, taken * LADDERS);
                copy_rows(machine, &now, 0..LADDERS, &mut samples, at)?;
                taken += 1;
            }
        }
        Ok((walked, samples))
    }

    /// The logarithm of the mass of all states that were seen: the replicas and `chains`, or some of
    /// them, some of the base, the modes above them, and how those are set that weigh most. None where units are real, whose states have no
    /// mass.
    fn seen(
        &mut self,
        ladders: &Tempering,
        chains: Option<&State>,
    ) -> Result<Option<(f64, State)>, Error> {
        let machine = self.sampler.machine();
        let kept = kept_layers(machine);
        if kept.iter().any(|&l| !machine.layer(l).units.is_finite()) {
            return Ok(None);
        }
        let replicas = ladders.replicas();
        let chosen = |n: usize| (0..n.min(SOUGHT)).map(move |k| k * n / n.min(SOUGHT));
        let n_chains = chains.map_or(0, State::n_rows);
        let random = independent(machine, &self.base, RANDOM, self.stream.fork(3))?;
        let n = chosen(replicas.n_rows()).count() + chosen(n_chains).count() + RANDOM;
        let mut x = State::zeros(machine, 2 * n)?;
        let mut at = 0;
        for (from, count) in
            [(Some(replicas), replicas.n_rows()), (chains, n_chains), (Some(&random), RANDOM)]
        {
            let Some(from) = from else { continue };
            for row in chosen(count) {
                // Once as it is, and once to climb from.
                copy_rows(machine, from, row..row + 1, &mut x, at)?;
                at += 1;
            }
        }
        let mut modes = State::zeros(machine, n)?;
        copy_rows(machine, &x, 0..n, &mut modes, 0)?;
        self.sampler.settle(&Clamp::none(), &mut modes, CLIMBING)?;
        copy_rows(machine, &modes, 0..n, &mut x, n)?;
        self.sweeps += (n * CLIMBING) as u64;
        self.masses(&kept, &x).map(Some)
    }

    /// The mass of the distinct states among the rows of `x`, and the rows that weigh most, one for each
    /// ladder.
    fn masses(&self, kept: &[LayerId], x: &State) -> Result<(f64, State), Error> {
        let machine = self.sampler.machine();
        let masses = exact::log_sums(machine, &Clamp::layers(kept.iter().copied()), x)?;
        let mut known = BTreeSet::new();
        let mut distinct: Vec<usize> = Vec::new();
        for row in 0..x.n_rows() {
            let values = kept.iter().flat_map(|&l| x.row(l, row)).map(|v| v.to_bits());
            if known.insert(values.collect::<Vec<u64>>()) {
                distinct.push(row);
            }
        }
        distinct.sort_by(|&a, &b| masses[b].total_cmp(&masses[a]));
        let logs: Vec<f64> = distinct.iter().map(|&row| masses[row]).collect();
        let mut heaviest = State::zeros(machine, LADDERS)?;
        for (at, &row) in (0..LADDERS).zip(distinct.iter().cycle()) {
            copy_rows(machine, x, row..row + 1, &mut heaviest, at)?;
        }
        Ok((log_sum_exp(&logs), heaviest))
    }

    /// Puts the colder half of every second ladder at a row of `modes`.
    fn start_half_at(&self, ladders: &mut Tempering, modes: &State) -> Result<(), Error> {
        let (machine, n) = (self.machine(), ladders.betas().len());
        let mut replicas = ladders.replicas().clone();
        for ladder in (0..LADDERS).step_by(2) {
            for k in n / 2..n {
                let row = ladder / 2..ladder / 2 + 1;
                copy_rows(machine, modes, row, &mut replicas, ladder * n + k)?;
            }
        }
        ladders.set_replicas(machine, replicas)
    }
}

/// Copies rows, the first of them to the row `at`.
fn copy_rows(
    machine: &Machine,
    from: &State,
    rows: std::ops::Range<usize>,
    to: &mut State,
    at: usize,
) -> Result<(), Error> {
    for l in machine.layer_ids() {
        for (k, row) in rows.clone().enumerate() {
            to.set_row(l, at + k, from.row(l, row))?;
        }
    }
    Ok(())
}
