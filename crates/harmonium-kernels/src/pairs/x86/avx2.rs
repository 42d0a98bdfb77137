//! By AVX2 and BMI2: lists of pairs, and sums of them.

use crate::line::{HALF, Line, TILE};
use crate::pairs::{BEYOND, ENTRIES, FOUR, ONES, ROOM, list_strip_by};
use std::arch::asm;
use std::arch::x86_64::{__m256i, _pdep_u64, _pext_u64};
use std::mem::transmute;

/// Lists the entries of a strip; see [`list_strip`](crate::pairs::list_strip).
#[inline(always)]
pub(in crate::pairs) fn list_strip<'a, I: Iterator<Item = &'a [u64]>>(
    rows: I,
    first: usize,
    listed: &mut [[u8; ROOM]],
    lengths: &mut [usize],
) {
    #[expect(unsafe_code, reason = "the instruction needs it")]
    // SAFETY: the caller is compiled for BMI2 and runs only where it was detected.
    let spread = |bits| unsafe { _pdep_u64(bits, 3 * ONES) };
    #[expect(unsafe_code, reason = "the instruction needs it")]
    // SAFETY: as above.
    let pack = |bytes, mask| unsafe { _pext_u64(bytes, mask) };
    list_strip_by(spread, pack, rows, first, listed, lengths);
}

/// Declares what adds to the sums of four samples the lines that their entries name.
///
/// Entries are read two turns before they are needed. A line whose address comes late keeps
/// those behind it waiting: a turn takes 4.3 cycles so, of which its eight loads are 4, and 5.3
/// where an entry is read when it is used, which is where the compiler moves it.
macro_rules! gather {
    ($name:ident, $number:ty, $len:ident, $add:literal) => {
        #[inline]
        #[target_feature(enable = "avx2,bmi2")]
        #[expect(unsafe_code, reason = "a loop whose order is the point of it")]
        pub(in crate::pairs) fn $name(
            table: &[[Line<$number, $len>; 1]; ENTRIES],
            entries: &[[u8; FOUR]],
            sums: [[$number; $len]; FOUR],
        ) -> [[$number; $len]; FOUR] {
            let n = entries.len() - BEYOND;
            if n == 0 {
                return sums;
            }
            // SAFETY: a sum is two registers, and any bits are valid in both. The loop ends
            // after `n` turns and reads `n + BEYOND` entries, as many as there are. A turn
            // turns each byte of an entry to the place of a line of 64 bytes: at most the 255th
            // of 256. It writes to its registers alone.
            unsafe {
                let [[mut a, mut b], [mut c, mut d], [mut e, mut f], [mut g, mut h]]:
                    [[__m256i; 2]; FOUR] = transmute(sums);
                asm!(
                    "mov {now:e}, [{entry}]",
                    "mov {next:e}, [{entry} + 4]",
                    ".p2align 5",
                    "2:",
                    "rorx {at:e}, {now:e}, 26",
                    "and {at:e}, 0x3fc0",
                    concat!($add, " {a}, {a}, [{table} + {at}]"),
                    concat!($add, " {b}, {b}, [{table} + {at} + 32]"),
                    "rorx {at:e}, {now:e}, 2",
                    "and {at:e}, 0x3fc0",
                    concat!($add, " {c}, {c}, [{table} + {at}]"),
                    concat!($add, " {d}, {d}, [{table} + {at} + 32]"),
                    "rorx {at:e}, {now:e}, 10",
                    "and {at:e}, 0x3fc0",
                    concat!($add, " {e}, {e}, [{table} + {at}]"),
                    concat!($add, " {f}, {f}, [{table} + {at} + 32]"),
                    "rorx {at:e}, {now:e}, 18",
                    "and {at:e}, 0x3fc0",
                    concat!($add, " {g}, {g}, [{table} + {at}]"),
                    concat!($add, " {h}, {h}, [{table} + {at} + 32]"),
                    "mov {now:e}, {next:e}",
                    "mov {next:e}, [{entry} + 8]",
                    "add {entry}, 4",
                    "cmp {entry}, {end}",
                    "jne 2b",
                    now = out(reg) _,
                    next = out(reg) _,
                    at = out(reg) _,
                    entry = inout(reg) entries.as_ptr() => _,
                    end = in(reg) entries[n..].as_ptr(),
                    table = in(reg) table.as_ptr(),
                    a = inout(ymm_reg) a,
                    b = inout(ymm_reg) b,
                    c = inout(ymm_reg) c,
                    d = inout(ymm_reg) d,
                    e = inout(ymm_reg) e,
                    f = inout(ymm_reg) f,
                    g = inout(ymm_reg) g,
                    h = inout(ymm_reg) h,
                    options(pure, readonly, nostack),
                );
                transmute([[a, b], [c, d], [e, f], [g, h]])
            }
        }
    };
}
gather!(gather_single, f32, HALF, "vaddps");
gather!(gather_quantised, i16, TILE, "vpaddw");
