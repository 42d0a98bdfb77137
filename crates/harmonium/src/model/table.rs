//! Tables of columns in and out: cells by their names go in, and cells come back.
//!
//! ```
//! use harmonium::data::frame::{Cells, Frame, Kinds, Unknown};
//! use harmonium::models::{Above, over};
//! use harmonium::model::fitting_layers;
//! use harmonium::{Dataset, Plan, Sweeps};
//!
//! let mass = Cells::from_numbers((0..60).map(|i| f64::from(i % 7) + 0.5));
//! let kind = (0..60).map(|i| Some(["cat", "dog", "owl"][i % 7 / 3])).collect();
//! let frame = Frame::new(vec![("mass".into(), mass), ("kind".into(), kind)])?;
//! let data = Dataset::from_frame(&frame, &Kinds::new())?;
//! let machine = over(fitting_layers(&data, None, None)?, Above::Rbm(4))?;
//! let model = machine.train(&data, &Plan::for_epochs(20))?;
//!
//! let owls = model.know(&[("kind".into(), "owl".into())])?;
//! let drawn = model.given(&owls.data, None)?.sample(5, Sweeps(100), 0)?;
//! let table = model.table(drawn.view())?.expect("it was trained on a table");
//! assert!(table.column("kind").unwrap().iter().all(|cell| cell == Some("owl")));
//! let rows = model.observe(frame.without_cells(|row, column| row == 3 && column == 0), Unknown::Refuse)?;
//! let filled = rows.filled(&model, model.complete(&rows.data)?.view())?.expect("a table");
//! assert_eq!(filled.column("kind"), frame.column("kind"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::error::Error;
use crate::run::Model;
use harmonium_data::frame::{Cells, Codebook, Frame, Unknown};
use harmonium_data::{Dataset, Labels, Table};
use ndarray::{Array2, ArrayView2};

/// Rows that a model is asked about, and the cells they were read from where they are a table of columns.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The rows as the model takes them.
    pub data: Dataset,
    /// The cells.
    pub frame: Option<Frame>,
}

impl Model {
    /// How the cells of a table become numbers, where the model was trained on a table of columns.
    pub fn codebook(&self) -> Option<&Codebook> {
        self.about.data.codebook.as_ref()
    }

    /// A table of columns as rows of this model, columns found by their names.
    ///
    /// # Errors
    ///
    /// If the model was not trained on a table of columns, or a cell or column is unknown.
    pub fn observe(&self, frame: Frame, unknown: Unknown) -> Result<Observed, Error> {
        let book = self.codebook().ok_or_else(|| Error::Topology {
            model: "a table of columns",
            expected: "a model that was trained on one",
            found: "found one that was trained on an array of numbers".into(),
        })?;
        let data = book.encode(&frame, unknown)?.dataset;
        Ok(Observed { data, frame: Some(frame) })
    }

    /// One row of which nothing is known but these values, `(column, value)`. Columns of an array have the names
    /// that its file gave them, or their numbers, from 0; the label is called `label`.
    ///
    /// # Errors
    ///
    /// If there is no such column, or it cannot hold the value.
    pub fn know(&self, values: &[(String, String)]) -> Result<Observed, Error> {
        if values.is_empty() {
            return Err(Error::Empty { what: "the list of what is known".into() });
        }
        if let Some(book) = self.codebook() {
            let column = |(name, value): &(String, String)| {
                let cells: Cells = [Some(value.as_str())].into_iter().collect();
                Ok((book.learned(name)?.name.clone(), cells))
            };
            let columns = values.iter().map(column).collect::<Result<_, Error>>()?;
            return self.observe(Frame::new(columns)?, Unknown::Refuse);
        }
        let n_columns = match &self.about.data.schema {
            Some(schema) => schema.n_columns(),
            None => self.body.visible().iter().map(|l| l.len()).sum(),
        };
        let nothing = Array2::from_elem((1, n_columns), f32::NAN);
        let data = Dataset::from_array(nothing.view())?;
        Observed { data, frame: None }.with_values(self, values)
    }

    /// Rows of visible entries as a table of the columns that were learned; nothing where the model was not trained
    /// on a table of columns.
    ///
    /// # Errors
    ///
    /// If the rows have another number of entries.
    pub fn table(&self, values: ArrayView2<'_, f64>) -> Result<Option<Frame>, Error> {
        Ok(self.codebook().map(|book| book.decode(values)).transpose()?)
    }

    /// The number of a column of an array.
    fn column_number(&self, name: &str, n_columns: usize) -> Result<usize, Error> {
        let named = self.about.data.schema.as_ref().map(|s| s.data_names(n_columns));
        let names = named.unwrap_or_default();
        let place = names.iter().position(|n| n.as_deref() == Some(name));
        let number = || name.parse().ok().filter(|&c: &usize| c < n_columns);
        place.or_else(number).ok_or_else(|| {
            let known =
                names.into_iter().enumerate().map(|(c, n)| n.unwrap_or_else(|| c.to_string()));
            let all = if self.about.data.schema.is_some() { known.collect() } else { Vec::new() };
            harmonium_data::Error::NoColumn { name: name.to_owned(), names: all }.into()
        })
    }
}

impl Observed {
    /// Rows of an array of numbers.
    pub fn of(data: Dataset) -> Self {
        Self { data, frame: None }
    }

    /// The same rows with these values, `(column, value)`, in all of them; see [`Model::know`].
    ///
    /// # Errors
    ///
    /// If there is no such column, or it cannot hold the value.
    pub fn with_values(self, model: &Model, values: &[(String, String)]) -> Result<Self, Error> {
        if values.is_empty() {
            return Ok(self);
        }
        if let (Some(book), Some(mut frame)) = (model.codebook(), self.frame) {
            for (name, value) in values {
                frame = frame.with_value(&book.learned(name)?.name, value);
            }
            return model.observe(frame, Unknown::Missing);
        }
        if self.data.is_sampled() {
            return Err(Error::Topology {
                model: "single values",
                expected: "values as they are",
                found: "found grey levels that are drawn anew; use a threshold, `--binarize 0.5`"
                    .into(),
            });
        }
        let mut data = self.data;
        let mut array = data.table().to_array();
        for (name, value) in values {
            if name == "label" {
                let classes = model.class_names()?;
                let all = Labels::from_texts(std::iter::repeat_n(value, data.n_rows()));
                let known = all.numbered_as(&classes)?;
                data = data.with_labels(known)?;
                continue;
            }
            let column = model.column_number(name, array.ncols())?;
            let number = value.trim().parse().ok().filter(|x: &f32| x.is_finite());
            let place = harmonium_data::frame::Place { row: 1, line: None };
            let wrong = || harmonium_data::Error::NoNumber {
                place,
                column: name.clone(),
                cell: value.clone(),
            };
            array.column_mut(column).fill(number.ok_or_else(wrong)?);
        }
        let table = Table::from_array(array.view())?;
        Ok(Self { data: data.with_values(table)?, frame: None })
    }

    /// The same rows without the cells that were not observed: `false` in a row for each row, or in one row that
    /// holds for all. Of a table of columns the mask has a column for each of its columns, by their order or by `names`.
    ///
    /// # Errors
    ///
    /// If the mask has another shape, or names a column that is not there.
    pub fn with_mask(
        self,
        model: &Model,
        observed: ArrayView2<'_, bool>,
        names: Option<&[String]>,
    ) -> Result<Self, Error> {
        match self.frame {
            None => Ok(Self { data: self.data.with_mask(observed)?, frame: None }),
            Some(frame) => model.observe(frame.observed(observed, names)?, Unknown::Missing),
        }
    }

    /// The table with its missing cells filled from rows of visible entries, each row of the table as often as `values`
    /// has rows for it; nothing where the rows are no table of columns.
    ///
    /// # Errors
    ///
    /// If the numbers of rows or entries do not fit.
    pub fn filled(
        &self,
        model: &Model,
        values: ArrayView2<'_, f64>,
    ) -> Result<Option<Frame>, Error> {
        let (Some(book), Some(frame)) = (model.codebook(), &self.frame) else { return Ok(None) };
        let times = values.nrows() / frame.n_rows().max(1);
        let filled = if times > 1 {
            let rows: Vec<usize> = (0..values.nrows()).map(|row| row / times).collect();
            book.fill(&frame.select_rows(&rows)?, values)?
        } else {
            book.fill(frame, values)?
        };
        Ok(Some(filled))
    }
}
