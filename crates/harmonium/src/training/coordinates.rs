//! The coordinates in which a machine with real columns learns.
//!
//! Real columns come in any unit, and columns that go together leave directions in which they hardly vary.
//! Steps of one size in all parameters would be too long here and too short there. So a visible Gaussian layer learns
//! in coordinates in which its data is white,
//! $$y = L^\top(x - \mu), \qquad \Lambda_0 = LL^\top,$$
//! where $\Lambda_0$ is where training starts: the inverse of the shrunk covariance if the layer is coupled with
//! itself, else one over the variances. With $W = LW_y$, $b = Lb_y$ and $\Lambda = L\Lambda_yL^\top$ the slopes are
//! $$g_{W_y} = L^\top g_W,\qquad g_{b_y} = L^\top g_b,\qquad g_{\Lambda_y} = L^\top g_\Lambda L,$$
//! and an update goes back by $L$ (Amari 1998: the metric of the Gaussian at the start). Penalties, momentum and clipping see the
//! coordinates $y$. Columns in other units, or moved, then learn the same model, step by step, up to rounding.
//!
//! - The precision is learned around the offset, $\tfrac12\gamma(x-\mu)^2$: an update of $\gamma$ moves the
//!   bias by $\mu\,\Delta\gamma$, so that it does not move the mean. On its own it is learned on a logarithmic
//!   scale, as part of $\Lambda_y$ on a plain one.
//! - Covariances of the data side are shrunk as those of the start are, $C_{ij} \to C_{ij} -
//!   \lambda R_{ij}\sigma_i\sigma_j$. Without hidden units the start is then where learning ends; with them, what few rows
//!   say about correlations is believed no more than before. What is learned of labels given the columns says nothing
//!   about their covariance and takes nothing.
//! - Precisions stay inside [`PRECISION`] times where they start.
//!
//! Columns of whole numbers learn in units of their standard deviation, and the dispersion of counts so that it does not
//! move the mean; their distributions exist whatever the parameters are.

use crate::engine::Reduce;
use crate::error::Error;
use crate::gaussian::cholesky;
use crate::machine::{Coupling, LayerId, Machine, Role, Weights, row_range};
use crate::moments::Moments;
use crate::schema::Feed;
use crate::spread::Correlations;
use crate::units::gaussian::PRECISION;
use harmonium_kernels::dense::{add_scaled, dot};
use std::borrow::Cow;

/// How much slower precisions are learned than weights: they are sums over everything that weights change.
const SLOWER: f64 = 0.3;
/// Units up to which a coupled layer learns in coordinates of its own: more would cost more than they save.
const MOST_TOGETHER: usize = 512;

/// The coordinates of all layers.
#[derive(Clone, Debug, Default)]
pub(super) struct Coordinates {
    layers: Vec<White>,
    /// The share of what is climbed that is the likelihood of the columns: what shrinkage takes.
    share: f64,
    /// Whether all who learn together have the same.
    shared: bool,
}

/// Coordinates in which the data of a visible layer of numbers is white.
#[derive(Clone, Debug)]
pub(super) struct White {
    layer: LayerId,
    /// The coupling of the layer with itself, where it is dense.
    lateral: Option<usize>,
    columns: Correlations,
    /// Whether the columns are real numbers, with a precision each.
    real: bool,
    form: Form,
    /// Where the precisions start.
    start: Vec<f64>,
}

/// $L$.
#[derive(Clone, Debug)]
enum Form {
    /// One over the standard deviation of each column.
    Each(Vec<f64>),
    /// A lower triangle, row by row.
    Together(Vec<f64>),
}

impl Coordinates {
    /// Of the visible layers of numbers of `machine`, from the data that it learns; `share` is that of the
    /// likelihood of the columns in what is climbed.
    pub(super) fn of(machine: &Machine, feed: &Feed<'_>, share: f64) -> Self {
        let numbers = |l: LayerId| machine.is_gaussian(l) || machine.layer(l).units.sums_own();
        let visible = |l: &LayerId| machine.layer(*l).role == Role::Visible && numbers(*l);
        let layers = machine.layer_ids().filter(visible).map(|l| {
            let lateral = dense_lateral(machine, l);
            White::new(l, lateral, columns_of(machine, feed, l), machine.is_gaussian(l))
        });
        Self { layers: layers.collect(), share, shared: false }
    }

    /// Lets all who learn together learn in the same coordinates.
    pub(super) fn share(&mut self, reduce: &mut dyn Reduce) -> Result<(), Error> {
        if std::mem::replace(&mut self.shared, true) {
            return Ok(());
        }
        for white in &mut self.layers {
            reduce.average(&mut white.columns.numbers_mut())?;
            *white = White::new(white.layer, white.lateral, white.columns.clone(), white.real);
        }
        Ok(())
    }

    /// Whether no layer has any.
    pub(super) fn is_none(&self) -> bool {
        self.layers.is_empty()
    }

    /// Those of a layer, if it has any.
    fn of_layer(&self, l: LayerId) -> Option<&White> {
        self.layers.iter().find(|white| white.layer == l)
    }

    /// Whether a coupling has a penalty: what Gaussian units send each other is shrunk instead.
    fn is_shrunk(&self, c: usize) -> bool {
        self.layers.iter().any(|white| white.real && white.lateral == Some(c))
    }

    /// Brings the slopes of the likelihood to these coordinates, those of own parameters to the scale on
    /// which they are learned.
    pub(super) fn bring(&self, machine: &Machine, gradient: &mut Moments) {
        for l in machine.layer_ids() {
            match self.of_layer(l) {
                Some(white) => white.bring(machine, gradient, self.share),
                None => to_learning_scale(machine, l, gradient),
            }
        }
    }

    /// The weights of each coupling in these coordinates; none of those that are shrunk.
    pub(super) fn weights<'m>(&self, machine: &'m Machine) -> Vec<Cow<'m, [f64]>> {
        let of = |(c, coupling): (usize, &'m Coupling)| {
            if self.is_shrunk(c) {
                return Cow::Borrowed(&[][..]);
            }
            let mut weights = Cow::Borrowed(coupling.weights.entries());
            for white in self.layers.iter().filter(|_| !coupling.is_lateral()) {
                if let Some(rows) = ends(machine, c, white.layer) {
                    white.turn_weights(weights.to_mut(), rows, Turn::Unmix);
                }
            }
            weights
        };
        machine.couplings().iter().enumerate().map(of).collect()
    }

    /// Brings an update back to the parameters of the machine.
    pub(super) fn send_back(&self, machine: &Machine, update: &mut Moments) {
        self.layers.iter().for_each(|white| white.send_back(machine, update));
    }

    /// Adds `scale` times an update that was sent back. Own parameters move on the scale on which they are
    /// learned, and stay in their bounds.
    pub(super) fn apply(&self, machine: &mut Machine, update: &Moments, scale: f64) {
        for (l, layer) in machine.layers_mut().iter_mut().enumerate() {
            add_scaled(&mut layer.bias, scale, &update.bias[l]);
            let len = layer.len();
            let white = self.of_layer(LayerId(l));
            let rows = layer.own.chunks_exact_mut(len).zip(update.own[l].chunks_exact(len));
            for (parameter, (own, steps)) in layer.units.own_parameters().iter().zip(rows) {
                for (i, (own, u)) in own.iter_mut().zip(steps).enumerate() {
                    let Some(white) = white else {
                        *own = parameter.within(parameter.moved(*own, scale * u), *own);
                        continue;
                    };
                    let before = *own;
                    *own = match white.form {
                        Form::Together(_) => *own + scale * u,
                        Form::Each(_) if white.real => {
                            white.bounded(i, parameter.moved(*own, scale * u))
                        }
                        Form::Each(_) => parameter.within(parameter.moved(*own, scale * u), *own),
                    };
                    layer.bias[i] += layer.units.own_slope(layer.offset[i]) * (*own - before);
                }
            }
        }
        for (c, u) in machine.couplings_mut().iter_mut().zip(&update.weights) {
            add_scaled(c.weights.entries_mut(), scale, u);
        }
    }

    /// Brings precisions of coupled units that left their bounds back to them. Rows and columns of $\Lambda$ are scaled,
    /// which keeps it positive definite.
    pub(super) fn bound(&self, machine: &mut Machine) {
        for white in &self.layers {
            let (Form::Together(_), Some(c)) = (&white.form, white.lateral) else { continue };
            let layer = &mut machine.layers_mut()[white.layer.0];
            let mut factors = vec![1.0; layer.len()];
            for (i, factor) in factors.iter_mut().enumerate() {
                let bounded = white.bounded(i, layer.own[i]);
                if bounded != layer.own[i] {
                    *factor = (bounded / layer.own[i]).sqrt();
                    layer.bias[i] += layer.offset[i] * (bounded - layer.own[i]);
                    layer.own[i] = bounded;
                }
            }
            if factors.iter().any(|f| *f != 1.0) {
                let n = factors.len();
                let entries = machine.couplings_mut()[c].weights.entries_mut();
                for i in 0..n {
                    let row = entries[row_range(n, i)].iter_mut().zip(&factors[i + 1..]);
                    row.for_each(|(w, f)| *w *= factors[i] * f);
                }
            }
        }
    }
}

/// The coupling of a layer with itself, where it is dense.
pub(super) fn dense_lateral(machine: &Machine, l: LayerId) -> Option<usize> {
    let dense = |c: &Coupling| c.between == (l, l) && matches!(c.weights, Weights::Lateral(_));
    machine.couplings().iter().position(dense)
}

/// How the columns of a visible layer of numbers vary; together where it is real and has a dense lateral coupling.
pub(super) fn columns_of(machine: &Machine, feed: &Feed<'_>, l: LayerId) -> Correlations {
    let lateral = dense_lateral(machine, l).filter(|_| machine.is_gaussian(l));
    let together = lateral.and_then(|_| Correlations::of(machine, feed, &[l]));
    together.unwrap_or_else(|| Correlations::none(machine, feed, &[l]))
}

/// The slopes of own parameters along the scales on which they are learned: precisions on a
/// logarithmic one, where they cannot become negative.
fn to_learning_scale(machine: &Machine, l: LayerId, gradient: &mut Moments) {
    let layer = machine.layer(l);
    let rows = gradient.own[l.0].chunks_exact_mut(layer.len()).enumerate();
    for (parameter, (k, row)) in layer.units.own_parameters().iter().zip(rows) {
        let entries = row.iter_mut().zip(layer.own().row(k));
        entries.for_each(|(g, own)| *g = parameter.gradient(*own, *g));
    }
}

/// Where the entries of a layer stand in the weights of a coupling with another layer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends {
    /// Its rows, so many columns wide.
    Rows(usize),
    /// Its columns.
    Columns,
}

/// What is done to a vector of a layer.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// $L^\top v$.
    Bring,
    /// $Lv$.
    Send,
    /// $L^{-1}v$.
    Unmix,
}

/// How a layer is part of a coupling with another one.
pub(super) fn ends(machine: &Machine, c: usize, l: LayerId) -> Option<Ends> {
    let (a, b) = machine.couplings()[c].between;
    if a == b {
        return None;
    }
    if a == l {
        return Some(Ends::Rows(machine.layer(b).len()));
    }
    (b == l).then_some(Ends::Columns)
}

impl White {
    pub(super) fn new(
        layer: LayerId,
        lateral: Option<usize>,
        columns: Correlations,
        real: bool,
    ) -> Self {
        let n = columns.len();
        let scales = || columns.deviations.iter().map(|s| s.recip());
        let (form, start) = if real && lateral.is_some() && n <= MOST_TOGETHER {
            let mut precision = columns.precision();
            let start = precision.iter().copied().step_by(n + 1).collect();
            match cholesky(&mut precision, n) {
                Ok(_) => (Form::Together(precision), start),
                Err(_) => (Form::Each(scales().collect()), start),
            }
        } else {
            (Form::Each(scales().collect()), scales().map(|s| s * s).collect())
        };
        Self { layer, lateral, columns, real, form, start }
    }

    /// Turns a vector.
    fn turn(&self, v: &mut [f64], turn: Turn) {
        let n = v.len();
        match (&self.form, turn) {
            (Form::Each(scales), Turn::Unmix) => {
                v.iter_mut().zip(scales).for_each(|(v, s)| *v /= s);
            }
            (Form::Each(scales), _) => v.iter_mut().zip(scales).for_each(|(v, s)| *v *= s),
            (Form::Together(l), Turn::Bring) => {
                for i in 0..n {
                    let vi = std::mem::take(&mut v[i]);
                    add_scaled(&mut v[..=i], vi, &l[i * n..=i * n + i]);
                }
            }
            (Form::Together(l), Turn::Send) => {
                for i in (0..n).rev() {
                    v[i] = dot(&l[i * n..=i * n + i], &v[..=i]);
                }
            }
            (Form::Together(l), Turn::Unmix) => {
                for i in 0..n {
                    v[i] = (v[i] - dot(&l[i * n..i * n + i], &v[..i])) / l[i * n + i];
                }
            }
        }
    }

    /// Turns all vectors that the weights of a coupling have for the entries of the layer.
    fn turn_weights(&self, weights: &mut [f64], ends: Ends, turn: Turn) {
        let n = self.columns.len();
        let width = match ends {
            Ends::Columns => {
                weights.chunks_exact_mut(n).for_each(|vector| self.turn(vector, turn));
                return;
            }
            Ends::Rows(width) => width,
        };
        let Form::Together(l) = &self.form else {
            let mut factors = vec![1.0; n];
            self.turn(&mut factors, turn);
            for (row, f) in weights.chunks_exact_mut(width).zip(&factors) {
                row.iter_mut().for_each(|w| *w *= f);
            }
            return;
        };
        // As for one vector, a row in the place of a number.
        let order: Box<dyn Iterator<Item = usize>> =
            if matches!(turn, Turn::Send) { Box::new((0..n).rev()) } else { Box::new(0..n) };
        for i in order {
            let (above, rest) = weights.split_at_mut(i * width);
            let row = &mut rest[..width];
            let l = &l[i * n..=i * n + i];
            if matches!(turn, Turn::Send) {
                row.iter_mut().for_each(|w| *w *= l[i]);
            }
            for (other, l) in above.chunks_exact_mut(width).zip(l) {
                match turn {
                    Turn::Bring => add_scaled(other, *l, row),
                    Turn::Send => add_scaled(row, *l, other),
                    Turn::Unmix => add_scaled(row, -l, other),
                }
            }
            match turn {
                Turn::Bring => row.iter_mut().for_each(|w| *w *= l[i]),
                Turn::Send => {}
                Turn::Unmix => row.iter_mut().for_each(|w| *w /= l[i]),
            }
        }
    }

    /// Brings weights in these coordinates to those of the machine.
    pub(super) fn send_weights(&self, weights: &mut [f64], ends: Ends) {
        self.turn_weights(weights, ends, Turn::Send);
    }

    /// Whether the units of the layer share their coordinates.
    pub(super) fn is_together(&self) -> bool {
        matches!(self.form, Form::Together(_))
    }

    /// The precision matrix in the machine's coordinates of one in these, row by row.
    pub(super) fn send_precision(&self, precision: &mut [f64]) {
        let n = self.columns.len();
        for _ in 0..2 {
            precision.chunks_exact_mut(n).for_each(|row| self.turn(row, Turn::Send));
            transpose(precision, n);
        }
    }

    /// Where each precision starts.
    pub(super) fn start(&self) -> &[f64] {
        &self.start
    }

    fn bring(&self, machine: &Machine, gradient: &mut Moments, share: f64) {
        let (l, layer, n) = (self.layer.0, machine.layer(self.layer), self.columns.len());
        // Around the offset: the bias follows the precision.
        let bias = gradient.bias[l].clone();
        for (i, g) in gradient.own[l].iter_mut().enumerate() {
            *g += layer.units.own_slope(layer.offset[i % n]) * bias[i % n];
        }
        self.turn(&mut gradient.bias[l], Turn::Bring);
        for (c, weights) in gradient.weights.iter_mut().enumerate() {
            if let Some(ends) = ends(machine, c, self.layer) {
                self.turn_weights(weights, ends, Turn::Bring);
            }
        }
        if let Some(c) = self.lateral.filter(|_| self.real) {
            for i in 0..n {
                let row = &mut gradient.weights[c][row_range(n, i)];
                row.iter_mut()
                    .enumerate()
                    .for_each(|(k, g)| *g -= share * self.columns.taken(i, i + 1 + k));
            }
        }
        match &self.form {
            Form::Each(scales) => {
                to_learning_scale(machine, self.layer, gradient);
                self.scale_lateral(scales, gradient);
            }
            Form::Together(_) => self.turn_precision(gradient, Turn::Bring),
        }
        gradient.own[l].iter_mut().for_each(|g| *g *= SLOWER);
        if let Some(c) = self.lateral {
            // A pair is two entries of the precision: steps are steepest where both count.
            gradient.weights[c].iter_mut().for_each(|g| *g *= 0.5 * SLOWER);
        }
    }

    fn send_back(&self, machine: &Machine, update: &mut Moments) {
        self.turn(&mut update.bias[self.layer.0], Turn::Send);
        for (c, weights) in update.weights.iter_mut().enumerate() {
            if let Some(ends) = ends(machine, c, self.layer) {
                self.turn_weights(weights, ends, Turn::Send);
            }
        }
        match &self.form {
            Form::Each(scales) => self.scale_lateral(scales, update),
            Form::Together(_) => {
                // Slopes count a pair twice, updates do not.
                if let Some(c) = self.lateral {
                    update.weights[c].iter_mut().for_each(|u| *u *= 2.0);
                }
                self.turn_precision(update, Turn::Send);
                if let Some(c) = self.lateral {
                    update.weights[c].iter_mut().for_each(|u| *u *= 0.5);
                }
            }
        }
    }

    /// $J_{ij} \to s_i s_j J_{ij}$.
    fn scale_lateral(&self, scales: &[f64], moments: &mut Moments) {
        let (Some(c), n) = (self.lateral, scales.len()) else { return };
        for i in 0..n {
            let row = moments.weights[c][row_range(n, i)].iter_mut().zip(&scales[i + 1..]);
            row.for_each(|(g, s)| *g *= scales[i] * s);
        }
    }

    /// Multiplies the slopes of $\Lambda$, which those of $\gamma$ and $J$ are, from both sides.
    fn turn_precision(&self, moments: &mut Moments, turn: Turn) {
        let (Some(c), n) = (self.lateral, self.columns.len()) else { return };
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            matrix[i * (n + 1)] = moments.own[self.layer.0][i];
            for (k, g) in moments.weights[c][row_range(n, i)].iter().enumerate() {
                // dL/dJ_ij is minus twice the slope along one of two equal entries.
                (matrix[i * n + i + 1 + k], matrix[(i + 1 + k) * n + i]) = (-0.5 * g, -0.5 * g);
            }
        }
        // Rows, then columns: the matrix is symmetric, and so is what comes out.
        for _ in 0..2 {
            matrix.chunks_exact_mut(n).for_each(|row| self.turn(row, turn));
            transpose(&mut matrix, n);
        }
        for i in 0..n {
            moments.own[self.layer.0][i] = matrix[i * (n + 1)];
            let row = moments.weights[c][row_range(n, i)].iter_mut();
            row.enumerate().for_each(|(k, g)| *g = -2.0 * matrix[i * n + i + 1 + k]);
        }
    }

    /// The nearest precision of unit `i` inside its bounds.
    fn bounded(&self, i: usize, precision: f64) -> f64 {
        precision.clamp(PRECISION.start() * self.start[i], PRECISION.end() * self.start[i])
    }
}

fn transpose(matrix: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..i {
            matrix.swap(i * n + j, j * n + i);
        }
    }
}
