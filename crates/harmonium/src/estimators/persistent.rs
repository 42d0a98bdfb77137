//! Persistent contrastive divergence (Younes 1989; Tieleman 2008): the model side from chains
//! that survive from one step to the next.

use super::deferred::deferrable;
use super::{Context, Deferred, Deferring, Estimator, Side, Snapshot, last_free_block};
use crate::error::Error;
use crate::machine::{Machine, State, filled};
use crate::sampling::{Chains, Clamp};

/// PCD: `n_chains` chains, moved by `k` sweeps at each step.
#[derive(Clone, Debug)]
pub struct Persistent {
    n_chains: usize,
    chains: Option<Chains>,
    particles: Option<State>,
    weights: Vec<f64>,
}

impl Persistent {
    /// Chains that are started at the first step.
    ///
    /// # Errors
    ///
    /// If there are none, or more than memory holds.
    pub fn new(n_chains: usize) -> Result<Self, Error> {
        if n_chains == 0 {
            return Err(Error::Setting { name: "chains", value: "0".into(), range: "at least 1" });
        }
        let weights =
            filled(n_chains, 1.0 / n_chains as f64, || format!("weights of {n_chains} chains"))?;
        Ok(Self { n_chains, chains: None, particles: None, weights })
    }

    /// The chains, taken out; in the first step they are started.
    fn started(&mut self, context: &Context<'_>) -> Result<Chains, Error> {
        match self.chains.take() {
            Some(chains) => Ok(chains),
            None => context.sampler.chains(self.n_chains, context.stream.fork(0)),
        }
    }
}

impl Estimator for Persistent {
    fn name(&self) -> &'static str {
        "pcd"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { sampler, k, stream, .. } = *context;
        let mut chains = self.started(context)?;
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

    fn chains(&self) -> Option<&State> {
        self.chains.as_ref().map(Chains::state)
    }

    fn export(&self, machine: &Machine) -> Snapshot {
        let mut snapshot = Snapshot::default();
        if let Some(chains) = &self.chains {
            snapshot.insert_state(machine, chains.state());
        }
        snapshot
    }

    fn import(&mut self, machine: &Machine, snapshot: &Snapshot) -> Result<(), Error> {
        self.chains = None;
        if !snapshot.0.is_empty() {
            self.chains = Some(Chains::from_state(snapshot.state(machine, self.n_chains)?));
        }
        Ok(())
    }
}

impl Deferring for Persistent {
    fn estimate_deferred(&mut self, context: &Context<'_>) -> Result<Option<Deferred<'_>>, Error> {
        let Context { sampler, k, stream, .. } = *context;
        let pending = last_free_block(sampler, &Clamp::none());
        if !deferrable(context, &pending) {
            return Ok(self.estimate(context)?.into_deferred());
        }
        let mut chains = self.started(context)?;
        chains.advance_open(sampler, k, stream.fork(1))?;
        let state = self.chains.insert(chains).state_mut();
        let draw = Some((stream.fork(1), k - 1));
        Ok(Some(Deferred { state, weights: &self.weights, pending, draw, data_means: None }))
    }
}
