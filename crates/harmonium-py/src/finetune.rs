//! From a model, or from nothing, to a feed-forward net.

use crate::data::Data;
use crate::errors::Failure;
use crate::model::Model;
use crate::train::{Training, trained};
use crate::work::run;
use harmonium::evaluation::tracking::Watch;
use harmonium::model::{Finetuning, VALID_SHARE, set_apart};
use harmonium::models::{Activation, Target};
use harmonium::network::NetworkPlan;
use harmonium::run::{About, Event, Heard, Memory, Recording, RunMemory, record};
use harmonium::training::Guarding;
use numpy::PyArray2;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What is asked of a net besides its plan.
#[derive(Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Asked {
    hidden: Option<Vec<usize>>,
    units: Activation,
    target: Target,
    patience: Option<u64>,
    valid_share: Option<f64>,
}

impl Default for Asked {
    fn default() -> Self {
        let (units, target) = (Activation::Relu, Target::Classes);
        Self { hidden: None, units, target, patience: None, valid_share: None }
    }
}

/// Trains a net that is made of a model, of a net, or of random weights: the net, what is to be told of the training as
/// JSON, and what ended it if that was not its plan.
#[pyfunction]
pub(crate) fn finetune<'py>(
    py: Python<'py>,
    model: Option<&Model>,
    given: &str,
    data: &Data,
    targets: Option<&Data>,
    valid: Option<&Data>,
    face: Option<&Bound<'py, PyAny>>,
) -> PyResult<Training<'py>> {
    let wrong = |error: serde_json::Error| PyTypeError::new_err(error.to_string());
    let given: Map<String, Value> = serde_json::from_str(given).map_err(wrong)?;
    let asked: Asked = serde_json::from_value(Value::Object(given.clone())).map_err(wrong)?;
    let model = model.map(|model| &*model.0);
    let outcome = run(py, face, |teller| {
        let logistic = model.is_some_and(|model| NetworkPlan::is_logistic(&model.body));
        let units = if logistic { Activation::Logistic } else { asked.units };
        let plan = NetworkPlan::asked(&given, units)?;
        let share = asked.valid_share.or(asked.patience.map(|_| VALID_SHARE));
        let share = share.filter(|_| valid.is_none() && targets.is_none());
        let apart = share.map(|share| set_apart(&data.dataset, share, plan.seed)).transpose()?;
        let (train, valid) = match &apart {
            Some((train, valid)) => (train, Some(valid)),
            None => (&data.dataset, valid.map(|valid| &valid.dataset)),
        };
        let targets = targets.map(|targets| &targets.dataset);
        let layers = (asked.hidden.clone(), asked.units);
        let mut finetuning =
            Finetuning::begin(model, (train, targets), layers, asked.target, &plan)?;
        finetuning.valid = valid.map(|valid| (valid, None));
        let mut learner = finetuning.learner(teller)?;
        let looked = finetuning.looked()?;
        let monitor = finetuning.monitor(&looked, teller)?;
        let memory = finetuning.memory()?;
        let codebook = train.book().cloned();
        let about = About {
            seed: plan.seed,
            config: Value::Object(given.clone()),
            data: Memory { reading: data.reading.clone(), codebook, ..memory },
            ..About::default()
        };
        let recording = Recording {
            about,
            train,
            valid,
            patience: asked.patience,
            checkpoint_seconds: f64::MAX,
            watch: Watch::None,
            guarding: Guarding::Warn,
            metrics: vec![Box::new(monitor)],
        };
        let mut store = RunMemory::default();
        let mut tell = teller.events();
        let mut hear = |event: &Event| tell(json!(event).to_string());
        let mut heard = Heard::new(&mut store, &mut hear);
        let recorded = record(&mut heard, &mut learner, recording, None, teller)?;
        Ok::<_, Failure>((recorded, store.events().to_vec(), Vec::new()))
    })?;
    trained(py, outcome)
}

/// What a net says of each row.
#[pyfunction]
pub(crate) fn answer<'py>(
    py: Python<'py>,
    model: &Model,
    data: &Data,
    face: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let outcome = run(py, face, |teller| Ok(model.0.answer(&data.dataset, None, teller)?))?;
    Ok(PyArray2::from_owned_array(py, outcome.finished()?.values))
}
