//! One step of gradient ascent inside the engine.
//!
//! The gradient of a weight is $\sum_r w_r \tilde x_{ri}\tilde x_{rj}$ over the rows of the data
//! side ($w > 0$) and of the model side ($w < 0$). In coordinates of bits, $x = s u + t$ and
//! $m = (\mu - t)/s$,
//! $$s_i s_j\Bigl(\sum_r w_r u_{ri} u_{rj} - S_i m_j - m_i S_j + T m_i m_j\Bigr),\qquad
//!   S = \sum_r w_r u_r,\quad T = \sum_r w_r,$$
//! a product of bits and numbers plus terms of rank one. A panel of 64 columns stays in the cache
//! while its natural parameters, means, samples, gradient, update and copies are computed.
//!
//! Biases are kept without offsets, $\hat b_l = b_l - \sum_m W_{lm}(\mu_m - t_m)$, which recentering
//! does not change; an update of $b$ and $W$ moves them by
//! $\Delta b_l - \sum_m \Delta W_{lm}(\mu_m - t_m)$.

mod panel;
mod reduce_gradients;
mod rows;
mod stored;

use super::Packed;
use super::band::{Band, Panel, with_scratch};
use crate::machine::{LayerId, Meaning, State};
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::line::{PANEL, Row, TILE, Wide};
use harmonium_kernels::random::Stream;
pub(crate) use panel::PanelBuffers;
use panel::PanelWork;
use rayon::prelude::*;
pub use reduce_gradients::Reduce;
use rows::StepRows;
use std::ops::{Deref, DerefMut};

/// Products below which waking other threads costs more than they save.
const WORTH_THREADS: usize = 2_000_000;

/// Means of layers of bits as the kernels hold them, found while the layers were sampled.
#[derive(Clone, Debug, Default)]
pub(crate) struct TileMeans {
    /// For each layer those of tile $t$ and row $r$ at `t * n + r`; empty where they are not known.
    layers: Vec<Vec<Wide>>,
}

impl TileMeans {
    /// Room for `n` rows of a layer of `len` entries.
    pub(crate) fn of_layer(&mut self, l: LayerId, len: usize, n: usize) -> &mut [Wide] {
        if self.layers.len() <= l.0 {
            self.layers.resize(l.0 + 1, Vec::new());
        }
        self.layers[l.0].resize(len.div_ceil(PANEL) * (PANEL / TILE) * n, Wide::ZERO);
        &mut self.layers[l.0]
    }

    pub(crate) fn get(&self, l: LayerId) -> Option<&[Wide]> {
        self.layers.get(l.0).filter(|means| !means.is_empty()).map(Vec::as_slice)
    }
}

/// The rows of one side of the gradient.
pub(crate) struct SideRows<'a> {
    pub(crate) state: &'a mut State,
    /// They sum to 1.
    pub(crate) weights: &'a [f64],
    /// Layers that are still to be replaced by their means given the rest.
    pub(crate) pending: &'a [LayerId],
    /// How the pending layers of the state itself are sampled, if they are.
    pub(crate) draw: Option<(Stream, usize)>,
    /// Means of pending layers that are known already.
    pub(crate) known: Option<&'a TileMeans>,
}

impl SideRows<'_> {
    fn known(&self, l: LayerId) -> Option<&[Wide]> {
        self.known.and_then(|known| known.get(l)).filter(|_| self.pending.contains(&l))
    }

    /// Whether the means of a layer are still to be computed.
    fn waits_for(&self, l: LayerId) -> bool {
        self.pending.contains(&l) && self.known(l).is_none()
    }
}

/// What a step needs besides the rows.
#[derive(Clone, Copy)]
pub(crate) struct StepRates {
    pub(crate) rate: f64,
    pub(crate) momentum: f64,
    pub(crate) l1: f64,
    pub(crate) l2: f64,
    /// Largest norm of the whole gradient.
    pub(crate) clip: Option<f64>,
    /// Whether the norms of gradient, update and weights are wanted.
    pub(crate) norms: bool,
    /// Variates for rounding.
    pub(crate) stream: Stream,
}

/// Sums of squares over all weights, and over all parameters for the gradient.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Squares {
    pub(crate) gradient: f64,
    pub(crate) update: f64,
    pub(crate) weights: f64,
}

impl Squares {
    /// Whether all are: the squares of a number that is not finite, or whose square is not, are not.
    pub(crate) fn is_finite(&self) -> bool {
        [self.gradient, self.update, self.weights].iter().all(|x| x.is_finite())
    }

    fn add(&mut self, other: Self) {
        self.gradient += other.gradient;
        self.update += other.update;
        self.weights += other.weights;
    }
}

/// What learning keeps from step to step.
#[derive(Debug)]
pub(crate) struct EngineLearner {
    /// The last update of each weight, laid out as the weights are: band, panel, link.
    velocity: Vec<Vec<Vec<Velocity>>>,
    /// The last update of each bias.
    pub(crate) bias_velocity: Vec<Vec<f64>>,
    /// Whether the offsets moved since the last step.
    offsets_moved: bool,
    /// Means of the data side and of the model side in the last step, in the units' own values.
    pub(crate) means: [Vec<Vec<f64>>; 2],
    rows: StepRows,
    outputs: Vec<Vec<Output>>,
    /// Whether the next step begins with the last panel: what the last step ended with is still in the caches.
    backwards: bool,
}

/// What a panel is visited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// The square of its gradient alone.
    Measure,
    /// To move it.
    Move,
    /// To write its gradient down, for others to add theirs.
    Write,
}

/// Where a panel takes its gradient from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// From the rows of both sides.
    Rows,
    /// From what was written down.
    Written,
}

/// What a panel gives back.
#[derive(Clone, Debug, Default)]
struct Output {
    /// Sums of means over the rows of each side, weights included.
    means: [Row; 2],
    /// Sampled bits of each side, 64 to a row.
    bits: [Vec<u64>; 2],
    /// For each link $\sum_i \Delta W_{ij}(\mu_i - t_i)$ and $\sum_j \Delta W_{ij}(\mu_j - t_j)$.
    dots: Vec<(Row, Vec<f32>)>,
    /// For each link the gradient, where it was written down; a row of zeros behind the last.
    written: Vec<Vec<Row>>,
    squares: Squares,
}

/// The last update of a panel's weights; empty where there is never any momentum.
#[derive(Debug)]
struct Velocity(Vec<Row>);

/// Rows before the first. Where weights and velocities lie at the same place of their pages, the
/// processor takes a store to one for a store to the other: the update would take a tenth longer.
const LEAD: usize = 8;

impl Deref for Velocity {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        self.0.get(LEAD..).unwrap_or_default()
    }
}

impl DerefMut for Velocity {
    fn deref_mut(&mut self) -> &mut [Row] {
        self.0.get_mut(LEAD..).unwrap_or_default()
    }
}

impl EngineLearner {
    /// Starts at rest; `momentum` says whether any step will have some.
    pub(crate) fn new(engine: &Packed, momentum: bool) -> Self {
        let rows = |panel: &Panel| {
            let n = panel.weights.len();
            Velocity(if momentum { vec![Row::ZERO; LEAD + n] } else { Vec::new() })
        };
        let zeros = || engine.layers().iter().map(|l| vec![0.0; l.len]).collect::<Vec<_>>();
        let bands = engine.bands.iter();
        Self {
            velocity: bands
                .clone()
                .map(|b| b.panels.iter().map(|p| p.iter().map(rows).collect()).collect())
                .collect(),
            bias_velocity: zeros(),
            offsets_moved: true,
            means: [zeros(), zeros()],
            rows: StepRows::default(),
            backwards: false,
            outputs: bands
                .map(|band| {
                    let dots = band.links.iter().map(|l| (Row::ZERO, vec![0.0; l.n_rows]));
                    let output = Output { dots: dots.collect(), ..Output::default() };
                    vec![output; band.panels.len()]
                })
                .collect(),
        }
    }

    /// Lets the offsets of a layer follow its means of the last step on the data side.
    pub(crate) fn recenter(&mut self, engine: &mut Packed, l: LayerId, rate: f64) {
        let means = &self.means[0][l.0];
        engine.frame.offsets[l.0].iter_mut().zip(means).for_each(|(o, m)| *o += rate * (m - *o));
        self.offsets_moved = true;
    }

    /// Whether a step with this number of rows, both sides together, has work for several threads.
    pub(crate) fn is_parallel(engine: &Packed, n_rows: usize) -> bool {
        engine.bands.iter().any(|band| band.n_weights() * n_rows > WORTH_THREADS)
    }

    /// Moves all parameters of the engine by one step.
    pub(crate) fn step(
        &mut self,
        engine: &mut Packed,
        sides: &mut [SideRows<'_>; 2],
        rates: &StepRates,
    ) -> Squares {
        self.take_up(engine, sides);
        let kept = rates.clip.map_or(1.0, |limit| {
            let norm = self.gradient_norm(engine, sides, rates);
            if norm > limit { limit / norm } else { 1.0 }
        });
        let rates = &StepRates { rate: kept * rates.rate, ..*rates };
        let mut squares = Squares::default();
        for b in 0..engine.bands.len() {
            self.visit_band(engine, b, sides, rates, (Origin::Rows, Aim::Move));
            self.take_means(engine.bands[b].layer, b, sides);
            self.take_samples(engine.bands[b].layer, b, sides);
            squares.add(self.finish_band(&mut engine.bands[b], b));
        }
        self.finish(engine, rates, kept, squares)
    }

    /// Takes up the rows of both sides.
    fn take_up(&mut self, engine: &Packed, sides: &mut [SideRows<'_>; 2]) {
        if std::mem::take(&mut self.offsets_moved) {
            self.rows.set_centers(engine.layers(), engine.offsets());
        }
        self.rows.take_up(engine, sides);
    }

    /// Moves the biases once all weights are moved; `kept` is what clipping left of the gradient.
    fn finish(
        &mut self,
        engine: &mut Packed,
        rates: &StepRates,
        kept: f64,
        mut squares: Squares,
    ) -> Squares {
        self.move_biases(engine, rates);
        self.backwards = !self.backwards;
        if rates.norms {
            squares.gradient = kept * kept * (squares.gradient + self.bias_squares(engine));
        }
        squares
    }

    /// The norm of the whole gradient. All panels have to be known before the first one moves, so they are computed once
    /// for it, with the variates that they will have again.
    fn gradient_norm(
        &mut self,
        engine: &mut Packed,
        sides: &[SideRows<'_>; 2],
        rates: &StepRates,
    ) -> f64 {
        let mut squares = 0.0;
        for b in 0..engine.bands.len() {
            self.visit_band(engine, b, sides, rates, (Origin::Rows, Aim::Measure));
            self.take_means(engine.bands[b].layer, b, sides);
            squares += self.outputs[b].iter().map(|output| output.squares.gradient).sum::<f64>();
        }
        (squares + self.bias_squares(engine)).sqrt()
    }

    /// $\sum g^2$ over the biases.
    fn bias_squares(&self, engine: &Packed) -> f64 {
        let [data, model] = &self.rows.bit_means;
        let of_layer = |l: usize| -> f64 {
            let means = data[l].iter().zip(&model[l]);
            engine.layers()[l].scale.powi(2) * means.map(|(d, m)| (d - m) * (d - m)).sum::<f64>()
        };
        (0..data.len()).map(of_layer).sum()
    }

    fn visit_band(
        &mut self,
        engine: &mut Packed,
        b: usize,
        sides: &[SideRows<'_>; 2],
        rates: &StepRates,
        (origin, aim): (Origin, Aim),
    ) {
        let Packed { frame, lines, bands } = engine;
        let (layers, band) = (&frame.layers, &mut bands[b]);
        let l = band.layer;
        self.rows.set_row_factors(band);
        let (it, n_rows) = (&self.rows, self.rows.n[0] + self.rows.n[1]);
        let work = PanelWork {
            rows: it,
            links: &band.links,
            layer: l,
            lines: &lines[l.0],
            len: band.len,
            center: &it.centers[l.0],
            shift: &it.shifts[l.0],
            stacked: rows::stacks(band, sides) && rows::all_bits(band, sides),
            sides: [0, 1].map(|k: usize| {
                let side = &sides[k];
                let pending = side.pending.contains(&l);
                (!pending).then(|| (&side.state.layers[l.0], layers[l.0].scale, layers[l.0].shift))
            }),
            known: [0, 1].map(|k: usize| sides[k].known(l)),
            draws: [0, 1].map(|k: usize| sides[k].draw),
            rates,
            origin,
            aim,
        };
        let parallel = band.n_weights() * n_rows > WORTH_THREADS;
        let panels = band.panels.par_iter_mut().zip(&mut self.velocity[b]);
        let panels = panels.zip(&mut self.outputs[b]).enumerate();
        let run = |(p, ((panel, velocity), output)): (usize, OnePanel<'_>)| {
            with_scratch(|scratch| work.run(p, panel, velocity, output, scratch));
        };
        if parallel && rayon::current_num_threads() > 1 {
            // One by one: a thread that others slow down gets fewer of them.
            panels.with_max_len(1).for_each(run);
        } else {
            let panels = band.panels.iter_mut().zip(&mut self.velocity[b]);
            let panels = panels.zip(&mut self.outputs[b]).enumerate();
            if self.backwards { panels.rev().for_each(run) } else { panels.for_each(run) }
        }
    }

    /// Takes over the means of a layer that waited for them.
    fn take_means(&mut self, l: LayerId, b: usize, sides: &[SideRows<'_>; 2]) {
        for (k, _) in sides.iter().enumerate().filter(|(_, side)| side.pending.contains(&l)) {
            for (p, output) in self.outputs[b].iter().enumerate() {
                let means = &mut self.rows.bit_means[k][l.0][p * PANEL..];
                means.iter_mut().zip(output.means[k].0).for_each(|(m, p)| *m = f64::from(p));
            }
        }
    }

    /// Takes over the samples of a layer that waited for its means.
    fn take_samples(&self, l: LayerId, b: usize, sides: &mut [SideRows<'_>; 2]) {
        for (k, side) in sides.iter_mut().enumerate() {
            if side.pending.contains(&l) && side.draw.is_some() {
                let n_rows = side.state.n_rows();
                let bits: &mut BitMatrix = side.state.layers[l.0].bits_mut(n_rows);
                for (p, output) in self.outputs[b].iter().enumerate() {
                    bits.set_panel(p, &output.bits[k]);
                }
                side.state.layers[l.0].meaning = Meaning::Values;
            }
        }
    }

    /// Sums what the panels of a band found, once they moved, and renews scales that they outgrew.
    fn finish_band(&self, band: &mut Band, b: usize) -> Squares {
        let mut squares = Squares::default();
        self.outputs[b].iter().for_each(|output| squares.add(output.squares));
        for c in 0..band.links.len() {
            band.rescale_what_grew(c);
        }
        squares
    }

    /// $\hat b \leftarrow \hat b + \Delta b - \sum \Delta W (\mu - t)$, $\Delta b$ with momentum.
    fn move_biases(&mut self, engine: &mut Packed, rates: &StepRates) {
        for (l, layer) in engine.frame.layers.iter_mut().enumerate() {
            let (scale, shift) = (layer.scale, layer.shift);
            let [data, model] = &self.rows.bit_means;
            let (data, model) = (&data[l], &model[l]);
            for (out, means) in self.means.iter_mut().zip([data, model]) {
                out[l].iter_mut().zip(means).for_each(|(o, m)| *o = scale * m + shift);
            }
            let biases = layer.bias.iter_mut().zip(&mut self.bias_velocity[l]);
            for ((bias, velocity), (data, model)) in biases.zip(data.iter().zip(model)) {
                *velocity = rates.momentum * *velocity + rates.rate * scale * (data - model);
                *bias += *velocity;
            }
        }
        for (b, outputs) in self.outputs.iter().enumerate() {
            let Packed { frame, bands, .. } = &mut *engine;
            let (layers, band) = (&mut frame.layers, &bands[b]);
            for (p, output) in outputs.iter().enumerate() {
                for ((columns, rows), link) in output.dots.iter().zip(&band.links) {
                    if !self.rows.is_centered(band.layer, link.source) {
                        continue;
                    }
                    let bias = &mut layers[band.layer.0].bias[p * PANEL..];
                    bias.iter_mut().zip(&columns.0).for_each(|(b, d)| *b -= f64::from(*d));
                    let bias = &mut layers[link.source.0].bias;
                    bias.iter_mut().zip(rows).for_each(|(b, d)| *b -= f64::from(*d));
                }
            }
        }
        engine.set_lines();
    }
}

/// A panel's weights, their velocity, and what it gives back.
type OnePanel<'a> = ((&'a mut Vec<Panel>, &'a mut Vec<Velocity>), &'a mut Output);
