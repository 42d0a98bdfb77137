//! A training written down, and gone on with.

use super::{STEERING, Trainer};
use crate::error::Error;
use crate::estimators::Snapshot;
use crate::models::Body;
use crate::moments::Moments;
use crate::optim::{Optimizer as _, Sgd};
use crate::training::epoch_data::Presented;
use crate::training::guard::Steering;
use crate::training::learner::Checkpoint;
use crate::training::plan::Plan;
use std::collections::BTreeMap;

impl<'d> Trainer<'d> {
    /// Continues from a checkpoint of a run with the same data and plan.
    ///
    /// # Errors
    ///
    /// If the checkpoint does not fit the data or the plan.
    pub fn resume(
        checkpoint: &Checkpoint,
        data: impl Into<Presented<'d>>,
        plan: &Plan,
    ) -> Result<Self, Error> {
        let copies = vec![1.0; checkpoint.machine()?.layers().len()];
        Self::resume_with_copies(checkpoint, data.into(), plan, &copies)
    }

    /// The same for a machine whose layers count what they receive several times.
    pub(in crate::training) fn resume_with_copies(
        checkpoint: &Checkpoint,
        data: Presented<'d>,
        plan: &Plan,
        copies: &[f64],
    ) -> Result<Self, Error> {
        let (machine, epoch) = (checkpoint.machine()?.clone(), checkpoint.epoch);
        let mut trainer = Self::with_copies(machine, data, plan, copies, epoch)?;
        let state = &checkpoint.state;
        if let Some(stored) = state.0.get(STEERING) {
            let tempered = stored.len() == 3 && state.get(STEERING, 3)?[2] == 1.0;
            let steering = state.get(STEERING, stored.len().clamp(2, 3))?;
            trainer.temper_if(tempered)?;
            trainer.steering = Steering { sweeps: steering[0], rate: steering[1], tempered };
        }
        let graph = trainer.sampler.graph();
        trainer.negative.import(graph, &state.nested("negative"))?;
        trainer.positive.import(graph, &state.nested("positive"))?;
        for (layer, activity) in graph.layers().iter().zip(&mut trainer.activity) {
            let key = format!("activity.{}", layer.name);
            activity.copy_from_slice(state.get(&key, layer.len())?);
        }
        let optimizer = state.nested("optimizer");
        trainer.norms.copy_from_slice(state.get("norms", 2)?);
        if let (Some(learner), Some((graph, packed))) =
            (&mut trainer.learner, trainer.sampler.restore())
        {
            let mut sgd = Sgd::new(Moments::lengths(graph));
            sgd.import(&optimizer)?;
            let mut velocity = Moments::zeros(graph);
            for (slice, stored) in velocity.slices_mut().into_iter().zip(sgd.velocity()) {
                slice.copy_from_slice(stored);
            }
            let Moments { bias, weights, .. } = velocity;
            learner.set_weight_velocity(graph, packed, &weights);
            learner.bias_velocity = bias;
            let engine = state.nested("engine");
            packed.import(graph, |name, len| engine.get(name, len))?;
        } else {
            trainer.optimizer.import(&optimizer)?;
        }
        trainer.batches_done = checkpoint.batches_done;
        Ok(trainer)
    }

    /// Everything that is needed to go on from here.
    pub fn checkpoint(&self) -> Checkpoint {
        let (mut state, graph) = (Snapshot::default(), self.sampler.graph());
        state.nest("positive", self.positive.export(graph));
        state.nest("negative", self.negative.export(graph));
        state.insert("norms", self.norms.to_vec());
        if self.steering != Steering::default() {
            let Steering { sweeps, rate, tempered } = self.steering;
            state.insert(STEERING, vec![sweeps, rate, f64::from(u8::from(tempered))]);
        }
        if let (Some(learner), Some(packed)) = (&self.learner, self.sampler.engine().packed()) {
            let mut velocity = Moments::zeros(graph);
            velocity.bias.clone_from(&learner.bias_velocity);
            velocity.weights = learner.weight_velocity(graph, packed);
            state.nest("optimizer", Sgd::snapshot(velocity.into_slices()));
            let mut engine = Snapshot::default();
            for (name, values) in packed.export(graph) {
                engine.insert(name, values);
            }
            state.nest("engine", engine);
        } else {
            state.nest("optimizer", self.optimizer.export());
        }
        for (layer, activity) in graph.layers().iter().zip(&self.activity) {
            state.insert(format!("activity.{}", layer.name), activity.clone());
        }
        Checkpoint {
            body: Body::Machine(self.machine().clone()),
            stage: None,
            epoch: self.epoch,
            batches_done: self.batches_done,
            state,
            observers: BTreeMap::new(),
        }
    }
}
