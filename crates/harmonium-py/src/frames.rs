//! Frames of columns with names, and the other way round.

use crate::errors::Failure;
use crate::model::Model;
use crate::work::quietly;
use harmonium_data::frame::{Cells, Coded, Frame};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// A column of a frame: numbers, NaN where one is missing, or words.
#[derive(FromPyObject)]
pub(crate) enum Column<'py> {
    #[pyo3(transparent)]
    Numbers(PyReadonlyArray1<'py, f64>),
    #[pyo3(transparent)]
    Words(Vec<Option<String>>),
}

/// Columns by their names: numbers or words.
type Columns<'py> = Vec<(String, Bound<'py, PyAny>)>;
/// A column, its kind, its words, and what was seen in it.
type Described = (String, String, Vec<String>, String);

/// The cells of columns.
pub(crate) fn frame(names: Vec<String>, columns: &[Column<'_>]) -> PyResult<Frame> {
    let mut cells = Vec::with_capacity(columns.len());
    for column in columns {
        cells.push(match column {
            Column::Numbers(numbers) => Cells::from_numbers(numbers.as_array().iter().copied()),
            Column::Words(words) => words.iter().map(Option::as_deref).collect(),
        });
    }
    Ok(Frame::new(names.into_iter().zip(cells).collect()).map_err(Failure::from)?)
}

/// Rows of visible entries as the columns of the table that a model was trained on: numbers in its units, words the
/// most probable ones; nothing where it was an array.
#[pyfunction]
pub(crate) fn decoded<'py>(
    py: Python<'py>,
    model: &Model,
    values: PyReadonlyArray2<'py, f64>,
) -> PyResult<Option<Columns<'py>>> {
    let Some(book) = model.0.codebook() else { return Ok(None) };
    let values = values.as_array();
    let (words, numbers) = quietly(py, || {
        Ok::<_, Failure>((book.decode(values.view())?, book.in_units(values.view())?))
    })?;
    let (mut start, mut entries) = (0, Vec::new());
    for column in book.in_order() {
        entries.push((column, start));
        start += column.n_entries();
    }
    let array = |column: &Coded| -> PyResult<(String, Bound<'py, PyAny>)> {
        let place = entries.iter().find(|(other, _)| other.name == column.name);
        let found = match place {
            Some((_, entry)) if column.levels().is_empty() => {
                PyArray1::from_vec(py, numbers.column(*entry).to_vec()).into_any()
            }
            _ => {
                let cells = words.column(&column.name).map(|cells| cells.iter().collect());
                PyList::new(py, cells.unwrap_or_else(Vec::<Option<&str>>::new))?.into_any()
            }
        };
        Ok((column.name.clone(), found))
    };
    book.columns.iter().map(array).collect::<PyResult<_>>().map(Some)
}

/// What each column of the table was taken for and why: its name, kind, words, and the reason; nothing where it was
/// an array.
#[pyfunction]
pub(crate) fn columns(model: &Model) -> Option<Vec<Described>> {
    let book = model.0.codebook()?;
    let learned = book
        .columns
        .iter()
        .map(|c| (c.name.clone(), c.kind.to_string(), c.levels().to_vec(), c.why.clone()));
    let left_out =
        book.left_out.iter().map(|c| (c.name.clone(), "ignore".into(), Vec::new(), c.why.clone()));
    Some(learned.chain(left_out).collect())
}
