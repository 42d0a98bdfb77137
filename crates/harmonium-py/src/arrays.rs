//! Arrays of numpy as tables, and the other way round.

use crate::errors::Failure;
use crate::work::quietly;
use harmonium_data::{Labels, Number, SparseRows, Table, fingerprint_of_array};
use ndarray::ArrayView2;
use numpy::{Element, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A table, and the fingerprint of its values where it was asked for.
pub(crate) type Taken = (Table, Option<u64>);

/// Whether the fingerprint of the values is wanted, and the labels that belong to it.
#[derive(Clone, Copy)]
pub(crate) enum Fingerprint<'a> {
    Unwanted,
    Wanted(Option<&'a Labels>),
}

/// The rows of an array of any usual number.
pub(crate) fn table(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    fingerprint: Fingerprint<'_>,
) -> PyResult<Taken> {
    macro_rules! first_of {
        ($($number:ty),*) => {
            $(if let Ok(array) = array.cast::<PyArray2<$number>>() {
                return typed(py, array, fingerprint);
            })*
        };
    }
    first_of!(u8, f64, f32, bool, i64, i32, i16, u16, i8);
    Err(PyTypeError::new_err(format!(
        "an array of two dimensions and of bool, int, uint8, float32 or float64 is needed, found {}",
        array.get_type().name()?
    )))
}

fn typed<T: Element + Number + Sync>(
    py: Python<'_>,
    array: &Bound<'_, PyArray2<T>>,
    fingerprint: Fingerprint<'_>,
) -> PyResult<Taken> {
    let array = array.readonly();
    let view: ArrayView2<'_, T> = array.as_array();
    quietly(py, || {
        let found = match fingerprint {
            Fingerprint::Unwanted => None,
            Fingerprint::Wanted(labels) => Some(fingerprint_of_array(view, labels)),
        };
        Ok::<_, Failure>((Table::from_array(view)?, found))
    })
}

/// The rows of a sparse matrix, which lists those entries of each that are not zero.
pub(crate) fn sparse(
    py: Python<'_>,
    n_columns: usize,
    starts: &PyReadonlyArray1<'_, i64>,
    columns: &PyReadonlyArray1<'_, i64>,
    values: &Bound<'_, PyAny>,
) -> PyResult<Table> {
    macro_rules! first_of {
        ($($number:ty),*) => {
            $(if let Ok(values) = values.extract::<PyReadonlyArray1<'_, $number>>() {
                let (starts, columns) = (starts.as_slice()?, columns.as_slice()?);
                let values = values.as_slice()?;
                let rows = SparseRows { n_columns, starts, columns, values };
                return quietly(py, || Ok::<_, Failure>(rows.to_table()?));
            })*
        };
    }
    first_of!(f64, f32, u8, i64, i32, bool);
    Err(PyTypeError::new_err("the entries of a sparse matrix are numbers"))
}
