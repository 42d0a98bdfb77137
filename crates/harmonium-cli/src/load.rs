//! From names to data and models.

use crate::args::data::DataArgs;
use crate::failure::Failure;
use crate::render::progress::Terminal;
use harmonium::progress::Listener;
use harmonium::schema::Schema;
use harmonium::{Dataset, Model};
use harmonium_data::{Opened, Options, Reading, open_labels_of};

/// Opens a model by its name and says on stderr what should be known about it.
pub(crate) fn model(spec: &str, terminal: &mut Terminal) -> Result<Model, Failure> {
    Ok(Model::open(spec, terminal)?)
}

/// Opens data, and says on stderr what was guessed.
pub(crate) fn data(
    spec: &str,
    reading: &Reading,
    terminal: &mut Terminal,
) -> Result<Opened, Failure> {
    let opened = reading.open(spec)?;
    opened.about.notes.iter().for_each(|note| terminal.note(note));
    Ok(opened)
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

/// The same with the class of each row, as the model numbers it: from a file of labels if one is given,
/// else from the data where its labels are used. Said are the labels that are left out.
pub(crate) fn labelled_data_for(
    model: &Model,
    spec: &str,
    reading: &DataArgs,
    labels: Option<&str>,
    terminal: &mut Terminal,
) -> Result<Dataset, Failure> {
    let opened = opened_for(model, spec, reading, terminal)?;
    let classes = &model.about.data.classes;
    if let Some(path) = labels {
        return with_labels(opened.dataset, path, Some(classes), terminal);
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

/// The same, where labels that the data holds are taken even if nobody asked for them.
pub(crate) fn data_with_known_labels(
    model: &Model,
    spec: &str,
    reading: &DataArgs,
    labels: Option<&str>,
    terminal: &mut Terminal,
) -> Result<Dataset, Failure> {
    if labels.is_some() {
        return labelled_data_for(model, spec, reading, labels, terminal);
    }
    let opened = opened_for(model, spec, reading, terminal)?;
    let Some(labels) = opened.labels().filter(|_| !opened.reading.no_labels) else {
        return Ok(opened.dataset);
    };
    let labels = labels.numbered_as(&model.class_names()?).map_err(|e| e.in_file(spec))?;
    Ok(opened.dataset.with_labels(labels)?)
}

fn opened_for(
    model: &Model,
    spec: &str,
    reading: &DataArgs,
    terminal: &mut Terminal,
) -> Result<Opened, Failure> {
    let memory = &model.about.data;
    let n_columns = memory.schema.as_ref().map(Schema::n_columns);
    let opened = reading.reading()?.open_as(&memory.reading, n_columns, spec)?;
    opened.about.notes.iter().for_each(|note| terminal.note(note));
    Ok(opened)
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
