//! From the values of a machine's visible layers to the cells of a table.

use super::{Cells, Codebook, Coded, Frame};
use crate::Error;
use ndarray::{Array2, ArrayView2};

impl Codebook {
    /// Entries of a machine's visible layers.
    pub fn n_entries(&self) -> usize {
        self.columns.iter().map(Coded::n_entries).sum()
    }

    /// Rows of a machine's visible entries as a table of the columns that are learned. The word of a
    /// unit is that of its largest entry.
    ///
    /// # Errors
    ///
    /// If the rows have another number of entries.
    pub fn decode(&self, values: ArrayView2<'_, f64>) -> Result<Frame, Error> {
        let decoded = self.cells(values)?;
        let columns = self.columns.iter().map(|c| c.name.clone()).zip(decoded);
        Frame::new(columns.collect())
    }

    /// A table with its missing cells filled from rows of visible entries; all other cells, and
    /// columns that are not learned, stay as they were. Columns that the table does not have come last.
    ///
    /// # Errors
    ///
    /// If the numbers of rows or entries differ.
    pub fn fill(&self, frame: &Frame, values: ArrayView2<'_, f64>) -> Result<Frame, Error> {
        if values.nrows() != frame.n_rows() {
            let (n_rows, n_columns) = (frame.n_rows(), values.ncols());
            let (expected, found) = (n_rows * n_columns, values.len());
            return Err(Error::Shape { n_rows, n_columns, expected, found });
        }
        let decoded = self.cells(values)?;
        let place = |name: &str| self.columns.iter().position(|c| c.name == name);
        let mut columns: Vec<(String, Cells)> = Vec::new();
        for (name, cells) in frame.names().iter().zip(frame.columns()) {
            let filled = match place(name) {
                None => cells.clone(),
                Some(i) => {
                    let mut filled = Cells::default();
                    for row in 0..cells.len() {
                        let text = match cells.get(row) {
                            Some(_) => cells.written(row),
                            None => decoded[i].written(row),
                        };
                        filled.push(Some(text));
                    }
                    filled
                }
            };
            columns.push((name.clone(), filled));
        }
        for (column, cells) in self.columns.iter().zip(decoded) {
            if frame.column(&column.name).is_none() {
                columns.push((column.name.clone(), cells));
            }
        }
        Frame::new(columns)
    }

    /// Rows of visible entries with numbers in the units of the table; a binary entry is the probability of its second
    /// word, those of a category are the probabilities of its words. [`Codebook::entry_names`] names them.
    ///
    /// # Errors
    ///
    /// If the rows have another number of entries.
    pub fn in_units(&self, values: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        self.check_width(&values)?;
        let mut scaled = values.to_owned();
        for (entry, column) in self.number_entries() {
            scaled.column_mut(entry).mapv_inplace(|z| column.code.value(z));
        }
        Ok(scaled)
    }

    /// Standard errors of visible entries in the units of the table, to first order: $\sigma_z\,|dx/dz|$.
    ///
    /// # Errors
    ///
    /// If the rows have another number of entries.
    pub fn errors_in_units(
        &self,
        values: ArrayView2<'_, f64>,
        errors: ArrayView2<'_, f64>,
    ) -> Result<Array2<f64>, Error> {
        self.check_width(&values)?;
        let mut scaled = errors.to_owned();
        for (entry, column) in self.number_entries() {
            let pairs = scaled.column_mut(entry).into_iter().zip(values.column(entry));
            pairs.for_each(|(error, z)| *error *= (-column.log_slope(*z)).exp());
        }
        Ok(scaled)
    }

    /// The entries that hold numbers, with their columns.
    fn number_entries(&self) -> Vec<(usize, &Coded)> {
        let mut start = 0;
        let place = |column: &'_ Coded| {
            start += column.n_entries();
            start - column.n_entries()
        };
        let columns = self.in_order();
        let places: Vec<usize> = columns.iter().copied().map(place).collect();
        places.into_iter().zip(columns).filter(|(_, c)| c.levels().is_empty()).collect()
    }

    fn check_width(&self, values: &ArrayView2<'_, f64>) -> Result<(), Error> {
        let (n_rows, n_columns) = (values.nrows(), self.n_entries());
        if values.ncols() == n_columns {
            return Ok(());
        }
        let (expected, found) = (n_rows * n_columns, values.len());
        Err(Error::Shape { n_rows, n_columns, expected, found })
    }

    /// The cells of each learned column for rows of visible entries.
    fn cells(&self, values: ArrayView2<'_, f64>) -> Result<Vec<Cells>, Error> {
        self.check_width(&values)?;
        let mut cells = vec![Cells::default(); self.columns.len()];
        let mut start = 0;
        for i in self.groups().into_iter().flat_map(|(_, columns)| columns) {
            let (column, n) = (&self.columns[i], self.columns[i].n_entries());
            for row in values.rows() {
                let unit = (start..start + n).map(|c| row[c]);
                let z = if n == 1 { row[start] } else { largest(unit) as f64 };
                cells[i].push(Some(&column.code.decode(z)));
            }
            start += n;
        }
        Ok(cells)
    }
}

/// The place of the largest number.
fn largest(values: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (i, x) in values.enumerate() {
        if x > best.1 {
            best = (i, x);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::super::Unknown;
    use super::super::codebook::tests::{animals, book};
    use ndarray::Array2;

    #[test]
    fn a_table_goes_in_and_comes_back() {
        let (book, frame) = (book(), animals());
        let encoded = book.encode(&frame, Unknown::Refuse).unwrap();
        let table = encoded.dataset.table();
        // As a machine has it: one number, three entries, one bit.
        let mut entries = Array2::from_shape_fn((6, 5), |(row, e)| match e {
            0 => f64::from(table.at(row, 0)),
            4 => f64::from(table.at(row, 2)),
            k => f64::from(u8::from(table.at(row, 1) == (k - 1) as f32)),
        });
        entries[[2, 0]] = 0.0;
        entries[[3, 4]] = 0.8;
        let back = book.fill(&frame, entries.view()).unwrap();
        assert_eq!(back.column("id"), frame.column("id"), "carried through");
        assert_eq!(back.column("mass").unwrap().get(2), Some("4.9"));
        assert_eq!(back.column("tame").unwrap().get(3), Some("yes"));
        let cells = |name: &str| {
            let (was, is) = (frame.column(name).unwrap(), back.column(name).unwrap());
            was.iter().zip(is.iter()).filter(|(a, _)| a.is_some()).all(|(a, b)| a == b)
        };
        assert!(["mass", "kind", "tame"].iter().all(|n| cells(n)), "{}", back.to_csv());
        let drawn = book.decode(entries.view()).unwrap();
        assert_eq!(drawn.names(), ["mass", "kind", "tame"]);
        assert_eq!(drawn.column("kind").unwrap().get(3), Some("owl"));
        assert!(book.decode(Array2::zeros((2, 4)).view()).is_err());
    }
}
