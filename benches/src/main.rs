//! Measurements and long reproductions; `cargo xtask bench NAME` and `cargo xtask reproduce NAME`.
//!
//! Machines are noisy, so what counts is a ratio of medians from one run in which the contenders
//! take turns.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

mod bars_and_stripes;
mod exact;
mod gibbs;
mod peers;
mod turns;

use std::process::ExitCode;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome: Outcome = match words[..] {
        ["bench", "exact"] => exact::run(),
        ["bench", "gibbs"] => gibbs::run(),
        ["bench", "peers", ref words @ ..] => peers::run(words),
        ["reproduce", "bars-and-stripes"] => bars_and_stripes::run(),
        _ => {
            Err("there are: bench exact, bench gibbs, bench peers, reproduce bars-and-stripes"
                .into())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
