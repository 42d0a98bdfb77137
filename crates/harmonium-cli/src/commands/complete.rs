//! `harmonium complete`: fills missing values with their probabilities given the rest.

use crate::args::{Common, CompleteArgs};
use crate::failure::Failure;
use crate::load::Labelling;
use crate::output::{self, Kind};
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::Model;
use harmonium::evaluation::log_partition::Bracket;
use harmonium::model::{Completed, Completing, Conditional, Filling, Found, Observed};
use harmonium::progress::Listener;
use harmonium::random::Stream;
use ndarray::{Array2, Axis};
use serde_json::{Value, json};

pub(crate) fn run(args: &CompleteArgs, common: &Common) -> Result<(), Failure> {
    check(args)?;
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    if let Some(name) = &args.of {
        model.modality(name)?;
    }
    let asked = load::Asked {
        data: args.data.as_deref(),
        given: &args.given,
        reading: &args.reading,
        labelling: Labelling::AsRead,
        labels: args.labels.as_deref(),
        mask: args.mask.as_deref(),
        known: &args.known,
    };
    let whole = load::rows(&model, &asked, &mut terminal)?;
    let rows = match &args.hide {
        Some(part) => load::hidden(&model, whole.clone(), part)?,
        None => whole.clone(),
    };
    let completing = Completing {
        method: method(args)?,
        sweeps: args.sweeps,
        draws: draws(args, &model),
        seed: common.seed(),
        arithmetic: common.arithmetic(),
    };
    let completed = model.complete_with(&rows.data, None, &completing, &mut terminal)?;
    if completed.n_missing == 0 {
        terminal.note("nothing is missing: the data is written as it is");
    }
    write(args, &model, (&whole, &rows), &completed, &mut terminal)?;
    if let Some(text) = completed.warning() {
        let sweeps = 4 * completed.sweeps;
        render::warn(&format!("{text}; `--sweeps {sweeps}` or `--method exact` may help"));
    }
    let score = match &args.hide {
        Some(_) if !args.no_score => {
            let score = model.score_given(&whole.data, &rows.data, common.seed(), &mut terminal)?;
            if score.bracket == Bracket::Unsettled {
                render::warn("the interval of the conditional log-likelihood has not settled");
            }
            Some(score)
        }
        _ => None,
    };
    drop(terminal);
    if common.json {
        return render::json(&as_json(args, &model, &completed, score.as_ref())?);
    }
    render::result(&as_text(args, &model, &completed, score.as_ref()))
}

/// What can be refused before the work is done.
fn check(args: &CompleteArgs) -> Result<(), Failure> {
    Kind::of(&args.output.out)?;
    output::check_free(&args.output.out, args.output.force)?;
    if let Some(errors) = &args.errors {
        Kind::of(errors)?;
        if *errors == args.output.out {
            return Err(Failure::new(
                format!("`{errors}` would hold the values and their errors"),
                "give `--errors` a file of its own",
            ));
        }
        output::check_free(errors, args.output.force)?;
    }
    if args.alternatives == Some(0) {
        return Err(Failure::new(
            "`--alternatives 0` asks for nothing",
            "leave it out for the means, or ask for at least one sample",
        ));
    }
    Ok(())
}

/// Whether pictures of which a part was hidden are drawn side by side.
fn is_mosaic(args: &CompleteArgs) -> bool {
    args.hide.is_some() && matches!(Kind::of(&args.output.out), Ok(Kind::Png))
}

/// Writes what was asked for.
fn write(
    args: &CompleteArgs,
    model: &Model,
    (whole, rows): (&Observed, &Observed),
    completed: &Completed,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let drawn = args.alternatives.map(|n| alternatives(completed, n));
    let values = drawn.as_ref().unwrap_or(&completed.values);
    if is_mosaic(args) {
        inpainted(args, model, (whole, rows), completed, terminal)?;
    } else if let Some(name) = &args.of {
        output::write_modality(&args.output, model, (name, args.top), values)?;
    } else {
        output::write_filled(&args.output, model, rows, values)?;
    }
    // Of a table in which nothing is missing there is nothing to list.
    if let Some(errors) = args.errors.as_ref().filter(|_| completed.n_missing > 0) {
        output::write_errors(errors, args.output.force, model, rows, completed)?;
    }
    Ok(())
}

fn as_json(
    args: &CompleteArgs,
    model: &Model,
    completed: &Completed,
    score: Option<&Conditional>,
) -> Result<Value, Failure> {
    let mut value = completed.to_json();
    value["out"] = json!(args.output.out);
    if let (Some(name), Some(top)) = (&args.of, args.top) {
        let own = model.only(completed.values.view(), name)?;
        let modality = model.modality(name)?;
        let rows: Vec<_> = own.rows().into_iter().map(|row| modality.top(row, top)).collect();
        value["top"] = json!(rows);
    }
    if let Some(score) = score {
        value["conditional"] = score.to_json();
    }
    Ok(value)
}

fn as_text(
    args: &CompleteArgs,
    model: &Model,
    completed: &Completed,
    score: Option<&Conditional>,
) -> String {
    let (n, missing, out) = (completed.values.nrows(), completed.n_missing, &args.output.out);
    if let Some(classes) = &completed.classes {
        return format!(
            "the classes of {n} rows in the last {} columns of `{out}`, as probabilities: {}",
            classes.len(),
            classes.join(", ")
        );
    }
    let score =
        score.map_or(String::new(), |score| format!("\n{}", render::conditional::text(score)));
    if let (Some(n_each), Some((method, verdict))) = (args.alternatives, completed.drawn_by) {
        let how = method.name();
        let place = if is_mosaic(args) { "" } else { ", a row for each after the other" };
        return format!(
            "{missing} missing units of {n} rows drawn {n_each} times ({how}: {verdict}) in `{out}`{place}{score}"
        );
    }
    let error = completed.largest_error();
    let how = match completed.method {
        Found::Exact => "exactly".to_owned(),
        _ if error.is_nan() => "with an error that is not known".to_owned(),
        _ => format!("with standard errors of at most {error:.2}"),
    };
    let what =
        if model.codebook().is_some() { "what is most probable" } else { "their probabilities" };
    format!("{missing} missing units of {n} rows filled with {what}, {how}, in `{out}`{score}")
}

/// Pictures of a mosaic at most.
const MOST_PICTURES: usize = 100;

/// Draws original, hidden, completed and alternatives of each picture in a row.
fn inpainted(
    args: &CompleteArgs,
    model: &Model,
    (whole, rows): (&Observed, &Observed),
    completed: &Completed,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let n = completed.values.nrows();
    if n > MOST_PICTURES {
        terminal.note(&format!("the mosaic shows the first {MOST_PICTURES} of {n} pictures"));
    }
    let originals = whole.data.to_array(Stream::new(0));
    let hidden = rows.data.to_array(Stream::new(0));
    let n_alternatives = args.alternatives.unwrap_or(0);
    let drawn = alternatives(completed, n_alternatives);
    let mut tiles = Vec::new();
    for row in 0..n.min(MOST_PICTURES) {
        tiles.extend([originals.row(row), hidden.row(row)]);
        tiles.push(completed.values.row(row));
        tiles.extend((row * n_alternatives..(row + 1) * n_alternatives).map(|k| drawn.row(k)));
    }
    let width = completed.values.ncols().min(originals.ncols());
    let tiles: Vec<Vec<f64>> =
        tiles.into_iter().map(|tile| tile.iter().take(width).copied().collect()).collect();
    let image = load::image_of(model, &whole.data)?;
    output::write_mosaic(&args.output.out, args.output.force, &tiles, image, 3 + n_alternatives)
}

/// Samples that an interval of a number takes.
const OF_INTERVALS: usize = 400;

/// Samples of each row: those that are asked for, and those that intervals take.
fn draws(args: &CompleteArgs, model: &Model) -> usize {
    let intervals = args.errors.is_some() && model.codebook().is_some();
    args.alternatives.unwrap_or(0).max(if intervals { OF_INTERVALS } else { 0 })
}

/// The first `n` samples of each row.
fn alternatives(completed: &Completed, n: usize) -> Array2<f64> {
    let of_row = completed.draws.nrows() / completed.values.nrows().max(1);
    let chosen = (0..completed.values.nrows()).flat_map(|row| row * of_row..row * of_row + n);
    completed.draws.select(Axis(0), &chosen.collect::<Vec<_>>())
}

/// The method that was asked for.
fn method(args: &CompleteArgs) -> Result<Filling, Failure> {
    Ok(match args.method.as_str() {
        "exact" if args.sweeps.is_some() => {
            return Err(Failure::new(
                "`--method exact` makes no sweeps",
                "leave out `--sweeps`, or ask for `--method gibbs`",
            ));
        }
        "exact" => Filling::Exact,
        "gibbs" => Filling::Gibbs,
        "mean-field" => Filling::MeanField,
        _ => Filling::Auto,
    })
}
