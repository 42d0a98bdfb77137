//! The project's chores.
//!
//! `cargo xtask test` is what has to pass: formatting, lints, tests, doctests and docs, and the same of
//! the Python package.
//! `cargo xtask python` builds the Python package and runs its tests alone.
//! `cargo xtask laws` runs the laws over every graph of every kind of unit, in their long form.
//! `cargo xtask attack` runs thousands of hostile and unlucky cases against the program.
//! `cargo xtask fuzz` runs the fuzz targets of the readers and of the model file.
//! `cargo xtask deny` checks the licences and the sources of everything the project depends on.
//! `cargo xtask sanitize` runs the kernels' tests with every access to memory checked.
//! `cargo xtask bench NAME` and `cargo xtask reproduce NAME` run the longer things.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

mod fuzz;
mod python;
mod step;

use python::Python;
use std::env;
use std::process::{Command, ExitCode};
use step::{Step, Steps};

const HELP: &str = "usage:
  cargo xtask test              formatting, lints, tests, doctests, docs; then the Python
                                package: wheel, tests, docstrings, types
  cargo xtask python            the Python package alone
  cargo xtask laws [NAME ...]   the laws over every graph of every kind of unit, with
                                all seeds and sizes (HARMONIUM_LAWS=all); `test` runs
                                them over a covering set
  cargo xtask attack [NAME ...] mutated models, extreme flags, special files, bombs and
                                interrupted runs, thousands of each (HARMONIUM_ATTACK=long);
                                `test` tries some of them
  cargo xtask fuzz [--minutes N] [TARGET ...]
                                the fuzz targets, 10 minutes each, with 1 GB of memory;
                                needs cargo-fuzz
  cargo xtask deny              licences, duplicates and sources of dependencies, by
                                deny.toml; needs cargo-deny
  cargo xtask sanitize          the kernels' tests under AddressSanitizer, at fewer sizes
  cargo xtask bench NAME        measure: ais, exact, gibbs, inference, instructions,
                                network, peers, scaling, step, sweep
  cargo xtask reproduce NAME    long runs with known answers: autopilot,
                                bars-and-stripes, bars-and-stripes-dbm, completing,
                                coverage [--family NAME] [--draw N] [--machine K]
                                [--quick] [--each]
                                [--json],
                                dbm-start, dbn, encoder, holes [--seeds N],
                                imputation [--set NAME,...] [--fill], kill-and-resume,
                                mnist-table [--row NAME] [--epochs N] [--validate]
                                [--write], no-silent-failure, precision, ptt,
                                real-tables [--set NAME,...] [--splits N] [--standard],
                                sampling, shifter, tempered, three-ways, tracking
  cargo xtask reproduce docs [--long] [--write] [PAGE ...]
                                every command of README and docs, each page in a clean
                                folder, and whether it prints the figures on the page;
                                --write puts them there, --long also runs what takes more
                                than two minutes, PAGE is part of a page's path";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["test"] => test(),
        ["python"] => python(),
        ["laws", ref names @ ..] => laws(names),
        ["attack", ref names @ ..] => attack(names),
        ["fuzz", ref names @ ..] => fuzz::run(names),
        ["deny"] => deny(),
        ["sanitize"] => sanitize(),
        ["reproduce", "kill-and-resume"] => kill_and_resume(),
        ["reproduce", "docs", ref words @ ..] => docs(words),
        ["bench" | "reproduce", ..] => return bench(&words),
        _ => {
            println!("{HELP}");
            matches!(words[..], ["help" | "--help" | "-h"])
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The kernels' tests, built as those of the whole workspace are, so that nothing is built again.
const KERNELS: [&str; 7] = [
    "test",
    "--package",
    "harmonium-kernels",
    "--package",
    "harmonium-benches",
    "--lib",
    "--no-fail-fast",
];

/// What may be less than the machine's best: kernels for it are tested too.
const INSTRUCTIONS: &str = "HARMONIUM_INSTRUCTIONS";
const SETS: [&str; 2] = ["avx2", "x86-64"];

/// Every check, in the order of what fails fastest.
fn test() -> bool {
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let slim = ["check", "--package", "harmonium-data", "--no-default-features"];
    let tests = ["test", "--workspace", "--all-targets", "--no-fail-fast"];
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    let mut steps = vec![
        Step::cargo("formatting", &["fmt", "--all", "--check"]),
        Step::cargo("lints", &lints),
        Step::cargo("the library without readers", &slim),
        Step::cargo("tests", &tests),
    ];
    steps.extend(SETS.map(|set| {
        Step::cargo(&format!("kernels for {set} at most"), &KERNELS).with(INSTRUCTIONS, set)
    }));
    steps.push(Step::cargo("doctests", &["test", "--workspace", "--doc"]));
    steps.push(Step::cargo("docs", &docs).with("RUSTDOCFLAGS", "-D warnings"));
    with_python(&steps)
}

/// The Python package alone; its tests compare it with the program.
fn python() -> bool {
    with_python(&[Step::cargo("the program", &["build", "--package", "harmonium-cli"])])
}

/// Runs `steps`, then those of the Python package.
fn with_python(steps: &[Step]) -> bool {
    let python = match Python::find() {
        Ok(python) => python,
        Err(reason) => {
            println!("{reason}");
            return false;
        }
    };
    let mut steps = Steps::of(steps);
    steps.go_on(&python.environment_steps());
    if steps.succeeded() {
        python.note_current();
    }
    steps.go_on(&python.wheel_steps());
    steps.go_on(&python.test_steps());
    steps.report();
    steps.passed()
}

/// The laws over the whole product of graphs and kinds of units, with all their seeds and sizes, or
/// those of them whose names contain one of `names`.
fn laws(names: &[&str]) -> bool {
    let mut args = vec!["test", "--package", "harmonium", "--test", "laws", "--no-fail-fast", "--"];
    args.extend(names);
    let steps = Steps::of(&[Step::cargo("laws", &args).with("HARMONIUM_LAWS", "all")]);
    steps.report();
    steps.passed()
}

/// Hostile cases against the program, one sort after the other so that the clock is fair, with the counts
/// of those that held; or those sorts whose names contain one of `names`.
fn attack(names: &[&str]) -> bool {
    let mut args = vec!["test", "--package", "harmonium-cli", "--test", "attack", "--no-fail-fast"];
    args.extend(["--", "--nocapture", "--test-threads", "1"]);
    args.extend(names);
    let steps = Steps::of(&[Step::cargo("attack", &args).with("HARMONIUM_ATTACK", "long")]);
    steps.report();
    steps.passed()
}

/// Licences, banned crates and sources of all dependencies, by the rules of `deny.toml`. A command of its
/// own, because it needs another program.
fn deny() -> bool {
    let there = Command::new("cargo-deny").arg("--version").output();
    if !there.is_ok_and(|out| out.status.success()) {
        println!("cargo-deny is missing; get it by `cargo install cargo-deny --locked`");
        return false;
    }
    let check = ["deny", "--all-features", "check", "licenses", "bans", "sources"];
    Steps::of(&[Step::cargo("dependencies", &check)]).succeeded()
}

/// The tests of the only crate with `unsafe`, with every access to memory checked. A stable compiler
/// has the sanitizer too, once told that it may.
fn sanitize() -> bool {
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let args = ["test", "--package", "harmonium-kernels", "--lib", "--target", &target];
    let flags = env::var("RUSTFLAGS").unwrap_or_default() + " -Zsanitizer=address";
    let steps = ["avx512", "avx2"].map(|set| {
        Step::cargo(&format!("memory, {set} at most"), &args)
            .with("RUSTFLAGS", flags.trim_start())
            .with("RUSTC_BOOTSTRAP", "1")
            .with("HARMONIUM_TEST_SIZES", "small")
            .with(INSTRUCTIONS, set)
    });
    let steps = Steps::of(&steps);
    steps.report();
    steps.passed()
}

/// A run that is killed fifty times and resumed ends as one that never was.
fn kill_and_resume() -> bool {
    let args = ["test", "--package", "harmonium-cli", "--test", "kill", "--", "--nocapture"];
    Steps::of(&[Step::cargo("fifty kills", &args).with("HARMONIUM_KILLS", "50")]).succeeded()
}

/// The commands of README and docs, run by the release build, against the figures on the pages.
fn docs(words: &[&str]) -> bool {
    let (flags, pages): (Vec<&str>, Vec<&str>) = words.iter().partition(|w| w.starts_with('-'));
    if let Some(flag) = flags.iter().find(|flag| !["--long", "--write"].contains(flag)) {
        println!("`{flag}` is not a flag of `reproduce docs`: there are --long and --write");
        return false;
    }
    let extent = if flags.contains(&"--long") { "long" } else { "all" };
    let write = if flags.contains(&"--write") { " write" } else { "" };
    let build = ["build", "--release", "--package", "harmonium-cli"];
    let test = ["test", "--package", "harmonium-cli", "--test", "docs", "--", "--nocapture"];
    let folder = env::var("CARGO_TARGET_DIR")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../target").into());
    Steps::of(&[
        Step::cargo("the program", &build),
        Step::cargo("pages", &[&test[..], &["pages_say_what_is_printed"]].concat())
            .with("HARMONIUM_PROGRAM", &format!("{folder}/release/harmonium"))
            .with("HARMONIUM_DOCS", &format!("{extent}{write}"))
            .with("HARMONIUM_DOCS_PAGES", &pages.join(" ")),
    ])
    .succeeded()
}

/// Runs a bench with nothing added to what it prints, so that `--json` on stdout is JSON, and ends as
/// it ends: benches tell apart what failed by it.
fn bench(words: &[&str]) -> ExitCode {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let run = ["run", "--release", "--quiet", "--package", "harmonium-benches", "--"];
    match Command::new(cargo).args(run).args(words).status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            code.map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(error) => {
            eprintln!("cannot run cargo: {error}");
            ExitCode::FAILURE
        }
    }
}
