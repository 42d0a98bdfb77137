//! Model files, checkpoints and run directories.

#![expect(clippy::unwrap_used, reason = "a test fails where it unwraps nothing")]

mod checkpoints;
mod dbn;
mod directories;
mod earlier;
mod evidence;
mod failing_disk;
mod fg;
mod findings;
mod folder;
mod hostile;
mod machines;
mod model_files;
mod network;
mod record;
mod resume;
mod uai;
