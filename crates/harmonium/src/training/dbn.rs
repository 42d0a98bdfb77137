//! Greedy learning of a deep belief network: one RBM after the other (Hinton, Osindero & Teh 2006).
//!
//! ```text
//! for each layer l = 1 … L:
//!     in each epoch: draw v from the data, h_1 ~ q(h_1 | v), …, h_{l-1} ~ q(h_{l-1} | h_{l-2})
//!     train an RBM with visible layer h_{l-1} (v for l = 1) and hidden layer h_l on them
//!     below the top, its two conditionals become p(h_{l-1} | h_l) and q(h_l | h_{l-1})
//! ```
//!
//! The top RBM also sees the labels, if there are any. Each RBM is trained by the [`Trainer`] that
//! trains every machine, on samples that are drawn anew in each epoch.

use super::initialise;
use super::observer::Observer;
use super::plan::{Numbers, Plan};
use super::source::{Presented, Source};
use super::trainer::{Checkpoint, Stop, Trainer, purpose};
use crate::error::Error;
use crate::estimators::Snapshot;
use crate::machine::{Coupling, Layer, LayerId, Machine, Matrix, Precision, Role};
use crate::models::Dbn;
use crate::sampling::{DbnEngine, DbnState, Pass, recognise};
use crate::schema::Feed;
use crate::units::Units;
use harmonium_data::{Dataset, Table};
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::random::{Site, Stream};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Rows that go up together.
const ROWS: usize = 1000;

/// What is learned when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The RBM whose hidden layer is this one, from 1.
    Layer(usize),
    /// All layers together, by wake–sleep.
    Refine,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layer(l) => write!(f, "layer {l}"),
            Self::Refine => f.write_str("up-down"),
        }
    }
}

/// A complete state of training: continuing from it equals never having stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct DbnCheckpoint {
    /// What is being learned.
    pub stage: Stage,
    /// The network so far; its top RBM is the one that is being learned, unless all are.
    pub dbn: Dbn,
    /// Epochs of the stage that are finished.
    pub epoch: u64,
    /// Batches done of the epoch under way.
    pub batches_done: u64,
    /// Chains, moments of the optimiser, running means.
    pub state: Snapshot,
}

impl DbnCheckpoint {
    /// Puts the checkpoint of a network's top RBM on the layers below it.
    ///
    /// # Errors
    ///
    /// If the machine is not the top RBM.
    pub fn of_layer(dbn: &Dbn, checkpoint: Checkpoint) -> Result<Self, Error> {
        let Checkpoint { machine, epoch, batches_done, state } = checkpoint;
        let dbn = Dbn::new(dbn.directed().to_vec(), machine)?;
        Ok(Self { stage: Stage::Layer(dbn.depth()), dbn, epoch, batches_done, state })
    }

    /// The checkpoint of the top RBM alone.
    pub fn to_layer(&self) -> Checkpoint {
        Checkpoint {
            machine: self.dbn.top().clone(),
            epoch: self.epoch,
            batches_done: self.batches_done,
            state: self.state.clone(),
        }
    }
}

/// The layers of a network that is to be learned.
#[derive(Clone, Debug, PartialEq)]
pub struct DbnShape {
    /// Kind and number of the visible units.
    pub visible: (Units, usize),
    /// Binary units of each hidden layer, from the data upwards.
    pub hidden: Vec<usize>,
    /// Classes of the labels beside the top RBM's visible layer; 0 for none.
    pub n_classes: usize,
}

/// The stages of one network on one set of data.
pub struct Stack<'d> {
    shape: DbnShape,
    data: &'d Dataset,
    plan: Plan,
}

impl<'d> Stack<'d> {
    /// Plans a stack: every RBM is trained as `plan` says, with a seed of its own. Only
    /// the RBM on top sees the labels of `data`, if there are any.
    ///
    /// # Errors
    ///
    /// If there is no hidden layer, or a setting is out of range.
    pub fn new(shape: DbnShape, data: &'d Dataset, plan: &Plan) -> Result<Self, Error> {
        plan.check()?;
        if shape.hidden.is_empty() {
            return Err(Error::Empty { what: "the list of hidden layers".into() });
        }
        Ok(Self { shape, data, plan: plan.clone() })
    }

    /// Number of RBMs.
    pub fn depth(&self) -> usize {
        self.shape.hidden.len()
    }

    /// The plan of the RBM with hidden layer `l`. The first has the seed that was given, so that it
    /// is the RBM that would be trained alone.
    pub fn plan(&self, l: usize) -> Plan {
        Plan { seed: stage_seed(self.plan.seed, l), ..self.plan.clone() }
    }

    /// A network of one RBM, its parameters zero.
    ///
    /// # Errors
    ///
    /// If a layer is empty or memory ends.
    pub fn first(&self) -> Result<Dbn, Error> {
        Dbn::new(Vec::new(), self.rbm(1)?)
    }

    /// Whether a network has all its layers.
    pub fn is_complete(&self, dbn: &Dbn) -> bool {
        dbn.depth() >= self.depth()
    }

    /// Puts the next RBM on a network that is not complete, its parameters zero.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn next(&self, dbn: Dbn) -> Result<Dbn, Error> {
        let next = self.rbm(dbn.depth() + 1)?;
        dbn.stacked(next)
    }

    /// What the top RBM of `dbn` learns from.
    pub fn data<'s>(&'s self, dbn: &Dbn) -> StageData<'s> {
        let precision = match self.plan.precision {
            Numbers::F64 => Precision::F64,
            Numbers::F32 => Precision::F32,
            Numbers::I16 | Numbers::Auto => Precision::I16,
        };
        let root = Stream::new(self.plan(dbn.depth()).seed);
        let engine = DbnEngine::new(dbn, precision);
        StageData { data: self.data, dbn: dbn.clone(), engine, root }
    }

    /// The top RBM of `dbn` with its first parameters.
    ///
    /// # Errors
    ///
    /// If the data does not fit it.
    pub fn initial(&self, dbn: &Dbn, data: &StageData<'_>) -> Result<Machine, Error> {
        let mut machine = dbn.top().clone();
        initialise(&mut machine, &data.in_epoch(0)?, &self.plan(dbn.depth()))?;
        Ok(machine)
    }

    /// The RBM with hidden layer `l`, its parameters zero.
    fn rbm(&self, l: usize) -> Result<Machine, Error> {
        let hidden = |l: usize| format!("hidden{l}");
        let below = match l {
            1 => Layer::new("visible", Role::Visible, self.shape.visible.0, self.shape.visible.1)?,
            _ => Layer::new(hidden(l - 1), Role::Visible, Units::Binary, self.shape.hidden[l - 2])?,
        };
        let mut layers = vec![below];
        if l == self.depth() && self.shape.n_classes > 0 {
            let units = Units::Categorical { q: self.shape.n_classes };
            layers.push(Layer::new("labels", Role::Visible, units, 1)?);
        }
        layers.push(Layer::new(hidden(l), Role::Hidden, Units::Binary, self.shape.hidden[l - 1])?);
        let top = layers.len() - 1;
        let couple = |a: usize| {
            let weights = Matrix::zeros(layers[a].len(), layers[top].len())?;
            Ok(Coupling::between(LayerId(a), LayerId(top), weights))
        };
        let couplings = (0..top).map(couple).collect::<Result<_, Error>>()?;
        Machine::new(layers, couplings)
    }
}

/// A seed for the RBM with hidden layer `l`.
fn stage_seed(seed: u64, l: usize) -> u64 {
    if l <= 1 {
        return seed;
    }
    let [a, b, ..] = Stream::new(seed).fork(purpose::STAGE).words(Site::new(l, 0, 0), 0);
    // TOML has no larger numbers.
    (u64::from(a) << 32 | u64::from(b)) >> 1
}

/// Samples of the layer an RBM of a stack stands on, drawn anew in each epoch: the data through
/// the recognition distribution below it.
pub struct StageData<'s> {
    data: &'s Dataset,
    dbn: Dbn,
    engine: DbnEngine,
    root: Stream,
}

impl StageData<'_> {
    /// What a trainer takes: the data itself for the first RBM.
    pub fn presented(&self) -> Presented<'_> {
        if self.dbn.directed().is_empty() {
            Presented::Fixed(self.data)
        } else {
            Presented::Anew(self)
        }
    }
}

impl Source for StageData<'_> {
    fn in_epoch(&self, epoch: u64) -> Result<Dataset, Error> {
        if self.dbn.directed().is_empty() {
            return Ok(self.data.clone());
        }
        let mut bits = BitMatrix::zeros(0, self.dbn.top().layer(Dbn::BELOW_TOP).len());
        let up = self.root.fork(purpose::RECOGNITION).fork(epoch);
        let draw = self.root.fork(purpose::DATA).fork(epoch);
        let feed = Feed::of(&self.dbn.data_layers()?, self.data)?.whole()?;
        let mut batch = feed.batch([], draw);
        for (piece, start) in (0..).zip((0..self.data.n_rows()).step_by(ROWS)) {
            let these = start..(start + ROWS).min(self.data.n_rows());
            feed.refill(&mut batch, these, draw);
            let mut x = DbnState::from_batch(&self.dbn, &batch)?;
            recognise(&self.dbn, &self.engine, &mut x, Pass::Samples(up.fork(piece)))?;
            x.append_top_bits(&mut bits);
        }
        let values = Table::from_bits(bits).and_then(|table| self.data.with_values(table));
        values.map_err(|_| Error::Empty { what: "the data".into() })
    }
}

/// Trains the whole stack, without refinement; the observers see every stage, and one that stops
/// ends the stage it sees.
///
/// # Errors
///
/// As [`super::train`]; numbers that run away are an error here.
pub fn train_dbn(stack: &Stack<'_>, observers: &mut [&mut dyn Observer]) -> Result<Dbn, Error> {
    let mut dbn = stack.first()?;
    loop {
        let data = stack.data(&dbn);
        let machine = stack.initial(&dbn, &data)?;
        let mut trainer = Trainer::new(machine, data.presented(), &stack.plan(dbn.depth()))?;
        if let Stop::Diverged(error) = trainer.run(observers)? {
            return Err(error);
        }
        let (directed, _) = dbn.into_parts();
        dbn = Dbn::new(directed, trainer.machine().clone())?;
        if stack.is_complete(&dbn) {
            return Ok(dbn);
        }
        dbn = stack.next(dbn)?;
    }
}
