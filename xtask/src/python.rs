//! The Python package: a wheel, a virtual environment of its own, and the tests in it.
//!
//! Everything is kept in `target/python`. The environment is made anew where the requirements or the
//! interpreter have changed; the wheel is built and installed every time.

use crate::step::Step;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest Python that the package runs on.
const OLDEST: (u32, u32) = (3, 10);
/// What the tests need.
const REQUIREMENTS: &str = "python/requirements-test.txt";

/// Where things are.
pub(crate) struct Python {
    /// The interpreter of the machine.
    host: String,
    /// The folder of everything that is made here.
    folder: PathBuf,
}

impl Python {
    /// The interpreter that `HARMONIUM_PYTHON` names, else `python3`; the reason where it will not do.
    pub(crate) fn find() -> Result<Self, String> {
        let host = env::var("HARMONIUM_PYTHON").unwrap_or_else(|_| "python3".into());
        let asked = "import sys; print(*sys.version_info[:2])";
        let answer = Command::new(&host).args(["-c", asked]).output();
        let answer = answer.map_err(|error| {
            format!("cannot run `{host}`: {error}; the Python package is tested, too, so Python 3.10 or newer is needed")
        })?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let numbers: Vec<u32> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        match numbers[..] {
            [major, minor] if (major, minor) >= OLDEST => {
                Ok(Self { host, folder: target().join("python") })
            }
            _ => Err(format!("`{host}` is Python {}; 3.10 or newer is needed", text.trim())),
        }
    }

    fn environment(&self) -> PathBuf {
        self.folder.join("venv")
    }

    /// A program of the environment.
    fn program(&self, name: &str) -> String {
        let folder = if cfg!(windows) { "Scripts" } else { "bin" };
        self.environment().join(folder).join(name).display().to_string()
    }

    /// The interpreter of the environment with arguments.
    fn inside(&self, title: &str, arguments: &[&str]) -> Step {
        Step::new(title, &self.program("python"), arguments)
    }

    /// The host's pip, which needs none in the environment, with arguments.
    fn pip(&self, title: &str, arguments: &[&str]) -> Step {
        let inside = self.program("python");
        let pip = ["-m", "pip", "--python", &inside, "--disable-pip-version-check", "install"];
        Step::new(title, &self.host, &[&pip[..], &["--quiet"], arguments].concat())
    }

    /// Makes the environment, unless it is there.
    pub(crate) fn environment_steps(&self) -> Vec<Step> {
        if self.is_current() {
            return Vec::new();
        }
        // Without a stamp: an environment that was not finished is made anew.
        let _ = fs::remove_file(self.stamp());
        let place = self.environment().display().to_string();
        let make = ["-m", "venv", "--clear", "--without-pip", &place];
        vec![
            Step::new("python environment", &self.host, &make),
            self.pip("python packages", &["-r", REQUIREMENTS]),
        ]
    }

    /// Notes that the environment is complete.
    pub(crate) fn note_current(&self) {
        // Without the note the environment is made anew the next time, which is all that is lost.
        let _ = fs::write(self.stamp(), self.wanted());
    }

    fn stamp(&self) -> PathBuf {
        self.folder.join("requirements")
    }

    /// What the environment should hold.
    fn wanted(&self) -> String {
        let version = Command::new(&self.host).arg("--version").output();
        let version = version.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
        let requirements = fs::read_to_string(root().join(REQUIREMENTS)).unwrap_or_default();
        format!("{}{requirements}", version.unwrap_or_default())
    }

    fn is_current(&self) -> bool {
        let there = Path::new(&self.program("python")).exists();
        there && fs::read_to_string(self.stamp()).is_ok_and(|held| held == self.wanted())
    }

    /// Builds the wheel and installs it.
    pub(crate) fn wheel_steps(&self) -> Vec<Step> {
        let wheels = self.folder.join("wheels").display().to_string();
        let inside = self.program("python");
        let build = ["build", "--release", "--out", &wheels, "--interpreter", &inside];
        let install =
            ["--no-index", "--no-deps", "--force-reinstall", "--find-links", &wheels, "harmonium"];
        vec![
            Step::new("wheel", &self.program("maturin"), &build),
            self.pip("installed wheel", &install),
        ]
    }

    /// The tests, the types and the examples in docstrings.
    pub(crate) fn test_steps(&self) -> Vec<Step> {
        let doctests = ["-m", "pytest", "-q", "--doctest-modules", "--pyargs", "harmonium"];
        let types = ["-m", "mypy", "--strict", "--package", "harmonium"];
        vec![
            self.inside("python tests", &["-m", "pytest", "-q", "python/tests"])
                .with("HARMONIUM_PROGRAM", &target().join("debug/harmonium").display().to_string()),
            self.inside("python docstrings", &doctests),
            self.inside("python types", &types).with("MYPY_CACHE_DIR", &self.cache()),
        ]
    }

    fn cache(&self) -> String {
        self.folder.join("mypy").display().to_string()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where cargo builds.
fn target() -> PathBuf {
    env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), PathBuf::from)
}
