//! A step inside the engine: both sides go there as they are, and the machine is written only on demand.

use super::{Trainer, purpose};
use crate::engine::{SideRows, Squares, StepRates};
use crate::error::Error;
use crate::estimators::{Context, Deferred};
use crate::training::learner::StepReport;

/// How often the norms of gradient and update are taken while steps are made inside the engine: they
/// cost about as much as the update.
const NORM_STEPS: u64 = 250;

impl Trainer<'_> {
    /// One update without the machine: both sides go to the engine as they are.
    pub(super) fn step_in_engine(&mut self) -> Result<StepReport, Error> {
        let progress = self.progress();
        let rate = self.rate(progress);
        let last = self.batches_done + 1 == self.batches_per_epoch();
        let rates = StepRates {
            rate,
            momentum: self.plan.momentum.at(progress),
            l1: self.penalties.l1,
            l2: self.penalties.l2,
            clip: self.penalties.clip,
            norms: last || progress.step.is_multiple_of(NORM_STEPS),
            stream: self.root.fork(purpose::ROUNDING).fork(progress.step),
        };
        let (positive, negative) =
            (self.context(progress, purpose::POSITIVE), self.context(progress, purpose::NEGATIVE));
        let (sampler, batch) = (&self.sampler, &self.batch);
        let context = |(k, stream)| Context { sampler, batch, k, stream };
        let data = self.positive.estimate_deferred(&context(positive))?;
        let model = self.negative.estimate_deferred(&context(negative))?;
        let (Some(data), Some(model), Some(learner), Some(packed)) =
            (data, model, &mut self.learner, self.sampler.learn())
        else {
            unreachable!("a plan that learns in the engine has samples on both sides");
        };
        let Deferred { state, weights, pending, draw, .. } = data;
        let known = model.data_means;
        let data = SideRows { state, weights, pending: &pending, draw, known };
        let Deferred { state, weights, pending, draw, .. } = model;
        let model = SideRows { state, weights, pending: &pending, draw, known: None };
        let sides = &mut [data, model];
        let squares = match &mut self.reduce {
            None => learner.step(packed, sides, &rates),
            Some(reduce) => learner.step_reduced(packed, sides, &rates, reduce.as_mut())?,
        };
        // The weights are known by their squares, at the latest after the last batch of an epoch.
        let has_finite_weights = !rates.norms || squares.is_finite();
        if !has_finite_weights || !packed.has_finite_biases() {
            self.sampler.fall_back();
            return Err(Self::ran_away(progress));
        }
        for (activity, mean) in self.activity.iter_mut().zip(&learner.means[0]) {
            activity.copy_from_slice(mean);
        }
        if self.plan.center && self.plan.offset_rate > 0.0 {
            for &l in &self.hidden {
                learner.recenter(packed, l, self.plan.offset_rate);
            }
        }
        if rates.norms {
            self.norms = norms(squares);
        }
        let [gradient_norm, update_ratio] = self.norms;
        self.finish_step(progress, rate, gradient_norm, update_ratio)
    }
}

/// The norm of the gradient, and that of the update of the weights over that of the weights.
fn norms(squares: Squares) -> [f64; 2] {
    let ratio = if squares.weights > 0.0 { (squares.update / squares.weights).sqrt() } else { 0.0 };
    [squares.gradient.sqrt(), ratio]
}
