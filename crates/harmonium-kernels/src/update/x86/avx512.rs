//! Sixteen numbers of single precision in a register of AVX-512, and the update of as many columns.
//!
//! The compiler takes arithmetic on arrays of sixteen apart into narrower registers as soon as it is not a plain
//! loop; by name it does what it is told. All of this is only for code that is compiled for AVX-512.
#![expect(unsafe_code, reason = "instructions that need AVX-512")]

use crate::line::{HALF, Row};
use crate::update::{BOTH, FREE, Gradient, Slope};
use std::arch::x86_64::{
    __m256i, __m512, _CMP_NEQ_UQ, _mm512_add_ps, _mm512_and_ps, _mm512_castsi512_ps,
    _mm512_cmp_ps_mask, _mm512_cvtepi16_epi32, _mm512_cvtepi32_ps, _mm512_fmadd_ps,
    _mm512_mask_sub_ps, _mm512_mul_ps, _mm512_or_ps, _mm512_set1_epi32, _mm512_set1_ps,
};
use std::mem::transmute;

/// Sixteen columns of a row.
#[derive(Clone, Copy, Debug)]
pub struct Register(__m512);

// SAFETY of all that follows: the functions are called by code alone that is compiled for AVX-512 and runs
// only where it was detected; arrays of 64 bytes are registers, and any bits are valid in both.
impl Register {
    #[inline(always)]
    pub(crate) fn of(x: &[f32; HALF]) -> Self {
        // SAFETY: see above.
        Self(unsafe { transmute::<[f32; HALF], __m512>(*x) })
    }

    #[inline(always)]
    pub(crate) fn of_sums(x: &[i16; HALF]) -> Self {
        // SAFETY: see above; 32 bytes are half a register.
        Self(unsafe {
            let x = transmute::<[i16; HALF], __m256i>(*x);
            _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(x))
        })
    }

    #[inline(always)]
    pub(crate) fn of_halves(x: [[f32; 8]; 2]) -> Self {
        // SAFETY: see above.
        Self(unsafe { transmute::<[[f32; 8]; 2], __m512>(x) })
    }

    #[inline(always)]
    pub(crate) fn halves(self) -> [[f32; 8]; 2] {
        // SAFETY: see above.
        unsafe { transmute::<__m512, [[f32; 8]; 2]>(self.0) }
    }

    #[inline(always)]
    pub(crate) fn lanes(self) -> [f32; HALF] {
        // SAFETY: see above.
        unsafe { transmute::<__m512, [f32; HALF]>(self.0) }
    }

    #[inline(always)]
    pub(crate) fn plus(self, x: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_add_ps(self.0, x.0) })
    }

    #[inline(always)]
    pub(crate) fn times(self, factor: f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_mul_ps(self.0, _mm512_set1_ps(factor)) })
    }

    /// $s + x f$, rounded once.
    #[inline(always)]
    pub(crate) fn add_scaled(self, x: Self, factor: f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_fmadd_ps(x.0, _mm512_set1_ps(factor), self.0) })
    }

    /// $s + x y$, rounded once.
    #[inline(always)]
    pub(crate) fn add_product(self, x: Self, y: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_fmadd_ps(x.0, y.0, self.0) })
    }

    /// $s - f\,\mathrm{sgn}\,x$.
    #[inline(always)]
    pub(crate) fn minus_signed(self, x: Self, factor: f32) -> Self {
        // SAFETY: see above.
        Self(unsafe {
            let sign = _mm512_castsi512_ps(_mm512_set1_epi32(i32::MIN));
            let signed = _mm512_or_ps(_mm512_and_ps(x.0, sign), _mm512_set1_ps(factor));
            let some = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x.0, _mm512_set1_ps(0.0));
            _mm512_mask_sub_ps(self.0, some, self.0, signed)
        })
    }
}

impl Register {
    /// All zero.
    pub(crate) const ZERO: Self =
        // SAFETY: zero bits are zeros.
        Self(unsafe { transmute::<[f32; HALF], __m512>([0.0; HALF]) });
}

/// [`advance`](crate::update::advance) for 16 columns by AVX-512, for code that is compiled for it: the compiler takes sixteen lanes apart.
#[inline(always)]
pub(crate) fn advance_register<const K: usize, const P: u8, const M: bool, G: Gradient>(
    slope: &Slope<'_, K, G>,
    (row, factors): (G::Row, [f32; K]),
    momentum: f32,
    part: usize,
    w: &mut Row,
    v: &mut Row,
) -> (Register, Register) {
    let (w, v) =
        (&mut w.0.as_chunks_mut::<HALF>().0[part], &mut v.0.as_chunks_mut::<HALF>().0[part]);
    let before = Register::of(w);
    let add = |x: Register| {
        let mut x = slope.gradient.add_register(row, part, x);
        for k in 0..K {
            let z = Register::of(&slope.terms.columns[k].0.as_chunks::<HALF>().0[part]);
            x = x.add_scaled(z, factors[k]);
        }
        if P != FREE {
            x = x.add_scaled(before, slope.decay);
        }
        if P == BOTH {
            x = x.minus_signed(before, slope.l1);
        }
        x
    };
    if !M && K == 0 {
        // Nobody asks for the update itself.
        let after = add(before);
        *w = after.lanes();
        return (after, Register::ZERO);
    }
    let moved = add(if M { Register::of(v).times(momentum) } else { Register::ZERO });
    let after = before.plus(moved);
    *v = moved.lanes();
    *w = after.lanes();
    (after, moved)
}
