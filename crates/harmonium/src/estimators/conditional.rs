//! The model side of a classifier: everything given the data but its label.
//!
//! $$\nabla \ln p(y \mid v) = \langle s\rangle_{h \mid v, y} - \sum_{y'} p(y' \mid v)\,\langle s\rangle_{h \mid v, y'}$$
//!
//! With the data side of the label that a row has, this is the discriminative objective of Larochelle & Bengio
//! (2008); mixed with the model side of $\ln p(v, y)$ it is their hybrid one. Hidden units come in closed form where they
//! are independent given $v$ and $y$, as in an RBM; elsewhere by mean field for each class, whose bounds then
//! stand for the sums in $p(y \mid v)$, as they do where a deep machine classifies.

use super::{Context, Deferring, Estimator, Retreat, Side, Snapshot, normalise};
use crate::error::Error;
use crate::machine::{LayerId, Machine, State};
use crate::moments::Moments;
use crate::sampling::{Convergence, Sampler, TrackedLogPartition, bounds};
use crate::units::log_sum_exp;

/// $\sum_y p(y \mid v)\,\langle s\rangle_{h \mid v, y}$.
pub struct Conditional {
    labels: LayerId,
    posterior: Box<dyn Deferring>,
    weights: Vec<f64>,
}

impl Conditional {
    /// For labels in this layer, with an estimator of the hidden units.
    pub(crate) fn new(labels: LayerId, posterior: Box<dyn Deferring>) -> Self {
        Self { labels, posterior, weights: Vec::new() }
    }

    /// The hidden units of every row for every class, and the sums of each: class after class.
    fn states(&mut self, context: &Context<'_>) -> Result<(Vec<State>, Vec<Vec<f64>>), Error> {
        let machine = context.sampler.machine();
        let (mut batch, mut states, mut sums) = (context.batch.clone(), Vec::new(), Vec::new());
        for class in 0..machine.layer(self.labels).len() {
            batch.set_class(self.labels, class);
            let side = self.posterior.estimate(&Context { batch: &batch, ..*context })?;
            let Side::Particles { state, .. } = side else {
                return Err(Error::Topology {
                    model: "a discriminative objective",
                    expected: "hidden units in closed form or by mean field, and no missing real values",
                    found: "found a posterior that does not factorise".into(),
                });
            };
            sums.push(bounds(machine, batch.clamp(), state)?);
            states.push(state.clone());
        }
        Ok((states, sums))
    }
}

impl Estimator for Conditional {
    fn name(&self) -> &'static str {
        "conditional"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let machine = context.sampler.machine();
        let (states, sums) = self.states(context)?;
        normalise(context.batch, &mut self.weights);
        let mut weights = sums.clone();
        for (row, w) in self.weights.iter().enumerate() {
            let logs: Vec<f64> = sums.iter().map(|sums| sums[row]).collect();
            let total = log_sum_exp(&logs);
            weights.iter_mut().zip(logs).for_each(|(p, log)| p[row] = w * (log - total).exp());
        }
        let same: Vec<LayerId> =
            machine.visible_layers().into_iter().filter(|l| *l != self.labels).collect();
        let mut moments = Moments::zeros(machine);
        moments.add_mixture(machine, &states, &weights, &same);
        Ok(Side::Moments(moments))
    }

    fn convergence(&self) -> Option<Convergence> {
        self.posterior.convergence()
    }
}

impl Deferring for Conditional {}

/// A share of the model's own distribution, and for the rest everything given the data.
pub struct Blend {
    model: Box<dyn Deferring>,
    conditional: Conditional,
    /// The share of the model side.
    share: f64,
}

impl Blend {
    pub(crate) fn new(model: Box<dyn Deferring>, conditional: Conditional, share: f64) -> Self {
        Self { model, conditional, share }
    }
}

impl Deferring for Blend {}

impl Estimator for Blend {
    fn name(&self) -> &'static str {
        "blend"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let machine = context.sampler.machine();
        let mut moments = Moments::zeros(machine);
        self.model.estimate(context)?.add_to(machine, self.share, &mut moments);
        self.conditional.estimate(context)?.add_to(machine, 1.0 - self.share, &mut moments);
        Ok(Side::Moments(moments))
    }

    fn convergence(&self) -> Option<Convergence> {
        self.conditional.convergence()
    }

    fn chains(&self) -> Option<&State> {
        self.model.chains()
    }

    fn retreat(&self) -> Option<Retreat<'_>> {
        self.model.retreat()
    }

    fn caution(&self) -> f64 {
        self.model.caution()
    }

    fn log_partition(&self, sampler: &Sampler) -> Result<Option<TrackedLogPartition>, Error> {
        self.model.log_partition(sampler)
    }

    fn export(&self, machine: &Machine) -> Snapshot {
        self.model.export(machine)
    }

    fn import(&mut self, machine: &Machine, snapshot: &Snapshot) -> Result<(), Error> {
        self.model.import(machine, snapshot)
    }
}
