//! The multimodal deep Boltzmann machine (Srivastava & Salakhutdinov 2012): pathways that meet.

use super::{coupling, described};
use crate::error::Error;
use crate::machine::{Layer, LayerId, Machine, Role};
use crate::units::Units;

/// One modality: its visible layer and the hidden layers above it, below the joint one.
#[derive(Clone, Debug)]
pub struct Pathway {
    /// Name of the modality; its layers are called `name`, `name.hidden1`, …
    pub name: String,
    /// Kind and number of the visible units.
    pub visible: (Units, usize),
    /// Numbers of binary units of the layers above.
    pub hidden: Vec<usize>,
}

/// A tree of layers: every leaf is visible, or the one joint layer has no layer above it.
#[derive(Clone, Debug, PartialEq)]
pub struct MultimodalDbm(Machine);

impl MultimodalDbm {
    /// Joins at least two pathways in a binary layer of `n_joint` units; all parameters zero.
    ///
    /// # Errors
    ///
    /// If there are fewer than two pathways, a layer is empty, or memory ends.
    pub fn new(pathways: &[Pathway], n_joint: usize) -> Result<Self, Error> {
        let mut layers = Vec::new();
        let mut pairs = Vec::new();
        let mut tops = Vec::new();
        for Pathway { name, visible: (units, n), hidden } in pathways {
            layers.push(Layer::new(name.clone(), Role::Visible, *units, *n)?);
            for (i, &n) in hidden.iter().enumerate() {
                let name = format!("{name}.hidden{}", i + 1);
                layers.push(Layer::new(name, Role::Hidden, Units::Binary, n)?);
                pairs.push((layers.len() - 2, layers.len() - 1));
            }
            tops.push(layers.len() - 1);
        }
        layers.push(Layer::new("joint", Role::Hidden, Units::Binary, n_joint)?);
        pairs.extend(tops.into_iter().map(|top| (top, layers.len() - 1)));
        let couplings =
            pairs.iter().map(|&(a, b)| coupling(&layers, a, b)).collect::<Result<_, _>>()?;
        Self::try_from(Machine::new(layers, couplings)?)
    }

    /// The same over visible layers that are there: those of one modality are called as it is, or begin with its name and a
    /// point, as a table of mixed columns has one for each kind. `hidden` are the layers above each modality, by its name; a
    /// modality without any meets the joint layer itself.
    ///
    /// # Errors
    ///
    /// If there are fewer than two modalities, hidden layers are named for one that is not there, a layer is empty, or memory
    /// ends.
    pub fn over(
        visible: Vec<Layer>,
        hidden: &[(String, Vec<usize>)],
        n_joint: usize,
    ) -> Result<Self, Error> {
        let mut names: Vec<String> = Vec::new();
        for layer in &visible {
            let name = modality_of(&layer.name);
            if names.iter().all(|n| n != name) {
                names.push(name.to_owned());
            }
        }
        if let Some((name, _)) = hidden.iter().find(|(name, _)| !names.contains(name)) {
            return Err(Error::NoModality { name: name.clone(), modalities: names.join(", ") });
        }
        let (mut layers, mut pairs, mut tops) = (Vec::new(), Vec::new(), Vec::new());
        for name in &names {
            let own = visible.iter().filter(|layer| modality_of(&layer.name) == name);
            let mut ends: Vec<usize> = Vec::new();
            for layer in own {
                ends.push(layers.len());
                layers.push(layer.clone());
            }
            let sizes = hidden.iter().find(|(of, _)| of == name).map_or(&[][..], |(_, n)| n);
            for (i, &n) in sizes.iter().enumerate() {
                let name = format!("{name}.hidden{}", i + 1);
                pairs.extend(ends.iter().map(|&end| (end, layers.len())));
                ends = vec![layers.len()];
                layers.push(Layer::new(name, Role::Hidden, Units::Binary, n)?);
            }
            tops.extend(ends);
        }
        layers.push(Layer::new("joint", Role::Hidden, Units::Binary, n_joint)?);
        pairs.extend(tops.into_iter().map(|top| (top, layers.len() - 1)));
        let couplings =
            pairs.iter().map(|&(a, b)| coupling(&layers, a, b)).collect::<Result<_, _>>()?;
        if names.len() < 2 {
            return Err(Error::Topology {
                model: "a multimodal DBM",
                expected: "at least two modalities",
                found: format!("found {}: {}", names.len(), names.join(", ")),
            });
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

impl TryFrom<Machine> for MultimodalDbm {
    type Error = Error;

    fn try_from(machine: Machine) -> Result<Self, Error> {
        let n = machine.layers().len();
        let neighbours =
            |l: LayerId| machine.layer_ids().filter(|&m| machine.coupled(l, m)).count();
        let visible = machine.visible_layers();
        // A connected graph with one edge less than nodes is a tree.
        let tree = machine.couplings().len() + 1 == n
            && machine.layer_ids().all(|l| !machine.has_lateral(l))
            && connected(&machine);
        let leaves = visible.iter().all(|&l| neighbours(l) == 1);
        if visible.len() >= 2 && tree && leaves {
            return Ok(Self(machine));
        }
        Err(Error::Topology {
            model: "a multimodal DBM",
            expected: "a tree of layers with at least two visible leaves",
            found: described(&machine),
        })
    }
}

/// The modality that a layer belongs to, by its name.
pub fn modality_of(layer: &str) -> &str {
    layer.split('.').next().unwrap_or(layer)
}

fn connected(machine: &Machine) -> bool {
    let mut reached = vec![LayerId(0)];
    let mut next = 0;
    while next < reached.len() {
        let l = reached[next];
        let new = machine.layer_ids().filter(|m| machine.coupled(l, *m) && !reached.contains(m));
        let new: Vec<LayerId> = new.collect();
        reached.extend(new);
        next += 1;
    }
    reached.len() == machine.layers().len()
}
