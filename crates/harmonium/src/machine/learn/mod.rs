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

use super::band::{Band, Panel, Source, with_scratch};
use super::engine::EngineLayer;
use super::{Engine, LayerId, Machine, Meaning, Precision, State, Weights};
use crate::error::Error;
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::index::Words;
use harmonium_kernels::line::{PANEL, Row, TILE, Wide};
use harmonium_kernels::random::Stream;
use harmonium_kernels::tables::{COLUMN_CHUNK, LEVELS};
pub(crate) use panel::PanelBuffers;
use panel::PanelWork;
use rayon::prelude::*;
use std::ops::{Deref, DerefMut};

/// Products below which waking other threads costs more than they save.
const WORTH_THREADS: usize = 2_000_000;

/// Bits below which it is not worth it to describe the rows by several threads.
const WORTH_PREPARING: usize = 50_000;

/// Means of layers of bits as the kernels hold them, found while the layers were sampled.
#[derive(Clone, Debug, Default)]
pub struct TileMeans {
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
pub(crate) struct Settings {
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

/// What learning keeps from step to step.
#[derive(Debug)]
pub(crate) struct Learner {
    /// The last update of each weight, laid out as the weights are: band, panel, link.
    velocity: Vec<Vec<Vec<Velocity>>>,
    /// The last update of each bias.
    pub(crate) bias_velocity: Vec<Vec<f64>>,
    /// $\mu$ of each layer, and whether they moved since the last step.
    offsets: Vec<Vec<f64>>,
    offsets_moved: bool,
    /// Means of the data side and of the model side in the last step, in the units' own values.
    pub(crate) means: [Vec<Vec<f64>>; 2],
    prepared: Prepared,
    outputs: Vec<Vec<Output>>,
    /// Whether the next step begins with the last panel: what the last step ended with is still in the caches.
    backwards: bool,
}

/// What all panels of a step read.
#[derive(Debug, Default)]
struct Prepared {
    n: [usize; 2],
    /// Signed weights of the rows of both sides.
    weights: Vec<f32>,
    /// The weight of all rows of a side, if they are equal.
    uniform: [Option<f32>; 2],
    /// Means of bits of each side and layer.
    bit_means: [Vec<Vec<f64>>; 2],
    /// The sources of each layer for products, stacked or side by side.
    stacked: Vec<Source>,
    apart: [Vec<Source>; 2],
    /// The samples of each side and layer, column by column.
    columns: [Vec<Columns>; 2],
    /// The entries of each layer that some sample has, and where each entry stands among them;
    /// those without stand after the last.
    used: Vec<Vec<u32>>,
    places: Vec<Vec<u32>>,
    /// Whether the gradient towards a layer's entries may round probabilities to small fields: the
    /// layer holds bits on both sides, and the rows of a side weigh the same.
    fields: Vec<bool>,
    /// $m$ and $\mu - t$ of each layer.
    centers: Vec<Vec<f32>>,
    shifts: Vec<Vec<f32>>,
    /// Whether any of them is not zero.
    centered: Vec<bool>,
    /// For each link of the band under way, what stands before the terms of rank one; nothing where
    /// there are no offsets.
    row_factors: Vec<Vec<[f32; 2]>>,
}

/// The rows of a layer as a gradient reads them.
#[derive(Debug, Default)]
struct Columns {
    words: Words,
    numbers: Vec<f32>,
    is_bits: bool,
}

/// What a panel is visited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// The square of its gradient alone.
    Measure,
    /// To move it.
    Move,
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

impl Learner {
    /// Starts at rest; `momentum` says whether any step will have some.
    pub(crate) fn new(machine: &Machine, engine: &Engine, momentum: bool) -> Self {
        let rows = |panel: &Panel| {
            let n = panel.weights.len();
            Velocity(if momentum { vec![Row::ZERO; LEAD + n] } else { Vec::new() })
        };
        let zeros = || machine.layers().iter().map(|l| vec![0.0; l.len()]).collect::<Vec<_>>();
        let bands = engine.bands.iter();
        Self {
            velocity: bands
                .clone()
                .map(|b| b.panels.iter().map(|p| p.iter().map(rows).collect()).collect())
                .collect(),
            bias_velocity: zeros(),
            offsets: machine.layers().iter().map(|l| l.offset.clone()).collect(),
            offsets_moved: true,
            means: [zeros(), zeros()],
            prepared: Prepared::default(),
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

    /// $\mu$ of each layer.
    pub(crate) fn offsets(&self) -> &[Vec<f64>] {
        &self.offsets
    }

    /// Lets the offsets of a layer follow its means of the last step on the data side.
    pub(crate) fn recenter(&mut self, l: LayerId, rate: f64) {
        let means = &self.means[0][l.0];
        self.offsets[l.0].iter_mut().zip(means).for_each(|(o, m)| *o += rate * (m - *o));
        self.offsets_moved = true;
    }

    /// Whether a step with so many rows, those of both sides, has work for several threads.
    pub(crate) fn is_parallel(engine: &Engine, n_rows: usize) -> bool {
        engine.bands.iter().any(|band| band.n_weights() * n_rows > WORTH_THREADS)
    }

    /// Moves all parameters of the engine by one step.
    pub(crate) fn step(
        &mut self,
        engine: &mut Engine,
        sides: &mut [SideRows<'_>; 2],
        settings: &Settings,
    ) -> Squares {
        self.prepare(engine, sides);
        let kept = settings.clip.map_or(1.0, |limit| {
            let norm = self.gradient_norm(engine, sides, settings);
            if norm > limit { limit / norm } else { 1.0 }
        });
        let settings = &Settings { rate: kept * settings.rate, ..*settings };
        let mut squares = Squares::default();
        for b in 0..engine.bands.len() {
            self.visit_band(engine, b, sides, settings, Aim::Move);
            let part = self.collect(&mut engine.bands[b], b, sides);
            squares.gradient += part.gradient;
            squares.update += part.update;
            squares.weights += part.weights;
        }
        self.move_biases(engine, settings);
        self.backwards = !self.backwards;
        if settings.norms {
            squares.gradient = kept * kept * (squares.gradient + self.bias_squares(engine));
        }
        squares
    }

    /// The norm of the whole gradient. All panels have to be known before the first one moves, so they are computed once
    /// for it, with the variates that they will have again.
    fn gradient_norm(
        &mut self,
        engine: &mut Engine,
        sides: &[SideRows<'_>; 2],
        settings: &Settings,
    ) -> f64 {
        let mut squares = 0.0;
        for b in 0..engine.bands.len() {
            self.visit_band(engine, b, sides, settings, Aim::Measure);
            self.take_means(engine.bands[b].layer, b, sides);
            squares += self.outputs[b].iter().map(|output| output.squares.gradient).sum::<f64>();
        }
        (squares + self.bias_squares(engine)).sqrt()
    }

    /// $\sum g^2$ over the biases.
    fn bias_squares(&self, engine: &Engine) -> f64 {
        let [data, model] = &self.prepared.bit_means;
        let of_layer = |l: usize| -> f64 {
            let means = data[l].iter().zip(&model[l]);
            engine.layers()[l].scale.powi(2) * means.map(|(d, m)| (d - m) * (d - m)).sum::<f64>()
        };
        (0..data.len()).map(of_layer).sum()
    }

    /// Everything about the rows that does not depend on a panel.
    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
    fn prepare(&mut self, engine: &Engine, sides: &mut [SideRows<'_>; 2]) {
        let n_layers = engine.layers().len();
        let it = &mut self.prepared;
        it.n = [sides[0].state.n_rows(), sides[1].state.n_rows()];
        it.weights.clear();
        for (sign, side) in [1.0, -1.0].into_iter().zip(&*sides) {
            it.weights.extend(side.weights.iter().map(|w| (sign * w) as f32));
        }
        let equal = |w: &[f64]| w.iter().all(|x| *x == w[0]);
        it.uniform = [0, 1].map(|k| {
            let w = sides[k].weights;
            equal(w).then(|| w.first().map_or(0.0, |w| *w as f32))
        });
        it.stacked.resize_with(n_layers, Source::default);
        if std::mem::take(&mut self.offsets_moved) {
            it.set_centers(engine.layers(), &self.offsets);
        }
        let most = it.n.iter().max().copied().unwrap_or(0) * LEVELS as usize;
        let quantised = engine.precision() == Precision::I16
            && it.uniform.iter().all(Option::is_some)
            && most <= 32_767;
        for side in sides.iter_mut() {
            for (l, layer) in engine.layers().iter().enumerate() {
                if layer.units.bit_coordinates().is_some() && !side.pending.contains(&LayerId(l)) {
                    side.state.layers[l].pack();
                }
            }
        }
        let bits = |l: usize| sides.iter().all(|side| side.state.layers[l].bits().is_some());
        it.fields.clear();
        it.fields.extend((0..n_layers).map(|l| quantised && bits(l)));
        let sides = &*sides;
        let Prepared { columns, bit_means, stacked, apart, uniform, .. } = it;
        let ([data, model], [data_means, model_means]) = (columns, bit_means);
        let describe_side = |k: usize, columns: &mut Vec<Columns>, means: &mut Vec<Vec<f64>>| {
            columns.resize_with(n_layers, Columns::default);
            means.resize(n_layers, Vec::new());
            for (l, layer) in engine.layers().iter().enumerate() {
                let layer = (LayerId(l), layer);
                let uniform = uniform[k].is_some();
                describe(&sides[k], layer, uniform, &mut columns[l], &mut means[l]);
            }
        };
        let mut take_up = || take_up_sources(engine, sides, stacked, apart);
        let size = it.n.iter().sum::<usize>()
            * engine.layers().iter().map(|layer| layer.len).sum::<usize>();
        if size > WORTH_PREPARING && rayon::current_num_threads() > 1 {
            rayon::join(take_up, || {
                rayon::join(
                    || describe_side(0, data, data_means),
                    || describe_side(1, model, model_means),
                )
            });
        } else {
            take_up();
            describe_side(0, data, data_means);
            describe_side(1, model, model_means);
        }
        self.prepared.find_used(engine);
    }

    fn visit_band(
        &mut self,
        engine: &mut Engine,
        b: usize,
        sides: &[SideRows<'_>; 2],
        settings: &Settings,
        aim: Aim,
    ) {
        let (layers, band) = engine.layers_and_band(b);
        let l = band.layer;
        self.prepared.set_row_factors(band);
        let (it, n_rows) = (&self.prepared, self.prepared.n[0] + self.prepared.n[1]);
        let work = PanelWork {
            prepared: it,
            links: &band.links,
            layer: l,
            lines: &layers[l.0].lines,
            len: band.len,
            center: &it.centers[l.0],
            shift: &it.shifts[l.0],
            stacked: stacks(band, sides) && all_bits(band, sides),
            sides: [0, 1].map(|k: usize| {
                let side = &sides[k];
                let pending = side.pending.contains(&l);
                (!pending).then(|| (&side.state.layers[l.0], layers[l.0].scale, layers[l.0].shift))
            }),
            known: [0, 1].map(|k: usize| sides[k].known(l)),
            draws: [0, 1].map(|k: usize| sides[k].draw),
            settings,
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
                let means = &mut self.prepared.bit_means[k][l.0][p * PANEL..];
                means.iter_mut().zip(output.means[k].0).for_each(|(m, p)| *m = f64::from(p));
            }
        }
    }

    /// Takes over what the panels of a band found.
    fn collect(&mut self, band: &mut Band, b: usize, sides: &mut [SideRows<'_>; 2]) -> Squares {
        let mut squares = Squares::default();
        let l = band.layer;
        self.take_means(l, b, sides);
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
        for output in &self.outputs[b] {
            squares.gradient += output.squares.gradient;
            squares.update += output.squares.update;
            squares.weights += output.squares.weights;
        }
        for c in 0..band.links.len() {
            band.rescale_what_grew(c);
        }
        squares
    }

    /// $\hat b \leftarrow \hat b + \Delta b - \sum \Delta W (\mu - t)$, $\Delta b$ with momentum.
    fn move_biases(&mut self, engine: &mut Engine, settings: &Settings) {
        for (l, layer) in engine.layers_mut().iter_mut().enumerate() {
            let (scale, shift) = (layer.scale, layer.shift);
            let [data, model] = &self.prepared.bit_means;
            let (data, model) = (&data[l], &model[l]);
            for (out, means) in self.means.iter_mut().zip([data, model]) {
                out[l].iter_mut().zip(means).for_each(|(o, m)| *o = scale * m + shift);
            }
            let biases = layer.bias.iter_mut().zip(&mut self.bias_velocity[l]);
            for ((bias, velocity), (data, model)) in biases.zip(data.iter().zip(model)) {
                *velocity = settings.momentum * *velocity + settings.rate * scale * (data - model);
                *bias += *velocity;
            }
        }
        for (b, outputs) in self.outputs.iter().enumerate() {
            let Engine { layers, bands, .. } = &mut *engine;
            let band = &bands[b];
            for (p, output) in outputs.iter().enumerate() {
                for ((columns, rows), link) in output.dots.iter().zip(&band.links) {
                    if !self.prepared.is_centered(band.layer, link.source) {
                        continue;
                    }
                    let bias = &mut layers[band.layer.0].bias[p * PANEL..];
                    bias.iter_mut().zip(&columns.0).for_each(|(b, d)| *b -= f64::from(*d));
                    let bias = &mut layers[link.source.0].bias;
                    bias.iter_mut().zip(rows).for_each(|(b, d)| *b -= f64::from(*d));
                }
            }
        }
        engine.layers_mut().iter_mut().for_each(EngineLayer::set_lines);
    }

    /// Whether all biases are finite: weights that are not drag them along.
    pub(crate) fn is_finite(engine: &Engine) -> bool {
        // To the end of each layer, which takes less than to look for the first that is not.
        engine.layers().iter().all(|l| l.bias.iter().fold(true, |all, b| all & b.is_finite()))
    }

    /// The velocity of each coupling, stored as its weights are.
    pub(crate) fn weight_velocity(&self, machine: &Machine, engine: &Engine) -> Vec<Vec<f64>> {
        let couplings = machine.couplings().iter();
        let mut out: Vec<Vec<f64>> =
            couplings.map(|c| vec![0.0; c.weights.entries().len()]).collect();
        for (band, velocity) in engine.bands.iter().zip(&self.velocity) {
            for (c, link) in band.links.iter().enumerate() {
                let first = machine.couplings()[link.coupling].between.0;
                let rows = |p: usize| &*velocity[p][c];
                band.read_into(c, first, rows, &mut out[link.coupling]);
            }
        }
        out
    }

    /// Takes up velocities that [`Learner::weight_velocity`] gave.
    pub(crate) fn set_weight_velocity(
        &mut self,
        machine: &Machine,
        engine: &Engine,
        stored: &[Vec<f64>],
    ) {
        for (band, velocity) in engine.bands.iter().zip(&mut self.velocity) {
            for (c, link) in band.links.iter().enumerate() {
                let at = band.entry(c, machine.couplings()[link.coupling].between.0);
                for (p, panel) in velocity.iter_mut().enumerate() {
                    for (i, row) in panel[c].iter_mut().enumerate() {
                        for l in 0..PANEL.min(band.len - p * PANEL) {
                            #[expect(clippy::cast_possible_truncation, reason = "it was f32")]
                            let v = stored[link.coupling][at(i, p * PANEL + l)] as f32;
                            row.0[l] = v;
                        }
                    }
                }
            }
        }
    }
}

/// A panel's weights, their velocity, and what it gives back.
type OnePanel<'a> = ((&'a mut Vec<Panel>, &'a mut Vec<Velocity>), &'a mut Output);

/// Whether both sides wait for the means of a band's layer.
fn stacks(band: &Band, sides: &[SideRows<'_>; 2]) -> bool {
    sides.iter().all(|s| s.waits_for(band.layer))
}

fn all_bits(band: &Band, sides: &[SideRows<'_>; 2]) -> bool {
    let bits = |side: &SideRows<'_>, l: LayerId| side.state.layers[l.0].bits().is_some();
    sides.iter().all(|side| band.links.iter().all(|link| bits(side, link.source)))
}

/// The rows of a layer column by column, and their means; `uniform` as in
/// [`Prepared`]. Of a layer that waits for its means there is nothing to say yet.
#[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
fn describe(
    side: &SideRows<'_>,
    (l, layer): (LayerId, &EngineLayer),
    uniform: bool,
    columns: &mut Columns,
    means: &mut Vec<f64>,
) {
    if side.pending.contains(&l) {
        means.resize(layer.len, 0.0);
        columns.is_bits = false;
        return;
    }
    let rows = &side.state.layers[l.0];
    columns.is_bits = rows.bits().is_some();
    if let Some(bits) = rows.bits() {
        columns.words.fill_columns(bits, COLUMN_CHUNK);
    } else {
        let (s, t) = (layer.scale, layer.shift);
        columns.numbers.clear();
        columns.numbers.extend(rows.numbers().iter().map(|x| ((x - t) / s) as f32));
    }
    bit_means(rows, columns, layer, side.weights, uniform, means);
}

/// Takes up what each band multiplies: rows of both sides on top of each other where both wait for
/// its means and send bits, else side by side.
fn take_up_sources(
    engine: &Engine,
    sides: &[SideRows<'_>; 2],
    stacked: &mut [Source],
    apart: &mut [Vec<Source>; 2],
) {
    for band in &engine.bands {
        for link in &band.links {
            let m = link.source.0;
            let [a, b] = [0, 1].map(|k: usize| sides[k].state.layers[m].bits());
            if let (true, Some(a), Some(b)) = (stacks(band, sides), a, b) {
                stacked[m].set_bits_together(&[a, b], engine.precision());
                continue;
            }
            let waiting = sides.iter().zip(&mut *apart);
            for (side, apart) in waiting.filter(|(s, _)| s.waits_for(band.layer)) {
                apart.resize_with(sides[0].state.layers.len(), Source::default);
                let rows = &side.state.layers[m];
                match rows.bits() {
                    Some(bits) => apart[m].set_bits_together(&[bits], engine.precision()),
                    None => apart[m].set_numbers(rows.numbers(), engine.layers()[m].shift),
                }
            }
        }
    }
}

/// $\sum_r w_r u_r$ of a layer.
fn bit_means(
    rows: &super::state::LayerState,
    columns: &Columns,
    layer: &EngineLayer,
    weights: &[f64],
    uniform: bool,
    out: &mut Vec<f64>,
) {
    if columns.is_bits && uniform {
        let w = weights.first().copied().unwrap_or(0.0);
        out.resize(layer.len, 0.0);
        columns.words.each_count(|first, counts| {
            out[first..].iter_mut().zip(counts).for_each(|(o, c)| *o = w * f64::from(*c));
        });
        return;
    }
    out.clear();
    out.resize(layer.len, 0.0);
    let (s, t) = (layer.scale, layer.shift);
    for (row, w) in rows.numbers().chunks_exact(layer.len).zip(weights) {
        out.iter_mut().zip(row).for_each(|(o, x)| *o += w * (x - t) / s);
    }
}

impl Prepared {
    /// Follows the offsets.
    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
    fn set_centers(&mut self, layers: &[EngineLayer], offsets: &[Vec<f64>]) {
        self.centers.resize(layers.len(), Vec::new());
        self.shifts.resize(layers.len(), Vec::new());
        for (l, layer) in layers.iter().enumerate() {
            let shift = |mu: &f64| mu - layer.shift;
            self.shifts[l].clear();
            self.shifts[l].extend(offsets[l].iter().map(|mu| shift(mu) as f32));
            self.centers[l].clear();
            let inverse = 1.0 / layer.scale;
            self.centers[l].extend(offsets[l].iter().map(|mu| (inverse * shift(mu)) as f32));
        }
        self.centered.clear();
        self.centered.extend(self.shifts.iter().map(|shifts| shifts.iter().any(|x| *x != 0.0)));
    }

    /// Whether a coupling has offsets at either end.
    fn is_centered(&self, l: LayerId, m: LayerId) -> bool {
        self.centered[l.0] || self.centered[m.0]
    }

    /// Leaves entries that are zero in all samples of both sides out of the gradient's product.
    fn find_used(&mut self, engine: &Engine) {
        let n_layers = engine.layers().len();
        self.used.resize(n_layers, Vec::new());
        self.places.resize(n_layers, Vec::new());
        for (l, layer) in engine.layers().iter().enumerate() {
            let (used, places) = (&mut self.used[l], &mut self.places[l]);
            let [data, model] = &self.bit_means;
            let len = u32::try_from(layer.len).unwrap_or(u32::MAX);
            let all_bits = self.columns.iter().all(|side| side[l].is_bits);
            used.resize(layer.len, 0);
            let mut n_used = 0;
            for (i, (data, model)) in (0..len).zip(data[l].iter().zip(&model[l])) {
                // Without a branch: which entries are used follows no pattern.
                used[n_used] = i;
                n_used += usize::from(*data != 0.0 || *model != 0.0);
            }
            places.clear();
            if !all_bits || n_used == layer.len {
                used.clear();
                used.extend(0..len);
                places.extend(0..len);
                continue;
            }
            used.truncate(n_used);
            places.resize(layer.len, u32::try_from(n_used).unwrap_or(u32::MAX));
            used.iter().zip(0..).for_each(|(&i, place)| places[i as usize] = place);
            self.columns.iter_mut().for_each(|side| side[l].words.keep_columns(used));
        }
    }

    /// $-S_i + T m_i$ and $-m_i$ for the rows of each link, the gain included.
    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
    fn set_row_factors(&mut self, band: &Band) {
        let total: f64 = self.weights.iter().map(|w| f64::from(*w)).sum();
        self.row_factors.resize(band.links.len(), Vec::new());
        let mut factors = std::mem::take(&mut self.row_factors);
        for (link, out) in band.links.iter().zip(&mut factors) {
            let m = link.source.0;
            let [data, model] = &self.bit_means;
            out.clear();
            if !self.is_centered(band.layer, link.source) {
                continue;
            }
            out.extend(self.centers[m].iter().enumerate().map(|(i, &center)| {
                let sum = (data[m][i] - model[m][i]) as f32;
                [link.gain * (total as f32 * center - sum), -link.gain * center]
            }));
        }
        self.row_factors = factors;
    }
}

impl Engine {
    /// The layers, and one band to change.
    fn layers_and_band(&mut self, b: usize) -> (&[EngineLayer], &mut Band) {
        let Self { layers, bands, .. } = self;
        (layers, &mut bands[b])
    }

    /// Writes the parameters into `machine`, whose offsets become `offsets`.
    pub(crate) fn write_back(&self, machine: &mut Machine, offsets: &[Vec<f64>]) {
        for band in &self.bands {
            for (c, link) in band.links.iter().enumerate() {
                let coupling = &mut machine.couplings_mut()[link.coupling];
                let first = coupling.between.0;
                let weights = coupling.weights.entries_mut();
                band.read_into(c, first, |p| &band.panels[p][c].weights, weights);
            }
        }
        for (layer, offset) in machine.layers_mut().iter_mut().zip(offsets) {
            layer.offset.clone_from(offset);
        }
        for l in machine.layer_ids() {
            let mut bias = self.layers()[l.0].bias.clone();
            for c in machine.couplings() {
                if let (Some(m), Weights::Between(_)) = (c.other_end(l), &c.weights) {
                    let shift = self.layers()[m.0].shift;
                    let moved: Vec<f64> = offsets[m.0].iter().map(|mu| mu - shift).collect();
                    super::add_input(c, l, &moved, &mut bias);
                }
            }
            machine.layers_mut()[l.0].bias = bias;
        }
    }

    /// What the engine knows beyond the machine it would write back: biases without offsets and
    /// the scales of quantised weights, by name.
    pub(crate) fn export(&self, machine: &Machine) -> Vec<(String, Vec<f64>)> {
        let mut out = Vec::new();
        for (layer, source) in self.layers().iter().zip(machine.layers()) {
            out.push((format!("bias.{}", source.name), layer.bias.clone()));
        }
        for band in &self.bands {
            for (c, link) in band.links.iter().enumerate() {
                out.push((format!("scales.{}", link.coupling), band.scales(c)));
            }
        }
        out
    }

    /// Takes up what [`Engine::export`] gave; `get` finds it by name and length.
    pub(crate) fn import<'s>(
        &mut self,
        machine: &Machine,
        mut get: impl FnMut(&str, usize) -> Result<&'s [f64], Error>,
    ) -> Result<(), Error> {
        for (layer, source) in self.layers_mut().iter_mut().zip(machine.layers()) {
            let bias = get(&format!("bias.{}", source.name), layer.len)?;
            layer.bias.copy_from_slice(bias);
            layer.set_lines();
        }
        for band in &mut self.bands {
            for c in 0..band.links.len() {
                let coupling = band.links[c].coupling;
                let scales = get(&format!("scales.{coupling}"), band.scales(c).len())?;
                band.restore_scales(c, scales);
            }
        }
        Ok(())
    }
}
