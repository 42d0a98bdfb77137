//! Persistent contrastive divergence (Younes 1989; Tieleman 2008): the model side from chains
//! that survive from one step to the next.

use super::deferred::deferrable;
use super::{Context, Deferred, Deferring, Estimator, Side, Snapshot, last_free_block};
use crate::error::Error;
use crate::machine::{Machine, State, filled};
use crate::sampling::{Chains, Clamp};

/// Chains from step to step, and the particles that each step makes of them: whatever else moves the chains.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    n_chains: usize,
    chains: Option<Chains>,
    particles: Option<State>,
    weights: Vec<f64>,
}

impl Followed {
    /// Chains that are started at the first step.
    pub(super) fn new(n_chains: usize) -> Result<Self, Error> {
        if n_chains == 0 {
            return Err(Error::Setting { name: "chains", value: "0".into(), range: "at least 1" });
        }
        let weights =
            filled(n_chains, 1.0 / n_chains as f64, || format!("weights of {n_chains} chains"))?;
        Ok(Self { n_chains, chains: None, particles: None, weights })
    }

    /// The chains, taken out; none before the first step.
    pub(super) fn take(&mut self) -> Option<Chains> {
        self.chains.take()
    }

    /// Where the chains are.
    pub(super) fn state(&self) -> Option<&State> {
        self.chains.as_ref().map(Chains::state)
    }

    /// Moves the chains by the sweeps of a step: particles with means in the last block.
    pub(super) fn advance(
        &mut self,
        mut chains: Chains,
        context: &Context<'_>,
    ) -> Result<Side<'_>, Error> {
        let Context { sampler, k, stream, .. } = *context;
        chains.advance(sampler, k, stream.fork(1))?;
        // The chains keep their samples; the statistics use means where they are exact.
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

    /// The same with the last block left to the caller, where that can be.
    pub(super) fn advance_deferred(
        &mut self,
        mut chains: Chains,
        context: &Context<'_>,
    ) -> Result<Option<Deferred<'_>>, Error> {
        let Context { sampler, k, stream, .. } = *context;
        let pending = last_free_block(sampler, &Clamp::none());
        if !deferrable(context, &pending) {
            return Ok(self.advance(chains, context)?.into_deferred());
        }
        chains.advance_open(sampler, k, stream.fork(1))?;
        let state = self.chains.insert(chains).state_mut();
        let draw = Some((stream.fork(1), k - 1));
        Ok(Some(Deferred { state, weights: &self.weights, pending, draw, data_means: None }))
    }

    pub(super) fn export(&self, machine: &Machine) -> Snapshot {
        let mut snapshot = Snapshot::default();
        if let Some(chains) = &self.chains {
            snapshot.insert_state(machine, chains.state());
        }
        snapshot
    }

    pub(super) fn import(&mut self, machine: &Machine, snapshot: &Snapshot) -> Result<(), Error> {
        self.chains = None;
        if !snapshot.0.is_empty() {
            self.chains = Some(Chains::from_state(snapshot.state(machine, self.n_chains)?));
        }
        Ok(())
    }
}

/// PCD: `n_chains` chains, moved by `k` sweeps at each step.
#[derive(Clone, Debug)]
pub struct Persistent {
    followed: Followed,
}

impl Persistent {
    /// Chains that are started at the first step.
    ///
    /// # Errors
    ///
    /// If there are none, or more than memory holds.
    pub fn new(n_chains: usize) -> Result<Self, Error> {
        Ok(Self { followed: Followed::new(n_chains)? })
    }

    /// The chains, taken out; in the first step they are started.
    fn started(&mut self, context: &Context<'_>) -> Result<Chains, Error> {
        match self.followed.take() {
            Some(chains) => Ok(chains),
            None => context.sampler.chains(self.followed.n_chains, context.stream.fork(0)),
        }
    }
}

impl Estimator for Persistent {
    fn name(&self) -> &'static str {
        "pcd"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let chains = self.started(context)?;
        self.followed.advance(chains, context)
    }

    fn chains(&self) -> Option<&State> {
        self.followed.state()
    }

    fn export(&self, machine: &Machine) -> Snapshot {
        self.followed.export(machine)
    }

    fn import(&mut self, machine: &Machine, snapshot: &Snapshot) -> Result<(), Error> {
        self.followed.import(machine, snapshot)
    }
}

impl Deferring for Persistent {
    fn estimate_deferred(&mut self, context: &Context<'_>) -> Result<Option<Deferred<'_>>, Error> {
        let chains = self.started(context)?;
        self.followed.advance_deferred(chains, context)
    }
}
