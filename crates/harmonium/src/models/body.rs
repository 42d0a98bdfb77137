//! What a model is made of: one machine, a network of machines, or a feed-forward net.

use super::{Bm, Dbm, Dbn, MultimodalDbm, Network, Rbm};
use crate::error::Error;
use crate::machine::{Layer, Machine, Role};

/// The parameters of a model of any kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Body {
    /// A Boltzmann machine: one energy over a graph of layers.
    Machine(Machine),
    /// A deep belief network: directed layers under an RBM.
    Dbn(Dbn),
    /// A feed-forward net, which has no distribution.
    Network(Network),
}

/// A hidden layer, for those who ask for its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenLayer<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its entries.
    pub len: usize,
}

impl Body {
    /// The word for it in model files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Machine(_) => "machine",
            Self::Dbn(_) => "dbn",
            Self::Network(_) => "network",
        }
    }

    /// The machine that is sampled and whose $\ln Z$ is summed: the whole, or the RBM on top.
    ///
    /// # Errors
    ///
    /// If it is a net, which has no distribution.
    pub fn top(&self) -> Result<&Machine, Error> {
        match self {
            Self::Machine(machine) => Ok(machine),
            Self::Dbn(dbn) => Ok(dbn.top()),
            Self::Network(_) => Err(Error::NoDistribution),
        }
    }

    /// The layers that data goes into.
    pub fn visible(&self) -> Vec<&Layer> {
        match self {
            Self::Machine(machine) => {
                machine.layers().iter().filter(|l| l.role == Role::Visible).collect()
            }
            Self::Dbn(dbn) => [dbn.layer(0)].into_iter().chain(dbn.labels()).collect(),
            Self::Network(network) => network.inputs().iter().collect(),
        }
    }

    /// The layers that are inferred, from the data upwards; of a net all but its output.
    pub fn hidden(&self) -> Vec<HiddenLayer<'_>> {
        fn of(layer: &Layer) -> HiddenLayer<'_> {
            HiddenLayer { name: &layer.name, len: layer.len() }
        }
        match self {
            Self::Machine(machine) => {
                machine.layers().iter().filter(|l| l.role == Role::Hidden).map(of).collect()
            }
            Self::Dbn(dbn) => (1..=dbn.depth()).map(|l| of(dbn.layer(l))).collect(),
            Self::Network(network) => {
                let (_, hidden) = network.layers().split_last().unwrap_or_else(|| unreachable!());
                hidden.iter().map(|l| HiddenLayer { name: &l.name, len: l.len() }).collect()
            }
        }
    }

    /// Number of parameters; weights that are tied count once.
    pub fn n_parameters(&self) -> usize {
        match self {
            Self::Machine(machine) => machine.n_parameters(),
            Self::Dbn(dbn) => dbn.n_parameters(),
            Self::Network(network) => network.n_parameters(),
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

impl From<Network> for Body {
    fn from(network: Network) -> Self {
        Self::Network(network)
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
