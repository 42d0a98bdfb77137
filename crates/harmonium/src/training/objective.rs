//! What the training of a machine with labels climbs (Larochelle & Bengio 2008).
//!
//! $$w \ln p(v, y) + (1 - w) \ln p(y \mid v)$$

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What is climbed; written `generative`, `discriminative` or `hybrid:W`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Objective {
    /// $\ln p(v, y)$.
    #[default]
    Generative,
    /// $\ln p(y \mid v)$.
    Discriminative,
    /// Both, the first with this share: 0 is discriminative, 1 generative.
    Hybrid(f64),
}

impl Objective {
    /// The share of $\ln p(v, y)$.
    pub fn generative_share(self) -> f64 {
        match self {
            Self::Generative => 1.0,
            Self::Discriminative => 0.0,
            Self::Hybrid(share) => share,
        }
    }

    /// Whether nothing but $\ln p(v, y)$ is climbed.
    pub fn is_generative(&self) -> bool {
        self.generative_share() == 1.0
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generative => f.write_str("generative"),
            Self::Discriminative => f.write_str("discriminative"),
            Self::Hybrid(share) => write!(f, "hybrid:{share}"),
        }
    }
}

impl FromStr for Objective {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let share = |text: &str| {
            text.trim().parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share))
        };
        let known = match text {
            "generative" => Some(Self::Generative),
            "discriminative" => Some(Self::Discriminative),
            other => other.strip_prefix("hybrid:").and_then(share).map(Self::Hybrid),
        };
        known.ok_or_else(|| Error::Setting {
            name: "objective",
            value: text.into(),
            range: "`generative`, `discriminative` or `hybrid:W` with W from 0 (discriminative) to 1 (generative)",
        })
    }
}

impl TryFrom<String> for Objective {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Objective> for String {
    fn from(objective: Objective) -> Self {
        objective.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_as_they_are_written() {
        for text in ["generative", "discriminative", "hybrid:0.25", "hybrid:0", "hybrid:1"] {
            assert_eq!(text.parse::<Objective>().unwrap().to_string(), text);
        }
        for text in ["", "hybrid", "hybrid:", "hybrid:2", "hybrid:nan", "hybrid:-0.1"] {
            assert!(text.parse::<Objective>().is_err(), "{text}");
        }
    }
}
