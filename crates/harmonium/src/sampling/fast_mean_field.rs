//! Fast mean field, by the kernels: whole layers of binary units or spins, in single precision.
//!
//! What held layers send is the same in every sweep, so it is multiplied once; the rest are
//! products of means and weights: master weights, or quantised ones with means of 14 bits where the
//! engine is quantised. Rows are cut into pieces that run to their end without
//! waiting for each other, and rows that have come to rest leave their piece, so that the products
//! shrink with it.

use super::Clamp;
use super::mean_field::{Report, iterate};
use super::packed::theta_from;
use super::walk::{Heat, Response, Walk};
use crate::engine::{Arithmetic, Packed, Scratch, with_scratch};
use crate::machine::{LayerId, State};
use crate::units::Storage;
use harmonium_kernels::line::{TILE, Wide, flat_mut};
use harmonium_kernels::means::Means;
use harmonium_kernels::response::{move_towards, probabilities};
use rayon::prelude::*;

/// Rows of a piece, at most; fixed, so that results do not depend on the number of threads.
const ROWS: usize = 64;

/// Whether this way knows the units that are free, and how they are to respond.
pub(super) fn fits(walk: &Walk<'_>, engine: &Packed, response: Response) -> bool {
    let known = |l| walk.clamp.holds_layer(l) || (walk.clamp.frees_layer(l) && knows(engine, l));
    matches!((response, walk.heat), (Response::Mean, Heat::None))
        && (0..engine.layers().len()).map(LayerId).all(known)
}

/// Whether the kernels answer for the units of a layer.
pub(super) fn knows(engine: &Packed, l: LayerId) -> bool {
    let layer = &engine.layers()[l.0];
    layer.lateral.is_none() && layer.units.storage() == Storage::Bits
}

/// Puts layer `l` at its means given the rest, where the neighbours that wait stand as in `at_rest`
/// in every row: what they send is multiplied once.
pub(super) fn start(
    engine: &Packed,
    l: LayerId,
    waits: impl Fn(LayerId) -> bool + Sync + Copy,
    at_rest: &mut State,
    x: &mut State,
) {
    let layer = &engine.layers()[l.0];
    let alone = theta_from(engine, l, |_| false, at_rest);
    let waiting = theta_from(engine, l, waits, at_rest);
    let mut theta = theta_from(engine, l, |m| !waits(m), x);
    for row in theta.chunks_exact_mut(layer.len) {
        row.iter_mut().zip(waiting.iter().zip(&alone)).for_each(|(t, (w, a))| *t += w - a);
    }
    let mut lines = vec![Wide::ZERO; theta.len().div_ceil(TILE)];
    flat_mut(&mut lines)[..theta.len()].copy_from_slice(&theta);
    probabilities(&mut lines);
    let out = x.layers[l.0].numbers_mut();
    for (out, p) in out.iter_mut().zip(flat_mut(&mut lines)) {
        *out = layer.scale * f64::from(*p) + layer.shift;
    }
}

/// Sweeps every row until it moves no more than `tolerance`.
pub(super) fn until_still(
    walk: &Walk<'_>,
    engine: &Packed,
    x: &mut State,
    max_sweeps: usize,
    tolerance: f64,
) -> Vec<Report> {
    let n_rows = x.n_rows();
    let free = free_layers(engine, walk.clamp);
    let held = |m: LayerId| walk.clamp.holds_layer(m);
    let held: Vec<Vec<f32>> = free.iter().map(|&l| theta_from(engine, l, held, x)).collect();
    let n_pieces = n_rows.div_ceil(ROWS);
    let mut pieces: Vec<Piece<'_>> = (0..n_pieces)
        .map(|p| p * n_rows / n_pieces..(p + 1) * n_rows / n_pieces)
        .map(|rows| Piece::new(walk, engine, x, &free, &held, rows))
        .collect();
    let reports = pieces.par_iter_mut().map(|piece| {
        let n = piece.rows.len();
        let report = iterate(n, max_sweeps, tolerance, &mut |active, change| {
            piece.sweep(active, change);
        });
        let rest: Vec<usize> = (0..piece.current.len()).collect();
        piece.leave(&rest);
        report
    });
    let reports = reports.collect();
    for (k, &l) in free.iter().enumerate() {
        let len = engine.layers()[l.0].len;
        let out = x.layers[l.0].numbers_mut();
        for piece in &pieces {
            let range = piece.rows.start * len..piece.rows.end * len;
            out[range].copy_from_slice(&piece.layers[k].done);
        }
    }
    reports
}

/// In the order of a sweep.
fn free_layers(engine: &Packed, clamp: &Clamp) -> Vec<LayerId> {
    let layers = engine.schedule().iter().flatten().copied();
    layers.filter(|&l| !clamp.holds_layer(l)).collect()
}

/// Some rows of all free layers.
struct Piece<'a> {
    engine: &'a Packed,
    step: f32,
    rows: std::ops::Range<usize>,
    /// The rows that still move, counted from the first.
    current: Vec<usize>,
    layers: Vec<Free>,
    theta: Vec<Wide>,
}

/// A free layer in the rows of a piece.
struct Free {
    id: LayerId,
    len: usize,
    scale: f32,
    shift: f64,
    /// $x - t$ of the rows that still move.
    means: Vec<f32>,
    /// The same as the kernels of quantised weights want it.
    rounded: Means,
    /// $s\theta$ as far as it does not change, of the same rows.
    held: Vec<f32>,
    /// Where it sees other free layers: their places among them.
    sees: Vec<usize>,
    /// $x$ of the rows that have come to rest.
    done: Vec<f64>,
}

impl<'a> Piece<'a> {
    fn new(
        walk: &Walk<'_>,
        engine: &'a Packed,
        x: &State,
        free: &[LayerId],
        held: &[Vec<f32>],
        rows: std::ops::Range<usize>,
    ) -> Self {
        let layers = free.iter().zip(held).map(|(&id, held)| {
            let layer = &engine.layers()[id.0];
            let range = rows.start * layer.len..rows.end * layer.len;
            let values = &x.layers[id.0].numbers()[range.clone()];
            #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
            let (means, scale) =
                (values.iter().map(|x| (x - layer.shift) as f32).collect(), layer.scale as f32);
            let seen = |&(_, m): &(usize, &LayerId)| engine.neighbours(id).any(|n| n == *m);
            Free {
                id,
                len: layer.len,
                scale,
                shift: layer.shift,
                means,
                rounded: Means::default(),
                held: held[range.clone()].to_vec(),
                sees: free.iter().enumerate().filter(seen).map(|(k, _)| k).collect(),
                done: vec![0.0; range.len()],
            }
        });
        #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
        let step = walk.step as f32;
        let (layers, current) = (layers.collect(), (0..rows.len()).collect());
        let mut piece = Self { engine, step, rows, current, layers, theta: Vec::new() };
        piece.layers.iter_mut().for_each(|layer| layer.round(engine));
        piece
    }

    /// Visits every layer once in the rows `active`, and writes the largest change of each.
    fn sweep(&mut self, active: &[usize], change: &mut Vec<f64>) {
        if active.len() < self.current.len() {
            let still: Vec<usize> = (0..self.current.len())
                .filter(|&k| active.binary_search(&self.current[k]).is_err())
                .collect();
            self.leave(&still);
            for layer in &mut self.layers {
                keep_rows(&mut layer.means, layer.len, &still);
                keep_rows(&mut layer.held, layer.len, &still);
                layer.round(self.engine);
            }
            self.current = active.to_vec();
        }
        change.clear();
        change.resize(self.rows.len(), 0.0);
        for k in 0..self.layers.len() {
            self.visit(k, change);
        }
    }

    fn visit(&mut self, k: usize, change: &mut [f64]) {
        if self.engine.arithmetic() == Arithmetic::I16 {
            return with_scratch(|scratch| self.visit_quantised(k, change, scratch));
        }
        let n = self.current.len();
        let Free { id, len, scale, .. } = self.layers[k];
        self.theta.resize((n * len).div_ceil(TILE), Wide::ZERO);
        let theta = &mut flat_mut(&mut self.theta)[..n * len];
        theta.copy_from_slice(&self.layers[k].held);
        for &m in &self.layers[k].sees {
            let source = &self.layers[m];
            self.engine.add_numbers(id, source.id, &source.means, n, theta);
        }
        probabilities(&mut self.theta);
        let new = flat_mut(&mut self.theta)[..n * len].chunks_exact(len);
        let old = self.layers[k].means.chunks_exact_mut(len);
        for (&row, (old, new)) in self.current.iter().zip(old.zip(new)) {
            let most = move_towards(old, new, scale, self.step);
            change[row] = change[row].max(f64::from(most));
        }
    }

    /// 32 units after the other.
    fn visit_quantised(&mut self, k: usize, change: &mut [f64], scratch: &mut Scratch) {
        let n = self.current.len();
        let Free { id, len, scale, .. } = self.layers[k];
        self.theta.resize(n, Wide::ZERO);
        for tile in 0..len.div_ceil(TILE) {
            let range = tile * TILE..len.min((tile + 1) * TILE);
            for (theta, held) in self.theta.iter_mut().zip(self.layers[k].held.chunks_exact(len)) {
                theta.0[..range.len()].copy_from_slice(&held[range.clone()]);
            }
            for &m in &self.layers[k].sees {
                let source = &self.layers[m];
                let (ends, means) = ((id, source.id), &source.rounded);
                self.engine.add_means(ends, tile, means, &mut self.theta, scratch);
            }
            probabilities(&mut self.theta);
            let old = self.layers[k].means.chunks_exact_mut(len);
            for (&row, (old, new)) in self.current.iter().zip(old.zip(&self.theta)) {
                let most = move_towards(&mut old[range.clone()], &new.0, scale, self.step);
                change[row] = change[row].max(f64::from(most));
            }
        }
        self.layers[k].round(self.engine);
    }

    /// Takes down rows that have come to rest, by their places among the current ones.
    fn leave(&mut self, places: &[usize]) {
        for Free { len, shift, means, done, .. } in &mut self.layers {
            for &place in places {
                let row = self.current[place];
                let out = &mut done[row * *len..(row + 1) * *len];
                let means = &means[place * *len..(place + 1) * *len];
                out.iter_mut().zip(means).for_each(|(o, m)| *o = f64::from(*m) + *shift);
            }
        }
    }
}

impl Free {
    /// Follows the means where weights are quantised.
    fn round(&mut self, engine: &Packed) {
        if engine.arithmetic() == Arithmetic::I16 {
            self.rounded.fill(&self.means, self.len, 1.0 / self.scale);
        }
    }
}

/// Drops the rows at the places named, which rise.
fn keep_rows(values: &mut Vec<f32>, len: usize, dropped: &[usize]) {
    let (mut to, mut next) = (0, dropped.iter().peekable());
    for row in 0..values.len() / len {
        if next.next_if_eq(&&row).is_none() {
            values.copy_within(row * len..(row + 1) * len, to * len);
            to += 1;
        }
    }
    values.truncate(to * len);
}
