//! What methods of inference say, as JSON and as warnings: the same for every face.

use super::{Answer, Course, Inferred, Side};
use crate::exact::By;
use crate::graph::Node;
use crate::model::MostProbable;
use crate::run::Model;
use serde_json::{Value, json};

impl Side {
    /// Its word in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Lower => "lower",
            Self::Upper => "upper",
            Self::Unknown => "neither",
        }
    }
}

impl Inferred {
    /// What should be known about the answers before they are believed.
    pub fn warnings(&self) -> Vec<String> {
        let alone = self.answers.len() == 1;
        self.answers.iter().filter_map(|answer| answer.warning(alone)).collect()
    }

    /// All answers, and which of them to trust; the probabilities of units are part of it where `units` are wanted.
    pub fn to_json(&self, model: &Model, units: bool) -> Value {
        let answers: Vec<Value> = self.answers.iter().map(Answer::to_json).collect();
        let mut value = json!({ "n_units": self.graph.nodes().len(), "answers": answers });
        if let Some(answer) = self.trusted_log_z() {
            value["log_z"] = json!(answer.log_z);
            value["method"] = json!(answer.approach.name());
            value["bound"] = json!(answer.side.name());
        }
        if let Some(log_evidence) = self.log_evidence {
            value["log_evidence"] = json!(log_evidence);
        }
        let (lower, upper) = self.bounds();
        value["lower_bound"] = json!(lower);
        value["upper_bound"] = json!(upper);
        if let Some(answer) = self.trusted_marginals() {
            value["marginals_method"] = json!(answer.approach.name());
            if let Some(marginals) = answer.marginals.as_ref().filter(|_| units) {
                let unit = |(node, p): (&Node, &Vec<f64>)| json!({ "unit": model.unit_name(node.layer, node.unit), "probabilities": p });
                let units = self.graph.nodes().iter().zip(&marginals.nodes).map(unit);
                value["units"] = units.collect();
            }
        }
        value
    }
}

impl Answer {
    /// What should be known about it; the table of several answers shows more than a line does.
    fn warning(&self, alone: bool) -> Option<String> {
        let name = self.approach.name();
        match &self.course {
            Course::Sampled { mixed: false, sweeps, r_hat, .. } => {
                let r_hat = r_hat.map_or(String::new(), |r| format!(": R-hat {r:.2}"));
                Some(format!(
                    "the chains have not mixed after {sweeps} sweeps{r_hat}; the probabilities of `gibbs` may be wrong"
                ))
            }
            Course::Iterated { fixed_points, spread, .. } if *fixed_points > 1 && alone => {
                Some(format!(
                    "`{name}` has {fixed_points} fixed points, whose probabilities differ by up to {spread:.3}: the one with the largest ln Z is shown"
                ))
            }
            Course::Iterated { converged: false, .. } if alone => Some(format!(
                "`{name}` has not converged: ln Z is a bound all the same, the probabilities are rough"
            )),
            Course::Annealed(found) if found.is_unsettled() => {
                let why: Vec<String> = found.doubts.iter().map(ToString::to_string).collect();
                Some(format!(
                    "ln Z by `ais` is unsettled, and its interval may miss: {}",
                    why.join("; ")
                ))
            }
            _ => None,
        }
    }

    /// What one method says, and how it went.
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "method": self.approach.name(), "log_z": self.log_z, "bound": self.side.name(),
            "largest_error": self.largest_error, "seconds": self.seconds,
        });
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), self.course.to_json()) {
            value.extend(more);
        }
        value
    }
}

impl Course {
    fn to_json(&self) -> Value {
        match self {
            Self::Summed { by, log2_terms, bytes, width, recomputed } => {
                let by = match by {
                    None => "closed form",
                    Some(By::Enumeration) => "enumeration",
                    Some(By::Elimination) => "junction tree",
                };
                json!({ "converged": true, "by": by, "log2_terms": log2_terms, "bytes": bytes,
                        "width": width, "recomputed": recomputed })
            }
            Self::Iterated { converged, starts, n_converged, fixed_points, spread, first } => {
                json!({
                    "converged": converged, "starts": starts, "converged_starts": n_converged,
                    "fixed_points": fixed_points, "spread": spread, "log_z_from_nothing": first,
                })
            }
            Self::Sampled { sweeps, r_hat, mixed, errors } => {
                let largest = errors.iter().flatten().copied().fold(0.0, f64::max);
                json!({ "converged": mixed, "sweeps": sweeps, "r_hat": r_hat,
                        "largest_std_error": largest })
            }
            Self::Annealed(found) => {
                let mut of = json!(found);
                if let Some(map) = of.as_object_mut() {
                    map.retain(|key, v| !v.is_null() && key != "method" && key != "log_z");
                    map.insert("converged".into(), json!(!found.is_unsettled()));
                }
                of
            }
            Self::Failed(error) => {
                json!({ "converged": false, "error": error.to_string(), "hint": error.hint() })
            }
        }
    }
}

impl MostProbable {
    /// $\ln p$ of the state among the free units, where ln Z is exact.
    pub fn log_probability(&self, inferred: &Inferred) -> Option<f64> {
        let exact = inferred.answers.iter().find(|a| a.is_exact())?;
        Some(self.mode.log_weight - exact.log_z?)
    }

    /// The state, its energy, and whether it is proved to be the best.
    pub fn to_json(&self, inferred: Option<&Inferred>) -> Value {
        let mode = &self.mode;
        json!({
            "energy": self.energy, "method": self.by.name(), "proved": mode.is_proved(),
            "least_energy": mode.upper.is_finite().then_some(-mode.upper),
            "starts": mode.starts, "hits": mode.hits, "states": self.states,
            "log_probability": inferred.and_then(|inferred| self.log_probability(inferred)),
        })
    }
}
