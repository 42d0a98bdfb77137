//! How long work says how far it is, and hears that it should stop.
//!
//! Training, sampling, completing and scoring report to a [`Listener`] and ask it now and then
//! whether to go on. The command line draws a bar and listens for Ctrl-C, Python checks for signals,
//! a studio forwards both to a page; the work itself knows none of them.

use crate::error::Error;

/// How far a piece of work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work<'a> {
    /// What is being done, in a word or two: `training`, `ln Z`, `rows`.
    pub what: &'a str,
    /// Pieces done.
    pub done: u64,
    /// Pieces in all.
    pub total: u64,
    /// What is known by now, in a few words; may be empty.
    pub detail: &'a str,
}

/// Hears of progress, and may ask the work to stop.
pub trait Listener {
    /// Called as the work goes on.
    fn at(&mut self, _work: Work<'_>) {}

    /// Something a person should know that is neither a result nor an error.
    fn note(&mut self, _text: &str) {}

    /// What is about to be done, and how: nothing that asks for anything.
    fn announce(&mut self, _text: &str) {}

    /// Whether the work should stop. Training keeps its state; other work ends with
    /// [`Error::Cancelled`].
    fn cancelled(&mut self) -> bool {
        false
    }
}

/// Hears nothing and never stops anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Listener for Silent {}

/// Tells a listener how far the work is, and ends the work if the listener asks for it.
///
/// # Errors
///
/// [`Error::Cancelled`] if the listener wants the work to stop.
pub(crate) fn tell(
    listener: &mut dyn Listener,
    what: &str,
    done: u64,
    total: u64,
) -> Result<(), Error> {
    listener.at(Work { what, done, total, detail: "" });
    if listener.cancelled() {
        return Err(Error::Cancelled { what: what.to_owned(), done, total });
    }
    Ok(())
}
