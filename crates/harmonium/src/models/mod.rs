//! The models by name: machines whose graph is proved, so that more can be asked of them.
//!
//! | model | graph |
//! |---|---|
//! | [`Rbm`] | one visible and one hidden layer |
//! | [`Bm`] | one visible and at most one hidden layer, each with an optional lateral coupling |
//! | [`Dbm`] | a chain: visible, then hidden layers |
//! | [`MultimodalDbm`] | a tree whose leaves are visible layers and whose pathways meet |
//! | [`Dbn`] | directed layers under an RBM: no machine as a whole, but made of some |
//! | [`over()`] | an RBM, a general machine or a DBM over several visible layers: for tables of mixed columns |
//! | [`Network`] | a feed-forward net: no machine, but made of one, or of random numbers |
//! | [`ising()`], [`ising_torus`], [`potts`], [`curie_weiss`] | [`Bm`]s of statistical physics; of some the partition function is known |
//!
//! Each but the [`Dbn`] and the [`Network`] is a [`Machine`] inside; every algorithm of the library takes that.

mod bm;
mod body;
mod columns;
mod dbm;
mod dbn;
mod ising;
mod labels;
mod multimodal;
mod network;
mod over;
mod rbm;

pub use bm::{Bm, Lateral};
pub use body::{Body, HiddenLayer};
pub use columns::{MOST_COUPLED_COLUMNS, coupled_columns, with_coupled_columns};
pub use dbm::Dbm;
pub use dbn::{Dbn, Directed};
pub use ising::{LONGEST_SIDE, MOST_SITES, MOST_SPINS, curie_weiss, ising, ising_torus, potts};
pub use labels::with_labels;
pub use multimodal::{MultimodalDbm, Pathway, modality_of};
pub use network::{Activation, Dense, Loss, Network, OUTPUT, Posterior, Target};
pub use over::{Above, over};
pub use rbm::Rbm;

use crate::error::Error;
use crate::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role};
use crate::units::Units;

/// Zero weights between two of `layers`.
fn coupling(layers: &[Layer], a: usize, b: usize) -> Result<Coupling, Error> {
    let weights = Matrix::zeros(layers[a].len(), layers[b].len())?;
    Ok(Coupling::between(LayerId(a), LayerId(b), weights))
}

/// The first layer, visible.
fn visible(units: Units, n_units: usize) -> Result<Layer, Error> {
    Layer::new("visible", Role::Visible, units, n_units)
}

/// Whether the machine has exactly the couplings `pairs`, in either direction.
fn has_exactly(machine: &Machine, pairs: &[(usize, usize)]) -> bool {
    machine.couplings().len() == pairs.len()
        && pairs.iter().all(|&(a, b)| machine.coupled(LayerId(a), LayerId(b)))
}

/// The roles, e.g. `visible, hidden`, and the number of couplings, for messages.
fn described(machine: &Machine) -> String {
    let roles: Vec<&str> = machine
        .layers()
        .iter()
        .map(|l| if l.role == Role::Visible { "visible" } else { "hidden" })
        .collect();
    format!("found layers {} with {} couplings", roles.join(", "), machine.couplings().len())
}
