//! Building of tables: all subset sums of five rows, by doubling.

#[cfg(target_arch = "x86_64")]
use super::x86::avx512;
use super::{ENTRIES, GROUP, MOST_TABLES, Tables};
use crate::line::{Element, HALF, Line, TILE};

/// Writes all subset sums of five rows, `H` columns at a time so that eight entries stay in
/// registers.
#[inline(always)]
fn build<T: Element, const L: usize, const H: usize>(
    table: &mut [Line<T, L>; ENTRIES],
    rows: [&[T; L]; GROUP],
    scale: impl Fn(T) -> T,
) {
    let mut start = 0;
    while start < L {
        let mut r = [[T::ZERO; H]; GROUP];
        for k in 0..GROUP {
            for l in 0..H {
                r[k][l] = scale(rows[k][start + l]);
            }
        }
        let mut low = [[T::ZERO; H]; 8];
        for k in 0..3 {
            for q in 0..1 << k {
                for l in 0..H {
                    low[(1 << k) + q][l] = low[q][l].plus(r[k][l]);
                }
            }
        }
        for q in 0..8 {
            for l in 0..H {
                table[q].0[start + l] = low[q][l];
            }
        }
        for high in 1..4 {
            let mut base = [T::ZERO; H];
            for l in 0..H {
                base[l] = match high {
                    1 => r[3][l],
                    2 => r[4][l],
                    _ => r[3][l].plus(r[4][l]),
                };
            }
            for q in 0..8 {
                for l in 0..H {
                    table[high * 8 + q].0[start + l] = low[q][l].plus(base[l]);
                }
            }
        }
        start += H;
    }
}

/// Five rows from `at` on, `zero` for those from `end` on.
#[inline(always)]
fn five<'z, 'a: 'z, T: 'a, const L: usize>(
    at: usize,
    end: usize,
    row: impl Fn(usize) -> &'a [T; L],
    zero: &'z [T; L],
) -> [&'z [T; L]; GROUP] {
    if at + GROUP <= end {
        return [row(at), row(at + 1), row(at + 2), row(at + 3), row(at + 4)];
    }
    let last = |i: usize| if i < end { row(i) } else { zero };
    [row(at), last(at + 1), last(at + 2), last(at + 3), last(at + 4)]
}

/// Builds the tables of the rows `first..end`, as many as there are or as are alive at a time.
/// Returns how many hold something.
#[inline(always)]
pub(super) fn build_chunk<'a, T: Element + 'a, const L: usize, const H: usize>(
    tables: &mut Tables<T, L>,
    first: usize,
    end: usize,
    row: impl Fn(usize) -> &'a [T; L],
    scale: impl Fn(T) -> T,
) -> usize {
    let used = (end - first).div_ceil(GROUP).min(MOST_TABLES);
    let (all, zero) = (tables.lines.as_chunks_mut::<ENTRIES>().0, [T::ZERO; L]);
    for (g, table) in all.iter_mut().enumerate().take(used) {
        let rows = five(first + g * GROUP, end, &row, &zero);
        build::<T, L, H>(table, rows, &scale);
    }
    used
}

/// [`build_chunk`] by hand, with one line to an entry or two; only for code that is compiled for AVX-512.
macro_rules! build_by_hand {
    ($name:ident, $number:ty, $len:ident, $lines:literal, $by:ident $(, $gain:ident)?) => {
        #[inline(always)]
        pub(super) fn $name<'a>(
            tables: &mut Tables<$number, $len>,
            first: usize,
            end: usize,
            row: impl Fn(usize, usize) -> &'a [$number; $len],
            $($gain: $number,)?
        ) -> usize {
            let used = (end - first).div_ceil(GROUP).min(MOST_TABLES);
            #[cfg(not(target_arch = "x86_64"))]
            let _ = (tables, row $(, $gain)?);
            #[cfg(target_arch = "x86_64")]
            for g in 0..used {
                for w in 0..$lines {
                    let zero = [<$number>::ZERO; $len];
                    let rows = five(first + g * GROUP, end, |i| row(w, i), &zero);
                    let lines = tables.lines.as_chunks_mut::<$lines>().0;
                    let table = &mut lines.as_chunks_mut().0[g];
                    #[expect(unsafe_code, reason = "a function with more features")]
                    // SAFETY: the caller is compiled for AVX-512 and runs only where it was detected.
                    unsafe {
                        avx512::$by(table, w, rows $(, $gain)?);
                    }
                }
            }
            used
        }
    };
}
build_by_hand!(build_singles, f32, HALF, 2, build_single, gain);
build_by_hand!(build_quanta, i16, TILE, 2, build_quantised);
build_by_hand!(build_fields, u16, TILE, 1, build_fields);
