//! Whether something fits into memory, asked before it is made.
//!
//! Sizes are products of numbers that a caller chooses, so they are counted in `f64`, which does not
//! wrap: a size that no machine has is as easy to refuse as one that this machine does not have.

use crate::error::Error;
use std::sync::OnceLock;

/// Most steps of any work that can be asked for: at a million a second they take thirty years.
pub(crate) const MOST_STEPS: usize = 1_000_000_000_000_000;

/// Refuses what needs more bytes than the machine has.
///
/// # Errors
///
/// [`Error::Memory`] with the number of bytes.
pub(crate) fn check_memory(bytes: f64, what: impl FnOnce() -> String) -> Result<(), Error> {
    if fits_memory(bytes) { Ok(()) } else { Err(Error::Memory { what: what(), bytes }) }
}

/// Whether the computer has this many bytes.
pub(crate) fn fits_memory(bytes: f64) -> bool {
    bytes <= available()
}

/// This share of the bytes that the computer has.
pub(crate) fn share_of_memory(share: f64) -> f64 {
    share * available()
}

/// Numbers from which on it is asked first whether there is room for them: 128 megabytes.
const MANY: usize = 1 << 24;

/// A vector of `len` times `value`, or an error where memory ends. Zeros take no memory until somebody
/// writes to them: a model to be trained is made of them.
pub(crate) fn filled(len: usize, value: f64, what: impl Fn() -> String) -> Result<Vec<f64>, Error> {
    let bytes = len as f64 * 8.0;
    check_memory(bytes, &what)?;
    if len >= MANY {
        let too_much = |_| Error::Memory { what: what(), bytes };
        Vec::<f64>::new().try_reserve_exact(len).map_err(too_much)?;
    }
    Ok(vec![value; len])
}

/// Bytes of memory and swap where the system tells, else those that can be addressed.
fn available() -> f64 {
    static BYTES: OnceLock<f64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let told = std::fs::read_to_string("/proc/meminfo").ok();
        told.as_deref().and_then(total).unwrap_or(isize::MAX as f64)
    })
}

/// Memory and swap in the words of Linux: `MemTotal:  24576000 kB`.
fn total(told: &str) -> Option<f64> {
    let of = |name: &str| -> Option<f64> {
        let line = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(1024.0 * line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()?)
    };
    Some(of("MemTotal")? + of("SwapTotal").unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_is_read() {
        let told = "MemTotal:       2000 kB\nMemFree: 5 kB\nSwapTotal:       48 kB\n";
        assert_eq!(total(told), Some(2048.0 * 1024.0));
        assert_eq!(total("MemTotal: many"), None);
        assert_eq!(total(""), None);
    }

    #[test]
    fn what_no_machine_has_is_refused() {
        let refused = check_memory(1e30, || "it".into());
        assert_eq!(refused, Err(Error::Memory { what: "it".into(), bytes: 1e30 }));
        assert!(check_memory(1e3, || "it".into()).is_ok());
        assert!(filled(usize::MAX, 0.0, || "it".into()).is_err());
    }
}
