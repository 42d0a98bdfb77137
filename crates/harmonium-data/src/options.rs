//! What is to be taken from a file.

use crate::{Error, Image};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The column that holds the label of each row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(untagged))]
pub enum LabelColumn {
    /// Its number, from 0; negative counts from the end.
    Number(isize),
    /// Its name in the header of a table.
    Name(String),
}

impl From<isize> for LabelColumn {
    fn from(number: isize) -> Self {
        Self::Number(number)
    }
}

impl FromStr for LabelColumn {
    type Err = std::convert::Infallible;

    /// A whole number is a number; anything else is a name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Number))
    }
}

impl fmt::Display for LabelColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => write!(f, "`{name}`"),
        }
    }
}

/// What is to be taken from a file, and how it is laid out there.
///
/// The steps run in this order: packed bits are unpacked, the table is transposed, the label
/// column is taken out, the columns are chosen, values are inverted, pixels are put into the order
/// of rows. Columns count in the table
/// as it stands before the label column is taken out; the label column is never among the data,
/// even when `columns` covers it.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Options {
    /// The variable of a file that holds several; a path such as `data.X1` reaches into structs.
    pub variable: Option<String>,
    /// One column per sample; in an array of three or more dimensions the last counts samples.
    pub transpose: bool,
    /// The columns to keep, from 0; an end of `usize::MAX` is the last column.
    pub columns: Option<Range<usize>>,
    /// The column of labels.
    pub label_column: Option<LabelColumn>,
    /// Number of columns packed into the bytes of each row, highest bit first.
    pub packed_bits: Option<usize>,
    /// Whether values are turned around: `x` becomes full scale − `x`.
    pub invert: bool,
    /// The value that is fully on, where the file does not say; `open` tells what it is then.
    pub full_scale: Option<f32>,
    /// The picture in each row, where the file does not say or says otherwise.
    pub image: Option<ImageLayout>,
}

/// How the columns of a table are a picture: `28x28`, or `28x28:column-major`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ImageLayout {
    /// Pixels from top to bottom.
    pub height: usize,
    /// Pixels from left to right.
    pub width: usize,
    /// Whether the file lists a column of the picture after the other, as MATLAB does, instead of rows.
    pub column_major: bool,
}

impl ImageLayout {
    /// The shape of the picture.
    pub fn image(self) -> Image {
        Image { height: self.height, width: self.width }
    }

    /// Where each pixel, counted along the rows of the picture, stands in the file.
    pub(crate) fn places(self) -> impl Iterator<Item = usize> {
        let Self { height, width, column_major } = self;
        let place =
            move |y: usize, x: usize| if column_major { x * height + y } else { y * width + x };
        (0..height).flat_map(move |y| (0..width).map(move |x| place(y, x)))
    }
}

impl FromStr for ImageLayout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Setting {
            what: "shape of a picture",
            text: text.to_owned(),
            expected: "write `HxW`, height first, or `HxW:column-major`",
        };
        let (shape, column_major) = match text.split_once(':') {
            None => (text, false),
            Some((shape, "column-major")) => (shape, true),
            Some((shape, "row-major")) => (shape, false),
            Some(_) => return Err(wrong()),
        };
        let side = |side: &str| side.parse().ok().filter(|&n: &usize| n > 0).ok_or_else(wrong);
        let (height, width) = shape.split_once('x').ok_or_else(wrong)?;
        let (height, width) = (side(height)?, side(width)?);
        height.checked_mul(width).ok_or_else(wrong)?;
        Ok(Self { height, width, column_major })
    }
}

impl Options {
    /// Reads a range of columns as it is written on a command line: `A..B`, `A..` or `..B`.
    ///
    /// # Errors
    ///
    /// If the text is not such a range, or the range is empty.
    pub fn parse_columns(text: &str) -> Result<Range<usize>, Error> {
        let wrong = || Error::Setting {
            what: "range of columns",
            text: text.to_owned(),
            expected: "write `A..B`, from column A, counted from 0, up to but not including B",
        };
        let number = |side: &str, default| match side.trim() {
            "" => Ok(default),
            digits => digits.parse::<usize>().map_err(|_| wrong()),
        };
        let (start, end) = text.split_once("..").ok_or_else(wrong)?;
        let range = number(start, 0)?..number(end, usize::MAX)?;
        if range.is_empty() { Err(wrong()) } else { Ok(range) }
    }
}

/// Options applied to a table of known width.
#[derive(Clone, Debug, PartialEq)]
#[cfg(feature = "readers")]
pub(crate) struct Columns {
    /// Which column holds the labels.
    pub(crate) label: Option<usize>,
    /// Which columns are kept; the label is left out on top.
    pub(crate) kept: Range<usize>,
}

#[cfg(feature = "readers")]
impl Columns {
    pub(crate) fn resolve(options: &Options, n_columns: usize) -> Result<Self, Error> {
        let kept = match options.columns.clone() {
            None => 0..n_columns,
            Some(r) if r.end == usize::MAX && r.start < n_columns => r.start..n_columns,
            Some(r) if r.end <= n_columns && !r.is_empty() => r,
            Some(range) => return Err(Error::Columns { range, n_columns }),
        };
        let label = options.label_column.as_ref();
        let label = label.map(|column| resolve_column(column, n_columns)).transpose()?;
        Ok(Self { label, kept })
    }

    /// The same for formats whose cells may be words; `None` where rows are reshaped before
    /// columns are chosen, so that every cell must be a number.
    pub(crate) fn of_text(options: &Options, n_columns: usize) -> Result<Option<Self>, Error> {
        let reshaped = options.transpose || options.packed_bits.is_some();
        (!reshaped).then(|| Self::resolve(options, n_columns)).transpose()
    }

    /// Whether the values of a column end up in the table.
    pub(crate) fn needs(columns: Option<&Self>, column: usize) -> bool {
        columns.is_none_or(|c| c.kept.contains(&column) && c.label != Some(column))
    }

    pub(crate) fn is_everything(&self, n_columns: usize) -> bool {
        self.label.is_none() && self.kept == (0..n_columns)
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> + '_ {
        self.kept.clone().filter(|c| Some(*c) != self.label)
    }
}

#[cfg(feature = "readers")]
fn resolve_column(asked: &LabelColumn, n_columns: usize) -> Result<usize, Error> {
    let asked = match asked {
        LabelColumn::Number(number) => *number,
        // Names were looked up by the readers that know any.
        LabelColumn::Name(name) => {
            return Err(Error::LabelName { asked: name.clone(), available: Vec::new() });
        }
    };
    let column = match usize::try_from(asked) {
        Ok(from_start) => Some(from_start),
        Err(_) => n_columns.checked_sub(asked.unsigned_abs()),
    };
    column.filter(|c| *c < n_columns).ok_or(Error::LabelColumn { asked, n_columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_as_they_are_written() {
        assert_eq!(Options::parse_columns("3..7").unwrap(), 3..7);
        assert_eq!(Options::parse_columns("..7").unwrap(), 0..7);
        assert_eq!(Options::parse_columns("3..").unwrap(), 3..usize::MAX);
        for wrong in ["", "3", "3-7", "7..3", "a..b", "-1..4", "2..2"] {
            assert!(Options::parse_columns(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pictures_are_read_as_they_are_written() {
        let read = |text: &str| text.parse::<ImageLayout>();
        let (height, width) = (2, 3);
        assert_eq!(read("2x3").unwrap(), ImageLayout { height, width, column_major: false });
        let turned = read("2x3:column-major").unwrap();
        assert_eq!(turned, ImageLayout { height, width, column_major: true });
        assert_eq!(turned.places().collect::<Vec<_>>(), [0, 2, 4, 1, 3, 5]);
        assert!(read("2x3").unwrap().places().eq(0..6));
        let huge = format!("{0}x{0}", usize::MAX);
        for wrong in ["", "6", "2x", "0x3", "2x3x4", "2x3:sideways", "-2x3", "2 x 3", &huge] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_label_column_is_a_number_or_a_name() {
        assert_eq!("-1".parse(), Ok(LabelColumn::Number(-1)));
        assert_eq!("class".parse(), Ok(LabelColumn::Name("class".into())));
    }

    #[cfg(feature = "readers")]
    #[test]
    fn the_label_column_is_never_data() {
        let options =
            Options { columns: Some(0..3), label_column: Some((-3).into()), ..Options::default() };
        let columns = Columns::resolve(&options, 4).unwrap();
        assert_eq!(columns.indices().collect::<Vec<_>>(), [0, 2]);
        for bad in [-5, 4] {
            let options = Options { label_column: Some(bad.into()), ..Options::default() };
            assert!(Columns::resolve(&options, 4).is_err());
        }
    }
}
