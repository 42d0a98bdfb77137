//! What a report finds in real runs, by the numbers that the run itself wrote.

use assert_cmd::Command;
use std::fs;
use tempfile::TempDir;

/// The page about an RBM of 64 hidden units that learned digits with these flags.
fn page(flags: &str) -> String {
    let folder = TempDir::new().expect("a folder");
    let line = format!("train rbm digits --hidden 64 --epochs 20 --out r {flags}");
    for line in [line.as_str(), "report r"] {
        let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
        command.args(line.split_whitespace()).current_dir(folder.path()).assert().success();
    }
    fs::read_to_string(folder.path().join("r/report.html")).expect("a report")
}

#[test]
fn chains_that_do_not_mix_are_found() {
    let page = page("--learning-rate 0.3 --k 1 --chains 5");
    assert!(page.contains("so they do not mix"), "the free energies are far apart");
    assert!(page.contains("<code>--chains 25</code>") && page.contains("<code>--rule pt</code>"));
}

#[test]
fn chains_that_mix_are_not_blamed() {
    let page = page("--learning-rate 0.05");
    assert!(page.contains("the chains stay with the data"), "the free energies are near");
    assert!(!page.contains("do not mix"));
}
