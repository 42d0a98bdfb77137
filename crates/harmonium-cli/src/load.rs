//! From names to data and models.

use crate::args::KnownArgs;
use crate::args::data::DataArgs;
use crate::failure::Failure;
use crate::render::progress::Terminal;
use crate::{modalities, render};
use harmonium::model::Observed;
use harmonium::progress::Listener;
use harmonium::schema::Schema;
use harmonium::{Dataset, Model};
use harmonium_data::{Hide, Image, Opened, Options, Reading, Remembered, open, open_labels_of};
use ndarray::Array2;
use std::path::Path;

/// Opens a model by its name and says on stderr what should be known about it.
pub(crate) fn model(spec: &str, terminal: &mut Terminal) -> Result<Model, Failure> {
    Ok(Model::open(spec, terminal)?)
}

/// Opens data, and says on stderr what was guessed: of a table, what each column was taken for.
pub(crate) fn data(
    spec: &str,
    reading: &Reading,
    terminal: &mut Terminal,
) -> Result<Opened, Failure> {
    let opened = reading.open(spec)?;
    opened.about.notes.iter().for_each(|note| terminal.note(note));
    if let Some(book) = opened.dataset.book() {
        terminal.note(&render::columns::text(book, opened.dataset.n_rows()));
    }
    Ok(opened)
}

/// What becomes of the labels of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Labelling {
    /// They are left out.
    Without,
    /// They are used where the data is read with them, as the model numbers them.
    AsRead,
    /// They are used wherever the data holds some.
    Whatever,
}

/// Rows for a model: what is asked about.
pub(crate) struct Asked<'a> {
    /// The data; nothing where single values say all that is known.
    pub(crate) data: Option<&'a str>,
    /// The same as `--given` says it: one source, or one for each modality.
    pub(crate) given: &'a [String],
    pub(crate) reading: &'a DataArgs,
    pub(crate) labelling: Labelling,
    /// A file of labels.
    pub(crate) labels: Option<&'a str>,
    /// A file that says which cells count.
    pub(crate) mask: Option<&'a str>,
    /// Values of all rows.
    pub(crate) known: &'a KnownArgs,
}

/// Opens rows for a model, whose own settings hold where none are given.
pub(crate) fn rows(
    model: &Model,
    asked: &Asked<'_>,
    terminal: &mut Terminal,
) -> Result<Observed, Failure> {
    let known = asked.known.values();
    if !model.modalities().is_empty() && !asked.given.is_empty() {
        let data = modalities::given(model, asked.given, asked.reading, terminal)?;
        let rows = masked(model, Observed::of(data), asked.mask)?;
        return Ok(rows.with_values(model, &known)?);
    }
    if let [first, second, ..] = asked.given {
        return Err(Failure::new(
            format!("`{first}` and `{second}` are both given"),
            "only a model of several modalities takes more than one source",
        ));
    }
    let Some(spec) = asked.data.or(asked.given.first().map(String::as_str)) else {
        if known.is_empty() {
            return Err(Failure::new(
                "no data was given",
                "name a file, or say what is known with `--where COLUMN=VALUE`",
            ));
        }
        return Ok(model.know(&known)?);
    };
    let opened = opened_for(model, spec, asked.reading, terminal)?;
    let frame = opened.frame.clone();
    let data = labelled(model, opened, spec, asked, terminal)?;
    let rows = masked(model, Observed { data, frame }, asked.mask)?;
    Ok(rows.with_values(model, &known)?)
}

/// The rows without a part of their pictures, or without what a mask marks 0.
pub(crate) fn hidden(model: &Model, rows: Observed, part: &str) -> Result<Observed, Failure> {
    let observed = match part.parse::<Hide>() {
        Ok(hide) => hide.observed(image_of(model, &rows.data)?)?,
        Err(_) if Path::new(part).is_file() => return masked(model, rows, Some(part)),
        Err(error) => return Err(error.into()),
    };
    Ok(rows.with_mask(model, observed.view(), None)?)
}

/// The shape of the pictures of data.
pub(crate) fn image_of(model: &Model, data: &Dataset) -> Result<Image, Failure> {
    let known = data.table().image().or_else(|| model.about.data.image(data.n_columns()));
    known.ok_or_else(|| {
        Failure::new(
            format!("rows of {} values are not known to be pictures", data.n_columns()),
            "say their shape with `--image HxW`, or hide cells with a mask: `--hide FILE`",
        )
    })
}

/// The rows without what a mask says was not observed.
fn masked(model: &Model, rows: Observed, mask: Option<&str>) -> Result<Observed, Failure> {
    let Some(path) = mask else { return Ok(rows) };
    let (observed, names) = open_mask(path)?;
    let names = names.as_deref().filter(|_| rows.frame.is_some());
    Ok(rows.with_mask(model, observed.view(), names)?)
}

/// Opens data for a model, whose own settings hold where none are given, without labels.
pub(crate) fn data_for(
    model: &Model,
    spec: &str,
    reading: &DataArgs,
    terminal: &mut Terminal,
) -> Result<Dataset, Failure> {
    Ok(opened_for(model, spec, reading, terminal)?.dataset.without_labels())
}

/// The data with the class of each row, as the model numbers it: from a file of labels if one is given,
/// else from the data where its labels are used. Said are the labels that are left out.
fn labelled(
    model: &Model,
    opened: Opened,
    spec: &str,
    asked: &Asked<'_>,
    terminal: &mut Terminal,
) -> Result<Dataset, Failure> {
    let classes = &model.about.data.classes;
    if asked.labelling == Labelling::Without {
        return Ok(opened.dataset.without_labels());
    }
    if let Some(path) = asked.labels {
        return with_labels(opened.dataset, path, Some(classes), terminal);
    }
    if asked.labelling == Labelling::Whatever {
        let Some(labels) = opened.labels().filter(|_| !opened.reading.no_labels) else {
            return Ok(opened.dataset);
        };
        let labels = labels.numbered_as(&model.class_names()?).map_err(|e| e.in_file(spec))?;
        return Ok(opened.dataset.with_labels(labels)?);
    }
    let source = opened.label_source();
    let Some(labels) = opened.dataset.labels() else { return Ok(opened.dataset) };
    if classes.is_empty() {
        terminal
            .note(&format!("the model has learned no labels: those from {source} are left out"));
        return Ok(opened.dataset.without_labels());
    }
    let labels = labels.numbered_as(classes).map_err(|error| error.in_file(spec))?;
    terminal.note(&format!("each row is read with its label, from {source}"));
    Ok(opened.dataset.with_labels(labels)?)
}

fn opened_for(
    model: &Model,
    spec: &str,
    reading: &DataArgs,
    terminal: &mut Terminal,
) -> Result<Opened, Failure> {
    let opened = reading.reading()?.open_as(remembered(model), spec)?;
    opened.about.notes.iter().for_each(|note| terminal.note(note));
    Ok(opened)
}

/// How the data that a model was trained on was read.
pub(crate) fn remembered(model: &Model) -> Remembered<'_> {
    let memory = &model.about.data;
    let n_columns = memory.schema.as_ref().map(Schema::n_columns);
    Remembered { reading: &memory.reading, book: memory.codebook.as_ref(), n_columns }
}

/// The same data with the class of each row. `known` are the classes a model was trained with; without
/// it those that occur are taken, in order.
pub(crate) fn with_labels(
    data: Dataset,
    path: &str,
    known: Option<&[String]>,
    terminal: &mut Terminal,
) -> Result<Dataset, Failure> {
    let (labels, note) = open_labels_of(path, &Options::default(), data.n_rows())?;
    note.iter().for_each(|note| terminal.note(note));
    let labels = match known {
        Some(known) => labels.numbered_as(known).map_err(|error| error.in_file(path))?,
        None => labels.compacted(),
    };
    Ok(data.with_labels(labels)?)
}

/// Opens a mask, with the names of its columns if it has any: 1 is observed; one row holds for all.
fn open_mask(path: &str) -> Result<(Array2<bool>, Option<Vec<String>>), Failure> {
    let loaded = open(path, &Options::default())?;
    let table = loaded.table;
    let (n, m) = (table.n_rows(), table.n_columns());
    let cells = (0..n).flat_map(|row| (0..m).map(move |column| (row, column)));
    if let Some((row, column)) =
        cells.into_iter().find(|&(r, c)| ![0.0, 1.0].contains(&table.at(r, c)))
    {
        return Err(Failure::new(
            format!("the mask holds {} (row {row}, column {column})", table.at(row, column)),
            "a mask holds 1 for observed and 0 for missing",
        ));
    }
    let observed = Array2::from_shape_fn((n, m), |(row, column)| table.at(row, column) == 1.0);
    Ok((observed, loaded.about.column_names))
}
