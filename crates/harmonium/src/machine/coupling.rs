//! Weights between two layers, or inside one.

use super::layer::LayerId;
use super::memory::filled;
use crate::error::Error;
use std::sync::Arc;

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

    /// All entries, row by row.
    pub fn entries(&self) -> &[f64] {
        &self.data
    }

    pub(crate) fn entries_mut(&mut self) -> &mut [f64] {
        &mut self.data
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

/// A symmetric matrix of which only the entries named may differ from zero: a grid, a torus, any
/// graph with few edges.
///
/// Edges are pairs `(i, j)` with `i < j`, in rising order. The pattern is fixed; the weights are
/// what learning changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Edges {
    n: usize,
    /// Shared by the copies that tempering and rewriting make.
    pairs: Arc<[(usize, usize)]>,
    data: Vec<f64>,
}

impl Edges {
    /// Edges between `n` entries, in any order and direction.
    ///
    /// # Errors
    ///
    /// If an edge leads out of the layer or back to where it starts, or occurs twice.
    pub fn new(
        n: usize,
        edges: impl IntoIterator<Item = (usize, usize, f64)>,
    ) -> Result<Self, Error> {
        let sorted = |(i, j, w): (usize, usize, f64)| (i.min(j), i.max(j), w);
        let mut edges: Vec<_> = edges.into_iter().map(sorted).collect();
        edges.sort_by_key(|&(i, j, _)| (i, j));
        let wrong = |pair, reason| Error::Edge { n, pair, reason };
        for &(i, j, _) in &edges {
            if j >= n {
                return Err(wrong((i, j), "leads out of the layer"));
            }
            if i == j {
                return Err(wrong((i, j), "leads back to where it starts"));
            }
        }
        if let Some(two) = edges.windows(2).find(|e| (e[0].0, e[0].1) == (e[1].0, e[1].1)) {
            return Err(wrong((two[0].0, two[0].1), "occurs twice"));
        }
        let pairs = edges.iter().map(|&(i, j, _)| (i, j)).collect();
        Ok(Self { n, pairs, data: edges.iter().map(|e| e.2).collect() })
    }

    /// Number of rows, and of columns.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Which entries are coupled; `i < j`, rising.
    pub fn pairs(&self) -> &[(usize, usize)] {
        &self.pairs
    }

    /// Each edge with its weight.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        self.pairs.iter().zip(&self.data).map(|(&(i, j), &w)| (i, j, w))
    }
}

/// The weights of a coupling.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// $W$: rows belong to the first layer, columns to the second.
    Between(Matrix),
    /// $J$ of a layer coupled with itself, every unit with every other.
    Lateral(Triangle),
    /// $J$ of a layer coupled with itself along few edges.
    Sparse(Edges),
}

impl Weights {
    /// The stored entries: a matrix row by row, a triangle above its diagonal row by row, edges
    /// in their order.
    pub fn entries(&self) -> &[f64] {
        match self {
            Self::Between(matrix) => &matrix.data,
            Self::Lateral(triangle) => &triangle.data,
            Self::Sparse(edges) => &edges.data,
        }
    }

    pub(crate) fn entries_mut(&mut self) -> &mut [f64] {
        match self {
            Self::Between(matrix) => &mut matrix.data,
            Self::Lateral(triangle) => &mut triangle.data,
            Self::Sparse(edges) => &mut edges.data,
        }
    }

    /// Calls `f` with each stored entry: its row, its column and its weight; lateral pairs once.
    pub(crate) fn for_each(&self, mut f: impl FnMut(usize, usize, f64)) {
        match self {
            Self::Between(w) => {
                for i in 0..w.n_rows {
                    w.row(i).iter().enumerate().for_each(|(j, w)| f(i, j, *w));
                }
            }
            Self::Lateral(t) => {
                for i in 0..t.n {
                    t.row(i).iter().enumerate().for_each(|(k, w)| f(i, i + 1 + k, *w));
                }
            }
            Self::Sparse(edges) => edges.iter().for_each(|(i, j, w)| f(i, j, w)),
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

    /// Couples units of one layer with each other along few edges.
    pub fn sparse(layer: LayerId, weights: Edges) -> Self {
        Self { between: (layer, layer), weights: Weights::Sparse(weights) }
    }

    /// Whether the coupling connects a layer with itself.
    pub fn is_lateral(&self) -> bool {
        !matches!(self.weights, Weights::Between(_))
    }

    /// The other end, seen from layer `l`; `None` if the coupling does not touch `l`.
    pub fn other_end(&self, l: LayerId) -> Option<LayerId> {
        match self.between {
            (a, b) if a == l => Some(b),
            (a, b) if b == l => Some(a),
            _ => None,
        }
    }
}
