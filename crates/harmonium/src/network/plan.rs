//! What is asked of the training of a net: the flags of `harmonium finetune` and the keys of `run.toml`.

use crate::error::Error;
use crate::machine::MOST_STEPS;
use crate::models::{Activation, Body, Network};
use crate::optim::Schedule;
use crate::training::OptimizerKind;
use harmonium_kernels::neurons::KEEP_ALL;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

/// Most passes over the data that can be asked for.
const MOST_EPOCHS: u64 = 1_000_000_000_000;

/// The learning rate of nets with logistic units.
pub const LOGISTIC_RATE: f64 = 0.5;

/// The learning rate with Adam.
const ADAM_RATE: f64 = 0.001;

/// How much the rows of each class count.
///
/// Written `even`, `balanced`, or as a list of numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ClassWeights {
    /// Every row counts alike.
    #[default]
    Even,
    /// Every class counts alike: a row by one over the share of its class.
    Balanced,
    /// A factor for each class.
    Each(Vec<f64>),
}

impl fmt::Display for ClassWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even => f.write_str("even"),
            Self::Balanced => f.write_str("balanced"),
            Self::Each(weights) => {
                let texts: Vec<String> = weights.iter().map(f64::to_string).collect();
                f.write_str(&texts.join(","))
            }
        }
    }
}

impl FromStr for ClassWeights {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let weight =
            |part: &str| part.trim().parse::<f64>().ok().filter(|w| w.is_finite() && *w >= 0.0);
        match text {
            "even" => Ok(Self::Even),
            "balanced" => Ok(Self::Balanced),
            list => {
                let each: Option<Vec<f64>> = list.split(',').map(weight).collect();
                let each = each.filter(|each| each.iter().any(|w| *w > 0.0));
                each.map(Self::Each).ok_or_else(|| Error::Setting {
                    name: "class-weights",
                    value: text.into(),
                    range: "`even`, `balanced` or a factor for each class, such as `1,1,5`",
                })
            }
        }
    }
}

impl TryFrom<String> for ClassWeights {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<ClassWeights> for String {
    fn from(weights: ClassWeights) -> Self {
        weights.to_string()
    }
}

/// Everything that can be set about the training of a net.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkPlan {
    /// The root of all randomness.
    pub seed: u64,
    /// Passes over the data.
    pub epochs: u64,
    /// Rows of one step.
    pub batch: usize,
    /// How gradients become updates.
    pub optimizer: OptimizerKind,
    /// The learning rate before decay.
    pub learning_rate: f64,
    /// What the learning rate is multiplied with over the run.
    pub decay: Schedule,
    /// Momentum, or Adam's first decay.
    pub momentum: Schedule,
    /// What the rate of each layer is multiplied with, from the data upwards; 1 for layers that it does not name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layer_rates: Vec<f64>,
    /// L2 penalty on weights.
    pub l2: f64,
    /// Largest norm of the weights into one unit; none unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_norm: Option<f64>,
    /// The share of hidden units that is dropped in each step.
    pub dropout: f64,
    /// The share of the input that is dropped in each step.
    pub input_dropout: f64,
    /// How much the rows of each class count.
    pub class_weights: ClassWeights,
    /// Whether the input and the hidden units are centered: weights learn from what differs from the mean, and a
    /// unit that is dropped is at its mean.
    pub center: bool,
}

impl Default for NetworkPlan {
    fn default() -> Self {
        Self {
            seed: 0,
            epochs: 30,
            batch: 100,
            optimizer: OptimizerKind::Sgd,
            learning_rate: 0.05,
            decay: Schedule::Linear { from: 1.0, to: 0.01 },
            momentum: Schedule::Steps(vec![(0, 0.5), (5, 0.9)]),
            layer_rates: Vec::new(),
            l2: 0.0,
            max_norm: None,
            dropout: 0.0,
            input_dropout: 0.0,
            class_weights: ClassWeights::Even,
            center: true,
        }
    }
}

impl NetworkPlan {
    /// The defaults, for a number of passes over the data.
    #[must_use]
    pub fn for_epochs(epochs: u64) -> Self {
        Self { epochs, ..Self::default() }
    }

    /// The defaults for a net: logistic units, whose slopes are at most a quarter, bear and need a larger rate.
    #[must_use]
    pub fn suited_to(network: &Network) -> Self {
        let (_, hidden) = network.layers().split_last().unwrap_or_else(|| unreachable!("checked"));
        let logistic = hidden.iter().any(|l| l.activation == Activation::Logistic);
        let usual = Self::default();
        let learning_rate = if logistic { LOGISTIC_RATE } else { usual.learning_rate };
        Self { learning_rate, ..usual }
    }

    /// Whether the hidden units of a net that is made of `body` are logistic: those of machines are.
    pub fn is_logistic(body: &Body) -> bool {
        match body {
            Body::Network(network) => Self::suited_to(network).learning_rate == LOGISTIC_RATE,
            Body::Machine(_) | Body::Dbn(_) => true,
        }
    }

    /// What was asked, by the names of [`NetworkPlan::KEYS`], over the defaults of a net with hidden units of
    /// this sort; other names are passed over.
    ///
    /// # Errors
    ///
    /// If a setting is of the wrong type or out of range.
    pub fn asked(given: &Map<String, Value>, hidden: Activation) -> Result<Self, Error> {
        let mut usual = Self::default();
        if hidden == Activation::Logistic {
            usual.learning_rate = LOGISTIC_RATE;
        }
        if given.get("optimizer").and_then(Value::as_str) == Some("adam") {
            (usual.learning_rate, usual.momentum) = (ADAM_RATE, Schedule::Constant(0.9));
        }
        let wrong = |name: &str, error: serde_json::Error| Error::SettingType {
            name: name.into(),
            reason: error.to_string(),
        };
        let mut plan = match serde_json::to_value(&usual) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        let known = |name: &&String| Self::KEYS.contains(&name.as_str());
        for (name, value) in given.iter().filter(|(name, _)| known(name)) {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            serde_json::from_value::<Self>(Value::Object(alone)).map_err(|e| wrong(name, e))?;
            plan.insert(name.clone(), value.clone());
        }
        let plan: Self =
            serde_json::from_value(Value::Object(plan)).map_err(|e| wrong("a setting", e))?;
        plan.check()?;
        Ok(plan)
    }

    /// The names of all settings, as they are written in `run.toml` and, behind two dashes, on the
    /// command line.
    pub const KEYS: [&'static str; 14] = [
        "seed",
        "epochs",
        "batch",
        "optimizer",
        "learning-rate",
        "decay",
        "momentum",
        "layer-rates",
        "l2",
        "max-norm",
        "dropout",
        "input-dropout",
        "class-weights",
        "center",
    ];

    /// Whether every setting is in its range.
    ///
    /// # Errors
    ///
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |name, value: String, range| Err(Error::Setting { name, value, range });
        if self.batch == 0 || self.batch > MOST_STEPS {
            return wrong("batch", self.batch.to_string(), "from 1 to 10^15");
        }
        if self.epochs > MOST_EPOCHS {
            return wrong("epochs", self.epochs.to_string(), "at most 10^12");
        }
        let rates = self.layer_rates.iter().map(|rate| ("layer-rates", *rate));
        for (name, value) in
            [("learning-rate", self.learning_rate), ("l2", self.l2)].into_iter().chain(rates)
        {
            if !value.is_finite() || value < 0.0 {
                return wrong(name, value.to_string(), "finite and not negative");
            }
        }
        if let Some(norm) = self.max_norm.filter(|v| !v.is_finite() || *v <= 0.0) {
            return wrong("max-norm", norm.to_string(), "finite and positive");
        }
        for (name, share) in [("dropout", self.dropout), ("input-dropout", self.input_dropout)] {
            if !(0.0..1.0).contains(&share) {
                return wrong(name, share.to_string(), "at least 0, below 1");
            }
        }
        for (name, schedule, high, range) in [
            ("decay", &self.decay, f64::MAX, "not negative"),
            ("momentum", &self.momentum, 0.9999, "at least 0, below 1"),
        ] {
            let (least, most) = schedule.range();
            if least < 0.0 || most > high {
                return wrong(name, schedule.to_string(), range);
            }
        }
        Ok(())
    }

    /// How often the input and hidden units are kept, in 65536ths.
    pub(super) fn keeps(&self) -> Keeps {
        Keeps { input: keep(self.input_dropout), hidden: keep(self.dropout) }
    }

    /// What the rate of layer `l` is multiplied with.
    pub(super) fn layer_rate(&self, l: usize) -> f64 {
        self.layer_rates.get(l).copied().unwrap_or(1.0)
    }
}

/// How often units are kept, in 65536ths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keeps {
    pub(super) input: u32,
    pub(super) hidden: u32,
}

impl Keeps {
    /// Nothing is dropped.
    pub(super) const ALL: Self = Self { input: KEEP_ALL, hidden: KEEP_ALL };

    /// How often the units below layer `l` are kept.
    pub(super) fn below(self, l: usize) -> u32 {
        if l == 0 { self.input } else { self.hidden }
    }

    /// The same as a probability: exactly what the masks have.
    pub(super) fn probability_below(self, l: usize) -> f64 {
        f64::from(self.below(l)) / f64::from(KEEP_ALL)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share below 1")]
fn keep(dropped: f64) -> u32 {
    ((1.0 - dropped) * f64::from(KEEP_ALL)).round().max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_key() {
        let everything =
            NetworkPlan { layer_rates: vec![1.0], max_norm: Some(1.0), ..NetworkPlan::default() };
        let written = serde_json::to_value(everything).unwrap();
        let mut written: Vec<&str> =
            written.as_object().unwrap().keys().map(String::as_str).collect();
        let mut keys = NetworkPlan::KEYS.to_vec();
        written.sort_unstable();
        keys.sort_unstable();
        assert_eq!(written, keys);
    }

    #[test]
    fn what_is_asked_stands_over_what_suits_the_units() {
        let given = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let plan = NetworkPlan::asked(&given(r#"{"epochs": 3, "hidden": [5]}"#), Activation::Relu);
        assert_eq!(plan.unwrap(), NetworkPlan::for_epochs(3));
        let logistic = NetworkPlan::asked(&given("{}"), Activation::Logistic).unwrap();
        assert_eq!(logistic.learning_rate, LOGISTIC_RATE);
        let adam = given(r#"{"optimizer": "adam", "momentum": "0.5"}"#);
        let adam = NetworkPlan::asked(&adam, Activation::Logistic).unwrap();
        assert_eq!((adam.learning_rate, adam.momentum), (ADAM_RATE, Schedule::Constant(0.5)));
        for wrong in [r#"{"epochs": "x"}"#, r#"{"dropout": 1.5}"#] {
            assert!(NetworkPlan::asked(&given(wrong), Activation::Relu).is_err(), "{wrong}");
        }
    }

    #[test]
    fn class_weights_are_read_as_they_are_written() {
        for text in ["even", "balanced", "1,2.5,0"] {
            assert_eq!(text.parse::<ClassWeights>().unwrap().to_string(), text);
        }
        for text in ["", "odd", "1,-1", "0,0", "nan"] {
            assert!(text.parse::<ClassWeights>().is_err(), "{text}");
        }
    }

    #[test]
    fn shares_become_whole_numbers_of_65536ths() {
        assert_eq!(keep(0.5), KEEP_ALL / 2);
        assert_eq!(keep(0.0), KEEP_ALL);
        assert_eq!(keep(0.2), 52429);
        assert_eq!(keep(0.999_999_99), 1);
    }
}
