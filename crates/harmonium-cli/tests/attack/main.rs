//! Hostile and unlucky cases against the real program: it may refuse, but it never panics, hangs, takes
//! more memory than it was given, or says that all is well when it is not.
//!
//! The generators make as many cases as they are asked for. The ordinary tests ask for few;
//! `cargo xtask attack` sets `HARMONIUM_ATTACK=long`. Cases depend on their number alone, so a failure names
//! the case that can be looked at.

#![cfg(unix)]

mod bombs;
mod flags;
mod interrupted;
mod models;
mod program;
mod special;
#[path = "../../../harmonium-data/tests/write/mod.rs"]
mod write;
