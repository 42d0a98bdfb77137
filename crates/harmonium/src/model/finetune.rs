//! From a model, or from nothing, to a net that tells classes, tags or values.
//!
//! ```
//! use harmonium::data::Labels;
//! use harmonium::data::synthetic::{Repeats, bars_and_stripes};
//! use harmonium::network::NetworkPlan;
//! use harmonium::{Binarize, Dataset, Plan, Rbm};
//!
//! let bars = Dataset::new(bars_and_stripes(3, Repeats::Counted)?, Binarize::None)?;
//! let names = (0..16).map(|row| if row < 8 { "bar" } else { "stripe" });
//! let data = bars.clone().with_labels(Labels::from_texts(names))?;
//! let plan = Plan { learning_rate: 0.1, ..Plan::for_epochs(500) };
//! let rbm = Rbm::binary(9, 12)?.train(&bars, &plan)?;
//! let plan = NetworkPlan { batch: 4, learning_rate: 0.5, ..NetworkPlan::for_epochs(200) };
//! let net = rbm.finetune(&data, &plan)?;
//! let found = net.classify(&data)?;
//! // Two rows, all dark and all light, are bars as well as stripes.
//! assert!(found.errors.is_some_and(|errors| errors.rate <= 0.25));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::train::Failed;
use crate::error::Error;
use crate::machine::{Layer, Machine};
use crate::models::{Activation, Body, Network, Target};
use crate::network::{
    NetworkLearner, NetworkMonitor, NetworkPlan, NetworkRows, Shape, classifier, random,
};
use crate::progress::{Listener, Silent};
use crate::run::{About, Memory, Model};
use crate::schema::{Feed, Schema};
use crate::training::{Best, Checkpoint, Learner, Measurement, Observer, Stop, View, drive};
use harmonium_data::{Dataset, Labels};
use std::ops::ControlFlow;

/// Training rows that are looked at after each epoch, if there are as many.
const LOOKED: usize = 5000;
/// Hidden layers of a net that is made of nothing.
const HIDDEN: [usize; 2] = [800, 800];

/// Everything the training of a net is made of.
#[derive(Clone, Debug)]
pub struct Finetuning<'d> {
    /// The net before its first step.
    pub network: Network,
    /// Which columns fill which of its inputs.
    pub schema: Schema,
    /// What it learns from, with its labels where it is asked for classes.
    pub data: &'d Dataset,
    /// What is to be answered, where that is neither the labels nor the data.
    pub targets: Option<&'d Dataset>,
    /// Rows to validate with, and their targets.
    pub valid: Option<(&'d Dataset, Option<&'d Dataset>)>,
    /// How.
    pub plan: NetworkPlan,
}

/// A trained net, and how its training ended.
#[derive(Clone, Debug)]
pub struct Finetuned {
    /// The best net by its validation rows, else the last one.
    pub model: Model,
    /// Why it ended.
    pub stop: Stop,
    /// The score of the validation rows that was the best, and its epoch.
    pub best: Option<(Measurement, u64)>,
}

impl<'d> Finetuning<'d> {
    /// The net of a model, over which come the further layers of `shape`.
    ///
    /// # Errors
    ///
    /// If the model cannot become a net, or the data does not fit it.
    pub fn of_model(
        model: &Model,
        data: &'d Dataset,
        shape: &Shape,
        plan: &NetworkPlan,
    ) -> Result<Self, Error> {
        let network = classifier(&model.body, shape)?;
        let stored = model.about.data.schema.as_ref();
        Self::of_network(network, stored, data, plan)
    }

    /// A net of random weights over data layers of these kinds.
    ///
    /// # Errors
    ///
    /// If a layer is empty, or the data does not fit.
    pub fn random(
        inputs: &[Layer],
        data: &'d Dataset,
        shape: &Shape,
        plan: &NetworkPlan,
    ) -> Result<Self, Error> {
        Self::of_network(random(inputs, shape)?, None, data, plan)
    }

    /// A net that goes on from where it is.
    ///
    /// # Errors
    ///
    /// If the data does not fit.
    pub fn of_network(
        network: Network,
        stored: Option<&Schema>,
        data: &'d Dataset,
        plan: &NetworkPlan,
    ) -> Result<Self, Error> {
        plan.check()?;
        let schema = Schema::stored_or_of(stored, &network.data_layers()?, data)?;
        Ok(Self { network, schema, data, targets: None, valid: None, plan: plan.clone() })
    }

    /// The net that was asked for: of a model, with `hidden` further layers over it; of random weights where there is
    /// none; a net goes on from where it is. Its outputs are the classes, the columns of `targets`, or the input.
    ///
    /// # Errors
    ///
    /// If the model cannot become such a net, or the data does not fit it.
    pub fn begin(
        model: Option<&Model>,
        (data, targets): (&'d Dataset, Option<&'d Dataset>),
        (hidden, activation): (Option<Vec<usize>>, Activation),
        target: Target,
        plan: &NetworkPlan,
    ) -> Result<Self, Error> {
        if let Some(Model { body: Body::Network(network), about }) = model {
            let made = Self::of_network(network.clone(), about.data.schema.as_ref(), data, plan)?;
            return Ok(Self { targets, ..made });
        }
        let input = match model {
            Some(model) => model.body.visible().into_iter().cloned().collect(),
            None => super::fitting_layers(data, None, None)?,
        };
        let n_outputs = match (target, targets) {
            (Target::Classes, _) => data.labels().map_or(0, Labels::n_classes),
            (Target::Input, _) | (_, None) => input.iter().map(Layer::len).sum(),
            (_, Some(targets)) => targets.n_columns(),
        };
        let usual = || if model.is_some() { Vec::new() } else { HIDDEN.to_vec() };
        let hidden = hidden.unwrap_or_else(usual);
        let shape = Shape { hidden, activation, n_outputs, target, seed: plan.seed };
        let made = match model {
            Some(model) => Self::of_model(model, data, &shape, plan)?,
            None => Self::random(&input, data, &shape, plan)?,
        };
        Ok(Self { targets, ..made })
    }

    /// Validates with these rows; they are read as the others are.
    #[must_use]
    pub fn validated_by(mut self, valid: &'d Dataset) -> Self {
        self.valid = Some((valid, None));
        self
    }

    fn rows(&self, listener: &mut dyn Listener) -> Result<NetworkRows<'d>, Error> {
        NetworkRows::new(&self.network, &self.schema, self.data, self.targets, listener)
    }

    /// The learner, before its first step.
    ///
    /// # Errors
    ///
    /// If the data does not fit or does not say what is to be answered, a setting is out of range, memory
    /// ends, or the listener cancels.
    pub fn learner(&self, listener: &mut dyn Listener) -> Result<NetworkLearner<'d>, Error> {
        NetworkLearner::new(self.network.clone(), self.rows(listener)?, &self.plan)
    }

    /// The learner where a checkpoint of the same training left it.
    ///
    /// # Errors
    ///
    /// If the checkpoint does not fit.
    pub fn resumed(
        &self,
        checkpoint: &Checkpoint,
        listener: &mut dyn Listener,
    ) -> Result<NetworkLearner<'d>, Error> {
        NetworkLearner::resume(checkpoint, self.rows(listener)?, &self.plan)
    }

    /// What is measured after each epoch: some of the training rows, which `looked` holds, and all validation rows.
    ///
    /// # Errors
    ///
    /// If the validation rows do not fit, memory ends, or the listener cancels.
    pub fn monitor<'m>(
        &self,
        looked: &'m Looked,
        listener: &mut dyn Listener,
    ) -> Result<NetworkMonitor<'m>, Error>
    where
        'd: 'm,
    {
        let rows = |data, targets, listener: &mut dyn Listener| {
            NetworkRows::new(&self.network, &self.schema, data, targets, listener)
        };
        let train = rows(&looked.data, looked.targets.as_ref(), listener)?;
        let valid = self.valid.map(|(data, targets)| rows(data, targets, listener)).transpose()?;
        Ok(NetworkMonitor::new(train, valid))
    }

    /// The training rows that are measured: spread over the data.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub fn looked(&self) -> Result<Looked, Error> {
        let n_rows = self.data.n_rows();
        let n = n_rows.min(LOOKED);
        let rows: Vec<usize> = (0..n).map(|k| k * n_rows / n).collect();
        let select = |data: &Dataset| {
            data.select_rows(&rows).map_err(|_| Error::Empty { what: "the data".into() })
        };
        Ok(Looked { data: select(self.data)?, targets: self.targets.map(select).transpose()? })
    }

    /// What the net will remember of the data: its schema, its means, its classes.
    ///
    /// # Errors
    ///
    /// If the data does not fit.
    pub fn memory(&self) -> Result<Memory, Error> {
        let layers: Machine = self.network.data_layers()?;
        let feed = Feed::new(&layers, &self.schema, self.data)?;
        Ok(Memory {
            schema: Some(self.schema.clone()),
            image: self.data.table().image().map(|i| (i.height, i.width)),
            rows: self.data.n_rows(),
            means: feed.means().concat(),
            classes: self.outputs(),
            ..Memory::default()
        })
    }

    /// What the outputs are called: the classes, or the columns of the targets.
    fn outputs(&self) -> Vec<String> {
        let names = self.targets.and_then(|targets| targets.table().names());
        let classes = || self.data.labels().map(Labels::class_names).unwrap_or_default();
        names.unwrap_or_else(classes)
    }

    /// Trains in memory. With validation rows the result is the net of the best epoch, and the training
    /// ends once there was none better for `patience` epochs.
    ///
    /// # Errors
    ///
    /// If the data does not fit, a setting is out of range, or memory ends; and if a number is not finite, with the
    /// last good net.
    pub fn run(
        &self,
        patience: Option<u64>,
        observers: &mut [&mut dyn Observer],
        listener: &mut dyn Listener,
    ) -> Result<Finetuned, Failed> {
        let about = About { seed: self.plan.seed, data: self.memory()?, ..About::default() };
        let mut learner = self.learner(listener)?;
        let looked = self.looked()?;
        let mut keeper = match self.valid {
            None => None,
            Some(_) => Some(Keeper::new(self.monitor(&looked, listener)?, patience)),
        };
        let mut all: Vec<&mut dyn Observer> = observers.iter_mut().map(|o| &mut **o as _).collect();
        all.extend(keeper.as_mut().map(|keeper| keeper as &mut dyn Observer));
        let stop = drive(&mut learner, &mut all, listener)?;
        let progress = learner.progress();
        let about = About { epoch: progress.epoch, step: progress.step, ..about };
        let last = Model { body: learner.body(), about: about.clone() };
        if let Stop::Diverged(error) = stop {
            return Err(Failed { error, model: Some(Box::new(last)) });
        }
        let kept = keeper.and_then(|keeper| keeper.kept);
        Ok(match kept {
            None => Finetuned { model: last, stop, best: None },
            Some(Kept { network, step, score, epoch }) => {
                let about = About { step, epoch, ..about };
                let model = Model { body: Body::Network(network), about };
                Finetuned { model, stop, best: Some((score, epoch)) }
            }
        })
    }
}

/// Training rows that are measured after each epoch.
#[derive(Clone, Debug)]
pub struct Looked {
    data: Dataset,
    targets: Option<Dataset>,
}

/// The best net so far.
struct Kept {
    network: Network,
    step: u64,
    score: Measurement,
    epoch: u64,
}

/// Keeps the best net by its validation rows and ends a training that no longer improves.
struct Keeper<'d> {
    monitor: NetworkMonitor<'d>,
    patience: Option<u64>,
    best: Best,
    kept: Option<Kept>,
}

impl<'d> Keeper<'d> {
    fn new(monitor: NetworkMonitor<'d>, patience: Option<u64>) -> Self {
        Self { monitor, patience, best: Best::default(), kept: None }
    }
}

impl Observer for Keeper<'_> {
    fn epoch_ended(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        let Body::Network(network) = view.body() else { return Ok(ControlFlow::Continue(())) };
        // That of the validation rows comes first, the most telling before others.
        let Some(score) = self.monitor.look(&network)?.into_iter().next() else {
            return Ok(ControlFlow::Continue(()));
        };
        let sign = if score.name.is_cost() { -1.0 } else { 1.0 };
        let (epoch, step) = (view.epoch(), view.report.step);
        if self.best.look(sign * score.value, epoch) {
            self.kept = Some(Kept { network, step, score, epoch });
            return Ok(ControlFlow::Continue(()));
        }
        let late =
            self.patience.zip(self.kept.as_ref()).filter(|(n, kept)| epoch - kept.epoch >= *n);
        Ok(late.map_or(ControlFlow::Continue(()), |(_, kept)| {
            let Kept { score, epoch, .. } = kept;
            ControlFlow::Break(format!(
                "{} was best in epoch {epoch}: {:.4}",
                score.name, score.value
            ))
        }))
    }
}

impl Model {
    /// Makes a net of the model and trains it to tell the classes of the data.
    ///
    /// # Errors
    ///
    /// If the model cannot become a net, the data has no labels or does not fit, or a setting is out of range;
    /// and if a number is not finite, with the last good net.
    pub fn finetune(&self, data: &Dataset, plan: &NetworkPlan) -> Result<Self, Failed> {
        let n_classes = data.labels().map_or(0, Labels::n_classes);
        if n_classes == 0 {
            return Err(Error::NoLabels.into());
        }
        let shape = Shape::classes(n_classes, plan.seed);
        let finetuning = Finetuning::of_model(self, data, &shape, plan)?;
        Ok(finetuning.run(None, &mut [], &mut Silent)?.model)
    }
}
