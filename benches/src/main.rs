//! Measurements and long reproductions; `cargo xtask bench NAME` and `cargo xtask reproduce NAME`.
//!
//! Machines are noisy, so what counts is a ratio of medians from one run in which the contenders
//! take turns.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

mod bars_and_stripes;
mod bars_and_stripes_dbm;
mod completing;
mod coverage;
mod dbm_start;
mod dbn;
mod density;
mod encoder;
mod exact;
mod gibbs;
mod holes;
mod imputation;
mod inference;
mod instructions;
mod machine;
mod mnist_table;
mod network;
mod peers;
mod precision;
mod products;
mod programs;
mod ptt;
mod real_tables;
mod report;
mod sampling;
mod scaling;
mod sets;
mod shifter;
mod step;
mod sweep;
mod tempered;
mod three_ways;
mod tracking;
mod turns;
mod yardstick;

use std::process::ExitCode;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;
type Outcome = Fallible<()>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome: Outcome = match words[..] {
        ["bench", "ais", ref words @ ..] => peers::run(&[&["--only", "f"], words].concat()),
        ["bench", "exact"] => exact::run(),
        ["bench", "gibbs"] => gibbs::run(),
        ["bench", "network", ref words @ ..] => network::run(words),
        ["bench", "inference", ref words @ ..] => inference::run(words),
        ["bench", "peers", ref words @ ..] => peers::run(words),
        ["bench", "step", ref words @ ..] => step::run(words),
        ["bench", "sweep", ref words @ ..] => sweep::run(words),
        ["bench", "instructions", ref words @ ..] => {
            return finish(instructions::run(words));
        }
        ["bench", "scaling", ref words @ ..] => scaling::run(words),
        ["reproduce", "autopilot", ref words @ ..] => density::autopilot(words),
        ["reproduce", "no-silent-failure", ref words @ ..] => density::no_silent_failure(words),
        ["reproduce", "tracking", ref words @ ..] => tracking::run(words),
        ["reproduce", "bars-and-stripes"] => bars_and_stripes::run(),
        ["reproduce", "bars-and-stripes-dbm"] => bars_and_stripes_dbm::run(),
        ["reproduce", "completing"] => completing::run(),
        ["reproduce", "sampling"] => sampling::run(),
        ["reproduce", "coverage", ref words @ ..] => coverage::run(words),
        ["reproduce", "dbm-start"] => dbm_start::run(),
        ["reproduce", "dbn"] => dbn::run(),
        ["reproduce", "encoder"] => encoder::run(),
        ["reproduce", "mnist-table", ref words @ ..] => mnist_table::run(words),
        ["reproduce", "precision"] => precision::run(),
        ["reproduce", "ptt", ref words @ ..] => ptt::run(words),
        ["reproduce", "holes", ref words @ ..] => holes::run(words),
        ["reproduce", "imputation", ref words @ ..] => imputation::run(words),
        ["reproduce", "real-tables", ref words @ ..] => real_tables::run(words),
        ["reproduce", "shifter"] => shifter::run(),
        ["reproduce", "tempered"] => tempered::run(),
        ["reproduce", "three-ways"] => three_ways::run(),
        _ => Err("there are: bench ais, exact, gibbs, inference, instructions, network, peers, scaling, step, sweep; \
             reproduce autopilot, bars-and-stripes, bars-and-stripes-dbm, completing, coverage, \
             dbm-start, dbn, encoder, mnist-table, no-silent-failure, precision, ptt, real-tables, sampling, shifter, tempered, \
             three-ways, tracking"
            .into()),
    };
    finish(outcome.map(|()| ExitCode::SUCCESS))
}

fn finish(outcome: Fallible<ExitCode>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
