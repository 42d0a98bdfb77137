//! `harmonium demo`: a whole day's work in a few seconds.
//!
//! Trains a restricted Boltzmann machine on the embedded digits, small enough that its
//! log-likelihood can be summed exactly, and shows what it learned.

use super::{report, train as training};
use crate::args::train::TrainSettings;
use crate::args::{Common, DemoArgs};
use crate::failure::Failure;
use crate::load;
use crate::output;
use crate::plan::Asked;
use crate::render::picture::{Ink, Tone, mosaic};
use crate::render::{self, progress};
use harmonium::evaluation::filters::{projections, strongest_first};
use harmonium::evaluation::likelihood::Likelihood;
use harmonium::evaluation::{baseline, likelihood};
use harmonium::exact;
use harmonium::machine::{Engine, Machine};
use harmonium::models::Rbm;
use harmonium::random::Stream;
use harmonium::run::{Overwrite, RunDirectory};
use harmonium::sampling::{Chains, Clamp};
use harmonium::training::{Every, Outcome, Plan, train};
use harmonium_data::{Binarize, Dataset, Image, Part, Split, digits};
use serde_json::json;
use std::fmt::Write;
use std::ops::ControlFlow;
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
    outcome: Outcome,
    seconds: f64,
    score: Likelihood,
    train_score: Likelihood,
    baseline: (f64, f64),
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
        let run = std::path::Path::new(out).join("run.toml").display().to_string();
        output::check_free(&run, args.force)?;
    }
    let (train_set, test_set) = data(common)?;
    let findings = learn(args, common, &train_set, &test_set)?;
    if let Some(out) = &args.out {
        keep(args, out, common)?;
    }
    if common.json {
        return render::json(&as_json(&findings, args));
    }
    render::result(&as_text(&findings, args, &train_set, &test_set))
}

/// Trains once more on all digits, the way `harmonium train` does, and writes the report.
fn keep(args: &DemoArgs, out: &str, common: &Common) -> Result<(), Failure> {
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
    let mut writer = RunDirectory::create(out, overwrite)?;
    let (prepared, machine) = training::prepare("rbm", asked)?;
    let (_, model) = training::start(&prepared, machine, &mut writer, common)?;
    writer.finish(&model)?;
    let page = std::path::Path::new(out).join("report.html").display().to_string();
    report::write(out, &page, common)?;
    load::note_on_stderr(&format!(
        "the run, trained on all digits, is in `{out}`, its report in `{page}`"
    ));
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
) -> Result<Findings, Failure> {
    let plan = Plan {
        seed: common.seed(),
        epochs: args.epochs,
        batch: BATCH,
        learning_rate: RATE,
        ..Plan::default()
    };
    let rbm = Rbm::binary(IMAGE.height * IMAGE.width, args.hidden)?;
    let baseline = baseline::independent(rbm.machine(), train_set, test_set)?;
    let bar = progress::bar(plan.epochs, "training", common);
    let mut tick = Every::new(1, |view| {
        bar.set_position(view.epoch);
        ControlFlow::Continue(())
    });
    let start = Instant::now();
    let outcome = train(rbm.into_machine(), train_set, &plan, &mut [&mut tick])?;
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    let score = likelihood::exact(&outcome.machine, test_set)?;
    let train_score = likelihood::exact(&outcome.machine, train_set)?;
    let samples = fantasies(&outcome.machine, common)?;
    Ok(Findings { outcome, seconds, score, train_score, baseline, samples })
}

/// Probabilities of the pixels after long chains.
fn fantasies(machine: &Machine, common: &Common) -> Result<Vec<Vec<f64>>, Failure> {
    let engine = Engine::new(machine);
    let stream = Stream::new(common.seed()).fork(100);
    let mut chains = Chains::new(machine, 2 * TILES, stream.fork(0))?;
    chains.advance(machine, &engine, SWEEPS, stream.fork(1))?;
    let hidden = Clamp::layers([Rbm::HIDDEN]);
    let weights = |row: usize| -> Vec<f64> {
        (0..2 * TILES).map(|r| f64::from(u8::from(r == row))).collect()
    };
    // Given the hidden units the pixels are independent: their exact means are the picture.
    let mean = |row| {
        let moments = exact::moments(machine, &hidden, chains.state(), &weights(row))?;
        Ok(moments.bias[Rbm::VISIBLE.0].clone())
    };
    (0..2 * TILES).map(mean).collect()
}

fn as_json(findings: &Findings, args: &DemoArgs) -> serde_json::Value {
    json!({
        "hidden": args.hidden,
        "epochs": findings.outcome.epochs,
        "seconds": findings.seconds,
        "log_likelihood": findings.score.mean,
        "data_std_error": findings.score.data_std_error,
        "log_likelihood_train": findings.train_score.mean,
        "log_z": findings.score.log_partition,
        "baseline": findings.baseline.0,
        "baseline_std_error": findings.baseline.1,
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
    let Findings { outcome, seconds, score, train_score, baseline, samples } = findings;
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
        args.hidden, outcome.epochs
    ));
    line("some of the digits:");
    line(&mosaic(&rows(test_set, TILES), IMAGE, TILES, Tone::Grey, ink));
    line("what the hidden units look for:");
    line(&mosaic(&filters(&outcome.machine), IMAGE, TILES, Tone::Signed, ink));
    line(&format!("what the machine dreams of, after {SWEEPS} sweeps of Gibbs sampling:"));
    line(&mosaic(samples, IMAGE, TILES, Tone::Grey, ink));
    line("mean log-likelihood of a digit it has not seen, in nats (higher is better):");
    line(&format!(
        "  this machine        {:8.2} ± {:.2}   exact: ln Z = {:.3} summed over 2^{} states",
        score.mean, score.data_std_error, score.log_partition, args.hidden
    ));
    line(&format!("  independent pixels  {:8.2} ± {:.2}", baseline.0, baseline.1));
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
fn filters(machine: &Machine) -> Vec<Vec<f64>> {
    let (_, filters) =
        projections(machine, Rbm::VISIBLE).pop().unwrap_or((Rbm::HIDDEN, Vec::new()));
    let mut filters = strongest_first(filters);
    filters.truncate(2 * TILES);
    filters
}
