//! The peers' environment: made once, reused, and never a silent gap.

use super::contenders::{Item, PEERS, Peer};
use super::options::Options;
use super::{Fallible, Measured, Places, last_line};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python with the peers in it.
pub(super) struct Python<'a> {
    places: &'a Places,
    program: PathBuf,
    scripts: PathBuf,
}

impl<'a> Python<'a> {
    /// Makes the environment where it lacks something; also returns who could not be installed, and why.
    pub(super) fn prepare(places: &'a Places) -> Fallible<(Self, Vec<(&'static Peer, String)>)> {
        let folder = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
        let python = Self {
            places,
            program: places.venv.join(folder),
            scripts: places.root.join("benches/peers"),
        };
        if !python.program.is_file() {
            eprintln!("making a Python environment for the peers");
            let made = Command::new("python3").args(["-m", "venv"]).arg(&places.venv).output();
            let made = made.map_err(|e| format!("the peers need python3: {e}"))?;
            if !made.status.success() {
                return Err(format!("no Python environment: {}", last_line(&made.stderr)).into());
            }
        }
        let pins = python.pins()?;
        let mut missing = Vec::new();
        for peer in &PEERS {
            if let Err(error) = python.install(peer, &pins) {
                missing.push((peer, error.to_string()));
            }
        }
        if missing.iter().any(|(peer, _)| peer.packages == ["numpy"]) {
            return Err(
                "numpy could not be installed, and nothing can be checked without it".into()
            );
        }
        Ok((python, missing))
    }

    /// The version of each package in `requirements.txt`.
    fn pins(&self) -> Fallible<BTreeMap<String, String>> {
        let text = fs::read_to_string(self.scripts.join("requirements.txt"))?;
        let pins = text.lines().filter(|line| !line.starts_with('#'));
        Ok(pins.filter_map(|l| l.split_once("==")).map(|(p, v)| (p.into(), v.into())).collect())
    }

    fn install(&self, peer: &Peer, pins: &BTreeMap<String, String>) -> Fallible<()> {
        let installed = self.versions()?;
        let fits = |package: &&str| {
            let found = installed.get(*package).and_then(Value::as_str).unwrap_or_default();
            // `2.15.0+cpu` is version 2.15.0, built for the processor alone.
            pins.get(*package).is_some_and(|pin| found.split('+').next() == Some(pin))
        };
        if peer.packages.iter().all(fits) {
            return Ok(());
        }
        eprintln!("installing {} (minutes, and gigabytes for torch)", peer.packages.join(", "));
        let output = Command::new(&self.program)
            .args(["-m", "pip", "install", "--quiet", "--constraint"])
            .arg(self.scripts.join("requirements.txt"))
            .args(peer.packages)
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        // pip says first what is wrong, and ends with advice.
        let said = String::from_utf8_lossy(&output.stderr);
        let reason = said.lines().find_map(|line| line.strip_prefix("ERROR: "));
        Err(reason.map_or_else(|| last_line(&output.stderr), Into::into).into())
    }

    /// Versions of Python and of every package that a peer names.
    pub(super) fn versions(&self) -> Fallible<Map<String, Value>> {
        let mut packages: Vec<&str> = PEERS.iter().flat_map(|p| p.packages).copied().collect();
        packages.sort_unstable();
        packages.dedup();
        let output = Command::new(&self.program)
            .arg(self.scripts.join("versions.py"))
            .args(packages)
            .output()?;
        object(&output)
    }

    /// Lets a peer do its work.
    pub(super) fn measure(
        &self,
        item: Item,
        peer: &Peer,
        options: &Options,
        model: &Path,
    ) -> Fallible<Measured> {
        let numbers = [item.batch(), item.epochs(options.epochs), options.betas]
            .map(|number| number.to_string());
        let mut words = vec!["--batch", &numbers[0], "--epochs", &numbers[1]];
        words.extend(["--betas", &numbers[2]]);
        let made = self.made(peer).display().to_string();
        words.extend(["--made", &made]);
        let mut reply = self.script(peer.name, item, model, &words)?;
        let seconds = reply.remove("seconds").and_then(|s| s.as_f64()).ok_or("it gave no time")?;
        let scale = if item == Item::Ais { Item::BETAS as f64 / options.betas as f64 } else { 1.0 };
        Ok(Measured { seconds: seconds * scale, check: checks(reply)? })
    }

    /// Where a peer writes the model it learned.
    pub(super) fn made(&self, peer: &Peer) -> PathBuf {
        self.places.scratch.join(format!("{}.safetensors", peer.name))
    }

    /// What harmonium's work produced, seen with the peers' eyes.
    pub(super) fn check(
        &self,
        item: Item,
        model: &Path,
        made: &str,
    ) -> Fallible<Map<String, Value>> {
        checks(self.script("harmonium", item, model, &["--made", made])?)
    }

    fn script(
        &self,
        peer: &str,
        item: Item,
        model: &Path,
        words: &[&str],
    ) -> Fallible<Map<String, Value>> {
        let output = self
            .places
            .single_threaded(&self.program)
            .arg(self.scripts.join("run.py"))
            .args([peer, item.function(), "--data"])
            .arg(&self.places.data)
            .arg("--model")
            .arg(model)
            .args(words)
            .output()?;
        object(&output)
    }
}

fn checks(mut reply: Map<String, Value>) -> Fallible<Map<String, Value>> {
    match reply.remove("check") {
        Some(Value::Object(check)) => Ok(check),
        _ => Err("it gave no result to check".into()),
    }
}

/// The JSON object on a script's stdout.
fn object(output: &std::process::Output) -> Fallible<Map<String, Value>> {
    if !output.status.success() {
        return Err(last_line(&output.stderr).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
