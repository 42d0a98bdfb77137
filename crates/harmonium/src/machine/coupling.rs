//! Weights between two layers, or inside one.

use super::layer::{LayerId, filled};
use crate::error::Error;

/// Row-major dense matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    n_rows: usize,
    n_columns: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// All entries zero.
    ///
    /// # Errors
    ///
    /// If it does not fit into memory.
    pub fn zeros(n_rows: usize, n_columns: usize) -> Result<Self, Error> {
        let what = || format!("a {n_rows}x{n_columns} weight matrix");
        let bytes = n_rows as f64 * n_columns as f64 * 8.0;
        let len = n_rows.checked_mul(n_columns).ok_or(Error::Memory { what: what(), bytes })?;
        Ok(Self { n_rows, n_columns, data: filled(len, 0.0, what)? })
    }

    /// Wraps entries given row by row.
    ///
    /// # Errors
    ///
    /// If they do not fill the shape.
    pub fn from_rows(n_rows: usize, n_columns: usize, data: Vec<f64>) -> Result<Self, Error> {
        if n_rows.checked_mul(n_columns) == Some(data.len()) {
            return Ok(Self { n_rows, n_columns, data });
        }
        let (what, expected) = ("a weight matrix".into(), n_rows.saturating_mul(n_columns));
        Err(Error::Shape { what, expected, found: data.len() })
    }

    /// Builds a matrix from a function of `(row, column)`.
    ///
    /// # Errors
    ///
    /// If it does not fit into memory.
    pub fn from_fn(
        n_rows: usize,
        n_columns: usize,
        mut f: impl FnMut(usize, usize) -> f64,
    ) -> Result<Self, Error> {
        let mut matrix = Self::zeros(n_rows, n_columns)?;
        for (k, x) in matrix.data.iter_mut().enumerate() {
            *x = f(k / n_columns, k % n_columns);
        }
        Ok(matrix)
    }

    /// Number of rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.n_rows, self.n_columns)
    }

    /// The entry at `(row, column)`.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.data[row * self.n_columns + column]
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.data[row * self.n_columns..(row + 1) * self.n_columns]
    }
}

/// A symmetric matrix with nothing on its diagonal: only the entries above it are stored, so an
/// asymmetric one cannot be written down.
#[derive(Clone, Debug, PartialEq)]
pub struct Triangle {
    n: usize,
    data: Vec<f64>,
}

impl Triangle {
    /// All entries zero.
    ///
    /// # Errors
    ///
    /// If it does not fit into memory.
    pub fn zeros(n: usize) -> Result<Self, Error> {
        let what = || format!("lateral weights of {n} units");
        let len = n.checked_mul(n.saturating_sub(1)).map(|k| k / 2);
        let len = len.ok_or(Error::Memory { what: what(), bytes: (n as f64).powi(2) * 4.0 })?;
        Ok(Self { n, data: filled(len, 0.0, what)? })
    }

    /// Builds it from a function of `(row, column)` with row < column.
    ///
    /// # Errors
    ///
    /// If it does not fit into memory.
    pub fn from_fn(n: usize, mut f: impl FnMut(usize, usize) -> f64) -> Result<Self, Error> {
        let mut triangle = Self::zeros(n)?;
        let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        for ((i, j), x) in pairs.zip(&mut triangle.data) {
            *x = f(i, j);
        }
        Ok(triangle)
    }

    /// Number of rows, and of columns.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The entry at `(i, j)`, in either order; zero on the diagonal.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        let (i, j) = (i.min(j), i.max(j));
        if i == j { 0.0 } else { self.row(i)[j - i - 1] }
    }

    /// The entries right of the diagonal in row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[row_range(self.n, i)]
    }
}

/// Where the entries right of the diagonal of row `i` are stored.
pub(crate) fn row_range(n: usize, i: usize) -> std::ops::Range<usize> {
    let start = i * n - i * (i + 1) / 2;
    start..start + n - i - 1
}

/// The weights of a coupling.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// $W$: rows belong to the first layer, columns to the second.
    Between(Matrix),
    /// $J$ of a layer coupled with itself.
    Lateral(Triangle),
}

impl Weights {
    /// The stored entries: a matrix row by row, a triangle above its diagonal row by row.
    pub fn entries(&self) -> &[f64] {
        match self {
            Self::Between(matrix) => &matrix.data,
            Self::Lateral(triangle) => &triangle.data,
        }
    }

    pub(crate) fn entries_mut(&mut self) -> &mut [f64] {
        match self {
            Self::Between(matrix) => &mut matrix.data,
            Self::Lateral(triangle) => &mut triangle.data,
        }
    }

    /// The full matrix, row-major: what a state of the first layer is multiplied with.
    pub(crate) fn dense(&self) -> Vec<f64> {
        match self {
            Self::Between(matrix) => matrix.data.clone(),
            Self::Lateral(t) => (0..t.n * t.n).map(|k| t.at(k / t.n, k % t.n)).collect(),
        }
    }
}

/// Weights between two layers, or inside one layer when the two are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Coupling {
    /// The layers of the rows and of the columns.
    pub between: (LayerId, LayerId),
    /// $W$ or $J$.
    pub weights: Weights,
}

impl Coupling {
    /// Couples two different layers.
    pub fn between(first: LayerId, second: LayerId, weights: Matrix) -> Self {
        Self { between: (first, second), weights: Weights::Between(weights) }
    }

    /// Couples the units of one layer with each other.
    pub fn lateral(layer: LayerId, weights: Triangle) -> Self {
        Self { between: (layer, layer), weights: Weights::Lateral(weights) }
    }

    /// Whether the coupling connects a layer with itself.
    pub fn is_lateral(&self) -> bool {
        matches!(self.weights, Weights::Lateral(_))
    }

    /// The other end, seen from layer `l`; `None` if `l` is no end.
    pub fn other_end(&self, l: LayerId) -> Option<LayerId> {
        match self.between {
            (a, b) if a == l => Some(b),
            (a, b) if b == l => Some(a),
            _ => None,
        }
    }
}
