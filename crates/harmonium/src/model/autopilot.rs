//! Settings chosen by validated likelihood.
//!
//! Candidates differ in hidden units, learning rate, sweeps between updates and weight decay. They are tried in
//! rounds by successive halving (Jamieson & Talwalkar 2016): each round trains fewer of them for more
//! updates, every time from the start, because the learning rate falls over a run and half a run says little
//! of a whole one. A trial scores the best likelihood that rows which it does not learn from have reached at any look.
//! The winner is the best trial of all rounds: its length is chosen with its settings, so that a
//! set on which longer training overfits keeps its short one.
//!
//! The amount of work is known beforehand, and everything follows from the seed: a plan that was found once is
//! found again, and the plan alone repeats the model.

use super::train::{Blueprint, Training};
use crate::error::Error;
use crate::evaluation::monitor::Monitor;
use crate::evaluation::tracking::Watch;
use crate::optim::Schedule;
use crate::progress::{Listener, Work};
use crate::training::{
    Best, Guard, Guarding, Measurements, Metric, MetricName, Observer, On, Plan, Steering, Stop,
    View, drive,
};
use harmonium_data::Dataset;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// How much work the search may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// A few candidates.
    Quick,
    /// A dozen candidates.
    #[default]
    Normal,
    /// All candidates, trained longer.
    Thorough,
}

/// Candidates and updates of each round.
type Rounds = &'static [(usize, u64)];

impl Effort {
    fn rounds(self) -> Rounds {
        match self {
            Self::Quick => &[(4, 500), (2, 2000), (1, 6000)],
            Self::Normal => &[(12, 1000), (4, 4000), (2, 16_000), (1, 48_000)],
            Self::Thorough => &[(36, 1500), (9, 6000), (4, 24_000), (2, 96_000)],
        }
    }
}

/// Which settings are searched for; the others are those of the plan.
#[expect(clippy::struct_excessive_bools, reason = "one for each setting that may be searched for")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The numbers of hidden units.
    pub hidden: bool,
    /// The learning rate.
    pub learning_rate: bool,
    /// Sweeps between updates.
    pub k: bool,
    /// Weight decay.
    pub l2: bool,
}

/// Makes a model with these hidden layers.
pub type Shape<'a> = dyn Fn(&[usize]) -> Result<Blueprint, Error> + 'a;

/// A search for settings.
pub struct Autopilot<'a> {
    /// What is learned from.
    pub train: &'a Dataset,
    /// What trials are scored on.
    pub valid: &'a Dataset,
    /// Makes the model of a trial.
    pub shape: &'a Shape<'a>,
    /// The numbers of hidden units, one for each layer: those that are asked for, or any of as many layers.
    pub hidden: Vec<usize>,
    /// Every setting that is not searched for, the seed among them.
    pub plan: Plan,
    /// What is searched for.
    pub open: Open,
    /// How much work it may take.
    pub effort: Effort,
}

/// Settings that were tried, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The round, from 1.
    pub round: usize,
    /// Hidden units of each layer.
    pub hidden: Vec<usize>,
    /// The learning rate before decay.
    pub learning_rate: f64,
    /// Sweeps between updates.
    pub k: Schedule,
    /// Weight decay.
    pub l2: f64,
    /// Passes over the data.
    pub epochs: u64,
    /// The best likelihood of the validation data; none if the trial diverged or was never settled.
    pub score: Option<f64>,
    /// Its standard error, that of the rows included.
    pub std_error: Option<f64>,
    /// The epoch it was reached in.
    pub best_epoch: Option<u64>,
    /// Whether the guard had something to say against the end of it.
    pub failing: bool,
}

impl Trial {
    /// Whether it is about the same settings and length.
    fn is_about(&self, other: &Self) -> bool {
        let key = |t: &Self| (t.round, t.hidden.clone(), t.k.clone(), t.epochs);
        key(self) == key(other) && (self.learning_rate, self.l2) == (other.learning_rate, other.l2)
    }

    /// The plan that trains it.
    pub fn plan(&self, base: &Plan) -> Plan {
        Plan {
            learning_rate: self.learning_rate,
            k: self.k.clone(),
            l2: self.l2,
            epochs: self.epochs,
            ..base.clone()
        }
    }
}

/// Writes a trial down.
pub type Note<'a> = dyn FnMut(&Trial) -> Result<(), Error> + 'a;

impl Autopilot<'_> {
    /// Trials of all rounds, and updates of all of them.
    pub fn work(&self) -> (usize, u64) {
        let rounds = self.sized_rounds();
        let trials = rounds.iter().map(|r| r.0).sum();
        (trials, rounds.iter().map(|&(n, updates)| n as u64 * updates).sum())
    }

    /// The rounds, none with more candidates than there are.
    fn sized_rounds(&self) -> Vec<(usize, u64)> {
        let n = self.candidates().len();
        self.effort.rounds().iter().map(|&(k, updates)| (k.min(n), updates)).collect()
    }

    /// The first candidates, without a length.
    fn candidates(&self) -> Vec<Trial> {
        let Open { hidden, learning_rate, k, l2 } = self.open;
        let base = &self.plan;
        let widths: &[f64] = match (hidden, self.effort) {
            (false, _) => &[0.0],
            (true, Effort::Thorough) => &[3.0, 1.0, 6.0],
            (true, _) => &[3.0, 1.0],
        };
        let rates: &[f64] = match (learning_rate, self.effort) {
            (false, _) => &[1.0],
            (true, Effort::Quick) => &[5.0],
            (true, _) => &[5.0, 2.0, 10.0],
        };
        let sweeps = if k { vec![2.0, 10.0] } else { vec![0.0] };
        let decays = if l2 { vec![2e-5, 2e-3] } else { vec![base.l2] };
        // Half of all combinations, such that every pair of settings occurs, unless all are wanted.
        let halves = self.effort != Effort::Thorough && k && l2;
        let mut all = Vec::new();
        for (a, width) in widths.iter().enumerate() {
            for (b, rate) in rates.iter().enumerate() {
                for (c, &sweeps) in sweeps.iter().enumerate() {
                    for (d, &l2) in decays.iter().enumerate() {
                        if halves && !(a + b + c + d).is_multiple_of(2) {
                            continue;
                        }
                        all.push(Trial {
                            round: 1,
                            hidden: self.units(*width),
                            learning_rate: base.learning_rate * rate,
                            k: if k { Schedule::Constant(sweeps) } else { base.k.clone() },
                            l2,
                            epochs: 0,
                            score: None,
                            std_error: None,
                            best_epoch: None,
                            failing: false,
                        });
                    }
                }
            }
        }
        all
    }

    /// Hidden units for a multiple of the number of columns; 0 is what was asked for.
    fn units(&self, width: f64) -> Vec<usize> {
        if width == 0.0 {
            return self.hidden.clone();
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let first = (width * self.train.n_columns() as f64).round().clamp(10.0, 500.0) as usize;
        let layer = |depth: usize| (first >> depth).max(5);
        (0..self.hidden.len().max(1)).map(layer).collect()
    }

    /// Passes over the data that make as many updates.
    fn epochs(&self, updates: u64) -> u64 {
        let per_epoch = self.train.n_rows().div_ceil(self.plan.batch.max(1)) as u64;
        updates.div_ceil(per_epoch.max(1)).max(1)
    }

    /// Tries all candidates: the best trial of all, and all of them in the order they were made. Trials
    /// in `done` are not made again; `note` hears of each that is.
    ///
    /// # Errors
    ///
    /// If the data does not fit, the listener asks to stop, or no trial ends with a likelihood.
    pub fn run(
        &self,
        done: &[Trial],
        note: &mut Note<'_>,
        listener: &mut dyn Listener,
    ) -> Result<(Trial, Vec<Trial>), Error> {
        let total = self.work().1;
        let (mut made, mut spent) = (Vec::<Trial>::new(), 0);
        let mut running = self.candidates();
        for (round, (n, updates)) in (1..).zip(self.sized_rounds()) {
            running.truncate(n);
            let mut scored = Vec::new();
            for candidate in &running {
                let epochs = self.epochs(updates);
                let (score, std_error, best_epoch) = (None, None, None);
                let asked =
                    Trial { round, epochs, score, std_error, best_epoch, ..candidate.clone() };
                let known = done.iter().find(|trial| trial.is_about(&asked)).cloned();
                let trial = if let Some(trial) = known {
                    trial
                } else {
                    let trial = self.score(asked, (spent, total), listener)?;
                    note(&trial)?;
                    trial
                };
                spent += updates;
                made.push(trial.clone());
                scored.push(trial);
            }
            scored.sort_by(|a, b| value(b).total_cmp(&value(a)));
            running = scored;
        }
        let best = made.iter().max_by(|a, b| value(a).total_cmp(&value(b)));
        match best.filter(|best| best.score.is_some()) {
            Some(best) => Ok((best.clone(), made)),
            None => Err(Error::Topology {
                model: "the autopilot",
                expected: "a model whose likelihood can be tracked",
                found: "no trial ended with one".into(),
            }),
        }
    }

    /// Trains a candidate and scores it.
    fn score(
        &self,
        mut trial: Trial,
        (spent, total): (u64, u64),
        listener: &mut dyn Listener,
    ) -> Result<Trial, Error> {
        let plan = trial.plan(&self.plan);
        let guarding = if plan.steer { Guarding::Steer } else { Guarding::Warn };
        let monitor = Monitor::new(self.train, Some(self.valid), plan.seed);
        let mut watching = Watching {
            monitor: monitor.watching(Watch::Likelihood),
            guard: Guard::new(guarding),
            best: Best::default(),
            error: None,
            steering: None,
        };
        let mut heard = Heard { listener, spent, total, cancelled: false };
        let mut learner =
            Training::new((self.shape)(&trial.hidden)?, self.train, &plan).learner()?;
        let stop = drive(learner.as_mut(), &mut [&mut watching], &mut heard)?;
        if stop == Stop::Cancelled || heard.cancelled {
            return Err(Error::Cancelled {
                what: "the search for settings".into(),
                done: spent,
                total,
            });
        }
        let diverged = matches!(stop, Stop::Diverged(_));
        if let Some((score, epoch)) = watching.best.found().filter(|_| !diverged) {
            (trial.score, trial.best_epoch) = (Some(score), Some(epoch));
            trial.std_error = watching.error;
        }
        trial.failing = watching.guard.failing().is_some();
        Ok(trial)
    }
}

fn value(trial: &Trial) -> f64 {
    trial.score.unwrap_or(f64::NEG_INFINITY)
}

/// Scores a trial while it learns.
struct Watching<'d> {
    monitor: Monitor<'d>,
    guard: Guard,
    best: Best,
    /// The standard error of the best score.
    error: Option<f64>,
    steering: Option<Steering>,
}

impl Observer for Watching<'_> {
    fn epoch_ended(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        let found: Measurements = self.monitor.measure(view)?.into();
        if let Some((name, value)) = found.not_finite() {
            let what = format!("`{name}` is {value}");
            return Err(Error::Diverged { step: view.report.step, epoch: view.epoch(), what });
        }
        let scores = [MetricName::LogLikelihood(On::Valid), MetricName::Bound(On::Valid)];
        let tracked = found.get(&MetricName::LogPartition).is_some();
        let score = scores.iter().find_map(|name| found.get(name)).filter(|_| tracked);
        if let Some(score) = score.filter(|score| self.best.look(score.value, view.epoch())) {
            self.error = score.std_error;
        }
        self.steering = self.guard.look(&found).and_then(|advice| advice.steering);
        Ok(ControlFlow::Continue(()))
    }

    fn steering(&mut self) -> Option<Steering> {
        self.steering.take()
    }
}

/// Tells of the search instead of the trial.
struct Heard<'a> {
    listener: &'a mut dyn Listener,
    spent: u64,
    total: u64,
    cancelled: bool,
}

impl Listener for Heard<'_> {
    fn at(&mut self, work: Work<'_>) {
        let detail = format!("{} of {} epochs  {}", work.done, work.total, work.detail);
        let (done, total) = (self.spent, self.total);
        self.listener.at(Work { what: "trials", done, total, detail: &detail });
    }

    fn cancelled(&mut self) -> bool {
        self.cancelled |= self.listener.cancelled();
        self.cancelled
    }
}
