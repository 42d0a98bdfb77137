//! Which curves a run has, in the order a reader wants them.
//!
//! A metric is named `family` or `family.part`; the parts of a family share a drawing, so that
//! training and validation, or data and chains, lie over each other. Metrics that are not known
//! here are drawn all the same, after the others.

use super::Record;
use super::axis::Spacing;
use super::curves::{Curves, Series};
use std::collections::BTreeSet;

/// What is known about a metric.
struct Known {
    family: &'static str,
    title: &'static str,
    unit: &'static str,
    meaning: &'static str,
}

const fn known(
    family: &'static str,
    title: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> Known {
    Known { family, title, unit, meaning }
}

const KNOWN: [Known; 13] = [
    known("log_likelihood", "Log-likelihood", "nats per sample", "Higher is better."),
    known("bound", "Lower bound of the log-likelihood", "nats per sample", "Higher is better."),
    known(
        "pseudo_likelihood",
        "Pseudo-likelihood",
        "nats per sample",
        "Higher is better; a stand-in for the log-likelihood, not comparable with it.",
    ),
    known(
        "free_energy_gap",
        "Free-energy gap",
        "nats",
        "Validation minus training data; a gap that keeps growing means overfitting.",
    ),
    known(
        "free_energy",
        "Free energy",
        "nats",
        "Chains that follow the model lie near the data once training has settled.",
    ),
    known(
        "reconstruction_error",
        "Reconstruction error",
        "per sample",
        "Not a likelihood: it can fall while the model gets worse.",
    ),
    known("update_ratio", "Size of an update", "update / weights", "About 0.001 is healthy."),
    known("gradient_norm", "Norm of the gradient", "norm", "Of the last batch, noise included."),
    known(
        "units",
        "Dead and saturated units",
        "units",
        "Hidden units that are never, or always, on.",
    ),
    known("learning_rate", "Learning rate", "per step", "As scheduled."),
    known(
        "mean_field_sweeps",
        "Mean-field sweeps",
        "sweeps",
        "Until the means of the hidden units stood still.",
    ),
    known("swap_acceptance", "Accepted swaps", "share", "Of parallel tempering."),
    known("error_rate", "Error rate", "share", "Lower is better."),
];

/// A drawing and its caption.
pub(super) struct Chart<'a> {
    /// Its heading.
    pub(super) title: String,
    /// What to look for.
    pub(super) meaning: &'static str,
    /// The unit of its values.
    pub(super) unit: &'static str,
    family: String,
    series: Vec<Series>,
    x_label: &'a str,
}

impl Chart<'_> {
    /// The drawing; nothing if no value can be shown.
    pub(super) fn svg(&self) -> Option<String> {
        let (spacing, reference) = match self.family.as_str() {
            "update_ratio" => (Spacing::Log, Some((1e-3, "healthy"))),
            "gradient_norm" => (Spacing::Log, None),
            "free_energy_gap" => (Spacing::Linear, Some((0.0, "no gap"))),
            _ => (Spacing::Linear, None),
        };
        let curves = Curves {
            title: &self.title,
            x_label: self.x_label,
            y_label: self.unit,
            spacing,
            reference,
            series: self.series.clone(),
        };
        curves.svg()
    }
}

/// All drawings of a run.
pub(super) fn charts(records: &[Record]) -> Vec<Chart<'static>> {
    let names: BTreeSet<&str> =
        records.iter().flat_map(|r| r.values.keys().map(String::as_str)).collect();
    let families: BTreeSet<&str> = names.iter().map(|n| family(n)).collect();
    let rank = |f: &str| KNOWN.iter().position(|k| k.family == f).unwrap_or(KNOWN.len());
    let mut families: Vec<&str> = families.into_iter().collect();
    families.sort_by_key(|f| rank(f));
    let (x_label, x) = time(records);
    let chart = |f: &str| {
        let found = KNOWN.iter().find(|k| k.family == f);
        let mut members: Vec<&str> = names.iter().copied().filter(|n| family(n) == f).collect();
        // What others are compared with comes first.
        members.sort_by_key(|n| part(n) != "data");
        Chart {
            title: found.map_or_else(|| spaced(f), |k| k.title.into()),
            meaning: found.map_or("", |k| k.meaning),
            unit: found.map_or("", |k| k.unit),
            family: f.into(),
            series: members
                .iter()
                .map(|n| Series { name: part(n), points: points(records, &x, n) })
                .collect(),
            x_label,
        }
    };
    families.into_iter().map(chart).collect()
}

/// Epochs where every record has its own, else steps.
fn time(records: &[Record]) -> (&'static str, Vec<f64>) {
    if records.windows(2).all(|w| w[0].epoch < w[1].epoch) {
        return ("epoch", records.iter().map(|r| r.epoch as f64).collect());
    }
    ("step", records.iter().map(|r| r.step as f64).collect())
}

fn points(records: &[Record], x: &[f64], name: &str) -> Vec<(f64, f64)> {
    let with_time = records.iter().zip(x);
    with_time.filter_map(|(r, x)| Some((*x, *r.values.get(name)?))).collect()
}

fn family(name: &str) -> &str {
    match name {
        "dead_units" | "saturated_units" => "units",
        _ => name.split_once('.').map_or(name, |(family, _)| family),
    }
}

fn part(name: &str) -> String {
    match name {
        "dead_units" => "dead".into(),
        "saturated_units" => "saturated".into(),
        _ => match name.split_once('.') {
            Some((_, "valid")) => "validation".into(),
            Some((_, part)) => spaced(part),
            None => spaced(name),
        },
    }
}

/// A name as words.
fn spaced(name: &str) -> String {
    name.replace(['_', '.'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(names: &[&str]) -> Vec<Record> {
        let values = |epoch: u64| names.iter().map(|n| ((*n).into(), epoch as f64)).collect();
        (1..4)
            .map(|e| Record { epoch: e, step: 10 * e, seconds: None, values: values(e) })
            .collect()
    }

    #[test]
    fn parts_share_a_drawing_and_the_score_comes_first() {
        let names = [
            "dead_units",
            "saturated_units",
            "a.strange<one>",
            "log_likelihood.valid",
            "log_likelihood.train",
            "free_energy_gap",
            "free_energy.data",
            "free_energy.chains",
        ];
        let charts = charts(&records(&names));
        let titles: Vec<&str> = charts.iter().map(|c| c.title.as_str()).collect();
        let expected =
            ["Log-likelihood", "Free-energy gap", "Free energy", "Dead and saturated units", "a"];
        assert_eq!(titles, expected);
        let parts = |i: usize| charts[i].series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>();
        assert_eq!(parts(0), ["train", "validation"]);
        assert_eq!(parts(3), ["dead", "saturated"]);
        assert!(charts.iter().all(|c| c.svg().is_some()));
        assert!(charts[4].svg().unwrap().contains("strange&lt;one&gt;"));
    }

    #[test]
    fn records_of_one_epoch_are_told_apart_by_steps() {
        let mut records = records(&["update_ratio"]);
        assert_eq!(time(&records).0, "epoch");
        records[1].epoch = 1;
        assert_eq!(time(&records), ("step", vec![10.0, 20.0, 30.0]));
    }

    #[test]
    fn reconstruction_error_is_called_no_likelihood() {
        let charts = charts(&records(&["reconstruction_error"]));
        assert!(charts[0].meaning.contains("Not a likelihood"));
    }
}
