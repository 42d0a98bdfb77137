//! `harmonium features`: what the hidden units say about each sample.

use super::belief;
use crate::args::{Common, FeaturesArgs};
use crate::failure::Failure;
use crate::output::{self, Kind, Rows};
use crate::{load, render};
use harmonium::machine::{Engine, LayerId, Precision, Role};
use harmonium::run::Stored;
use harmonium::sampling::{Inference, MeanField, infer};
use harmonium::schema::Feed;
use serde_json::json;

/// Rows inferred at a time.
const ROWS: usize = 512;

pub(crate) fn run(args: &FeaturesArgs, common: &Common) -> Result<(), Failure> {
    Kind::of(&args.output.out)?;
    output::check_free(&args.output.out, args.output.force)?;
    let (stored, remembered) = load::stored(&args.model)?;
    let model = match stored {
        Stored::Machine(model) => model,
        Stored::Dbn(model) => return belief::features(args, common, &model, &remembered),
    };
    let machine = &model.machine;
    let layers = layers(args, machine)?;
    let input = load::data_for(&args.data, &args.reading, &remembered)?;
    let engine = Engine::with_precision(machine, common.precision(Precision::F32));
    let n_columns = layers.iter().map(|&l| machine.layer(l).len()).sum();
    let mut values = Vec::new();
    let mut unconverged = 0;
    let feed = Feed::of(machine, &input.dataset)?;
    for start in (0..input.dataset.n_rows()).step_by(ROWS) {
        let rows = start..(start + ROWS).min(input.dataset.n_rows());
        let (mut x, clamp) = super::states(machine, &feed, rows)?;
        if let Inference::MeanField(report) =
            infer(machine, &engine, &clamp, &mut x, MeanField::default())?
        {
            unconverged += report.unconverged;
        }
        for row in 0..x.n_rows() {
            layers.iter().for_each(|&l| values.extend_from_slice(x.row(l, row)));
        }
    }
    if unconverged > 0 {
        load::note_on_stderr(&format!("mean field had not converged for {unconverged} rows"));
    }
    let rows = Rows { values, n_columns, image: None };
    output::write(&args.output.out, &rows, args.output.force)?;
    if common.json {
        return render::json(
            &json!({ "out": args.output.out, "n": rows.n_rows(), "features": n_columns }),
        );
    }
    render::result(&format!(
        "{} rows of {n_columns} features in `{}`",
        rows.n_rows(),
        args.output.out
    ))
}

fn layers(
    args: &FeaturesArgs,
    machine: &harmonium::machine::Machine,
) -> Result<Vec<LayerId>, Failure> {
    let hidden: Vec<LayerId> =
        machine.layer_ids().filter(|&l| machine.layer(l).role == Role::Hidden).collect();
    let names: Vec<&str> = hidden.iter().map(|&l| machine.layer(l).name.as_str()).collect();
    if hidden.is_empty() {
        return Err(Failure::new(
            "this model has no hidden units",
            "features are what hidden units say: train one with `--hidden`",
        ));
    }
    match &args.layer {
        None => Ok(hidden),
        Some(name) => match hidden.iter().find(|&&l| machine.layer(l).name == *name) {
            Some(&l) => Ok(vec![l]),
            None => Err(Failure::new(
                format!("there is no hidden layer `{name}`"),
                format!("hidden layers: {}", names.join(", ")),
            )),
        },
    }
}
