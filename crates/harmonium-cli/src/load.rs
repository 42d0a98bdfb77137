//! From names to data and models.

use crate::args::data::DataArgs;
use crate::failure::Failure;
use harmonium::machine::Machine;
use harmonium::run::{Model, Stored, UaiModel, load_uai};
use harmonium_data::{
    About, Binarize, Dataset, Format, Image, Options, Summary, Table, open, open_dataset,
    open_labels,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// Data as a machine will see it, and how it was read.
pub(crate) struct Input {
    pub(crate) dataset: Dataset,
    pub(crate) about: About,
    /// The settings that read it, the automatic ones filled in.
    pub(crate) reading: DataArgs,
}

/// What a model remembers of the data it was trained on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Remembered {
    /// How it was read.
    pub(crate) reading: DataArgs,
    /// Height and width of a sample, if it is a picture.
    pub(crate) image: Option<(usize, usize)>,
    /// Number of samples.
    pub(crate) rows: usize,
    /// Fingerprint of the content.
    pub(crate) hash: String,
    /// Mean of each column.
    pub(crate) means: Vec<f64>,
    /// Names of the classes, if labels were learned.
    pub(crate) classes: Vec<String>,
}

impl Remembered {
    pub(crate) fn of(input: &Input, classes: &[String]) -> Self {
        let mut reading = input.reading.clone();
        // Another file has its own variables.
        reading.variable = None;
        Self {
            reading,
            image: input.dataset.table().image().map(|i| (i.height, i.width)),
            rows: input.dataset.n_rows(),
            hash: format!("{:016x}", input.about.content_hash),
            means: [input.dataset.column_means(), input.dataset.class_shares()].concat(),
            classes: classes.to_vec(),
        }
    }

    /// What a model file says, or nothing where it says nothing of use.
    pub(crate) fn from_json(value: &Value) -> Self {
        serde_json::from_value(value.clone()).unwrap_or_default()
    }

    /// The picture in each sample of `n` values: the one remembered, or a square.
    pub(crate) fn image(&self, n: usize) -> Option<Image> {
        let square = Some((n.isqrt(), n.isqrt())).filter(|s| s.0 * s.1 == n && n > 3);
        let (height, width) = self.image.filter(|s| s.0 * s.1 == n).or(square)?;
        Some(Image { height, width })
    }
}

/// Whether a path names a UAI file.
pub(crate) fn is_uai(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|e| e.eq_ignore_ascii_case("uai"))
}

/// Opens a model (a built-in machine, a UAI file, a model file or a run) and says on stderr what
/// should be known about it.
pub(crate) fn model(path: &str) -> Result<(Model, Remembered), Failure> {
    let plain = |machine| Model { machine, about: harmonium::run::About::default() };
    if let Some(machine) = crate::builtin::machine(path) {
        return Ok((plain(machine?), Remembered::default()));
    }
    if is_uai(path) {
        let UaiModel { machine, variables } = load_uai(path)?;
        if !variables.iter().flatten().is_sorted() {
            let visible: Vec<String> = variables[0].iter().map(usize::to_string).collect();
            note_on_stderr(&format!("the visible units are variables {}", visible.join(" ")));
        }
        return Ok((plain(machine), Remembered::default()));
    }
    let located = Model::locate(path)?;
    if let Some(note) = located.note {
        note_on_stderr(&note);
    }
    let model = Model::load(&located.path)?;
    let remembered = Remembered::from_json(&model.about.data);
    Ok((model, remembered))
}

/// The same for commands that take deep belief networks too.
pub(crate) fn stored(path: &str) -> Result<(Stored, Remembered), Failure> {
    if crate::builtin::machine(path).is_some() || is_uai(path) {
        let (model, remembered) = model(path)?;
        return Ok((Stored::Machine(Box::new(model)), remembered));
    }
    let located = Model::locate(path)?;
    if let Some(note) = located.note {
        note_on_stderr(&note);
    }
    let stored = Stored::load(&located.path)?;
    let about = match &stored {
        Stored::Machine(model) => &model.about,
        Stored::Dbn(model) => &model.about,
    };
    let remembered = Remembered::from_json(&about.data);
    Ok((stored, remembered))
}

/// Opens data as the flags say; without `--binarize`, as what it looks like.
pub(crate) fn data(spec: &str, reading: &DataArgs) -> Result<Input, Failure> {
    let options = reading.options()?;
    let asked = reading.binarize()?;
    let mut reading = reading.clone();
    if let Some(threshold @ Binarize::Threshold(_)) = asked {
        let loaded = open_dataset(spec, &options, threshold)?;
        tell_notes(&loaded.about);
        // Images have a fixed scale; elsewhere the scale that was found has to be remembered.
        if !matches!(loaded.about.format, Format::Idx | Format::Png) && reading.full_scale.is_none()
        {
            reading.full_scale = scale_of(&open(spec, &options)?.table);
        }
        return Ok(Input { dataset: loaded.dataset, about: loaded.about, reading });
    }
    let loaded = open(spec, &options)?;
    tell_notes(&loaded.about);
    let binarize = match asked {
        Some(binarize) => binarize,
        None => Summary::of(&loaded.table).binarize,
    };
    reading.binarize = Some(binarize.to_string());
    if binarize == Binarize::Sample && reading.full_scale.is_none() {
        reading.full_scale = scale_of(&loaded.table);
    }
    let dataset = Dataset::new(loaded.table, binarize)?;
    Ok(Input { dataset, about: loaded.about, reading })
}

/// The same data with the label of each row. `known` are the classes a model was trained with;
/// without it those that occur are taken, in order.
pub(crate) fn with_labels(
    mut input: Input,
    path: &str,
    known: Option<&[String]>,
) -> Result<(Input, Vec<String>), Failure> {
    let labels = open_labels(path, &Options::default())?;
    let labels = match known {
        Some(known) => labels.numbered_as(known).map_err(|error| error.in_file(path))?,
        None => labels.compacted(),
    };
    let names = labels.names().unwrap_or_default().to_vec();
    input.dataset = input.dataset.with_labels(labels)?;
    Ok((input, names))
}

/// Opens data for a model: its own settings hold where none are given.
pub(crate) fn data_for(
    spec: &str,
    reading: &DataArgs,
    remembered: &Remembered,
) -> Result<Input, Failure> {
    data(spec, &reading.or(&remembered.reading))
}

fn scale_of(table: &Table) -> Option<f32> {
    Some(table.full_scale()).filter(|s| *s != 1.0)
}

fn tell_notes(about: &About) {
    about.notes.iter().for_each(|note| note_on_stderr(note));
}

/// Says something that is no result and no error.
pub(crate) fn note_on_stderr(text: &str) {
    anstream::eprintln!("note: {text}");
}

/// The names of the visible layers in one line, for messages.
pub(crate) fn visible_names(machine: &Machine) -> String {
    let names = machine.visible_layers().into_iter().map(|l| machine.layer(l).name.clone());
    names.collect::<Vec<_>>().join(", ")
}
