//! `harmonium demo` and the rules every command keeps, on the real binary.

use assert_cmd::Command;

fn harmonium(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output = command.args(args).env_remove("NO_COLOR").output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn the_demo_beats_independent_pixels() {
    let (code, out, err) = harmonium(&["demo", "--epochs", "40", "--hidden", "10", "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let value: serde_json::Value = serde_json::from_str(&out).expect("one JSON object");
    let number = |key: &str| value[key].as_f64().expect("a number");
    assert!(number("log_likelihood") > number("baseline") + 1.0, "{out}");
    assert_eq!((value["method"].as_str(), value["n"].as_u64()), (Some("exact"), Some(297)));
}

#[test]
fn the_demo_draws_without_colour_into_a_pipe() {
    let (code, out, _) = harmonium(&["demo", "--epochs", "2", "--hidden", "4"]);
    assert_eq!(code, 0);
    assert!(!out.contains('\x1b'), "escape codes in a pipe");
    assert!(out.contains("█") && out.contains("what the hidden units look for"));
    assert!(
        out.contains("independent pixels") && out.contains("CC BY 4.0") && out.contains("next:")
    );
    assert!(out.lines().all(|l| l.chars().count() <= 120), "lines fit a terminal");
}

#[test]
fn the_same_seed_gives_the_same_numbers_on_any_number_of_threads() {
    let run = |threads: &str, seed: &str| {
        let args = ["demo", "--epochs", "3", "--json", "--threads", threads, "--seed", seed];
        let value: serde_json::Value = serde_json::from_str(&harmonium(&args).1).expect("JSON");
        value["log_likelihood"].to_string()
    };
    assert_eq!(run("1", "4"), run("2", "4"));
    assert_ne!(run("1", "4"), run("1", "5"));
}

#[test]
fn the_demo_keeps_its_run_and_report_when_asked() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let out = folder.path().join("kept").display().to_string();
    let (code, _, err) = harmonium(&["demo", "--epochs", "2", "--hidden", "4", "--out", &out]);
    assert_eq!(code, 0, "{err}");
    for part in ["run.toml", "events.jsonl", "model.safetensors", "report.html"] {
        assert!(folder.path().join("kept").join(part).is_file(), "{part} is missing");
    }
    assert_eq!(harmonium(&["score", &out, "digits", "--json"]).0, 0);
}

#[test]
fn mistakes_get_an_error_and_a_hint() {
    for (args, says) in [
        (&[][..], "no command"),
        (&["dmeo"], "dmeo"),
        (&["demo", "--hidden", "25"], "from 1 to 24"),
        (&["demo", "--hidden", "x"], "x"),
        (&["demo", "--hiden", "3"], "--hiden"),
        (&["demo", "--threads", "0"], "from 1 to 4096"),
        (&["demo", "--seed"], "--seed"),
    ] {
        let (code, out, err) = harmonium(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        assert!(err.starts_with("error: ") && err.contains("\nhint: "), "{args:?}: {err}");
        assert!(err.contains(says), "{args:?}: {err}");
    }
}

#[test]
fn help_and_version_are_results() {
    let (code, out, err) = harmonium(&["--help"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("demo"));
    assert!(harmonium(&["--version"]).1.starts_with("harmonium "));
    for command in [
        "demo",
        "train",
        "sample",
        "complete",
        "score",
        "logz",
        "features",
        "inspect",
        "report",
        "convert",
        "data",
        "completions",
    ] {
        let (code, out, _) = harmonium(&[command, "--help"]);
        assert!(code == 0 && out.contains("Example"), "`{command} --help` has no example: {out}");
    }
    for model in ["rbm", "bm", "dbm"] {
        assert!(harmonium(&["train", model, "--help"]).1.contains("Example"), "{model}");
    }
}
