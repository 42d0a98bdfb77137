//! Everything that the training of a net reads.

use super::settings::Asked;
use crate::failure::Failure;
use crate::load;
use crate::plan;
use crate::render::progress::Terminal;
use harmonium::model::{VALID_SHARE, apart_rows, evenly_labelled};
use harmonium::models::Target;
use harmonium::progress::Listener;
use harmonium::{Dataset, Model};
use harmonium_data::{Labels, Opened, Options, Reading, Remembered, open};
use toml::{Table, Value};

/// What is learned from and validated with.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) data: Opened,
    /// Fingerprint of the labels.
    labels: Option<u64>,
    pub(crate) targets: Option<Dataset>,
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
        let targets = open_targets(asked, opened.dataset.n_rows())?;
        let target = target.unwrap_or(match &targets {
            None => Target::Classes,
            Some(table) if table.is_bits() => Target::Tags,
            Some(_) => Target::Values,
        });
        let mut inputs =
            Self { data: opened, labels, targets, valid: None, valid_targets: None, target };
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
        let settings = &mut asked.settings;
        if let Some(valid) = settings.valid.clone() {
            self.valid =
                Some(self.valid_file(&valid, settings.valid_labels.as_deref(), terminal)?);
            return Ok(());
        }
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

    /// Validation data from a file, read as the other was.
    fn valid_file(
        &self,
        spec: &str,
        labels: Option<&str>,
        terminal: &mut Terminal,
    ) -> Result<Dataset, Failure> {
        let expected = self.data.dataset.n_columns();
        let (book, n_columns) = (self.data.dataset.book(), Some(expected));
        let remembered = Remembered { reading: &self.data.reading, book, n_columns };
        let valid = Reading::default().open_as(remembered, spec)?;
        valid.about.notes.iter().for_each(|note| terminal.note(note));
        let found = valid.dataset.n_columns();
        if found != expected {
            return Err(Failure::new(
                format!("the validation data has {found} columns, the training data {expected}"),
                "both are read with the same flags",
            ));
        }
        let Some(known) = self.data.dataset.labels().map(Labels::class_names) else {
            return Ok(valid.dataset.without_labels());
        };
        if let Some(path) = labels {
            return load::with_labels(valid.dataset, path, Some(&known), terminal);
        }
        let Some(labels) = valid.labels() else {
            return Err(Failure::new(
                "the validation rows have no labels, so nothing can be validated",
                "give them with `--valid-labels FILE`",
            ));
        };
        let labels = labels.numbered_as(&known).map_err(|error| error.in_file(spec))?;
        Ok(valid.dataset.with_labels(labels)?)
    }

    /// The fingerprints of what was read, for `run.toml`.
    pub(crate) fn provenance(&self) -> Result<Table, Failure> {
        let mut table = Table::new();
        table.insert("library-version".into(), env!("CARGO_PKG_VERSION").into());
        for (key, hash) in
            [("data-hash", Some(self.data.about.content_hash)), ("labels-hash", self.labels)]
        {
            if let Some(hash) = hash {
                table.insert(key.into(), format!("{hash:016x}").into());
            }
        }
        table.insert("data-rows".into(), plan::number(self.data.dataset.n_rows() as u64)?);
        table.insert("data-columns".into(), plan::number(self.data.dataset.n_columns() as u64)?);
        if let Some(valid) = &self.valid {
            table.insert("validation-rows".into(), plan::number(valid.n_rows() as u64)?);
        }
        Ok(table)
    }

    /// Refuses inputs that are not those a run was started with.
    pub(crate) fn check_same(&self, provenance: &Table) -> Result<(), Failure> {
        let now = self.provenance()?;
        for (key, what) in [("data-hash", "the data is"), ("labels-hash", "the labels are")] {
            let was = provenance.get(key).and_then(Value::as_str);
            if was.is_some() && was != now.get(key).and_then(Value::as_str) {
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

/// The table of targets, if there is one.
fn open_targets(asked: &Asked, n_rows: usize) -> Result<Option<Dataset>, Failure> {
    let settings = &asked.settings;
    let Some(spec) = &settings.targets else { return Ok(None) };
    let (variable, packed) = (settings.targets_variable.clone(), settings.targets_packed_bits);
    targets(spec, variable, packed, n_rows).map(Some)
}

/// A table of targets with a row for each of `n_rows`.
pub(crate) fn targets(
    spec: &str,
    variable: Option<String>,
    packed_bits: Option<usize>,
    n_rows: usize,
) -> Result<Dataset, Failure> {
    let options = Options { variable, packed_bits, ..Options::default() };
    let table = open(spec, &options)?.table;
    if table.n_rows() != n_rows {
        return Err(Failure::new(
            format!("`{spec}` has {} rows of targets, the data {n_rows}", table.n_rows()),
            "targets have a row for each row of the data",
        ));
    }
    Ok(Dataset::new(table, harmonium::Binarize::None)?)
}
