//! What the units of one layer send each other, laid out for sampling.

use super::band::{Band, End};
use crate::graph::{Neighbours, SHARED};
use crate::machine::{LayerId, Triangle, Weights};
use crate::units::Units;
use harmonium_kernels::lateral::Links;
use harmonium_kernels::line::{TILE, Wide};

/// The lateral coupling of a layer.
#[derive(Clone, Debug)]
pub(crate) enum Lateral {
    /// Units are visited one by one.
    Dense(Dense),
    /// Units of one colour are visited together.
    Sparse(Sparse),
}

/// Every unit sees every other.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    /// The full symmetric $J$, row-major.
    pub(crate) full: Vec<f64>,
    /// The same for the kernels, if the units are bits to them.
    pub(crate) band: Option<DenseBand>,
}

/// Every unit sees a few others.
#[derive(Clone, Debug)]
pub(crate) struct Sparse {
    pub(crate) neighbours: Neighbours,
    /// The same for the kernels, if the units are bits to them.
    pub(crate) slots: Option<Slots>,
}

/// A layer's weights towards itself, and what the coordinates of bits leave over.
#[derive(Clone, Debug)]
pub(crate) struct DenseBand {
    pub(crate) band: Band,
    /// $s J t$ in tiles of 32.
    pub(crate) lines: Vec<Wide>,
}

/// How the kernels see the units of a layer: $x = s u + t$ with bits $u$.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coordinates {
    pub(super) layer: LayerId,
    pub(super) scale: f64,
    pub(super) shift: f64,
    pub(super) quantised: bool,
}

/// Units in the order of their colours, each colour filled up to whole tiles.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    /// Where each unit stands.
    pub(crate) of_unit: Vec<usize>,
    pub(crate) n: usize,
    /// $s^2 J$ between slots.
    pub(crate) links: Links,
    /// $s J t$ of each unit.
    pub(crate) shifts: Vec<f32>,
}

impl Lateral {
    /// Lays out the weights of a lateral coupling, for the kernels too if they see `bits`;
    /// `None` for one between layers.
    pub(super) fn new(weights: &Weights, units: Units, bits: Option<Coordinates>) -> Option<Self> {
        let mut lateral = match weights {
            Weights::Between(_) => return None,
            Weights::Lateral(t) => {
                let full = vec![0.0; t.n() * t.n()];
                Self::Dense(Dense { full, band: bits.map(|c| DenseBand::new(t.n(), c)) })
            }
            Weights::Sparse(edges) => {
                let neighbours = Neighbours::new(edges, units);
                let slots = bits.map(|_| Slots::new(&neighbours));
                Self::Sparse(Sparse { neighbours, slots })
            }
        };
        lateral.refresh(weights, bits);
        Some(lateral)
    }

    /// Takes over changed weights of the same shape.
    pub(super) fn refresh(&mut self, weights: &Weights, bits: Option<Coordinates>) {
        match (self, weights) {
            (Self::Dense(dense), Weights::Lateral(t)) => {
                fill(&mut dense.full, t);
                if let (Some(band), Some(bits)) = (&mut dense.band, bits) {
                    band.refresh(&dense.full, bits);
                }
            }
            (Self::Sparse(sparse), Weights::Sparse(_)) => {
                sparse.neighbours.set_weights(weights.entries());
                if let (Some(slots), Some(bits)) = (&mut sparse.slots, bits) {
                    slots.refresh(&sparse.neighbours, bits);
                }
            }
            _ => {}
        }
    }
}

impl DenseBand {
    fn new(n: usize, bits: Coordinates) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "1 or 2")]
        let end = End { scale: bits.scale as f32, copies: 1.0 };
        // The number of the coupling is for learning inside the engine, which laterals are not.
        let link = Band::link(0, bits.layer, n, n, (end, end));
        let band = Band::new(bits.layer, n, vec![link], bits.quantised);
        Self { band, lines: vec![Wide::ZERO; n.div_ceil(TILE)] }
    }

    fn refresh(&mut self, full: &[f64], bits: Coordinates) {
        let n = self.band.len;
        self.band.set_weights(0, |i, j| full[i * n + j]);
        for (i, row) in full.chunks_exact(n).enumerate() {
            let sum: f64 = row.iter().sum();
            #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
            let shift = (bits.scale * bits.shift * sum) as f32;
            self.lines[i / TILE].0[i % TILE] = shift;
        }
    }
}

impl Slots {
    /// The order of the slots; weights follow with [`Slots::refresh`].
    fn new(neighbours: &Neighbours) -> Self {
        let n_units = neighbours.n();
        let mut of_unit = vec![0; n_units];
        let mut n = 0;
        for colour in &neighbours.colours {
            colour.entries.iter().zip(colour.slot..).for_each(|(&unit, slot)| of_unit[unit] = slot);
            n = (colour.slot + colour.entries.len()).next_multiple_of(SHARED);
        }
        let mut unit_at = vec![None; n];
        of_unit.iter().enumerate().for_each(|(unit, &slot)| unit_at[slot] = Some(unit));
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut links = Links { starts: vec![0], ..Links::default() };
        for unit in unit_at {
            let seen = unit.into_iter().flat_map(|u| neighbours.of(u));
            links.units.extend(seen.map(|u| small(of_unit[u])));
            links.starts.push(small(links.units.len()));
        }
        links.weights = vec![0.0; links.units.len()];
        Self { of_unit, n, links, shifts: vec![0.0; n_units] }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
    fn refresh(&mut self, neighbours: &Neighbours, bits: Coordinates) {
        for (unit, &slot) in self.of_unit.iter().enumerate() {
            let weights = neighbours.weights(unit);
            let first = self.links.starts[slot] as usize;
            for (out, w) in self.links.weights[first..].iter_mut().zip(weights) {
                *out = (bits.scale * bits.scale * w) as f32;
            }
            let sum: f64 = weights.iter().sum();
            self.shifts[unit] = (bits.scale * bits.shift * sum) as f32;
        }
    }
}

fn fill(full: &mut [f64], t: &Triangle) {
    let n = t.n();
    for i in 0..n {
        full[i * n + i + 1..(i + 1) * n].copy_from_slice(t.row(i));
        for (k, &w) in t.row(i).iter().enumerate() {
            full[(i + 1 + k) * n + i] = w;
        }
    }
}
