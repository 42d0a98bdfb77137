//! Learns a net, batch by batch.
//!
//! ```text
//! the rows of the batch go in; a share of the input and of the hidden units is dropped
//! up:   x_l = m_l ⊙ f_l(b_l + x_{l-1} W_l)
//! down: δ_L = (x_L − t) · share of the row,   δ_{l-1} = (δ_l W_lᵀ) ⊙ f'_{l-1}
//!       W_l moves against x_{l-1}ᵀ δ_l + λ W_l once δ_{l-1} is known; norms above c are cut back to c
//! ```
//!
//! Where units are centered, $x_l$ is stored without the mean $\mu_l$ that it had at the start, and so is what is dropped: weights
//! learn from what differs between rows, which logistic units that are on half of the time badly need (LeCun et al. 1998, section
//! 4.3; Montavon & Müller 2012).
//!
//! The shares of the rows of a batch sum to 1: those of weights per sample and per class.

use super::answers::means;
use super::memory::{LayerStep, Memory};
use super::parameters::Parameters;
use super::passes::{Dropping, Passes};
use super::plan::{ClassWeights, Keeps, NetworkPlan};
use super::rows::{NetworkRows, RowRoom};
use crate::error::Error;
use crate::estimators::Snapshot;
use crate::machine::Batch;
use crate::models::{Body, Dense, Loss, Network};
use crate::optim::Progress;
use crate::random::Stream;
use crate::training::{Checkpoint, Learner, StepReport, Watched};
use harmonium_kernels::neurons::Descent;
use std::collections::BTreeMap;
use std::ops::Range;

/// What the variates of a run are used for: the first fork of its stream.
mod purpose {
    pub(super) const ORDER: u64 = 1;
    pub(super) const DROPOUT: u64 = 20;
}

/// Rows whose means are the offsets.
const CENTERED_BY: usize = 1000;
/// Under which name a checkpoint holds the offsets, from the input upwards.
const OFFSET: &str = "offset";

/// Learns one net from one set of rows.
#[derive(Debug)]
pub struct NetworkLearner<'d> {
    /// The net before its first step, for its shape; the numbers are in `parameters`.
    network: Network,
    plan: NetworkPlan,
    rows: NetworkRows<'d>,
    parameters: Parameters,
    /// The numbers at the last end of an epoch, to go back to.
    good: Parameters,
    memory: Memory,
    passes: Passes,
    losses: Vec<(Range<usize>, Loss)>,
    keeps: Keeps,
    /// How much each row counts, before batches are normalised.
    weights: Vec<f32>,
    root: Stream,
    epoch: u64,
    batches_done: u64,
    order: Vec<u32>,
    batch: Batch,
    shares: Vec<f32>,
    room: RowRoom,
}

impl<'d> NetworkLearner<'d> {
    /// Prepares to learn `network` from where it is.
    ///
    /// # Errors
    ///
    /// If a setting is out of range, or the rows do not say what is to be answered.
    pub fn new(network: Network, rows: NetworkRows<'d>, plan: &NetworkPlan) -> Result<Self, Error> {
        plan.check()?;
        let offsets = if plan.center { means(&network, &rows, CENTERED_BY) } else { Vec::new() };
        Self::with_offsets(network, rows, plan, offsets)
    }

    /// The same with offsets that are known.
    fn with_offsets(
        network: Network,
        rows: NetworkRows<'d>,
        plan: &NetworkPlan,
        offsets: Vec<Vec<f32>>,
    ) -> Result<Self, Error> {
        if plan.layer_rates.len() > network.layers().len() {
            let (name, value) = ("layer-rates", format!("{} factors", plan.layer_rates.len()));
            return Err(Error::Setting {
                name,
                value,
                range: "at most one for each layer, the output included",
            });
        }
        let rows = rows.known()?;
        let weights = row_weights(&rows, &plan.class_weights, network.n_outputs())?;
        let keeps = plan.keeps();
        let parameters = Parameters::new(&network, keeps, &offsets);
        let batch_rows = plan.batch.min(rows.data().n_rows());
        let mut learner = Self {
            memory: Memory::new(plan, &parameters),
            passes: Passes::new(&parameters, batch_rows, true),
            losses: network.losses(),
            good: parameters.clone(),
            batch: rows.batch(),
            root: Stream::new(plan.seed),
            plan: plan.clone(),
            epoch: 0,
            batches_done: 0,
            order: Vec::new(),
            shares: Vec::with_capacity(batch_rows),
            room: RowRoom::default(),
            parameters,
            network,
            rows,
            keeps,
            weights,
        };
        learner.shuffle();
        Ok(learner)
    }

    /// Continues from a checkpoint of a run with the same rows and plan.
    ///
    /// # Errors
    ///
    /// If the checkpoint does not fit them.
    pub fn resume(
        checkpoint: &Checkpoint,
        rows: NetworkRows<'d>,
        plan: &NetworkPlan,
    ) -> Result<Self, Error> {
        let Body::Network(network) = &checkpoint.body else {
            return Err(Error::Topology {
                model: "this training",
                expected: "the checkpoint of a net",
                found: format!("found that of a {}", checkpoint.body.kind()),
            });
        };
        plan.check()?;
        let mut offsets = Vec::new();
        for (l, n) in centered(network).into_iter().enumerate().filter(|_| plan.center) {
            let stored = checkpoint.state.get(&format!("{OFFSET}.{l}"), n)?;
            #[expect(clippy::cast_possible_truncation, reason = "they were single precision")]
            offsets.push(stored.iter().map(|x| *x as f32).collect());
        }
        let mut learner = Self::with_offsets(network.clone(), rows, plan, offsets)?;
        let optimizer = checkpoint.state.nested("optimizer");
        learner.memory.import(&learner.network, &learner.parameters, &optimizer)?;
        (learner.epoch, learner.batches_done) = (checkpoint.epoch, checkpoint.batches_done);
        learner.shuffle();
        Ok(learner)
    }

    /// The net as it is now, for use without dropout.
    pub fn network(&self) -> Network {
        let mut network = self.network.clone();
        self.parameters.write_into(&mut network);
        network
    }

    /// The largest norm of the weights into a unit of each layer, as they are while units are dropped.
    pub fn largest_norms(&self) -> Vec<f64> {
        let norm = |w: &[f32]| w.iter().map(|w| f64::from(*w).powi(2)).sum::<f64>().sqrt();
        let layers = self.parameters.layers.iter();
        layers.map(|l| l.weights.chunks_exact(l.stride).map(norm).fold(0.0, f64::max)).collect()
    }

    fn batches_per_epoch(&self) -> u64 {
        self.rows.data().n_rows().div_ceil(self.plan.batch) as u64
    }

    /// The order of the epoch under way.
    fn shuffle(&mut self) {
        self.order.clear();
        self.order.extend(0..u32::try_from(self.rows.data().n_rows()).unwrap_or(u32::MAX));
        self.root.fork(purpose::ORDER).fork(self.epoch).shuffle(&mut self.order);
    }

    /// The places of the batch in the order of the epoch.
    fn places(&self) -> Range<usize> {
        let size = self.plan.batch;
        let start = usize::try_from(self.batches_done).unwrap_or(usize::MAX).saturating_mul(size);
        start..start.saturating_add(size).min(self.order.len())
    }

    /// Puts the next rows in.
    fn present(&mut self) {
        let places = self.places();
        let Self { rows, batch, passes, order, shares, weights, .. } = self;
        let numbers = &order[places];
        rows.load(batch, numbers);
        passes.start(numbers.len(), |at, out| rows.input_into(batch, at, numbers[at], out));
        shares.clear();
        shares.extend(numbers.iter().map(|&row| weights[row as usize]));
        let total: f32 = shares.iter().sum();
        // A batch whose rows all have weight 0 says nothing, but not NaN.
        let scale = if total > 0.0 { 1.0 / total } else { 0.0 };
        shares.iter_mut().for_each(|s| *s *= scale);
    }

    /// One step up and down.
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    fn learn(&mut self, progress: Progress, rate: f64) {
        let places = self.places();
        let stream = self.root.fork(purpose::DROPOUT).fork(progress.step);
        let dropping = (self.keeps != Keeps::ALL).then_some(Dropping { keeps: self.keeps, stream });
        let depth = self.network.layers().len();
        self.passes.up(&self.parameters, depth, dropping);
        self.passes.respond(&self.losses);
        let Self { rows, batch, order, room, .. } = self;
        let numbers = &order[places];
        self.passes.slopes(&self.shares, |delta, layout| {
            rows.subtract_targets((batch, numbers), (delta, layout), room);
        });
        let momentum = self.plan.momentum.at(progress) as f32;
        self.memory.begin_step(momentum);
        let plan = &self.plan;
        let step = |l: usize, parallel: bool| LayerStep {
            descent: Descent {
                rate: (rate * plan.layer_rate(l)) as f32,
                momentum,
                decay: plan.l2 as f32,
            },
            max_norm: plan.max_norm.map(|norm| norm as f32),
            parallel,
        };
        self.passes.down(&mut self.parameters, &mut self.memory, dropping, step);
    }

    /// Counts a step that is done.
    fn finish_step(&mut self) {
        self.batches_done += 1;
        if self.batches_done == self.batches_per_epoch() {
            (self.epoch, self.batches_done) = (self.epoch + 1, 0);
            self.shuffle();
            self.good.clone_from(&self.parameters);
        }
    }
}

impl Learner for NetworkLearner<'_> {
    fn step(&mut self) -> Result<StepReport, Error> {
        let progress = self.progress();
        let rate = self.plan.learning_rate * self.plan.decay.at(progress);
        self.present();
        self.learn(progress, rate);
        let Some(norms) = self.memory.norms() else {
            self.parameters.clone_from(&self.good);
            let what = "a parameter, or its square, became a number that is not finite".into();
            return Err(Error::Diverged { step: progress.step, epoch: progress.epoch + 1, what });
        };
        self.finish_step();
        let ratio = if norms.weights > 0.0 { (norms.update / norms.weights).sqrt() } else { 0.0 };
        Ok(StepReport {
            step: progress.step + 1,
            learning_rate: rate,
            gradient_norm: norms.gradient.sqrt(),
            update_ratio: ratio,
            ..StepReport::default()
        })
    }

    fn progress(&self) -> Progress {
        Progress::new(self.epoch, self.batches_done, self.batches_per_epoch(), self.plan.epochs)
    }

    fn is_done(&self) -> bool {
        self.epoch >= self.plan.epochs
    }

    fn body(&self) -> Body {
        Body::Network(self.network())
    }

    fn checkpoint(&self) -> Checkpoint {
        let mut state = Snapshot::default();
        state.nest("optimizer", self.memory.export(&self.network, &self.parameters));
        let hidden = self.parameters.layers.iter().map(|l| &l.offset);
        let offsets = [&self.parameters.input_offset].into_iter().chain(hidden);
        for (l, offset) in offsets.enumerate().filter(|(_, offset)| !offset.is_empty()) {
            state.insert(format!("{OFFSET}.{l}"), offset.iter().map(|x| f64::from(*x)).collect());
        }
        Checkpoint {
            body: self.body(),
            stage: None,
            epoch: self.epoch,
            batches_done: self.batches_done,
            state,
            observers: BTreeMap::new(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.parameters.is_finite() {
            return Ok(());
        }
        let Progress { step, epoch, .. } = self.progress();
        let what = "a parameter became a number that is not finite".into();
        Err(Error::Diverged { step, epoch: epoch + 1, what })
    }

    fn watched(&self) -> Option<Watched<'_>> {
        None
    }

    fn is_parallel(&self) -> bool {
        let rows = self.plan.batch.min(self.rows.data().n_rows());
        self.parameters.layers.iter().any(|layer| Passes::is_parallel(layer, rows))
    }
}

/// Entries of the input and of each hidden layer.
fn centered(network: &Network) -> Vec<usize> {
    let hidden = network.layers().iter().map(Dense::len);
    [network.n_inputs()].into_iter().chain(hidden).take(network.layers().len()).collect()
}

/// How much each row counts: its own weight times that of its class.
#[expect(clippy::cast_possible_truncation, reason = "single precision")]
fn row_weights(
    rows: &NetworkRows<'_>,
    class_weights: &ClassWeights,
    n_classes: usize,
) -> Result<Vec<f32>, Error> {
    let own = |row: usize| rows.data().weight(row);
    let n_rows = rows.data().n_rows();
    let wrong = |value: String, range| Err(Error::Setting { name: "class-weights", value, range });
    let each = match (class_weights, rows.classes()) {
        (ClassWeights::Even, _) => return Ok((0..n_rows).map(|row| own(row) as f32).collect()),
        (given, None) => return wrong(given.to_string(), "`even` where there are no classes"),
        (ClassWeights::Each(each), Some(_)) if each.len() != n_classes => {
            return wrong(class_weights.to_string(), "one factor for each class");
        }
        (ClassWeights::Each(each), Some(_)) => each.clone(),
        (ClassWeights::Balanced, Some(classes)) => {
            let (mut totals, mut total) = (vec![0.0; n_classes], 0.0);
            for (row, &class) in classes.iter().enumerate() {
                totals[class] += own(row);
                total += own(row);
            }
            let there = totals.iter().filter(|t| **t > 0.0).count().max(1) as f64;
            let factor = |t: &f64| if *t > 0.0 { total / (there * t) } else { 0.0 };
            totals.iter().map(factor).collect()
        }
    };
    let classes = rows.classes().unwrap_or_default();
    Ok(classes.iter().enumerate().map(|(row, &class)| (own(row) * each[class]) as f32).collect())
}
