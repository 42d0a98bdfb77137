//! Files that are either the old one or the new one, never half of one.
//!
//! The bytes go to a temporary file beside the target, are forced to the disk, and take the
//! target's name in one step. Where nothing may be replaced, that step fails if anything has the name
//! by then, so of several processes that write one file exactly one succeeds. Whatever fails before that step removes the temporary file and
//! leaves the target as it was; whoever reads meanwhile sees the old file.

use super::{Overwrite, file_error};
use crate::error::{Error, existing};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How the names of temporary files begin and end; between them stand two numbers, that of the process
/// and a count.
const BEGINNING: &str = ".harmonium-";
const END: &str = ".tmp";

/// Writes `bytes` to `path`. A link is followed, so that it goes on pointing where it did.
///
/// # Errors
///
/// If something is there that must not be replaced, or the system refuses.
pub(super) fn write(path: &Path, bytes: &[u8], overwrite: Overwrite) -> Result<(), Error> {
    let failed = |error: io::Error| file_error(path, "write", &error);
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => end_of_links(path),
        Err(error) => return Err(failed(error)),
    };
    if let Ok(found) = fs::metadata(&target) {
        if found.is_dir() {
            return Err(failed(ErrorKind::IsADirectory.into()));
        }
        if !found.is_file() {
            return Err(failed(io::Error::new(
                ErrorKind::InvalidInput,
                "it is not a regular file",
            )));
        }
        if overwrite == Overwrite::No {
            return Err(exists(path));
        }
    }
    // A link that points nowhere is something, too.
    if overwrite == Overwrite::No && fs::symlink_metadata(path).is_ok() {
        return Err(exists(path));
    }
    let folder = folder_of(&target);
    match place(&target, folder, bytes, overwrite) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && overwrite == Overwrite::No => {
            return Err(exists(path));
        }
        placed => placed.map_err(failed)?,
    }
    sync_folder(folder);
    Ok(())
}

fn exists(path: &Path) -> Error {
    Error::Exists { path: path.display().to_string(), what: existing::FILE }
}

/// Where links lead that end at nothing; at most as many as systems follow.
fn end_of_links(path: &Path) -> PathBuf {
    let mut end = path.to_owned();
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&end) else { break };
        end = folder_of(&end).join(next);
    }
    end
}

fn place(target: &Path, folder: &Path, bytes: &[u8], overwrite: Overwrite) -> io::Result<()> {
    let temporary = temporary_in(folder);
    // Only a process that is gone can have left one: its number is ours now.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = fill(&temporary, bytes).and_then(|()| match overwrite {
        Overwrite::Yes => fs::rename(&temporary, target),
        Overwrite::No => rename_new(&temporary, target),
    });
    if written.is_err() {
        // The first error is the one to report; a file that was never made cannot be removed.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Renames unless something has the name already. A second name for the file is given in one step;
/// where a file system has no second names, the name is taken by an empty file first.
fn rename_new(temporary: &Path, target: &Path) -> io::Result<()> {
    match fs::hard_link(temporary, target) {
        Ok(()) => fs::remove_file(temporary),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Err(_) => {
            File::create_new(target)?;
            fs::rename(temporary, target).inspect_err(|_| {
                // The empty file is ours, and the first error is the one to report.
                let _ = fs::remove_file(target);
            })
        }
    }
}

fn fill(temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A name that nothing else in this folder has. It is short, so that no target is too long for it.
fn temporary_in(folder: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    folder.join(format!("{BEGINNING}{}-{count}{END}", std::process::id()))
}

/// Whose temporary files are removed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose<'a> {
    /// Nobody else writes there.
    Anybodys,
    /// Those of the process with this number, which is gone.
    Process(&'a str),
}

/// Removes the temporary files that killed processes have left in a folder. One that cannot be removed
/// stays: it is in nobody's way.
pub(super) fn remove_temporaries(folder: &Path, whose: Whose<'_>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| is_temporary(name, whose)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_temporary(name: &str, whose: Whose<'_>) -> bool {
    let inside = name.strip_prefix(BEGINNING).and_then(|name| name.strip_suffix(END));
    let Some((process, count)) = inside.and_then(|inside| inside.split_once('-')) else {
        return false;
    };
    let whole = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let ours = match whose {
        Whose::Anybodys => true,
        Whose::Process(number) => process == number,
    };
    whole(process) && whole(count) && ours
}

/// The folder a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Forces the names in a folder to the disk. Where a system cannot, the files are still whole, and
/// there is nothing left to undo: so no error.
pub(super) fn sync_folder(folder: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}
