//! A deep belief network and where it comes from, in one safetensors file of kind `dbn`.
//!
//! Every part is written as a machine is, its tensors behind a prefix: `top.…`,
//! `directed.<l>.generative.…` and, where it is no longer tied, `directed.<l>.recognition.…`.

use super::metadata::{
    CouplingEntry, DBN, Graph, LayerEntry, MACHINE, checked_text, coupling_entries, kind_of,
    layer_entries, opened,
};
use super::model_file::{About, Model, STATE, read_file};
use super::parameters::{take_machine, tensors_of};
use super::tensors::{self, Tensor, Tensors};
use super::{NO_FILE, Overwrite, atomic, damaged, in_file};
use crate::error::Error;
use crate::estimators::Snapshot;
use crate::machine::Machine;
use crate::models::{Dbn, Directed};
use crate::training::{DbnCheckpoint, Stage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The version of the format: files of this kind began with the first.
const VERSION: u64 = 1;

/// Most directed layers of a network in a file: each is looked up among all tensors.
const MOST_DIRECTED: usize = 100;

/// What stands before the tensors of the RBM on top.
const TOP: &str = "top.";

/// A network and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct DbnModel {
    /// The network.
    pub dbn: Dbn,
    /// Where it comes from.
    pub about: About,
}

/// A checkpoint with what its run needs besides. Any program that reads models reads it too.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedDbnCheckpoint {
    /// The state of training.
    pub checkpoint: DbnCheckpoint,
    /// Where it comes from.
    pub about: About,
    /// Bytes of `events.jsonl` that were written before it.
    pub events_length: u64,
    /// What the caller wants back. JSON has no infinities and no NaN.
    pub extra: Value,
}

/// Whatever a model file may hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// A Boltzmann machine.
    Machine(Box<Model>),
    /// A deep belief network.
    Dbn(Box<DbnModel>),
}

impl Stored {
    /// Reads the bytes of a model or of a checkpoint, of any kind.
    ///
    /// # Errors
    ///
    /// As [`Model::from_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let (_, text) = Tensors::read(bytes)?;
        match kind_of(&text)?.as_str() {
            MACHINE => Model::from_bytes(bytes).map(Box::new).map(Self::Machine),
            DBN => DbnModel::from_bytes(bytes).map(Box::new).map(Self::Dbn),
            other => {
                let (path, kind) = (NO_FILE.into(), other.to_owned());
                Err(Error::UnknownKind { path, kind, expected: "machine` and `dbn" })
            }
        }
    }

    /// Reads a file, or the model of a run directory: see [`Model::locate`].
    ///
    /// # Errors
    ///
    /// If there is none, or it is damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = Model::locate(path)?.path;
        Self::from_bytes(&read_file(&path)?).map_err(in_file(&path))
    }
}

impl DbnModel {
    /// The bytes of the file; equal models have equal bytes.
    ///
    /// # Errors
    ///
    /// If it could not be read again: see [`Error::Unwritable`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        write_parts(&self.dbn, &self.about, None)
    }

    /// Reads the bytes of a model or of a checkpoint.
    ///
    /// # Errors
    ///
    /// Names what is wrong with them; whatever they are, it never panics and never asks for memory
    /// that they merely claim to need.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let (model, _) = read_parts(bytes)?;
        Ok(model)
    }

    /// Writes a file: either all of it, or the old one stays.
    ///
    /// # Errors
    ///
    /// If the file is there already and must not be overwritten, or the system refuses.
    pub fn save(&self, path: impl AsRef<Path>, overwrite: Overwrite) -> Result<(), Error> {
        atomic::write(path.as_ref(), &self.to_bytes()?, overwrite)
    }

    /// Reads a file, or the model of a run directory: see [`Model::locate`].
    ///
    /// # Errors
    ///
    /// If there is none, or it is damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = Model::locate(path)?.path;
        Self::from_bytes(&read_file(&path)?).map_err(in_file(&path))
    }
}

impl SavedDbnCheckpoint {
    /// The bytes of the file; equal checkpoints have equal bytes.
    ///
    /// # Errors
    ///
    /// If it could not be read again: see [`Error::Unwritable`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let DbnCheckpoint { stage, dbn, epoch, batches_done, state } = &self.checkpoint;
        let counters = DbnCounters {
            stage: *stage,
            epoch: *epoch,
            batches_done: *batches_done,
            events_length: self.events_length,
            extra: self.extra.clone(),
        };
        write_parts(dbn, &self.about, Some((state, counters)))
    }

    /// Reads the bytes of a checkpoint, every number to the bit.
    ///
    /// # Errors
    ///
    /// As [`DbnModel::from_bytes`]; and a model that is no checkpoint is one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let (DbnModel { dbn, about }, training) = read_parts(bytes)?;
        let (state, counters) =
            training.ok_or_else(|| damaged("it is a model without the state of a training"))?;
        let DbnCounters { stage, epoch, batches_done, events_length, extra } = counters;
        let checkpoint = DbnCheckpoint { stage, dbn, epoch, batches_done, state };
        Ok(Self { checkpoint, about, events_length, extra })
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If the system refuses, or the file is no checkpoint.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::from_bytes(&read_file(path)?).map_err(in_file(path))
    }
}

/// Everything but the numbers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DbnMetadata {
    format_version: u64,
    kind: String,
    directed: Vec<DirectedEntry>,
    top: MachineEntry,
    library_version: String,
    seed: u64,
    step: u64,
    epoch: u64,
    config: Value,
    data: Value,
    /// Only in checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<DbnCounters>,
}

/// A directed layer without its numbers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DirectedEntry {
    generative: MachineEntry,
    /// Nothing where both ways share their parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recognition: Option<MachineEntry>,
}

/// A machine without its numbers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineEntry {
    layers: Vec<LayerEntry>,
    couplings: Vec<CouplingEntry>,
    constant: f64,
}

/// Where training was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DbnCounters {
    stage: Stage,
    epoch: u64,
    batches_done: u64,
    events_length: u64,
    extra: Value,
}

impl MachineEntry {
    fn of(machine: &Machine) -> Self {
        let (layers, couplings) = (layer_entries(machine), coupling_entries(machine));
        Self { layers, couplings, constant: machine.constant() }
    }

    /// Takes the machine out of the tensors behind `prefix`.
    fn take(&self, prefix: &str, tensors: &mut Tensors) -> Result<Machine, Error> {
        let (layers, couplings) = (&self.layers[..], &self.couplings[..]);
        let graph = Graph { layers, couplings, constant: self.constant };
        let mut part = tensors.take_part(prefix);
        let taken = graph.check().and_then(|()| take_machine(graph, &mut part));
        let machine = taken.and_then(|machine| part.all_taken().map(|()| machine));
        machine.map_err(|error| match error {
            Error::Damaged { reason, .. } => {
                damaged(format!("in `{}`: {reason}", prefix.trim_end_matches('.')))
            }
            other => other,
        })
    }
}

impl DbnMetadata {
    fn new(dbn: &Dbn, about: &About, checkpoint: Option<DbnCounters>) -> Self {
        let directed = |part: &Directed| DirectedEntry {
            generative: MachineEntry::of(&part.generative),
            recognition: (!part.is_tied()).then(|| MachineEntry::of(&part.recognition)),
        };
        Self {
            format_version: VERSION,
            kind: DBN.into(),
            directed: dbn.directed().iter().map(directed).collect(),
            top: MachineEntry::of(dbn.top()),
            library_version: about.library_version.clone(),
            seed: about.seed,
            step: about.step,
            epoch: about.epoch,
            config: about.config.clone(),
            data: about.data.clone(),
            checkpoint,
        }
    }

    fn from_text(text: &str) -> Result<Self, Error> {
        let (metadata, _): (Self, u64) = opened(text, DBN)?;
        let n = metadata.directed.len();
        if n > MOST_DIRECTED {
            return Err(damaged(format!("{n} directed layers are more than {MOST_DIRECTED}")));
        }
        Ok(metadata)
    }
}

fn generative(l: usize) -> String {
    format!("directed.{l}.generative.")
}

fn recognition(l: usize) -> String {
    format!("directed.{l}.recognition.")
}

fn write_parts(
    dbn: &Dbn,
    about: &About,
    training: Option<(&Snapshot, DbnCounters)>,
) -> Result<Vec<u8>, Error> {
    let mut tensors = BTreeMap::new();
    let mut add = |prefix: String, machine| {
        for (name, tensor) in tensors_of(machine) {
            tensors.insert(format!("{prefix}{name}"), tensor);
        }
    };
    add(TOP.into(), dbn.top());
    for (l, part) in dbn.directed().iter().enumerate() {
        add(generative(l), &part.generative);
        if !part.is_tied() {
            add(recognition(l), &part.recognition);
        }
    }
    let (state, counters) = training.unzip();
    for (key, values) in state.into_iter().flat_map(|state| &state.0) {
        tensors.insert(format!("{STATE}{key}"), Tensor::row(values));
    }
    let metadata = DbnMetadata::new(dbn, about, counters);
    tensors::write(tensors, checked_text(&metadata, DbnMetadata::from_text)?)
}

/// What [`write_parts`] wrote.
fn read_parts(bytes: &[u8]) -> Result<(DbnModel, Option<(Snapshot, DbnCounters)>), Error> {
    let (mut tensors, text) = Tensors::read(bytes)?;
    let metadata = DbnMetadata::from_text(&text)?;
    let mut directed = Vec::new();
    for (l, entry) in metadata.directed.iter().enumerate() {
        let down = entry.generative.take(&generative(l), &mut tensors)?;
        let up = entry.recognition.as_ref().map(|up| up.take(&recognition(l), &mut tensors));
        directed.push(match up {
            Some(up) => Directed { generative: down, recognition: up? },
            None => Directed::tied(down),
        });
    }
    let top = metadata.top.take(TOP, &mut tensors)?;
    let dbn = Dbn::new(directed, top).map_err(|error| damaged(error.to_string()))?;
    let training = match metadata.checkpoint {
        None => None,
        Some(counters) => Some((Snapshot(tensors.take_rows(STATE)?), counters)),
    };
    tensors.all_taken()?;
    let DbnMetadata { library_version, seed, step, epoch, config, data, .. } = metadata;
    let about = About { seed, step, epoch, config, data, library_version };
    Ok((DbnModel { dbn, about }, training))
}
