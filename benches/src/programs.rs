//! Programs that a study runs beside each other: harmonium, and a Python with scikit-learn in it.

use crate::Fallible;
use crate::peers::last_line;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Jobs that run side by side.
const SIDE_BY_SIDE: usize = 2;

/// Where they are, and what they read.
pub(crate) struct Programs {
    pub(crate) python: PathBuf,
    pub(crate) harmonium: PathBuf,
    /// The folder of shared data sets.
    pub(crate) data: PathBuf,
    /// A folder for what they write.
    pub(crate) scratch: PathBuf,
    root: PathBuf,
}

impl Programs {
    /// Beside this program, unless `--python`, `--harmonium` or `--data` say otherwise; what other words are left.
    pub(crate) fn find<'w>(study: &str, words: &[&'w str]) -> Fallible<(Self, Vec<&'w str>)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).ok_or("this program lies in no target folder")?;
        let scratch = format!("harmonium-{study}-{}", std::process::id());
        let mut found = Self {
            python: target.join("peers-venv/bin/python"),
            harmonium: program.with_file_name("harmonium"),
            data: root.join("../shared/data"),
            scratch: std::env::temp_dir().join(scratch),
            root,
        };
        let (mut left, mut words) = (Vec::new(), words.iter());
        while let Some(&word) = words.next() {
            let mut value = || words.next().copied().ok_or(format!("`{word}` needs a value"));
            match word {
                "--python" => found.python = value()?.into(),
                "--harmonium" => found.harmonium = value()?.into(),
                "--data" => found.data = value()?.into(),
                other => left.push(other),
            }
        }
        if !found.python.is_file() {
            let python = found.python.display();
            return Err(format!(
                "there is no `{python}` with scikit-learn in it\nhint: `cargo xtask bench peers` makes it, or name another with --python"
            )
            .into());
        }
        if !found.harmonium.is_file() {
            return Err("there is no program `harmonium` beside this one\nhint: `cargo build --release -p harmonium-cli`".into());
        }
        Ok((found, left))
    }

    /// A script of `benches/peers`, on one thread and without its warnings.
    pub(crate) fn script(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.args(["-W", "ignore"]).arg(self.root.join("benches/peers").join(name));
        command.env("OMP_NUM_THREADS", "1");
        command
    }

    /// A command of harmonium on one thread, which says what it found as JSON.
    pub(crate) fn harmonium(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.harmonium);
        command.args(words).args(["--json", "--quiet", "--threads", "1"]);
        command
    }

    /// A folder of its own for a job.
    pub(crate) fn folder(&self, name: &str) -> Fallible<PathBuf> {
        let folder = self.scratch.join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// What a command prints.
pub(crate) fn json(command: &mut Command) -> Fallible<Value> {
    let done = command.output()?;
    if !done.status.success() {
        return Err(format!("{command:?} failed: {}", last_line(&done.stderr)).into());
    }
    Ok(serde_json::from_slice(&done.stdout)?)
}

/// A number of what a command printed.
pub(crate) fn number(value: &Value, key: &str) -> Fallible<f64> {
    value[key].as_f64().ok_or_else(|| format!("`{key}` is missing from {value}").into())
}

/// The mean, and its standard error.
pub(crate) fn mean_and_error(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (n * (n - 1.0).max(1.0))).sqrt())
}

/// `n` jobs, two at a time, in order of their numbers.
pub(crate) fn side_by_side<T: Send>(
    n: usize,
    job: impl Fn(usize) -> Fallible<T> + Sync,
) -> Fallible<Vec<T>> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE.min(n) {
            scope.spawn(|| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    if k >= n {
                        break;
                    }
                    let result = job(k).map_err(|error| error.to_string());
                    if result.is_err() {
                        // Nobody begins another.
                        next.store(n, Ordering::Relaxed);
                    }
                    if let Ok(mut results) = results.lock() {
                        results.push((k, result));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().map_err(|_| "a job panicked")?;
    results.sort_by_key(|(k, _)| *k);
    results.into_iter().map(|(_, result)| Ok(result?)).collect()
}
