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
//! Machines of real columns that are coupled with each other are tried with so few hidden units that sums over their states
//! give the gradient itself: one Gaussian, where they start, is a saddle of the likelihood, and the noise of chains hides the way down
//! from it. Where such a table has few rows, all of them are validated with in turn (`folds`), and the settings that were found are
//! learned from all rows that were not given for validation alone.
//!
//! The amount of work is known beforehand, and everything follows from the seed: a plan that was found once is
//! found again, and the plan alone repeats the model.

mod asked;
mod candidates;
mod folds;
mod trial;

pub use asked::Searched;
pub use trial::Trial;

use super::train::Blueprint;
use crate::error::Error;
use crate::evaluation::monitor::Monitor;
use crate::progress::Listener;
use crate::training::{Plan, Rule};
use folds::Fold;
use harmonium_data::Dataset;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use trial::{Made, cost, value};

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

/// The hidden units of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// As many in each layer as was asked for.
    Given(Vec<usize>),
    /// As many as turn out to be best, in so many layers.
    Searched {
        /// The number of hidden layers.
        layers: usize,
    },
}

/// Hidden units of the first layer of a model that is only looked at, not trained.
const FEW: usize = 20;

impl Hidden {
    /// What was asked for, or a search over the usual number of layers of a model: one, or two where it is deep.
    #[must_use]
    pub fn given_or(asked: Option<Vec<usize>>, layers: usize) -> Self {
        asked.map_or(Self::Searched { layers }, Self::Given)
    }

    /// Some numbers of units that fit: what data, units and plan look like can be found out with them before the search.
    #[must_use]
    pub fn some(&self) -> Vec<usize> {
        match self {
            Self::Given(units) => units.clone(),
            Self::Searched { layers } => falling(FEW, *layers),
        }
    }
}

/// Numbers of units that fall by half from layer to layer.
fn falling(first: usize, layers: usize) -> Vec<usize> {
    (0..layers.max(1)).map(|depth| (first >> depth).max(LEAST_UNITS)).collect()
}

/// The fewest units of a layer that are tried.
const LEAST_UNITS: usize = 5;

/// Which settings are searched for; the others are those of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each setting that may be searched for")]
pub struct Open {
    /// Where the model side of the gradient comes from.
    pub rule: bool,
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
    /// Whether these rows were set apart from the data, and may be learned from in the end.
    pub apart: bool,
    /// Makes the model of a trial.
    pub shape: &'a Shape<'a>,
    /// The numbers of hidden units.
    pub hidden: Hidden,
    /// Every setting that is not searched for, the seed among them.
    pub plan: Plan,
    /// What is searched for.
    pub open: Open,
    /// How much work it may take.
    pub effort: Effort,
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
        let candidates = self.candidates();
        let n = candidates.len().max(2);
        let exact = candidates.iter().any(|trial| trial.rule == Rule::Exact);
        // Without the noise of chains, steps can be larger and fewer.
        let fewer = if exact { 4 } else { 1 };
        let rounds = self.effort.rounds();
        // Few rows are overfitted before the last round would end.
        let rounds = if self.is_folded() { &rounds[..rounds.len() - 1] } else { rounds };
        rounds.iter().map(|&(k, updates)| (k.min(n), updates / fewer)).collect()
    }

    /// Passes over the data that make as many updates.
    fn epochs(&self, updates: u64) -> u64 {
        updates.div_ceil(self.batches(self.train.n_rows())).max(1)
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
        let folds = self.folds()?;
        let mut running = self.candidates();
        let usual = running.iter().map(cost).sum::<u64>() / running.len().max(1) as u64;
        let total = usual * self.work().1;
        let (mut made, mut spent) = (Vec::new(), 0);
        let mut unannounced = true;
        let rounds = self.sized_rounds();
        for (round, &(n, updates)) in (1..).zip(&rounds) {
            running.truncate(n);
            let mut scored = Vec::new();
            for candidate in &running {
                let asked = Trial { round, epochs: self.epochs(updates), ..candidate.untried() };
                let known = done.iter().find(|trial| trial.is_about(&asked)).cloned();
                let one = if let Some(trial) = known {
                    Made { trial, machine: None, is_sure: !folds.is_empty() }
                } else {
                    let start = Instant::now();
                    let one = self.score(asked, &folds, (spent, total), listener)?;
                    note(&one.trial)?;
                    if std::mem::take(&mut unannounced) {
                        let part = (updates * cost(&one.trial)) as f64 / total.max(1) as f64;
                        let seconds = start.elapsed().as_secs_f64() / part;
                        listener.announce(&format!("all trials will take about {seconds:.0} s"));
                    }
                    one
                };
                spent += updates * cost(&one.trial);
                scored.push(one.trial.clone());
                made.push(one);
            }
            scored.sort_by(|a, b| value(b).total_cmp(&value(a)));
            let places = rounds.get(round).map_or(0, |next| next.0);
            running = self.survivors(scored, &made, places);
        }
        let best = self.settle(&mut made, &folds, (spent, total), listener)?;
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

    /// The best trial: the highest lower end is looked at thoroughly, and the next one if it then is no longer the
    /// highest.
    fn settle(
        &self,
        made: &mut [Made],
        folds: &[Fold],
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
                made[best] = self.score(made[best].trial.untried(), folds, work, listener)?;
            }
            let one = &mut made[best];
            if let Some(machine) = one.machine.as_ref().filter(|_| !one.is_sure) {
                one.trial.lower = Some(monitor.look_thoroughly(machine)?.likelihood().0);
            }
            one.is_sure = true;
        }
        Ok(highest(made))
    }
}
