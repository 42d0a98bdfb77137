//! A run directory, for those who look at it.

use super::checkpoint::SavedCheckpoint;
use super::checksum::checksum_of;
use super::events::{self, EventLog};
use super::model_file::{Located, Model, read_file};
use super::writer::RunWriter;
use super::{Overwrite, file_error, in_file};
use crate::error::Error;
use std::path::{Path, PathBuf};

/// The files of a run.
pub(super) mod part {
    pub(crate) const CONFIG: &str = "run.toml";
    pub(crate) const EVENTS: &str = "events.jsonl";
    pub(crate) const CHECKPOINTS: &str = "checkpoints";
    pub(crate) const LAST: &str = "checkpoints/last.safetensors";
    pub(crate) const BEST: &str = "checkpoints/best.safetensors";
    pub(crate) const MODEL: &str = "model.safetensors";
    pub(crate) const REPORT: &str = "report.html";
    pub(crate) const TRIALS: &str = "trials.jsonl";
}

/// A run directory, read-only and without a lock: a training may be writing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Makes a run directory and locks it for writing; folders above it are made too.
    ///
    /// An empty folder is taken as it is. With [`Overwrite::Yes`] a run that is there is replaced:
    /// only the files that a run consists of are removed, whatever else lies beside them stays. A
    /// folder that holds other files and no run is refused even then, because a mistyped `--out`
    /// should not strew a run over somebody's documents. Hidden files do not count.
    ///
    /// # Errors
    ///
    /// If something is there already, another process writes it, or the system refuses.
    pub fn create(path: impl AsRef<Path>, overwrite: Overwrite) -> Result<RunWriter, Error> {
        RunWriter::create(path.as_ref(), overwrite)
    }

    /// Locks a run for writing, to continue it.
    ///
    /// The one who resumes loads [`RunDirectory::last_checkpoint`], calls
    /// [`RunWriter::truncate_events`] with its `events_length` and goes on: the result equals
    /// never having stopped, byte for byte.
    ///
    /// # Errors
    ///
    /// If there is no run, another process writes it, or the system refuses.
    pub fn resume(path: impl AsRef<Path>) -> Result<RunWriter, Error> {
        RunWriter::resume(Self::open(path)?)
    }

    /// Looks at a run.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let run = Self::at(path.as_ref());
        if run.is_run() {
            return Ok(run);
        }
        let path = run.path.display().to_string();
        let reason = match std::fs::metadata(&run.path) {
            Err(error) => error.to_string(),
            Ok(found) if found.is_dir() => format!("there is no `{}` in it", part::CONFIG),
            Ok(_) => "it is a file".into(),
        };
        Err(Error::NotARun { path, reason })
    }

    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// Whether a training has written here.
    pub(super) fn is_run(&self) -> bool {
        [part::CONFIG, part::EVENTS, part::TRIALS].iter().any(|name| self.part(name).is_file())
    }

    pub(super) fn part(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The directory, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of `run.toml`.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn config(&self) -> Result<String, Error> {
        let path = self.part(part::CONFIG);
        std::fs::read_to_string(&path).map_err(|error| file_error(&path, "read", &error))
    }

    /// What was tried before the run began, one value for each trial; a last line that was not finished
    /// is left out.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn trials(&self) -> Result<Vec<serde_json::Value>, Error> {
        let path = self.part(part::TRIALS);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = std::fs::read_to_string(&path).map_err(|e| file_error(&path, "read", &e))?;
        Ok(text.lines().map_while(|line| serde_json::from_str(line).ok()).collect())
    }

    /// All events; a last line that was not finished is reported, and no error.
    ///
    /// # Errors
    ///
    /// If the system refuses, or a finished line is not JSON.
    pub fn read_events(&self) -> Result<EventLog, Error> {
        self.read_events_from(0)
    }

    /// The events from a byte on: with [`EventLog::length`] of the last call, what is new since.
    /// A length below `start` says that the run was resumed from before it: read it all again.
    ///
    /// # Errors
    ///
    /// As [`RunDirectory::read_events`].
    pub fn read_events_from(&self, start: u64) -> Result<EventLog, Error> {
        events::read(&self.part(part::EVENTS), start)
    }

    /// The checkpoint to go on from, if one was written.
    ///
    /// # Errors
    ///
    /// If it is damaged, or the system refuses.
    pub fn last_checkpoint(&self) -> Result<Option<SavedCheckpoint>, Error> {
        let path = self.part(part::LAST);
        path.exists().then(|| SavedCheckpoint::load(&path)).transpose()
    }

    /// The best model so far, if one was written.
    ///
    /// # Errors
    ///
    /// If it is damaged, or the system refuses.
    pub fn best(&self) -> Result<Option<Model>, Error> {
        let path = self.part(part::BEST);
        path.exists().then(|| Model::load(&path)).transpose()
    }

    /// The best model so far and the checksum of its file, if one was written.
    pub(super) fn read_best(&self) -> Result<Option<(Model, String)>, Error> {
        let path = self.part(part::BEST);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = read_file(&path)?;
        let model = Model::from_bytes(&bytes).map_err(in_file(&path))?;
        Ok(Some((model, checksum_of(&bytes))))
    }

    /// The result, if the run has finished.
    ///
    /// # Errors
    ///
    /// If it is damaged, or the system refuses.
    pub fn model(&self) -> Result<Option<Model>, Error> {
        let path = self.part(part::MODEL);
        path.exists().then(|| Model::load(&path)).transpose()
    }

    /// The model, or the newest checkpoint of a run that has not finished.
    pub(super) fn locate_model(&self) -> Result<Located, Error> {
        let place = self.path.display();
        for name in [part::MODEL, part::LAST, part::BEST] {
            let path = self.part(name);
            if path.is_file() {
                let note = format!("`{place}` has not finished: this is its `{name}`");
                return Ok(Located { path, note: (name != part::MODEL).then_some(note) });
            }
        }
        let reason = format!("it has neither `{}` nor a checkpoint yet", part::MODEL);
        Err(Error::NotARun { path: place.to_string(), reason })
    }
}
