//! `harmonium inspect`: what is in a model.

use super::diagnose;
use crate::args::{Common, InspectArgs};
use crate::failure::Failure;
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::machine::{Clamp, Coupling, Machine, Role, Weights};
use harmonium::models::{Body, Network, Posterior};
use harmonium::{Model, exact};
use serde_json::{Value, json};
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

    fn json(&self) -> Value {
        json!({ "min": self.min, "max": self.max, "mean": self.mean, "std": self.std })
    }

    fn text(&self) -> String {
        format!(
            "{:8.3} to {:7.3}, mean {:7.3}, spread {:6.3}",
            self.min, self.max, self.mean, self.std
        )
    }
}

/// A model as it is shown: a deep belief network as the chain of its generative weights.
struct Shown {
    model: Model,
    machine: Machine,
    /// Binary logarithm of the terms of an exact ln Z.
    log2_terms: f64,
}

pub(crate) fn run(args: &InspectArgs, common: &Common) -> Result<(), Failure> {
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    if let Body::Network(network) = &model.body {
        drop(terminal);
        return net(network, &model, args, common);
    }
    let machine = model.shown()?;
    let log2_terms = exact::log2_terms(model.top()?, &Clamp::none(), 1)?;
    let shown = Shown { model, machine, log2_terms };
    let diagnostics = match (&shown.model.body, args.diagnostics) {
        (_, false) => None,
        (Body::Machine(_), true) => Some(diagnose::run(&shown.model, args, common, &mut terminal)?),
        (_, true) => {
            return Err(Failure::new(
                "`--diagnostics` looks at the chains of a machine, and this is a deep belief network",
                "leave it out, or look at the samples of `harmonium sample`",
            ));
        }
    };
    drop(terminal);
    if common.json {
        let mut value = shown.json();
        if let Some((found, _)) = diagnostics {
            value["diagnostics"] = found;
        }
        return render::json(&value);
    }
    let mut text = shown.text();
    if let Some((_, found)) = diagnostics {
        text = format!("{text}\n\n{}", found.trim_end());
    }
    render::result(&text)
}

/// What is in a feed-forward net.
fn net(
    network: &Network,
    model: &Model,
    args: &InspectArgs,
    common: &Common,
) -> Result<(), Failure> {
    if args.diagnostics {
        return Err(Failure::new(
            "`--diagnostics` looks at the chains of a machine, and this is a feed-forward net",
            "leave it out, and look at its mistakes with `harmonium classify`",
        ));
    }
    let about = &model.about;
    if common.json {
        return render::json(&json!({
            "kind": model.body.kind(),
            "inputs": network.inputs().iter().map(|l| json!({
                "name": l.name, "units": l.units.name(), "n_units": l.n_units(),
            })).collect::<Vec<_>>(),
            "posterior": network.posterior().map(|p| json!({
                "layer": p.machine.layer(p.layer).name, "n_units": p.machine.layer(p.layer).len(),
            })),
            "layers": network.layers().iter().map(|l| json!({
                "name": l.name,
                "activation": l.activation,
                "n_units": l.len(),
                "weights": Spread::of(l.weights.entries()).json(),
                "bias": Spread::of(&l.bias).json(),
            })).collect::<Vec<_>>(),
            "target": network.target(),
            "parameters": network.n_parameters(),
            "seed": about.seed,
            "epoch": about.epoch,
            "step": about.step,
            "config": about.config,
            "classes": about.data.classes,
            "data_rows": about.data.rows,
            "library_version": about.library_version,
        }));
    }
    let mut text = String::new();
    for l in network.inputs() {
        let _ = writeln!(text, "input `{}`: {} {} units", l.name, l.n_units(), l.units.name());
    }
    if let Some(Posterior { machine, layer }) = network.posterior() {
        let (name, n) = (&machine.layer(*layer).name, machine.layer(*layer).len());
        let _ = writeln!(
            text,
            "beside it {n} means of `{name}`, by mean field in the machine it was made of"
        );
    }
    for layer in network.layers() {
        let _ = writeln!(
            text,
            "layer `{}`: {} {} units\n  weights  {}\n  biases   {}",
            layer.name,
            layer.len(),
            layer.activation.word(),
            Spread::of(layer.weights.entries()).text(),
            Spread::of(&layer.bias).text()
        );
    }
    let _ = write!(
        text,
        "{} parameters, learned to tell {}; trained for {} epochs ({} updates) on {} rows, seed {}",
        network.n_parameters(),
        network.target().word(),
        about.epoch,
        about.step,
        about.data.rows,
        about.seed
    );
    render::result(&text)
}

impl Shown {
    fn json(&self) -> Value {
        let about = &self.model.about;
        json!({
            "kind": self.model.body.kind(),
            "layers": self.machine.layers().iter().map(|l| json!({
                "name": l.name,
                "role": l.role,
                "units": l.units.name(),
                "n_units": l.n_units(),
                "bias": Spread::of(&l.bias).json(),
                "offset": Spread::of(&l.offset).json(),
            })).collect::<Vec<_>>(),
            "couplings": couplings(&self.machine).into_iter().map(|c| json!({
                "between": c.between,
                "weights": c.spread.json(),
                "edges": c.sparse.map(|s| s.0),
                "colours": c.sparse.map(|s| s.1),
            })).collect::<Vec<_>>(),
            "parameters": self.model.body.n_parameters(),
            "exact_log2_terms": self.log2_terms,
            "seed": about.seed,
            "epoch": about.epoch,
            "step": about.step,
            "config": about.config,
            "classes": about.data.classes,
            "data_rows": about.data.rows,
            "library_version": about.library_version,
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for layer in self.machine.layers() {
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
        for Summary { between: (a, b), spread, sparse } in couplings(&self.machine) {
            let sparse = sparse.map_or(String::new(), |(edges, colours)| {
                format!(", {edges} edges in {colours} colours")
            });
            let _ = writeln!(text, "weights `{a}` – `{b}`{sparse}\n           {}", spread.text());
        }
        let (terms, about) = (self.log2_terms, &self.model.about);
        let _ = writeln!(
            text,
            "{} parameters; an exact ln Z{} takes 2^{terms:.0} terms{}",
            self.model.body.n_parameters(),
            if matches!(self.model.body, Body::Dbn(_)) { " of the top RBM" } else { "" },
            if exact::Budget::LIMIT.affords(terms) { "" } else { ", which is too many" },
        );
        let _ = match about.step {
            0 => write!(text, "not trained"),
            step => write!(
                text,
                "trained for {} epochs ({step} updates) on {} rows, seed {}",
                about.epoch, about.data.rows, about.seed
            ),
        };
        text
    }
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
