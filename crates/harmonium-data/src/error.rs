//! What can be wrong with data, with the numbers in it.

use crate::LabelColumn;
use crate::frame::{Kind, Place};
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use thiserror::Error;

/// Why data could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Something is wrong with a file.
    #[error("`{path}`: {source}")]
    In {
        /// The file, as it was named.
        path: String,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// The file cannot be read at all.
    #[error("{}", describe_io(.0))]
    Io(#[source] io::Error),
    /// A table without rows or without columns.
    #[error("the data is empty: {n_rows} rows, {n_columns} columns")]
    Empty {
        /// Rows found.
        n_rows: usize,
        /// Columns found.
        n_columns: usize,
    },
    /// Values do not fill the rows they claim to.
    #[error("{n_rows} rows of {n_columns} columns need {expected} values, found {found}")]
    Shape {
        /// Rows claimed.
        n_rows: usize,
        /// Columns claimed.
        n_columns: usize,
        /// Values that would fill them.
        expected: usize,
        /// Values there are.
        found: usize,
    },
    /// Not one weight per sample.
    #[error("{found} sample weights for {n_rows} rows")]
    WeightCount {
        /// Rows of the table.
        n_rows: usize,
        /// Weights given.
        found: usize,
    },
    /// A weight that is negative or not a number, or weights that are all zero.
    #[error("the weight of row {row} is {value}; weights are finite, not negative, not all zero")]
    Weight {
        /// The row, from 0.
        row: usize,
        /// Its weight.
        value: f64,
    },
    /// A name or a parameter that no built-in set has.
    #[error("there is no built-in set `{}`: {reason}", brief(name))]
    BuiltIn {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value that cannot be binarised.
    #[error("row {row}, column {column} holds {value}, which is not a probability after scaling")]
    NotAProbability {
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// The value found.
        value: f32,
    },
    /// Bytes that are not what their format promises.
    #[error("damaged {format} data: {}", brief(reason))]
    Damaged {
        /// The format.
        format: &'static str,
        /// What was found.
        reason: String,
    },
    /// The data ends before it should.
    #[error("the {format} data ends early: {expected} {what} announced, {found} found")]
    Truncated {
        /// The format.
        format: &'static str,
        /// What is counted.
        what: &'static str,
        /// How many the header announces.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// The data goes on after its announced end.
    #[error("the {format} data goes on after the {expected} {what} its header announces")]
    Trailing {
        /// The format.
        format: &'static str,
        /// What is counted.
        what: &'static str,
        /// How many the header announces.
        expected: u64,
    },
    /// Compressed data that inflates beyond reason.
    #[error("{compressed} compressed bytes inflate to more than {inflated}: stopped reading")]
    Bomb {
        /// Compressed bytes read so far.
        compressed: u64,
        /// Bytes they became.
        inflated: u64,
    },
    /// More than fits, or more than a sparse file may claim.
    #[error("{what} would need {needed} {unit}, the limit is {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// What it would need.
        needed: u64,
        /// Of which unit.
        unit: &'static str,
        /// What is allowed.
        limit: u64,
    },
    /// Not a format that can be read.
    #[error("not a known format: {found}")]
    UnknownFormat {
        /// What the file looks like.
        found: String,
    },
    /// A known format, but a part of it that is not read.
    #[error("{format} with {} cannot be read", brief(what))]
    Unsupported {
        /// The format.
        format: &'static str,
        /// What is not read.
        what: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// A cell of a text that is not a number.
    #[error("line {line}, column {column} holds `{}`, which is not a number", brief(cell))]
    NotANumber {
        /// The line, from 1.
        line: u64,
        /// The column, from 0.
        column: usize,
        /// What it holds.
        cell: String,
    },
    /// A line with more or fewer cells than the first.
    #[error("line {line} has {found} columns, the lines before it {expected}")]
    Ragged {
        /// The line, from 1.
        line: u64,
        /// Cells of the first line.
        expected: usize,
        /// Cells of this line.
        found: usize,
    },
    /// A line of text without end.
    #[error("line {line} is longer than {limit} bytes")]
    LongLine {
        /// The line, from 1.
        line: u64,
        /// Bytes that a line may have.
        limit: u64,
    },
    /// A pipe that gave nothing.
    #[error("nothing came out of the pipe")]
    EmptyPipe,
    /// Something that is not a file where pictures are expected.
    #[error("this is a pipe, a socket or a device, not a file")]
    NotAFile,
    /// A row of a sparse matrix that names entries that are not there.
    #[error(
        "row {row} of the sparse matrix names entries that it, or its {n_columns} columns, do not have"
    )]
    SparseRow {
        /// The row, from 0.
        row: usize,
        /// Columns of the matrix.
        n_columns: usize,
    },
    /// An infinite value.
    #[error("row {row}, column {column} is infinite or beyond the range of 32-bit numbers")]
    NotFinite {
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
    },
    /// A variable must be named, or the one named is not there.
    #[error("{}", describe_variable(asked.as_ref(), available))]
    Variable {
        /// The name given.
        asked: Option<String>,
        /// What there is, each with its shape.
        available: Vec<String>,
    },
    /// Columns that are not in the table.
    #[error("columns {}..{} were asked for, there are {n_columns}", range.start, range.end)]
    Columns {
        /// What was asked for.
        range: Range<usize>,
        /// Columns there are.
        n_columns: usize,
    },
    /// A label column that is not in the table.
    #[error("label column {asked} was asked for, there are {n_columns} columns")]
    LabelColumn {
        /// What was asked for; negative counts from the end.
        asked: isize,
        /// Columns there are.
        n_columns: usize,
    },
    /// A label column of a name that the table does not have.
    #[error("label column `{}` was asked for, {}", brief(asked), named(available))]
    LabelName {
        /// What was asked for.
        asked: String,
        /// The names of all columns; none where the file has none.
        available: Vec<String>,
    },
    /// A label column of data whose labels stand beside its columns.
    #[error(
        "label column {asked} was asked for, but the labels of this data stand beside its columns"
    )]
    LabelsBeside {
        /// What was asked for.
        asked: LabelColumn,
    },
    /// Labels that were asked for and are not there.
    #[error("labels were asked for, and the data holds none")]
    NoLabels,
    /// Rows that do not hold the packed bits announced.
    #[error("{n_bits} packed bits need rows of {expected} bytes, found {found}")]
    PackedWidth {
        /// Bits announced for each row.
        n_bits: usize,
        /// Bytes they need.
        expected: usize,
        /// Values in a row.
        found: usize,
    },
    /// A packed value that is not a byte.
    #[error("row {row}, column {column} holds {value}, packed bits are whole bytes from 0 to 255")]
    NotAByte {
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// The value found.
        value: f32,
    },
    /// A mask of another shape than the table.
    #[error("the mask is {}x{}, the data {}x{}", found.0, found.1, expected.0, expected.1)]
    MaskShape {
        /// Rows and columns of the table.
        expected: (usize, usize),
        /// Rows and columns of the mask.
        found: (usize, usize),
    },
    /// Two columns of one name.
    #[error("columns {} and {} are both called `{}`", columns.0, columns.1, brief(name))]
    SameName {
        /// Their name.
        name: String,
        /// Where they are, from 0.
        columns: (usize, usize),
    },
    /// A table whose first line holds numbers where names are needed.
    #[error("the first line holds numbers (`{}` first), not the names of columns", brief(first))]
    NoHeader {
        /// Its first cell.
        first: String,
    },
    /// A cell that is not text.
    #[error("line {line} is not UTF-8 text: `{}`", brief(cell))]
    NotText {
        /// The line, from 1.
        line: u64,
        /// What of it can be shown.
        cell: String,
    },
    /// A column that a table does not have.
    #[error("there is no column `{}`; there are {}", brief(name), listed(names))]
    NoColumn {
        /// What was asked for.
        name: String,
        /// The columns there are.
        names: Vec<String>,
    },
    /// A column that the training table did not have.
    #[error("column `{}` was not in the training table, which had {}", brief(name), listed(known))]
    UnknownColumn {
        /// What it is called.
        name: String,
        /// The columns that are known.
        known: Vec<String>,
    },
    /// A word that the training table did not have.
    #[error(
        "{place}, column `{}` holds `{}`; the training table had {}",
        brief(column),
        brief(cell),
        listed(levels)
    )]
    UnknownLevel {
        /// Where the cell is.
        place: Place,
        /// The column's name.
        column: String,
        /// What it holds.
        cell: String,
        /// The words that are known.
        levels: Vec<String>,
    },
    /// A word where a number should be.
    #[error("{place}, column `{}` holds `{}`, which is not a number", brief(column), brief(cell))]
    NoNumber {
        /// Where the cell is.
        place: Place,
        /// The column's name.
        column: String,
        /// What it holds.
        cell: String,
    },
    /// A number that has no logarithm.
    #[error(
        "{place}, column `{}` holds {}, and the column is learned on a logarithmic scale",
        brief(column),
        brief(cell)
    )]
    BelowLogarithm {
        /// Where the cell is.
        place: Place,
        /// The column's name.
        column: String,
        /// What it holds.
        cell: String,
    },
    /// A column with another number of values than its kind has.
    #[error(
        "column `{}` has {found} different values, too many or too few for {kind}",
        brief(column)
    )]
    LevelCount {
        /// The column's name.
        column: String,
        /// What it should be.
        kind: Kind,
        /// Values it has.
        found: usize,
    },
    /// A word in a column that otherwise holds numbers.
    #[error(
        "{place}, column `{}` holds `{}`, and {n_numbers} other cells of the column are numbers",
        brief(column),
        brief(cell)
    )]
    OddCell {
        /// Where the cell is.
        place: Place,
        /// The column's name.
        column: String,
        /// What it holds.
        cell: String,
        /// Cells that hold numbers.
        n_numbers: usize,
    },
    /// A logarithm of numbers that are not positive.
    #[error("column `{}` holds numbers below 0, which have no logarithm", brief(column))]
    NoLogarithm {
        /// The column's name.
        column: String,
    },
    /// A cell that is not a whole number in the range that is counted.
    #[error(
        "{place}, column `{}` holds `{}`, which is not a whole number from 0 to {max}",
        brief(column),
        brief(cell)
    )]
    NoCount {
        /// Where it is.
        place: Place,
        /// The column's name.
        column: String,
        /// What the cell holds.
        cell: String,
        /// The largest number.
        max: usize,
    },
    /// A kind that no units hold.
    #[error(
        "column `{}` cannot be learned as {kind}: there are no units of that kind yet",
        brief(column)
    )]
    NoUnits {
        /// The column's name.
        column: String,
        /// What it should be.
        kind: Kind,
    },
    /// Two columns that are both said to be the label.
    #[error("columns `{}` and `{}` are both said to be the label", brief(&columns.0), brief(&columns.1))]
    TwoLabels {
        /// Their names.
        columns: (String, String),
    },
    /// A row without a class among others that have one.
    #[error("{place}, column `{}`, the label, is missing", brief(column))]
    NoClass {
        /// Where the cell is.
        place: Place,
        /// The column's name.
        column: String,
    },
    /// A column that the model does not learn.
    #[error("column `{}` is not learned by the model: {}", brief(name), brief(why))]
    NotLearned {
        /// What it is called.
        name: String,
        /// Why it was left out.
        why: String,
    },
    /// Kinds that are said of data for a model.
    #[error("the kinds of the columns are those that the model was trained with")]
    KindsAreFixed,
    /// A setting of arrays or pictures for a table of columns.
    #[error("`{setting}` is about arrays and pictures, and this is a table of columns with names")]
    NotOfTables {
        /// The setting.
        setting: &'static str,
    },
    /// Data without names for a model of a table.
    #[error("the model was trained on a table with named columns, and this has none")]
    NoNames,
    /// A quote that opens and never closes.
    #[error("line {line} opens a quote that is not closed")]
    OpenQuote {
        /// The line, from 1.
        line: u64,
    },
    /// A table of which every column is left out.
    #[error("no column can be learned: {}", listed(left_out))]
    NothingToLearn {
        /// Why each is left out, after its name.
        left_out: Vec<String>,
    },
    /// A label whose class is not among those that are known.
    #[error("a label is `{}`, and the model was trained on no row of that class", brief(class))]
    UnknownClass {
        /// What the label says.
        class: String,
        /// The classes there are.
        known: Vec<String>,
    },
    /// Labels and rows differ in number.
    #[error("{found} labels for {n_rows} rows")]
    LabelCount {
        /// Rows of the table.
        n_rows: usize,
        /// Labels there are.
        found: usize,
    },
    /// A row without a usable label.
    #[error("row {row} has no label: {reason}")]
    NoLabel {
        /// The row, from 0.
        row: usize,
        /// What stands there.
        reason: String,
    },
    /// Pictures of several sizes.
    #[error(
        "picture `{}` has {}x{} pixels, the first has {}x{}",
        brief(name), found.0, found.1, expected.0, expected.1
    )]
    PictureSize {
        /// The picture.
        name: String,
        /// Height and width of the first.
        expected: (usize, usize),
        /// Height and width of this one.
        found: (usize, usize),
    },
    /// Rows that do not fill the picture they are said to be.
    #[error("a row has {n_columns} values, and a picture of {height}x{width} has {}", height * width)]
    ImageShape {
        /// Pixels from top to bottom.
        height: usize,
        /// Pixels from left to right.
        width: usize,
        /// Values in a row, labels left out.
        n_columns: usize,
    },
    /// Two rows of one source with one key.
    #[error("rows {} and {} of `{modality}` both have the key `{}`", rows.0, rows.1, brief(key))]
    SameKey {
        /// The modality.
        modality: String,
        /// The key.
        key: String,
        /// The rows, from 0.
        rows: (usize, usize),
    },
    /// Rows that are not there.
    #[error("`{asked}` asks for no row of the {n_rows} that there are, or for others")]
    Rows {
        /// What was asked for.
        asked: String,
        /// Rows of the source.
        n_rows: usize,
    },
    /// More or fewer names than columns.
    #[error("there are {found} names for {n_columns} columns")]
    NameCount {
        /// Columns of the data.
        n_columns: usize,
        /// Names in the file.
        found: usize,
    },
    /// A part of a picture that cannot be hidden.
    #[error(
        "`{part}` hides nothing of a picture of {height}x{width}, or all of it, or what is outside"
    )]
    Hidden {
        /// The part.
        part: String,
        /// Pixels from top to bottom.
        height: usize,
        /// Pixels from left to right.
        width: usize,
    },
    /// A setting that cannot be understood.
    #[error("`{}` is not a {what}", brief(text))]
    Setting {
        /// What is set.
        what: &'static str,
        /// What was written.
        text: String,
        /// What may be written.
        expected: &'static str,
    },
    /// A part of the rows that is empty or larger than the whole.
    #[error("{asked} of {n_rows} rows cannot be set apart")]
    Part {
        /// What was asked for.
        asked: String,
        /// Rows there are.
        n_rows: usize,
    },
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::In { source, .. } => return source.hint(),
            Self::Io(error) => return io_hint(error),
            Self::Variable { asked: None, available } => match available.len() {
                0 | 1 => "give a file that holds an array of numbers",
                _ => "choose one with `--variable NAME`",
            },
            Self::Variable { .. } => "give `--variable` one of these names",
            Self::Unsupported { instead, .. } => instead,
            Self::UnknownClass { known, .. } => {
                return Cow::Owned(format!("its classes: {}", listed(known)));
            }
            Self::LabelName { available, .. } if !available.is_empty() => {
                return Cow::Owned(format!("its columns: {}", listed(available)));
            }
            Self::Setting { expected, .. } => expected,
            Self::NoUnits { column, kind } => {
                let instead = match kind {
                    Kind::Ignore => "the kind that it holds",
                    _ => {
                        "gaussian, on a logarithmic scale where the numbers are skewed (gaussian:log)"
                    }
                };
                return Cow::Owned(format!("use `--kind {}=…` with {instead}", brief(column)));
            }
            Self::NoCount { column, .. } => {
                return Cow::Owned(format!(
                    "correct the cell or leave it empty; `--kind {}=gaussian` learns numbers of any size",
                    brief(column)
                ));
            }
            Self::OddCell { column, .. } => {
                let name = brief(column);
                return Cow::Owned(format!(
                    "correct the cell, or leave it empty if the number is missing; `--kind {name}=categorical` \
                     learns the column as words, `--kind {name}=ignore` leaves it out"
                ));
            }
            other => return other.plain_hint(),
        })
    }

    fn plain_hint(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Empty { .. } => "give a file with at least one row and one column",
            Self::WeightCount { .. } => "give one weight per row",
            Self::Weight { .. } => "leave rows out by a weight of 0, but not all of them",
            Self::BuiltIn { .. } => {
                "built-in sets: digits, bars-and-stripes:N, bars-and-stripes:N:distinct, shifter"
            }
            Self::NotAProbability { .. } => {
                "use `--binarize T` to threshold the data, or `--binarize none` with `--visible gaussian`"
            }
            Self::Truncated { .. } => "the file was cut short: fetch or write it again",
            Self::Bomb { .. } => "decompress the file yourself if you trust it",
            Self::TooLarge { .. } => "choose fewer columns or rows, or split the file",
            Self::UnknownFormat { .. } => {
                "formats: IDX, npy, npz, CSV and other plain tables, ARFF, .mat v5, svmlight, PNG, JPEG, each also as .gz"
            }
            Self::NotANumber { .. } => {
                "name a column of labels with `--label-column NAME|N`, or keep the numbers with `--columns A..B`"
            }
            Self::Shape { .. } | Self::Ragged { .. } => {
                "check that every row has the same number of columns"
            }
            Self::LongLine { .. } => "put each sample in a line of its own, and end the lines",
            Self::EmptyPipe => "a pipe can be read only once: save what it gives in a file",
            Self::NotAFile => "take it out of the folder: only regular files are read from folders",
            Self::SparseRow { .. } => "sparse rows are compressed (CSR), with columns from 0 on",
            Self::NotFinite { .. } => "write missing entries as NaN, `?` or nothing",
            Self::Columns { .. } => {
                "columns count from 0 and B is not included: `--columns 0..784` is the first 784"
            }
            Self::LabelColumn { .. } => "columns count from 0, and -1 is the last",
            Self::LabelName { .. } => "give the number of the column, from 0; -1 is the last",
            Self::LabelsBeside { .. } => "use them with `--labelled`",
            Self::NoLabels => {
                "give them with `--labels FILE` or `--label-column NAME|N`, or leave `--labelled` out"
            }
            Self::PackedWidth { .. } => "give `--packed-bits` the number of columns before packing",
            Self::NotAByte { .. } => "leave `--packed-bits` out: this data is not packed",
            Self::MaskShape { .. } => {
                "a mask has a column per column of the data, and a row per row, or one row for all"
            }
            Self::SameName { .. } => "give every column a name of its own",
            Self::NoHeader { .. } => "put a line with the names of the columns first",
            Self::NotText { .. } => "write the table as UTF-8",
            Self::NoColumn { .. } => "columns are named as in the header of the table",
            Self::UnknownColumn { .. } => {
                "take the column out, or pass over what the model does not know with `--unknown missing`"
            }
            Self::UnknownLevel { .. } => {
                "correct the cell, or count what the model does not know as missing with `--unknown missing`"
            }
            Self::NoNumber { .. } => {
                "correct the cell, leave it empty if it is missing, or learn words with `--kind NAME=categorical`"
            }
            Self::BelowLogarithm { .. } => {
                "numbers like this did not occur in training: correct the cell, or use `--unknown missing`"
            }
            Self::LevelCount { .. } => {
                "binary columns have two values, categorical ones and labels at least two; leave others out with `--kind NAME=ignore`"
            }
            Self::NothingToLearn { .. } => "say what a column holds with `--kind NAME=KIND`",
            Self::NoLogarithm { .. } => "use `gaussian` or `gaussian:linear`",
            Self::TwoLabels { .. } => "one column can be the label; learn the other as categorical",
            Self::NoClass { .. } => {
                "give every row its class, or learn the column as categorical, which may have holes"
            }
            Self::NotLearned { .. } => "name one of the columns that `harmonium inspect` lists",
            Self::KindsAreFixed => "leave `--kind` out, or train another model",
            Self::NotOfTables { .. } => "leave it out; `--kind NAME=KIND` says what a column holds",
            Self::NoNames => "give a table (CSV) whose first line holds the names of the columns",
            Self::OpenQuote { .. } => "close the quote; a quote inside quotes is written twice",
            Self::LabelCount { .. } => "give the labels of exactly these rows",
            Self::NoLabel { .. } => "every row needs one label, a whole number or a word",
            Self::PictureSize { .. } => "scale the pictures to one size first",
            Self::ImageShape { .. } => {
                "give height and width of the picture with `--image HxW`, and leave other columns out with `--columns A..B`"
            }
            Self::SameKey { .. } => "a key names one row of each source: leave the others out",
            Self::Rows { .. } => "rows count from 0, and the end of a range is left out",
            Self::NameCount { .. } => {
                "a file of names has one in each line, in the order of the columns"
            }
            Self::Hidden { .. } => {
                "hide a part of the picture: rectangle:TOP,LEFT,HEIGHT,WIDTH counts from 0"
            }
            Self::Part { .. } => "leave at least one row on each side",
            _ => "the file is damaged or of another format: fetch or write it again",
        })
    }

    /// The same error, saying which file it is about.
    #[must_use]
    pub fn in_file(self, path: impl Into<String>) -> Self {
        match self {
            Self::In { .. } => self,
            other => Self::In { path: path.into(), source: Box::new(other) },
        }
    }

    /// The error itself, without the file it is about.
    pub fn cause(&self) -> &Self {
        match self {
            Self::In { source, .. } => source.cause(),
            other => other,
        }
    }
}

impl From<io::Error> for Error {
    /// Errors that passed through a reader come back as what they were.
    fn from(error: io::Error) -> Self {
        error.downcast::<Self>().unwrap_or_else(Self::Io)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}

fn describe_io(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::PermissionDenied => "the file may not be read".into(),
        io::ErrorKind::IsADirectory => "this is a folder, not a file".into(),
        io::ErrorKind::UnexpectedEof => "the file ends early".into(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            format!("the compressed data is damaged ({error})")
        }
        _ => format!("the file cannot be read ({error})"),
    }
}

fn io_hint(error: &io::Error) -> Cow<'static, str> {
    Cow::Borrowed(match error.kind() {
        io::ErrorKind::NotFound => {
            "check the path; built-in sets: digits, bars-and-stripes:N, bars-and-stripes:N:distinct, shifter"
        }
        io::ErrorKind::PermissionDenied => "ask for the right to read it",
        io::ErrorKind::IsADirectory => "name a file in it, or a folder of PNG or JPEG pictures",
        _ => "the file was cut short or damaged: fetch or write it again",
    })
}

/// Names that are listed in a message before it says how many more there are.
const LISTED: usize = 20;
/// Characters of one part of a message; files may hold names of any length.
const BRIEF: usize = 400;

fn describe_variable(asked: Option<&String>, available: &[String]) -> String {
    match (asked, available) {
        (None, []) => "the file holds no arrays".to_owned(),
        (None, [one]) => format!("the file holds {}, which is not a table", brief(one)),
        (None, some) => format!("the file holds several variables: {}", listed(some)),
        (Some(name), []) => {
            format!("there is no table `{}`; the file holds no arrays", brief(name))
        }
        (Some(name), some) => {
            format!("there is no table `{}`; the file holds {}", brief(name), listed(some))
        }
    }
}

/// The first names, and how many follow.
fn listed(names: &[String]) -> String {
    let first: Vec<Cow<'_, str>> = names.iter().take(LISTED).map(|n| brief(n)).collect();
    match names.len().saturating_sub(LISTED) {
        0 => first.join(", "),
        more => format!("{}, and {more} more", first.join(", ")),
    }
}

/// How many names there were to choose from.
fn named(available: &[String]) -> String {
    match available.len() {
        0 => "and the columns of this file have no names".into(),
        n => format!("and none of the {n} columns is called so"),
    }
}

/// The start of a text that comes from a file, with control characters spelled out: what a terminal
/// can show in a few lines.
pub(crate) fn brief(text: &str) -> Cow<'_, str> {
    let end = text.char_indices().nth(BRIEF).map(|(place, _)| place);
    if end.is_none() && !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for c in text[..end.unwrap_or(text.len())].chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    if end.is_some() {
        shown.push('…');
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_short_and_can_be_shown() {
        let long = "x".repeat(18 << 20);
        let errors = [
            Error::Damaged { format: "npy", reason: long.clone() },
            Error::Unsupported { format: "npy", what: long.clone(), instead: "" },
            Error::Variable { asked: Some(long.clone()), available: vec![long.clone(); 3] },
            Error::Variable { asked: None, available: vec!["é".repeat(1000); 1000] },
            Error::LabelName { asked: long.clone(), available: vec![long.clone(); 2] },
            Error::UnknownClass { class: long.clone(), known: vec![long; 2] },
        ];
        for error in errors {
            assert!(error.to_string().len() < 32 << 10, "{}", error.to_string().len());
            assert!(error.hint().len() < 32 << 10);
        }
        assert_eq!(brief("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        let empty = Error::Variable { asked: None, available: Vec::new() };
        assert_eq!(empty.to_string(), "the file holds no arrays");
    }
}
