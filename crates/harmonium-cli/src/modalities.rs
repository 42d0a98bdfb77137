//! From `NAME=DATA` to rows of several modalities.

use crate::args::data::DataArgs;
use crate::failure::Failure;
use crate::render::progress::Terminal;
use harmonium::progress::Listener;
use harmonium::{Dataset, Model};
use harmonium_data::{
    About, LabelColumn, Opened, Reading, Remembered, Source, Visible, check_name, matched,
};

/// A modality and its data, as they were typed.
pub(crate) fn named(text: &str) -> Result<(&str, &str), Failure> {
    let found =
        text.split_once('=').filter(|(name, data)| check_name(name).is_ok() && !data.is_empty());
    found.ok_or_else(|| {
        Failure::new(
            format!("`{text}` does not say whose data it is"),
            "write NAME=DATA; names have letters, digits, `-` and `_`",
        )
    })
}

/// What is learned together: the sources side by side, rows by their order or by a key.
pub(crate) fn sources(
    specs: &[String],
    reading: &DataArgs,
    (key, rows): (Option<&str>, Option<&str>),
    terminal: &mut Terminal,
) -> Result<Opened, Failure> {
    let mut opened = Vec::new();
    for text in specs {
        let (name, spec) = named(text)?;
        let (mut reading, visible) = reading.reading_of(name)?;
        if let Some(rows) = rows {
            reading.rows = Some(rows.to_owned());
        }
        if let Some(key) = key {
            let Ok(column) = key.parse::<LabelColumn>();
            reading.label_column = Some(column);
        }
        let visible = visible.map(|kind| kind_of(&kind)).transpose()?;
        if reading.binarize.is_none() {
            let binarize = harmonium::model::fitting_binarize(visible);
            reading.binarize = binarize.map(|b| b.to_string());
        }
        let own = reading.open(spec)?;
        own.about.notes.iter().for_each(|note| terminal.note(&format!("{name}: {note}")));
        opened.push((name.to_owned(), own, visible));
    }
    let mut about = None;
    let mut parts = Vec::new();
    for (name, own, visible) in opened {
        let Opened { dataset, about: of, reading, .. } = own;
        let keys = match key {
            Some(_) => keys(&name, &dataset)?,
            None => Vec::new(),
        };
        about = Some(match about.take() {
            None => of,
            Some(all) => joined(&all, &of),
        });
        parts.push((Source { name, data: dataset.without_labels(), reading, visible }, keys));
    }
    let sources = match key {
        Some(_) => matched(parts)?,
        None => parts.into_iter().map(|(source, _)| source).collect(),
    };
    let dataset = Dataset::join(sources)?;
    let about = about.ok_or_else(|| {
        Failure::new("no modality was given", "`--modality NAME=DATA`, at least twice")
    })?;
    let (reading, unused_labels, frame) = (Reading::default(), None, None);
    Ok(Opened { dataset, about, reading, unused_labels, frame })
}

/// What is said of two sources together.
fn joined(a: &About, b: &About) -> About {
    let mut all = a.clone();
    if a.name != b.name {
        all.name = format!("{}+{}", a.name, b.name);
    }
    all.content_hash = a.content_hash.rotate_left(17) ^ b.content_hash;
    all.column_names = None;
    all
}

/// The key of each row of a source.
fn keys(name: &str, data: &Dataset) -> Result<Vec<String>, Failure> {
    let labels = data.labels().ok_or_else(|| {
        Failure::new(
            format!("the data of `{name}` has no such key column"),
            "`--key` names a column that every source has",
        )
    })?;
    let names = labels.class_names();
    Ok(labels.values().iter().map(|&class| names[class as usize].clone()).collect())
}

/// The kind of units that a word means.
fn kind_of(word: &str) -> Result<Visible, Failure> {
    match word {
        "binary" => Ok(Visible::Binary),
        "spin" => Ok(Visible::Spin),
        "gaussian" => Ok(Visible::Gaussian),
        "categorical" => Ok(Visible::Categorical),
        _ => Err(Failure::new(
            format!("there are no units called `{word}` for a modality"),
            "kinds are binary, spin, gaussian and categorical",
        )),
    }
}

/// Rows of some modalities of a model, each read as it was when it was learned.
pub(crate) fn given(
    model: &Model,
    specs: &[String],
    reading: &DataArgs,
    terminal: &mut Terminal,
) -> Result<Dataset, Failure> {
    let mut parts = Vec::new();
    for text in specs {
        let (name, spec) = named(text)?;
        let modality = model.modality(name)?;
        let (reading, _) = reading.reading_of(name)?;
        let remembered = Remembered {
            reading: &modality.reading,
            book: modality.codebook.as_ref(),
            n_columns: Some(modality.columns.len()),
        };
        let opened = reading.open_as(remembered, spec)?;
        opened.about.notes.iter().for_each(|note| terminal.note(&format!("{name}: {note}")));
        parts.push((name.to_owned(), opened.dataset.without_labels()));
    }
    Ok(model.join(parts)?)
}
