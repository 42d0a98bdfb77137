//! One writer per run.
//!
//! The lock is the operating system's, on the file `.lock`: it ends with the process, however the
//! process ends. The file itself stays, because removing it would let two processes lock two
//! different files of that name; it is empty while nobody writes.

use super::file_error;
use crate::error::Error;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

/// The name of the file.
const FILE: &str = ".lock";

/// How often a held lock is tried again, and after which time.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Held as long as it lives.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    /// The number of the process that held it before and was killed.
    killed: Option<String>,
}

impl Lock {
    /// Locks a run directory, which must exist.
    ///
    /// # Errors
    ///
    /// If another process holds it, or the system refuses.
    pub(super) fn take(run: &Path) -> Result<Self, Error> {
        let path = run.join(FILE);
        let failed = |error: io::Error| file_error(&path, "lock", &error);
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        let mut locked = file.try_lock();
        // A child that another thread starts holds a copy of the lock until it runs its own
        // program: what was just released may seem held for a moment.
        for _ in 0..TRIES {
            if !matches!(locked, Err(TryLockError::WouldBlock)) {
                break;
            }
            std::thread::sleep(PAUSE);
            locked = file.try_lock();
        }
        match locked {
            // Some network file systems know no locks: better no lock than no training.
            Ok(()) => {}
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {
                let (path, holder) = (run.display().to_string(), holder(&mut file));
                return Err(Error::Locked { path, holder });
            }
        }
        let killed = number(&mut file);
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        file.write_all(std::process::id().to_string().as_bytes()).map_err(failed)?;
        Ok(Self { file, killed })
    }

    /// The number of the process that held the lock before, if it ended without giving it back.
    pub(super) fn killed(&self) -> Option<&str> {
        self.killed.as_deref()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A number that stays is wrong but harmless: the lock is what counts.
        let _ = self.file.set_len(0);
    }
}

/// Who wrote their number into the file.
fn holder(file: &mut File) -> String {
    number(file).map_or("another process".into(), |number| format!("process {number}"))
}

/// The number in the file.
fn number(file: &mut File) -> Option<String> {
    const LONGEST: u64 = 20;
    let mut text = String::new();
    let n = file.take(LONGEST).read_to_string(&mut text).ok()?;
    (n > 0 && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}
