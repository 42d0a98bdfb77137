//! From names to data and models.

use crate::args::data::DataArgs;
use crate::failure::Failure;
use crate::render::progress::Terminal;
use harmonium::Model;
use harmonium::progress::Listener;
use harmonium_data::{Opened, Options, Reading, open_labels};

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

/// Opens data for a model, whose own settings hold where none are given; with a class for each row if
/// labels are given.
pub(crate) fn data_for(
    model: &Model,
    spec: &str,
    reading: &DataArgs,
    labels: Option<&str>,
    terminal: &mut Terminal,
) -> Result<Opened, Failure> {
    let memory = &model.about.data;
    let mut opened = data(spec, &reading.reading()?.or(&memory.reading), terminal)?;
    if let Some(path) = labels {
        opened = with_labels(opened, path, Some(&memory.classes))?;
    }
    Ok(opened)
}

/// The same data with the class of each row. `known` are the classes a model was trained with; without
/// it those that occur are taken, in order.
pub(crate) fn with_labels(
    mut opened: Opened,
    path: &str,
    known: Option<&[String]>,
) -> Result<Opened, Failure> {
    let labels = open_labels(path, &Options::default())?;
    let labels = match known {
        Some(known) => labels.numbered_as(known).map_err(|error| error.in_file(path))?,
        None => labels.compacted(),
    };
    opened.dataset = opened.dataset.with_labels(labels)?;
    Ok(opened)
}
