//! What learning inside the engine gives to others and takes back: the machine, and what a
//! checkpoint holds beyond it.

use super::EngineLearner;
use crate::engine::Packed;
use crate::error::Error;
use crate::machine::{Machine, Weights, add_input};
use harmonium_kernels::line::PANEL;

impl Packed {
    /// Writes the parameters and the offsets into `machine`.
    pub(crate) fn write_back(&self, machine: &mut Machine) {
        let offsets = &self.frame.offsets;
        for band in &self.bands {
            for (c, link) in band.links.iter().enumerate() {
                let coupling = &mut machine.couplings_mut()[link.coupling];
                let first = coupling.between.0;
                let weights = coupling.weights.entries_mut();
                band.read_into(c, first, |p| &band.panels[p][c].weights, weights);
            }
        }
        for (layer, offset) in machine.layers_mut().iter_mut().zip(offsets) {
            layer.offset.clone_from(offset);
        }
        for l in machine.layer_ids() {
            let mut bias = self.layers()[l.0].bias.clone();
            for c in machine.couplings() {
                if let (Some(m), Weights::Between(_)) = (c.other_end(l), &c.weights) {
                    let shift = self.layers()[m.0].shift;
                    let moved: Vec<f64> = offsets[m.0].iter().map(|mu| mu - shift).collect();
                    add_input(c, l, &moved, &mut bias);
                }
            }
            machine.layers_mut()[l.0].bias = bias;
        }
    }

    /// What the engine knows beyond the machine it would write back: biases without offsets and
    /// the scales of quantised weights, by name.
    pub(crate) fn export(&self, machine: &Machine) -> Vec<(String, Vec<f64>)> {
        let mut out = Vec::new();
        for (layer, source) in self.layers().iter().zip(machine.layers()) {
            out.push((format!("bias.{}", source.name), layer.bias.clone()));
        }
        for band in &self.bands {
            for (c, link) in band.links.iter().enumerate() {
                out.push((format!("scales.{}", link.coupling), band.scales(c)));
            }
        }
        out
    }

    /// Takes up what [`Packed::export`] gave; `get` finds it by name and length.
    pub(crate) fn import<'s>(
        &mut self,
        machine: &Machine,
        mut get: impl FnMut(&str, usize) -> Result<&'s [f64], Error>,
    ) -> Result<(), Error> {
        for (layer, source) in self.frame.layers.iter_mut().zip(machine.layers()) {
            let bias = get(&format!("bias.{}", source.name), layer.len)?;
            layer.bias.copy_from_slice(bias);
        }
        self.set_lines();
        for band in &mut self.bands {
            for c in 0..band.links.len() {
                let coupling = band.links[c].coupling;
                let scales = get(&format!("scales.{coupling}"), band.scales(c).len())?;
                band.restore_scales(c, scales);
            }
        }
        Ok(())
    }
}

impl EngineLearner {
    /// The velocity of each coupling, stored as its weights are.
    pub(crate) fn weight_velocity(&self, machine: &Machine, engine: &Packed) -> Vec<Vec<f64>> {
        let couplings = machine.couplings().iter();
        let mut out: Vec<Vec<f64>> =
            couplings.map(|c| vec![0.0; c.weights.entries().len()]).collect();
        for (band, velocity) in engine.bands.iter().zip(&self.velocity) {
            for (c, link) in band.links.iter().enumerate() {
                let first = machine.couplings()[link.coupling].between.0;
                let rows = |p: usize| &*velocity[p][c];
                band.read_into(c, first, rows, &mut out[link.coupling]);
            }
        }
        out
    }

    /// Takes up velocities that [`EngineLearner::weight_velocity`] gave.
    pub(crate) fn set_weight_velocity(
        &mut self,
        machine: &Machine,
        engine: &Packed,
        stored: &[Vec<f64>],
    ) {
        for (band, velocity) in engine.bands.iter().zip(&mut self.velocity) {
            for (c, link) in band.links.iter().enumerate() {
                let at = band.entry(c, machine.couplings()[link.coupling].between.0);
                for (p, panel) in velocity.iter_mut().enumerate() {
                    for (i, row) in panel[c].iter_mut().enumerate() {
                        for l in 0..PANEL.min(band.len - p * PANEL) {
                            #[expect(clippy::cast_possible_truncation, reason = "it was f32")]
                            let v = stored[link.coupling][at(i, p * PANEL + l)] as f32;
                            row.0[l] = v;
                        }
                    }
                }
            }
        }
    }
}
