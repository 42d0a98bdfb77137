//! What a model looks like: its filters, activities, weights and samples, for pages and findings.

use super::{Drawing, Method, Show};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::dbn;
use crate::evaluation::filters::projections;
use crate::exact::{self, Budget};
use crate::findings::Named;
use crate::machine::{Clamp, Layer, LayerId, Machine};
use crate::models::{Body, HiddenLayer, Network};
use crate::progress::Listener;
use crate::random::Stream;
use crate::run::Model;
use crate::schema::Feed;
use harmonium_data::Dataset;
use ndarray::{Array2, Axis};

/// Samples drawn and shown.
const SAMPLES: usize = 64;
/// Rows of data the activities are averaged over.
const ROWS: usize = 500;
/// Multiplications that the samples may cost: a few seconds.
const SAMPLE_COST: f64 = 4e9;

/// Filters of one hidden layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// The layer's name.
    pub layer: String,
    /// The weights of each unit to a sample, through the layers between.
    pub tiles: Vec<Vec<f64>>,
    /// The mean activity of each unit, or nothing.
    pub activity: Vec<f64>,
}

/// A model seen from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Portrait {
    /// What the units of each hidden layer look for.
    pub filters: Vec<Filters>,
    /// The weights of each coupling.
    pub weights: Vec<Named>,
    /// The mean activity, over the data, of each unit of each hidden layer.
    pub activities: Vec<Named>,
    /// Some samples of the data.
    pub data_samples: Vec<Vec<f64>>,
    /// Some samples of the model, as means.
    pub model_samples: Vec<Vec<f64>>,
    /// What a person should know about those samples, if anything.
    pub warning: Option<String>,
}

impl Model {
    /// What the model looks like, with activities and samples of `data` if there is some.
    ///
    /// # Errors
    ///
    /// If the data does not fit, memory ends, or the listener cancels.
    pub fn portrait(
        &self,
        data: Option<&Dataset>,
        seed: u64,
        arithmetic: Option<Arithmetic>,
        listener: &mut dyn Listener,
    ) -> Result<Portrait, Error> {
        if let Body::Network(network) = &self.body {
            return self.portrait_of_network(network, data);
        }
        let chain = self.shown()?;
        let rows = data.map(|data| some_rows(data, ROWS)).transpose()?;
        let activities = match &rows {
            Some(rows) if !self.body.hidden().is_empty() => self.activities(rows)?,
            _ => Vec::new(),
        };
        let n = self.body.visible().first().map_or(0, |layer| layer.len());
        let filters = projections(&chain, LayerId(0)).into_iter().map(|(l, tiles)| {
            let layer = chain.layer(l).name.clone();
            let own = activities.iter().find(|named: &&Named| named.name == layer);
            let activity = own.map(|named| named.values.clone()).unwrap_or_default();
            Filters { layer, tiles, activity }
        });
        let drawing = Drawing {
            n: SAMPLES,
            sweeps: Some(affordable_sweeps(self.top()?)),
            seed,
            show: Show::Means,
            arithmetic: Some(arithmetic.unwrap_or(Arithmetic::F32)),
            ..Drawing::default()
        };
        let drawn = self.freely().draw(&drawing, listener)?;
        Ok(Portrait {
            filters: filters.collect(),
            weights: weights(&chain),
            data_samples: rows.map(|rows| self.seen_rows(&rows)).transpose()?.unwrap_or_default(),
            model_samples: drawn
                .values
                .rows()
                .into_iter()
                .map(|row| row.to_vec()[..n].to_vec())
                .collect(),
            warning: drawn.warning(),
            activities,
        })
    }

    /// What a net looks like: what the units of its first layer look for, its weights and activities.
    fn portrait_of_network(
        &self,
        network: &Network,
        data: Option<&Dataset>,
    ) -> Result<Portrait, Error> {
        let rows = data.map(|data| some_rows(data, ROWS)).transpose()?;
        let activities = match &rows {
            Some(rows) if !self.body.hidden().is_empty() => self.activities(rows)?,
            _ => Vec::new(),
        };
        let n = network.inputs().first().map_or(0, Layer::len);
        let filters = network.layers().first().map(|first| Filters {
            layer: first.name.clone(),
            tiles: (0..first.len())
                .map(|j| (0..n).map(|i| first.weights.at(i, j)).collect())
                .collect(),
            activity: activities.first().map(|named| named.values.clone()).unwrap_or_default(),
        });
        let below = ["input"].into_iter().chain(network.layers().iter().map(|l| l.name.as_str()));
        let weights = network.layers().iter().zip(below).map(|(layer, below)| Named {
            name: format!("{below} – {}", layer.name),
            values: layer.weights.entries().to_vec(),
        });
        Ok(Portrait {
            filters: filters.into_iter().collect(),
            weights: weights.collect(),
            data_samples: rows.map(|rows| self.seen_rows(&rows)).transpose()?.unwrap_or_default(),
            model_samples: Vec::new(),
            warning: None,
            activities,
        })
    }

    /// The machine that is shown: a deep belief network as the chain of its generative weights.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn shown(&self) -> Result<Machine, Error> {
        match &self.body {
            Body::Machine(machine) => Ok(machine.clone()),
            Body::Dbn(dbn) => dbn.generative_chain(),
            Body::Network(_) => Err(Error::NoDistribution),
        }
    }

    /// Some rows as the first visible layer sees them.
    fn seen_rows(&self, rows: &Dataset) -> Result<Vec<Vec<f64>>, Error> {
        let layers = self.data_layers()?;
        let feed = Feed::new(&layers, &self.schema(rows)?, rows)?;
        // Spread over the data: a sorted file begins with one class.
        let n = rows.n_rows().min(SAMPLES);
        let spread = (0..n).map(|k| k * rows.n_rows() / n);
        let x = feed.batch(spread, Stream::new(0)).to_state(&layers)?;
        Ok((0..n).map(|row| x.row(LayerId(0), row).to_vec()).collect())
    }

    /// The mean of each hidden unit over the rows, layer by layer.
    fn activities(&self, rows: &Dataset) -> Result<Vec<Named>, Error> {
        let features: Array2<f64> = self.features(rows)?;
        let means = features.mean_axis(Axis(0)).map(|means| means.to_vec()).unwrap_or_default();
        let mut at = 0;
        let of_layer = |layer: &HiddenLayer<'_>| {
            let values = means[at..at + layer.len].to_vec();
            at += layer.len;
            Named { name: layer.name.to_owned(), values }
        };
        Ok(self.body.hidden().iter().map(of_layer).collect())
    }

    /// Scores of the finished model where they cost little: names and texts for people.
    ///
    /// # Errors
    ///
    /// If the data does not fit, or memory ends.
    pub fn cheap_scores(&self, data: Option<&Dataset>) -> Result<Vec<(String, String)>, Error> {
        if let Body::Dbn(dbn) = &self.body {
            let found = data.map(|data| dbn::final_bounds(dbn, data)).transpose()?;
            let line = |m: &crate::training::Measurement| {
                (m.name.to_string(), format!("{:.4} nats", m.value))
            };
            return Ok(found.unwrap_or_default().iter().map(line).collect());
        }
        let Ok(machine) = self.top() else { return Ok(Vec::new()) };
        if !Budget::PAGE.affords(exact::log2_terms(machine, &Clamp::none(), 1)?) {
            return Ok(Vec::new());
        }
        let log_z = exact::log_partition(machine)?;
        let mut scores = vec![("ln Z (exact)".to_owned(), format!("{log_z:.4}"))];
        let cost = |data: &&Dataset| data.n_rows() as f64 * machine.n_parameters() as f64;
        if let Some(data) = data.filter(|data| cost(data) <= SAMPLE_COST) {
            let found = self.score(data, Method::Exact)?;
            let error = found.data_std_error.map_or("unknown".to_owned(), |e| format!("{e:.4}"));
            let text = format!("{:.4} ± {error} nats", found.mean);
            scores.push(("log-likelihood of the training data (exact)".to_owned(), text));
        }
        Ok(scores)
    }
}

/// At most `n` rows, spread over the data.
pub(super) fn some_rows(data: &Dataset, n: usize) -> Result<Dataset, Error> {
    let n = data.n_rows().min(n);
    let rows: Vec<usize> = (0..n).map(|k| k * data.n_rows() / n).collect();
    data.select_rows(&rows).map_err(|_| Error::Empty { what: "the data".into() })
}

fn weights(machine: &Machine) -> Vec<Named> {
    let name = |l: LayerId| &machine.layer(l).name;
    let named = |c: &crate::machine::Coupling| Named {
        name: format!("{} – {}", name(c.between.0), name(c.between.1)),
        values: c.weights.entries().to_vec(),
    };
    machine.couplings().iter().map(named).collect()
}

/// As many sweeps of the samples as take a few seconds.
fn affordable_sweeps(machine: &Machine) -> usize {
    let affordable = SAMPLE_COST / (SAMPLES as f64 * machine.n_parameters() as f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let sweeps = affordable.clamp(20.0, 1000.0) as usize;
    sweeps
}
