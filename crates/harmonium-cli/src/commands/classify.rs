//! `harmonium classify`: the class of each row, by a model that learned labels.

use super::finetune::inputs::targets;
use crate::args::{ClassifyArgs, Common, KnownArgs};
use crate::failure::Failure;
use crate::load::Labelling;
use crate::output::{self, Kind};
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::Model;
use harmonium::evaluation::class_scores::ClassScores;
use harmonium::evaluation::error_rate::ErrorRate;
use harmonium::model::{Answered, ClassMethod, Classified, Classifying};
use harmonium::models::{Body, Network, Target};
use serde_json::{Value, json};
use std::fmt::Write;

pub(crate) fn run(args: &ClassifyArgs, common: &Common) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        if Kind::of(out)? == Kind::Png {
            return Err(Failure::new(
                format!("classes cannot be drawn in `{out}`"),
                "end it in .csv or .npy",
            ));
        }
        output::check_free(out, args.force)?;
    }
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    if let Body::Network(network) = &model.body
        && network.target() != Target::Classes
    {
        return answers(&model, network, args, common, terminal);
    }
    // Whether it knows classes is said before any data is read.
    model.class_names()?;
    let asked = load::Asked {
        data: Some(&args.data),
        given: &[],
        reading: &args.reading,
        labelling: Labelling::Whatever,
        labels: args.labels.as_deref(),
        mask: None,
        known: &KnownArgs::default(),
    };
    let data = load::rows(&model, &asked, &mut terminal)?.data;
    let classifying =
        Classifying { method: method(&args.method), draws: args.draws, seed: common.seed() };
    let found = model.classify_with(&data, &classifying, &mut terminal)?;
    drop(terminal);
    let written = args.out.as_ref().map_or(Ok(()), |out| write(out, args.force, &found));
    if common.json {
        render::json(&as_json(&found, args.out.as_deref()))?;
    } else {
        render::result(&as_text(&found, args.out.as_deref()))?;
    }
    written
}

/// What a net says that was not trained for classes: tags, values, or the input itself.
fn answers(
    model: &Model,
    network: &Network,
    args: &ClassifyArgs,
    common: &Common,
    mut terminal: Terminal,
) -> Result<(), Failure> {
    let data = load::data_for(model, &args.data, &args.reading, &mut terminal)?;
    let (variable, packed) = (args.targets_variable.clone(), args.targets_packed_bits);
    let open = |spec: &String| targets(spec, variable, packed, data.n_rows()).map(|found| found.0);
    let targets = args.targets.as_ref().map(open).transpose()?;
    let found = model.answer(&data, targets.as_ref(), &mut terminal)?;
    drop(terminal);
    let out = args.out.as_ref();
    let written =
        out.map_or(Ok(()), |out| output::write_values(out, args.force, &found.values, None));
    let Answered { values, loss, ranking, .. } = &found;
    let (n, word) = (values.nrows(), network.target().word());
    if common.json {
        render::json(&json!({
            "target": word, "n": n, "out": out, "loss": loss.map(|l| l.0),
            "std_error": loss.and_then(|l| l.1),
            "average_precision": ranking.map(|r| r.by_tag),
            "row_average_precision": ranking.map(|r| r.by_row),
            "precision_at_50": ranking.map(|r| r.precision_at_50),
            "n_tags": ranking.map(|r| r.n_tags),
        }))?;
        return written;
    }
    let mut text = format!("the {word} of {n} rows");
    if let Some((mean, error)) = loss {
        let _ = write!(text, "\n  mean loss {mean:.4} ± {}", render::error(*error, 4));
    }
    if let Some(r) = ranking {
        let _ = write!(
            text,
            "\n  mean average precision {:.4} over {} tags, {:.4} over rows; precision at 50 {:.4}",
            r.by_tag, r.n_tags, r.by_row, r.precision_at_50
        );
    }
    if let Some(out) = out {
        let _ = write!(text, "\n  written to `{out}`");
    }
    render::result(&text)?;
    written
}

fn method(word: &str) -> ClassMethod {
    match word {
        "exact" => ClassMethod::Exact,
        "mean-field" => ClassMethod::MeanField,
        "ais" => ClassMethod::Ais,
        "recognition" => ClassMethod::Recognition,
        "network" => ClassMethod::Network,
        _ => ClassMethod::Auto,
    }
}

/// The predicted class and all probabilities of each row under a header, or the probabilities alone.
fn write(out: &str, force: bool, found: &Classified) -> Result<(), Failure> {
    if Kind::of(out)? == Kind::Npy {
        return output::write_values(out, force, &found.probabilities, None);
    }
    let names = found.classes.iter().map(|name| output::cell(name));
    let mut text = format!("class,{}\n", names.collect::<Vec<_>>().join(","));
    for (row, &best) in found.probabilities.rows().into_iter().zip(&found.predicted) {
        text.push_str(&output::cell(&found.classes[best]));
        for p in row {
            // Writing to a string cannot fail.
            let _ = write!(text, ",{p}");
        }
        text.push('\n');
    }
    output::write_bytes(out, text.as_bytes(), force)
}

fn as_json(found: &Classified, out: Option<&str>) -> Value {
    let mut value = found.to_json();
    if let Some(out) = out {
        value["out"] = json!(out);
    }
    value
}

fn as_text(found: &Classified, out: Option<&str>) -> String {
    let n = found.predicted.len();
    let how = match found.method {
        ClassMethod::Exact => "exact".into(),
        ClassMethod::Network => "by the net".into(),
        ClassMethod::MeanField => {
            "by mean field for each class: an approximation whose error is not known".into()
        }
        method => {
            let error = found.largest_std_error();
            format!("by {method}; standard error at most {}", render::error(error, 4))
        }
    };
    let mut text = match &found.errors {
        Some(errors) => rate(errors),
        None => format!("the classes of {n} rows; no labels to compare them with"),
    };
    let _ = write!(text, "\n  p(class | row) {how}");
    if let Some(scores) = &found.scores {
        let _ = write!(text, "{}", believed(scores));
    }
    if let Some(out) = out {
        let _ = write!(text, "\n  classes and probabilities in `{out}`");
    }
    let _ = match &found.errors {
        Some(errors) => write!(text, "\n{}", confusion(&found.classes, errors)),
        None => write!(text, "\n{}", counts(found)),
    };
    text
}

fn rate(errors: &ErrorRate) -> String {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    format!(
        "{} % of {} rows are put in another class than their label: between {} and {} %",
        percent(errors.rate),
        errors.n,
        percent(errors.lower),
        percent(errors.upper)
    )
}

/// How far the probabilities can be believed.
fn believed(scores: &ClassScores) -> String {
    let ClassScores { top_errors, calibration_error, log_loss } = scores;
    let mut text = String::new();
    for (k, error) in (1..).zip(top_errors).skip(1).filter(|(_, error)| **error > 0.0) {
        let _ = write!(text, "\n  {:.2} % are not among the {k} most probable", 100.0 * error);
    }
    format!(
        "{text}\n  mean −ln p of the label {log_loss:.4} nats; confidence is off by {:.2} % on average \
         (calibration error)",
        100.0 * calibration_error
    )
}

/// Classes beyond which a table would not fit a terminal.
const SHOWN: usize = 16;

/// Rows of each class by prediction; of many classes only how often each is right.
fn confusion(classes: &[String], errors: &ErrorRate) -> String {
    let width = classes.iter().map(|c| c.chars().count()).max().unwrap_or(0).clamp(5, 24);
    let mut text = String::new();
    if classes.len() <= SHOWN {
        text.push_str("  rows by label (down) and prediction (across):\n  ");
        let _ = write!(text, "{:width$}", "");
        for name in classes {
            let _ = write!(text, " {name:>6.6}");
        }
        for (name, row) in classes.iter().zip(errors.confusion.rows()) {
            let _ = write!(text, "\n  {name:width$.width$}");
            for count in row {
                let _ = write!(text, " {count:>6}");
            }
        }
        return text;
    }
    text.push_str("  rows of each class, and how many of them were put there:");
    for (y, name) in classes.iter().enumerate() {
        let (right, all) = (errors.confusion[(y, y)], errors.confusion.row(y).sum());
        let _ = write!(text, "\n  {name:width$.width$} {all:>6} {right:>6}");
    }
    text
}

/// Rows that were put in each class.
fn counts(found: &Classified) -> String {
    let named = found.classes.iter().zip(found.counts());
    let lines: Vec<String> = named.map(|(name, n)| format!("  {name}  {n}")).collect();
    format!("  rows of each class:\n{}", lines.join("\n"))
}
