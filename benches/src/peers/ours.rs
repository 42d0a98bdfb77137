//! harmonium's side: the release binary, timed from start to exit.

use super::contenders::{Item, Variant};
use super::options::Options;
use super::python::Python;
use super::{Fallible, Measured, Places, last_line};
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Instant;

/// What the peers do and no more: harmonium's defaults also center, decay the rate and penalise weights.
const LIKE_PEERS: [&str; 5] = ["--no-center", "--decay", "1", "--l2", "0"];
/// Of those that have it.
const MOMENTUM: &str = "0.5";
/// Deep machines are centered, by the peers as well.
const CENTERED: usize = 1;

/// The release binary and the model that all contenders share.
pub(super) struct Ours<'a> {
    places: &'a Places,
    python: &'a Python<'a>,
    epochs: usize,
    pub model: PathBuf,
}

impl<'a> Ours<'a> {
    /// Trains the shared model for one epoch.
    pub(super) fn prepare(
        places: &'a Places,
        python: &'a Python<'a>,
        options: &Options,
    ) -> Fallible<Self> {
        if places.scratch.exists() {
            fs::remove_dir_all(&places.scratch)?;
        }
        fs::create_dir_all(&places.scratch)?;
        let model = places.scratch.join("shared/model.safetensors");
        let ours = Self { places, python, epochs: options.epochs, model };
        eprintln!("training the model that all contenders share");
        ours.run(&ours.training(100, 1, Variant::Plain, "shared"))?;
        Ok(ours)
    }

    pub(super) fn measure(&self, item: Item, variant: Variant) -> Fallible<Measured> {
        let scratch = |file: &str| self.places.scratch.join(file).display().to_string();
        let model = self.model.display().to_string();
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        match item {
            Item::Train | Item::TrainSmallBatches => {
                let command =
                    self.training(item.batch(), item.epochs(self.epochs), variant, "trained");
                let (seconds, _) = self.run(&command)?;
                let check = match variant {
                    Variant::Plain | Variant::NoMomentum => {
                        let trained = self.places.scratch.join("trained/model.safetensors");
                        self.python.check(item, &trained, "")?
                    }
                    _ => serde_json::Map::new(),
                };
                Ok(Measured { seconds, check })
            }
            Item::Dbm => {
                let rows = self.data("train-images-idx3-ubyte.gz");
                let (run, tolerance) =
                    (scratch("deep"), if variant == Variant::AtRest { "0.001" } else { "0" });
                let epochs = item.epochs(self.epochs).to_string();
                let mut command = words(&["train", "dbm", &rows, "--hidden", "500,1000"]);
                command.extend(words(&["--binarize", "0.5", "--epochs", &epochs, "--k", "5"]));
                command.extend(words(&["--chains", "100", "--learning-rate", "0.01"]));
                command.extend(words(&["--mean-field-sweeps", "10"]));
                command.extend(words(&["--mean-field-tolerance", tolerance]));
                command.extend(words(&LIKE_PEERS[CENTERED..]));
                command.extend(words(&["--momentum", MOMENTUM]));
                command.extend(words(&["--force", "--out", &run]));
                let (seconds, _) = self.run(&command)?;
                let mut check = self.python.check(item, &self.deep(), "")?;
                check.insert("bound".into(), self.bound(&self.deep())?);
                Ok(Measured { seconds, check })
            }
            Item::Sample => {
                let out = scratch("samples.npy");
                let sweeps = if variant == Variant::StartOnly { "1" } else { "100" };
                let (seconds, _) = self.run(&words(&[
                    "sample", &model, "--n", "1000", "--sweeps", sweeps, "--out", &out, "--force",
                ]))?;
                let check = match variant {
                    Variant::Plain => self.python.check(item, &self.model, &out)?,
                    _ => serde_json::Map::new(),
                };
                Ok(Measured { seconds, check })
            }
            Item::Features => {
                let out = scratch("features.npy");
                let rows = self.data("train-images-idx3-ubyte.gz");
                let (seconds, _) =
                    self.run(&words(&["features", &model, &rows, "--out", &out, "--force"]))?;
                Ok(Measured { seconds, check: self.python.check(item, &self.model, &out)? })
            }
            Item::Score => {
                let rows = self.data("t10k-images-idx3-ubyte.gz");
                let (seconds, reply) =
                    self.run(&words(&["score", &model, &rows, "--method", "pseudo"]))?;
                Ok(Measured { seconds, check: self.python.check(item, &self.model, &reply)? })
            }
            Item::Ais => {
                let betas = Item::BETAS.to_string();
                let command = words(&[
                    "logz", &model, "--method", "ais", "--betas", &betas, "--chains", "100",
                ]);
                let (seconds, reply) = self.run(&command).map_err(|e| format!("not yet: {e}"))?;
                Ok(Measured { seconds, check: self.python.check(item, &self.model, &reply)? })
            }
        }
    }

    /// The deep machine that was trained last.
    fn deep(&self) -> PathBuf {
        self.places.scratch.join("deep/model.safetensors")
    }

    /// The model a peer starts from, or whose shape it learns.
    pub(super) fn model_of(&self, item: Item) -> PathBuf {
        if item == Item::Dbm { self.deep() } else { self.model.clone() }
    }

    /// The variational bound of the test rows by a deep machine, in nats.
    pub(super) fn bound(&self, model: &Path) -> Fallible<Value> {
        let (model, rows) = (model.display().to_string(), self.data("t10k-images-idx3-ubyte.gz"));
        let words = ["score", &model, &rows, "--method", "bound", "--betas", "10000"];
        let (_, reply) = self.run(&words.map(ToString::to_string))?;
        let mut reply: Map<String, Value> = serde_json::from_str(&reply)?;
        reply.remove("bound").ok_or_else(|| "the score has no bound".into())
    }

    fn data(&self, file: &str) -> String {
        self.places.data.join(file).display().to_string()
    }

    fn training(&self, batch: usize, epochs: usize, variant: Variant, run: &str) -> Vec<String> {
        let (rows, run) = (self.data("train-images-idx3-ubyte.gz"), self.places.scratch.join(run));
        let (batch, epochs) = (batch.to_string(), epochs.to_string());
        let mut words = vec!["train", "rbm", &rows, "--hidden", "500", "--binarize", "0.5"];
        words.extend(["--rule", "pcd", "--k", "1", "--batch", &batch, "--chains", &batch]);
        words.extend(["--epochs", &epochs, "--learning-rate", "0.01"]);
        let momentum = match variant {
            Variant::Plain => Some(MOMENTUM),
            Variant::NoMomentum => Some("0"),
            _ => None,
        };
        if let Some(momentum) = momentum {
            words.extend(LIKE_PEERS);
            words.extend(["--momentum", momentum]);
        }
        let mut words: Vec<String> = words.into_iter().map(Into::into).collect();
        words.extend(["--force".into(), "--out".into(), run.display().to_string()]);
        words
    }

    /// Seconds of the process, and what it printed.
    fn run(&self, words: &[String]) -> Fallible<(f64, String)> {
        let mut command = self.places.single_threaded(&self.places.harmonium);
        command.args(words).args(["--threads", "1", "--quiet", "--json"]);
        let start = Instant::now();
        let Output { status, stdout, stderr } = command.output()?;
        let seconds = start.elapsed().as_secs_f64();
        if !status.success() {
            return Err(last_line(&stderr).into());
        }
        Ok((seconds, String::from_utf8(stdout)?))
    }
}
