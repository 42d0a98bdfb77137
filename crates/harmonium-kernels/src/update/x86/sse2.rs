//! Adding and interleaving by instructions that every x86-64 has: the compiler does not find them.

use std::arch::x86_64::{
    __m128, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehl_ps, _mm_movelh_ps, _mm_shuffle_ps,
    _mm_unpackhi_ps, _mm_unpacklo_ps,
};
use std::mem::transmute;

/// The sum of two times eight lanes, in the order of its portable twin.
#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
pub(in crate::update) fn total(x: [[f32; 8]; 2]) -> f32 {
    // SAFETY: two arrays of 32 bytes are four registers of 16, and any bits are valid in both;
    // SSE is part of every x86-64.
    unsafe {
        let [a, b, c, d]: [__m128; 4] = transmute(x);
        let four = _mm_add_ps(_mm_add_ps(a, c), _mm_add_ps(b, d));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }
}

/// Transposes 4 × 4.
#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
pub(in crate::update) fn transpose_four(x: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    // SAFETY: four arrays of 16 bytes are four registers of 16 bytes, and any bits are valid
    // in both; SSE is part of every x86-64.
    unsafe {
        let [a, b, c, d]: [__m128; 4] = transmute(x);
        let (low, high) = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
        let (low2, high2) = (_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
        transmute([
            _mm_movelh_ps(low, low2),
            _mm_movehl_ps(low2, low),
            _mm_movelh_ps(high, high2),
            _mm_movehl_ps(high2, high),
        ])
    }
}
