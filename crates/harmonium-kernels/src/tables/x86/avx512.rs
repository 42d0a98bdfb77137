//! Sums of table entries of two lines each, by AVX-512.
//!
//! Finding an entry costs three instructions and adding a line one: with a line for each the core
//! would not keep up with its two loads a cycle.

use crate::line::{HALF, Line, Quantum, TILE, Wide};
use crate::tables::{ENTRIES, ENTRY, GROUP, INDEX, Tables, ending, widen};
use std::arch::asm;
use std::arch::x86_64::{
    __m512, __m512i, _mm512_add_epi16, _mm512_add_ps, _mm512_mul_ps, _mm512_set1_ps,
    _mm512_setzero_ps, _mm512_setzero_si512,
};
use std::mem::transmute;

/// Declares [`build_chunk`](crate::tables::build::build_chunk) for one of the lines of each entry. In plain Rust the compiler keeps
/// the sums in memory, or takes them apart.
macro_rules! build {
    ($name:ident, $number:ty, $len:ident, $register:ty, $zero:expr, $add:ident $(, $gain:ident, $scaled:expr)?) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw")]
        pub(in crate::tables) fn $name<const W: usize>(
            table: &mut [[Line<$number, $len>; W]; ENTRIES],
            w: usize,
            rows: [&[$number; $len]; GROUP],
            $($gain: $number,)?
        ) {
            #[expect(unsafe_code, reason = "arrays and registers of one size")]
            // SAFETY: a line of 64 bytes is a register, and any bits are valid in both.
            let [a, b, c, d, e] = rows.map(|row| unsafe { transmute::<[$number; $len], $register>(*row) });
            $(let [a, b, c, d, e] = [$scaled(a, $gain), $scaled(b, $gain), $scaled(c, $gain), $scaled(d, $gain), $scaled(e, $gain)];)?
            let (ab, ac, bc, de) = ($add(a, b), $add(a, c), $add(b, c), $add(d, e));
            let low = [$zero, a, b, ab, c, ac, bc, $add(ab, c)];
            for (q, &low) in low.iter().enumerate() {
                let sums = [low, $add(low, d), $add(low, e), $add(low, de)];
                for (high, sum) in sums.into_iter().enumerate() {
                    #[expect(unsafe_code, reason = "arrays and registers of one size")]
                    // SAFETY: as above.
                    let sum = unsafe { transmute::<$register, [$number; $len]>(sum) };
                    table[8 * high + q][w].0 = sum;
                }
            }
        }
    };
}
build!(build_fields, u16, TILE, __m512i, _mm512_setzero_si512(), _mm512_add_epi16);
build!(build_quantised, i16, TILE, __m512i, _mm512_setzero_si512(), _mm512_add_epi16);
build!(build_single, f32, HALF, __m512, _mm512_setzero_ps(), _mm512_add_ps, gain, scaled);

#[inline]
#[target_feature(enable = "avx512f")]
fn scaled(x: __m512, gain: f32) -> __m512 {
    _mm512_mul_ps(x, _mm512_set1_ps(gain))
}

/// The two lines of the entries of one sample.
type Sum = [__m512i; 2];

/// Adds to two sums what their words pick from the first `U` tables, in turn.
macro_rules! add_entries {
    ($add:literal, $U:ident, $tables:expr, $words:expr, $sums:expr) => {{
        let [[mut a, mut b], [mut c, mut d]]: [Sum; 2] = $sums;
        let [v, w]: [u64; 2] = $words;
        let table = $tables.lines.as_ptr();
        each_table!($U, G, {
            add_entries!(@ $add, G, table, v, a, b);
            add_entries!(@ $add, G, table, w, c, d);
        });
        [[a, b], [c, d]]
    }};
    (@ $add:literal, $G:ident, $table:ident, $word:ident, $low:ident, $high:ident) => {
        // SAFETY: reads two lines of 64 bytes of table `G`, which has them for each index of
        // five bits, and writes to registers alone.
        unsafe {
            asm!(
                "rorx {at}, {word}, {by}",
                "and {at:e}, {index}",
                "add {at}, {table}",
                concat!($add, " {low}, {low}, [{at} + {first}]"),
                concat!($add, " {high}, {high}, [{at} + {first} + 64]"),
                at = out(reg) _,
                word = in(reg) $word,
                table = in(reg) $table,
                low = inout(zmm_reg) $low,
                high = inout(zmm_reg) $high,
                by = const (64 + GROUP * $G - ENTRY - 1) % 64,
                index = const INDEX << (ENTRY + 1),
                first = const $G * ENTRIES << (ENTRY + 1),
                options(pure, readonly, nostack),
            );
        }
    };
}

/// [`pass_two`](crate::tables::pass_two) for two tiles; the first table has the bits of the words from `shift` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
#[expect(unsafe_code, reason = "instructions whose order is the point of them")]
pub(in crate::tables) fn sum_quantised<const U: usize, const STARTS: bool, const END: u8>(
    (words, shift): (&[u64], usize),
    tables: &Tables<i16, TILE>,
    (unit, start): (f32, &[Wide]),
    theta: &mut [Wide],
    sums: &mut [Quantum],
) {
    let n = words.len();
    let zero = [Wide::ZERO; 2];
    let start: &[Wide; 2] = start.try_into().unwrap_or(&zero);
    let (sums_a, sums_b) = sums[..2 * n].split_at_mut(n);
    let (theta_a, theta_b) = theta[..2 * n].split_at_mut(n);
    let mut r = 0;
    while r < n {
        // The last of an odd number stands twice.
        let at = [r, n.min(r + 2) - 1];
        let before = at.map(|r| if STARTS { [[0; TILE]; 2] } else { [sums_a[r].0, sums_b[r].0] });
        // SAFETY: a line of 64 bytes is a register, and any bits are valid in both.
        let before: [Sum; 2] = unsafe { transmute(before) };
        let after = add_entries!("vpaddw", U, tables, at.map(|r| words[r] >> shift), before);
        // SAFETY: as above.
        let after: [[[i16; TILE]; 2]; 2] = unsafe { transmute(after) };
        for ([a, b], r) in after.into_iter().zip(at).take(n - r) {
            if END == ending::OPEN {
                (sums_a[r].0, sums_b[r].0) = (a, b);
            } else {
                widen::<END>(&a, unit, &start[0], &mut theta_a[r]);
                widen::<END>(&b, unit, &start[1], &mut theta_b[r]);
            }
        }
        r += 2;
    }
}

/// [`sum_lines`](crate::tables::sum_lines) for entries of two lines.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
#[expect(unsafe_code, reason = "instructions whose order is the point of them")]
pub(in crate::tables) fn sum_singles<const U: usize, const N: usize>(
    words: &[u64],
    tables: &Tables<f32, HALF>,
    shift: usize,
    starts: bool,
    part: usize,
    lines: &mut [Line<f32, N>],
) {
    let n = words.len().min(lines.len());
    let mut r = 0;
    while r < n {
        let at = [r, n.min(r + 2) - 1];
        let mut both = [[[0.0; HALF]; 2]; 2];
        if !starts {
            both = at.map(|r| two(&lines[r], part));
        }
        // SAFETY: a line of 64 bytes is a register, and any bits are valid in both.
        let before: [Sum; 2] = unsafe { transmute(both) };
        let after = add_entries!("vaddps", U, tables, at.map(|r| words[r] >> shift), before);
        // SAFETY: as above.
        let after: [[[f32; HALF]; 2]; 2] = unsafe { transmute(after) };
        for (sum, r) in after.into_iter().zip(at).take(n - r) {
            lines[r].0.as_chunks_mut::<HALF>().0[part..part + 2].copy_from_slice(&sum);
        }
        r += 2;
    }
}

/// Columns `16 part..16 part + 32` of a line.
#[inline(always)]
fn two<const N: usize>(line: &Line<f32, N>, part: usize) -> [[f32; HALF]; 2] {
    let parts = line.0.as_chunks::<HALF>().0;
    [parts[part], parts[part + 1]]
}
