//! Tables as files: `.npy`, `.csv`, and `.png` mosaics.

use crate::args::Output;
use crate::failure::Failure;
use crate::report::mosaic::{self, Scale};
use harmonium::Model;
use harmonium::model::{Completed, Observed};
use harmonium::run::{Overwrite, write_file};
use harmonium_data::Image;
use harmonium_data::frame::FilledRows;
use ndarray::{Array2, Axis};
use std::fmt::Write;
use std::path::Path;

/// What a file's ending asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Npy,
    Csv,
    Png,
}

impl Kind {
    /// By the ending; asked before the work is done, not after.
    pub(crate) fn of(path: &str) -> Result<Self, Failure> {
        let ending = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "npy" => Ok(Self::Npy),
            "csv" => Ok(Self::Csv),
            "png" => Ok(Self::Png),
            _ => Err(Failure::new(
                format!("`{path}` has no ending that says how to write it"),
                "end it in .npy, .csv or .png",
            )),
        }
    }
}

/// Fails early where a file is that must not be replaced, where a folder has its name, or where the
/// folder it goes into is missing: before the work, not after.
pub(crate) fn check_free(path: &str, force: bool) -> Result<(), Failure> {
    let file = Path::new(path);
    // A link that points nowhere is there, too.
    if !force && file.symlink_metadata().is_ok() {
        return Err(taken(path));
    }
    if file.is_dir() {
        return Err(Failure::new(
            format!("`{path}` is a folder"),
            "name the file that is to be written",
        ));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::new(
            format!("`{path}` cannot be written: there is no folder `{}`", folder.display()),
            "make the folder first, or choose another one",
        ));
    }
    Ok(())
}

/// Something is there that must not be replaced.
pub(crate) fn taken(path: &str) -> Failure {
    Failure::new(
        format!("`{path}` is there already"),
        "choose another name, or replace it with `--force`",
    )
}

/// Writes samples of a model: the table that it was trained on, pictures of the shape that it remembers without
/// labels, or numbers.
pub(crate) fn write_samples(
    output: &Output,
    model: &Model,
    values: &Array2<f64>,
) -> Result<(), Failure> {
    if let (Kind::Csv, Some(table)) = (Kind::of(&output.out)?, model.table(values.view())?) {
        return write_bytes(&output.out, table.to_csv().as_bytes(), output.force);
    }
    let picture = model.picture(values.ncols());
    if let (Kind::Png, Some((image, columns))) = (Kind::of(&output.out)?, picture) {
        let columns: Vec<usize> = columns.collect();
        let pixels = values.select(Axis(1), &columns);
        return write_values(&output.out, output.force, &pixels, Some(image));
    }
    write_values(&output.out, output.force, &in_units(model, values)?, None)
}

/// Writes probabilities of the visible units of a model under the names of the columns, where it was trained on a
/// table; otherwise as samples are written.
pub(crate) fn write_means(
    output: &Output,
    model: &Model,
    values: &Array2<f64>,
) -> Result<(), Failure> {
    match model.codebook() {
        Some(book) => {
            let (names, values) = (book.entry_names(), in_units(model, values)?);
            write_columns(&output.out, output.force, model, &values, &names)
        }
        None => write_samples(output, model, values),
    }
}

/// Numbers in the units of the table that a model was trained on.
fn in_units(model: &Model, values: &Array2<f64>) -> Result<Array2<f64>, Failure> {
    Ok(match model.codebook() {
        Some(book) => book.in_units(values.view())?,
        None => values.clone(),
    })
}

/// Writes rows whose missing cells were filled: the table itself, or as samples.
pub(crate) fn write_filled(
    output: &Output,
    model: &Model,
    rows: &Observed,
    values: &Array2<f64>,
) -> Result<(), Failure> {
    if let (Kind::Csv, Some(table)) = (Kind::of(&output.out)?, rows.filled(model, values.view())?) {
        return write_bytes(&output.out, table.to_csv().as_bytes(), output.force);
    }
    write_samples(output, model, values)
}

/// Writes how well completed values are known: their standard errors, or of a table what is known of each cell that
/// was filled.
pub(crate) fn write_errors(
    path: &str,
    force: bool,
    model: &Model,
    rows: &Observed,
    completed: &Completed,
) -> Result<(), Failure> {
    let Some(book) = model.codebook() else {
        return write_values(path, force, &completed.errors, None);
    };
    let (means, errors) = (completed.values.view(), completed.errors.view());
    if let (Kind::Csv, Some(frame)) = (Kind::of(path)?, &rows.frame) {
        let found = FilledRows { means, errors, draws: completed.draws.view() };
        let cells = book.filled_cells(frame, found)?;
        return write_bytes(path, cells.to_csv().as_bytes(), force);
    }
    let errors = book.errors_in_units(means, errors)?;
    write_columns(path, force, model, &errors, &book.entry_names())
}

/// Writes columns of numbers, under their names where the model was trained on a table with names.
pub(crate) fn write_columns(
    path: &str,
    force: bool,
    model: &Model,
    values: &Array2<f64>,
    names: &[String],
) -> Result<(), Failure> {
    if Kind::of(path)? != Kind::Csv || model.codebook().is_none() {
        return write_values(path, force, values, None);
    }
    let names: Vec<String> = names.iter().map(|name| cell(name)).collect();
    let text = format!("{}\n{}", names.join(","), csv(values));
    write_bytes(path, text.as_bytes(), force)
}

/// Writes values as the ending says.
pub(crate) fn write_values(
    path: &str,
    force: bool,
    values: &Array2<f64>,
    image: Option<Image>,
) -> Result<(), Failure> {
    let bytes = match Kind::of(path)? {
        Kind::Npy => npy(values),
        Kind::Csv => csv(values).into_bytes(),
        Kind::Png => png(values, image)?,
    };
    write_bytes(path, &bytes, force)
}

/// Writes a file, replacing one only by force.
pub(crate) fn write_bytes(path: &str, bytes: &[u8], force: bool) -> Result<(), Failure> {
    let overwrite = if force { Overwrite::Yes } else { Overwrite::No };
    Ok(write_file(path, bytes, overwrite)?)
}

/// NumPy's format, version 1.0: bytes for whole numbers that fit, else f64.
fn npy(values: &Array2<f64>) -> Vec<u8> {
    let fits = |x: &f64| *x >= 0.0 && *x <= 255.0 && x.fract() == 0.0;
    let small = values.iter().all(fits);
    let kind = if small { "|u1" } else { "<f8" };
    let (n, m) = values.dim();
    let mut header =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({n}, {m}), }}");
    // Magic, version and length take 10 bytes; the data starts at a multiple of 64.
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let length = u16::try_from(header.len()).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    if small {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=255")]
        bytes.extend(values.iter().map(|x| *x as u8));
    } else {
        bytes.extend(values.iter().flat_map(|x| x.to_le_bytes()));
    }
    bytes
}

/// A text as a cell of a table: in quotes where it could be taken for several.
pub(crate) fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r', ';', '\t']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

fn csv(values: &Array2<f64>) -> String {
    let mut text = String::new();
    for row in values.rows() {
        for (i, x) in row.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{x}", if i > 0 { "," } else { "" });
        }
        text.push('\n');
    }
    text
}

/// Writes pictures, `columns` of them in a row.
pub(crate) fn write_mosaic(
    path: &str,
    force: bool,
    tiles: &[Vec<f64>],
    image: Image,
    columns: usize,
) -> Result<(), Failure> {
    write_bytes(path, &tiled(tiles, image, columns)?, force)
}

/// Writes what rows of visible entries say of one modality: its table, its pictures, or its columns under their names; with
/// `top` the names of its largest columns with their values.
pub(crate) fn write_modality(
    output: &Output,
    model: &Model,
    (name, top): (&str, Option<usize>),
    values: &Array2<f64>,
) -> Result<(), Failure> {
    let own = model.only(values.view(), name)?;
    let (modality, kind) = (model.modality(name)?, Kind::of(&output.out)?);
    if let Some(top) = top {
        if kind != Kind::Csv {
            return Err(Failure::new(
                "`--top` writes names, which only a .csv file holds",
                "end `--out` in .csv",
            ));
        }
        let mut text = String::new();
        for row in own.rows() {
            let line: Vec<String> = modality
                .top(row, top)
                .into_iter()
                .map(|(name, value)| format!("{},{value:.4}", cell(&name)))
                .collect();
            text.push_str(&line.join(","));
            text.push('\n');
        }
        return write_bytes(&output.out, text.as_bytes(), output.force);
    }
    if let (Kind::Csv, Some(table)) = (kind, model.table_of(name, own.view())?) {
        return write_bytes(&output.out, table.to_csv().as_bytes(), output.force);
    }
    if kind == Kind::Csv && modality.names.len() == own.ncols() {
        let names: Vec<String> = modality.names.iter().map(|name| cell(name)).collect();
        let text = format!("{}\n{}", names.join(","), csv(&own));
        return write_bytes(&output.out, text.as_bytes(), output.force);
    }
    write_values(&output.out, output.force, &own, model.picture_of(name)?)
}

fn png(values: &Array2<f64>, image: Option<Image>) -> Result<Vec<u8>, Failure> {
    let tiles: Vec<Vec<f64>> = values.rows().into_iter().map(|row| row.to_vec()).collect();
    let (image, columns) = match image {
        Some(image) => (image, mosaic::square_columns(tiles.len(), image)),
        // Samples that are not pictures are lines of one picture.
        None => (mosaic::strip(values.ncols()), 1),
    };
    tiled(&tiles, image, columns)
}

fn tiled(tiles: &[Vec<f64>], image: Image, columns: usize) -> Result<Vec<u8>, Failure> {
    let values = tiles.iter().flatten();
    let (low, high) = values.fold((0.0_f64, 1.0_f64), |(l, h), x| (l.min(*x), h.max(*x)));
    let scale = if low < 0.0 || high > 1.0 { Scale::Range(low, high) } else { Scale::Unit };
    let side = image.height.max(image.width).max(1);
    let zoom = (56 / side).clamp(1, 8);
    mosaic::png(tiles, image, columns, scale, zoom)
        .map_err(|e| Failure::new(format!("cannot draw the mosaic: {e}"), "ask for fewer samples"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::cast_possible_truncation, reason = "tables are f32")]
    fn narrow(x: f64) -> f32 {
        x as f32
    }

    fn rows(values: Vec<f64>) -> Array2<f64> {
        Array2::from_shape_vec((values.len() / 3, 3), values).expect("rows of three")
    }

    #[test]
    fn numpy_reads_what_is_written() {
        for values in [vec![0.0, 1.0, 1.0, 0.0, 2.0, 255.0], vec![0.5, -1.0, 3.25, 0.0, 1e-9, 7.0]]
        {
            let loaded = harmonium_data::decode(
                &npy(&rows(values.clone())),
                None,
                &harmonium_data::Options::default(),
            );
            let table = loaded.expect("it is an npy file").table;
            assert_eq!((table.n_rows(), table.n_columns()), (2, 3));
            for (i, x) in values.iter().enumerate() {
                assert_eq!(f64::from(table.at(i / 3, i % 3)), f64::from(narrow(*x)));
            }
        }
    }

    #[test]
    fn text_has_a_line_per_row() {
        assert_eq!(csv(&rows(vec![1.0, 0.5, -2.0, 0.0, 1.0, 3.0])), "1,0.5,-2\n0,1,3\n");
    }

    #[test]
    fn endings_decide() {
        assert_eq!(Kind::of("a.NPY").ok(), Some(Kind::Npy));
        assert!(Kind::of("a").is_err() && Kind::of("a.xls").is_err());
    }
}
