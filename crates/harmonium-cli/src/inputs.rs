//! What every training reads besides its data: rows to validate with, read as the data was; and fingerprints of all of
//! it, by which a run that is resumed knows its inputs again.

use crate::failure::Failure;
use crate::load;
use crate::render::progress::Terminal;
use harmonium::progress::Listener;
use harmonium_data::{Labels, Opened, Reading, Remembered};
use toml::{Table, Value};

/// The fingerprints of inputs, under their names in `run.toml`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fingerprints(Vec<(&'static str, u64)>);

impl FromIterator<(&'static str, Option<u64>)> for Fingerprints {
    fn from_iter<I: IntoIterator<Item = (&'static str, Option<u64>)>>(all: I) -> Self {
        Self(all.into_iter().filter_map(|(key, hash)| Some((key, hash?))).collect())
    }
}

impl Fingerprints {
    /// As they are written.
    pub(crate) fn written(&self) -> Vec<(&'static str, String)> {
        self.0.iter().map(|(key, hash)| (*key, format!("{hash:016x}"))).collect()
    }

    /// Refuses inputs that are not those a run was started with.
    pub(crate) fn check_same(&self, provenance: &Table) -> Result<(), Failure> {
        for (key, found) in self.written() {
            let was = provenance.get(key).and_then(Value::as_str);
            if was.is_some_and(|was| was != found) {
                let what = match key {
                    "labels-hash" => "the labels are",
                    "valid-hash" => "the validation data is",
                    "valid-labels-hash" => "the labels of the validation data are",
                    "targets-hash" => "the targets are",
                    _ => "the data is",
                };
                return Err(Failure::new(
                    format!(
                        "{what} not what the run was started with: the fingerprint has changed"
                    ),
                    "put the old file back, or start another run",
                ));
            }
        }
        Ok(())
    }
}

/// Rows to validate with, from a file of their own.
#[derive(Debug)]
pub(crate) struct Validation {
    pub(crate) opened: Opened,
    /// Fingerprint of their file of labels.
    pub(crate) labels: Option<u64>,
}

impl Validation {
    /// Opens `spec` as the training data was read, with its classes numbered as there: those of the file `labels`, or its own.
    /// Where there are neither, the rows have none.
    pub(crate) fn open(
        spec: &str,
        labels: Option<&str>,
        (train, asked): (&Opened, &Reading),
        terminal: &mut Terminal,
    ) -> Result<Self, Failure> {
        let reading = Reading { variable: asked.variable.clone(), ..train.reading.clone() };
        let expected = train.dataset.n_columns();
        let (book, n_columns) = (train.dataset.book(), Some(expected));
        let remembered = Remembered { reading: &reading, book, n_columns };
        let asked = Reading { unknown: asked.unknown, ..Reading::default() };
        let mut opened = asked.open_as(remembered, spec)?;
        opened.about.notes.iter().for_each(|note| terminal.note(note));
        let found = opened.dataset.n_columns();
        if found != expected {
            return Err(Failure::new(
                format!("the validation data has {found} columns, the training data {expected}"),
                "both are read with the same flags",
            ));
        }
        let Some(known) = train.dataset.labels().map(Labels::class_names) else {
            opened.dataset = opened.dataset.without_labels();
            return Ok(Self { opened, labels: None });
        };
        let Some(path) = labels else {
            if let Some(own) = opened.dataset.labels() {
                let own = own.numbered_as(&known).map_err(|error| error.in_file(spec))?;
                opened.dataset = opened.dataset.with_labels(own)?;
            }
            return Ok(Self { opened, labels: None });
        };
        opened.dataset = load::with_labels(opened.dataset, path, Some(&known), terminal)?;
        let labels = opened.dataset.labels().map(Labels::fingerprint);
        Ok(Self { opened, labels })
    }
}
