//! The parameters that units own besides their bias.
//!
//! $$E_l(x) = \sum_k \text{own}_k\, s_k(x) - b^\top x$$
//!
//! The energy is linear in them as it is in biases and weights, so they are tempered, learned and
//! stored in the same way. A kind declares each with its name, where it starts, its bounds and the
//! scale on which it is learned ([`OwnParameter`]), and gives the statistic $s_k$
//! ([`Units::own_term`](super::Units::own_term)).

use std::ops::{Range, RangeInclusive};

/// A parameter that each unit of a kind owns.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnParameter {
    /// Its name, as in model files.
    pub name: &'static str,
    /// Its value in a new layer.
    pub start: f64,
    /// Where values are kept that nothing is known of; what data says about them comes first.
    pub bounds: RangeInclusive<f64>,
    /// The scale on which it is learned.
    pub scale: LearningScale,
}

/// The scale on which a parameter is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LearningScale {
    /// Its logarithm is learned: it stays positive.
    Log,
    /// It is learned as it is.
    Linear,
    /// It is part of what the kind is and stays where it starts; positive.
    Fixed,
}

impl OwnParameter {
    /// Whether a machine can be built with this value.
    pub fn accepts(&self, value: f64) -> bool {
        match self.scale {
            LearningScale::Log | LearningScale::Fixed => value.is_finite() && value > 0.0,
            LearningScale::Linear => value.is_finite(),
        }
    }

    /// The slope along the scale on which it is learned, from the slope along the value:
    /// $\partial/\partial\ln\gamma = \gamma\,\partial/\partial\gamma$.
    pub fn gradient(&self, value: f64, slope: f64) -> f64 {
        match self.scale {
            LearningScale::Log => slope * value,
            LearningScale::Linear => slope,
            LearningScale::Fixed => 0.0,
        }
    }

    /// The value after a step on the scale on which it is learned.
    pub fn moved(&self, value: f64, step: f64) -> f64 {
        match self.scale {
            LearningScale::Log => value * step.exp(),
            LearningScale::Linear => value + step,
            LearningScale::Fixed => value,
        }
    }

    /// The nearest value to `moved` inside the bounds; one that stood outside them does not move
    /// farther out.
    pub fn within(&self, moved: f64, before: f64) -> f64 {
        moved.clamp(self.bounds.start().min(before), self.bounds.end().max(before))
    }
}

/// The own parameters of consecutive entries of a layer: a row of numbers for each that their kind
/// declares, nothing for a kind that declares none.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnParameters<'a> {
    values: &'a [f64],
    /// Entries of a row of `values`, and those of them that this piece has.
    stride: usize,
    start: usize,
    len: usize,
}

impl<'a> OwnParameters<'a> {
    /// Of units that own nothing.
    pub const NONE: OwnParameters<'static> =
        OwnParameters { values: &[], stride: 0, start: 0, len: 0 };

    /// The parameters of `n_entries` entries, one row after the other.
    pub fn new(values: &'a [f64], n_entries: usize) -> Self {
        Self { values, stride: n_entries, start: 0, len: n_entries }
    }

    /// The parameter `k` of each entry.
    ///
    /// # Panics
    ///
    /// If the kind declares no such parameter.
    pub fn row(self, k: usize) -> &'a [f64] {
        let at = k * self.stride + self.start;
        &self.values[at..at + self.len]
    }

    /// The parameters of some of the entries.
    #[must_use]
    pub fn piece(self, entries: Range<usize>) -> Self {
        Self { start: self.start + entries.start, len: entries.len(), ..self }
    }
}
