//! Averaging gradients over several learners before they are applied.
//!
//! Learners that start from the same machine and see different samples make the same step if they
//! average what the step is made of,
//! $$\Delta W = \eta\,\frac1n\sum_{k=1}^n G_k, \qquad
//!   G_k = \langle\tilde x_i \tilde x_j\rangle_\text{data, k}
//!     - \langle\tilde x_i \tilde x_j\rangle_\text{model, k},$$
//! and the means of both sides, which move the biases and the offsets. Who the others are, and how
//! numbers come to them, is for an implementation of [`Reduce`] to say: threads, processes, machines.
//!
//! Alone, a learner computes gradient, update and copies while a panel is in the cache. With others
//! it first writes the gradients of all panels down, terms of rank one included, has them averaged,
//! and then applies them.

use super::{Aim, EngineLearner, Origin, SideRows, Squares, StepRates};
use crate::engine::Packed;
use crate::error::Error;
use harmonium_kernels::line::{Row, flat_mut};

/// Replaces numbers by their averages over all learners that take part.
///
/// All of them call the same methods in the same order, with slices of the same lengths: they have
/// the same machine, the same plan but for its seed, and equally many batches in an epoch. What they
/// receive must be the same to the last bit, or they drift apart.
pub trait Reduce: Send {
    /// Averages numbers of double precision: the means of both sides, or all moments where a step
    /// goes by moments.
    ///
    /// # Errors
    ///
    /// If the others cannot be reached ([`Error::Reduce`]): the step is then not made.
    fn average(&mut self, parts: &mut [&mut [f64]]) -> Result<(), Error>;

    /// Averages numbers of single precision: the gradients of weights.
    ///
    /// # Errors
    ///
    /// As [`Reduce::average`].
    fn average_single(&mut self, parts: &mut [&mut [f32]]) -> Result<(), Error>;
}

impl EngineLearner {
    /// Moves all parameters of the engine by one step, along the average of the gradients of all
    /// who take part.
    pub(crate) fn step_reduced(
        &mut self,
        engine: &mut Packed,
        sides: &mut [SideRows<'_>; 2],
        rates: &StepRates,
        reduce: &mut dyn Reduce,
    ) -> Result<Squares, Error> {
        self.take_up(engine, sides);
        self.make_room(engine);
        for b in 0..engine.bands.len() {
            self.visit_band(engine, b, sides, rates, (Origin::Rows, Aim::Write));
            self.take_means(engine.bands[b].layer, b, sides);
            self.take_samples(engine.bands[b].layer, b, sides);
        }
        self.average(reduce)?;
        let kept = rates.clip.map_or(1.0, |limit| {
            let norm = self.written_norm(engine, sides, rates);
            if norm > limit { limit / norm } else { 1.0 }
        });
        let rates = &StepRates { rate: kept * rates.rate, ..*rates };
        let mut squares = Squares::default();
        for b in 0..engine.bands.len() {
            self.visit_band(engine, b, sides, rates, (Origin::Written, Aim::Move));
            squares.add(self.finish_band(&mut engine.bands[b], b));
        }
        Ok(self.finish(engine, rates, kept, squares))
    }

    /// Room for the gradients, at the first step.
    fn make_room(&mut self, engine: &Packed) {
        for (band, outputs) in engine.bands.iter().zip(&mut self.outputs) {
            for output in outputs {
                let links = band.links.iter();
                output.written.resize_with(band.links.len(), Vec::new);
                for (written, link) in output.written.iter_mut().zip(links) {
                    written.resize(link.n_rows + 1, Row::ZERO);
                }
            }
        }
    }

    /// Averages the means of both sides, and the gradients of all weights.
    fn average(&mut self, reduce: &mut dyn Reduce) -> Result<(), Error> {
        let means = self.rows.bit_means.iter_mut().flatten();
        let mut means: Vec<&mut [f64]> = means.map(Vec::as_mut_slice).collect();
        reduce.average(&mut means)?;
        let panels = self.outputs.iter_mut().flatten().flat_map(|output| &mut output.written);
        let mut gradients: Vec<&mut [f32]> = panels
            .filter_map(|rows| rows.split_last_mut())
            .map(|(_, rows)| flat_mut(rows))
            .collect();
        reduce.average_single(&mut gradients)
    }

    /// The norm of the whole gradient, as it was written down.
    fn written_norm(
        &mut self,
        engine: &mut Packed,
        sides: &[SideRows<'_>; 2],
        rates: &StepRates,
    ) -> f64 {
        let mut squares = self.bias_squares(engine);
        for b in 0..engine.bands.len() {
            self.visit_band(engine, b, sides, rates, (Origin::Written, Aim::Measure));
            squares += self.outputs[b].iter().map(|output| output.squares.gradient).sum::<f64>();
        }
        squares.sqrt()
    }
}
