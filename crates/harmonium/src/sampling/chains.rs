//! Chains that survive from one use to the next.

use super::{Clamp, Sampler};
use crate::error::Error;
use crate::machine::{Base, LayerId, Machine, State};
use crate::units::{Draw, OwnParameters};
use harmonium_kernels::random::{Site, Stream};

/// Persistent Gibbs chains (Tieleman 2008): one row each.
#[derive(Clone, Debug)]
pub struct Chains {
    state: State,
}

impl Chains {
    /// Starts `n` chains from independent units with the machine's biases.
    ///
    /// # Errors
    ///
    /// If `n` is zero or memory ends.
    pub fn new(machine: &Machine, n: usize, stream: Stream) -> Result<Self, Error> {
        if n == 0 {
            return Err(Error::Setting { name: "chains", value: "0".into(), range: "at least 1" });
        }
        Ok(Self { state: independent(machine, &Base::of_biases(machine), n, stream)? })
    }

    /// Continues chains that stand at `state`.
    pub fn from_state(state: State) -> Self {
        Self { state }
    }

    /// Moves every chain by `n_sweeps` sweeps.
    ///
    /// # Errors
    ///
    /// If the machine is not the one the chains were made for.
    pub fn advance(
        &mut self,
        sampler: &Sampler,
        n_sweeps: usize,
        stream: Stream,
    ) -> Result<(), Error> {
        sampler.gibbs(&Clamp::none(), &mut self.state, n_sweeps, stream)
    }

    /// The same, but leaves the last block of the last sweep to the caller, who computes its
    /// natural parameters anyway.
    pub(crate) fn advance_open(
        &mut self,
        sampler: &Sampler,
        n_sweeps: usize,
        stream: Stream,
    ) -> Result<(), Error> {
        self.state.check(sampler.graph())?;
        sampler.open_sweeps(&mut self.state, n_sweeps, stream);
        Ok(())
    }

    pub(crate) fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Gives away where the chains are.
    pub fn into_state(self) -> State {
        self.state
    }

    /// Where the chains are.
    pub fn state(&self) -> &State {
        &self.state
    }
}

impl Sampler {
    /// Starts `n` chains from independent units with the machine's biases.
    ///
    /// # Errors
    ///
    /// If `n` is zero or memory ends.
    pub fn chains(&self, n: usize, stream: Stream) -> Result<Chains, Error> {
        Chains::new(self.machine(), n, stream)
    }
}

/// `n` rows of independent units with the parameters of `base`.
///
/// # Errors
///
/// If memory ends.
pub fn independent(
    machine: &Machine,
    base: &Base,
    n: usize,
    stream: Stream,
) -> Result<State, Error> {
    let mut x = State::zeros(machine, n)?;
    for (i, layer) in machine.layers().iter().enumerate() {
        for row in 0..n {
            let mut theta = base.bias_in(LayerId(i), row).to_vec();
            let site = Site::new(row, 0, i);
            let draw = Draw { stream, site, start: 0 };
            let own = OwnParameters::new(&base.own[i], layer.len());
            layer.units.sample_in_place(&mut theta, own, draw);
            x.set_row(LayerId(i), row, &theta)?;
        }
    }
    Ok(x)
}
