//! MATLAB files of version 5: dense and sparse arrays, cells and structs.
//!
//! A cell array of equal pictures becomes one row per cell. If it has several rows, each is a
//! class (the layout of the Binary Alphadigits): samples come class by class and the row of the
//! cell is the label. Pixels are read as one sees the picture, row by row.

mod element;

use super::array::{Array, Order, image_of};
use super::rows::{Facts, RowSink};
use super::source::{Budget, fill};
use crate::Error;
use crate::error::brief;
use element::{Blocks, Content, Matrix, Parser};
use std::io::BufRead;

const FORMAT: &str = ".mat";
/// Most arrays that an error lists.
const MOST_TOLD: usize = 1000;

/// Whether a file starts like this format.
pub(crate) fn recognise(head: &[u8]) -> bool {
    head.starts_with(b"MATLAB")
        || matches!(head.get(124..128), Some([0, 1, b'I', b'M'] | [1, 0, b'M', b'I']))
}

pub(super) fn damaged(reason: impl Into<String>) -> Error {
    Error::Damaged { format: FORMAT, reason: reason.into() }
}

/// Reads the variable that the options name, or the only one that is a table.
pub(crate) fn read(reader: &mut dyn BufRead, rows: &mut RowSink) -> Result<Facts, Error> {
    with_variable(reader, rows.options().variable.clone().as_deref(), is_table, |matrix| {
        push(matrix, rows)
    })
}

/// Reads labels: numbers, or a cell array of words; `None` if they should be read as a table.
pub(crate) fn read_words(
    reader: &mut dyn BufRead,
    variable: Option<&str>,
) -> Result<Option<Vec<String>>, Error> {
    let may_be_labels = |matrix: &Matrix| is_table(matrix) || words(matrix).is_some();
    with_variable(reader, variable, may_be_labels, |matrix| Ok(words(matrix)))
}

fn with_variable<T>(
    mut reader: &mut dyn BufRead,
    variable: Option<&str>,
    wanted: impl Fn(&Matrix) -> bool,
    mut then: impl FnMut(&Matrix) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut header = Vec::new();
    if fill(&mut reader, 128, &mut header)? < 128 {
        return Err(damaged("the header ends early"));
    }
    let endian = element::endian_of(&header)?;
    let (mut source, mut blocks) = (Blocks::new(reader, endian), Vec::new());
    while let Some(block) = source.next()? {
        blocks.push(block);
    }
    let mut parser = Parser::new(endian, source.budget());
    let parsed = blocks.iter().map(|block| parser.matrix(block, 0));
    let matrices = parsed.collect::<Result<Vec<_>, _>>()?;
    let mut found = Vec::new();
    for matrix in &matrices {
        list(matrix, &matrix.name, &mut found, &mut parser.budget)?;
    }
    // Names are told, not copied by the million.
    let told = || found.iter().take(MOST_TOLD);
    let available = || told().map(|(path, m)| format!("`{}` {}", brief(path), m.shape())).collect();
    let asked = || variable.map(str::to_owned);
    let chosen = if let Some(name) = variable {
        found.iter().find(|(path, m)| path == name && wanted(m))
    } else {
        let mut tables = found.iter().filter(|(_, m)| wanted(m));
        tables.next().filter(|_| tables.next().is_none())
    };
    let (_, matrix) =
        chosen.ok_or_else(|| Error::Variable { asked: asked(), available: available() })?;
    then(matrix)
}

/// Every array with the path that names it, structs walked through.
fn list<'m, 'b>(
    matrix: &'m Matrix<'b>,
    path: &str,
    found: &mut Vec<(String, &'m Matrix<'b>)>,
    budget: &mut Budget,
) -> Result<(), Error> {
    if let Content::Fields(fields) = &matrix.content {
        for (name, field) in fields {
            list(field, &format!("{path}.{name}"), found, budget)?;
        }
    } else {
        budget.spend(path.len() as u64)?;
        found.push((path.to_owned(), matrix));
    }
    Ok(())
}

fn is_table(matrix: &Matrix) -> bool {
    match &matrix.content {
        Content::Numbers { .. } => matrix.n_values() != Some(0),
        Content::Cells(cells) => {
            let number = |m: &Matrix| matches!(m.content, Content::Numbers { .. });
            cells.iter().all(number) && cells.iter().any(|m| m.n_values() != Some(0))
        }
        _ => false,
    }
}

fn words(matrix: &Matrix) -> Option<Vec<String>> {
    let Content::Cells(cells) = &matrix.content else { return None };
    let text = |m: &Matrix| match &m.content {
        Content::Text(text) => Some(text.clone()),
        _ => None,
    };
    cells.iter().map(text).collect()
}

fn push(matrix: &Matrix, rows: &mut RowSink) -> Result<Facts, Error> {
    match &matrix.content {
        Content::Cells(cells) => push_cells(matrix, cells, rows),
        _ => match array(matrix) {
            Some(array) => array.push_rows(rows),
            None => Err(damaged("the variable is not an array of numbers")),
        },
    }
}

fn array<'m>(matrix: &'m Matrix) -> Option<Array<'m>> {
    let Content::Numbers { kind, endian, bytes } = &matrix.content else { return None };
    let (kind, endian, dims) = (*kind, *endian, matrix.dims.clone());
    Some(Array { kind, endian, order: Order::ColumnMajor, dims, bytes })
}

fn push_cells(matrix: &Matrix, cells: &[Matrix], rows: &mut RowSink) -> Result<Facts, Error> {
    let n_classes = usize::try_from(matrix.dims[0]).unwrap_or(usize::MAX).max(1);
    let labelled = n_classes > 1 && cells.len() > n_classes;
    let full = |m: &&Matrix| m.n_values() != Some(0);
    let dims = cells.iter().find(full).map(|m| m.dims.clone()).unwrap_or_default();
    let mut n_empty = 0;
    for class in 0..n_classes.min(cells.len()) {
        for cell in cells[class..].iter().step_by(n_classes) {
            if !full(&cell) {
                n_empty += 1;
                continue;
            }
            let array = array(cell).filter(|a| a.dims == dims).ok_or_else(|| {
                damaged(format!("a cell of {} among cells of {dims:?}", cell.shape()))
            })?;
            let label = labelled.then(|| class.to_string());
            rows.push(&as_seen(&array), label.as_deref())?;
        }
    }
    let notes = match n_empty {
        0 => Vec::new(),
        n => vec![format!("{n} empty cells were left out")],
    };
    Ok(Facts { image: image_of(&dims), notes, ..Facts::default() })
}

/// The values of a picture stored column by column, row by row.
fn as_seen(array: &Array) -> Vec<f32> {
    let height = usize::try_from(array.dims[0]).unwrap_or(usize::MAX).max(1);
    let n = array.bytes.len() / array.kind.size();
    let width = n / height;
    let place = |i: usize| (i % width) * height + i / width;
    (0..n).map(|i| array.at(place(i))).collect()
}
