//! What is asked of a training run: the flags of `harmonium train` and the keys of `run.toml`.

use super::guard::Guarding;
use super::objective::Objective;
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::estimators::{
    Blend, ClampedGibbs, Conditional, Contrastive, Deferring, ExactModel, ExactPosterior,
    MeanFieldPosterior, Persistent, PseudoLikelihood, Tempered, TrajectorySettings,
    TrajectoryTempered,
};
use crate::machine::{Layer, MOST_STEPS, Machine, check_memory};
use crate::moments::Moments;
use crate::optim::{Adam, Optimizer, Penalties, Schedule, Sgd, Sparsity};
use crate::sampling::{Clamp, MeanField, posterior_factorises};
use crate::schema::{Feed, LABELS};
use serde::{Deserialize, Serialize};

/// Most passes over the data that can be asked for.
const MOST_EPOCHS: u64 = 1_000_000_000_000;

/// The estimators of the data side and of the model side.
type BothEstimators = (Box<dyn Deferring>, Box<dyn Deferring>);

/// The model side of the gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rule {
    /// Persistent chains.
    Pcd,
    /// Chains that start at the data.
    Cd,
    /// Parallel tempering.
    Pt,
    /// Trajectory tempering: chains exchange with frozen earlier machines of the training.
    Ptt,
    /// Enumeration.
    Exact,
    /// Each unit given all the others, for fully visible machines.
    Pseudo,
}

/// The data side of the gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Posterior {
    /// In closed form where the posterior factorises, else by mean field.
    Auto,
    /// In closed form or by enumeration.
    Exact,
    /// By mean field.
    MeanField,
    /// By Gibbs sampling with the data clamped.
    Gibbs,
}

/// In which numbers a run samples and learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Numbers {
    /// The fastest that does not change what is learned.
    Auto,
    /// Double precision.
    F64,
    /// Single precision.
    F32,
    /// Weights quantised to 16 bits while sampling; the master weights are single precision.
    I16,
}

/// How gradients become updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OptimizerKind {
    /// Ascent with momentum.
    Sgd,
    /// Adam.
    Adam,
}

/// Everything that can be set about a training run.
///
/// The defaults are those of a centered machine of binary units on a few thousand samples or
/// more; [`Plan::suited_to`] adapts them to other machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// The root of all randomness.
    pub seed: u64,
    /// In which numbers to compute.
    pub precision: Numbers,
    /// Passes over the data.
    pub epochs: u64,
    /// Passes over the data for each stage of greedy pre-training; 0 is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub pretrain_epochs: u64,
    /// The learning rate of pre-training before decay.
    pub pretrain_learning_rate: f64,
    /// Samples of one step.
    pub batch: usize,
    /// The model side of the gradient.
    pub rule: Rule,
    /// The data side of the gradient.
    pub posterior: Posterior,
    /// What is climbed where there are labels.
    #[serde(skip_serializing_if = "Objective::is_generative")]
    pub objective: Objective,
    /// Sweeps of the model side per step.
    pub k: Schedule,
    /// Whether sweeps and learning rate follow what a guard advises; see [`super::Guard`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub steer: bool,
    /// Chains of the model side (PCD, PT and PTT).
    pub chains: usize,
    /// Temperatures of each chain (PT).
    pub replicas: usize,
    /// Samples of each frozen machine (PTT); ten times the chains unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservoir: Option<usize>,
    /// Acceptance below which a machine is frozen (PTT); 0.3 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze_below: Option<f64>,
    /// Acceptance below which training goes back to the last frozen machine (PTT); 0.1 unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_below: Option<f64>,
    /// How gradients become updates.
    pub optimizer: OptimizerKind,
    /// The learning rate before decay.
    pub learning_rate: f64,
    /// What the learning rate is multiplied with over the run.
    pub decay: Schedule,
    /// Momentum, or Adam's first decay.
    pub momentum: Schedule,
    /// L1 penalty on weights.
    pub l1: f64,
    /// L2 penalty on weights.
    pub l2: f64,
    /// Wanted mean activity of hidden units; none unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparsity_target: Option<f64>,
    /// How strongly activities are pulled towards the target.
    pub sparsity_cost: f64,
    /// Largest norm of the weights into one unit; none unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_norm: Option<f64>,
    /// Largest norm of the gradient; none unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// Whether offsets follow the means of the data phase.
    pub center: bool,
    /// How fast they follow.
    pub offset_rate: f64,
    /// Standard deviation of the first weights; of those to real columns, in units in which 0.01 lets hidden
    /// units explain a third of the variance.
    pub initial_std: f64,
    /// Sweeps of clamped Gibbs sampling on the data side.
    pub posterior_sweeps: usize,
    /// Most sweeps of mean field on the data side.
    pub mean_field_sweeps: usize,
    /// Change below which mean field stops.
    pub mean_field_tolerance: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Whether values are missing in the rows that are learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    /// Every value is there.
    Whole,
    /// Missing units are free on the data side, as hidden ones are.
    Holed,
}

impl Completeness {
    pub(super) fn of(feed: &Feed<'_>) -> Self {
        if feed.has_holes() { Self::Holed } else { Self::Whole }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 0,
            precision: Numbers::Auto,
            epochs: 20,
            pretrain_epochs: 0,
            pretrain_learning_rate: 0.05,
            batch: 100,
            rule: Rule::Pcd,
            posterior: Posterior::Auto,
            objective: Objective::Generative,
            k: Schedule::Constant(1.0),
            steer: false,
            chains: 100,
            replicas: 10,
            reservoir: None,
            freeze_below: None,
            rollback_below: None,
            optimizer: OptimizerKind::Sgd,
            learning_rate: 0.01,
            decay: Schedule::Linear { from: 1.0, to: 0.01 },
            momentum: Schedule::Steps(vec![(0, 0.5), (5, 0.9)]),
            l1: 0.0,
            l2: 2e-4,
            sparsity_target: None,
            sparsity_cost: 1e-3,
            max_norm: None,
            clip: None,
            center: true,
            offset_rate: 0.01,
            initial_std: 0.01,
            posterior_sweeps: 10,
            mean_field_sweeps: 30,
            mean_field_tolerance: 1e-3,
        }
    }
}

impl Plan {
    /// The defaults, for a number of passes over the data.
    #[must_use]
    pub fn for_epochs(epochs: u64) -> Self {
        Self { epochs, ..Self::default() }
    }

    /// The names of all settings, as they are written in `run.toml` and, behind two dashes, on the
    /// command line.
    pub const KEYS: [&'static str; 32] = [
        "seed",
        "precision",
        "epochs",
        "pretrain-epochs",
        "pretrain-learning-rate",
        "batch",
        "rule",
        "posterior",
        "objective",
        "k",
        "steer",
        "chains",
        "replicas",
        "reservoir",
        "freeze-below",
        "rollback-below",
        "optimizer",
        "learning-rate",
        "decay",
        "momentum",
        "l1",
        "l2",
        "sparsity-target",
        "sparsity-cost",
        "max-norm",
        "clip",
        "center",
        "offset-rate",
        "initial-std",
        "posterior-sweeps",
        "mean-field-sweeps",
        "mean-field-tolerance",
    ];

    /// The defaults for a machine. With real units one Gaussian is a saddle of the likelihood, which Adam leaves
    /// sooner; steps are clipped, because real units could run away.
    #[must_use]
    pub fn suited_to(machine: &Machine) -> Self {
        let mut plan = Self::default();
        if machine.layers().iter().any(|l| !l.units.is_finite()) {
            plan.optimizer = OptimizerKind::Adam;
            plan.learning_rate = 0.01;
            plan.clip = Some(10.0);
        }
        plan
    }

    /// Whether every setting is in its range.
    ///
    /// # Errors
    ///
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |name, value: String, range| Err(Error::Setting { name, value, range });
        for (name, value) in [
            ("batch", self.batch),
            ("chains", self.chains),
            ("posterior-sweeps", self.posterior_sweeps),
            ("mean-field-sweeps", self.mean_field_sweeps),
        ] {
            if value == 0 || value > MOST_STEPS {
                return wrong(name, value.to_string(), "from 1 to 10^15");
            }
        }
        for (name, value) in [("epochs", self.epochs), ("pretrain-epochs", self.pretrain_epochs)] {
            if value > MOST_EPOCHS {
                return wrong(name, value.to_string(), "at most 10^12");
            }
        }
        for (name, value) in [
            ("learning-rate", self.learning_rate),
            ("pretrain-learning-rate", self.pretrain_learning_rate),
            ("l1", self.l1),
            ("l2", self.l2),
            ("sparsity-cost", self.sparsity_cost),
            ("initial-std", self.initial_std),
            ("mean-field-tolerance", self.mean_field_tolerance),
        ] {
            if !value.is_finite() || value < 0.0 {
                return wrong(name, value.to_string(), "finite and not negative");
            }
        }
        for (name, value) in [("max-norm", self.max_norm), ("clip", self.clip)] {
            if let Some(value) = value.filter(|v| !v.is_finite() || *v <= 0.0) {
                return wrong(name, value.to_string(), "finite and positive");
            }
        }
        if !(0.0..=1.0).contains(&self.offset_rate) {
            return wrong("offset-rate", self.offset_rate.to_string(), "between 0 and 1");
        }
        if let Some(t) = self.sparsity_target.filter(|t| !(-1.0..=1.0).contains(t)) {
            return wrong("sparsity-target", t.to_string(), "a mean that units can have");
        }
        for (name, schedule, low, high, range) in [
            ("k", &self.k, 1.0, 1e6, "from 1 to 1000000"),
            ("decay", &self.decay, 0.0, f64::MAX, "not negative"),
            ("momentum", &self.momentum, 0.0, 0.9999, "at least 0, below 1"),
        ] {
            let (least, most) = schedule.range();
            if least < low || most > high {
                return wrong(name, schedule.to_string(), range);
            }
        }
        if self.rule == Rule::Pt && !(2..=MOST_STEPS).contains(&self.replicas) {
            return wrong("replicas", self.replicas.to_string(), "from 2 to 10^15");
        }
        if let Some(n) = self.reservoir.filter(|n| *n > MOST_STEPS) {
            return wrong("reservoir", n.to_string(), "at most 10^15");
        }
        if self.rule == Rule::Ptt { self.trajectory().check() } else { Ok(()) }
    }

    /// The settings of trajectory tempering.
    fn trajectory(&self) -> TrajectorySettings {
        let usual = TrajectorySettings::of(self.chains);
        TrajectorySettings {
            chains: self.chains,
            reservoir: self.reservoir.unwrap_or(usual.reservoir),
            freeze_below: self.freeze_below.unwrap_or(usual.freeze_below),
            retreat_below: self.rollback_below.unwrap_or(usual.retreat_below),
        }
    }

    /// Whether steps can be made inside the engine: samples on both sides, momentum and weight decay,
    /// units that are bits, and no coupling inside a layer.
    pub(super) fn learns_in_engine(&self, machine: &Machine, rows: Completeness) -> bool {
        let clamp = Clamp::visible(machine);
        let closed = rows == Completeness::Whole && posterior_factorises(machine, &clamp);
        let sampled = matches!(self.rule, Rule::Pcd | Rule::Cd | Rule::Ptt)
            && (self.posterior != Posterior::Exact || closed);
        let plain = self.optimizer == OptimizerKind::Sgd
            && self.sparsity_target.is_none()
            && self.max_norm.is_none();
        let bits = machine.layers().iter().all(|l| l.units.bit_coordinates().is_some());
        let plain = plain && self.objective.is_generative();
        sampled && plain && bits && machine.couplings().iter().all(|c| !c.is_lateral())
    }

    /// In which numbers samplers multiply while they train `machine`.
    pub(super) fn arithmetic(&self, machine: &Machine, rows: Completeness) -> Arithmetic {
        match self.precision {
            Numbers::F64 => Arithmetic::F64,
            Numbers::I16 => Arithmetic::I16,
            Numbers::Auto if matches!(self.rule, Rule::Exact | Rule::Pseudo) => Arithmetic::F64,
            Numbers::Auto if self.learns_in_engine(machine, rows) => Arithmetic::I16,
            Numbers::F32 | Numbers::Auto => Arithmetic::F32,
        }
    }

    pub(super) fn penalties(&self) -> Penalties {
        let sparsity = self.sparsity_target.map(|target| Sparsity {
            target,
            cost: self.sparsity_cost,
            ..Sparsity::default()
        });
        let Self { l1, l2, max_norm, clip, .. } = *self;
        Penalties { l1, l2, sparsity, max_norm, clip }
    }

    /// Whether the chains of the model side fit into memory, together with the samples that their
    /// statistics come from.
    fn check_chains(&self, machine: &Machine) -> Result<(), Error> {
        let copies = match self.rule {
            Rule::Pcd => 2.0,
            Rule::Pt => self.replicas as f64 + 1.0,
            // Samples of a machine that is frozen stand beside those of the last one.
            Rule::Ptt => 2.0 + 2.0 * self.trajectory().reservoir as f64 / self.chains as f64,
            _ => return Ok(()),
        };
        let entries: usize = machine.layers().iter().map(Layer::len).sum();
        let bytes = self.chains as f64 * copies * entries as f64 * 8.0;
        check_memory(bytes, || match self.rule {
            Rule::Pt => format!("{} chains of {} replicas", self.chains, self.replicas),
            Rule::Ptt => {
                format!(
                    "{} chains and {} samples of each frozen machine",
                    self.chains,
                    self.trajectory().reservoir
                )
            }
            _ => format!("{} chains", self.chains),
        })
    }

    /// The estimators of the data side and of the model side.
    pub(super) fn sides(
        &self,
        machine: &Machine,
        rows: Completeness,
    ) -> Result<BothEstimators, Error> {
        self.check_chains(machine)?;
        let holes = rows == Completeness::Holed;
        let closed = closed_form(machine, rows);
        let data: Box<dyn Deferring> = match self.posterior {
            Posterior::Exact => Box::new(ExactPosterior::default()),
            Posterior::Auto if closed || self.rule == Rule::Exact && holes => {
                Box::new(ExactPosterior::default())
            }
            // Mean field would take missing units for surer than they are.
            Posterior::Auto if holes => Box::new(ClampedGibbs::new(self.posterior_sweeps)),
            Posterior::Auto | Posterior::MeanField => {
                Box::new(MeanFieldPosterior::new(self.mean_field()))
            }
            Posterior::Gibbs => Box::new(ClampedGibbs::new(self.posterior_sweeps)),
        };
        Ok((data, self.model_side(self.rule, machine, rows)?))
    }

    /// The estimator of the model side by a rule.
    pub(super) fn model_side(
        &self,
        rule: Rule,
        machine: &Machine,
        rows: Completeness,
    ) -> Result<Box<dyn Deferring>, Error> {
        let model: Box<dyn Deferring> = match rule {
            Rule::Pcd => Box::new(Persistent::new(self.chains)?),
            Rule::Cd => Box::new(Contrastive::default()),
            Rule::Pt => Box::new(Tempered::new(self.chains, self.replicas)?),
            Rule::Ptt => {
                let arithmetic = self.arithmetic(machine, rows);
                Box::new(TrajectoryTempered::new(self.trajectory(), arithmetic)?)
            }
            Rule::Exact => Box::new(ExactModel),
            Rule::Pseudo => Box::new(PseudoLikelihood::new(machine)?),
        };
        self.objective_side(machine, rows, model)
    }

    fn mean_field(&self) -> MeanField {
        MeanField {
            tolerance: self.mean_field_tolerance,
            max_sweeps: self.mean_field_sweeps,
            damping: 0.0,
        }
    }

    /// The model side of the objective: that of the rule, or what the data alone says, or both.
    fn objective_side(
        &self,
        machine: &Machine,
        rows: Completeness,
        model: Box<dyn Deferring>,
    ) -> Result<Box<dyn Deferring>, Error> {
        if self.objective.is_generative() {
            return Ok(model);
        }
        let labels =
            machine.visible_layers().into_iter().find(|&l| machine.layer(l).name == LABELS);
        let labels = labels.ok_or(Error::NoLabels)?;
        let posterior: Box<dyn Deferring> = if closed_form(machine, rows) {
            Box::new(ExactPosterior::default())
        } else {
            Box::new(MeanFieldPosterior::new(self.mean_field()))
        };
        let conditional = Conditional::new(labels, posterior);
        let share = self.objective.generative_share();
        Ok(if share == 0.0 {
            Box::new(conditional)
        } else {
            Box::new(Blend::new(model, conditional, share))
        })
    }

    /// What a guard of such a training does: it steers where that was asked for, and may temper persistent chains.
    pub fn guarding(&self) -> Guarding {
        match self.rule {
            _ if !self.steer => Guarding::Warn,
            Rule::Pcd => Guarding::Temper,
            _ => Guarding::Steer,
        }
    }

    pub(super) fn optimizer(&self, machine: &Machine) -> Box<dyn Optimizer> {
        match self.optimizer {
            OptimizerKind::Sgd => Box::new(Sgd::new(Moments::lengths(machine))),
            OptimizerKind::Adam => Box::new(Adam::new(Moments::lengths(machine))),
        }
    }
}

/// Whether the posterior of rows is a product of units.
fn closed_form(machine: &Machine, rows: Completeness) -> bool {
    rows != Completeness::Holed && posterior_factorises(machine, &Clamp::visible(machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_key() {
        let everything = Plan {
            pretrain_epochs: 1,
            steer: true,
            sparsity_target: Some(0.1),
            max_norm: Some(1.0),
            clip: Some(1.0),
            reservoir: Some(500),
            freeze_below: Some(0.4),
            rollback_below: Some(0.2),
            objective: Objective::Hybrid(0.1),
            ..Plan::default()
        };
        let written = serde_json::to_value(everything).unwrap();
        let mut written: Vec<&str> =
            written.as_object().unwrap().keys().map(String::as_str).collect();
        let mut keys = Plan::KEYS.to_vec();
        written.sort_unstable();
        keys.sort_unstable();
        assert_eq!(written, keys);
    }
}
