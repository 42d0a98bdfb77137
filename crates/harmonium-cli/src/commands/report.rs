//! `harmonium report`: a page about a run.

use super::belief;
use super::diagnose::{Scalar, watch};
use super::sample::{visible_means, visible_rows};
use super::score::exact_scores;
use crate::args::{Common, ReportArgs};
use crate::failure::Failure;
use crate::load::{self, Remembered};
use crate::report::{Contents, Filters, html};
use crate::{output, plan, render};
use harmonium::evaluation::filters::{mean_activity, projections};
use harmonium::exact;
use harmonium::findings::{Evidence, Named, findings};
use harmonium::machine::{Engine, LayerId, Machine, Precision, State};
use harmonium::models::Dbn;
use harmonium::random::Stream;
use harmonium::run::{Ending, Event, RunDirectory, Stored};
use harmonium::sampling::{
    Chains, Clamp, DbnEngine, MeanField, Pass, TopSums, generate, gibbs, infer,
};
use harmonium::training::Plan;
use harmonium_data::Dataset;
use serde_json::{Value, json};
use std::path::Path;

/// Samples drawn and shown.
const SAMPLES: usize = 64;
/// Rows of data the activities are averaged over.
const ROWS: usize = 500;
/// Multiplications that the samples may cost: a few seconds.
const SAMPLE_COST: f64 = 4e9;
/// Chains watched for how they mix.
const MIXING_CHAINS: usize = 20;
/// Sweeps they are watched for, after as many to settle.
const MIXING_SWEEPS: usize = 1000;
/// Up to this many terms the final ln Z is summed.
const EXACT_LOG2_TERMS: f64 = 22.0;

pub(crate) fn run(args: &ReportArgs, common: &Common) -> Result<(), Failure> {
    let own = Path::new(&args.run).join("report.html").display().to_string();
    if let Some(out) = &args.out {
        output::check_free(out, args.force)?;
    }
    let out = args.out.clone().unwrap_or(own);
    write(&args.run, &out, common)?;
    if common.json {
        return render::json(&json!({ "out": out }));
    }
    render::result(&format!("the report is in `{out}`"))
}

/// Gathers what a run holds and writes the page; a report is made anew each time.
pub(crate) fn write(run: &str, out: &str, common: &Common) -> Result<(), Failure> {
    let directory = RunDirectory::open(run)?;
    let (stored, remembered) = load::stored(run)?;
    let config = directory.config()?;
    let (data, mut notes) = match data(&config) {
        Ok(data) => (Some(data), Vec::new()),
        Err(failure) => {
            (None, vec![format!("the data could not be read again, so none is shown ({failure})")])
        }
    };
    let events = directory.read_events()?.events;
    let settings = plan(&config, &stored);
    let mut contents = Contents {
        title: title(run),
        description: description(&stored)?,
        evidence: Evidence {
            epochs: events.iter().filter_map(Event::as_epoch).cloned().collect(),
            ending: Ending::of(&events),
            ..Evidence::default()
        },
        scores: scores(&stored, data.as_ref().map(|d| &d.dataset))?,
        config,
        data: facts(&remembered),
        mixing: match &stored {
            Stored::Machine(model) => mixing(&model.machine, common)?,
            Stored::Dbn(model) => mixing(model.dbn.top(), common)?,
        },
        ..Contents::default()
    };
    let rows = data.as_ref().map(|d| &d.dataset);
    match &stored {
        Stored::Machine(model) => {
            pictures(&mut contents, &model.machine, &remembered, rows, common)?
        }
        Stored::Dbn(model) => {
            belief_pictures(&mut contents, &model.dbn, &remembered, rows, common)?
        }
    }
    match settings {
        Ok(plan) => {
            contents.evidence.plan = plan;
            contents.findings = findings(&contents.evidence);
        }
        Err(failure) => {
            notes
                .push(format!("the settings could not be read, so nothing was judged ({failure})"));
        }
    }
    contents.notes = notes;
    let page = html(&contents).map_err(|e| {
        Failure::new(
            format!("cannot write the report: {e}"),
            "look at the run with `harmonium inspect`",
        )
    })?;
    output::write_bytes(out, page.as_bytes(), true)
}

fn title(run: &str) -> String {
    let name = Path::new(run).file_name().and_then(|n| n.to_str()).unwrap_or(run);
    format!("Run {name}")
}

/// The data of the run, read as it was.
fn data(config: &str) -> Result<load::Input, Failure> {
    let asked = plan::typed(&plan::parse(config, "run.toml")?)?;
    let spec = asked.data.ok_or_else(|| Failure::new("no data is named", "it is in run.toml"))?;
    load::data(&spec, &asked.reading)
}

fn description(stored: &Stored) -> Result<String, Failure> {
    let (machine, about, n_parameters) = match stored {
        Stored::Machine(m) => (m.machine.clone(), &m.about, m.machine.n_parameters()),
        Stored::Dbn(m) => (m.dbn.generative_chain()?, &m.about, m.dbn.n_parameters()),
    };
    let layers: Vec<String> = machine
        .layers()
        .iter()
        .map(|l| format!("`{}` of {} {} units", l.name, l.n_units(), l.units.name()))
        .collect();
    let kind = about.config.get("model").and_then(Value::as_str).unwrap_or("machine");
    Ok(format!(
        "{} {kind} with layers {}; {n_parameters} parameters. Trained for {} epochs ({} updates) with seed {}.",
        if kind == "rbm" { "An" } else { "A" },
        layers.join(", "),
        about.epoch,
        about.step,
        about.seed
    ))
}

/// What was asked of the run.
fn plan(config: &str, stored: &Stored) -> Result<Plan, Failure> {
    let asked = plan::typed(&plan::merge(plan::parse(config, "run.toml")?, toml::Table::new()))?;
    match stored {
        Stored::Machine(model) => plan::learning(&asked, &model.machine),
        Stored::Dbn(model) => plan::learning(&asked, model.dbn.top()),
    }
}

/// The exact ln Z and log-likelihood, where they cost little.
fn scores(stored: &Stored, data: Option<&Dataset>) -> Result<Vec<(String, String)>, Failure> {
    let machine = match stored {
        Stored::Machine(model) => &model.machine,
        Stored::Dbn(model) => {
            let found =
                data.map(|d| belief::bounds(&model.dbn, d)).transpose()?.unwrap_or_default();
            let line = |(key, value): (&String, &Value)| {
                Some((key.clone(), format!("{:.4} nats", value.as_f64()?)))
            };
            return Ok(found.as_object().into_iter().flatten().filter_map(line).collect());
        }
    };
    let mut scores = Vec::new();
    if exact::log2_terms(machine, &Clamp::none(), 1)? <= EXACT_LOG2_TERMS {
        let log_z = exact::log_partition(machine)?;
        scores.push(("ln Z (exact)".to_owned(), format!("{log_z:.4}")));
        let small =
            data.filter(|d| d.n_rows() as f64 * machine.n_parameters() as f64 <= SAMPLE_COST);
        if let Some(data) = small {
            let found = exact_scores(machine, data)?;
            let text = format!("{:.4} ± {:.4} nats", found.mean, found.data_std_error);
            scores.push(("log-likelihood of the training data (exact)".to_owned(), text));
        }
    }
    Ok(scores)
}

/// How chains of the model mix, where enough sweeps of enough of them cost little.
fn mixing(machine: &Machine, common: &Common) -> Result<Vec<(String, String)>, Failure> {
    let cost = (MIXING_CHAINS * 2 * MIXING_SWEEPS) as f64 * machine.n_parameters() as f64;
    if cost > SAMPLE_COST {
        return Ok(Vec::new());
    }
    let engine = Engine::with_precision(machine, common.precision(Precision::F32));
    let stream = Stream::new(common.seed()).fork(201);
    let chains = Chains::new(machine, MIXING_CHAINS, stream.fork(0))?;
    let scalars = watch(machine, &engine, chains, MIXING_SWEEPS, stream.fork(1), None)?;
    Ok(scalars.iter().filter_map(Scalar::fact).collect())
}

fn facts(remembered: &Remembered) -> Vec<(String, String)> {
    let mut facts = vec![
        ("rows".to_owned(), remembered.rows.to_string()),
        ("columns".to_owned(), remembered.means.len().to_string()),
        ("fingerprint".to_owned(), remembered.hash.clone()),
    ];
    if let Some((height, width)) = remembered.image {
        facts.push(("pictures".to_owned(), format!("{height}×{width}")));
    }
    if let Some(binarize) = &remembered.reading.binarize {
        facts.push(("binarize".to_owned(), binarize.clone()));
    }
    let constant = remembered.means.iter().filter(|m| **m == 0.0 || **m == 1.0).count();
    facts.push(("columns that are always 0 or always 1".to_owned(), constant.to_string()));
    facts
}

/// Filters, samples, histograms.
fn pictures(
    contents: &mut Contents,
    machine: &Machine,
    remembered: &Remembered,
    data: Option<&Dataset>,
    common: &Common,
) -> Result<(), Failure> {
    let engine = Engine::with_precision(machine, common.precision(Precision::F32));
    let posterior = data.map(|d| posterior(machine, &engine, d)).transpose()?;
    let Some(&visible) = machine.visible_layers().first() else { return Ok(()) };
    let n = machine.layer(visible).len();
    contents.image = remembered.image(n);
    for (l, tiles) in projections(machine, visible) {
        let name = machine.layer(l).name.clone();
        let activity = posterior.as_ref().map(|x| mean_activity(x, l)).unwrap_or_default();
        if !activity.is_empty() {
            contents
                .evidence
                .activities
                .push(Named { name: name.clone(), values: activity.clone() });
        }
        contents.filters.push(Filters { layer: name, tiles, activity });
    }
    for c in machine.couplings() {
        let name = |l: LayerId| &machine.layer(l).name;
        let name = format!("{} – {}", name(c.between.0), name(c.between.1));
        contents.evidence.weights.push(Named { name, values: c.weights.entries().to_vec() });
    }
    if let Some(x) = &posterior {
        contents.evidence.data_samples =
            (0..x.n_rows().min(SAMPLES)).map(|r| x.row(visible, r).to_vec()).collect();
    }
    let stream = Stream::new(common.seed()).fork(200);
    let mut chains = Chains::new(machine, SAMPLES, stream.fork(0))?;
    chains.advance(machine, &engine, sweeps(machine), stream.fork(1))?;
    let x = visible_means(machine, &engine, &Clamp::none(), chains.state().clone())?;
    let rows = visible_rows(machine, &x, remembered);
    contents.evidence.model_samples =
        rows.values.chunks(rows.n_columns).map(|r| r[..n].to_vec()).collect();
    Ok(())
}

/// The same of a deep belief network: filters along the generative weights, activities of the
/// recognition distribution, samples of the top RBM brought down.
fn belief_pictures(
    contents: &mut Contents,
    dbn: &Dbn,
    remembered: &Remembered,
    data: Option<&Dataset>,
    common: &Common,
) -> Result<(), Failure> {
    let engine = DbnEngine::new(dbn, common.precision(Precision::F32));
    let chain = dbn.generative_chain()?;
    let layers: Vec<usize> = (1..=dbn.depth()).collect();
    let n = dbn.layer(0).len();
    contents.image = remembered.image(n);
    let mut activities = vec![Vec::new(); layers.len()];
    if let Some(data) = data {
        let n_rows = data.n_rows().min(ROWS);
        let rows: Vec<usize> = (0..n_rows).map(|k| k * data.n_rows() / n_rows).collect();
        let mut x = belief::states(dbn, &data.select_rows(&rows)?, 0..n_rows)?;
        let found = belief::means(dbn, &engine, &TopSums::new(dbn)?, &mut x, &layers)?;
        for (means, out) in found.iter().zip(&mut activities) {
            let len = means.len() / n_rows;
            let mean = |i: usize| means.iter().skip(i).step_by(len).sum::<f64>() / n_rows as f64;
            *out = (0..len).map(mean).collect();
        }
        contents.evidence.data_samples =
            (0..n_rows.min(SAMPLES)).map(|r| x.row(0, r).to_vec()).collect();
    }
    for ((l, tiles), activity) in projections(&chain, LayerId(0)).into_iter().zip(activities) {
        let layer = chain.layer(l).name.clone();
        if !activity.is_empty() {
            contents
                .evidence
                .activities
                .push(Named { name: layer.clone(), values: activity.clone() });
        }
        contents.filters.push(Filters { layer, tiles, activity });
    }
    for c in chain.couplings() {
        let name = |l: LayerId| &chain.layer(l).name;
        let name = format!("{} – {}", name(c.between.0), name(c.between.1));
        contents.evidence.weights.push(Named { name, values: c.weights.entries().to_vec() });
    }
    let stream = Stream::new(common.seed()).fork(200);
    let (mut x, clamp) = belief::start(dbn, SAMPLES, None, stream)?;
    let sweeps = sweeps(dbn.top());
    gibbs(dbn.top(), engine.top(), &clamp, &mut x, sweeps, stream.fork(1))?;
    let drawn = generate(dbn, &engine, &x, Pass::LastMeans(stream.fork(2)))?;
    contents.evidence.model_samples = (0..SAMPLES).map(|r| drawn.row(0, r).to_vec()).collect();
    Ok(())
}

/// As many sweeps of the samples as take a few seconds.
fn sweeps(machine: &Machine) -> usize {
    let affordable = SAMPLE_COST / (SAMPLES as f64 * machine.n_parameters() as f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let sweeps = affordable.clamp(20.0, 1000.0) as usize;
    sweeps
}

/// Rows spread over the data, with the means of the units it does not hold.
fn posterior(machine: &Machine, engine: &Engine, data: &Dataset) -> Result<State, Failure> {
    let n = data.n_rows().min(ROWS);
    let rows: Vec<usize> = (0..n).map(|k| k * data.n_rows() / n).collect();
    let chosen = data.select_rows(&rows)?;
    let (mut x, clamp) = super::states(machine, &chosen, 0..n)?;
    infer(machine, engine, &clamp, &mut x, MeanField::default())?;
    Ok(x)
}
