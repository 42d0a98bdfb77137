//! Products of means and weights by AVX2.

use crate::line::{PANEL, Sums, TILE};
use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_madd_epi16, _mm256_permute2x128_si256, _mm256_set1_epi32,
    _mm256_setzero_si256, _mm256_unpackhi_epi16, _mm256_unpacklo_epi16,
};
use std::mem::transmute;

#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size, and AVX2")]
pub(in crate::means) fn interleave(a: &[i16; TILE], b: &[i16; TILE]) -> [i16; PANEL] {
    // SAFETY: the caller is compiled for AVX2 and runs only where it was detected; 64 bytes are
    // two registers of 32, and any bits are valid in all of them.
    unsafe {
        let a: [__m256i; 2] = transmute(*a);
        let b: [__m256i; 2] = transmute(*b);
        let half = |k: usize| {
            let (low, high) =
                (_mm256_unpacklo_epi16(a[k], b[k]), _mm256_unpackhi_epi16(a[k], b[k]));
            [
                _mm256_permute2x128_si256::<0x20>(low, high),
                _mm256_permute2x128_si256::<0x31>(low, high),
            ]
        };
        transmute([half(0), half(1)])
    }
}

#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size, and AVX2")]
pub(in crate::means) fn sums(packed: &[Sums], [first, second]: [&[u32]; 2]) -> [[i32; TILE]; 2] {
    // SAFETY: as above; 128 bytes are four registers of 32.
    unsafe {
        let mut sums = [[_mm256_setzero_si256(); 4]; 2];
        for ((pair, &a), &b) in packed.iter().zip(first).zip(second) {
            let weights: [__m256i; 4] = transmute(pair.0);
            let means = [_mm256_set1_epi32(a.cast_signed()), _mm256_set1_epi32(b.cast_signed())];
            for q in 0..4 {
                for n in 0..2 {
                    let products = _mm256_madd_epi16(weights[q], means[n]);
                    sums[n][q] = _mm256_add_epi32(sums[n][q], products);
                }
            }
        }
        transmute(sums)
    }
}
