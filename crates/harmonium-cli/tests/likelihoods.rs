//! `logz` and `score` on the real binary: intervals that hold the exact value, and words for what
//! cannot be.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn run(folder: &Path, line: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output = command.args(line.split_whitespace()).current_dir(folder).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn json(folder: &Path, line: &str) -> Value {
    let (code, out, err) = run(folder, &format!("{line} --json"));
    assert_eq!(code, 0, "{line}: {err}");
    serde_json::from_str(&out).expect("one JSON object on stdout")
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("`{key}` is not a number in {value}"))
}

/// Fails unless the interval holds `exact`, with as much room again as it is wide: a seed may
/// be one of the few in a hundred that miss.
fn holds(value: &Value, exact: f64) {
    let (lower, upper) = (number(value, "lower"), number(value, "upper"));
    let room = upper - lower + 1e-6;
    assert!(lower - room <= exact && exact <= upper + room, "{exact} is not in {value}");
    assert!(number(value, "std_error") >= 0.0);
}

fn trained(what: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let line = format!("train {what} --epochs 100 --out r");
    let (code, _, err) = run(folder.path(), &line);
    assert_eq!(code, 0, "{line}: {err}");
    folder
}

#[test]
fn log_z_of_every_method_holds_the_exact_one() {
    for what in [
        "rbm bars-and-stripes:3 --hidden 6",
        "dbm bars-and-stripes:3 --hidden 5,4",
        "bm bars-and-stripes:3 --hidden 4 --lateral visible,hidden",
    ] {
        let folder = trained(what);
        let at = folder.path();
        let exact = number(&json(at, "logz r --method exact"), "log_z");
        for (method, bracket, more) in [
            ("ais", "heuristic", "--betas 100 --chains 50"),
            ("sandwich", "bound", "--betas 100 --chains 50"),
            ("bar", "heuristic", "--betas 5 --chains 8"),
        ] {
            let found = json(at, &format!("logz r --method {method} {more}"));
            holds(&found, exact);
            assert_eq!(
                (found["method"].as_str(), found["bracket"].as_str()),
                (Some(method), Some(bracket))
            );
        }
        let narrow = json(at, "logz r --method sandwich --betas 20 --chains 20 --width 0.1");
        assert_eq!(narrow["width_reached"].as_bool(), Some(true), "{what}: {narrow}");
        assert!(number(&narrow, "width") <= 0.1);
    }
}

#[test]
fn scores_hold_the_exact_one() {
    for what in ["rbm bars-and-stripes:3 --hidden 6", "dbm bars-and-stripes:3 --hidden 5,4"] {
        let folder = trained(what);
        let at = folder.path();
        let exact = json(at, "score r bars-and-stripes:3");
        assert_eq!(exact["method"].as_str(), Some("exact"));
        let value = number(&exact, "log_likelihood");
        let found = json(at, "score r bars-and-stripes:3 --method ais --out rows.csv");
        holds(&found, value);
        assert_eq!(found["n"].as_u64(), Some(16));
        let rows = fs::read_to_string(at.join("rows.csv")).expect("it was written");
        let rows: Vec<f64> = rows.lines().map(|l| l.parse().expect("a number")).collect();
        let mean = rows.iter().sum::<f64>() / 16.0;
        assert!((mean - number(&found, "log_likelihood")).abs() < 1e-9);
        let bits = -mean / (9.0 * std::f64::consts::LN_2);
        assert!((number(&found, "bits_per_dim") - bits).abs() < 1e-9);
        let bound = json(at, "score r bars-and-stripes:3 --method bound");
        assert!(number(&bound, "lower") <= value + 1e-6, "{bound}");
        let terms = bound["terms"].as_object().expect("the terms apart");
        let sum: f64 = terms.values().filter_map(Value::as_f64).sum();
        assert!((sum - number(&bound, "bound")).abs() < 1e-6, "{bound}");
        assert_eq!(terms["B"] != 0.0, what.starts_with("dbm"), "{bound}");
        let deep = what.starts_with("dbm");
        assert_eq!(bound["upper"].is_null(), deep, "{bound}");
    }
    let folder = trained("rbm bars-and-stripes:3 --hidden 6");
    let line = "score r bars-and-stripes:3 --method pseudo --stochastic";
    assert!(json(folder.path(), line)["pseudo_log_likelihood"].is_number());
}

#[test]
fn what_cannot_be_is_explained() {
    let folder = trained("rbm bars-and-stripes:3 --hidden 6");
    for (line, words) in [
        ("logz r --method ais --chains 0", "`chains` is 0"),
        ("logz r --method ais --betas 1", "`betas` is 1"),
        ("logz r --method bar --chains 1", "`chains` is 1"),
        ("logz r --method sandwich --width 0", "`width` is 0"),
        ("logz r --method guess", "guess"),
        ("score r bars-and-stripes:3 --method guess", "guess"),
    ] {
        let (code, out, err) = run(folder.path(), line);
        assert_eq!((code, out.as_str()), (2, ""), "{line}: {err}");
        assert!(err.contains("error: ") && err.contains("\nhint: "), "{line}: {err}");
        assert!(err.contains(words), "`{words}` is not in: {err}");
    }
}

/// A strong magnet, too wide to be summed, cooled in four steps: domains stay, and the largest weight decides.
#[test]
fn an_unsettled_interval_says_so_with_all_its_keys() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    for method in ["ais", "sandwich", "bar"] {
        let work = if method == "bar" { "--betas 3 --chains 4" } else { "--betas 4 --chains 20" };
        let line = format!("logz ising:6x6x6,1.5 --method {method} {work}");
        let (code, out, err) = run(at, &format!("{line} --json"));
        assert_eq!(code, 0, "{line}: {err}");
        let found: Value = serde_json::from_str(&out).expect("one JSON object");
        assert_eq!(found["bracket"].as_str(), Some("unsettled"), "{line}: {found}");
        for key in ["log_z", "std_error", "lower", "upper", "width", "betas", "chains", "sweeps"] {
            assert!(found[key].is_number(), "{line}: `{key}` in {found}");
        }
        assert!(found["doubts"][0].is_string(), "{line}: {found}");
        assert!(err.contains("warning: ln Z is unsettled"), "{line}: {err}");
        let flag = if method == "bar" { "--width" } else { "--betas 16" };
        assert!(err.contains("hint: ") && err.contains(flag), "{line}: {err}");
        let (_, said, _) = run(at, &line);
        assert!(said.contains("unsettled"), "{line}: {said}");
    }
    let row = vec!["1"; 216].join(",") + "\n";
    fs::write(at.join("rows.csv"), row.repeat(3)).expect("written");
    let line = "score ising:6x6x6,1.5 rows.csv --method ais --betas 4 --chains 20 --json";
    let (code, out, err) = run(at, line);
    assert_eq!(code, 0, "{line}: {err}");
    let found: Value = serde_json::from_str(&out).expect("one JSON object");
    assert_eq!(found["bracket"].as_str(), Some("unsettled"), "{found}");
    assert!(found["doubts"][0].is_string() && err.contains("warning: ln Z is unsettled"), "{err}");
    assert!(number(&found, "lower") <= number(&found, "upper"));
}
