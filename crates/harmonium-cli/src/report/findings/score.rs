//! Whether learning went on, and whether it went too far.

use super::super::markup::{number, plural, rough};
use super::super::{Ended, Input};
use super::trend::{Trend, tail};
use super::{Finding, Level, metric, setting};

/// Families of metrics that say how good a model is, best first, and how to name them.
const SCORES: [(&str, &str); 3] = [
    ("log_likelihood", "log-likelihood"),
    ("bound", "bound of the log-likelihood"),
    ("pseudo_likelihood", "pseudo-likelihood"),
];

/// The end of a curve over which it is called flat.
const END: f64 = 0.25;
/// The share of its whole rise below which an end is flat.
const FLAT: f64 = 0.02;

/// A score and the name of what it was measured on.
struct Score {
    family: &'static str,
    name: &'static str,
    values: Vec<f64>,
    on: &'static str,
}

/// The best score there is, on training data if it was measured there.
fn score(input: &Input) -> Option<Score> {
    SCORES.iter().find_map(|&(family, name)| {
        let places = [(".train", "training data"), ("", "data"), (".valid", "validation data")];
        places.into_iter().find_map(|(part, on)| {
            let values = finite(metric(input, &format!("{family}{part}")));
            (!values.is_empty()).then_some(Score { family, name, values, on })
        })
    })
}

fn finite(mut values: Vec<f64>) -> Vec<f64> {
    values.retain(|x| x.is_finite());
    values
}

/// Did the score rise, and has it flattened?
pub(super) fn rise(input: &Input) -> Option<Finding> {
    let Score { name, values, on, .. } = score(input)?;
    let (first, last) = (*values.first()?, *values.last()?);
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let Some(trend) = Trend::of(tail(&values, END)) else {
        let what = format!(
            "The {name} of the {on} was measured {}, too few to say how it moves; the last is {} nats.",
            plural(values.len(), "time"),
            number(last)
        );
        return Some(Finding::new(Level::Note, what, "Train for more epochs to see a curve."));
    };
    let moved = format!("from {} to {} nats", number(first), number(last));
    let slower = "Lower `--learning-rate`, or use more `--chains` or a larger `--k`.";
    if last <= first {
        let what = format!("The {name} of the {on} did not rise: {moved}.");
        return Some(Finding::new(Level::Problem, what, slower));
    }
    if trend.falls_by(FLAT * (best - first)) && best - last > 0.05 * (best - first) {
        let what = format!(
            "The {name} of the {on} fell at the end, to {} nats from its best of {}.",
            number(last),
            number(best)
        );
        return Some(Finding::new(Level::Warning, what, slower));
    }
    let rose = format!("The {name} of the {on} rose {moved}");
    if trend.rises_by(FLAT * (last - first)) {
        let what = format!(
            "{rose} and was still rising at the end, by {} over the last {}.",
            rough(trend.change),
            plural(tail(&values, END).len(), "measurement")
        );
        return Some(Finding::new(Level::Note, what, longer(input)));
    }
    Some(Finding::new(Level::Good, format!("{rose} and has flattened."), ""))
}

fn longer(input: &Input) -> String {
    match setting(&input.config, "epochs") {
        _ if input.ended == Ended::Unfinished => "Let it train on.".into(),
        Some(epochs) => format!("Train longer: `--epochs {}`.", 2.0 * epochs),
        None => "Train longer with more `--epochs`.".into(),
    }
}

/// Validation that falls, or a gap that grows, while training rises.
pub(super) fn overfitting(input: &Input) -> Option<Finding> {
    validation(input).map_or_else(|| gap(input), |found| Some(worse(found, gap(input))))
}

/// The validation score decides; a growing gap is only added to it as a remark.
fn worse(found: Finding, gap: Option<Finding>) -> Finding {
    match gap {
        Some(gap) if gap.level < found.level => {
            Finding::new(Level::Note, format!("{} {}", found.what, gap.what), gap.advice)
        }
        _ => found,
    }
}

fn remedies(epoch: Option<u64>) -> String {
    let stop = epoch.map_or(String::new(), |e| format!("stop near epoch {e}, or "));
    format!(
        "The model learns its samples by heart: {stop}use fewer `--hidden` units, a larger `--l2` or more data."
    )
}

fn validation(input: &Input) -> Option<Finding> {
    let Score { family, name, .. } = score(input)?;
    let key = |part: &str| format!("{family}.{part}");
    let both = input.records.iter().filter_map(|r| {
        let (train, valid) = (*r.values.get(&key("train"))?, *r.values.get(&key("valid"))?);
        (train.is_finite() && valid.is_finite()).then_some((r.epoch, train, valid))
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
             while that of the training data rose to {}.",
            best.0,
            number(best.2),
            number(last.2),
            number(last.1)
        );
        return Some(Finding::new(Level::Warning, what, remedies(Some(best.0))));
    }
    let what = format!(
        "No sign of overfitting: the {name} is {} nats on training data and {} on validation data.",
        number(last.1),
        number(last.2)
    );
    Some(Finding::new(Level::Good, what, ""))
}

/// A gap above one nat that grew by a quarter of itself over the second half of the run.
fn gap(input: &Input) -> Option<Finding> {
    let values = finite(metric(input, "free_energy_gap"));
    let last = *values.last()?;
    let trend = Trend::of(tail(&values, 0.5))?;
    if last > 1.0 && trend.rises_by(0.25 * last) {
        let what = format!(
            "The free-energy gap between validation and training data has grown to {} nats, by {} \
             over the second half of the run.",
            number(last),
            rough(trend.change)
        );
        return Some(Finding::new(Level::Warning, what, remedies(None)));
    }
    let what = format!(
        "The free-energy gap between validation and training data is {} nats and does not keep growing.",
        number(last)
    );
    Some(Finding::new(Level::Good, what, ""))
}

/// A run of which nobody measured how good it is.
pub(super) fn missing(input: &Input) -> Option<Finding> {
    if input.records.is_empty() || score(input).is_some() {
        return None;
    }
    let error = metric(input, "reconstruction_error");
    let what = match error.last().filter(|e| e.is_finite()) {
        Some(error) => format!(
            "The run recorded no likelihood; its reconstruction error ended at {}, which is not a likelihood.",
            number(*error)
        ),
        None => "The run recorded no likelihood.".into(),
    };
    let advice = "`harmonium score` measures one, with its interval.";
    Some(Finding::new(Level::Note, what, advice))
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
        let mut input = run(&[("pseudo_likelihood.train", &values)]);
        input.config = "epochs = 20".into();
        let found = rise(&input).unwrap();
        assert_eq!(
            (found.level, found.advice.as_str()),
            (Level::Note, "Train longer: `--epochs 40`.")
        );
        assert!(
            found.what.contains("still rising at the end, by 1.2 over the last 5 measurements")
        );
    }

    #[test]
    fn a_score_that_falls_is_told() {
        let falling: Vec<f64> = (0..20).map(|i| -20.0 - f64::from(i)).collect();
        let found = rise(&run(&[("log_likelihood", &falling)])).unwrap();
        assert_eq!(found.level, Level::Problem);
        let mut peaked = rising(-20.0);
        peaked.extend((1..8).map(|i| -20.0 - 0.5 * f64::from(i)));
        let found = rise(&run(&[("log_likelihood.train", &peaked)])).unwrap();
        assert_eq!(found.level, Level::Warning);
        assert!(found.what.contains("to −23.5 nats from its best of −20"), "{}", found.what);
    }

    #[test]
    fn few_measurements_are_not_judged() {
        let found = rise(&run(&[("log_likelihood.train", &[-3.0, -2.0])])).unwrap();
        assert_eq!(found.level, Level::Note);
        assert!(found.what.contains("measured 2 times"));
        assert_eq!(rise(&Input::default()), None);
    }

    #[test]
    fn validation_that_falls_while_training_rises_is_an_alarm() {
        let train: Vec<f64> = (0..20).map(|i| -30.0 + 0.5 * f64::from(i)).collect();
        let valid: Vec<f64> = (0..20).map(|i| -31.0 - 0.05 * f64::from(i - 7).powi(2)).collect();
        let input = run(&[("log_likelihood.train", &train), ("log_likelihood.valid", &valid)]);
        let found = overfitting(&input).unwrap();
        assert_eq!(found.level, Level::Warning);
        assert!(
            found.what.contains("best in epoch 8 (−31 nats) and has fallen to −38.2"),
            "{}",
            found.what
        );
        assert!(found.advice.contains("stop near epoch 8"));
    }

    #[test]
    fn validation_that_follows_is_good_even_with_noise() {
        let train = rising(-20.0);
        let valid: Vec<f64> =
            train.iter().enumerate().map(|(i, x)| x - 0.5 + [0.02, -0.02][i % 2]).collect();
        let input = run(&[("log_likelihood.train", &train), ("log_likelihood.valid", &valid)]);
        assert_eq!(overfitting(&input).unwrap().level, Level::Good);
    }

    #[test]
    fn a_growing_gap_is_an_alarm_unless_validation_still_rises() {
        let growing: Vec<f64> = (0..20).map(|i| 0.3 * f64::from(i)).collect();
        let found = overfitting(&run(&[("free_energy_gap", &growing)])).unwrap();
        assert_eq!(found.level, Level::Warning);
        assert!(found.what.contains("grown to 5.7 nats"), "{}", found.what);
        let scores = rising(-20.0);
        let input = run(&[
            ("free_energy_gap", &growing),
            ("log_likelihood.train", &scores),
            ("log_likelihood.valid", &scores),
        ]);
        let found = overfitting(&input).unwrap();
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
