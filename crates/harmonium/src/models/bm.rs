//! The general Boltzmann machine (Ackley, Hinton & Sejnowski 1985): $W$, $L$ and $J$.

use super::{coupling, described, visible};
use crate::error::Error;
use crate::machine::{Coupling, Layer, LayerId, Machine, Role, Triangle};
use crate::units::Units;

/// Which layers have couplings inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lateral {
    /// Between visible units: a semi-restricted machine, or a fully visible one.
    #[default]
    Visible,
    /// Between hidden units.
    Hidden,
    /// Both.
    Both,
}

impl Lateral {
    /// The names of the layers that have them.
    pub fn layers(self) -> &'static [&'static str] {
        match self {
            Self::Visible => &["visible"],
            Self::Hidden => &["hidden"],
            Self::Both => &["visible", "hidden"],
        }
    }
}

/// One visible and at most one hidden layer, with lateral couplings.
#[derive(Clone, Debug, PartialEq)]
pub struct Bm(Machine);

impl Bm {
    /// The layer the data goes into.
    pub const VISIBLE: LayerId = LayerId(0);

    /// Layers of the given kinds and numbers of units, all parameters zero. No hidden units, and
    /// [`Lateral::Visible`], is a fully visible machine (Ising, Potts).
    ///
    /// # Errors
    ///
    /// If a layer is empty or memory ends, or hidden laterals are asked for without hidden units.
    pub fn new(
        (visible_units, n_visible): (Units, usize),
        (hidden_units, n_hidden): (Units, usize),
        lateral: Lateral,
    ) -> Result<Self, Error> {
        let mut layers = vec![visible(visible_units, n_visible)?];
        let mut couplings = Vec::new();
        if n_hidden > 0 || lateral != Lateral::Visible {
            layers.push(Layer::new("hidden", Role::Hidden, hidden_units, n_hidden)?);
            couplings.push(coupling(&layers, 0, 1)?);
        }
        for (l, wanted) in [(0, lateral != Lateral::Hidden), (1, lateral != Lateral::Visible)] {
            if wanted {
                couplings.push(Coupling::lateral(LayerId(l), Triangle::zeros(layers[l].len())?));
            }
        }
        Self::try_from(Machine::new(layers, couplings)?)
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

impl TryFrom<Machine> for Bm {
    type Error = Error;

    fn try_from(machine: Machine) -> Result<Self, Error> {
        let roles: Vec<Role> = machine.layers().iter().map(|l| l.role).collect();
        let fits = match roles[..] {
            [Role::Visible] => true,
            [Role::Visible, Role::Hidden] => machine.coupled(LayerId(0), LayerId(1)),
            _ => false,
        };
        if fits {
            return Ok(Self(machine));
        }
        Err(Error::Topology {
            model: "a Boltzmann machine",
            expected: "one visible layer, and at most one hidden layer coupled with it",
            found: described(&machine),
        })
    }
}
