//! Which curves a run has, in the order a reader wants them.
//!
//! A metric is named `family` or `family.part`; the parts of a family share a drawing, so that
//! training and validation, or data and chains, lie over each other. Metrics that are not known
//! here are drawn all the same, after the others.

use super::axis::Spacing;
use super::curves::{Curves, Series};
use harmonium::run::Epoch;
use std::collections::{BTreeMap, BTreeSet};

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

const KNOWN: [Known; 15] = [
    known("error_rate", "Error rate", "share", "Lower is better."),
    known(
        "average_precision",
        "Mean average precision",
        "share",
        "Higher is better: how well each tag orders the rows.",
    ),
    known("loss", "Loss", "per row", "Lower is better; nothing is dropped while it is measured."),
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
pub(super) fn charts(epochs: &[Epoch]) -> Vec<Chart<'static>> {
    let values: Vec<BTreeMap<&str, f64>> = epochs.iter().map(values).collect();
    let names: BTreeSet<&str> = values.iter().flat_map(|v| v.keys().copied()).collect();
    let families: BTreeSet<&str> = names.iter().map(|n| family(n)).collect();
    let rank = |f: &str| KNOWN.iter().position(|k| k.family == f).unwrap_or(KNOWN.len());
    let mut families: Vec<&str> = families.into_iter().collect();
    families.sort_by_key(|f| rank(f));
    let (x_label, x) = time(epochs);
    let chart = |f: &str| {
        let found = KNOWN.iter().find(|k| k.family == f);
        let mut members: Vec<&str> = names.iter().copied().filter(|n| family(n) == f).collect();
        // What others are compared with comes first.
        members.sort_by_key(|n| part(n) != "train");
        Chart {
            title: found.map_or_else(|| spaced(f), |k| k.title.into()),
            meaning: found.map_or("", |k| k.meaning),
            unit: found.map_or("", |k| k.unit),
            family: f.into(),
            series: members
                .iter()
                .map(|n| Series { name: part(n), points: points(&values, &x, n) })
                .collect(),
            x_label,
        }
    };
    families.into_iter().map(chart).collect()
}

/// The numbers of an epoch by their names; those that were not taken are left out.
fn values(epoch: &Epoch) -> BTreeMap<&str, f64> {
    let own = [
        ("learning_rate", Some(epoch.learning_rate)),
        ("gradient_norm", Some(epoch.gradient_norm)),
        ("update_ratio", Some(epoch.update_ratio)),
        ("mean_field_sweeps", epoch.mean_field_sweeps),
        ("mean_field_unconverged", epoch.mean_field_unconverged.map(|n| n as f64)),
    ];
    let own = own.into_iter().filter_map(|(name, value)| Some((name, value?)));
    own.chain(epoch.measurements.iter().map(|m| (m.name.as_str(), m.value))).collect()
}

/// Epochs where every event has its own, else steps.
fn time(epochs: &[Epoch]) -> (&'static str, Vec<f64>) {
    if epochs.windows(2).all(|w| w[0].epoch < w[1].epoch) {
        return ("epoch", epochs.iter().map(|e| e.epoch as f64).collect());
    }
    ("step", epochs.iter().map(|e| e.step as f64).collect())
}

fn points(values: &[BTreeMap<&str, f64>], x: &[f64], name: &str) -> Vec<(f64, f64)> {
    values.iter().zip(x).filter_map(|(v, x)| Some((*x, *v.get(name)?))).collect()
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
    use harmonium::training::Measurement;

    fn epochs(names: &[&str]) -> Vec<Epoch> {
        let measured = |epoch: u64| {
            let measurement = |n: &&str| {
                let (name, value) = ((*n).into(), epoch as f64);
                Measurement { name, value, std_error: None }
            };
            names.iter().map(measurement).collect::<Vec<_>>().into()
        };
        let epoch = |e: u64| Epoch {
            epoch: e,
            step: 10 * e,
            learning_rate: 0.01,
            gradient_norm: 1.0,
            update_ratio: 1e-3,
            measurements: measured(e),
            ..Epoch::default()
        };
        (1..4).map(epoch).collect()
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
            "free_energy.train",
            "free_energy.chains",
        ];
        let charts = charts(&epochs(&names));
        let titles: Vec<&str> = charts.iter().map(|c| c.title.as_str()).collect();
        let expected = [
            "Log-likelihood",
            "Free-energy gap",
            "Free energy",
            "Size of an update",
            "Norm of the gradient",
            "Dead and saturated units",
            "Learning rate",
            "a",
        ];
        assert_eq!(titles, expected);
        let parts = |i: usize| charts[i].series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>();
        assert_eq!(parts(0), ["train", "validation"]);
        assert_eq!(parts(2), ["train", "chains"]);
        assert_eq!(parts(5), ["dead", "saturated"]);
        assert!(charts.iter().all(|c| c.svg().is_some()));
        assert!(charts[7].svg().unwrap().contains("strange&lt;one&gt;"));
    }

    #[test]
    fn events_of_one_epoch_are_told_apart_by_steps() {
        let mut epochs = epochs(&[]);
        assert_eq!(time(&epochs).0, "epoch");
        epochs[1].epoch = 1;
        assert_eq!(time(&epochs), ("step", vec![10.0, 20.0, 30.0]));
    }

    #[test]
    fn reconstruction_error_is_called_no_likelihood() {
        let charts = charts(&epochs(&["reconstruction_error"]));
        assert!(charts.iter().any(|c| c.meaning.contains("Not a likelihood")));
    }
}
