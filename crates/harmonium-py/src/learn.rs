//! Learning on from given parameters and chains.

use crate::data::Data;
use crate::errors::Failure;
use crate::model::Model;
use crate::work::{Epochs, run};
use harmonium::Error;
use harmonium::model::LearnedOn;
use harmonium::training::{Observer, Plan, View};
use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::ops::ControlFlow;

/// Tells of every epoch, with the model as it is then.
struct Hears<'m> {
    model: &'m harmonium::Model,
    epochs: Epochs,
}

impl Observer for Hears<'_> {
    fn epoch_ended(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        if !self.epochs.are_wanted() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut model = self.model.clone();
        model.body = view.body();
        let reason = self.epochs.tell(view.epoch(), model);
        Ok(reason.map_or(ControlFlow::Continue(()), ControlFlow::Break))
    }
}

/// The model, its chains, and what ended it early.
type Learned<'py> = (Model, Option<Bound<'py, PyArray2<f64>>>, Option<Bound<'py, PyAny>>);

/// Learns on from the parameters of a model and from chains: all layers side by side, a row each.
#[pyfunction]
pub(crate) fn learn_on<'py>(
    py: Python<'py>,
    model: &Model,
    given: &str,
    data: &Data,
    chains: Option<PyReadonlyArray2<'py, f64>>,
    face: Option<&Bound<'py, PyAny>>,
) -> PyResult<Learned<'py>> {
    let given: Map<String, Value> =
        serde_json::from_str(given).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    let chains = chains.as_ref().map(PyReadonlyArray2::as_array);
    let outcome = run(py, face, |teller| {
        let plan: Plan = harmonium::model::Request { given }.plain_plan()?;
        let mut hears = Hears { model: &model.0, epochs: teller.epochs() };
        Ok::<LearnedOn, Failure>(model.0.learn_on(
            &data.dataset,
            &plan,
            chains,
            &mut [&mut hears],
            teller,
        )?)
    })?;
    let LearnedOn { model, chains, .. } = outcome.result?;
    let chains = chains.map(|chains| PyArray2::from_owned_array(py, chains));
    let ended = outcome.interrupted.map(|error| error.into_value(py).into_bound(py).into_any());
    Ok((model.into(), chains, ended))
}
