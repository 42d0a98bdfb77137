//! Scores: how probable data is under a model, with the interval of the estimate.
//!
//! | method | score of a row | needs |
//! |---|---|---|
//! | `exact` | $\ln p(v)$ | both sums affordable |
//! | `ais` | $\ln p(v)$ from a sampled $\ln Z$, and an annealed sum where hidden units see each other | – |
//! | `bound` | the variational bound, taken apart | – |
//! | `importance` | $\ln p(v)$ by draws of the recognition distribution | a deep belief network |
//! | `pseudo` | each unit given all the others | no $\ln Z$ |
//! | `free-energy` | $-\ln\sum_h e^{-E}$ or its variational bound | no $\ln Z$ |
//!
//! Columns that the data lacks (labels, missing cells) are summed out; a deep belief network takes rows
//! without missing cells.

use super::{pieces, visible_entries};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::baseline::{Baselines, By, Fitted, Gain};
use crate::evaluation::bound::{self, Terms};
use crate::evaluation::dbn::{self, DbnLikelihood};
use crate::evaluation::likelihood::{Estimate, Likelihood, estimate, weighted_mean};
use crate::evaluation::log_partition::{self, Bracket, Doubt, LogPartition, Settings};
use crate::evaluation::pseudo::{Visit, log_pseudo_likelihood};
use crate::evaluation::row_sums::{self, How, RowWork, Sums};
use crate::exact::{self, Budget, Query};
use crate::machine::{Batch, Clamp, LayerId, Machine};
use crate::models::{Body, Dbn};
use crate::progress::{Listener, Silent, tell};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::{MeanField, Sampler};
use crate::schema::Feed;
use harmonium_data::Dataset;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Rows scored at a time.
const ROWS: usize = 128;
/// The variates of the draws behind the score of a deep belief network, and of its labels.
const IMPORTANCE: u64 = 300;
const LABELS: u64 = 301;

/// How data is scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Exactly where that is affordable, else by annealing; a deep belief network by importance
    /// sampling.
    #[default]
    Auto,
    /// By exact sums.
    Exact,
    /// By annealed importance sampling.
    Ais,
    /// By the variational bound.
    Bound,
    /// By draws of the recognition distribution of a deep belief network.
    Importance,
    /// Each unit given all the others.
    Pseudo,
    /// The free energy, without $\ln Z$.
    FreeEnergy,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Exact => "exact",
            Self::Ais => "ais",
            Self::Bound => "bound",
            Self::Importance => "importance",
            Self::Pseudo => "pseudo",
            Self::FreeEnergy => "free-energy",
        })
    }
}

/// Everything that can be set about a score.
#[derive(Clone, Debug)]
pub struct Scoring {
    /// How the rows are scored.
    pub method: Method,
    /// How much work goes into $\ln Z$, where it is sampled; its seed is the root of all randomness.
    pub annealing: Settings,
    /// Draws of the recognition distribution for each row of a deep belief network.
    pub draws: usize,
    /// Which units of a row the pseudo-likelihood visits.
    pub visits: Visits,
}

/// Which units of a row a pseudo-likelihood visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visits {
    /// All of them.
    #[default]
    All,
    /// One at random, counted as all.
    One,
}

impl Default for Scoring {
    fn default() -> Self {
        let annealing = Settings::default();
        Self { method: Method::Auto, annealing, draws: 100, visits: Visits::All }
    }
}

/// The score of a set of rows.
#[derive(Clone, Debug)]
pub struct Score {
    /// How it was found; never `Auto`.
    pub method: Method,
    /// The mean score of a row, in nats.
    pub mean: f64,
    /// Standard error of the mean, from the spread over the rows.
    pub data_std_error: Option<f64>,
    /// Number of rows.
    pub n: usize,
    /// Units of the visible layers that the data fills.
    pub dimensions: usize,
    /// The score of each row.
    pub rows: Vec<f64>,
    /// What stands behind it.
    pub behind: Behind,
    /// The share of rows whose label is not the most probable class, where labels were given to a deep
    /// belief network.
    pub error_rate: Option<f64>,
    /// What models without couplings, fitted to the training data, reach on the same rows; else why
    /// that is unknown.
    pub baseline: Result<Baselines, &'static str>,
    /// By how much the mean is above the best of them.
    pub gain: Option<Gain>,
    /// What is in the mean because the numbers of a table are scaled and perhaps bent before they are learned:
    /// the mean of $\sum \ln |dz/dx|$, so that densities are in the units of the table. Nothing where nothing is.
    pub log_slope: Option<f64>,
}

/// What stands behind a score.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Behind {
    /// An exact $\ln Z$.
    Exact(f64),
    /// A log-likelihood put together from estimates.
    Estimated {
        /// The mean with its interval.
        estimate: Box<Estimate>,
        /// $\ln Z$ with its interval.
        log_z: LogPartition,
        /// How the sums of the rows were found.
        how: How,
        /// The bound taken apart, where it was asked for.
        terms: Option<Terms>,
    },
    /// Draws of the recognition distribution of a deep belief network.
    Drawn {
        /// Bound and estimate.
        found: Box<DbnLikelihood>,
        /// $\ln Z$ of the top RBM.
        log_z: LogPartition,
    },
    /// No $\ln Z$: a score of its own.
    Nothing,
}

impl Score {
    /// The mean log-likelihood in nats, unless the score is of another sort.
    pub fn log_likelihood(&self) -> Option<f64> {
        (!matches!(self.behind, Behind::Nothing)).then_some(self.mean)
    }

    /// The interval of the mean log-likelihood: lower and upper end, where there is one.
    pub fn interval(&self) -> Option<(f64, Option<f64>)> {
        match &self.behind {
            Behind::Exact(_) => Some((self.mean, Some(self.mean))),
            Behind::Estimated { estimate, how, .. } => {
                let bounded = *how == How::Bounded;
                Some((estimate.lower, (!bounded).then_some(estimate.upper)))
            }
            Behind::Drawn { found, log_z } => {
                let error = if self.method == Method::Bound {
                    found.bound_std_error
                } else {
                    found.estimate_std_error
                };
                // Both are lower bounds in expectation; nothing here bounds from above. Of one draw
                // Markov's inequality is all that is known: the chance that the mean of unbiased
                // weights is 40 times too large is below 2.5 %.
                let of_draws = error.map_or(40.0_f64.ln(), |e| log_partition::MARGIN * e);
                let margin = of_draws + (log_z.upper - log_z.log_z);
                Some((self.mean - margin, None))
            }
            Behind::Nothing => None,
        }
    }

    /// Standard error of what was estimated: $\ln Z$, and the sums of the rows; unknown of one draw.
    pub fn std_error(&self) -> Option<f64> {
        match &self.behind {
            Behind::Exact(_) | Behind::Nothing => Some(0.0),
            Behind::Estimated { estimate, .. } => Some(estimate.std_error),
            Behind::Drawn { found, .. } if self.method == Method::Bound => found.bound_std_error,
            Behind::Drawn { found, .. } => found.estimate_std_error,
        }
    }

    /// What the interval is.
    pub fn bracket(&self) -> Bracket {
        match &self.behind {
            Behind::Exact(_) | Behind::Nothing => Bracket::Bound,
            Behind::Estimated { estimate, .. } => estimate.bracket,
            Behind::Drawn { log_z, .. } => log_z.bracket,
        }
    }

    /// What speaks against the interval: of $\ln Z$, and of the sums of the rows.
    pub fn doubts(&self) -> (&[Doubt], &[Doubt]) {
        match &self.behind {
            Behind::Exact(_) | Behind::Nothing => (&[], &[]),
            Behind::Estimated { estimate, log_z, .. } => (&log_z.doubts, &estimate.row_doubts),
            Behind::Drawn { log_z, .. } => (&log_z.doubts, &[]),
        }
    }

    /// Minus the mean in bits for each unit of a row.
    pub fn bits_per_dimension(&self) -> f64 {
        -self.mean / (std::f64::consts::LN_2 * self.dimensions as f64)
    }

    fn new(method: Method, rows: Vec<f64>, feed: &Feed<'_>, dimensions: usize) -> Self {
        let data = feed.data();
        let (mean, data_std_error) = weighted_mean(&rows, &weights(data));
        let (n, behind, error_rate) = (rows.len(), Behind::Nothing, None);
        let (baseline, gain) = (Err("it was not asked for"), None);
        Self {
            method,
            mean,
            data_std_error,
            n,
            dimensions,
            rows,
            behind,
            error_rate,
            baseline,
            gain,
            log_slope: None,
        }
    }

    /// Log-densities of scaled values in the units of their table, where there is one. A free energy is none.
    fn in_units(mut self, data: &Dataset) -> Self {
        let slopes = match self.method {
            Method::FreeEnergy => None,
            _ => data.log_slopes(),
        };
        let Some(slopes) = slopes else { return self };
        let weights = weights(data);
        let add = |rows: &mut [f64]| rows.iter_mut().zip(&slopes).for_each(|(r, s)| *r += s);
        let shift = weighted_mean(&slopes, &weights).0;
        add(&mut self.rows);
        (self.mean, self.data_std_error) = weighted_mean(&self.rows, &weights);
        match &mut self.behind {
            Behind::Estimated { estimate, .. } => estimate.shift(&slopes, shift),
            Behind::Drawn { found, .. } => found.shift(&slopes, shift),
            Behind::Exact(_) | Behind::Nothing => {}
        }
        self.log_slope = Some(shift);
        self
    }
}

impl Model {
    /// The score of data, with its interval.
    ///
    /// # Errors
    ///
    /// If the data does not fit, the model has no such score, or memory ends.
    pub fn score(&self, data: &Dataset, method: Method) -> Result<Score, Error> {
        let scoring = Scoring { method, ..Scoring::default() };
        self.score_with(data, &scoring, &mut Silent)
    }

    /// The same with everything that can be set.
    ///
    /// # Errors
    ///
    /// As [`Model::score`]; and if a setting is out of range, or the listener cancels.
    pub fn score_with(
        &self,
        data: &Dataset,
        scoring: &Scoring,
        listener: &mut dyn Listener,
    ) -> Result<Score, Error> {
        let mut score = match &self.body {
            Body::Machine(machine) => {
                let feed = Feed::new(machine, &self.schema(data)?, data)?;
                self.score_machine(machine, &feed, scoring, listener)?
            }
            Body::Dbn(dbn) => self.score_dbn(dbn, data, scoring, listener)?,
            Body::Network(_) => return Err(Error::NoDistribution),
        }
        .in_units(data);
        score.baseline = match score.method {
            Method::FreeEnergy => Err("without ln Z a free energy cannot be compared"),
            _ => self.baseline(data)?,
        };
        if let Ok(baselines) = &score.baseline {
            let by = match score.method {
                Method::Pseudo => By::Pseudo,
                Method::Bound => By::Bound,
                _ => By::Likelihood,
            };
            let gain = Gain { by, ..baselines.gain(&score.rows, &weights(data)) };
            // Of one draw the error of the score is unknown, and so is that of the gain.
            score.gain = Some(match score.std_error() {
                Some(error) => gain.with_error(error),
                None => Gain { std_error: None, ..gain },
            });
        }
        Ok(score)
    }

    /// What models without couplings, fitted to the data this model was trained on, reach on the rows
    /// of `data`; or why that is unknown.
    ///
    /// # Errors
    ///
    /// If the data does not fit, or memory ends.
    pub fn baseline(&self, data: &Dataset) -> Result<Result<Baselines, &'static str>, Error> {
        let (layers, memory) = (self.data_layers()?, &self.about.data);
        if memory.rows == 0 || memory.means.is_empty() {
            return Ok(Err("the model was not trained on data, or its file does not say on which"));
        }
        let spread = memory.spread.as_ref();
        let Some(fitted) = Fitted::new(&layers, &memory.means, memory.rows, spread)? else {
            return Ok(Err("the file is of an earlier version and has no variances of the data"));
        };
        let feed = Feed::new(&layers, &self.schema(data)?, data)?;
        let found = fitted.score(&feed)?;
        Ok(Ok(match data.log_slopes() {
            Some(slopes) => found.shifted(&slopes, &weights(data)),
            None => found,
        }))
    }

    fn score_machine(
        &self,
        machine: &Machine,
        feed: &Feed<'_>,
        scoring: &Scoring,
        listener: &mut dyn Listener,
    ) -> Result<Score, Error> {
        let method = match scoring.method {
            Method::Auto => choose(machine, feed)?,
            Method::Importance => {
                return Err(Error::Topology {
                    model: "importance sampling",
                    expected: "the recognition distribution of a deep belief network",
                    found: "found a machine; use `ais`, or leave the method out".into(),
                });
            }
            method => method,
        };
        let dimensions = feed.filled().iter().map(|&l| machine.layer(l).n_units()).sum();
        if matches!(method, Method::Ais | Method::Bound) {
            return self.estimated(machine, feed, method, scoring, dimensions, listener);
        }
        let log_z = match method {
            Method::Exact => Some(exact::log_partition_with(machine, listener)?),
            _ => None,
        };
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let mut rows = Vec::with_capacity(feed.data().n_rows());
        for piece in pieces(feed.data().n_rows(), ROWS) {
            let (start, end) = (piece.start, piece.end);
            let batch = feed.batch(piece, Stream::new(0));
            rows.extend(match (method, log_z) {
                (Method::Pseudo, _) => pseudo(machine, &batch, scoring, start)?,
                (_, Some(log_z)) => exact_rows(machine, &batch, log_z)?,
                _ => free_energies(&sampler, &batch)?,
            });
            tell(listener, "rows", end as u64, feed.data().n_rows() as u64)?;
        }
        let mut score = Score::new(method, rows, feed, dimensions);
        score.behind = log_z.map_or(Behind::Nothing, Behind::Exact);
        Ok(score)
    }

    /// The log-likelihood from sampled sums: $\ln Z$, and that of each row where hidden units see each
    /// other. By `bound` the rows' own are left to mean field.
    fn estimated(
        &self,
        machine: &Machine,
        feed: &Feed<'_>,
        method: Method,
        scoring: &Scoring,
        dimensions: usize,
        listener: &mut dyn Listener,
    ) -> Result<Score, Error> {
        let log_z = self.log_partition(&scoring.annealing, listener)?;
        let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
        let work = RowWork { seed: scoring.annealing.seed, ..RowWork::default() };
        let (mut sums, mut terms) = (Sums::none(), Vec::new());
        let mut most_betas = work.betas;
        let Settings { betas, chains, .. } = scoring.annealing;
        // Every row may take its share; settings that were asked for are kept to.
        let budget = if betas.is_some() || chains.is_some() {
            0.0
        } else {
            let share = ROWS as f64 / feed.data().n_rows().max(ROWS) as f64;
            share * log_partition::sweeps_of_budget(machine)
        };
        for piece in pieces(feed.data().n_rows(), ROWS) {
            let (first, end) = (piece.start, piece.end);
            let batch = feed.batch(piece, Stream::new(0));
            let (x, clamp) = (batch.to_state(machine)?, batch.clamp());
            sums.extend(if method == Method::Bound {
                let (bounds, rows) = row_sums::bounds(&sampler, clamp, &x, &work)?;
                terms.extend(rows);
                bounds
            } else {
                let work = (&work, budget);
                let (found, betas) = row_sums::settled_log_sums(&sampler, clamp, &x, first, work)?;
                if betas > most_betas {
                    most_betas = betas;
                    listener.note(&format!(
                        "rows do not settle over {} temperatures: annealed once more over {betas}",
                        RowWork::default().betas
                    ));
                }
                found
            });
            tell(listener, "rows", end as u64, feed.data().n_rows() as u64)?;
        }
        let (how, found) = (sums.how, estimate(&sums, &weights(feed.data()), &log_z));
        let mut score = Score::new(method, found.rows.clone(), feed, dimensions);
        let terms = (!terms.is_empty()).then(|| Terms::mean(&terms));
        score.behind = Behind::Estimated { estimate: Box::new(found), log_z, how, terms };
        Ok(score)
    }

    fn score_dbn(
        &self,
        dbn: &Dbn,
        data: &Dataset,
        scoring: &Scoring,
        listener: &mut dyn Listener,
    ) -> Result<Score, Error> {
        let method = match scoring.method {
            Method::Auto if dbn::affords_exact(dbn)? => Method::Exact,
            Method::Auto => Method::Importance,
            method @ (Method::Exact | Method::Bound | Method::Importance) => method,
            other => {
                return Err(Error::Topology {
                    model: "this score",
                    expected: "a machine; a deep belief network has exact, bound and importance",
                    found: format!("found `{other}` for a deep belief network"),
                });
            }
        };
        let layers = self.data_layers()?;
        let feed = Feed::new(&layers, &self.schema(data)?, data)?;
        let dimensions = feed.filled().iter().map(|&l| layers.layer(l).n_units()).sum();
        let root = Stream::new(scoring.annealing.seed);
        let mut score = if method == Method::Exact {
            let Likelihood { rows, log_partition, .. } = dbn::exact(dbn, data)?;
            let mut score = Score::new(method, rows, &feed, dimensions);
            score.behind = Behind::Exact(log_partition);
            score
        } else {
            let log_z = self.log_partition(&scoring.annealing, listener)?;
            let stream = root.fork(IMPORTANCE);
            let found = dbn::importance(dbn, data, log_z.log_z, scoring.draws, stream)?;
            let rows = match method {
                Method::Bound => found.bounds.clone(),
                _ => found.estimates.clone(),
            };
            let mut score = Score::new(method, rows, &feed, dimensions);
            score.behind = Behind::Drawn { found: Box::new(found), log_z };
            score
        };
        if data.labels().is_some() && dbn.labels().is_some() {
            let stream = root.fork(LABELS);
            score.error_rate = Some(dbn::error_rate(dbn, data, scoring.draws, stream)?);
        }
        Ok(score)
    }
}

/// The weight of each row.
pub(super) fn weights(data: &Dataset) -> Vec<f64> {
    (0..data.n_rows()).map(|row| data.weight(row)).collect()
}

/// Exact where both $\ln Z$ and the sums of all rows are affordable, else by annealing.
fn choose(machine: &Machine, feed: &Feed<'_>) -> Result<Method, Error> {
    let affordable = exact::cost_of_partition(machine)?.is_within(Budget::UNASKED)
        && Budget::UNASKED.affords(log2_work_of_rows(machine, feed)?);
    Ok(if affordable { Method::Exact } else { Method::Ais })
}

/// Binary logarithm of what the sums of all rows take together. Rows without holes all take the same.
fn log2_work_of_rows(machine: &Machine, feed: &Feed<'_>) -> Result<f64, Error> {
    let n_rows = feed.data().n_rows();
    if !feed.data().has_missing() {
        return Ok(exact::log2_terms(machine, feed.clamp(), 1)? + (n_rows.max(1) as f64).log2());
    }
    let mut total = 0.0_f64;
    for piece in pieces(n_rows, ROWS) {
        let batch = feed.batch(piece, Stream::new(0));
        let x = batch.to_state(machine)?;
        total += exact::cost(machine, batch.clamp(), &x, Query::LogSum)?.log2_total.exp2();
        if !Budget::UNASKED.affords(total.log2()) {
            break;
        }
    }
    Ok(total.max(1.0).log2())
}

/// The log-probability of what the rows hold; the rest is summed out.
fn exact_rows(machine: &Machine, batch: &Batch, log_z: f64) -> Result<Vec<f64>, Error> {
    let sums = exact::log_sums(machine, batch.clamp(), &batch.to_state(machine)?)?;
    Ok(sums.into_iter().map(|l| l - log_z).collect())
}

/// The free energy, or its variational bound where hidden units see each other.
fn free_energies(sampler: &Sampler, batch: &Batch) -> Result<Vec<f64>, Error> {
    let machine = sampler.machine();
    let mut x = batch.to_state(machine)?;
    sampler.infer(batch.clamp(), &mut x, MeanField::default())?;
    let bounds = bound::unnormalised(machine, batch.clamp(), &x)?;
    Ok(bounds.into_iter().map(|b| -b).collect())
}

fn pseudo(
    machine: &Machine,
    batch: &Batch,
    scoring: &Scoring,
    first: usize,
) -> Result<Vec<f64>, Error> {
    if batch.clamp() != &Clamp::visible(machine) {
        let held = |&&l: &&LayerId| batch.clamp().holds_layer(l);
        let visible = machine.visible_layers();
        let entries = visible.iter().filter(held).map(|&l| machine.layer(l).len());
        let (expected, found) = (visible_entries(machine), entries.sum());
        let what = "what a pseudo-likelihood needs of a row".into();
        return Err(Error::Shape { what, expected, found });
    }
    let stream = Stream::new(scoring.annealing.seed).fork(first as u64);
    let visit = match scoring.visits {
        Visits::All => Visit::All,
        Visits::One => Visit::One(stream),
    };
    log_pseudo_likelihood(machine, batch, visit)
}
