//! What is measured of a run, and the one place where its names are spelt.
//!
//! Whoever measures, whoever writes the numbers down and whoever draws conclusions from them name
//! a metric by the same [`MetricName`]. Its text, `log_likelihood.valid` for example, is the key in
//! `events.jsonl`.

use super::observer::View;
use crate::error::Error;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Which data a metric was measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum On {
    /// The data that is learned from.
    Train,
    /// Data that is held back.
    Valid,
}

/// The name of a metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricName {
    /// The mean log-likelihood: exact, or with $\ln Z$ as it was tracked.
    LogLikelihood(On),
    /// A lower bound of the mean log-likelihood.
    Bound(On),
    /// The mean log-likelihood, estimated by importance sampling.
    Importance(On),
    /// The mean log-pseudo-likelihood.
    PseudoLikelihood(On),
    /// A rough log-likelihood of validation data, by quick annealing: it compares the epochs of one run.
    AnnealedLikelihood,
    /// The mean free energy of data; for deep machines its variational bound.
    FreeEnergy(On),
    /// The mean free energy of the chains that stand for the model.
    ChainsFreeEnergy,
    /// The free energy of validation data minus that of training data.
    FreeEnergyGap,
    /// Mean squared distance after one step down and up.
    ReconstructionError,
    /// $\ln Z$ along the trajectory of frozen machines.
    TrajectoryLogPartition,
    /// The share of exchanges with the last frozen machine that are accepted.
    TrajectoryAcceptance,
    /// Frozen machines of the trajectory.
    TrajectoryMachines,
    /// $\ln Z$.
    LogPartition,
    /// How far the chains' mean free energy is from that of the model, in standard deviations.
    ChainsLag,
    /// How much of a chain's free energy is left after the sweeps of one update: a correlation.
    ChainsAutocorrelation,
    /// The least share of accepted swaps between neighbours of the ladders that $\ln Z$ is known by.
    LadderSwaps,
    /// Hidden units that are almost never on.
    DeadUnits,
    /// Hidden units that are almost never off.
    SaturatedUnits,
    /// The share of rows whose most probable class is not their label.
    ErrorRate(On),
    /// The mean over tags of the average precision with which each orders the rows.
    AveragePrecision(On),
    /// The mean loss of a net.
    Loss(On),
    /// A metric of the caller's own.
    Other(String),
}

impl MetricName {
    /// All names but those of callers.
    pub const ALL: [Self; 29] = [
        Self::LogLikelihood(On::Train),
        Self::LogLikelihood(On::Valid),
        Self::Bound(On::Train),
        Self::Bound(On::Valid),
        Self::Importance(On::Train),
        Self::Importance(On::Valid),
        Self::PseudoLikelihood(On::Train),
        Self::PseudoLikelihood(On::Valid),
        Self::AnnealedLikelihood,
        Self::FreeEnergy(On::Train),
        Self::FreeEnergy(On::Valid),
        Self::ChainsFreeEnergy,
        Self::FreeEnergyGap,
        Self::ReconstructionError,
        Self::TrajectoryLogPartition,
        Self::TrajectoryAcceptance,
        Self::TrajectoryMachines,
        Self::LogPartition,
        Self::ChainsLag,
        Self::ChainsAutocorrelation,
        Self::LadderSwaps,
        Self::DeadUnits,
        Self::SaturatedUnits,
        Self::ErrorRate(On::Train),
        Self::ErrorRate(On::Valid),
        Self::AveragePrecision(On::Train),
        Self::AveragePrecision(On::Valid),
        Self::Loss(On::Train),
        Self::Loss(On::Valid),
    ];

    /// The name as it is written: a family, and after a dot what it was measured on.
    pub fn as_str(&self) -> &str {
        match self {
            Self::LogLikelihood(On::Train) => "log_likelihood.train",
            Self::LogLikelihood(On::Valid) => "log_likelihood.valid",
            Self::Bound(On::Train) => "bound.train",
            Self::Bound(On::Valid) => "bound.valid",
            Self::Importance(On::Train) => "importance.train",
            Self::Importance(On::Valid) => "importance.valid",
            Self::PseudoLikelihood(On::Train) => "pseudo_likelihood.train",
            Self::PseudoLikelihood(On::Valid) => "pseudo_likelihood.valid",
            Self::AnnealedLikelihood => "annealed_likelihood.valid",
            Self::FreeEnergy(On::Train) => "free_energy.train",
            Self::FreeEnergy(On::Valid) => "free_energy.valid",
            Self::ChainsFreeEnergy => "free_energy.chains",
            Self::FreeEnergyGap => "free_energy_gap",
            Self::ReconstructionError => "reconstruction_error",
            Self::TrajectoryLogPartition => "trajectory.log_partition",
            Self::TrajectoryAcceptance => "trajectory.acceptance",
            Self::TrajectoryMachines => "trajectory.machines",
            Self::LogPartition => "log_partition",
            Self::ChainsLag => "chains.lag",
            Self::ChainsAutocorrelation => "chains.autocorrelation",
            Self::LadderSwaps => "ladder.swaps",
            Self::DeadUnits => "dead_units",
            Self::SaturatedUnits => "saturated_units",
            Self::ErrorRate(On::Train) => "error_rate.train",
            Self::ErrorRate(On::Valid) => "error_rate.valid",
            Self::AveragePrecision(On::Train) => "average_precision.train",
            Self::AveragePrecision(On::Valid) => "average_precision.valid",
            Self::Loss(On::Train) => "loss.train",
            Self::Loss(On::Valid) => "loss.valid",
            Self::Other(name) => name,
        }
    }

    /// Whether it is in nats, and the more the better.
    pub fn is_likelihood(&self) -> bool {
        matches!(
            self,
            Self::LogLikelihood(_)
                | Self::Bound(_)
                | Self::Importance(_)
                | Self::PseudoLikelihood(_)
                | Self::AnnealedLikelihood
        )
    }

    /// Whether less of it is better.
    pub fn is_cost(&self) -> bool {
        matches!(self, Self::ErrorRate(_) | Self::Loss(_))
    }
}

impl From<&str> for MetricName {
    fn from(name: &str) -> Self {
        let known = Self::ALL.into_iter().find(|known| known.as_str() == name);
        known.unwrap_or_else(|| Self::Other(name.into()))
    }
}

impl From<String> for MetricName {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for MetricName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

/// A number with its error bar, if it has one.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Measurement {
    /// What was measured.
    pub name: MetricName,
    /// The value.
    pub value: f64,
    /// Its standard error.
    pub std_error: Option<f64>,
}

/// What was measured at one time.
///
/// Written as a map with an entry `NAME` for each value and `NAME.std_error` for each standard
/// error. JSON has no NaN: a number that is not finite is written as `null` and read as NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements(pub Vec<Measurement>);

/// What follows the name of a metric in the key of its standard error.
const STD_ERROR: &str = ".std_error";

impl Measurements {
    /// The measurement of this name.
    pub fn get(&self, name: &MetricName) -> Option<&Measurement> {
        self.0.iter().find(|m| m.name == *name)
    }

    /// The value of this name.
    pub fn value(&self, name: &MetricName) -> Option<f64> {
        self.get(name).map(|m| m.value)
    }

    /// The lower end of the score of this name: two standard errors of the $\ln Z$ that it rests on below it.
    /// Scores of the same rows are compared by it, because a score is as good as its $\ln Z$, and of many
    /// uncertain ones the highest is the one with the luckiest error.
    pub fn lower_end(&self, name: &MetricName) -> Option<f64> {
        let doubt = self.get(&MetricName::LogPartition).and_then(|z| z.std_error).unwrap_or(0.0);
        let rests_on_it = matches!(name, MetricName::LogLikelihood(_) | MetricName::Bound(_));
        self.value(name).map(|value| if rests_on_it { value - 2.0 * doubt } else { value })
    }

    /// The first value or standard error that is not finite, with the name of its metric.
    pub fn not_finite(&self) -> Option<(&MetricName, f64)> {
        let numbers = |m: &Measurement| [m.value, m.std_error.unwrap_or(0.0)];
        let wrong = |m: &Measurement| numbers(m).into_iter().find(|x| !x.is_finite());
        self.0.iter().find_map(|m| Some((&m.name, wrong(m)?)))
    }

    /// All measurements.
    pub fn iter(&self) -> std::slice::Iter<'_, Measurement> {
        self.0.iter()
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'m> IntoIterator for &'m Measurements {
    type Item = &'m Measurement;
    type IntoIter = std::slice::Iter<'m, Measurement>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Vec<Measurement>> for Measurements {
    fn from(found: Vec<Measurement>) -> Self {
        Self(found)
    }
}

impl Serialize for Measurements {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for Measurement { name, value, std_error } in self {
            map.serialize_entry(name.as_str(), value)?;
            if let Some(error) = std_error {
                map.serialize_entry(&format!("{name}{STD_ERROR}"), error)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Measurements {
    /// Entries that are neither numbers nor `null` were written by later versions: they are skipped.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<String, Value>::deserialize(from)?;
        let number = |value: &Value| match value {
            Value::Null => Some(f64::NAN),
            other => other.as_f64(),
        };
        let measured = |(name, value): (&String, &Value)| {
            if name.ends_with(STD_ERROR) {
                return None;
            }
            let std_error = map.get(&format!("{name}{STD_ERROR}")).and_then(number);
            Some(Measurement { name: name.as_str().into(), value: number(value)?, std_error })
        };
        Ok(Self(map.iter().filter_map(measured).collect()))
    }
}

/// Measures what is being learned.
pub trait Metric {
    /// Takes the measurements; none where the stage has nothing that it could measure.
    ///
    /// # Errors
    ///
    /// If the machine is too large for what is measured.
    fn measure(&mut self, view: &View<'_>) -> Result<Vec<Measurement>, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_as_it_is_written() {
        for name in MetricName::ALL {
            assert_eq!(MetricName::from(name.as_str()), name);
            assert!(!matches!(MetricName::from(name.as_str()), MetricName::Other(_)));
        }
        assert_eq!(MetricName::from("mine"), MetricName::Other("mine".into()));
    }

    #[test]
    fn measurements_are_read_as_they_are_written() {
        let found = Measurements(vec![
            Measurement { name: MetricName::DeadUnits, value: 3.0, std_error: None },
            Measurement {
                name: MetricName::FreeEnergy(On::Train),
                value: -1.5,
                std_error: Some(0.1),
            },
        ]);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(
            text,
            r#"{"dead_units":3.0,"free_energy.train":-1.5,"free_energy.train.std_error":0.1}"#
        );
        assert_eq!(serde_json::from_str::<Measurements>(&text).unwrap(), found);
    }

    #[test]
    fn what_later_versions_write_is_skipped_and_null_is_not_a_number() {
        let text = r#"{"dead_units":null,"new":"text","mine":1}"#;
        let found: Measurements = serde_json::from_str(text).unwrap();
        assert!(found.value(&MetricName::DeadUnits).unwrap().is_nan());
        assert_eq!(found.value(&"mine".into()), Some(1.0));
        assert_eq!(found.iter().count(), 2);
    }
}
