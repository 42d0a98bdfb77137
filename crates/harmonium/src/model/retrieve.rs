//! Retrieval: which rows of one modality belong to a row of another.
//!
//! | by | how near the row $a$ is to the query $q$ |
//! |---|---|
//! | `conditional` | $\sum_i \ln p(a_i \mid q) - \ln p(a_i)$ over the cells of $a$: each given the query, by mean field, against its share in the training data |
//! | `features` | the cosine between the means of the top hidden layer given $q$ alone and given $a$ alone |
//!
//! The first takes the cells for independent given the query. Without the second term rows that are probable whatever the
//! query would come first.

use super::features::Extracting;
use super::pieces;
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::ranking::Ranking;
use crate::machine::{Layer, Machine};
use crate::models::{Body, modality_of};
use crate::progress::{Listener, tell};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::{MeanField, Sampler};
use crate::schema::Feed;
use crate::units::{Storage, Units};
use harmonium_data::Dataset;
use ndarray::{Array2, ArrayView1, Axis};
use serde::{Deserialize, Serialize};

/// Queries looked at together.
const ROWS: usize = 256;
/// Probabilities are no nearer to 0 and 1 than that.
const LEAST: f64 = 1e-6;

/// What nearness is measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nearness {
    /// The conditional distribution of the model.
    #[default]
    Conditional,
    /// The hidden units in which the modalities meet.
    Features,
}

/// How near every row is to every query.
#[derive(Clone, Debug, PartialEq)]
pub struct Retrieved {
    /// A row for each query, a column for each row among which is looked: the larger the nearer.
    pub nearness: Array2<f64>,
    /// What it was measured by.
    pub by: Nearness,
}

/// How well what belongs together is found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Retrieval {
    /// Mean over the queries of the average precision of the rows that belong to them.
    pub mean_average_precision: f64,
    /// Mean share of rows that belong to the query among the first 10.
    pub precision_at_10: f64,
    /// Share of the queries of which a row is among the first 10.
    pub recall_at_10: f64,
    /// The median of the rank of the first row that belongs to the query, from 1; equal ones count half.
    pub median_rank: f64,
    /// Queries to which a row belongs.
    pub n_queries: usize,
    /// Rows among which was looked.
    pub n_among: usize,
}

impl Retrieved {
    /// The `n` nearest rows to a query, nearest first.
    pub fn nearest(&self, query: usize, n: usize) -> Vec<usize> {
        let near = self.nearness.row(query);
        let mut order: Vec<usize> = (0..near.len()).collect();
        order.sort_by(|&a, &b| near[b].total_cmp(&near[a]).then(a.cmp(&b)));
        order.truncate(n);
        order
    }

    /// How well the rows that belong to queries, `belongs(query, row)`, are found.
    pub fn judge(&self, belongs: impl Fn(usize, usize) -> bool) -> Retrieval {
        let (n_queries, n_among) = self.nearness.dim();
        let hits = Array2::from_shape_fn((n_queries, n_among), |(q, a)| belongs(q, a));
        let targets: Vec<f32> = hits.iter().map(|hit| f32::from(u8::from(*hit))).collect();
        let values: Vec<f64> = self.nearness.iter().copied().collect();
        let ranking = Ranking::new(&values, &targets, n_among);
        let (mut ranks, mut precision, mut recall) = (Vec::new(), 0.0, 0.0);
        for (near, hits) in self.nearness.rows().into_iter().zip(hits.rows()) {
            let Some(rank) = first_rank(near, hits) else { continue };
            ranks.push(rank);
            recall += f64::from(rank <= 10.5);
            let mut order: Vec<usize> = (0..n_among).collect();
            order.sort_by(|&a, &b| near[b].total_cmp(&near[a]).then(a.cmp(&b)));
            let first = order.iter().take(10);
            precision += first.filter(|&&a| hits[a]).count() as f64 / 10.0_f64.min(n_among as f64);
        }
        ranks.sort_by(f64::total_cmp);
        let n = ranks.len();
        let median = match n {
            0 => f64::NAN,
            n if n % 2 == 1 => ranks[n / 2],
            n => f64::midpoint(ranks[n / 2 - 1], ranks[n / 2]),
        };
        let count = n.max(1) as f64;
        Retrieval {
            mean_average_precision: ranking.by_row,
            precision_at_10: precision / count,
            recall_at_10: recall / count,
            median_rank: median,
            n_queries: n,
            n_among,
        }
    }
}

/// The rank of the nearest hit, from 1; others that are as near count half.
fn first_rank(near: ArrayView1<'_, f64>, hits: ArrayView1<'_, bool>) -> Option<f64> {
    let of_hits = near.iter().zip(&hits).filter(|(_, hit)| **hit).map(|(x, _)| *x);
    let best = of_hits.reduce(f64::max)?;
    let nearer = near.iter().filter(|x| **x > best).count() as f64;
    let equal = near.iter().zip(&hits).filter(|(x, hit)| **x == best && !**hit).count() as f64;
    Some(1.0 + nearer + equal / 2.0)
}

impl Model {
    /// How near each row of `among`, of the modality `wanted`, is to each query. Both are rows as [`Model::join`] makes
    /// them; of the queries what they say of `wanted` does not count, of the others nothing else does.
    ///
    /// # Errors
    ///
    /// If there is no such modality, rows do not fit, memory ends, or the listener cancels.
    pub fn retrieve(
        &self,
        queries: &Dataset,
        (wanted, among): (&str, &Dataset),
        by: Nearness,
        listener: &mut dyn Listener,
    ) -> Result<Retrieved, Error> {
        let queries = self.without_modality(queries, wanted)?;
        let mut among = among.clone();
        let others = self.modalities().iter().filter(|m| m.name != wanted);
        for name in others.map(|m| m.name.clone()).collect::<Vec<_>>() {
            among = self.without_modality(&among, &name)?;
        }
        let nearness = match by {
            Nearness::Conditional => self.log_ratios(&queries, wanted, &among, listener)?,
            Nearness::Features => self.cosines(&queries, &among, listener)?,
        };
        Ok(Retrieved { nearness, by })
    }

    /// The cosine of the means of the top layer.
    fn cosines(
        &self,
        queries: &Dataset,
        among: &Dataset,
        listener: &mut dyn Listener,
    ) -> Result<Array2<f64>, Error> {
        let layer = self.body.hidden().last().map(|l| l.name.to_owned());
        let extracting = Extracting { layer, ..Extracting::default() };
        let mut unit = |data: &Dataset| -> Result<Array2<f64>, Error> {
            let mut values = self.features_with(data, &extracting, listener)?.values;
            for mut row in values.rows_mut() {
                let norm = row.dot(&row).sqrt().max(f64::MIN_POSITIVE);
                row /= norm;
            }
            Ok(values)
        };
        Ok(unit(queries)?.dot(&unit(among)?.t()))
    }

    /// $\sum_i \ln p(a_i \mid q) - \ln p(a_i)$.
    fn log_ratios(
        &self,
        queries: &Dataset,
        wanted: &str,
        among: &Dataset,
        listener: &mut dyn Listener,
    ) -> Result<Array2<f64>, Error> {
        let Body::Machine(machine) = &self.body else { return Err(Error::NoDistribution) };
        let entries = self.entries_of(wanted)?;
        let rows = self.entries(machine, among)?;
        let marginals = self.about.data.means.get(entries.clone()).ok_or(Error::Shape {
            what: "means of the training data".into(),
            expected: entries.end,
            found: self.about.data.means.len(),
        })?;
        let layers: Vec<&Layer> =
            self.body.visible().into_iter().filter(|l| modality_of(&l.name) == wanted).collect();
        let own = rows.slice_axis(Axis(1), entries.clone().into());
        let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
        let feed = Feed::new(machine, &self.schema(queries)?, queries)?;
        let mut nearness = Array2::zeros((queries.n_rows(), among.n_rows()));
        for piece in pieces(queries.n_rows(), ROWS) {
            let (first, end) = (piece.start, piece.end);
            let batch = feed.batch(piece, Stream::new(0));
            let mut x = batch.to_state(machine)?;
            sampler.infer(batch.clamp(), &mut x, MeanField::default())?;
            let means = super::sample::visible_values(machine, &x);
            for (q, means) in means.rows().into_iter().enumerate() {
                let means = means.slice_axis(Axis(0), entries.clone().into());
                let weigh = Weights::new(&layers, means, marginals);
                for (a, row) in own.rows().into_iter().enumerate() {
                    nearness[[first + q, a]] = weigh.row(row);
                }
            }
            tell(listener, "queries", end as u64, queries.n_rows() as u64)?;
        }
        Ok(nearness)
    }

    /// Rows of data as visible entries, NaN where they are missing.
    fn entries(&self, machine: &Machine, data: &Dataset) -> Result<Array2<f64>, Error> {
        let feed = Feed::new(machine, &self.schema(data)?, data)?;
        let batch = feed.batch(0..data.n_rows(), Stream::new(0));
        let x = batch.to_state(machine)?;
        let mut values = super::sample::visible_values(machine, &x);
        let mut start = 0;
        for l in machine.visible_layers() {
            let layer = machine.layer(l);
            for row in 0..values.nrows() {
                for entry in 0..layer.len() {
                    if !batch.clamp().holds(l, row, entry / layer.units.group()) {
                        values[[row, start + entry]] = f64::NAN;
                    }
                }
            }
            start += layer.len();
        }
        Ok(values)
    }
}

/// The log-ratio of a row as a function of its entries: $\sum_i c_i + l_i a_i$.
struct Weights {
    constant: Vec<f64>,
    linear: Vec<f64>,
}

impl Weights {
    fn new(layers: &[&Layer], means: ArrayView1<'_, f64>, marginals: &[f64]) -> Self {
        let (mut constant, mut linear) = (Vec::new(), Vec::new());
        let mut at = 0;
        for layer in layers {
            for i in 0..layer.len() {
                let (m, p) = (means[at], marginals[at]);
                at += 1;
                let (c, l) = match layer.units {
                    Units::Spin => of_bit(f64::midpoint(m, 1.0), f64::midpoint(p, 1.0), true),
                    _ if layer.units.storage() == Storage::OneHot => {
                        (0.0, (clamped(m) / clamped(p)).ln())
                    }
                    _ if layer.units.storage() == Storage::Bits => of_bit(m, p, false),
                    // Densities of one spread: that of a unit given the rest.
                    _ => {
                        let precision = layer.own.get(i).copied().unwrap_or(1.0);
                        (0.5 * precision * (p * p - m * m), precision * (m - p))
                    }
                };
                constant.push(c);
                linear.push(l);
            }
        }
        Self { constant, linear }
    }

    /// Of a row; what it lacks does not count.
    fn row(&self, row: ArrayView1<'_, f64>) -> f64 {
        let cell = |(i, &a): (usize, &f64)| {
            if a.is_nan() { 0.0 } else { self.constant[i] + a * self.linear[i] }
        };
        row.iter().enumerate().map(cell).sum()
    }
}

fn clamped(p: f64) -> f64 {
    p.clamp(LEAST, 1.0 - LEAST)
}

/// A bit that is on with probability `m` given the query and `p` without; as a spin it is 1 or −1.
fn of_bit(m: f64, p: f64, spin: bool) -> (f64, f64) {
    let (m, p) = (clamped(m), clamped(p));
    let (on, off) = ((m / p).ln(), ((1.0 - m) / (1.0 - p)).ln());
    if spin { (f64::midpoint(on, off), (on - off) / 2.0) } else { (off, on - off) }
}
