//! Several modalities, parts of pictures, and what is asked about one given another.

use crate::data::Data;
use crate::errors::Failure;
use crate::model::Model;
use crate::work::{quietly, run};
use harmonium::model::Nearness;
use harmonium_data::{Dataset, Hide, Image, Reading, Source, Visible};
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;

/// Rows of several modalities side by side: for a model as it takes them, else as they are to be learned, each with the
/// kind of its units if one was said.
#[pyfunction]
pub(crate) fn join(
    py: Python<'_>,
    parts: Vec<(String, PyRef<'_, Data>, Option<String>)>,
    model: Option<&Model>,
) -> PyResult<Data> {
    let mut sources = Vec::new();
    let mut hash = String::new();
    for (name, data, visible) in &parts {
        let visible = visible.as_deref().map(kind).transpose()?;
        hash.push_str(data.hash.as_deref().unwrap_or_default());
        let (dataset, reading) = (data.dataset.clone().without_labels(), data.reading.clone());
        sources.push(Source { name: name.clone(), data: dataset, reading, visible });
    }
    drop(parts);
    let dataset = quietly(py, || match model {
        Some(model) => {
            let given = sources.into_iter().map(|s| (s.name, s.data)).collect();
            Ok::<_, Failure>(model.0.join(given)?)
        }
        None => Ok(Dataset::join(sources)?),
    })?;
    let hash = (!hash.is_empty()).then_some(hash);
    Ok(Data { dataset, reading: Reading::default(), hash })
}

fn kind(word: &str) -> PyResult<Visible> {
    match word {
        "binary" => Ok(Visible::Binary),
        "spin" => Ok(Visible::Spin),
        "gaussian" => Ok(Visible::Gaussian),
        "categorical" => Ok(Visible::Categorical),
        _ => Err(PyValueError::new_err(format!(
            "there are no units called `{word}`: binary, spin, gaussian, categorical"
        ))),
    }
}

/// What is left to be seen of a picture of which a part is hidden.
#[pyfunction]
pub(crate) fn observed_part<'py>(
    py: Python<'py>,
    part: &str,
    height: usize,
    width: usize,
) -> PyResult<Bound<'py, PyArray2<bool>>> {
    let hide: Hide = part.parse().map_err(Failure::from)?;
    let seen = hide.observed(Image { height, width }).map_err(Failure::from)?;
    Ok(PyArray2::from_owned_array(py, seen))
}

/// The rows without what they say of one modality.
#[pyfunction]
pub(crate) fn without_modality(model: &Model, data: &Data, name: &str) -> PyResult<Data> {
    let dataset = model.0.without_modality(&data.dataset, name).map_err(Failure::from)?;
    Ok(Data { dataset, reading: data.reading.clone(), hash: None })
}

/// Where the entries of each modality stand, what they are called, and the shape of its pictures.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row for each modality")]
pub(crate) fn modalities(
    model: &Model,
) -> PyResult<Vec<(String, usize, usize, Vec<String>, Option<(usize, usize)>)>> {
    let of = |m: &harmonium_data::Modality| {
        let entries = model.0.entries_of(&m.name)?;
        let image = model.0.picture_of(&m.name)?.map(|i| (i.height, i.width));
        Ok((m.name.clone(), entries.start, entries.end, m.names.clone(), image))
    };
    let all: Result<_, Failure> = model.0.modalities().iter().map(of).collect();
    Ok(all?)
}

/// How probable rows are given a part of them: of each row, their mean, and everything else as JSON.
#[pyfunction]
pub(crate) fn score_given<'py>(
    py: Python<'py>,
    model: &Model,
    data: &Data,
    known: &Data,
    seed: u64,
    face: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, f64, String)> {
    let outcome = run(py, face, |teller| {
        Ok(model.0.score_given(&data.dataset, &known.dataset, seed, teller)?)
    })?;
    let found = outcome.finished()?;
    let told = found.to_json().to_string();
    Ok((PyArray1::from_vec(py, found.rows), found.mean, told))
}

/// How near rows of one modality are to queries, and how well rows of the same number are found, as JSON.
#[pyfunction]
pub(crate) fn retrieve<'py>(
    py: Python<'py>,
    model: &Model,
    queries: &Data,
    wanted: &str,
    among: &Data,
    by: &str,
    face: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyArray2<f64>>, String)> {
    let by: Nearness = serde_json::from_value(json!(by))
        .map_err(|_| PyTypeError::new_err("`by` is conditional or features"))?;
    let outcome = run(py, face, |teller| {
        Ok(model.0.retrieve(&queries.dataset, (wanted, &among.dataset), by, teller)?)
    })?;
    let found = outcome.finished()?;
    let (n, m) = found.nearness.dim();
    let told = if n == m { json!(found.judge(|q, a| q == a)) } else { json!(null) };
    Ok((PyArray2::from_owned_array(py, found.nearness), told.to_string()))
}
