//! Packing lanes to bits by instructions that every x86-64 has.

use crate::line::TILE;
use std::arch::x86_64::{__m128i, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32};
use std::mem::transmute;

/// A bit for each lane that is all ones.
#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
pub(in crate::response) fn pack(lanes: [u32; TILE]) -> u32 {
    // SAFETY: 128 bytes are eight registers of 16 bytes, and any bits are valid in both; SSE2
    // is part of every x86-64.
    unsafe {
        let x: [__m128i; 8] = transmute(lanes);
        let bytes = |k: usize| {
            let (a, b) = (_mm_packs_epi32(x[k], x[k + 1]), _mm_packs_epi32(x[k + 2], x[k + 3]));
            _mm_movemask_epi8(_mm_packs_epi16(a, b)).cast_unsigned()
        };
        bytes(0) | bytes(4) << 16
    }
}
