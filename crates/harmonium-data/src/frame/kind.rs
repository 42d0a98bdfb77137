//! What a column holds.

use crate::Error;
use std::fmt;
use std::str::FromStr;

/// How the cells of a column are to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum Kind {
    /// One of two values.
    Binary,
    /// A real number.
    Gaussian,
    /// One of several values without an order.
    Categorical,
    /// The class of the row.
    Label,
    /// Nothing to be learned: the column is left out.
    Ignore,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary",
            Self::Gaussian => "gaussian",
            Self::Categorical => "categorical",
            Self::Label => "label",
            Self::Ignore => "ignore",
        })
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "binary" => Ok(Self::Binary),
            "gaussian" => Ok(Self::Gaussian),
            "categorical" => Ok(Self::Categorical),
            "label" => Ok(Self::Label),
            "ignore" => Ok(Self::Ignore),
            _ => Err(Error::Setting {
                what: "kind of a column",
                text: text.to_owned(),
                expected: "it is binary, gaussian, categorical, label or ignore",
            }),
        }
    }
}
