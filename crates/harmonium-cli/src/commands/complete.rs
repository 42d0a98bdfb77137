//! `harmonium complete`: fills missing values with their probabilities given the rest.

use super::mask;
use crate::args::{Common, CompleteArgs};
use crate::failure::Failure;
use crate::output::{self, Kind};
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::model::Completing;
use harmonium::models::Body;
use harmonium::progress::Listener;
use serde_json::json;

pub(crate) fn run(args: &CompleteArgs, common: &Common) -> Result<(), Failure> {
    Kind::of(&args.output.out)?;
    output::check_free(&args.output.out, args.output.force)?;
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    let mut reading = args.reading.clone();
    // Missing cells cannot be drawn or thresholded: bits are left as they are.
    let machine = matches!(model.body, Body::Machine(_));
    if machine && args.mask.is_none() && reading.binarize.is_none() {
        reading.binarize = Some("none".into());
    }
    let data = load::data_for(&model, &args.data, &reading, None, &mut terminal)?.dataset;
    let observed = args.mask.as_ref().map(|path| mask(path, &data)).transpose()?;
    let completing =
        Completing { sweeps: args.sweeps, seed: common.seed(), arithmetic: common.arithmetic() };
    let observed = observed.as_ref().map(|mask| mask.view());
    let completed = model.complete_with(&data, observed, &completing, &mut terminal)?;
    if completed.n_missing == 0 {
        terminal.note("nothing is missing: the data is written as it is");
    }
    output::write_samples(&args.output, &model, &completed.values)?;
    let (n, missing, out) = (completed.values.nrows(), completed.n_missing, &args.output.out);
    if common.json {
        let sweeps = args.sweeps;
        return render::json(&json!({ "out": out, "n": n, "missing": missing, "sweeps": sweeps }));
    }
    render::result(&format!(
        "{missing} missing units of {n} rows filled with their probabilities in `{out}`"
    ))
}
