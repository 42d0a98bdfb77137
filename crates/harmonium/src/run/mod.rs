//! What a training leaves behind: model files, checkpoints and the run directory.
//!
//! ```text
//! RUN/
//!   run.toml                       what was asked
//!   events.jsonl                   what happened, one JSON object per line, append-only
//!   checkpoints/last.safetensors   everything needed to go on
//!   checkpoints/best.safetensors   the best model so far, by its score on validation data
//!   model.safetensors              the result: the best model, else the last
//! ```
//!
//! The run directory is the interface between training and everything that looks at it: a
//! [`RunWriter`] holds the lock and writes, a [`RunDirectory`] only looks. No file names a path, a
//! time or a number of threads, so equal runs give equal bytes, and a run that was stopped and
//! resumed equals one that never stopped.
//!
//! ```
//! use harmonium::models::Rbm;
//! use harmonium::run::{About, Model};
//!
//! let body = Rbm::binary(4, 2)?.into();
//! let model = Model { body, about: About { seed: 7, ..About::default() } };
//! assert_eq!(Model::from_bytes(&model.to_bytes()?)?, model);
//! # Ok::<(), harmonium::Error>(())
//! ```

mod atomic;
mod checkpoint;
mod checksum;
mod directory;
mod event;
mod events;
mod evidence;
mod fg;
mod header;
mod idle;
mod lock;
mod memory;
mod metadata;
mod model_file;
mod network_file;
mod numbers;
mod onnx;
mod parameters;
mod recorder;
mod store;
mod tensors;
mod uai;
mod validated;
mod writer;

pub use checkpoint::SavedCheckpoint;
pub use directory::RunDirectory;
pub use event::{Ending, Epoch, Event, PretrainingEpoch};
pub use events::EventLog;
pub use evidence::{load_evidence, read_evidence, write_map, write_mar, write_pr};
pub use fg::{load_fg, read_fg};
pub use memory::Memory;
pub use model_file::{About, Located, Model};
pub use numbers::Parameter;
pub use onnx::write_onnx;
pub use recorder::{Recorded, Recorder, Recording, record};
pub use store::{Heard, RunMemory, RunStore};
pub use uai::{UaiModel, load_uai, read_uai, write_uai};
pub use validated::BestScore;
pub use writer::RunWriter;

use crate::error::Error;
use std::io;
use std::path::Path;

/// What to do with what is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Leave it and say so.
    No,
    /// Replace it.
    Yes,
}

/// Writes a file: either all of it, or the old one stays.
///
/// # Errors
///
/// If something is there that must not be replaced, or the system refuses.
pub fn write_file(path: impl AsRef<Path>, bytes: &[u8], overwrite: Overwrite) -> Result<(), Error> {
    atomic::write(path.as_ref(), bytes, overwrite)
}

/// How bytes that came from no file are called in errors.
const NO_FILE: &str = "the given bytes";

fn damaged(reason: impl Into<String>) -> Error {
    Error::Damaged { path: NO_FILE.into(), reason: reason.into() }
}

fn file_error(path: &Path, action: &'static str, error: &io::Error) -> Error {
    let (path, reason) = (path.display().to_string(), error.to_string());
    Error::File { path, action, reason, kind: error.kind() }
}

/// Says which file an error about bytes is about.
fn in_file(path: &Path) -> impl Fn(Error) -> Error {
    let path = path.display().to_string();
    move |error| {
        let path = path.clone();
        match error {
            Error::Damaged { reason, .. } => Error::Damaged { path, reason },
            Error::NewerFormat { found, supported, .. } => {
                Error::NewerFormat { path, found, supported }
            }
            Error::UnknownKind { kind, expected, .. } => {
                Error::UnknownKind { path, kind, expected }
            }
            Error::Foreign { reason, hint, .. } => Error::Foreign { path, reason, hint },
            other => other,
        }
    }
}
