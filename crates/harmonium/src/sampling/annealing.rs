//! Falling temperature: simulated annealing, and recall at temperature zero.
//!
//! Annealing samples $p_\beta(x) \propto e^{-\beta E(x)}$ at rising $\beta$ (Kirkpatrick, Gelatt &
//! Vecchi 1983). Settling takes each conditional mode, which never raises the energy: on a fully
//! visible machine of spins this is the recall of a Hopfield network (1982).

use super::gibbs::{mark, sample_sweeps};
use super::mean_field::{Convergence, until_still};
use super::walk::{Heat, Response, Walk};
use super::{Clamp, Sampler};
use crate::error::Error;
use crate::machine::{Meaning, State};
use harmonium_kernels::random::Stream;

impl Sampler {
    /// One Gibbs sweep at each inverse temperature, in the order given.
    ///
    /// # Errors
    ///
    /// If a $\beta$ is not positive and finite, or clamp or state do not fit the machine.
    pub fn anneal(
        &self,
        clamp: &Clamp,
        x: &mut State,
        betas: &[f64],
        stream: Stream,
    ) -> Result<(), Error> {
        self.check(clamp, x)?;
        if let Some(beta) = betas.iter().find(|b| !b.is_finite() || **b <= 0.0) {
            let (name, value) = ("betas", beta.to_string());
            return Err(Error::Setting { name, value, range: "positive and finite" });
        }
        for (sweep, &beta) in betas.iter().enumerate() {
            let walk = Walk { engine: self.engine(), clamp, heat: Heat::Scaled(beta), step: 1.0 };
            sample_sweeps(walk, x, sweep..sweep + 1, stream);
        }
        Ok(())
    }

    /// Moves every free unit to its most probable value, sweep after sweep, until nothing moves.
    ///
    /// # Errors
    ///
    /// If clamp or state do not fit the machine.
    pub fn settle(
        &self,
        clamp: &Clamp,
        x: &mut State,
        max_sweeps: usize,
    ) -> Result<Convergence, Error> {
        self.check(clamp, x)?;
        mark(x, clamp, Meaning::Values);
        let walk = Walk { engine: self.engine(), clamp, heat: Heat::None, step: 1.0 };
        // Gaussian units creep towards their mode; discrete ones stop dead.
        Ok(until_still(walk, x, max_sweeps, 1e-9, Response::Mode))
    }
}
