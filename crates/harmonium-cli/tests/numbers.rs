//! Numbers that run away, sums that no number can hold, errors that nobody knows: each is said, and none
//! is taken for a result.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

struct Said {
    code: i32,
    out: String,
    err: String,
}

fn harmonium(folder: &Path, line: &str) -> Said {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output =
        command.args(line.split_whitespace()).current_dir(folder).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    Said {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

fn json(folder: &Path, line: &str) -> Value {
    let said = harmonium(folder, line);
    assert_eq!(said.code, 0, "{line}: {}", said.err);
    serde_json::from_str(&said.out).expect("one JSON object on stdout")
}

/// Fails if a number of the events or of the result is `null`.
fn has_no_null(what: &str, value: &Value) {
    for (key, value) in value.as_object().expect("an object") {
        assert!(!value.is_null() || key == "best_epoch", "{what}: `{key}` is null");
    }
}

fn write_data(at: &Path) {
    let rows = |cell: &dyn Fn(usize, usize) -> String| -> String {
        let row = |r| (0..6).map(|c| cell(r, c)).collect::<Vec<_>>().join(",");
        (0..60).map(|r| row(r) + "\n").collect()
    };
    fs::write(at.join("kinds.csv"), rows(&|r, c| ((r * (c + 2) + r / 7) % 3).to_string()))
        .expect("written");
    let real = |r: usize, c: usize| format!("{:.2}", ((r * (c + 3)) % 17) as f64 - 8.0);
    fs::write(at.join("real.csv"), rows(&real)).expect("written");
    let labels: String = (0..1797).map(|r| ["0\n", "1\n", "2\n"][r % 3]).collect();
    fs::write(at.join("labels.csv"), labels).expect("written");
}

/// Every run ends with exit 2, `"stop": "diverged"`, a reason, and a model that opens.
#[test]
fn a_run_that_diverged_says_so() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    write_data(at);
    for (k, line) in [
        "rbm digits --hidden 16 --epochs 20 --no-center --l2 1000",
        "rbm digits --hidden 16 --epochs 20 --no-center --l2 1000 --precision f32",
        "rbm digits --hidden 16 --epochs 20 --no-center --learning-rate 1e5",
        // A look at every weight before each checkpoint, inside the epoch.
        "rbm digits --hidden 16 --epochs 20 --no-center --l2 1000 --checkpoint-seconds 0",
        "rbm digits --hidden 16 --epochs 5 --learning-rate 1e30",
        "dbm digits --hidden 16,8 --epochs 5 --learning-rate 1e30",
        "dbn digits --hidden 16,8 --epochs 3 --learning-rate 1e30",
        "rbm digits --hidden 16 --epochs 5 --learning-rate 1e30 --labels labels.csv",
        "rbm kinds.csv --visible categorical --hidden 8 --epochs 5 --learning-rate 1e30",
        "dbm digits --hidden 16,8 --epochs 5 --no-center --learning-rate 1e30",
        "rbm digits --hidden 16 --epochs 5 --no-center --learning-rate 1e30 --labels labels.csv",
        "rbm kinds.csv --visible categorical --hidden 8 --epochs 5 --no-center --learning-rate 1e30",
        "rbm real.csv --visible gaussian --hidden 8 --epochs 5 --learning-rate 1e30",
    ]
    .into_iter()
    .enumerate()
    {
        let line = format!("train {line} --out r{k}");
        let said = harmonium(at, &format!("{line} --json"));
        assert_eq!(said.code, 2, "{line}: {}{}", said.out, said.err);
        assert!(said.err.contains("error: ") && said.err.contains("\nhint: "), "{}", said.err);
        let told: Value = serde_json::from_str(&said.out).expect("one JSON object on stdout");
        assert_eq!(told["stop"], "diverged", "{line}: {told}");
        assert!(told["reason"].is_string(), "{line}: {told}");
        has_no_null(&line, &told);
        let events = fs::read_to_string(at.join(format!("r{k}/events.jsonl"))).expect("events");
        for event in events.lines() {
            has_no_null(&line, &serde_json::from_str(event).expect("an event"));
        }
        assert!(events.lines().last().expect("an event").contains("diverged"), "{events}");
        let about = json(at, &format!("inspect r{k} --json"));
        assert!(about["parameters"].is_u64(), "{line}: {about}");
        let again = harmonium(at, &format!("{line} --resume --json"));
        assert_eq!(again.code, 2, "{line} again: {}", again.out);
        let told: Value = serde_json::from_str(&again.out).expect("one JSON object on stdout");
        assert_eq!(told["stop"], "diverged", "{line} again: {told}");
    }
}

/// Large steps that stay finite make a run like any other.
#[test]
fn a_run_with_large_steps_is_not_called_diverged() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    write_data(at);
    for (k, line) in [
        "digits --hidden 16 --epochs 5 --no-center --learning-rate 10",
        "real.csv --visible gaussian --hidden 8 --epochs 5 --learning-rate 1e5",
    ]
    .into_iter()
    .enumerate()
    {
        let told = json(at, &format!("train rbm {line} --out r{k} --json"));
        assert_eq!(told["stop"], "finished", "{line}");
        has_no_null(line, &told);
        let events = fs::read_to_string(at.join(format!("r{k}/events.jsonl"))).expect("events");
        for event in events.lines() {
            has_no_null(line, &serde_json::from_str(event).expect("an event"));
        }
        json(at, &format!("inspect r{k} --json"));
    }
}

/// Either ln Z is told, with all its keys, or the command fails with numbers.
#[test]
fn ln_z_is_a_number_or_an_error() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let keys = ["log_z", "std_error", "lower", "upper", "bracket", "method", "width", "chains"];
    for (line, finite) in [
        ("ising:8,1e308", false),
        ("ising:2,1e308", false),
        ("ising:4,1e308 --method ais", false),
        ("ising:4,1e38", true),
        ("ising:3,1e39 --method sandwich --chains 10 --betas 50", true),
        ("ising:3,-1e39 --method ais --chains 10 --betas 50", true),
        ("ising:3,1e300 --method bar --chains 4", false),
        ("curie-weiss:8,1e39 --method sandwich --chains 10 --betas 50", true),
        ("curie-weiss:8,1e308 --method sandwich --chains 10 --betas 50", false),
    ] {
        let said = harmonium(at, &format!("logz {line} --json"));
        if finite && said.code == 0 {
            let found: Value = serde_json::from_str(&said.out).expect("one JSON object");
            for key in keys {
                assert!(!found[key].is_null(), "{line}: `{key}` in {found}");
            }
            continue;
        }
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{line}: {}", said.err);
        assert!(said.err.contains("\nhint: ") && !said.err.contains("panicked"), "{}", said.err);
        assert!(!finite, "{line}: {}", said.err);
    }
}

/// The ground states of a strong magnet are all that counts: $\ln Z = 2NK + \ln 2$, in single
/// precision and beyond it.
#[test]
fn ln_z_beyond_single_precision_is_that_of_the_ground_states() {
    let folder = TempDir::new().expect("a folder");
    for k in ["1e4", "1e20", "1e39", "1e60"] {
        let line = format!("logz ising:3,{k} --method sandwich --chains 20 --betas 100 --json");
        let found = json(folder.path(), &line);
        let (log_z, coupling) =
            (found["log_z"].as_f64().expect("it"), k.parse::<f64>().expect("it"));
        let expected = 18.0 * coupling + 2.0_f64.ln();
        let exact = json(folder.path(), &format!("logz ising:3,{k} --method exact --json"));
        let exact = exact["log_z"].as_f64().expect("it");
        assert!((exact / expected - 1.0).abs() < 1e-12, "{k}: {exact}");
        let (lower, upper) = (found["lower"].as_f64(), found["upper"].as_f64());
        let slack = 1e-9 * expected;
        assert!(lower.expect("it") <= expected + slack, "{k}: {found}");
        assert!(upper.expect("it") >= expected - slack, "{k}: {found} {log_z}");
    }
}

/// One row, or one draw, says nothing about an error.
#[test]
fn an_error_that_nobody_knows_is_unknown() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    fs::write(at.join("one.csv"), "1,0,1,0,1,1,0,0,1\n").expect("written");
    json(at, "train rbm bars-and-stripes:3 --hidden 4 --epochs 5 --out r --json");
    json(at, "train dbn bars-and-stripes:3 --hidden 4,3 --epochs 2 --out d --json");
    for (line, key) in [
        ("score r one.csv --method exact", "data_std_error"),
        ("score r one.csv --method pseudo", "data_std_error"),
        ("score r one.csv --method free-energy", "data_std_error"),
        ("score r one.csv --method ais --chains 4 --betas 20", "data_std_error"),
        ("score d bars-and-stripes:3 --method importance --draws 1", "std_error"),
        ("score d bars-and-stripes:3 --method bound --draws 1", "std_error"),
    ] {
        let said = harmonium(at, line);
        assert_eq!(said.code, 0, "{line}: {}", said.err);
        assert!(said.out.contains("± unknown"), "{line}: {}", said.out);
        assert!(!said.out.contains("± 0.0000 nats"), "{line}: {}", said.out);
        let found = json(at, &format!("{line} --json"));
        let object = found.as_object().expect("an object");
        assert!(object.get(key).is_some_and(Value::is_null), "{line}: {found}");
    }
    // The errors of one row in the events: absent, not zero.
    json(at, "train rbm one.csv --hidden 4 --epochs 2 --out o --json");
    let events = fs::read_to_string(at.join("o/events.jsonl")).expect("events");
    assert!(
        events.contains("free_energy.train") && !events.contains("train.std_error"),
        "{events}"
    );
}
