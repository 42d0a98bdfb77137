//! Extracting used bits by one instruction.

use crate::index::gather_used_by;
use std::arch::x86_64::_pext_u64;

/// The used bits of a row as index words; see [`gather_used`](crate::index::gather_used).
#[inline(always)]
pub(in crate::index) fn gather_used(
    row: &[u64],
    mask: &[u64],
    at: usize,
    stride: usize,
    out: &mut [u64],
) {
    let extract = |word, mask| {
        #[expect(unsafe_code, reason = "the instruction needs it")]
        // SAFETY: the caller is compiled for BMI2 and runs only where it was detected.
        unsafe {
            _pext_u64(word, mask)
        }
    };
    gather_used_by(extract, row, mask, at, stride, out);
}
