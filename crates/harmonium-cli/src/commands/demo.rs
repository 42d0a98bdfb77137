//! `harmonium demo`: a whole day's work in a few seconds.
//!
//! Trains a restricted Boltzmann machine on the embedded digits, small enough that its
//! log-likelihood can be summed exactly, and shows what it learned.

use super::{report, train as training};
use crate::args::train::TrainSettings;
use crate::args::{Common, DemoArgs};
use crate::failure::Failure;
use crate::output;
use crate::plan::Asked;
use crate::render;
use crate::render::picture::{Ink, Tone, mosaic};
use crate::render::progress::Terminal;
use harmonium::evaluation::baseline::Alone;
use harmonium::evaluation::filters::{projections, strongest_first};
use harmonium::model::{Behind, Drawing, Show, Training};
use harmonium::progress::Listener;
use harmonium::random::Stream;
use harmonium::run::Overwrite;
use harmonium::{Binarize, Dataset, Method, Model, Plan, Rbm, Score};
use harmonium_data::{Image, Part, Split, digits};
use serde_json::json;
use std::fmt::Write;
use std::time::Instant;

/// Digits kept apart to score on.
const TEST_ROWS: usize = 297;
/// Above this the partition function takes too long for a demonstration.
const EXACT_HIDDEN: usize = 24;
const IMAGE: Image = Image { height: 8, width: 8 };
const TILES: usize = 8;
const SWEEPS: usize = 1000;
const BATCH: usize = 50;
const RATE: f64 = 0.05;

/// What the demonstration found.
struct Findings {
    model: Model,
    seconds: f64,
    score: Score,
    train_score: Score,
    samples: Vec<Vec<f64>>,
}

pub(crate) fn run(args: &DemoArgs, common: &Common) -> Result<(), Failure> {
    if args.hidden == 0 || args.hidden > EXACT_HIDDEN {
        return Err(Failure::new(
            format!(
                "`--hidden {}` is not possible here: it goes from 1 to {EXACT_HIDDEN}",
                args.hidden
            ),
            "the demo sums log Z exactly; `harmonium train rbm digits` takes any number",
        ));
    }
    if let Some(out) = &args.out {
        // Asked before the work is done, not after.
        let run = std::path::Path::new(out).join("run.toml");
        if !args.force && run.symlink_metadata().is_ok() {
            return Err(output::taken(&run.display().to_string()));
        }
    }
    let (train_set, test_set) = data(common)?;
    let mut terminal = Terminal::new(common);
    let findings = learn(args, common, &train_set, &test_set, &mut terminal)?;
    if let Some(out) = &args.out {
        keep(args, out, common, &mut terminal)?;
    }
    drop(terminal);
    if common.json {
        return render::json(&as_json(&findings, args));
    }
    render::picture(&as_text(&findings, args, &train_set, &test_set))
}

/// Trains once more on all digits, the way `harmonium train` does, and writes the report.
fn keep(
    args: &DemoArgs,
    out: &str,
    common: &Common,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let settings = TrainSettings {
        hidden: Some(vec![args.hidden]),
        epochs: Some(args.epochs),
        batch: Some(BATCH),
        learning_rate: Some(RATE),
        ..TrainSettings::default()
    };
    let asked = Asked {
        data: Some("digits".into()),
        seed: common.seed(),
        precision: common.precision.clone(),
        settings,
        ..Asked::default()
    };
    let overwrite = if args.force { Overwrite::Yes } else { Overwrite::No };
    let (prepared, blueprint) = training::prepare("rbm", asked, terminal)?;
    training::start(&prepared, blueprint, out, overwrite, terminal)?;
    let page = std::path::Path::new(out).join("report.html").display().to_string();
    report::write(out, &page, common)?;
    terminal
        .note(&format!("the run, trained on all digits, is in `{out}`, its report in `{page}`"));
    Ok(())
}

fn data(common: &Common) -> Result<(Dataset, Dataset), Failure> {
    let (table, _) = digits::digits()?;
    let split = Split::shuffled(Part::Count(TEST_ROWS), Stream::new(common.seed()));
    let (train, test) = split.apply(&table)?;
    // Grey levels are probabilities, drawn anew each time a digit is shown.
    Ok((Dataset::new(train, Binarize::Sample)?, Dataset::new(test, Binarize::Sample)?))
}

fn learn(
    args: &DemoArgs,
    common: &Common,
    train_set: &Dataset,
    test_set: &Dataset,
    terminal: &mut Terminal,
) -> Result<Findings, Failure> {
    let plan = Plan {
        seed: common.seed(),
        epochs: args.epochs,
        batch: BATCH,
        learning_rate: RATE,
        ..Plan::default()
    };
    let rbm = Rbm::binary(IMAGE.height * IMAGE.width, args.hidden)?;
    let start = Instant::now();
    let model = Training::new(rbm, train_set, &plan).run(&mut [], terminal)?;
    let seconds = start.elapsed().as_secs_f64();
    let score = model.score(test_set, Method::Exact)?;
    let train_score = model.score(train_set, Method::Exact)?;
    let drawing = Drawing {
        n: 2 * TILES,
        sweeps: Some(SWEEPS),
        seed: common.seed(),
        show: Show::Means,
        arithmetic: common.arithmetic(),
        ..Drawing::default()
    };
    let drawn = model.freely().draw(&drawing, terminal)?.values;
    let samples = drawn.rows().into_iter().map(|row| row.to_vec()).collect();
    Ok(Findings { model, seconds, score, train_score, samples })
}

/// Independent pixels on the same digits.
fn alone(score: &Score) -> Option<&Alone> {
    score.baseline.as_ref().ok().map(|baselines| &baselines.independent)
}

/// The exact ln Z behind a score.
fn log_z(score: &Score) -> f64 {
    match score.behind {
        Behind::Exact(log_z) => log_z,
        _ => f64::NAN,
    }
}

fn as_json(findings: &Findings, args: &DemoArgs) -> serde_json::Value {
    json!({
        "hidden": args.hidden,
        "epochs": findings.model.about.epoch,
        "seconds": findings.seconds,
        "log_likelihood": findings.score.mean,
        "data_std_error": findings.score.data_std_error,
        "log_likelihood_train": findings.train_score.mean,
        "log_z": log_z(&findings.score),
        "baseline": alone(&findings.score).map(|alone| alone.mean),
        "baseline_std_error": alone(&findings.score).and_then(|alone| alone.std_error),
        "method": "exact",
        "n": findings.score.n,
    })
}

fn as_text(
    findings: &Findings,
    args: &DemoArgs,
    train_set: &Dataset,
    test_set: &Dataset,
) -> String {
    let Findings { model, seconds, score, train_score, samples } = findings;
    let ink = Ink::of_stdout();
    let mut text = String::new();
    let mut line = |s: &str| {
        text.push_str(s);
        text.push('\n');
    };
    line("harmonium demo: a restricted Boltzmann machine learns handwritten digits");
    line(&format!("data: {}", digits::CREDIT));
    line(&format!(
        "      {} digits of 8x8 pixels to learn from, {} to be tested on; grey levels are drawn as bits",
        train_set.n_rows(),
        test_set.n_rows()
    ));
    line(&format!(
        "model: 64 visible and {} hidden units, centered, persistent chains; {} epochs in {seconds:.1} s\n",
        args.hidden, model.about.epoch
    ));
    line("some of the digits:");
    line(&mosaic(&rows(test_set, TILES), IMAGE, TILES, Tone::Grey, ink));
    line("what the hidden units look for:");
    line(&mosaic(&filters(model), IMAGE, TILES, Tone::Signed, ink));
    line(&format!("what the machine dreams of, after {SWEEPS} sweeps of Gibbs sampling:"));
    line(&mosaic(samples, IMAGE, TILES, Tone::Grey, ink));
    line("mean log-likelihood of a digit it has not seen, in nats (higher is better):");
    line(&format!(
        "  this machine        {:8.2} ± {}   exact: ln Z = {:.3} summed over 2^{} states",
        score.mean,
        render::error(score.data_std_error, 2),
        log_z(score),
        args.hidden
    ));
    if let Some(Alone { mean, std_error, .. }) = alone(score) {
        let error = render::error(*std_error, 2);
        line(&format!("  independent pixels  {mean:8.2} ± {error}"));
    }
    line(&format!(
        "  (on the training digits: {:.2}; a small gap means little overfitting)\n",
        train_score.mean
    ));
    line("next:");
    line("  harmonium demo --hidden 24 --epochs 1000     more units, longer");
    line("  harmonium demo --json                        the numbers for a program");
    let _ = write!(text, "  harmonium --help                             everything else");
    text
}

/// The first rows as pictures.
fn rows(data: &Dataset, n: usize) -> Vec<Vec<f64>> {
    let row = |r: usize| {
        let mut values = vec![0.0; data.n_columns()];
        data.means_into(r, &mut values);
        values
    };
    (0..n.min(data.n_rows())).map(row).collect()
}

/// The strongest filters.
fn filters(model: &Model) -> Vec<Vec<f64>> {
    let found = model.top().ok().and_then(|rbm| projections(rbm, Rbm::VISIBLE).pop());
    let mut filters = strongest_first(found.map(|(_, filters)| filters).unwrap_or_default());
    filters.truncate(2 * TILES);
    filters
}
