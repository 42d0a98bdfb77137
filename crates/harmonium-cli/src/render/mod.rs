//! How results look: on stdout, as JSON, as pictures in the terminal.

pub(crate) mod answers;
pub(crate) mod columns;
pub(crate) mod conditional;
pub(crate) mod idle;
pub(crate) mod picture;
pub(crate) mod progress;
pub(crate) mod remedy;
pub(crate) mod verdict;

use crate::failure::Failure;
use std::borrow::Cow;
use std::io::Write;

/// Writes a result to stdout. Names in it come from files: control characters are shown, not sent.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    picture(&plain(text))
}

/// Says something on stderr. Where nobody can hear it, as on a full disk, the work goes on.
pub(crate) fn aside(text: &str) {
    idle::hush();
    let _ = writeln!(anstream::stderr(), "{}", plain(text));
}

/// Warns of a result that may be wrong, on stderr.
pub(crate) fn warn(text: &str) {
    aside(&format!("warning: {text}"));
}

/// The text with control characters written out, as `\u{1b}`; lines stay lines.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let raw = |c: char| c.is_control() && c != '\n';
    if !text.contains(raw) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if raw(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Clears the way for a result.
///
/// # Errors
/// Stdout was closed, so that nobody would see it.
pub(crate) fn clear_the_way() -> Result<(), Failure> {
    idle::hush();
    if harmonium_kernels::startup::stdout_was_closed() {
        return Err(Failure::new(
            "stdout is closed, so the result cannot be shown",
            "leave stdout open, or send it to a file, or to /dev/null if the result is not wanted",
        ));
    }
    Ok(())
}

/// Writes a result with pictures to stdout, in colour where the terminal has it.
pub(crate) fn picture(text: &str) -> Result<(), Failure> {
    clear_the_way()?;
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Writes a result as one JSON object.
pub(crate) fn json(value: &serde_json::Value) -> Result<(), Failure> {
    clear_the_way()?;
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
    clear_the_way()?;
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(plain("a\n`b\u{1b}[2J\r\u{9b}`"), "a\n`b\\u{1b}[2J\\r\\u{9b}`");
        assert_eq!(plain("naïve – ok"), "naïve – ok");
    }
}
