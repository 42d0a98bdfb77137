//! A model and where it comes from, in one safetensors file.
//!
//! The tensors of a machine stand as [`super::parameters`] says. A deep belief network is made of
//! machines, each behind a prefix: `top.…`, `directed.<l>.generative.…` and, where it is no longer
//! tied, `directed.<l>.recognition.…`. Those of a feed-forward net: [`super::network_file`].

use super::atomic;
use super::directory::RunDirectory;
use super::header::{PREFIX, header_length};
use super::memory::Memory;
use super::metadata::{Counters, MachineEntry, Metadata, Parts};
use super::network_file::{self, POSTERIOR};
use super::parameters::{take_machine, tensors_of};
use super::tensors::{self, Tensor, Tensors};
use super::{Overwrite, damaged, file_error, in_file};
use crate::error::Error;
use crate::estimators::Snapshot;
use crate::machine::Machine;
use crate::models::{Body, Dbn, Directed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// What stands before the names of saved state.
const STATE: &str = "state.";

/// What stands before the tensors of the RBM on top of a network.
const TOP: &str = "top.";

/// Where a model comes from. Put no paths, times or thread counts in it: equal runs give equal
/// bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// The root of all randomness.
    pub seed: u64,
    /// Updates done.
    pub step: u64,
    /// Epochs finished.
    pub epoch: u64,
    /// What was asked of training.
    pub config: Value,
    /// What is remembered of the data.
    pub data: Memory,
    /// The version of the library that trained it.
    pub library_version: String,
}

impl Default for About {
    fn default() -> Self {
        let library_version = env!("CARGO_PKG_VERSION").into();
        let (config, data) = (Value::Null, Memory::default());
        Self { seed: 0, step: 0, epoch: 0, config, data, library_version }
    }
}

/// A model of any kind, and where it comes from. What can be asked of it is in [`crate::model`].
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The parameters.
    pub body: Body,
    /// Where it comes from.
    pub about: About,
}

/// The file that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// A model or a checkpoint.
    pub path: PathBuf,
    /// What a reader should know, for example that the run has not finished.
    pub note: Option<String>,
}

impl<B: Into<Body>> From<B> for Model {
    /// A model that remembers no data.
    fn from(body: B) -> Self {
        Self { body: body.into(), about: About::default() }
    }
}

impl Model {
    /// The bytes of the file; equal models have equal bytes.
    ///
    /// # Errors
    ///
    /// If it could not be read again: see [`Error::Unwritable`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        write_parts(&self.body, &self.about, None)
    }

    /// Reads the bytes of a model or of a checkpoint, of any kind.
    ///
    /// # Errors
    ///
    /// Names what is wrong with them; whatever they are, it never panics and never asks for memory
    /// that they merely claim to need.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let (model, _) = read_parts(bytes)?;
        Ok(model)
    }

    /// Writes a file: either all of it, or the old one stays. A file that is there is replaced only
    /// with [`Overwrite::Yes`].
    ///
    /// # Errors
    ///
    /// If the file is there already and must not be overwritten, or the system refuses.
    pub fn write(&self, path: impl AsRef<Path>, overwrite: Overwrite) -> Result<(), Error> {
        atomic::write(path.as_ref(), &self.to_bytes()?, overwrite)
    }

    /// Writes a new file.
    ///
    /// # Errors
    ///
    /// If the file is there already, or the system refuses.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.write(path, Overwrite::No)
    }

    /// Reads a file, or the model of a run directory: see [`Model::locate`].
    ///
    /// # Errors
    ///
    /// If there is none, or it is damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = Self::locate(path)?.path;
        Self::from_bytes(&read_file(&path)?).map_err(in_file(&path))
    }

    /// The file that `path` stands for: itself, or for a run directory its model, else its last
    /// checkpoint, with a note that says so.
    ///
    /// # Errors
    ///
    /// If `path` is a directory without either.
    pub fn locate(path: impl AsRef<Path>) -> Result<Located, Error> {
        let path = path.as_ref();
        if path.is_dir() {
            RunDirectory::open(path)?.locate_model()
        } else {
            Ok(Located { path: path.into(), note: None })
        }
    }
}

fn generative(l: usize) -> String {
    format!("directed.{l}.generative.")
}

fn recognition(l: usize) -> String {
    format!("directed.{l}.recognition.")
}

/// The machines of a model, each with what stands before the names of its tensors.
fn machines(body: &Body) -> Vec<(String, &Machine)> {
    match body {
        Body::Machine(machine) => vec![(String::new(), machine)],
        Body::Dbn(dbn) => {
            let mut all = vec![(TOP.to_owned(), dbn.top())];
            for (l, part) in dbn.directed().iter().enumerate() {
                all.push((generative(l), &part.generative));
                if !part.is_tied() {
                    all.push((recognition(l), &part.recognition));
                }
            }
            all
        }
        Body::Network(network) => {
            network.posterior().map(|p| (POSTERIOR.to_owned(), &p.machine)).into_iter().collect()
        }
    }
}

/// The bytes of a model, or of a checkpoint with its state.
pub(super) fn write_parts(
    body: &Body,
    about: &About,
    training: Option<(&Snapshot, Counters)>,
) -> Result<Vec<u8>, Error> {
    let mut tensors = BTreeMap::new();
    for (prefix, machine) in machines(body) {
        for (name, tensor) in tensors_of(machine) {
            tensors.insert(format!("{prefix}{name}"), tensor);
        }
    }
    if let Body::Network(network) = body {
        tensors.extend(network_file::tensors_of(network));
    }
    let (state, counters) = training.unzip();
    for (key, values) in state.into_iter().flat_map(|state| &state.0) {
        tensors.insert(format!("{STATE}{key}"), Tensor::row(values));
    }
    let text = Metadata::new(body, about, counters).text_with(&tensors)?;
    tensors::write(tensors, text)
}

/// What [`write_parts`] wrote.
pub(super) fn read_parts(bytes: &[u8]) -> Result<(Model, Option<(Snapshot, Counters)>), Error> {
    let (mut tensors, text) = Tensors::read(bytes)?;
    let mut metadata = Metadata::from_text(&text)?;
    metadata.check_sum(&text, &tensors)?;
    let about = metadata.about()?;
    let body = match metadata.take_parts()? {
        Parts::Machine(entry) => Body::Machine(take_machine(&entry, &mut tensors)?),
        Parts::Dbn { directed, top } => {
            let mut parts = Vec::new();
            for (l, entry) in directed.iter().enumerate() {
                let down = take_part(&entry.generative, &generative(l), &mut tensors)?;
                let up = entry.recognition.as_ref();
                parts.push(match up.map(|up| take_part(up, &recognition(l), &mut tensors)) {
                    Some(up) => Directed { generative: down, recognition: up? },
                    None => Directed::tied(down),
                });
            }
            let top = take_part(&top, TOP, &mut tensors)?;
            Body::Dbn(Dbn::new(parts, top).map_err(|error| damaged(error.to_string()))?)
        }
        Parts::Network(entry) => {
            let posterior = entry.posterior.as_ref();
            let machine =
                posterior.map(|p| take_part(&p.machine, POSTERIOR, &mut tensors)).transpose()?;
            Body::Network(entry.take(machine, &mut tensors)?)
        }
    };
    let training = match metadata.checkpoint.take() {
        None => None,
        Some(counters) => Some((Snapshot(tensors.take_rows(STATE)?), counters)),
    };
    tensors.all_taken()?;
    Ok((Model { body, about }, training))
}

/// Takes a machine out of the tensors behind `prefix`.
fn take_part(entry: &MachineEntry, prefix: &str, tensors: &mut Tensors) -> Result<Machine, Error> {
    let mut part = tensors.take_part(prefix);
    let taken = take_machine(entry, &mut part);
    let machine = taken.and_then(|machine| part.all_taken().map(|()| machine));
    machine.map_err(|error| match error {
        Error::Damaged { reason, .. } => {
            damaged(format!("in `{}`: {reason}", prefix.trim_end_matches('.')))
        }
        other => other,
    })
}

/// The bytes of a file that looks like a model.
///
/// # Errors
///
/// If the system refuses, or the first bytes already are not those of a model: a large file of
/// another sort is not read to its end.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |error: io::Error| file_error(path, "read", &error);
    let wrong = |reason: &str| in_file(path)(damaged(reason));
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(wrong("it is not a regular file"));
    }
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut prefix = [0; PREFIX];
    match file.read_exact(&mut prefix) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            return Err(wrong("it has fewer bytes than the smallest model"));
        }
        Err(error) => return Err(failed(error)),
    }
    header_length(prefix, length).map_err(in_file(path))?;
    let mut bytes = Vec::new();
    let room = usize::try_from(length).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(room).map_err(|_| failed(ErrorKind::OutOfMemory.into()))?;
    bytes.extend_from_slice(&prefix);
    file.take(length - prefix.len() as u64).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
