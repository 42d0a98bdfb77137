//! The deep Boltzmann machine (Salakhutdinov & Hinton 2009): a chain of layers.

use super::{coupling, described, has_exactly, visible};
use crate::error::Error;
use crate::machine::{Layer, Machine, Role};
use crate::units::Units;

/// A visible layer and a chain of hidden layers above it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dbm(Machine);

impl Dbm {
    /// Hidden layers of a machine of which nobody said how deep it is.
    pub const USUAL_LAYERS: usize = 2;

    /// Couples each layer with the next; all parameters zero. Hidden layers are named `hidden1`,
    /// `hidden2`, … from the data upwards.
    ///
    /// # Errors
    ///
    /// If there is no hidden layer, a layer is empty, or memory ends.
    pub fn new(visible_layer: (Units, usize), hidden: &[(Units, usize)]) -> Result<Self, Error> {
        let mut layers = vec![visible(visible_layer.0, visible_layer.1)?];
        for (i, &(units, n)) in hidden.iter().enumerate() {
            layers.push(Layer::new(format!("hidden{}", i + 1), Role::Hidden, units, n)?);
        }
        let couplings =
            (1..layers.len()).map(|l| coupling(&layers, l - 1, l)).collect::<Result<_, _>>()?;
        Self::try_from(Machine::new(layers, couplings)?)
    }

    /// Binary units everywhere.
    ///
    /// # Errors
    ///
    /// As for [`Dbm::new`].
    pub fn binary(n_visible: usize, n_hidden: &[usize]) -> Result<Self, Error> {
        let hidden: Vec<(Units, usize)> = n_hidden.iter().map(|&n| (Units::Binary, n)).collect();
        Self::new((Units::Binary, n_visible), &hidden)
    }

    /// Number of hidden layers.
    pub fn depth(&self) -> usize {
        self.0.layers().len() - 1
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

impl TryFrom<Machine> for Dbm {
    type Error = Error;

    fn try_from(machine: Machine) -> Result<Self, Error> {
        let n = machine.layers().len();
        let chain: Vec<(usize, usize)> = (1..n).map(|l| (l - 1, l)).collect();
        let roles = machine.layers().iter().enumerate();
        let in_order = roles.into_iter().all(|(i, l)| (l.role == Role::Visible) == (i == 0));
        if n > 1 && in_order && has_exactly(&machine, &chain) {
            return Ok(Self(machine));
        }
        Err(Error::Topology {
            model: "a DBM",
            expected: "a visible layer and a chain of hidden layers, each coupled with the next",
            found: described(&machine),
        })
    }
}
