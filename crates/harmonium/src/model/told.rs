//! Results as JSON: the keys that every face shares.

use super::{Behind, Classified, Completed, Conditional, Drawn, Method, Score};
use crate::evaluation::log_partition::LogPartition;
use crate::evaluation::row_sums::How;
use serde_json::{Value, json};

impl LogPartition {
    /// $\ln Z$ with its interval: `log_z`, `std_error`, `lower`, `upper`, `bracket`, `method`, and what
    /// stands behind them where it is known.
    pub fn to_json(&self) -> Value {
        let mut value = json!(self);
        if let Some(map) = value.as_object_mut() {
            map.retain(|_, v| !v.is_null());
            map.insert("width".into(), json!(self.width()));
        }
        value
    }
}

impl Drawn {
    /// How samples were found, and whether they can be trusted.
    pub fn to_json(&self) -> Value {
        let trust = &self.trust;
        json!({
            "n": self.values.nrows(), "sweeps": self.sweeps,
            "method": self.method.name(), "verdict": trust.verdict, "r_hat": trust.r_hat,
            "effective_samples": trust.effective_samples, "scalar": trust.scalar,
            "autocorrelation_time": trust.autocorrelation_time, "round_trips": self.round_trips,
        })
    }
}

impl Completed {
    /// How missing values were found, and whether they can be trusted.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "n": self.values.nrows(), "missing": self.n_missing, "sweeps": self.sweeps,
            "method": self.method.name(), "verdict": self.verdict,
            "r_hat": self.r_hat, "largest_error": self.largest_error(),
        });
        if let Some(classes) = &self.classes {
            value["classes"] = json!(classes);
        }
        if let Some((method, verdict)) = self.drawn_by {
            value["alternatives"] = json!({ "method": method.name(), "verdict": verdict });
        }
        value
    }
}

impl Conditional {
    /// The score, its interval, its baseline, by row and by cell.
    pub fn to_json(&self) -> Value {
        let (baseline, reason) = match self.baseline {
            Ok(baseline) => (Some(baseline), None),
            Err(why) => (None, Some(why)),
        };
        let mut value = json!({
            "log_likelihood": self.mean,
            "std_error": self.std_error,
            "data_std_error": self.data_std_error,
            "lower": self.lower,
            "upper": self.upper,
            "bracket": self.bracket,
            "method": self.method(),
            "n": self.rows.len(),
            "cells": self.n_asked,
            "per_cell": self.per_cell(),
            "per_cell_lower": self.in_cells(self.lower),
            "per_cell_upper": self.in_cells(self.upper),
            "baseline": baseline,
            "per_cell_baseline": baseline.map(|b| self.in_cells(b)),
        });
        if let Some(why) = reason {
            value["baseline_reason"] = json!(why);
        }
        if !self.doubts.is_empty() {
            value["doubts"] = json!(self.doubts);
        }
        value
    }
}

impl Classified {
    /// How rows were classified, and how that agrees with their labels.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "method": self.method,
            "n": self.predicted.len(),
            "classes": self.classes,
            "predicted": self.counts(),
            "error_rate": null,
            "std_error": null,
        });
        if let Some(error) = self.largest_std_error() {
            value["largest_probability_std_error"] = json!(error);
        }
        if let Some(errors) = &self.errors {
            value["error_rate"] = json!(errors.rate);
            value["std_error"] = json!(errors.std_error);
            value["lower"] = json!(errors.lower);
            value["upper"] = json!(errors.upper);
            let rows = errors.confusion.rows().into_iter().map(|row| row.to_vec());
            value["confusion"] = json!(rows.collect::<Vec<_>>());
        }
        if let Some(scores) = &self.scores {
            value["top_errors"] = json!(scores.top_errors);
            value["calibration_error"] = json!(scores.calibration_error);
            value["log_loss"] = json!(scores.log_loss);
        }
        value
    }
}

impl Score {
    /// The score, its interval, its baselines and what stands behind it.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "method": self.method,
            "n": self.n,
            "data_std_error": self.data_std_error,
            "log_likelihood": self.log_likelihood(),
        });
        extend(&mut value, self.baseline_json());
        let Some((lower, upper)) = self.interval() else {
            let key = match self.method {
                Method::Pseudo => "pseudo_log_likelihood",
                _ => "free_energy",
            };
            value[key] = json!(self.mean);
            value["per_feature"] = json!(self.mean / self.dimensions as f64);
            return value;
        };
        let more = json!({
            "std_error": self.std_error(),
            "lower": lower,
            "upper": upper,
            "bracket": self.bracket(),
            "total": self.rows.iter().sum::<f64>(),
            "per_feature": self.mean / self.dimensions as f64,
            "bits_per_dim": self.bits_per_dimension(),
        });
        extend(&mut value, more);
        extend(&mut value, self.behind_json());
        let (log_z, rows) = self.doubts();
        if !(log_z.is_empty() && rows.is_empty()) {
            value["doubts"] = json!(log_z.iter().chain(rows).collect::<Vec<_>>());
        }
        if let Some(log_slope) = self.log_slope {
            value["log_slope"] = json!(log_slope);
        }
        if let Some(rate) = self.error_rate {
            value["error_rate"] = json!(rate);
        }
        value
    }

    /// The baselines, or why there are none.
    fn baseline_json(&self) -> Value {
        match &self.baseline {
            Err(why) => json!({ "baseline": null, "baseline_reason": why }),
            Ok(found) => json!({
                "baseline": found.independent.mean,
                "baseline_std_error": found.independent.std_error,
                "baseline_gaussian": found.gaussian.as_ref().map(|g| g.mean),
                "gain": self.gain.map(|g| g.nats),
                "gain_std_error": self.gain.and_then(|g| g.std_error),
                "better_than_baseline": self.gain.map(|g| !g.is_none()),
            }),
        }
    }

    /// What stands behind a log-likelihood.
    fn behind_json(&self) -> Value {
        let of_log_z = |log_z: &LogPartition| {
            json!({
                "log_z": log_z.log_z,
                "log_z_lower": log_z.lower,
                "log_z_upper": log_z.upper,
                "log_z_method": log_z.method,
            })
        };
        match &self.behind {
            Behind::Exact(log_z) => json!({ "log_z": log_z }),
            Behind::Estimated { estimate, log_z, how, terms } => {
                let mut value = of_log_z(log_z);
                let rows = if *how == How::Exact { json!("exact") } else { json!(self.method) };
                let (bound, bound_lower) = (estimate.bound, estimate.bound_lower);
                let more = json!({ "bound": bound, "bound_lower": bound_lower, "rows": rows });
                extend(&mut value, more);
                if let Some(terms) = terms {
                    value["terms"] = json!({
                        "A": terms.held_free,
                        "B": terms.free_free,
                        "C": terms.entropy,
                        "visible": terms.held_held,
                        "bias": terms.own,
                        "constant": terms.constant,
                        "log_z": -log_z.log_z,
                    });
                }
                value
            }
            Behind::Drawn { found, log_z } => {
                let mut value = of_log_z(log_z);
                let (draws, bound) = (found.n_draws, found.bound);
                let more = json!({ "draws": draws, "bound": bound, "importance": found.estimate });
                extend(&mut value, more);
                value
            }
            Behind::Nothing => json!({}),
        }
    }
}

fn extend(value: &mut Value, more: Value) {
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
}
