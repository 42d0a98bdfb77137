//! `harmonium`: Boltzmann machines from the command line.
//!
//! What was typed (`args`) becomes what is done (`commands`), and results are shown by `render`.
//! Results go to stdout, everything else to stderr.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod failure;
mod render;

use args::{Cli, Command};
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            anstream::eprintln!("{failure}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Failure> {
    let Some(Cli { common, command }) = args::parse()? else { return Ok(()) };
    common.start_threads()?;
    match command {
        Command::Demo(args) => commands::demo::run(&args, &common),
    }
}
