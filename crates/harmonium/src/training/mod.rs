//! Learning: one loop for everything that learns.
//!
//! Each step presents a batch, forms $\langle s\rangle_\text{data} - \langle
//! s\rangle_\text{model}$ from two estimators, adds penalties, and lets the optimiser move the
//! parameters. [`Plan`] says how. A [`Learner`] makes steps: [`Trainer`] for one machine,
//! [`Pretrained`] for a deep machine that starts as a stack, [`DbnLearner`] for a deep belief
//! network. [`drive`] runs any of them; observers watch and may stop it, and never change it.

mod ascent;
mod awake;
mod coordinates;
mod dbn;
mod driver;
mod epoch_data;
mod greedy;
mod guard;
mod init;
mod learner;
mod metric;
mod objective;
mod observer;
mod plan;
mod trainer;
mod up_down;

pub use crate::engine::Reduce;
pub use dbn::{DbnLearner, DbnShape, Stack, StageData};
pub use driver::{Stop, drive};
pub use epoch_data::{EpochData, Presented};
pub use greedy::Pretrained;
pub use guard::{Advice, Guard, Guarding, Steering};
pub use init::initialise;
pub use learner::{Checkpoint, Learner, Rollback, Stage, StepReport, Watched};
pub use metric::{Measurement, Measurements, Metric, MetricName, On};
pub use objective::Objective;
pub use observer::{Best, EarlyStop, Every, History, Observer, Record, View};
pub use plan::{Numbers, OptimizerKind, Plan, Posterior, Rule};
pub use trainer::Trainer;
pub use up_down::{UpDown, sleep_gradient, wake_gradient};

use crate::error::Error;
use crate::machine::Machine;
use crate::models::Body;
use crate::progress::Silent;
use harmonium_data::Dataset;

/// A trained machine, and how its training ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The machine.
    pub machine: Machine,
    /// Epochs finished.
    pub epochs: u64,
    /// Updates done.
    pub steps: u64,
    /// Why it ended.
    pub stop: Stop,
}

/// The learner of a machine that has its first parameters: layer by layer first, if `plan` wants it.
///
/// # Errors
///
/// If the data does not fit the machine, or a setting is out of range.
pub fn learner<'d>(
    machine: Machine,
    data: &'d Dataset,
    plan: &Plan,
) -> Result<Box<dyn Learner + 'd>, Error> {
    Ok(if plan.pretrain_epochs > 0 {
        Box::new(Pretrained::new(machine, data, plan)?)
    } else {
        Box::new(Trainer::new(machine, data, plan)?)
    })
}

/// Initialises `machine` from the data, layer by layer if `plan` wants it, and trains it as `plan`
/// says.
///
/// # Errors
///
/// If the data does not fit the machine, a setting is out of range, or memory ends. Numbers that
/// run away are an outcome: see [`Stop::Diverged`].
pub fn train(
    mut machine: Machine,
    data: &Dataset,
    plan: &Plan,
    observers: &mut [&mut dyn Observer],
) -> Result<Outcome, Error> {
    plan.check()?;
    initialise(&mut machine, data, plan)?;
    let mut learner = learner(machine.clone(), data, plan)?;
    let stop = drive(learner.as_mut(), observers, &mut Silent)?;
    let progress = learner.progress();
    let machine = match learner.body() {
        Body::Machine(trained) => trained,
        Body::Dbn(_) | Body::Network(_) => machine,
    };
    Ok(Outcome { machine, epochs: progress.epoch, steps: progress.step, stop })
}
