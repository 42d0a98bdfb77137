//! How much a file that stores only its non-zero entries may claim.

use crate::Error;

/// Entries that any sparse file may have once it is dense.
const FREE: u64 = 1 << 20;
/// Dense entries for each stored one on top.
pub(crate) const PER_ENTRY: u64 = 1 << 10;

/// Refuses a table that a few stored entries would blow up: tables are dense here.
pub(crate) fn check_dense(n_rows: u64, n_columns: u64, n_stored: u64) -> Result<(), Error> {
    let needed = n_rows.saturating_mul(n_columns);
    let limit = FREE + PER_ENTRY.saturating_mul(n_stored);
    if needed <= limit {
        return Ok(());
    }
    Err(Error::TooLarge { what: "the sparse table, made dense,", needed, unit: "entries", limit })
}
