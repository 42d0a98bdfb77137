//! Real columns that see each other.

use crate::error::Error;
use crate::machine::{Coupling, LayerId, Machine, Role, Triangle};

/// Real columns up to which they are coupled with each other unasked: an update takes the cube of their
/// number.
pub const MOST_COUPLED_COLUMNS: usize = 256;

/// The machine with a dense coupling inside every visible Gaussian layer that has none and has from 2 to
/// [`MOST_COUPLED_COLUMNS`] units: training then starts at the inverse of their shrunken covariance, one full
/// Gaussian, and hidden units learn what that cannot say.
///
/// # Errors
///
/// If memory ends.
pub fn with_coupled_columns(machine: &Machine) -> Result<Machine, Error> {
    let mut couplings = machine.couplings().to_vec();
    for l in machine.layer_ids() {
        let n = machine.layer(l).len();
        if machine.layer(l).role == Role::Visible
            && machine.is_gaussian(l)
            && !machine.has_lateral(l)
            && (2..=MOST_COUPLED_COLUMNS).contains(&n)
        {
            couplings.push(Coupling::lateral(l, Triangle::zeros(n)?));
        }
    }
    Machine::new(machine.layers().to_vec(), couplings)?.with_constant(machine.constant())
}

/// How many real columns of a machine are coupled with others of their layer.
pub fn coupled_columns(machine: &Machine) -> usize {
    let coupled = |l: &LayerId| {
        machine.layer(*l).role == Role::Visible
            && machine.is_gaussian(*l)
            && machine.has_lateral(*l)
    };
    machine.layer_ids().filter(coupled).map(|l| machine.layer(l).len()).sum()
}
