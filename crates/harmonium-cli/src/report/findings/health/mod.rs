//! Whether the machinery of learning is in order: updates, units, chains, weights.

use super::super::Input;
use super::super::markup::{count, fixed, number, rough};
use super::trend::{median, tail};
use super::{Finding, Level, metric, rounded, setting, text_setting};

/// The update/weight ratio that learns fast without shaking the weights.
const HEALTHY_RATIO: f64 = 1e-3;
/// A unit is dead or saturated if its mean activity is closer than this to an end.
const ASLEEP: f64 = 0.005;

/// How large updates are, compared with the weights, in the middle of the run: at its beginning
/// the weights are tiny, at its end the learning rate is.
pub(super) fn update_ratio(input: &Input) -> Option<Finding> {
    let ratio = median(&metric(input, "update_ratio"))?;
    let seen = format!("A typical update changes the weights by {} of their size", rough(ratio));
    if (0.1 * HEALTHY_RATIO..=10.0 * HEALTHY_RATIO).contains(&ratio) {
        let what = format!("{seen}, in the healthy range about 0.001.");
        return Some(Finding::new(Level::Good, what, ""));
    }
    let (word, direction) =
        if ratio > HEALTHY_RATIO { ("large", "Lower") } else { ("small", "Raise") };
    let advice = match setting(&input.config, "learning-rate") {
        Some(rate) if ratio > 0.0 => {
            let wanted = rate * (HEALTHY_RATIO / ratio).clamp(0.01, 100.0);
            format!(
                "{direction} the learning rate, to about `--learning-rate {}`.",
                rounded(wanted)
            )
        }
        _ => format!("{direction} `--learning-rate`."),
    };
    let what = format!("{seen}, which is too {word}: about 0.001 is healthy.");
    Some(Finding::new(Level::Warning, what, advice))
}

/// Units that are never on.
pub(super) fn dead_units(input: &Input) -> Option<Finding> {
    let advice = "They learned nothing: use fewer `--hidden` units, a lower `--learning-rate`, or \
                  `--sparsity-target 0.1`, and keep centering on.";
    let n = units(input, "dead_units", |a| a < ASLEEP)?;
    Some(asleep(input, n, ["dead", "never"], advice))
}

/// Units that are always on.
pub(super) fn saturated_units(input: &Input) -> Option<Finding> {
    let advice = "They act as a bias: lower `--learning-rate`, raise `--l2`, or set \
                  `--sparsity-target 0.1`.";
    let n = units(input, "saturated_units", |a| a > 1.0 - ASLEEP)?;
    Some(asleep(input, n, ["saturated", "always"], advice))
}

/// The last count that the run recorded, else that of the activities, if they are probabilities.
fn units(input: &Input, name: &str, is: impl Fn(f64) -> bool) -> Option<usize> {
    let recorded = metric(input, name).last().filter(|x| x.is_finite()).map(|x| count(x.round()));
    let activities = || input.activities.iter().flat_map(|a| &a.values).copied();
    let known = n_hidden(input) > 0 && activities().all(|a| (0.0..=1.0).contains(&a));
    recorded.or_else(|| known.then(|| activities().filter(|a| is(*a)).count()))
}

fn n_hidden(input: &Input) -> usize {
    input.activities.iter().map(|a| a.values.len()).sum()
}

fn asleep(input: &Input, n: usize, [word, when]: [&str; 2], advice: &str) -> Finding {
    let total = n_hidden(input);
    if n == 0 {
        let what = format!("No hidden unit is {word} ({when} on).");
        return Finding::new(Level::Good, what, "");
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
    let advice = if level == Level::Note { "A few are harmless." } else { advice };
    Finding::new(level, what, advice)
}

/// Chains that follow the model have, once it fits, about the free energy of the data. The
/// distance allowed is 5 nats and a twentieth of a nat for each value of a sample.
pub(super) fn chains(input: &Input) -> Option<Finding> {
    let end = |name: &str| {
        let values = metric(input, name);
        let end = tail(&values, 0.25);
        (!end.is_empty()).then(|| end.iter().sum::<f64>() / end.len() as f64)
    };
    let (data, chains) = (end("free_energy.data")?, end("free_energy.chains")?);
    let samples = input.data_samples.iter().chain(&input.model_samples);
    let n_values = samples.map(Vec::len).max().unwrap_or(0);
    let (away, allowed) = (chains - data, 5.0 + 0.05 * n_values as f64);
    let seen = format!(
        "The free energy of the chains is {} nats, that of the data {}",
        number(chains),
        number(data)
    );
    if !away.is_finite() || away.abs() <= allowed {
        return away.is_finite().then(|| {
            Finding::new(Level::Good, format!("{seen}: the chains stay with the data."), "")
        });
    }
    let why = if away > 0.0 {
        "the chains do not reach where the data lies"
    } else {
        "the chains sit in deep wells that the data does not fill"
    };
    Some(Finding::new(Level::Warning, format!("{seen}: {why}, so they do not mix."), mixing(input)))
}

fn mixing(input: &Input) -> String {
    let more = |key: &str, other: &str| match setting(&input.config, key) {
        Some(x) => format!("`--{key} {}`", (x * 5.0).round()),
        None => other.into(),
    };
    let (chains, k) = (more("chains", "more `--chains`"), more("k", "a larger `--k`"));
    if text_setting(&input.config, "rule") == Some("pt") {
        return format!("Try {chains}, {k}, or more `--replicas`.");
    }
    format!("Try {chains}, {k}, or tempering with `--rule pt`.")
}

/// Samples of the model that are all alike, measured by their variance beside that of the data.
/// Probabilities vary less than the values drawn from them, so a third of it is not unusual.
pub(super) fn collapse(input: &Input) -> Option<Finding> {
    let (data, model) = (variance(&input.data_samples)?, variance(&input.model_samples)?);
    if data <= 0.0 {
        return None;
    }
    let share = model / data;
    let seen = format!("Samples of the model vary {} as much as the data", percent(share));
    if share < 0.03 {
        let what = format!("{seen}: the chains have collapsed onto one pattern.");
        return Some(Finding::new(Level::Problem, what, mixing(input)));
    }
    if share < 0.15 {
        let what = format!("{seen}: they show only part of it.");
        return Some(Finding::new(Level::Warning, what, mixing(input)));
    }
    Some(Finding::new(Level::Good, format!("{seen}."), ""))
}

fn percent(share: f64) -> String {
    format!("{} %", fixed(100.0 * share, usize::from(share < 0.1)))
}

/// The variance of each value over samples, summed; nothing for fewer than 5 of equal length.
fn variance(samples: &[Vec<f64>]) -> Option<f64> {
    let (n, width) = (samples.len() as f64, samples.first()?.len());
    if samples.len() < 5 || samples.iter().any(|s| s.len() != width) {
        return None;
    }
    let of_column = |j: usize| {
        let mean = samples.iter().map(|s| s[j]).sum::<f64>() / n;
        samples.iter().map(|s| (s[j] - mean).powi(2)).sum::<f64>() / n
    };
    Some((0..width).map(of_column).sum::<f64>()).filter(|v| v.is_finite())
}

/// Mean field that uses every sweep it has.
pub(super) fn mean_field(input: &Input) -> Option<Finding> {
    const DEFAULT_LIMIT: f64 = 30.0;
    let sweeps = metric(input, "mean_field_sweeps");
    let typical = median(tail(&sweeps, 0.25))?;
    let limit = setting(&input.config, "mean-field-sweeps").unwrap_or(DEFAULT_LIMIT);
    if typical < limit {
        let what =
            format!("Mean field settles after {} of at most {limit} sweeps.", number(typical));
        return Some(Finding::new(Level::Good, what, ""));
    }
    let what = format!("Mean field did not settle within {limit} sweeps at the end of the run.");
    let advice = format!(
        "Allow more with `--mean-field-sweeps {}`, lower `--learning-rate`, or use `--posterior gibbs`.",
        3.0 * limit
    );
    Some(Finding::new(Level::Warning, what, advice))
}

/// Weights that hardly left their start, or that grew out of hand.
pub(super) fn weights(input: &Input) -> Option<Finding> {
    let start = setting(&input.config, "initial-std").unwrap_or(0.01);
    let judged = input.weights.iter().filter(|w| !w.values.is_empty()).map(|w| {
        let size = (w.values.iter().map(|x| x * x).sum::<f64>() / w.values.len() as f64).sqrt();
        let most = w.values.iter().fold(0.0, |m, x| f64::max(m, x.abs()));
        judge_weights(&w.name, size, most, start)
    });
    judged.min_by_key(|f| f.level)
}

fn judge_weights(name: &str, size: f64, most: f64, start: f64) -> Finding {
    if !size.is_finite() {
        let what = format!("The weights of {name} hold numbers that are not finite.");
        let advice = "Train again with a lower `--learning-rate`, from the last good checkpoint.";
        return Finding::new(Level::Problem, what, advice);
    }
    let seen = format!("The weights of {name} have a typical size of {}", rough(size));
    if size < 1.2 * start {
        let what = format!("{seen}: they hardly left their start ({}).", number(start));
        let advice = "Train longer with more `--epochs`, or raise `--learning-rate`.";
        return Finding::new(Level::Warning, what, advice);
    }
    if size > 3.0 || most > 30.0 {
        let what =
            format!("{seen}, up to {}: they are so large that chains hardly move.", rough(most));
        let advice = "Raise `--l2`, lower `--learning-rate`, or set `--max-norm 5`.";
        return Finding::new(Level::Warning, what, advice);
    }
    Finding::new(Level::Good, format!("{seen}, up to {}.", rough(most)), "")
}

#[cfg(test)]
mod tests;
