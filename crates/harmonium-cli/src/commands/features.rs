//! `harmonium features`: means of the hidden units for each sample.

use crate::args::{Common, FeaturesArgs};
use crate::failure::Failure;
use crate::load::Labelling;
use crate::output::{self, Kind};
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::model::Extracting;
use harmonium::progress::Listener;
use serde_json::json;

pub(crate) fn run(args: &FeaturesArgs, common: &Common) -> Result<(), Failure> {
    Kind::of(&args.output.out)?;
    output::check_free(&args.output.out, args.output.force)?;
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    let asked = load::Asked {
        data: args.data.as_deref(),
        given: &args.given,
        reading: &args.reading,
        labelling: Labelling::Without,
        labels: None,
        mask: None,
        known: &args.known,
    };
    let data = load::rows(&model, &asked, &mut terminal)?.data;
    let (layer, of) = (args.layer.clone(), args.of.clone());
    let extracting = Extracting { layer, of, arithmetic: common.arithmetic() };
    let found = model.features_with(&data, &extracting, &mut terminal)?;
    if found.unconverged > 0 {
        let n = found.unconverged;
        terminal.note(&format!("mean field had not converged for {n} rows"));
    }
    output::write_columns(
        &args.output.out,
        args.output.force,
        &model,
        &found.values,
        &found.names,
    )?;
    let ((n, features), out) = (found.values.dim(), &args.output.out);
    if common.json {
        return render::json(&json!({ "out": out, "n": n, "features": features }));
    }
    render::result(&format!("{n} rows of {features} features in `{out}`"))
}
