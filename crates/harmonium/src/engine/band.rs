//! The weights towards one layer, laid out for the kernels.
//!
//! A band holds every coupling between its layer, whose columns are cut into panels of 64, and the
//! layers that come before it in the schedule, whose entries are rows. Master weights are single
//! precision; quantised and transposed copies are derived from them. A spin is a bit in other
//! coordinates, $x = s u + t$ with $s = 2$, $t = -1$, so every sample of a discrete layer is bits
//! here: the gain $s_l s_m$ stands before the product and $t$ is folded into the biases.

use super::Arithmetic;
use super::learn::PanelBuffers;
use crate::machine::LayerId;
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::index::{Entries, Form, Samples};
use harmonium_kernels::line::{HALF, Line, PANEL, Quantum, Row, Sums, TILE, Wide, flat, flat_mut};
use harmonium_kernels::lists;
use harmonium_kernels::means::{Means, add_means};
use harmonium_kernels::pairs::{Listing, PairSums, add_quantised_pairs, add_single_pairs};
use harmonium_kernels::quantised::{Copies, FULL, add_row_sums, largest_column_sum, scale_for};
use harmonium_kernels::real::{View, multiply_add};
use harmonium_kernels::tables::{self, BLOCK, Tables, Tiles};
use harmonium_kernels::update::transpose_single;
use rayon::prelude::*;
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
    /// $s_l s_m$: what a weight's gradient is multiplied with where samples are bits.
    pub(crate) gain: f32,
    /// What products towards the source and towards the band's layer are multiplied with.
    gains: (Gains, Gains),
    /// `quanta[b][a]`: the scale of quantised weights in block `b` of columns and `a` of rows.
    pub(crate) quanta: Vec<Vec<f32>>,
    /// The gain over that scale, and the same the other way round.
    units: Vec<Vec<f32>>,
    row_units: Vec<Vec<f32>>,
    /// A buffer: subset sums of eight rows each.
    bounds: Vec<[u16; 8]>,
}

/// What stands before a product towards a layer $l$.
#[derive(Clone, Copy, Debug)]
struct Gains {
    /// $\kappa_l s_l s_m$, for bits.
    bits: f32,
    /// $\kappa_l s_l$, for numbers.
    numbers: f32,
}

/// How a layer looks to the kernels: $s$, and how often it counts what it receives, $\kappa$.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) scale: f32,
    pub(super) copies: f32,
}

impl End {
    fn gains(self, other: Self) -> Gains {
        let numbers = self.copies * self.scale;
        Gains { bits: numbers * other.scale, numbers }
    }
}

/// 64 columns of one coupling.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panel {
    pub(crate) weights: Vec<Row>,
    /// `transposed[t * 64 + j]`: rows `32 t..32 t + 32` of column `j`; empty if quantised, or if
    /// they are transposed on the way to the product.
    pub(super) transposed: Vec<Wide>,
    /// Empty unless quantised.
    pub(crate) copies: Copies,
}

/// What a layer holds, as a product wants it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operand {
    bits: Samples,
    /// $x - t$, row by row, where the layer does not hold bits.
    numbers: Vec<f32>,
    is_bits: bool,
}

/// Bits below which it is not worth it to list them by several threads.
const WORTH_SPREADING: usize = 40_000;

impl Operand {
    /// Takes up stacked rows of bits, for weights of some arithmetic.
    pub(crate) fn set_bits(&mut self, parts: &[&BitMatrix], arithmetic: Arithmetic) {
        self.is_bits = true;
        self.bits.fill(parts, entries_of(arithmetic));
    }

    /// The same by several threads, where there are enough bits.
    pub(crate) fn set_bits_together(&mut self, parts: &[&BitMatrix], arithmetic: Arithmetic) {
        let size: usize = parts.iter().map(|part| part.n_rows() * part.n_columns()).sum();
        if size < WORTH_SPREADING || rayon::current_num_threads() < 2 {
            self.set_bits(parts, arithmetic);
            return;
        }
        self.is_bits = true;
        self.bits.fill_by(parts, entries_of(arithmetic), |strips, _, fill| {
            let strips = strips.par_iter_mut().enumerate().with_max_len(1);
            strips.for_each(|(s, strip)| with_scratch(|it| fill(s, strip, &mut it.listing)));
        });
    }

    /// Starts the tiles where the product that follows does not do so, as most of quantised
    /// weights do.
    fn start(&self, out: &mut Tiles<'_>, quantised: bool) {
        if !(self.is_bits && quantised && !matches!(self.bits.form(), Form::Lists(..))) {
            out.begin();
        }
    }

    /// Takes up numbers of a layer with shift $t$.
    pub(crate) fn set_numbers(&mut self, values: &[f64], shift: f64) {
        self.is_bits = false;
        self.numbers.clear();
        #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
        self.numbers.extend(values.iter().map(|x| (x - shift) as f32));
    }
}

fn entries_of(arithmetic: Arithmetic) -> Entries {
    if arithmetic == Arithmetic::I16 { Entries::Quantised } else { Entries::Single }
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
    single_pairs: PairSums<f32, HALF>,
    quantised_pairs: PairSums<i16, TILE>,
    listing: Listing,
    sums: Vec<Quantum>,
    packed: Vec<Sums>,
    /// One tile of weights, transposed.
    turned: Vec<Wide>,
    /// Natural parameters or probabilities of one tile.
    pub(crate) theta: Vec<Wide>,
    /// 32 bits for each row.
    pub(crate) words: Vec<u32>,
    pub(super) panel: PanelBuffers,
}

impl Band {
    /// Of its weights as products read them.
    pub(crate) fn arithmetic(&self) -> Arithmetic {
        let quantised = self.panels.iter().flatten().any(Panel::is_quantised);
        if quantised { Arithmetic::I16 } else { Arithmetic::F32 }
    }

    /// Number of weights towards the layer.
    pub(super) fn n_weights(&self) -> usize {
        self.links.iter().map(|link| link.n_rows).sum::<usize>() * self.len
    }

    pub(super) fn new(layer: LayerId, len: usize, links: Vec<Link>, quantised: bool) -> Self {
        let panel = |link: &Link| {
            let n = link.n_rows;
            let weights = vec![Row::ZERO; n];
            if quantised {
                return Panel { weights, copies: Copies::new(n), ..Panel::default() };
            }
            let transposed = vec![Wide::ZERO; n.div_ceil(TILE) * PANEL];
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
        (rows, columns): (End, End),
    ) -> Link {
        let (n_blocks, n_row_blocks) = (n_columns.div_ceil(BLOCK), n_rows.div_ceil(BLOCK));
        Link {
            coupling,
            source,
            n_rows,
            gain: rows.scale * columns.scale,
            gains: (rows.gains(columns), columns.gains(rows)),
            quanta: vec![vec![1.0; n_row_blocks]; n_blocks],
            units: vec![vec![1.0; n_row_blocks]; n_blocks],
            row_units: vec![vec![1.0; n_blocks]; n_row_blocks],
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
            if !panel.is_quantised() {
                panel.transpose();
            }
        }
        self.each_square(c, |band, square| band.rescale(c, square));
    }

    /// Quantises all copies with the scales of an earlier time.
    pub(super) fn restore_scales(&mut self, c: usize, scales: &[f64]) {
        #[expect(clippy::cast_possible_truncation, reason = "they were f32 when they were stored")]
        let mut scales = scales.iter().map(|x| *x as f32);
        self.each_square(c, |band, square| {
            let scale = scales.next().unwrap_or(1.0);
            band.quantise(c, square, scale);
        });
    }

    /// The scales of link `c`.
    pub(super) fn scales(&self, c: usize) -> Vec<f64> {
        self.links[c].quanta.iter().flatten().map(|x| f64::from(*x)).collect()
    }

    /// Visits the squares of a link that is quantised: blocks of columns and of rows.
    fn each_square(&mut self, c: usize, mut visit: impl FnMut(&mut Self, (usize, usize))) {
        if !self.panels.first().is_some_and(|p| p[c].is_quantised()) {
            return;
        }
        for block in 0..self.links[c].quanta.len() {
            for row_block in 0..self.links[c].quanta[block].len() {
                visit(self, (block, row_block));
            }
        }
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

    /// Chooses a fresh scale for each square whose sums outgrew it.
    pub(super) fn rescale_what_grew(&mut self, c: usize) {
        let mut bounds = std::mem::take(&mut self.links[c].bounds);
        let n_groups = self.links[c].n_rows.div_ceil(8);
        self.each_square(c, |band, (block, row_block)| {
            if row_block == 0 {
                bounds.clear();
                bounds.resize(n_groups, [0; 8]);
                for p in band.block(block) {
                    band.panels[p][c].copies.add_row_bounds(&mut bounds);
                }
            }
            let groups = row_block * BLOCK / 8..n_groups.min((row_block + 1) * BLOCK / 8);
            let rows = bounds[groups].iter().flatten().copied();
            let columns =
                band.block(block).map(|p| band.panels[p][c].copies.column_most(row_block));
            if rows.chain(columns).any(|most| most >= FULL) {
                band.rescale(c, (block, row_block));
            }
        });
        self.links[c].bounds = bounds;
    }

    fn block(&self, block: usize) -> std::ops::Range<usize> {
        block * PANELS_PER_BLOCK..self.panels.len().min((block + 1) * PANELS_PER_BLOCK)
    }

    /// Chooses a fresh scale for a square, and quantises it.
    fn rescale(&mut self, c: usize, (block, row_block): (usize, usize)) {
        let first = row_block * BLOCK;
        let rows = first..self.links[c].n_rows.min(first + BLOCK);
        let mut sums = vec![[0.0; 2]; rows.len()];
        let mut most = 0.0_f32;
        for p in self.block(block) {
            let weights = &self.panels[p][c].weights[rows.clone()];
            add_row_sums(weights, &mut sums);
            most = most.max(largest_column_sum(weights));
        }
        let scale = scale_for(sums.iter().flatten().fold(most, |m, x| m.max(*x)));
        self.quantise(c, (block, row_block), scale);
    }

    fn quantise(&mut self, c: usize, (block, row_block): (usize, usize), scale: f32) {
        let range = self.block(block);
        let link = &mut self.links[c];
        link.quanta[block][row_block] = scale;
        link.units[block][row_block] = link.gains.1.bits / scale;
        link.row_units[row_block][block] = link.gains.0.bits / scale;
        for panel in &mut self.panels[range] {
            let panel = &mut panel[c];
            panel.copies.quantise(&panel.weights, row_block, scale);
        }
    }

    /// Adds to the natural parameters of tiles of the band's layer from `tile` on, of one panel,
    /// what link `c` brings.
    pub(crate) fn add_to_columns(
        &self,
        c: usize,
        tile: usize,
        source: &Operand,
        out: Tiles<'_>,
        scratch: &mut Scratch,
    ) {
        self.panels[tile / 2][c].add(&self.links[c], tile, source, out, scratch);
    }

    /// Adds to the natural parameters of tiles of the source of link `c`, from `tile` on and of one
    /// panel, what this band's layer, whose state is `source`, sends back.
    pub(crate) fn add_to_rows(
        &self,
        c: usize,
        tile: usize,
        source: &Operand,
        mut out: Tiles<'_>,
        scratch: &mut Scratch,
    ) {
        let (link, n) = (&self.links[c], out.n());
        source.start(&mut out, self.panels[0][c].is_quantised());
        if source.is_bits && self.panels[0][c].is_quantised() {
            let units = &link.row_units[tile * TILE / BLOCK];
            // A tile that is not asked for is not read.
            let last = tile + out.n_tiles - 1;
            let pieces = [tile, last].map(|tile| {
                let piece = |p: usize| &self.panels[p][c].copies.backward.as_chunks().0[tile];
                Pieces::new(self.panels.len(), piece)
            });
            add_quantised(source, self.len, |t, j| pieces[t].rows(j), units, out, scratch);
            return;
        }
        for (tile, theta) in (tile..).zip(out.theta.chunks_exact_mut(n.max(1))) {
            self.add_single_to_rows(c, tile, source, theta, scratch);
        }
    }

    /// [`Band::add_to_rows`] for one tile and weights of single precision.
    fn add_single_to_rows(
        &self,
        c: usize,
        tile: usize,
        source: &Operand,
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
                multiply_add(out, x, (weights, view), link.gains.0.numbers);
            }
        } else if self.panels[0][c].transposed.is_empty() {
            let mut turned = std::mem::take(&mut scratch.turned);
            turned.resize(self.panels.len() * PANEL, Wide::ZERO);
            for (panel, out) in self.panels.iter().zip(turned.chunks_exact_mut(PANEL)) {
                transpose_single(&panel[c].weights, tile * TILE, out);
            }
            add_single(source, self.len, |j| &turned[j].0, link.gains.0.bits, theta, scratch);
            scratch.turned = turned;
        } else {
            let piece = |p: usize| &self.panels[p][c].transposed.as_chunks().0[tile];
            let pieces = Pieces::new(self.panels.len(), piece);
            let row = |j: usize| &pieces.rows(j)[0].0;
            add_single(source, self.len, row, link.gains.0.bits, theta, scratch);
        }
    }

    /// Transposes single-precision weights on the way to each product from now on: for machines
    /// whose weights change as often as they are used in that direction.
    pub(super) fn forget_transposed(&mut self) {
        self.panels.iter_mut().flatten().for_each(|panel| panel.transposed = Vec::new());
    }
}

impl Band {
    /// Adds to rows of natural parameters of the whole layer what numbers of the source of link `c`
    /// bring: panels of 64 columns, where [`Band::add_to_columns`] takes 32 at a time.
    pub(super) fn add_numbers_to_columns(&self, c: usize, x: &[f32], n: usize, theta: &mut [f32]) {
        let link = &self.links[c];
        for (p, panel) in self.panels.iter().enumerate() {
            let width = PANEL.min(self.len - p * PANEL);
            let weights = (flat(&panel[c].weights), View::strided(link.n_rows, width, PANEL));
            let out = (&mut theta[p * PANEL..], View::strided(n, width, self.len));
            multiply_add(out, (x, View::rows(n, link.n_rows)), weights, link.gains.1.numbers);
        }
    }

    /// What [`Band::add_to_columns`] does where the source of link `c` holds means and weights are
    /// quantised.
    pub(super) fn add_means_to_columns(
        &self,
        c: usize,
        tile: usize,
        means: &Means,
        theta: &mut [Wide],
        scratch: &mut Scratch,
    ) {
        let (link, n) = (&self.links[c], self.links[c].n_rows);
        let lines = &self.panels[tile / 2][c].copies.forward[tile % 2 * n..][..n];
        let units = &link.units[tile * TILE / BLOCK];
        add_means(means, n, |i| &lines[i].0, units, theta, &mut scratch.packed);
    }

    /// The same for [`Band::add_to_rows`].
    pub(super) fn add_means_to_rows(
        &self,
        c: usize,
        tile: usize,
        means: &Means,
        theta: &mut [Wide],
        scratch: &mut Scratch,
    ) {
        let units = &self.links[c].row_units[tile * TILE / BLOCK];
        let piece = |p: usize| &self.panels[p][c].copies.backward.as_chunks().0[tile];
        let pieces = Pieces::new(self.panels.len(), piece);
        add_means(means, self.len, |j| &pieces.rows(j)[0].0, units, theta, &mut scratch.packed);
    }

    /// Adds to rows of natural parameters of the whole source of link `c` what numbers of this
    /// band's layer send back.
    pub(super) fn add_numbers_to_rows(&self, c: usize, x: &[f32], n: usize, theta: &mut [f32]) {
        let link = &self.links[c];
        for (p, panel) in self.panels.iter().enumerate() {
            let width = PANEL.min(self.len - p * PANEL);
            let view = View::strided(link.n_rows, width, PANEL).transposed();
            let x = (&x[p * PANEL..], View::strided(n, width, self.len));
            let out = (&mut *theta, View::rows(n, link.n_rows));
            multiply_add(out, x, (flat(&panel[c].weights), view), link.gains.0.numbers);
        }
    }
}

/// One tile of transposed rows, the pieces of all panels looked up beforehand.
struct Pieces<'a, T, const L: usize> {
    first: [&'a [Line<T, L>; PANEL]; PIECES],
    /// Those of the panels beyond, which few layers have.
    rest: Vec<&'a [Line<T, L>; PANEL]>,
}

/// Panels whose pieces need no memory of their own: 2048 columns.
const PIECES: usize = 32;

impl<'a, T, const L: usize> Pieces<'a, T, L> {
    fn new(n: usize, piece: impl Fn(usize) -> &'a [Line<T, L>; PANEL]) -> Self {
        let mut first = [piece(0); PIECES];
        first.iter_mut().zip(0..n).for_each(|(first, p)| *first = piece(p));
        Self { first, rest: (PIECES..n).map(piece).collect() }
    }

    /// Row `j` and those next to it.
    #[inline]
    fn rows(&self, j: usize) -> &'a [Line<T, L>] {
        let p = j / PANEL;
        let piece = if p < PIECES { self.first[p] } else { self.rest[p - PIECES] };
        &piece[j % PANEL..]
    }
}

impl Panel {
    pub(crate) fn is_quantised(&self) -> bool {
        !self.copies.forward.is_empty()
    }

    /// Adds to the natural parameters of tiles of the layer from `tile` on, which are the panel's,
    /// what the link brings.
    pub(crate) fn add(
        &self,
        link: &Link,
        tile: usize,
        source: &Operand,
        mut out: Tiles<'_>,
        scratch: &mut Scratch,
    ) {
        let (n, first) = (link.n_rows, tile % 2);
        source.start(&mut out, self.is_quantised());
        if source.is_bits && self.is_quantised() {
            let rows = |t: usize, i: usize| &self.copies.forward[(first + t) * n..][i..n];
            let units = &link.units[tile * TILE / BLOCK];
            add_quantised(source, n, rows, units, out, scratch);
            return;
        }
        let n_samples = out.n();
        for (half, theta) in (first..).zip(out.theta.chunks_exact_mut(n_samples.max(1))) {
            if source.is_bits {
                let row = |i: usize| &self.weights[i].0.as_chunks::<TILE>().0[half];
                add_single(source, n, row, link.gains.1.bits, theta, scratch);
            } else {
                let weights = &flat(&self.weights)[half * TILE..];
                let view = View::strided(n, TILE, PANEL);
                add_real(theta, &source.numbers, n, (weights, view), link.gains.1.numbers);
            }
        }
    }

    /// Follows the weights where nothing is quantised.
    pub(crate) fn transpose(&mut self) {
        for (t, out) in self.transposed.chunks_exact_mut(PANEL).enumerate() {
            transpose_single(&self.weights, t * TILE, out);
        }
    }
}

fn add_real(theta: &mut [Wide], x: &[f32], n: usize, weights: (&[f32], View), gain: f32) {
    let (rows, width) = (theta.len(), weights.1.shape.1);
    let out = (flat_mut(theta), View::strided(rows, width, TILE));
    multiply_add(out, (x, View::rows(rows, n)), weights, gain);
}

fn add_quantised<'a, R: Fn(usize, usize) -> &'a [Quantum] + Copy>(
    source: &Operand,
    n: usize,
    rows: R,
    units: &[f32],
    out: Tiles<'_>,
    scratch: &mut Scratch,
) {
    if scratch.sums.len() < out.theta.len() {
        scratch.sums.resize(out.theta.len(), Quantum::ZERO);
    }
    let sums = &mut scratch.sums;
    let row = |t: usize, i: usize| &rows(t, i)[0].0;
    match source.bits.form() {
        Form::Words(words, used) => {
            tables::add_quantised(words, used, row, units, out, sums, &mut scratch.quantised);
        }
        Form::Lists(lists) => {
            let n_samples = out.n();
            for (t, theta) in out.theta.chunks_exact_mut(n_samples.max(1)).enumerate() {
                lists::add_quantised_listed(lists, n, |i| row(t, i), units, theta);
            }
        }
        Form::Pairs(pairs) => {
            let of_strip = &mut scratch.quantised_pairs;
            add_quantised_pairs(pairs, n, rows, units, out, sums, of_strip);
        }
    }
}

fn add_single<'a, R: Fn(usize) -> &'a [f32; TILE] + Copy>(
    source: &Operand,
    n: usize,
    row: R,
    gain: f32,
    theta: &mut [Wide],
    scratch: &mut Scratch,
) {
    match source.bits.form() {
        Form::Words(words, used) => {
            tables::add_single(words, used, row, gain, theta, &mut scratch.single);
        }
        Form::Lists(lists) => lists::add_single_listed(lists, n, row, gain, theta),
        Form::Pairs(pairs) => {
            add_single_pairs(pairs, n, row, gain, theta, &mut scratch.single_pairs);
        }
    }
}
