//! Nets through the real binary: made of models and of nothing, resumed, asked, shown, and what is refused.

use assert_cmd::Command;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn said(folder: &Path, line: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output = command.args(line.split_whitespace()).current_dir(folder).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn heard(folder: &Path, line: &str) -> (Value, String) {
    let (code, out, err) = said(folder, &format!("{line} --json"));
    assert_eq!(code, 0, "{line}: {err}");
    (serde_json::from_str(&out).expect("one JSON object on stdout"), err)
}

fn json(folder: &Path, line: &str) -> Value {
    heard(folder, line).0
}

fn refused(folder: &Path, line: &str, words: &str) {
    let (code, out, err) = said(folder, line);
    assert_eq!((code, out.as_str()), (2, ""), "{line}: {err}");
    assert!(err.contains("error: ") && err.contains("\nhint: "), "{line}: {err}");
    assert!(err.contains(words) && !err.contains("panicked"), "{line}: {err}");
}

fn rate(value: &Value) -> f64 {
    value["error_rate"].as_f64().expect("a rate")
}

const LEARN: &str = "--learning-rate 0.5 --batch 20 --valid-share 0.2";

#[test]
fn every_model_becomes_a_net_that_tells_classes() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    for (model, hidden) in [("rbm", "40"), ("dbm", "40,20"), ("dbn", "40,20")] {
        json(
            path,
            &format!(
                "train {model} digits --hidden {hidden} --epochs 30 --learning-rate 0.1 --watch none --out {model}"
            ),
        );
        let line = format!("finetune {model} digits {LEARN} --epochs 20 --out net-{model}");
        let (told, notes) = heard(path, &line);
        assert_eq!((&told["stop"], &told["epochs"]), (&"finished".into(), &20.into()));
        assert!(notes.contains("10 classes are learned, from the data itself"), "{notes}");
        assert!(notes.contains("359 of 1797 rows"), "{notes}");
        let (best, epoch) = (&told["best_score"], told["best_epoch"].as_u64().expect("an epoch"));
        assert_eq!(best["name"], "error_rate.valid");
        let shown = json(path, &format!("inspect net-{model}"));
        assert_eq!((&shown["kind"], shown["epoch"].as_u64()), (&"network".into(), Some(epoch)));
        let found = json(path, &format!("classify net-{model} digits"));
        assert_eq!((&found["method"], &found["n"]), (&"network".into(), &1797.into()));
        assert!(rate(&found) < 0.15, "{model}: {found}");
        let top: Vec<f64> = serde_json::from_value(found["top_errors"].clone()).expect("numbers");
        assert!(top[0].to_bits() == rate(&found).to_bits() && top.is_sorted_by(|a, b| a >= b));
        assert!(found["calibration_error"].as_f64().is_some_and(|e| (0.0..0.5).contains(&e)));
    }
    let (_, text, _) = said(path, "classify net-dbm digits --out classes.csv");
    assert!(
        text.contains("% of 1797 rows")
            && text.contains("by the net")
            && text.contains("calibration")
    );
    let written = fs::read_to_string(path.join("classes.csv")).expect("written");
    assert_eq!(written.lines().count(), 1798);
    assert!(written.starts_with("class,0,1,2"));
    let (_, text, _) = said(path, "report net-dbm");
    assert!(text.contains("report.html"));
    let page = fs::read_to_string(path.join("net-dbm/report.html")).expect("written");
    for words in ["Mistakes", "Error rate", "<figcaption>", "feed-forward net"] {
        assert!(page.contains(words), "the report lacks {words}");
    }
    let features = json(path, "features net-rbm digits --layer hidden --out f.npy");
    assert!(features.is_object());
}

#[test]
fn nets_start_from_random_weights_and_drop_units() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let line = "finetune none digits --hidden 60,40 --epochs 30 --dropout 0.3 --input-dropout 0.1 --max-norm 3 \
                --patience 10 --out net";
    let told = json(path, line);
    assert!(told["best_epoch"].as_u64().is_some());
    assert!(rate(&json(path, "classify net digits")) < 0.1);
    let config = fs::read_to_string(path.join("net/run.toml")).expect("written");
    for words in ["model = \"network\"", "from = \"none\"", "dropout = 0.3", "valid-share = 0.1"] {
        assert!(config.contains(words), "run.toml lacks {words}: {config}");
    }
    // Nothing is overwritten, a finished run says so, and another setting is refused.
    refused(path, line, "there is a run in it");
    let (again, notes) = heard(path, "finetune --out net --resume");
    assert!(notes.contains("nothing was left to do"), "{notes}");
    assert_eq!(again["best_epoch"], told["best_epoch"]);
    refused(
        path,
        "finetune none digits --dropout 0.4 --out net --resume",
        "differs from what the run",
    );
    // The same settings from a file.
    let repeated = json(path, "finetune --config net/run.toml --out again");
    assert_eq!(repeated["best_epoch"], told["best_epoch"]);
    let bytes = |run: &str| fs::read(path.join(run).join("model.safetensors")).expect("written");
    assert!(bytes("net") == bytes("again"));
    // A net goes on learning.
    json(path, "finetune net digits --epochs 2 --out more");
    refused(
        path,
        "finetune net digits --hidden 5 --epochs 2 --out other",
        "is a net of 10 outputs already",
    );
}

#[test]
fn few_labels_are_drawn_evenly() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let (_, notes) =
        heard(path, "finetune none digits --labelled 50 --hidden 30 --epochs 5 --out net");
    assert!(notes.contains("50 of 1797 rows, drawn evenly over the classes"), "{notes}");
    let shown = json(path, "inspect net");
    assert_eq!(shown["data_rows"], 50);
    heard(path, "finetune none digits --hidden 30 --epochs 1 --labelled --out all");
    refused(path, "finetune none digits --labelled 9999 --epochs 1 --out no", "9999 of 1797 rows");
    refused(
        path,
        "finetune none digits --labelled some --epochs 1 --out no",
        "a number of labelled rows",
    );
}

#[test]
fn tags_values_and_the_input_are_learned() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    json(path, "convert bars-and-stripes:3 rows.csv");
    let rows: Vec<Vec<u8>> = fs::read_to_string(path.join("rows.csv"))
        .expect("written")
        .lines()
        .map(|line| line.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect())
        .collect();
    // Tags: whether the first and the last pixel are on. Values: how many are.
    let (mut tags, mut values) = (String::new(), String::new());
    for row in &rows {
        let _ = writeln!(tags, "{},{}", row[0], row[8]);
        let _ = writeln!(values, "{}.5", row.iter().map(|b| u32::from(*b)).sum::<u32>());
    }
    fs::write(path.join("tags.csv"), tags).expect("written");
    fs::write(path.join("values.csv"), values).expect("written");
    let learn = "--hidden 20 --epochs 300 --batch 4 --learning-rate 0.05";
    json(path, &format!("finetune none rows.csv --targets tags.csv {learn} --out tags"));
    let found = json(path, "classify tags rows.csv --targets tags.csv --out p.csv");
    assert_eq!((&found["target"], &found["n_tags"]), (&"tags".into(), &2.into()));
    assert!(found["average_precision"].as_f64().is_some_and(|map| map > 0.99), "{found}");
    json(path, &format!("finetune none rows.csv --targets values.csv {learn} --out values"));
    let found = json(path, "classify values rows.csv --targets values.csv");
    assert!(found["loss"].as_f64().is_some_and(|loss| loss < 0.1), "{found}");
    json(path, &format!("finetune none rows.csv --target input {learn} --out auto"));
    let found = json(path, "classify auto rows.csv");
    assert!(found["loss"].as_f64().is_some_and(|loss| loss < 1.0), "{found}");
    refused(path, "finetune none rows.csv --target tags --out no", "there is none");
    refused(
        path,
        "finetune none digits --targets tags.csv --out no",
        "16 rows of targets, the data 1797",
    );
}

#[test]
fn what_does_not_fit_is_said() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    json(path, "train rbm digits --hidden 10 --epochs 1 --watch none --out rbm");
    json(path, "convert bars-and-stripes:3 small.csv");
    fs::write(path.join("three.csv"), "a\nb\nc\n").expect("written");
    fs::write(path.join("one.csv"), "a\n".repeat(16)).expect("written");
    fs::write(path.join("two.csv"), "a\nb\n".repeat(8)).expect("written");
    // Labels of another length, one class, pictures of another size, no labels at all.
    refused(path, "finetune none small.csv --labels three.csv --out no", "3 labels for 16 rows");
    refused(path, "finetune none small.csv --labels one.csv --out no", "one class");
    refused(path, "finetune rbm small.csv --labels two.csv --out no", "9 columns");
    refused(path, "finetune none small.csv --out no", "no labels");
    refused(path, "finetune small.csv --out no", "no data was given");
    refused(path, "finetune --out no", "no model was given");
    refused(path, "finetune rbm digits --dropout 1.5 --out no", "dropout");
    refused(path, "finetune rbm digits --layer-rates 1,1,1,1 --out no", "layer-rates");
    assert!(!path.join("no").exists(), "what is refused leaves nothing behind");
    // Classes that were never seen, and questions that a net has no answer to.
    json(path, "finetune none small.csv --labels two.csv --hidden 4 --epochs 1 --out net");
    fs::write(path.join("new.csv"), "a\nz\n".repeat(8)).expect("written");
    refused(path, "classify net small.csv --labels new.csv", "`z`");
    refused(path, "classify net digits --no-labels", "columns");
    for line in [
        "sample net --n 3 --out s.npy",
        "logz net",
        "score net small.csv",
        "inspect net --diagnostics",
    ] {
        refused(path, line, "feed-forward net");
    }
    refused(path, "convert net net.uai", "cannot be written");
    refused(path, "classify rbm digits", "no labels");
    refused(
        path,
        "train rbm digits --hidden 5 --epochs 1 --objective discriminative --out no",
        "no labels",
    );
    refused(
        path,
        "train rbm digits --labelled --objective hybrid:3 --epochs 1 --hidden 5 --out no",
        "hybrid:W",
    );
    refused(path, "train rbm digits --labelled --objective discriminative --out no", "autopilot");
}

#[test]
fn objectives_are_flags_of_training() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let line = "train rbm digits --labelled --hidden 30 --epochs 20 --batch 10 --learning-rate 0.2 --valid-share 0.2";
    let told = json(path, &format!("{line} --objective discriminative --out d"));
    assert_eq!(told["best_score"]["name"], "error_rate.valid");
    assert!(rate(&json(path, "classify d digits")) < 0.12);
    json(path, &format!("{line} --objective hybrid:0.1 --out h"));
    let config = fs::read_to_string(path.join("h/run.toml")).expect("written");
    assert!(config.contains("objective = \"hybrid:0.1\""));
}

/// A net as ONNX gives the probabilities that `classify` gives, by onnxruntime where there is one.
#[test]
fn onnx_files_say_what_the_net_says() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    json(path, "finetune none digits --hidden 20,15 --epochs 3 --out net");
    json(path, "convert net net.onnx");
    let bytes = fs::read(path.join("net.onnx")).expect("written");
    for word in ["Gemm", "Relu", "Softmax", "hidden2.weights", "harmonium"] {
        assert!(bytes.windows(word.len()).any(|w| w == word.as_bytes()), "the file lacks {word}");
    }
    json(path, "classify net digits --out p.npy");
    json(path, "convert digits x.npy --binarize none");
    let python = std::env::var("HARMONIUM_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = "import numpy as np, onnxruntime as o\n\
                  x = np.load('x.npy').astype(np.float32) / 16\n\
                  s = o.InferenceSession('net.onnx', providers=['CPUExecutionProvider'])\n\
                  p = s.run(None, {'input': x})[0]\n\
                  print(float(np.abs(p - np.load('p.npy')).max()))";
    let asked = std::process::Command::new(&python).args(["-c", script]).current_dir(path).output();
    match asked {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let gap: f64 = text.parse().expect("a number");
            assert!(gap < 1e-5, "onnxruntime differs by {gap}");
        }
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("ModuleNotFoundError") => {
            panic!("{}", String::from_utf8_lossy(&output.stderr));
        }
        _ => eprintln!(
            "onnxruntime is absent (HARMONIUM_PYTHON names a Python that has it): not compared"
        ),
    }
}
