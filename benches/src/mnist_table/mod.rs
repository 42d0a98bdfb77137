//! The table of errors on permutation-invariant MNIST, row by row.
//!
//! `cargo xtask reproduce mnist-table [--row NAME]... [--epochs N] [--validate] [--work DIR] [--data DIR] [--write]`
//!
//! Every row is two or three commands of the program: a model is trained, a net is made of it, and the test set is
//! looked at once. What has run is kept in the work folder, so that a table that was stopped goes on where it was.
//! 5,000 of the 60,000 training pictures are set apart, the result of a row is the net of the epoch that is best on them,
//! and settings were chosen by them alone: `--validate` shows that error and leaves the test set out.
//! `--write` puts what is there into `docs/guides/mnist-table.md` and draws the curves.

mod page;
mod rows;
mod svm;

use crate::peers::last_line;
use crate::{Fallible, Outcome};
use rows::{Made, ROWS, Row, Start};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The share of the training pictures that is set apart: 5,000.
const VALID_SHARE: &str = "0.0833333";

/// What was asked.
struct Asked {
    rows: Vec<Row>,
    epochs: Option<u64>,
    validate: bool,
    write: bool,
    threads: Option<String>,
    places: Places,
}

/// Where things are.
struct Places {
    root: PathBuf,
    program: PathBuf,
    work: PathBuf,
    data: PathBuf,
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let asked = parse(words)?;
    fs::create_dir_all(&asked.places.work)?;
    if !asked.rows.is_empty() {
        build(&asked.places.root)?;
    }
    for row in &asked.rows {
        match row.made {
            Made::Svm => svm::run(row, &asked.places)?,
            Made::Net { start, flags, epochs } => {
                let epochs = asked.epochs.unwrap_or(epochs);
                fine_tuned(row, start, flags, epochs, &asked)?;
            }
        }
    }
    println!("{}", page::table(&asked.places));
    if asked.write { page::write(&asked.places) } else { Ok(()) }
}

fn parse(words: &[&str]) -> Fallible<Asked> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let built = std::env::current_exe()?;
    let built = built.parent().ok_or("this program lies in no folder")?.to_path_buf();
    let mut asked = Asked {
        rows: Vec::new(),
        epochs: None,
        validate: false,
        write: false,
        threads: None,
        places: Places {
            program: built.join(format!("harmonium{}", std::env::consts::EXE_SUFFIX)),
            work: built.parent().unwrap_or(&built).join("mnist-table"),
            data: root.join("../shared/data/mnist"),
            root,
        },
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().ok_or(format!("`{word}` needs a value"));
        match word {
            "--row" => {
                let name = value()?;
                let found = ROWS.into_iter().find(|row| row.name == name);
                let names = || ROWS.map(|row| row.name).join(", ");
                asked
                    .rows
                    .push(found.ok_or_else(|| format!("no row `{name}`: there are {}", names()))?);
            }
            "--epochs" => asked.epochs = Some(value()?.parse()?),
            "--work" => asked.places.work = value()?.into(),
            "--data" => asked.places.data = value()?.into(),
            "--threads" => asked.threads = Some(value()?.into()),
            "--program" => asked.places.program = value()?.into(),
            "--validate" => asked.validate = true,
            "--write" => asked.write = true,
            "--show" => {}
            other => return Err(format!("`{other}` is not a flag of `mnist-table`").into()),
        }
    }
    let shows =
        words.as_slice().is_empty() && asked.rows.is_empty() && (asked.write || has(&asked.places));
    if asked.rows.is_empty() && !shows {
        asked.rows = ROWS.to_vec();
    }
    if !asked.places.data.join("train-images-idx3-ubyte.gz").is_file() {
        let folder = asked.places.data.display();
        return Err(format!("MNIST is absent: `{folder}` has no train-images-idx3-ubyte.gz\nhint: name its folder with --data DIR").into());
    }
    Ok(asked)
}

/// Whether a table can be shown without running anything: asked for by `--show`.
fn has(_places: &Places) -> bool {
    std::env::args().any(|word| word == "--show")
}

fn build(root: &Path) -> Outcome {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let words = ["build", "--release", "--quiet", "--package", "harmonium-cli"];
    let status = Command::new(cargo).args(words).current_dir(root).status()?;
    if status.success() { Ok(()) } else { Err("harmonium was not built".into()) }
}

impl Places {
    fn file(&self, name: &str) -> String {
        self.data.join(name).display().to_string()
    }

    /// A run in the work folder.
    fn run(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// What is known of a row that has run.
    fn result(&self, row: &Row) -> Option<Value> {
        let text = fs::read_to_string(self.work.join(format!("{}.json", row.name))).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn keep(&self, row: &Row, result: &Value) -> Outcome {
        Ok(fs::write(self.work.join(format!("{}.json", row.name)), result.to_string() + "\n")?)
    }

    /// Runs the program and gives what it prints as JSON; what it says on the way is shown.
    fn harmonium(&self, words: &[String]) -> Fallible<Value> {
        eprintln!("harmonium {}", words.join(" "));
        let output = Command::new(&self.program)
            .args(words)
            .arg("--json")
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(format!("it failed: {}", last_line(&output.stdout)).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Trains into a run, goes on with one that was stopped, or leaves a finished one as it is; the seconds it took.
    fn trained(&self, name: &str, words: Vec<String>) -> Fallible<Value> {
        let run = self.run(name);
        let (kept, mut words) = (self.work.join(format!("{name}.trained.json")), words);
        if let (true, Ok(text)) =
            (run.join("model.safetensors").is_file(), fs::read_to_string(&kept))
        {
            return Ok(serde_json::from_str(&text)?);
        }
        words.extend(["--out".into(), run.display().to_string()]);
        if run.join("run.toml").is_file() {
            words.push("--resume".into());
        }
        let told = self.harmonium(&words)?;
        fs::write(&kept, told.to_string())?;
        Ok(told)
    }
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_whitespace().map(str::to_owned)
}

fn fine_tuned(row: &Row, start: Option<Start>, flags: &str, epochs: u64, asked: &Asked) -> Outcome {
    let places = &asked.places;
    if places.result(row).is_some_and(|r| asked.validate || !r["error_rate"].is_null()) {
        return Ok(());
    }
    let (images, labels) =
        (places.file("train-images-idx3-ubyte.gz"), places.file("train-labels-idx1-ubyte.gz"));
    let threads = || asked.threads.iter().flat_map(|n| ["--threads".to_owned(), n.clone()]);
    let from = match start {
        None => "none".to_owned(),
        Some(start) => {
            let train = start.train.replace("IMAGES", &images);
            let line = ["train".to_owned()].into_iter().chain(words(&train)).chain(threads());
            places.trained(start.name, line.collect())?;
            places.run(start.name).display().to_string()
        }
    };
    let mut line: Vec<String> = vec!["finetune".into(), from, images, "--labels".into(), labels];
    line.extend(words(flags));
    line.extend([
        "--epochs".into(),
        epochs.to_string(),
        "--valid-share".into(),
        VALID_SHARE.into(),
    ]);
    line.extend(threads());
    let told = places.trained(row.name, line)?;
    let mut result = json!({
        "row": row.name, "epochs": epochs, "best_epoch": told["best_epoch"],
        "valid_error": told["best_score"]["value"], "seconds": seconds(&places.run(row.name)),
        "pretrain_seconds": start.map(|start| seconds(&places.run(start.name))), "error_rate": null,
    });
    if !asked.validate {
        let run = places.run(row.name).display().to_string();
        let (images, labels) =
            (places.file("t10k-images-idx3-ubyte.gz"), places.file("t10k-labels-idx1-ubyte.gz"));
        let found =
            places.harmonium(&["classify".into(), run, images, "--labels".into(), labels])?;
        for key in ["error_rate", "lower", "upper", "n", "calibration_error"] {
            result[key] = found[key].clone();
        }
    }
    places.keep(row, &result)
}

/// Seconds of a run over all its parts, from its last event.
fn seconds(run: &Path) -> Option<f64> {
    let events = fs::read_to_string(run.join("events.jsonl")).ok()?;
    let last: Value = serde_json::from_str(events.lines().last()?).ok()?;
    last["seconds"].as_f64()
}
