//! The project's chores.
//!
//! `cargo xtask test` is what has to pass: formatting, lints, tests, doctests and docs.
//! `cargo xtask sanitize` runs the kernels' tests with every access to memory checked.
//! `cargo xtask bench NAME` and `cargo xtask reproduce NAME` run the longer things.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const HELP: &str = "usage:
  cargo xtask test              formatting, lints, tests, doctests, docs
  cargo xtask sanitize          the kernels' tests under AddressSanitizer, at fewer sizes
  cargo xtask bench NAME        measure: ais, exact, gibbs, instructions,
                                peers, scaling, step, sweep
  cargo xtask reproduce NAME    long runs with known answers: bars-and-stripes,
                                bars-and-stripes-dbm, coverage, dbm-start, dbn,
                                encoder, kill-and-resume, precision, shifter,
                                tempered, three-ways";

/// Tests counted while they ran.
#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
    ignored: u64,
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["test"] => test(),
        ["sanitize"] => sanitize(),
        ["reproduce", "kill-and-resume"] => {
            let args =
                ["test", "--package", "harmonium-cli", "--test", "kill", "--", "--nocapture"];
            step("fifty kills", &args, &[("HARMONIUM_KILLS", "50")], &mut Count::default())
        }
        ["bench" | "reproduce", ..] => {
            let mut all =
                vec!["run", "--release", "--quiet", "--package", "harmonium-benches", "--"];
            all.extend(&words);
            return plainly(&all);
        }
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
    let start = Instant::now();
    let mut count = Count::default();
    let warnings = ("RUSTDOCFLAGS", "-D warnings");
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let slim = ["check", "--package", "harmonium-data", "--no-default-features"];
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    let done = step("formatting", &["fmt", "--all", "--check"], &[], &mut count)
        && step("lints", &lints, &[], &mut count)
        && step("the library without readers", &slim, &[], &mut count)
        && step(
            "tests",
            &["test", "--workspace", "--all-targets", "--no-fail-fast"],
            &[],
            &mut count,
        )
        && SETS.iter().all(|set| {
            let title = format!("kernels for {set} at most");
            step(&title, &KERNELS, &[(INSTRUCTIONS, set)], &mut count)
        })
        && step("doctests", &["test", "--workspace", "--doc"], &[], &mut count)
        && step("docs", &docs, &[warnings], &mut count);
    println!("\n{} s", start.elapsed().as_secs());
    let Count { passed, failed, ignored } = count;
    println!("{passed} passed, {failed} failed, {ignored} skipped");
    done && failed == 0 && passed > 0
}

/// The tests of the only crate with `unsafe`, with every access to memory checked. A stable compiler
/// has the sanitizer too, once told that it may.
fn sanitize() -> bool {
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let args = ["test", "--package", "harmonium-kernels", "--lib", "--target", &target];
    let flags = env::var("RUSTFLAGS").unwrap_or_default() + " -Zsanitizer=address";
    let mut count = Count::default();
    let done = ["avx512", "avx2"].iter().all(|set| {
        let variables = [
            ("RUSTFLAGS", flags.trim_start()),
            ("RUSTC_BOOTSTRAP", "1"),
            ("HARMONIUM_TEST_SIZES", "small"),
            (INSTRUCTIONS, set),
        ];
        step(&format!("memory, {set} at most"), &args, &variables, &mut count)
    });
    done && count.failed == 0 && count.passed > 0
}

/// Runs cargo, shows what it prints, and counts the tests it reports.
fn step(title: &str, args: &[&str], variables: &[(&str, &str)], count: &mut Count) -> bool {
    println!("\n== {title}: cargo {}", args.join(" "));
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).envs(variables.iter().copied()).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            println!("cannot run cargo: {error}");
            return false;
        }
    };
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            println!("{line}");
            if let Some(result) = line.strip_prefix("test result: ") {
                count.passed += number_before(result, " passed");
                count.failed += number_before(result, " failed");
                count.ignored += number_before(result, " ignored");
            }
        }
    }
    child.wait().is_ok_and(|status| status.success())
}

/// Runs cargo with nothing added to what it prints, so that `--json` on stdout is JSON, and ends as
/// it ends: benches tell apart what failed by it.
fn plainly(args: &[&str]) -> ExitCode {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    match Command::new(cargo).args(args).status() {
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

/// The number that stands before `word`.
fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let line = "ok. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(number_before(line, " passed"), 12);
        assert_eq!(number_before(line, " failed"), 3);
        assert_eq!(number_before(line, " ignored"), 1);
    }
}
