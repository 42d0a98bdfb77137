//! The model side from trajectory tempering: persistent chains that are proposed samples of a frozen earlier
//! machine of the same training.
//!
//! A machine is frozen when jumps from the last frozen one are accepted too rarely: the ladder
//! grows as fast as the model moves, and at the places where it changes most. Where learning goes so
//! far that almost nothing is accepted, or that chains do not settle where it is, the chains no longer stand for the model, and a
//! gradient from
//! them would be wrong: training then goes back to the machine that was frozen last, at half the
//! learning rate, which the next machines that are frozen double again.

use super::persistent::Followed;
use super::{Context, Deferred, Deferring, Estimator, Retreat, Side, Snapshot};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Base, Machine, State, check_memory};
use crate::sampling::{
    Chains, Extent, Frozen, Known, Sampler, TrackedLogPartition, Trajectory, Unsettled,
};

/// Steps that may be undone in turn before a machine whose chains do not settle is frozen all the same: the rate is a millionth
/// then.
const PATIENCE: u64 = 20;

/// When machines are frozen and how many samples of them are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrajectorySettings {
    /// Chains of the machine that learns.
    pub chains: usize,
    /// Samples of each frozen machine: rounded up to a multiple of the chains.
    pub reservoir: usize,
    /// A machine is frozen when fewer jumps from the last frozen one are accepted.
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
        Extent { chains: self.chains, blocks: self.reservoir.div_ceil(self.chains) }
    }
}

/// Chains, and the frozen machine whose samples they are proposed.
#[derive(Clone, Debug)]
pub struct TrajectoryTempered {
    settings: TrajectorySettings,
    /// That of the frozen machines.
    arithmetic: Arithmetic,
    ladder: Option<Trajectory>,
    followed: Followed,
    /// The share of jumps from the last frozen machine that is accepted.
    acceptance: f64,
    /// How often the learning rate is halved: once for each time that training went back, and doubled again by every machine
    /// that is frozen afterwards.
    caution: u64,
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
            followed: Followed::new(n)?,
            acceptance: 1.0,
            caution: 0,
            too_far: false,
        })
    }

    /// Frozen machines between the factorised start and the machine that learns.
    pub fn rungs(&self) -> usize {
        let rungs = self.ladder.as_ref().map_or(0, |ladder| ladder.known().0.rungs);
        usize::try_from(rungs).unwrap_or(usize::MAX)
    }

    /// The share of jumps from the last frozen machine that is accepted.
    pub fn acceptance(&self) -> f64 {
        self.acceptance
    }

    /// The chains and the ladder, taken out; in the first step they are started.
    fn started(&mut self, context: &Context<'_>) -> Result<(Chains, Trajectory), Error> {
        if let (Some(chains), Some(ladder)) = (self.followed.take(), self.ladder.take()) {
            return Ok((chains, ladder));
        }
        let Context { sampler, k, stream, .. } = *context;
        let (machine, stream) = (sampler.machine(), stream.fork(0));
        let (base, extent) = (Base::of_biases(machine), self.settings.extent());
        let mut ladder = Trajectory::new(machine, base, extent, self.arithmetic, stream.fork(0))?;
        let x = ladder.reach(machine, self.settings.freeze_below, k, stream.fork(1))?;
        Ok((Chains::from_state(x), ladder))
    }

    /// Lets the chains jump, before they sweep; freezes the machine or asks to go back.
    fn jump(&mut self, context: &Context<'_>) -> Result<Chains, Error> {
        let Context { sampler, k, stream, .. } = *context;
        let (mut chains, mut ladder) = self.started(context)?;
        let x = chains.state_mut();
        self.acceptance = ladder.round(sampler, x, stream.fork(2))?;
        // Energies that are not finite count as too far.
        self.too_far = self.acceptance.is_nan() || self.acceptance < self.settings.retreat_below;
        if !self.too_far && self.acceptance < self.settings.freeze_below {
            let unsettled =
                if self.caution < PATIENCE { Unsettled::Refuse } else { Unsettled::Freeze };
            let frozen = ladder.freeze(sampler.machine(), x, k, unsettled, stream.fork(3))?;
            self.too_far = frozen == Frozen::No;
            if frozen == Frozen::Yes {
                self.caution = self.caution.saturating_sub(1);
            }
        }
        if self.too_far {
            self.caution += 1;
            x.copy_from(ladder.last().1);
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
        let chains = self.jump(context)?;
        self.followed.advance(chains, context)
    }

    fn chains(&self) -> Option<&State> {
        self.followed.state()
    }

    fn retreat(&self) -> Option<Retreat<'_>> {
        let (machine, _) = self.ladder.as_ref().filter(|_| self.too_far)?.last();
        Some(Retreat { machine, acceptance: self.acceptance })
    }

    fn caution(&self) -> f64 {
        0.5_f64.powi(i32::try_from(self.caution).unwrap_or(i32::MAX))
    }

    fn log_partition(&self, sampler: &Sampler) -> Result<Option<TrackedLogPartition>, Error> {
        let (Some(ladder), Some(x)) = (&self.ladder, self.followed.state()) else {
            return Ok(None);
        };
        ladder.log_partition(sampler, x).map(Some)
    }

    fn export(&self, machine: &Machine) -> Snapshot {
        let mut snapshot = self.followed.export(machine);
        let Some(ladder) = &self.ladder else { return snapshot };
        snapshot.insert_base(machine, ladder.base());
        snapshot.insert("acceptance", vec![self.acceptance]);
        let (known, rounds) = ladder.known();
        let settled = u64::from(known.is_settled);
        let counters = [known.rungs, rounds, self.caution, settled];
        snapshot.insert_counters("ladder", &counters);
        snapshot.insert("log_partition", vec![known.log_z]);
        snapshot.insert("log_partition.groups", known.of_groups.clone());
        snapshot.insert_machine("frozen", ladder.last().0);
        for (b, block) in ladder.blocks().iter().enumerate() {
            snapshot.insert_samples(&format!("samples.{b}"), machine, block);
        }
        snapshot
    }

    fn import(&mut self, machine: &Machine, snapshot: &Snapshot) -> Result<(), Error> {
        self.followed.import(machine, snapshot)?;
        self.ladder = None;
        if snapshot.0.is_empty() {
            return Ok(());
        }
        let (n, extent) = (self.settings.chains, self.settings.extent());
        let [rungs, rounds, caution, settled] = snapshot.counters("ladder")?;
        let known = Known {
            log_z: snapshot.get("log_partition", 1)?[0],
            of_groups: snapshot.get("log_partition.groups", Trajectory::n_groups(extent))?.to_vec(),
            rungs,
            is_settled: settled == 1,
        };
        let mut frozen = machine.clone();
        snapshot.machine_into("frozen", &mut frozen)?;
        let block = |b: usize| snapshot.samples(&format!("samples.{b}"), machine, n);
        let blocks = (0..extent.blocks).map(block).collect::<Result<_, Error>>()?;
        let stored = (frozen, snapshot.base(machine)?, blocks);
        self.ladder = Some(Trajectory::restored(stored, extent, self.arithmetic, (known, rounds))?);
        self.acceptance = snapshot.get("acceptance", 1)?[0];
        (self.caution, self.too_far) = (caution, false);
        Ok(())
    }
}

impl Deferring for TrajectoryTempered {
    fn estimate_deferred(&mut self, context: &Context<'_>) -> Result<Option<Deferred<'_>>, Error> {
        let chains = self.jump(context)?;
        self.followed.advance_deferred(chains, context)
    }
}
