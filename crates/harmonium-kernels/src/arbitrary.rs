//! What the tests of kernels are fed with: sizes, bits and numbers from a seed.

use crate::bits::BitMatrix;
use crate::line::Line;
use crate::random::{Site, Stream};

/// Densities of bits: none, few, half, all.
pub(crate) const DENSITIES: [f64; 4] = [0.0, 0.05, 0.5, 1.0];

/// Whether `HARMONIUM_TEST_SIZES=small` asks for less, because every access is checked and slow.
pub(crate) fn small() -> bool {
    std::env::var_os("HARMONIUM_TEST_SIZES").is_some_and(|v| v == "small")
}

/// Sizes of one dimension: all up to 130, which is more than two of every chunk, tile and panel.
pub(crate) fn sizes() -> Vec<usize> {
    if small() {
        vec![0, 1, 2, 5, 7, 8, 9, 16, 31, 32, 33, 39, 40, 41, 59, 60, 61, 63, 64, 65, 101, 130]
    } else {
        (0..=130).collect()
    }
}

/// A few sizes of the other dimension: odd, even, none.
pub(crate) const FEW: [usize; 5] = [0, 1, 2, 3, 10];

/// Rows of weights and samples as they come in practice, over several blocks.
pub(crate) fn large() -> Vec<(usize, usize)> {
    if small() {
        vec![(321, 3), (784, 2)]
    } else {
        vec![(320, 10), (321, 101), (784, 500), (1000, 101), (1000, 1), (4096, 10)]
    }
}

/// Every pair of sizes that is compared with a reference: each dimension in full beside a few of
/// the other, and the large ones.
pub(crate) fn shapes() -> Vec<(usize, usize)> {
    let mut shapes = Vec::new();
    for n in sizes() {
        for m in FEW {
            shapes.extend([(n, m), (m, n)]);
        }
        shapes.push((41, n));
    }
    shapes.extend(large());
    shapes
}

fn uniforms(n: usize, seed: u64) -> Vec<f64> {
    let mut u = vec![0.0; n];
    Stream::new(seed).uniforms_into(Site::default(), &mut u);
    u
}

/// Bits that are set with a probability.
pub(crate) fn bits(n_rows: usize, n_columns: usize, density: f64, seed: u64) -> BitMatrix {
    let u = uniforms(n_rows * n_columns, seed);
    let mut bits = BitMatrix::zeros(0, n_columns);
    for r in 0..n_rows {
        bits.push_row(|c| u[r * n_columns + c] < density);
    }
    bits
}

/// Which columns of a matrix may be used.
pub(crate) type Kept = fn(usize) -> bool;

/// Columns that are left: all, without some, without whole words and blocks, at borders only.
pub(crate) const KEPT: [Kept; 6] = [
    |_| true,
    |i| i % 3 != 1,
    |i| i / 320 % 2 == 1,
    |i| i % 320 > 250 || i % 320 == 0,
    |i| i % 64 == 63 || i % 320 == 130,
    |i| i.wrapping_mul(0x9E37_79B9) >> 7 & 1 == 1,
];

/// The same bits with nothing in the other columns.
pub(crate) fn keep(bits: &BitMatrix, kept: Kept) -> BitMatrix {
    let mut out = BitMatrix::zeros(0, bits.n_columns());
    (0..bits.n_rows()).for_each(|r| out.push_row(|c| kept(c) && bits.get(r, c)));
    out
}

/// Lines whose numbers are made of uniform variates.
pub(crate) fn lines<T: Copy, const L: usize>(
    n: usize,
    seed: u64,
    make: impl Fn(f64) -> T,
) -> Vec<Line<T, L>> {
    let u = uniforms(n * L, seed);
    (0..n).map(|i| Line(std::array::from_fn(|l| make(u[i * L + l])))).collect()
}

/// Numbers between -1 and 1 that fill all bits of single precision.
#[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
pub(crate) fn real(u: f64) -> f32 {
    (2.0 * u - 1.0) as f32
}

/// Asserts that two runs of lines hold the same bits.
pub(crate) fn assert_same<const L: usize>(a: &[Line<f32, L>], b: &[Line<f32, L>], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        for l in 0..L {
            let (a, b) = (a.0[l], b.0[l]);
            assert_eq!(a.to_bits(), b.to_bits(), "{what}: line {i}, lane {l}: {a} and {b}");
        }
    }
}
