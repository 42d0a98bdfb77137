//! What all panels of a step read of the rows of both sides.

use super::SideRows;
use crate::engine::band::{Band, Operand};
use crate::engine::{Arithmetic, EngineLayer, Packed};
use crate::machine::{LayerId, LayerState};
use harmonium_kernels::index::Words;
use harmonium_kernels::tables::{COLUMN_CHUNK, LEVELS};
use std::ops::Range;

/// Bits below which it is not worth it to describe the rows by several threads.
const WORTH_PREPARING: usize = 50_000;

/// What all panels of a step read.
#[derive(Debug, Default)]
pub(super) struct StepRows {
    pub(super) n: [usize; 2],
    /// Signed weights of the rows of both sides.
    pub(super) weights: Vec<f32>,
    /// The weight of all rows of a side, if they are equal.
    pub(super) uniform: [Option<f32>; 2],
    /// Means of bits of each side and layer.
    pub(super) bit_means: [Vec<Vec<f64>>; 2],
    /// The sources of each layer for products, stacked or side by side.
    pub(super) stacked: Vec<Operand>,
    pub(super) apart: [Vec<Operand>; 2],
    /// The samples of each side and layer, column by column.
    pub(super) columns: [Vec<SideColumns>; 2],
    /// The entries of each layer that some sample has, and where each entry stands among them;
    /// those without stand after the last.
    pub(super) used: Vec<Vec<u32>>,
    pub(super) places: Vec<Vec<u32>>,
    /// Whether the gradient towards a layer's entries may round probabilities to small fields: the
    /// layer holds bits on both sides, and the rows of a side weigh the same.
    pub(super) fields: Vec<bool>,
    /// $m$ and $\mu - t$ of each layer.
    pub(super) centers: Vec<Vec<f32>>,
    pub(super) shifts: Vec<Vec<f32>>,
    /// Whether any of them is not zero.
    pub(super) centered: Vec<bool>,
    /// For each link of the band under way, what stands before the terms of rank one; nothing where
    /// there are no offsets.
    pub(super) row_factors: Vec<Vec<[f32; 2]>>,
}

/// The rows of a layer as a gradient reads them.
#[derive(Debug, Default)]
pub(super) struct SideColumns {
    pub(super) words: Words,
    pub(super) numbers: Vec<f32>,
    pub(super) is_bits: bool,
}

impl StepRows {
    /// Everything about the rows that does not depend on a panel.
    pub(super) fn take_up(&mut self, engine: &Packed, sides: &mut [SideRows<'_>; 2]) {
        self.weigh(sides);
        for side in sides.iter_mut() {
            for (l, layer) in engine.layers().iter().enumerate() {
                if layer.units.bit_coordinates().is_some() && !side.pending.contains(&LayerId(l)) {
                    side.state.layers[l].pack();
                }
            }
        }
        self.choose_fields(engine, sides);
        self.describe(engine, sides);
        self.find_used(engine);
    }

    /// The weights of the rows of both sides, and whether those of a side are equal.
    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
    fn weigh(&mut self, sides: &[SideRows<'_>; 2]) {
        self.n = [sides[0].state.n_rows(), sides[1].state.n_rows()];
        self.weights.clear();
        for (sign, side) in [1.0, -1.0].into_iter().zip(sides) {
            self.weights.extend(side.weights.iter().map(|w| (sign * w) as f32));
        }
        let equal = |w: &[f64]| w.iter().all(|x| *x == w[0]);
        self.uniform = [0, 1].map(|k: usize| {
            let w = sides[k].weights;
            equal(w).then(|| w.first().map_or(0.0, |w| *w as f32))
        });
    }

    /// Which layers' gradients may be sums of small fields.
    fn choose_fields(&mut self, engine: &Packed, sides: &[SideRows<'_>; 2]) {
        let most = self.n.iter().max().copied().unwrap_or(0) * LEVELS as usize;
        let quantised = engine.arithmetic() == Arithmetic::I16
            && self.uniform.iter().all(Option::is_some)
            && most <= 32_767;
        let bits = |l: usize| sides.iter().all(|side| side.state.layers[l].bits().is_some());
        self.fields.clear();
        self.fields.extend((0..engine.layers().len()).map(|l| quantised && bits(l)));
    }

    /// The rows as products and gradients read them.
    fn describe(&mut self, engine: &Packed, sides: &[SideRows<'_>; 2]) {
        let n_layers = engine.layers().len();
        self.stacked.resize_with(n_layers, Operand::default);
        let Self { columns, bit_means, stacked, apart, uniform, .. } = self;
        let ([data, model], [data_means, model_means]) = (columns, bit_means);
        let describe_side =
            |k: usize, columns: &mut Vec<SideColumns>, means: &mut Vec<Vec<f64>>| {
                columns.resize_with(n_layers, SideColumns::default);
                means.resize(n_layers, Vec::new());
                for (l, layer) in engine.layers().iter().enumerate() {
                    let layer = (LayerId(l), layer);
                    let uniform = uniform[k].is_some();
                    describe(&sides[k], layer, uniform, &mut columns[l], &mut means[l]);
                }
            };
        let mut take_up = || take_up_sources(engine, sides, stacked, apart);
        let size = self.n.iter().sum::<usize>()
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
    }

    /// Follows the offsets.
    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
    pub(super) fn set_centers(&mut self, layers: &[EngineLayer], offsets: &[Vec<f64>]) {
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

    /// Where the rows of side `k` stand among those of both.
    pub(super) fn range(&self, k: usize) -> Range<usize> {
        if k == 0 { 0..self.n[0] } else { self.n[0]..self.n[0] + self.n[1] }
    }

    /// Whether a coupling has offsets at either end.
    pub(super) fn is_centered(&self, l: LayerId, m: LayerId) -> bool {
        self.centered[l.0] || self.centered[m.0]
    }

    /// Leaves entries that are zero in all samples of both sides out of the gradient's product.
    fn find_used(&mut self, engine: &Packed) {
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
    pub(super) fn set_row_factors(&mut self, band: &Band) {
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

/// The rows of a layer column by column, and their means; `uniform` as in
/// [`StepRows`]. Of a layer that waits for its means there is nothing to say yet.
#[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
fn describe(
    side: &SideRows<'_>,
    (l, layer): (LayerId, &EngineLayer),
    uniform: bool,
    columns: &mut SideColumns,
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
    engine: &Packed,
    sides: &[SideRows<'_>; 2],
    stacked: &mut [Operand],
    apart: &mut [Vec<Operand>; 2],
) {
    for band in &engine.bands {
        for link in &band.links {
            let m = link.source.0;
            let [a, b] = [0, 1].map(|k: usize| sides[k].state.layers[m].bits());
            if let (true, Some(a), Some(b)) = (stacks(band, sides), a, b) {
                stacked[m].set_bits_together(&[a, b], engine.arithmetic());
                continue;
            }
            let waiting = sides.iter().zip(&mut *apart);
            for (side, apart) in waiting.filter(|(s, _)| s.waits_for(band.layer)) {
                apart.resize_with(sides[0].state.layers.len(), Operand::default);
                let rows = &side.state.layers[m];
                match rows.bits() {
                    Some(bits) => apart[m].set_bits_together(&[bits], engine.arithmetic()),
                    None => apart[m].set_numbers(rows.numbers(), engine.layers()[m].shift),
                }
            }
        }
    }
}

/// $\sum_r w_r u_r$ of a layer.
fn bit_means(
    rows: &LayerState,
    columns: &SideColumns,
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

/// Whether both sides wait for the means of a band's layer.
pub(super) fn stacks(band: &Band, sides: &[SideRows<'_>; 2]) -> bool {
    sides.iter().all(|s| s.waits_for(band.layer))
}

pub(super) fn all_bits(band: &Band, sides: &[SideRows<'_>; 2]) -> bool {
    let bits = |side: &SideRows<'_>, l: LayerId| side.state.layers[l.0].bits().is_some();
    sides.iter().all(|side| band.links.iter().all(|link| bits(side, link.source)))
}
