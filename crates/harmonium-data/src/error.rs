//! What can be wrong with data, with the numbers in it.

use thiserror::Error;

/// Why data could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A table without rows or without columns.
    #[error("the data is empty: {n_rows} rows, {n_columns} columns")]
    Empty {
        /// Rows found.
        n_rows: usize,
        /// Columns found.
        n_columns: usize,
    },
    /// Values do not fill the rows they claim to.
    #[error("{n_rows} rows of {n_columns} columns need {expected} values, found {found}")]
    Shape {
        /// Rows claimed.
        n_rows: usize,
        /// Columns claimed.
        n_columns: usize,
        /// Values that would fill them.
        expected: usize,
        /// Values there are.
        found: usize,
    },
    /// Not one weight per sample.
    #[error("{found} sample weights for {n_rows} rows")]
    WeightCount {
        /// Rows of the table.
        n_rows: usize,
        /// Weights given.
        found: usize,
    },
    /// A weight that is negative or not a number, or weights that are all zero.
    #[error("the weight of row {row} is {value}; weights are finite, not negative, not all zero")]
    Weight {
        /// The row, from 0.
        row: usize,
        /// Its weight.
        value: f64,
    },
    /// A name or a parameter that no built-in set has.
    #[error("there is no built-in set `{name}`: {reason}")]
    BuiltIn {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value that cannot be binarised.
    #[error("row {row}, column {column} holds {value}, which is no probability after scaling")]
    NotAProbability {
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// The value found.
        value: f32,
    },
    /// Bytes that are not what their format promises.
    #[error("damaged {format} data: {reason}")]
    Damaged {
        /// The format.
        format: &'static str,
        /// What was found.
        reason: String,
    },
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "give a file with at least one row and one column",
            Self::Shape { .. } => "check that every row has the same number of columns",
            Self::WeightCount { .. } => "give one weight per row",
            Self::Weight { .. } => "leave rows out by a weight of 0, but not all of them",
            Self::BuiltIn { .. } => "built-in sets: digits, bars-and-stripes:N, shifter",
            Self::NotAProbability { .. } => {
                "use `--binarize T` to threshold the data, or `--binarize none` with `--visible gaussian`"
            }
            Self::Damaged { .. } => "fetch the file again",
        }
    }
}
