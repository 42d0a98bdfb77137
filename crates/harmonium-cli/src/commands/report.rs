//! `harmonium report`: a page about a run.

use super::diagnose::fact;
use crate::args::{Common, ReportArgs};
use crate::failure::Failure;
use crate::render::progress::Terminal;
use crate::report::{Contents, html};
use crate::{load, output, plan, render};
use harmonium::findings::{Evidence, findings};
use harmonium::model::{Blueprint, Portrait};
use harmonium::run::{Ending, Event, Memory, RunDirectory};
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
    let (data, mut notes) = match data(&config, &mut terminal) {
        Ok(data) => (Some(data), Vec::new()),
        Err(failure) => {
            (None, vec![format!("the data could not be read again, so none is shown ({failure})")])
        }
    };
    let events = directory.read_events()?.events;
    let (seed, arithmetic) = (common.seed(), common.arithmetic());
    let Portrait { filters, weights, activities, data_samples, model_samples, warning } =
        model.portrait(data.as_ref(), seed, arithmetic, &mut terminal)?;
    notes.extend(warning.map(|text| format!("samples shown here: {text}")));
    let mut evidence = Evidence {
        epochs: events.iter().filter_map(Event::as_epoch).cloned().collect(),
        ending: Ending::of(&events),
        data_samples,
        model_samples,
        weights,
        activities,
        ..Evidence::default()
    };
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
    let mixing = model.quick_mixing(seed, arithmetic, &mut terminal)?;
    let n = model.body.visible().first().map_or(0, |layer| layer.len());
    let contents = Contents {
        title: title(run),
        description: description(&model)?,
        findings: found,
        evidence,
        notes,
        scores: model.cheap_scores(data.as_ref())?,
        mixing: mixing.iter().filter_map(fact).collect(),
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

/// The data of the run, read as it was.
fn data(config: &str, terminal: &mut Terminal) -> Result<Dataset, Failure> {
    let asked = plan::typed(&plan::parse(config, "run.toml")?)?;
    let spec = asked.data.ok_or_else(|| Failure::new("no data is named", "it is in run.toml"))?;
    Ok(load::data(&spec, &asked.reading, terminal)?.dataset)
}

/// What was asked of the run.
fn settings(config: &str, model: &Model) -> Result<Plan, Failure> {
    let asked = plan::typed(&plan::merge(plan::parse(config, "run.toml")?, toml::Table::new()))?;
    plan::learning(&asked, &Blueprint::from(model.body.clone()))
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
