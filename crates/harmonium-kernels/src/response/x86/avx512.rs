//! Comparing by AVX-512, whose masks are bits already.

use crate::line::TILE;
use std::arch::x86_64::{__m512, _CMP_LT_OQ, _mm512_cmp_ps_mask};
use std::mem::transmute;

/// Only for code that is compiled for AVX-512.
#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size, and AVX-512")]
pub(in crate::response) fn below(x: [f32; TILE], y: [f32; TILE]) -> u32 {
    // SAFETY: 128 bytes are two registers of 64, and any bits are valid in both; the callers are
    // compiled for AVX-512 and run only where it was detected.
    unsafe {
        let [x, y] = [x, y].map(|x| transmute::<[f32; TILE], [__m512; 2]>(x));
        let mask = |k: usize| u32::from(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(x[k], y[k]));
        mask(0) | mask(1) << 16
    }
}
