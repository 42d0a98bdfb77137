//! Gaussian units that see each other, laid out to be drawn together.
//!
//! With all of them free, a row is $x = L^{-\top}(L^{-1}\theta + z)$ ([`crate::gaussian`]): two products
//! with one triangle for all rows. Where some are held, the free ones have the block
//! $\Lambda_{FF}$ and the input $\theta_F - \Lambda_{FH}x_H$.

use crate::gaussian::Block;
use crate::machine::{LayerId, Machine};
use harmonium_kernels::dense::dot;
use harmonium_kernels::real::{View, multiply_add};

/// Gaussian layers that are drawn jointly, and their density given everything else.
#[derive(Clone, Debug)]
pub(crate) struct Joint {
    layers: Vec<LayerId>,
    /// Where the units of each layer begin, and where those of the last end.
    starts: Vec<usize>,
    /// $\Lambda$, row by row.
    precision: Vec<f64>,
    /// All of them free; nothing where $\Lambda$ is not positive definite.
    density: Option<Block>,
    /// $L^{-1}$ in single precision.
    factor: Vec<f32>,
}

impl Joint {
    pub(super) fn new(machine: &Machine, layers: Vec<LayerId>) -> Self {
        let mut starts = vec![0];
        for &l in &layers {
            starts.push(starts[starts.len() - 1] + machine.layer(l).len());
        }
        Self { layers, starts, precision: Vec::new(), density: None, factor: Vec::new() }
    }

    /// Takes over changed parameters.
    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
    pub(super) fn refresh(&mut self, machine: &Machine) {
        let (precision, n) = machine.precision_of(&self.layers);
        self.density = Block::new(precision.clone(), n).ok();
        self.precision = precision;
        self.factor.clear();
        let dense = self.density.as_ref().and_then(Block::dense).unwrap_or_default();
        self.factor.extend(dense.iter().map(|x| *x as f32));
    }

    /// The layers, in rising order.
    pub(crate) fn layers(&self) -> &[LayerId] {
        &self.layers
    }

    /// Each layer, and the place of its units among those of all.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (LayerId, std::ops::Range<usize>)> + '_ {
        let ranges = self.starts.windows(2).map(|w| w[0]..w[1]);
        self.layers.iter().copied().zip(ranges)
    }

    /// Number of units.
    pub(crate) fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// The density with all units free; nothing where there is none.
    pub(crate) fn density(&self) -> Option<&Block> {
        self.density.as_ref()
    }

    /// The density of some of the units, the others held; nothing where there is none.
    pub(crate) fn density_of(&self, free: &[usize]) -> Option<Block> {
        let (n, m) = (self.len(), free.len());
        let entry = |i: usize| free.iter().map(move |&j| self.precision[i * n + j]);
        Block::new(free.iter().flat_map(|&i| entry(i)).collect(), m).ok()
    }

    /// Takes $\Lambda_{FH}x_H$ from the input of the free units; `x` holds all units, zero where they are
    /// free.
    pub(crate) fn take_held(&self, free: &[usize], x: &[f64], theta: &mut [f64]) {
        let n = self.len();
        for (theta, &i) in theta.iter_mut().zip(free) {
            *theta -= dot(&self.precision[i * n..(i + 1) * n], x);
        }
    }

    /// Replaces rows of inputs by $u = L^{-1}\theta$ in single precision.
    pub(crate) fn whiten(&self, n_rows: usize, theta: &[f32], u: &mut [f32]) {
        let n = self.len();
        let rows = View::rows(n_rows, n);
        u.fill(0.0);
        multiply_add((u, rows), (theta, rows), (&self.factor, View::rows(n, n).transposed()), 1.0);
    }

    /// Replaces rows of $u$ by $L^{-\top}u$ in single precision.
    pub(crate) fn colour(&self, n_rows: usize, u: &[f32], x: &mut [f32]) {
        let n = self.len();
        let rows = View::rows(n_rows, n);
        x.fill(0.0);
        multiply_add((x, rows), (u, rows), (&self.factor, View::rows(n, n)), 1.0);
    }
}
