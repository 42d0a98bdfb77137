//! Settings chosen by validated likelihood.
//!
//! Candidates differ in hidden units, learning rate, sweeps between updates and weight decay. They are tried in
//! rounds by successive halving (Jamieson & Talwalkar 2016): each round trains fewer of them for more
//! updates, every time from the start, because the learning rate falls over a run and half a run says little
//! of a whole one. A trial scores the best likelihood that rows which it does not learn from have reached at any look,
//! and trials are ranked by its lower end, with $\ln Z$ of that look's model found anew from both sides: of many
//! tracked values the highest is the one with the luckiest error. The winner is the best trial of all rounds: its length is chosen with its settings, so that a
//! set on which longer training overfits keeps its short one.
//!
//! The amount of work is known beforehand, and everything follows from the seed: a plan that was found once is
//! found again, and the plan alone repeats the model.

use super::train::{Blueprint, Training};
use crate::error::Error;
use crate::evaluation::monitor::Monitor;
use crate::evaluation::tracking::Watch;
use crate::machine::Machine;
use crate::models::Body;
use crate::optim::Schedule;
use crate::progress::{Listener, Work};
use crate::training::{
    Best, Guard, Guarding, Learner, Measurements, Metric, MetricName, Observer, On, Plan, Steering,
    Stop, View, drive,
};
use harmonium_data::Dataset;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::Instant;

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

/// Sweeps between updates: with fewer, chains of strong models fall behind at rates that learn fast.
const SWEEPS: f64 = 10.0;
/// Trials that are looked at thoroughly before one of them wins, at most.
const FINALISTS: usize = 4;

/// Candidates and updates of each round.
type Rounds = &'static [(usize, u64)];

impl Effort {
    fn rounds(self) -> Rounds {
        match self {
            Self::Quick => &[(4, 500), (2, 2000), (1, 6000)],
            Self::Normal => &[(9, 1000), (4, 4000), (2, 16_000), (1, 48_000)],
            Self::Thorough => &[(27, 1500), (9, 6000), (4, 24_000), (2, 96_000)],
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
    /// Its lower end, with $\ln Z$ found anew: what trials are ranked by.
    #[serde(default)]
    pub lower: Option<f64>,
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

    /// The same settings, without what came of them.
    fn untried(&self) -> Self {
        let (score, std_error, lower, best_epoch, failing) = (None, None, None, None, false);
        Self { score, std_error, lower, best_epoch, failing, ..self.clone() }
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
        // Neighbours of the best are added after the first round.
        let n = self.candidates().len().max(2);
        self.effort.rounds().iter().map(|&(k, updates)| (k.min(n), updates)).collect()
    }

    /// The first candidates, without a length. Of three values of three settings those combinations are taken in which
    /// every pair of values occurs once (a Latin square), all of them only for a thorough search.
    fn candidates(&self) -> Vec<Trial> {
        let Open { hidden, learning_rate, k, l2 } = self.open;
        let base = &self.plan;
        let widths: &[f64] = if hidden { &[3.0, 1.0, 0.25] } else { &[0.0] };
        let rates: &[f64] = if learning_rate { &[5.0, 2.0, 10.0] } else { &[1.0] };
        let decays: &[f64] = if l2 { &[2e-3, 2e-5, 2e-2] } else { &[base.l2] };
        let square = widths.len().max(rates.len()).max(decays.len());
        let mut all = Vec::new();
        for (a, width) in widths.iter().enumerate() {
            for (b, rate) in rates.iter().enumerate() {
                for (c, &l2) in decays.iter().enumerate() {
                    let crossed = widths.len() * rates.len() * decays.len() > square * square;
                    let left_out = crossed && !(a + b + c).is_multiple_of(square);
                    if left_out && self.effort != Effort::Thorough {
                        continue;
                    }
                    let trial = Trial {
                        round: 1,
                        hidden: self.units(*width),
                        learning_rate: base.learning_rate * rate,
                        k: if k { Schedule::Constant(SWEEPS) } else { base.k.clone() },
                        l2,
                        epochs: 0,
                        score: None,
                        std_error: None,
                        lower: None,
                        best_epoch: None,
                        failing: false,
                    };
                    // Widths of large tables are all the widest there is.
                    if !all.iter().any(|other: &Trial| other.is_about(&trial)) {
                        all.push(trial);
                    }
                }
            }
        }
        if self.effort == Effort::Quick {
            // Every fourth, around and around: few that are as unlike as can be.
            let n = all.len();
            all = (0..n).map(|k| all[4 * k % n].clone()).collect();
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
        let mut running = self.candidates();
        let usual = running.iter().map(cost).sum::<u64>() / running.len().max(1) as u64;
        let total = usual * self.work().1;
        let (mut made, mut spent) = (Vec::new(), 0);
        let mut unannounced = true;
        for (round, (n, updates)) in (1..).zip(self.sized_rounds()) {
            running.truncate(n);
            let mut scored = Vec::new();
            for candidate in &running {
                let asked = Trial { round, epochs: self.epochs(updates), ..candidate.untried() };
                let known = done.iter().find(|trial| trial.is_about(&asked)).cloned();
                let one = if let Some(trial) = known {
                    Made { trial, machine: None, is_sure: false }
                } else {
                    let start = Instant::now();
                    let one = self.score(asked, (spent, total), listener)?;
                    note(&one.trial)?;
                    if std::mem::take(&mut unannounced) {
                        let part = (updates * cost(&one.trial)) as f64 / total.max(1) as f64;
                        let seconds = start.elapsed().as_secs_f64() / part;
                        listener.note(&format!("all trials will take about {seconds:.0} s"));
                    }
                    one
                };
                spent += updates * cost(&one.trial);
                scored.push(one.trial.clone());
                made.push(one);
            }
            scored.sort_by(|a, b| value(b).total_cmp(&value(a)));
            running = self.survivors(scored, &made);
        }
        let best = self.settle(&mut made, (spent, total), listener)?;
        let trials: Vec<Trial> = made.into_iter().map(|one| one.trial).collect();
        match trials.get(best).filter(|best| best.score.is_some()) {
            Some(best) => Ok((best.clone(), trials)),
            None => Err(Error::Topology {
                model: "the autopilot",
                expected: "a model whose likelihood can be tracked",
                found: "no trial ended with one".into(),
            }),
        }
    }

    /// Those of a round that go on, the best first. Every second place goes to a neighbour of the best that was not tried
    /// before: longer trainings want lower rates, and less decay.
    fn survivors(&self, scored: Vec<Trial>, made: &[Made]) -> Vec<Trial> {
        let Some(best) = scored.first().cloned() else { return scored };
        let slower = |by: f64| best.learning_rate / by;
        let near =
            [(slower(2.0), best.l2), (best.learning_rate, best.l2 / 10.0), (slower(4.0), best.l2)];
        let open = |&(rate, l2): &(f64, f64)| {
            (self.open.learning_rate || rate == best.learning_rate)
                && (self.open.l2 || l2 == best.l2)
        };
        let near = near.into_iter().filter(open).map(|(learning_rate, l2)| Trial {
            learning_rate,
            l2,
            ..best.untried()
        });
        let same = |a: &Trial, b: &Trial| {
            (&a.hidden, a.learning_rate, a.l2, &a.k) == (&b.hidden, b.learning_rate, b.l2, &b.k)
        };
        let tried = |trial: &Trial| made.iter().any(|one| same(&one.trial, trial));
        let mut near = near.filter(|trial| !tried(trial));
        let interleave = |trial: Trial| [Some(trial), near.next()];
        scored.into_iter().flat_map(interleave).flatten().collect()
    }

    /// The best trial: the highest lower end is looked at thoroughly, and the next one if it then is no longer the
    /// highest.
    fn settle(
        &self,
        made: &mut [Made],
        work: (u64, u64),
        listener: &mut dyn Listener,
    ) -> Result<usize, Error> {
        let monitor = Monitor::new(self.train, Some(self.valid), self.plan.seed);
        let highest = |made: &[Made]| {
            (0..made.len()).fold(0, |best, k| {
                if value(&made[k].trial) > value(&made[best].trial) { k } else { best }
            })
        };
        for _ in 0..FINALISTS {
            let best = highest(made);
            if made.is_empty() || made[best].is_sure || made[best].trial.score.is_none() {
                break;
            }
            if made[best].machine.is_none() {
                made[best] = self.score(made[best].trial.untried(), work, listener)?;
            }
            let one = &mut made[best];
            if let Some(machine) = one.machine.as_ref().filter(|_| !one.is_sure) {
                one.trial.lower = Some(monitor.look_thoroughly(machine)?.likelihood().0);
            }
            one.is_sure = true;
        }
        Ok(highest(made))
    }

    /// Trains a candidate and scores it.
    fn score(
        &self,
        mut trial: Trial,
        (spent, total): (u64, u64),
        listener: &mut dyn Listener,
    ) -> Result<Made, Error> {
        let plan = trial.plan(&self.plan);
        let guarding = if plan.steer { Guarding::Steer } else { Guarding::Warn };
        let monitor = Monitor::new(self.train, Some(self.valid), plan.seed);
        let mut watching = Watching {
            monitor: monitor.watching(Watch::Likelihood),
            guard: Guard::new(guarding),
            best: Best::default(),
            found: None,
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
        let (mut machine, mut is_sure) = (None, false);
        if let Some(mut found) = watching.found.take().filter(|_| !diverged) {
            let lower = watching.second_look(&mut found, learner.as_ref())?;
            (trial.score, trial.std_error) = (Some(found.score), found.std_error);
            (trial.lower, trial.best_epoch) = (Some(lower), Some(found.epoch));
            (machine, is_sure) = (Some(found.machine), found.is_exact);
        }
        trial.failing = watching.guard.failing().is_some();
        Ok(Made { trial, machine, is_sure })
    }
}

/// What an update of a trial costs, beside one of another: products with the weights, for the data and for each
/// sweep.
fn cost(trial: &Trial) -> u64 {
    let units: usize = trial.hidden.iter().sum();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few sweeps")]
    let sweeps = trial.k.range().1.clamp(1.0, 1e6) as u64;
    (units as u64 + 20) * (2 + sweeps)
}

fn value(trial: &Trial) -> f64 {
    trial.lower.unwrap_or(f64::NEG_INFINITY)
}

/// A trial that was made.
struct Made {
    trial: Trial,
    /// Its best model, where it was made just now.
    machine: Option<Machine>,
    /// Whether its lower end is exact, or was looked at thoroughly.
    is_sure: bool,
}

/// The best look at a trial.
struct Found {
    score: f64,
    std_error: Option<f64>,
    lower: f64,
    /// Whether $\ln Z$ was enumerated.
    is_exact: bool,
    epoch: u64,
    machine: Machine,
}

/// Scores a trial while it learns.
struct Watching<'d> {
    monitor: Monitor<'d>,
    guard: Guard,
    best: Best,
    found: Option<Found>,
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
        let log_z = found.get(&MetricName::LogPartition);
        let score = scores.iter().find_map(|name| found.get(name));
        if let (Some(log_z), Some(score)) = (log_z, score) {
            let lower = found.lower_end(&score.name).unwrap_or(score.value);
            if self.best.look(lower, view.epoch()) {
                self.found = Some(Found {
                    score: score.value,
                    std_error: score.std_error,
                    lower,
                    is_exact: log_z.std_error == Some(0.0),
                    epoch: view.epoch(),
                    machine: view.machine()?.clone(),
                });
            }
        }
        self.steering = self.guard.look(&found).and_then(|advice| advice.steering);
        Ok(ControlFlow::Continue(()))
    }

    fn steering(&mut self) -> Option<Steering> {
        self.steering.take()
    }
}

impl Watching<'_> {
    /// The lower end of a trial that was tracked, by a second look at its best model and at its last; `found` is then the
    /// better of the two.
    fn second_look(&self, found: &mut Found, learner: &dyn Learner) -> Result<f64, Error> {
        if found.is_exact {
            return Ok(found.lower);
        }
        let epoch = learner.progress().epoch;
        let again = self.monitor.look_again(&found.machine, epoch)?;
        let lower = again.lower_end((found.score, found.lower));
        let Body::Machine(machine) = learner.body() else { return Ok(lower) };
        if found.epoch == epoch {
            return Ok(lower);
        }
        let (end, other) = self.monitor.look_again(&machine, epoch)?.likelihood();
        if end <= lower {
            return Ok(lower);
        }
        (found.score, found.epoch, found.machine) = (0.5 * (end + other), epoch, machine);
        Ok(end)
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
