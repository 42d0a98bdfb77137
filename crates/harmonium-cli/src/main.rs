//! `harmonium`: Boltzmann machines from the command line.
//!
//! What was typed (`args`) becomes what is done (`commands`), and results are shown by `render`.
//! Results go to stdout, everything else to stderr.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod failure;
mod inputs;
mod load;
mod modalities;
mod output;
mod plan;
mod render;
mod report;

use args::{Cli, Command};
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            render::aside(&failure.to_string());
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Failure> {
    render::progress::keep_ignored();
    let Some(Cli { common, command }) = args::parse()? else { return Ok(()) };
    common.on_threads(|| match &command {
        Command::Demo(args) => commands::demo::run(args, &common),
        Command::Train(command) => commands::train::run(command, &common),
        Command::Finetune(args) => commands::finetune::run(args, &common),
        Command::Sample(args) => commands::sample::run(args, &common),
        Command::Classify(args) => commands::classify::run(args, &common),
        Command::Complete(args) => commands::complete::run(args, &common),
        Command::Score(args) => commands::score::run(args, &common),
        Command::Logz(args) => commands::logz::run(args, &common),
        Command::Infer(args) => commands::infer::run(args, &common),
        Command::Features(args) => commands::features::run(args, &common),
        Command::Retrieve(args) => commands::retrieve::run(args, &common),
        Command::Inspect(args) => commands::inspect::run(args, &common),
        Command::Report(args) => commands::report::run(args, &common),
        Command::Convert(args) => commands::convert::run(args, &common),
        Command::Data(args) => commands::data::run(args, &common),
        Command::Completions(args) => render::script(&args::completions(args.shell)),
    })
}
