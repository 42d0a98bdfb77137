//! Whether learning went on, and whether it went too far.

use super::trend::{Trend, tail};
use super::words::{number, one_digit, plural, rough};
use super::{Evidence, Finding, Level, Remedy, chains, metric};
use crate::run::Ending;
use crate::training::{MetricName, On};

/// A metric on some data.
type Family = fn(On) -> MetricName;

/// Metrics that say how good a model is, best first, and what to call them.
const SCORES: [(Family, &str); 3] = [
    (MetricName::LogLikelihood, "log-likelihood"),
    (MetricName::Bound, "bound of the log-likelihood"),
    (MetricName::PseudoLikelihood, "pseudo-likelihood"),
];

/// The end of a curve over which it is called flat.
const END: f64 = 0.25;
/// The share of its whole rise below which an end is flat.
const FLAT: f64 = 0.02;
/// The share of a score within which it has not moved: it may have been as good as it can be from the
/// first epoch on, and the baseline says whether anything was learned.
const STILL: f64 = 0.01;

/// A score and the name of what it was measured on.
struct Score {
    family: Family,
    name: &'static str,
    values: Vec<f64>,
    on: &'static str,
}

/// The best score there is, on training data if it was measured there.
fn score(evidence: &Evidence) -> Option<Score> {
    SCORES.iter().find_map(|&(family, name)| {
        let places = [(On::Train, "training data"), (On::Valid, "validation data")];
        places.into_iter().find_map(|(place, on)| {
            let values = finite(metric(evidence, &family(place)));
            (!values.is_empty()).then_some(Score { family, name, values, on })
        })
    })
}

fn finite(mut values: Vec<f64>) -> Vec<f64> {
    values.retain(|x| x.is_finite());
    values
}

/// Did the score rise, and has it flattened?
pub(super) fn rise(evidence: &Evidence) -> Option<Finding> {
    let Score { name, values, on, .. } = score(evidence)?;
    let (first, last) = (*values.first()?, *values.last()?);
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let Some(trend) = Trend::of(tail(&values, END)) else {
        let what = format!(
            "The {name} of the {on} was measured {}, too few to say how it moves; the last is {} nats.",
            plural(values.len(), "time"),
            number(last)
        );
        return Some(Finding::new(Level::Note, what, [more_epochs(evidence)]));
    };
    let moved = format!("from {} to {} nats", number(first), number(last));
    let slower = || slower(evidence);
    if last <= first && first - last <= STILL * first.abs() {
        let what = format!("The {name} of the {on} has not moved: {moved}.");
        return Some(Finding::new(Level::Note, what, [more_epochs(evidence)]));
    }
    if last <= first {
        let what = format!("The {name} of the {on} did not rise: {moved}.");
        return Some(Finding::new(Level::Problem, what, slower()));
    }
    if trend.falls_by(FLAT * (best - first)) && best - last > 0.05 * (best - first) {
        let what = format!(
            "The {name} of the {on} fell at the end, to {} nats from its best of {}.",
            number(last),
            number(best)
        );
        return Some(Finding::new(Level::Warning, what, slower()));
    }
    let rose = format!("The {name} of the {on} rose {moved}");
    if trend.rises_by(FLAT * (last - first)) {
        let what = format!(
            "{rose} and was still rising at the end, by {} over the last {}.",
            rough(trend.change),
            plural(tail(&values, END).len(), "measurement")
        );
        return Some(Finding::new(Level::Note, what, longer(evidence)));
    }
    Some(Finding::good(format!("{rose} and has flattened.")))
}

/// Remedies of a score that falls: a calmer gradient.
fn slower(evidence: &Evidence) -> Vec<Remedy> {
    let rate = Remedy::LowerLearningRate(one_digit(evidence.plan.learning_rate / 3.0));
    [vec![rate], chains::more(&evidence.plan)].concat()
}

pub(super) fn more_epochs(evidence: &Evidence) -> Remedy {
    Remedy::MoreEpochs((2 * evidence.plan.epochs).max(10))
}

fn longer(evidence: &Evidence) -> [Remedy; 1] {
    [if evidence.ending == Ending::Unfinished { Remedy::LetItRun } else { more_epochs(evidence) }]
}

/// Validation that falls, or a gap that grows, while training rises.
pub(super) fn overfitting(evidence: &Evidence) -> Option<Finding> {
    validation(evidence).map_or_else(|| gap(evidence), |found| Some(worse(found, gap(evidence))))
}

/// The validation score decides; a growing gap is only added to it as a remark.
fn worse(found: Finding, gap: Option<Finding>) -> Finding {
    match gap {
        Some(gap) if gap.level < found.level => {
            Finding::new(Level::Note, format!("{} {}", found.what, gap.what), gap.remedies)
        }
        _ => found,
    }
}

/// Remedies of a model that learns its samples by heart.
fn simpler(evidence: &Evidence, best: Option<u64>) -> Vec<Remedy> {
    let l2 = Remedy::RaiseL2(raised(evidence.plan.l2));
    let stop = best.map(Remedy::StopNear);
    stop.into_iter().chain([Remedy::FewerHidden, l2, Remedy::MoreData]).collect()
}

/// A larger L2 penalty.
pub(super) fn raised(l2: f64) -> f64 {
    one_digit((5.0 * l2).max(1e-4))
}

fn validation(evidence: &Evidence) -> Option<Finding> {
    let Score { family, name, .. } = score(evidence)?;
    let both = evidence.epochs.iter().filter_map(|e| {
        let value = |on| e.measurements.value(&family(on));
        let (train, valid) = (value(On::Train)?, value(On::Valid)?);
        (train.is_finite() && valid.is_finite()).then_some((e.epoch, train, valid))
    });
    let both: Vec<(u64, f64, f64)> = both.collect();
    let (first, last) = (*both.first()?, *both.last()?);
    let best = both.iter().copied().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let after: Vec<f64> = both.iter().filter(|b| b.0 >= best.0).map(|b| b.2).collect();
    let enough = 0.03 * (best.2 - first.2).abs();
    let falls = Trend::of(&after).is_some_and(|t| t.falls_by(enough));
    if falls && last.1 > best.1 && best.2 - last.2 > enough {
        let what = format!(
            "The {name} of the validation data was best in epoch {} ({} nats) and has fallen to {}, \
             while that of the training data rose to {}: the model learns its samples by heart.",
            best.0,
            number(best.2),
            number(last.2),
            number(last.1)
        );
        if evidence.result == Some(best.0) {
            let what = format!("{what} The result is the model of that epoch.");
            return Some(Finding::new(Level::Note, what, simpler(evidence, None)));
        }
        return Some(Finding::new(Level::Warning, what, simpler(evidence, Some(best.0))));
    }
    let what = format!(
        "No sign of overfitting: the {name} is {} nats on training data and {} on validation data.",
        number(last.1),
        number(last.2)
    );
    Some(Finding::good(what))
}

/// A gap above one nat that grew by a quarter of itself over the second half of the run.
fn gap(evidence: &Evidence) -> Option<Finding> {
    let values = finite(metric(evidence, &MetricName::FreeEnergyGap));
    let last = *values.last()?;
    let trend = Trend::of(tail(&values, 0.5))?;
    if last > 1.0 && trend.rises_by(0.25 * last) {
        let what = format!(
            "The free-energy gap between validation and training data has grown to {} nats, by {} \
             over the second half of the run: the model learns its samples by heart.",
            number(last),
            rough(trend.change)
        );
        return Some(Finding::new(Level::Warning, what, simpler(evidence, None)));
    }
    let what = format!(
        "The free-energy gap between validation and training data is {} nats and does not keep growing.",
        number(last)
    );
    Some(Finding::good(what))
}

/// Whether the model is better than one without couplings.
pub(super) fn baseline(evidence: &Evidence) -> Option<Finding> {
    let gain = evidence.gain?;
    if !gain.nats.is_finite() {
        return None;
    }
    let (over, error) = (gain.over, gain.std_error.map_or("unknown".into(), rough));
    let seen = format!(
        "{} ± {error} nats per row by {}, beside their {}",
        number(gain.nats),
        gain.by,
        number(gain.baseline)
    );
    if !gain.is_none() {
        return Some(Finding::good(format!("Better than {over} by {seen}.")));
    }
    if gain.is_loss() {
        let what = format!("Worse than {over}: {seen}. What was learned misleads.");
        return Some(Finding::new(Level::Problem, what, slower(evidence)));
    }
    let what = format!(
        "No better than {over}: {seen}. Nothing was learned of how the columns go together."
    );
    let faster = Remedy::RaiseLearningRate(one_digit(3.0 * evidence.plan.learning_rate));
    Some(Finding::new(Level::Warning, what, [more_epochs(evidence), faster]))
}

/// What was noticed while the run went on.
pub(super) fn warned(evidence: &Evidence) -> Option<Finding> {
    let first = evidence.warnings.first()?;
    let mut letters = first.trim_end_matches('.').chars();
    let capital = letters.next().map(char::to_uppercase).into_iter().flatten();
    let what = format!("While training: {}{}.", capital.collect::<String>(), letters.as_str());
    Some(Finding::new(Level::Warning, what, slower(evidence)))
}

/// A run without a score.
pub(super) fn missing(evidence: &Evidence) -> Option<Finding> {
    if evidence.epochs.is_empty() || score(evidence).is_some() {
        return None;
    }
    let error = metric(evidence, &MetricName::ReconstructionError);
    if evidence.gain.is_some() {
        return None;
    }
    let what = match error.last().filter(|e| e.is_finite()) {
        Some(error) => format!(
            "The run recorded no likelihood; its reconstruction error ended at {}, which is not a likelihood.",
            number(*error)
        ),
        None => "The run recorded no likelihood.".into(),
    };
    Some(Finding::new(Level::Note, what, [Remedy::MeasureLikelihood]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{rising, run};
    use super::*;

    #[test]
    fn a_flat_end_is_good() {
        let found = rise(&run(&[("log_likelihood.train", &rising(-20.0))])).unwrap();
        assert_eq!(found.level, Level::Good);
        assert!(found.what.contains("from −30 to −20 nats and has flattened"), "{}", found.what);
    }

    #[test]
    fn a_rising_end_asks_for_more_epochs() {
        let values: Vec<f64> = (0..20).map(|i| -30.0 + 0.3 * f64::from(i)).collect();
        let mut evidence = run(&[("pseudo_likelihood.train", &values)]);
        evidence.plan.epochs = 20;
        let found = rise(&evidence).unwrap();
        assert_eq!((found.level, found.remedies), (Level::Note, vec![Remedy::MoreEpochs(40)]));
        assert!(
            found.what.contains("still rising at the end, by 1.2 over the last 5 measurements")
        );
    }

    #[test]
    fn a_score_that_falls_is_told() {
        let falling: Vec<f64> = (0..20).map(|i| -20.0 - f64::from(i)).collect();
        let found = rise(&run(&[("log_likelihood.train", &falling)])).unwrap();
        assert_eq!(found.level, Level::Problem);
        let mut peaked = rising(-20.0);
        peaked.extend((1..8).map(|i| -20.0 - 0.5 * f64::from(i)));
        let found = rise(&run(&[("log_likelihood.train", &peaked)])).unwrap();
        assert_eq!(found.level, Level::Warning);
        assert!(found.what.contains("to −23.5 nats from its best of −20"), "{}", found.what);
    }

    #[test]
    fn a_score_that_stays_is_no_alarm() {
        let found = rise(&run(&[("log_likelihood.train", &[-0.6941; 20])])).unwrap();
        assert_eq!(found.level, Level::Note);
        assert!(found.what.contains("has not moved"), "{}", found.what);
    }

    #[test]
    fn few_measurements_are_not_judged() {
        let found = rise(&run(&[("log_likelihood.train", &[-3.0, -2.0])])).unwrap();
        assert_eq!(found.level, Level::Note);
        assert!(found.what.contains("measured 2 times"));
        assert_eq!(rise(&Evidence::default()), None);
    }

    #[test]
    fn validation_that_falls_while_training_rises_is_an_alarm() {
        let train: Vec<f64> = (0..20).map(|i| -30.0 + 0.5 * f64::from(i)).collect();
        let valid: Vec<f64> = (0..20).map(|i| -31.0 - 0.05 * f64::from(i - 7).powi(2)).collect();
        let evidence = run(&[("log_likelihood.train", &train), ("log_likelihood.valid", &valid)]);
        let found = overfitting(&evidence).unwrap();
        assert_eq!(found.level, Level::Warning);
        assert!(
            found.what.contains("best in epoch 8 (−31 nats) and has fallen to −38.2"),
            "{}",
            found.what
        );
        assert_eq!(found.remedies[0], Remedy::StopNear(8));
    }

    #[test]
    fn validation_that_follows_is_good_even_with_noise() {
        let train = rising(-20.0);
        let valid: Vec<f64> =
            train.iter().enumerate().map(|(i, x)| x - 0.5 + [0.02, -0.02][i % 2]).collect();
        let evidence = run(&[("log_likelihood.train", &train), ("log_likelihood.valid", &valid)]);
        assert_eq!(overfitting(&evidence).unwrap().level, Level::Good);
    }

    #[test]
    fn a_growing_gap_is_an_alarm_unless_validation_still_rises() {
        let growing: Vec<f64> = (0..20).map(|i| 0.3 * f64::from(i)).collect();
        let found = overfitting(&run(&[("free_energy_gap", &growing)])).unwrap();
        assert_eq!(found.level, Level::Warning);
        assert!(found.what.contains("grown to 5.7 nats"), "{}", found.what);
        let scores = rising(-20.0);
        let evidence = run(&[
            ("free_energy_gap", &growing),
            ("log_likelihood.train", &scores),
            ("log_likelihood.valid", &scores),
        ]);
        let found = overfitting(&evidence).unwrap();
        assert_eq!(found.level, Level::Note);
        assert!(found.what.contains("No sign") && found.what.contains("grown to 5.7"));
        assert_eq!(
            overfitting(&run(&[("free_energy_gap", &[0.4; 20])])).unwrap().level,
            Level::Good
        );
    }

    #[test]
    fn reconstruction_error_is_no_likelihood() {
        let found = missing(&run(&[("reconstruction_error", &[0.3, 0.1])])).unwrap();
        assert!(found.what.contains("0.1, which is not a likelihood"));
        assert_eq!(missing(&run(&[("log_likelihood.train", &[1.0])])), None);
    }
}
