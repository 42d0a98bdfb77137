//! Deep belief networks through the real binary.

#![expect(clippy::format_collect, reason = "small files for tests")]

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn said(folder: &Path, line: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output = command.args(line.split_whitespace()).current_dir(folder).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn json(folder: &Path, line: &str) -> Value {
    let (code, out, err) = said(folder, &format!("{line} --json"));
    assert_eq!(code, 0, "{line}: {err}");
    serde_json::from_str(&out).expect("one JSON object on stdout")
}

fn refused(folder: &Path, line: &str, words: &str) {
    let (code, out, err) = said(folder, line);
    assert_eq!((code, out.as_str()), (2, ""), "{line}: {err}");
    assert!(err.contains("error: ") && err.contains("\nhint: "), "{line}: {err}");
    assert!(err.contains(words) && !err.contains("panicked"), "{line}: {err}");
}

const TRAIN: &str = "train dbn bars-and-stripes:3 --hidden 6,5,4 --labels labels.csv --epochs 20 \
                     --refine-epochs 5 --batch 4";

/// A folder with a network in `r`.
fn trained() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let labels: String =
        (0..16).map(|i| format!("{}\n", if i < 8 { "bar" } else { "stripe" })).collect();
    fs::write(folder.path().join("labels.csv"), labels).expect("it can be written");
    let value = json(folder.path(), &format!("{TRAIN} --out r"));
    assert_eq!(value["epochs"].as_u64(), Some(65));
    assert!(value["bound.train"].as_f64() <= value["importance.train"].as_f64(), "{value}");
    folder
}

#[test]
fn every_command_of_the_contract_takes_a_network() {
    let folder = trained();
    let path = folder.path();
    let exact = json(path, "score r bars-and-stripes:3");
    assert_eq!(exact["method"], "exact");
    let bound = json(path, "score r bars-and-stripes:3 --method bound");
    let drawn = json(path, "score r bars-and-stripes:3 --method importance --draws 500");
    let nats = |v: &Value| v["log_likelihood"].as_f64().expect("a number");
    assert!(nats(&bound) < nats(&exact));
    let error = drawn["std_error"].as_f64().expect("a number");
    assert!((nats(&drawn) - nats(&exact)).abs() < 5.0 * error + 1e-6, "{drawn} {exact}");
    let joint = json(path, "score r bars-and-stripes:3 --labels labels.csv --out rows.csv");
    assert!(nats(&joint) < nats(&exact));
    assert!((0.0..=1.0).contains(&joint["error_rate"].as_f64().expect("a number")));
    json(path, "complete r bars-and-stripes:3 --out c.csv");
    let text = fs::read_to_string(path.join("c.csv")).expect("written");
    assert!(text.lines().count() == 16 && text.lines().all(|l| l.split(',').count() == 11));
    assert_eq!(fs::read_to_string(path.join("rows.csv")).expect("written").lines().count(), 16);

    json(path, "sample r --n 5 --sweeps 20 --class stripe --out s.csv");
    let text = fs::read_to_string(path.join("s.csv")).expect("written");
    assert!(text.lines().count() == 5 && text.lines().all(|l| l.split(',').count() == 9));
    json(path, "sample r --n 4 --sweeps 20 --out s.png");
    assert_eq!(json(path, "features r bars-and-stripes:3 --out f.npy")["features"], 15);
    assert_eq!(
        json(path, "features r bars-and-stripes:3 --layer hidden3 --out g.npy")["features"],
        4
    );
    let seen = json(path, "inspect r");
    assert_eq!((&seen["kind"], seen["layers"].as_array().map(Vec::len)), (&"dbn".into(), Some(4)));
    json(path, "report r");
    let page = fs::read_to_string(path.join("r/report.html")).expect("written");
    assert!(page.contains("hidden3") && page.contains("bound.train"));
    let events = fs::read_to_string(path.join("r/events.jsonl")).expect("written");
    for stage in ["layer 1", "layer 2", "layer 3", "up-down"] {
        assert!(events.contains(&format!("\"stage\":\"{stage}\"")), "{stage}");
    }
}

#[test]
fn equal_runs_have_equal_bytes_and_a_finished_run_has_nothing_left_to_do() {
    let folder = trained();
    let path = folder.path();
    json(path, &format!("{TRAIN} --out again --threads 1"));
    let model = |run: &str| fs::read(path.join(run).join("model.safetensors")).expect("a model");
    assert_eq!(model("r"), model("again"));
    // Without its model the run goes on from its last checkpoint, and ends the same.
    fs::remove_file(path.join("again/model.safetensors")).expect("it was there");
    json(path, "train dbn --out again --resume");
    assert_eq!(model("r"), model("again"));
    json(path, "train dbn --out again --resume");
}

#[test]
fn the_partition_function_is_that_of_the_top() {
    let folder = trained();
    let found = json(folder.path(), "logz r");
    let score = json(folder.path(), "score r bars-and-stripes:3");
    assert_eq!(found["log_z"], score["log_z"]);
}

#[test]
fn what_a_network_cannot_do_is_refused() {
    let folder = trained();
    let path = folder.path();
    let line = "train dbn bars-and-stripes:3 --out x";
    refused(path, &format!("{line} --hidden 5"), "two hidden layers");
    refused(path, &format!("{line} --hidden 5,4 --valid digits"), "--valid");
    refused(path, &format!("{line} --hidden 5,4 --rule exact --refine-epochs 2"), "samples");
    refused(
        path,
        &format!("{line} --hidden 5,4 --refine-epochs 2 --refine-learning-rate -1"),
        "learning-rate",
    );
    refused(path, "train rbm bars-and-stripes:3 --hidden 5 --refine-epochs 2 --out x", "train dbn");
    refused(path, "sample r --class 7 --out x.csv", "bar, stripe");
    refused(path, "score r digits", "columns");
    refused(path, "score r bars-and-stripes:3 --method pseudo", "pseudo");
    refused(path, "score r bars-and-stripes:3 --method bound --draws 0", "draws");
    refused(path, "features r bars-and-stripes:3 --layer visible --out x.npy", "hidden1");
    refused(path, "train rbm --out r --resume", "another model than a rbm");
    assert!(!path.join("x").exists());
}
