//! A machine laid out for sampling.
//!
//! Offsets are folded into the biases,
//! $$\theta_l = \Bigl(b_l - \sum_m W_{lm}\mu_m - J_l\mu_l\Bigr) + \sum_m W_{lm}x_m + J_l x_l,$$
//! so that centering costs the products nothing, and both
//! orientations of each weight matrix are kept, so that every product runs along rows.
//!
//! A layer may count what it receives several times, responding to $\kappa_l\theta_l$: it stands for
//! a layer that sees $\kappa_l$ tied copies of each neighbour. Greedy learning needs it, where a
//! layer has to make do with some of its neighbours; everything else has $\kappa = 1$.

use super::band::{Band, End, Scratch, Source, with_scratch};
use super::lateral::Coordinates;
use super::{Lateral, LayerId, Machine, State, Weights, add_input};
use crate::units::{BitCoordinates, Storage, Units};
use harmonium_kernels::dense::add_scaled;
use harmonium_kernels::line::{PANEL, TILE, Wide};
use harmonium_kernels::means::Means;
use harmonium_kernels::tables::Tiles;
use serde::{Deserialize, Serialize};

/// Tiles of a panel.
pub(crate) const TILES: usize = PANEL / TILE;

/// In which numbers samplers multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Double precision, term by term: the reference.
    #[default]
    F64,
    /// Single precision by tables of partial sums.
    F32,
    /// Weights quantised to 16 bits, scaled so that no sum can overflow; natural parameters are
    /// good to about a thousandth.
    I16,
}

/// What samplers and inference read instead of the machine; rebuilt or refreshed from it.
#[derive(Clone, Debug)]
pub struct Engine {
    precision: Precision,
    pub(super) layers: Vec<EngineLayer>,
    schedule: Vec<Vec<LayerId>>,
    /// The weights for the kernels; empty in double precision.
    pub(crate) bands: Vec<Band>,
}

#[derive(Clone, Debug)]
pub(crate) struct EngineLayer {
    pub(crate) units: Units,
    pub(crate) len: usize,
    /// The bias with all offsets folded in; for the kernels also what the coordinates of bits
    /// leave over.
    pub(crate) bias: Vec<f64>,
    /// The own parameters of the units, as those of a layer.
    pub(crate) own: Vec<f64>,
    /// $s$ and $t$ of $x = s u + t$ where the kernels see bits $u$.
    pub(crate) scale: f64,
    pub(crate) shift: f64,
    /// $\kappa$: how often the layer counts what it receives.
    copies: f64,
    /// $\kappa s b$ in tiles of 32; empty in double precision.
    pub(crate) lines: Vec<Wide>,
    /// What the layer receives from others; empty unless in double precision.
    inputs: Vec<Input>,
    /// What its units send each other.
    pub(crate) lateral: Option<Lateral>,
}

/// Weights towards one layer: rows belong to the source.
#[derive(Clone, Debug)]
struct Input {
    coupling: usize,
    source: LayerId,
    weights: Vec<f64>,
}

impl EngineLayer {
    /// How many tiles a panel has: one where the layer ends in its first.
    pub(crate) fn tiles_of(&self, panel: usize) -> usize {
        TILES.min(self.len.div_ceil(TILE) - panel * TILES)
    }

    /// Follows the bias.
    pub(crate) fn set_lines(&mut self) {
        let scale = self.copies * self.scale;
        for (line, bias) in self.lines.iter_mut().zip(self.bias.chunks(TILE)) {
            #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
            line.0.iter_mut().zip(bias).for_each(|(l, b)| *l = (scale * b) as f32);
        }
    }
}

impl Engine {
    /// Lays out `machine` in double precision.
    pub fn new(machine: &Machine) -> Self {
        Self::with_precision(machine, Precision::F64)
    }

    /// Lays out `machine` for the kernels of a precision.
    pub fn with_precision(machine: &Machine, precision: Precision) -> Self {
        Self::with_copies(machine, precision, &vec![1.0; machine.layers().len()])
    }

    /// For machines that learn and sweep about once between two updates: copies that an update
    /// would have to renew are made on the way to each product instead.
    pub(crate) fn expect_updates(&mut self) {
        self.bands.iter_mut().for_each(Band::forget_transposed);
    }

    /// Lays out `machine` such that layer $l$ responds to $\kappa_l\theta_l$, with a $\kappa$ of
    /// `copies` for each layer. What units of one layer send each other counts once in any case.
    pub fn with_copies(machine: &Machine, precision: Precision, copies: &[f64]) -> Self {
        let kernels = precision != Precision::F64;
        let layers = machine
            .layers()
            .iter()
            .zip(copies)
            .map(|(l, &copies)| {
                let bits = l.units.bit_coordinates().filter(|_| kernels);
                let BitCoordinates { scale, shift } = bits.unwrap_or(BitCoordinates::PLAIN);
                let n_tiles = if kernels { l.len().div_ceil(TILE) } else { 0 };
                EngineLayer {
                    units: l.units,
                    len: l.len(),
                    bias: l.bias.clone(),
                    own: l.own.clone(),
                    scale,
                    shift,
                    copies,
                    lines: vec![Wide::ZERO; n_tiles],
                    inputs: Vec::new(),
                    lateral: None,
                }
            })
            .collect();
        let schedule = machine.schedule();
        let mut engine = Self { precision, layers, schedule, bands: Vec::new() };
        for (i, c) in machine.couplings().iter().enumerate() {
            let (a, b) = c.between;
            if c.is_lateral() {
                let (units, bits) = (machine.layer(a).units, engine.coordinates(a));
                engine.layers[a.0].lateral = Lateral::new(&c.weights, units, bits);
            } else if !kernels {
                let size = c.weights.entries().len();
                for (source, target) in [(a, b), (b, a)] {
                    let input = Input { coupling: i, source, weights: vec![0.0; size] };
                    engine.layers[target.0].inputs.push(input);
                }
            }
        }
        if kernels {
            engine.bands = engine.make_bands(machine);
        }
        engine.refresh(machine);
        engine
    }

    /// One band for each layer that has couplings to layers of earlier blocks.
    fn make_bands(&self, machine: &Machine) -> Vec<Band> {
        let place =
            |l: LayerId| self.schedule.iter().position(|b| b.contains(&l)).unwrap_or_default();
        let mut bands = Vec::new();
        for &l in self.schedule.iter().flatten() {
            let mut links = Vec::new();
            for (i, c) in machine.couplings().iter().enumerate() {
                let Some(m) = c.other_end(l).filter(|&m| m != l && place(m) < place(l)) else {
                    continue;
                };
                #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
                let end = |l: LayerId| {
                    let layer = &self.layers[l.0];
                    End { scale: layer.scale as f32, copies: layer.copies as f32 }
                };
                let (n_rows, n_columns) = (self.layers[m.0].len, self.layers[l.0].len);
                links.push(Band::link(i, m, n_rows, n_columns, (end(m), end(l))));
            }
            if !links.is_empty() {
                let quantised = self.precision == Precision::I16;
                bands.push(Band::new(l, self.layers[l.0].len, links, quantised));
            }
        }
        bands
    }

    /// How the kernels see the units of layer `l`, if they are bits to them.
    fn coordinates(&self, l: LayerId) -> Option<Coordinates> {
        let layer = &self.layers[l.0];
        let bits = layer.units.storage() == Storage::Bits;
        (bits && self.precision != Precision::F64).then_some(Coordinates {
            layer: l,
            scale: layer.scale,
            shift: layer.shift,
            quantised: self.precision == Precision::I16,
        })
    }

    /// In which numbers it multiplies.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Takes over changed parameters of the machine it was made from.
    pub fn refresh(&mut self, machine: &Machine) {
        let shifts: Vec<f64> = self.layers.iter().map(|l| l.shift).collect();
        let coordinates: Vec<Option<Coordinates>> =
            machine.layer_ids().map(|l| self.coordinates(l)).collect();
        for (l, layer) in (0..).map(LayerId).zip(&mut self.layers) {
            let source = machine.layer(l);
            layer.bias.copy_from_slice(&source.bias);
            layer.own.copy_from_slice(&source.own);
            for c in machine.couplings() {
                if let Some(m) = c.other_end(l) {
                    // Lateral inputs are summed over the values themselves.
                    let shift = if m == l { 0.0 } else { shifts[m.0] };
                    let negative: Vec<f64> =
                        machine.layer(m).offset.iter().map(|x| shift - x).collect();
                    add_input(c, l, &negative, &mut layer.bias);
                }
            }
            layer.set_lines();
            for input in &mut layer.inputs {
                let c = &machine.couplings()[input.coupling];
                if let Weights::Between(w) = &c.weights {
                    if c.between.0 == input.source {
                        input.weights.copy_from_slice(c.weights.entries());
                    } else {
                        transpose_into(c.weights.entries(), w.shape(), &mut input.weights);
                    }
                    input.weights.iter_mut().for_each(|w| *w *= layer.copies);
                }
            }
            if let Some(lateral) = &mut layer.lateral {
                let c = machine.couplings().iter().find(|c| c.between == (l, l));
                if let Some(c) = c {
                    lateral.refresh(&c.weights, coordinates[l.0]);
                }
            }
        }
        for band in &mut self.bands {
            for c in 0..band.links.len() {
                let link = &band.links[c];
                let coupling = &machine.couplings()[link.coupling];
                let (entries, n_rows, n_columns) =
                    (coupling.weights.entries(), link.n_rows, band.len);
                if coupling.between.0 == link.source {
                    band.set_weights(c, |i, j| entries[i * n_columns + j]);
                } else {
                    band.set_weights(c, |i, j| entries[j * n_rows + i]);
                }
            }
        }
    }

    /// Brings the neighbours of layer `l` into the form the kernels multiply.
    pub(crate) fn prepare(&self, l: LayerId, x: &mut State, sources: &mut Vec<Source>) {
        self.prepare_from(l, |_| true, x, sources);
    }

    /// The same for some of the neighbours.
    pub(crate) fn prepare_from(
        &self,
        l: LayerId,
        from: impl Fn(LayerId) -> bool,
        x: &mut State,
        sources: &mut Vec<Source>,
    ) {
        sources.resize_with(self.layers.len(), Source::default);
        for m in self.neighbours(l).filter(|&m| from(m)) {
            let (layer, shift) = (&mut x.layers[m.0], self.layers[m.0].shift);
            if self.layers[m.0].units.bit_coordinates().is_some() {
                layer.pack();
            }
            match layer.bits() {
                Some(bits) => sources[m.0].set_bits_together(&[bits], self.precision),
                None => sources[m.0].set_numbers(layer.numbers(), shift),
            }
        }
    }

    /// Whether other layers send something to layer `l`.
    pub(crate) fn sees_others(&self, l: LayerId) -> bool {
        self.neighbours(l).next().is_some()
    }

    /// The other layers that send something to layer `l`; empty in double precision.
    pub(crate) fn neighbours(&self, l: LayerId) -> impl Iterator<Item = LayerId> + '_ {
        self.bands.iter().flat_map(move |band| {
            let mine = band.layer == l;
            band.links.iter().filter_map(move |link| {
                if mine { Some(link.source) } else { (link.source == l).then_some(band.layer) }
            })
        })
    }

    /// Writes $\kappa s\theta$ of panel `panel` of layer `l`, tile after tile, for as many samples as
    /// the sources hold.
    pub(crate) fn theta_panel(
        &self,
        l: LayerId,
        panel: usize,
        sources: &[Source],
        theta: &mut [Wide],
        scratch: &mut Scratch,
    ) {
        self.theta_panel_from(l, |_| true, panel, sources, theta, scratch);
    }

    /// The same with what some of the neighbours send.
    pub(crate) fn theta_panel_from(
        &self,
        l: LayerId,
        from: impl Fn(LayerId) -> bool,
        panel: usize,
        sources: &[Source],
        theta: &mut [Wide],
        scratch: &mut Scratch,
    ) {
        let (tile, n_tiles) = (panel * TILES, self.layers[l.0].tiles_of(panel));
        let mut start = Some(&self.layers[l.0].lines[tile..tile + n_tiles]);
        for band in &self.bands {
            for (c, link) in band.links.iter().enumerate() {
                if band.layer == l && from(link.source) {
                    let out = Tiles { theta: &mut *theta, start: start.take(), n_tiles };
                    band.add_to_columns(c, tile, &sources[link.source.0], out, scratch);
                } else if link.source == l && from(band.layer) {
                    let out = Tiles { theta: &mut *theta, start: start.take(), n_tiles };
                    band.add_to_rows(c, tile, &sources[band.layer.0], out, scratch);
                }
            }
        }
        Tiles { theta, start, n_tiles }.begin();
    }

    /// Adds to `theta`, rows of $\kappa s\theta$ of layer `l`, what the numbers $x - t$ of layer `m`
    /// bring, on the calling thread.
    pub(crate) fn add_numbers(
        &self,
        l: LayerId,
        m: LayerId,
        x: &[f32],
        n_rows: usize,
        theta: &mut [f32],
    ) {
        for band in &self.bands {
            for (c, link) in band.links.iter().enumerate() {
                if band.layer == l && link.source == m {
                    band.add_numbers_to_columns(c, x, n_rows, theta);
                } else if band.layer == m && link.source == l {
                    band.add_numbers_to_rows(c, x, n_rows, theta);
                }
            }
        }
    }

    /// Adds to tile `tile` of layer `l` what the means of layer `m` bring, through quantised weights.
    pub(crate) fn add_means(
        &self,
        (l, m): (LayerId, LayerId),
        tile: usize,
        means: &Means,
        theta: &mut [Wide],
        scratch: &mut Scratch,
    ) {
        for band in &self.bands {
            for (c, link) in band.links.iter().enumerate() {
                if band.layer == l && link.source == m {
                    band.add_means_to_columns(c, tile, means, theta, scratch);
                } else if band.layer == m && link.source == l {
                    band.add_means_to_rows(c, tile, means, theta, scratch);
                }
            }
        }
    }

    /// Computes the natural parameters of layer `l` on the calling thread, 32 units of all rows
    /// after the other: what the benches time.
    #[doc(hidden)]
    pub fn products(&self, l: LayerId) -> impl FnMut(&mut State, &mut [Wide]) + '_ {
        let mut sources = Vec::new();
        move |x, theta| {
            self.prepare(l, x, &mut sources);
            for (panel, theta) in theta.chunks_mut(TILES * x.n_rows()).enumerate() {
                with_scratch(|scratch| self.theta_panel(l, panel, &sources, theta, scratch));
            }
        }
    }

    /// Blocks of layers that are updated together.
    pub(crate) fn schedule(&self) -> &[Vec<LayerId>] {
        &self.schedule
    }

    pub(super) fn layers_mut(&mut self) -> &mut [EngineLayer] {
        &mut self.layers
    }

    pub(crate) fn layers(&self) -> &[EngineLayer] {
        &self.layers
    }

    /// Writes $\kappa_l\theta_l$ without its lateral part for the given rows of a block of rows: `values`
    /// holds the rows of every layer, `out` one row for each of `rows`.
    pub(crate) fn theta_into(
        &self,
        l: LayerId,
        values: &[&mut [f64]],
        rows: &[usize],
        out: &mut [f64],
    ) {
        let layer = &self.layers[l.0];
        for theta in out.chunks_exact_mut(layer.len).take(rows.len()) {
            theta.iter_mut().zip(&layer.bias).for_each(|(t, b)| *t = layer.copies * b);
        }
        for input in &layer.inputs {
            let len = self.layers[input.source.0].len;
            let x = &values[input.source.0];
            // Weight rows outside, samples inside: each row of weights is read once per block.
            for (i, w) in input.weights.chunks_exact(layer.len).enumerate() {
                for (theta, row) in out.chunks_exact_mut(layer.len).zip(rows) {
                    let xi = x[row * len + i];
                    if xi != 0.0 {
                        add_scaled(theta, xi, w);
                    }
                }
            }
        }
    }
}

fn transpose_into(data: &[f64], (n_rows, n_columns): (usize, usize), out: &mut [f64]) {
    const TILE: usize = 16;
    for r0 in (0..n_rows).step_by(TILE) {
        for c0 in (0..n_columns).step_by(TILE) {
            for r in r0..(r0 + TILE).min(n_rows) {
                for c in c0..(c0 + TILE).min(n_columns) {
                    out[c * n_rows + r] = data[r * n_columns + c];
                }
            }
        }
    }
}
