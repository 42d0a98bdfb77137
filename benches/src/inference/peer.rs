//! dwave-samplers: the junction tree of another library, in an environment of its own.

use crate::Fallible;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is installed, and its version.
const PACKAGE: &str = "dwave-samplers==1.8.0";

/// A Python that has it.
pub(super) struct Peer {
    python: PathBuf,
    script: PathBuf,
}

impl Peer {
    /// Makes the environment where there is none.
    pub(super) fn prepare() -> Fallible<Self> {
        let program = std::env::current_exe()?;
        let target = program.parent().and_then(Path::parent).ok_or("no target folder")?;
        let venv = target.join("inference-venv");
        let folder = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
        let python = venv.join(folder);
        if !python.is_file() {
            eprintln!("making a Python environment for {PACKAGE}");
            run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        }
        let there = Command::new(&python).args(["-c", "import dwave.samplers"]).output()?;
        if !there.status.success() {
            run(Command::new(&python).args(["-m", "pip", "install", "--quiet", PACKAGE]))?;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/junction_tree.py");
        Ok(Self { python, script })
    }

    /// Seconds that it takes for ln Z and all marginals.
    pub(super) fn measure(&self, path: &Path) -> Fallible<f64> {
        let output = Command::new(&self.python)
            .arg(&self.script)
            .arg(path)
            .env("OMP_NUM_THREADS", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(said.lines().next_back().unwrap_or("it said nothing").to_owned().into());
        }
        let found: Value = serde_json::from_slice(&output.stdout)?;
        match (found["seconds"].as_f64(), found["error"].as_str()) {
            (Some(seconds), _) => Ok(seconds),
            (_, Some(error)) => Err(error.to_owned().into()),
            _ => Err("it gave no time".into()),
        }
    }
}

fn run(command: &mut Command) -> Fallible<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().next_back().unwrap_or("it said nothing").to_owned().into())
}
