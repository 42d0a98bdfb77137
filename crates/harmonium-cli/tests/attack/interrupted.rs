//! Runs that are interrupted at random moments, politely or not, once or several times, end as the run that
//! never was: the same model, the same best model, the same events.

use crate::program::{Attack, Numbers, cases};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What is trained; the labels are in `labels.csv`.
const RUNS: [&str; 5] = [
    "rbm shifter --batch 500 --hidden 60 --epochs 300",
    "dbm bars-and-stripes:4 --hidden 12,8 --pretrain-epochs 150 --epochs 150 --batch 4",
    "dbn bars-and-stripes:3 --hidden 6,5,4 --labels labels.csv --epochs 120 --refine-epochs 60 --batch 4",
    "rbm bars-and-stripes:3 --hidden 8 --labels labels.csv --epochs 900 --batch 4",
    "rbm bars-and-stripes:3 --hidden 8 --valid bars-and-stripes:3 --patience 60 --learning-rate 0.2 --epochs 900 --batch 4",
];

fn command(folder: &Path, run: &str, out: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harmonium"));
    command
        .arg("train")
        .args(run.split(' '))
        .args(["--checkpoint-seconds", "0.02", "--seed", "3", "--threads", "1", "--out", out])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Ends a process as a person, a system or a power cut would.
fn end(child: &mut Child, how: usize) {
    let name = ["-INT", "-TERM", "-KILL"][how % 3];
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("there is `kill`").success() || child.try_wait().is_ok());
    child.wait().expect("it ends");
}

/// The events without what the clock said.
fn events(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("events.jsonl")).expect("there are events");
    let event = |line| {
        let mut event: Value = serde_json::from_str(line).expect("events are JSON");
        if let Some(map) = event.as_object_mut() {
            map.remove("seconds");
            map.remove("measuring_seconds");
        }
        event
    };
    text.lines().map(event).collect()
}

/// Temporary files that were left behind.
fn leftovers(run: &Path) -> usize {
    let names = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let all = names(run).chain(names(&run.join("checkpoints")));
    all.filter(|entry| entry.file_name().to_string_lossy().ends_with(".tmp")).count()
}

fn same(whole: &Path, run: &Path) -> Result<(), String> {
    for name in ["model.safetensors", "checkpoints/best.safetensors"] {
        let bytes = |run: &Path| fs::read(run.join(name)).ok();
        if bytes(whole) != bytes(run) {
            return Err(format!("another {name}"));
        }
    }
    let (expected, found) = (events(whole), events(run));
    if expected != found {
        let first = expected.iter().zip(&found).position(|(a, b)| a != b);
        let (n, m) = (expected.len(), found.len());
        return Err(format!("{m} events for {n}, the first other one is {first:?}"));
    }
    match leftovers(run) {
        0 => Ok(()),
        n => Err(format!("{n} temporary files stay")),
    }
}

/// A run that was never interrupted, and how long it took.
struct Whole {
    run: &'static str,
    path: std::path::PathBuf,
    took: Duration,
}

impl Whole {
    fn new(folder: &Path, k: usize) -> Self {
        let (run, out) = (RUNS[k], format!("whole-{k}"));
        let start = Instant::now();
        assert!(command(folder, run, &out).status().expect("it runs").success(), "{run}");
        Self { run, path: folder.join(out), took: start.elapsed() }
    }

    /// Interrupts a run, once or more often, and lets it go on to its end.
    fn interrupt(&self, folder: &Path, numbers: &mut Numbers) -> Result<(), String> {
        let out = "interrupted";
        let path = folder.join(out);
        for again in 0..=numbers.below(3) {
            let mut command = command(folder, self.run, out);
            if again > 0 {
                command.arg("--resume");
            }
            let mut child = command.spawn().expect("it starts");
            // Also before the directory exists and after the model is written.
            std::thread::sleep(self.took.mul_f64(1.1 * numbers.share()));
            end(&mut child, numbers.below(3));
        }
        let status = command(folder, self.run, out).arg("--resume").status().expect("it resumes");
        let result = if status.success() {
            same(&self.path, &path)
        } else {
            Err(format!("resuming ended with {status}"))
        };
        fs::remove_dir_all(&path).expect("it can be removed");
        result
    }
}

#[test]
fn runs_interrupted_at_random_moments() {
    let folder = TempDir::new().expect("a folder");
    let labels = "bar\n".repeat(8) + &"stripe\n".repeat(8);
    fs::write(folder.path().join("labels.csv"), labels).expect("it can be written");
    let wholes: Vec<Whole> = (0..RUNS.len()).map(|k| Whole::new(folder.path(), k)).collect();
    let mut attack = Attack::new("interruptions");
    for n in 0..cases(10, 200) {
        let whole = &wholes[usize::try_from(n).expect("few") % wholes.len()];
        let result = whole.interrupt(folder.path(), &mut Numbers(n));
        attack.case(|| format!("case {n}, `{}`", whole.run), result);
    }
    attack.finish();
}
