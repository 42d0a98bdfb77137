//! `train` without `--epochs`, through the real binary: what it chose can be repeated, and a search that was stopped goes on.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn json(folder: &Path, line: &str) -> (Value, String) {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let words = line.split_whitespace().skip(1).chain(["--json"]);
    let output = command.args(words).current_dir(folder).output().expect("it runs");
    let err = String::from_utf8(output.stderr).expect("it speaks UTF-8");
    assert!(output.status.success(), "{line}: {err}");
    (serde_json::from_slice(&output.stdout).expect("one JSON object"), err)
}

fn bytes(folder: &Path, run: &str) -> Vec<u8> {
    fs::read(folder.join(run).join("model.safetensors")).expect("a model")
}

#[test]
fn the_line_that_it_prints_repeats_the_winner_to_the_byte() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    for (model, kept) in [("rbm", ""), ("bm", "--hidden 4"), ("dbm", "--seed 7 --hidden 4,2")] {
        let line = format!(
            "harmonium train {model} bars-and-stripes:3 --effort quick {kept} --out {model}"
        );
        let (found, err) = json(at, &line);
        assert!(err.contains("trials") && err.contains("about"), "work and time are told: {err}");
        let repeat = found["repeat"].as_str().expect("a line");
        json(at, &format!("{repeat} --out {model}-again"));
        assert_eq!(bytes(at, model), bytes(at, &format!("{model}-again")), "{repeat}");
    }
}

#[test]
fn a_search_that_was_stopped_goes_on() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let line = "harmonium train rbm bars-and-stripes:3 --effort quick --out";
    let (whole, _) = json(at, &format!("{line} whole"));
    // What is left of a search that was stopped after its third trial.
    fs::create_dir(at.join("part")).expect("a folder");
    let trials = fs::read_to_string(at.join("whole/trials.jsonl")).expect("trials");
    let four: Vec<&str> = trials.lines().take(4).collect();
    fs::write(at.join("part/trials.jsonl"), four.join("\n") + "\n").expect("written");
    let (part, _) = json(at, &format!("{line} part --resume"));
    assert_eq!(part["trials"], whole["trials"]);
    assert_eq!(bytes(at, "part"), bytes(at, "whole"));
    // Not with other data, or another seed.
    for other in ["rbm bars-and-stripes:4", "rbm bars-and-stripes:3 --seed 1"] {
        fs::remove_dir_all(at.join("part")).expect("removed");
        fs::create_dir(at.join("part")).expect("a folder");
        fs::write(at.join("part/trials.jsonl"), four.join("\n") + "\n").expect("written");
        let line = format!("train {other} --effort quick --out part --resume");
        let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
        let output = command.args(line.split_whitespace()).current_dir(at).output().expect("runs");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("was begun with other settings"), "{err}");
    }
}
