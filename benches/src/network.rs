//! Steps of a dropout net 784-1024-1024-10 with max-norm, batch 100, beside PyTorch on the same processor.
//!
//! `cargo xtask bench network [--rounds N] [--steps N] [--python PROGRAM] [--data DIR]`
//!
//! The contenders take turns: one and two threads of each in every round. A ratio is the median over rounds of PyTorch's time
//! over ours in that round.

use crate::peers::last_line;
use crate::{Fallible, Outcome};
use harmonium::machine::{Layer, Role};
use harmonium::model::Finetuning;
use harmonium::network::{NetworkPlan, Shape, random};
use harmonium::progress::Silent;
use harmonium::training::{Observer, View, drive};
use harmonium::units::Units;
use harmonium::{Binarize, Dataset};
use harmonium_data::{Options, open, open_labels};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Steps before the clock starts.
const WARM: u64 = 10;

struct Asked {
    rounds: usize,
    steps: usize,
    data: PathBuf,
    python: PathBuf,
    script: PathBuf,
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let asked = parse(words)?;
    let data = mnist(&asked.data)?;
    println!(
        "784-1024-1024-10, rectified, dropout 0.2 and 0.5, max-norm 2, batch 100, momentum 0.9; milliseconds a step"
    );
    println!(
        "{:>5} {:>8} {:>10} {:>10} {:>7}",
        "round", "threads", "harmonium", "PyTorch", "ratio"
    );
    let mut ratios = [Vec::new(), Vec::new()];
    let mut version = String::new();
    for round in 1..=asked.rounds {
        for threads in [1, 2] {
            let ours = ours(&data, threads, asked.steps)?;
            let (theirs, found) = theirs(&asked, threads)?;
            version = found;
            println!("{round:>5} {threads:>8} {ours:>10.2} {theirs:>10.2} {:>7.2}", theirs / ours);
            ratios[threads - 1].push(theirs / ours);
        }
    }
    for (threads, ratios) in (1..).zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        println!(
            "{threads} threads: PyTorch {version} takes {:.2} times as long (median of {})",
            ratios[ratios.len() / 2],
            ratios.len()
        );
    }
    Ok(())
}

fn parse(words: &[&str]) -> Fallible<Asked> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).ok_or("this program lies in no target folder")?;
    let mut asked = Asked {
        rounds: 5,
        steps: 100,
        data: root.join("../shared/data/mnist"),
        python: target.join("peers-venv/bin/python"),
        script: root.join("benches/peers/mlp.py"),
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().ok_or(format!("`{word}` needs a value"));
        match word {
            "--rounds" => asked.rounds = value()?.parse()?,
            "--steps" => asked.steps = value()?.parse()?,
            "--data" => asked.data = value()?.into(),
            "--python" => asked.python = value()?.into(),
            other => return Err(format!("`{other}` is not a flag of `bench network`").into()),
        }
    }
    if !asked.python.is_file() {
        let python = asked.python.display();
        return Err(format!(
            "there is no `{python}` with PyTorch in it\nhint: `cargo xtask bench peers` makes it, or name another with --python"
        )
        .into());
    }
    Ok(asked)
}

fn mnist(folder: &Path) -> Fallible<Dataset> {
    let file = |name: &str| folder.join(name).display().to_string();
    if !Path::new(&file("train-images-idx3-ubyte.gz")).is_file() {
        return Err(format!(
            "MNIST is absent from `{}`\nhint: name its folder with --data",
            folder.display()
        )
        .into());
    }
    let images = open(&file("train-images-idx3-ubyte.gz"), &Options::default())?.table;
    let labels = open_labels(&file("train-labels-idx1-ubyte.gz"), &Options::default())?;
    Ok(Dataset::new(images, Binarize::Sample)?.with_labels(labels)?)
}

/// Times the steps after the first few, and ends the training.
struct Clock {
    steps: u64,
    started: Option<Instant>,
    taken: f64,
}

impl Observer for Clock {
    fn updated(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, harmonium::Error> {
        if view.report.step == WARM {
            self.started = Some(Instant::now());
        }
        if view.report.step == WARM + self.steps {
            self.taken = self.started.map_or(0.0, |start| start.elapsed().as_secs_f64());
            return Ok(ControlFlow::Break("timed".into()));
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Milliseconds of a step of ours.
fn ours(data: &Dataset, threads: usize, steps: usize) -> Fallible<f64> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let timed = pool.install(|| -> Result<f64, harmonium::Error> {
        let input = Layer::new("visible", Role::Visible, Units::Binary, 784)?;
        let shape = Shape { hidden: vec![1024, 1024], ..Shape::classes(10, 0) };
        let plan = NetworkPlan {
            epochs: 1,
            learning_rate: 0.05,
            momentum: harmonium::optim::Schedule::Constant(0.9),
            dropout: 0.5,
            input_dropout: 0.2,
            max_norm: Some(2.0),
            ..NetworkPlan::default()
        };
        let finetuning = Finetuning::of_network(random(&[input], &shape)?, None, data, &plan)?;
        let mut learner = finetuning.learner(&mut Silent)?;
        let mut clock = Clock { steps: steps as u64, started: None, taken: 0.0 };
        drive(&mut learner, &mut [&mut clock], &mut Silent)?;
        Ok(clock.taken / steps as f64 * 1e3)
    });
    Ok(timed?)
}

/// Milliseconds of a step of PyTorch, and its version.
fn theirs(asked: &Asked, threads: usize) -> Fallible<(f64, String)> {
    let output = Command::new(&asked.python)
        .arg(&asked.script)
        .arg(&asked.data)
        .args([threads.to_string(), asked.steps.to_string()])
        .env("OMP_NUM_THREADS", threads.to_string())
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()?;
    if !output.status.success() {
        return Err(format!("PyTorch failed: {}", last_line(&output.stderr)).into());
    }
    let found: Value = serde_json::from_slice(&output.stdout)?;
    let time = found["milliseconds"].as_f64().ok_or("it gave no time")?;
    Ok((time, found["torch"].as_str().unwrap_or_default().to_owned()))
}
