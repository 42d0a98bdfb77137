//! What methods of inference say, as text and tables.

use crate::output::cell;
use harmonium::Model;
use harmonium::evaluation::log_partition::LogPartition;
use harmonium::exact::By;
use harmonium::graph::Node;
use harmonium::model::{Answer, Approach, Course, Inferred, MostProbable, Side};
use std::fmt::Write as _;

/// Units whose probabilities are shown, and whose states are.
const SHOWN: usize = 16;
const SHOWN_STATES: usize = 100;

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
            if answer.log_z.is_none() { "-".into() } else { answer.side.name().into() },
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
    if let Some(p) = best.log_probability(inferred) {
        let _ = write!(text, "; ln p = {p:.6}");
    }
    let written = |s: &Option<usize>| s.map_or("-".to_owned(), |s| s.to_string());
    let states: Vec<String> = best.states.iter().take(SHOWN_STATES).map(written).collect();
    let more = if best.states.len() > SHOWN_STATES { " ..." } else { "" };
    let _ = write!(text, "\n  states {}{more}", states.join(" "));
    text
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
