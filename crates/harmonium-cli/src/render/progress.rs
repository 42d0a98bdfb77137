//! Progress of long work with the time left, silent where stderr is not a terminal, and Ctrl-C.

use crate::args::Common;
use crate::failure::Failure;
use crate::render::{self, idle};
use harmonium::progress::{Listener, Work};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shows on stderr how far the work is, and passes on that somebody pressed Ctrl-C.
pub(crate) struct Terminal {
    quiet: bool,
    bar: ProgressBar,
    what: String,
}

impl Terminal {
    /// Draws nothing when quiet, or where stderr is not a terminal.
    pub(crate) fn new(common: &Common) -> Self {
        if !common.quiet {
            idle::watch();
        }
        Self { quiet: common.quiet, bar: ProgressBar::hidden(), what: String::new() }
    }

    /// A bar over `n` pieces of work.
    fn begin(&mut self, n: u64, what: &str) {
        self.bar.finish_and_clear();
        let target =
            if self.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        self.bar = ProgressBar::with_draw_target(Some(n), target);
        let template = "{prefix} {wide_bar} {pos}/{len}  {elapsed} gone, {eta} left  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_prefix(render::plain(what).into_owned());
        what.clone_into(&mut self.what);
    }
}

impl Listener for Terminal {
    fn at(&mut self, work: Work<'_>) {
        idle::heard(work.done < work.total);
        if self.what != work.what || self.bar.length() != Some(work.total) {
            self.begin(work.total, work.what);
        }
        self.bar.set_position(work.done);
        self.bar.set_message(render::plain(work.detail).into_owned());
        if work.done >= work.total {
            self.bar.finish_and_clear();
        }
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| render::aside(&format!("note: {text}")));
    }

    fn announce(&mut self, text: &str) {
        self.note(text);
    }

    fn cancelled(&mut self) -> bool {
        STOP.load(Ordering::Relaxed)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        idle::heard(false);
    }
}

/// Signals that were ignored when the process started stay ignored, as `nohup` and background jobs of
/// shells ask for. Handlers are set for all signals that end a process, so those that were ignored
/// are blocked instead; every thread that is started later inherits that.
pub(crate) fn keep_ignored() {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::signal::{SigSet, Signal};
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        let ending = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM];
        let ignored = |signal: &Signal| mask >> (*signal as i32 - 1) & 1 == 1;
        let blocked: SigSet = ending.into_iter().filter(ignored).collect();
        // Where it fails, the signal stops the run as Ctrl-C does, and the run can be resumed.
        let _ = blocked.thread_block();
    }
}

static STOP: AtomicBool = AtomicBool::new(false);

/// Turns Ctrl-C into a wish; pressed twice, it ends the process at once.
pub(crate) fn listen() -> Result<(), Failure> {
    static LISTENING: OnceLock<Result<(), String>> = OnceLock::new();
    let listening = LISTENING.get_or_init(|| {
        ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(2);
            }
            render::aside("\nfinishing the batch; press Ctrl-C again to stop at once");
        })
        .map_err(|e| e.to_string())
    });
    listening.clone().map_err(|e| {
        Failure::new(format!("cannot listen for Ctrl-C: {e}"), "run it from a terminal")
    })
}
