//! What models without couplings reach on the same rows: the scores every machine has to beat.
//!
//! *Independent columns:* each visible unit alone, fitted to the training data. A probability that was
//! counted in $n$ rows is smoothed as $(n p + \tfrac12) / (n + \tfrac q2)$ for a unit of $q$ values
//! (Krichevsky & Trofimov 1981), so that a value which never occurred costs no infinity; a real unit
//! has the mean and the variance of its column.
//!
//! *One Gaussian*, where there are real units: their means, variances and correlations together, shrunk
//! by as much as makes rows that are left out most probable ([`crate::gaussian`]).
//!
//! Both are fitted on training data and stored with a model, so that other rows are scored with the
//! baseline that knew no more than the model did.

use super::likelihood::weighted_mean;
use crate::error::Error;
use crate::gaussian::cholesky;
use crate::machine::{Batch, Layer, LayerId, Machine, State};
use crate::schema::Feed;
pub use crate::spread::{MOST_REAL_COLUMNS, Spread};
use crate::spread::{least_variance, real_layers};
use crate::units::Storage;
use harmonium_data::Dataset;
use harmonium_kernels::dense::dot;
use harmonium_kernels::random::Stream;
use std::fmt;

/// Rows scored at a time.
const ROWS: usize = 256;

/// The score of one baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// The mean log-likelihood of a row, in nats.
    pub mean: f64,
    /// Its standard error, from the spread over the rows; unknown of one row.
    pub std_error: Option<f64>,
    /// The log-likelihood of each row.
    pub rows: Vec<f64>,
}

/// The scores of all baselines that a set of rows has.
#[derive(Clone, Debug, PartialEq)]
pub struct Baselines {
    /// Each column alone.
    pub independent: Alone,
    /// Real columns as one Gaussian, the others alone; where there are real columns and their
    /// correlations are remembered.
    pub gaussian: Option<Alone>,
}

impl Baselines {
    /// The best of them, and what to call it.
    pub fn best(&self) -> (&Alone, &'static str) {
        match &self.gaussian {
            Some(gaussian) if gaussian.mean > self.independent.mean => {
                (gaussian, "one full Gaussian")
            }
            _ => (&self.independent, "independent columns"),
        }
    }

    /// The same with something added to the score of each row.
    #[must_use]
    pub fn shifted(self, by: &[f64], weights: &[f64]) -> Self {
        let shift = |alone: Alone| {
            let rows: Vec<f64> = alone.rows.iter().zip(by).map(|(r, s)| r + s).collect();
            let (mean, std_error) = weighted_mean(&rows, weights);
            Alone { mean, std_error, rows }
        };
        Self { independent: shift(self.independent), gaussian: self.gaussian.map(shift) }
    }

    /// By how much the scores of the same rows are better than the best baseline.
    pub fn gain(&self, rows: &[f64], weights: &[f64]) -> Gain {
        let (alone, over) = self.best();
        let gains: Vec<f64> = rows.iter().zip(&alone.rows).map(|(a, b)| a - b).collect();
        let (nats, std_error) = weighted_mean(&gains, weights);
        Gain { nats, std_error, over, baseline: alone.mean, by: By::Likelihood }
    }
}

/// Standard errors that a gain must be above zero to count.
const SURE: f64 = 2.0;
/// The share of the baseline below which a gain is nothing: first weights that are merely random, and
/// probabilities that are smoothed otherwise, differ by less.
const NOTHING: f64 = 1e-3;

/// What a gain was measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The log-likelihood, exact or estimated.
    #[default]
    Likelihood,
    /// A lower bound of it: the model may be better than it says.
    Bound,
    /// The pseudo-likelihood, which is that of independent columns itself where nothing is coupled; of a
    /// coupled model it is mostly higher than the likelihood.
    Pseudo,
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Likelihood => "log-likelihood",
            Self::Bound => "a lower bound of the log-likelihood",
            Self::Pseudo => "pseudo-likelihood",
        })
    }
}

/// By how much a model is better than the best baseline, on the same rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The mean difference of a row, in nats.
    pub nats: f64,
    /// Its standard error: rows are compared one by one, so it is smaller than that of either score.
    pub std_error: Option<f64>,
    /// What the best baseline is called.
    pub over: &'static str,
    /// Its mean score.
    pub baseline: f64,
    /// What the model was scored by.
    pub by: By,
}

impl Gain {
    /// Whether the model is no better than the baseline, as far as these rows can tell.
    pub fn is_none(&self) -> bool {
        // One row says nothing of its error: its sign is all there is.
        let least = (SURE * self.std_error.unwrap_or(0.0)).max(NOTHING * self.baseline.abs());
        self.nats.is_nan() || self.nats <= least
    }

    /// Whether the model is worse than the baseline, by more than chance; a bound cannot say that.
    pub fn is_loss(&self) -> bool {
        self.by != By::Bound && !Self { nats: -self.nats, ..*self }.is_none()
    }

    /// The same with the error of an estimate behind the scores of all rows; of one row the error stays
    /// unknown.
    #[must_use]
    pub fn with_error(self, error: f64) -> Self {
        Self { std_error: self.std_error.map(|own| own.hypot(error)), ..self }
    }
}

/// The baselines of a set of training data.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// Units without couplings.
    machine: Machine,
    /// The logarithm of the sum of each unit of each layer.
    log_sums: Vec<Vec<f64>>,
    /// The logarithm of the share of each value of each unit of each layer of whole numbers.
    log_shares: Vec<Vec<Vec<f64>>>,
    /// Real units together.
    gaussian: Option<Gaussian>,
}

impl Fitted {
    /// From what is remembered of the training data: the mean of every entry of the visible layers of
    /// `layers`, counted in `rows` rows, and the spread of real ones. Nothing where that does not
    /// fit the layers.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn new(
        layers: &Machine,
        means: &[f64],
        rows: usize,
        spread: Option<&Spread>,
    ) -> Result<Option<Self>, Error> {
        let real = real_layers(layers);
        let n_real: usize = real.iter().map(|&l| layers.layer(l).len()).sum();
        let mut variances = spread.map_or(&[][..], |s| &s.variances);
        let mut shares = spread.map_or(&[][..], |s| &s.levels).iter();
        let mut log_shares = Vec::new();
        let entries: usize = layers.visible_layers().iter().map(|&l| layers.layer(l).len()).sum();
        let known = means.iter().chain(variances).all(|x| x.is_finite());
        if means.len() != entries || variances.len() != n_real || rows == 0 || !known {
            return Ok(None);
        }
        let (mut visible, mut at) = (Vec::new(), 0);
        for l in layers.visible_layers() {
            let mut layer = layers.layer(l).clone();
            let of_layer = &means[at..at + layer.len()];
            at += layer.len();
            let whole = if layer.units.sums_own() { layer.len() } else { 0 };
            let these: Vec<Vec<f64>> =
                shares.by_ref().take(whole).map(|s| smoothed_shares(s, rows as f64)).collect();
            let size = layer.units.largest() + 1;
            if these.len() != whole || these.iter().any(|s| s.len() != size) {
                return Ok(None);
            }
            log_shares.push(these);
            if real.contains(&l) {
                let (own, rest) = variances.split_at(layer.len());
                variances = rest;
                let precisions = own.iter().zip(of_layer);
                let precisions = precisions.map(|(v, m)| least_variance(*m, *v).recip());
                layer.own = precisions.collect();
                layer.bias = layer.bias_of_means(of_layer);
            } else {
                layer.bias = smoothed_bias(&layer, of_layer, rows as f64);
            }
            layer.offset = vec![0.0; layer.len()];
            visible.push(layer);
        }
        let machine = Machine::new(visible, Vec::new())?;
        let gaussian = spread.and_then(|s| Gaussian::new(&machine, &s.correlations));
        let log_sums = machine.layers().iter().map(log_sums).collect();
        Ok(Some(Self { machine, log_sums, log_shares, gaussian }))
    }

    /// The baselines of `train` for the visible layers of `layers`.
    ///
    /// # Errors
    ///
    /// If the data does not fit.
    pub fn of(layers: &Machine, train: &Dataset) -> Result<Option<Self>, Error> {
        let feed = Feed::of(layers, train)?;
        let (means, spread) = (feed.means().concat(), Spread::of(layers, &feed));
        Self::new(layers, &means, train.n_rows(), spread.as_ref())
    }

    /// The scores of the rows of `feed`; what they lack is summed out.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn score(&self, feed: &Feed<'_>) -> Result<Baselines, Error> {
        let (machine, data) = (&self.machine, feed.data());
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        let mut batch = feed.batch([], Stream::new(0));
        let mut factor = Factor::default();
        for start in (0..data.n_rows()).step_by(ROWS) {
            let these = start..(start + ROWS).min(data.n_rows());
            feed.refill(&mut batch, these, Stream::new(0));
            let x = batch.to_state(machine)?;
            for row in 0..x.n_rows() {
                let score = self.alone(&batch, &x, row);
                alone.push(score);
                if let Some(gaussian) = &self.gaussian {
                    let values = gaussian.layers.iter().flat_map(|&l| x.row(l, row));
                    let values: Vec<f64> = values.copied().collect();
                    let units = units_of(machine, &gaussian.layers).enumerate();
                    let held = units.filter(|(_, (l, unit))| batch.clamp().holds(*l, row, *unit));
                    gaussian.factor(&held.map(|(i, _)| i).collect::<Vec<_>>(), &mut factor);
                    together.push(score + gaussian.gain(&values, &factor));
                }
            }
        }
        let weights: Vec<f64> = (0..data.n_rows()).map(|r| data.weight(r)).collect();
        let scored = |rows: Vec<f64>| {
            let (mean, std_error) = weighted_mean(&rows, &weights);
            Alone { mean, std_error, rows }
        };
        let gaussian = self.gaussian.is_some().then(|| scored(together));
        Ok(Baselines { independent: scored(alone), gaussian })
    }

    /// The log-probability of what a row holds, each unit alone.
    fn alone(&self, batch: &Batch, x: &State, row: usize) -> f64 {
        let of_layer = |l: LayerId| {
            let (layer, values) = (self.machine.layer(l), x.row(l, row));
            let group = layer.units.group();
            let unit = |unit: usize| {
                if let Some(shares) = self.log_shares[l.0].get(unit) {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "whole numbers from 0 on"
                    )]
                    return shares[values[unit] as usize];
                }
                let entries = unit * group..(unit + 1) * group;
                let of_entry = |i: usize| {
                    let own = 0..layer.units.own_parameters().len();
                    let own =
                        own.map(|k| layer.units.own_term(k, layer.own().row(k)[i], values[i]));
                    layer.bias[i] * values[i] - own.sum::<f64>()
                };
                entries.map(of_entry).sum::<f64>() - self.log_sums[l.0][unit]
            };
            let held = (0..layer.n_units()).filter(|&u| batch.clamp().holds(l, row, u));
            held.map(unit).sum::<f64>()
        };
        self.machine.layer_ids().map(of_layer).sum()
    }
}

/// The units of some layers, in order.
fn units_of<'m>(
    machine: &'m Machine,
    layers: &'m [LayerId],
) -> impl Iterator<Item = (LayerId, usize)> + 'm {
    layers.iter().flat_map(|&l| (0..machine.layer(l).n_units()).map(move |unit| (l, unit)))
}

/// The logarithm of the sum of each unit of a layer without couplings.
fn log_sums(layer: &Layer) -> Vec<f64> {
    let group = layer.units.group();
    let unit = |u: usize| {
        let entries = u * group..(u + 1) * group;
        layer.units.log_partition(&layer.bias[entries.clone()], layer.own().piece(entries))
    };
    (0..layer.n_units()).map(unit).collect()
}

/// Biases at which independent units of a finite kind have these means, smoothed as if counted in `n`
/// rows.
fn smoothed_bias(layer: &Layer, means: &[f64], n: f64) -> Vec<f64> {
    let q = layer.units.configurations().map_or(2, |choices| choices.0.len()) as f64;
    let share = |p: f64| (n * p.clamp(0.0, 1.0) + 0.5) / (n + 0.5 * q);
    match (layer.units.storage(), layer.units.bit_coordinates()) {
        (Storage::OneHot, _) => means.iter().map(|&m| share(m).ln()).collect(),
        (_, Some(c)) => {
            let logit = |m: f64| {
                let p = share((m - c.shift) / c.scale);
                (p / (1.0 - p)).ln() / c.scale
            };
            means.iter().map(|&m| logit(m)).collect()
        }
        (_, None) => layer.bias_of_means(means),
    }
}

/// The logarithm of shares of values, smoothed as if counted in `n` rows.
fn smoothed_shares(shares: &[f64], n: f64) -> Vec<f64> {
    let total = n + 0.5 * shares.len() as f64;
    shares.iter().map(|s| ((n * s + 0.5) / total).ln()).collect()
}

/// Real units with their correlations.
#[derive(Clone, Debug)]
struct Gaussian {
    layers: Vec<LayerId>,
    means: Vec<f64>,
    /// One over the standard deviation.
    scale: Vec<f64>,
    /// $R$, row-major.
    correlations: Vec<f64>,
}

impl Gaussian {
    /// From independent units and the correlations of each with those before it.
    fn new(machine: &Machine, correlations: &[f64]) -> Option<Self> {
        let layers = real_layers(machine);
        let of = |f: &dyn Fn(&Layer) -> Vec<f64>| {
            layers.iter().flat_map(|&l| f(machine.layer(l))).collect::<Vec<f64>>()
        };
        let precision = of(&|layer| layer.own().row(0).to_vec());
        let bias = of(&|layer| layer.bias.clone());
        let d = bias.len();
        if d < 2
            || correlations.len() != d * (d - 1) / 2
            || !correlations.iter().all(|r| r.is_finite())
        {
            return None;
        }
        let mut square = vec![0.0; d * d];
        for i in 0..d {
            square[i * d + i] = 1.0;
            for j in 0..i {
                let r = correlations[i * (i - 1) / 2 + j];
                (square[i * d + j], square[j * d + i]) = (r, r);
            }
        }
        let means = bias.iter().zip(&precision).map(|(b, g)| b / g).collect();
        let scale = precision.iter().map(|g| g.sqrt()).collect();
        let gaussian = Self { layers, means, scale, correlations: square };
        // Of correlations that no distribution has, nothing can be said.
        let mut factor = Factor::default();
        gaussian.factor(&(0..d).collect::<Vec<_>>(), &mut factor);
        factor.exists.then_some(gaussian)
    }

    /// Factorises $R$ of some units, unless `factor` holds that already.
    fn factor(&self, these: &[usize], factor: &mut Factor) {
        if factor.exists && factor.these == these {
            return;
        }
        let d = self.means.len();
        let row = |&i: &usize| these.iter().map(move |&j| self.correlations[i * d + j]);
        let mut lower: Vec<f64> = these.iter().flat_map(row).collect();
        let log_det = cholesky(&mut lower, these.len());
        let exists = log_det.is_ok();
        *factor = Factor { these: these.to_vec(), lower, log_det: log_det.unwrap_or(0.0), exists };
    }

    /// What correlations add to the log-density of independent units: $\tfrac12 (z^\top z - z^\top
    /// R^{-1} z - \ln\det R)$ over the units that are held.
    fn gain(&self, values: &[f64], factor: &Factor) -> f64 {
        let Factor { these, lower, log_det, .. } = factor;
        let n = these.len();
        let standard = |&i: &usize| (values[i] - self.means[i]) * self.scale[i];
        let z: Vec<f64> = these.iter().map(standard).collect();
        let mut y = vec![0.0; n];
        for i in 0..n {
            y[i] = (z[i] - dot(&lower[i * n..i * n + i], &y[..i])) / lower[i * n + i];
        }
        0.5 * (dot(&z, &z) - dot(&y, &y) - log_det)
    }
}

/// The Cholesky factor of the correlations of some units.
#[derive(Clone, Debug, Default)]
struct Factor {
    these: Vec<usize>,
    /// $L$ with $R = LL^\top$, row-major.
    lower: Vec<f64>,
    /// $\ln\det R$.
    log_det: f64,
    exists: bool,
}

/// Mean log-likelihood of `test` under independent units fitted to `train`, and its standard error.
///
/// # Errors
///
/// If the data does not fit the visible layers of `machine`.
pub fn independent(
    machine: &Machine,
    train: &Dataset,
    test: &Dataset,
) -> Result<(f64, Option<f64>), Error> {
    let visible = machine.visible_layers().into_iter().map(|l| machine.layer(l).clone());
    let layers = Machine::new(visible.collect(), Vec::new())?;
    let fitted = Fitted::of(&layers, train)?
        .ok_or_else(|| Error::Empty { what: "the training data".into() })?;
    let Alone { mean, std_error, .. } = fitted.score(&Feed::of(&layers, test)?)?.independent;
    Ok((mean, std_error))
}
