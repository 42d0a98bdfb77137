//! Products of real numbers, by the `gemm` crate.

/// A matrix inside a slice: entry `(i, j)` stands at `i * row_stride + j * column_stride`.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Rows and columns.
    pub shape: (usize, usize),
    /// From one row to the next.
    pub row_stride: usize,
    /// From one column to the next.
    pub column_stride: usize,
}

impl View {
    /// Rows one after the other.
    pub fn rows(n_rows: usize, n_columns: usize) -> Self {
        Self { shape: (n_rows, n_columns), row_stride: n_columns, column_stride: 1 }
    }

    /// Rows `stride` apart, of which the first `n_columns` entries are meant.
    pub fn strided(n_rows: usize, n_columns: usize, stride: usize) -> Self {
        Self { shape: (n_rows, n_columns), row_stride: stride, column_stride: 1 }
    }

    /// The same entries with rows and columns exchanged.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self {
            shape: (self.shape.1, self.shape.0),
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }

    /// One past the last entry, at most [`usize::MAX`].
    fn end(self) -> usize {
        let (rows, columns) = self.shape;
        if rows == 0 || columns == 0 {
            return 0;
        }
        let last_row = (rows - 1).saturating_mul(self.row_stride);
        let last_column = (columns - 1).saturating_mul(self.column_stride);
        last_row.saturating_add(last_column).saturating_add(1)
    }
}

/// `c += scale * a b`, on one thread.
///
/// # Panics
///
/// If the shapes do not fit each other, a view reaches beyond its slice, or the entries of `c`
/// overlap.
pub fn multiply_add(c: (&mut [f32], View), a: (&[f32], View), b: (&[f32], View), scale: f32) {
    multiply(c, a, b, (1.0, scale), &By::Library);
}

/// `c = a b`, on one thread. What `c` held does not matter.
///
/// # Panics
///
/// As [`multiply_add`].
pub fn multiply_into(c: (&mut [f32], View), a: (&[f32], View), b: (&[f32], View)) {
    if a.1.shape.1 == 0 {
        let ((rows, columns), view) = (c.1.shape, c.1);
        for i in 0..rows {
            for j in 0..columns {
                c.0[i * view.row_stride + j * view.column_stride] = 0.0;
            }
        }
    }
    multiply(c, a, b, (0.0, 1.0), &By::Library);
}

/// What multiplies the yardstick of the benches.
#[cfg(feature = "yardstick")]
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yardstick {
    /// The best instructions of the machine.
    Best,
    /// AVX2 at most.
    Avx2,
}

/// `c = keep * c + scale * a b` on as many threads of the present pool: the yardstick of the
/// benches, not used by the library.
///
/// # Panics
///
/// As [`multiply_add`].
#[cfg(feature = "yardstick")]
#[doc(hidden)]
pub fn multiply_on(
    (n_threads, yardstick): (usize, Yardstick),
    c: (&mut [f32], View),
    a: (&[f32], View),
    b: (&[f32], View),
    factors: (f32, f32),
) {
    multiply(c, a, b, factors, &By::Yardstick(n_threads, yardstick));
}

/// On whose behalf, and how.
enum By {
    /// On one thread.
    Library,
    #[cfg(feature = "yardstick")]
    Yardstick(usize, Yardstick),
}

fn multiply(
    (c, c_view): (&mut [f32], View),
    (a, a_view): (&[f32], View),
    (b, b_view): (&[f32], View),
    (keep, scale): (f32, f32),
    by: &By,
) {
    let ((m, n), k) = (c_view.shape, a_view.shape.1);
    assert_eq!((a_view.shape, b_view.shape), ((m, k), (k, n)), "multiply_add: shapes must fit");
    assert!(c_view.end() <= c.len(), "multiply_add: the result reaches beyond its slice");
    assert!(a_view.end() <= a.len(), "multiply_add: the first factor reaches beyond its slice");
    assert!(b_view.end() <= b.len(), "multiply_add: the second factor reaches beyond its slice");
    assert!(
        c_view.column_stride == 1 && c_view.row_stride >= n
            || c_view.row_stride == 1 && c_view.column_stride >= m,
        "multiply_add: entries of the result overlap"
    );
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    let stride = |s: usize| s.cast_signed();
    macro_rules! gemm {
        ($gemm:ident, $threads:expr) => {{
            #[expect(unsafe_code, reason = "gemm takes pointers and strides")]
            // SAFETY: every entry of the three views lies inside its slice, as was just checked;
            // `c` is borrowed mutably, so it overlaps neither factor, and its own entries do not
            // overlap.
            unsafe {
                $gemm::gemm(
                    m,
                    n,
                    k,
                    c.as_mut_ptr(),
                    stride(c_view.column_stride),
                    stride(c_view.row_stride),
                    keep != 0.0,
                    a.as_ptr(),
                    stride(a_view.column_stride),
                    stride(a_view.row_stride),
                    b.as_ptr(),
                    stride(b_view.column_stride),
                    stride(b_view.row_stride),
                    keep,
                    scale,
                    false,
                    false,
                    false,
                    $threads,
                );
            }
        }};
    }
    match by {
        By::Library => gemm!(gemm, gemm::Parallelism::None),
        #[cfg(feature = "yardstick")]
        By::Yardstick(0 | 1, Yardstick::Best) => gemm!(gemm, gemm::Parallelism::None),
        #[cfg(feature = "yardstick")]
        By::Yardstick(n, Yardstick::Best) => gemm!(gemm, gemm::Parallelism::Rayon(*n)),
        #[cfg(feature = "yardstick")]
        By::Yardstick(0 | 1, _) => gemm!(gemm_avx2, gemm_avx2::Parallelism::None),
        #[cfg(feature = "yardstick")]
        By::Yardstick(n, _) => gemm!(gemm_avx2, gemm_avx2::Parallelism::Rayon(*n)),
    }
}

#[cfg(test)]
mod tests;
