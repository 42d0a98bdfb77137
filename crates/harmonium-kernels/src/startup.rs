//! Whether stdout was closed when the program started.
//!
//! Before `main` the runtime opens `/dev/null` in the place of a closed stdout. From then on a lost result looks like
//! one that was discarded on purpose (`>/dev/null`, Python's `DEVNULL`), so the question has to be asked earlier: by
//! a function that the loader calls. It stands in this crate because entering a function into the loader's list is
//! `unsafe`; the program alone asks for it (feature `startup`).
#![expect(unsafe_code, reason = "the loader's list of functions is a section of the program")]

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether stdout was closed when the program started, so that nobody can see a result. Elsewhere than on Linux always
/// false.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

// SAFETY: the loader calls every function of this section once, before `main`, and ignores the arguments it passes
// where there are none to take. `look` uses no service of the standard library's runtime: one system call, one store.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

#[cfg(target_os = "linux")]
extern "C" fn look() {
    let closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
    CLOSED.store(closed, Ordering::Relaxed);
}
