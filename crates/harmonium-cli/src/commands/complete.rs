//! `harmonium complete`: fills missing values with their probabilities given the rest.

use super::mask;
use crate::args::{Common, CompleteArgs};
use crate::failure::Failure;
use crate::output::{self, Kind};
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::model::Completing;
use harmonium::progress::Listener;
use serde_json::json;

pub(crate) fn run(args: &CompleteArgs, common: &Common) -> Result<(), Failure> {
    Kind::of(&args.output.out)?;
    output::check_free(&args.output.out, args.output.force)?;
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    let labels = args.labels.as_deref();
    let data = load::labelled_data_for(&model, &args.data, &args.reading, labels, &mut terminal)?;
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
    let classes = completed.classes;
    if common.json {
        let sweeps = args.sweeps;
        let mut value = json!({ "out": out, "n": n, "missing": missing, "sweeps": sweeps });
        if let Some(classes) = classes {
            value["classes"] = json!(classes);
        }
        return render::json(&value);
    }
    if let Some(classes) = classes {
        return render::result(&format!(
            "the classes of {n} rows in the last {} columns of `{out}`, as probabilities: {}",
            classes.len(),
            classes.join(", ")
        ));
    }
    render::result(&format!(
        "{missing} missing units of {n} rows filled with their probabilities in `{out}`"
    ))
}
