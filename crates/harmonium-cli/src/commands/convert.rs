//! `harmonium convert`: models and data in other formats.

use crate::args::{Common, ConvertArgs};
use crate::failure::Failure;
use crate::output;
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::machine::{Machine, Weights};
use harmonium::model::{is_factors, is_named};
use harmonium::models::Body;
use harmonium::progress::Listener;
use harmonium::random::Stream;
use harmonium::run::{write_onnx, write_uai};
use harmonium::{Binarize, Dataset};
use harmonium_data::open;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(args: &ConvertArgs, common: &Common) -> Result<(), Failure> {
    output::check_free(&args.output, args.force)?;
    let mut terminal = Terminal::new(common);
    let what = if is_model(&args.input) {
        model(args, &mut terminal)?
    } else {
        data(args, &mut terminal)?
    };
    if common.json {
        return render::json(&json!({ "out": args.output, "kind": what }));
    }
    render::result(&format!("{what} in `{}`", args.output))
}

/// Run directories, safetensors and UAI files and built-in machines are models, everything else is
/// data.
fn is_model(input: &str) -> bool {
    let run = Path::new(input).join("run.toml").is_file();
    run || is_factors(input) || ending(input) == "safetensors" || is_named(input)
}

fn ending(path: &str) -> String {
    let ending = Path::new(path).extension().and_then(|e| e.to_str());
    ending.unwrap_or_default().to_ascii_lowercase()
}

fn model(args: &ConvertArgs, terminal: &mut Terminal) -> Result<&'static str, Failure> {
    let model = load::model(&args.input, terminal)?;
    let ending = ending(&args.output);
    let bytes = match (ending.as_str(), &model.body) {
        ("safetensors", _) => model.to_bytes()?,
        ("json", Body::Machine(machine)) => parameters(machine).to_string().into_bytes(),
        ("uai", Body::Machine(machine)) => write_uai(machine)?.into_bytes(),
        ("onnx", Body::Network(network)) => {
            if let Some(posterior) = network.posterior() {
                let n = posterior.machine.layer(posterior.layer).len();
                terminal.note(&format!(
                    "the last {n} columns of its input are means by mean field, as `harmonium features` gives them"
                ));
            }
            write_onnx(network)?
        }
        ("json" | "uai" | "onnx", body) => {
            let what = match body {
                Body::Machine(_) => "a machine",
                Body::Dbn(_) => "a deep belief network",
                _ => "a feed-forward net",
            };
            let also = if matches!(body, Body::Network(_)) { " or .onnx" } else { "" };
            return Err(Failure::new(
                format!("{what} cannot be written as `{}`", args.output),
                format!("end it in .safetensors{also}"),
            ));
        }
        _ => {
            return Err(Failure::new(
                format!("a model cannot be written as `{}`", args.output),
                "end it in .safetensors, .json or .uai, a net in .safetensors or .onnx",
            ));
        }
    };
    output::write_bytes(&args.output, &bytes, args.force)?;
    Ok("model")
}

/// All parameters for other programs: weights row by row, lateral ones above the diagonal, sparse
/// ones with the two entries of each edge.
fn parameters(machine: &Machine) -> Value {
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

fn data(args: &ConvertArgs, terminal: &mut Terminal) -> Result<&'static str, Failure> {
    output::Kind::of(&args.output)?;
    let reading = args.reading.reading()?;
    let loaded = open(&args.input, &reading.options()?)?;
    loaded.about.notes.iter().for_each(|note| terminal.note(note));
    let table = loaded.table;
    let image = table.image();
    let data = Dataset::new(table, reading.binarize()?.unwrap_or(Binarize::None))?;
    output::write_values(&args.output, args.force, &data.to_array(Stream::new(0)), image)?;
    Ok("data")
}
