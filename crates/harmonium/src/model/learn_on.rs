//! Learning on from where a model is: its parameters, and the chains of the model side, stay with the caller.
//!
//! A training from the data's own start is [`Training`](super::Training); here the machine is taken as it
//! is, for callers that keep models in their own way and learn from data as it comes.

use super::sample::array;
use super::train::Failed;
use crate::error::Error;
use crate::machine::{Layer, Machine, State};
use crate::models::Body;
use crate::progress::Listener;
use crate::run::{About, Model};
use crate::training::{Observer, Plan, Stop, Trainer, drive};
use harmonium_data::Dataset;
use ndarray::{Array2, ArrayView2};

/// What learning on leaves behind.
#[derive(Clone, Debug)]
pub struct LearnedOn {
    /// The model.
    pub model: Model,
    /// Where the chains of the model side are: all layers side by side, a row for each chain; nothing
    /// where the rule keeps none.
    pub chains: Option<Array2<f64>>,
    /// Why it ended.
    pub stop: Stop,
}

impl Model {
    /// Learns from `data` as `plan` says, from these parameters and chains on: all layers side by side, a
    /// row for each chain of the plan. Without chains they are started.
    ///
    /// # Errors
    ///
    /// If the model is not a machine, the data or the chains do not fit, or a setting is out of range; and
    /// if a number is not finite, with the last good model.
    pub fn learn_on(
        &self,
        data: &Dataset,
        plan: &Plan,
        chains: Option<ArrayView2<'_, f64>>,
        observers: &mut [&mut dyn Observer],
        listener: &mut dyn Listener,
    ) -> Result<LearnedOn, Failed> {
        let machine = match &self.body {
            Body::Machine(machine) => machine,
            Body::Dbn(_) => {
                return Err(Failed::from(Error::Topology {
                    model: "learning on",
                    expected: "a machine",
                    found: "the layers of a deep belief network are learned one after the other"
                        .into(),
                }));
            }
            Body::Network(_) => return Err(Error::NoDistribution.into()),
        };
        let mut trainer = Trainer::new(machine.clone(), data, plan)?;
        if let Some(chains) = chains {
            trainer.set_chains(&state_of(machine, chains)?)?;
        }
        let stop = drive(&mut trainer, observers, listener)?;
        let progress = trainer.progress();
        let about = About {
            epoch: self.about.epoch + progress.epoch,
            step: self.about.step + progress.step,
            ..self.about.clone()
        };
        let model = Self { body: Body::Machine(trainer.machine().clone()), about };
        if let Stop::Diverged(error) = stop {
            return Err(Failed { error, model: Some(Box::new(model)) });
        }
        let chains = trainer.chains().map(|x| values_of(machine, x));
        Ok(LearnedOn { model, chains, stop })
    }
}

/// A state from all layers side by side.
fn state_of(machine: &Machine, values: ArrayView2<'_, f64>) -> Result<State, Error> {
    let expected = machine.layers().iter().map(Layer::len).sum();
    if values.ncols() != expected {
        let what = "a row of chains".into();
        return Err(Error::Shape { what, expected, found: values.ncols() });
    }
    let mut x = State::zeros(machine, values.nrows())?;
    for (row, values) in values.rows().into_iter().enumerate() {
        let (values, mut start) = (values.to_vec(), 0);
        for l in machine.layer_ids() {
            let end = start + machine.layer(l).len();
            x.set_row(l, row, &values[start..end])?;
            start = end;
        }
    }
    Ok(x)
}

/// All layers side by side.
fn values_of(machine: &Machine, x: &State) -> Array2<f64> {
    let n_columns = machine.layers().iter().map(Layer::len).sum();
    let mut values = Vec::with_capacity(x.n_rows() * n_columns);
    for row in 0..x.n_rows() {
        machine.layer_ids().for_each(|l| values.extend_from_slice(x.row(l, row)));
    }
    array(x.n_rows(), n_columns, values)
}
