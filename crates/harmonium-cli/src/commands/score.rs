//! `harmonium score`: how probable the data is.

use super::{belief, logz};
use crate::args::{Common, ScoreArgs};
use crate::failure::Failure;
use crate::load::Remembered;
use crate::output::{self, Kind, Rows};
use crate::render::progress;
use crate::{load, render};
use harmonium::evaluation::bound::{self, Terms};
use harmonium::evaluation::likelihood::weighted_mean;
use harmonium::evaluation::likelihood::{Estimate, estimate};
use harmonium::evaluation::log_partition::{self, Bracket, LogPartition};
use harmonium::evaluation::posterior::{self, How, Sums};
use harmonium::evaluation::pseudo::{Visit, log_pseudo_likelihood};
use harmonium::exact;
use harmonium::machine::{Engine, Machine, Precision, State};
use harmonium::random::Stream;
use harmonium::run::Stored;
use harmonium::sampling::{Clamp, MeanField, infer};
use harmonium_data::Dataset;
use serde_json::{Value, json};

/// Rows scored at a time.
const ROWS: usize = 256;

/// Scores of each row, and what they are.
pub(super) struct Scores {
    method: &'static str,
    rows: Vec<f64>,
    pub(super) mean: f64,
    pub(super) data_std_error: f64,
    known: Known,
}

/// What stands behind a score.
enum Known {
    /// An exact ln Z.
    LogZ(f64),
    /// A log-likelihood put together from estimates.
    Estimated { estimate: Box<Estimate>, log_z: LogPartition, how: How, terms: Option<Terms> },
    /// No ln Z.
    Nothing,
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
        "auto" => choose(machine, data)?,
        other => other,
    };
    let scores = match method {
        "exact" => exact_scores(machine, data)?,
        "pseudo" => pseudo_likelihoods(machine, data, args, common)?,
        "free-energy" => free_energies(machine, data)?,
        "bound" => estimated(machine, data, "bound", args, &remembered, common)?,
        "importance" => {
            return Err(Failure::new(
                "`--method importance` is for deep belief networks",
                "use `ais`, or leave `--method` out",
            ));
        }
        _ => estimated(machine, data, "ais", args, &remembered, common)?,
    };
    if let Some(out) = &args.out {
        let rows = Rows { values: scores.rows.clone(), n_columns: 1, image: None };
        output::write(out, &rows, args.force)?;
    }
    show(&scores, data, common)
}

/// Exact where both ln Z and the sums of the rows are affordable, else by annealing.
fn choose(machine: &Machine, data: &Dataset) -> Result<&'static str, Failure> {
    const LIMIT: f64 = log_partition::AFFORDABLE_LOG2_TERMS;
    let given = Clamp::layers(super::given_layers(machine, data.n_columns()));
    let rows = exact::log2_terms(machine, &given, 1)? + (data.n_rows().max(1) as f64).log2();
    let affordable = exact::log2_terms(machine, &Clamp::none(), 1)? <= LIMIT && rows <= LIMIT;
    Ok(if affordable { "exact" } else { "ais" })
}

/// The log-probability of what the data holds; layers it does not fill are summed out.
pub(super) fn exact_scores(machine: &Machine, data: &Dataset) -> Result<Scores, Failure> {
    let log_z = exact::log_partition(machine)?;
    let scores = each(machine, data, "exact", |x, clamp| {
        Ok(exact::log_sums(machine, clamp, x)?.into_iter().map(|l| l - log_z).collect())
    })?;
    Ok(Scores { known: Known::LogZ(log_z), ..scores })
}

/// The log-likelihood from sampled sums: ln Z, and that of each row where hidden units see each
/// other. By `bound` the rows' own are left to mean field.
fn estimated(
    machine: &Machine,
    data: &Dataset,
    method: &'static str,
    args: &ScoreArgs,
    remembered: &Remembered,
    common: &Common,
) -> Result<Scores, Failure> {
    let log_z =
        logz::find(machine, log_partition::choose(machine)?, &args.annealing, remembered, common)?;
    let engine = Engine::with_precision(machine, Precision::F32);
    let settings = posterior::Settings { seed: common.seed(), ..posterior::Settings::default() };
    let bar = progress::bar(data.n_rows() as u64, "rows", common);
    let (mut sums, mut terms) = (Sums::none(), Vec::new());
    for range in pieces(data) {
        let (first, end) = (range.start, range.end);
        let (x, clamp) = super::states(machine, data, range)?;
        sums.extend(if method == "bound" {
            let (bounds, rows) = posterior::bounds(machine, &engine, &clamp, &x, &settings)?;
            terms.extend(rows);
            bounds
        } else {
            posterior::log_sums(machine, &engine, &clamp, &x, first, &settings)?
        });
        bar.set_position(end as u64);
    }
    bar.finish_and_clear();
    let how = sums.how;
    let found = estimate(&sums, &log_z);
    Ok(Scores {
        method,
        mean: found.mean,
        data_std_error: found.data_std_error,
        rows: found.rows.clone(),
        known: Known::Estimated {
            estimate: Box::new(found),
            log_z,
            how,
            terms: (!terms.is_empty()).then(|| Terms::mean(&terms)),
        },
    })
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

fn pseudo_likelihoods(
    machine: &Machine,
    data: &Dataset,
    args: &ScoreArgs,
    common: &Common,
) -> Result<Scores, Failure> {
    let mut rows = Vec::with_capacity(data.n_rows());
    for range in pieces(data) {
        let stream = Stream::new(common.seed()).fork(range.start as u64);
        let visit = if args.stochastic { Visit::One(stream) } else { Visit::All };
        let batch = super::batch(machine, data, range)?;
        rows.extend(log_pseudo_likelihood(machine, &batch, visit)?);
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
        let (mean, data_std_error) = weighted_mean(&rows, &vec![1.0; rows.len()]);
        Self { method, mean, data_std_error, known: Known::Nothing, rows }
    }
}

fn show(scores: &Scores, data: &Dataset, common: &Common) -> Result<(), Failure> {
    if common.json {
        return render::json(&as_json(scores, data));
    }
    let Scores { method, mean, data_std_error, known, rows } = scores;
    let (n, bits) = (rows.len(), bits_per_dim(*mean, data));
    render::result(&match known {
        Known::LogZ(log_z) => format!(
            "mean log-likelihood of {n} rows: {mean:.4} ± {data_std_error:.4} nats (exact; the error is the data's)
  ln Z = {log_z:.6}, {bits:.4} bits per dimension, total {:.4}",
            rows.iter().sum::<f64>()
        ),
        Known::Estimated { estimate, log_z, how, terms } => {
            let said = describe(scores, estimate, log_z, *how, bits);
            let apart = terms.map(|terms| in_words(&terms, log_z)).unwrap_or_default();
            format!("{said}{apart}")
        }
        Known::Nothing if *method == "pseudo" => format!(
            "mean log pseudo-likelihood of {n} rows: {mean:.4} ± {data_std_error:.4} nats
  each unit given all the others: a score of its own, not a likelihood"
        ),
        Known::Nothing => format!(
            "mean free energy of {n} rows: {mean:.4} ± {data_std_error:.4} nats
  only differences between rows of one model mean something: ln Z is missing"
        ),
    })
}

fn bits_per_dim(mean: f64, data: &Dataset) -> f64 {
    -mean / (std::f64::consts::LN_2 * data.n_columns() as f64)
}

/// An estimated log-likelihood in words.
fn describe(
    scores: &Scores,
    estimate: &Estimate,
    log_z: &LogPartition,
    how: How,
    bits: f64,
) -> String {
    let Estimate { mean, lower, upper, std_error, data_std_error, n, .. } = estimate;
    let kind = match estimate.bracket {
        Bracket::Bound => "bounds",
        Bracket::Heuristic => "as good as the chains mixed",
    };
    let said = if scores.method == "bound" {
        format!("variational bound on the mean log-likelihood of {n} rows: {mean:.4} nats")
    } else {
        format!("mean log-likelihood of {n} rows: {mean:.4} nats")
    };
    let interval = if how == How::Bounded {
        format!("not below {lower:.4}: that holds whatever mean field missed")
    } else {
        format!("between {lower:.4} and {upper:.4}: {kind}")
    };
    let rows = match how {
        How::Exact => "exact",
        How::Bounded => "bounded by mean field",
        How::Annealed => "annealed, because hidden units see each other",
    };
    format!(
        "{said}
  {interval}; ± {std_error:.4} is ln Z's and the rows' own, ± {data_std_error:.4} the data's
  {bits:.4} bits per dimension; sums of the rows: {rows}
  {}",
        logz::describe(log_z, None).replace('\n', "\n  ")
    )
}

/// The terms of the bound in the letters of the literature, `ln Z` with its sign.
fn in_words(terms: &Terms, log_z: &LogPartition) -> String {
    let Terms { held_free, free_free, entropy, held_held, own, constant } = terms;
    let minus = -log_z.log_z;
    format!(
        "\n  = A {held_free:+.4} (visible with hidden) B {free_free:+.4} (hidden with hidden) C {entropy:+.4} (entropy)
    visible {held_held:+.4}, biases {own:+.4}, constant {constant:+.4}, ln Z {minus:+.4}"
    )
}

fn as_json(scores: &Scores, data: &Dataset) -> Value {
    let Scores { method, mean, data_std_error, known, rows } = scores;
    let total = rows.iter().sum::<f64>();
    let (bits, per_feature) = (bits_per_dim(*mean, data), mean / data.n_columns() as f64);
    let more = match known {
        Known::LogZ(log_z) => json!({
            "log_likelihood": mean,
            "std_error": 0.0,
            "lower": mean,
            "upper": mean,
            "bracket": "bound",
            "log_z": log_z,
            "total": total,
            "per_feature": per_feature,
            "bits_per_dim": bits,
        }),
        Known::Estimated { estimate, log_z, how, terms } => {
            let mut value = json!({
                "log_likelihood": mean,
                "std_error": estimate.std_error,
                "lower": estimate.lower,
                "upper": if *how == How::Bounded { Value::Null } else { json!(estimate.upper) },
                "bracket": estimate.bracket,
                "bound": estimate.bound,
                "bound_lower": estimate.bound_lower,
                "log_z": log_z.log_z,
                "log_z_lower": log_z.lower,
                "log_z_upper": log_z.upper,
                "log_z_method": log_z.method,
                "rows": if *how == How::Exact { "exact" } else { *method },
                "total": total,
                "per_feature": per_feature,
                "bits_per_dim": bits,
            });
            if let Some(terms) = terms {
                value["terms"] = json!({
                    "A": terms.held_free,
                    "B": terms.free_free,
                    "C": terms.entropy,
                    "visible": terms.held_held,
                    "bias": terms.own,
                    "constant": terms.constant,
                    "log_z": -log_z.log_z,
                });
            }
            value
        }
        Known::Nothing if *method == "pseudo" => json!({
            "log_likelihood": null,
            "pseudo_log_likelihood": mean,
            "per_feature": per_feature,
        }),
        Known::Nothing => json!({ "log_likelihood": null, "free_energy": mean }),
    };
    let mut value = json!({ "method": method, "n": rows.len(), "data_std_error": data_std_error });
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}
