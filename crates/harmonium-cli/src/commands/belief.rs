//! What the commands do with a deep belief network.

use super::logz;
use crate::args::{Common, CompleteArgs, FeaturesArgs, SampleArgs, ScoreArgs};
use crate::failure::Failure;
use crate::load::{self, Remembered};
use crate::output::{self, Kind, Rows};
use crate::render::{self, progress};
use harmonium::evaluation::dbn as score;
use harmonium::evaluation::log_partition::{LogPartition, choose};
use harmonium::exact;
use harmonium::machine::{Precision, State};
use harmonium::models::Dbn;
use harmonium::random::Stream;
use harmonium::run::DbnModel;
use harmonium::sampling::{
    Chains, Clamp, DbnEngine, DbnState, Pass, TopSums, generate, gibbs, recognise,
};
use harmonium_data::Dataset;
use serde_json::{Value, json};
use std::ops::Range;

/// Sweeps between two looks at the progress.
const PIECE: usize = 50;
/// Rows inferred at a time.
const ROWS: usize = 512;
/// Draws of the recognition distribution behind the probability of a label.
const COMPLETE_DRAWS: usize = 100;
/// Up to this many terms `auto` sums exactly.
const AUTO_LOG2_TERMS: f64 = 24.0;
/// Up to this many terms a training ends with a bound, on so many rows and draws.
const BOUND_LOG2_TERMS: f64 = 20.0;
const BOUND_ROWS: usize = 500;
const BOUND_DRAWS: usize = 20;

/// `sample`: Gibbs sampling of the top RBM, then one pass down.
pub(super) fn sample(
    args: &SampleArgs,
    common: &Common,
    model: &DbnModel,
    remembered: &Remembered,
) -> Result<(), Failure> {
    if args.given.is_some() {
        return Err(Failure::new(
            "part of a sample cannot be given to a deep belief network",
            "draw samples of a class with `--class NAME`, or train a dbm",
        ));
    }
    let class =
        args.class.as_deref().map(|name| class(&model.dbn, remembered, name)).transpose()?;
    let dbn = &model.dbn;
    let engine = DbnEngine::new(dbn, common.precision(Precision::I16));
    let stream = Stream::new(common.seed());
    let (mut x, clamp) = start(dbn, args.n, class, stream)?;
    let bar = progress::bar(args.sweeps as u64, "sampling", common);
    for done in (0..args.sweeps).step_by(PIECE) {
        let n = PIECE.min(args.sweeps - done);
        let stream = stream.fork(2).fork(done as u64);
        gibbs(dbn.top(), engine.top(), &clamp, &mut x, n, stream)?;
        bar.inc(n as u64);
    }
    bar.finish_and_clear();
    let down = stream.fork(3);
    let means = args.means || Kind::of(&args.output.out)? == Kind::Png;
    let pass = if means { Pass::LastMeans(down) } else { Pass::Samples(down) };
    let drawn = generate(dbn, &engine, &x, pass)?;
    let n_columns = dbn.layer(0).len();
    let values = drawn.layer(0).to_vec();
    let rows = Rows { values, n_columns, image: remembered.image(n_columns) };
    output::write(&args.output.out, &rows, args.output.force)?;
    if common.json {
        return render::json(
            &json!({ "out": args.output.out, "n": args.n, "sweeps": args.sweeps, "class": args.class }),
        );
    }
    render::result(&format!(
        "{} samples after {} sweeps of the top RBM in `{}`",
        args.n, args.sweeps, args.output.out
    ))
}

/// Chains of the top RBM, the label held if a class is given.
pub(super) fn start(
    dbn: &Dbn,
    n: usize,
    class: Option<usize>,
    stream: Stream,
) -> Result<(State, Clamp), Failure> {
    let mut x = Chains::new(dbn.top(), n, stream.fork(0))?.state().clone();
    let Some(class) = class else { return Ok((x, Clamp::none())) };
    let one: Vec<f64> = (0..dbn.n_classes()).map(|k| f64::from(u8::from(k == class))).collect();
    for row in 0..n {
        x.set_row(Dbn::LABELS, row, &one)?;
    }
    Ok((x, Clamp::layers([Dbn::LABELS])))
}

/// The number of a class by its name.
fn class(dbn: &Dbn, remembered: &Remembered, name: &str) -> Result<usize, Failure> {
    if dbn.labels().is_none() {
        return Err(Failure::new(
            "the model has learned no labels",
            "train it with `--labels FILE`, or leave `--class` out",
        ));
    }
    remembered.classes.iter().position(|c| c == name).filter(|&k| k < dbn.n_classes()).ok_or_else(
        || {
            Failure::new(
                format!("the model has no class `{name}`"),
                format!("its classes: {}", remembered.classes.join(", ")),
            )
        },
    )
}

/// Rows of the data as states of the network, each checked against the units.
pub(super) fn states(dbn: &Dbn, data: &Dataset, rows: Range<usize>) -> Result<DbnState, Failure> {
    let first = rows.start;
    let mut values = vec![0.0; rows.len() * data.n_columns()];
    for (row, out) in rows.zip(values.chunks_mut(data.n_columns())) {
        data.present_into(row, Stream::new(0), out);
    }
    DbnState::from_rows(dbn, data.n_columns(), &values)
        .map_err(|error| Failure::from(error.in_rows_from(first)))
}

/// `features`: the means of the recognition distribution, layer by layer.
pub(super) fn features(
    args: &FeaturesArgs,
    common: &Common,
    model: &DbnModel,
    remembered: &Remembered,
) -> Result<(), Failure> {
    let dbn = &model.dbn;
    let layers = match &args.layer {
        None => (1..=dbn.depth()).collect(),
        Some(name) => {
            let names: Vec<&str> = (1..=dbn.depth()).map(|l| dbn.layer(l).name.as_str()).collect();
            let at = names.iter().position(|n| n == name).ok_or_else(|| {
                Failure::new(
                    format!("there is no hidden layer `{name}`"),
                    format!("hidden layers: {}", names.join(", ")),
                )
            })?;
            vec![at + 1]
        }
    };
    let input = load::data_for(&args.data, &args.reading, remembered)?;
    let engine = DbnEngine::new(dbn, common.precision(Precision::F32));
    let sums = TopSums::new(dbn)?;
    let n_columns = layers.iter().map(|&l| dbn.layer(l).len()).sum();
    let mut values = Vec::new();
    for start in (0..input.dataset.n_rows()).step_by(ROWS) {
        let rows = start..(start + ROWS).min(input.dataset.n_rows());
        let mut x = states(dbn, &input.dataset, rows)?;
        let found = means(dbn, &engine, &sums, &mut x, &layers)?;
        for row in 0..x.n_rows() {
            for (&l, means) in layers.iter().zip(&found) {
                let len = dbn.layer(l).len();
                values.extend_from_slice(&means[row * len..(row + 1) * len]);
            }
        }
    }
    let rows = Rows { values, n_columns, image: None };
    output::write(&args.output.out, &rows, args.output.force)?;
    if common.json {
        return render::json(
            &json!({ "out": args.output.out, "n": rows.n_rows(), "features": n_columns }),
        );
    }
    let (n, out) = (rows.n_rows(), &args.output.out);
    render::result(&format!("{n} rows of {n_columns} features in `{out}`"))
}

/// The means of the layers named, in all rows.
pub(super) fn means(
    dbn: &Dbn,
    engine: &DbnEngine,
    sums: &TopSums,
    x: &mut DbnState,
    layers: &[usize],
) -> Result<Vec<Vec<f64>>, Failure> {
    recognise(dbn, engine, x, Pass::Means)?;
    let of = |&l: &usize| {
        if l < dbn.depth() {
            return Ok(x.layer(l).to_vec());
        }
        Ok(sums.hidden_means(&x.to_top(dbn)?, &x.labels()))
    };
    layers.iter().map(of).collect()
}

/// $\ln Z$ of the top RBM: exactly where that is affordable, else from both sides.
fn top_log_partition(
    dbn: &Dbn,
    args: &ScoreArgs,
    remembered: &Remembered,
    common: &Common,
) -> Result<LogPartition, Failure> {
    logz::find(dbn.top(), choose(dbn.top())?, &args.annealing, remembered, common)
}

/// Bound and estimate on some rows, where ln Z of the top RBM costs little.
pub(super) fn bounds(dbn: &Dbn, data: &Dataset) -> Result<Value, Failure> {
    if exact::log2_terms(dbn.top(), &Clamp::none(), 1)? > BOUND_LOG2_TERMS {
        return Ok(json!({}));
    }
    let n = data.n_rows().min(BOUND_ROWS);
    let rows: Vec<usize> = (0..n).map(|k| k * data.n_rows() / n).collect();
    let log_z = exact::log_partition(dbn.top())?;
    let found =
        score::importance(dbn, &data.select_rows(&rows)?, log_z, BOUND_DRAWS, Stream::new(0))?;
    Ok(json!({ "bound.train": found.bound, "importance.train": found.estimate }))
}

/// `score`: exactly, by the variational bound, or by importance sampling.
pub(super) fn scores(
    args: &ScoreArgs,
    common: &Common,
    model: &DbnModel,
    remembered: &Remembered,
) -> Result<(), Failure> {
    let dbn = &model.dbn;
    let mut input = load::data_for(&args.data, &args.reading, remembered)?;
    if let Some(path) = &args.labels {
        (input, _) = load::with_labels(input, path, Some(&remembered.classes))?;
    }
    let data = &input.dataset;
    let labelled = args.labels.is_some() && dbn.labels().is_some();
    let method = match args.method.as_str() {
        "auto" if score::log2_terms(dbn)? <= AUTO_LOG2_TERMS => "exact",
        "auto" => "importance",
        method @ ("exact" | "bound" | "importance") => method,
        other => {
            return Err(Failure::new(
                format!("a deep belief network has no score `{other}`"),
                "use `--method exact`, `bound` or `importance`",
            ));
        }
    };
    let (rows, mut value, mut text) = if method == "exact" {
        let found = score::exact(dbn, data)?;
        let (mean, error, log_z) = (found.mean, found.data_std_error, found.log_partition);
        let text = format!(
            "mean log-likelihood of {} rows: {mean:.4} ± {error:.4} nats (exact; the error is the data's)
  ln Z of the top RBM = {log_z:.6}",
            found.n
        );
        let value = json!({
            "method": method, "n": found.n, "log_likelihood": mean, "std_error": 0.0,
            "data_std_error": error, "lower": mean, "upper": mean, "bracket": "bound",
            "log_z": log_z,
        });
        (found.rows, value, text)
    } else {
        let top = top_log_partition(dbn, args, remembered, common)?;
        let (log_z, bracket) = (top.log_z, top.bracket);
        let stream = Stream::new(common.seed()).fork(300);
        let found = score::importance(dbn, data, log_z, args.draws, stream)?;
        let (mean, error, rows) = if method == "bound" {
            (found.bound, found.bound_std_error, found.bounds.clone())
        } else {
            (found.estimate, found.estimate_std_error, found.estimates.clone())
        };
        let text = format!(
            "mean log-likelihood of {} rows, estimated from below with {} draws each:
  variational bound    {:.4} ± {:.4} nats
  importance sampling  {:.4} ± {:.4} nats
  ln Z of the top RBM = {log_z:.4}, between {:.4} and {:.4} ({:?}, {bracket:?}); the data's error is {:.4}",
            found.n,
            found.n_draws,
            found.bound,
            found.bound_std_error,
            found.estimate,
            found.estimate_std_error,
            top.lower,
            top.upper,
            top.method,
            found.data_std_error
        );
        // Both are lower bounds in expectation; nothing here bounds from above.
        let value = json!({
            "method": method, "n": found.n, "log_likelihood": mean, "std_error": error,
            "data_std_error": found.data_std_error,
            "lower": mean - 1.96 * error - (top.upper - log_z), "upper": null,
            "bracket": bracket, "log_z": log_z, "log_z_lower": top.lower, "log_z_upper": top.upper,
            "log_z_method": top.method, "draws": found.n_draws,
            "bound": found.bound, "importance": found.estimate,
        });
        (rows, value, text)
    };
    if labelled {
        let rate = error_rate(dbn, data, args.draws, Stream::new(common.seed()).fork(301))?;
        value["error_rate"] = json!(rate);
        text = format!(
            "{text}\n  {:.2} % of the labels are not the most probable class",
            100.0 * rate
        );
    }
    if let Some(out) = &args.out {
        output::write(out, &Rows { values: rows, n_columns: 1, image: None }, args.force)?;
    }
    if common.json {
        return render::json(&value);
    }
    render::result(&text)
}

/// The share of rows whose label is not the class that the network finds most probable.
fn error_rate(dbn: &Dbn, data: &Dataset, draws: usize, stream: Stream) -> Result<f64, Failure> {
    let q = dbn.n_classes();
    let probabilities = score::class_probabilities(dbn, data, draws, stream)?;
    let mut values = vec![0.0; data.n_columns()];
    let mut wrong = 0;
    for (row, p) in probabilities.chunks_exact(q).enumerate() {
        data.means_into(row, &mut values);
        let label = values[data.n_columns() - q..].iter().position(|x| *x == 1.0);
        let best = (0..q).max_by(|&a, &b| p[a].total_cmp(&p[b]));
        wrong += usize::from(label != best);
    }
    Ok(wrong as f64 / data.n_rows() as f64)
}

/// `complete`: the probabilities of the labels that the data lacks.
pub(super) fn complete(
    args: &CompleteArgs,
    common: &Common,
    model: &DbnModel,
    remembered: &Remembered,
) -> Result<(), Failure> {
    let dbn = &model.dbn;
    if args.mask.is_some() || dbn.labels().is_none() {
        return Err(Failure::new(
            "a deep belief network completes labels, nothing else",
            "train it with `--labels FILE`; for missing pixels train a dbm",
        ));
    }
    let input = load::data_for(&args.data, &args.reading, remembered)?;
    let (data, q, n) = (&input.dataset, dbn.n_classes(), dbn.layer(0).len());
    let stream = Stream::new(common.seed()).fork(302);
    let probabilities = score::class_probabilities(dbn, data, COMPLETE_DRAWS, stream)?;
    let mut values = Vec::with_capacity(data.n_rows() * (n + q));
    for (start, p) in (0..data.n_rows()).step_by(ROWS).zip(probabilities.chunks(ROWS * q)) {
        let x = states(dbn, data, start..(start + ROWS).min(data.n_rows()))?;
        for (row, p) in p.chunks_exact(q).enumerate() {
            values.extend_from_slice(x.row(0, row));
            values.extend_from_slice(p);
        }
    }
    let rows = Rows { values, n_columns: n + q, image: None };
    output::write(&args.output.out, &rows, args.output.force)?;
    if common.json {
        return render::json(
            &json!({ "out": args.output.out, "n": rows.n_rows(), "missing": rows.n_rows() }),
        );
    }
    let (n, out) = (rows.n_rows(), &args.output.out);
    render::result(&format!("the probabilities of {q} classes behind each of {n} rows in `{out}`"))
}
