//! Which part of a picture is hidden: halves and rectangles.

use crate::{Error, Image};
use ndarray::Array2;
use std::fmt;
use std::str::FromStr;

/// A part of every picture, to be imagined from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hide {
    /// The rows from the middle down; of an odd number the middle one stays.
    LowerHalf,
    /// The rows above the middle; of an odd number the middle one stays.
    UpperHalf,
    /// The columns left of the middle; of an odd number the middle one stays.
    LeftHalf,
    /// The columns from the middle on; of an odd number the middle one stays.
    RightHalf,
    /// A rectangle, from its upper left corner, counted from 0.
    Rectangle {
        /// The first row.
        top: usize,
        /// The first column.
        left: usize,
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
}

impl fmt::Display for Hide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LowerHalf => f.write_str("lower-half"),
            Self::UpperHalf => f.write_str("upper-half"),
            Self::LeftHalf => f.write_str("left-half"),
            Self::RightHalf => f.write_str("right-half"),
            Self::Rectangle { top, left, height, width } => {
                write!(f, "rectangle:{top},{left},{height},{width}")
            }
        }
    }
}

impl FromStr for Hide {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Setting {
            what: "part of a picture",
            text: text.to_owned(),
            expected: "write `lower-half`, `upper-half`, `left-half`, `right-half` or \
                       `rectangle:TOP,LEFT,HEIGHT,WIDTH`, counted from 0",
        };
        match text {
            "lower-half" => Ok(Self::LowerHalf),
            "upper-half" => Ok(Self::UpperHalf),
            "left-half" => Ok(Self::LeftHalf),
            "right-half" => Ok(Self::RightHalf),
            _ => {
                let numbers = text.strip_prefix("rectangle:").ok_or_else(wrong)?;
                let numbers: Result<Vec<usize>, _> =
                    numbers.split(',').map(|n| n.trim().parse()).collect();
                match numbers.map_err(|_| wrong())?[..] {
                    [top, left, height, width] => Ok(Self::Rectangle { top, left, height, width }),
                    _ => Err(wrong()),
                }
            }
        }
    }
}

impl Hide {
    /// What is left to be seen of a picture, along its rows: one row that holds for every sample.
    ///
    /// # Errors
    ///
    /// If nothing of the picture is hidden, everything, or what is outside of it.
    pub fn observed(&self, image: Image) -> Result<Array2<bool>, Error> {
        let Image { height, width } = image;
        let (rows, columns) = match *self {
            Self::LowerHalf => (height.div_ceil(2)..height, 0..width),
            Self::UpperHalf => (0..height / 2, 0..width),
            Self::LeftHalf => (0..height, 0..width / 2),
            Self::RightHalf => (0..height, width.div_ceil(2)..width),
            Self::Rectangle { top, left, height, width } => {
                (top..top.saturating_add(height), left..left.saturating_add(width))
            }
        };
        let hidden = rows.len() * columns.len();
        let outside = rows.end > height || columns.end > width;
        if outside || hidden == 0 || hidden == height * width {
            return Err(Error::Hidden { part: self.to_string(), height, width });
        }
        let seen = |(_, c): (usize, usize)| {
            !(rows.contains(&(c / width)) && columns.contains(&(c % width)))
        };
        Ok(Array2::from_shape_fn((1, height * width), seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Image = Image { height: 3, width: 4 };

    fn drawn(part: &str) -> String {
        let seen = part.parse::<Hide>().unwrap().observed(IMAGE).unwrap();
        let rows = seen.as_slice().unwrap().chunks(4);
        let line = |row: &[bool]| row.iter().map(|s| if *s { '#' } else { '.' }).collect();
        rows.map(line).collect::<Vec<String>>().join("/")
    }

    #[test]
    fn parts_of_a_picture() {
        assert_eq!(drawn("lower-half"), "####/####/....");
        assert_eq!(drawn("upper-half"), "..../####/####");
        assert_eq!(drawn("left-half"), "..##/..##/..##");
        assert_eq!(drawn("right-half"), "##../##../##..");
        assert_eq!(drawn("rectangle:1,1,2,2"), "####/#..#/#..#");
        let odd = "left-half".parse::<Hide>().unwrap();
        let seen = odd.observed(Image { height: 1, width: 3 }).unwrap();
        assert_eq!(seen.as_slice().unwrap(), [false, true, true]);
    }

    #[test]
    fn parts_that_are_none_are_refused() {
        for part in ["lower", "rectangle:1,2,3", "rectangle:a,0,1,1", "rectangle:0,0,-1,1", ""] {
            assert!(part.parse::<Hide>().is_err(), "{part}");
        }
        for part in ["rectangle:2,0,2,1", "rectangle:0,0,0,1", "rectangle:0,0,3,4"] {
            assert!(part.parse::<Hide>().unwrap().observed(IMAGE).is_err(), "{part}");
        }
        let line = Image { height: 1, width: 4 };
        assert!(Hide::LowerHalf.observed(line).is_err());
    }

    #[test]
    fn parts_are_written_as_they_are_read() {
        for part in ["lower-half", "upper-half", "left-half", "right-half", "rectangle:1,2,3,4"] {
            assert_eq!(part.parse::<Hide>().unwrap().to_string(), part);
        }
    }
}
