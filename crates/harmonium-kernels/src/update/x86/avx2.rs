//! Transposing by AVX.

use std::arch::x86_64::{
    __m128, _mm256_set_m128, _mm256_shuffle_ps, _mm256_unpackhi_ps, _mm256_unpacklo_ps,
};
use std::mem::transmute;

/// Transposes 8 × 8; only for code that is compiled for AVX. Halves of two rows are joined as they are
/// read, so that half of the shuffles of four squares are left.
#[inline(always)]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
pub(in crate::update) fn transpose_eight(x: [[f32; 8]; 8]) -> [[f32; 8]; 8] {
    // SAFETY: eight arrays of 32 bytes are sixteen registers of 16 bytes or eight of 32, and any
    // bits are valid in all; the callers are compiled for AVX2 and run only where it was detected.
    unsafe {
        let x: [[__m128; 2]; 8] = transmute(x);
        let a = _mm256_set_m128(x[4][0], x[0][0]);
        let b = _mm256_set_m128(x[5][0], x[1][0]);
        let c = _mm256_set_m128(x[6][0], x[2][0]);
        let d = _mm256_set_m128(x[7][0], x[3][0]);
        let e = _mm256_set_m128(x[4][1], x[0][1]);
        let f = _mm256_set_m128(x[5][1], x[1][1]);
        let g = _mm256_set_m128(x[6][1], x[2][1]);
        let h = _mm256_set_m128(x[7][1], x[3][1]);
        let (ab, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let (cd, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
        let (ef, ef_high) = (_mm256_unpacklo_ps(e, f), _mm256_unpackhi_ps(e, f));
        let (gh, gh_high) = (_mm256_unpacklo_ps(g, h), _mm256_unpackhi_ps(g, h));
        transmute([
            _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
            _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high),
            _mm256_shuffle_ps::<0b01_00_01_00>(ef, gh),
            _mm256_shuffle_ps::<0b11_10_11_10>(ef, gh),
            _mm256_shuffle_ps::<0b01_00_01_00>(ef_high, gh_high),
            _mm256_shuffle_ps::<0b11_10_11_10>(ef_high, gh_high),
        ])
    }
}
