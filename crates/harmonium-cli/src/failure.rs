//! What is told to a person when something cannot be done.

use std::fmt;
use std::io;

/// A sentence with the numbers in it, and a way out.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: String,
    broken_pipe: bool,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into(), broken_pipe: false }
    }

    /// Whether the reader of our output went away, which is not a failure.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}\n\nhint: {}", self.message, self.hint)
    }
}

impl From<harmonium::Error> for Failure {
    fn from(error: harmonium::Error) -> Self {
        Self::new(error.to_string(), error.hint())
    }
}

impl From<harmonium::model::Failed> for Failure {
    fn from(failed: harmonium::model::Failed) -> Self {
        failed.error.into()
    }
}

impl From<harmonium_data::Error> for Failure {
    fn from(error: harmonium_data::Error) -> Self {
        Self::new(error.to_string(), error.hint())
    }
}

/// Failures of writing to stdout; files have messages of their own.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let mut failure = Self::new(
            format!("cannot write the result: {error}"),
            "check where the output goes: a full disk, or a closed terminal",
        );
        failure.broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        failure
    }
}
