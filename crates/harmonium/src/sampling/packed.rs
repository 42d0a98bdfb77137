//! Visits by the kernels: all rows of a layer at once, cut by columns.
//!
//! Where the units are bits and a whole layer is sampled, product, temperature, sigmoid, uniform
//! variate and packing run in one pass over each panel of 64 columns. If they see each other, see
//! [`lateral_bits`]; Gaussian units that do, [`joint`]. Everything else takes the natural parameters from the kernels and lets
//! the units respond row by row.

use super::walk::{Heat, Place, Response, Scratch, Walk};
use super::{Clamp, Sampler};
use super::{joint, lateral_bits};
use crate::engine::{
    Dense, Engine, Lateral, Operand, Packed, Sparse, TILES, TileMeans, with_scratch,
};
use crate::machine::{LayerId, LayerState, Meaning, State};
use crate::units::Storage;
use harmonium_kernels::line::{PANEL, TILE, Wide};
use harmonium_kernels::random::{Site, Stream};
use harmonium_kernels::response::{probabilities, sample, temper};
use rayon::prelude::*;
use std::cell::RefCell;

/// Products of samples and weights below which waking other threads costs more than they save.
const WORTH_THREADS: usize = 1_000_000;

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
    static ALL_ROWS: RefCell<(Vec<usize>, Vec<f64>)> = RefCell::default();
}

/// What the calling thread keeps from visit to visit.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) sources: Vec<Operand>,
    words: Vec<u64>,
    pub(super) theta: Vec<f32>,
    betas: Vec<f32>,
    /// Inputs and values of units that are drawn together, row by row.
    pub(super) inputs: Vec<f32>,
    pub(super) values: Vec<f32>,
}

/// [`visit`] in all rows.
pub(super) fn visit_all_rows(
    walk: &Walk<'_>,
    engine: &Packed,
    x: &mut State,
    l: LayerId,
    response: Response,
) {
    let (mut all, mut change) = ALL_ROWS.take();
    if all.len() != x.n_rows() {
        all.clear();
        all.extend(0..x.n_rows());
        change.resize(x.n_rows(), 0.0);
    }
    visit(walk, engine, x, l, &all, response, &mut change);
    ALL_ROWS.set((all, change));
}

/// Replaces the free part of layer `l` in the rows that are active by its response; `change`
/// receives the largest change of each row.
pub(super) fn visit(
    walk: &Walk<'_>,
    engine: &Packed,
    x: &mut State,
    l: LayerId,
    active: &[usize],
    response: Response,
    change: &mut [f64],
) {
    if let Some(joint) = walk.engine.joint_of(l) {
        let mut buffers = BUFFERS.take();
        let room = (change, &mut buffers);
        joint::visit_by_kernels((walk, engine), x, joint, active, response, room);
        BUFFERS.set(buffers);
        return;
    }
    if walk.clamp.holds_layer(l) {
        return;
    }
    let mut buffers = BUFFERS.take();
    engine.prepare(l, x, &mut buffers.sources);
    let layer = &engine.layers()[l.0];
    let bits = layer.units.storage() == Storage::Bits && !walk.heat.differs_by_row();
    let whole = walk.clamp.frees_layer(l) && active.len() == x.n_rows();
    let sampled = bits && whole && matches!(response, Response::Sample { .. });
    if sampled && layer.lateral.is_none() {
        sample_bits(walk, engine, x, l, response, &mut buffers, &mut []);
    } else if !(sampled && sample_lateral(walk, engine, x, l, response, &mut buffers)) {
        respond_by_row((walk, engine), x, l, active, response, change, &mut buffers);
    }
    BUFFERS.set(buffers);
}

impl Sampler {
    /// Samples layers of bits that do not see each other, all of them given the rest, and keeps the
    /// means that they were drawn by. For the kernels alone.
    pub(crate) fn sample_with_means(
        &self,
        x: &mut State,
        layers: &[LayerId],
        stream: Stream,
        means: &mut TileMeans,
    ) {
        let Engine::Packed(packed) = self.engine() else { return };
        let clamp = Clamp::none();
        let walk = Walk { engine: self.engine(), clamp: &clamp, heat: Heat::None, step: 1.0 };
        let mut buffers = BUFFERS.take();
        for &l in layers {
            packed.prepare(l, x, &mut buffers.sources);
            let means = means.of_layer(l, packed.layers()[l.0].len, x.n_rows());
            let response = Response::Sample { stream, sweep: 0 };
            sample_bits(&walk, packed, x, l, response, &mut buffers, means);
            x.layers[l.0].meaning = Meaning::Values;
        }
        BUFFERS.set(buffers);
    }

    /// $\theta$ of layer `l`, which has no lateral coupling, row by row.
    pub(crate) fn natural_parameters(&self, x: &mut State, l: LayerId) -> Vec<f64> {
        let (n_rows, layer) = (x.n_rows(), &self.engine().layers()[l.0]);
        let mut out = Vec::with_capacity(n_rows * layer.len);
        let engine = match self.engine() {
            Engine::Packed(engine) => engine,
            Engine::Reference(engine) => {
                out.resize(n_rows * layer.len, 0.0);
                let rows: Vec<usize> = (0..n_rows).collect();
                let values: Vec<&mut [f64]> =
                    x.layers.iter_mut().map(LayerState::numbers_mut).collect();
                engine.theta_into(l, &values, &rows, &mut out);
                return out;
            }
        };
        let mut buffers = BUFFERS.take();
        engine.prepare(l, x, &mut buffers.sources);
        panels_of_theta(engine, l, x, &buffers.sources, &mut buffers.theta);
        for row in 0..n_rows {
            row_of_theta(&buffers.theta, row, n_rows, layer.len, layer.scale, &mut out);
        }
        BUFFERS.set(buffers);
        out
    }
}

/// Whether a visit of a layer with `len` entries is large enough to share it out.
fn worth_threads(x: &State, len: usize) -> bool {
    let entries: usize = x.layers.iter().map(|l| l.len).sum();
    x.n_rows() * entries * len / 2 > WORTH_THREADS
}

/// Runs `work` on every panel of 64 columns and its part of `out`, which has `per_panel` entries
/// for each.
fn each_panel<T: Send>(
    out: &mut [T],
    per_panel: usize,
    parallel: bool,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    if parallel && rayon::current_num_threads() > 1 {
        // One by one: a thread that others slow down gets fewer of them.
        let panels = out.par_chunks_mut(per_panel).enumerate().with_max_len(1);
        panels.for_each(|(p, out)| work(p, out));
    } else {
        out.chunks_mut(per_panel).enumerate().for_each(|(p, out)| work(p, out));
    }
}

/// Samples all rows of a layer of bits. Their means are written to `means`, tile after tile, unless
/// it is empty.
fn sample_bits(
    walk: &Walk<'_>,
    engine: &Packed,
    x: &mut State,
    l: LayerId,
    response: Response,
    buffers: &mut Buffers,
    means: &mut [Wide],
) {
    let Response::Sample { stream, sweep } = response else { return };
    let (n_rows, layer) = (x.n_rows(), &engine.layers()[l.0]);
    let n_panels = layer.len.div_ceil(PANEL);
    let Buffers { sources, words, betas, .. } = buffers;
    words.clear();
    words.resize(n_panels * n_rows, 0);
    betas_of(walk.heat, n_rows, betas);
    let site = Site::new(0, sweep, l.0);
    let parallel = worth_threads(x, layer.len);
    let work = |panel: usize, words: &mut [u64], means: &mut [Wide]| {
        with_scratch(|scratch| {
            let mut theta = std::mem::take(&mut scratch.theta);
            let mut bits = std::mem::take(&mut scratch.words);
            let n_tiles = layer.tiles_of(panel);
            theta.resize(TILES * n_rows, Wide::ZERO);
            bits.resize(n_rows, 0);
            engine.theta_panel(l, panel, sources, &mut theta[..n_tiles * n_rows], scratch);
            for half in 0..n_tiles {
                let tile = panel * TILES + half;
                let theta = &mut theta[half * n_rows..(half + 1) * n_rows];
                if !betas.is_empty() {
                    temper(theta, betas, &base_line(walk.heat, layer.scale, l, tile));
                }
                let number = u32::try_from(tile).unwrap_or(u32::MAX);
                sample(theta, stream, site, number, &mut bits[..n_rows]);
                for (word, &bits) in words.iter_mut().zip(&bits[..n_rows]) {
                    *word |= u64::from(bits) << (half * TILE);
                }
                if let Some(means) = means.get_mut(half * n_rows..(half + 1) * n_rows) {
                    means.copy_from_slice(theta);
                    probabilities(means);
                }
            }
            (scratch.theta, scratch.words) = (theta, bits);
        });
    };
    if means.is_empty() {
        each_panel(words, n_rows, parallel, |panel, words| work(panel, words, &mut []));
    } else if parallel && rayon::current_num_threads() > 1 {
        let panels = words.par_chunks_mut(n_rows).zip(means.par_chunks_mut(n_rows * TILES));
        let panels = panels.enumerate().with_max_len(1);
        panels.for_each(|(panel, (words, means))| work(panel, words, means));
    } else {
        let panels = words.chunks_mut(n_rows).zip(means.chunks_mut(n_rows * TILES));
        panels.enumerate().for_each(|(panel, (words, means))| work(panel, words, means));
    }
    let bits = x.layers[l.0].bits_mut(n_rows);
    for (panel, words) in words.chunks_exact(n_rows.max(1)).enumerate() {
        bits.set_panel(panel, words);
    }
}

/// Samples a laterally coupled layer of bits; says whether it could: what the layer holds may be
/// no bits.
fn sample_lateral(
    walk: &Walk<'_>,
    engine: &Packed,
    x: &mut State,
    l: LayerId,
    response: Response,
    buffers: &mut Buffers,
) -> bool {
    let Response::Sample { stream, sweep } = response else { return false };
    x.layers[l.0].pack();
    if x.layers[l.0].bits().is_none() {
        return false;
    }
    let Buffers { sources, theta, betas, .. } = buffers;
    let others = engine.sees_others(l);
    if others {
        panels_of_theta(engine, l, x, sources, theta);
    }
    betas_of(walk.heat, x.n_rows(), betas);
    let layer = &engine.layers()[l.0];
    let visit = lateral_bits::Visit {
        layer,
        lines: engine.lines(l),
        n_rows: x.n_rows(),
        input: others.then_some(theta),
        betas,
        base: match walk.heat {
            Heat::Mixed { base, .. } => Some(&base.bias[l.0]),
            Heat::None | Heat::Scaled(_) => None,
        },
        stream,
        site: Site::new(0, sweep, l.0),
    };
    let parallel = lateral_bits::worth_threads(layer, x.n_rows());
    let bits = x.layers[l.0].bits_mut(visit.n_rows);
    match &layer.lateral {
        Some(Lateral::Dense(Dense { band: Some(band), .. })) => visit.dense(band, bits, parallel),
        Some(Lateral::Sparse(Sparse { slots: Some(slots), .. })) => {
            visit.sparse(slots, bits, parallel);
        }
        _ => return false,
    }
    true
}

/// A $\beta$ for each row; empty at temperature 1.
#[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
fn betas_of(heat: Heat<'_>, n_rows: usize, betas: &mut Vec<f32>) {
    betas.clear();
    match heat {
        Heat::None => {}
        Heat::Scaled(beta) => betas.resize(n_rows, beta as f32),
        Heat::Mixed { betas: each, .. } => betas.extend(each.iter().map(|b| *b as f32)),
    }
}

/// Where a tile's natural parameters end at $\beta = 0$.
fn base_line(heat: Heat<'_>, scale: f64, l: LayerId, tile: usize) -> Wide {
    let mut line = Wide::ZERO;
    if let Heat::Mixed { base, .. } = heat {
        let bias = base.bias[l.0][tile * TILE..].iter();
        #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
        line.0.iter_mut().zip(bias).for_each(|(l, b)| *l = (scale * b) as f32);
    }
    line
}

/// $s\theta$ of layer `l` row by row, with what some of its neighbours send.
pub(super) fn theta_from(
    engine: &Packed,
    l: LayerId,
    from: impl Fn(LayerId) -> bool + Sync + Copy,
    x: &mut State,
) -> Vec<f32> {
    let (n_rows, len) = (x.n_rows(), engine.layers()[l.0].len);
    let mut buffers = BUFFERS.take();
    engine.prepare_from(l, from, x, &mut buffers.sources);
    panels_of_theta_from(engine, l, from, x, &buffers.sources, &mut buffers.theta);
    let mut out = Vec::with_capacity(n_rows * len);
    for row in 0..n_rows {
        for panel in 0..len.div_ceil(PANEL) {
            let at = (panel * n_rows + row) * PANEL;
            out.extend_from_slice(&buffers.theta[at..at + PANEL.min(len - panel * PANEL)]);
        }
    }
    BUFFERS.set(buffers);
    out
}

/// $s\theta$ of layer `l`, panel by panel.
pub(super) fn panels_of_theta(
    engine: &Packed,
    l: LayerId,
    x: &State,
    sources: &[Operand],
    out: &mut Vec<f32>,
) {
    panels_of_theta_from(engine, l, |_| true, x, sources, out);
}

/// The same with what some of the neighbours send.
fn panels_of_theta_from(
    engine: &Packed,
    l: LayerId,
    from: impl Fn(LayerId) -> bool + Sync,
    x: &State,
    sources: &[Operand],
    out: &mut Vec<f32>,
) {
    let (n_rows, len) = (x.n_rows(), engine.layers()[l.0].len);
    let n_panels = len.div_ceil(PANEL);
    out.resize(n_panels * n_rows * PANEL, 0.0);
    let parallel = worth_threads(x, len);
    each_panel(out, n_rows * PANEL, parallel, |panel, out| {
        with_scratch(|scratch| {
            let mut theta = std::mem::take(&mut scratch.theta);
            let n_tiles = engine.layers()[l.0].tiles_of(panel);
            theta.resize(TILES * n_rows, Wide::ZERO);
            let tiles = &mut theta[..n_tiles * n_rows];
            engine.theta_panel_from(l, &from, panel, sources, tiles, scratch);
            for (half, theta) in tiles.chunks_exact(n_rows.max(1)).enumerate() {
                for (out, theta) in out.chunks_exact_mut(PANEL).zip(theta) {
                    out[half * TILE..(half + 1) * TILE].copy_from_slice(&theta.0);
                }
            }
            scratch.theta = theta;
        });
    });
}

/// Writes what [`panels_of_theta`] wrote for a layer with $s = 1$ to some columns of rows of `n` numbers.
pub(super) fn rows_of_panels(
    panels: &[f32],
    n_rows: usize,
    columns: std::ops::Range<usize>,
    n: usize,
    out: &mut [f32],
) {
    for (row, out) in out.chunks_exact_mut(n).enumerate() {
        for (panel, out) in out[columns.clone()].chunks_mut(PANEL).enumerate() {
            let at = (panel * n_rows + row) * PANEL;
            out.copy_from_slice(&panels[at..at + out.len()]);
        }
    }
}

/// Appends one row of what [`panels_of_theta`] wrote, without $s$.
fn row_of_theta(
    panels: &[f32],
    row: usize,
    n_rows: usize,
    len: usize,
    scale: f64,
    out: &mut Vec<f64>,
) {
    for panel in 0..len.div_ceil(PANEL) {
        let at = (panel * n_rows + row) * PANEL;
        let width = PANEL.min(len - panel * PANEL);
        out.extend(panels[at..at + width].iter().map(|t| f64::from(*t) / scale));
    }
}

/// Natural parameters by the kernels, responses one row at a time.
fn respond_by_row(
    (walk, engine): (&Walk<'_>, &Packed),
    x: &mut State,
    l: LayerId,
    active: &[usize],
    response: Response,
    change: &mut [f64],
    buffers: &mut Buffers,
) {
    let n_rows = x.n_rows();
    let layer = &engine.layers()[l.0];
    let len = layer.len;
    let Buffers { sources, theta: all, .. } = buffers;
    panels_of_theta(engine, l, x, sources, all);
    let theta_of = |row: usize, out: &mut Vec<f64>| {
        out.clear();
        row_of_theta(all, row, n_rows, len, layer.scale, out);
    };
    let is_active = |row: usize| active.len() == n_rows || active.binary_search(&row).is_ok();
    let rows = x.layers[l.0].numbers_mut().par_chunks_exact_mut(len).zip(change.par_iter_mut());
    let respond = |scratch: &mut Scratch, (row, (x, change)): (usize, (&mut [f64], &mut f64))| {
        if !is_active(row) {
            return;
        }
        let mut theta = std::mem::take(&mut scratch.theta);
        theta_of(row, &mut theta);
        scratch.change.clear();
        scratch.change.push(*change);
        let place = Place { layer: l, row, start: 0, entries: None };
        walk.respond_row(place, &mut theta, x, 0, scratch, response);
        *change = scratch.change[0];
        scratch.theta = theta;
    };
    rows.enumerate().with_min_len(16).for_each_init(Scratch::default, respond);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Arithmetic;
    use crate::models::{Dbm, Rbm};

    /// Whether weights are transposed once or on the way, for few samples and many, sparse and not:
    /// the products are the same to the bit.
    #[test]
    fn transposing_on_the_way_changes_nothing() {
        let machines = [
            Rbm::binary(70, 150).unwrap().into_machine(),
            Dbm::binary(40, &[75, 33]).unwrap().into_machine(),
        ];
        for (mut machine, bias) in machines.into_iter().flat_map(|m| [(m.clone(), -4.0), (m, 0.0)])
        {
            for c in machine.couplings_mut() {
                let entries = c.weights.entries_mut().iter_mut().enumerate();
                entries.for_each(|(i, w)| *w = (i as f64).sin());
            }
            machine.layers_mut().iter_mut().for_each(|layer| layer.bias.fill(bias));
            let kept = Sampler::new(machine.clone(), Arithmetic::F32);
            let made = kept.clone().expecting_updates();
            for n in [1, 3, 20, 90] {
                let run = |sampler: &Sampler| {
                    let mut x = State::zeros(&machine, n).unwrap();
                    sampler.gibbs(&Clamp::none(), &mut x, 3, Stream::new(7)).unwrap();
                    x
                };
                let (a, b) = (run(&kept), run(&made));
                for l in machine.layer_ids() {
                    assert!((0..n).all(|r| a.row(l, r) == b.row(l, r)), "{n} rows of {l:?}");
                }
            }
        }
    }
}
