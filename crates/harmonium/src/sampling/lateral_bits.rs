//! Laterally coupled bits by the kernels: rows are cut into tasks, units stand side by side.
//!
//! *Dense:* 64 units at a time. Their inputs from all units, at the values these have now, are one
//! product of bits and weights by tables; then they are sampled one after the other, 32 rows side
//! by side, each change being added to the inputs of those that follow.
//!
//! *Sparse:* units stand in the order of their colours, and a unit adds up what its neighbours
//! send. A sweep costs what the edges cost.
//!
//! Rows do not see each other, so a task walks through the whole layer on its own.

use crate::engine::{DenseBand, EngineLayer, Lateral, Operand, Slots, with_scratch};
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::lateral::{
    Draws, Heat, Input, LANES, Lanes, Variates, sample_in_turn, sample_together, to_lanes,
    transpose_bits,
};
use harmonium_kernels::line::{Line, PANEL, TILE, Wide};
use harmonium_kernels::random::{Site, Stream};
use harmonium_kernels::tables::Tiles;
use rayon::prelude::*;
use std::ops::Range;

/// Work below which waking other threads costs more than it saves.
const WORTH_THREADS: usize = 50_000;

/// Rows of one task of a dense layer: few enough to share the work out, and where there are many
/// rows, enough of them for a table of partial sums to pay.
fn rows_per_task(n_rows: usize) -> usize {
    if n_rows <= 128 { 64 } else { 128 }
}

/// Whether a visit is large enough to share it out.
pub(super) fn worth_threads(layer: &EngineLayer, n_rows: usize) -> bool {
    let per_row = match &layer.lateral {
        Some(Lateral::Dense(_)) => layer.len * layer.len / 8,
        Some(Lateral::Sparse(_)) | None => 8 * layer.len,
    };
    n_rows * per_row > WORTH_THREADS
}

/// One visit of a layer.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) layer: &'a EngineLayer,
    /// Its biases in tiles of 32.
    pub(super) lines: &'a [Wide],
    pub(super) n_rows: usize,
    /// $s\theta$ without the lateral part, panel by panel, if other layers take part in it.
    pub(super) input: Option<&'a Vec<f32>>,
    /// A $\beta$ for each row; empty at temperature 1.
    pub(super) betas: &'a [f32],
    /// Where the natural parameters end at $\beta = 0$.
    pub(super) base: Option<&'a Vec<f64>>,
    pub(super) stream: Stream,
    pub(super) site: Site,
}

impl Visit<'_> {
    /// Replaces the bits of a layer whose units all see each other.
    pub(super) fn dense(&self, band: &DenseBand, bits: &mut BitMatrix, parallel: bool) {
        self.in_tasks(rows_per_task(self.n_rows), bits, parallel, |rows, bits| {
            self.dense_rows(band, rows, bits);
        });
    }

    /// Replaces the bits of a sparsely coupled layer.
    pub(super) fn sparse(&self, slots: &Slots, bits: &mut BitMatrix, parallel: bool) {
        // In slots: what units receive from their biases, and where they end at β = 0.
        let (mut same, mut base) = (vec![0.0; slots.n], vec![0.0; slots.n]);
        for (unit, &slot) in slots.of_unit.iter().enumerate() {
            same[slot] = self.lines[unit / TILE].0[unit % TILE] + slots.shifts[unit];
            base[slot] = self.base_of(unit);
        }
        self.in_tasks(LANES, bits, parallel, |rows, bits| {
            self.sparse_rows(slots, (&same, &base), rows, bits);
        });
    }

    /// Cuts the rows into tasks of `size`, which depends on the shape alone.
    fn in_tasks(
        &self,
        size: usize,
        bits: &mut BitMatrix,
        parallel: bool,
        work: impl Fn(Range<usize>, &mut BitMatrix) + Sync,
    ) {
        let old = &*bits;
        let run = |first: usize| {
            let rows = first..self.n_rows.min(first + size);
            let mut mine = BitMatrix::zeros(0, old.n_columns());
            rows.clone().for_each(|r| mine.push_words(old.row(r)));
            work(rows, &mut mine);
            mine
        };
        let starts = (0..self.n_rows.div_ceil(size)).map(|k| k * size);
        let parts: Vec<BitMatrix> = if parallel && rayon::current_num_threads() > 1 {
            let starts: Vec<usize> = starts.collect();
            starts.into_par_iter().map(run).collect()
        } else {
            starts.map(run).collect()
        };
        bits.clear();
        for part in &parts {
            (0..part.n_rows()).for_each(|r| bits.push_words(part.row(r)));
        }
    }

    /// $\beta$ of 32 rows from `first` on.
    fn lanes_of_betas(&self, first: usize) -> Lanes {
        let at = |l| self.betas.get(first + l).copied().unwrap_or(1.0);
        Line(std::array::from_fn(at))
    }

    /// Where the natural parameter of a unit ends at $\beta = 0$.
    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
    fn base_of(&self, unit: usize) -> f32 {
        self.base.map_or(0.0, |base| (self.layer.scale * base[unit]) as f32)
    }

    /// $s\theta$ of a tile in one row, without the lateral part.
    fn input_of(&self, tile: usize, row: usize) -> Wide {
        match self.input {
            None => self.lines[tile],
            Some(panels) => {
                let at = (tile / 2 * self.n_rows + row) * PANEL + tile % 2 * TILE;
                Line(std::array::from_fn(|l| panels[at + l]))
            }
        }
    }

    /// The variates of 32 rows from `first` on.
    fn draws(&self, first: usize) -> Draws {
        let site = Site { row: u32::try_from(first).unwrap_or(u32::MAX), ..self.site };
        Draws { stream: self.stream, site }
    }

    fn dense_rows(&self, band: &DenseBand, rows: Range<usize>, bits: &mut BitMatrix) {
        let len = self.layer.len;
        let n_groups = rows.len().div_ceil(LANES);
        let gain = band.band.links[0].gain;
        let mut source = Operand::default();
        let mut theta = vec![Wide::ZERO; rows.len()];
        let mut lanes = vec![Lanes::ZERO; n_groups * PANEL];
        let mut variates = Variates::default();
        let mut words = vec![0_u64; rows.len()];
        let base: Vec<f32> = (0..len).map(|unit| self.base_of(unit)).collect();
        for (panel, base) in base.chunks(PANEL).enumerate() {
            source.set_bits(&[&*bits], band.band.arithmetic());
            for tile in [2 * panel, 2 * panel + 1] {
                if tile * TILE >= len {
                    continue;
                }
                for (theta, row) in theta.iter_mut().zip(rows.clone()) {
                    *theta = self.input_of(tile, row);
                    theta.0.iter_mut().zip(band.lines[tile].0).for_each(|(t, s)| *t += s);
                }
                let out = Tiles { theta: &mut theta, start: None, n_tiles: 1 };
                with_scratch(|s| band.band.add_to_columns(0, tile, &source, out, s));
                for (group, theta) in theta.chunks(LANES).enumerate() {
                    let at = group * PANEL + tile % 2 * TILE;
                    to_lanes(theta, &mut lanes[at..at + TILE]);
                }
            }
            let own = &band.band.panels[panel][0].weights[panel * PANEL..];
            for (group, lanes) in lanes.chunks_exact_mut(PANEL).enumerate() {
                let first = group * LANES;
                let betas = self.lanes_of_betas(rows.start + first);
                let group_rows = first..rows.len().min(first + LANES);
                for (half, base) in base.chunks(TILE).enumerate() {
                    let mut square = [0; LANES];
                    for (word, row) in square.iter_mut().zip(group_rows.clone()) {
                        *word = half_of(bits.row(row)[panel], half);
                    }
                    transpose_bits(&mut square);
                    let start = half * TILE;
                    let heat = Heat { betas: &betas, base };
                    let tile = u32::try_from(2 * panel + half).unwrap_or(u32::MAX);
                    variates.draw(self.draws(rows.start + first), tile);
                    let (theta, own) = (&mut lanes[start..], &own[start..]);
                    let units = &mut square[..base.len()];
                    sample_in_turn(theta, own, start, gain, heat, &variates, units);
                    transpose_bits(&mut square);
                    for (word, half_word) in words[group_rows.clone()].iter_mut().zip(square) {
                        set_half(word, half, half_word);
                    }
                }
            }
            bits.set_panel(panel, &words);
        }
    }

    fn sparse_rows(
        &self,
        slots: &Slots,
        (same, base): (&[f32], &[f32]),
        rows: Range<usize>,
        bits: &mut BitMatrix,
    ) {
        let len = self.layer.len;
        let mut words = vec![0; slots.n];
        let mut square = [0; LANES];
        for tile in 0..len.div_ceil(TILE) {
            let units = tile * TILE..len.min((tile + 1) * TILE);
            square.fill(0);
            for (r, word) in square[..rows.len()].iter_mut().enumerate() {
                *word = half_of(bits.row(r)[tile / 2], tile % 2);
            }
            transpose_bits(&mut square);
            units.zip(square).for_each(|(unit, word)| words[slots.of_unit[unit]] = word);
        }
        let each = self.input.map(|_| self.inputs_in_slots(slots, &rows));
        let betas = self.lanes_of_betas(rows.start);
        let draws = self.draws(rows.start);
        for first in (0..slots.n).step_by(TILE) {
            let range = first..first + TILE;
            let input = match &each {
                None => Input::Same(&same[range.clone()]),
                Some(each) => Input::Each(&each[range.clone()]),
            };
            let heat = Heat { betas: &betas, base: &base[range] };
            sample_together(input, first, &slots.links, heat, draws, &mut words);
        }
        let mut panels = vec![0_u64; rows.len()];
        for tile in 0..len.div_ceil(TILE) {
            let units = tile * TILE..len.min((tile + 1) * TILE);
            square.fill(0);
            square.iter_mut().zip(units).for_each(|(w, unit)| *w = words[slots.of_unit[unit]]);
            transpose_bits(&mut square);
            for (word, half_word) in panels.iter_mut().zip(square) {
                set_half(word, tile % 2, half_word);
            }
            if tile % 2 == 1 || (tile + 1) * TILE >= len {
                bits.set_panel(tile / 2, &panels);
                panels.fill(0);
            }
        }
    }
}

impl Visit<'_> {
    /// What the units receive from other layers and their biases, in slots, 32 rows side by side.
    fn inputs_in_slots(&self, slots: &Slots, rows: &Range<usize>) -> Vec<Lanes> {
        let mut each = vec![Lanes::ZERO; slots.n];
        let mut turned = [Lanes::ZERO; TILE];
        for tile in 0..self.layer.len.div_ceil(TILE) {
            let inputs: Vec<Wide> = rows.clone().map(|row| self.input_of(tile, row)).collect();
            to_lanes(&inputs, &mut turned);
            for (&slot, (mut input, unit)) in
                slots.of_unit[tile * TILE..].iter().zip(turned.into_iter().zip(tile * TILE..))
            {
                input.0.iter_mut().for_each(|t| *t += slots.shifts[unit]);
                each[slot] = input;
            }
        }
        each
    }
}

/// 32 of the 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "half of a word")]
fn half_of(word: u64, half: usize) -> u32 {
    (word >> (32 * half)) as u32
}

fn set_half(word: &mut u64, half: usize, bits: u32) {
    *word = *word & !(0xffff_ffff << (32 * half)) | u64::from(bits) << (32 * half);
}
