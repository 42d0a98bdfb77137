//! `harmonium score`: how probable the data is.

use super::belief;
use crate::args::{Common, ScoreArgs};
use crate::failure::Failure;
use crate::output::{self, Kind, Rows};
use crate::{load, render};
use harmonium::evaluation::bound;
use harmonium::evaluation::pseudo::{Visit, log_pseudo_likelihood};
use harmonium::exact;
use harmonium::machine::{Engine, Machine, State};
use harmonium::run::Stored;
use harmonium::sampling::{Clamp, MeanField, infer, posterior_factorises};
use harmonium_data::Dataset;
use serde_json::json;

/// Up to this many terms `auto` sums exactly.
const AUTO_LOG2_TERMS: f64 = 26.0;
/// Rows scored at a time.
const ROWS: usize = 256;

/// Scores of each row, and what they are.
pub(super) struct Scores {
    method: &'static str,
    rows: Vec<f64>,
    pub(super) mean: f64,
    pub(super) data_std_error: f64,
    log_z: Option<f64>,
}

pub(crate) fn run(args: &ScoreArgs, common: &Common) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        Kind::of(out)?;
        output::check_free(out, args.force)?;
    }
    let (stored, remembered) = load::stored(&args.model)?;
    let model = match stored {
        Stored::Machine(model) => model,
        Stored::Dbn(model) => return belief::scores(args, common, &model, &remembered),
    };
    let mut input = load::data_for(&args.data, &args.reading, &remembered)?;
    if let Some(path) = &args.labels {
        (input, _) = load::with_labels(input, path, Some(&remembered.classes))?;
    }
    let (machine, data) = (&model.machine, &input.dataset);
    let method = match args.method.as_str() {
        "auto" => choose(machine)?,
        other => other,
    };
    let scores = match method {
        "exact" => exact_scores(machine, data)?,
        "pseudo" => pseudo_likelihoods(machine, data)?,
        "bound" | "importance" => {
            return Err(Failure::new(
                format!("`--method {method}` is for deep belief networks"),
                "use `exact`, `pseudo` or `free-energy`",
            ));
        }
        _ => free_energies(machine, data)?,
    };
    if let Some(out) = &args.out {
        let rows = Rows { values: scores.rows.clone(), n_columns: 1, image: None };
        output::write(out, &rows, args.force)?;
    }
    show(&scores, data, common)
}

/// Exact where that is affordable, else the pseudo-likelihood, else the free energy.
fn choose(machine: &Machine) -> Result<&'static str, Failure> {
    let terms = exact::log2_terms(machine, &Clamp::none(), 1)?;
    let clamp = Clamp::visible(machine);
    let discrete = machine.visible_layers().iter().all(|&l| machine.layer(l).units.is_discrete());
    Ok(match () {
        () if terms <= AUTO_LOG2_TERMS => "exact",
        () if posterior_factorises(machine, &clamp) && discrete => "pseudo",
        () => "free-energy",
    })
}

/// The log-probability of what the data holds; layers it does not fill are summed out.
pub(super) fn exact_scores(machine: &Machine, data: &Dataset) -> Result<Scores, Failure> {
    let log_z = exact::log_partition(machine)?;
    let scores = each(machine, data, "exact", |x, clamp| {
        Ok(exact::log_sums(machine, clamp, x)?.into_iter().map(|l| l - log_z).collect())
    })?;
    Ok(Scores { log_z: Some(log_z), ..scores })
}

/// The free energy, or its variational bound where hidden units see each other.
fn free_energies(machine: &Machine, data: &Dataset) -> Result<Scores, Failure> {
    let engine = Engine::new(machine);
    each(machine, data, "free-energy", |x, clamp| {
        let mut x = x.clone();
        infer(machine, &engine, clamp, &mut x, MeanField::default())?;
        Ok(bound::unnormalised(machine, clamp, &x)?.into_iter().map(|b| -b).collect())
    })
}

fn pseudo_likelihoods(machine: &Machine, data: &Dataset) -> Result<Scores, Failure> {
    let mut rows = Vec::with_capacity(data.n_rows());
    for range in pieces(data) {
        let batch = super::batch(machine, data, range)?;
        rows.extend(log_pseudo_likelihood(machine, &batch, Visit::All)?);
    }
    Ok(Scores::of("pseudo", rows))
}

fn pieces(data: &Dataset) -> impl Iterator<Item = std::ops::Range<usize>> {
    let n = data.n_rows();
    (0..n).step_by(ROWS).map(move |start| start..(start + ROWS).min(n))
}

fn each(
    machine: &Machine,
    data: &Dataset,
    method: &'static str,
    score: impl Fn(&State, &Clamp) -> Result<Vec<f64>, harmonium::Error>,
) -> Result<Scores, Failure> {
    let mut rows = Vec::with_capacity(data.n_rows());
    for range in pieces(data) {
        let (x, clamp) = super::states(machine, data, range)?;
        rows.extend(score(&x, &clamp)?);
    }
    Ok(Scores::of(method, rows))
}

impl Scores {
    fn of(method: &'static str, rows: Vec<f64>) -> Self {
        let n = rows.len() as f64;
        let mean = rows.iter().sum::<f64>() / n;
        let spread = rows.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Self { method, mean, data_std_error: (spread / n).sqrt(), log_z: None, rows }
    }
}

fn show(scores: &Scores, data: &Dataset, common: &Common) -> Result<(), Failure> {
    let Scores { method, mean, data_std_error, log_z, rows } = scores;
    let n = rows.len();
    let bits = mean / (std::f64::consts::LN_2 * data.n_columns() as f64);
    if common.json {
        let mut value = json!({
            "method": method,
            "n": n,
            "data_std_error": data_std_error,
        });
        let more = match log_z {
            Some(log_z) => json!({
                "log_likelihood": mean,
                "std_error": 0.0,
                "lower": mean,
                "upper": mean,
                "bracket": "bound",
                "log_z": log_z,
                "total": rows.iter().sum::<f64>(),
                "bits_per_dim": -bits,
            }),
            None if *method == "pseudo" => {
                json!({ "log_likelihood": null, "pseudo_log_likelihood": mean })
            }
            None => json!({ "log_likelihood": null, "free_energy": mean }),
        };
        if let (Some(value), serde_json::Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        return render::json(&value);
    }
    render::result(&match *method {
        "exact" => format!(
            "mean log-likelihood of {n} rows: {mean:.4} ± {data_std_error:.4} nats (exact; the error is the data's)
  ln Z = {:.6}, {:.4} bits per dimension, total {:.4}",
            log_z.unwrap_or(f64::NAN), -bits, rows.iter().sum::<f64>()
        ),
        "pseudo" => format!(
            "mean log pseudo-likelihood of {n} rows: {mean:.4} ± {data_std_error:.4} nats
  each unit given all the others: a score of its own, not a likelihood"
        ),
        _ => format!(
            "mean free energy of {n} rows: {mean:.4} ± {data_std_error:.4} nats
  only differences between rows of one model mean something: ln Z is missing"
        ),
    })
}
