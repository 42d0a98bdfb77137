//! The up–down algorithm: wake–sleep learning of all layers together (Hinton, Dayan, Frey & Neal
//! 1995; Hinton, Osindero & Teh 2006, appendix B).
//!
//! ```text
//! wake:   v from the data, h_1 ~ q(h_1 | v), …, h_{L-1} ~ q(h_{L-1} | h_{L-2})
//!         generative weights:   ΔW = η ⟨ (x_l − E_p[x_l | x_{l+1}]) x̃_{l+1}ᵀ ⟩
//! top:    the RBM's rule, data (h_{L-1}, y): k sweeps give samples of the model
//! sleep:  from those samples down, h_{L-2} ~ p(h_{L-2} | h_{L-1}), …, v ~ p(v | h_1)
//!         recognition weights:  ΔW = η ⟨ x̃_l (x_{l+1} − E_q[x_{l+1} | x_l])ᵀ ⟩
//! ```
//!
//! The wake step is the gradient of $\langle\ln p(v, h)\rangle_q$, the complete log-likelihood
//! under the recognition distribution, so it raises the bound; the sleep step brings $q$ closer to
//! the posterior on samples of the model, which is not quite the gradient of the bound.

use super::ascent::{Ascent, largest_parameter};
use super::coordinates::Coordinates;
use super::dbn::check_refinement;
use super::driver::{Stop, drive};
use super::learner::{Checkpoint, Learner, Stage, StepReport, Watched};
use super::plan::{Completeness, Plan};
use super::trainer::purpose;
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::estimators::{Context, Deferring, Side, Snapshot};
use crate::machine::Batch;
use crate::models::{Body, Dbn};
use crate::moments::Moments;
use crate::optim::{Optimizer, Penalties, Progress, Sgd};
use crate::progress::Silent;
use crate::sampling::{DbnSampler, DbnState, Pass, Way};
use crate::schema::Feed;
use harmonium_data::Dataset;
use harmonium_kernels::random::Stream;
use std::collections::BTreeMap;

/// The gradient of $\langle\ln p(x_l \mid x_{l+1})\rangle$ with respect to the generative machine
/// of directed layer `l`, over the rows of `x` with their weights.
///
/// # Errors
///
/// If memory ends.
pub fn wake_gradient(
    sampler: &DbnSampler,
    x: &DbnState,
    l: usize,
    weights: &[f64],
) -> Result<Moments, Error> {
    conditional_gradient(sampler, x, l, Way::Down, weights)
}

/// The gradient of $\langle\ln q(x_{l+1} \mid x_l)\rangle$ with respect to the recognition machine
/// of directed layer `l`, over the rows of `x` with their weights.
///
/// # Errors
///
/// If memory ends.
pub fn sleep_gradient(
    sampler: &DbnSampler,
    x: &DbnState,
    l: usize,
    weights: &[f64],
) -> Result<Moments, Error> {
    conditional_gradient(sampler, x, l, Way::Up, weights)
}

/// The moments of what is there, minus those with the layer that the conditional is about at its
/// means: what the other layer's own energy says is the same in both and falls away.
fn conditional_gradient(
    sampler: &DbnSampler,
    x: &DbnState,
    l: usize,
    way: Way,
    weights: &[f64],
) -> Result<Moments, Error> {
    let part = &sampler.dbn().directed()[l];
    let machine = if way == Way::Down { &part.generative } else { &part.recognition };
    let [seen, expected] = sampler.pair(x, l, way)?;
    let mut gradient = Moments::zeros(machine);
    gradient.add(machine, &seen, weights);
    let minus: Vec<f64> = weights.iter().map(|w| -w).collect();
    gradient.add(machine, &expected, &minus);
    Ok(gradient)
}

/// The weights, summing to 1.
fn shares(weights: &[f64]) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| if total > 0.0 { w / total } else { 0.0 }).collect()
}

/// Refines a network on one set of data.
pub struct UpDown<'d> {
    sampler: DbnSampler,
    feed: Feed<'d>,
    rows: Batch,
    plan: Plan,
    penalties: Penalties,
    positive: Box<dyn Deferring>,
    negative: Box<dyn Deferring>,
    generative: Vec<Sgd>,
    recognition: Vec<Sgd>,
    top: Sgd,
    root: Stream,
    epoch: u64,
    batches_done: u64,
    order: Vec<u32>,
}

impl<'d> UpDown<'d> {
    /// Prepares to refine `dbn` as `plan` says: its epochs, batch, learning rate, decay, momentum
    /// and L2 penalty hold for all layers, its rule, `k` and chains for the top RBM.
    ///
    /// # Errors
    ///
    /// If the data does not fit, a setting is out of range, or the rule has no samples.
    pub fn new(dbn: Dbn, data: &'d Dataset, plan: &Plan) -> Result<Self, Error> {
        check_refinement(plan)?;
        let (positive, negative) = plan.sides(dbn.top(), Completeness::Whole)?;
        let feed = Feed::of(&dbn.data_layers()?, data)?.whole()?;
        let at_rest = |machine| Sgd::new(Moments::lengths(machine));
        let mut up_down = Self {
            generative: dbn.directed().iter().map(|d| at_rest(&d.generative)).collect(),
            recognition: dbn.directed().iter().map(|d| at_rest(&d.recognition)).collect(),
            top: at_rest(dbn.top()),
            rows: feed.batch([], Stream::new(plan.seed)),
            penalties: Penalties { l1: plan.l1, l2: plan.l2, ..Penalties::default() },
            plan: plan.clone(),
            root: Stream::new(plan.seed),
            epoch: 0,
            batches_done: 0,
            order: Vec::new(),
            // Quantised copies remember when their scales were chosen; these must not.
            sampler: DbnSampler::new(dbn, Arithmetic::F32),
            feed,
            positive,
            negative,
        };
        up_down.shuffle();
        Ok(up_down)
    }

    /// Continues from a checkpoint of a refinement with the same data and plan.
    ///
    /// # Errors
    ///
    /// If the checkpoint does not fit the data or the plan.
    pub fn resume(checkpoint: &Checkpoint, data: &'d Dataset, plan: &Plan) -> Result<Self, Error> {
        let mut up_down = Self::new(checkpoint.dbn()?.clone(), data, plan)?;
        let (state, dbn) = (&checkpoint.state, up_down.sampler.dbn());
        up_down.positive.import(dbn.top(), &state.nested("positive"))?;
        up_down.negative.import(dbn.top(), &state.nested("negative"))?;
        up_down.top.import(&state.nested("top"))?;
        for l in 0..dbn.directed().len() {
            up_down.generative[l].import(&state.nested(&format!("generative.{l}")))?;
            up_down.recognition[l].import(&state.nested(&format!("recognition.{l}")))?;
        }
        (up_down.epoch, up_down.batches_done) = (checkpoint.epoch, checkpoint.batches_done);
        up_down.shuffle();
        Ok(up_down)
    }

    /// Everything that is needed to go on from here.
    pub fn checkpoint(&self) -> Checkpoint {
        let mut state = Snapshot::default();
        state.nest("positive", self.positive.export(self.sampler.dbn().top()));
        state.nest("negative", self.negative.export(self.sampler.dbn().top()));
        state.nest("top", self.top.export());
        for (l, (down, up)) in self.generative.iter().zip(&self.recognition).enumerate() {
            state.nest(&format!("generative.{l}"), down.export());
            state.nest(&format!("recognition.{l}"), up.export());
        }
        Checkpoint {
            body: Body::Dbn(self.sampler.dbn().clone()),
            stage: Some(Stage::Refine),
            epoch: self.epoch,
            batches_done: self.batches_done,
            state,
            observers: BTreeMap::new(),
        }
    }

    /// The network as it is now.
    pub fn dbn(&self) -> &Dbn {
        self.sampler.dbn()
    }

    /// Where the refinement is.
    pub fn progress(&self) -> Progress {
        let per_epoch = self.batches_per_epoch();
        Progress::new(self.epoch, self.batches_done, per_epoch, self.plan.epochs)
    }

    fn batches_per_epoch(&self) -> u64 {
        self.feed.data().n_rows().div_ceil(self.plan.batch) as u64
    }

    /// Refines until all epochs are done.
    ///
    /// # Errors
    ///
    /// If a number is not finite ([`Error::Diverged`]), or memory ends.
    pub fn run(mut self) -> Result<Dbn, Error> {
        match drive(&mut self, &mut [], &mut Silent)? {
            Stop::Diverged(error) => Err(error),
            _ => Ok(self.sampler.into_dbn()),
        }
    }

    /// Moves every part along its gradient.
    fn ascend(
        &mut self,
        progress: Progress,
        top: &mut Moments,
        directed: &mut [[Moments; 2]],
    ) -> Result<StepReport, Error> {
        let gradients = directed.iter().flatten().chain([&*top]);
        let gradient_norm = gradients.map(|g| g.norm().powi(2)).sum::<f64>().sqrt();
        let diverged = || Error::Diverged {
            step: progress.step,
            epoch: progress.epoch + 1,
            what: "the gradient holds a number that is not finite".into(),
        };
        if !gradient_norm.is_finite() {
            return Err(diverged());
        }
        let learning_rate = self.plan.learning_rate * self.plan.decay.at(progress);
        let ascent = Ascent {
            penalties: &self.penalties,
            coordinates: &Coordinates::default(),
            activity: &[],
            centered_mean: &[],
            rate: learning_rate,
            momentum: self.plan.momentum.at(progress),
            largest: largest_parameter(Arithmetic::F32),
        };
        let Self { sampler, top: of_top, generative, recognition, .. } = self;
        let moved = sampler.change(|dbn| {
            let before = dbn.clone();
            let (parts, machine) = dbn.parts_mut();
            let mut moved = ascent.apply(machine, top, of_top)?;
            for (l, (part, [down, up])) in parts.iter_mut().zip(directed).enumerate() {
                let down = ascent.apply(&mut part.generative, down, &mut generative[l])?;
                let up = ascent.apply(&mut part.recognition, up, &mut recognition[l])?;
                moved = down.and(up).and(moved);
            }
            if moved.is_none() {
                *dbn = before;
            }
            Ok::<_, Error>(moved)
        })?;
        let Some([_, update_ratio]) = moved else { return Err(diverged()) };
        self.batches_done += 1;
        if self.batches_done == self.batches_per_epoch() {
            (self.epoch, self.batches_done) = (self.epoch + 1, 0);
            self.shuffle();
        }
        let step = progress.step + 1;
        Ok(StepReport { step, learning_rate, gradient_norm, update_ratio, ..StepReport::default() })
    }

    /// The rows of the batch under way.
    fn batch_rows(&self) -> Vec<usize> {
        let size = self.plan.batch;
        let done = usize::try_from(self.batches_done).unwrap_or(usize::MAX);
        let start = done.saturating_mul(size).min(self.order.len());
        let end = start.saturating_add(size).min(self.order.len());
        self.order[start..end].iter().map(|&r| r as usize).collect()
    }

    /// The order of the epoch under way.
    fn shuffle(&mut self) {
        self.order.clear();
        self.order.extend(0..u32::try_from(self.feed.data().n_rows()).unwrap_or(u32::MAX));
        self.root.fork(purpose::ORDER).fork(self.epoch).shuffle(&mut self.order);
    }
}

impl Learner for UpDown<'_> {
    fn step(&mut self) -> Result<StepReport, Error> {
        let progress = self.progress();
        let stream = |of: u64| self.root.fork(of).fork(progress.step);
        let order = self.batch_rows();
        let draw = self.root.fork(purpose::DATA).fork(self.epoch);
        self.feed.refill(&mut self.rows, order, draw);
        let mut wake = DbnState::from_batch(self.sampler.dbn(), &self.rows)?;
        let weights = shares(self.rows.weights());
        let up = Pass::Samples(stream(purpose::RECOGNITION));
        self.sampler.recognise(&mut wake, up)?;

        let batch = Batch::from_state(
            self.sampler.dbn().top(),
            &wake.to_top(self.sampler.dbn())?,
            &weights,
        );
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be between 1 and a million"
        )]
        let k = self.plan.k.at(progress).round() as usize;
        let (sampler, batch) = (self.sampler.top(), &batch);
        let context = |of: u64| Context { sampler, batch, k, stream: stream(of) };
        let mut top_gradient = Moments::zeros(self.sampler.dbn().top());
        let data = self.positive.estimate(&context(purpose::POSITIVE))?;
        data.add_to(self.sampler.dbn().top(), 1.0, &mut top_gradient);
        let model = self.negative.estimate(&context(purpose::NEGATIVE))?;
        model.add_to(self.sampler.dbn().top(), -1.0, &mut top_gradient);
        let Side::Particles { state, weights: shares } = model else {
            unreachable!("every rule but the exact one has particles");
        };
        let down = Pass::Samples(stream(purpose::SLEEP));
        let sleep = self.sampler.generate(state, down)?;

        let mut directed = Vec::with_capacity(self.sampler.dbn().directed().len());
        for l in 0..self.sampler.dbn().directed().len() {
            directed.push([
                wake_gradient(&self.sampler, &wake, l, &weights)?,
                sleep_gradient(&self.sampler, &sleep, l, shares)?,
            ]);
        }
        self.ascend(progress, &mut top_gradient, &mut directed)
    }

    fn progress(&self) -> Progress {
        self.progress()
    }

    fn is_done(&self) -> bool {
        self.epoch >= self.plan.epochs
    }

    fn stage(&self) -> Option<Stage> {
        Some(Stage::Refine)
    }

    fn body(&self) -> Body {
        Body::Dbn(self.sampler.dbn().clone())
    }

    fn checkpoint(&self) -> Checkpoint {
        self.checkpoint()
    }

    fn watched(&self) -> Option<Watched<'_>> {
        None
    }
}
