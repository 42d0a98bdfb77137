//! What a model is made of: one machine, or a network of machines.

use super::{Bm, Dbm, Dbn, MultimodalDbm, Rbm};
use crate::machine::{Layer, Machine, Role};

/// The parameters of a model of any kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Body {
    /// A Boltzmann machine: one energy over a graph of layers.
    Machine(Machine),
    /// A deep belief network: directed layers under an RBM.
    Dbn(Dbn),
}

impl Body {
    /// The word for it in model files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Machine(_) => "machine",
            Self::Dbn(_) => "dbn",
        }
    }

    /// The machine that is sampled and whose $\ln Z$ is summed: the whole, or the RBM on top.
    pub fn top(&self) -> &Machine {
        match self {
            Self::Machine(machine) => machine,
            Self::Dbn(dbn) => dbn.top(),
        }
    }

    /// The layers that data goes into.
    pub fn visible(&self) -> Vec<&Layer> {
        match self {
            Self::Machine(machine) => {
                machine.layers().iter().filter(|l| l.role == Role::Visible).collect()
            }
            Self::Dbn(dbn) => [dbn.layer(0)].into_iter().chain(dbn.labels()).collect(),
        }
    }

    /// The layers that are inferred, from the data upwards.
    pub fn hidden(&self) -> Vec<&Layer> {
        match self {
            Self::Machine(machine) => {
                machine.layers().iter().filter(|l| l.role == Role::Hidden).collect()
            }
            Self::Dbn(dbn) => (1..=dbn.depth()).map(|l| dbn.layer(l)).collect(),
        }
    }

    /// Number of parameters; weights that are tied count once.
    pub fn n_parameters(&self) -> usize {
        match self {
            Self::Machine(machine) => machine.n_parameters(),
            Self::Dbn(dbn) => dbn.n_parameters(),
        }
    }
}

impl From<Machine> for Body {
    fn from(machine: Machine) -> Self {
        Self::Machine(machine)
    }
}

impl From<Dbn> for Body {
    fn from(dbn: Dbn) -> Self {
        Self::Dbn(dbn)
    }
}

impl From<Rbm> for Body {
    fn from(rbm: Rbm) -> Self {
        Self::Machine(rbm.into_machine())
    }
}

impl From<Bm> for Body {
    fn from(bm: Bm) -> Self {
        Self::Machine(bm.into_machine())
    }
}

impl From<Dbm> for Body {
    fn from(dbm: Dbm) -> Self {
        Self::Machine(dbm.into_machine())
    }
}

impl From<MultimodalDbm> for Body {
    fn from(dbm: MultimodalDbm) -> Self {
        Self::Machine(dbm.into_machine())
    }
}
