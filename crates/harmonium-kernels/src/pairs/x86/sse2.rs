//! By instructions that every x86-64 has.

use crate::pairs::{AHEAD, FOUR};
use std::arch::x86_64::{
    __m128i, _mm_unpackhi_epi8, _mm_unpackhi_epi16, _mm_unpacklo_epi8, _mm_unpacklo_epi16,
};
use std::mem::transmute;

/// [`interleave_portable`](crate::pairs::interleave): the compiler moves byte by byte.
#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
pub(in crate::pairs) fn interleave(lists: [[u8; AHEAD]; FOUR]) -> [[u8; FOUR]; AHEAD] {
    // SAFETY: four arrays of 16 bytes are four registers, and any bits are valid in both; the
    // instructions belong to every x86-64.
    unsafe {
        let [a, b, c, d]: [__m128i; FOUR] = transmute(lists);
        let (ab, cd) = (_mm_unpacklo_epi8(a, b), _mm_unpacklo_epi8(c, d));
        let (ab_high, cd_high) = (_mm_unpackhi_epi8(a, b), _mm_unpackhi_epi8(c, d));
        transmute([
            _mm_unpacklo_epi16(ab, cd),
            _mm_unpackhi_epi16(ab, cd),
            _mm_unpacklo_epi16(ab_high, cd_high),
            _mm_unpackhi_epi16(ab_high, cd_high),
        ])
    }
}
