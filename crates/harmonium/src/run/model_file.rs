//! A trained machine and where it comes from, in one safetensors file.

use super::atomic;
use super::checkpoint::SavedCheckpoint;
use super::directory::RunDirectory;
use super::header::{PREFIX, header_length};
use super::metadata::{Counters, Metadata};
use super::parameters::{take_machine, tensors_of};
use super::tensors::{self, Tensor, Tensors};
use super::{Overwrite, damaged, file_error, in_file};
use crate::error::Error;
use crate::estimators::Snapshot;
use crate::machine::Machine;
use serde_json::Value;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// What stands before the names of saved state.
pub(super) const STATE: &str = "state.";

/// Where a machine comes from. Put no paths, times or thread counts in it: equal runs give equal
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
    /// How the data was read: binarisation, the shape of images, means.
    pub data: Value,
    /// The version of the library that trained it.
    pub library_version: String,
}

impl Default for About {
    fn default() -> Self {
        let library_version = env!("CARGO_PKG_VERSION").into();
        let (config, data) = (Value::Null, Value::Null);
        Self { seed: 0, step: 0, epoch: 0, config, data, library_version }
    }
}

/// A machine and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The machine.
    pub machine: Machine,
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

impl Model {
    /// The bytes of the file; equal models have equal bytes.
    ///
    /// # Errors
    ///
    /// If it could not be read again: see [`Error::Unwritable`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        write_parts(&self.machine, &self.about, None)
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

/// The bytes of a model, or of a checkpoint with its state.
pub(super) fn write_parts(
    machine: &Machine,
    about: &About,
    training: Option<(&Snapshot, Counters)>,
) -> Result<Vec<u8>, Error> {
    let mut tensors = tensors_of(machine);
    let (state, counters) = training.unzip();
    for (key, values) in state.into_iter().flat_map(|state| &state.0) {
        tensors.insert(format!("{STATE}{key}"), Tensor::row(values));
    }
    tensors::write(tensors, Metadata::new(machine, about, counters).to_text()?)
}

/// What [`write_parts`] wrote.
pub(super) fn read_parts(bytes: &[u8]) -> Result<(Model, Option<(Snapshot, Counters)>), Error> {
    let (mut tensors, text) = Tensors::read(bytes)?;
    let mut metadata = Metadata::from_text(&text)?;
    let machine = take_machine(metadata.graph(), &mut tensors)?;
    let training = match metadata.checkpoint.take() {
        None => None,
        Some(counters) => Some((Snapshot(tensors.take_rows(STATE)?), counters)),
    };
    tensors.all_taken()?;
    Ok((Model { machine, about: metadata.into_about() }, training))
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
        return Err(wrong("it is no regular file"));
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

impl From<SavedCheckpoint> for Model {
    fn from(saved: SavedCheckpoint) -> Self {
        Self { machine: saved.checkpoint.machine, about: saved.about }
    }
}
