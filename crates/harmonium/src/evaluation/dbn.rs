//! How good a deep belief network is: exactly where it is small, else by samples of the
//! recognition distribution.
//!
//! With $w = p(v, h)/q(h \mid v)$ and $h \sim q$, the top RBM's hidden units (and labels that are
//! not given) summed out in closed form,
//!
//! $$\ln p(v) \;\ge\; \ln\tfrac1K\sum_k w_k \text{ in expectation} \;\ge\; E_q[\ln w],$$
//! $$\ln w = \sum_l \bigl[\ln p(x_l \mid x_{l+1}) - \ln q(x_{l+1} \mid x_l)\bigr]
//!   + \ln\sum_{h_L} e^{-E_\text{top}(h_{L-1}, h_L)} - \ln Z_\text{top}.$$
//!
//! The last is the variational bound (Hinton, Osindero & Teh 2006); the middle one is an
//! importance-sampled estimate whose expectation rises with $K$ towards $\ln p(v)$ (Burda, Grosse &
//! Salakhutdinov 2016). $\ln Z$ of the top RBM is an argument: whatever bounds it bounds these.

use super::likelihood::{Likelihood, weighted_mean};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::exact::{self, Budget};
use crate::machine::{Layer, State, check_memory};
use crate::models::Dbn;
use crate::sampling::{Clamp, ClassSums, DbnSampler, DbnState, Label, Pass, Way, normalise};
use crate::schema::Feed;
use crate::training::{Measurement, MetricName, On};
use crate::units::log_sum_exp;
use harmonium_data::{Dataset, Labels};
use harmonium_kernels::random::Stream;
use rayon::prelude::*;
use serde::Serialize;

/// Rows looked at together.
const ROWS: usize = 256;
/// States of a layer held in memory together.
const STATES: usize = 4096;

/// What samples of the recognition distribution say about a set of samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DbnLikelihood {
    /// Weighted mean of the variational bound, in nats.
    pub bound: f64,
    /// Standard error of that mean over the draws of $q$; unknown of one draw.
    pub bound_std_error: Option<f64>,
    /// Weighted mean of the importance-sampled estimate, in nats: itself a lower bound in
    /// expectation.
    pub estimate: f64,
    /// Standard error of the mean estimate over the draws of $q$, by the delta method; unknown of one draw.
    pub estimate_std_error: Option<f64>,
    /// Standard error of the mean estimate, from the spread over the samples; unknown of one sample.
    pub data_std_error: Option<f64>,
    /// Number of samples.
    pub n: usize,
    /// Draws of $q$ for each.
    pub n_draws: usize,
    /// $\ln Z$ of the top RBM, as it was given.
    pub log_partition: f64,
    /// The bound of each sample.
    #[serde(skip)]
    pub bounds: Vec<f64>,
    /// The estimate of each sample.
    #[serde(skip)]
    pub estimates: Vec<f64>,
}

impl DbnLikelihood {
    /// Adds something to the log-likelihood of each row, with its mean.
    pub(crate) fn shift(&mut self, by: &[f64], mean: f64) {
        for rows in [&mut self.bounds, &mut self.estimates] {
            rows.iter_mut().zip(by).for_each(|(row, shift)| *row += shift);
        }
        self.bound += mean;
        self.estimate += mean;
    }
}

/// The bound and the importance-sampled estimate of each sample, with `n_draws` draws for each.
/// Data that is drawn anew at each presentation is drawn once, always the same way.
///
/// # Errors
///
/// If the data does not fit, there are no draws, or memory ends.
pub fn importance(
    dbn: &Dbn,
    data: &Dataset,
    log_partition: f64,
    n_draws: usize,
    stream: Stream,
) -> Result<DbnLikelihood, Error> {
    check_draws(n_draws)?;
    let sampler = DbnSampler::new(dbn.clone(), Arithmetic::F64);
    let sums = ClassSums::of_top(dbn)?;
    let (mut bounds, mut estimates) = (Vec::new(), Vec::new());
    let mut variances = [Vec::new(), Vec::new()];
    let feed = feed_of(dbn, data)?;
    for (piece, x) in (0..).zip(pieces(dbn, &feed)) {
        let x = x?;
        let draw = |k: usize| {
            let stream = stream.fork(piece).fork(k as u64);
            log_weights(&sampler, &sums, &x, stream)
        };
        let drawn: Vec<Vec<f64>> =
            (0..n_draws).into_par_iter().map(draw).collect::<Result<_, _>>()?;
        for row in 0..x.n_rows() {
            let logs: Vec<f64> = drawn.iter().map(|d| d[row] - log_partition).collect();
            let (bound, estimate, of) = summary(&logs);
            bounds.push(bound);
            estimates.push(estimate);
            variances.iter_mut().zip(of).for_each(|(v, x)| v.push(x));
        }
    }
    let weights: Vec<f64> = (0..data.n_rows()).map(|r| data.weight(r)).collect();
    let total: f64 = weights.iter().sum();
    let error = |v: &[f64]| {
        let squares = v.iter().zip(&weights).map(|(v, w)| v * w * w).sum::<f64>();
        (n_draws > 1).then(|| squares.sqrt() / total)
    };
    let (estimate, data_std_error) = weighted_mean(&estimates, &weights);
    Ok(DbnLikelihood {
        bound: weighted_mean(&bounds, &weights).0,
        bound_std_error: error(&variances[0]),
        estimate,
        estimate_std_error: error(&variances[1]),
        data_std_error,
        n: bounds.len(),
        n_draws,
        log_partition,
        bounds,
        estimates,
    })
}

/// Rows and draws of the bound at the end of a training.
const FINAL_ROWS: usize = 500;
const FINAL_DRAWS: usize = 20;

/// Bound and estimate on some rows of the training data, where $\ln Z$ of the top RBM costs little;
/// nothing elsewhere.
///
/// # Errors
///
/// If the data does not fit, or memory ends.
pub fn final_bounds(dbn: &Dbn, data: &Dataset) -> Result<Vec<Measurement>, Error> {
    if !Budget::END_OF_TRAINING.affords(exact::log2_terms(dbn.top(), &Clamp::none(), 1)?) {
        return Ok(Vec::new());
    }
    let n = data.n_rows().min(FINAL_ROWS);
    let rows: Vec<usize> = (0..n).map(|k| k * data.n_rows() / n).collect();
    let chosen = data.select_rows(&rows).map_err(|_| Error::Empty { what: "the data".into() })?;
    let log_z = exact::log_partition(dbn.top())?;
    let found = importance(dbn, &chosen, log_z, FINAL_DRAWS, Stream::new(0))?;
    let measured = |name, value| Measurement { name, value, std_error: None };
    Ok(vec![
        measured(MetricName::Bound(On::Train), found.bound),
        measured(MetricName::Importance(On::Train), found.estimate),
    ])
}

/// $E_q[p(y \mid h_{L-1})]$ of each sample, class after class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassDraws {
    /// The mean over the draws of $q$.
    pub means: Vec<f64>,
    /// Its standard error; unknown of one draw.
    pub std_errors: Option<Vec<f64>>,
}

/// What a network with labels says about those of the data, from `n_draws` draws for each sample. Labels
/// in the data are not looked at.
///
/// # Errors
///
/// As [`importance`]; and if the network has no labels.
pub fn class_draws(
    dbn: &Dbn,
    data: &Dataset,
    n_draws: usize,
    stream: Stream,
) -> Result<ClassDraws, Error> {
    check_draws(n_draws)?;
    if dbn.labels().is_none() {
        return Err(Error::NoLabels);
    }
    let sampler = DbnSampler::new(dbn.clone(), Arithmetic::F64);
    let sums = ClassSums::of_top(dbn)?;
    let (mut means, mut std_errors) = (Vec::new(), Vec::new());
    let n = n_draws as f64;
    let feed = feed_of(dbn, data)?;
    for (piece, x) in (0..).zip(pieces(dbn, &feed)) {
        let x = x?;
        let draw = |k: usize| {
            let mut x = x.clone();
            sampler.recognise(&mut x, Pass::Samples(stream.fork(piece).fork(k as u64)))?;
            Ok(sums.class_probabilities(&x.to_top(dbn)?))
        };
        let drawn: Vec<Vec<f64>> =
            (0..n_draws).into_par_iter().map(draw).collect::<Result<_, Error>>()?;
        for i in 0..x.n_rows() * dbn.n_classes() {
            let mean = drawn.iter().map(|d| d[i]).sum::<f64>() / n;
            let squares = drawn.iter().map(|d| (d[i] - mean).powi(2)).sum::<f64>();
            means.push(mean);
            std_errors.push((squares / (n - 1.0) / n).sqrt());
        }
    }
    Ok(ClassDraws { means, std_errors: (n_draws > 1).then_some(std_errors) })
}

/// The exact $p(y \mid v)$ of each sample, class after class, by sums over all states of every layer.
/// Labels in the data are not looked at.
///
/// # Errors
///
/// As [`exact()`]; and if the network has no labels.
pub fn exact_class_probabilities(dbn: &Dbn, data: &Dataset) -> Result<Vec<f64>, Error> {
    let (n, q) = (data.n_rows(), dbn.n_classes());
    if dbn.labels().is_none() {
        return Err(Error::NoLabels);
    }
    let mut logs = vec![0.0; n * q];
    for (y, class) in (0..q).zip(0..) {
        let labels = Labels::from_values(vec![class; n]);
        let labelled = data.clone().with_labels(labels).map_err(|_| Error::NoLabels)?;
        let rows = exact(dbn, &labelled)?.rows;
        rows.into_iter().enumerate().for_each(|(row, log)| logs[row * q + y] = log);
    }
    logs.chunks_exact_mut(q).for_each(normalise);
    Ok(logs)
}

/// The share of rows whose label is not the class that the network finds most probable.
///
/// # Errors
///
/// As [`class_draws`]; and if the data has no labels.
pub fn error_rate(dbn: &Dbn, data: &Dataset, n_draws: usize, stream: Stream) -> Result<f64, Error> {
    let Some(labels) = data.labels() else {
        return Err(Error::Empty { what: "the list of labels".into() });
    };
    let q = dbn.n_classes();
    let probabilities = class_draws(dbn, data, n_draws, stream)?.means;
    let best = |p: &[f64]| (0..q).max_by(|&a, &b| p[a].total_cmp(&p[b]));
    let rows = probabilities.chunks_exact(q).zip(labels.values());
    let wrong = rows.filter(|(p, label)| best(p) != Some(**label as usize)).count();
    Ok(wrong as f64 / data.n_rows() as f64)
}

/// Whether exact sums over all layers are affordable.
///
/// # Errors
///
/// If memory ends.
pub fn affords_exact(dbn: &Dbn) -> Result<bool, Error> {
    Ok(Budget::UNASKED_DBN.affords(log2_terms(dbn)?))
}

fn check_draws(n_draws: usize) -> Result<(), Error> {
    if n_draws == 0 {
        return Err(Error::Setting { name: "draws", value: "0".into(), range: "at least 1" });
    }
    let bytes = n_draws as f64 * ROWS as f64 * 8.0;
    check_memory(bytes, || format!("{n_draws} draws for each of {ROWS} rows"))
}

/// Mean, log-mean-exp, and the variances of both over the draws, which mean nothing of a single draw.
fn summary(logs: &[f64]) -> (f64, f64, [f64; 2]) {
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let log_mean = log_sum_exp(logs) - n.ln();
    let of = |values: &mut dyn Iterator<Item = f64>, mean: f64| {
        values.map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0) / n
    };
    let ratios = &mut logs.iter().map(|l| (l - log_mean).exp());
    let variances = [of(&mut logs.iter().copied(), mean), of(ratios, 1.0)];
    (mean, log_mean, variances)
}

/// $\ln w + \ln Z$ of each row, for one draw of $q$.
fn log_weights(
    sampler: &DbnSampler,
    sums: &ClassSums,
    x: &DbnState,
    stream: Stream,
) -> Result<Vec<f64>, Error> {
    let dbn = sampler.dbn();
    let mut x = x.clone();
    sampler.recognise(&mut x, Pass::Samples(stream))?;
    let mut logs = sums.free(&x.to_top(dbn)?, &x.labels());
    for (l, part) in dbn.directed().iter().enumerate() {
        let machines = [(Way::Down, &part.generative, 1.0), (Way::Up, &part.recognition, -1.0)];
        for (way, machine, sign) in machines {
            let about = usize::from(way == Way::Up);
            let thetas = sampler.thetas(l, way, x.layer(l + 1 - about))?;
            let layer = &machine.layers()[about];
            for (row, theta) in thetas.chunks_exact(layer.len()).enumerate() {
                logs[row] += sign * log_conditional(layer, theta, x.row(l + about, row));
            }
        }
    }
    Ok(logs)
}

/// $\ln p(x \mid \theta)$ of the units of a layer.
fn log_conditional(layer: &Layer, theta: &[f64], x: &[f64]) -> f64 {
    -layer.energy_with(theta, x) - layer.units.log_partition(theta, layer.own())
}

/// The data as states, some rows at a time.
fn pieces<'a>(
    dbn: &'a Dbn,
    feed: &'a Feed<'a>,
) -> impl Iterator<Item = Result<DbnState, Error>> + 'a {
    let n_rows = feed.data().n_rows();
    (0..n_rows).step_by(ROWS).map(move |start| {
        let rows = start..(start + ROWS).min(n_rows);
        DbnState::from_batch(dbn, &feed.batch(rows, Stream::new(0)))
    })
}

/// The data for the layers that it fills. Its visible layer has no missing values: nothing here
/// sums over them.
fn feed_of<'d>(dbn: &Dbn, data: &'d Dataset) -> Result<Feed<'d>, Error> {
    Feed::of(&dbn.data_layers()?, data)?.without_holes()
}

/// Binary logarithm of the number of terms of [`exact()`], the most that one sum takes.
///
/// # Errors
///
/// If memory ends.
pub fn log2_terms(dbn: &Dbn) -> Result<f64, Error> {
    let len = |l: usize| dbn.layer(l).len() as f64;
    let top = exact::log2_terms(dbn.top(), &Clamp::none(), 1)?;
    let pairs = (1..dbn.directed().len()).map(|l| len(l) + len(l + 1));
    let classes = (dbn.n_classes().max(1) as f64).log2();
    let first = if dbn.directed().is_empty() { 0.0 } else { len(1) + classes };
    Ok(pairs.fold(top.max(first), |most, pair| most.max(pair + classes)))
}

/// The exact log-likelihood of each sample: every state of every layer below the top RBM's hidden
/// one is summed over.
///
/// # Errors
///
/// If the data does not fit, or a sum has more than $2^{30}$ terms.
pub fn exact(dbn: &Dbn, data: &Dataset) -> Result<Likelihood, Error> {
    Budget::LIMIT.check(log2_terms(dbn)?)?;
    let log_partition = exact::log_partition(dbn.top())?;
    let sums = ClassSums::of_top(dbn)?;
    let sampler = DbnSampler::new(dbn.clone(), Arithmetic::F64);
    let feed = feed_of(dbn, data)?;
    let states: Vec<DbnState> = pieces(dbn, &feed).collect::<Result<_, _>>()?;
    let rows: Vec<Vec<f64>> =
        states.iter().flat_map(|x| (0..x.n_rows()).map(|r| x.row(0, r).to_vec())).collect();
    let labels: Vec<Label> = states.iter().flat_map(DbnState::labels).collect();
    let mut logs = vec![f64::NEG_INFINITY; rows.len()];
    let mut kinds = labels.clone();
    kinds.sort_unstable_by_key(|label| match label {
        Label::Unknown => 0,
        Label::Known(y) => y + 1,
    });
    kinds.dedup();
    for label in kinds {
        let chosen: Vec<usize> = (0..rows.len()).filter(|&r| labels[r] == label).collect();
        let these: Vec<&[f64]> = chosen.iter().map(|&r| rows[r].as_slice()).collect();
        let found = log_marginals(&sampler, &sums, 0, &these, label)?;
        chosen.iter().zip(found).for_each(|(&r, log)| logs[r] = log - log_partition);
    }
    let weights: Vec<f64> = (0..data.n_rows()).map(|r| data.weight(r)).collect();
    let (mean, data_std_error) = weighted_mean(&logs, &weights);
    Ok(Likelihood { mean, data_std_error, n: logs.len(), log_partition, rows: logs })
}

/// $\ln p(x_l) + \ln Z$ of values of layer `l`, by sums over all states of the layer above it.
fn log_marginals(
    sampler: &DbnSampler,
    sums: &ClassSums,
    l: usize,
    values: &[&[f64]],
    label: Label,
) -> Result<Vec<f64>, Error> {
    let dbn = sampler.dbn();
    if l == dbn.directed().len() {
        let mut logs = Vec::with_capacity(values.len());
        for values in values.chunks(STATES) {
            let x = top_state(dbn, &values.concat())?;
            logs.extend(sums.free(&x, &vec![label; values.len()]));
        }
        return Ok(logs);
    }
    let above = dbn.layer(l + 1).len();
    let n_states = 1_usize << above;
    let mut partial = vec![(f64::NEG_INFINITY, 0.0); values.len()];
    for first in (0..n_states).step_by(STATES) {
        let codes = first..(first + STATES).min(n_states);
        let states: Vec<Vec<f64>> = codes
            .map(|code| (0..above).map(|i| f64::from(u8::from(code >> i & 1 == 1))).collect())
            .collect();
        let rows: Vec<&[f64]> = states.iter().map(Vec::as_slice).collect();
        let prior = log_marginals(sampler, sums, l + 1, &rows, label)?;
        let thetas = sampler.thetas(l, Way::Down, &states.concat())?;
        let layer = dbn.layer(l);
        let shift: Vec<f64> = thetas
            .chunks_exact(layer.len())
            .zip(&prior)
            .map(|(t, p)| p - layer.units.log_partition(t, layer.own()))
            .collect();
        partial.par_iter_mut().zip(values).for_each(|((most, sum), x)| {
            for (theta, shift) in thetas.chunks_exact(layer.len()).zip(&shift) {
                let term = shift - layer.energy_with(theta, x);
                if term > *most {
                    (*most, *sum) = (term, *sum * (*most - term).exp() + 1.0);
                } else {
                    *sum += (term - *most).exp();
                }
            }
        });
    }
    Ok(partial.into_iter().map(|(most, sum): (f64, f64)| most + sum.ln()).collect())
}

/// Rows of the layer below the top as a state of the top RBM.
fn top_state(dbn: &Dbn, rows: &[f64]) -> Result<State, Error> {
    let below = dbn.top().layer(Dbn::BELOW_TOP).len();
    let mut x = State::zeros(dbn.top(), rows.len() / below)?;
    x.set_layer(Dbn::BELOW_TOP, rows);
    Ok(x)
}
