//! A process that is killed at any moment loses nothing: resuming ends in the same bytes.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Kills in the ordinary tests; `cargo xtask reproduce kill-and-resume` asks for more.
const FEW: u64 = 6;

fn command(out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harmonium"));
    command
        .args(["train", "rbm", "digits", "--hidden", "30", "--epochs", "12", "--valid", "digits"])
        .args(["--checkpoint-seconds", "0.05", "--seed", "3", "--quiet", "--json", "--out"])
        .arg(out)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("harmonium-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn model(run: &Path) -> Vec<u8> {
    std::fs::read(run.join("model.safetensors")).expect("the run has a model")
}

#[test]
fn a_killed_run_resumes_to_the_same_bytes() {
    let kills = std::env::var("HARMONIUM_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(FEW);
    let straight = folder("straight");
    let start = std::time::Instant::now();
    assert!(command(&straight).status().expect("it runs").success());
    let whole = start.elapsed();
    for kill in 0..kills {
        let out = folder(&format!("kill-{kill}"));
        // Any moment from before the directory exists to after the model is written; the
        // golden ratio spreads them evenly without a pattern.
        let share = (kill as f64 * 0.618_034 + 0.05).fract() * 1.1;
        let mut child = command(&out).spawn().expect("it starts");
        std::thread::sleep(Duration::from_secs_f64(share * whole.as_secs_f64()));
        let _ = child.kill();
        let _ = child.wait();
        let output = command(&out).arg("--resume").output().expect("it resumes");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kill {kill} at {share:.3} of a run: {said}");
        assert_eq!(model(&out), model(&straight), "kill {kill} at {share:.3} of a run");
        std::fs::remove_dir_all(&out).expect("it can be removed");
    }
    println!("{kills} kills, {kills} resumed to the same bytes");
    std::fs::remove_dir_all(&straight).expect("it can be removed");
}

#[test]
fn ctrl_c_keeps_the_run_and_says_how_to_go_on() {
    let (out, straight) = (folder("interrupted"), folder("not-interrupted"));
    assert!(command(&straight).status().expect("it runs").success());
    let child = command(&out).spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(150));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    // A fast machine may have finished before the signal came.
    if output.status.code() != Some(0) {
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("interrupted") && said.contains("--resume"), "{said}");
    }
    assert!(command(&out).arg("--resume").status().expect("it resumes").success());
    assert_eq!(model(&out), model(&straight));
    let _ = std::fs::remove_dir_all(&out);
    let _ = std::fs::remove_dir_all(&straight);
}

/// The events of a run without what the clock said.
fn events(run: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(run.join("events.jsonl")).expect("there are events");
    let event = |line| {
        let mut event: serde_json::Value = serde_json::from_str(line).expect("events are JSON");
        if let Some(map) = event.as_object_mut() {
            map.remove("seconds");
            map.remove("measuring_seconds");
        }
        event
    };
    text.lines().map(event).collect()
}

/// An epoch of one batch ends with every step: wherever the run is interrupted, an epoch has just ended.
#[test]
fn no_event_of_an_interrupted_run_is_lost() {
    let train = |out: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harmonium"));
        command
            .args("train rbm shifter --batch 1000 --hidden 300 --epochs 4000 --out".split(' '))
            .arg(out)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let (out, straight) = (folder("epochs"), folder("all-epochs"));
    assert!(train(&straight).status().expect("it runs").success());
    let mut child = train(&out).spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(400));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    let status = child.wait().expect("it ends");
    let before = events(&out);
    assert!(train(&out).arg("--resume").status().expect("it resumes").success());
    println!("{status} after {} of {} events", before.len(), events(&straight).len());
    assert_eq!(before[..], events(&straight)[..before.len()]);
    assert!(events(&out) == events(&straight), "other events");
    assert_eq!(model(&out), model(&straight));
    let _ = std::fs::remove_dir_all(&out);
    let _ = std::fs::remove_dir_all(&straight);
}
