//! The cells of one column, as they were written.

/// The cells of one column, as text.
///
/// A cell that is missing keeps the text that says so (`NA`, `?` or nothing), so that a column which is not
/// learned can be given back unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    text: String,
    /// Where each cell ends.
    ends: Vec<usize>,
    missing: Vec<bool>,
}

impl Cells {
    /// Adds a cell; nothing where it is missing.
    pub fn push(&mut self, cell: Option<&str>) {
        self.push_written(cell.unwrap_or_default(), cell.is_none());
    }

    /// Adds a cell as it was written, which may say that it is missing.
    pub fn push_written(&mut self, text: &str, is_missing: bool) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.missing.push(is_missing);
    }

    /// Numbers as people write them, NaN where one is missing.
    pub fn from_numbers(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut all = Self::default();
        for x in numbers {
            let text = if x.is_nan() { String::new() } else { x.to_string() };
            all.push_written(&text, x.is_nan());
        }
        all
    }

    /// The numbers in the cells, NaN where one is missing; nothing if a cell holds something else.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        self.iter().map(|cell| cell.map_or(Some(f64::NAN), super::code::number)).collect()
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A cell as it was written, also where it is missing.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn written(&self, row: usize) -> &str {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[row]]
    }

    /// What a cell holds, without blanks around it; nothing where it is missing.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn get(&self, row: usize) -> Option<&str> {
        (!self.missing[row]).then(|| self.written(row).trim())
    }

    /// What all cells hold, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Cells that are missing.
    pub fn n_missing(&self) -> usize {
        self.missing.iter().filter(|m| **m).count()
    }

    /// The rows named, in that order.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let mut chosen = Self::default();
        rows.iter().for_each(|&row| chosen.push_written(self.written(row), self.missing[row]));
        chosen
    }

    /// The same, missing also where `missing` says so; such cells are empty.
    #[must_use]
    pub(super) fn without(&self, missing: impl Fn(usize) -> bool) -> Self {
        let mut left = Self::default();
        for row in 0..self.len() {
            if missing(row) {
                left.push(None);
            } else {
                left.push_written(self.written(row), self.missing[row]);
            }
        }
        left
    }
}

impl<'a> FromIterator<Option<&'a str>> for Cells {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(cells: I) -> Self {
        let mut all = Self::default();
        cells.into_iter().for_each(|cell| all.push(cell));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back_as_they_were_written() {
        let mut cells: Cells = [Some("a"), None, Some(""), Some("b,c")].into_iter().collect();
        cells.push_written(" NA ", true);
        cells.push_written(" d ", false);
        let held = [Some("a"), None, Some(""), Some("b,c"), None, Some("d")];
        assert_eq!(cells.iter().collect::<Vec<_>>(), held);
        assert_eq!((cells.len(), cells.n_missing()), (6, 2));
        assert_eq!((cells.written(4), cells.written(5)), (" NA ", " d "));
        assert_eq!(cells.select_rows(&[5, 4]).written(1), " NA ");
    }

    #[test]
    fn numbers_are_written_as_people_write_them() {
        let cells = Cells::from_numbers([5.1, f64::NAN, -3.0]);
        assert_eq!(cells.iter().collect::<Vec<_>>(), [Some("5.1"), None, Some("-3")]);
        let back = cells.numbers().unwrap();
        assert!(back[0] == 5.1 && back[1].is_nan() && back[2] == -3.0);
        assert!([Some("x")].into_iter().collect::<Cells>().numbers().is_none());
    }
}
