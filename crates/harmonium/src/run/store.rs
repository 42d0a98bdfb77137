//! Where a recorded training leaves its events, its best model and its result: a directory, or memory.

use super::event::Event;
use super::model_file::{About, Model};
use super::writer::RunWriter;
use crate::error::Error;
use crate::training::Checkpoint;

/// Takes what a [`Recorder`](super::Recorder) records.
pub trait RunStore {
    /// Takes an event.
    ///
    /// # Errors
    ///
    /// If it cannot be kept; the training ends.
    fn append(&mut self, event: &Event) -> Result<(), Error>;

    /// Replaces the best model so far; a checksum of it.
    ///
    /// # Errors
    ///
    /// If it cannot be kept; then the one before it is still there.
    fn save_best(&mut self, model: &Model) -> Result<String, Error>;

    /// The best model so far and its checksum, if there is one.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn read_best(&self) -> Result<Option<(Model, String)>, Error>;

    /// Replaces the state to go on from.
    ///
    /// # Errors
    ///
    /// If it cannot be kept; then the one before it is still there.
    fn save_checkpoint(&mut self, checkpoint: Checkpoint, about: About) -> Result<(), Error>;

    /// The model of that state.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn last_model(&self) -> Result<Option<Model>, Error>;

    /// Takes the result.
    ///
    /// # Errors
    ///
    /// If it cannot be kept.
    fn finish(&mut self, model: &Model) -> Result<(), Error>;

    /// Why the training should end, asked after each epoch.
    fn stop(&mut self) -> Option<String> {
        None
    }
}

impl RunStore for RunWriter {
    fn append(&mut self, event: &Event) -> Result<(), Error> {
        self.append(event)
    }

    fn save_best(&mut self, model: &Model) -> Result<String, Error> {
        self.save_best(model)
    }

    fn read_best(&self) -> Result<Option<(Model, String)>, Error> {
        self.directory().read_best()
    }

    fn save_checkpoint(&mut self, checkpoint: Checkpoint, about: About) -> Result<(), Error> {
        self.save_checkpoint(checkpoint, about)
    }

    fn last_model(&self) -> Result<Option<Model>, Error> {
        Ok(self.directory().last_checkpoint()?.map(|saved| saved.model()))
    }

    fn finish(&mut self, model: &Model) -> Result<(), Error> {
        self.finish(model)
    }
}

/// A run that is kept in memory: for callers who want the model and what happened, and no files.
#[derive(Clone, Debug, Default)]
pub struct RunMemory {
    events: Vec<Event>,
    best: Option<Model>,
    last: Option<Model>,
}

impl RunMemory {
    /// What happened, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}

impl RunStore for RunMemory {
    fn append(&mut self, event: &Event) -> Result<(), Error> {
        self.events.push(event.clone());
        Ok(())
    }

    fn save_best(&mut self, model: &Model) -> Result<String, Error> {
        self.best = Some(model.clone());
        Ok(String::new())
    }

    fn read_best(&self) -> Result<Option<(Model, String)>, Error> {
        Ok(self.best.clone().map(|model| (model, String::new())))
    }

    fn save_checkpoint(&mut self, checkpoint: Checkpoint, about: About) -> Result<(), Error> {
        self.last = Some(Model { body: checkpoint.body, about });
        Ok(())
    }

    fn last_model(&self) -> Result<Option<Model>, Error> {
        Ok(self.last.clone())
    }

    fn finish(&mut self, _model: &Model) -> Result<(), Error> {
        Ok(())
    }
}

/// A store whose events somebody hears of as they happen, and who may end the training with a reason.
pub struct Heard<'s> {
    store: &'s mut dyn RunStore,
    hear: &'s mut dyn FnMut(&Event) -> Option<String>,
    reason: Option<String>,
}

impl<'s> Heard<'s> {
    /// Calls `hear` with every event once `store` has taken it.
    pub fn new(
        store: &'s mut dyn RunStore,
        hear: &'s mut dyn FnMut(&Event) -> Option<String>,
    ) -> Self {
        Self { store, hear, reason: None }
    }
}

impl RunStore for Heard<'_> {
    fn append(&mut self, event: &Event) -> Result<(), Error> {
        self.store.append(event)?;
        let reason = (self.hear)(event);
        self.reason = self.reason.take().or(reason);
        Ok(())
    }

    fn save_best(&mut self, model: &Model) -> Result<String, Error> {
        self.store.save_best(model)
    }

    fn read_best(&self) -> Result<Option<(Model, String)>, Error> {
        self.store.read_best()
    }

    fn save_checkpoint(&mut self, checkpoint: Checkpoint, about: About) -> Result<(), Error> {
        self.store.save_checkpoint(checkpoint, about)
    }

    fn last_model(&self) -> Result<Option<Model>, Error> {
        self.store.last_model()
    }

    fn finish(&mut self, model: &Model) -> Result<(), Error> {
        self.store.finish(model)
    }

    fn stop(&mut self) -> Option<String> {
        self.reason.take().or_else(|| self.store.stop())
    }
}
