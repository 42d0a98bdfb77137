//! The weights towards one layer, laid out for the kernels.
//!
//! A band holds every coupling between its layer, whose columns are cut into panels of 64, and the
//! layers that come before it in the schedule, whose entries are rows. Master weights are single
//! precision; quantised and transposed copies are derived from them. A spin is a bit in other
//! coordinates, $x = s u + t$ with $s = 2$, $t = -1$, so every sample of a discrete layer is bits
//! here: the gain $s_l s_m$ stands before the product and $t$ is folded into the biases.

use super::LayerId;
use super::learn::PanelBuffers;
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::index::{Form, Samples};
use harmonium_kernels::line::{
    HALF, Line, PANEL, Quantum, Row, Single, TILE, Wide, flat, flat_mut,
};
use harmonium_kernels::real::{View, multiply_add};
use harmonium_kernels::tables::{self, BLOCK, Tables};
use harmonium_kernels::update::{Copies, add_row_sums, scale_for, transpose_single};
use std::cell::RefCell;

/// Panels of one block of transposed rows.
pub(super) const PANELS_PER_BLOCK: usize = BLOCK / PANEL;

/// All weights towards a layer from those before it.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    pub(crate) layer: LayerId,
    pub(crate) len: usize,
    pub(crate) links: Vec<Link>,
    /// `panels[p][c]`: columns `64 p..64 p + 64` of link `c`.
    pub(crate) panels: Vec<Vec<Panel>>,
}

/// One coupling of a band.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// Its number in the machine.
    pub(crate) coupling: usize,
    /// The layer whose entries are rows.
    pub(crate) source: LayerId,
    pub(crate) n_rows: usize,
    /// $s_l s_m$, for bits.
    pub(crate) gain: f32,
    /// $s$ of the source and of the band's layer: the gain of numbers is the target's alone.
    scales: (f32, f32),
    /// The scale of each row in each block of columns.
    pub(crate) row_scales: Vec<Vec<f32>>,
    /// The gain over that scale, for each tile of rows and each block.
    row_units: Vec<Wide>,
    /// A buffer: subset sums of eight rows each.
    bounds: Vec<[u32; 8]>,
}

/// 64 columns of one coupling.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panel {
    pub(crate) weights: Vec<Row>,
    /// `transposed[t * 64 + j]`: rows `16 t..16 t + 16` of column `j`; empty if quantised.
    transposed: Vec<Single>,
    /// Empty unless quantised.
    pub(crate) copies: Copies,
    /// The gain over the scale, for each tile of columns and each block of rows.
    units: Vec<Wide>,
}

/// What a layer holds, as a product wants it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    bits: Samples,
    /// $x - t$, row by row, where the layer does not hold bits.
    numbers: Vec<f32>,
    is_bits: bool,
}

impl Source {
    /// Takes up stacked rows of bits.
    pub(crate) fn set_bits(&mut self, parts: &[&BitMatrix]) {
        self.is_bits = true;
        self.bits.fill(parts);
    }

    /// Takes up numbers of a layer with shift $t$.
    pub(crate) fn set_numbers(&mut self, values: &[f64], shift: f64) {
        self.is_bits = false;
        self.numbers.clear();
        #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
        self.numbers.extend(values.iter().map(|x| (x - shift) as f32));
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Runs `work` with the buffers of this thread.
pub(crate) fn with_scratch<R>(work: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with(|scratch| work(&mut scratch.borrow_mut()))
}

/// Buffers of one thread.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) single: Tables<f32, HALF>,
    pub(crate) quantised: Tables<i16, TILE>,
    pub(crate) fields: Tables<u16, TILE>,
    sums: Vec<Quantum>,
    /// Natural parameters or probabilities of one tile.
    pub(crate) theta: Vec<Wide>,
    /// 32 bits for each row.
    pub(crate) words: Vec<u32>,
    pub(super) panel: PanelBuffers,
}

impl Band {
    pub(super) fn new(layer: LayerId, len: usize, links: Vec<Link>, quantised: bool) -> Self {
        let panel = |link: &Link| {
            let n = link.n_rows;
            let weights = vec![Row::ZERO; n];
            let n_blocks = n.div_ceil(BLOCK);
            if quantised {
                let units = vec![Wide::ZERO; PANEL / TILE * n_blocks];
                return Panel { weights, copies: Copies::new(n), units, ..Panel::default() };
            }
            let transposed = vec![Single::ZERO; n.div_ceil(HALF) * PANEL];
            Panel { weights, transposed, ..Panel::default() }
        };
        let n_panels = len.div_ceil(PANEL);
        let panels = (0..n_panels).map(|_| links.iter().map(panel).collect()).collect();
        Self { layer, len, links, panels }
    }

    pub(super) fn link(
        coupling: usize,
        source: LayerId,
        n_rows: usize,
        n_columns: usize,
        scales: (f32, f32),
    ) -> Link {
        let n_blocks = n_columns.div_ceil(BLOCK);
        let n_tiles = n_rows.div_ceil(TILE);
        Link {
            coupling,
            source,
            n_rows,
            gain: scales.0 * scales.1,
            scales,
            row_scales: vec![vec![1.0; n_tiles * TILE]; n_blocks],
            row_units: vec![Wide::ZERO; n_tiles * n_blocks],
            bounds: Vec::new(),
        }
    }

    /// Takes over weights from a function of row and column, and derives the copies.
    pub(super) fn set_weights(&mut self, c: usize, weight: impl Fn(usize, usize) -> f64) {
        let len = self.len;
        for (p, panel) in self.panels.iter_mut().enumerate() {
            for (i, row) in panel[c].weights.iter_mut().enumerate() {
                for l in 0..PANEL.min(len - p * PANEL) {
                    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
                    let w = weight(i, p * PANEL + l) as f32;
                    row.0[l] = w;
                }
            }
            let panel = &mut panel[c];
            if panel.is_quantised() {
                panel.copies.quantise(&panel.weights);
                panel.set_units(self.links[c].gain);
            } else {
                panel.transpose();
            }
        }
        for tile in 0..self.links[c].n_rows.div_ceil(TILE) {
            for block in 0..self.links[c].row_scales.len() {
                self.rescale_rows(c, tile, block);
            }
        }
    }

    /// Quantises all copies with the scales of an earlier time.
    pub(super) fn restore_scales(&mut self, c: usize, columns: &[f64], rows: &[f64]) {
        #[expect(clippy::cast_possible_truncation, reason = "they were f32 when they were stored")]
        let single = |x: &[f64]| x.iter().map(|x| *x as f32).collect::<Vec<f32>>();
        let (columns, rows) = (single(columns), single(rows));
        let link = &mut self.links[c];
        let n_blocks = link.n_rows.div_ceil(BLOCK);
        for (panel, scales) in
            self.panels.iter_mut().zip(columns.as_chunks::<PANEL>().0.chunks(n_blocks.max(1)))
        {
            let panel = &mut panel[c];
            panel.copies.restore(&panel.weights, scales);
            panel.set_units(link.gain);
        }
        let width = link.n_rows.div_ceil(TILE) * TILE;
        for (mine, stored) in link.row_scales.iter_mut().zip(rows.chunks_exact(width)) {
            mine.copy_from_slice(stored);
        }
        for tile in 0..self.links[c].n_rows.div_ceil(TILE) {
            for block in 0..self.links[c].row_scales.len() {
                self.quantise_rows(c, tile, block);
            }
        }
    }

    /// The scales of link `c`: of columns, panel by panel, and of rows.
    pub(super) fn scales(&self, c: usize) -> (Vec<f64>, Vec<f64>) {
        let columns = self.panels.iter().flat_map(|p| p[c].copies.scales.iter().flatten());
        let rows = self.links[c].row_scales.iter().flatten();
        (columns.map(|x| f64::from(*x)).collect(), rows.map(|x| f64::from(*x)).collect())
    }

    /// Where entry `(row, column)` of a link stands in a coupling's weights, which may lie the
    /// other way round.
    pub(super) fn entry(&self, c: usize, first: LayerId) -> impl Fn(usize, usize) -> usize + use<> {
        let (rows_first, n_rows, n_columns) =
            (first == self.links[c].source, self.links[c].n_rows, self.len);
        move |i, j| if rows_first { i * n_columns + j } else { j * n_rows + i }
    }

    /// Writes panels of numbers in the order of the coupling's weights.
    pub(super) fn read_into<'a>(
        &self,
        c: usize,
        first: LayerId,
        rows: impl Fn(usize) -> &'a [Row],
        out: &mut [f64],
    ) {
        let at = self.entry(c, first);
        for p in 0..self.panels.len() {
            for (i, row) in rows(p).iter().enumerate() {
                for l in 0..PANEL.min(self.len - p * PANEL) {
                    out[at(i, p * PANEL + l)] = f64::from(row.0[l]);
                }
            }
        }
    }

    /// Chooses fresh scales for rows whose sums outgrew theirs.
    pub(super) fn rescale_grown_rows(&mut self, c: usize) {
        if !self.panels.first().is_some_and(|p| p[c].is_quantised()) {
            return;
        }
        let n_groups = self.links[c].n_rows.div_ceil(8);
        for block in 0..self.links[c].row_scales.len() {
            let mut bounds = std::mem::take(&mut self.links[c].bounds);
            bounds.clear();
            bounds.resize(n_groups, [0; 8]);
            for p in self.block(block) {
                self.panels[p][c].copies.add_row_bounds(&mut bounds);
            }
            for (tile, bounds) in bounds.chunks(TILE / 8).enumerate() {
                if bounds.iter().flatten().any(|b| *b > 32_767) {
                    self.rescale_rows(c, tile, block);
                }
            }
            self.links[c].bounds = bounds;
        }
    }

    fn block(&self, block: usize) -> std::ops::Range<usize> {
        block * PANELS_PER_BLOCK..self.panels.len().min((block + 1) * PANELS_PER_BLOCK)
    }

    /// Chooses fresh scales for 32 rows in one block of columns, and quantises them.
    pub(super) fn rescale_rows(&mut self, c: usize, tile: usize, block: usize) {
        if !self.panels.first().is_some_and(|p| p[c].is_quantised()) {
            return;
        }
        let first = tile * TILE;
        let end = self.links[c].n_rows.min(first + TILE);
        let mut most = [0.0_f32; TILE];
        for p in self.block(block) {
            let mut sums = [[0.0; 2]; TILE];
            add_row_sums(&self.panels[p][c].weights[first..end], &mut sums);
            most.iter_mut().zip(sums).for_each(|(m, [up, down])| *m += up.max(down));
        }
        for (scale, m) in self.links[c].row_scales[block][first..].iter_mut().zip(most) {
            *scale = scale_for(m);
        }
        self.quantise_rows(c, tile, block);
    }

    fn quantise_rows(&mut self, c: usize, tile: usize, block: usize) {
        let range = self.block(block);
        let link = &mut self.links[c];
        let n_blocks = link.row_scales.len();
        let scales = &link.row_scales[block];
        let unit = &mut link.row_units[tile * n_blocks + block];
        for (unit, scale) in unit.0.iter_mut().zip(&scales[tile * TILE..]) {
            *unit = link.gain / scale;
        }
        for panel in &mut self.panels[range] {
            let panel = &mut panel[c];
            panel.copies.quantise_backward(&panel.weights, tile, scales);
        }
    }

    /// Adds to the natural parameters of tile `tile` of the band's layer what link `c` brings.
    pub(crate) fn add_to_columns(
        &self,
        c: usize,
        tile: usize,
        source: &Source,
        theta: &mut [Wide],
        scratch: &mut Scratch,
    ) {
        self.panels[tile / 2][c].add(&self.links[c], tile % 2, source, theta, scratch);
    }

    /// Adds to the natural parameters of tile `tile` of the source of link `c` what this band's
    /// layer, whose state is `source`, sends back.
    pub(crate) fn add_to_rows(
        &self,
        c: usize,
        tile: usize,
        source: &Source,
        theta: &mut [Wide],
        scratch: &mut Scratch,
    ) {
        let link = &self.links[c];
        if !source.is_bits {
            let (first, end) = (tile * TILE, link.n_rows.min((tile + 1) * TILE));
            for (p, panel) in self.panels.iter().enumerate() {
                let width = PANEL.min(self.len - p * PANEL);
                let weights = flat(&panel[c].weights[first..end]);
                let view = View::strided(end - first, width, PANEL).transposed();
                let n = theta.len();
                let x = (&source.numbers[p * PANEL..], View::strided(n, width, self.len));
                let out = (flat_mut(theta), View::strided(n, end - first, TILE));
                multiply_add(out, x, (weights, view), link.scales.0);
            }
            return;
        }
        if self.panels[0][c].is_quantised() {
            let n_blocks = link.row_scales.len();
            let units = &link.row_units[tile * n_blocks..(tile + 1) * n_blocks];
            let piece = |p: usize| &self.panels[p][c].copies.backward[tile * PANEL..][..PANEL];
            let pieces = Pieces::new(self.panels.len(), piece);
            add_quantised(source, self.len, |j| pieces.row(j), units, theta, scratch);
        } else {
            for half in 0..2 {
                let part = tile * 2 + half;
                if part * HALF >= link.n_rows {
                    continue;
                }
                let piece = |p: usize| &self.panels[p][c].transposed[part * PANEL..][..PANEL];
                let pieces = Pieces::new(self.panels.len(), piece);
                let row = |j| pieces.row(j);
                add_single(source, self.len, row, link.gain, half, theta, scratch);
            }
        }
    }
}

/// One tile of transposed rows, the pieces of all panels looked up beforehand.
struct Pieces<'a, T, const L: usize> {
    first: [&'a [Line<T, L>]; PIECES],
    /// Those of the panels beyond, which few layers have.
    rest: Vec<&'a [Line<T, L>]>,
}

/// Panels whose pieces need no memory of their own: 2048 columns.
const PIECES: usize = 32;

impl<'a, T, const L: usize> Pieces<'a, T, L> {
    fn new(n: usize, piece: impl Fn(usize) -> &'a [Line<T, L>]) -> Self {
        let mut first: [&[Line<T, L>]; PIECES] = [&[]; PIECES];
        first.iter_mut().enumerate().take(n).for_each(|(p, out)| *out = piece(p));
        Self { first, rest: (PIECES..n).map(piece).collect() }
    }

    #[inline]
    fn row(&self, j: usize) -> &'a [T; L] {
        let p = j / PANEL;
        let piece = if p < PIECES { self.first[p] } else { self.rest[p - PIECES] };
        &piece[j % PANEL].0
    }
}

impl Panel {
    pub(crate) fn is_quantised(&self) -> bool {
        !self.units.is_empty()
    }

    /// Adds to the natural parameters of tile `half` of the panel what the link brings.
    pub(crate) fn add(
        &self,
        link: &Link,
        half: usize,
        source: &Source,
        theta: &mut [Wide],
        scratch: &mut Scratch,
    ) {
        let n = link.n_rows;
        if !source.is_bits {
            let weights = &flat(&self.weights)[half * TILE..];
            let view = View::strided(n, TILE, PANEL);
            add_real(theta, &source.numbers, n, (weights, view), link.scales.1);
        } else if self.is_quantised() {
            let n_blocks = n.div_ceil(BLOCK);
            let lines = &self.copies.forward[half * n..(half + 1) * n];
            let units = &self.units[half * n_blocks..(half + 1) * n_blocks];
            add_quantised(source, n, |i| &lines[i].0, units, theta, scratch);
        } else {
            for quarter in 0..2 {
                let row = |i: usize| self.weights[i].part(half * 2 + quarter);
                add_single(source, n, row, link.gain, quarter, theta, scratch);
            }
        }
    }

    /// Follows the scales of the copies.
    pub(crate) fn set_units(&mut self, gain: f32) {
        let n_blocks = self.copies.scales.len();
        for (block, scales) in self.copies.scales.iter().enumerate() {
            for (tile, scales) in scales.as_chunks::<TILE>().0.iter().enumerate() {
                let unit = &mut self.units[tile * n_blocks + block];
                unit.0.iter_mut().zip(scales).for_each(|(u, s)| *u = gain / s);
            }
        }
    }

    /// Follows the weights where nothing is quantised.
    pub(crate) fn transpose(&mut self) {
        for (t, out) in self.transposed.chunks_exact_mut(PANEL).enumerate() {
            transpose_single(&self.weights, t * HALF, out);
        }
    }
}

fn add_real(theta: &mut [Wide], x: &[f32], n: usize, weights: (&[f32], View), gain: f32) {
    let (rows, width) = (theta.len(), weights.1.shape.1);
    let out = (flat_mut(theta), View::strided(rows, width, TILE));
    multiply_add(out, (x, View::rows(rows, n)), weights, gain);
}

fn add_quantised<'a, R: Fn(usize) -> &'a [i16; TILE] + Copy>(
    source: &Source,
    n: usize,
    row: R,
    units: &[Wide],
    theta: &mut [Wide],
    scratch: &mut Scratch,
) {
    match source.bits.form() {
        Form::Words(words, used) => {
            if scratch.sums.len() < theta.len() {
                scratch.sums.resize(theta.len(), Quantum::ZERO);
            }
            let (sums, tables) = (&mut scratch.sums, &mut scratch.quantised);
            tables::add_quantised(words, used, row, units, theta, sums, tables);
        }
        Form::Lists(lists) => tables::add_quantised_listed(lists, n, row, units, theta),
    }
}

fn add_single<'a, R: Fn(usize) -> &'a [f32; HALF] + Copy>(
    source: &Source,
    n: usize,
    row: R,
    gain: f32,
    half: usize,
    theta: &mut [Wide],
    scratch: &mut Scratch,
) {
    match source.bits.form() {
        Form::Words(words, used) => {
            tables::add_single(words, used, row, gain, half, theta, &mut scratch.single);
        }
        Form::Lists(lists) => tables::add_single_listed(lists, n, row, gain, half, theta),
    }
}
