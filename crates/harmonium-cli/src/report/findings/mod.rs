//! What the numbers of a run mean, in sentences with what to do about it.
//!
//! Each rule looks at one symptom and is silent where it has nothing to look at. Advice names the
//! flags of `harmonium train`, with values taken from what the run was asked. The healthy size of
//! updates and the free-energy gap are advice of Hinton (*A practical guide to training
//! restricted Boltzmann machines*, 2010); the other thresholds are rules of thumb of our own.

mod health;
mod score;
mod trend;

use super::{Ended, Input};

/// How much a finding matters, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// The result should not be used.
    Problem,
    /// Something to mend or to watch.
    Warning,
    /// Worth knowing.
    Note,
    /// As it should be.
    Good,
}

/// One sentence about a run, with its numbers, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// How much it matters.
    pub(super) level: Level,
    /// What was seen.
    pub(super) what: String,
    /// What to do; empty where nothing is to be done. Code stands between backticks.
    pub(super) advice: String,
}

impl Finding {
    fn new(level: Level, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level, what: what.into(), advice: advice.into() }
    }
}

/// Everything to be said about a run, worst first.
pub(super) fn findings(input: &Input) -> Vec<Finding> {
    let rules = [
        ending,
        score::rise,
        score::overfitting,
        health::update_ratio,
        health::dead_units,
        health::saturated_units,
        health::chains,
        health::collapse,
        health::mean_field,
        health::weights,
        score::missing,
    ];
    let mut found: Vec<Finding> = rules.iter().filter_map(|rule| rule(input)).collect();
    found.sort_by_key(|f| f.level);
    let judged = found.iter().any(|f| f.level == Level::Good);
    if judged && found.iter().all(|f| f.level > Level::Warning) {
        found.insert(0, Finding::new(Level::Good, "No problem was found in this run.", ""));
    }
    found
}

/// Numbers that ran away, or a run that did not end as planned.
fn ending(input: &Input) -> Option<Finding> {
    let broken = input.records.iter().find_map(|r| {
        let (name, value) = r.values.iter().find(|(_, x)| !x.is_finite())?;
        Some(format!("`{name}` became {} in epoch {}", super::markup::number(*value), r.epoch))
    });
    let slower = match setting(&input.config, "learning-rate") {
        Some(rate) => format!("`--learning-rate {}`", rounded(rate / 3.0)),
        None => "a lower `--learning-rate`".into(),
    };
    let advice = format!(
        "Train again with {slower}; standardise real-valued data and keep centering on. \
         The model kept is the last good one."
    );
    match (&input.ended, broken) {
        (Ended::Diverged(why), _) => {
            let what = format!("Training diverged and was stopped: {}.", sentence_end(why));
            Some(Finding::new(Level::Problem, what, advice))
        }
        (_, Some(broken)) => {
            Some(Finding::new(Level::Problem, format!("Numbers ran away: {broken}."), advice))
        }
        (Ended::Early(why), None) => {
            let what = format!("The run was ended early: {}.", sentence_end(why));
            Some(Finding::new(Level::Note, what, ""))
        }
        (Ended::Unfinished, None) => Some(Finding::new(
            Level::Note,
            "The run has not finished its epochs; this is how it stands so far.",
            "If it was interrupted, go on with `--resume`.",
        )),
        (Ended::Finished, None) => None,
    }
}

fn sentence_end(text: &str) -> &str {
    text.trim_end_matches(['.', ' ', '\n'])
}

/// The values of a metric, where it was measured.
fn metric(input: &Input, name: &str) -> Vec<f64> {
    input.records.iter().filter_map(|r| r.values.get(name).copied()).collect()
}

/// A number of `run.toml`, wherever it stands there; keys may be spelt with `-` or `_`.
fn setting(config: &str, key: &str) -> Option<f64> {
    text_setting(config, key)?.replace('_', "").parse().ok()
}

/// A value of `run.toml` without its quotes.
fn text_setting<'a>(config: &'a str, key: &str) -> Option<&'a str> {
    config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        let value = value.split('#').next()?.trim();
        (name.trim().replace('_', "-") == key).then(|| value.trim_matches(['"', '\'']))
    })
}

/// A number with one significant digit, for advice.
fn rounded(x: f64) -> String {
    let text = format!("{x:.0e}");
    text.parse::<f64>().map_or(text, |x| x.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::*;

    /// A run that measured these metrics, one value per epoch.
    pub(super) fn run(metrics: &[(&str, &[f64])]) -> Input {
        let n = metrics.iter().map(|m| m.1.len()).max().unwrap_or(0);
        let record = |i: usize| Record {
            epoch: i as u64 + 1,
            step: 10 * (i as u64 + 1),
            seconds: None,
            values: metrics.iter().filter_map(|(k, v)| Some(((*k).into(), *v.get(i)?))).collect(),
        };
        Input { records: (0..n).map(record).collect(), ..Input::default() }
    }

    /// A curve that rises to `top` and flattens.
    pub(super) fn rising(top: f64) -> Vec<f64> {
        (0..20).map(|i| top - 10.0 * (-0.6 * f64::from(i)).exp()).collect()
    }

    #[test]
    fn numbers_that_are_none_are_a_problem() {
        let mut input = run(&[("log_likelihood.train", &[-3.0, f64::NAN])]);
        input.config = "learning-rate = 0.03\n".into();
        let found = ending(&input).unwrap();
        assert_eq!(found.level, Level::Problem);
        assert!(found.what.contains("`log_likelihood.train` became not a number in epoch 2"));
        assert!(found.advice.contains("`--learning-rate 0.01`"), "{}", found.advice);
        let ended = Ended::Diverged("the gradient holds a number that is not finite.".into());
        let found = ending(&Input { ended, ..Input::default() }).unwrap();
        assert_eq!(found.level, Level::Problem);
        assert!(found.what.ends_with("not finite."));
    }

    #[test]
    fn other_endings_are_told() {
        let level = |ended| ending(&Input { ended, ..Input::default() }).map(|f| f.level);
        assert_eq!(level(Ended::Finished), None);
        assert_eq!(level(Ended::Unfinished), Some(Level::Note));
        assert_eq!(level(Ended::Early("it was enough".into())), Some(Level::Note));
    }

    #[test]
    fn a_healthy_run_is_called_healthy() {
        let input = run(&[("log_likelihood.train", &rising(-20.0)), ("update_ratio", &[1e-3; 20])]);
        let found = findings(&input);
        assert!(found.iter().all(|f| f.level == Level::Good), "{found:?}");
        assert!(found[0].what.starts_with("No problem"));
    }

    #[test]
    fn the_worst_comes_first_and_is_not_called_healthy() {
        let input = run(&[("log_likelihood.train", &rising(-20.0)), ("update_ratio", &[0.3; 20])]);
        let found = findings(&input);
        assert!(found[0].level <= Level::Warning, "{found:?}");
        assert!(found.windows(2).all(|w| w[0].level <= w[1].level));
        assert!(!found.iter().any(|f| f.what.starts_with("No problem")));
    }

    #[test]
    fn nothing_measured_is_not_called_healthy() {
        let found = findings(&Input::default());
        assert!(found.iter().all(|f| f.level != Level::Good), "{found:?}");
    }

    #[test]
    fn settings_are_found_in_any_spelling() {
        let config =
            "[plan]\nlearning_rate = 1e-2 # fast\nrule='pt'\nepochs = 1_000\nk = \"1 -> 5\"";
        assert_eq!(setting(config, "learning-rate"), Some(0.01));
        assert_eq!((setting(config, "epochs"), setting(config, "k")), (Some(1000.0), None));
        assert_eq!(text_setting(config, "rule"), Some("pt"));
        assert_eq!((rounded(0.033_3), rounded(38.0)), ("0.03".into(), "40".into()));
    }
}
