//! Learning: one loop for every machine and every rule.
//!
//! Each step presents a batch, forms $\langle s\rangle_\text{data} - \langle
//! s\rangle_\text{model}$ from two estimators, adds penalties, and lets the optimiser move the
//! parameters. [`Plan`] says how; observers watch and may stop it, and never change it.

mod awake;
mod dbn;
mod greedy;
mod init;
mod metric;
mod observer;
mod plan;
mod source;
mod trainer;
mod up_down;

pub use dbn::{DbnCheckpoint, DbnShape, Stack, Stage, StageData, train_dbn};
pub use greedy::{Pretraining, pretrain};
pub use init::initialise;
pub use metric::{Measurement, Measurements, Metric, MetricName, On};
pub use observer::{EarlyStop, Every, History, Observer, Record};
pub use plan::{Numbers, OptimizerKind, Plan, Posterior, Rule};
pub use source::{Presented, Source};
pub use trainer::{Checkpoint, Outcome, StepReport, Stop, Trainer, View};
pub use up_down::{UpDown, sleep_gradient, wake_gradient};

use crate::error::Error;
use crate::machine::Machine;
use harmonium_data::Dataset;
use std::ops::ControlFlow;

/// Initialises `machine` from the data, layer by layer if `plan` wants it, and trains it as `plan`
/// says.
///
/// # Errors
///
/// If the data does not fit the machine, a setting is out of range, or memory ends. Numbers that
/// run away are no error: see [`Stop::Diverged`].
pub fn train(
    mut machine: Machine,
    data: &Dataset,
    plan: &Plan,
    observers: &mut [&mut dyn Observer],
) -> Result<Outcome, Error> {
    plan.check()?;
    initialise(&mut machine, data, plan)?;
    if plan.pretrain_epochs > 0 {
        let stop = pretrain(&mut machine, data, plan, &mut |_| ControlFlow::Continue(()))?;
        if stop != Stop::Finished {
            return Ok(Outcome { machine, epochs: 0, steps: 0, stop });
        }
    }
    let mut trainer = Trainer::new(machine, data, plan)?;
    let stop = trainer.run(observers)?;
    Ok(trainer.finish(stop))
}
