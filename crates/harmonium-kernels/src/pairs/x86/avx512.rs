//! By AVX-512: lists of pairs, and sums of them with one or two lines of 64 bytes for each entry.

use crate::line::{HALF, Line, TILE};
use crate::pairs::{BEYOND, ENTRIES, FOUR, ROOM, STRIP};
use std::arch::asm;
use std::arch::x86_64::{
    __m512i, _mm512_mask_add_epi8, _mm512_maskz_compress_epi8, _mm512_set1_epi8, _pext_u64,
};
use std::mem::transmute;

/// All pairs of a strip at once: which have a first bit, which a second, and then the bytes of those
/// that have any next to each other.
#[inline(always)]
pub(in crate::pairs) fn list_strip<'a, I: Iterator<Item = &'a [u64]>>(
    rows: I,
    first: usize,
    listed: &mut [[u8; ROOM]],
    lengths: &mut [usize],
) {
    const { assert!(STRIP == 160, "64 pairs and 16") };
    for ((row, out), length) in rows.zip(listed).zip(lengths) {
        let word = |k: usize| row.get(first / 64 + k).copied().unwrap_or(0);
        let [a, b, c] = [word(0), word(1), word(2)];
        let bits = if first.is_multiple_of(64) {
            [a, b, c & 0xffff_ffff]
        } else {
            [a >> 32 | b << 32, b >> 32 | c << 32, c >> 32]
        };
        #[expect(unsafe_code, reason = "a function with more features")]
        // SAFETY: the caller is compiled for AVX-512 and runs only where it was detected.
        unsafe {
            *length = list(bits, out);
        }
    }
}

/// Lists the entries of 160 bits, zeros after the last; says how many there are.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
fn list(bits: [u64; 3], out: &mut [u8; ROOM]) -> usize {
    /// 3k for 64 pairs; the last sixteen begin with 192.
    const PLACES: [u8; 64] = {
        let (mut places, mut k) = ([0; 64], 0);
        while k < 64 {
            #[expect(clippy::cast_possible_truncation, reason = "at most 189")]
            let place = 3 * k as u8;
            places[k] = place;
            k += 1;
        }
        places
    };
    const FIRST: u64 = 0x5555_5555_5555_5555;
    let split = |mask: u64| bits.map(|word| _pext_u64(word, mask));
    let (first, second) = (split(FIRST), split(!FIRST));
    let (ones, twos) = (_mm512_set1_epi8(1), _mm512_set1_epi8(2));
    // SAFETY: 64 bytes are a register, and any bits are valid in both.
    let places: __m512i = unsafe { transmute(PLACES) };
    let entries = |first: u64, second: u64, places: __m512i| {
        let one = _mm512_mask_add_epi8(places, first, places, ones);
        let both = _mm512_mask_add_epi8(one, second, one, twos);
        let packed = _mm512_maskz_compress_epi8(first | second, both);
        // SAFETY: as above.
        let packed: [u8; 64] = unsafe { transmute(packed) };
        (packed, (first | second).count_ones() as usize)
    };
    let many = entries(first[0] | first[1] << 32, second[0] | second[1] << 32, places);
    let last =
        _mm512_mask_add_epi8(places, u64::MAX, places, _mm512_set1_epi8(192_u8.cast_signed()));
    let few = entries(first[2], second[2], last);
    out[..64].copy_from_slice(&many.0);
    out[64..].fill(0);
    out[many.1..many.1 + 16].copy_from_slice(&few.0[..16]);
    many.1 + few.1
}

/// Declares what adds to the sums of four samples the lines that their entries name: one each, as the
/// version for AVX2 does, or two.
///
/// Where a line stands costs as many instructions for two as for one, and a core that reads two
/// lines a cycle would wait for them: so two tiles go together where there are samples enough. The
/// address stands in one register, since an instruction with two would be taken apart.
macro_rules! gather {
    ($name:ident, $number:ty, $len:ident, $add:literal, $shift:literal, [$($part:literal: $a:ident $b:ident $c:ident $d:ident),*]) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,bmi2")]
        #[expect(unsafe_code, reason = "a loop whose order is the point of it")]
        pub(in crate::pairs) fn $name(
            table: &[[Line<$number, $len>; $shift - 5]; ENTRIES],
            entries: &[[u8; FOUR]],
            sums: [[[$number; $len]; $shift - 5]; FOUR],
        ) -> [[[$number; $len]; $shift - 5]; FOUR] {
            let n = entries.len() - BEYOND;
            if n == 0 {
                return sums;
            }
            // SAFETY: a line is a register, and any bits are valid in both. The loop ends after
            // `n` turns and reads `n + BEYOND` entries, as many as there are. A turn turns each
            // byte of an entry to the place of one or two lines of 64 bytes: at most the 255th of
            // 256 such places. It writes to its registers alone.
            unsafe {
                let [[$(mut $a),*], [$(mut $b),*], [$(mut $c),*], [$(mut $d),*]]:
                    [[__m512i; $shift - 5]; FOUR] = transmute(sums);
                asm!(
                    "mov {now:e}, [{entry}]",
                    "mov {next:e}, [{entry} + 4]",
                    ".p2align 5",
                    "2:",
                    "rorx {at:e}, {now:e}, {first}",
                    "and {at:e}, {mask}",
                    "add {at}, {table}",
                    $(concat!($add, " {", stringify!($a), "}, {", stringify!($a), "}, [{at} + ", $part, "]"),)*
                    "rorx {at:e}, {now:e}, {second}",
                    "and {at:e}, {mask}",
                    "add {at}, {table}",
                    $(concat!($add, " {", stringify!($b), "}, {", stringify!($b), "}, [{at} + ", $part, "]"),)*
                    "rorx {at:e}, {now:e}, {third}",
                    "and {at:e}, {mask}",
                    "add {at}, {table}",
                    $(concat!($add, " {", stringify!($c), "}, {", stringify!($c), "}, [{at} + ", $part, "]"),)*
                    "rorx {at:e}, {now:e}, {fourth}",
                    "and {at:e}, {mask}",
                    "add {at}, {table}",
                    $(concat!($add, " {", stringify!($d), "}, {", stringify!($d), "}, [{at} + ", $part, "]"),)*
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
                    mask = const 0xff << $shift,
                    first = const 32 - $shift,
                    second = const (40 - $shift) % 32,
                    third = const 16 - $shift,
                    fourth = const 24 - $shift,
                    $($a = inout(zmm_reg) $a, $b = inout(zmm_reg) $b, $c = inout(zmm_reg) $c, $d = inout(zmm_reg) $d,)*
                    options(pure, readonly, nostack),
                );
                transmute([[$($a),*], [$($b),*], [$($c),*], [$($d),*]])
            }
        }
    };
}
gather!(gather_single, f32, HALF, "vaddps", 6, [0: a b c d]);
gather!(gather_quantised, i16, TILE, "vpaddw", 6, [0: a b c d]);
gather!(gather_single_two, f32, HALF, "vaddps", 7, [0: a b c d, 64: e f g h]);
gather!(gather_quantised_two, i16, TILE, "vpaddw", 7, [0: a b c d, 64: e f g h]);
