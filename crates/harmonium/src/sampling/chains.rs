//! Chains that survive from one use to the next.

use super::{Clamp, Sampler};
use crate::error::Error;
use crate::machine::{Base, LayerId, Machine, State};
use crate::units::Draw;
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

/// `n` rows of independent units with the biases of `base`, Gaussian units that see each other drawn
/// together.
///
/// # Errors
///
/// If memory ends, or Gaussian units are coupled so strongly that they have no density.
pub fn independent(
    machine: &Machine,
    base: &Base,
    n: usize,
    stream: Stream,
) -> Result<State, Error> {
    let mut x = State::zeros(machine, n)?;
    let joined = machine.real_blocks();
    let alone = |l: &LayerId| !joined.iter().flatten().any(|m| m == l);
    for l in machine.layer_ids().filter(alone) {
        let layer = machine.layer(l);
        for row in 0..n {
            let mut theta = base.bias_in(l, row).to_vec();
            let draw = Draw { stream, site: Site::new(row, 0, l.0), start: 0 };
            layer.units.sample_in_place(&mut theta, layer.own(), draw);
            x.set_row(l, row, &theta)?;
        }
    }
    for layers in &joined {
        let density = machine.block_of(layers)?;
        for row in 0..n {
            let fields = layers.iter().flat_map(|&l| base.bias_in(l, row));
            let mut values: Vec<f64> = fields.copied().collect();
            density.whiten(&mut values);
            let mut at = 0;
            for &l in layers {
                let mut normals = vec![0.0; machine.layer(l).len()];
                stream.normals_into(Site::new(row, 0, l.0), &mut normals);
                values[at..].iter_mut().zip(&normals).for_each(|(u, z)| *u += z);
                at += normals.len();
            }
            density.colour(&mut values);
            let mut values = &values[..];
            for &l in layers {
                let (own, rest) = values.split_at(machine.layer(l).len());
                x.set_row(l, row, own)?;
                values = rest;
            }
        }
    }
    Ok(x)
}
