//! Which settings are tried: a square of values to begin with, then those that did well and their neighbours.

use super::trial::{Made, Trial};
use super::{Autopilot, Effort, Hidden, Open, falling};
use crate::optim::Schedule;

/// Sweeps between updates: with fewer, chains of strong models fall behind at rates that learn fast.
const SWEEPS: f64 = 10.0;

impl Autopilot<'_> {
    /// The first candidates, without a length. Of three values of three settings those combinations are taken in which
    /// every pair of values occurs once (a Latin square), all of them only for a thorough search.
    pub(super) fn candidates(&self) -> Vec<Trial> {
        let Open { learning_rate, k, l2 } = self.open;
        let hidden = matches!(self.hidden, Hidden::Searched { .. });
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

    /// Those of a round that go on, the best first. Every second place goes to a neighbour of the best that was not tried
    /// before: longer trainings want lower rates, and less decay.
    pub(super) fn survivors(&self, scored: Vec<Trial>, made: &[Made]) -> Vec<Trial> {
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
}
