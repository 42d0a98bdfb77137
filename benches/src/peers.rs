//! harmonium and its peers on the same work, in one interleaved run.
//!
//! `cargo xtask bench peers [--only a,c] [--against NAME,...] [--quick] [--full] [--epochs N] [--rounds N]
//! [--data FOLDER] [--json [FILE]]`
//!
//! harmonium is timed as a whole process, from the file it reads to the file it writes; peers are timed
//! in the loop alone, with data in memory in the form they want and everything compiled. One thread each,
//! on one core where that can be had. A ratio is a median over rounds of (peer / harmonium) in that round.

mod contenders;
mod machine;
mod options;
mod ours;
mod python;
mod table;

use crate::{Fallible, Outcome};
use contenders::{Contender, Item, Peer};
use options::Options;
use ours::Ours;
use python::Python;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What one contender did for one item.
struct Row {
    contender: Contender,
    /// Seconds of each round; slow contenders stop after the first.
    seconds: Vec<f64>,
    /// What the work produced, to be held against harmonium's.
    check: Map<String, Value>,
    /// Why there is no time, or why it must not be believed.
    trouble: Option<String>,
}

/// One measurement.
struct Measured {
    seconds: f64,
    check: Map<String, Value>,
}

/// Where things are.
struct Places {
    root: PathBuf,
    harmonium: PathBuf,
    venv: PathBuf,
    scratch: PathBuf,
    data: PathBuf,
    /// The words before a command that keep it on one core.
    pin: Vec<String>,
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let options = Options::parse(words)?;
    let places = Places::find(&options)?;
    build_harmonium(&places)?;
    let (python, missing) = Python::prepare(&places)?;
    let ours = Ours::prepare(&places, &python, &options)?;
    let mut results = Vec::new();
    for &item in &options.items {
        let mut rows = measure(item, &options, &ours, &python, &missing);
        contenders::compare_checks(item, &mut rows);
        results.push((item, rows));
    }
    let machine = machine::describe(&places, &python)?;
    table::report(&machine, &results, &options)?;
    let troubled = results.iter().any(|(_, rows)| rows.iter().any(Row::is_wrong));
    if troubled {
        Err("some contenders failed or did other work: see the table".into())
    } else {
        Ok(())
    }
}

/// Contenders take turns, harmonium first.
fn measure(
    item: Item,
    options: &Options,
    ours: &Ours,
    python: &Python,
    missing: &[(&'static Peer, String)],
) -> Vec<Row> {
    let mut rows: Vec<Row> = Contender::of(item, &options.peers).map(Row::new).collect();
    for row in &mut rows {
        row.trouble = missing
            .iter()
            .find(|(peer, _)| matches!(row.contender, Contender::Peer(p) if p.name == peer.name))
            .map(|(_, reason)| format!("missing: {reason}"));
    }
    for round in 0..options.rounds {
        for row in rows.iter_mut().filter(|row| row.trouble.is_none()) {
            if round > 0 && row.contender.is_slow() {
                continue;
            }
            eprintln!("({}) round {}: {}", item.letter(), round + 1, row.contender.name());
            let measured = match row.contender {
                Contender::Ours(variant) => ours.measure(item, variant),
                Contender::Peer(peer) => {
                    let learned = python.measure(item, peer, options, &ours.model_of(item));
                    learned
                        .and_then(|measured| with_bound(item, measured, ours, &python.made(peer)))
                }
            };
            match measured {
                Ok(measured) => {
                    row.seconds.push(measured.seconds);
                    row.check = measured.check;
                }
                Err(error) => row.trouble = Some(error.to_string()),
            }
        }
    }
    rows
}

/// Adds the bound that a deep machine reaches.
fn with_bound(item: Item, mut measured: Measured, ours: &Ours, model: &Path) -> Fallible<Measured> {
    if item == Item::Dbm {
        measured.check.insert("bound".into(), ours.bound(model)?);
    }
    Ok(measured)
}

impl Row {
    fn new(contender: Contender) -> Self {
        Self { contender, seconds: Vec::new(), check: Map::new(), trouble: None }
    }

    /// Troubles that are the benchmark's own, not an absent peer or a command still to come.
    fn is_wrong(&self) -> bool {
        self.trouble
            .as_deref()
            .is_some_and(|t| !t.starts_with("missing: ") && !t.starts_with("not yet: "))
    }
}

impl Places {
    fn find(options: &Options) -> Fallible<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
        let program = std::env::current_exe()?;
        let built = program.parent().ok_or("this program lies in no folder")?;
        let target = built.parent().ok_or("this program lies in no target folder")?;
        let data = options.data.clone().unwrap_or_else(|| root.join("../shared/data/mnist"));
        for file in ["train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"] {
            if !data.join(file).is_file() {
                return Err(format!(
                    "MNIST is absent: there is no `{file}` in `{}`, and nothing was measured\n\
                     hint: put the files there, or name their folder with --data FOLDER",
                    data.display()
                )
                .into());
            }
        }
        Ok(Self {
            harmonium: built.join(format!("harmonium{}", std::env::consts::EXE_SUFFIX)),
            venv: target.join("peers-venv"),
            scratch: target.join("peers-work"),
            pin: pin(),
            root,
            data,
        })
    }

    /// A command on one core, with every thread pool told to have one thread.
    fn single_threaded(&self, program: &Path) -> Command {
        let mut command = match self.pin.split_first() {
            Some((taskset, rest)) => {
                let mut command = Command::new(taskset);
                command.args(rest).arg(program);
                command
            }
            None => Command::new(program),
        };
        for variable in
            ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"]
        {
            command.env(variable, "1");
        }
        command
            .env("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
            .env("JAX_PLATFORMS", "cpu")
            .env("CUDA_VISIBLE_DEVICES", "")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// `taskset` to the last core, where that works: the first is the one interrupts prefer.
fn pin() -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let words = ["taskset".to_string(), "-c".to_string(), (cores - 1).to_string()];
    let tried = Command::new(&words[0]).args(&words[1..]).arg("true").output();
    if tried.is_ok_and(|output| output.status.success()) { words.to_vec() } else { Vec::new() }
}

fn build_harmonium(places: &Places) -> Outcome {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--package", "harmonium-cli"])
        .current_dir(&places.root)
        .status()?;
    if !status.success() || !places.harmonium.is_file() {
        return Err("harmonium was not built; run this through `cargo xtask bench peers`".into());
    }
    Ok(())
}

/// The end of what a failed command said: enough to see why.
pub(crate) fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut lines =
        text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("hint:"));
    lines.next_back().unwrap_or("it said nothing").trim().to_string()
}
