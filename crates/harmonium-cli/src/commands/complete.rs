//! `harmonium complete`: fills missing values with their probabilities given the rest.

use crate::args::{Common, CompleteArgs};
use crate::failure::Failure;
use crate::load::Labelling;
use crate::output::{self, Kind};
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::model::{Completing, Filling, Found};
use harmonium::progress::Listener;
use serde_json::json;

pub(crate) fn run(args: &CompleteArgs, common: &Common) -> Result<(), Failure> {
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
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    let asked = load::Asked {
        data: args.data.as_deref().or(args.given.as_deref()),
        reading: &args.reading,
        labelling: Labelling::AsRead,
        labels: args.labels.as_deref(),
        mask: args.mask.as_deref(),
        known: &args.known,
    };
    let rows = load::rows(&model, &asked, &mut terminal)?;
    let completing = Completing {
        method: method(args)?,
        sweeps: args.sweeps,
        seed: common.seed(),
        arithmetic: common.arithmetic(),
    };
    let completed = model.complete_with(&rows.data, None, &completing, &mut terminal)?;
    if completed.n_missing == 0 {
        terminal.note("nothing is missing: the data is written as it is");
    }
    output::write_filled(&args.output, &model, &rows, &completed.values)?;
    if let Some(errors) = &args.errors {
        output::write_errors(errors, args.output.force, &model, &completed)?;
    }
    if let Some(text) = completed.warning() {
        let sweeps = 4 * completed.sweeps;
        render::warn(&format!("{text}; `--sweeps {sweeps}` or `--method exact` may help"));
    }
    let (n, missing, out) = (completed.values.nrows(), completed.n_missing, &args.output.out);
    let error = completed.largest_error();
    let classes = &completed.classes;
    if common.json {
        let mut value = completed.to_json();
        value["out"] = json!(out);
        return render::json(&value);
    }
    if let Some(classes) = classes {
        return render::result(&format!(
            "the classes of {n} rows in the last {} columns of `{out}`, as probabilities: {}",
            classes.len(),
            classes.join(", ")
        ));
    }
    let how = match completed.method {
        Found::Exact => "exactly".to_owned(),
        _ if error.is_nan() => "with an error that is not known".to_owned(),
        _ => format!("with standard errors of at most {error:.2}"),
    };
    render::result(&format!(
        "{missing} missing units of {n} rows filled with their probabilities, {how}, in `{out}`"
    ))
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
        _ => Filling::Auto,
    })
}
