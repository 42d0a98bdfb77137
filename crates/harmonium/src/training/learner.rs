//! Everything that learns, seen from outside.
//!
//! A [`Learner`] makes one update at a time and can say at any moment where it is, what it has
//! learned and what it needs to go on. [`drive`](super::drive) runs every learner, with the same observers, to its
//! end: a machine, a stack of stages, a deep belief network.

use super::guard::Steering;
use crate::error::Error;
use crate::estimators::{Estimator, Snapshot};
use crate::machine::{Machine, State};
use crate::models::{Body, Dbn};
use crate::optim::Progress;
use crate::sampling::{Convergence, Sampler};
use harmonium_data::Dataset;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A part of a training that has several, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Greedy pre-training of a deep machine: the stage with this number, from 1.
    Pretrain(usize),
    /// The RBM of a deep belief network whose hidden layer is this one, from 1.
    Layer(usize),
    /// All layers of a deep belief network together, by wake–sleep.
    Refine,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pretrain(s) => write!(f, "pre-training {s}"),
            Self::Layer(l) => write!(f, "layer {l}"),
            Self::Refine => f.write_str("up-down"),
        }
    }
}

/// Training went back to an earlier machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rollback {
    /// The share of exchanges with the last frozen machine that were accepted.
    pub acceptance: f64,
    /// What the learning rate is multiplied with from now on.
    pub rate_factor: f64,
}

/// What one update did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StepReport {
    /// Updates of this stage that are done, this one included.
    pub step: u64,
    /// The learning rate it used.
    pub learning_rate: f64,
    /// Sweeps of the model side that it took.
    pub sweeps: usize,
    /// Norm of the gradient.
    pub gradient_norm: f64,
    /// Norm of the update of the weights over that of the weights; 0.001 is healthy.
    pub update_ratio: f64,
    /// How mean field went on the data side, if it ran.
    pub convergence: Option<Convergence>,
    /// Whether it was undone: the machine is then the one that was frozen last.
    pub rollback: Option<Rollback>,
}

/// A complete state of training: continuing from it equals never having stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The model so far.
    pub body: Body,
    /// Which stage is under way; none where there is only one.
    pub stage: Option<Stage>,
    /// Epochs of the stage that are finished.
    pub epoch: u64,
    /// Batches done of the epoch under way.
    pub batches_done: u64,
    /// Chains, moments of the optimiser, running means.
    pub state: Snapshot,
    /// What each observer remembers, by its name.
    pub observers: BTreeMap<String, serde_json::Value>,
}

impl Checkpoint {
    /// The network, where the model is a deep belief network.
    pub(super) fn dbn(&self) -> Result<&Dbn, Error> {
        match &self.body {
            Body::Dbn(dbn) => Ok(dbn),
            other => Err(Error::Topology {
                model: "this training",
                expected: "the checkpoint of a deep belief network",
                found: format!("found that of a {}", other.kind()),
            }),
        }
    }

    /// The machine, where the model is one.
    pub(super) fn machine(&self) -> Result<&Machine, Error> {
        match &self.body {
            Body::Machine(machine) => Ok(machine),
            other => Err(Error::Topology {
                model: "this training",
                expected: "the checkpoint of a machine",
                found: format!("found that of a {}", other.kind()),
            }),
        }
    }
}

/// The machine that is being learned, for those who measure it.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// The machine as it is now, and its layout for sampling.
    pub sampler: &'a Sampler,
    /// Samples of the model that the rule keeps, if it keeps any.
    pub chains: Option<&'a State>,
    /// The model side of its gradient: it may know $\ln Z$ on the way.
    pub model_side: &'a dyn Estimator,
    /// What it learns from, where that is not the data itself: samples of the layer below.
    pub data: Option<&'a Dataset>,
}

/// Learns step by step.
pub trait Learner {
    /// Makes one update, of the next stage where one has just ended.
    ///
    /// # Errors
    ///
    /// [`Error::Diverged`] if a number is not finite: the model is then the last good one. Others if
    /// an estimator cannot do its work (too many terms, no memory).
    fn step(&mut self) -> Result<StepReport, Error>;

    /// Where the stage under way is.
    fn progress(&self) -> Progress;

    /// Whether there is nothing left to learn.
    fn is_done(&self) -> bool;

    /// Which stage is under way; none where there is only one.
    fn stage(&self) -> Option<Stage> {
        None
    }

    /// Epochs and updates of all stages before this one.
    fn before(&self) -> (u64, u64) {
        (0, 0)
    }

    /// The hidden layer that the stage is about, and how many stages there are, for people.
    fn described(&self) -> Option<(String, usize)> {
        None
    }

    /// The model as it is now.
    fn body(&self) -> Body;

    /// Departs from its plan from here on; its checkpoints remember it. Those who cannot go on as before.
    ///
    /// # Errors
    ///
    /// If memory ends.
    fn steer(&mut self, _steering: Steering) -> Result<(), Error> {
        Ok(())
    }

    /// Everything that is needed to go on from here.
    fn checkpoint(&self) -> Checkpoint;

    /// Looks at every parameter before a checkpoint is taken: inside an epoch a step need not.
    ///
    /// # Errors
    ///
    /// [`Error::Diverged`] if one is not finite.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The machine that can be measured, if the stage learns one.
    fn watched(&self) -> Option<Watched<'_>>;

    /// Whether several threads work on each step, so that they should stay awake between steps.
    fn is_parallel(&self) -> bool {
        false
    }
}
