//! ARFF, the format of Weka and Mulan: declared attributes, then dense or sparse rows.
//!
//! Nominal values that are numbers are those numbers; others are numbered from 0 as declared.
//! What a sparse row leaves out is 0, or the first value of a nominal attribute.

use super::lines::{Lines, excerpt, number};
use super::rows::{Facts, RowSink};
use super::sparse::check_dense;
use crate::Error;
use crate::options::Columns;
use std::collections::BTreeMap;
use std::io::BufRead;

const FORMAT: &str = "ARFF";
/// Values that a nominal attribute may list.
const MAX_VALUES: usize = 1 << 20;

/// Whether the first line that is not a comment declares a relation.
pub(crate) fn recognise(head: &[u8]) -> bool {
    let mut lines = head.split(|&b| b == b'\n').map(|l| super::lines::without_mark(l).trim_ascii());
    let first = lines.find(|line| !line.is_empty() && line[0] != b'%').unwrap_or_default();
    first.len() >= 9 && first[..9].eq_ignore_ascii_case(b"@relation")
}

fn damaged(line: u64, reason: impl std::fmt::Display) -> Error {
    Error::Damaged { format: FORMAT, reason: format!("line {line}: {reason}") }
}

/// A column as declared.
struct Attribute {
    name: String,
    values: Domain,
}

enum Domain {
    Numeric,
    Nominal {
        numbers: BTreeMap<String, f32>,
        first: String,
    },
    /// Text and dates: good for labels only.
    Words,
}

impl Attribute {
    /// What a sparse row leaves out.
    fn default(&self) -> (f32, &str) {
        match &self.values {
            Domain::Nominal { numbers, first } => {
                (numbers.get(first).copied().unwrap_or(0.0), first)
            }
            _ => (0.0, "0"),
        }
    }

    fn value(&self, text: &str) -> Option<f32> {
        if text == "?" {
            return Some(f32::NAN);
        }
        match &self.values {
            Domain::Numeric => number(text.as_bytes()),
            Domain::Nominal { numbers, .. } => numbers.get(text).copied(),
            Domain::Words => None,
        }
    }
}

/// Reads line by line. Attributes outside the chosen columns may hold anything.
pub(crate) fn read(reader: &mut dyn BufRead, rows: &mut RowSink) -> Result<Facts, Error> {
    let mut lines = Lines::new(reader, b'%');
    let attributes = declarations(&mut lines)?;
    let width = attributes.len();
    if width == 0 {
        return Err(Error::Empty { n_rows: 0, n_columns: 0 });
    }
    let names: Vec<String> = attributes.iter().map(|a| a.name.clone()).collect();
    rows.name_columns(&names)?;
    let columns = Columns::of_text(rows.options(), width)?;
    let label = columns.as_ref().and_then(|c| c.label);
    let (defaults, words): (Vec<f32>, Vec<&str>) =
        attributes.iter().map(Attribute::default).unzip();
    let mut n_stored = 0;
    while let Some((line, text)) = lines.next()? {
        let cells = cells_of(&String::from_utf8_lossy(text), width, line)?;
        n_stored += cells.len() as u64;
        check_dense(rows.n_rows() as u64 + 1, width as u64, n_stored)?;
        let mut values = defaults.clone();
        let mut class = label.map(|l| words[l].to_owned());
        for (column, cell) in cells {
            let attribute = attributes
                .get(column)
                .ok_or_else(|| damaged(line, format!("index {column} of {width} attributes")))?;
            values[column] = match attribute.value(&cell) {
                Some(value) => value,
                None if !Columns::needs(columns.as_ref(), column) => f32::NAN,
                None => {
                    let cell = excerpt(cell.as_bytes());
                    return Err(Error::NotANumber { line, column, cell });
                }
            };
            if label == Some(column) {
                class = Some(cell);
            }
        }
        rows.push(&values, class.as_deref())?;
    }
    Ok(Facts { column_names: Some(names), ..Facts::default() })
}

/// The cells of a row with their columns: all of them, or those that a sparse row lists.
fn cells_of(text: &str, width: usize, line: u64) -> Result<Vec<(usize, String)>, Error> {
    if let Some(inner) = text.strip_prefix('{') {
        return sparse_cells(inner, width, line);
    }
    let cells = cut(text, ',', line)?;
    if cells.len() != width {
        return Err(Error::Ragged { line, expected: width, found: cells.len() });
    }
    Ok(cells.into_iter().map(unquote).enumerate().collect())
}

/// The attributes, up to `@data`.
fn declarations(lines: &mut Lines) -> Result<Vec<Attribute>, Error> {
    let mut attributes = Vec::new();
    while let Some((line, text)) = lines.next()? {
        let text = String::from_utf8_lossy(text);
        let (keyword, rest) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
        match keyword.to_ascii_lowercase().as_str() {
            "@relation" => {}
            "@attribute" => attributes.push(attribute(rest.trim(), line)?),
            "@data" => return Ok(attributes),
            _ => {
                return Err(damaged(
                    line,
                    format!("`{}` is not a declaration", excerpt(keyword.as_bytes())),
                ));
            }
        }
    }
    Err(Error::Damaged { format: FORMAT, reason: "there is no @data line".into() })
}

fn attribute(text: &str, line: u64) -> Result<Attribute, Error> {
    let (name, kind) = leading_word(text);
    let kind = kind.trim();
    if let Some(inner) = kind.strip_prefix('{') {
        let inner =
            inner.rsplit_once('}').ok_or_else(|| damaged(line, "a list without its end"))?.0;
        let texts = cut(inner, ',', line)?;
        if texts.len() > MAX_VALUES {
            let n = texts.len();
            return Err(damaged(
                line,
                format!("a list of {n} values, at most {MAX_VALUES} are read"),
            ));
        }
        let texts: Vec<String> = texts.into_iter().map(unquote).collect();
        let numeric = texts.iter().all(|t| number(t.as_bytes()).is_some_and(|x| !x.is_nan()));
        let value = |(t, i): (&String, u32)| {
            let index = i as f32;
            (t.clone(), if numeric { number(t.as_bytes()).unwrap_or(index) } else { index })
        };
        let numbers: BTreeMap<String, f32> = texts.iter().zip(0..).map(value).collect();
        if numbers.len() < texts.len() {
            return Err(damaged(line, "a value is listed twice"));
        }
        let first = texts.first().cloned().unwrap_or_default();
        return Ok(Attribute { name, values: Domain::Nominal { numbers, first } });
    }
    let word = kind.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let values = match word.as_str() {
        "numeric" | "real" | "integer" => Domain::Numeric,
        "string" | "date" => Domain::Words,
        _ => return Err(damaged(line, format!("unknown type `{}`", excerpt(word.as_bytes())))),
    };
    Ok(Attribute { name, values })
}

/// A word, perhaps in quotes, and what follows it.
fn leading_word(text: &str) -> (String, &str) {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '\'' | '"'))
        && let Some((name, rest)) = text[1..].split_once(quote)
    {
        return (name.to_owned(), rest);
    }
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (name.to_owned(), rest)
}

/// `index value` pairs up to the closing brace, no index twice.
fn sparse_cells(inner: &str, width: usize, line: u64) -> Result<Vec<(usize, String)>, Error> {
    let inner =
        inner.strip_suffix('}').ok_or_else(|| damaged(line, "a sparse row without its end"))?;
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    let pair = |cell: &str| {
        let wrong =
            || damaged(line, format!("`{}` is not `index value`", excerpt(cell.as_bytes())));
        let (index, value) = cell.split_once(char::is_whitespace).ok_or_else(wrong)?;
        let value = unquote(value.trim());
        Ok((index.parse().map_err(|_| wrong())?, value))
    };
    let cells = cut(inner, ',', line)?;
    if cells.len() > width {
        let n = cells.len();
        return Err(damaged(line, format!("{n} entries for {width} attributes")));
    }
    let cells: Vec<(usize, String)> = cells.into_iter().map(pair).collect::<Result<_, Error>>()?;
    let mut indices: Vec<usize> = cells.iter().map(|(index, _)| *index).collect();
    indices.sort_unstable();
    match indices.windows(2).find(|w| w[0] == w[1]) {
        Some(twice) => Err(damaged(line, format!("index {} occurs twice", twice[0]))),
        None => Ok(cells),
    }
}

/// A cell without the quotes around it.
fn unquote(cell: &str) -> String {
    let quote = cell.chars().next().filter(|c| cell.len() > 1 && matches!(c, '\'' | '"'));
    match quote.and_then(|q| cell[1..].strip_suffix(q)) {
        Some(inner) => inner.replace("\\'", "'").replace("\\\"", "\""),
        None => cell.to_owned(),
    }
}

/// Cells between delimiters that are outside quotes.
fn cut(text: &str, delimiter: char, line: u64) -> Result<Vec<&str>, Error> {
    let (mut cells, mut start, mut quote, mut escaped) = (Vec::new(), 0, None, false);
    for (place, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), _) if q == c => quote = None,
            (None, '\'' | '"')
                if text[start..place].trim().is_empty() || text[start..place].ends_with(' ') =>
            {
                quote = Some(c);
            }
            (None, _) if c == delimiter => {
                cells.push(text[start..place].trim());
                start = place + c.len_utf8();
            }
            _ => {}
        }
    }
    if quote.is_some() {
        return Err(damaged(line, "a quote that is not closed"));
    }
    cells.push(text[start..].trim());
    Ok(cells)
}
