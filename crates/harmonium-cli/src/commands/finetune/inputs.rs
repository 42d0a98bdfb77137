//! Everything that the training of a net reads.

use super::settings::Asked;
use crate::failure::Failure;
use crate::inputs::{Fingerprints, Validation};
use crate::load;
use crate::plan;
use crate::render::progress::Terminal;
use harmonium::model::{VALID_SHARE, apart_rows, evenly_labelled};
use harmonium::models::Target;
use harmonium::progress::Listener;
use harmonium::{Dataset, Model};
use harmonium_data::{Opened, Options, Reading, open};
use toml::Table;

/// What is learned from and validated with.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) data: Opened,
    /// Fingerprint of the labels.
    labels: Option<u64>,
    pub(crate) targets: Option<Dataset>,
    /// Their fingerprint.
    targets_hash: Option<u64>,
    /// Fingerprints of the file of validation data, and of its labels.
    valid_file: (Option<u64>, Option<u64>),
    pub(crate) valid: Option<Dataset>,
    pub(crate) valid_targets: Option<Dataset>,
    /// What is learned.
    pub(crate) target: Target,
}

impl Inputs {
    /// Opens the data as the model read its own, with labels or targets, and sets apart what is validated with.
    pub(crate) fn open(
        asked: &mut Asked,
        model: Option<&Model>,
        terminal: &mut Terminal,
    ) -> Result<Self, Failure> {
        let spec = asked.data()?.to_owned();
        let mut opened = opened_as(&asked.reading, model, &spec)?;
        opened.about.notes.iter().for_each(|note| terminal.note(note));
        let targets = asked.settings.targets.is_some();
        let target = asked.target();
        let labels = match target {
            _ if targets => None,
            Some(Target::Input) => None,
            _ => Some(labelled(&mut opened, asked, model, terminal)?),
        };
        if labels.is_none() {
            opened.dataset = opened.dataset.without_labels();
        }
        let (targets, targets_hash) = open_targets(asked, opened.dataset.n_rows())?.unzip();
        let target = target.unwrap_or(match &targets {
            None => Target::Classes,
            Some(table) if table.is_bits() => Target::Tags,
            Some(_) => Target::Values,
        });
        let mut inputs = Self {
            data: opened,
            labels,
            targets,
            targets_hash,
            valid_file: (None, None),
            valid: None,
            valid_targets: None,
            target,
        };
        inputs.few(asked, terminal)?;
        inputs.validation(asked, &spec, terminal)?;
        Ok(inputs)
    }

    /// Keeps as many labelled rows as were asked for.
    fn few(&mut self, asked: &Asked, terminal: &mut Terminal) -> Result<(), Failure> {
        let Some(n) = asked.settings.labelled_rows else { return Ok(()) };
        let few = evenly_labelled(&self.data.dataset, n, asked.seed)?;
        terminal.note(&format!(
            "{} of {} rows, drawn evenly over the classes by seed {}, are learned from",
            few.n_rows(),
            self.data.dataset.n_rows(),
            asked.seed
        ));
        self.data.dataset = few;
        Ok(())
    }

    /// Opens the validation data, or sets rows apart.
    fn validation(
        &mut self,
        asked: &mut Asked,
        spec: &str,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        if let Some(valid) = asked.settings.valid.clone() {
            let valid = self.valid_file(&valid, asked, terminal)?;
            self.valid_file = (Some(valid.opened.about.content_hash), valid.labels);
            self.valid = Some(valid.opened.dataset);
            return Ok(());
        }
        let settings = &mut asked.settings;
        if settings.patience.is_some() {
            settings.valid_share.get_or_insert(VALID_SHARE);
        }
        let Some(share) = settings.valid_share else { return Ok(()) };
        let n_rows = self.data.dataset.n_rows();
        let (kept, apart) = apart_rows(n_rows, share, asked.seed)?;
        terminal.note(&format!(
            "{} of {n_rows} rows, a share of {share} chosen by seed {}, are set apart for validation",
            apart.len(),
            asked.seed
        ));
        let select =
            |data: &Dataset, rows: &[usize]| data.select_rows(rows).map_err(|e| e.in_file(spec));
        self.valid = Some(select(&self.data.dataset, &apart)?);
        self.data.dataset = select(&self.data.dataset, &kept)?;
        if let Some(targets) = &self.targets {
            self.valid_targets = Some(select(targets, &apart)?);
            self.targets = Some(select(targets, &kept)?);
        }
        Ok(())
    }

    /// Validation data from a file.
    fn valid_file(
        &self,
        spec: &str,
        asked: &Asked,
        terminal: &mut Terminal,
    ) -> Result<Validation, Failure> {
        let labels = asked.settings.valid_labels.as_deref();
        let valid = Validation::open(spec, labels, (&self.data, &asked.reading), terminal)?;
        if self.data.dataset.labels().is_some() && valid.opened.dataset.labels().is_none() {
            return Err(Failure::new(
                "the validation rows have no labels, so nothing can be validated",
                "give them with `--valid-labels FILE`",
            ));
        }
        Ok(valid)
    }

    /// The fingerprint of each input.
    pub(crate) fn fingerprints(&self) -> Fingerprints {
        let (valid, valid_labels) = self.valid_file;
        [
            ("data-hash", Some(self.data.about.content_hash)),
            ("labels-hash", self.labels),
            ("targets-hash", self.targets_hash),
            ("valid-hash", valid),
            ("valid-labels-hash", valid_labels),
        ]
        .into_iter()
        .collect()
    }

    /// Where everything comes from, for `run.toml`.
    pub(crate) fn provenance(&self) -> Result<Table, Failure> {
        let mut table = Table::new();
        table.insert("library-version".into(), env!("CARGO_PKG_VERSION").into());
        for (key, hash) in self.fingerprints().written() {
            table.insert(key.into(), hash.into());
        }
        table.insert("data-rows".into(), plan::number(self.data.dataset.n_rows() as u64)?);
        table.insert("data-columns".into(), plan::number(self.data.dataset.n_columns() as u64)?);
        if let Some(valid) = &self.valid {
            table.insert("validation-rows".into(), plan::number(valid.n_rows() as u64)?);
        }
        Ok(table)
    }
}

fn opened_as(reading: &Reading, model: Option<&Model>, spec: &str) -> Result<Opened, Failure> {
    let Some(model) = model else { return Ok(reading.open(spec)?) };
    Ok(reading.open_as(load::remembered(model), spec)?)
}

/// Gives the data the classes that are learned: those of the file of labels, or its own. Their fingerprint.
fn labelled(
    opened: &mut Opened,
    asked: &Asked,
    model: Option<&Model>,
    terminal: &mut Terminal,
) -> Result<u64, Failure> {
    let data = opened.dataset.clone();
    let (data, source) = match (&asked.settings.labels, opened.labels()) {
        (Some(path), _) => (load::with_labels(data, path, None, terminal)?, format!("`{path}`")),
        (None, Some(labels)) => (data.with_labels(labels.compacted())?, opened.label_source()),
        (None, None) => {
            return Err(Failure::new(
                "the data has no labels, so there are no classes to learn",
                "give them with `--labels FILE` or `--label-column NAME|N`, or say what is learned with `--target`",
            ));
        }
    };
    let Some(labels) = data.labels() else {
        return Err(harmonium::Error::NoLabels.into());
    };
    if labels.n_classes() == 1 {
        return Err(harmonium::Error::OneClass.into());
    }
    // Where the model has learned the same classes, they are numbered as there.
    let known = model.map(|model| &model.about.data.classes[..]).unwrap_or_default();
    let same = labels.numbered_as(known).ok().filter(|_| known.len() == labels.n_classes());
    let labels = same.unwrap_or_else(|| labels.clone());
    terminal.note(&format!("{} classes are learned, from {source}", labels.n_classes()));
    let fingerprint = labels.fingerprint();
    opened.dataset = data.with_labels(labels)?;
    Ok(fingerprint)
}

/// The table of targets and its fingerprint, if there is one.
fn open_targets(asked: &Asked, n_rows: usize) -> Result<Option<(Dataset, u64)>, Failure> {
    let settings = &asked.settings;
    let Some(spec) = &settings.targets else { return Ok(None) };
    let (variable, packed) = (settings.targets_variable.clone(), settings.targets_packed_bits);
    targets(spec, variable, packed, n_rows).map(Some)
}

/// A table of targets with a row for each of `n_rows`, and its fingerprint.
pub(crate) fn targets(
    spec: &str,
    variable: Option<String>,
    packed_bits: Option<usize>,
    n_rows: usize,
) -> Result<(Dataset, u64), Failure> {
    let options = Options { variable, packed_bits, ..Options::default() };
    let loaded = open(spec, &options)?;
    let (table, hash) = (loaded.table, loaded.about.content_hash);
    if table.n_rows() != n_rows {
        return Err(Failure::new(
            format!("`{spec}` has {} rows of targets, the data {n_rows}", table.n_rows()),
            "targets have a row for each row of the data",
        ));
    }
    Ok((Dataset::new(table, harmonium::Binarize::None)?, hash))
}
