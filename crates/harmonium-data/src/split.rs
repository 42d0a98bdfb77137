//! Parts of a table: training and validation rows, shuffles, subsets.

use crate::{Error, Table};
use harmonium_kernels::random::Stream;
use std::fmt;
use std::ops::Range;

/// How many rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// This share of all rows, rounded to the nearest count.
    Fraction(f64),
    /// So many.
    Count(usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fraction(share) => write!(f, "a share of {share}"),
            Self::Count(n) => write!(f, "{n}"),
        }
    }
}

impl Part {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share between 0 and 1 of a count is a count"
    )]
    fn of(self, n_rows: usize) -> Option<usize> {
        match self {
            Self::Count(n) => Some(n),
            Self::Fraction(share) => {
                (0.0..=1.0).contains(&share).then(|| (share * n_rows as f64).round() as usize)
            }
        }
    }
}

/// Rows set apart from the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    held_out: Part,
    shuffle: Option<Stream>,
}

/// The two sides of a split, as row numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitRows {
    /// What remains.
    pub kept: Vec<usize>,
    /// What was set apart.
    pub held_out: Vec<usize>,
}

impl Split {
    /// Sets the last rows apart, in the order of the file.
    pub fn last(held_out: Part) -> Self {
        Self { held_out, shuffle: None }
    }

    /// Sets rows apart at random; the same stream gives the same rows.
    pub fn shuffled(held_out: Part, stream: Stream) -> Self {
        Self { held_out, shuffle: Some(stream) }
    }

    /// Which rows go where.
    ///
    /// # Errors
    ///
    /// If one side would be empty.
    pub fn rows(&self, n_rows: usize) -> Result<SplitRows, Error> {
        let n = self.held_out.of(n_rows).filter(|&n| n > 0 && n < n_rows);
        let n = n.ok_or_else(|| Error::Part { asked: self.held_out.to_string(), n_rows })?;
        let mut kept: Vec<usize> = (0..n_rows).collect();
        if let Some(stream) = self.shuffle {
            stream.shuffle(&mut kept);
        }
        let held_out = kept.split_off(n_rows - n);
        Ok(SplitRows { kept, held_out })
    }

    /// The two sides of a table: what remains, and what was set apart.
    ///
    /// # Errors
    ///
    /// If one side would be empty.
    pub fn apply(&self, table: &Table) -> Result<(Table, Table), Error> {
        let sides = self.rows(table.n_rows())?;
        Ok((table.select_rows(&sides.kept)?, table.select_rows(&sides.held_out)?))
    }
}

/// All rows in random order.
pub fn shuffled(n_rows: usize, stream: Stream) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n_rows).collect();
    stream.shuffle(&mut rows);
    rows
}

/// The first rows of a table, all of them if there are fewer.
///
/// # Errors
///
/// If `n` is 0.
pub fn first(table: &Table, n: usize) -> Result<Table, Error> {
    rows(table, 0..n.min(table.n_rows()))
}

/// The rows of a range.
///
/// # Errors
///
/// If it is empty or goes beyond the last row.
pub fn rows(table: &Table, range: Range<usize>) -> Result<Table, Error> {
    let n_rows = table.n_rows();
    if range.is_empty() || range.end > n_rows {
        return Err(Error::Part { asked: format!("{}..{}", range.start, range.end), n_rows });
    }
    table.select_rows(&range.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_together_are_all_rows_once() {
        for split in [
            Split::last(Part::Count(3)),
            Split::shuffled(Part::Fraction(0.3), Stream::new(1)),
            Split::shuffled(Part::Count(9), Stream::new(2)),
        ] {
            let SplitRows { mut kept, held_out } = split.rows(10).unwrap();
            kept.extend(held_out);
            kept.sort_unstable();
            assert!(kept.into_iter().eq(0..10));
        }
        assert_eq!(Split::last(Part::Count(2)).rows(5).unwrap().held_out, [3, 4]);
    }

    #[test]
    fn shuffles_depend_on_the_seed_alone() {
        let rows = |seed| shuffled(100, Stream::new(seed));
        assert_eq!(rows(1), rows(1));
        assert_ne!(rows(1), rows(2));
    }

    #[test]
    fn a_side_without_rows_is_an_error() {
        for part in [
            Part::Count(0),
            Part::Count(10),
            Part::Count(11),
            Part::Fraction(0.0),
            Part::Fraction(1.5),
            Part::Fraction(f64::NAN),
        ] {
            assert!(Split::last(part).rows(10).is_err(), "{part}");
        }
    }

    #[test]
    fn subsets_keep_the_order() {
        let table = Table::from_bytes((0..10).collect(), 1, 9).unwrap();
        assert_eq!(first(&table, 3).unwrap().at(2, 0).to_bits(), 2.0_f32.to_bits());
        assert_eq!(first(&table, 99).unwrap().n_rows(), 10);
        assert_eq!(rows(&table, 4..6).unwrap().at(0, 0).to_bits(), 4.0_f32.to_bits());
        assert!(rows(&table, 4..11).is_err() && first(&table, 0).is_err());
    }
}
