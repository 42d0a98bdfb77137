//! From a model to be trained to a trained one.

use crate::error::Error;
use crate::machine::{Layer, Machine, Role};
use crate::models::{Bm, Body, Dbm, MultimodalDbm, Rbm};
use crate::progress::{Listener, Silent};
use crate::random::Stream;
use crate::run::{About, Memory, Model};
use crate::schema::{Feed, Schema};
use crate::spread::Spread;
use crate::training::{
    Checkpoint, DbnLearner, DbnShape, Learner, Observer, Plan, Pretrained, Stop, Trainer, drive,
    initialise, learner,
};
use harmonium_data::{Dataset, Labels, Part, Split};
use std::fmt;

/// A model to be trained: its layers, with parameters that do not matter yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Blueprint {
    /// A Boltzmann machine.
    Machine(Machine),
    /// A deep belief network.
    Dbn(DbnShape),
}

/// Everything a training is made of.
#[derive(Clone, Debug)]
pub struct Training<'d> {
    /// What is trained.
    pub blueprint: Blueprint,
    /// What it learns from.
    pub data: &'d Dataset,
    /// How.
    pub plan: Plan,
    /// How all layers of a deep belief network are refined together; none unless it has epochs.
    pub refinement: Plan,
}

impl<'d> Training<'d> {
    /// A training without refinement.
    pub fn new(blueprint: impl Into<Blueprint>, data: &'d Dataset, plan: &Plan) -> Self {
        let refinement = Plan { epochs: 0, ..plan.clone() };
        Self { blueprint: blueprint.into(), data, plan: plan.clone(), refinement }
    }

    /// The learner, before its first step.
    ///
    /// # Errors
    ///
    /// If the data does not fit, or a setting is out of range.
    pub fn learner(self) -> Result<Box<dyn Learner + 'd>, Error> {
        self.plan.check()?;
        Ok(match self.blueprint {
            Blueprint::Machine(mut machine) => {
                initialise(&mut machine, self.data, &self.plan)?;
                learner(machine, self.data, &self.plan)?
            }
            Blueprint::Dbn(shape) => {
                let (plan, refinement) = (&self.plan, &self.refinement);
                Box::new(DbnLearner::new(shape, self.data, plan, refinement)?)
            }
        })
    }

    /// The learner where a checkpoint of the same training left it.
    ///
    /// # Errors
    ///
    /// If the checkpoint does not fit.
    pub fn resumed(self, checkpoint: &Checkpoint) -> Result<Box<dyn Learner + 'd>, Error> {
        let Self { blueprint, data, plan, refinement } = self;
        Ok(match blueprint {
            Blueprint::Machine(mut machine) if plan.pretrain_epochs > 0 => {
                initialise(&mut machine, data, &plan)?;
                Box::new(Pretrained::resume(machine, checkpoint, data, &plan)?)
            }
            Blueprint::Machine(_) => Box::new(Trainer::resume(checkpoint, data, &plan)?),
            Blueprint::Dbn(shape) => {
                Box::new(DbnLearner::resume(checkpoint, shape, data, &plan, &refinement)?)
            }
        })
    }

    /// What the model will remember of the data: its schema, its means and spread, its classes.
    ///
    /// # Errors
    ///
    /// If the data does not fit.
    pub fn memory(&self) -> Result<Memory, Error> {
        let layers = self.blueprint.data_layers()?;
        let labels = self.data.labels();
        let feed = Feed::of(&layers, self.data)?;
        Ok(Memory {
            schema: Some(Schema::of(&layers, self.data)?),
            image: self.data.table().image().map(|i| (i.height, i.width)),
            rows: self.data.n_rows(),
            means: feed.means().concat(),
            spread: Spread::of(&layers, &feed),
            classes: labels.map(Labels::class_names).unwrap_or_default(),
            codebook: self.data.book().cloned(),
            modalities: self.data.modalities().to_vec(),
            ..Memory::default()
        })
    }

    /// Trains in memory. Observers see every step; the listener may stop it.
    ///
    /// # Errors
    ///
    /// If the data does not fit, a setting is out of range, or memory ends; and if a number is not
    /// finite, with the last good model.
    pub fn run(
        self,
        observers: &mut [&mut dyn Observer],
        listener: &mut dyn Listener,
    ) -> Result<Model, Failed> {
        let (data, seed) = (self.memory()?, self.plan.seed);
        let mut learner = self.learner()?;
        let stop = drive(learner.as_mut(), observers, listener)?;
        let ((epochs, steps), progress) = (learner.before(), learner.progress());
        let about = About {
            seed,
            epoch: epochs + progress.epoch,
            step: steps + progress.step,
            data,
            ..About::default()
        };
        let model = Model { body: learner.body(), about };
        match stop {
            Stop::Diverged(error) => Err(Failed { error, model: Some(Box::new(model)) }),
            Stop::Finished | Stop::Observer(_) | Stop::Cancelled => Ok(model),
        }
    }
}

/// The share of the rows that is set apart for validation, unless asked for otherwise.
pub const VALID_SHARE: f64 = 0.1;
/// The variates that choose these rows.
const APART: u64 = 310;

/// Rows to learn from and rows to validate with, chosen by the seed: weights and labels go with their
/// rows.
///
/// # Errors
///
/// If one side would be empty.
pub fn set_apart(data: &Dataset, share: f64, seed: u64) -> Result<(Dataset, Dataset), Error> {
    let (kept, apart) = apart_rows(data.n_rows(), share, seed)?;
    let side = |rows: &[usize]| {
        data.select_rows(rows).map_err(|_| Error::Empty { what: "the data".into() })
    };
    Ok((side(&kept)?, side(&apart)?))
}

/// The numbers of the rows to learn from and of those to validate with, as [`set_apart`] chooses them.
///
/// # Errors
///
/// If one side would be empty.
pub fn apart_rows(n_rows: usize, share: f64, seed: u64) -> Result<(Vec<usize>, Vec<usize>), Error> {
    let split = Split::shuffled(Part::Fraction(share), Stream::new(seed).fork(APART));
    let wrong = |_| Error::Setting {
        name: "valid-share",
        value: format!("{share} of {n_rows} rows"),
        range: "between 0 and 1, with a row on either side",
    };
    let mut rows = split.rows(n_rows).map_err(wrong)?;
    // Rows keep the order of the file on both sides.
    rows.kept.sort_unstable();
    rows.held_out.sort_unstable();
    Ok((rows.kept, rows.held_out))
}

/// The variates that choose labelled rows.
const LABELLED: u64 = 311;

/// `n` labelled rows, drawn evenly over the classes: as many of each, and one more of some where that does not
/// come out even; a class with fewer rows gives all of them, and the others more.
///
/// # Errors
///
/// If there are no labels, or fewer than `n` rows.
pub fn evenly_labelled(data: &Dataset, n: usize, seed: u64) -> Result<Dataset, Error> {
    let labels = data.labels().ok_or(Error::NoLabels)?;
    if n == 0 || n > data.n_rows() {
        let value = format!("{n} of {} rows", data.n_rows());
        return Err(Error::Setting {
            name: "labelled",
            value,
            range: "at least 1, and at most all rows",
        });
    }
    let stream = Stream::new(seed).fork(LABELLED);
    let mut order: Vec<usize> = (0..data.n_rows()).collect();
    stream.shuffle(&mut order);
    let mut of_class = vec![Vec::new(); labels.n_classes()];
    for row in order {
        of_class[labels.values()[row] as usize].push(row);
    }
    let mut classes: Vec<usize> = (0..of_class.len()).collect();
    stream.fork(1).shuffle(&mut classes);
    let mut rows = Vec::with_capacity(n);
    // A row of each class in turn.
    while rows.len() < n {
        for &class in &classes {
            if let Some(row) = of_class[class].pop().filter(|_| rows.len() < n) {
                rows.push(row);
            }
        }
    }
    rows.sort_unstable();
    data.select_rows(&rows).map_err(|_| Error::Empty { what: "the data".into() })
}

impl Blueprint {
    /// A deep belief network over one visible layer, with labels of `n_classes` classes if there are any.
    ///
    /// # Errors
    ///
    /// If there are several visible layers: its directed layers are pairs.
    pub fn dbn(visible: &[Layer], hidden: Vec<usize>, n_classes: usize) -> Result<Self, Error> {
        let [layer] = visible else {
            let names: Vec<&str> = visible.iter().map(|l| l.name.as_str()).collect();
            return Err(Error::Data {
                message: format!(
                    "a deep belief network learns columns of one kind and one number of categories, and this table has {}: {}",
                    names.len(),
                    names.join(", ")
                ),
                hint: "train a deep Boltzmann machine, which takes any table, or leave columns out"
                    .into(),
            });
        };
        let visible = (layer.units, layer.n_units());
        Ok(Self::Dbn(DbnShape { visible, hidden, n_classes }))
    }

    /// The default plan for it: gentler where real units could run away.
    ///
    /// # Errors
    ///
    /// If a layer is empty.
    pub fn suited_plan(&self) -> Result<Plan, Error> {
        Ok(Plan::suited_to(&self.data_layers()?))
    }

    /// The layers that data goes into, as a machine without couplings.
    pub(crate) fn data_layers(&self) -> Result<Machine, Error> {
        match self {
            Self::Machine(machine) => {
                super::as_visible(machine.layers().iter().filter(|l| l.role == Role::Visible))
            }
            Self::Dbn(shape) => shape.data_layers(),
        }
    }
}

/// Why a training failed, and the last good model if a number was not finite.
#[derive(Debug)]
pub struct Failed {
    /// What happened.
    pub error: Error,
    /// The model before the step at which a number was not finite.
    pub model: Option<Box<Model>>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Failed {}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { error, model: None }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

impl TryFrom<Body> for Blueprint {
    type Error = Error;

    /// Feed-forward nets are refused: [`Finetuning`](super::Finetuning) trains them.
    fn try_from(body: Body) -> Result<Self, Error> {
        match body {
            Body::Machine(machine) => Ok(Self::Machine(machine)),
            Body::Dbn(dbn) => Ok(Self::Dbn(DbnShape::of(&dbn))),
            Body::Network(_) => Err(Error::NoDistribution),
        }
    }
}

impl From<Machine> for Blueprint {
    fn from(machine: Machine) -> Self {
        Self::Machine(machine)
    }
}

impl From<Rbm> for Blueprint {
    fn from(rbm: Rbm) -> Self {
        Self::Machine(rbm.into_machine())
    }
}

impl From<Bm> for Blueprint {
    fn from(bm: Bm) -> Self {
        Self::Machine(bm.into_machine())
    }
}

impl From<Dbm> for Blueprint {
    fn from(dbm: Dbm) -> Self {
        Self::Machine(dbm.into_machine())
    }
}

impl From<MultimodalDbm> for Blueprint {
    fn from(dbm: MultimodalDbm) -> Self {
        Self::Machine(dbm.into_machine())
    }
}

impl From<DbnShape> for Blueprint {
    fn from(shape: DbnShape) -> Self {
        Self::Dbn(shape)
    }
}

/// Trains in memory, without observers.
fn train(blueprint: Blueprint, data: &Dataset, plan: &Plan) -> Result<Model, Failed> {
    Training::new(blueprint, data, plan).run(&mut [], &mut Silent)
}

impl Rbm {
    /// Trains it from the data's own start.
    ///
    /// # Errors
    ///
    /// As [`Training::run`].
    pub fn train(self, data: &Dataset, plan: &Plan) -> Result<Model, Failed> {
        train(self.into(), data, plan)
    }
}

impl Bm {
    /// Trains it from the data's own start.
    ///
    /// # Errors
    ///
    /// As [`Training::run`].
    pub fn train(self, data: &Dataset, plan: &Plan) -> Result<Model, Failed> {
        train(self.into(), data, plan)
    }
}

impl Dbm {
    /// Trains it from the data's own start, layer by layer first if the plan has pre-training epochs.
    ///
    /// # Errors
    ///
    /// As [`Training::run`].
    pub fn train(self, data: &Dataset, plan: &Plan) -> Result<Model, Failed> {
        train(self.into(), data, plan)
    }
}

impl MultimodalDbm {
    /// Trains it from the data's own start, layer by layer first if the plan has pre-training epochs.
    ///
    /// # Errors
    ///
    /// As [`Training::run`].
    pub fn train(self, data: &Dataset, plan: &Plan) -> Result<Model, Failed> {
        train(self.into(), data, plan)
    }
}

impl Machine {
    /// Trains it from the data's own start.
    ///
    /// # Errors
    ///
    /// As [`Training::run`].
    pub fn train(self, data: &Dataset, plan: &Plan) -> Result<Model, Failed> {
        train(Blueprint::Machine(self), data, plan)
    }
}

impl DbnShape {
    /// Trains a deep belief network of this shape, layer by layer.
    ///
    /// # Errors
    ///
    /// As [`Training::run`].
    pub fn train(self, data: &Dataset, plan: &Plan) -> Result<Model, Failed> {
        train(self.into(), data, plan)
    }
}
