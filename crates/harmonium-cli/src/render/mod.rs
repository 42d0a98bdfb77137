//! How results look: on stdout, as JSON, as pictures in the terminal.

pub(crate) mod picture;
pub(crate) mod progress;
pub(crate) mod remedy;

use crate::failure::Failure;
use std::io::Write;

/// Writes a result to stdout, with colour where the terminal has it.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Writes a result as one JSON object.
pub(crate) fn json(value: &serde_json::Value) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()?;
    Ok(())
}

/// A standard error in words: of one row or one draw it is unknown, not zero.
pub(crate) fn error(error: Option<f64>, decimals: usize) -> String {
    error.map_or("unknown".to_owned(), |error| format!("{error:.decimals$}"))
}

/// Writes a script as it is.
pub(crate) fn script(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}
