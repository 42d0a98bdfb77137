//! Tables of real numbers: an RBM from its defaults beside one full Gaussian and scikit-learn's Gaussian mixture.
//!
//! `cargo xtask reproduce real-tables [--set NAME,...] [--splits N] [--python PROGRAM] [--data DIR]`
//!
//! Ten fixed splits of each table, 70 and 30 of a hundred rows. harmonium sees `train.csv` and no setting but a seed; the mixture chooses
//! its components and the form of its covariance on a fifth of the training rows and learns all of them. Scores are mean log-likelihoods
//! of the test rows in the units of the data, in nats.

use crate::peers::last_line;
use crate::{Fallible, Outcome};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const SETS: [&str; 5] = ["iris", "wine", "penguins", "breast-cancer", "digits"];

struct Asked {
    sets: Vec<String>,
    splits: usize,
    python: PathBuf,
    script: PathBuf,
    harmonium: PathBuf,
    penguins: PathBuf,
    scratch: PathBuf,
}

/// The scores of one split.
struct Scores {
    ours: f64,
    gaussian: f64,
    mixture: f64,
    columns: f64,
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let asked = parse(words)?;
    println!(
        "{:13} {:>7} {:>16} {:>16} {:>16} {:>22} {:>18}",
        "table",
        "splits",
        "harmonium",
        "one Gaussian",
        "mixture",
        "over Gaussian / column",
        "over mixture"
    );
    for set in &asked.sets {
        let scores: Vec<Scores> =
            (0..asked.splits).map(|split| score(&asked, set, split)).collect::<Fallible<_>>()?;
        let of = |f: &dyn Fn(&Scores) -> f64| mean_and_error(scores.iter().map(f));
        let (ours, gaussian, mixture) = (of(&|s| s.ours), of(&|s| s.gaussian), of(&|s| s.mixture));
        let over = of(&|s| (s.ours - s.gaussian) / s.columns);
        let ahead = of(&|s| s.ours - s.mixture);
        println!(
            "{set:13} {:>7} {} {} {} {:>13.3} ± {:.3} {:>10.3} ± {:.3}",
            scores.len(),
            shown(ours),
            shown(gaussian),
            shown(mixture),
            over.0,
            over.1,
            ahead.0,
            ahead.1
        );
    }
    Ok(())
}

fn shown((mean, error): (f64, f64)) -> String {
    format!("{mean:>8.3} ± {error:.3}")
}

/// The mean over splits, and its standard error.
fn mean_and_error(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (n * (n - 1.0).max(1.0))).sqrt())
}

/// Both sides of one split.
fn score(asked: &Asked, set: &str, split: usize) -> Fallible<Scores> {
    let folder = asked.scratch.join(format!("{set}-{split}"));
    std::fs::create_dir_all(&folder)?;
    let mut python = Command::new(&asked.python);
    python.args(["-W", "ignore"]).arg(&asked.script).arg(set).arg(split.to_string());
    let theirs = json(python.arg(&folder).arg(&asked.penguins).env("OMP_NUM_THREADS", "1"))?;
    let (train, test, model) =
        (folder.join("train.csv"), folder.join("test.csv"), folder.join("run"));
    let mut learn = Command::new(&asked.harmonium);
    learn.args(["train", "rbm"]).arg(&train).arg("--out").arg(&model);
    json(learn.args(["--force", "--json", "--quiet", "--seed"]).arg(split.to_string()))?;
    let mut look = Command::new(&asked.harmonium);
    let ours = json(look.arg("score").arg(&model).arg(&test).args(["--json", "--quiet"]))?;
    let number = |value: &Value, key: &str| {
        value[key].as_f64().ok_or_else(|| format!("`{key}` is missing from {value}"))
    };
    let scores = Scores {
        ours: number(&ours, "log_likelihood")?,
        gaussian: number(&theirs, "gaussian")?,
        mixture: number(&theirs, "mixture")?,
        columns: number(&theirs, "columns")?,
    };
    eprintln!(
        "{set} {split}: harmonium {:.3}, one Gaussian {:.3}, mixture {:.3} ({})",
        scores.ours, scores.gaussian, scores.mixture, theirs["chosen"]
    );
    Ok(scores)
}

/// What a command prints.
fn json(command: &mut Command) -> Fallible<Value> {
    let done = command.output()?;
    if !done.status.success() {
        return Err(format!("{command:?} failed: {}", last_line(&done.stderr)).into());
    }
    Ok(serde_json::from_slice(&done.stdout)?)
}

fn parse(words: &[&str]) -> Fallible<Asked> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).ok_or("this program lies in no target folder")?;
    let mut asked = Asked {
        sets: SETS.map(str::to_owned).to_vec(),
        splits: 10,
        python: target.join("peers-venv/bin/python"),
        script: root.join("benches/peers/real_tables.py"),
        harmonium: program.with_file_name("harmonium"),
        penguins: root.join("../shared/data/tables/penguins_raw.csv"),
        scratch: std::env::temp_dir().join(format!("harmonium-real-tables-{}", std::process::id())),
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().ok_or(format!("`{word}` needs a value"));
        match word {
            "--set" => asked.sets = value()?.split(',').map(str::to_owned).collect(),
            "--splits" => asked.splits = value()?.parse()?,
            "--python" => asked.python = value()?.into(),
            "--harmonium" => asked.harmonium = value()?.into(),
            "--data" => asked.penguins = Path::new(value()?).join("tables/penguins_raw.csv"),
            other => {
                return Err(format!("`{other}` is not a flag of `reproduce real-tables`").into());
            }
        }
    }
    if let Some(unknown) = asked.sets.iter().find(|set| !SETS.contains(&set.as_str())) {
        return Err(format!("there is no table `{unknown}`, only {}", SETS.join(", ")).into());
    }
    if !asked.python.is_file() {
        let python = asked.python.display();
        return Err(format!(
            "there is no `{python}` with scikit-learn in it\nhint: `cargo xtask bench peers` makes it, or name another with --python"
        )
        .into());
    }
    if !asked.harmonium.is_file() {
        return Err("there is no program `harmonium` beside this one\nhint: `cargo build --release -p harmonium-cli`".into());
    }
    if asked.sets.iter().any(|set| set == "penguins") && !asked.penguins.is_file() {
        let penguins = asked.penguins.display();
        return Err(format!("`{penguins}` is absent\nhint: name the data folder with --data, or choose tables with --set").into());
    }
    Ok(asked)
}
