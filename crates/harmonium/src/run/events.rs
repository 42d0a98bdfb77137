//! What happened, one JSON object per line, only ever added to.
//!
//! A line ends with its line break. A process that is killed while it writes leaves a last line
//! without one: readers report it and go on, and the next writer cuts it off.

use super::event::Event;
use super::metadata::sorted;
use super::{file_error, in_file};
use crate::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The events of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventLog {
    /// The events, in order.
    pub events: Vec<Event>,
    /// Where the last whole line ends, in bytes from the start of the file.
    pub length: u64,
    /// What follows it: the beginning of a line that was never finished. It is still being written
    /// if the run goes on.
    pub torn: Option<String>,
}

/// Reads the whole lines from `start` on; a file that is not there has none.
///
/// # Errors
///
/// If the system refuses, or a finished line is not JSON.
pub(super) fn read(path: &Path, start: u64) -> Result<EventLog, Error> {
    let failed = |error: io::Error| file_error(path, "read", &error);
    let (mut bytes, mut begin) = (Vec::new(), 0);
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(mut file) => {
            begin = start.min(file.metadata().map_err(failed)?.len());
            file.seek(SeekFrom::Start(begin)).map_err(failed)?;
            file.read_to_end(&mut bytes).map_err(failed)?;
        }
    }
    let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1);
    let (lines, rest) = bytes.split_at(whole);
    let mut events = Vec::new();
    for (i, line) in lines.split_inclusive(|&b| b == b'\n').enumerate() {
        let event = serde_json::from_slice(line).map_err(|error| {
            let (path, line) = (path.display().to_string(), i + 1);
            let since = if start == 0 { String::new() } else { format!(" after byte {start}") };
            Error::Damaged { path, reason: format!("line {line}{since} is not JSON: {error}") }
        })?;
        events.push(event);
    }
    let torn = (!rest.is_empty()).then(|| String::from_utf8_lossy(rest).into_owned());
    Ok(EventLog { events, length: begin + whole as u64, torn })
}

/// Adds to the events of a run.
#[derive(Debug)]
pub(super) struct EventWriter {
    path: PathBuf,
    file: File,
    length: u64,
}

impl EventWriter {
    /// Opens the file or makes it, and cuts off a last line that was never finished.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub(super) fn open(path: PathBuf) -> Result<Self, Error> {
        let failed = |error: io::Error| file_error(&path, "open", &error);
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(&path).map_err(failed)?;
        // A device has no length, so there is nothing in it to cut.
        let regular = file.metadata().map_err(failed)?.is_file();
        let length = if regular { whole_lines(&file).map_err(failed)? } else { 0 };
        if regular {
            file.set_len(length).map_err(failed)?;
        }
        Ok(Self { path, file, length })
    }

    /// Bytes written so far.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Adds one line, in one call to the system.
    pub(super) fn append(&mut self, event: &Event) -> Result<(), Error> {
        let value = serde_json::to_value(event).map_err(|error| Error::Unwritable {
            reason: format!("an event cannot be written as JSON: {error}"),
        })?;
        let line = format!("{}\n", sorted(value));
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Half a line would join with the next one; if even this fails, `open` cuts it off.
            let _ = self.file.set_len(self.length);
            return Err(file_error(&self.path, "write", &error));
        }
        self.length += line.len() as u64;
        Ok(())
    }

    /// Drops everything after `length` bytes.
    ///
    /// # Errors
    ///
    /// If there are fewer, or a line would be cut.
    pub(super) fn truncate(&mut self, length: u64) -> Result<(), Error> {
        let failed = |error: io::Error| file_error(&self.path, "shorten", &error);
        let wrong = |reason| in_file(&self.path)(super::damaged(reason));
        if length > self.length {
            let found = self.length;
            return Err(wrong(format!("it must have {length} bytes, found {found}")));
        }
        if let Some(last) = length.checked_sub(1) {
            let mut byte = [0];
            self.file.seek(SeekFrom::Start(last)).map_err(failed)?;
            self.file.read_exact(&mut byte).map_err(failed)?;
            if byte != *b"\n" {
                return Err(wrong(format!("no line ends after {length} bytes")));
            }
        }
        self.file.set_len(length).and_then(|()| self.file.sync_all()).map_err(failed)?;
        self.length = length;
        Ok(())
    }

    /// Forces everything to the disk.
    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file.sync_all().map_err(|error| file_error(&self.path, "write", &error))
    }
}

/// Bytes up to the last line break.
fn whole_lines(file: &File) -> io::Result<u64> {
    let (mut at, mut whole) = (0, 0);
    for byte in BufReader::new(file).bytes() {
        at += 1;
        if byte? == b'\n' {
            whole = at;
        }
    }
    Ok(whole)
}
