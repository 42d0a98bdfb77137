//! A run directory, for the one who trains.

use super::atomic::{self, Whose, remove_temporaries, sync_folder};
use super::checkpoint::SavedCheckpoint;
use super::checksum::checksum_of;
use super::directory::{RunDirectory, part};
use super::event::Event;
use super::events::EventWriter;
use super::lock::Lock;
use super::model_file::{About, Model};
use super::{Overwrite, file_error};
use crate::error::{Error, existing};
use crate::training::Checkpoint;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Writes a run, alone: the lock ends with the writer, or with the process.
#[derive(Debug)]
pub struct RunWriter {
    directory: RunDirectory,
    events: EventWriter,
    _lock: Lock,
}

impl RunWriter {
    pub(super) fn create(path: &Path, overwrite: Overwrite) -> Result<Self, Error> {
        let directory = RunDirectory::at(path);
        check_free(&directory, overwrite)?;
        fs::create_dir_all(path).map_err(|error| file_error(path, "make", &error))?;
        let lock = Lock::take(path)?;
        // Now that nobody else writes: a run may have begun since the first look.
        check_free(&directory, overwrite)?;
        remove_leftovers(&directory, &lock);
        remove_run(&directory)?;
        Self::locked(directory, lock)
    }

    pub(super) fn resume(directory: RunDirectory) -> Result<Self, Error> {
        let lock = Lock::take(directory.path())?;
        remove_leftovers(&directory, &lock);
        Self::locked(directory, lock)
    }

    fn locked(directory: RunDirectory, lock: Lock) -> Result<Self, Error> {
        let events = EventWriter::open(directory.part(part::EVENTS))?;
        Ok(Self { directory, events, _lock: lock })
    }

    /// The run, to look at.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// Writes `run.toml`, once.
    ///
    /// # Errors
    ///
    /// If it is there already, or the system refuses.
    pub fn write_config(&mut self, text: &str) -> Result<(), Error> {
        let path = self.directory.part(part::CONFIG);
        match atomic::write(&path, text.as_bytes(), Overwrite::No) {
            Err(Error::Exists { path, .. }) => Err(Error::Exists { path, what: existing::CONFIG }),
            other => other,
        }
    }

    /// Replaces `trials.jsonl`: what was tried before the run began, one line for each trial.
    ///
    /// # Errors
    ///
    /// If the system refuses; then the file before it is still there.
    pub fn write_trials(&mut self, trials: &[serde_json::Value]) -> Result<(), Error> {
        let lines: Vec<String> = trials.iter().map(ToString::to_string).collect();
        let text = lines.join("\n") + "\n";
        atomic::write(&self.directory.part(part::TRIALS), text.as_bytes(), Overwrite::Yes)
    }

    /// Adds one line to `events.jsonl`; it is in the file when this returns.
    ///
    /// # Errors
    ///
    /// If the system refuses; then nothing of it is in the file.
    pub fn append(&mut self, event: &Event) -> Result<(), Error> {
        self.events.append(event)
    }

    /// Bytes of `events.jsonl` so far.
    pub fn events_length(&self) -> u64 {
        self.events.length()
    }

    /// Drops the events after `length` bytes: those that a resumed run will write again.
    ///
    /// # Errors
    ///
    /// If there are fewer bytes, `length` is inside a line, or the system refuses.
    pub fn truncate_events(&mut self, length: u64) -> Result<(), Error> {
        self.events.truncate(length)
    }

    /// Replaces `checkpoints/last.safetensors`; the events so far are on the disk before it is.
    ///
    /// # Errors
    ///
    /// If the system refuses; then the checkpoint before it is still there.
    pub fn save_checkpoint(&mut self, checkpoint: Checkpoint, about: About) -> Result<(), Error> {
        self.events.sync()?;
        let events_length = self.events.length();
        let saved = SavedCheckpoint { checkpoint, about, events_length };
        self.make_checkpoints()?;
        saved.save(self.directory.part(part::LAST), Overwrite::Yes)
    }

    /// Replaces `checkpoints/best.safetensors`; the checksum of the file.
    ///
    /// # Errors
    ///
    /// If the system refuses; then the best one before it is still there.
    pub fn save_best(&mut self, model: &Model) -> Result<String, Error> {
        self.make_checkpoints()?;
        let bytes = model.to_bytes()?;
        atomic::write(&self.directory.part(part::BEST), &bytes, Overwrite::Yes)?;
        Ok(checksum_of(&bytes))
    }

    /// Writes `model.safetensors`, the result of the run.
    ///
    /// # Errors
    ///
    /// If the system refuses; the checkpoints are still there.
    pub fn finish(&mut self, model: &Model) -> Result<(), Error> {
        self.events.sync()?;
        model.write(self.directory.part(part::MODEL), Overwrite::Yes)
    }

    fn make_checkpoints(&self) -> Result<(), Error> {
        let folder = self.directory.part(part::CHECKPOINTS);
        if !folder.is_dir() {
            fs::create_dir(&folder).map_err(|error| file_error(&folder, "make", &error))?;
            sync_folder(self.directory.path());
        }
        Ok(())
    }
}

/// Removes the temporary files of a writer that was killed. Beside `run.toml` others may be writing, a
/// report for example; only the one who holds the lock writes checkpoints.
fn remove_leftovers(directory: &RunDirectory, lock: &Lock) {
    remove_temporaries(&directory.part(part::CHECKPOINTS), Whose::Anybodys);
    if let Some(number) = lock.killed() {
        remove_temporaries(directory.path(), Whose::Process(number));
    }
}

/// Whether a run may go there.
fn check_free(directory: &RunDirectory, overwrite: Overwrite) -> Result<(), Error> {
    let path = directory.path();
    let exists = |what| Err(Error::Exists { path: path.display().to_string(), what });
    let failed = |error: io::Error| file_error(path, "look into", &error);
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => return exists(existing::FILE),
        other => other.map_err(failed)?,
    };
    let mut empty = true;
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // A training that failed before it began leaves no more than this.
        let unused =
            || entry.file_name() == part::EVENTS && entry.metadata().is_ok_and(|m| m.len() == 0);
        empty &= hidden || unused();
    }
    match (empty, directory.is_run(), overwrite) {
        (true, _, _) | (_, true, Overwrite::Yes) => Ok(()),
        (_, true, Overwrite::No) => exists(existing::RUN),
        (_, false, _) => exists(existing::FOLDER),
    }
}

/// Removes what a run consists of. `run.toml` goes last: if this is interrupted, what is left is
/// still known as a run.
fn remove_run(directory: &RunDirectory) -> Result<(), Error> {
    for name in [part::MODEL, part::REPORT, part::BEST, part::LAST, part::TRIALS] {
        remove(&directory.part(name))?;
    }
    let checkpoints = directory.part(part::CHECKPOINTS);
    match fs::remove_dir(&checkpoints) {
        // Somebody keeps files of their own in it.
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
        other => absent_is_fine(other).map_err(|e| file_error(&checkpoints, "remove", &e))?,
    }
    for name in [part::EVENTS, part::CONFIG] {
        remove(&directory.part(name))?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), Error> {
    absent_is_fine(fs::remove_file(path)).map_err(|error| file_error(path, "remove", &error))
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
