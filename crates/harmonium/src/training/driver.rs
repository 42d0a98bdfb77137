//! The one loop: steps, observers, checkpoints, the end.
//!
//! ```text
//! until the learner is done:
//!     one step
//!     every observer sees the update; after the last batch of an epoch, every observer sees the epoch
//!     the learner hears what observers advise
//!     stop if an observer or the listener asks for it
//!     whoever wants a checkpoint gets one: the learner's state and that of all observers
//! at the end, every observer may take the last checkpoint
//! ```
//!
//! A checkpoint is taken only after all observers have seen the step, so that a run that goes on
//! from it repeats neither an event nor a judgement, and misses none.

use super::awake::Awake;
use super::learner::{Checkpoint, Learner, StepReport};
use super::observer::{Observer, View};
use crate::error::Error;
use crate::progress::{Listener, Work};
use serde_json::Value;
use std::ops::ControlFlow;

/// Why a training ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// All epochs are done.
    Finished,
    /// An observer ended it, and said why.
    Observer(String),
    /// The listener asked for it; the checkpoint says where to go on.
    Cancelled,
    /// A number became infinite or NaN ([`Error::Diverged`]); the model is the last good one.
    Diverged(Error),
}

impl Stop {
    /// One word for it, as in the JSON of `harmonium train`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Observer(_) => "stopped",
            Self::Cancelled => "interrupted",
            Self::Diverged(_) => "diverged",
        }
    }
}

/// Trains until all epochs are done, an observer or the listener asks to stop, or a number is not finite.
///
/// # Errors
///
/// If a step or an observer fails.
pub fn drive(
    learner: &mut dyn Learner,
    observers: &mut [&mut dyn Observer],
    listener: &mut dyn Listener,
) -> Result<Stop, Error> {
    let mut awake = None;
    let stop = loop {
        if learner.is_done() {
            break Stop::Finished;
        }
        if learner.is_parallel() != awake.is_some() {
            awake = if learner.is_parallel() { Awake::new() } else { None };
        }
        match turn(learner, observers, listener) {
            Ok(None) => {}
            Ok(Some(stop)) => break stop,
            Err(error @ Error::Diverged { .. }) => break Stop::Diverged(error),
            Err(error) => return Err(error),
        }
    };
    drop(awake);
    let states = states_of(observers);
    let last = || with_states(learner.checkpoint(), &states);
    for observer in observers.iter_mut() {
        observer.ended(&*learner, &stop, &last)?;
    }
    Ok(stop)
}

/// One step, and what follows from it: the reason to stop, if there is one.
fn turn(
    learner: &mut dyn Learner,
    observers: &mut [&mut dyn Observer],
    listener: &mut dyn Listener,
) -> Result<Option<Stop>, Error> {
    let report = learner.step()?;
    let view = View { learner: &*learner, report };
    let mut stop = observe(&view, observers)?;
    tell(&view, observers, listener);
    observers.iter_mut().filter_map(|o| o.note()).for_each(|note| listener.note(&note));
    if view.ends_epoch() {
        let mut steerings = observers.iter_mut().filter_map(|o| o.steering());
        steerings.try_for_each(|steering| learner.steer(steering))?;
    }
    if listener.cancelled() && !learner.is_done() {
        stop = stop.or(Some(Stop::Cancelled));
    }
    if stop.is_some() {
        learner.check()?;
        return Ok(stop);
    }
    keep(&*learner, report, observers)?;
    Ok(None)
}

/// Shows a step to every observer, whatever the first of them says.
fn observe(view: &View<'_>, observers: &mut [&mut dyn Observer]) -> Result<Option<Stop>, Error> {
    let mut stop = None;
    let mut heed = |flow: ControlFlow<String>| {
        if let ControlFlow::Break(reason) = flow {
            stop.get_or_insert(Stop::Observer(reason));
        }
    };
    for observer in observers.iter_mut() {
        heed(observer.updated(view)?);
    }
    if view.ends_epoch() {
        for observer in observers.iter_mut() {
            heed(observer.epoch_ended(view)?);
        }
    }
    Ok(stop)
}

/// Gives a checkpoint to those who want one.
fn keep(
    learner: &dyn Learner,
    report: StepReport,
    observers: &mut [&mut dyn Observer],
) -> Result<(), Error> {
    let view = View { learner, report };
    let wanted: Vec<bool> = observers.iter_mut().map(|o| o.wants_checkpoint(&view)).collect();
    if wanted.contains(&true) {
        learner.check()?;
        let checkpoint = with_states(learner.checkpoint(), &states_of(observers));
        for (observer, wanted) in observers.iter_mut().zip(wanted) {
            if wanted {
                observer.keep(learner, &checkpoint)?;
            }
        }
    }
    Ok(())
}

/// What the observers remember.
fn states_of(observers: &[&mut dyn Observer]) -> Vec<(&'static str, Value)> {
    observers.iter().filter_map(|observer| observer.export()).collect()
}

fn with_states(mut checkpoint: Checkpoint, states: &[(&'static str, Value)]) -> Checkpoint {
    let states = states.iter().map(|(name, state)| ((*name).to_owned(), state.clone()));
    checkpoint.observers.extend(states);
    checkpoint
}

/// Tells the listener how far the stage is, in epochs.
fn tell(view: &View<'_>, observers: &[&mut dyn Observer], listener: &mut dyn Listener) {
    if view.ends_epoch() {
        let (progress, total) = (view.progress(), view.epochs());
        let stage = view.stage().map(|stage| stage.to_string());
        let what = stage.as_deref().unwrap_or("training");
        let details: Vec<String> = observers.iter().map(|o| o.summary()).collect();
        listener.at(Work { what, done: progress.epoch, total, detail: details.concat().as_str() });
    }
}
