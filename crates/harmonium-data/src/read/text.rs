//! Plain tables of numbers: commas, semicolons, tabs or blanks, with or without a header.
//!
//! The delimiter is the one that cuts the first lines into equally many cells. The first line is
//! a header if at least half of its cells are words where the second line has numbers, or if it
//! counts 0, 1, 2, … over eight columns or more, as data frames without names do. Empty cells,
//! `?`, `NA` and `NaN` are missing; lines that start with `#` are comments.

use super::cells::Cells;
use super::lines::{Lines, excerpt, number, without_mark};
use super::rows::{Facts, RowSink, is_missing};
use super::source::HEAD;
use crate::Error;
use crate::options::{Columns, LabelColumn, Options};
use std::io::BufRead;

/// Lines looked at to find the delimiter.
const LOOK_AT: usize = 32;
/// Fewer counting cells than this may well be data.
const MIN_COUNTING: usize = 8;

/// How lines are cut into cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    At(u8),
    /// At runs of blanks and tabs.
    Blanks,
}

/// How lines are cut, and whether each ends with a delimiter too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) cut: Cut,
    trailing: bool,
}

/// Finds out how the first lines are cut.
pub(crate) fn style_of(head: &[u8]) -> Style {
    let mut lines: Vec<&[u8]> = without_mark(head)
        .split(|&b| b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"))
        .collect();
    // The last line of a long file is cut off.
    if head.len() as u64 >= HEAD && lines.len() > 1 {
        lines.pop();
    }
    let first = &lines[..lines.len().min(LOOK_AT)];
    let count = |line: &[u8], d: u8| count_outside_quotes(line, d);
    let steady = |d: &&u8| {
        let n = first.first().map_or(0, |line| count(line, **d));
        n > 0 && first.iter().all(|line| count(line, **d) == n)
    };
    let present = |d: &&u8| first.iter().any(|line| count(line, **d) > 0);
    let candidates = [b',', b';', b'\t'];
    let found = candidates.iter().find(steady).or_else(|| candidates[..2].iter().find(present));
    match found {
        None => Style { cut: Cut::Blanks, trailing: false },
        Some(&d) => {
            // One row that ends so, and has other empty cells, lacks its last cell.
            let holes = |line: &&[u8]| line.windows(2).any(|pair| pair == [d, d]);
            let trailing = lines.iter().all(|line| line.ends_with(&[d]))
                && !(lines.len() == 1 && lines.iter().any(holes));
            Style { cut: Cut::At(d), trailing }
        }
    }
}

fn count_outside_quotes(line: &[u8], delimiter: u8) -> usize {
    let mut quoted = false;
    line.iter()
        .filter(|&&b| {
            quoted ^= b == b'"';
            b == delimiter && !quoted
        })
        .count()
}

/// Cells of one line after another.
pub(crate) struct Records<'a> {
    lines: Lines<'a>,
    style: Style,
}

impl<'a> Records<'a> {
    pub(crate) fn new(style: Style, reader: &'a mut dyn BufRead) -> Self {
        Self { lines: Lines::new(reader, b'#'), style }
    }

    /// Cuts the next line into cells and returns its number, from 1.
    pub(crate) fn next(&mut self, cells: &mut Cells) -> Result<Option<u64>, Error> {
        let next = match self.style.cut {
            Cut::At(b'\t') => self.lines.next_with_tabs(),
            _ => self.lines.next(),
        };
        let Some((number, line)) = next? else { return Ok(None) };
        match self.style.cut {
            Cut::Blanks => cells.cut_at_blanks(line),
            Cut::At(delimiter) => {
                cells.cut_at(line, delimiter);
                if self.style.trailing {
                    cells.drop_empty_end();
                }
            }
        }
        Ok(Some(number))
    }
}

/// Reads line by line. Cells outside the chosen columns need not be numbers.
pub(crate) fn read(
    head: &[u8],
    reader: &mut dyn BufRead,
    rows: &mut RowSink,
) -> Result<Facts, Error> {
    let mut records = Records::new(style_of(head), reader);
    let (mut first, mut next) = (Cells::default(), Cells::default());
    let Some(mut line) = records.next(&mut first)? else {
        return Err(Error::Empty { n_rows: 0, n_columns: 0 });
    };
    let mut next_line = records.next(&mut next)?;
    let names = || first.iter().map(|c| String::from_utf8_lossy(c).into_owned()).collect();
    // A column that is asked for by its name is one of a header.
    let by_name = matches!(rows.options().label_column, Some(LabelColumn::Name(_)));
    if by_name {
        rows.name_columns(&Vec::from_iter(names()))?;
    }
    let mut table = TextTable::new(rows.options(), first.len())?;
    let mut facts = Facts::default();
    if by_name || table.is_header(&first, next_line.map(|_| &next)) {
        facts.notes = header_notes(&first);
        facts.column_names = Some(names());
        let Some(n) = next_line else {
            return Err(Error::Empty { n_rows: 0, n_columns: first.len() });
        };
        line = n;
        std::mem::swap(&mut first, &mut next);
        next_line = records.next(&mut next)?;
    }
    table.push(line, &first, rows)?;
    while let Some(line) = next_line {
        table.push(line, &next, rows)?;
        next_line = records.next(&mut next)?;
    }
    Ok(facts)
}

/// Which cells matter, and a buffer for a row.
struct TextTable {
    n_columns: usize,
    /// `None` where cells of other columns than the chosen ones matter too.
    columns: Option<Columns>,
    values: Vec<f32>,
}

impl TextTable {
    fn new(options: &Options, n_columns: usize) -> Result<Self, Error> {
        let columns = Columns::of_text(options, n_columns)?;
        Ok(Self { n_columns, columns, values: Vec::new() })
    }

    fn label(&self) -> Option<usize> {
        self.columns.as_ref().and_then(|c| c.label)
    }

    fn is_header(&self, first: &Cells, second: Option<&Cells>) -> bool {
        let is_number = |r: &Cells, c: usize| r.get(c).is_some_and(|x| number(x).is_some());
        let with_numbers = (0..first.len())
            .filter(|&c| Some(c) != self.label() && second.is_none_or(|s| is_number(s, c)));
        let (mut n, mut n_words) = (0, 0);
        for column in with_numbers {
            n += 1;
            n_words += usize::from(!is_number(first, column));
        }
        (n_words > 0 && 2 * n_words >= n) || is_counting(first)
    }

    fn push(&mut self, line: u64, record: &Cells, rows: &mut RowSink) -> Result<(), Error> {
        if record.len() != self.n_columns {
            let (expected, found) = (self.n_columns, record.len());
            return Err(Error::Ragged { line, expected, found });
        }
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        for (column, cell) in record.iter().enumerate() {
            values.push(match number(cell) {
                Some(value) => value,
                None if !Columns::needs(self.columns.as_ref(), column) => f32::NAN,
                None => return Err(Error::NotANumber { line, column, cell: excerpt(cell) }),
            });
        }
        let label = self.label().and_then(|c| record.get(c)).map(String::from_utf8_lossy);
        rows.push(&values, label.as_deref())?;
        self.values = values;
        Ok(())
    }
}

/// 0, 1, 2, … or 1, 2, 3, …, perhaps after an empty first cell.
fn is_counting(record: &Cells) -> bool {
    let skip = usize::from(record.get(0).is_some_and(<[u8]>::is_empty));
    let cells: Option<Vec<usize>> =
        record.iter().skip(skip).map(|c| std::str::from_utf8(c).ok()?.parse().ok()).collect();
    cells.is_some_and(|cells| {
        cells.len() >= MIN_COUNTING
            && cells[0] <= 1
            && cells.windows(2).all(|w| w[1].checked_sub(w[0]) == Some(1))
    })
}

fn header_notes(header: &Cells) -> Vec<String> {
    let mut notes = Vec::new();
    let n_numbers = header.iter().filter(|c| number(c).is_some_and(|x| !x.is_nan())).count();
    if n_numbers > 0 && !is_counting(header) {
        let n_words = header.len() - n_numbers;
        let words: Vec<&[u8]> = header.iter().filter(|c| number(c).is_none()).collect();
        notes.push(format!(
            "the first line was taken as a header and not as data: {n_words} of its {} cells are not \
             numbers, such as `{}`",
            header.len(),
            excerpt(words.first().copied().unwrap_or_default()),
        ));
    }
    if is_counting(header) {
        notes.push("the first line counts the columns and was taken as a header".to_owned());
    }
    if header.get(0).is_some_and(<[u8]>::is_empty) && header.len() > 1 {
        notes.push(
            "the first column has no name: if it numbers the rows, use `--columns 1..`".to_owned(),
        );
    }
    notes
}

/// Labels from a text: one per line, or all in one line.
pub(crate) fn read_words(
    head: &[u8],
    reader: &mut dyn BufRead,
) -> Result<Option<Vec<String>>, Error> {
    let style = style_of(head);
    let mut words: Vec<String> = Vec::new();
    if style.cut == Cut::Blanks {
        let mut lines = Lines::new(reader, b'#');
        while let Some((_, line)) = lines.next()? {
            words.push(String::from_utf8_lossy(line).into_owned());
        }
    } else {
        let mut records = Records::new(style, reader);
        let mut record = Cells::default();
        while records.next(&mut record)?.is_some() {
            if record.len() != 1 && !words.is_empty() {
                return Ok(None);
            }
            words.extend(record.iter().map(|c| String::from_utf8_lossy(c).into_owned()));
        }
    }
    if let [one] = words.as_slice() {
        words = one.split_ascii_whitespace().map(str::to_owned).collect();
    }
    let is_word = |w: &String| number(w.as_bytes()).is_none() && !is_missing(w);
    if words.len() > 1 && is_word(&words[0]) && !words[1..].iter().any(is_word) {
        words.remove(0);
    }
    Ok(Some(words))
}
