//! Errors as exceptions: the sentence, and the way out as `hint`, in the words of Python.

use harmonium::Error;
use harmonium::model::Failed;
use harmonium_data::Error as DataError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::io::ErrorKind;

/// Why something failed on the other side of the door.
pub(crate) enum Failure {
    /// The library refused.
    Library(Error),
    /// The data could not be taken.
    Data(DataError),
    /// A defect: a panic that should not have been one.
    Defect(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        Self::Library(failed.error)
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Library(error) => exception(class(&error), &error.to_string(), error.hint()),
            Failure::Data(error) => {
                exception(data_class(&error), &error.to_string(), &error.hint())
            }
            Failure::Defect(what) => exception(
                "DefectError",
                &format!("a defect of harmonium: {what}"),
                "please report it, with what led to it",
            ),
        }
    }
}

/// The class in `harmonium.errors` for an error.
fn class(error: &Error) -> &'static str {
    match error {
        Error::File { kind, .. } => of_kind(*kind),
        Error::Exists { .. } => "ExistsError",
        Error::NotARun { .. } => "NotFoundError",
        Error::Locked { .. } => "LockedError",
        Error::Memory { .. } | Error::MemoryBudget { .. } => "TooLargeError",
        Error::Diverged { .. } | Error::Diverges { .. } | Error::Overflow { .. } => "DivergedError",
        Error::Cancelled { .. } => "CancelledError",
        Error::SettingType { .. } => "SettingTypeError",
        _ => "InvalidError",
    }
}

fn data_class(error: &DataError) -> &'static str {
    match error {
        DataError::Io(error) => of_kind(error.kind()),
        DataError::In { source, .. } => data_class(source),
        DataError::NotAProbability { .. } => "OutOfRangeError",
        _ => "InvalidError",
    }
}

fn of_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "NotAllowedError",
        ErrorKind::AlreadyExists => "ExistsError",
        ErrorKind::OutOfMemory => "TooLargeError",
        _ => "FileError",
    }
}

/// An exception of `harmonium.errors`.
fn exception(class: &str, sentence: &str, hint: &str) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("harmonium.errors")
            .and_then(|errors| errors.getattr(class))
            .and_then(|class| class.call1((PyString::new(py, &spelt(sentence)), spelt(hint))));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Flags of the command line as arguments: `` `--learning-rate 0.1` `` as `` `learning_rate=0.1` ``.
pub(crate) fn spelt(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("`--") {
        let (before, flag) = rest.split_at(start);
        let Some(end) = flag[3..].find('`') else { break };
        let (name, value) = match flag[3..3 + end].split_once(' ') {
            Some((name, value)) => (name, value),
            None => (&flag[3..3 + end], ""),
        };
        out.push_str(before);
        out.push('`');
        out.push_str(&argument(name, value));
        out.push('`');
        rest = &flag[end + 4..];
    }
    out.push_str(rest);
    out
}

/// A flag and its value as an argument.
fn argument(name: &str, value: &str) -> String {
    let renamed = match name {
        "no-center" => return "center=False".into(),
        "force" => return "overwrite=True".into(),
        "help" => return "help".into(),
        "seed" => "random_state".into(),
        other => other.replace('-', "_"),
    };
    let list = value.contains(',') && value.split(',').all(|n| n.parse::<f64>().is_ok());
    match value {
        "" => renamed,
        number if number.parse::<f64>().is_ok() => format!("{renamed}={number}"),
        numbers if list => format!("{renamed}=[{}]", numbers.replace(',', ", ")),
        word if word.chars().all(|c| c.is_ascii_uppercase() || "|.<>".contains(c)) => {
            format!("{renamed}={word}")
        }
        words if words.contains('|') => {
            let quoted: Vec<String> = words.split('|').map(|w| format!("\"{w}\"")).collect();
            format!("{renamed}={}", quoted.join("|"))
        }
        word => format!("{renamed}=\"{word}\""),
    }
}
