//! Arrays of other programs as tables: the same values, stored as narrowly as those of a file.

use crate::store::Store;
use crate::{Binarize, Dataset, Error, Table};
use ndarray::ArrayView2;

/// A number that an array may hold.
pub trait Number: Copy {
    /// The same as a 32-bit number, NaN where it is missing: what tables hold.
    fn to_f32(self) -> f32;

    /// The row as bytes, where that is what it is.
    fn as_bytes(_row: &[Self]) -> Option<&[u8]> {
        None
    }
}

impl Number for bool {
    fn to_f32(self) -> f32 {
        f32::from(u8::from(self))
    }
}

impl Number for u8 {
    fn to_f32(self) -> f32 {
        f32::from(self)
    }

    fn as_bytes(row: &[Self]) -> Option<&[u8]> {
        Some(row)
    }
}

impl Number for i8 {
    fn to_f32(self) -> f32 {
        f32::from(self)
    }
}

impl Number for u16 {
    fn to_f32(self) -> f32 {
        f32::from(self)
    }
}

impl Number for i16 {
    fn to_f32(self) -> f32 {
        f32::from(self)
    }
}

impl Number for i32 {
    fn to_f32(self) -> f32 {
        self as f32
    }
}

impl Number for i64 {
    fn to_f32(self) -> f32 {
        self as f32
    }
}

impl Number for f32 {
    fn to_f32(self) -> f32 {
        self
    }
}

impl Number for f64 {
    #[expect(clippy::cast_possible_truncation, reason = "tables hold 32-bit numbers")]
    fn to_f32(self) -> f32 {
        self as f32
    }
}

impl Table {
    /// The rows of an array, copied once. Zeros and ones become packed bits, other whole numbers up
    /// to 255 bytes, everything else real numbers, as in a file; NaN is a missing entry.
    ///
    /// # Errors
    ///
    /// If the array is empty, or a value is infinite or beyond the range of 32-bit numbers.
    #[expect(clippy::needless_pass_by_value, reason = "a view is a reference already")]
    pub fn from_array<T: Number>(array: ArrayView2<'_, T>) -> Result<Self, Error> {
        let mut store = Store::new(array.ncols(), None);
        let mut values = vec![0.0; array.ncols()];
        for (row, given) in array.rows().into_iter().enumerate() {
            if let Some(bytes) = given.to_slice().and_then(T::as_bytes) {
                store.push_bytes(bytes)?;
                continue;
            }
            match given.to_slice() {
                Some(given) => values.iter_mut().zip(given).for_each(|(v, x)| *v = x.to_f32()),
                None => values.iter_mut().zip(given).for_each(|(v, x)| *v = x.to_f32()),
            }
            // To the end, which takes less than to look for the first.
            if values.iter().fold(false, |any, x| any | x.is_infinite()) {
                let column = values.iter().position(|x| x.is_infinite()).unwrap_or_default();
                return Err(Error::NotFinite { row, column });
            }
            store.push_reals(&values)?;
        }
        Ok(store.finish(None)?.table)
    }
}

/// A matrix whose rows list the entries that are not zero (CSR): those of row $r$ stand at
/// `starts[r]..starts[r + 1]` of `columns` and `values`. Entries that occur twice are added.
#[derive(Clone, Copy, Debug)]
pub struct SparseRows<'a, T> {
    /// Entries in a row, zeros included.
    pub n_columns: usize,
    /// Where each row begins, and where the last one ends.
    pub starts: &'a [i64],
    /// The column of each entry.
    pub columns: &'a [i64],
    /// The entries.
    pub values: &'a [T],
}

impl<T: Number> SparseRows<'_, T> {
    /// The rows as a table, stored as those of a dense array are.
    ///
    /// # Errors
    ///
    /// If the matrix is empty, names a place that it does not have, or holds an infinite value.
    pub fn to_table(&self) -> Result<Table, Error> {
        let mut store = Store::new(self.n_columns, None);
        let mut values = vec![0.0; self.n_columns];
        for (row, ends) in self.starts.windows(2).enumerate() {
            let range = usize::try_from(ends[0]).ok().zip(usize::try_from(ends[1]).ok());
            let wrong = Error::SparseRow { row, n_columns: self.n_columns };
            let entries =
                range.and_then(|(a, b)| self.columns.get(a..b).zip(self.values.get(a..b)));
            let Some((columns, entries)) = entries else { return Err(wrong) };
            values.fill(0.0);
            for (&column, value) in columns.iter().zip(entries) {
                let place = usize::try_from(column).ok().and_then(|c| values.get_mut(c));
                let Some(place) = place else { return Err(wrong) };
                *place += value.to_f32();
            }
            if let Some(column) = values.iter().position(|x| x.is_infinite()) {
                return Err(Error::NotFinite { row, column });
            }
            store.push_reals(&values)?;
        }
        Ok(store.finish(None)?.table)
    }
}

/// The fingerprint that a file of these values and labels has, in any format.
#[cfg(feature = "readers")]
#[expect(clippy::needless_pass_by_value, reason = "a view is a reference already")]
pub fn fingerprint_of_array<T: Number>(
    array: ArrayView2<'_, T>,
    labels: Option<&crate::Labels>,
) -> u64 {
    let mut hash = crate::hash::ContentHash::default();
    for row in array.rows() {
        match row.to_slice().and_then(T::as_bytes) {
            Some(bytes) => hash.bytes(bytes),
            None => row.iter().for_each(|x| hash.value(x.to_f32())),
        }
    }
    hash.finish_shape(array.nrows(), array.ncols(), labels)
}

impl Dataset {
    /// The rows of an array as they are; see [`Table::from_array`].
    ///
    /// ```
    /// use harmonium_data::{Binarize, Dataset};
    /// let images = ndarray::arr2(&[[0_u8, 255, 128], [12, 0, 255]]);
    /// let data = Dataset::from_array(images.view())?.binarized(Binarize::Sample)?;
    /// assert!(data.is_bits());
    /// # Ok::<(), harmonium_data::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Table::from_array`].
    #[expect(clippy::needless_pass_by_value, reason = "a view is a reference already")]
    pub fn from_array<T: Number>(array: ArrayView2<'_, T>) -> Result<Self, Error> {
        Self::new(Table::from_array(array)?, Binarize::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, arr2};

    #[test]
    fn arrays_come_back_as_they_were() {
        let real = arr2(&[[0.5_f64, f64::NAN, -3.0], [1.0, 2.0, 1e-3]]);
        let back = Table::from_array(real.view()).unwrap().to_array();
        for (a, b) in real.iter().zip(&back) {
            assert_eq!(a.to_f32().to_bits() & 0x7fff_ffff, b.to_bits() & 0x7fff_ffff);
        }
        let bytes = Array2::from_shape_fn((3, 70), |(r, c)| u8::try_from(r * 70 + c).unwrap());
        let table = Table::from_array(bytes.view()).unwrap();
        assert_eq!(table.to_array(), bytes.mapv(f32::from));
        assert_eq!(table.full_scale(), 255.0);
        let flags = Array2::from_shape_fn((2, 9), |(r, c)| (r + c) % 3 == 0);
        let table = Table::from_array(flags.t()).unwrap();
        assert!(table.is_bits() && table.n_rows() == 9);
        assert_eq!(table.to_array(), flags.t().mapv(|b| f32::from(u8::from(b))));
    }

    #[test]
    fn arrays_that_no_table_can_hold_are_refused() {
        let inf = arr2(&[[0.0_f64, f64::INFINITY]]);
        assert!(matches!(
            Table::from_array(inf.view()),
            Err(Error::NotFinite { row: 0, column: 1 })
        ));
        assert!(Table::from_array(Array2::<u8>::zeros((0, 3)).view()).is_err());
        assert!(Table::from_array(Array2::<u8>::zeros((3, 0)).view()).is_err());
    }

    #[test]
    fn sparse_rows_are_the_dense_ones() {
        let dense = arr2(&[[0.0_f64, 2.0, 0.0], [0.0, 0.0, 0.0], [1.5, 0.0, 3.0]]);
        let (starts, columns) = ([0, 2, 2, 4], [1, 1, 2, 0]);
        let values = [0.5, 1.5, 3.0, 1.5];
        let sparse =
            SparseRows { n_columns: 3, starts: &starts, columns: &columns, values: &values };
        assert_eq!(sparse.to_table().unwrap(), Table::from_array(dense.view()).unwrap());
        for (starts, columns) in
            [([0, 2, 9, 4], columns), ([0, 2, 2, 4], [1, -1, 2, 0]), ([0, 2, 2, 4], [1, 1, 3, 0])]
        {
            let wrong =
                SparseRows { n_columns: 3, starts: &starts, columns: &columns, values: &values };
            assert!(matches!(wrong.to_table(), Err(Error::SparseRow { .. })));
        }
    }

    #[cfg(feature = "readers")]
    #[test]
    fn an_array_has_the_fingerprint_of_its_file() {
        let rows = ["0,255,3", "7,0,1"].join("\n");
        let file = crate::decode(rows.as_bytes(), None, &crate::Options::default()).unwrap();
        let bytes = arr2(&[[0_u8, 255, 3], [7, 0, 1]]);
        assert_eq!(fingerprint_of_array(bytes.view(), None), file.about.content_hash);
        let real = bytes.mapv(f64::from);
        assert_eq!(fingerprint_of_array(real.view(), None), file.about.content_hash);
    }

    #[test]
    fn a_hole_leaves_bits_bits() {
        let holed = arr2(&[[0.0_f32, 1.0, f32::NAN], [1.0, f32::NAN, 0.0]]);
        let table = Table::from_array(holed.view()).unwrap();
        assert!(table.is_bits());
        assert_eq!((table.n_missing(), table.is_missing(0, 2)), (2, true));
        assert!(table.at(0, 2).is_nan() && table.at(1, 0) == 1.0);
    }
}
