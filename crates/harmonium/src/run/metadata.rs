//! The text in a model file: sorted JSON that says what the tensors are.

use super::model_file::About;
use super::{NO_FILE, damaged};
use crate::error::Error;
use crate::machine::{Machine, Role, Weights};
use crate::units::Units;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The latest version this library reads: 2 knows sparse couplings. A machine without them is
/// written as version 1, byte for byte what it always was.
const FORMAT_VERSION: u64 = 2;

/// The kinds of file this version knows; `network` is kept free for others.
pub(super) const MACHINE: &str = "machine";
pub(super) const DBN: &str = "dbn";

/// Most layers, and most couplings, of a machine in a file.
const MOST_PARTS: usize = 10_000;

/// Everything but the numbers. A new field is a new format version, so that no reader passes over
/// something that matters.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metadata {
    format_version: u64,
    kind: String,
    layers: Vec<LayerEntry>,
    couplings: Vec<CouplingEntry>,
    constant: f64,
    library_version: String,
    seed: u64,
    step: u64,
    epoch: u64,
    config: Value,
    data: Value,
    /// Only in checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) checkpoint: Option<Counters>,
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

/// A machine without its numbers.
#[derive(Clone, Copy)]
pub(super) struct Graph<'a> {
    pub(super) layers: &'a [LayerEntry],
    pub(super) couplings: &'a [CouplingEntry],
    pub(super) constant: f64,
}

impl Graph<'_> {
    /// Whether there are not more parts than any machine should have.
    pub(super) fn check(&self) -> Result<(), Error> {
        for (what, n) in [("layers", self.layers.len()), ("couplings", self.couplings.len())] {
            if n > MOST_PARTS {
                return Err(damaged(format!("{n} {what} are more than {MOST_PARTS}")));
            }
        }
        Ok(())
    }
}

pub(super) fn layer_entries(machine: &Machine) -> Vec<LayerEntry> {
    let layer = |l: &crate::machine::Layer| LayerEntry {
        name: l.name.clone(),
        role: l.role,
        units: l.units,
        n_units: l.n_units(),
    };
    machine.layers().iter().map(layer).collect()
}

pub(super) fn coupling_entries(machine: &Machine) -> Vec<CouplingEntry> {
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
    pub(super) fn new(machine: &Machine, about: &About, checkpoint: Option<Counters>) -> Self {
        let sparse = machine.couplings().iter().any(|c| matches!(c.weights, Weights::Sparse(_)));
        Self {
            format_version: if sparse { FORMAT_VERSION } else { 1 },
            kind: MACHINE.into(),
            layers: layer_entries(machine),
            couplings: coupling_entries(machine),
            constant: machine.constant(),
            library_version: about.library_version.clone(),
            seed: about.seed,
            step: about.step,
            epoch: about.epoch,
            config: about.config.clone(),
            data: about.data.clone(),
            checkpoint,
        }
    }

    pub(super) fn into_about(self) -> About {
        let Self { library_version, seed, step, epoch, config, data, .. } = self;
        About { seed, step, epoch, config, data, library_version }
    }

    pub(super) fn graph(&self) -> Graph<'_> {
        Graph { layers: &self.layers, couplings: &self.couplings, constant: self.constant }
    }

    /// Sorted compact JSON.
    ///
    /// # Errors
    ///
    /// If reading it would not give back the same: the caller's values may nest too deep, and a
    /// machine may have too many parts.
    pub(super) fn to_text(&self) -> Result<String, Error> {
        checked_text(self, Self::from_text)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// If the version or the kind is none of ours, or the text not of the right form.
    pub(super) fn from_text(text: &str) -> Result<Self, Error> {
        let (metadata, version): (Self, u64) = opened(text, MACHINE)?;
        if version < 2 && metadata.couplings.iter().any(|c| c.edges.is_some()) {
            return Err(damaged("version 1 of the format has no sparse couplings"));
        }
        metadata.graph().check()?;
        Ok(metadata)
    }
}

/// What a file holds, according to its text.
///
/// # Errors
///
/// If the text is not of the right form.
pub(super) fn kind_of(text: &str) -> Result<String, Error> {
    let opening: Opening = serde_json::from_str(text).map_err(wrong)?;
    Ok(opening.kind)
}

/// The description in the text of a file of a kind, and its version.
///
/// # Errors
///
/// If the version or the kind is another, or the text not of the right form.
pub(super) fn opened<T: DeserializeOwned>(
    text: &str,
    expected: &'static str,
) -> Result<(T, u64), Error> {
    let opening: Opening = serde_json::from_str(text).map_err(wrong)?;
    let (path, found) = (NO_FILE.to_owned(), opening.format_version);
    if found > FORMAT_VERSION {
        return Err(Error::NewerFormat { path, found, supported: FORMAT_VERSION });
    }
    if found == 0 {
        return Err(damaged("there is no format version 0"));
    }
    if opening.kind != expected {
        return Err(Error::UnknownKind { path, kind: opening.kind, expected });
    }
    Ok((serde_json::from_str(text).map_err(wrong)?, found))
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn wrong(error: serde_json::Error) -> Error {
    damaged(format!("its description is wrong: {error}"))
}

/// Sorted compact JSON of a description.
///
/// # Errors
///
/// If `read` would not give back the same.
pub(super) fn checked_text<T: Serialize + PartialEq>(
    description: &T,
    read: impl Fn(&str) -> Result<T, Error>,
) -> Result<String, Error> {
    let unwritable = |reason: String| Error::Unwritable { reason };
    let value = serde_json::to_value(description).map_err(|e| unwritable(e.to_string()))?;
    let text = sorted(value).to_string();
    match read(&text) {
        Ok(again) if again == *description => Ok(text),
        Ok(_) => Err(unwritable("its description would read differently".into())),
        Err(Error::Damaged { reason, .. }) => Err(unwritable(reason)),
        Err(error) => Err(error),
    }
}

/// The same value with the keys of every object in order, whatever order the caller's build keeps.
pub(super) fn sorted(mut value: Value) -> Value {
    value.sort_all_objects();
    value
}
