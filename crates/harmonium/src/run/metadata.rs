//! The text in a model file: sorted JSON that says what the tensors are.

use super::checksum::Checksum;
use super::memory::Memory;
use super::model_file::About;
use super::network_file::NetworkEntry;
use super::tensors::{Tensor, Tensors};
use super::{NO_FILE, damaged};
use crate::error::Error;
use crate::machine::{Machine, Role, Weights};
use crate::models::{Body, Directed};
use crate::training::Stage;
use crate::units::Units;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The latest version this library reads: 2 knows sparse couplings, 3 has a checksum. Checkpoints are
/// written as version 3; a model as version 1, or 2 if it has sparse couplings, byte for byte what it
/// always was.
const FORMAT_VERSION: u64 = 3;
const SPARSE: u64 = 2;
const CHECKED: u64 = 3;

/// The kinds of file this version knows.
const MACHINE: &str = "machine";
const DBN: &str = "dbn";
const NETWORK: &str = "network";

/// Most layers, and most couplings, of a machine in a file.
const MOST_PARTS: usize = 10_000;

/// Most directed layers of a network in a file: each is looked up among all tensors.
const MOST_DIRECTED: usize = 100;

/// Everything but the numbers. A new field is a new format version, so that no reader passes over
/// something that matters. A file of kind `machine` has layers, couplings and a constant, one of kind
/// `dbn` directed layers and a top, one of kind `network` a net.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metadata {
    format_version: u64,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layers: Option<Vec<LayerEntry>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    couplings: Option<Vec<CouplingEntry>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    constant: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directed: Option<Vec<DirectedEntry>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    top: Option<MachineEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<NetworkEntry>,
    library_version: String,
    seed: u64,
    step: u64,
    epoch: u64,
    config: Value,
    data: Value,
    /// Only in checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) checkpoint: Option<Counters>,
    /// The [`Checksum`] of the text without these digits, and of the tensors; only in checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) checksum: Option<String>,
}

/// The graph that a file describes.
pub(super) enum Parts {
    Machine(MachineEntry),
    Dbn { directed: Vec<DirectedEntry>, top: MachineEntry },
    Network(NetworkEntry),
}

/// A machine without its numbers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineEntry {
    pub(super) layers: Vec<LayerEntry>,
    pub(super) couplings: Vec<CouplingEntry>,
    pub(super) constant: f64,
}

/// A directed layer without its numbers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DirectedEntry {
    pub(super) generative: MachineEntry,
    /// Nothing where both ways share their parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) recognition: Option<MachineEntry>,
}

/// A layer without its parameters.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayerEntry {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) units: Units,
    pub(super) n_units: usize,
}

/// A coupling without its weights.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CouplingEntry {
    pub(super) between: (String, String),
    pub(super) lateral: bool,
    /// The number of edges of a sparse coupling; none for a dense one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) edges: Option<usize>,
}

impl MachineEntry {
    pub(super) fn of(machine: &Machine) -> Self {
        let (layers, couplings) = (layer_entries(machine), coupling_entries(machine));
        Self { layers, couplings, constant: machine.constant() }
    }

    /// Whether there are not more parts than any machine should have, and only those that the
    /// version of the format knows.
    pub(super) fn check(&self, version: u64) -> Result<(), Error> {
        for (what, n) in [("layers", self.layers.len()), ("couplings", self.couplings.len())] {
            if n > MOST_PARTS {
                return Err(damaged(format!("{n} {what} are more than {MOST_PARTS}")));
            }
        }
        if version < SPARSE && self.couplings.iter().any(|c| c.edges.is_some()) {
            return Err(damaged("version 1 of the format has no sparse couplings"));
        }
        Ok(())
    }

    fn is_sparse(&self) -> bool {
        self.couplings.iter().any(|c| c.edges.is_some())
    }
}

impl DirectedEntry {
    fn of(part: &Directed) -> Self {
        Self {
            generative: MachineEntry::of(&part.generative),
            recognition: (!part.is_tied()).then(|| MachineEntry::of(&part.recognition)),
        }
    }
}

fn layer_entries(machine: &Machine) -> Vec<LayerEntry> {
    let layer = |l: &crate::machine::Layer| LayerEntry {
        name: l.name.clone(),
        role: l.role,
        units: l.units,
        n_units: l.n_units(),
    };
    machine.layers().iter().map(layer).collect()
}

fn coupling_entries(machine: &Machine) -> Vec<CouplingEntry> {
    let name = |l| machine.layer(l).name.clone();
    let coupling = |c: &crate::machine::Coupling| CouplingEntry {
        between: (name(c.between.0), name(c.between.1)),
        lateral: c.is_lateral(),
        edges: match &c.weights {
            Weights::Sparse(edges) => Some(edges.pairs().len()),
            Weights::Between(_) | Weights::Lateral(_) => None,
        },
    };
    machine.couplings().iter().map(coupling).collect()
}

/// Where training was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counters {
    /// Which stage is under way, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stage: Option<Stage>,
    pub(super) epoch: u64,
    pub(super) batches_done: u64,
    pub(super) events_length: u64,
    pub(super) extra: Value,
}

/// What every version of the format has.
#[derive(Deserialize)]
struct Opening {
    format_version: u64,
    kind: String,
}

impl Metadata {
    pub(super) fn new(body: &Body, about: &About, checkpoint: Option<Counters>) -> Self {
        let mut metadata = Self {
            format_version: 1,
            kind: body.kind().into(),
            layers: None,
            couplings: None,
            constant: None,
            directed: None,
            top: None,
            network: None,
            library_version: about.library_version.clone(),
            seed: about.seed,
            step: about.step,
            epoch: about.epoch,
            config: about.config.clone(),
            data: about.data.to_json(),
            checkpoint,
            checksum: None,
        };
        match body {
            Body::Machine(machine) => {
                let entry = MachineEntry::of(machine);
                if entry.is_sparse() {
                    metadata.format_version = SPARSE;
                }
                metadata.layers = Some(entry.layers);
                metadata.couplings = Some(entry.couplings);
                metadata.constant = Some(entry.constant);
            }
            Body::Dbn(dbn) => {
                metadata.directed = Some(dbn.directed().iter().map(DirectedEntry::of).collect());
                metadata.top = Some(MachineEntry::of(dbn.top()));
            }
            Body::Network(network) => {
                let entry = NetworkEntry::of(network);
                if entry.posterior.as_ref().is_some_and(|p| p.machine.is_sparse()) {
                    metadata.format_version = SPARSE;
                }
                metadata.network = Some(entry);
            }
        }
        if metadata.checkpoint.is_some() {
            metadata.format_version = CHECKED;
            metadata.checksum = Some(String::new());
        }
        metadata
    }

    /// The text of a file with these tensors, with a checksum where it is that of a checkpoint.
    ///
    /// # Errors
    ///
    /// As [`Metadata::to_text`].
    pub(super) fn text_with(
        mut self,
        tensors: &BTreeMap<String, Tensor<'_>>,
    ) -> Result<String, Error> {
        let text = self.to_text()?;
        if self.checksum.is_none() {
            return Ok(text);
        }
        let mut sum = Checksum::new();
        sum.text(&text);
        tensors.iter().for_each(|(name, tensor)| tensor.add_to(name, &mut sum));
        self.checksum = Some(sum.digits());
        self.to_text()
    }

    /// Whether `text`, from which this was read, and the tensors are what was written.
    ///
    /// # Errors
    ///
    /// If the checksum is of something else, or is missing from a version that has one.
    pub(super) fn check_sum(&self, text: &str, tensors: &Tensors<'_>) -> Result<(), Error> {
        let Some(digits) = &self.checksum else {
            if self.format_version >= CHECKED {
                let version = self.format_version;
                return Err(damaged(format!("version {version} of the format has a checksum")));
            }
            return Ok(());
        };
        let mut sum = Checksum::new();
        sum.text(&text.replacen(digits.as_str(), "", 1));
        tensors.add_to(&mut sum);
        let found = sum.digits();
        if found != *digits {
            return Err(damaged(format!(
                "its checksum is {found}, but {digits} was written: some of its bytes have changed"
            )));
        }
        Ok(())
    }

    /// Where the model comes from.
    ///
    /// # Errors
    ///
    /// If what it says of its data is not of the right form.
    pub(super) fn about(&self) -> Result<About, Error> {
        Ok(About {
            seed: self.seed,
            step: self.step,
            epoch: self.epoch,
            config: self.config.clone(),
            data: Memory::from_json(&self.data)?,
            library_version: self.library_version.clone(),
        })
    }

    /// The graph that the file describes.
    ///
    /// # Errors
    ///
    /// If something of its kind is missing, or something of another kind is there.
    pub(super) fn take_parts(&mut self) -> Result<Parts, Error> {
        let wrong = || damaged(format!("it does not describe a {}", self.kind));
        let of_machine = (self.layers.take(), self.couplings.take(), self.constant.take());
        let of_dbn = (self.directed.take(), self.top.take());
        let version = self.format_version;
        let parts = match (self.kind.as_str(), of_machine, of_dbn, self.network.take()) {
            (MACHINE, (Some(layers), Some(couplings), Some(constant)), (None, None), None) => {
                Parts::Machine(MachineEntry { layers, couplings, constant })
            }
            (DBN, (None, None, None), (Some(directed), Some(top)), None) => {
                Parts::Dbn { directed, top }
            }
            (NETWORK, (None, None, None), (None, None), Some(network)) => Parts::Network(network),
            _ => return Err(wrong()),
        };
        match &parts {
            Parts::Machine(entry) => entry.check(version)?,
            Parts::Network(entry) => entry.check(version)?,
            Parts::Dbn { directed, top } => {
                let n = directed.len();
                if n > MOST_DIRECTED {
                    let reason = format!("{n} directed layers are more than {MOST_DIRECTED}");
                    return Err(damaged(reason));
                }
                top.check(version)?;
                for part in directed {
                    part.generative.check(version)?;
                    part.recognition.as_ref().map_or(Ok(()), |up| up.check(version))?;
                }
            }
        }
        Ok(parts)
    }

    /// Sorted compact JSON.
    ///
    /// # Errors
    ///
    /// If reading it would not give back the same: the caller's values may nest too deep, and a
    /// model may have too many parts.
    fn to_text(&self) -> Result<String, Error> {
        let unwritable = |reason: String| Error::Unwritable { reason };
        let value = serde_json::to_value(self).map_err(|e| unwritable(e.to_string()))?;
        let text = sorted(value).to_string();
        let read = |text: &str| {
            let mut again = Self::from_text(text)?;
            let same = again == *self;
            again.take_parts().map(|_| same)
        };
        match read(&text) {
            Ok(true) => Ok(text),
            Ok(false) => Err(unwritable("its description would read differently".into())),
            Err(Error::Damaged { reason, .. }) => Err(unwritable(reason)),
            Err(error) => Err(error),
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// If the version or the kind is unknown, or the text is not of the right form.
    pub(super) fn from_text(text: &str) -> Result<Self, Error> {
        let opening: Opening = serde_json::from_str(text).map_err(wrong)?;
        let (path, found) = (NO_FILE.to_owned(), opening.format_version);
        if found > FORMAT_VERSION {
            return Err(Error::NewerFormat { path, found, supported: FORMAT_VERSION });
        }
        if found == 0 {
            return Err(damaged("there is no format version 0"));
        }
        if ![MACHINE, DBN, NETWORK].contains(&opening.kind.as_str()) {
            let expected = "machine`, `dbn` and `network";
            return Err(Error::UnknownKind { path, kind: opening.kind, expected });
        }
        serde_json::from_str(text).map_err(wrong)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn wrong(error: serde_json::Error) -> Error {
    damaged(format!("its description is wrong: {error}"))
}

/// The same value with the keys of every object in order, whatever order the caller's build keeps.
pub(super) fn sorted(mut value: Value) -> Value {
    value.sort_all_objects();
    value
}
