//! The model side from trajectory tempering: persistent chains that exchange with frozen earlier
//! machines of the same training.
//!
//! A machine is frozen when exchanges with the last frozen one are accepted too rarely: the ladder
//! grows as fast as the model moves, and at the places where it changes most. Where learning jumps so
//! far that almost nothing is accepted, the chains no longer stand for the model, and a gradient from
//! them would be wrong: training then goes back to the machine that was frozen last, at half the
//! learning rate.

use super::deferred::deferrable;
use super::{Context, Deferred, Deferring, Estimator, Retreat, Side, Snapshot, last_free_block};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Base, Machine, State, check_memory, filled};
use crate::sampling::{
    Bridge, Chains, Clamp, Extent, Rung, Sampler, TrackedLogPartition, Trajectory,
};

/// When machines are frozen and how many samples of them are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrajectorySettings {
    /// Chains of the machine that learns.
    pub chains: usize,
    /// Samples of each frozen machine: rounded up to a multiple of the chains.
    pub reservoir: usize,
    /// A machine is frozen when fewer exchanges with the last frozen one are accepted.
    pub freeze_below: f64,
    /// Training goes back to the last frozen machine when fewer are.
    pub retreat_below: f64,
}

impl TrajectorySettings {
    /// The defaults for a number of chains: ten times as many samples of each frozen machine, frozen
    /// below an acceptance of 0.3, back to the last below 0.1.
    #[must_use]
    pub fn of(chains: usize) -> Self {
        let reservoir = chains.saturating_mul(10);
        Self { chains, reservoir, freeze_below: 0.3, retreat_below: 0.1 }
    }

    /// Whether every setting is in its range.
    ///
    /// # Errors
    ///
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |name, value: String, range| Err(Error::Setting { name, value, range });
        if self.chains < 1 {
            return wrong("chains", self.chains.to_string(), "at least 1");
        }
        if self.reservoir < self.chains {
            return wrong("reservoir", self.reservoir.to_string(), "at least as many as chains");
        }
        if !(self.freeze_below > 0.0 && self.freeze_below < 1.0) {
            return wrong("freeze-below", self.freeze_below.to_string(), "between 0 and 1");
        }
        if !(0.0..self.freeze_below).contains(&self.retreat_below) {
            let value = self.retreat_below.to_string();
            return wrong("rollback-below", value, "at least 0, and below freeze-below");
        }
        Ok(())
    }

    fn extent(&self) -> Extent {
        Extent { columns: self.chains, blocks: self.reservoir.div_ceil(self.chains) }
    }
}

/// Chains, and the frozen machines they exchange with.
#[derive(Clone, Debug)]
pub struct TrajectoryTempered {
    settings: TrajectorySettings,
    /// That of the frozen machines.
    arithmetic: Arithmetic,
    ladder: Option<Trajectory>,
    chains: Option<Chains>,
    particles: Option<State>,
    weights: Vec<f64>,
    /// The share of exchanges with the last frozen machine that is accepted.
    acceptance: f64,
    /// How often training went back.
    retreats: u64,
    /// Whether it should go back after this step.
    too_far: bool,
}

impl TrajectoryTempered {
    /// Chains that are started at the first step. `arithmetic` is that of the machine that learns;
    /// frozen machines are laid out in single precision where that one is quantised, because their
    /// energies add up to $\ln Z$.
    ///
    /// # Errors
    ///
    /// If a setting is out of range, or there are more chains than memory holds.
    pub fn new(settings: TrajectorySettings, arithmetic: Arithmetic) -> Result<Self, Error> {
        settings.check()?;
        let n = settings.chains;
        let what = || format!("{n} chains with {} samples of each machine", settings.reservoir);
        check_memory(8.0 * settings.reservoir as f64, what)?;
        let arithmetic = match arithmetic {
            Arithmetic::F64 => Arithmetic::F64,
            Arithmetic::F32 | Arithmetic::I16 => Arithmetic::F32,
        };
        Ok(Self {
            settings,
            arithmetic,
            ladder: None,
            chains: None,
            particles: None,
            weights: filled(n, 1.0 / n as f64, what)?,
            acceptance: 1.0,
            retreats: 0,
            too_far: false,
        })
    }

    /// Frozen machines between the factorised start and the machine that learns.
    pub fn rungs(&self) -> usize {
        self.ladder.as_ref().map_or(0, |ladder| ladder.rungs().len())
    }

    /// The share of exchanges with the last frozen machine that is accepted.
    pub fn acceptance(&self) -> f64 {
        self.acceptance
    }

    /// The chains and the ladder, taken out; in the first step they are started.
    fn started(&mut self, context: &Context<'_>) -> Result<(Chains, Trajectory), Error> {
        if let (Some(chains), Some(ladder)) = (self.chains.take(), self.ladder.take()) {
            return Ok((chains, ladder));
        }
        let Context { sampler, k, stream, .. } = *context;
        let machine = sampler.machine();
        let base = Base::of_biases(machine);
        let mut ladder = Trajectory::new(machine, base, self.settings.extent(), self.arithmetic)?;
        let x = ladder.reach(machine, self.settings.freeze_below, k, stream.fork(0))?;
        Ok((Chains::from_state(x), ladder))
    }

    /// Lets the chains exchange, before they sweep; freezes the machine or asks to go back.
    fn exchange(&mut self, context: &Context<'_>) -> Result<Chains, Error> {
        let Context { sampler, k, stream, .. } = *context;
        let (mut chains, mut ladder) = self.started(context)?;
        let x = chains.state_mut();
        self.acceptance = ladder.round(sampler, x, k, stream.fork(2))?;
        // Energies that are not finite count as too far.
        self.too_far = self.acceptance.is_nan() || self.acceptance < self.settings.retreat_below;
        if self.too_far {
            self.retreats += 1;
            if let Some((_, samples)) = ladder.last() {
                x.copy_from(samples);
            }
        } else if self.acceptance < self.settings.freeze_below {
            ladder.freeze(sampler, x, k, stream.fork(3))?;
        }
        self.ladder = Some(ladder);
        Ok(chains)
    }
}

impl Estimator for TrajectoryTempered {
    fn name(&self) -> &'static str {
        "ptt"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { sampler, k, stream, .. } = *context;
        let mut chains = self.exchange(context)?;
        chains.advance(sampler, k, stream.fork(1))?;
        let state = match &mut self.particles {
            Some(state) => {
                state.copy_from(chains.state());
                state
            }
            none => none.insert(chains.state().clone()),
        };
        let free = Clamp::none();
        sampler.average_block(&free, state, &last_free_block(sampler, &free));
        self.chains = Some(chains);
        Ok(Side::Particles { state, weights: &self.weights })
    }

    fn chains(&self) -> Option<&State> {
        self.chains.as_ref().map(Chains::state)
    }

    fn retreat(&self) -> Option<Retreat<'_>> {
        let (machine, _) = self.ladder.as_ref().filter(|_| self.too_far)?.last()?;
        Some(Retreat { machine, acceptance: self.acceptance })
    }

    fn caution(&self) -> f64 {
        0.5_f64.powi(i32::try_from(self.retreats).unwrap_or(i32::MAX))
    }

    fn log_partition(&self, sampler: &Sampler) -> Result<Option<TrackedLogPartition>, Error> {
        let (Some(ladder), Some(chains)) = (&self.ladder, &self.chains) else { return Ok(None) };
        ladder.log_partition(sampler, chains.state()).map(Some)
    }

    fn export(&self, machine: &Machine) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let (Some(ladder), Some(chains)) = (&self.ladder, &self.chains) else { return snapshot };
        snapshot.insert_state(machine, chains.state());
        snapshot.insert_base(machine, ladder.base());
        if machine.layers().iter().any(|layer| !layer.own.is_empty()) {
            // The precision of real units at the lower end is that of the first machine.
            snapshot.insert_machine("ground", ladder.ground());
        }
        snapshot.insert("acceptance", vec![self.acceptance]);
        let [rounds, rung, block] = ladder.counters();
        let n = ladder.rungs().len() as u64;
        snapshot.insert_counters("ladder", &[n, rounds, rung, block, self.retreats]);
        for (i, rung) in ladder.rungs().iter().enumerate() {
            let mut own = Snapshot::default();
            own.insert_machine("machine", rung.machine());
            for (b, block) in rung.blocks.iter().enumerate() {
                own.insert_samples(&format!("samples.{b}"), machine, block);
            }
            own.insert("bridge.reference", vec![rung.bridge.reference, rung.bridge.drift]);
            own.insert("bridge.lower", rung.bridge.lower.clone());
            own.insert("bridge.upper", rung.bridge.upper.clone());
            snapshot.nest(&format!("rung.{i}"), own);
        }
        snapshot
    }

    fn import(&mut self, machine: &Machine, snapshot: &Snapshot) -> Result<(), Error> {
        (self.chains, self.ladder) = (None, None);
        if snapshot.0.is_empty() {
            return Ok(());
        }
        let (n, extent) = (self.settings.chains, self.settings.extent());
        let arithmetic = self.arithmetic;
        let mut ground = machine.clone();
        if machine.layers().iter().any(|layer| !layer.own.is_empty()) {
            snapshot.machine_into("ground", &mut ground)?;
        }
        let mut ladder = Trajectory::new(&ground, snapshot.base(machine)?, extent, arithmetic)?;
        let [n_rungs, rounds, rung, block, retreats] = snapshot.counters("ladder")?;
        let mut rungs = Vec::new();
        for i in 0..n_rungs {
            let own = snapshot.nested(&format!("rung.{i}"));
            let mut frozen = machine.clone();
            own.machine_into("machine", &mut frozen)?;
            let block = |b: usize| own.samples(&format!("samples.{b}"), machine, n);
            let blocks = (0..extent.blocks).map(block).collect::<Result<_, Error>>()?;
            let reference = own.get("bridge.reference", 2)?;
            let bridge = Bridge {
                reference: reference[0],
                drift: reference[1],
                lower: own.get("bridge.lower", n)?.to_vec(),
                upper: own.get("bridge.upper", n)?.to_vec(),
            };
            rungs.push(Rung::stored(frozen, arithmetic, blocks, bridge)?);
        }
        ladder.restore(rungs, [rounds, rung, block]);
        self.acceptance = snapshot.get("acceptance", 1)?[0];
        (self.retreats, self.too_far) = (retreats, false);
        self.chains = Some(Chains::from_state(snapshot.state(machine, n)?));
        self.ladder = Some(ladder);
        Ok(())
    }
}

impl Deferring for TrajectoryTempered {
    fn estimate_deferred(&mut self, context: &Context<'_>) -> Result<Option<Deferred<'_>>, Error> {
        let Context { sampler, k, stream, .. } = *context;
        let pending = last_free_block(sampler, &Clamp::none());
        if !deferrable(context, &pending) {
            return Ok(self.estimate(context)?.into_deferred());
        }
        let mut chains = self.exchange(context)?;
        chains.advance_open(sampler, k, stream.fork(1))?;
        let state = self.chains.insert(chains).state_mut();
        let draw = Some((stream.fork(1), k - 1));
        Ok(Some(Deferred { state, weights: &self.weights, pending, draw, data_means: None }))
    }
}
