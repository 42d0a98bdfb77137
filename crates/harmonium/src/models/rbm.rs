//! The restricted Boltzmann machine (Smolensky's harmonium, 1986).

use super::{coupling, described, has_exactly, visible};
use crate::error::Error;
use crate::machine::{Batch, Layer, LayerId, Machine, Role};
use crate::units::Units;

/// One visible and one hidden layer, coupled; nothing lateral.
#[derive(Clone, Debug, PartialEq)]
pub struct Rbm(Machine);

impl Rbm {
    /// The layer the data goes into.
    pub const VISIBLE: LayerId = LayerId(0);
    /// The layer that is inferred.
    pub const HIDDEN: LayerId = LayerId(1);

    /// Layers of the given kinds and numbers of units, all parameters zero.
    ///
    /// # Errors
    ///
    /// If a layer is empty or memory ends.
    pub fn new(
        (visible_units, n_visible): (Units, usize),
        (hidden_units, n_hidden): (Units, usize),
    ) -> Result<Self, Error> {
        let hidden = Layer::new("hidden", Role::Hidden, hidden_units, n_hidden)?;
        let layers = vec![visible(visible_units, n_visible)?, hidden];
        let couplings = vec![coupling(&layers, 0, 1)?];
        Self::try_from(Machine::new(layers, couplings)?)
    }

    /// Binary units on both sides.
    ///
    /// ```
    /// let rbm = harmonium::models::Rbm::binary(784, 500)?;
    /// assert_eq!(rbm.machine().n_parameters(), 784 * 500 + 784 + 500);
    /// # Ok::<(), harmonium::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a layer is empty or memory ends.
    pub fn binary(n_visible: usize, n_hidden: usize) -> Result<Self, Error> {
        Self::new((Units::Binary, n_visible), (Units::Binary, n_hidden))
    }

    /// $F(v) = -\ln \sum_h e^{-E(v, h)}$ of each sample, in closed form.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn free_energy(&self, batch: &Batch) -> Result<Vec<f64>, Error> {
        self.0.free_energy_over(&[Self::HIDDEN], &batch.to_state(&self.0)?)
    }

    /// The machine underneath.
    pub fn machine(&self) -> &Machine {
        &self.0
    }

    /// Gives the machine away.
    pub fn into_machine(self) -> Machine {
        self.0
    }
}

impl TryFrom<Machine> for Rbm {
    type Error = Error;

    fn try_from(machine: Machine) -> Result<Self, Error> {
        if is_rbm(&machine) {
            return Ok(Self(machine));
        }
        Err(Error::Topology {
            model: "an RBM",
            expected: "a visible and a hidden layer with one coupling between them",
            found: described(&machine),
        })
    }
}

/// Whether the graph is that of an RBM.
pub(super) fn is_rbm(machine: &Machine) -> bool {
    let roles: Vec<Role> = machine.layers().iter().map(|l| l.role).collect();
    roles == [Role::Visible, Role::Hidden] && has_exactly(machine, &[(0, 1)])
}
