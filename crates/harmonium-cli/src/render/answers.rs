//! What methods of inference say, as text, JSON and tables.

use crate::failure::Failure;
use crate::output::cell;
use crate::render;
use harmonium::Model;
use harmonium::evaluation::log_partition::LogPartition;
use harmonium::exact::By;
use harmonium::graph::Node;
use harmonium::model::{Answer, Approach, Course, Inferred, MostProbable, Side};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Units whose probabilities are shown, and whose states are.
const SHOWN: usize = 16;
const SHOWN_STATES: usize = 100;

/// Says on stderr what should be known about a result.
pub(crate) fn warn(inferred: &Inferred) {
    for answer in &inferred.answers {
        match &answer.course {
            Course::Sampled { mixed: false, sweeps, r_hat, .. } => {
                let r_hat = r_hat.map_or(String::new(), |r| format!(": R-hat {r:.2}"));
                render::warn(&format!(
                    "the chains have not mixed after {sweeps} sweeps{r_hat}; the probabilities of `gibbs` may be wrong"
                ));
            }
            Course::Iterated { fixed_points, spread, .. }
                if *fixed_points > 1 && inferred.answers.len() == 1 =>
            {
                render::warn(&format!(
                    "`{}` has {fixed_points} fixed points, whose probabilities differ by up to {spread:.3}: the one with the largest ln Z is shown",
                    answer.approach.name()
                ));
            }
            Course::Iterated { converged: false, .. } if inferred.answers.len() == 1 => {
                render::warn(&format!(
                    "`{}` has not converged: ln Z is a bound all the same, the probabilities are rough",
                    answer.approach.name()
                ));
            }
            Course::Annealed(found) if found.is_unsettled() => {
                let why: Vec<String> = found.doubts.iter().map(ToString::to_string).collect();
                render::warn(&format!(
                    "ln Z by `ais` is unsettled, and its interval may miss: {}",
                    why.join("; ")
                ));
            }
            _ => {}
        }
    }
}

/// The result in words.
pub(crate) fn describe(model: &Model, inferred: &Inferred) -> String {
    let mut text = match &inferred.answers[..] {
        [answer] => one(answer),
        answers
            if answers.iter().all(|a| matches!(a.approach, Approach::Ais | Approach::Gibbs)) =>
        {
            answers.iter().map(one).collect::<Vec<_>>().join("\n")
        }
        answers => format!("{}\n{}", table(answers), advice(inferred)),
    };
    if let Some(log_evidence) = inferred.log_evidence {
        let _ = write!(text, "\nln p of what is given = {log_evidence:.6}");
    }
    let n = inferred.graph.nodes().len();
    if let Some(answer) = inferred.trusted_marginals().filter(|_| inferred.answers.len() <= 2) {
        let _ = write!(text, "\n{}", units(model, inferred, answer, n.min(SHOWN)));
        if n > SHOWN {
            let _ = write!(text, "\n  ... and {} more: --marginals FILE writes all", n - SHOWN);
        }
    }
    text
}

fn one(answer: &Answer) -> String {
    let how = course(answer);
    match (answer.log_z, answer.side) {
        (Some(z), Side::Exact) => format!("ln Z = {z:.6} (exact, {how})"),
        (Some(z), Side::Lower) => format!("ln Z >= {z:.6} ({how})"),
        (Some(z), Side::Upper) => format!("ln Z <= {z:.6} ({how})"),
        (Some(z), Side::Unknown) => format!("ln Z = {z:.6}, about ({how})"),
        (None, _) => format!("probabilities by {} ({how})", answer.approach.name()),
    }
}

/// What happened, in a few words.
fn course(answer: &Answer) -> String {
    match &answer.course {
        Course::Summed { by: None, .. } => "closed form".into(),
        Course::Summed { by: Some(By::Enumeration), log2_terms, .. } => {
            format!("2^{log2_terms:.1} terms enumerated")
        }
        Course::Summed { log2_terms, bytes, width, recomputed, .. } => {
            let again = if *recomputed { ", tables made twice" } else { "" };
            format!("width {width}, 2^{log2_terms:.1} terms, {}{again}", size(*bytes))
        }
        Course::Iterated { converged, starts, n_converged, fixed_points, spread, .. } => {
            match (converged, starts, fixed_points) {
                (false, 1, _) => "not converged".into(),
                (true, 1, _) => "converged".into(),
                (false, ..) => format!("not converged; {n_converged} of {starts} starts did"),
                (true, _, 1) => format!("{n_converged} of {starts} starts, one fixed point"),
                _ => format!(
                    "{n_converged} of {starts} starts, {fixed_points} fixed points {spread:.2} apart"
                ),
            }
        }
        Course::Sampled { sweeps, mixed, .. } => {
            format!("{sweeps} sweeps, {}", if *mixed { "mixed" } else { "not mixed" })
        }
        Course::Annealed(found) => {
            let LogPartition { lower, upper, .. } = **found;
            let settled = if found.is_unsettled() { ", unsettled" } else { "" };
            format!("{lower:.4} to {upper:.4}{settled}")
        }
        Course::Failed(error) => error.to_string(),
    }
}

fn size(bytes: f64) -> String {
    match bytes {
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b if b >= 1e6 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} kB", b / 1e3),
    }
}

fn bound(side: Side) -> &'static str {
    match side {
        Side::Exact => "exact",
        Side::Lower => "lower",
        Side::Upper => "upper",
        Side::Unknown => "neither",
    }
}

/// All answers side by side.
fn table(answers: &[Answer]) -> String {
    let mut rows = vec![
        ["method", "ln Z", "bounds", "unit error", "seconds", "how it went"].map(str::to_owned),
    ];
    for answer in answers {
        let failed = matches!(answer.course, Course::Failed(_));
        rows.push([
            answer.approach.name().to_owned(),
            answer.log_z.map_or("-".into(), |z| format!("{z:.6}")),
            if answer.log_z.is_none() { "-".into() } else { bound(answer.side).into() },
            answer.largest_error.filter(|_| !failed).map_or("-".into(), |e| format!("{e:.6}")),
            format!("{:.3}", answer.seconds),
            course(answer),
        ]);
    }
    let widths: Vec<usize> =
        (0..5).map(|k| rows.iter().map(|row| row[k].chars().count()).max().unwrap_or(0)).collect();
    let line = |row: &[String; 6]| {
        let mut line = String::new();
        for (k, width) in widths.iter().enumerate() {
            // Words to the left, numbers to the right.
            let _ = match k {
                0 | 2 => write!(line, "{:<width$}  ", row[k]),
                _ => write!(line, "{:>width$}  ", row[k]),
            };
        }
        format!("{line}{}", row[5])
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Which to trust.
fn advice(inferred: &Inferred) -> String {
    let (lower, upper) = inferred.bounds();
    let mut lines = Vec::new();
    match inferred.trusted_log_z() {
        Some(answer) if answer.is_exact() => {
            lines.push(format!("trust ln Z of {}: it is exact", answer.approach.name()));
        }
        Some(answer) => lines.push(format!(
            "trust ln Z of {}, within its interval ({})",
            answer.approach.name(),
            course(answer)
        )),
        None => lines.push("trust no single value of ln Z".to_owned()),
    }
    if let (Some(lower), Some(upper), false) =
        (lower, upper, inferred.answers.iter().any(Answer::is_exact))
    {
        lines.push(format!("for certain: {lower:.6} <= ln Z <= {upper:.6}"));
    }
    lines.push(match inferred.trusted_marginals() {
        Some(answer) => format!("trust the probabilities of {}", answer.approach.name()),
        None => "trust no probabilities: chains have not mixed, and iterations disagree".into(),
    });
    lines.join("\n")
}

/// A unit's state as a person writes it.
fn value(node: &Node, state: usize) -> String {
    node.values.get(state).map_or_else(|| state.to_string(), ToString::to_string)
}

/// The probabilities of the first units.
fn units(model: &Model, inferred: &Inferred, answer: &Answer, n: usize) -> String {
    let Some(marginals) = &answer.marginals else { return String::new() };
    let names: Vec<String> = inferred.graph.nodes()[..n]
        .iter()
        .map(|node| model.unit_name(node.layer, node.unit))
        .collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let line = |((name, node), p): ((&String, &Node), &Vec<f64>)| {
        let states = p.iter().enumerate().map(|(s, p)| format!("p({}) = {p:.6}", value(node, s)));
        format!("  {name:<width$}  {}", states.collect::<Vec<_>>().join("  "))
    };
    let lines = names.iter().zip(inferred.graph.nodes()).zip(&marginals.nodes).map(line);
    lines.collect::<Vec<_>>().join("\n")
}

/// The result as JSON; the probabilities of units are part of it where they are `few`.
pub(crate) fn as_json(model: &Model, inferred: &Inferred, few: bool) -> Result<Value, Failure> {
    let answers = inferred.answers.iter().map(answer_as_json).collect::<Result<Vec<_>, _>>()?;
    let mut value = json!({ "n_units": inferred.graph.nodes().len(), "answers": answers });
    if let Some(answer) = inferred.trusted_log_z() {
        value["log_z"] = json!(answer.log_z);
        value["method"] = json!(answer.approach.name());
        value["bound"] = json!(bound(answer.side));
    }
    if let Some(log_evidence) = inferred.log_evidence {
        value["log_evidence"] = json!(log_evidence);
    }
    let (lower, upper) = inferred.bounds();
    value["lower_bound"] = json!(lower);
    value["upper_bound"] = json!(upper);
    if let Some(answer) = inferred.trusted_marginals() {
        value["marginals_method"] = json!(answer.approach.name());
        if let Some(marginals) = answer.marginals.as_ref().filter(|_| few) {
            let unit = |(node, p): (&Node, &Vec<f64>)| json!({ "unit": model.unit_name(node.layer, node.unit), "probabilities": p });
            let units = inferred.graph.nodes().iter().zip(&marginals.nodes).map(unit);
            value["units"] = units.collect();
        }
    }
    Ok(value)
}

fn answer_as_json(answer: &Answer) -> Result<Value, Failure> {
    let mut value = json!({
        "method": answer.approach.name(), "log_z": answer.log_z, "bound": bound(answer.side),
        "largest_error": answer.largest_error, "seconds": answer.seconds,
    });
    let more = match &answer.course {
        Course::Summed { by, log2_terms, bytes, width, recomputed } => {
            let by = match by {
                None => "closed form",
                Some(By::Enumeration) => "enumeration",
                Some(By::Elimination) => "junction tree",
            };
            json!({ "converged": true, "by": by, "log2_terms": log2_terms, "bytes": bytes,
                    "width": width, "recomputed": recomputed })
        }
        Course::Iterated { converged, starts, n_converged, fixed_points, spread, first } => json!({
            "converged": converged, "starts": starts, "converged_starts": n_converged,
            "fixed_points": fixed_points, "spread": spread, "log_z_from_nothing": first,
        }),
        Course::Sampled { sweeps, r_hat, mixed, errors } => {
            let largest = errors.iter().flatten().copied().fold(0.0, f64::max);
            json!({ "converged": mixed, "sweeps": sweeps, "r_hat": r_hat,
                    "largest_std_error": largest })
        }
        Course::Annealed(found) => {
            let mut of = serde_json::to_value(found).map_err(|e| {
                Failure::new(format!("cannot write the result: {e}"), "report this")
            })?;
            if let Some(map) = of.as_object_mut() {
                map.retain(|key, v| !v.is_null() && key != "method" && key != "log_z");
                map.insert("converged".into(), json!(!found.is_unsettled()));
            }
            of
        }
        Course::Failed(error) => {
            json!({ "converged": false, "error": error.to_string(), "hint": error.hint() })
        }
    };
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    Ok(value)
}

/// The most probable state in words.
pub(crate) fn describe_map(best: &MostProbable, inferred: &Inferred) -> String {
    let mode = &best.mode;
    let proof = if mode.is_proved() {
        "proved to be the best".to_owned()
    } else if mode.upper.is_finite() {
        format!("not proved: no state is below {:.6}", -mode.upper)
    } else {
        "not proved".to_owned()
    };
    let hits = match (mode.starts, mode.is_proved()) {
        (starts, false) if starts > 1 => format!(", {} of {starts} starts", mode.hits),
        _ => String::new(),
    };
    let mut text =
        format!("most probable state: E = {:.6} ({}{hits}), {proof}", best.energy, best.by.name());
    if let Some(p) = log_probability(best, inferred) {
        let _ = write!(text, "; ln p = {p:.6}");
    }
    let written = |s: &Option<usize>| s.map_or("-".to_owned(), |s| s.to_string());
    let states: Vec<String> = best.states.iter().take(SHOWN_STATES).map(written).collect();
    let more = if best.states.len() > SHOWN_STATES { " ..." } else { "" };
    let _ = write!(text, "\n  states {}{more}", states.join(" "));
    text
}

/// $\ln p$ of the state among the free units, where ln Z is exact.
fn log_probability(best: &MostProbable, inferred: &Inferred) -> Option<f64> {
    let exact = inferred.answers.iter().find(|a| a.is_exact())?;
    Some(best.mode.log_weight - exact.log_z?)
}

/// The most probable state as JSON.
pub(crate) fn map_as_json(best: &MostProbable, inferred: &Inferred) -> Value {
    let mode = &best.mode;
    json!({
        "energy": best.energy, "method": best.by.name(), "proved": mode.is_proved(),
        "least_energy": mode.upper.is_finite().then_some(-mode.upper),
        "starts": mode.starts, "hits": mode.hits, "states": best.states,
        "log_probability": log_probability(best, inferred),
    })
}

/// A line for each state of each free unit.
pub(crate) fn marginals_csv(model: &Model, inferred: &Inferred, answer: &Answer) -> String {
    let errors = match &answer.course {
        Course::Sampled { errors, .. } => Some(errors),
        _ => None,
    };
    let mut text = String::from("unit,value,probability");
    text.push_str(if errors.is_some() { ",std_error\n" } else { "\n" });
    let Some(marginals) = &answer.marginals else { return text };
    for (u, (node, p)) in inferred.graph.nodes().iter().zip(&marginals.nodes).enumerate() {
        let name = cell(&model.unit_name(node.layer, node.unit));
        for (s, p) in p.iter().enumerate() {
            let _ = write!(text, "{name},{},{p}", value(node, s));
            if let Some(errors) = errors {
                let _ = write!(text, ",{}", errors[u][s]);
            }
            text.push('\n');
        }
    }
    text
}

/// A line for each pair of states of each pair of coupled units.
pub(crate) fn pairs_csv(model: &Model, inferred: &Inferred, answer: &Answer) -> String {
    let mut text = String::from("unit,value,other_unit,other_value,probability\n");
    let Some(marginals) = &answer.marginals else { return text };
    for (edge, pair) in inferred.graph.edges().iter().zip(&marginals.edges) {
        let (a, b) =
            (&inferred.graph.nodes()[edge.between.0], &inferred.graph.nodes()[edge.between.1]);
        let names = [a, b].map(|node| cell(&model.unit_name(node.layer, node.unit)));
        for (k, p) in pair.iter().enumerate() {
            let (s, t) = (k / b.n_states(), k % b.n_states());
            let (s, t) = (value(a, s), value(b, t));
            let _ = writeln!(text, "{},{s},{},{t},{p}", names[0], names[1]);
        }
    }
    text
}
