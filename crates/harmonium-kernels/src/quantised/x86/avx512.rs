//! Rounding, transposing and counting by AVX-512.

use crate::line::{PANEL, Quantum, TILE};
use crate::quantised::Tally;
use std::arch::x86_64::{
    __m128i, __m512, __m512i, _mm_add_epi16, _mm_adds_epu16, _mm512_abs_epi16, _mm512_add_epi16,
    _mm512_adds_epu16, _mm512_cvtps_epi32, _mm512_mul_ps, _mm512_packs_epi32,
    _mm512_permutexvar_epi64, _mm512_set_epi64, _mm512_set1_ps, _mm512_setzero_si512,
    _mm512_unpackhi_epi16, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi16,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};
use std::mem::transmute;

/// [`quantise_line`](crate::quantised::quantise_line).
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
pub(in crate::quantised) fn quantise(w: [f32; TILE], scale: f32) -> [i16; TILE] {
    // SAFETY: an array of 128 bytes is two registers of 64, and any bits are valid in both.
    let [a, b]: [__m512; 2] = unsafe { transmute(w) };
    let scale = _mm512_set1_ps(scale);
    let a = _mm512_cvtps_epi32(_mm512_mul_ps(a, scale));
    let b = _mm512_cvtps_epi32(_mm512_mul_ps(b, scale));
    // Packing stops at 32767 and -32768, see `to_i16`. It works inside each quarter of the
    // registers; the permutation mends the order.
    let order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    let q = _mm512_permutexvar_epi64(order, _mm512_packs_epi32(a, b));
    // SAFETY: as above.
    unsafe { transmute(q) }
}

/// Sizes and sums of a [`Tally`] in registers.
#[derive(Clone, Copy)]
struct Counts {
    size: __m512i,
    sum: __m512i,
}

impl Counts {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn add(&mut self, q: __m512i) {
        self.size = _mm512_adds_epu16(self.size, _mm512_abs_epi16(q));
        self.sum = _mm512_add_epi16(self.sum, q);
    }
}

/// [`Strip::finish`](crate::quantised::Strip::finish) for eight rows: the low and the high halves of them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::quantised) fn finish(
    low: &[Quantum; 8],
    high: &[Quantum; 8],
    backward: &mut [Quantum],
    place: usize,
    columns: &mut Tally<PANEL>,
    rows: &mut [u16; 8],
) {
    let zero = _mm512_setzero_si512();
    let mut of_rows = Counts { size: zero, sum: zero };
    let (left, right) = backward[..PANEL].split_at_mut(TILE);
    finish_half(low, left, place, columns, 0, &mut of_rows);
    finish_half(high, right, place, columns, 1, &mut of_rows);
    let totals = of_rows.quarters();
    for l in 0..8 {
        rows[l] = totals.most(l);
    }
}

/// Half of them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[expect(unsafe_code, reason = "arrays and registers of one size")]
fn finish_half(
    lines: &[Quantum; 8],
    out: &mut [Quantum],
    place: usize,
    columns: &mut Tally<PANEL>,
    half: usize,
    of_rows: &mut Counts,
) {
    // SAFETY: a line of 64 bytes is a register, and any bits are valid in both.
    let x = lines.each_ref().map(|line| unsafe { transmute::<[i16; TILE], __m512i>(line.0) });
    let sizes = &mut columns.size.as_chunks_mut::<TILE>().0[half];
    let sums = &mut columns.sum.as_chunks_mut::<TILE>().0[half];
    // SAFETY: as above.
    let mut counts = unsafe {
        Counts {
            size: transmute::<[u16; TILE], __m512i>(*sizes),
            sum: transmute::<[i16; TILE], __m512i>(*sums),
        }
    };
    for q in x {
        counts.add(q);
    }
    // SAFETY: as above.
    unsafe {
        *sizes = transmute::<__m512i, [u16; TILE]>(counts.size);
        *sums = transmute::<__m512i, [i16; TILE]>(counts.sum);
    }
    let out = &mut out[..TILE];
    // Quarter `k` of register `j`: column `8 k + j`.
    for (j, column) in transposed(&x).into_iter().enumerate() {
        of_rows.add(column);
        // SAFETY: a register is four arrays of 16 bytes, and any bits are valid in both.
        let quarters: [[i16; 8]; 4] = unsafe { transmute(column) };
        for (k, quarter) in quarters.into_iter().enumerate() {
            out[8 * k + j].0.as_chunks_mut::<8>().0[place] = quarter;
        }
    }
}

impl Counts {
    /// Four tallies of the same eight rows as one.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[expect(unsafe_code, reason = "arrays and registers of one size")]
    fn quarters(self) -> Tally<8> {
        // SAFETY: a register of 64 bytes is four of 16, and any bits are valid in all.
        let (size, sum) = unsafe {
            let size: [__m128i; 4] = transmute(self.size);
            let sum: [__m128i; 4] = transmute(self.sum);
            (size, sum)
        };
        let size =
            _mm_adds_epu16(_mm_adds_epu16(size[0], size[1]), _mm_adds_epu16(size[2], size[3]));
        let sum = _mm_add_epi16(_mm_add_epi16(sum[0], sum[1]), _mm_add_epi16(sum[2], sum[3]));
        // SAFETY: arrays of 16 bytes are registers of 16.
        unsafe {
            Tally {
                size: transmute::<__m128i, [u16; 8]>(size),
                sum: transmute::<__m128i, [i16; 8]>(sum),
            }
        }
    }
}

/// Transposes 8 × 32: quarter `k` of register `j` holds column `8 k + j`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn transposed(x: &[__m512i; 8]) -> [__m512i; 8] {
    let [a0, a1] = [_mm512_unpacklo_epi16(x[0], x[1]), _mm512_unpackhi_epi16(x[0], x[1])];
    let [a2, a3] = [_mm512_unpacklo_epi16(x[2], x[3]), _mm512_unpackhi_epi16(x[2], x[3])];
    let [a4, a5] = [_mm512_unpacklo_epi16(x[4], x[5]), _mm512_unpackhi_epi16(x[4], x[5])];
    let [a6, a7] = [_mm512_unpacklo_epi16(x[6], x[7]), _mm512_unpackhi_epi16(x[6], x[7])];
    let [b0, b1] = [_mm512_unpacklo_epi32(a0, a2), _mm512_unpackhi_epi32(a0, a2)];
    let [b2, b3] = [_mm512_unpacklo_epi32(a1, a3), _mm512_unpackhi_epi32(a1, a3)];
    let [b4, b5] = [_mm512_unpacklo_epi32(a4, a6), _mm512_unpackhi_epi32(a4, a6)];
    let [b6, b7] = [_mm512_unpacklo_epi32(a5, a7), _mm512_unpackhi_epi32(a5, a7)];
    [
        _mm512_unpacklo_epi64(b0, b4),
        _mm512_unpackhi_epi64(b0, b4),
        _mm512_unpacklo_epi64(b1, b5),
        _mm512_unpackhi_epi64(b1, b5),
        _mm512_unpacklo_epi64(b2, b6),
        _mm512_unpackhi_epi64(b2, b6),
        _mm512_unpacklo_epi64(b3, b7),
        _mm512_unpackhi_epi64(b3, b7),
    ]
}
