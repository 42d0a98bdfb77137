//! What the columns of a table were taken for, in lines.

use harmonium_data::frame::{Code, Codebook, Coded, Curve};
use std::fmt::Write;

/// A line for each column: its name, its kind, what was seen.
pub(crate) fn text(book: &Codebook, n_rows: usize) -> String {
    let names = book.columns.iter().map(|c| &c.name).chain(book.left_out.iter().map(|c| &c.name));
    let width = names.map(|n| n.chars().count()).max().unwrap_or(0).min(40);
    let line = |name: &str, kind: &str, why: &str| format!("\n  {name:width$}  {kind:11}  {why}");
    let (n, m) = (book.columns.len(), book.left_out.len());
    let mut text = format!("a table of {n_rows} rows: {n} columns are learned");
    if m > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, ", {m} left out");
    }
    for column in &book.columns {
        text.push_str(&line(&column.name, &column.kind.to_string(), &seen(column)));
    }
    for column in &book.left_out {
        text.push_str(&line(&column.name, "left out", &column.why));
    }
    text.push_str("\n  another kind: `--kind NAME=KIND`");
    text
}

/// What was seen in a column.
fn seen(column: &Coded) -> String {
    let mut text = column.why.clone();
    match &column.code {
        Code::Number { curve: Curve::Linear, center, scale, .. } => {
            let _ = write!(text, ", mean {center:.4}, standard deviation {scale:.4}");
        }
        Code::Number { curve, .. } => {
            let _ = write!(text, ", learned as {curve} (`gaussian:linear` would not)");
        }
        _ => {}
    }
    match column.n_missing {
        0 => text,
        n => format!("{text}; {n} missing"),
    }
}
