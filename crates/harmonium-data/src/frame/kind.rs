//! What a column holds.

use super::Curve;
use crate::Error;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// How the cells of a column are to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "String")
)]
#[non_exhaustive]
pub enum Kind {
    /// One of two values.
    Binary,
    /// A real number.
    Gaussian,
    /// One of several values without an order.
    Categorical,
    /// One of several values in an order.
    Ordinal,
    /// A whole number from 0 on.
    Counts,
    /// A whole number of successes out of so many.
    Binomial(u32),
    /// The class of the row.
    Label,
    /// Nothing to be learned: the column is left out.
    Ignore,
}

/// Kinds that were asked for, by the names of columns.
pub type Kinds = BTreeMap<String, Asked>;

/// What a column is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "String", into = "String")
)]
pub struct Asked {
    /// Its kind.
    pub kind: Kind,
    /// The scale of its numbers; found out unless said.
    pub curve: Option<Curve>,
}

impl From<Kind> for Asked {
    fn from(kind: Kind) -> Self {
        Self { kind, curve: None }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary",
            Self::Gaussian => "gaussian",
            Self::Categorical => "categorical",
            Self::Ordinal => "ordinal",
            Self::Counts => "counts",
            Self::Binomial(n) => return write!(f, "binomial:{n}"),
            Self::Label => "label",
            Self::Ignore => "ignore",
        })
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Setting {
            what: "kind of a column",
            text: text.to_owned(),
            expected: "it is binary, gaussian, categorical, ordinal, counts, binomial:N, label or ignore; \
                       gaussian:linear and gaussian:log also say on which scale",
        };
        match text {
            "binary" => Ok(Self::Binary),
            "gaussian" => Ok(Self::Gaussian),
            "categorical" => Ok(Self::Categorical),
            "ordinal" => Ok(Self::Ordinal),
            "counts" => Ok(Self::Counts),
            "label" => Ok(Self::Label),
            "ignore" => Ok(Self::Ignore),
            _ => {
                let n = text.strip_prefix("binomial:").and_then(|n| n.parse().ok());
                n.filter(|n| *n > 0).map(Self::Binomial).ok_or_else(wrong)
            }
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.curve {
            None => self.kind.fmt(f),
            Some(Curve::Linear) => write!(f, "{}:linear", self.kind),
            Some(Curve::Log | Curve::Log1p) => write!(f, "{}:log", self.kind),
        }
    }
}

impl FromStr for Asked {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let curve = match text {
            "gaussian:linear" => Some(Curve::Linear),
            "gaussian:log" => Some(Curve::Log),
            other => return other.parse().map(Kind::into),
        };
        Ok(Self { kind: Kind::Gaussian, curve })
    }
}

impl TryFrom<String> for Kind {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.to_string()
    }
}

impl TryFrom<String> for Asked {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Asked> for String {
    fn from(asked: Asked) -> Self {
        asked.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_are_written() {
        let words = "binary gaussian categorical ordinal counts binomial:12 label ignore";
        for word in words.split(' ') {
            assert_eq!(word.parse::<Kind>().unwrap().to_string(), word);
            assert_eq!(word.parse::<Asked>().unwrap().to_string(), word);
        }
        for word in ["gaussian:linear", "gaussian:log"] {
            assert_eq!(word.parse::<Asked>().unwrap().to_string(), word);
        }
        for wrong in ["", "real", "Binary", "binomial", "binomial:0", "binomial:x", "label:log"] {
            assert!(wrong.parse::<Asked>().is_err(), "{wrong}");
        }
    }
}
