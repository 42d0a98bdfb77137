//! Settings that change over a run.
//!
//! Written as people would: `0.9` stays, `1:0.01` moves in a straight line from the first to the
//! last step, `0.5@0,0.9@5` changes at the epochs named (counted from 0).

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Updates done.
    pub step: u64,
    /// Updates the whole run will do.
    pub n_steps: u64,
    /// Epochs finished.
    pub epoch: u64,
    /// Updates of one epoch.
    pub per_epoch: u64,
}

impl Progress {
    /// Where a run of `epochs` epochs is.
    pub fn new(epoch: u64, batches_done: u64, per_epoch: u64, epochs: u64) -> Self {
        let step = epoch * per_epoch + batches_done;
        Self { step, n_steps: epochs.saturating_mul(per_epoch), epoch, per_epoch }
    }
}

impl Progress {
    /// From 0 at the first step to 1 at the last.
    pub fn fraction(self) -> f64 {
        self.step as f64 / self.n_steps.saturating_sub(1).max(1) as f64
    }
}

/// A number that may depend on the progress of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Schedule {
    /// The same all the time.
    Constant(f64),
    /// In a straight line over the steps of the run.
    Linear {
        /// At the first step.
        from: f64,
        /// At the last step.
        to: f64,
    },
    /// Values from the epochs named on; the first starts at epoch 0.
    Steps(Vec<(u64, f64)>),
}

impl Schedule {
    /// The value now.
    pub fn at(&self, progress: Progress) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Linear { from, to } => from + (to - from) * progress.fraction().min(1.0),
            Self::Steps(steps) => {
                let started = steps.iter().rev().find(|s| s.0 <= progress.epoch);
                started.or(steps.first()).map_or(0.0, |s| s.1)
            }
        }
    }

    /// All values it can take lie between these.
    pub fn range(&self) -> (f64, f64) {
        let values: Vec<f64> = match self {
            Self::Constant(v) => vec![*v],
            Self::Linear { from, to } => vec![*from, *to],
            Self::Steps(steps) => steps.iter().map(|s| s.1).collect(),
        };
        let fold = |f: fn(f64, f64) -> f64, start| values.iter().copied().fold(start, f);
        (fold(f64::min, f64::INFINITY), fold(f64::max, f64::NEG_INFINITY))
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "{value}"),
            Self::Linear { from, to } => write!(f, "{from}:{to}"),
            Self::Steps(steps) => {
                let parts: Vec<String> = steps.iter().map(|(e, v)| format!("{v}@{e}")).collect();
                f.write_str(&parts.join(","))
            }
        }
    }
}

impl FromStr for Schedule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Setting {
            name: "schedule",
            value: text.into(),
            range: "a number `0.9`, a line `1:0.01`, or steps by epoch `0.5@0,0.9@5`",
        };
        let number =
            |s: &str| s.trim().parse::<f64>().ok().filter(|x| x.is_finite()).ok_or_else(wrong);
        if let Some((from, to)) = text.split_once(':') {
            return Ok(Self::Linear { from: number(from)?, to: number(to)? });
        }
        if !text.contains('@') {
            return Ok(Self::Constant(number(text)?));
        }
        let mut steps = Vec::new();
        for part in text.split(',') {
            let (value, epoch) = part.split_once('@').ok_or_else(wrong)?;
            steps.push((epoch.trim().parse::<u64>().map_err(|_| wrong())?, number(value)?));
        }
        if steps[0].0 != 0 || steps.windows(2).any(|w| w[0].0 >= w[1].0) {
            return Err(wrong());
        }
        Ok(Self::Steps(steps))
    }
}

impl TryFrom<String> for Schedule {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Schedule> for String {
    fn from(schedule: Schedule) -> Self {
        schedule.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_and_written_alike() {
        for text in ["0.9", "1:0.01", "0.5@0,0.9@5", "-2"] {
            assert_eq!(text.parse::<Schedule>().unwrap().to_string(), text);
        }
        for text in ["", "x", "1:", "0.5@1", "0.5@0,0.9@0", "0.5@0,0.9", "inf", "1:nan"] {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
    }

    #[test]
    fn values_follow_the_run() {
        let at = |text: &str, step, epoch| {
            text.parse::<Schedule>().unwrap().at(Progress {
                step,
                n_steps: 11,
                epoch,
                per_epoch: 1,
            })
        };
        assert_eq!(at("3", 7, 2), 3.0);
        assert_eq!(at("1:0", 0, 0), 1.0);
        assert_eq!(at("1:0", 5, 0), 0.5);
        assert_eq!(at("1:0", 10, 0), 0.0);
        assert_eq!(at("0.5@0,0.9@5", 0, 4), 0.5);
        assert_eq!(at("0.5@0,0.9@5", 0, 5), 0.9);
        assert_eq!("1@0,3@2,2@4".parse::<Schedule>().unwrap().range(), (1.0, 3.0));
    }
}
