//! A sign of life where work does not say how far it is.
//!
//! Reading a large file or an exact sum may take long between two reports of progress, or before the
//! first. After two seconds of silence a line on stderr shows that the program works, and for how
//! long; it goes away with the next report, note or result. Only on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Silence that a person bears.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks.
const TICK: Duration = Duration::from_millis(200);

/// What was last heard of the work.
struct Silence {
    since: Instant,
    /// Whether a bar shows how far the work is.
    bar: bool,
    /// The line that is shown now.
    line: Option<ProgressBar>,
}

impl Silence {
    fn new(now: Instant) -> Self {
        Self { since: now, bar: false, line: None }
    }

    /// Whether it has lasted too long.
    fn is_long(&self, now: Instant) -> bool {
        !self.bar && now.saturating_duration_since(self.since) >= PATIENCE
    }

    fn end(&mut self, now: Instant) {
        self.since = now;
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }
}

static SILENCE: OnceLock<Mutex<Silence>> = OnceLock::new();

fn with(act: impl FnOnce(&mut Silence)) {
    if let Some(silence) = SILENCE.get() {
        act(&mut silence.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Begins to watch, once for the process, if somebody can see it.
pub(crate) fn watch() {
    if !std::io::stderr().is_terminal() || SILENCE.get().is_some() {
        return;
    }
    let start = Instant::now();
    if SILENCE.set(Mutex::new(Silence::new(start))).is_err() {
        return;
    }
    // The thread ends with the process.
    let _ = thread::Builder::new().name("idle".into()).spawn(move || {
        loop {
            thread::sleep(TICK);
            with(|silence| {
                if silence.is_long(Instant::now()) {
                    silence.line.get_or_insert_with(|| line(start)).tick();
                }
            });
        }
    });
}

/// Something was said, or a bar shows how far the work is: the line goes away.
pub(crate) fn heard(bar: bool) {
    with(|silence| {
        silence.end(Instant::now());
        silence.bar = bar;
    });
}

/// Something is about to be printed.
pub(crate) fn hush() {
    with(|silence| silence.end(Instant::now()));
}

fn line(start: Instant) -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} working  {elapsed} gone") {
        line.set_style(style);
    }
    line.with_elapsed(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_long_after_two_seconds_without_a_bar() {
        let start = Instant::now();
        let mut silence = Silence::new(start);
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(!silence.is_long(after(1)) && silence.is_long(after(2)));
        silence.bar = true;
        assert!(!silence.is_long(after(60)), "a bar is a sign of life");
        silence.bar = false;
        silence.end(after(60));
        assert!(!silence.is_long(after(61)) && silence.is_long(after(62)));
    }
}
