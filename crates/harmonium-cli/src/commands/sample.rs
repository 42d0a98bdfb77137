//! `harmonium sample`: draws from a model, free or with part of each sample given.

use super::mask;
use crate::args::{Common, SampleArgs};
use crate::failure::Failure;
use crate::output::{self, Kind};
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::model::{Drawing, Given, Show};
use harmonium::{Dataset, Model};
use serde_json::json;

pub(crate) fn run(args: &SampleArgs, common: &Common) -> Result<(), Failure> {
    Kind::of(&args.output.out)?;
    output::check_free(&args.output.out, args.output.force)?;
    if args.n == 0 {
        return Err(Failure::new("`--n 0` asks for nothing", "ask for at least one sample"));
    }
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    let rows = match &args.given {
        Some(spec) => {
            Some(load::labelled_data_for(&model, spec, &args.reading, None, &mut terminal)?)
        }
        None => None,
    };
    let drawing = Drawing {
        // One sample for each row that is given.
        n: if rows.is_some() { 1 } else { args.n },
        sweeps: args.sweeps,
        seed: common.seed(),
        show: if args.means { Show::Means } else { Show::Values },
        arithmetic: common.arithmetic(),
    };
    let drawn = known(args, &model, rows.as_ref())?.draw(&drawing, &mut terminal)?;
    output::write_samples(&args.output, &model, &drawn.values)?;
    let n = drawn.values.nrows();
    if common.json {
        return render::json(&json!({
            "out": args.output.out, "n": n, "sweeps": args.sweeps, "class": args.class,
        }));
    }
    let sweeps = args.sweeps;
    render::result(&format!("{n} samples after {sweeps} sweeps in `{}`", args.output.out))
}

/// What is known of each sample.
fn known<'m>(
    args: &SampleArgs,
    model: &'m Model,
    rows: Option<&Dataset>,
) -> Result<Given<'m>, Failure> {
    Ok(match (rows, &args.mask, &args.class) {
        (Some(data), Some(path), _) => model.given(data, Some(mask(path, data)?.view()))?,
        (Some(data), None, _) => model.given(data, None)?,
        (None, _, Some(name)) => model.of_class(name)?,
        (None, _, None) => model.freely(),
    })
}
