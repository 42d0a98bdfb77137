//! Persistent contrastive divergence (Younes 1989; Tieleman 2008): the model side from chains
//! that survive from one step to the next.

use super::{Context, Estimator, Side, Snapshot, deferrable, last_free_block, particles};
use crate::error::Error;
use crate::machine::{Machine, State};
use crate::sampling::{Chains, Clamp, average_block};

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
    /// If there are none.
    pub fn new(n_chains: usize) -> Result<Self, Error> {
        if n_chains == 0 {
            return Err(Error::Setting { name: "chains", value: "0".into(), range: "at least 1" });
        }
        let weights = vec![1.0 / n_chains as f64; n_chains];
        Ok(Self { n_chains, chains: None, particles: None, weights })
    }
}

impl Estimator for Persistent {
    fn name(&self) -> &'static str {
        "pcd"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { machine, engine, k, stream, .. } = *context;
        let mut chains = match self.chains.take() {
            Some(chains) => chains,
            None => Chains::new(machine, self.n_chains, stream.fork(0))?,
        };
        let free = Clamp::none();
        let last = last_free_block(engine, &free);
        if deferrable(context, &last) {
            chains.advance_open(machine, engine, k, stream.fork(1))?;
            let state = self.chains.insert(chains).state_mut();
            let draw = Some((stream.fork(1), k - 1));
            let weights = &self.weights;
            let data_means = None;
            return Ok(Side::Particles { state, weights, pending: last, draw, data_means });
        }
        chains.advance(machine, engine, k, stream.fork(1))?;
        // The chains keep their samples; the statistics use means where they are exact.
        let state = match &mut self.particles {
            Some(state) => {
                state.copy_from(chains.state());
                state
            }
            none => none.insert(chains.state().clone()),
        };
        average_block(engine, &free, state, &last);
        self.chains = Some(chains);
        Ok(particles(state, &self.weights))
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
