//! Rounding, transposing and counting by AVX2.

use crate::line::HALF;
use crate::quantised::Tally;
use std::arch::x86_64::{
    __m256, __m256i, _mm256_abs_epi16, _mm256_add_epi16, _mm256_adds_epu16, _mm256_cvtps_epi32,
    _mm256_mul_ps, _mm256_packs_epi32, _mm256_permute4x64_epi64, _mm256_set1_ps,
    _mm256_unpackhi_epi16, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi16,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};
use std::mem::transmute;

/// Only for code that is compiled for AVX2.
#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
pub(in crate::quantised) fn quantise_half(w: [f32; HALF], scale: f32) -> [i16; HALF] {
    // SAFETY: an array of 64 bytes is two registers of 32, and any bits are valid in both; the
    // callers are compiled for AVX2 and run only where it was detected.
    unsafe {
        let [a, b]: [__m256; 2] = transmute(w);
        let scale = _mm256_set1_ps(scale);
        let a = _mm256_cvtps_epi32(_mm256_mul_ps(a, scale));
        let b = _mm256_cvtps_epi32(_mm256_mul_ps(b, scale));
        // Packing stops at 32767 and -32768: see `to_i16`.
        let q = _mm256_packs_epi32(a, b);
        // It also works inside each half of the registers; the permutation mends the order.
        transmute(_mm256_permute4x64_epi64::<0b11_01_10_00>(q))
    }
}

/// Only for code that is compiled for AVX2. The compiler would cut the registers in halves, as
/// they are copied.
#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
pub(in crate::quantised) fn count_pairs(rows: &mut Tally<HALF>, pairs: &[[i16; HALF]; 8]) {
    // SAFETY: as above, with arrays of 32 bytes.
    unsafe {
        let mut size: __m256i = transmute(rows.size);
        let mut sum: __m256i = transmute(rows.sum);
        for pair in transmute::<[[i16; HALF]; 8], [__m256i; 8]>(*pairs) {
            size = _mm256_adds_epu16(size, _mm256_abs_epi16(pair));
            sum = _mm256_add_epi16(sum, pair);
        }
        rows.size = transmute::<__m256i, [u16; HALF]>(size);
        rows.sum = transmute::<__m256i, [i16; HALF]>(sum);
    }
}

/// Only for code that is compiled for AVX2.
#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
pub(in crate::quantised) fn transpose_pair(x: [[i16; HALF]; 8]) -> [[i16; HALF]; 8] {
    // SAFETY: as above, with eight arrays of 32 bytes.
    unsafe {
        let x: [__m256i; 8] = transmute(x);
        let two = |a, b| [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)];
        let four = |a, b| [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)];
        let eight = |a, b| [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)];
        let [a0, a1] = two(x[0], x[1]);
        let [a2, a3] = two(x[2], x[3]);
        let [a4, a5] = two(x[4], x[5]);
        let [a6, a7] = two(x[6], x[7]);
        let [b0, b1] = four(a0, a2);
        let [b2, b3] = four(a1, a3);
        let [b4, b5] = four(a4, a6);
        let [b6, b7] = four(a5, a7);
        let (c0, c1) = (eight(b0, b4), eight(b1, b5));
        let (c2, c3) = (eight(b2, b6), eight(b3, b7));
        transmute([c0[0], c0[1], c1[0], c1[1], c2[0], c2[1], c3[0], c3[1]])
    }
}
