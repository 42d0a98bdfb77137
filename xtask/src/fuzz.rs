//! `cargo xtask fuzz`: every fuzz target for a fixed time, from seeds that are written first.
//!
//! One target runs after the other, under `nice` where there is one, with at most 1 GB of memory and 25 s for an
//! input. An input that crashes, takes more memory or takes longer is a finding: it is kept in
//! `fuzz/artifacts/TARGET`, and the command fails.

use crate::step::{Step, Steps};
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const MEMORY: &str = "-rss_limit_mb=1024";
const TIME: &str = "-timeout=25";

/// What was asked: minutes for each target, and which targets.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    minutes: u64,
    targets: Vec<String>,
}

impl Asked {
    /// Reads `[--minutes N] [TARGET ...]`; without a target all of `known`.
    fn from_words(words: &[&str], known: &[String]) -> Result<Self, String> {
        let mut asked = Self { minutes: 10, targets: Vec::new() };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if word == "--minutes" {
                let minutes = words.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0);
                asked.minutes = minutes.ok_or("--minutes takes a whole number from 1")?;
            } else if known.iter().any(|target| target == word) {
                asked.targets.push(word.into());
            } else {
                return Err(format!("`{word}` is not a target: {}", known.join(", ")));
            }
        }
        if asked.targets.is_empty() {
            asked.targets = known.to_vec();
        }
        Ok(asked)
    }
}

/// What libFuzzer says at the end of a target, and whether it found something.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    executions: u64,
    megabytes: u64,
    found: bool,
}

impl Outcome {
    /// Takes up a line of libFuzzer: `stat::number_of_executed_units: 1234`.
    fn add(&mut self, line: &str) {
        let Some((name, value)) = line.strip_prefix("stat::").and_then(|s| s.split_once(':'))
        else {
            return;
        };
        let value = value.trim().parse().unwrap_or(0);
        match name {
            "number_of_executed_units" => self.executions = value,
            "peak_rss_mb" => self.megabytes = value,
            _ => {}
        }
    }
}

/// Runs the targets that `words` ask for; true if none of them found anything.
pub(crate) fn run(words: &[&str]) -> bool {
    match Asked::from_words(words, &targets()) {
        Ok(asked) => installed() && seeds() && all(&asked),
        Err(message) => {
            println!("{message}");
            false
        }
    }
}

/// The names of the targets, from the manifest of the fuzz crate.
fn targets() -> Vec<String> {
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap_or_default();
    let bins = manifest.split("[[bin]]").skip(1);
    let names = bins.filter_map(|bin| bin.split("name = \"").nth(1)?.split('"').next());
    names.map(str::to_string).collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

fn installed() -> bool {
    let quiet = Command::new(cargo()).args(["fuzz", "--version"]).stderr(Stdio::null()).output();
    let there = quiet.is_ok_and(|out| out.status.success());
    if !there {
        println!("cargo-fuzz is missing; get it by `cargo install cargo-fuzz --locked`");
    }
    there
}

/// Valid files and bombs to start from.
fn seeds() -> bool {
    let data = ["test", "--package", "harmonium-data", "--test", "hostile", "write_fuzz_seeds"];
    let models = ["test", "--package", "harmonium", "--test", "run", "write_fuzz_seeds"];
    let ignored = ["--", "--ignored"];
    Steps::of(&[
        Step::cargo("seeds of data", &[&data[..], &ignored].concat()),
        Step::cargo("seeds of models", &[&models[..], &ignored].concat()),
    ])
    .succeeded()
}

fn all(asked: &Asked) -> bool {
    let mut lines = Vec::new();
    let mut clean = true;
    for target in &asked.targets {
        println!("\n== {target}: {} min", asked.minutes);
        let outcome = match one(target, asked.minutes) {
            Ok(outcome) => outcome,
            Err(error) => {
                println!("cannot run cargo fuzz: {error}");
                return false;
            }
        };
        clean &= !outcome.found;
        let verdict = if outcome.found { "FOUND: see fuzz/artifacts" } else { "no finding" };
        let Outcome { executions, megabytes, .. } = outcome;
        lines.push(format!("{target:<12}{executions:>14}{megabytes:>12}  {verdict}"));
    }
    println!("\n{:<12}{:>14}{:>12}", "target", "executions", "peak MB");
    println!("{}", lines.join("\n"));
    clean
}

/// Runs one target to its end. A failing exit is a finding.
fn one(target: &str, minutes: u64) -> std::io::Result<Outcome> {
    let cargo = cargo();
    let total = format!("-max_total_time={}", 60 * minutes);
    let flags = ["fuzz", "run", target, "--", &total, MEMORY, TIME, "-print_final_stats=1"];
    let nice = Command::new("nice").arg("true").output().is_ok_and(|out| out.status.success());
    let mut command = if nice {
        let mut command = Command::new("nice");
        command.args(["-n", "15", &cargo]);
        command
    } else {
        Command::new(&cargo)
    };
    // A stable compiler has the sanitizer too, once told that it may.
    command.args(flags).current_dir(folder()).env("RUSTC_BOOTSTRAP", "1").stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut outcome = Outcome::default();
    if let Some(out) = child.stderr.take() {
        for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            outcome.add(&line);
            if shown(&line) {
                println!("{line}");
            }
        }
    }
    outcome.found = !child.wait()?.success();
    Ok(outcome)
}

/// Of the lines of libFuzzer those about single inputs are left out, which are thousands.
fn shown(line: &str) -> bool {
    let single = ["\tNEW", "\tREDUCE ", "\tRELOAD"];
    !single.iter().any(|word| line.contains(word)) && !line.starts_with("stat::")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<String> {
        ["mat", "png"].map(String::from).into()
    }

    #[test]
    fn words_choose_minutes_and_targets() {
        let all = Asked::from_words(&[], &known()).unwrap();
        assert_eq!(all, Asked { minutes: 10, targets: known() });
        let some = Asked::from_words(&["png", "--minutes", "3"], &known()).unwrap();
        assert_eq!(some, Asked { minutes: 3, targets: vec!["png".into()] });
    }

    #[test]
    fn wrong_words_are_named() {
        for words in [&["gif"][..], &["--minutes"], &["--minutes", "0"], &["--minutes", "x"]] {
            let message = Asked::from_words(words, &known()).unwrap_err();
            assert!(message.contains("gif") || message.contains("from 1"), "{message}");
        }
    }

    #[test]
    fn counts_are_those_of_the_fuzzer() {
        let mut outcome = Outcome::default();
        outcome.add("stat::number_of_executed_units: 1234");
        outcome.add("stat::peak_rss_mb:              97");
        outcome.add("#1234\tDONE   cov: 10");
        assert_eq!(outcome, Outcome { executions: 1234, megabytes: 97, found: false });
        assert!(shown("#1234\tDONE") && !shown("#7\tNEW    cov: 3") && !shown("stat::x: 1"));
    }

    #[test]
    fn every_reader_has_a_target() {
        let targets = targets();
        for reader in ["arff", "frame", "mat", "model_file", "npz", "png", "table"] {
            assert!(targets.iter().any(|target| target == reader), "{reader}");
        }
    }
}
