//! Whatever instructions a machine has, a run ends in the same bytes.

use assert_cmd::Command;
use std::fs;
use tempfile::TempDir;

/// The least that the kernels are compiled for, what is between, and the most; a machine that has
/// less takes the most it has.
const SETS: [&str; 3] = ["x86-64", "avx2", "avx512"];

/// The model that training ends with.
fn model(set: &str, line: &str) -> Vec<u8> {
    let folder = TempDir::new().expect("a folder");
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    command.env("HARMONIUM_INSTRUCTIONS", set).current_dir(folder.path());
    let output = command.args(line.split_whitespace()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{set}, {line}: {said}");
    fs::read(folder.path().join("r/model.safetensors")).expect("the run has a model")
}

#[test]
fn every_instruction_set_ends_in_the_same_bytes() {
    let rules = [
        "rbm digits --hidden 150 --batch 100",
        "rbm digits --hidden 70 --batch 10 --momentum 0 --no-center --l2 0",
        "rbm digits --hidden 130 --batch 40 --rule cd --l1 0.0001",
        "dbm digits --hidden 70,40 --batch 100 --posterior gibbs",
    ];
    for (rule, precision) in rules.iter().flat_map(|rule| [(rule, "i16"), (rule, "f32")]) {
        let line =
            format!("train {rule} --epochs 2 --seed 5 --precision {precision} --quiet --out r");
        let models = SETS.map(|set| model(set, &line));
        assert!(models.iter().all(|model| *model == models[0]), "{line}");
        let other = model(SETS[0], &line.replace("--seed 5", "--seed 6"));
        assert!(other != models[0], "another seed ends elsewhere");
    }
}
