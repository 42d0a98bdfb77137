//! Columns of bits of which exactly one is set in every row: one category, written one-hot.
//!
//! A machine of independent bits has to learn that they exclude each other, and spends nats on rows that cannot occur;
//! one categorical unit knows it.

use crate::Table;
use std::ops::Range;

/// Rows that are looked at first.
const SOME: usize = 2000;
/// The fewest rows that say something: in fewer, columns add up to one by chance.
const FEWEST: usize = 50;
/// The most values of a category that are looked for.
const MOST: usize = 256;

impl Table {
    /// Runs of two and more neighbouring columns that always hold one 1 among zeros, from left to right. None in tables
    /// that hold something else than bits, lack a value or have few rows.
    pub fn one_hot_groups(&self) -> Vec<Range<usize>> {
        if !self.is_bits() || self.has_missing() || self.n_rows() < FEWEST {
            return Vec::new();
        }
        let mut groups = Vec::new();
        let mut start = 0;
        while start < self.n_columns() {
            match self.group_from(start) {
                Some(group) => {
                    start = group.end;
                    groups.push(group);
                }
                None => start += 1,
            }
        }
        groups
    }

    /// The shortest group that starts at a column.
    fn group_from(&self, start: usize) -> Option<Range<usize>> {
        let every = self.n_rows().div_ceil(SOME);
        let mut open: Vec<usize> = (0..self.n_rows()).step_by(every).collect();
        let mut closed: Vec<usize> = Vec::with_capacity(open.len());
        // Columns that are never set in these rows may be in others: they go with the group before them.
        let mut set = 0;
        for column in start..self.n_columns().min(start + MOST) {
            let is_set = |row: &usize| self.at(*row, column) == 1.0;
            if closed.iter().any(is_set) {
                return None;
            }
            let (now, still): (Vec<usize>, Vec<usize>) = open.into_iter().partition(is_set);
            set += usize::from(!now.is_empty());
            closed.extend(now);
            open = still;
            if open.is_empty() {
                let group = start..column + 1;
                return (set >= 2 && self.is_one_hot(&group)).then_some(group);
            }
        }
        None
    }

    fn is_one_hot(&self, columns: &Range<usize>) -> bool {
        let ones = |row: usize| columns.clone().filter(|&c| self.at(row, c) == 1.0).count();
        (0..self.n_rows()).all(|row| ones(row) == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    /// A constant, three values, a bit, two values, a bit.
    fn table(n: usize) -> Table {
        let value = |row: usize, c: usize| match c {
            0 => true,
            1..=3 => (row * row) % 7 % 3 == c - 1,
            4 => row.is_multiple_of(3),
            5 | 6 => (row / 2).is_multiple_of(2) == (c == 5),
            _ => row.is_multiple_of(5),
        };
        let cells = Array2::from_shape_fn((n, 8), |(r, c)| f32::from(u8::from(value(r, c))));
        Table::from_array(cells.view()).unwrap()
    }

    #[test]
    fn groups_are_found_between_bits() {
        assert_eq!(table(100).one_hot_groups(), [1..4, 5..7]);
        assert_eq!(table(5000).one_hot_groups(), [1..4, 5..7]);
    }

    #[test]
    fn few_rows_and_other_values_say_nothing() {
        assert!(table(20).one_hot_groups().is_empty());
        let real = Table::from_real(vec![0.5; 400], 4).unwrap();
        assert!(real.one_hot_groups().is_empty());
    }

    #[test]
    fn one_row_that_differs_ends_a_group() {
        let cells =
            Array2::from_shape_fn((5000, 2), |(r, c)| f32::from(u8::from(r == 4321 || r % 2 == c)));
        assert!(Table::from_array(cells.view()).unwrap().one_hot_groups().is_empty());
    }
}
