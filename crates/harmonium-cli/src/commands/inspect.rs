//! `harmonium inspect`: what is in a model.

use super::diagnose;
use crate::args::{Common, InspectArgs};
use crate::failure::Failure;
use crate::{load, render};
use harmonium::exact;
use harmonium::machine::{Coupling, Machine, Role, Weights};
use harmonium::run::Stored;
use harmonium::sampling::Clamp;
use serde_json::json;
use std::fmt::Write;

/// Smallest, largest, mean and spread of some numbers.
struct Spread {
    min: f64,
    max: f64,
    mean: f64,
    std: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let fold = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f).unwrap_or(0.0);
        Self { min: fold(f64::min), max: fold(f64::max), mean, std: variance.sqrt() }
    }

    fn json(&self) -> serde_json::Value {
        json!({ "min": self.min, "max": self.max, "mean": self.mean, "std": self.std })
    }

    fn text(&self) -> String {
        format!(
            "{:8.3} to {:7.3}, mean {:7.3}, spread {:6.3}",
            self.min, self.max, self.mean, self.std
        )
    }
}

pub(crate) fn run(args: &InspectArgs, common: &Common) -> Result<(), Failure> {
    let (stored, remembered) = load::stored(&args.model)?;
    // A deep belief network is shown as the chain of its generative weights; what is sampled and
    // summed is its top.
    let (kind, machine, about, summed, n_parameters) = match stored {
        Stored::Machine(model) => {
            let n_parameters = model.machine.n_parameters();
            ("machine", model.machine.clone(), model.about, model.machine, n_parameters)
        }
        Stored::Dbn(model) => {
            let n_parameters = model.dbn.n_parameters();
            let chain = model.dbn.generative_chain()?;
            ("dbn", chain, model.about, model.dbn.top().clone(), n_parameters)
        }
    };
    let machine = &machine;
    let terms = exact::log2_terms(&summed, &Clamp::none(), 1)?;
    let diagnostics = if args.diagnostics {
        if kind == "dbn" {
            return Err(Failure::new(
                "`--diagnostics` looks at the chains of a machine, and this is a deep belief network",
                "leave it out, or look at the samples of `harmonium sample`",
            ));
        }
        Some(diagnose::run(&summed, &remembered, args, common)?)
    } else {
        None
    };
    if common.json {
        let mut value = json!({
            "kind": kind,
            "layers": machine.layers().iter().map(|l| json!({
                "name": l.name,
                "role": l.role,
                "units": l.units.name(),
                "n_units": l.n_units(),
                "bias": Spread::of(&l.bias).json(),
                "offset": Spread::of(&l.offset).json(),
            })).collect::<Vec<_>>(),
            "couplings": couplings(machine).into_iter().map(|c| json!({
                "between": c.between,
                "weights": c.spread.json(),
                "edges": c.sparse.map(|s| s.0),
                "colours": c.sparse.map(|s| s.1),
            })).collect::<Vec<_>>(),
            "parameters": n_parameters,
            "exact_log2_terms": terms,
            "seed": about.seed,
            "epoch": about.epoch,
            "step": about.step,
            "config": about.config,
            "data_rows": remembered.rows,
            "library_version": about.library_version,
        });
        if let Some((found, _)) = diagnostics {
            value["diagnostics"] = found;
        }
        return render::json(&value);
    }
    let mut text = String::new();
    for layer in machine.layers() {
        let role = if layer.role == Role::Visible { "visible" } else { "hidden" };
        let _ = writeln!(
            text,
            "layer `{}`: {} {} units, {role}\n  biases   {}\n  offsets  {}",
            layer.name,
            layer.n_units(),
            layer.units.name(),
            Spread::of(&layer.bias).text(),
            Spread::of(&layer.offset).text()
        );
    }
    for Summary { between: (a, b), spread, sparse } in couplings(machine) {
        let sparse = sparse.map_or(String::new(), |(edges, colours)| {
            format!(", {edges} edges in {colours} colours")
        });
        let _ = writeln!(text, "weights `{a}` – `{b}`{sparse}\n           {}", spread.text());
    }
    let _ = writeln!(
        text,
        "{n_parameters} parameters; an exact ln Z{} takes 2^{terms:.0} terms{}",
        if kind == "dbn" { " of the top RBM" } else { "" },
        if terms > exact::LIMIT_LOG2 { ", which is too many" } else { "" },
    );
    let _ = match about.step {
        0 => write!(text, "not trained"),
        step => write!(
            text,
            "trained for {} epochs ({step} updates) on {} rows, seed {}",
            about.epoch, remembered.rows, about.seed
        ),
    };
    if let Some((_, found)) = diagnostics {
        let _ = write!(text, "\n\n{}", found.trim_end());
    }
    render::result(&text)
}

/// A coupling in short.
struct Summary<'a> {
    between: (&'a str, &'a str),
    spread: Spread,
    /// Edges and colours of a sparse one.
    sparse: Option<(usize, usize)>,
}

fn couplings(machine: &Machine) -> Vec<Summary<'_>> {
    let name = |l| machine.layer(l).name.as_str();
    let summary = |c: &'_ Coupling| Summary {
        between: (name(c.between.0), name(c.between.1)),
        spread: Spread::of(c.weights.entries()),
        sparse: match &c.weights {
            Weights::Sparse(edges) => {
                Some((edges.pairs().len(), machine.unit_blocks(c.between.0).len()))
            }
            Weights::Between(_) | Weights::Lateral(_) => None,
        },
    };
    machine.couplings().iter().map(summary).collect()
}
