//! Samples and completed values say how far they can be trusted.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// The exit code, stdout and stderr of the program.
fn harmonium(folder: &Path, line: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output =
        command.args(line.split_whitespace()).current_dir(folder).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Its JSON, and what it said on stderr.
fn json(folder: &Path, line: &str) -> (Value, String) {
    let (code, out, err) = harmonium(folder, &format!("{line} --json"));
    assert_eq!(code, 0, "{line}: {err}");
    (serde_json::from_str(&out).expect("one JSON object on stdout"), err)
}

/// The cells of a table of text.
fn cells(folder: &Path, name: &str) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(folder.join(name)).expect("a table");
    let row = |line: &str| line.split(',').map(|c| c.parse().expect("a number")).collect();
    text.lines().map(row).collect()
}

#[test]
fn samples_say_how_they_were_found_and_whether_they_mixed() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let (found, err) = json(at, "sample ising:4,0.4 --n 20 --out a.npy");
    assert_eq!((&found["method"], &found["verdict"]), (&"exact".into(), &"exact".into()));
    assert_eq!(found["effective_samples"].as_f64(), Some(20.0));
    assert!(found["r_hat"].is_null() && err.is_empty(), "{found} {err}");
    // Enumeration is out of reach, the chains never turn.
    let (found, err) = json(at, "sample curie-weiss:60,2 --n 20 --method gibbs --out b.npy");
    assert_eq!((&found["method"], &found["verdict"]), (&"gibbs".into(), &"not mixed".into()));
    assert!(found["r_hat"].as_f64().expect("a number") > 1.5, "{found}");
    for words in ["warning: ", "R-hat", "1000 sweeps", "--method tempered"] {
        assert!(err.contains(words), "`{words}` is not in: {err}");
    }
    let (found, err) = json(at, "sample curie-weiss:60,2 --n 20 --sweeps 300 --out c.npy");
    assert_eq!((&found["method"], found["sweeps"].as_u64()), (&"gibbs".into(), Some(300)));
    assert!(err.contains("warning: "), "{err}");
    let (found, err) = json(at, "sample curie-weiss:60,2 --n 20 --out d.npy");
    assert_eq!((&found["method"], &found["verdict"]), (&"cluster".into(), &"mixed".into()));
    assert!(err.is_empty(), "{err}");
    let (found, err) = json(at, "sample curie-weiss:60,1.4 --n 20 --method tempered --out e.npy");
    assert_eq!((&found["method"], &found["verdict"]), (&"tempered".into(), &"mixed".into()));
    assert!(found["round_trips"].as_u64() > Some(16) && err.is_empty(), "{found} {err}");
    let (found, err) = json(at, "sample curie-weiss:60,2 --n 20 --sweeps 4 --out f.npy");
    assert_eq!(found["verdict"], "unknown");
    assert!(err.contains("too few") && err.contains("--sweeps"), "{err}");
    for line in [
        "sample ising:4,0.4 --method exact --sweeps 9 --out g.npy",
        "sample ising:64,0.4 --method exact --out g.npy",
        "sample ising:4,0.4 --method best --out g.npy",
    ] {
        let (code, _, err) = harmonium(at, line);
        assert!(code == 2 && err.contains("error: ") && err.contains("hint: "), "{line}: {err}");
    }
}

#[test]
fn equal_rows_are_completed_alike_and_errors_are_written() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let row = "1,1,-1,?,?,-1,1,?,1,1,?,-1,-1,?,1,?\n";
    fs::write(at.join("holes.csv"), row.repeat(4)).expect("a file");
    let line = "complete ising:4,0.4 holes.csv";
    let (exact, err) = json(at, &format!("{line} --errors e.csv --out a.csv"));
    assert_eq!((&exact["method"], &exact["verdict"]), (&"exact".into(), &"exact".into()));
    assert_eq!((exact["missing"].as_u64(), exact["largest_error"].as_f64()), (Some(24), Some(0.0)));
    assert!(err.is_empty(), "{err}");
    let truth = cells(at, "a.csv");
    assert_eq!(cells(at, "e.csv"), vec![vec![0.0; 16]; 4]);
    let (found, _) = json(at, &format!("{line} --method gibbs --errors f.csv --out b.csv"));
    assert_eq!((&found["method"], &found["verdict"]), (&"gibbs".into(), &"mixed".into()));
    let (values, errors) = (cells(at, "b.csv"), cells(at, "f.csv"));
    let largest = errors.iter().flatten().copied().fold(0.0, f64::max);
    assert_eq!(found["largest_error"].as_f64(), Some(largest));
    assert!(largest > 0.0 && largest <= 0.02, "an error of {largest}");
    for (row, of_row) in values.iter().zip(&errors) {
        assert_eq!((row, of_row), (&values[0], &errors[0]), "equal rows");
    }
    for ((v, t), e) in values[0].iter().zip(&truth[0]).zip(&errors[0]) {
        assert!((v - t).abs() <= 5.0 * e + 1e-6, "{v} ± {e} is not {t}");
    }
    let (code, _, err) = harmonium(at, &format!("{line} --errors c.csv --out c.csv"));
    assert!(code == 2 && err.contains("c.csv") && err.contains("hint: "), "{err}");
}
