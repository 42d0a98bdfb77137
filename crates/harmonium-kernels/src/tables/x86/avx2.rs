//! By AVX2 and BMI2: instructions whose order the compiler would change, or which it does not find.

use crate::line::{HALF, Line};
use crate::tables::{Ahead, ENTRIES, ENTRY, GROUP, INDEX, Tables, part_of};
use std::arch::asm;
use std::arch::x86_64::__m256;
use std::mem::transmute;

/// The word turned so that the five bits of table `G` stand where their entry's address has them:
/// turning and masking are two instructions, where a shift would need a copy before it.
#[inline(always)]
pub(in crate::tables) fn turned<const G: usize>(word: u64) -> u64 {
    let out;
    #[expect(unsafe_code, reason = "the compiler turns a rotation whose ends are masked to shifts")]
    // SAFETY: the instruction reads and writes registers alone; the callers are compiled for BMI2
    // and run only where it was detected.
    unsafe {
        asm!(
            "rorx {out}, {word}, {by}",
            out = lateout(reg) out,
            word = in(reg) word,
            by = const (64 + GROUP * G - ENTRY) % 64,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    out
}

/// The same word: it is in a register from here on, where the compiler would read it at its use.
#[inline(always)]
#[expect(unsafe_code, reason = "nothing else keeps the order of loads")]
pub(in crate::tables) fn stay(mut word: u64) -> u64 {
    // SAFETY: there is no instruction.
    unsafe {
        asm!("/* {0} */", inout(reg) word, options(nomem, nostack, preserves_flags));
    }
    word
}

/// Two sums.
type Registers = [[__m256; 2]; 2];

/// [`sum_lines`](crate::tables::sum_lines) of two at a time, their entries in turn: the compiler takes all of one
/// and then all of the other, and sums that follow each other wait for each other.
#[target_feature(enable = "avx2,bmi2")]
#[expect(unsafe_code, reason = "instructions whose order is the point of them")]
pub(in crate::tables) fn sum_pairs<const U: usize, const W: usize>(
    words: &[[u64; 2]],
    tables: &Tables<f32, HALF>,
    starts: bool,
    part: usize,
    pairs: &mut [[Line<f32, W>; 2]],
) {
    let mut ahead = Ahead::<true, 2>::new(words);
    let table = tables.lines.as_ptr();
    for [a, b] in &mut pairs[..words.len()] {
        let [v, w] = ahead.take();
        let (a, b) = (part_of(a, part), part_of(b, part));
        let before = if starts { [[0.0; HALF]; 2] } else { [*a, *b] };
        // SAFETY: 64 bytes are two registers of 32, and any bits are valid in both.
        let [[mut x0, mut x1], [mut y0, mut y1]]: Registers = unsafe { transmute(before) };
        macro_rules! add_entry {
            ($word:ident, $low:ident, $high:ident) => {
                // SAFETY: reads a line of 64 bytes of table `G`, which has one for each index
                // of five bits, and writes to registers alone.
                unsafe {
                    asm!(
                        "rorx {at}, {word}, {by}",
                        "and {at:e}, {index}",
                        "vaddps {low}, {low}, [{table} + {at} + {first}]",
                        "vaddps {high}, {high}, [{table} + {at} + {first} + 32]",
                        at = out(reg) _,
                        word = in(reg) $word,
                        table = in(reg) table,
                        low = inout(ymm_reg) $low,
                        high = inout(ymm_reg) $high,
                        by = const (64 + GROUP * G - ENTRY) % 64,
                        index = const INDEX << ENTRY,
                        first = const G * ENTRIES << ENTRY,
                        options(readonly, nostack),
                    );
                }
            };
        }
        each_table!(U, G, {
            add_entry!(v, x0, x1);
            add_entry!(w, y0, y1);
        });
        // SAFETY: as above.
        let after: [[f32; HALF]; 2] = unsafe { transmute([[x0, x1], [y0, y1]]) };
        [*a, *b] = after;
    }
}
