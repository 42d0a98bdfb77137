//! Cache lines: what the tables hold and the panels are made of.

/// Columns that one thread works on at a time. A word of 64 bits holds one row of them.
pub const PANEL: usize = 64;
/// Columns of a tile of quantised weights, and of natural parameters.
pub const TILE: usize = 32;
/// Columns of a tile of single-precision weights.
pub const HALF: usize = 16;

/// `L` neighbouring columns of one row, aligned to a cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Line<T, const L: usize>(pub [T; L]);

/// 16 weights in single precision.
pub type Single = Line<f32, HALF>;
/// 32 quantised weights.
pub type Quantum = Line<i16, TILE>;
/// 64 small numbers, two to a word: column `l` in the low byte, column `l + 32` in the high one.
pub type Fields = Line<u16, TILE>;
/// One row of a panel of weights.
pub type Row = Line<f32, PANEL>;
/// One row of a panel of summed fields.
pub type Sums = Line<i16, PANEL>;
/// 32 natural parameters, probabilities or scales.
pub type Wide = Line<f32, TILE>;

impl<T: Element, const L: usize> Line<T, L> {
    /// All zero.
    pub const ZERO: Self = Self([T::ZERO; L]);
}

impl Row {
    /// Columns `16 sub..16 sub + 16`.
    #[inline(always)]
    pub fn part(&self, sub: usize) -> &[f32; HALF] {
        &self.0.as_chunks::<HALF>().0[sub]
    }
}

impl<T: Element, const L: usize> Default for Line<T, L> {
    fn default() -> Self {
        Self::ZERO
    }
}

/// The numbers of lines that lie next to each other.
pub fn flat<T, const L: usize>(lines: &[Line<T, L>]) -> &[T] {
    const { assert!(size_of::<Line<T, L>>() == L * size_of::<T>(), "a line holds nothing else") };
    #[expect(unsafe_code, reason = "a line is an array, whatever its alignment")]
    // SAFETY: a line is exactly its array, so `n` lines are `n L` numbers next to each other.
    unsafe {
        std::slice::from_raw_parts(lines.as_ptr().cast::<T>(), lines.len() * L)
    }
}

/// The same, to change them.
pub fn flat_mut<T, const L: usize>(lines: &mut [Line<T, L>]) -> &mut [T] {
    const { assert!(size_of::<Line<T, L>>() == L * size_of::<T>(), "a line holds nothing else") };
    #[expect(unsafe_code, reason = "a line is an array, whatever its alignment")]
    // SAFETY: as in `flat`; the lines are borrowed mutably for as long as the numbers.
    unsafe {
        std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast::<T>(), lines.len() * L)
    }
}

/// A number that tables can add up.
pub trait Element: Copy {
    /// What a table starts with.
    const ZERO: Self;
    /// Their sum; whole numbers wrap, and their users make sure that they do not.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

impl Element for f32 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Element for i16 {
    const ZERO: Self = 0;
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

impl Element for u16 {
    const ZERO: Self = 0;
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_numbers_are_those_of_the_lines() {
        for n in 0..5 {
            let mut lines: Vec<Single> =
                (0..n).map(|i| Line(std::array::from_fn(|l| (16 * i + l) as f32))).collect();
            assert!(lines.as_ptr().addr().is_multiple_of(64));
            assert!(flat(&lines).iter().copied().eq((0..16 * n).map(|x| x as f32)));
            flat_mut(&mut lines).iter_mut().for_each(|x| *x += 1.0);
            for (i, line) in lines.iter().enumerate() {
                assert_eq!(line.0[3], (16 * i + 4) as f32);
            }
        }
        let row: Row = Line(std::array::from_fn(|l| l as f32));
        (0..4).for_each(|sub| assert_eq!(row.part(sub)[5], (16 * sub + 5) as f32));
    }
}
