//! `harmonium infer`: what is not known, given what is, by one method or by all.

use super::logz;
use crate::args::infer::InferArgs;
use crate::args::{Common, KnownArgs, KnownValue};
use crate::failure::Failure;
use crate::load::Labelling;
use crate::output;
use crate::render::answers;
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::Model;
use harmonium::model::{
    Approach, Course, Given, Inferred, Inferring, Knowledge, Maximiser, Maximising, MostProbable,
    Observed,
};
use harmonium::run::{load_evidence, write_map, write_mar, write_pr};
use serde_json::json;
use std::path::Path;

/// Free units up to which their probabilities are part of the JSON.
const FEW_UNITS: usize = 1000;

pub(crate) fn run(args: &InferArgs, common: &Common) -> Result<(), Failure> {
    let files = Files::of(args)?;
    let memory = args.memory.as_deref().map(bytes).transpose()?;
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    let given = known(args, &model, &mut terminal)?;
    let inferring = Inferring {
        approach: Approach::named(&args.method).unwrap_or_default(),
        pairs: args.pairs.is_some(),
        memory,
        annealing: logz::settings(&args.annealing, common),
    };
    let inferred = given.infer(&inferring, &mut terminal)?;
    let best = (args.map || files.wants_map())
        .then(|| {
            let by = Maximiser::named(&args.map_method).unwrap_or_default();
            let maximising =
                Maximising { by, memory, seed: common.seed(), ..Maximising::default() };
            given.most_probable(&maximising, &mut terminal)
        })
        .transpose()?;
    drop(terminal);
    files.write(&model, &given, &inferred, best.as_ref(), args.force)?;
    inferred.warnings().iter().for_each(|warning| render::warn(warning));
    if common.json {
        let few = inferred.graph.nodes().len() <= FEW_UNITS;
        let mut value = inferred.to_json(&model, few);
        if let Some(best) = &best {
            value["map"] = best.to_json(Some(&inferred));
        }
        if !files.all().is_empty() {
            value["out"] = json!(files.all());
        }
        return render::json(&value);
    }
    let mut text = answers::describe(&model, &inferred);
    if let Some(best) = &best {
        text = format!("{text}\n{}", answers::describe_map(best, &inferred));
    }
    for file in files.all() {
        text = format!("{text}\nwritten to `{file}`");
    }
    render::result(&text)
}

/// What is known.
fn known<'m>(
    args: &InferArgs,
    model: &'m Model,
    terminal: &mut Terminal,
) -> Result<Given<'m>, Failure> {
    let known = Knowledge {
        rows: args.given.as_ref().map(|spec| row(args, model, spec, terminal)).transpose()?,
        class: args.class.clone(),
        values: args.wheres.iter().map(KnownValue::pair).collect(),
        variables: args.evidence.as_deref().map(load_evidence).transpose()?.unwrap_or_default(),
    };
    Ok(model.known(known)?)
}

/// The one row that is asked about.
fn row(
    args: &InferArgs,
    model: &Model,
    spec: &str,
    terminal: &mut Terminal,
) -> Result<Observed, Failure> {
    let asked = load::Asked {
        data: Some(spec),
        given: &[],
        reading: &args.reading,
        labelling: Labelling::AsRead,
        labels: None,
        mask: args.mask.as_deref(),
        known: &KnownArgs::default(),
    };
    let rows = load::rows(model, &asked, terminal)?;
    if rows.data.n_rows() != 1 {
        return Err(Failure::new(
            format!("`{spec}` has {} rows, and `infer` is about one", rows.data.n_rows()),
            "give a file of one row; `complete` fills the missing cells of many",
        ));
    }
    Ok(rows)
}

/// A number of bytes, as people write it.
fn bytes(text: &str) -> Result<f64, Failure> {
    let lower = text.trim().to_ascii_lowercase();
    let units = [("tb", 1e12), ("gb", 1e9), ("mb", 1e6), ("kb", 1e3), ("b", 1.0), ("", 1.0)];
    let found = units.iter().find_map(|(unit, factor)| {
        let number: f64 = lower.strip_suffix(unit)?.trim().parse().ok()?;
        (number > 0.0 && number.is_finite()).then_some(number * factor)
    });
    found.ok_or_else(|| {
        Failure::new(
            format!("`--memory {text}` is not a size"),
            "write it as 500MB, 2GB or a number of bytes",
        )
    })
}

/// What a file is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Csv,
    Pairs,
    Pr,
    Mar,
    Map,
}

/// Files that are to be written, checked before the work.
struct Files(Vec<(String, Kind)>);

impl Files {
    fn of(args: &InferArgs) -> Result<Self, Failure> {
        let ending = |path: &str| {
            let ending = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or_default();
            ending.to_ascii_lowercase()
        };
        let no = |path: &str, endings: &str| {
            let message = format!("`{path}` has no ending that says how to write it");
            Failure::new(message, format!("end it in {endings}"))
        };
        let mut files = Vec::new();
        if let Some(path) = &args.marginals {
            files.push((
                path.clone(),
                match ending(path).as_str() {
                    "csv" => Kind::Csv,
                    "mar" => Kind::Mar,
                    _ => return Err(no(path, ".csv or .MAR")),
                },
            ));
        }
        if let Some(path) = &args.pairs {
            if ending(path) != "csv" {
                return Err(no(path, ".csv"));
            }
            files.push((path.clone(), Kind::Pairs));
        }
        for path in &args.out {
            files.push((
                path.clone(),
                match ending(path).as_str() {
                    "pr" => Kind::Pr,
                    "mar" => Kind::Mar,
                    "map" => Kind::Map,
                    _ => return Err(no(path, ".PR, .MAR or .MAP")),
                },
            ));
        }
        files.iter().try_for_each(|(path, _)| output::check_free(path, args.force))?;
        Ok(Self(files))
    }

    fn all(&self) -> Vec<&str> {
        self.0.iter().map(|(path, _)| path.as_str()).collect()
    }

    fn wants_map(&self) -> bool {
        self.0.iter().any(|(_, kind)| *kind == Kind::Map)
    }

    fn write(
        &self,
        model: &Model,
        given: &Given<'_>,
        inferred: &Inferred,
        best: Option<&MostProbable>,
        force: bool,
    ) -> Result<(), Failure> {
        for (path, kind) in &self.0 {
            let text = match kind {
                Kind::Pr => write_pr(log_z(inferred)?),
                Kind::Csv => answers::marginals_csv(model, inferred, marginals(inferred)?),
                Kind::Pairs => answers::pairs_csv(model, inferred, pairs(inferred)?),
                Kind::Mar => {
                    let found = &marginals(inferred)?.marginals;
                    let found = found.as_ref().ok_or_else(no_probabilities)?;
                    let states = given.by_variable(inferred, found)?;
                    write_mar(states.iter().map(Vec::as_slice))
                }
                Kind::Map => {
                    let states = best.map_or(Vec::new(), |best| best.states.clone());
                    let states: Option<Vec<usize>> = states.into_iter().collect();
                    write_map(&states.ok_or_else(|| {
                        Failure::new(
                            "real units have no states to write",
                            "UAI files hold variables with finitely many states",
                        )
                    })?)
                }
            };
            output::write_bytes(path, text.as_bytes(), force)?;
        }
        Ok(())
    }
}

fn log_z(inferred: &Inferred) -> Result<f64, Failure> {
    inferred.trusted_log_z().and_then(|a| a.log_z).ok_or_else(|| {
        Failure::new(
            "no value of ln Z can be relied on, so none is written",
            "choose one by its method, for example `--method ais`",
        )
    })
}

fn no_probabilities() -> Failure {
    Failure::new(
        "no probabilities can be relied on, so none are written",
        "choose them by their method, for example `--method bp`",
    )
}

fn marginals(inferred: &Inferred) -> Result<&harmonium::model::Answer, Failure> {
    inferred.trusted_marginals().ok_or_else(no_probabilities)
}

/// The answer whose pairs are written: one that has them.
fn pairs(inferred: &Inferred) -> Result<&harmonium::model::Answer, Failure> {
    let answer = marginals(inferred)?;
    let has = |a: &harmonium::model::Answer| {
        a.marginals.as_ref().is_some_and(|m| m.edges.iter().any(|e| !e.is_empty()))
    };
    let sampled = matches!(answer.course, Course::Sampled { .. });
    if has(answer) || inferred.graph.edges().is_empty() {
        return Ok(answer);
    }
    let why = if sampled { "sampling averages single units" } else { "it looks at single units" };
    Err(Failure::new(
        format!("`{}` has no probabilities of pairs: {why}", answer.approach.name()),
        "ask for `--method junction-tree`, `bp`, `trw`, `tap` or `mean-field`",
    ))
}
