//! `harmonium score`: how probable the data is.

use super::logz;
use crate::args::{Common, ScoreArgs};
use crate::failure::Failure;
use crate::load::Labelling;
use crate::output::{self, Kind};
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::evaluation::baseline::Alone;
use harmonium::evaluation::bound::Terms;
use harmonium::evaluation::dbn::DbnLikelihood;
use harmonium::evaluation::likelihood::Estimate;
use harmonium::evaluation::log_partition::{Bracket, LogPartition};
use harmonium::evaluation::row_sums::How;
use harmonium::model::{Anomalies, Behind, Scoring, Visits};
use harmonium::{Dataset, Method, Model, Score};
use ndarray::Array2;
use serde_json::json;

pub(crate) fn run(args: &ScoreArgs, common: &Common) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        Kind::of(out)?;
        output::check_free(out, args.force)?;
    }
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    let asked = load::Asked {
        data: args.data.as_deref(),
        given: &args.given,
        reading: &args.reading,
        labelling: Labelling::AsRead,
        labels: args.labels.as_deref(),
        mask: None,
        known: &args.known,
    };
    let data = load::rows(&model, &asked, &mut terminal)?.data;
    if let Some(name) = &args.of {
        return conditional(args, common, &model, (&data, name), terminal);
    }
    let scoring = Scoring {
        method: method(&args.method),
        annealing: logz::settings(&args.annealing, common),
        draws: args.draws,
        visits: if args.stochastic { Visits::One } else { Visits::All },
    };
    if let Some(normal) = &args.anomaly {
        let asked = load::Asked { data: Some(normal), ..asked };
        let normal = load::rows(&model, &asked, &mut terminal)?.data;
        let found = model.anomalies(&data, &normal, &scoring, &mut terminal)?;
        drop(terminal);
        return tell_anomalies(&found, &model, args, common);
    }
    let score = model.score_with(&data, &scoring, &mut terminal)?;
    drop(terminal);
    warn(&score);
    // The score is told even where its rows cannot be written.
    let written = args.out.as_ref().map_or(Ok(()), |out| {
        let rows = Array2::from_shape_fn((score.n, 1), |(row, _)| score.rows[row]);
        let name = match score.method {
            Method::Pseudo => "pseudo_log_likelihood",
            Method::FreeEnergy => "free_energy",
            _ => "log_likelihood",
        };
        output::write_columns(out, args.force, &model, &rows, &[name.to_owned()])
    });
    if common.json {
        render::json(&score.to_json())?;
    } else {
        render::result(&as_text(&score))?;
    }
    written
}

/// Says how unusual the rows are, and writes the score and the p-value of each.
fn tell_anomalies(
    found: &Anomalies,
    model: &Model,
    args: &ScoreArgs,
    common: &Common,
) -> Result<(), Failure> {
    let written = args.out.as_ref().map_or(Ok(()), |out| {
        let value = |(row, column): (usize, usize)| [&found.scores, &found.p_values][column][row];
        let rows = Array2::from_shape_fn((found.scores.len(), 2), value);
        output::write_columns(out, args.force, model, &rows, &["score".into(), "p_value".into()])
    });
    if common.json {
        render::json(&found.to_json())?;
    } else {
        render::result(&found.in_words())?;
    }
    written
}

/// The score of one modality given the others.
fn conditional(
    args: &ScoreArgs,
    common: &Common,
    model: &Model,
    (data, name): (&Dataset, &str),
    mut terminal: Terminal,
) -> Result<(), Failure> {
    let known = model.without_modality(data, name)?;
    let score = model.score_given(data, &known, common.seed(), &mut terminal)?;
    drop(terminal);
    if score.bracket == Bracket::Unsettled {
        render::warn("the interval of the conditional log-likelihood has not settled");
    }
    if let Some(out) = &args.out {
        let rows = Array2::from_shape_fn((score.rows.len(), 1), |(row, _)| score.rows[row]);
        output::write_columns(out, args.force, model, &rows, &["log_likelihood".to_owned()])?;
    }
    if common.json {
        let mut value = score.to_json();
        value["of"] = json!(name);
        return render::json(&value);
    }
    render::result(&format!("{name}: {}", render::conditional::text(&score)))
}

/// Says on stderr why an interval is not settled, and what would help.
fn warn(score: &Score) {
    if let Behind::Estimated { log_z, .. } | Behind::Drawn { log_z, .. } = &score.behind {
        logz::warn(log_z);
    }
    let (_, rows) = score.doubts();
    if !rows.is_empty() {
        let why: Vec<String> = rows.iter().map(ToString::to_string).collect();
        render::aside(&format!(
            "warning: the sums of the rows are unsettled, and the interval may miss: {}\n\
             hint: --method bound gives a lower end that holds",
            why.join("; ")
        ));
    }
}

fn method(word: &str) -> Method {
    match word {
        "exact" => Method::Exact,
        "ais" => Method::Ais,
        "bound" => Method::Bound,
        "importance" => Method::Importance,
        "pseudo" => Method::Pseudo,
        "free-energy" => Method::FreeEnergy,
        _ => Method::Auto,
    }
}

fn as_text(score: &Score) -> String {
    let Score { mean, data_std_error, n, rows, .. } = score;
    let spread = render::error(*data_std_error, 4);
    let bits = score.bits_per_dimension();
    let text = match &score.behind {
        Behind::Exact(log_z) => format!(
            "mean log-likelihood of {n} rows: {mean:.4} ± {spread} nats (exact; the error is the data's)
  ln Z = {log_z:.6}, {bits:.4} bits per dimension, total {:.4}",
            rows.iter().sum::<f64>()
        ),
        Behind::Estimated { estimate, log_z, how, terms } => {
            let said = describe(score, estimate, log_z, *how, bits);
            let apart = terms.map(|terms| in_words(&terms, log_z)).unwrap_or_default();
            format!("{said}{apart}")
        }
        Behind::Drawn { found, log_z } => drawn(found, log_z),
        _ if score.method == Method::Pseudo => format!(
            "mean log pseudo-likelihood of {n} rows: {mean:.4} ± {spread} nats
  each unit given all the others: a score of its own, not a likelihood"
        ),
        _ => format!(
            "mean free energy of {n} rows: {mean:.4} ± {spread} nats
  only differences between rows of one model mean something: ln Z is missing"
        ),
    };
    let text = format!("{text}{}{}", units(score), beside(score));
    match score.error_rate {
        Some(rate) => {
            let percent = 100.0 * rate;
            format!("{text}\n  {percent:.2} % of the labels are not the most probable class")
        }
        None => text,
    }
}

/// In which units densities are, in words.
fn units(score: &Score) -> String {
    let Some(log_slope) = score.log_slope else { return String::new() };
    format!(
        "\n  densities of numbers are in the units of the table: {log_slope:+.4} nats for the scale they are learned on"
    )
}

/// The baselines in words.
fn beside(score: &Score) -> String {
    let (baselines, gain) = match (&score.baseline, &score.gain) {
        (Ok(baselines), Some(gain)) => (baselines, gain),
        (Err(_), _) if score.log_likelihood().is_none() => return String::new(),
        (Err(why), _) => return format!("\n  no baseline: {why}"),
        _ => return String::new(),
    };
    let line = |name: &str, alone: &Alone| {
        format!(
            "\n  {name}: {:.4} nats, ± {} the data's",
            alone.mean,
            render::error(alone.std_error, 4)
        )
    };
    let mut text = line("independent columns", &baselines.independent);
    if let Some(gaussian) = &baselines.gaussian {
        text += &line("one full Gaussian", gaussian);
    }
    let (nats, error) = (gain.nats, render::error(gain.std_error, 4));
    let over = gain.over;
    text + &if gain.is_none() {
        format!("\n  no better than {over}: {nats:+.4} ± {error} nats per row")
    } else {
        format!("\n  {nats:.4} ± {error} nats per row better than {over}")
    }
}

/// Draws of the recognition distribution in words.
fn drawn(found: &DbnLikelihood, log_z: &LogPartition) -> String {
    let DbnLikelihood { n, n_draws, bound, bound_std_error, estimate, .. } = found;
    let bound_std_error = render::error(*bound_std_error, 4);
    let LogPartition { log_z: mean, lower, upper, method, bracket, .. } = log_z;
    format!(
        "mean log-likelihood of {n} rows, estimated from below with {n_draws} draws each:
  variational bound    {bound:.4} ± {bound_std_error} nats
  importance sampling  {estimate:.4} ± {} nats
  ln Z of the top RBM = {mean:.4}, between {lower:.4} and {upper:.4} ({method:?}, {bracket:?}); the data's error is {}",
        render::error(found.estimate_std_error, 4),
        render::error(found.data_std_error, 4)
    )
}

/// An estimated log-likelihood in words.
fn describe(
    score: &Score,
    estimate: &Estimate,
    log_z: &LogPartition,
    how: How,
    bits: f64,
) -> String {
    let Estimate { mean, lower, upper, std_error, n, .. } = estimate;
    let kind = match estimate.bracket {
        Bracket::Bound => "bounds",
        Bracket::Heuristic => "as good as the chains mixed",
        Bracket::Unsettled => "unsettled, and may miss",
    };
    let said = if score.method == Method::Bound {
        format!("variational bound on the mean log-likelihood of {n} rows: {mean:.4} nats")
    } else {
        format!("mean log-likelihood of {n} rows: {mean:.4} nats")
    };
    let interval = if how == How::Bounded {
        format!("not below {lower:.4}: that holds whatever mean field missed")
    } else {
        format!("between {lower:.4} and {upper:.4}: {kind}")
    };
    let rows = match how {
        How::Exact => "exact",
        How::Bounded => "bounded by mean field",
        How::Annealed => "annealed, because hidden units see each other",
    };
    format!(
        "{said}
  {interval}; ± {std_error:.4} is ln Z's and the rows' own, ± {} the data's
  {bits:.4} bits per dimension; sums of the rows: {rows}
  {}",
        render::error(score.data_std_error, 4),
        logz::describe(log_z, None).replace('\n', "\n  ")
    )
}

/// The terms of the bound in the letters of the literature, `ln Z` with its sign.
fn in_words(terms: &Terms, log_z: &LogPartition) -> String {
    let Terms { held_free, free_free, entropy, held_held, own, constant } = terms;
    let minus = -log_z.log_z;
    format!(
        "\n  = A {held_free:+.4} (visible with hidden) B {free_free:+.4} (hidden with hidden) C {entropy:+.4} (entropy)
    visible {held_held:+.4}, biases {own:+.4}, constant {constant:+.4}, ln Z {minus:+.4}"
    )
}
