//! Classes: $p(y \mid v)$ of each row, by a model that has learned labels.
//!
//! $$p(y \mid v) = \frac{e^{s_y(v)}}{\sum_{y'} e^{s_{y'}(v)}}, \qquad s_y(v) = \ln\sum_h e^{-E(v, y, h)}$$
//!
//! $\ln Z$ cancels. What is left is one sum for each class:
//!
//! | model | $s_y$ | method |
//! |---|---|---|
//! | hidden units independent given $v$ and $y$ (RBM) | in closed form | `exact` |
//! | few terms (small machines, few missing cells) | by enumeration or elimination | `exact` |
//! | deep machines, hidden lateral couplings | its variational bound by mean field, class by class | `mean-field` |
//! | the same, if asked for | annealed from mean field to the posterior and back, with its error | `ais` |
//! | feed-forward net | what it was trained for | `network` |
//! | deep belief network | by sums over all layers if they are few, else $E_q[p(y \mid h_{L-1})]$ over draws of the recognition distribution | `exact`, `recognition` |
//!
//! Larochelle & Bengio 2008 (RBM); Salakhutdinov & Hinton 2009 (DBM); Hinton, Osindero & Teh 2006 (DBN).
//!
//! ```
//! use harmonium::data::Labels;
//! use harmonium::data::synthetic::{Repeats, bars_and_stripes};
//! use harmonium::models::with_labels;
//! use harmonium::{Binarize, Dataset, Plan, Rbm};
//!
//! let bars = Dataset::new(bars_and_stripes(3, Repeats::Counted)?, Binarize::None)?;
//! let names = (0..16).map(|row| if row < 8 { "bar" } else { "stripe" });
//! let data = bars.clone().with_labels(Labels::from_texts(names))?;
//! let machine = with_labels(Rbm::binary(9, 12)?.machine(), 2)?;
//! let plan = Plan { batch: 4, learning_rate: 0.1, ..Plan::for_epochs(200) };
//! let model = machine.train(&data, &plan)?;
//! let found = model.classify(&data)?;
//! assert_eq!(found.classes, ["bar", "stripe"]);
//! // Two rows, all dark and all light, are bars as well as stripes.
//! assert!(found.errors.is_some_and(|errors| errors.rate <= 0.25));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::pieces;
use super::sample::array;
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::bound;
use crate::evaluation::class_scores::ClassScores;
use crate::evaluation::dbn;
use crate::evaluation::error_rate::ErrorRate;
use crate::evaluation::row_sums::{self, RowWork, Sums};
use crate::exact::{self, Budget};
use crate::machine::{Batch, Clamp, LayerId, Machine, State, check_memory};
use crate::models::{Body, Dbn, Network, Target};
use crate::network::{Answers, NetworkRows};
use crate::progress::{Listener, Silent, tell};
use crate::random::Stream;
use crate::run::Model;
use crate::sampling::{ClassSums, MeanField, Sampler, normalise};
use crate::schema::{Feed, Schema};
use harmonium_data::{Dataset, Labels};
use ndarray::Array2;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Rows looked at together.
const ROWS: usize = 256;
/// The variates of the draws behind the classes of a deep belief network.
const DRAWS: u64 = 302;

/// How $p(y \mid v)$ is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClassMethod {
    /// Exactly where that is affordable, else by mean field; a deep belief network by its recognition
    /// distribution.
    #[default]
    Auto,
    /// In closed form or by sums over all states.
    Exact,
    /// By the variational bound of each class.
    MeanField,
    /// By annealed importance sampling for each class.
    Ais,
    /// By draws of the recognition distribution of a deep belief network.
    Recognition,
    /// By a feed-forward net.
    Network,
}

impl fmt::Display for ClassMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Exact => "exact",
            Self::MeanField => "mean-field",
            Self::Ais => "ais",
            Self::Recognition => "recognition",
            Self::Network => "network",
        })
    }
}

/// How rows are classified.
#[derive(Clone, Copy, Debug)]
pub struct Classifying {
    /// How the probabilities are found.
    pub method: ClassMethod,
    /// Draws of the recognition distribution for each row of a deep belief network.
    pub draws: usize,
    /// The root of all randomness.
    pub seed: u64,
}

impl Default for Classifying {
    fn default() -> Self {
        Self { method: ClassMethod::Auto, draws: 100, seed: 0 }
    }
}

/// The classes of a number of rows.
#[derive(Clone, Debug)]
pub struct Classified {
    /// How they were found; never `Auto`.
    pub method: ClassMethod,
    /// What the classes are called, in the order of the columns.
    pub classes: Vec<String>,
    /// $p(y \mid v)$: a row for each row of data, a column for each class.
    pub probabilities: Array2<f64>,
    /// Standard error of each probability where it was sampled; mean field has an error that it does
    /// not know.
    pub std_errors: Option<Array2<f64>>,
    /// The most probable class of each row.
    pub predicted: Vec<usize>,
    /// How the predictions agree with the labels of the data, where it has any.
    pub errors: Option<ErrorRate>,
    /// How the probabilities agree with them.
    pub scores: Option<ClassScores>,
}

impl Classified {
    /// The number of rows that were put in each class.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes.len()];
        self.predicted.iter().for_each(|&class| counts[class] += 1);
        counts
    }

    /// The largest standard error of a probability, where they are known.
    pub fn largest_std_error(&self) -> Option<f64> {
        self.std_errors.as_ref().map(|errors| errors.iter().copied().fold(0.0, f64::max))
    }
}

impl Model {
    /// The probabilities of the classes of each row. Labels of the data do not enter them; where there
    /// are any, predictions are compared with them.
    ///
    /// # Errors
    ///
    /// If the model has learned no labels, the data does not fit, or memory ends.
    pub fn classify(&self, data: &Dataset) -> Result<Classified, Error> {
        self.classify_with(data, &Classifying::default(), &mut Silent)
    }

    /// The same with everything that can be set.
    ///
    /// # Errors
    ///
    /// As [`Model::classify`]; and if the model has no such method, or the listener cancels.
    pub fn classify_with(
        &self,
        data: &Dataset,
        classifying: &Classifying,
        listener: &mut dyn Listener,
    ) -> Result<Classified, Error> {
        let classes = self.class_names()?;
        let known = data.labels().map(|labels| numbered(labels, &classes)).transpose()?;
        let bare = data.clone().without_labels();
        let (n, q) = (data.n_rows(), classes.len());
        check_memory(2.0 * 8.0 * n as f64 * q as f64, || format!("{q} classes of {n} rows"))?;
        let found = match &self.body {
            Body::Machine(machine) => {
                let labels = self.labels().unwrap_or(LayerId(0));
                let feed = Feed::new(machine, &self.schema(&bare)?, &bare)?;
                RowClasses { machine, labels, feed: &feed }.find(classifying, listener)?
            }
            Body::Dbn(dbn) => of_dbn(dbn, &bare, classifying, listener)?,
            Body::Network(network) => {
                let schema = self.schema(&bare)?;
                of_network(network, &schema, &bare, classifying, listener)?
            }
        };
        let best =
            |row: &[f64]| (0..q).fold(0, |best, y| if row[y] > row[best] { y } else { best });
        let predicted: Vec<usize> = found.probabilities.chunks_exact(q).map(best).collect();
        let weights: Vec<f64> = (0..n).map(|row| data.weight(row)).collect();
        let errors = known.as_ref().map(|known| ErrorRate::new(known, &predicted, &weights, q));
        let scores = known.map(|known| ClassScores::new(&known, &found.probabilities, &weights, q));
        Ok(Classified {
            method: found.method,
            classes,
            probabilities: array(n, q, found.probabilities),
            std_errors: found.std_errors.map(|errors| array(n, q, errors)),
            predicted,
            errors,
            scores,
        })
    }

    /// What the classes of the labels are called, in the order of their layer.
    ///
    /// # Errors
    ///
    /// If the model has learned no labels.
    pub fn class_names(&self) -> Result<Vec<String>, Error> {
        let n = match (&self.body, self.labels()) {
            (Body::Network(network), _) if network.target() == Target::Classes => {
                network.n_outputs()
            }
            (_, Some(labels)) => self.top()?.layer(labels).len(),
            _ => return Err(Error::NoLabels),
        };
        let known = &self.about.data.classes;
        if known.len() == n {
            return Ok(known.clone());
        }
        Ok((0..n).map(|class| class.to_string()).collect())
    }
}

/// The class of each row as the model numbers it.
fn numbered(labels: &Labels, classes: &[String]) -> Result<Vec<usize>, Error> {
    let labels = labels.numbered_as(classes).map_err(|error| match error {
        harmonium_data::Error::UnknownClass { class, known } => {
            Error::NoClass { name: class, classes: known.join(", ") }
        }
        _ => Error::NoLabels,
    })?;
    Ok(labels.values().iter().map(|&class| class as usize).collect())
}

/// Probabilities while they are gathered, class after class for each row.
struct Found {
    method: ClassMethod,
    probabilities: Vec<f64>,
    std_errors: Option<Vec<f64>>,
}

/// A machine with labels, and rows without.
struct RowClasses<'a> {
    machine: &'a Machine,
    labels: LayerId,
    feed: &'a Feed<'a>,
}

impl RowClasses<'_> {
    fn find(&self, classifying: &Classifying, listener: &mut dyn Listener) -> Result<Found, Error> {
        let whole = self.feed.filled().len() + 1 == self.machine.visible_layers().len()
            && !self.feed.has_holes();
        let closed = if whole { ClassSums::of(self.machine, Some(self.labels))? } else { None };
        let method = match classifying.method {
            ClassMethod::Auto if closed.is_some() || self.affords_exact()? => ClassMethod::Exact,
            ClassMethod::Auto => ClassMethod::MeanField,
            ClassMethod::Network => return Err(no_net()),
            ClassMethod::Recognition => {
                return Err(Error::Topology {
                    model: "classes by recognition",
                    expected: "the recognition distribution of a deep belief network",
                    found: "found a machine; leave the method out".into(),
                });
            }
            ClassMethod::Ais if !whole => {
                return Err(Error::Topology {
                    model: "classes by annealing",
                    expected: "rows without missing cells",
                    found: "found rows with some; leave the method out".into(),
                });
            }
            method => method,
        };
        match (method, closed) {
            (ClassMethod::Exact, Some(sums)) => self.closed_form(&sums, listener),
            (method, _) => self.class_by_class(method, classifying.seed, listener),
        }
    }

    /// Whether the sums of all classes of all rows are affordable.
    fn affords_exact(&self) -> Result<bool, Error> {
        let n_rows = self.feed.data().n_rows();
        let sums = (n_rows * self.machine.layer(self.labels).len()).max(1) as f64;
        let mut most = 0.0_f64;
        if self.feed.has_holes() {
            for rows in pieces(n_rows, ROWS) {
                let batch = self.feed.batch(rows.clone(), Stream::new(0));
                let clamp = self.with_labels(batch.clamp());
                most = most.max(exact::log2_terms(self.machine, &clamp, rows.len())?);
            }
        } else {
            let clamp = self.with_labels(self.feed.clamp());
            most = exact::log2_terms(self.machine, &clamp, 1)?;
        }
        Ok(Budget::UNASKED.affords(most + sums.log2()))
    }

    fn with_labels(&self, clamp: &Clamp) -> Clamp {
        let mut clamp = clamp.clone();
        clamp.hold_layer(self.labels);
        clamp
    }

    fn closed_form(&self, sums: &ClassSums, listener: &mut dyn Listener) -> Result<Found, Error> {
        let n_rows = self.feed.data().n_rows();
        let mut probabilities = Vec::with_capacity(n_rows * sums.n_classes());
        // Products of a piece are taken on one thread, so several pieces are taken at a time.
        for these in pieces(n_rows, 16 * ROWS) {
            let starts: Vec<usize> = these.clone().step_by(ROWS).collect();
            let of_piece = |&start: &usize| {
                let rows = start..(start + ROWS).min(these.end);
                let batch = self.feed.batch(rows, Stream::new(0));
                Ok(sums.class_probabilities(&batch.to_state(self.machine)?))
            };
            let found: Result<Vec<Vec<f64>>, Error> = starts.par_iter().map(of_piece).collect();
            found?.into_iter().for_each(|piece| probabilities.extend(piece));
            tell(listener, "classes", these.end as u64, n_rows as u64)?;
        }
        Ok(Found { method: ClassMethod::Exact, probabilities, std_errors: None })
    }

    fn class_by_class(
        &self,
        method: ClassMethod,
        seed: u64,
        listener: &mut dyn Listener,
    ) -> Result<Found, Error> {
        let (n_rows, q) = (self.feed.data().n_rows(), self.machine.layer(self.labels).len());
        let sampler = Sampler::new(self.machine.clone(), Arithmetic::F32);
        let mut probabilities = Vec::with_capacity(n_rows * q);
        let mut std_errors = Vec::new();
        for rows in pieces(n_rows, ROWS) {
            let (first, end) = (rows.start, rows.end);
            let batch = self.feed.batch(rows, Stream::new(0));
            let mut sums = Vec::with_capacity(q);
            for y in 0..q {
                sums.push(self.sums_of_class(&sampler, &batch, method, (y, first), seed)?);
                let done = first * q + (y + 1) * batch.n_rows();
                tell(listener, "classes", done as u64, (n_rows * q) as u64)?;
            }
            for row in 0..end - first {
                let mut p: Vec<f64> = sums.iter().map(|sums| sums.rows[row]).collect();
                normalise(&mut p);
                if method == ClassMethod::Ais {
                    let errors: Vec<f64> = sums.iter().map(|s| s.std_errors[row][0]).collect();
                    std_errors.extend(errors_of_shares(&p, &errors));
                }
                probabilities.extend(p);
            }
        }
        let std_errors = (method == ClassMethod::Ais).then_some(std_errors);
        Ok(Found { method, probabilities, std_errors })
    }

    /// The sums of the rows of a batch with their label held at a class.
    fn sums_of_class(
        &self,
        sampler: &Sampler,
        batch: &Batch,
        method: ClassMethod,
        (class, first): (usize, usize),
        seed: u64,
    ) -> Result<Sums, Error> {
        let clamp = self.with_labels(batch.clamp());
        let mut x: State = batch.to_state(self.machine)?;
        let one: Vec<f64> = (0..self.machine.layer(self.labels).len())
            .map(|k| f64::from(u8::from(k == class)))
            .collect();
        for row in 0..x.n_rows() {
            x.set_row(self.labels, row, &one)?;
        }
        let work = RowWork { seed, ..RowWork::default() };
        match method {
            ClassMethod::Exact => {
                let sums = exact::log_sums(self.machine, &clamp, &x)?;
                Ok(Sums::exactly(sums.clone(), sums))
            }
            ClassMethod::Ais => {
                // Each class of each row has variates of its own.
                let address = class * self.feed.data().n_rows() + first;
                row_sums::annealed_log_sums(sampler, &clamp, &x, address, &work)
            }
            _ => {
                sampler.infer(&clamp, &mut x, MeanField::default())?;
                let bounds = bound::unnormalised(self.machine, &clamp, &x)?;
                Ok(Sums::exactly(bounds.clone(), bounds))
            }
        }
    }
}

/// Standard errors of $p_y \propto e^{s_y}$ where each $s_y$ has its own, to first order:
/// $\sigma_y^2 = p_y^2 \sum_k (\delta_{ky} - p_k)^2 \sigma^2(s_k)$.
fn errors_of_shares<'a>(p: &'a [f64], errors: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    (0..p.len()).map(move |y| {
        let term = |k: usize| (f64::from(u8::from(k == y)) - p[k]) * errors[k];
        p[y] * (0..p.len()).map(|k| term(k).powi(2)).sum::<f64>().sqrt()
    })
}

fn of_dbn(
    dbn: &Dbn,
    data: &Dataset,
    classifying: &Classifying,
    listener: &mut dyn Listener,
) -> Result<Found, Error> {
    let n = data.n_rows() as u64;
    let sums = (data.n_rows() * dbn.n_classes()).max(1) as f64;
    let affordable =
        dbn::affords_exact(dbn)? && Budget::UNASKED.affords(dbn::log2_terms(dbn)? + sums.log2());
    let found = match classifying.method {
        ClassMethod::Auto | ClassMethod::Exact
            if affordable || classifying.method == ClassMethod::Exact =>
        {
            let probabilities = dbn::exact_class_probabilities(dbn, data)?;
            Found { method: ClassMethod::Exact, probabilities, std_errors: None }
        }
        ClassMethod::Auto | ClassMethod::Exact | ClassMethod::Recognition => {
            let stream = Stream::new(classifying.seed).fork(DRAWS);
            let found = dbn::class_draws(dbn, data, classifying.draws, stream)?;
            let method = ClassMethod::Recognition;
            Found { method, probabilities: found.means, std_errors: found.std_errors }
        }
        ClassMethod::Network => return Err(no_net()),
        ClassMethod::MeanField | ClassMethod::Ais => {
            return Err(Error::Topology {
                model: "these classes",
                expected: "a machine; a deep belief network has exact and recognition",
                found: format!("found `{}` for a deep belief network", classifying.method),
            });
        }
    };
    tell(listener, "classes", n, n)?;
    Ok(found)
}

/// Classes by a net.
fn of_network(
    network: &Network,
    schema: &Schema,
    data: &Dataset,
    classifying: &Classifying,
    listener: &mut dyn Listener,
) -> Result<Found, Error> {
    let method = ClassMethod::Network;
    if !matches!(classifying.method, ClassMethod::Auto | ClassMethod::Network) {
        return Err(Error::Topology {
            model: "these classes",
            expected: "a machine or a deep belief network",
            found: format!(
                "found `{}` for a feed-forward net; leave the method out",
                classifying.method
            ),
        });
    }
    let rows = NetworkRows::new(network, schema, data, None, listener)?;
    let probabilities = Answers::of(network, &rows, listener)?.values;
    Ok(Found { method, probabilities, std_errors: None })
}

fn no_net() -> Error {
    Error::Topology {
        model: "classes by a net",
        expected: "a model that `harmonium finetune` has made",
        found: "found another; leave the method out".into(),
    }
}
