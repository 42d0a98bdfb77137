//! A machine laid out for sampling, and learning inside that layout.
//!
//! Offsets are folded into the biases,
//! $$\theta_l = \Bigl(b_l - \sum_m W_{lm}\mu_m - J_l\mu_l\Bigr) + \sum_m W_{lm}x_m + J_l x_l,$$
//! so that centering costs the products nothing, and both
//! orientations of each weight matrix are kept, so that every product runs along rows.
//!
//! There are two layouts: `Reference`, double precision row by row, which laws and likelihoods
//! use, and `Packed`, single precision or 16 bits in panels, which the kernels multiply and
//! which can learn. A [`Sampler`](crate::sampling::Sampler) owns a machine and its layout.
//!
//! A layer may count what it receives several times, responding to $\kappa_l\theta_l$: it stands for
//! a layer that sees $\kappa_l$ tied copies of each neighbour. Greedy learning needs it, where a
//! layer has to make do with some of its neighbours; everything else has $\kappa = 1$.

mod band;
mod joint;
mod lateral_weights;
pub(crate) mod learn;
mod packed;
mod reference;

pub(crate) use band::{Operand, Scratch, with_scratch};
pub(crate) use joint::Joint;
pub(crate) use lateral_weights::{Dense, DenseBand, Lateral, Slots, Sparse};
pub use learn::Reduce;
pub(crate) use learn::{EngineLearner, SideRows, Squares, StepRates, TileMeans};
pub(crate) use packed::{Packed, TILES};
pub(crate) use reference::Reference;

use crate::machine::{Coupling, LayerId, Machine, add_input};
use crate::units::{BitCoordinates, Storage, Units};
use lateral_weights::Coordinates;
use serde::{Deserialize, Serialize};

/// In which numbers samplers multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arithmetic {
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
pub(crate) enum Engine {
    /// Rows of double precision.
    Reference(Reference),
    /// Panels for the kernels.
    Packed(Packed),
}

/// What both layouts have in common.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    arithmetic: Arithmetic,
    layers: Vec<EngineLayer>,
    schedule: Vec<Vec<LayerId>>,
    /// Gaussian layers that are drawn jointly.
    joints: Vec<Joint>,
    /// $\mu$ of each layer.
    offsets: Vec<Vec<f64>>,
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
    /// What its units send each other, where they are visited one after the other.
    pub(crate) lateral: Option<Lateral>,
    /// Among [`Engine::joints`], the Gaussian units that its own are drawn with.
    pub(crate) joint: Option<usize>,
}

impl Frame {
    /// The layers and the schedule of a machine; its parameters follow with [`Frame::refresh`].
    fn new(machine: &Machine, arithmetic: Arithmetic, copies: &[f64]) -> Self {
        let layers = machine.layers().iter().zip(copies).map(|(l, &copies)| {
            let bits = l.units.bit_coordinates().filter(|_| arithmetic != Arithmetic::F64);
            let BitCoordinates { scale, shift } = bits.unwrap_or(BitCoordinates::PLAIN);
            EngineLayer {
                units: l.units,
                len: l.len(),
                bias: l.bias.clone(),
                own: l.own.clone(),
                scale,
                shift,
                copies,
                lateral: None,
                joint: None,
            }
        });
        let joints = machine.real_blocks().into_iter().map(|layers| Joint::new(machine, layers));
        let mut frame = Self {
            arithmetic,
            layers: layers.collect(),
            schedule: machine.schedule(),
            joints: joints.collect(),
            offsets: machine.layers().iter().map(|l| l.offset.clone()).collect(),
        };
        for (k, joint) in frame.joints.iter().enumerate() {
            joint.layers().iter().for_each(|l| frame.layers[l.0].joint = Some(k));
        }
        let visited = |c: &&Coupling| c.is_lateral() && !machine.joins_reals(c);
        for c in machine.couplings().iter().filter(visited) {
            let l = c.between.0;
            let (units, bits) = (machine.layer(l).units, frame.coordinates(l));
            frame.layers[l.0].lateral = Lateral::new(&c.weights, units, bits);
        }
        frame
    }

    /// How the kernels see the units of layer `l`, if they are bits to them.
    fn coordinates(&self, l: LayerId) -> Option<Coordinates> {
        let layer = &self.layers[l.0];
        let bits = layer.units.storage() == Storage::Bits;
        (bits && self.arithmetic != Arithmetic::F64).then_some(Coordinates {
            layer: l,
            scale: layer.scale,
            shift: layer.shift,
            quantised: self.arithmetic == Arithmetic::I16,
        })
    }

    /// Takes over biases, own parameters and lateral weights of the machine.
    fn refresh(&mut self, machine: &Machine) {
        let shifts: Vec<f64> = self.layers.iter().map(|l| l.shift).collect();
        for l in machine.layer_ids() {
            let bits = self.coordinates(l);
            let (layer, source) = (&mut self.layers[l.0], machine.layer(l));
            layer.bias.copy_from_slice(&source.bias);
            layer.own.copy_from_slice(&source.own);
            self.offsets[l.0].copy_from_slice(&source.offset);
            for c in machine.couplings() {
                let Some(m) = c.other_end(l) else { continue };
                // Lateral inputs are summed over the values themselves.
                let shift = if m == l { 0.0 } else { shifts[m.0] };
                let negative: Vec<f64> =
                    machine.layer(m).offset.iter().map(|x| shift - x).collect();
                add_input(c, l, &negative, &mut layer.bias);
                if let (true, Some(lateral)) = (m == l, &mut layer.lateral) {
                    lateral.refresh(&c.weights, bits);
                }
            }
        }
        self.joints.iter_mut().for_each(|joint| joint.refresh(machine));
    }
}

impl Engine {
    /// Lays out `machine` such that layer $l$ responds to $\kappa_l\theta_l$, with a $\kappa$ of
    /// `copies` for each layer. What units of one layer send each other counts once in any case.
    pub(crate) fn with_copies(machine: &Machine, arithmetic: Arithmetic, copies: &[f64]) -> Self {
        let frame = Frame::new(machine, arithmetic, copies);
        let mut engine = if arithmetic == Arithmetic::F64 {
            Self::Reference(Reference::new(machine, frame))
        } else {
            Self::Packed(Packed::new(machine, frame))
        };
        engine.refresh(machine);
        engine
    }

    /// For machines that learn and sweep about once between two updates: copies that an update
    /// would have to renew are made on the way to each product instead.
    pub(crate) fn expect_updates(&mut self) {
        if let Self::Packed(packed) = self {
            packed.expect_updates();
        }
    }

    /// In which numbers it multiplies.
    pub(crate) fn arithmetic(&self) -> Arithmetic {
        self.frame().arithmetic
    }

    /// Takes over changed parameters of the machine it was made from.
    pub(crate) fn refresh(&mut self, machine: &Machine) {
        match self {
            Self::Reference(reference) => reference.refresh(machine),
            Self::Packed(packed) => packed.refresh(machine),
        }
    }

    /// The layout for the kernels, if it is that.
    pub(crate) fn packed(&self) -> Option<&Packed> {
        match self {
            Self::Reference(_) => None,
            Self::Packed(packed) => Some(packed),
        }
    }

    /// The same, to learn in it.
    pub(crate) fn packed_mut(&mut self) -> Option<&mut Packed> {
        match self {
            Self::Reference(_) => None,
            Self::Packed(packed) => Some(packed),
        }
    }

    fn frame(&self) -> &Frame {
        match self {
            Self::Reference(reference) => reference.frame(),
            Self::Packed(packed) => packed.frame(),
        }
    }

    /// Blocks of layers that are updated together.
    pub(crate) fn schedule(&self) -> &[Vec<LayerId>] {
        &self.frame().schedule
    }

    /// Gaussian layers that are drawn jointly.
    pub(crate) fn joints(&self) -> &[Joint] {
        &self.frame().joints
    }

    /// Those of which layer `l` is one.
    pub(crate) fn joint_of(&self, l: LayerId) -> Option<&Joint> {
        self.layers()[l.0].joint.map(|k| &self.joints()[k])
    }

    /// Some layers without those that are drawn with one before them.
    pub(crate) fn visits<'a>(
        &'a self,
        layers: impl IntoIterator<Item = &'a LayerId> + 'a,
    ) -> impl Iterator<Item = LayerId> + 'a {
        let mut drawn = vec![false; self.joints().len()];
        layers.into_iter().copied().filter(move |l| match self.layers()[l.0].joint {
            None => true,
            Some(k) => !std::mem::replace(&mut drawn[k], true),
        })
    }

    pub(crate) fn layers(&self) -> &[EngineLayer] {
        &self.frame().layers
    }

    /// $\mu$ of each layer.
    pub(crate) fn offsets(&self) -> &[Vec<f64>] {
        &self.frame().offsets
    }
}
