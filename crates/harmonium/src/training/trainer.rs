//! The trainer of one machine: a step is both sides of the gradient and what they do to the parameters.

mod in_engine;
mod stored;

use super::ascent::{Ascent, largest_parameter, recenter};
use super::coordinates::Coordinates;
use super::driver::{Stop, drive};
use super::epoch_data::{EpochData, Presented};
use super::guard::{Guarding, Steering};
use super::learner::{Checkpoint, Learner, Rollback, StepReport, Watched};
use super::observer::Observer;
use super::plan::{Completeness, Plan, Rule};
use crate::engine::{EngineLearner, Packed, Reduce};
use crate::error::Error;
use crate::estimators::{Context, Deferring, Retreat, Snapshot};
use crate::machine::{Batch, LayerId, Machine, State};
use crate::models::Body;
use crate::moments::Moments;
use crate::optim::{Optimizer, Penalties, Progress};
use crate::progress::Silent;
use crate::sampling::Sampler;
use crate::schema::Feed;
use harmonium_kernels::random::Stream;
use std::borrow::Cow;

/// What the variates of a run are used for: the first fork of its stream.
pub(super) mod purpose {
    pub(crate) const INIT: u64 = 0;
    pub(crate) const ORDER: u64 = 1;
    pub(crate) const DATA: u64 = 2;
    pub(crate) const POSITIVE: u64 = 3;
    pub(crate) const NEGATIVE: u64 = 4;
    pub(crate) const ROUNDING: u64 = 5;
    /// Samples of the layers below.
    pub(crate) const RECOGNITION: u64 = 6;
    /// The way down of wake–sleep learning.
    pub(crate) const SLEEP: u64 = 7;
    /// The seeds of the RBMs of a stack.
    pub(crate) const STAGE: u64 = 8;
    /// The RBMs that a DBM is pre-trained by.
    pub(crate) const GREEDY: u64 = 9;
}

/// Most sweeps of one step.
const MOST_SWEEPS: f64 = 1e6;

/// Under which name a checkpoint holds how the training departs from its plan.
const STEERING: &str = "steering";

/// Sweeps between two updates up to which it does not pay to keep every copy of the weights.
const FEW_SWEEPS: f64 = 2.0;

/// Trains one machine on one set of data.
pub struct Trainer<'d> {
    sampler: Sampler,
    /// Learning inside the engine, where the plan allows it.
    learner: Option<EngineLearner>,
    /// Norms of the last step that took them: of the gradient, and of the update over the weights.
    norms: [f64; 2],
    /// Makes the data of the next epoch, where epochs differ.
    source: Option<Box<dyn EpochData + 'd>>,
    /// What is presented in the epoch under way.
    feed: Feed<'d>,
    plan: Plan,
    /// How the training departs from its plan.
    steering: Steering,
    penalties: Penalties,
    /// In which real columns are learned.
    coordinates: Coordinates,
    positive: Box<dyn Deferring>,
    negative: Box<dyn Deferring>,
    optimizer: Box<dyn Optimizer>,
    /// Averages gradients with other learners, if there are any.
    reduce: Option<Box<dyn Reduce + 'd>>,
    /// Running mean of each layer on the data side.
    activity: Vec<Vec<f64>>,
    hidden: Vec<LayerId>,
    root: Stream,
    epoch: u64,
    batches_done: u64,
    order: Vec<u32>,
    batch: Batch,
}

impl<'d> Trainer<'d> {
    /// Prepares to train `machine` from where it is; see [`super::initialise`] for a fresh start.
    ///
    /// # Errors
    ///
    /// If the data does not fit the machine, or a setting is out of range.
    pub fn new(
        machine: Machine,
        data: impl Into<Presented<'d>>,
        plan: &Plan,
    ) -> Result<Self, Error> {
        let copies = vec![1.0; machine.layers().len()];
        Self::with_copies(machine, data.into(), plan, &copies, 0)
    }

    /// The same from an epoch on, for a machine whose layers count what they receive several
    /// times; see [`Sampler::with_copies`].
    pub(super) fn with_copies(
        machine: Machine,
        source: Presented<'d>,
        plan: &Plan,
        copies: &[f64],
        epoch: u64,
    ) -> Result<Self, Error> {
        plan.check()?;
        let (data, source) = source.in_epoch(epoch)?;
        let mut feed = Feed::of(&machine, data)?.filled_layers()?;
        let rows = Completeness::of(&feed);
        if plan.rule == Rule::Pseudo {
            feed = feed.without_holes()?;
        }
        let (positive, negative) = plan.sides(&machine, rows)?;
        let arithmetic = plan.arithmetic(&machine, rows);
        let mut sampler = Sampler::with_copies(machine, arithmetic, copies);
        if plan.k.at(Progress::default()) <= FEW_SWEEPS {
            sampler = sampler.expecting_updates();
        }
        let machine = sampler.machine();
        let coordinates = Coordinates::of(machine, &feed, plan.objective.generative_share());
        let fused = sampler.engine().packed().filter(|_| plan.learns_in_engine(machine, rows));
        let learner = fused.map(|e| EngineLearner::new(e, plan.momentum.range().1 > 0.0));
        let mut trainer = Self {
            learner,
            norms: [0.0; 2],
            optimizer: plan.optimizer(machine),
            reduce: None,
            penalties: plan.penalties(),
            coordinates,
            activity: machine.layers().iter().map(|l| l.offset.clone()).collect(),
            hidden: machine.hidden_layers(),
            root: Stream::new(plan.seed),
            batch: feed.batch([], Stream::new(0)),
            plan: plan.clone(),
            steering: Steering::default(),
            epoch,
            batches_done: 0,
            order: Vec::new(),
            sampler,
            source,
            feed,
            positive,
            negative,
        };
        trainer.shuffle();
        Ok(trainer)
    }

    /// Averages the gradients of every step, and the means that offsets follow, with other learners.
    ///
    /// All learners start from the same machine, each with samples of its own and a seed of its own
    /// in its plan, and make the same steps.
    #[must_use]
    pub fn with_reduce(mut self, reduce: impl Reduce + 'd) -> Self {
        self.reduce = Some(Box::new(reduce));
        self
    }

    /// Starts the chains of the model side at `x`, a row for each of them.
    ///
    /// # Errors
    ///
    /// If there are more or fewer rows than chains, or the state is that of another machine.
    pub fn set_chains(&mut self, x: &State) -> Result<(), Error> {
        let graph = self.sampler.graph();
        x.check(graph)?;
        let mut chains = Snapshot::default();
        chains.insert_state(graph, x);
        self.negative.import(graph, &chains)
    }

    /// Where the chains of the model side are, if the rule keeps any.
    pub fn chains(&self) -> Option<&State> {
        self.negative.chains()
    }

    /// The machine as it is now.
    pub fn machine(&self) -> &Machine {
        self.sampler.machine()
    }

    /// The machine as it is now, with what belongs to it.
    pub(super) fn current(&self) -> Watched<'_> {
        Watched {
            sampler: &self.sampler,
            chains: self.negative.chains(),
            model_side: self.negative.as_ref(),
            data: None,
        }
    }

    /// Where the run is.
    pub fn progress(&self) -> Progress {
        let per_epoch = self.batches_per_epoch();
        Progress::new(self.epoch, self.batches_done, per_epoch, self.plan.epochs)
    }

    fn batches_per_epoch(&self) -> u64 {
        self.feed.data().n_rows().div_ceil(self.plan.batch) as u64
    }

    /// Trains until the plan is done, an observer breaks, or a number is not finite.
    ///
    /// # Errors
    ///
    /// If an estimator or an observer cannot do its work (too many terms, no memory, no disk).
    pub fn run(&mut self, observers: &mut [&mut dyn Observer]) -> Result<Stop, Error> {
        drive(self, observers, &mut Silent)
    }

    /// The learning rate of a step.
    fn rate(&self, progress: Progress) -> f64 {
        let planned = self.plan.learning_rate * self.plan.decay.at(progress);
        planned * self.negative.caution() * self.steering.rate
    }

    /// Goes back to an earlier machine, at rest, if the model side asks for it.
    fn follow_retreat(&mut self) -> Option<Rollback> {
        let Retreat { machine, acceptance } = self.negative.retreat()?;
        let machine = machine.clone();
        self.sampler.set_machine(machine);
        let graph = self.sampler.graph();
        self.optimizer = self.plan.optimizer(graph);
        let momentum = self.plan.momentum.range().1 > 0.0;
        let packed = self.sampler.engine().packed().filter(|_| self.learner.is_some());
        self.learner = packed.map(|packed| EngineLearner::new(packed, momentum));
        Some(Rollback { acceptance, rate_factor: self.negative.caution() })
    }

    /// Tempers the chains of the model side from here on, if they are to be and are not yet.
    fn temper_if(&mut self, tempered: bool) -> Result<(), Error> {
        if tempered && !self.steering.tempered && self.guarding() == Guarding::Temper {
            let (graph, rows) = (self.sampler.graph(), Completeness::of(&self.feed));
            self.negative = self.plan.model_side(Rule::Ptt, graph, rows)?;
        }
        Ok(())
    }

    /// What a guard may do to it.
    fn guarding(&self) -> Guarding {
        if self.reduce.is_some() { Guarding::Warn } else { self.plan.guarding() }
    }

    /// The error of a parameter that is too large to go on with.
    fn ran_away(progress: Progress) -> Error {
        let what = "a parameter, or its square, became a number that is not finite, or real units lost their density".into();
        Error::Diverged { step: progress.step, epoch: progress.epoch + 1, what }
    }

    /// A machine that has no distribution any more is one that ran away.
    fn lost(progress: Progress, error: Error) -> Error {
        let Error::Diverges { .. } = error else { return error };
        let what = error.to_string();
        Error::Diverged { step: progress.step, epoch: progress.epoch + 1, what }
    }

    /// Sweeps and variates of one side.
    fn context(&self, progress: Progress, purpose: u64) -> (usize, Stream) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be between 1 and a million"
        )]
        let k = (self.steering.sweeps * self.plan.k.at(progress)).round().min(MOST_SWEEPS) as usize;
        (k, self.root.fork(purpose).fork(progress.step))
    }

    /// Counts a step that is done.
    fn finish_step(
        &mut self,
        progress: Progress,
        learning_rate: f64,
        gradient_norm: f64,
        update_ratio: f64,
    ) -> Result<StepReport, Error> {
        self.batches_done += 1;
        if self.batches_done == self.batches_per_epoch() {
            (self.epoch, self.batches_done) = (self.epoch + 1, 0);
            let source = self.source.as_ref().filter(|_| self.epoch < self.plan.epochs);
            if let Some(source) = source {
                let data = Cow::Owned(source.in_epoch(self.epoch)?);
                self.feed = Feed::of(self.sampler.graph(), data)?.filled_layers()?;
            }
            self.shuffle();
        }
        let convergence = self.positive.convergence();
        Ok(StepReport {
            step: progress.step + 1,
            learning_rate,
            sweeps: self.context(progress, purpose::NEGATIVE).0,
            gradient_norm,
            update_ratio,
            convergence,
            rollback: None,
        })
    }

    /// One update of the machine, in the order of the formulas.
    fn step_by_moments(&mut self) -> Result<StepReport, Error> {
        let progress = self.progress();
        let (mut gradient, mut means) = self.slopes_and_means(progress)?;
        if let Some(reduce) = &mut self.reduce {
            let mut parts = gradient.slices_mut();
            parts.extend(means.iter_mut().map(Vec::as_mut_slice));
            reduce.average(&mut parts)?;
            self.coordinates.share(reduce.as_mut())?;
        }
        self.follow_activity(&means);
        let centered_mean = self.centered_mean(&means);
        let rate = self.rate(progress);
        let ascent = Ascent {
            penalties: &self.penalties,
            coordinates: &self.coordinates,
            activity: &self.activity,
            centered_mean: &centered_mean,
            rate,
            momentum: self.plan.momentum.at(progress),
            largest: largest_parameter(self.sampler.arithmetic()),
        };
        let rate_of_offsets = if self.plan.center { self.plan.offset_rate } else { 0.0 };
        let optimizer = self.optimizer.as_mut();
        let moved = self.sampler.change(|machine| {
            let moved = ascent.apply(machine, &mut gradient, optimizer)?;
            if moved.is_some() {
                recenter(machine, &means, rate_of_offsets)?;
            }
            Ok::<_, Error>(moved)
        })?;
        let Some([gradient_norm, update_ratio]) = moved else {
            return Err(Self::ran_away(progress));
        };
        self.finish_step(progress, rate, gradient_norm, update_ratio)
    }

    /// The slopes of the objective in the next batch, without penalties and in the parameters of the machine;
    /// nothing moves.
    ///
    /// # Errors
    ///
    /// If an estimator cannot do its work.
    pub fn slopes(&mut self) -> Result<Moments, Error> {
        self.present();
        Ok(self.slopes_and_means(self.progress())?.0)
    }

    /// The slopes in the batch, and the means of its data side.
    fn slopes_and_means(&mut self, progress: Progress) -> Result<(Moments, Vec<Vec<f64>>), Error> {
        let data = self.side(progress, purpose::POSITIVE)?;
        let model = self.side(progress, purpose::NEGATIVE)?;
        let means = data.bias.clone();
        Ok((data.minus(&model), means))
    }

    /// Moments of one side.
    fn side(&mut self, progress: Progress, purpose: u64) -> Result<Moments, Error> {
        let (k, stream) = self.context(progress, purpose);
        let context = Context { sampler: &self.sampler, batch: &self.batch, k, stream };
        let estimator =
            if purpose == purpose::POSITIVE { &mut self.positive } else { &mut self.negative };
        let machine = self.sampler.machine();
        let mut moments = Moments::zeros(machine);
        estimator.estimate(&context)?.add_to(machine, 1.0, &mut moments);
        Ok(moments)
    }

    /// The order of the epoch under way.
    fn shuffle(&mut self) {
        self.order.clear();
        self.order.extend(0..u32::try_from(self.feed.data().n_rows()).unwrap_or(u32::MAX));
        self.root.fork(purpose::ORDER).fork(self.epoch).shuffle(&mut self.order);
    }

    /// Fills the batch with the next samples, drawn for this epoch.
    fn present(&mut self) {
        let size = self.plan.batch;
        let start = usize::try_from(self.batches_done).unwrap_or(usize::MAX).saturating_mul(size);
        let end = (start + size).min(self.order.len());
        let draw = self.root.fork(purpose::DATA).fork(self.epoch);
        // Those of the next batch come while this one is learned from.
        let next = &self.order[end..(end + size).min(self.order.len())];
        self.feed.fetch(next.iter().map(|&row| row as usize));
        let rows = self.order[start..end].iter().map(|&row| row as usize);
        self.feed.refill(&mut self.batch, rows, draw);
    }

    /// $q_l \leftarrow \rho q_l + (1-\rho)\langle x_l\rangle_\text{data}$ for the sparsity target.
    fn follow_activity(&mut self, means: &[Vec<f64>]) {
        let decay = self.penalties.sparsity.map_or(0.0, |s| s.decay);
        for (activity, mean) in self.activity.iter_mut().zip(means) {
            activity.iter_mut().zip(mean).for_each(|(a, m)| *a = decay * *a + (1.0 - decay) * m);
        }
    }

    fn centered_mean(&self, means: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let layers = self.sampler.machine().layers().iter().zip(means);
        layers.map(|(l, m)| m.iter().zip(&l.offset).map(|(m, o)| m - o).collect()).collect()
    }
}

impl Learner for Trainer<'_> {
    fn step(&mut self) -> Result<StepReport, Error> {
        if self.reduce.is_some() && self.plan.rule == Rule::Ptt {
            let range =
                "pcd, cd or pt where several learners average: each would go back by itself";
            return Err(Error::Setting { name: "rule", value: "ptt".into(), range });
        }
        self.present();
        let progress = self.progress();
        let stepped =
            if self.learner.is_some() { self.step_in_engine() } else { self.step_by_moments() };
        let mut report = stepped.map_err(|error| Self::lost(progress, error))?;
        report.rollback = self.follow_retreat();
        Ok(report)
    }

    fn progress(&self) -> Progress {
        self.progress()
    }

    fn is_done(&self) -> bool {
        self.epoch >= self.plan.epochs
    }

    fn body(&self) -> Body {
        Body::Machine(self.machine().clone())
    }

    fn steer(&mut self, steering: Steering) -> Result<(), Error> {
        self.temper_if(steering.tempered)?;
        self.steering = steering;
        Ok(())
    }

    fn checkpoint(&self) -> Checkpoint {
        self.checkpoint()
    }

    fn check(&self) -> Result<(), Error> {
        if self.sampler.is_finite() { Ok(()) } else { Err(Self::ran_away(self.progress())) }
    }

    fn watched(&self) -> Option<Watched<'_>> {
        Some(self.current())
    }

    fn is_parallel(&self) -> bool {
        let rows = 2 * self.plan.batch;
        let parallel = |e: &Packed| EngineLearner::is_parallel(e, rows);
        self.learner.is_some() && self.sampler.engine().packed().is_some_and(parallel)
    }
}
