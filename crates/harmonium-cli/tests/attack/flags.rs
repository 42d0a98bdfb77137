//! Flags with numbers that no person would type: zero, negative, huge, not a number, not even a word.

use crate::program::{Attack, cases, run};
use std::path::Path;
use tempfile::TempDir;

/// What is given for a number.
const VALUES: [&str; 14] = [
    "18446744073709551615",
    "0",
    "9223372036854775807",
    "nan",
    "9223372036854775808",
    "1000000000000",
    "-1",
    "1e308",
    "inf",
    "1e-308",
    "3.5e38",
    "4294967296",
    "",
    "0:1,5:x",
];

/// A command and the flags that are changed in it; `N` in the command is the number of the case.
const COMMANDS: [(&str, &[&str]); 9] = [
    (
        "train rbm bars-and-stripes:3 --epochs 2 --quiet --out r-N",
        &[
            "--hidden",
            "--batch",
            "--chains",
            "--k",
            "--learning-rate",
            "--decay",
            "--momentum",
            "--l1",
            "--l2",
            "--sparsity-target",
            "--sparsity-cost",
            "--max-norm",
            "--clip",
            "--offset-rate",
            "--initial-std",
            "--patience",
            "--checkpoint-seconds",
            "--categories",
            "--seed",
            "--columns",
            "--packed-bits",
            "--full-scale",
            "--binarize",
            "--label-column",
        ],
    ),
    ("train rbm bars-and-stripes:3 --epochs 2 --hidden 4 --rule pt --out r-N", &["--replicas"]),
    (
        "train rbm bars-and-stripes:3 --epochs 2 --hidden 4 --rule ptt --out r-N",
        &["--reservoir", "--freeze-below", "--rollback-below"],
    ),
    (
        "train dbm bars-and-stripes:3 --epochs 1 --hidden 4,3 --out r-N",
        &["--posterior-sweeps", "--mean-field-sweeps", "--pretrain-learning-rate"],
    ),
    ("logz ising:3,0.4 --method sandwich --json", &["--betas", "--chains", "--width"]),
    ("logz ising:3,0.4 --method ais --json", &["--betas", "--chains"]),
    ("sample ising:3,0.4 --sweeps 3 --out s-N.csv", &["--n"]),
    ("sample ising:3,0.4 --n 2 --out s-N.npy", &["--sweeps"]),
    ("inspect ising:3,0.4 --diagnostics --json", &["--chains", "--sweeps"]),
];

/// Models with numbers in their names.
const NAMES: [&str; 8] = [
    "ising:8,1e308",
    "ising:18446744073709551615,1",
    "ising:4294967296,0.4",
    "ising:3,nan",
    "ising:3,inf",
    "curie-weiss:18446744073709551615,1",
    "curie-weiss:12,1e308",
    "curie-weiss:0,0",
];

/// Every flag with every number, in an order that spreads few cases over all of them.
fn all() -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for name in NAMES {
        all.push(["logz", name, "--json"].map(str::to_owned).into());
    }
    for value in VALUES {
        for (command, flags) in COMMANDS {
            for flag in flags {
                let command = command.replace('N', &all.len().to_string());
                let words = command.split(' ').map(str::to_owned);
                all.push(words.chain([format!("{flag}={value}")]).collect());
            }
        }
    }
    all
}

/// What was printed as JSON has no number that is missing.
fn json(out: &str) -> Result<(), String> {
    let value: serde_json::Value =
        serde_json::from_str(out).map_err(|error| format!("not JSON ({error}): {out}"))?;
    match &value["log_z"] {
        serde_json::Value::Null if value.get("layers").is_none() => Err(format!("no ln Z: {out}")),
        _ => Ok(()),
    }
}

/// A run that says it has succeeded leaves a model that can be opened.
fn opens(folder: &Path, words: &[&str]) -> Result<(), String> {
    let out = words.iter().skip_while(|word| **word != "--out").nth(1);
    let said = run(folder, &["inspect", out.expect("a run has a place")], 10);
    if said.status.is_some_and(|status| status.success()) {
        Ok(())
    } else {
        Err(format!("success, but: {}", said.err))
    }
}

#[test]
fn extreme_flags() {
    let folder = TempDir::new().expect("a folder");
    let mut attack = Attack::new("extreme flags");
    let all = all();
    let step = all.len() as u64 / cases(60, all.len() as u64);
    let (mut long, seconds) = (0, cases(1, 5));
    for words in all.iter().step_by(usize::try_from(step).expect("few")) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = run(folder.path(), &words, seconds);
        long += u64::from(said.status.is_none());
        let done = said.status.is_some_and(|status| status.success());
        let result = said.held_or_long().and_then(|()| match words[0] {
            "train" if done => opens(folder.path(), &words),
            _ if done && words.contains(&"--json") => json(&said.out),
            _ => Ok(()),
        });
        attack.case(|| words.join(" "), result);
    }
    println!("{long} cases took longer than {seconds} s and were ended");
    attack.finish();
}
