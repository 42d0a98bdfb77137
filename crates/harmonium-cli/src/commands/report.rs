//! `harmonium report`: a page about a run.

use super::diagnose::fact;
use super::finetune;
use crate::args::{Common, ReportArgs};
use crate::failure::Failure;
use crate::plan::Inputs;
use crate::render::progress::Terminal;
use crate::report::{Contents, Mistake, html};
use crate::{load, output, plan, render};
use harmonium::evaluation::baseline::Gain;
use harmonium::findings::{Evidence, findings};
use harmonium::machine::Layer;
use harmonium::model::{Blueprint, Classified, Classifying, Judging, Portrait};
use harmonium::models::{Body, Network, Target};
use harmonium::run::{Memory, RunDirectory};
use harmonium::{Dataset, Model, Plan};
use serde_json::{Value, json};
use std::path::Path;

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
    let mut terminal = Terminal::new(common);
    let directory = RunDirectory::open(run)?;
    let model = load::model(run, &mut terminal)?;
    let config = directory.config()?;
    if let Body::Network(network) = &model.body {
        let contents = of_network(run, &directory, &model, network, config, &mut terminal)?;
        return page(&contents, out);
    }
    let (data, mut notes) = match data(&config, &mut terminal) {
        Ok(data) => (Some(data), Vec::new()),
        Err(failure) => {
            (None, vec![format!("the data could not be read again, so none is shown ({failure})")])
        }
    };
    let events = directory.read_events()?.events;
    let (seed, arithmetic) = (common.seed(), common.arithmetic());
    let train = data.as_ref().map(|inputs| &inputs.data.dataset);
    let held_out = data.as_ref().and_then(Inputs::validation).or(train);
    let Portrait { filters, weights, activities, data_samples, model_samples, warning } =
        model.portrait(train, seed, arithmetic, &mut terminal)?;
    notes.extend(warning.map(|text| format!("samples shown here: {text}")));
    let mut evidence = Evidence {
        result: Some(model.about.epoch),
        data_samples,
        model_samples,
        weights,
        activities,
        ..Evidence::of(&events)
    };
    let judging = Judging::thorough(seed, arithmetic);
    model.judge(&mut evidence, held_out, &judging, &mut terminal)?;
    let found = match settings(&config, &model) {
        Ok(plan) => {
            evidence.plan = plan;
            findings(&evidence)
        }
        Err(failure) => {
            notes
                .push(format!("the settings could not be read, so nothing was judged ({failure})"));
            Vec::new()
        }
    };
    let mut scores = model.cheap_scores(train)?;
    scores.extend(evidence.gain.as_ref().map(beside));
    let n = model.body.visible().first().map_or(0, |layer| layer.len());
    let contents = Contents {
        title: title(run),
        description: description(&model)?,
        findings: found,
        mixing: evidence.mixing.iter().filter_map(fact).collect(),
        evidence,
        notes,
        scores,
        config,
        data: facts(&model.about.data),
        image: model.about.data.image(n),
        filters,
        mistakes: Vec::new(),
    };
    page(&contents, out)
}

fn page(contents: &Contents, out: &str) -> Result<(), Failure> {
    let page = html(contents).map_err(|e| {
        Failure::new(
            format!("cannot write the report: {e}"),
            "look at the run with `harmonium inspect`",
        )
    })?;
    output::write_bytes(out, page.as_bytes(), true)
}

/// Mistakes that are shown.
const MISTAKES: usize = 100;

/// What a report of a feed-forward net tells: its errors, and the rows that it gets wrong.
fn of_network(
    run: &str,
    directory: &RunDirectory,
    model: &Model,
    network: &Network,
    config: String,
    terminal: &mut Terminal,
) -> Result<Contents, Failure> {
    let (inputs, notes) = match finetuned(&config, terminal) {
        Ok(inputs) => (Some(inputs), Vec::new()),
        Err(failure) => {
            (None, vec![format!("the data could not be read again, so none is shown ({failure})")])
        }
    };
    let train = inputs.as_ref().map(|inputs| &inputs.data.dataset);
    let held_out = inputs.as_ref().and_then(|inputs| inputs.valid.as_ref()).or(train);
    let Portrait { filters, weights, activities, .. } = model.portrait(train, 0, None, terminal)?;
    let mut contents = Contents {
        title: title(run),
        description: describe(model, network),
        evidence: Evidence {
            result: Some(model.about.epoch),
            weights,
            activities,
            ..Evidence::of(&directory.read_events()?.events)
        },
        notes,
        config,
        data: facts(&model.about.data),
        image: model.about.data.image(network.inputs().first().map_or(0, Layer::len)),
        filters,
        ..Contents::default()
    };
    if let Some(data) = held_out.filter(|_| network.target() == Target::Classes) {
        let found = model.classify_with(data, &Classifying::default(), terminal)?;
        if let (Some(errors), Some(scores)) = (&found.errors, &found.scores) {
            let of = if inputs.as_ref().is_some_and(|i| i.valid.is_some()) {
                "validation"
            } else {
                "training"
            };
            let percent = |share: f64| format!("{:.2} %", 100.0 * share);
            contents.scores = vec![
                (format!("error rate on {} {of} rows", errors.n), percent(errors.rate)),
                (
                    "its 95 % interval".into(),
                    format!("{} to {}", percent(errors.lower), percent(errors.upper)),
                ),
                ("calibration error".into(), percent(scores.calibration_error)),
                ("mean −ln p of the label".into(), format!("{:.4} nats", scores.log_loss)),
            ];
        }
        contents.mistakes = mistakes(data, &found);
    }
    Ok(contents)
}

/// The data of a run of `finetune`, read as it was.
fn finetuned(config: &str, terminal: &mut Terminal) -> Result<finetune::inputs::Inputs, Failure> {
    let table = finetune::settings::parse(config, "run.toml")?;
    let mut asked = finetune::settings::typed(&plan::merge(table, toml::Table::new()))?;
    finetune::inputs::Inputs::open(&mut asked, None, terminal)
}

/// Rows that were put in another class, the surest first.
fn mistakes(data: &Dataset, found: &Classified) -> Vec<Mistake> {
    let Some(labels) = data.labels() else { return Vec::new() };
    let mut wrong: Vec<(usize, f64)> = (0..data.n_rows())
        .filter(|&row| labels.name(labels.values()[row]) != found.classes[found.predicted[row]])
        .map(|row| (row, found.probabilities[(row, found.predicted[row])]))
        .collect();
    wrong.sort_by(|a, b| b.1.total_cmp(&a.1));
    let of = |&(row, p): &(usize, f64)| {
        let mut values = vec![0.0; data.n_columns()];
        data.means_into(row, &mut values);
        let class = found.classes[found.predicted[row]].clone();
        Mistake { values, label: labels.name(labels.values()[row]), found: (class, p) }
    };
    wrong.iter().take(MISTAKES).map(of).collect()
}

fn describe(model: &Model, network: &Network) -> String {
    let layers: Vec<String> = network
        .layers()
        .iter()
        .map(|l| format!("`{}` of {} {} units", l.name, l.len(), l.activation.word()))
        .collect();
    let about = &model.about;
    format!(
        "A feed-forward net with layers {}; {} parameters. Trained for {} epochs ({} updates) with seed {}.",
        layers.join(", "),
        network.n_parameters(),
        about.epoch,
        about.step,
        about.seed
    )
}

fn title(run: &str) -> String {
    let name = Path::new(run).file_name().and_then(|n| n.to_str()).unwrap_or(run);
    format!("Run {name}")
}

/// The baseline of a score.
fn beside(gain: &Gain) -> (String, String) {
    let error = render::error(gain.std_error, 4);
    let text = format!(
        "{:.4} nats; the model has {:+.4} ± {error} by {}",
        gain.baseline, gain.nats, gain.by
    );
    (format!("{}, on the same rows", gain.over), text)
}

/// The data of the run, read as it was, and what was set apart of it.
fn data(config: &str, terminal: &mut Terminal) -> Result<Inputs, Failure> {
    let mut asked =
        plan::typed(&plan::merge(plan::parse(config, "run.toml")?, toml::Table::new()))?;
    super::train::inputs(&mut asked, terminal)
}

/// What was asked of the run.
pub(super) fn settings(config: &str, model: &Model) -> Result<Plan, Failure> {
    let asked = plan::typed(&plan::merge(plan::parse(config, "run.toml")?, toml::Table::new()))?;
    plan::learning(&asked, &Blueprint::try_from(model.body.clone())?)
}

fn description(model: &Model) -> Result<String, Failure> {
    let (machine, about) = (model.shown()?, &model.about);
    let layers: Vec<String> = machine
        .layers()
        .iter()
        .map(|l| format!("`{}` of {} {} units", l.name, l.n_units(), l.units.name()))
        .collect();
    let kind = about.config.get("model").and_then(Value::as_str).unwrap_or("machine");
    Ok(format!(
        "{} {kind} with layers {}; {} parameters. Trained for {} epochs ({} updates) with seed {}.",
        if kind == "rbm" { "An" } else { "A" },
        layers.join(", "),
        model.body.n_parameters(),
        about.epoch,
        about.step,
        about.seed
    ))
}

fn facts(remembered: &Memory) -> Vec<(String, String)> {
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
