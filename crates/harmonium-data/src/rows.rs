//! Which rows of a source are used: a range, those that a file lists, or those to which a file gives a word.

use crate::{Error, Options, open_labels};
use std::ops::Range;

/// Rows that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rows {
    /// `A..B`, the end left out; either end may be.
    Range(Option<usize>, Option<usize>),
    /// A file with the number of a row in each line, from 0.
    Listed(String),
    /// A file with a word for each row, and the word of those that are used.
    Marked(String, String),
}

impl Rows {
    fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Setting {
            what: "choice of rows",
            text: text.to_owned(),
            expected: "write `A..B` (from 0, the end left out), a file of row numbers, or `FILE=WORD` for \
                       the rows to which the file gives that word",
        };
        if let Some((from, to)) = text.split_once("..")
            && [from, to].iter().all(|end| end.chars().all(|c| c.is_ascii_digit()))
        {
            let end = |end: &str| match end {
                "" => Ok(None),
                number => number.parse().map(Some).map_err(|_| wrong()),
            };
            return Ok(Self::Range(end(from)?, end(to)?));
        }
        match text.rsplit_once('=') {
            Some((file, word)) => Ok(Self::Marked(file.to_owned(), word.to_owned())),
            None if text.is_empty() => Err(wrong()),
            None => Ok(Self::Listed(text.to_owned())),
        }
    }
}

/// The numbers of the rows that `text` asks for, of `n_rows`.
///
/// # Errors
///
/// If it cannot be read, names a row that is not there, or none.
pub(crate) fn chosen(text: &str, n_rows: usize) -> Result<Vec<usize>, Error> {
    let none = || Error::Rows { asked: text.to_owned(), n_rows };
    let rows = match Rows::parse(text)? {
        Rows::Range(from, to) => {
            let Range { start, end } = from.unwrap_or(0)..to.unwrap_or(n_rows);
            if end > n_rows {
                return Err(none());
            }
            (start..end).collect()
        }
        Rows::Listed(path) => numbers(&path).map_err(|e| e.in_file(&path))?,
        Rows::Marked(path, word) => {
            let labels = open_labels(&path, &Options::default())?;
            labels.check_rows(n_rows).map_err(|e| e.in_file(&path))?;
            let names = labels.class_names();
            let is = |&row: &usize| names[labels.values()[row] as usize] == word;
            (0..n_rows).filter(is).collect::<Vec<usize>>()
        }
    };
    if rows.is_empty() || rows.iter().any(|&row| row >= n_rows) {
        return Err(none());
    }
    Ok(rows)
}

/// Whole numbers, one in each line.
fn numbers(path: &str) -> Result<Vec<usize>, Error> {
    let text = std::fs::read_to_string(path)?;
    let number = |(line, word): (usize, &str)| {
        word.trim().parse().map_err(|_| Error::Setting {
            what: "number of a row",
            text: format!("{word} (line {})", line + 1),
            expected: "a file of rows has a whole number in each line, from 0",
        })
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(number).collect()
}

/// Names of columns, one in each line of a file.
///
/// # Errors
///
/// If it cannot be read, or there are more or fewer than columns.
pub(crate) fn column_names(path: &str, n_columns: usize) -> Result<Vec<String>, Error> {
    let read = || -> Result<Vec<String>, Error> {
        let text = std::fs::read_to_string(path)?;
        let names: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        if names.len() != n_columns {
            return Err(Error::NameCount { n_columns, found: names.len() });
        }
        Ok(names)
    };
    read().map_err(|e| e.in_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> String {
        let path =
            std::env::temp_dir().join(format!("harmonium-rows-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn ranges_leave_the_end_out() {
        assert_eq!(chosen("1..3", 5).unwrap(), [1, 2]);
        assert_eq!(chosen("3..", 5).unwrap(), [3, 4]);
        assert_eq!(chosen("..2", 5).unwrap(), [0, 1]);
        for wrong in ["3..3", "4..2", "2..6", "9..", "", "a..b", "no such file"] {
            assert!(chosen(wrong, 5).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_list_rows_or_mark_them() {
        let listed = file("listed", "4\n0\n\n2\n");
        assert_eq!(chosen(&listed, 5).unwrap(), [4, 0, 2]);
        assert!(chosen(&listed, 4).is_err(), "row 4 of 4");
        let marked = file("marked", "train\ntest\ntrain\n");
        assert_eq!(chosen(&format!("{marked}=train"), 3).unwrap(), [0, 2]);
        assert!(chosen(&format!("{marked}=train"), 4).is_err(), "a word for each row");
        assert!(chosen(&format!("{marked}=valid"), 3).is_err(), "no such word");
        assert!(chosen(&marked, 3).is_err(), "words are no numbers");
        assert_eq!(column_names(&marked, 3).unwrap(), ["train", "test", "train"]);
        assert!(column_names(&marked, 2).is_err());
        [listed, marked].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}
