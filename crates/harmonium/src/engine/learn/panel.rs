//! One panel's part of a step: means, samples, gradient, update and copies while its weights are in
//! the cache.

use super::rows::StepRows;
use super::{Aim, Origin, Output, Squares, StepRates, Velocity};
use crate::engine::TILES;
use crate::engine::band::{Link, Operand, PANELS_PER_BLOCK, Panel, Scratch};
use crate::machine::{LayerId, LayerState};
use harmonium_kernels::line::{Fields, PANEL, Row, Sums, TILE, Wide, flat, flat_mut};
use harmonium_kernels::quantised::update_quantised;
use harmonium_kernels::random::{Site, Stream};
use harmonium_kernels::real::{View, multiply_add};
use harmonium_kernels::response::{Byte, probabilities, sample_means, sum_rows, to_fields};
use harmonium_kernels::tables::{Sign, Tiles, subtract_fields, sum_fields, sum_single};
use harmonium_kernels::update::{
    Dots, FieldSums, Gradient, RankOne, SingleSums, Step, gradient_into, slope_squared, squared,
    update,
};

/// Buffers of one panel's step.
#[derive(Debug, Default)]
pub(crate) struct PanelBuffers {
    /// The means of both tiles, one after the other.
    p: Vec<Wide>,
    fields: Vec<Fields>,
    sums: [Vec<Sums>; 2],
    weighted: Vec<Wide>,
    whole: Vec<Row>,
    single: Vec<Row>,
}

/// What the panels of one band share in one step.
pub(super) struct PanelWork<'a> {
    pub(super) rows: &'a StepRows,
    pub(super) links: &'a [Link],
    pub(super) layer: LayerId,
    pub(super) lines: &'a [Wide],
    pub(super) len: usize,
    pub(super) center: &'a [f32],
    pub(super) shift: &'a [f32],
    pub(super) stacked: bool,
    /// The rows of each side with $s$ and $t$, unless their means are to be computed.
    pub(super) sides: [Option<(&'a LayerState, f64, f64)>; 2],
    /// The means of each side, where somebody found them before.
    pub(super) known: [Option<&'a [Wide]>; 2],
    pub(super) draws: [Option<(Stream, usize)>; 2],
    pub(super) rates: &'a StepRates,
    pub(super) origin: Origin,
    pub(super) aim: Aim,
}

impl PanelWork<'_> {
    pub(super) fn run(
        &self,
        p: usize,
        panel: &mut [Panel],
        velocity: &mut [Velocity],
        output: &mut Output,
        scratch: &mut Scratch,
    ) {
        output.squares = Squares::default();
        if self.origin == Origin::Written {
            for (c, (panel, velocity)) in panel.iter_mut().zip(velocity).enumerate() {
                self.move_by_written((p, c), panel, velocity, output);
            }
            return;
        }
        let mut buffers = std::mem::take(&mut scratch.panel);
        let n_rows = self.rows.weights.len();
        for rows in &mut output.bits {
            rows.clear();
            rows.resize(n_rows, 0);
        }
        buffers.p.resize(TILES * n_rows, Wide::ZERO);
        self.means(p, panel, &mut buffers.p, output, scratch);
        let fields = |link: &Link| self.rows.fields[link.source.0];
        if self.links.iter().any(fields) {
            self.round(p, &mut buffers);
        }
        for (c, (panel, velocity)) in panel.iter_mut().zip(velocity).enumerate() {
            if fields(&self.links[c]) {
                self.move_by_fields((p, c), panel, velocity, output, &mut buffers, scratch);
            } else {
                self.move_by_numbers((p, c), panel, velocity, output, &mut buffers, scratch);
            }
        }
        scratch.panel = buffers;
    }

    /// The probabilities of a panel for the rows of both sides, their sums, and samples where
    /// they are asked for.
    fn means(
        &self,
        p: usize,
        panel: &[Panel],
        out: &mut [Wide],
        output: &mut Output,
        scratch: &mut Scratch,
    ) {
        let n_rows = self.rows.weights.len();
        let n_tiles = TILES.min(self.len.div_ceil(TILE) - p * TILES);
        let (out, beyond) = out.split_at_mut(n_tiles * n_rows);
        beyond.fill(Wide::ZERO);
        let lines = &self.lines[p * TILES..p * TILES + n_tiles];
        if self.stacked {
            let sources = &self.rows.stacked;
            self.add_links(
                p,
                panel,
                sources,
                Tiles { theta: out, start: Some(lines), n_tiles },
                scratch,
            );
            probabilities(out);
        } else {
            for k in 0..2 {
                self.means_of_side(k, p, panel, out, scratch);
            }
        }
        for half in 0..TILES {
            let Some(out) = out.get_mut(half * n_rows..(half + 1) * n_rows) else {
                output.means.iter_mut().for_each(|m| m.0[half * TILE..][..TILE].fill(0.0));
                continue;
            };
            self.finish_means(p * TILES + half, out, output, scratch);
        }
    }

    /// Adds what all links bring to the tiles of panel `p`.
    fn add_links(
        &self,
        p: usize,
        panel: &[Panel],
        sources: &[Operand],
        mut out: Tiles<'_>,
        scratch: &mut Scratch,
    ) {
        for (link, panel) in self.links.iter().zip(panel) {
            let Tiles { theta, start, n_tiles } = &mut out;
            let out = Tiles { theta, start: start.take(), n_tiles: *n_tiles };
            panel.add(link, p * TILES, &sources[link.source.0], out, scratch);
        }
    }

    /// The probabilities of a panel for the rows of side `k`, where the sides are not stacked.
    fn means_of_side(
        &self,
        k: usize,
        p: usize,
        panel: &[Panel],
        out: &mut [Wide],
        scratch: &mut Scratch,
    ) {
        let it = self.rows;
        let n_rows = it.weights.len();
        let rows = it.range(k);
        let mut tiles = out.chunks_exact_mut(n_rows.max(1)).map(|tile| &mut tile[rows.clone()]);
        if let Some((state, scale, shift)) = self.sides[k] {
            for (tile, out) in (p * TILES..).zip(tiles) {
                gather(state, tile, self.len, (scale, shift), out);
            }
        } else if let Some(known) = self.known[k] {
            for (tile, out) in (p * TILES..).zip(tiles) {
                out.copy_from_slice(&known[tile * rows.len()..][..rows.len()]);
            }
        } else {
            let n_tiles = tiles.len();
            let mut theta = std::mem::take(&mut scratch.theta);
            theta.resize(n_tiles * rows.len(), Wide::ZERO);
            let start = Some(&self.lines[p * TILES..p * TILES + n_tiles]);
            let side = Tiles { theta: &mut theta, start, n_tiles };
            self.add_links(p, panel, &it.apart[k], side, scratch);
            probabilities(&mut theta);
            for theta in theta.chunks_exact(rows.len().max(1)) {
                tiles.next().into_iter().for_each(|out| out.copy_from_slice(theta));
            }
            scratch.theta = theta;
        }
    }

    /// The sums of the probabilities of one tile, and samples where they are asked for.
    fn finish_means(
        &self,
        tile: usize,
        out: &mut [Wide],
        output: &mut Output,
        scratch: &mut Scratch,
    ) {
        let (it, half) = (self.rows, tile % TILES);
        // SideColumns beyond the last are not units: they must not learn.
        let width = TILE.min(self.len - tile * TILE);
        if width < TILE {
            out.iter_mut().for_each(|row| row.0[width..].fill(0.0));
        }
        for k in 0..2 {
            let range = it.range(k);
            let rows = &out[range.clone()];
            let sums = &mut output.means[k].0[half * TILE..(half + 1) * TILE];
            if let Some(weight) = it.uniform[k] {
                let total = sum_rows(rows);
                sums.iter_mut().zip(total.0).for_each(|(s, t)| *s = weight * t);
            } else {
                sums.fill(0.0);
                for (row, w) in rows.iter().zip(&it.weights[range]) {
                    sums.iter_mut().zip(row.0).for_each(|(s, x)| *s += w.abs() * x);
                }
            }
            let (Some((stream, sweep)), None) = (self.draws[k], self.sides[k]) else {
                output.bits[k].truncate(rows.len());
                continue;
            };
            let mut bits = std::mem::take(&mut scratch.words);
            bits.resize(rows.len(), 0);
            let site = Site::new(0, sweep, self.layer.0);
            let number = u32::try_from(tile).unwrap_or(u32::MAX);
            sample_means(rows, stream, site, number, &mut bits[..rows.len()]);
            output.bits[k].truncate(rows.len());
            for (word, &bits) in output.bits[k].iter_mut().zip(&bits) {
                *word |= u64::from(bits) << (half * TILE);
            }
            scratch.words = bits;
        }
    }

    /// Rounds the probabilities of both tiles to small fields.
    fn round(&self, p: usize, buffers: &mut PanelBuffers) {
        let n_rows = self.rows.weights.len();
        buffers.fields.resize(n_rows, Fields::ZERO);
        for (half, byte) in [Byte::Low, Byte::High].into_iter().enumerate() {
            let site = Site::new(0, 0, self.layer.0);
            let tile = u32::try_from(TILES * p + half).unwrap_or(u32::MAX);
            let dither = self.rates.stream.tile(site, tile).map(|w| w >> 24);
            let means = &buffers.p[half * n_rows..(half + 1) * n_rows];
            to_fields(means, &dither, byte, &mut buffers.fields);
        }
    }

    /// $m_j$ and $S_j$ of the panel's columns.
    fn column_factors(&self, p: usize, output: &Output) -> [Row; 2] {
        let mut factors = [Row::ZERO; 2];
        for l in 0..PANEL.min(self.len - p * PANEL) {
            factors[0].0[l] = self.center[p * PANEL + l];
            factors[1].0[l] = output.means[0].0[l] - output.means[1].0[l];
        }
        factors
    }

    fn move_by_fields(
        &self,
        (p, c): (usize, usize),
        panel: &mut Panel,
        velocity: &mut [Row],
        output: &mut Output,
        buffers: &mut PanelBuffers,
        scratch: &mut Scratch,
    ) {
        let (it, link) = (self.rows, &self.links[c]);
        let PanelBuffers { fields, sums, .. } = buffers;
        let [first, second] = sums;
        let (n_used, places) = (it.used[link.source.0].len(), &it.places[link.source.0]);
        for sums in [&mut *first, &mut *second] {
            sums.resize(n_used + 1, Sums::ZERO);
            sums[n_used] = Sums::ZERO;
        }
        let (data, model) = fields.split_at(it.n[0]);
        let words = [0, 1].map(|k: usize| it.columns[k][link.source.0].words.as_slice());
        let tables = &mut scratch.fields;
        let [w_data, w_model] = it.uniform.map(|w| link.gain * w.unwrap_or(0.0));
        if w_data == w_model {
            subtract_fields(words, [data, model], &mut first[..n_used], tables);
            let sides = FieldSums::new(first, places, w_data);
            self.advance((p, c), &sides, panel, velocity, output);
        } else {
            sum_fields(words[0], data, Sign::Start, true, &mut first[..n_used], tables);
            sum_fields(words[1], model, Sign::Start, true, &mut second[..n_used], tables);
            let sides =
                [FieldSums::new(first, places, w_data), FieldSums::new(second, places, -w_model)];
            self.advance((p, c), &sides, panel, velocity, output);
        }
    }

    fn move_by_numbers(
        &self,
        (p, c): (usize, usize),
        panel: &mut Panel,
        velocity: &mut [Row],
        output: &mut Output,
        buffers: &mut PanelBuffers,
        scratch: &mut Scratch,
    ) {
        let (it, link) = (self.rows, &self.links[c]);
        let (n_used, places) = (it.used[link.source.0].len(), &it.places[link.source.0]);
        let mut single = std::mem::take(&mut buffers.single);
        single.resize(n_used + 1, Row::ZERO);
        single[n_used] = Row::ZERO;
        // Products of bits start the sums; products of numbers are added to them.
        let starts = it.columns[0][link.source.0].is_bits;
        if !starts || self.len < (p + 1) * PANEL {
            single.fill(Row::ZERO);
        }
        for k in (0..2).filter(|&k: &usize| it.columns[k][link.source.0].is_bits) {
            self.sum_bits(k, (p, link), buffers, &mut single[..n_used], scratch);
        }
        for k in (0..2).filter(|&k: &usize| !it.columns[k][link.source.0].is_bits) {
            self.sum_numbers(k, link, buffers, &mut single);
        }
        let sums = SingleSums::new(&single, places);
        self.advance((p, c), &sums, panel, velocity, output);
        buffers.single = single;
    }

    /// Adds the products of side `k` whose rows' layer holds bits; the first side starts the sums.
    fn sum_bits(
        &self,
        k: usize,
        (p, link): (usize, &Link),
        buffers: &mut PanelBuffers,
        sums: &mut [Row],
        scratch: &mut Scratch,
    ) {
        let it = self.rows;
        let PanelBuffers { p: means, weighted, .. } = buffers;
        let (range, n_rows) = (it.range(k), it.weights.len());
        let weights = &it.weights[range.clone()];
        let words = it.columns[k][link.source.0].words.as_slice();
        let n_tiles = TILES.min(self.len.div_ceil(TILE) - p * TILES);
        for half in 0..n_tiles {
            let rows = &means[half * n_rows..][range.clone()];
            let (n, starts) = (rows.len(), k == 0);
            let part = |r: usize| &rows[r].0;
            let tables = &mut scratch.single;
            if it.uniform[k].is_some() {
                let factor = link.gain * weights.first().unwrap_or(&0.0);
                sum_single(words, n, part, factor, half, starts, sums, tables);
                continue;
            }
            weighted.resize(n, Wide::ZERO);
            for (r, (out, w)) in weighted.iter_mut().zip(weights).enumerate() {
                out.0.iter_mut().zip(part(r)).for_each(|(o, x)| *o = link.gain * w * x);
            }
            sum_single(words, n, |r| &weighted[r].0, 1.0, half, starts, sums, tables);
        }
    }

    /// Adds the products of side `k` whose rows' layer holds numbers.
    fn sum_numbers(&self, k: usize, link: &Link, buffers: &mut PanelBuffers, single: &mut [Row]) {
        let it = self.rows;
        let PanelBuffers { p: means, whole, .. } = buffers;
        let (range, n_rows) = (it.range(k), it.weights.len());
        let n = range.len();
        whole.resize(n, Row::ZERO);
        for (half, means) in means.chunks_exact(n_rows.max(1)).enumerate() {
            let rows = whole.iter_mut().zip(&means[range.clone()]);
            for ((out, row), w) in rows.zip(&it.weights[range.clone()]) {
                let out = &mut out.0[half * TILE..(half + 1) * TILE];
                out.iter_mut().zip(&row.0).for_each(|(o, x)| *o = link.gain * w * x);
            }
        }
        let x = View::rows(n, link.n_rows).transposed();
        let sums = (flat_mut(single), View::rows(link.n_rows, PANEL));
        let numbers = (it.columns[k][link.source.0].numbers.as_slice(), x);
        multiply_add(sums, numbers, (flat(whole), View::rows(n, PANEL)), 1.0);
    }

    /// Moves one link along the gradient that was written down.
    fn move_by_written(
        &self,
        (p, c): (usize, usize),
        panel: &mut Panel,
        velocity: &mut [Row],
        output: &mut Output,
    ) {
        let written = std::mem::take(&mut output.written[c]);
        let places: Vec<u32> = (0..).take(panel.weights.len()).collect();
        let sums = SingleSums::new(&written, &places);
        if self.rows.is_centered(self.layer, self.links[c].source) {
            // The terms are part of the sums: these say alone that shifts are to be followed.
            let rows = vec![[0.0; 2]; panel.weights.len()];
            let terms = RankOne { rows: &rows, columns: &[Row::ZERO; 2] };
            self.advance_by((p, c), &sums, terms, panel, velocity, output);
        } else {
            let rows = vec![[]; panel.weights.len()];
            let terms = RankOne { rows: &rows, columns: &[] };
            self.advance_by((p, c), &sums, terms, panel, velocity, output);
        }
        output.written[c] = written;
    }

    /// Moves the weights of one link and what follows from them.
    fn advance<G: Gradient>(
        &self,
        (p, c): (usize, usize),
        gradient: &G,
        panel: &mut Panel,
        velocity: &mut [Row],
        output: &mut Output,
    ) {
        let it = self.rows;
        if it.is_centered(self.layer, self.links[c].source) {
            let columns = self.column_factors(p, output);
            let terms = RankOne { rows: &it.row_factors[c], columns: &columns };
            self.advance_by((p, c), gradient, terms, panel, velocity, output);
        } else {
            let rows = vec![[]; panel.weights.len()];
            let terms = RankOne { rows: &rows, columns: &[] };
            self.advance_by((p, c), gradient, terms, panel, velocity, output);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
    fn advance_by<const K: usize, G: Gradient>(
        &self,
        (p, c): (usize, usize),
        gradient: &G,
        terms: RankOne<'_, K>,
        panel: &mut Panel,
        velocity: &mut [Row],
        output: &mut Output,
    ) {
        let (it, link, rates) = (self.rows, &self.links[c], self.rates);
        if self.aim == Aim::Write {
            gradient_into(gradient, terms, &mut output.written[c][..link.n_rows]);
            return;
        }
        let step = Step {
            rate: rates.rate as f32,
            momentum: rates.momentum as f32,
            l1: rates.l1 as f32,
            l2: rates.l2 as f32,
        };
        let looks = rates.norms || self.aim == Aim::Measure;
        let slope = if looks { slope_squared(gradient, terms, step, &panel.weights) } else { 0.0 };
        output.squares.gradient += slope;
        if self.aim == Aim::Measure {
            return;
        }
        let mut shift = Row::ZERO;
        shift.0.iter_mut().zip(&self.shift[p * PANEL..]).for_each(|(s, x)| *s = *x);
        let (columns, rows) = &mut output.dots[c];
        let row_shifts = &it.shifts[link.source.0];
        let dots = Dots { row_shifts, column_shifts: &shift, columns, rows };
        if panel.is_quantised() {
            let scales = &link.quanta[p / PANELS_PER_BLOCK];
            let copies = &mut panel.copies;
            let weights = &mut panel.weights;
            update_quantised(gradient, terms, step, weights, velocity, copies, scales, dots);
        } else {
            let transposed = &mut panel.transposed;
            update(gradient, terms, step, &mut panel.weights, velocity, dots, transposed);
        }
        if rates.norms {
            output.squares.update +=
                if velocity.is_empty() { rates.rate.powi(2) * slope } else { squared(velocity) };
            output.squares.weights += squared(&panel.weights);
        }
    }
}

/// The bits or means of one tile of a layer that is known.
#[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
fn gather(
    state: &LayerState,
    tile: usize,
    len: usize,
    (scale, shift): (f64, f64),
    out: &mut [Wide],
) {
    let first = tile * TILE;
    let width = TILE.min(len - first);
    if let Some(bits) = state.bits() {
        for (r, out) in out.iter_mut().enumerate() {
            let word = bits.row(r)[first / 64] >> (first % 64);
            for (l, o) in out.0.iter_mut().enumerate() {
                *o = if word >> l & 1 == 1 { 1.0 } else { 0.0 };
            }
        }
        return;
    }
    for (row, out) in state.numbers().chunks_exact(len).zip(out) {
        *out = Wide::ZERO;
        let values = &row[first..first + width];
        out.0.iter_mut().zip(values).for_each(|(o, x)| *o = ((x - shift) / scale) as f32);
    }
}
