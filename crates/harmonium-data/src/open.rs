//! From a name to a table: files, folders of pictures and built-in sets.

use crate::input::Input;
use crate::read::rows::{Facts, ReadRows, RowSink, choose, label_text};
use crate::read::source::{ByteSource, fill};
use crate::read::{arff, idx, mat, npy, npz, pictures, svmlight, text};
use crate::synthetic::{self, Repeats};
use crate::{Binarize, Dataset, Error, Format, Labels, Options, Table, digits};
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;

/// Bytes that are kept of what cannot be read twice.
const MAX_HELD: u64 = 2 << 30;

/// A table and where it came from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The samples.
    pub table: Table,
    /// The class of each, where the file or the options tell.
    pub labels: Option<Labels>,
    /// Everything else.
    pub about: About,
}

/// A data set ready to be presented, and where it came from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadedDataset {
    /// The samples.
    pub dataset: Dataset,
    /// The class of each, where the file or the options tell.
    pub labels: Option<Labels>,
    /// Everything else.
    pub about: About,
}

/// Where data came from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct About {
    /// The name of the file without folder and ending, or of the built-in set.
    pub name: String,
    /// What the file turned out to be.
    pub format: Format,
    /// A name for each column of the table, where the file has them.
    pub column_names: Option<Vec<String>>,
    /// A fingerprint of shape, values and labels after columns were chosen and before values were
    /// inverted or binarised; the same whatever format holds them.
    pub content_hash: u64,
    /// What was guessed, for people.
    pub notes: Vec<String>,
}

impl Loaded {
    /// The same table with labels from elsewhere.
    ///
    /// # Errors
    ///
    /// If there is not one label per row.
    pub fn with_labels(mut self, labels: Labels) -> Result<Self, Error> {
        labels.check_rows(self.table.n_rows())?;
        self.labels = Some(labels);
        Ok(self)
    }

    fn new(gathered: ReadRows, name: String, format: Format) -> Self {
        let ReadRows { table, labels, column_names, content_hash, notes, .. } = gathered;
        Self { table, labels, about: About { name, format, column_names, content_hash, notes } }
    }
}

/// Opens a file, a folder of PNG or JPEG pictures or a built-in set (`digits`, `bars-and-stripes:N`,
/// `bars-and-stripes:N:distinct`, `shifter`; write `./digits` for a file of that name).
///
/// The format is recognised by content, gzip included. Zeros and ones become packed bits in
/// every format, and so do pictures of 0 and 255 alone. Other whole numbers up to 255 become
/// bytes, whose full scale is 255 in IDX and pictures; elsewhere it is 255 if a value above 127
/// occurs, or else the largest value, such as 16 for the 8×8 digits. A test file whose largest
/// value is smaller than that of the training file needs [`Options::full_scale`]. Everything
/// else becomes real numbers with a full scale of 1.
///
/// ```
/// let digits = harmonium_data::open("digits", &harmonium_data::Options::default())?;
/// assert_eq!((digits.table.n_rows(), digits.table.n_columns()), (1797, 64));
/// assert_eq!(digits.table.full_scale(), 16.0);
/// # Ok::<(), harmonium_data::Error>(())
/// ```
///
/// # Errors
///
/// If there is no such file or set, if it is damaged, of an unknown format or has not what the
/// options ask for. The error names the file and has a [hint](Error::hint).
pub fn open(spec: &str, options: &Options) -> Result<Loaded, Error> {
    open_with(spec, options, None)
}

/// Opens data and binarises it. A threshold is applied while an IDX file or a folder of pictures
/// is read, so that the grey values are never all in memory.
///
/// # Errors
///
/// Those of [`open`] and of [`Dataset::new`].
pub fn open_dataset(
    spec: &str,
    options: &Options,
    binarize: Binarize,
) -> Result<LoadedDataset, Error> {
    let threshold = match binarize {
        Binarize::Threshold(at) => Some(at),
        _ => None,
    };
    let Loaded { table, labels, about } = open_with(spec, options, threshold)?;
    let dataset = Dataset::new(table, binarize).map_err(|e| e.in_file(spec))?;
    Ok(LoadedDataset { dataset, labels, about })
}

/// Reads bytes as `format`, or as what they look like. This is what [`open`] does with a file.
///
/// # Errors
///
/// Those of [`open`].
pub fn decode(bytes: &[u8], format: Option<Format>, options: &Options) -> Result<Loaded, Error> {
    let mut rows = RowSink::new(options, None);
    let (format, facts) = read_any(Cursor::new(bytes), format, &mut rows)?;
    Ok(Loaded::new(rows.finish(facts)?, String::new(), format))
}

/// Opens labels: a vector of numbers or words in any format, or a table with a single 1 in each
/// row. Of a text, each line is a label.
///
/// # Errors
///
/// If they cannot be read, or a row has no label or several.
pub fn open_labels(path: &str, options: &Options) -> Result<Labels, Error> {
    read_labels(path, options).map_err(|e| e.in_file(path))
}

/// The same for data of `n_rows` rows, with what was guessed, for people. Words may stand under a header:
/// where there is one label too many, and the first occurs nowhere else, it is taken as one.
///
/// # Errors
///
/// Those of [`open_labels`]; and if there is not one label per row.
pub fn open_labels_of(
    path: &str,
    options: &Options,
    n_rows: usize,
) -> Result<(Labels, Option<String>), Error> {
    let labels = open_labels(path, options)?;
    let first = labels.lone_first();
    let (labels, note) = match first {
        Some(word) if labels.len() == n_rows + 1 => {
            let note = format!(
                "the first line of `{path}`, `{word}`, was taken as a header: it occurs nowhere else, and \
                 there are {n_rows} rows"
            );
            (labels.without_first(), Some(note))
        }
        Some(word) if labels.len() == n_rows && n_rows > 2 => {
            let note = format!(
                "the first label of `{path}`, `{word}`, occurs nowhere else; there is one for each of the \
                 {n_rows} rows, so it was not taken as a header"
            );
            (labels, Some(note))
        }
        _ => (labels, None),
    };
    labels.check_rows(n_rows).map_err(|e| e.in_file(path))?;
    Ok((labels, note))
}

/// Opens data once. The threshold may have been applied where the format fixes the full scale.
pub(crate) fn open_with(
    spec: &str,
    options: &Options,
    threshold: Option<f32>,
) -> Result<Loaded, Error> {
    open_input(spec, &mut Input::Path, options, threshold)
}

/// The same from what [`Input::of`] found under that name.
pub(crate) fn open_input(
    spec: &str,
    input: &mut Input,
    options: &Options,
    threshold: Option<f32>,
) -> Result<Loaded, Error> {
    if let Some(built_in) = built_in(spec, options) {
        return built_in;
    }
    let mut read = || {
        let mut rows = RowSink::new(options, threshold);
        let (format, facts) = match input {
            Input::Path if Path::new(spec).is_dir() => {
                pictures::read_folder(Path::new(spec), &mut rows)?
            }
            Input::Path => read_any(File::open(spec)?, None, &mut rows)?,
            Input::Held(bytes) if bytes.is_empty() => return Err(Error::EmptyPipe),
            Input::Held(bytes) => read_any(Cursor::new(&*bytes), None, &mut rows)?,
            Input::Pipe(pipe) => read_any(pipe, None, &mut rows)?,
        };
        Ok(Loaded::new(rows.finish(facts)?, name_of(spec), format))
    };
    read().map_err(|e: Error| e.in_file(spec))
}

fn read_any(
    mut reader: impl Read + Seek,
    format: Option<Format>,
    rows: &mut RowSink,
) -> Result<(Format, Facts), Error> {
    let is_pipe = reader.stream_position().is_err();
    let ByteSource { head, reader: mut stream, inflated } = ByteSource::new(&mut reader)?;
    if head.is_empty() {
        let empty = Error::Empty { n_rows: 0, n_columns: 0 };
        return Err(if is_pipe { Error::EmptyPipe } else { empty });
    }
    let format = format.map_or_else(|| Format::of(&head), Ok)?;
    let facts = match format {
        Format::Idx => idx::read(&mut stream, rows)?,
        Format::Npy => npy::read(&mut stream, rows)?,
        // The list of an archive stands at its end.
        Format::Npz if inflated || is_pipe => npz::read(Cursor::new(held(&mut stream)?), rows)?,
        Format::Npz => {
            drop(stream);
            reader.rewind()?;
            npz::read(BufReader::new(reader), rows)?
        }
        Format::Arff => arff::read(&mut stream, rows)?,
        Format::Mat => mat::read(&mut stream, rows)?,
        Format::Png | Format::Jpeg => pictures::read(&mut stream, rows)?,
        Format::SvmLight => svmlight::read(&mut stream, rows)?,
        Format::Text | Format::BuiltIn => text::read(&head, &mut stream, rows)?,
    };
    Ok((format, facts))
}

/// All bytes of a stream that cannot be gone back in.
pub(crate) fn held(stream: &mut dyn Read) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if fill(stream, MAX_HELD + 1, &mut bytes)? <= MAX_HELD {
        return Ok(bytes);
    }
    let what = "this, compressed or from a pipe,";
    Err(Error::TooLarge { what, needed: MAX_HELD + 1, unit: "bytes of memory", limit: MAX_HELD })
}

/// A file, or what a pipe gives, so that it can be read twice.
fn rereadable(path: &str) -> Result<Box<dyn ReadSeek>, Error> {
    let mut file = File::open(path)?;
    if file.stream_position().is_ok() {
        return Ok(Box::new(file));
    }
    match held(&mut file)? {
        nothing if nothing.is_empty() => Err(Error::EmptyPipe),
        bytes => Ok(Box::new(Cursor::new(bytes))),
    }
}

trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// `None` if the name is not that of a built-in set.
fn built_in(spec: &str, options: &Options) -> Option<Result<Loaded, Error>> {
    let (set, arguments) = spec.split_once(':').unwrap_or((spec, ""));
    let set = match set {
        "digits" if arguments.is_empty() => digits_set(),
        "shifter" if arguments.is_empty() => synthetic::shifter().map(|t| (t, None)),
        "bars-and-stripes" => bars(spec, arguments).map(|t| (t, None)),
        _ => return None,
    };
    Some(set.and_then(|(table, labels)| {
        if let (Some(_), Some(asked)) = (&labels, &options.label_column) {
            return Err(Error::LabelsBeside { asked: asked.clone() });
        }
        let facts = Facts { image: table.image(), ..Facts::default() };
        let gathered = choose(&table, labels.as_ref(), options, facts)?;
        Ok(Loaded::new(gathered, spec.to_owned(), Format::BuiltIn))
    }))
}

fn digits_set() -> Result<(Table, Option<Labels>), Error> {
    let (table, labels) = digits::digits()?;
    Ok((table, Some(Labels::from_values(labels.into_iter().map(u32::from).collect()))))
}

fn bars(spec: &str, arguments: &str) -> Result<Table, Error> {
    let wrong = || Error::BuiltIn {
        name: spec.to_owned(),
        reason: "write `bars-and-stripes:N` or `bars-and-stripes:N:distinct`".into(),
    };
    let (side, repeats) = match arguments.split_once(':') {
        None => (arguments, Repeats::Counted),
        Some((side, "distinct")) => (side, Repeats::Distinct),
        Some(_) => return Err(wrong()),
    };
    synthetic::bars_and_stripes(side.parse().map_err(|_| wrong())?, repeats)
}

pub(crate) fn name_of(spec: &str) -> String {
    let path = Path::new(spec);
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => name.to_owned(),
    }
}

fn read_labels(path: &str, options: &Options) -> Result<Labels, Error> {
    let mut file = rereadable(path)?;
    let ByteSource { head, reader: mut stream, .. } = ByteSource::new(&mut file)?;
    let words = match Format::of(&head)? {
        Format::Mat => mat::read_words(&mut stream, options.variable.as_deref())?,
        Format::Text if options.columns.is_none() && options.label_column.is_none() => {
            text::read_words(&head, &mut stream)?
        }
        _ => None,
    };
    if let Some(words) = words {
        return checked_words(&words);
    }
    drop(stream);
    file.rewind()?;
    let mut rows = RowSink::for_labels(options);
    let (_, facts) = read_any(file, None, &mut rows)?;
    let read = rows.finish(facts)?;
    match (read.labels, read.entries) {
        (Some(labels), _) => Ok(labels),
        (None, Some(entries)) => checked_words(&entries),
        (None, None) => labels_of(&read.table),
    }
}

fn checked_words(words: &[String]) -> Result<Labels, Error> {
    let missing = |w: &String| crate::read::rows::is_missing(w);
    if words.is_empty() {
        return Err(Error::Empty { n_rows: 0, n_columns: 1 });
    }
    match words.iter().position(missing) {
        Some(row) => Err(Error::NoLabel { row, reason: "the entry is missing".into() }),
        None => Ok(Labels::from_texts(words)),
    }
}

/// A column, a row, or the place of the only 1 in each row.
fn labels_of(table: &Table) -> Result<Labels, Error> {
    let (n_rows, n_columns) = (table.n_rows(), table.n_columns());
    let vector: Option<Vec<f32>> = match (n_rows, n_columns) {
        (_, 1) => Some((0..n_rows).map(|r| table.at(r, 0)).collect()),
        (1, _) => Some((0..n_columns).map(|c| table.at(0, c)).collect()),
        _ => None,
    };
    if let Some(vector) = vector {
        if let Some(row) = vector.iter().position(|x| x.is_nan()) {
            return Err(Error::NoLabel { row, reason: "the entry is missing".into() });
        }
        let texts = vector.iter().enumerate().map(|(row, &x)| label_text(row, x));
        return Ok(Labels::from_texts(texts.collect::<Result<Vec<_>, _>>()?));
    }
    let one_hot = |row: usize| {
        let on: Vec<usize> = (0..n_columns).filter(|&c| table.at(row, c) != 0.0).collect();
        if let (&[class], true) = (on.as_slice(), table.is_bits()) {
            Ok(u32::try_from(class).unwrap_or(u32::MAX))
        } else {
            let reason = format!("{} of {n_columns} columns are not zero", on.len());
            Err(Error::NoLabel { row, reason })
        }
    };
    Ok(Labels::from_values((0..n_rows).map(one_hot).collect::<Result<_, _>>()?))
}
