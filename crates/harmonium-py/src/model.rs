//! A model on this side of the door, and what can be asked of it.

use crate::data::Data;
use crate::errors::Failure;
use crate::work::{quietly, run};
use harmonium::Method;
use harmonium::evaluation::filters::projections;
use harmonium::evaluation::log_partition::{Method as LogZ, Settings};
use harmonium::evaluation::pseudo::log_against_complements;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix};
use harmonium::model::{
    ClassMethod, Classifying, Completing, Drawing, Extracting, Family, Filling, Given, Request,
    Sampling, Scoring, Show, Visits,
};
use harmonium::models::{Body, Network, OUTPUT, Rbm};
use harmonium::run::Overwrite;
use numpy::ndarray::{Array2, ArrayD};
use numpy::{
    PyArray1, PyArray2, PyArrayDyn, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArrayDyn,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A model and where it comes from.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Model(pub(crate) Arc<harmonium::Model>);

impl From<harmonium::Model> for Model {
    fn from(model: harmonium::Model) -> Self {
        Self(Arc::new(model))
    }
}

/// The settings of a verb, as JSON.
fn settings<'a, T: Deserialize<'a>>(text: &'a str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// How samples are drawn.
#[derive(Deserialize)]
struct Draws {
    n: usize,
    method: Sampling,
    sweeps: Option<usize>,
    seed: u64,
    means: bool,
    class: Option<String>,
}

/// How holes are filled.
#[derive(Deserialize)]
struct Fills {
    method: Filling,
    sweeps: Option<usize>,
    seed: u64,
}

/// How $\ln Z$ is found.
#[derive(Deserialize)]
struct Anneals {
    method: Option<LogZ>,
    betas: Option<usize>,
    chains: Option<usize>,
    width: Option<f64>,
    seed: u64,
}

impl Anneals {
    fn settings(&self) -> Settings {
        let &Self { method, betas, chains, width, seed } = self;
        Settings { method, betas, chains, width, seed, ..Settings::default() }
    }
}

/// A number for each row.
type Numbers<'py> = Bound<'py, PyArray1<f64>>;

/// How rows are scored.
#[derive(Deserialize)]
struct Scores {
    method: Method,
    betas: Option<usize>,
    chains: Option<usize>,
    width: Option<f64>,
    draws: usize,
    stochastic: bool,
    seed: u64,
}

/// How rows are classified.
#[derive(Deserialize)]
struct Classes {
    method: ClassMethod,
    draws: usize,
    seed: u64,
}

/// Values, and how they were found, as JSON.
type Values<'py> = (Bound<'py, PyArray2<f64>>, String);
/// Weights, visible and hidden biases.
type RbmArrays<'py> =
    (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);
/// Values with their errors, how they were found, and what should be known about them.
type Filled<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>, String, Option<String>);

#[pymethods]
impl Model {
    /// Opens a model by its name: a file, a run directory, or a built-in machine.
    #[staticmethod]
    fn open(py: Python<'_>, spec: &str, face: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let outcome = run(py, face, |teller| Ok(harmonium::Model::open(spec, teller)?))?;
        outcome.finished().map(Into::into)
    }

    /// Reads the bytes of a file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        quietly(py, || Ok::<_, Failure>(harmonium::Model::from_bytes(bytes)?)).map(Into::into)
    }

    /// A model with all parameters at zero, of these layers: the words of a training, as JSON.
    #[staticmethod]
    fn blank(py: Python<'_>, model: &str, given: &str, n_visible: usize) -> PyResult<Self> {
        let family: Family = settings(model)?;
        let given: Map<String, Value> = settings(given)?;
        quietly(py, || Ok::<_, Failure>(Request { given }.blank(family, n_visible)?))
            .map(Into::into)
    }

    /// An RBM of binary units with these parameters.
    #[staticmethod]
    fn rbm(
        weights: PyReadonlyArray2<'_, f64>,
        visible_bias: PyReadonlyArray1<'_, f64>,
        hidden_bias: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Self> {
        let weights = weights.as_array();
        let (n_visible, n_hidden) = weights.dim();
        let made = || {
            let mut layers = Rbm::binary(n_visible, n_hidden)?.into_machine().layers().to_vec();
            layers[0].bias = visible_bias.as_array().to_vec();
            layers[1].bias = hidden_bias.as_array().to_vec();
            let weights =
                Matrix::from_rows(n_visible, n_hidden, weights.iter().copied().collect())?;
            let coupling = Coupling::between(Rbm::VISIBLE, Rbm::HIDDEN, weights);
            Machine::new(layers, vec![coupling])
        };
        Ok(harmonium::Model::from(made().map_err(Failure::from)?).into())
    }

    /// Weights, visible and hidden biases of an RBM, without offsets.
    fn rbm_arrays<'py>(&self, py: Python<'py>) -> PyResult<RbmArrays<'py>> {
        let found = quietly(py, || {
            let folded = self.0.top()?.without_offsets()?;
            let rbm = Rbm::try_from(folded)?;
            Ok::<_, Failure>(rbm)
        })?;
        let machine = found.machine();
        let weights = machine.couplings()[0].weights.entries().to_vec();
        let shape = (machine.layer(Rbm::VISIBLE).len(), machine.layer(Rbm::HIDDEN).len());
        let weights = Array2::from_shape_vec(shape, weights)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let bias = |l: LayerId| PyArray1::from_slice(py, &machine.layer(l).bias);
        Ok((PyArray2::from_owned_array(py, weights), bias(Rbm::VISIBLE), bias(Rbm::HIDDEN)))
    }

    /// Each value of a row against its complement, summed.
    fn against_complements<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = rows.as_array();
        let outcome = run(py, None, |_| {
            let rbm = Rbm::try_from(self.0.top()?.clone())?;
            Ok(log_against_complements(&rbm, rows)?)
        })?;
        Ok(PyArray1::from_vec(py, outcome.finished()?))
    }

    /// The bytes of a file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = quietly(py, || Ok::<_, Failure>(self.0.to_bytes()?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes a file.
    fn write(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        let overwrite = if overwrite { Overwrite::Yes } else { Overwrite::No };
        quietly(py, || Ok::<_, Failure>(self.0.write(&path, overwrite)?))
    }

    /// All parameters by name.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = quietly(py, || Ok::<_, Failure>(self.0.parameters()?))?;
        let parameters = PyDict::new(py);
        for (name, parameter) in found {
            let array = ArrayD::from_shape_vec(parameter.shape, parameter.values)
                .map_err(|error| PyValueError::new_err(error.to_string()))?;
            parameters.set_item(name, PyArrayDyn::from_owned_array(py, array))?;
        }
        Ok(parameters)
    }

    /// The same model with other numbers for some parameters.
    fn with_parameters(
        &self,
        py: Python<'_>,
        parameters: BTreeMap<String, PyReadonlyArrayDyn<'_, f64>>,
    ) -> PyResult<Self> {
        let numbers = parameters.iter().map(|(name, array)| {
            (name.clone(), array.as_array().iter().copied().collect::<Vec<f64>>())
        });
        let numbers: BTreeMap<String, Vec<f64>> = numbers.collect();
        quietly(py, || Ok::<_, Failure>(self.0.with_parameters(&numbers)?)).map(Into::into)
    }

    /// Numbers of visible entries in the units of the table that was learned.
    fn in_units<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let values = values.as_array();
        let scaled = match self.0.codebook() {
            Some(book) => book.in_units(values).map_err(Failure::from)?,
            None => values.to_owned(),
        };
        Ok(PyArray2::from_owned_array(py, scaled))
    }

    /// What is in it, as JSON.
    fn about(&self) -> PyResult<String> {
        let (layers, couplings) = graph(&self.0)?;
        let about = &self.0.about;
        let deep = matches!(&self.0.body, Body::Network(net) if net.posterior().is_some());
        Ok(json!({
            "kind": self.0.body.kind(),
            "layers": layers,
            "couplings": couplings,
            "n_parameters": self.0.body.n_parameters(),
            "seed": about.seed, "epoch": about.epoch, "step": about.step,
            "config": about.config, "classes": about.data.classes, "rows": about.data.rows,
            "image": about.data.image, "reading": about.data.reading,
            "names": self.names(), "is_table": self.0.codebook().is_some(), "is_deep_input": deep,
            "library_version": about.library_version,
        })
        .to_string())
    }

    /// Height and width of the picture in rows of `n` values, if they are pictures.
    fn image(&self, n: usize) -> Option<(usize, usize)> {
        self.0.about.data.image(n).map(|image| (image.height, image.width))
    }

    /// What the units of each hidden layer look for: a row for each unit.
    fn filters<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyArray2<f64>>)>> {
        let found = quietly(py, || {
            if let Body::Network(network) = &self.0.body {
                return Ok(first_filters(network));
            }
            let chain = self.0.shown()?;
            let named = |(l, tiles): (LayerId, Vec<Vec<f64>>)| (chain.layer(l).name.clone(), tiles);
            Ok::<_, Failure>(
                projections(&chain, LayerId(0)).into_iter().map(named).collect::<Vec<_>>(),
            )
        })?;
        let array = |(name, tiles): (String, Vec<Vec<f64>>)| {
            let shape = (tiles.len(), tiles.first().map_or(0, Vec::len));
            let tiles = Array2::from_shape_fn(shape, |(unit, entry)| tiles[unit][entry]);
            (name, PyArray2::from_owned_array(py, tiles))
        };
        Ok(found.into_iter().map(array).collect())
    }

    /// Samples, free or with part of each given.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        asked: &str,
        given: Option<&Data>,
        mask: Option<PyReadonlyArray2<'py, bool>>,
        face: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, String, Option<String>)> {
        let draws: Draws = settings(asked)?;
        let mask = mask.as_ref().map(PyReadonlyArray2::as_array);
        let drawing = Drawing {
            n: draws.n,
            method: draws.method,
            sweeps: draws.sweeps,
            seed: draws.seed,
            show: if draws.means { Show::Means } else { Show::Values },
            arithmetic: None,
        };
        let outcome = run(py, face, |teller| {
            let known: Given<'_> = match (given, &draws.class) {
                (Some(data), _) => self.0.given(&data.dataset, mask)?,
                (None, Some(class)) => self.0.of_class(class)?,
                (None, None) => self.0.freely(),
            };
            Ok(known.draw(&drawing, teller)?)
        })?;
        let drawn = outcome.finished()?;
        let (told, warning) = (drawn.to_json().to_string(), drawn.warning());
        Ok((PyArray2::from_owned_array(py, drawn.values), told, warning))
    }

    /// Rows with their missing values filled, and the standard error of each.
    fn complete<'py>(
        &self,
        py: Python<'py>,
        asked: &str,
        data: &Data,
        mask: Option<PyReadonlyArray2<'py, bool>>,
        face: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Filled<'py>> {
        let Fills { method, sweeps, seed } = settings(asked)?;
        let mask = mask.as_ref().map(PyReadonlyArray2::as_array);
        let completing = Completing { method, sweeps, seed, arithmetic: None, draws: 0 };
        let outcome = run(py, face, |teller| {
            Ok(self.0.complete_with(&data.dataset, mask, &completing, teller)?)
        })?;
        let found = outcome.finished()?;
        let (told, warning) = (found.to_json().to_string(), found.warning());
        let errors = match self.0.codebook() {
            Some(book) => book
                .errors_in_units(found.values.view(), found.errors.view())
                .map_err(Failure::from)?,
            None => found.errors,
        };
        let values = PyArray2::from_owned_array(py, found.values);
        Ok((values, PyArray2::from_owned_array(py, errors), told, warning))
    }

    /// The score of each row, and of all of them.
    fn score<'py>(
        &self,
        py: Python<'py>,
        asked: &str,
        data: &Data,
        face: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, f64, String)> {
        let Scores { method, betas, chains, width, draws, stochastic, seed } = settings(asked)?;
        let scoring = Scoring {
            method,
            annealing: Settings { betas, chains, width, seed, ..Settings::default() },
            draws,
            visits: if stochastic { Visits::One } else { Visits::All },
        };
        let outcome =
            run(py, face, |teller| Ok(self.0.score_with(&data.dataset, &scoring, teller)?))?;
        let score = outcome.finished()?;
        let told = score.to_json().to_string();
        Ok((PyArray1::from_vec(py, score.rows), score.mean, told))
    }

    /// The score and the p-value of each row beside normal rows, and what is known of all of them.
    fn anomalies<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        normal: &Data,
        face: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Numbers<'py>, Numbers<'py>, String)> {
        let (data, normal, scoring) = (&data.dataset, &normal.dataset, Scoring::default());
        let outcome =
            run(py, face, |teller| Ok(self.0.anomalies(data, normal, &scoring, teller)?))?;
        let found = outcome.finished()?;
        let told = found.to_json().to_string();
        Ok((PyArray1::from_vec(py, found.scores), PyArray1::from_vec(py, found.p_values), told))
    }

    /// ln Z with its interval.
    fn log_partition(
        &self,
        py: Python<'_>,
        asked: &str,
        face: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let settings = settings::<Anneals>(asked)?.settings();
        let outcome = run(py, face, |teller| Ok(self.0.log_partition(&settings, teller)?))?;
        Ok(outcome.finished()?.to_json().to_string())
    }

    /// The means of the hidden units for each row, and for how many rows mean field had not converged.
    fn features<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        layer: Option<String>,
        face: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, usize)> {
        let extracting = Extracting { layer, arithmetic: None };
        let outcome = run(py, face, |teller| {
            Ok(self.0.features_with(&data.dataset, &extracting, teller)?)
        })?;
        let found = outcome.finished()?;
        Ok((PyArray2::from_owned_array(py, found.values), found.unconverged))
    }

    /// The means of the visible units for each row of features.
    fn reconstruct<'py>(
        &self,
        py: Python<'py>,
        features: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let features = features.as_array();
        let outcome = run(py, None, |_| Ok(self.0.reconstruct(features)?))?;
        Ok(PyArray2::from_owned_array(py, outcome.finished()?))
    }

    /// The probabilities of the classes of each row.
    fn classify<'py>(
        &self,
        py: Python<'py>,
        asked: &str,
        data: &Data,
        face: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Values<'py>> {
        let Classes { method, draws, seed } = settings(asked)?;
        let classifying = Classifying { method, draws, seed };
        let outcome = run(py, face, |teller| {
            Ok(self.0.classify_with(&data.dataset, &classifying, teller)?)
        })?;
        let found = outcome.finished()?;
        let told = found.to_json().to_string();
        Ok((PyArray2::from_owned_array(py, found.probabilities), told))
    }
}

/// The layers of a model, from the data upwards, and which of them are coupled, by their names.
fn graph(model: &harmonium::Model) -> PyResult<(Vec<Value>, Vec<[String; 2]>)> {
    let layer = |l: &Layer| {
        json!({
            "name": l.name, "role": l.role, "units": l.units.name(),
            "n_units": l.n_units(), "n_entries": l.len(),
        })
    };
    let Body::Network(network) = &model.body else {
        let machine = model.shown().map_err(Failure::from)?;
        let name = |l: LayerId| machine.layer(l).name.clone();
        let couplings = machine.couplings().iter().map(|c| [name(c.between.0), name(c.between.1)]);
        return Ok((machine.layers().iter().map(layer).collect(), couplings.collect()));
    };
    let mut layers: Vec<Value> = network.inputs().iter().map(layer).collect();
    let mut below: Vec<String> = network.inputs().iter().map(|l| l.name.clone()).collect();
    let mut couplings = Vec::new();
    for dense in network.layers() {
        let is_last = dense.name == OUTPUT;
        let role = if is_last { "output" } else { "hidden" };
        let units = if is_last { network.target().word() } else { dense.activation.word() };
        let n = dense.len();
        layers.push(json!({
            "name": dense.name, "role": role, "units": units, "n_units": n, "n_entries": n,
        }));
        couplings.extend(below.drain(..).map(|name| [name, dense.name.clone()]));
        below.push(dense.name.clone());
    }
    Ok((layers, couplings))
}

/// What the units of the first layer of a net look for in the data.
fn first_filters(network: &Network) -> Vec<(String, Vec<Vec<f64>>)> {
    let Some(first) = network.layers().first() else { return Vec::new() };
    let (n, weights) = (first.len(), first.weights.entries());
    let tile = |unit: usize| (0..network.n_data()).map(|entry| weights[entry * n + unit]).collect();
    vec![(first.name.clone(), (0..n).map(tile).collect())]
}

impl Model {
    /// What the columns of the data were called, where that is known.
    fn names(&self) -> Option<Vec<String>> {
        let schema = self.0.about.data.schema.as_ref()?;
        let mut names = vec![None; schema.n_columns()];
        for layer in schema.layers() {
            let columns = layer.encoding.columns().iter().cloned().flatten();
            columns.zip(&layer.names).for_each(|(column, name)| names[column] = Some(name.clone()));
        }
        names.into_iter().collect()
    }
}
