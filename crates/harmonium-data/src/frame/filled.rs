//! What is known of each cell that was filled: how probable its word is, and in which range its number lies.

use super::{Cells, Codebook, Coded, Frame};
use crate::Error;
use ndarray::{ArrayView1, ArrayView2};

/// Words that are less probable are not listed.
const LEAST: f64 = 0.005;
/// The ends of an interval that holds 95 %.
const ENDS: (f64, f64) = (0.025, 0.975);

/// Rows of a machine's visible entries with what is known about them.
#[derive(Clone, Copy, Debug)]
pub struct FilledRows<'a> {
    /// The means of all entries.
    pub means: ArrayView2<'a, f64>,
    /// Their standard errors: how well the means are known, not how far the value may be from them.
    pub errors: ArrayView2<'a, f64>,
    /// Samples of each row, as many of each, one row after the other.
    pub draws: ArrayView2<'a, f64>,
}

/// The lines of a report.
#[derive(Default)]
struct Lines {
    columns: [Cells; 7],
}

impl Lines {
    const NAMES: [&'static str; 7] =
        ["row", "column", "value", "probability", "low", "high", "error"];

    fn push(&mut self, cells: [&str; 7]) {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(Some(cell));
        }
    }
}

impl Codebook {
    /// A table with lines for each cell of `frame` that is missing: `row` (from 1), `column`, and
    ///
    /// - of a number its `value`, the ends of the interval that holds 95 % of its samples (`low`, `high`), and the
    ///   standard `error` of the value, in the units of the table;
    /// - of a word its `value`, its `probability` and the standard `error` of that, for every word with a probability of
    ///   at least 0.005, the most probable first.
    ///
    /// # Errors
    ///
    /// If nothing is missing, or the numbers of rows or entries do not fit.
    pub fn filled_cells(&self, frame: &Frame, rows: FilledRows<'_>) -> Result<Frame, Error> {
        let (n_rows, n) = (frame.n_rows(), self.n_entries());
        for (values, times) in [(&rows.means, 1), (&rows.errors, 1), (&rows.draws, 0)] {
            let fits =
                values.nrows() == n_rows || times == 0 && values.nrows() % n_rows.max(1) == 0;
            if !fits || values.ncols() != n {
                let (expected, found) = (n_rows * n, values.len());
                return Err(Error::Shape { n_rows, n_columns: n, expected, found });
            }
        }
        let mut lines = Lines::default();
        for row in 0..n_rows {
            let mut start = 0;
            for column in self.in_order() {
                let entries = start..start + column.n_entries();
                start = entries.end;
                let cells = frame.column(&column.name);
                if cells.is_none_or(|cells| cells.get(row).is_none()) {
                    column.report(row, entries.start, rows, &mut lines);
                }
            }
        }
        let names = Lines::NAMES.iter().map(|name| (*name).to_owned());
        Frame::new(names.zip(lines.columns).collect())
    }
}

impl Coded {
    fn report(&self, row: usize, start: usize, rows: FilledRows<'_>, lines: &mut Lines) {
        let number = (row + 1).to_string();
        let (mean, error) = (rows.means[[row, start]], rows.errors[[row, start]]);
        if self.is_ordered() {
            let n = rows.draws.nrows() / rows.means.nrows();
            let drawn = rows.draws.column(start);
            let [low, high] = interval(drawn, row * n..(row + 1) * n)
                .map_or_else(Default::default, |ends| ends.map(|z| self.code.decode(z)));
            let error = short(error * (-self.log_slope(mean)).exp());
            let value = self.code.decode(mean);
            return lines.push([&number, &self.name, &value, "", &low, &high, &error]);
        }
        let levels = self.levels();
        let mut words: Vec<(f64, f64, &str)> = if self.n_entries() == 1 {
            vec![(1.0 - mean, error, &levels[0]), (mean, error, &levels[1])]
        } else {
            let entry = |k: usize| (rows.means[[row, start + k]], rows.errors[[row, start + k]]);
            let words = levels.iter().enumerate();
            words.map(|(k, level)| (entry(k).0, entry(k).1, level.as_str())).collect()
        };
        words.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (k, (p, error, word)) in words.into_iter().enumerate() {
            if k == 0 || p >= LEAST {
                let (p, error) = (format!("{p:.4}"), short(error));
                lines.push([&number, &self.name, word, &p, "", "", &error]);
            }
        }
    }
}

/// The ends of the middle 95 % of some values; nothing where there are none.
fn interval(values: ArrayView1<'_, f64>, these: std::ops::Range<usize>) -> Option<[f64; 2]> {
    let mut some: Vec<f64> = these.map(|i| values[i]).collect();
    some.sort_by(f64::total_cmp);
    let last = some.len().checked_sub(1)? as f64;
    let at = |share: f64| {
        let place = share * last;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the list"
        )]
        let below = place.floor() as usize;
        let above = (below + 1).min(some.len() - 1);
        some[below] + (place - place.floor()) * (some[above] - some[below])
    };
    Some([at(ENDS.0), at(ENDS.1)])
}

/// Two digits that count.
fn short(error: f64) -> String {
    if !error.is_finite() {
        return String::new();
    }
    let digits = if error > 0.0 { 1.0 - error.log10().floor() } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let digits = digits.clamp(0.0, 12.0) as usize;
    format!("{error:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::super::codebook::tests::{animals, book};
    use super::*;
    use ndarray::Array2;

    #[test]
    fn filled_cells_are_listed_with_what_is_known() {
        let (book, frame) = (book(), animals());
        let mut means = Array2::zeros((6, 5));
        means[[3, 4]] = 0.8;
        let errors = Array2::from_elem((6, 5), 0.0123);
        // A hundred and one samples of each row, evenly from -1 to 1.
        let draws = Array2::from_shape_fn((606, 5), |(i, _)| (i % 101) as f64 / 50.0 - 1.0);
        let rows = FilledRows { means: means.view(), errors: errors.view(), draws: draws.view() };
        let report = book.filled_cells(&frame, rows).unwrap();
        let text = report.to_csv();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "row,column,value,probability,low,high,error");
        assert_eq!(lines[1], "3,mass,4.9,,2.7,7.1,0.029");
        assert_eq!(lines[2], "4,tame,yes,0.8000,,,0.012");
        assert_eq!(lines[3], "4,tame,no,0.2000,,,0.012");
        assert_eq!(lines.len(), 4);
        let wrong = FilledRows { draws: means.view(), means: draws.view(), errors: errors.view() };
        assert!(book.filled_cells(&frame, wrong).is_err());
        assert_eq!(
            (short(0.0), short(f64::NAN).as_str(), short(2.54)),
            ("0".into(), "", "2.5".into())
        );
    }
}
