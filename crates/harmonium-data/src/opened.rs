//! From settings and a name to data as a machine will see it.
//!
//! A text is a table of numbers, as any array, if all that is needed of it are numbers of one sort. Otherwise it
//! is a table of columns, each of its own kind ([`crate::frame`]):
//!
//! - where kinds are said;
//! - where a cell that is needed is not a number;
//! - where it has a header and its numbers are of several sorts: a column of zeros and ones beside columns of other
//!   numbers, or whole numbers too large for classes and not the grey levels of a picture.
//!
//! Settings of arrays and pictures (`binarize`, `transpose`, …) ask for a table of numbers in any case.

use crate::frame::{Asked, Codebook, Encoded, Frame, Kind, Unknown};
use crate::hash::ContentHash;
use crate::input::Input;
use crate::open::{name_of, open_input};
use crate::reading::scale_of;
use crate::rows::{self, column_names};
use crate::{
    About, Binarize, Dataset, Error, Format, LabelColumn, Labels, Loaded, Reading, Summary, Table,
    Visible,
};

/// Data as a machine will see it, and how it was read.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The samples, with the labels that are used.
    pub dataset: Dataset,
    /// Where they came from.
    pub about: About,
    /// The settings that read them, the automatic ones filled in.
    pub reading: Reading,
    /// Labels that the data holds and that nobody asked for.
    pub unused_labels: Option<Labels>,
    /// The cells as they were written, of a table of columns.
    pub frame: Option<Frame>,
}

impl Opened {
    /// The labels that are used, or those that could be.
    pub fn labels(&self) -> Option<&Labels> {
        self.dataset.labels().or(self.unused_labels.as_ref())
    }

    /// Where the labels of the data stand, for people.
    pub fn label_source(&self) -> String {
        if let Some(label) = self.dataset.book().and_then(Codebook::label) {
            return format!("column `{}`", label.name);
        }
        match &self.reading.label_column {
            Some(column) => format!("column {column}"),
            None if self.about.format == Format::Png => "the names of the folders".into(),
            None => "the data itself".into(),
        }
    }

    fn new(
        loaded: Loaded,
        binarize: Binarize,
        reading: Reading,
        spec: &str,
    ) -> Result<Self, Error> {
        let Loaded { table, labels, about } = loaded;
        if labels.is_none() && reading.labelled {
            return Err(Error::NoLabels.in_file(spec));
        }
        let folders = about.format == Format::Png;
        let asked = reading.label_column.is_some() || reading.labelled || folders;
        let (used, unused) =
            if asked && !reading.no_labels { (labels, None) } else { (None, labels) };
        let table = match &reading.names {
            Some(path) => {
                let names = column_names(path, table.n_columns())?;
                table.with_names(&names)
            }
            None => table,
        };
        let mut dataset = Dataset::new(table, binarize).map_err(|e| e.in_file(spec))?;
        if let Some(labels) = used {
            dataset = dataset.with_labels(labels)?;
        }
        let mut unused_labels = unused;
        if let Some(asked) = &reading.rows {
            let rows = rows::chosen(asked, dataset.n_rows()).map_err(|e| e.in_file(spec))?;
            dataset = dataset.select_rows(&rows)?;
            unused_labels = unused_labels.map(|labels| labels.select_rows(&rows));
        }
        Ok(Self { dataset, about, reading, unused_labels, frame: None })
    }

    /// A table of columns, read with a codebook.
    fn of_frame(
        frame: Frame,
        book: &Codebook,
        reading: Reading,
        mut notes: Vec<String>,
        spec: &str,
    ) -> Result<Self, Error> {
        let unknown = reading.unknown.unwrap_or_default();
        let encoded = book.encode(&frame, unknown).map_err(|e| e.in_file(spec))?;
        notes.extend(encoded.notes());
        let Encoded { mut dataset, .. } = encoded;
        let mut unused_labels = None;
        if reading.no_labels {
            unused_labels = dataset.labels().cloned();
            dataset = dataset.without_labels();
        }
        let about = About {
            name: name_of(spec),
            format: Format::Text,
            column_names: Some(frame.names().to_vec()),
            content_hash: frame.fingerprint(),
            notes,
        };
        Ok(Self { dataset, about, reading, unused_labels, frame: Some(frame) })
    }
}

/// What a name turned out to hold.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of it at a time")]
pub enum Found {
    /// A table of columns, each of its own kind.
    Columns(Opened),
    /// A table of numbers, before any of them is binarised.
    Numbers(Loaded),
}

/// Whether the numbers of a table with a header are of several sorts.
fn is_of_several_sorts(loaded: &Loaded) -> bool {
    let Loaded { table, about, .. } = loaded;
    about.format == Format::Text && about.column_names.is_some() && table.is_of_several_sorts()
}

impl Table {
    /// Whether its numbers are of several sorts, so that one kind of units would not fit them all: a column of zeros and
    /// ones beside columns of other numbers, or whole numbers too large for classes.
    pub fn is_of_several_sorts(&self) -> bool {
        let two_valued = |c: usize| {
            let values = || (0..self.n_rows()).map(|row| self.at(row, c)).filter(|x| !x.is_nan());
            let has = |y: f32| values().any(|x| x == y);
            values().all(|x| x == 0.0 || x == 1.0) && has(0.0) && has(1.0)
        };
        match Summary::of(self).visible {
            Visible::Counts => true,
            Visible::Gaussian => (0..self.n_columns()).any(two_valued),
            _ => false,
        }
    }
}

/// What a model knows of the data that it was trained on.
#[derive(Clone, Copy, Debug)]
pub struct Remembered<'a> {
    /// How it was read.
    pub reading: &'a Reading,
    /// The codebook of its columns, if it was a table of columns.
    pub book: Option<&'a Codebook>,
    /// The number of columns that the model takes, if it says so.
    pub n_columns: Option<usize>,
}

impl Reading {
    /// Opens data as these settings say; where nothing is said of binarisation, as what the data
    /// looks like. Whether a text is a table of numbers or of columns is said in the documentation of the module.
    ///
    /// # Errors
    ///
    /// Those of [`open()`](crate::open()), of [`Dataset::new`], and of [`Codebook::fit`].
    pub fn open(&self, spec: &str) -> Result<Opened, Error> {
        let mut input = Input::of(spec).map_err(|e| e.in_file(spec))?;
        match self.find(&mut input, spec)? {
            Found::Columns(opened) => Ok(opened),
            Found::Numbers(loaded) => self.finish(loaded, spec),
        }
    }

    /// Looks at data without binarising it.
    ///
    /// # Errors
    ///
    /// As [`Reading::open`].
    pub fn look(&self, spec: &str) -> Result<Found, Error> {
        let mut input = Input::of(spec).map_err(|e| e.in_file(spec))?;
        if self.kinds.is_empty() && self.of_arrays().is_some() {
            return Ok(Found::Numbers(open_input(spec, &mut input, &self.options()?, None)?));
        }
        self.find(&mut input, spec)
    }

    /// Finds out whether a table is one of numbers or of columns.
    fn find(&self, input: &mut Input, spec: &str) -> Result<Found, Error> {
        if !self.kinds.is_empty() {
            if let Some(setting) = self.of_arrays() {
                return Err(Error::NotOfTables { setting });
            }
            let columns = self.open_columns(input, spec)?;
            return columns.map(Found::Columns).ok_or_else(|| Error::NoNames.in_file(spec));
        }
        let loaded = self.load(input, spec);
        let again = self.of_arrays().is_none()
            && match &loaded {
                Ok(loaded) => is_of_several_sorts(loaded),
                Err(e) => matches!(e.cause(), Error::NotANumber { .. } | Error::Ragged { .. }),
            };
        if again && let Some(columns) = self.open_columns(input, spec)? {
            return Ok(Found::Columns(columns));
        }
        loaded.map(Found::Numbers)
    }

    /// Reads numbers; a threshold may have been applied.
    fn load(&self, input: &mut Input, spec: &str) -> Result<Loaded, Error> {
        let threshold = match self.binarize()? {
            Some(Binarize::Threshold(at)) => Some(at),
            _ => None,
        };
        open_input(spec, input, &self.options()?, threshold)
    }

    /// Presents numbers as these settings say.
    fn finish(&self, loaded: Loaded, spec: &str) -> Result<Opened, Error> {
        let mut reading = self.clone();
        let binarize = match self.binarize()? {
            Some(threshold @ Binarize::Threshold(_)) => {
                // Images have a fixed scale; elsewhere the scale that was found is remembered.
                let fixed = matches!(loaded.about.format, Format::Idx | Format::Png | Format::Jpeg);
                if !fixed && reading.full_scale.is_none() {
                    reading.full_scale = scale_of(&loaded.table);
                }
                return Opened::new(loaded, threshold, reading, spec);
            }
            Some(binarize) => binarize,
            None => Summary::of(&loaded.table).binarize,
        };
        reading.binarize = Some(binarize.to_string());
        if binarize == Binarize::Sample && reading.full_scale.is_none() {
            reading.full_scale = scale_of(&loaded.table);
        }
        Opened::new(loaded, binarize, reading, spec)
    }

    /// Opens a table of columns and finds out about them; nothing where the format has no columns with names.
    fn open_columns(&self, input: &mut Input, spec: &str) -> Result<Option<Opened>, Error> {
        let Some((frame, notes)) = input.frame(spec)? else { return Ok(None) };
        let (frame, label) = self.chosen(frame).map_err(|e| e.in_file(spec))?;
        let mut kinds = self.kinds.clone();
        kinds.extend(label.map(|name| (name, Asked::from(Kind::Label))));
        let book = Codebook::fit(&frame, &kinds).map_err(|e| e.in_file(spec))?;
        Opened::of_frame(frame, &book, self.clone(), notes, spec).map(Some)
    }

    /// The columns that are used, and the name of the label column, if one was asked for.
    fn chosen(&self, frame: Frame) -> Result<(Frame, Option<String>), Error> {
        let frame = match &self.rows {
            Some(asked) => frame.select_rows(&rows::chosen(asked, frame.n_rows())?)?,
            None => frame,
        };
        let n_columns = frame.names().len();
        let label = match &self.label_column {
            None => None,
            Some(LabelColumn::Name(name)) => {
                let place = frame.names().iter().position(|n| n == name);
                let available = frame.names().to_vec();
                Some(place.ok_or_else(|| Error::LabelName { asked: name.clone(), available })?)
            }
            Some(LabelColumn::Number(asked)) => {
                let from_start = usize::try_from(*asked).ok();
                let place = from_start.or_else(|| n_columns.checked_sub(asked.unsigned_abs()));
                let wrong = Error::LabelColumn { asked: *asked, n_columns };
                Some(place.filter(|p| *p < n_columns).ok_or(wrong)?)
            }
        };
        let name = label.map(|place| frame.names()[place].clone());
        let Some(range) = self.options()?.columns else { return Ok((frame, name)) };
        let beside = name.as_ref().filter(|_| label.is_some_and(|place| !range.contains(&place)));
        let kept = beside.and_then(|name| Some((name.clone(), frame.column(name)?.clone())));
        Ok((frame.select_columns(range)?.with_column(kept)?, name))
    }

    /// Opens data for a model that remembers how its own data was read: what is not said here is as it was there.
    /// Where the data lacks the labels that the model's own had, it is read without, and a note says so.
    ///
    /// # Errors
    ///
    /// Those of [`Reading::open`]; of a table of columns, those of [`Codebook::encode`].
    pub fn open_as(&self, remembered: Remembered<'_>, spec: &str) -> Result<Opened, Error> {
        let Remembered { reading: remembered, book, n_columns } = remembered;
        if let Some(book) = book {
            return self.open_with_book(book, remembered.unknown, spec);
        }
        if !self.kinds.is_empty() {
            return Err(Error::KindsAreFixed);
        }
        // What the model took for numbers is not looked at again.
        let as_numbers = |reading: Self| {
            let mut input = Input::of(spec).map_err(|e| e.in_file(spec))?;
            reading.finish(reading.load(&mut input, spec)?, spec)
        };
        let opened = as_numbers(self.or(remembered));
        let asked = self.label_column.is_some() || self.labelled;
        let expected = remembered.label_column.is_some() || remembered.labelled;
        let fits =
            |o: &Opened| n_columns.is_none_or(|n_columns| o.dataset.n_columns() == n_columns);
        if asked || !expected || opened.as_ref().is_ok_and(fits) {
            return opened;
        }
        let plain = Self { label_column: None, labelled: false, ..remembered.clone() };
        let Ok(mut without) = as_numbers(self.or(&plain)) else { return opened };
        if !fits(&without) {
            return opened;
        }
        without.about.notes.push(format!("`{spec}` has no labels"));
        Ok(without)
    }

    /// Opens a table whose columns are those of a codebook.
    fn open_with_book(
        &self,
        book: &Codebook,
        unknown: Option<Unknown>,
        spec: &str,
    ) -> Result<Opened, Error> {
        if !self.kinds.is_empty() {
            return Err(Error::KindsAreFixed);
        }
        if let Some(setting) = self.of_arrays() {
            return Err(Error::NotOfTables { setting });
        }
        let mut input = Input::of(spec).map_err(|e| e.in_file(spec))?;
        let found = input.frame(spec)?;
        let (frame, notes) = found.ok_or_else(|| Error::NoNames.in_file(spec))?;
        let (frame, _) = self.chosen(frame).map_err(|e| e.in_file(spec))?;
        let reading = Self { unknown: self.unknown.or(unknown), ..self.clone() };
        Opened::of_frame(frame, book, reading, notes, spec)
    }
}

impl Frame {
    /// A number that changes with any name or cell.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = ContentHash::default();
        hash.word(self.n_rows() as u64);
        for (name, cells) in self.names().iter().zip(self.columns()) {
            hash.text(name);
            cells.iter().for_each(|cell| hash.text(cell.unwrap_or("\u{0}")));
        }
        hash.finish()
    }
}
