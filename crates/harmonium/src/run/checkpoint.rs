//! Everything that is needed to go on, in the file of a model with more in it.
//!
//! Beside the parameters there is a tensor `state.<key>` for every row of the [`Snapshot`] and,
//! in the metadata, where training was, what its observers remember, and how much of `events.jsonl`
//! belongs to it.
//!
//! [`Snapshot`]: crate::estimators::Snapshot

use super::metadata::Counters;
use super::model_file::{About, Model, read_file, read_parts, write_parts};
use super::recorder::RECORDER;
use super::{Overwrite, atomic, damaged, in_file};
use crate::error::Error;
use crate::training::Checkpoint;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A checkpoint with what its run needs besides. Any program that reads models reads it too.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedCheckpoint {
    /// The state of training.
    pub checkpoint: Checkpoint,
    /// Where it comes from.
    pub about: About,
    /// Bytes of `events.jsonl` that were written before it.
    pub events_length: u64,
}

impl SavedCheckpoint {
    /// The bytes of the file; equal checkpoints have equal bytes.
    ///
    /// # Errors
    ///
    /// If it could not be read again: see [`Error::Unwritable`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let Checkpoint { body, stage, epoch, batches_done, state, observers } = &self.checkpoint;
        let counters = Counters {
            stage: *stage,
            epoch: *epoch,
            batches_done: *batches_done,
            events_length: self.events_length,
            extra: Value::Object(observers.clone().into_iter().collect()),
        };
        write_parts(body, &self.about, Some((state, counters)))
    }

    /// Reads the bytes of a checkpoint, every number to the bit.
    ///
    /// # Errors
    ///
    /// As [`Model::from_bytes`]; and if they are a model without the state of a training.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let (Model { body, about }, training) = read_parts(bytes)?;
        let (state, counters) =
            training.ok_or_else(|| damaged("it is a model without the state of a training"))?;
        let Counters { stage, epoch, batches_done, events_length, extra } = counters;
        let observers = observers(extra);
        let checkpoint = Checkpoint { body, stage, epoch, batches_done, state, observers };
        Ok(Self { checkpoint, about, events_length })
    }

    /// The model as it was then.
    pub fn model(&self) -> Model {
        Model { body: self.checkpoint.body.clone(), about: self.about.clone() }
    }

    /// Writes a file: either all of it, or the old one stays.
    ///
    /// # Errors
    ///
    /// If the file is there already and must not be overwritten, or the system refuses.
    pub fn save(&self, path: impl AsRef<Path>, overwrite: Overwrite) -> Result<(), Error> {
        atomic::write(path.as_ref(), &self.to_bytes()?, overwrite)
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If the system refuses, or the file does not hold a checkpoint.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::from_bytes(&read_file(path)?).map_err(in_file(path))
    }
}

/// What each observer remembers. Earlier versions had one observer, whose values stood alone.
fn observers(extra: Value) -> BTreeMap<String, Value> {
    let Value::Object(map) = extra else { return BTreeMap::new() };
    if map.get("seconds").is_some_and(Value::is_number) {
        return BTreeMap::from([(RECORDER.to_owned(), Value::Object(map))]);
    }
    map.into_iter().collect()
}
