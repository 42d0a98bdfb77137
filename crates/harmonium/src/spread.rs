//! How real columns vary, alone and together: what baselines, first parameters and the scale of
//! learning are made of.
//!
//! Variances, and correlations over the rows that have both columns, shrunk towards none by what rows left
//! out say of them ([`crate::gaussian`]).

use crate::gaussian::{Block, Sample, shrinkage};
use crate::machine::{Layer, LayerId, Machine};
use crate::schema::Feed;
use crate::units::Storage;
use harmonium_kernels::random::Stream;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Rows looked at together.
const ROWS: usize = 256;
/// Products of rows that choose the shrinkage: a part of the rows does for many columns.
const SAMPLED: usize = 60_000_000;
/// Real columns up to which their correlations are remembered: a model file holds one number for each
/// pair.
pub const MOST_REAL_COLUMNS: usize = 128;

/// What is remembered of columns of numbers besides their means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Spread {
    /// The variance of each real column.
    pub variances: Vec<f64>,
    /// Shrunk correlations of each real column with those before it; none where there are more than
    /// [`MOST_REAL_COLUMNS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub correlations: Vec<f64>,
    /// $\lambda$.
    pub shrinkage: f64,
    /// The share of each value of each column of whole numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Vec<f64>>,
}

impl Spread {
    /// Of the columns of numbers of `feed`, which fills the visible layers of `layers`; nothing where there
    /// are none.
    pub fn of(layers: &Machine, feed: &Feed<'_>) -> Option<Self> {
        let real = real_layers(layers);
        let levels = level_shares(layers, feed);
        if real.is_empty() && levels.is_empty() {
            return None;
        }
        let mut spread = Self { levels, ..Self::default() };
        if real.is_empty() {
            return Some(spread);
        }
        spread.variances = statistics(layers, feed, &real).1;
        if spread.variances.len() <= MOST_REAL_COLUMNS
            && let Some(found) = Correlations::of(layers, feed, &real)
        {
            let d = found.len();
            let pairs = (0..d).flat_map(|i| (0..i).map(move |j| (i, j)));
            spread.correlations = pairs.map(|(i, j)| found.shrunk(i, j)).collect();
            spread.shrinkage = found.shrinkage;
        }
        Some(spread)
    }

    /// The standard deviation of each column of numbers of some visible layers, in their order; nothing where one is not known.
    pub(crate) fn deviations<'l>(
        &self,
        layers: impl IntoIterator<Item = &'l Layer>,
    ) -> Option<Vec<f64>> {
        let (mut variances, mut levels) = (self.variances.iter(), self.levels.iter());
        let mut found = Vec::new();
        for layer in layers {
            for _ in 0..layer.len() {
                match layer.units.storage() {
                    Storage::Reals => found.push(variances.next()?.sqrt()),
                    Storage::Levels => found.push(deviation(levels.next()?)),
                    _ => {}
                }
            }
        }
        (variances.next().is_none() && levels.next().is_none()).then_some(found)
    }

    /// Where the precisions of units that stand for these columns start: those of columns that are coupled with each other, or of
    /// independent ones; nothing where the correlations were not kept.
    pub(crate) fn precisions(&self, coupled: bool) -> Option<Vec<f64>> {
        let d = self.variances.len();
        if !coupled {
            return Some(self.variances.iter().map(|v| v.recip()).collect());
        }
        if self.correlations.len() != d * d.saturating_sub(1) / 2 {
            return None;
        }
        let entry = |i: usize, j: usize| match i.cmp(&j) {
            Ordering::Equal => 1.0,
            Ordering::Greater => self.correlations[i * (i - 1) / 2 + j],
            Ordering::Less => self.correlations[j * (j - 1) / 2 + i],
        };
        let matrix = (0..d * d).map(|k| entry(k / d, k % d)).collect();
        let inverse = Block::new(matrix, d).ok()?.covariance();
        let diagonal = inverse.iter().step_by(d + 1).zip(&self.variances);
        Some(diagonal.map(|(p, v)| p / v).collect())
    }
}

/// The correlations of some real columns.
#[derive(Clone, Debug)]
pub(crate) struct Correlations {
    /// Means, and standard deviations that no column that hardly varies can undercut.
    pub(crate) means: Vec<f64>,
    pub(crate) deviations: Vec<f64>,
    /// $R$, row by row.
    plain: Vec<f64>,
    /// $\lambda$.
    pub(crate) shrinkage: f64,
}

impl Correlations {
    /// Columns as if they had none: what many rows of many columns say of each alone.
    pub(crate) fn none(machine: &Machine, feed: &Feed<'_>, layers: &[LayerId]) -> Self {
        let (means, variances) = statistics(machine, feed, layers);
        let deviations = deviations(&means, &variances);
        Self { means, deviations, plain: Vec::new(), shrinkage: 1.0 }
    }

    /// Of the columns that fill some visible layers of real units; nothing where there are no rows.
    pub(crate) fn of(machine: &Machine, feed: &Feed<'_>, layers: &[LayerId]) -> Option<Self> {
        let (means, variances) = statistics(machine, feed, layers);
        let deviations = deviations(&means, &variances);
        let d = means.len();
        let data = feed.data();
        let every = (data.n_rows() * d * d).div_ceil(SAMPLED).max(1);
        let (mut products, mut totals) = (vec![0.0; d * d], vec![0.0; d * d]);
        let (mut weight, mut squares) = (0.0, 0.0);
        let mut sample = Sample::default();
        for start in (0..data.n_rows()).step_by(ROWS) {
            let batch = feed.batch(start..(start + ROWS).min(data.n_rows()), Stream::new(0));
            let x = batch.to_state(machine).ok()?;
            for row in 0..x.n_rows() {
                let units =
                    layers.iter().flat_map(|&l| (0..machine.layer(l).len()).map(move |i| (l, i)));
                let values = layers.iter().flat_map(|&l| x.row(l, row));
                let scales = means.iter().zip(&deviations);
                let held = units.map(|(l, i)| batch.clamp().holds(l, row, i));
                let standard = values
                    .zip(scales)
                    .zip(held)
                    .map(|((x, (m, s)), held)| if held { (x - m) / s } else { f64::NAN });
                let z: Vec<f64> = standard.collect();
                let seen: Vec<usize> = (0..d).filter(|&i| !z[i].is_nan()).collect();
                let w = data.weight(start + row);
                for (k, &i) in seen.iter().enumerate() {
                    for &j in &seen[..=k] {
                        products[i * d + j] += w * z[i] * z[j];
                        totals[i * d + j] += w;
                    }
                }
                (weight, squares) = (weight + w, squares + w * w);
                if (start + row).is_multiple_of(every) && !seen.is_empty() {
                    sample.rows.extend(z.iter().map(|z| if z.is_nan() { 0.0 } else { *z }));
                    sample.weights.push(w);
                    sample.seen.push((seen.len() < d).then_some(seen));
                }
            }
        }
        if weight <= 0.0 {
            return None;
        }
        for i in 0..d {
            for j in 0..=i {
                let r = products[i * d + j] / totals[i * d + j];
                let r = if i == j {
                    1.0
                } else if r.is_finite() {
                    r
                } else {
                    0.0
                };
                (products[i * d + j], products[j * d + i]) = (r, r);
            }
        }
        let shrinkage = shrinkage(&products, d, weight * weight / squares, &sample);
        Some(Self { means, deviations, plain: products, shrinkage })
    }

    /// Number of columns.
    pub(crate) fn len(&self) -> usize {
        self.means.len()
    }

    /// Everything that was measured.
    pub(crate) fn numbers_mut(&mut self) -> Vec<&mut [f64]> {
        let shrinkage = std::slice::from_mut(&mut self.shrinkage);
        vec![&mut self.means, &mut self.deviations, &mut self.plain, shrinkage]
    }

    /// The correlation of two columns after shrinkage.
    pub(crate) fn shrunk(&self, i: usize, j: usize) -> f64 {
        let kept = if i == j { 1.0 } else { 1.0 - self.shrinkage };
        kept * self.plain[i * self.len() + j]
    }

    /// What shrinkage takes from the covariance of two columns.
    pub(crate) fn taken(&self, i: usize, j: usize) -> f64 {
        let taken = if i == j { 0.0 } else { self.shrinkage };
        taken * self.plain[i * self.len() + j] * self.deviations[i] * self.deviations[j]
    }

    /// The inverse of the shrunk covariance, row by row; of independent columns where that has none.
    pub(crate) fn precision(&self) -> Vec<f64> {
        let d = self.len();
        let matrix = (0..d * d).map(|k| self.shrunk(k / d, k % d)).collect();
        let mut inverse = match Block::new(matrix, d) {
            Ok(block) => block.covariance(),
            Err(_) => (0..d * d).map(|k| f64::from(u8::from(k / d == k % d))).collect(),
        };
        for (k, x) in inverse.iter_mut().enumerate() {
            *x /= self.deviations[k / d] * self.deviations[k % d];
        }
        inverse
    }
}

/// Mean and variance of each column of some visible layers.
fn statistics(machine: &Machine, feed: &Feed<'_>, layers: &[LayerId]) -> (Vec<f64>, Vec<f64>) {
    let (means, variances) = feed.statistics();
    let visible = machine.visible_layers();
    let of = |all: &[Vec<f64>]| -> Vec<f64> {
        let place = |l: &LayerId| visible.iter().position(|m| m == l);
        layers.iter().filter_map(place).flat_map(|k| all[k].iter().copied()).collect()
    };
    (of(&means), of(&variances))
}

fn deviations(means: &[f64], variances: &[f64]) -> Vec<f64> {
    means.iter().zip(variances).map(|(m, v)| least_variance(*m, *v).sqrt()).collect()
}

/// A variance that can be divided by: that of a column that does not vary, but for rounding, is what a
/// hundredth of its size would give, or 0.01 if it is zero. Any density could be had there.
pub(crate) fn least_variance(mean: f64, variance: f64) -> f64 {
    const ROUNDING: f64 = 1e-12;
    const SHARE: f64 = 1e-2;
    if variance > ROUNDING * mean * mean {
        return variance;
    }
    let size = if mean == 0.0 { 1.0 } else { mean.abs() };
    (SHARE * size).powi(2)
}

/// The share of each value of each column of whole numbers, over the rows that have one.
fn level_shares(layers: &Machine, feed: &Feed<'_>) -> Vec<Vec<f64>> {
    let whole = |&l: &LayerId| layers.layer(l).units.storage() == Storage::Levels;
    let whole: Vec<LayerId> = layers.visible_layers().into_iter().filter(whole).collect();
    let columns = || whole.iter().flat_map(|&l| (0..layers.layer(l).len()).map(move |i| (l, i)));
    let zeros = |(l, _): (LayerId, usize)| vec![0.0; layers.layer(l).units.largest() + 1];
    let mut shares: Vec<Vec<f64>> = columns().map(zeros).collect();
    let n_rows = if whole.is_empty() { 0 } else { feed.data().n_rows() };
    for start in (0..n_rows).step_by(ROWS) {
        let batch = feed.batch(start..(start + ROWS).min(n_rows), Stream::new(0));
        let Ok(x) = batch.to_state(layers) else { return Vec::new() };
        for row in 0..x.n_rows() {
            for ((l, i), shares) in columns().zip(&mut shares) {
                if batch.clamp().holds(l, row, i) {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "whole numbers from 0 on"
                    )]
                    let value = x.row(l, row)[i] as usize;
                    shares[value] += feed.data().weight(start + row);
                }
            }
        }
    }
    for shares in &mut shares {
        let total: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|s| *s /= if total > 0.0 { total } else { 1.0 });
    }
    shares
}

/// The standard deviation of a column of whole numbers.
fn deviation(shares: &[f64]) -> f64 {
    let moment = |f: &dyn Fn(f64) -> f64| -> f64 {
        shares.iter().enumerate().map(|(k, s)| s * f(k as f64)).sum()
    };
    let mean = moment(&|x| x);
    moment(&|x| (x - mean).powi(2)).sqrt()
}

/// The visible layers of real units.
pub(crate) fn real_layers(machine: &Machine) -> Vec<LayerId> {
    let real = |&l: &LayerId| machine.layer(l).units.storage() == Storage::Reals;
    machine.visible_layers().into_iter().filter(real).collect()
}
