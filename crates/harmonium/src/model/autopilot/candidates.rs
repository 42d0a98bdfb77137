//! Which settings are tried: a square of values to begin with, then those that did well and their neighbours.

use super::trial::{Made, Trial};
use super::{Autopilot, Effort, Hidden, Open, falling};
use crate::model::train::Blueprint;
use crate::models::coupled_columns;
use crate::optim::Schedule;
use crate::schema::Feed;
use crate::training::Rule;

/// Hidden units of machines of real columns whose gradient is a sum over all their states.
const SUMMED: [usize; 3] = [8, 4, 10];
/// The most of them.
pub(super) const MOST_SUMMED: usize = 12;
/// The most multiplications of one such sum.
const MOST_WORK: u64 = 1 << 23;
/// The most units of a first layer that is tried.
const MOST_UNITS: usize = 1000;
/// Sweeps between updates: with fewer, chains of strong models fall behind at rates that learn fast.
const SWEEPS: f64 = 10.0;

impl Autopilot<'_> {
    /// The first candidates, without a length. Of three values of three settings those combinations are taken in which
    /// every pair of values occurs once (a Latin square), all of them only for a thorough search.
    pub(super) fn candidates(&self) -> Vec<Trial> {
        let Open { learning_rate, k, l2, .. } = self.open;
        let hidden = matches!(self.hidden, Hidden::Searched { .. });
        let base = &self.plan;
        let few = self.summed();
        let rule = if few.is_empty() { base.rule } else { Rule::Exact };
        let widths: &[f64] = if hidden { &[3.0, 1.0, 0.25] } else { &[0.0] };
        let rates: &[f64] = match (learning_rate, rule) {
            (false, _) => &[1.0],
            (true, Rule::Exact) => &[2.0, 1.0, 4.0],
            (true, _) => &[5.0, 2.0, 10.0],
        };
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
                        hidden: few.get(a).cloned().unwrap_or_else(|| self.units(*width)),
                        learning_rate: base.learning_rate * rate,
                        rule,
                        k: if k && rule != Rule::Exact {
                            Schedule::Constant(SWEEPS)
                        } else {
                            base.k.clone()
                        },
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

    /// The numbers of hidden units of trials whose gradient is a sum over all their states; none where that is not asked for, or costs
    /// too much.
    fn summed(&self) -> Vec<Vec<usize>> {
        let units: Vec<Vec<usize>> = match &self.hidden {
            Hidden::Given(units) => vec![units.clone()],
            Hidden::Searched { layers: 1 } => SUMMED.iter().map(|&n| vec![n]).collect(),
            Hidden::Searched { .. } => Vec::new(),
        };
        let is_cheap = |units: &Vec<usize>| self.open.rule && self.sums_cheaply(units);
        if units.iter().all(is_cheap) { units } else { Vec::new() }
    }

    /// Whether a machine of real columns that are coupled with each other, all of them known in every row, has so few hidden units that a
    /// sum over their states costs little.
    fn sums_cheaply(&self, hidden: &[usize]) -> bool {
        let Ok(Blueprint::Machine(machine)) = (self.shape)(hidden) else { return false };
        let (coupled, units) = (coupled_columns(&machine), hidden.iter().sum::<usize>());
        let entries: usize = machine.visible_layers().iter().map(|&l| machine.layer(l).len()).sum();
        let Ok(feed) = Feed::of(&machine, self.train) else { return false };
        hidden.len() == 1
            && coupled > 0
            && !feed.has_holes()
            && self.plan.objective.is_generative()
            && units <= MOST_SUMMED
            && (1_u64 << units) * (coupled * coupled + entries * units) as u64 <= MOST_WORK
    }

    /// Hidden units for a multiple of the number of columns; 0 is what was asked for.
    fn units(&self, width: f64) -> Vec<usize> {
        match &self.hidden {
            Hidden::Given(units) => units.clone(),
            Hidden::Searched { layers } => {
                let first = (width * self.train.n_columns() as f64).round().clamp(10.0, 500.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "clamped"
                )]
                falling(first as usize, *layers)
            }
        }
    }

    /// Those of a round that take one of the `places` of the next, the best first. Every second place goes to a neighbour of the best that
    /// was not tried before: longer trainings want lower rates, can fill twice the hidden units if no trial had more than the best, and want less
    /// decay. A single place goes to a neighbour: the best is not lost, for it may still win as it is. Where gradients are exact, neither
    /// width nor length is what holds a model back.
    pub(super) fn survivors(&self, scored: Vec<Trial>, made: &[Made], places: usize) -> Vec<Trial> {
        let Some(best) = scored.first().cloned() else { return scored };
        let slower = |by: f64| Trial { learning_rate: best.learning_rate / by, ..best.untried() };
        let decayed = Trial { l2: short(best.l2 / 10.0), ..best.untried() };
        let wider = if self.open.learning_rate { slower(2.0) } else { best.untried() };
        let near = if best.rule == Rule::Exact {
            [Some(slower(2.0)), Some(decayed), Some(slower(4.0)), None]
        } else {
            [Some(slower(2.0)), self.wider(&wider, made), Some(slower(4.0)), Some(decayed)]
        };
        let open = |trial: &Trial| {
            (self.open.learning_rate || trial.learning_rate == best.learning_rate)
                && (self.open.l2 || trial.l2 == best.l2)
        };
        let near = near.into_iter().flatten().filter(open);
        let same = |a: &Trial, b: &Trial| {
            let all = |t: &Trial| (t.hidden.clone(), t.learning_rate, t.l2, t.rule, t.k.clone());
            all(a) == all(b)
        };
        let tried = |trial: &Trial| made.iter().any(|one| same(&one.trial, trial));
        let mut near = near.filter(|trial| !tried(trial)).peekable();
        if let Some(trial) = near.next_if(|_| places == 1 && best.rule != Rule::Exact) {
            return vec![trial];
        }
        let interleave = |trial: Trial| [Some(trial), near.next()];
        scored.into_iter().flat_map(interleave).flatten().collect()
    }

    /// The same trial with twice the units, where they are searched for and nobody had more.
    fn wider(&self, best: &Trial, made: &[Made]) -> Option<Trial> {
        let first = *best.hidden.first()?;
        let is_widest = made.iter().all(|one| one.trial.hidden.first() <= Some(&first));
        let Hidden::Searched { layers } = self.hidden else { return None };
        (is_widest && 2 * first <= MOST_UNITS)
            .then(|| Trial { hidden: falling(2 * first, layers), ..best.untried() })
    }
}

/// A number as people write it: a tenth of 0.00002 is 0.000002.
fn short(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}
