//! svmlight and libsvm: `label index:value index:value …`, one sample per line.
//!
//! Indices count from 1, unless an index 0 occurs. What is not listed is zero.

use super::lines::{Lines, excerpt};
use super::rows::{Facts, RowSink};
use super::sparse::check_dense;
use crate::Error;
use std::io::BufRead;

const FORMAT: &str = "svmlight";

/// Whether the first lines look like this format.
pub(crate) fn recognise(head: &[u8]) -> bool {
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && line[0] != b'#').unwrap_or_default();
    let mut tokens = tokens(first);
    let label = tokens.next().unwrap_or_default();
    let mut tokens = tokens.peekable();
    // The last token of a head may be cut off, so the first ones decide.
    !label.contains(&b':')
        && std::str::from_utf8(label).is_ok_and(|l| l.parse::<f64>().is_ok())
        && tokens.peek().is_some()
        && tokens.take(8).all(|t| t.starts_with(b"qid:") || pair(t).is_some())
}

fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let data = line.split(|&b| b == b'#').next().unwrap_or_default();
    data.split(u8::is_ascii_whitespace).filter(|t| !t.is_empty())
}

fn pair(token: &[u8]) -> Option<(u32, f32)> {
    let (index, value) = std::str::from_utf8(token).ok()?.split_once(':')?;
    Some((index.parse().ok()?, value.parse().ok()?))
}

/// The lines, as listed.
#[derive(Default)]
struct Listed {
    /// The labels of all lines in one text: a string for each would cost ten times a short line.
    labels: String,
    entries: Vec<(u32, f32)>,
    /// Where the label and the entries of each line end.
    ends: Vec<(usize, usize)>,
}

/// Reads everything, since the last line may hold the highest index. The label that starts each
/// line is the label of the row, unless the options name a column; `columns` may reach beyond
/// the highest index, where all entries are zero.
pub(crate) fn read(reader: &mut dyn BufRead, rows: &mut RowSink) -> Result<Facts, Error> {
    let listed = list(reader)?;
    let zero_based = listed.entries.iter().any(|(i, _)| *i == 0);
    let first = u32::from(!zero_based);
    let highest = listed.entries.iter().map(|(i, _)| (i - first) as usize + 1).max().unwrap_or(0);
    let asked = rows.options().columns.as_ref().map_or(0, |r| r.end);
    let n_columns = if asked == usize::MAX { highest } else { highest.max(asked) };
    let n_rows = listed.ends.len();
    if n_rows == 0 || n_columns == 0 {
        return Err(Error::Empty { n_rows, n_columns });
    }
    check_dense(n_rows as u64, n_columns as u64, listed.entries.len() as u64)?;
    let use_labels = rows.options().label_column.is_none() && !rows.options().transpose;
    let mut values = vec![0.0; n_columns];
    let mut start = (0, 0);
    for &end in &listed.ends {
        let (label, entries) = (&listed.labels[start.0..end.0], &listed.entries[start.1..end.1]);
        for (i, x) in entries {
            values[(i - first) as usize] = *x;
        }
        rows.push(&values, use_labels.then_some(label))?;
        for (i, _) in entries {
            values[(i - first) as usize] = 0.0;
        }
        start = end;
    }
    let notes = if zero_based { vec!["indices count from 0".to_owned()] } else { Vec::new() };
    Ok(Facts { notes, ..Facts::default() })
}

fn list(reader: &mut dyn BufRead) -> Result<Listed, Error> {
    let mut listed = Listed::default();
    let mut lines = Lines::new(reader, b'#');
    while let Some((line, text)) = lines.next()? {
        let damaged = |reason: String| Error::Damaged {
            format: FORMAT,
            reason: format!("line {line}: {reason}"),
        };
        let mut tokens = tokens(text);
        let label = tokens.next().unwrap_or_default();
        if label.contains(&b':') {
            return Err(damaged(format!("`{}` where the label should be", excerpt(label))));
        }
        let start = listed.entries.len();
        for token in tokens.filter(|t| !t.starts_with(b"qid:")) {
            let entry = pair(token)
                .ok_or_else(|| damaged(format!("`{}` is not `index:value`", excerpt(token))))?;
            listed.entries.push(entry);
        }
        listed.entries[start..].sort_by_key(|(i, _)| *i);
        if let Some(w) = listed.entries[start..].windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(damaged(format!("index {} occurs twice", w[0].0)));
        }
        listed.labels.push_str(&String::from_utf8_lossy(label));
        listed.ends.push((listed.labels.len(), listed.entries.len()));
        // The width is known at the end, and is 1 at least.
        check_dense(listed.ends.len() as u64, 1, listed.entries.len() as u64)?;
    }
    Ok(listed)
}
