//! `harmonium convert`: models and data in other formats.

use crate::args::{Common, ConvertArgs};
use crate::failure::Failure;
use crate::output::{self, Rows};
use crate::{builtin, load, render};
use harmonium::machine::{Machine, Weights};
use harmonium::run::{Model, write_uai};
use harmonium_data::open;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(args: &ConvertArgs, common: &Common) -> Result<(), Failure> {
    output::check_free(&args.output, args.force)?;
    let what = if is_model(&args.input) { model(args)? } else { data(args)? };
    if common.json {
        return render::json(&json!({ "out": args.output, "kind": what }));
    }
    render::result(&format!("{what} in `{}`", args.output))
}

/// Run directories, safetensors and UAI files and built-in machines are models, everything else is
/// data.
fn is_model(input: &str) -> bool {
    let run = Path::new(input).join("run.toml").is_file();
    run || load::is_uai(input) || ending(input) == "safetensors" || builtin::is_name(input)
}

fn ending(path: &str) -> String {
    let ending = Path::new(path).extension().and_then(|e| e.to_str());
    ending.unwrap_or_default().to_ascii_lowercase()
}

fn model(args: &ConvertArgs) -> Result<&'static str, Failure> {
    let (model, _) = load::model(&args.input)?;
    let bytes = match ending(&args.output).as_str() {
        "safetensors" => model.to_bytes()?,
        "json" => parameters(&model).to_string().into_bytes(),
        "uai" => write_uai(&model.machine)?.into_bytes(),
        _ => {
            return Err(Failure::new(
                format!("a model cannot be written as `{}`", args.output),
                "end it in .safetensors, .json or .uai",
            ));
        }
    };
    output::write_bytes(&args.output, &bytes, args.force)?;
    Ok("model")
}

/// All parameters for other programs: weights row by row, lateral ones above the diagonal, sparse
/// ones with the two entries of each edge.
fn parameters(model: &Model) -> Value {
    let machine: &Machine = &model.machine;
    let name = |l| &machine.layer(l).name;
    json!({
        "energy": "constant - sum b x + sum precision x^2 / 2 - sum (x - offset) W (y - offset)",
        "constant": machine.constant(),
        "layers": machine.layers().iter().map(|l| json!({
            "name": l.name,
            "role": l.role,
            "units": l.units,
            "bias": l.bias,
            "offset": l.offset,
            "precision": l.own_named("precision"),
        })).collect::<Vec<_>>(),
        "couplings": machine.couplings().iter().map(|c| json!({
            "between": [name(c.between.0), name(c.between.1)],
            "lateral": c.is_lateral(),
            "weights": c.weights.entries(),
            "edges": match &c.weights {
                Weights::Sparse(edges) => Some(edges.pairs()),
                Weights::Between(_) | Weights::Lateral(_) => None,
            },
        })).collect::<Vec<_>>(),
    })
}

fn data(args: &ConvertArgs) -> Result<&'static str, Failure> {
    output::Kind::of(&args.output)?;
    let loaded = open(&args.input, &args.reading.options()?)?;
    let (table, binarize) = (loaded.table, args.reading.binarize()?);
    let image = table.image();
    let n_columns = table.n_columns();
    let dataset =
        harmonium_data::Dataset::new(table, binarize.unwrap_or(harmonium_data::Binarize::None))?;
    let values = dataset.present(harmonium::random::Stream::new(0));
    output::write(&args.output, &Rows { values, n_columns, image }, args.force)?;
    Ok("data")
}
