//! `harmonium report`: a page about a run.

use super::diagnose::fact;
use crate::args::{Common, ReportArgs};
use crate::failure::Failure;
use crate::plan::Inputs;
use crate::render::progress::Terminal;
use crate::report::{Contents, html};
use crate::{load, output, plan, render};
use harmonium::evaluation::baseline::Gain;
use harmonium::findings::{Evidence, findings};
use harmonium::model::{Blueprint, Judging, Portrait};
use harmonium::run::{Memory, RunDirectory};
use harmonium::{Model, Plan};
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
    };
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
