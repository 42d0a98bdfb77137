//! Whether the machinery of learning is in order: updates, units, mean field, weights.

use super::score::raised;
use super::trend::{median, tail};
use super::words::{count, fixed, number, one_digit, rough};
use super::{Evidence, Finding, Level, Remedy, centering, metric};
use crate::training::{MetricName, OptimizerKind, Plan};

/// The update/weight ratio that learns fast without shaking the weights.
const HEALTHY_RATIO: f64 = 1e-3;
/// A unit is dead or saturated if its mean activity is closer than this to an end.
const ASLEEP: f64 = 0.005;
/// The mean activity that is recommended where units sleep or never do.
const SPARSITY: f64 = 0.1;
/// The norm of a unit's weights that is recommended where they grew out of hand.
const NORM: f64 = 5.0;

/// How large updates are, compared with the weights, in the middle of the run: at its beginning
/// the weights are tiny, at its end the learning rate is. Of plain ascent only.
pub(super) fn update_ratio(evidence: &Evidence) -> Option<Finding> {
    if evidence.plan.optimizer == OptimizerKind::Adam {
        // Its steps have the size of the rate, however small the weights are.
        return None;
    }
    let ratios: Vec<f64> = evidence.epochs.iter().map(|e| e.update_ratio).collect();
    let ratio = median(&ratios)?;
    let seen = format!("A typical update changes the weights by {} of their size", rough(ratio));
    if (0.1 * HEALTHY_RATIO..=10.0 * HEALTHY_RATIO).contains(&ratio) {
        let what = format!("{seen}, in the healthy range about 0.001.");
        return Some(Finding::good(what));
    }
    let rate = evidence.plan.learning_rate;
    let wanted = one_digit(rate * (HEALTHY_RATIO / ratio).clamp(0.01, 100.0));
    let (word, remedy) = if ratio > HEALTHY_RATIO {
        ("large", Remedy::LowerLearningRate(wanted))
    } else {
        ("small", Remedy::RaiseLearningRate(wanted))
    };
    let what = format!("{seen}, which is too {word}: about 0.001 is healthy.");
    Some(Finding::new(Level::Warning, what, [remedy]))
}

/// Units that are never on.
pub(super) fn dead_units(evidence: &Evidence) -> Option<Finding> {
    let remedies = [Remedy::FewerHidden, slower(evidence), Remedy::SparsityTarget(SPARSITY)];
    let remedies: Vec<Remedy> = remedies.into_iter().chain(centering(&evidence.plan)).collect();
    let n = units(evidence, &MetricName::DeadUnits, |a| a < ASLEEP)?;
    let words = ["dead", "never", "They learned nothing."];
    Some(asleep(evidence, n, words, &remedies))
}

/// Units that are always on.
pub(super) fn saturated_units(evidence: &Evidence) -> Option<Finding> {
    let l2 = Remedy::RaiseL2(raised(evidence.plan.l2));
    let remedies = [slower(evidence), l2, Remedy::SparsityTarget(SPARSITY)];
    let n = units(evidence, &MetricName::SaturatedUnits, |a| a > 1.0 - ASLEEP)?;
    let words = ["saturated", "always", "They act as a bias."];
    Some(asleep(evidence, n, words, &remedies))
}

fn slower(evidence: &Evidence) -> Remedy {
    Remedy::LowerLearningRate(one_digit(evidence.plan.learning_rate / 3.0))
}

/// The last count that the run recorded, else that of the activities, if they are probabilities.
fn units(evidence: &Evidence, name: &MetricName, is: impl Fn(f64) -> bool) -> Option<usize> {
    let recorded =
        metric(evidence, name).last().filter(|x| x.is_finite()).map(|x| count(x.round()));
    let activities = || evidence.activities.iter().flat_map(|a| &a.values).copied();
    let known = n_hidden(evidence) > 0 && activities().all(|a| (0.0..=1.0).contains(&a));
    recorded.or_else(|| known.then(|| activities().filter(|a| is(*a)).count()))
}

fn n_hidden(evidence: &Evidence) -> usize {
    evidence.activities.iter().map(|a| a.values.len()).sum()
}

fn asleep(
    evidence: &Evidence,
    n: usize,
    [word, when, meaning]: [&str; 3],
    remedies: &[Remedy],
) -> Finding {
    let total = n_hidden(evidence);
    if n == 0 {
        let what = format!("No hidden unit is {word} ({when} on).");
        return Finding::good(what);
    }
    let (verb, of) = (if n == 1 { "is" } else { "are" }, format!(" of {}", fixed(total as f64, 0)));
    let of = if total >= n { of } else { String::new() };
    let what = format!("{}{of} hidden units {verb} {word} ({when} on).", fixed(n as f64, 0));
    let share = n as f64 / total.max(n) as f64;
    let level = match share {
        _ if total < n => Level::Note,
        s if s > 0.5 => Level::Problem,
        s if s > 0.05 => Level::Warning,
        _ => Level::Note,
    };
    if level == Level::Note {
        return Finding::new(level, format!("{what} A few are harmless."), []);
    }
    Finding::new(level, format!("{what} {meaning}"), remedies)
}

/// Mean field that uses every sweep it has.
pub(super) fn mean_field(evidence: &Evidence) -> Option<Finding> {
    let sweeps: Vec<f64> = evidence.epochs.iter().filter_map(|e| e.mean_field_sweeps).collect();
    let typical = median(tail(&sweeps, 0.25))?;
    let limit = evidence.plan.mean_field_sweeps;
    if typical < limit as f64 {
        let what =
            format!("Mean field settles after {} of at most {limit} sweeps.", number(typical));
        return Some(Finding::good(what));
    }
    let what = format!("Mean field did not settle within {limit} sweeps at the end of the run.");
    let remedies = [Remedy::MeanFieldSweeps(3 * limit), slower(evidence), Remedy::ClampedGibbs];
    Some(Finding::new(Level::Warning, what, remedies))
}

/// Real columns whose noise would shrink or grow beyond all that the data says.
pub(super) fn precisions(evidence: &Evidence) -> Option<Finding> {
    let (n, of) = evidence.at_bounds.filter(|(n, _)| *n > 0)?;
    let what = format!(
        "The precision of {n} of {of} real columns is at the end of its range, a hundredth or ten thousand times where it started: \
         such a column hardly varies given the others, or a few rows are learned by heart."
    );
    let remedies =
        [Remedy::FewerHidden, Remedy::RaiseL2(raised(evidence.plan.l2)), slower(evidence)];
    Some(Finding::new(Level::Warning, what, remedies))
}

/// Weights that hardly left their start, or that grew out of hand.
pub(super) fn weights(evidence: &Evidence) -> Option<Finding> {
    let judged = evidence.weights.iter().filter(|w| !w.values.is_empty()).map(|w| {
        let size = (w.values.iter().map(|x| x * x).sum::<f64>() / w.values.len() as f64).sqrt();
        let most = w.values.iter().fold(0.0, |m, x| f64::max(m, x.abs()));
        judge_weights(evidence, &w.name, size, most)
    });
    judged.min_by_key(|f| f.level)
}

fn judge_weights(evidence: &Evidence, name: &str, size: f64, most: f64) -> Finding {
    let Plan { initial_std, learning_rate, epochs, l2, .. } = evidence.plan;
    if !size.is_finite() {
        let what = format!("The weights of {name} hold numbers that are not finite.");
        return Finding::new(Level::Problem, what, [slower(evidence)]);
    }
    let seen = format!("The weights of {name} have a typical size of {}", rough(size));
    if size < 1.2 * initial_std {
        let what = format!("{seen}: they hardly left their start ({}).", number(initial_std));
        let faster = Remedy::RaiseLearningRate(one_digit(3.0 * learning_rate));
        return Finding::new(Level::Warning, what, [Remedy::MoreEpochs(2 * epochs), faster]);
    }
    if size > 3.0 || most > 30.0 {
        let what =
            format!("{seen}, up to {}: they are so large that chains hardly move.", rough(most));
        let remedies = [Remedy::RaiseL2(raised(l2)), slower(evidence), Remedy::MaxNorm(NORM)];
        return Finding::new(Level::Warning, what, remedies);
    }
    Finding::good(format!("{seen}, up to {}.", rough(most)))
}
