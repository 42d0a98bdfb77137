//! The program under limits of time and memory, and the count of cases that held.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Memory that the program may ask for, in kilobytes.
const MEMORY: u64 = 2_000_000;

/// The longest text of an error, in bytes.
const MOST_WORDS: usize = 20_000;

/// The number of cases: few in the ordinary tests, many in `cargo xtask attack`.
pub(crate) fn cases(short: u64, long: u64) -> u64 {
    match std::env::var("HARMONIUM_ATTACK") {
        Ok(size) if size == "long" => long,
        _ => short,
    }
}

/// Numbers that depend on a seed alone (`SplitMix64`).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.bits() % n as u64).expect("it is below a usize")
    }

    /// A number from 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How the program ended.
pub(crate) struct Said {
    /// Nothing if the clock ended it.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Whether it ended in time and did what was asked, or refused with a reason and a hint.
    pub(crate) fn held(&self) -> Result<(), String> {
        let Some(status) = self.status else { return Err("it did not end".into()) };
        let begin: String = self.err.chars().take(300).collect();
        if self.err.contains("panicked") || self.err.len() > MOST_WORDS {
            return Err(format!("{} bytes of errors: {begin}", self.err.len()));
        }
        match status.code() {
            Some(0) => Ok(()),
            Some(2) if self.err.contains("error: ") && self.err.contains("hint: ") => Ok(()),
            _ => Err(format!("{status}: {begin}")),
        }
    }

    /// The same where it must refuse.
    pub(crate) fn refused(&self) -> Result<(), String> {
        self.held()?;
        match self.status.and_then(|status| status.code()) {
            Some(2) => Ok(()),
            _ => Err("it was accepted".into()),
        }
    }

    /// The same where much that is asked for takes long: ending by the clock is fine.
    pub(crate) fn held_or_long(&self) -> Result<(), String> {
        if self.status.is_some() { self.held() } else { Ok(()) }
    }
}

/// Runs the program in `folder` with little memory, for some seconds at most.
pub(crate) fn run(folder: &Path, words: &[&str], seconds: u64) -> Said {
    let (out, err) = (folder.join(".out"), folder.join(".err"));
    let limited = format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
    let mut child = Command::new("sh")
        .args(["-c", &limited, env!("CARGO_BIN_EXE_harmonium")])
        .args(words)
        // Each thread reserves memory of its own.
        .args(["--threads", "2"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(File::create(&out).expect("the folder can be written"))
        .stderr(File::create(&err).expect("the folder can be written"))
        .spawn()
        .expect("there is a shell");
    let end = Instant::now() + Duration::from_secs(seconds);
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break Some(status);
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    Said { status, out: text(&out), err: text(&err) }
}

/// Counts cases, and fails at the end if one broke.
pub(crate) struct Attack {
    name: &'static str,
    start: Instant,
    held: u64,
    broken: Vec<String>,
}

impl Attack {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, start: Instant::now(), held: 0, broken: Vec::new() }
    }

    pub(crate) fn case(&mut self, what: impl FnOnce() -> String, result: Result<(), String>) {
        match result {
            Ok(()) => self.held += 1,
            Err(reason) => self.broken.push(format!("{}: {reason}", what())),
        }
    }

    #[expect(clippy::print_stdout, reason = "the counts of cases")]
    pub(crate) fn finish(self) {
        let Self { name, start, held, broken } = self;
        let (n, seconds) = (held + broken.len() as u64, start.elapsed().as_secs_f64());
        println!("attack by {name}: {held} of {n} held in {seconds:.1} s");
        assert!(broken.is_empty() && n > 0, "{name}:\n{}", broken.join("\n"));
    }
}
