//! The layout for the kernels: weights in panels, single precision or quantised, biases in tiles.

use super::band::{Band, End, Operand, Scratch, with_scratch};
use super::{Arithmetic, EngineLayer, Frame};
use crate::machine::{LayerId, Machine, State};
use harmonium_kernels::line::{PANEL, Row, TILE, Wide};
use harmonium_kernels::means::Means;
use harmonium_kernels::tables::Tiles;

/// Tiles of a panel.
pub(crate) const TILES: usize = PANEL / TILE;

/// A machine as the kernels multiply it.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    pub(super) frame: Frame,
    /// $\kappa s b$ of each layer in tiles of 32.
    pub(super) lines: Vec<Vec<Wide>>,
    pub(super) bands: Vec<Band>,
}

impl EngineLayer {
    /// How many tiles a panel has: one where the layer ends in its first.
    pub(crate) fn tiles_of(&self, panel: usize) -> usize {
        TILES.min(self.len.div_ceil(TILE) - panel * TILES)
    }
}

impl Packed {
    /// Room for the weights; they follow with [`Packed::refresh`].
    pub(super) fn new(machine: &Machine, frame: Frame) -> Self {
        let lines = |layer: &EngineLayer| vec![Wide::ZERO; layer.len.div_ceil(TILE)];
        let lines = frame.layers.iter().map(lines).collect();
        let bands = bands_of(machine, &frame);
        Self { frame, lines, bands }
    }

    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    pub(crate) fn layers(&self) -> &[EngineLayer] {
        &self.frame.layers
    }

    /// Blocks of layers that are updated together.
    pub(crate) fn schedule(&self) -> &[Vec<LayerId>] {
        &self.frame.schedule
    }

    /// Single precision or 16 bits.
    pub(crate) fn arithmetic(&self) -> Arithmetic {
        self.frame.arithmetic
    }

    /// $\mu$ of each layer.
    pub(super) fn offsets(&self) -> &[Vec<f64>] {
        &self.frame.offsets
    }

    /// $\kappa s b$ of a layer in tiles of 32.
    pub(crate) fn lines(&self, l: LayerId) -> &[Wide] {
        &self.lines[l.0]
    }

    pub(super) fn expect_updates(&mut self) {
        self.bands.iter_mut().for_each(Band::forget_transposed);
    }

    /// Takes over changed parameters of the machine it was made from.
    pub(super) fn refresh(&mut self, machine: &Machine) {
        self.frame.refresh(machine);
        self.set_lines();
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

    /// Lets the tiles follow the biases.
    pub(super) fn set_lines(&mut self) {
        for (layer, lines) in self.frame.layers.iter().zip(&mut self.lines) {
            let scale = layer.copies * layer.scale;
            for (line, bias) in lines.iter_mut().zip(layer.bias.chunks(TILE)) {
                #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
                line.0.iter_mut().zip(bias).for_each(|(l, b)| *l = (scale * b) as f32);
            }
        }
    }

    /// Whether all parameters are finite: one look at every weight.
    pub(crate) fn is_finite(&self) -> bool {
        let weights = self.bands.iter().flat_map(|band| band.panels.iter().flatten());
        self.has_finite_biases()
            && weights.flat_map(|panel| &panel.weights).all(Self::row_is_finite)
    }

    /// Whether all biases are finite. Where layers are centered, weights that are not drag them along;
    /// elsewhere they need not.
    pub(crate) fn has_finite_biases(&self) -> bool {
        // To the end of each layer, which takes less than to look for the first that is not.
        self.layers().iter().all(|l| l.bias.iter().fold(true, |all, b| all & b.is_finite()))
    }

    fn row_is_finite(row: &Row) -> bool {
        row.0.iter().fold(true, |all, w| all & w.is_finite())
    }

    /// Brings the neighbours of layer `l` into the form the kernels multiply.
    pub(crate) fn prepare(&self, l: LayerId, x: &mut State, sources: &mut Vec<Operand>) {
        self.prepare_from(l, |_| true, x, sources);
    }

    /// The same for some of the neighbours.
    pub(crate) fn prepare_from(
        &self,
        l: LayerId,
        from: impl Fn(LayerId) -> bool,
        x: &mut State,
        sources: &mut Vec<Operand>,
    ) {
        sources.resize_with(self.frame.layers.len(), Operand::default);
        for m in self.neighbours(l).filter(|&m| from(m)) {
            let (layer, shift) = (&mut x.layers[m.0], self.frame.layers[m.0].shift);
            if self.frame.layers[m.0].units.bit_coordinates().is_some() {
                layer.pack();
            }
            match layer.bits() {
                Some(bits) => sources[m.0].set_bits_together(&[bits], self.frame.arithmetic),
                None => sources[m.0].set_numbers(layer.numbers(), shift),
            }
        }
    }

    /// Whether other layers send something to layer `l`.
    pub(crate) fn sees_others(&self, l: LayerId) -> bool {
        self.neighbours(l).next().is_some()
    }

    /// The other layers that send something to layer `l`.
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
        sources: &[Operand],
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
        sources: &[Operand],
        theta: &mut [Wide],
        scratch: &mut Scratch,
    ) {
        let (tile, n_tiles) = (panel * TILES, self.frame.layers[l.0].tiles_of(panel));
        let mut start = Some(&self.lines[l.0][tile..tile + n_tiles]);
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
    /// after the other.
    pub(crate) fn products(&self, l: LayerId) -> impl FnMut(&mut State, &mut [Wide]) + '_ {
        let mut sources = Vec::new();
        move |x, theta| {
            self.prepare(l, x, &mut sources);
            for (panel, theta) in theta.chunks_mut(TILES * x.n_rows()).enumerate() {
                with_scratch(|scratch| self.theta_panel(l, panel, &sources, theta, scratch));
            }
        }
    }
}

/// One band for each layer that has couplings to layers of earlier blocks.
fn bands_of(machine: &Machine, frame: &Frame) -> Vec<Band> {
    let place = |l: LayerId| frame.schedule.iter().position(|b| b.contains(&l)).unwrap_or_default();
    let mut bands = Vec::new();
    for &l in frame.schedule.iter().flatten() {
        let mut links = Vec::new();
        for (i, c) in machine.couplings().iter().enumerate() {
            let Some(m) = c.other_end(l).filter(|&m| m != l && place(m) < place(l)) else {
                continue;
            };
            #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
            let end = |l: LayerId| {
                let layer = &frame.layers[l.0];
                End { scale: layer.scale as f32, copies: layer.copies as f32 }
            };
            let (n_rows, n_columns) = (frame.layers[m.0].len, frame.layers[l.0].len);
            links.push(Band::link(i, m, n_rows, n_columns, (end(m), end(l))));
        }
        if !links.is_empty() {
            let quantised = frame.arithmetic == Arithmetic::I16;
            bands.push(Band::new(l, frame.layers[l.0].len, links, quantised));
        }
    }
    bands
}
