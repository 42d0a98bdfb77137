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

use super::epoch_data::{EpochData, Presented};
use super::initialise;
use super::learner::{Checkpoint, Learner, Stage, StepReport, Watched};
use super::plan::{Numbers, Plan, Rule};
use super::trainer::{Trainer, purpose};
use super::up_down::UpDown;
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role};
use crate::models::{Body, Dbn};
use crate::optim::Progress;
use crate::sampling::{DbnSampler, DbnState, Pass};
use crate::schema::Feed;
use crate::units::Units;
use harmonium_data::{Dataset, Table};
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::random::{Site, Stream};

/// Rows that go up together.
const ROWS: usize = 1000;

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

impl DbnShape {
    /// Binary units everywhere.
    pub fn binary(n_visible: usize, hidden: &[usize]) -> Self {
        Self { visible: (Units::Binary, n_visible), hidden: hidden.to_vec(), n_classes: 0 }
    }

    /// The shape of a network.
    pub fn of(dbn: &Dbn) -> Self {
        let visible = dbn.layer(0);
        Self {
            visible: (visible.units, visible.n_units()),
            hidden: (1..=dbn.depth()).map(|l| dbn.layer(l).len()).collect(),
            n_classes: dbn.n_classes(),
        }
    }

    /// The layers that data goes into, as a machine without couplings.
    pub(crate) fn data_layers(&self) -> Result<Machine, Error> {
        let mut layers =
            vec![Layer::new("visible", Role::Visible, self.visible.0, self.visible.1)?];
        if self.n_classes > 0 {
            let units = Units::Categorical { q: self.n_classes };
            layers.push(Layer::new("labels", Role::Visible, units, 1)?);
        }
        Machine::new(layers, Vec::new())
    }
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
    pub fn data(&self, dbn: &Dbn) -> StageData<'d> {
        let arithmetic = match self.plan.precision {
            Numbers::F64 => Arithmetic::F64,
            Numbers::F32 => Arithmetic::F32,
            Numbers::I16 | Numbers::Auto => Arithmetic::I16,
        };
        let root = Stream::new(self.plan(dbn.depth()).seed);
        StageData { data: self.data, sampler: DbnSampler::new(dbn.clone(), arithmetic), root }
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
pub struct StageData<'d> {
    data: &'d Dataset,
    sampler: DbnSampler,
    root: Stream,
}

impl<'d> StageData<'d> {
    /// What a trainer takes: the data itself for the first RBM.
    pub fn presented(self) -> Presented<'d> {
        if self.sampler.dbn().directed().is_empty() {
            Presented::from(self.data)
        } else {
            Presented::Anew(Box::new(self))
        }
    }
}

impl EpochData for StageData<'_> {
    fn in_epoch(&self, epoch: u64) -> Result<Dataset, Error> {
        if self.sampler.dbn().directed().is_empty() {
            return Ok(self.data.clone());
        }
        let mut bits = BitMatrix::zeros(0, self.sampler.dbn().top().layer(Dbn::BELOW_TOP).len());
        let up = self.root.fork(purpose::RECOGNITION).fork(epoch);
        let draw = self.root.fork(purpose::DATA).fork(epoch);
        let feed = Feed::of(&self.sampler.dbn().data_layers()?, self.data)?.whole()?;
        let mut batch = feed.batch([], draw);
        for (piece, start) in (0..).zip((0..self.data.n_rows()).step_by(ROWS)) {
            let these = start..(start + ROWS).min(self.data.n_rows());
            feed.refill(&mut batch, these, draw);
            let mut x = DbnState::from_batch(self.sampler.dbn(), &batch)?;
            self.sampler.recognise(&mut x, Pass::Samples(up.fork(piece)))?;
            x.append_top_bits(&mut bits);
        }
        let values = Table::from_bits(bits).and_then(|table| self.data.with_values(table));
        values.map_err(|_| Error::Empty { what: "the data".into() })
    }
}

/// Learns a network layer by layer, and then all layers together if the refinement has epochs.
pub struct DbnLearner<'d> {
    stack: Stack<'d>,
    refinement: Plan,
    /// The layers that are learned, under the RBM that the stage under way began with.
    dbn: Dbn,
    current: Current<'d>,
    /// What the stage under way learns from, where that is not the data itself: in its first epoch.
    watched: Option<Dataset>,
}

/// The stage under way.
enum Current<'d> {
    Layer(Box<Trainer<'d>>),
    Refine(Box<UpDown<'d>>),
}

impl<'d> DbnLearner<'d> {
    /// Prepares the first RBM. `refinement` is the plan of the wake–sleep stage; its seed is derived
    /// from that of `plan`.
    ///
    /// # Errors
    ///
    /// If there is no hidden layer, a setting is out of range, or the data does not fit.
    pub fn new(
        shape: DbnShape,
        data: &'d Dataset,
        plan: &Plan,
        refinement: &Plan,
    ) -> Result<Self, Error> {
        let (stack, refinement) = planned(shape, data, plan, refinement)?;
        if refinement.epochs > 0 {
            check_refinement(&refinement)?;
        }
        let dbn = stack.first()?;
        let (trainer, watched) = begin(&stack, &dbn)?;
        let current = Current::Layer(Box::new(trainer));
        let mut learner = Self { stack, refinement, dbn, current, watched };
        // Without epochs every layer keeps its first parameters.
        while plan.epochs == 0 && learner.has_next() {
            learner.advance()?;
        }
        Ok(learner)
    }

    /// Continues from a checkpoint of a training with the same data and plans.
    ///
    /// # Errors
    ///
    /// If the checkpoint does not fit the data or the plans.
    pub fn resume(
        checkpoint: &Checkpoint,
        shape: DbnShape,
        data: &'d Dataset,
        plan: &Plan,
        refinement: &Plan,
    ) -> Result<Self, Error> {
        let (stack, refinement) = planned(shape, data, plan, refinement)?;
        let dbn = checkpoint.dbn()?.clone();
        let (current, watched) = if checkpoint.stage == Some(Stage::Refine) {
            (Current::Refine(Box::new(UpDown::resume(checkpoint, data, &refinement)?)), None)
        } else {
            let stage_data = stack.data(&dbn);
            let watched = watched(&dbn, &stage_data)?;
            let body = Body::Machine(dbn.top().clone());
            let inner = Checkpoint { body, ..checkpoint.clone() };
            let plan = stack.plan(dbn.depth());
            let trainer = Trainer::resume(&inner, stage_data.presented(), &plan)?;
            (Current::Layer(Box::new(trainer)), watched)
        };
        Ok(Self { stack, refinement, dbn, current, watched })
    }

    /// The network as it is now.
    ///
    /// # Errors
    ///
    /// If its parts do not fit together.
    pub fn dbn(&self) -> Result<Dbn, Error> {
        match &self.current {
            Current::Layer(trainer) => {
                Dbn::new(self.dbn.directed().to_vec(), trainer.machine().clone())
            }
            Current::Refine(up_down) => Ok(up_down.dbn().clone()),
        }
    }

    /// Whether a stage follows the one under way.
    fn has_next(&self) -> bool {
        match &self.current {
            Current::Layer(_) => !self.stack.is_complete(&self.dbn) || self.refinement.epochs > 0,
            Current::Refine(_) => false,
        }
    }

    /// Goes on to the next RBM, or to the refinement.
    fn advance(&mut self) -> Result<(), Error> {
        let dbn = self.dbn()?;
        if self.stack.is_complete(&dbn) {
            let up_down = UpDown::new(dbn.clone(), self.stack.data, &self.refinement)?;
            (self.dbn, self.watched, self.current) =
                (dbn, None, Current::Refine(Box::new(up_down)));
        } else {
            self.dbn = self.stack.next(dbn)?;
            let (trainer, watched) = begin(&self.stack, &self.dbn)?;
            (self.current, self.watched) = (Current::Layer(Box::new(trainer)), watched);
        }
        Ok(())
    }

    fn learner(&self) -> &dyn Learner {
        match &self.current {
            Current::Layer(trainer) => trainer.as_ref(),
            Current::Refine(up_down) => up_down.as_ref(),
        }
    }
}

/// The stack, and the plan of the refinement with the seed that follows those of the layers.
fn planned<'d>(
    shape: DbnShape,
    data: &'d Dataset,
    plan: &Plan,
    refinement: &Plan,
) -> Result<(Stack<'d>, Plan), Error> {
    let stack = Stack::new(shape, data, plan)?;
    let seed = stack.plan(stack.depth() + 1).seed;
    Ok((stack, Plan { seed, ..refinement.clone() }))
}

/// The way down of wake–sleep learning starts from samples of the top RBM.
///
/// # Errors
///
/// If the rule has none, or a setting is out of range.
pub(super) fn check_refinement(plan: &Plan) -> Result<(), Error> {
    plan.check()?;
    let refused = match plan.rule {
        Rule::Exact => "exact",
        // There is no going back for one of many machines that move together.
        Rule::Ptt => "ptt",
        _ => return Ok(()),
    };
    let range = "one that samples the top RBM (cd, pcd or pt): the way down starts there";
    Err(Error::Setting { name: "rule", value: refused.into(), range })
}

/// The trainer of the top RBM of `dbn` from its first parameters, and what it learns from.
fn begin<'d>(stack: &Stack<'d>, dbn: &Dbn) -> Result<(Trainer<'d>, Option<Dataset>), Error> {
    let data = stack.data(dbn);
    let watched = watched(dbn, &data)?;
    let machine = stack.initial(dbn, &data)?;
    let trainer = Trainer::new(machine, data.presented(), &stack.plan(dbn.depth()))?;
    Ok((trainer, watched))
}

/// The samples of the first epoch, which metrics look at.
fn watched(dbn: &Dbn, data: &StageData<'_>) -> Result<Option<Dataset>, Error> {
    (!dbn.directed().is_empty()).then(|| data.in_epoch(0)).transpose()
}

impl Learner for DbnLearner<'_> {
    fn step(&mut self) -> Result<StepReport, Error> {
        while self.learner().is_done() && self.has_next() {
            self.advance()?;
        }
        match &mut self.current {
            Current::Layer(trainer) => trainer.step(),
            Current::Refine(up_down) => up_down.step(),
        }
    }

    fn progress(&self) -> Progress {
        self.learner().progress()
    }

    fn is_done(&self) -> bool {
        self.learner().is_done() && !self.has_next()
    }

    fn stage(&self) -> Option<Stage> {
        Some(match &self.current {
            Current::Layer(_) => Stage::Layer(self.dbn.depth()),
            Current::Refine(_) => Stage::Refine,
        })
    }

    fn before(&self) -> (u64, u64) {
        let layers = match &self.current {
            Current::Layer(_) => self.dbn.depth() - 1,
            Current::Refine(_) => self.dbn.depth(),
        };
        let epochs = self.stack.plan.epochs.saturating_mul(layers as u64);
        (epochs, epochs.saturating_mul(self.progress().per_epoch))
    }

    fn described(&self) -> Option<(String, usize)> {
        let stages = self.stack.depth() + usize::from(self.refinement.epochs > 0);
        let top = self.dbn.top().layer(self.dbn.top_hidden());
        Some((top.name.clone(), stages))
    }

    fn body(&self) -> Body {
        // The parts were put together before, with other numbers.
        Body::Dbn(self.dbn().unwrap_or_else(|_| self.dbn.clone()))
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint { body: self.body(), stage: self.stage(), ..self.learner().checkpoint() }
    }

    fn check(&self) -> Result<(), Error> {
        self.learner().check()
    }

    fn watched(&self) -> Option<Watched<'_>> {
        let watched = self.learner().watched()?;
        Some(Watched { data: self.watched.as_ref(), ..watched })
    }

    fn is_parallel(&self) -> bool {
        self.learner().is_parallel()
    }
}
