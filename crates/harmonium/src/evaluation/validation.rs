//! A rough likelihood of validation rows, for machines that have neither an exact one nor a
//! pseudo-likelihood: deep machines, and real visible units.
//!
//! $$\overline{\ln p(v)} \approx -\overline{F(v)} - \ln Z,$$
//!
//! with the mean free energy that was measured (its variational bound in deep machines) and $\ln Z$
//! annealed with little work and always the same variates, so that epochs of one run are compared
//! alike. It chooses the best epoch and is not a likelihood to be quoted: annealing that is too quick
//! for a machine puts $\ln Z$ too low and the score too high.

use super::log_partition::{Method, Settings, log_partition};
use crate::error::Error;
use crate::machine::Machine;
use crate::progress::Silent;
use crate::training::{Measurement, MetricName, On};

/// What it is called.
pub const ANNEALED: MetricName = MetricName::AnnealedLikelihood;

/// Chains and temperatures of the annealing.
const CHAINS: usize = 50;
const BETAS: usize = 300;

/// The score, where the free energy of the validation rows was measured.
///
/// # Errors
///
/// If memory ends.
pub fn annealed(
    machine: &Machine,
    found: &[Measurement],
    seed: u64,
) -> Result<Option<Measurement>, Error> {
    let energy = found.iter().find(|m| m.name == MetricName::FreeEnergy(On::Valid));
    let Some(energy) = energy else { return Ok(None) };
    let settings = Settings {
        method: Some(Method::Ais),
        chains: Some(CHAINS),
        betas: Some(BETAS),
        seed,
        ..Settings::default()
    };
    let log_z = log_partition(machine, &settings, &mut Silent)?;
    let std_error = energy.std_error.map(|error| error.hypot(log_z.std_error));
    Ok(Some(Measurement { name: ANNEALED, value: -energy.value - log_z.log_z, std_error }))
}
