//! Rows of data on this side of the door.

use crate::arrays::{self, Fingerprint};
use crate::errors::Failure;
use crate::frames::{self, Column};
use crate::model::Model;
use crate::work::quietly;
use harmonium::model::set_apart;
use harmonium::random::Stream;
use harmonium_data::frame::Codebook;
use harmonium_data::{Dataset, Error, Labels, Reading, Table};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Rows of data, as a model will see them.
#[pyclass(frozen, module = "harmonium._core")]
pub(crate) struct Data {
    pub(crate) dataset: Dataset,
    pub(crate) reading: Reading,
    /// The fingerprint of the values, where it was asked for.
    pub(crate) hash: Option<String>,
}

/// What belongs to rows besides their values.
#[derive(FromPyObject)]
struct Beside<'py> {
    /// How they are read, as JSON.
    #[pyo3(item)]
    reading: String,
    /// What the columns are called.
    #[pyo3(item)]
    names: Option<Vec<String>>,
    /// The class of each row, and what the classes are called.
    #[pyo3(item)]
    labels: Option<(PyReadonlyArray1<'py, u32>, Vec<String>)>,
    /// The weight of each row.
    #[pyo3(item)]
    weights: Option<PyReadonlyArray1<'py, f64>>,
    /// Which cells are observed.
    #[pyo3(item)]
    mask: Option<PyReadonlyArray2<'py, bool>>,
    /// Whether a fingerprint is wanted.
    #[pyo3(item)]
    fingerprint: bool,
    /// Whether the rows are put in the order of what they hold.
    #[pyo3(item)]
    canonical: bool,
    /// Whether grey values are shown as they are instead of bits that are drawn with them.
    #[pyo3(item)]
    means: bool,
}

impl Beside<'_> {
    /// How the rows are read: as was said, else as those of the model were.
    fn reading(&self, model: Option<&Model>) -> PyResult<Reading> {
        let said: Reading = serde_json::from_str(&self.reading)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(model.map_or_else(|| said.clone(), |model| said.or(&model.0.about.data.reading)))
    }

    fn labels(&self) -> PyResult<Option<Labels>> {
        let Some((values, names)) = &self.labels else { return Ok(None) };
        let labels = Labels::named(values.as_slice()?.to_vec(), names.clone());
        Ok(Some(labels.map_err(Failure::from)?))
    }

    /// Puts everything together.
    fn dataset(
        &self,
        py: Python<'_>,
        table: Table,
        model: Option<&Model>,
    ) -> PyResult<(Dataset, Reading)> {
        let reading = self.reading(model)?;
        let (mask, names) =
            (self.mask.as_ref().map(PyReadonlyArray2::as_array), self.names.as_deref());
        let (dataset, reading) = quietly(py, || {
            let table = match names {
                Some(names) => table.with_names(names),
                None => table,
            };
            let (dataset, reading) = reading.present(table)?;
            let dataset = match mask {
                Some(mask) => dataset.with_mask(mask)?,
                None => dataset,
            };
            Ok::<_, Failure>((dataset, reading))
        })?;
        Ok((self.beside(py, dataset)?, reading))
    }

    /// Rows with their labels and weights, in the order and the form that are asked for.
    fn beside(&self, py: Python<'_>, mut dataset: Dataset) -> PyResult<Dataset> {
        let labels = self.labels()?;
        let weights =
            self.weights.as_ref().map(|w| w.as_slice().map(<[f64]>::to_vec)).transpose()?;
        let (canonical, means) = (self.canonical, self.means);
        quietly(py, || {
            if let Some(labels) = labels {
                dataset = dataset.with_labels(labels)?;
            }
            if let Some(weights) = weights {
                dataset = dataset.with_weights(weights)?;
            }
            if canonical {
                dataset = dataset.in_canonical_order()?;
            }
            Ok::<_, Failure>(if means { dataset.as_means() } else { dataset })
        })
    }
}

#[pymethods]
impl Data {
    /// The rows of an array.
    #[staticmethod]
    fn from_array(
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        beside: Beside<'_>,
        model: Option<&Model>,
    ) -> PyResult<Self> {
        let labels = beside.labels()?;
        let wanted = Fingerprint::Wanted(labels.as_ref());
        let fingerprint = if beside.fingerprint { wanted } else { Fingerprint::Unwanted };
        let (table, hash) = arrays::table(py, array, fingerprint)?;
        let (dataset, reading) = beside.dataset(py, table, model)?;
        Ok(Self { dataset, reading, hash: hash.map(written) })
    }

    /// The rows of a compressed sparse matrix.
    #[staticmethod]
    fn from_csr(
        py: Python<'_>,
        n_columns: usize,
        starts: PyReadonlyArray1<'_, i64>,
        columns: PyReadonlyArray1<'_, i64>,
        values: &Bound<'_, PyAny>,
        beside: Beside<'_>,
        model: Option<&Model>,
    ) -> PyResult<Self> {
        let table = arrays::sparse(py, n_columns, &starts, &columns, values)?;
        let (dataset, reading) = beside.dataset(py, table, model)?;
        Ok(Self { dataset, reading, hash: None })
    }

    /// The rows of a frame: as the model learned its columns, or as they are found out.
    #[staticmethod]
    fn from_frame(
        py: Python<'_>,
        names: Vec<String>,
        columns: Vec<Column<'_>>,
        beside: Beside<'_>,
        model: Option<&Model>,
    ) -> PyResult<(Self, Vec<String>)> {
        let reading = beside.reading(model)?;
        let mut frame = frames::frame(names, &columns)?;
        if let Some(mask) = &beside.mask {
            frame = frame.observed(mask.as_array(), None).map_err(Failure::from)?;
        }
        let unknown = reading.unknown.unwrap_or_default();
        let (dataset, notes) = quietly(py, || {
            let book = match model.and_then(|model| model.0.codebook()) {
                Some(book) => book.clone(),
                None => Codebook::fit(&frame, &reading.kinds)?,
            };
            let encoded = book.encode(&frame, unknown)?;
            let notes = encoded.notes();
            Ok::<_, Failure>((encoded.dataset, notes))
        })?;
        let dataset = beside.beside(py, dataset)?;
        let hash = beside.fingerprint.then(|| written(frame.fingerprint()));
        Ok((Self { dataset, reading, hash }, notes))
    }

    /// Data by its name: a file, a folder of pictures, or a built-in set; with what was guessed.
    #[staticmethod]
    fn open(py: Python<'_>, spec: &str, reading: &str) -> PyResult<(Self, Vec<String>)> {
        let reading: Reading = serde_json::from_str(reading)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let opened = quietly(py, || Ok::<_, Failure>(reading.open(spec)?))?;
        let hash = Some(written(opened.about.content_hash));
        let notes = opened.about.notes.iter().map(|note| crate::errors::spelt(note)).collect();
        Ok((Self { dataset: opened.dataset, reading: opened.reading, hash }, notes))
    }

    /// Rows to learn from and rows to validate with, chosen by the seed.
    fn set_apart(&self, share: f64, seed: u64) -> PyResult<(Self, Self)> {
        let (train, valid) = set_apart(&self.dataset, share, seed).map_err(Failure::from)?;
        let with =
            |dataset| Self { dataset, reading: self.reading.clone(), hash: self.hash.clone() };
        Ok((with(train), with(valid)))
    }

    /// The same rows with the classes numbered as in `classes`.
    fn labelled_as(&self, classes: Vec<String>) -> PyResult<Self> {
        let numbered = || {
            let labels = self.dataset.labels().ok_or(Error::NoLabels)?.numbered_as(&classes)?;
            self.dataset.clone().with_labels(labels)
        };
        let dataset = numbered().map_err(Failure::from)?;
        Ok(Self { dataset, reading: self.reading.clone(), hash: self.hash.clone() })
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.dataset.n_rows(), self.dataset.n_columns())
    }

    /// How the rows were read, as JSON.
    #[getter]
    fn reading(&self) -> String {
        serde_json::to_string(&self.reading).unwrap_or_default()
    }

    /// Whether every value is presented as 0 or 1.
    #[getter]
    fn is_bits(&self) -> bool {
        self.dataset.is_bits()
    }

    /// Whether its numbers are of several sorts, which one kind of units would not fit.
    #[getter]
    fn is_of_several_sorts(&self) -> bool {
        self.dataset.table().is_of_several_sorts()
    }

    /// Whether a value is missing.
    #[getter]
    fn has_missing(&self) -> bool {
        self.dataset.has_missing()
    }

    /// What the columns are called, where that is known.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.dataset.table().names()
    }

    /// Height and width of the picture in each row, if it is one.
    #[getter]
    fn image(&self) -> Option<(usize, usize)> {
        self.dataset.table().image().map(|image| (image.height, image.width))
    }

    /// The class of each row and what the classes are called, if they are known.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyArray1<u32>>, Vec<String>)> {
        let labels = self.dataset.labels()?;
        Some((PyArray1::from_slice(py, labels.values()), labels.class_names()))
    }

    /// One presentation of all rows, NaN where a value is missing.
    fn to_array<'py>(&self, py: Python<'py>, seed: u64) -> Bound<'py, PyArray2<f64>> {
        PyArray2::from_owned_array(py, py.detach(|| self.dataset.to_array(Stream::new(seed))))
    }
}

/// A fingerprint as it stands in files.
fn written(hash: u64) -> String {
    format!("{hash:016x}")
}
