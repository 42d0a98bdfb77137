//! From rows to a model.

use crate::data::Data;
use crate::errors::Failure;
use crate::model::Model;
use crate::work::{Outcome, run};
use harmonium::model::{
    Blueprint, Family, Note, Prepared, Request, Searched, Sources, Trial, set_apart,
};
use harmonium::progress::Listener as _;
use harmonium::run::{
    Event, Heard, Overwrite, Recorded, RunDirectory, RunMemory, RunStore, record,
};
use harmonium::training::Stop;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// What a training leaves behind.
type Trained = (Recorded, Vec<Event>, Vec<Trial>);
/// The model, what is to be told of its training as JSON, and what ended it if that was not its plan.
pub(crate) type Training<'py> = (Model, String, Option<Bound<'py, PyAny>>);

/// Trains a model: the model, what is to be told of it as JSON, and what ended it if that was not its plan.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "everything that a training is made of")]
pub(crate) fn train<'py>(
    py: Python<'py>,
    model: &str,
    given: &str,
    data: &Data,
    valid: Option<&Data>,
    out: Option<PathBuf>,
    overwrite: bool,
    face: Option<&Bound<'py, PyAny>>,
) -> PyResult<Training<'py>> {
    let wrong = |error: serde_json::Error| PyTypeError::new_err(error.to_string());
    let family: Family = serde_json::from_str(model).map_err(wrong)?;
    let given: Map<String, Value> = serde_json::from_str(given).map_err(wrong)?;
    let hash = |data: &Data, name| data.hash.clone().map(|hash| (name, hash));
    let valid_hash = valid.and_then(|valid| hash(valid, "valid-hash"));
    let fingerprints: Vec<_> = hash(data, "data-hash").into_iter().chain(valid_hash).collect();
    let outcome = run(py, face, |teller| {
        let mut request = Request { given };
        let searched = request.given.contains_key("effort");
        if searched {
            request = request.to_search(family, valid.is_some())?;
        }
        let share = request.valid_share()?.filter(|_| valid.is_none() && family != Family::Dbn);
        request.given.extend(share.map(|share| ("valid-share".to_owned(), json!(share))));
        let apart =
            share.map(|share| set_apart(&data.dataset, share, request.seed()?)).transpose()?;
        let (train, valid) = match &apart {
            Some((train, valid)) => (train, Some(valid)),
            None => (&data.dataset, valid.map(|valid| &valid.dataset)),
        };
        let mut sources =
            Sources { train, valid, reading: &data.reading, fingerprints: &fingerprints };
        let mut trials = Vec::new();
        let overwrite = if overwrite { Overwrite::Yes } else { Overwrite::No };
        let directory =
            || out.as_ref().map(|path| RunDirectory::create(path, overwrite)).transpose();
        // A directory that is in the way is said before a long search.
        let mut writer = None;
        if searched {
            writer = directory()?;
            let kept: (&[Trial], &mut Note<'_>) = (&[], &mut |_| Ok(()));
            Searched { request, trials } = request.search(family, &sources, kept, teller)?;
            if apart.is_some() && request.valid_share()?.is_none() {
                // The best settings learn from all rows.
                (sources.train, sources.valid) = (&data.dataset, None);
            }
        }
        let Prepared { training, recording, configuration } = request.prepare(family, sources)?;
        if let Blueprint::Machine(machine) = &training.blueprint {
            request.notes(family, machine).iter().for_each(|note| teller.announce(note));
        }
        let mut learner = training.learner()?;
        let writer = if searched { writer } else { directory()? };
        let mut memory = RunMemory::default();
        let mut tell = teller.events();
        let mut hear = |event: &Event| tell(json!(event).to_string());
        let record = |store: &mut dyn RunStore| {
            let mut heard = Heard::new(store, &mut hear);
            record(&mut heard, learner.as_mut(), recording, None, teller)
        };
        let Some(mut writer) = writer else {
            let recorded = record(&mut memory)?;
            return Ok::<_, Failure>((recorded, memory.events().to_vec(), trials));
        };
        let text = toml::to_string(&configuration).map_err(|e| Failure::Defect(e.to_string()))?;
        writer.write_config(&text)?;
        if searched {
            writer.write_trials(&trials.iter().map(|trial| json!(trial)).collect::<Vec<_>>())?;
        }
        let recorded = record(&mut writer)?;
        let events = writer.directory().read_events()?.events;
        Ok((recorded, events, trials))
    })?;
    trained(py, outcome)
}

/// A training as Python has it.
pub(crate) fn trained(py: Python<'_>, outcome: Outcome<Trained>) -> PyResult<Training<'_>> {
    let (recorded, events, trials) = match (outcome.result, &outcome.interrupted) {
        // A search that was interrupted has no model yet.
        (Err(_), Some(exception)) => return Err(exception.clone_ref(py)),
        (result, _) => result?,
    };
    let mut told = told(&recorded, &events);
    if !trials.is_empty() {
        told["trials"] = json!(trials);
    }
    let told = told.to_string();
    let model = Model::from(recorded.model);
    let ended = match (outcome.interrupted, recorded.stop) {
        (Some(exception), _) => Some(exception),
        (None, Stop::Diverged(error)) => Some(PyErr::from(Failure::from(error))),
        (None, _) => None,
    };
    Ok((model, told, ended.map(|exception| exception.into_value(py).into_bound(py).into_any())))
}

/// What is told of a training.
fn told(recorded: &Recorded, events: &[Event]) -> Value {
    let Recorded { stop, epochs, seconds, measurements, best, .. } = recorded;
    let reason = match stop {
        Stop::Observer(reason) => Some(reason.clone()),
        Stop::Diverged(error) => Some(error.to_string()),
        Stop::Finished | Stop::Cancelled => None,
    };
    json!({
        "stop": stop.word(), "reason": reason, "epochs": epochs, "seconds": seconds,
        "best_epoch": best.as_ref().map(|best| best.epoch),
        "best_score": best.as_ref().map(|b| json!({ "name": b.name, "value": b.value })),
        "measurements": measurements,
        "events": events,
    })
}
