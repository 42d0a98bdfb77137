//! `harmonium train` without `--epochs`: the library searches for settings, and the best of them are trained.

use super::train::{Prepared, Told, judged, prepare, start_in, tell};
use crate::args::Common;
use crate::args::train::TrainArgs;
use crate::failure::Failure;
use crate::plan::{self, Asked};
use crate::render::progress::{Terminal, listen};
use harmonium::Error;
use harmonium::model::{Family, Request, Searched, Sources, Trial};
use harmonium::progress::Listener;
use harmonium::run::{Overwrite, RunDirectory, RunWriter};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Whether nothing says how long to train. A deep belief network has no likelihood to choose by.
pub(super) fn is_wanted(model: &str, asked: &Asked) -> bool {
    !["dbn", "multimodal"].contains(&model) && asked.settings.epochs.is_none()
}

/// Searches, and trains what was found.
pub(super) fn fly(
    model: &str,
    args: &TrainArgs,
    asked: Asked,
    common: &Common,
    terminal: &mut Terminal,
) -> Result<Told, Failure> {
    let family = plan::family(model);
    let request = asked.request()?.to_search(family, asked.settings.valid.is_some())?;
    let mut first = request.clone();
    first.given.insert("hidden".into(), json!(request.hidden(family)?.some()));
    let (prepared, blueprint) = prepare(model, asked.with(&first)?, terminal)?;
    // What does not fit is refused before there is a directory.
    drop(prepared.training(blueprint)?.learner()?);
    let mut writer = directory(args)?;
    let Searched { request, trials } = search(family, &request, &prepared, &mut writer, terminal)?;
    let chosen = asked.with(&request)?;
    let line = repeating(model, &chosen)?;
    terminal.note(&table(&trials));
    let (prepared, blueprint) = prepare(model, chosen, terminal)?;
    let recorded = start_in(&prepared, blueprint, || Ok(writer), terminal)?;
    let told = tell(&recorded, &args.out);
    let mut told = judged(told, &recorded, &prepared, &args.out, common, terminal);
    told.json["trials"] = json!(trials);
    told.json["repeat"] = json!(line);
    told.text = format!("{}\n{}\nrepeat it with\n  {line} --out RUN", table(&trials), told.text);
    Ok(told)
}

/// The directory of the run, new or of a search that was interrupted.
fn directory(args: &TrainArgs) -> Result<RunWriter, Failure> {
    let begun = Path::new(&args.out).join("trials.jsonl").is_file();
    if args.resume && begun {
        return Ok(RunDirectory::resume(&args.out)?);
    }
    let overwrite = if args.force { Overwrite::Yes } else { Overwrite::No };
    Ok(RunDirectory::create(&args.out, overwrite)?)
}

/// Lets the library search; what it tried is in the directory, and not tried again.
fn search(
    family: Family,
    request: &Request,
    prepared: &Prepared,
    writer: &mut RunWriter,
    terminal: &mut Terminal,
) -> Result<Searched, Failure> {
    let inputs = &prepared.inputs;
    let fingerprints = inputs.fingerprints().written();
    let sources = Sources {
        train: &inputs.data.dataset,
        valid: inputs.validation(),
        reading: &inputs.data.reading,
        fingerprints: &fingerprints,
    };
    listen()?;
    let mut lines = begun(prepared, writer)?;
    let done: Vec<Trial> =
        lines.iter().filter_map(|line| serde_json::from_value(line.clone()).ok()).collect();
    let mut note = |trial: &Trial| {
        lines.push(json!(trial));
        writer.write_trials(&lines)
    };
    request.search(family, &sources, (&done, &mut note), terminal).map_err(|error| match error {
        Error::Cancelled { .. } => Failure::new(
            error.to_string(),
            "go on with the same command and `--resume`: the trials so far are kept",
        ),
        other => other.into(),
    })
}

/// The lines of `trials.jsonl` so far: what was asked, then the trials. A search that was begun for something else is not
/// gone on with.
fn begun(prepared: &Prepared, writer: &mut RunWriter) -> Result<Vec<Value>, Failure> {
    let asked = json!({ "asked": prepared.config()? });
    let lines = writer.directory().trials()?;
    match lines.first() {
        None => {
            writer.write_trials(std::slice::from_ref(&asked))?;
            Ok(vec![asked])
        }
        Some(first) if *first == asked => Ok(lines),
        Some(_) => Err(Failure::new(
            format!(
                "the search in `{}` was begun with other settings or other data",
                writer.directory().path().display()
            ),
            "repeat the command as it was, or begin anew with `--force`",
        )),
    }
}

/// The command that trains it again.
fn repeating(model: &str, asked: &Asked) -> Result<String, Failure> {
    let mut line = format!("harmonium train {model} {}", asked.data.clone().unwrap_or_default());
    let mut table = plan::as_table(&asked.settings)?;
    table.extend(plan::as_table(&asked.reading)?);
    if asked.seed != 0 {
        table.insert("seed".into(), toml::Value::String(asked.seed.to_string()));
    }
    if let Some(precision) = &asked.precision {
        table.insert("precision".into(), precision.clone().into());
    }
    for (key, value) in table {
        let word = |value: &toml::Value| match value {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let _ = match &value {
            toml::Value::Boolean(true) => write!(line, " --{key}"),
            toml::Value::Boolean(false) => Ok(()),
            toml::Value::Array(list) => {
                let list: Vec<String> = list.iter().map(word).collect();
                write!(line, " --{key} {}", list.join(","))
            }
            other => write!(line, " --{key} {}", word(other)),
        };
    }
    Ok(line)
}

/// What was tried.
fn table(trials: &[Trial]) -> String {
    let mut text = String::from(
        "round  hidden      rate      k     l2       epochs  validated log-likelihood",
    );
    for trial in trials {
        let hidden: Vec<String> = trial.hidden.iter().map(ToString::to_string).collect();
        let mut score = match (trial.score, trial.std_error) {
            (Some(score), Some(error)) => format!("{score:.3} ± {error:.3}"),
            (Some(score), None) => format!("{score:.3}"),
            (None, _) => "none".into(),
        };
        if let Some(lower) = trial.lower {
            let _ = write!(score, ", at least {lower:.3}");
        }
        let failing = if trial.failing { "  chains did not mix" } else { "" };
        let best = trial.best_epoch.map_or(String::new(), |epoch| format!(" (epoch {epoch})"));
        let _ = write!(
            text,
            "\n{:5}  {:10}  {:<8}  {:<4}  {:<7}  {:6}  {score}{best}{failing}",
            trial.round,
            hidden.join(","),
            trial.learning_rate,
            trial.k.to_string(),
            trial.l2,
            trial.epochs
        );
    }
    text
}
