//! What happens in a run: the lines of `events.jsonl`.
//!
//! An event is written and read by the same type, so a key cannot be spelt in two ways. Keys and
//! events that a later version adds do not disturb: an event that is not known is kept as the JSON
//! it was written as.

use crate::training::{Measurements, StepReport};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// Training began.
    Started {
        /// Rows of the data.
        rows: u64,
    },
    /// An epoch of pre-training ended.
    Pretraining(PretrainingEpoch),
    /// Another part of the model is learned from here on.
    Stage {
        /// Its name, such as `layer 2` or `up-down`.
        stage: String,
    },
    /// An epoch ended.
    Epoch(Box<Epoch>),
    /// Something that should be known while the run goes on.
    Warning {
        /// After which epoch.
        epoch: u64,
        /// In words.
        what: String,
    },
    /// Updates went too far for the chains to follow, and training went back to the machine that was
    /// frozen last.
    RolledBack {
        /// Updates done, those of earlier stages included.
        step: u64,
        /// The share of exchanges with that machine that were still accepted.
        acceptance: f64,
        /// What the learning rate is multiplied with from now on.
        rate_factor: f64,
        /// Time since the start of the run, in seconds.
        seconds: f64,
    },
    /// The chains did not follow the model, or the likelihood fell, and something was done about it.
    Steered {
        /// Epochs finished.
        epoch: u64,
        /// In words.
        what: String,
        /// Sweeps between updates from here on, for each that was planned.
        sweeps: f64,
        /// The share of the planned learning rate.
        rate: f64,
        /// Whether the chains are tempered.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tempered: bool,
    },
    /// $\ln Z$ was found anew at the end, from both sides, beside what was tracked.
    Confirmed {
        /// $\ln Z$ as it was tracked.
        log_partition: f64,
        /// Its standard error.
        std_error: f64,
        /// The lower end of what was found anew.
        lower: f64,
        /// Its upper end.
        upper: f64,
        /// Whether the two agree within three error bars.
        agrees: bool,
        /// The epoch of the model that is the result by this second look, if there is one to choose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<u64>,
    },
    /// All epochs are done.
    Finished {
        /// Time since the start of the run, in seconds.
        seconds: f64,
        /// What was measured of the result.
        #[serde(flatten)]
        measurements: Measurements,
    },
    /// Somebody who watched the run ended it.
    Stopped {
        /// Why.
        reason: String,
        /// Time since the start of the run, in seconds.
        seconds: f64,
    },
    /// A number was not finite, and the run was ended.
    Diverged {
        /// What happened.
        reason: String,
        /// Time since the start of the run, in seconds.
        seconds: f64,
    },
    /// An event that this version does not know.
    #[serde(untagged)]
    Other(Value),
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// All epochs are done.
    #[default]
    Finished,
    /// It is still going on, or was interrupted.
    Unfinished,
    /// Somebody who watched it ended it, for this reason.
    Stopped(String),
    /// A number was not finite; what happened.
    Diverged(String),
}

impl Ending {
    /// How the run ended that these events are of.
    pub fn of(events: &[Event]) -> Self {
        let ends = |event: &&Event| {
            use Event::{Confirmed, Epoch, Other, Steered, Warning};
            !matches!(
                event,
                Epoch(_) | Other(_) | Warning { .. } | Steered { .. } | Confirmed { .. }
            )
        };
        match events.iter().rev().find(ends) {
            Some(Event::Finished { .. }) => Self::Finished,
            Some(Event::Stopped { reason, .. }) => Self::Stopped(reason.clone()),
            Some(Event::Diverged { reason, .. }) => Self::Diverged(reason.clone()),
            _ => Self::Unfinished,
        }
    }
}

/// An epoch of training, and what was measured after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Epochs finished, those of earlier stages included.
    pub epoch: u64,
    /// Updates done, those of earlier stages included.
    pub step: u64,
    /// Time since the start of the run, in seconds.
    pub seconds: f64,
    /// Seconds of them that were spent on measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measuring_seconds: Option<f64>,
    /// The learning rate of the last update.
    #[serde(deserialize_with = "number")]
    pub learning_rate: f64,
    /// Norm of the last gradient.
    #[serde(deserialize_with = "number")]
    pub gradient_norm: f64,
    /// Norm of the last update of the weights over that of the weights.
    #[serde(deserialize_with = "number")]
    pub update_ratio: f64,
    /// Mean number of sweeps of mean field in the last update, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_field_sweeps: Option<f64>,
    /// Rows of the last update in which mean field did not converge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_field_unconverged: Option<u64>,
    /// The part of the model that is learned, if it is learned in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// What was measured after the epoch; nothing in most epochs of a long run.
    #[serde(flatten)]
    pub measurements: Measurements,
}

/// An epoch of pre-training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PretrainingEpoch {
    /// The layer that is learned.
    pub layer: String,
    /// Its number, from 1.
    pub stage: u64,
    /// The number of layers that are pre-trained.
    pub stages: u64,
    /// Epochs of this layer that are finished.
    pub epoch: u64,
    /// Time since the start of pre-training, in seconds.
    pub seconds: f64,
    /// The learning rate of the last update.
    #[serde(deserialize_with = "number")]
    pub learning_rate: f64,
    /// Norm of the last gradient.
    #[serde(deserialize_with = "number")]
    pub gradient_norm: f64,
    /// Norm of the last update of the weights over that of the weights.
    #[serde(deserialize_with = "number")]
    pub update_ratio: f64,
}

impl Epoch {
    /// The epoch that ended with this update. `epoch` and the step of the report count those of
    /// earlier stages only if the caller has added them.
    pub fn new(epoch: u64, seconds: f64, report: &StepReport) -> Self {
        Self {
            epoch,
            step: report.step,
            seconds,
            learning_rate: report.learning_rate,
            gradient_norm: report.gradient_norm,
            update_ratio: report.update_ratio,
            mean_field_sweeps: report.convergence.map(|c| c.mean_sweeps),
            mean_field_unconverged: report.convergence.map(|c| c.unconverged as u64),
            ..Self::default()
        }
    }
}

impl PretrainingEpoch {
    /// The epoch of pre-training that ended with this update; `stage` is the number of the layer
    /// and of all layers.
    pub fn new(
        layer: &str,
        stage: (usize, usize),
        epoch: u64,
        seconds: f64,
        report: &StepReport,
    ) -> Self {
        Self {
            layer: layer.into(),
            stage: stage.0 as u64,
            stages: stage.1 as u64,
            epoch,
            seconds,
            learning_rate: report.learning_rate,
            gradient_norm: report.gradient_norm,
            update_ratio: report.update_ratio,
        }
    }
}

impl Event {
    /// Another part of the model is learned from here on.
    pub fn stage(stage: impl std::fmt::Display) -> Self {
        Self::Stage { stage: stage.to_string() }
    }

    /// All epochs are done, and nothing was measured of the result.
    pub fn finished(seconds: f64) -> Self {
        Self::Finished { seconds, measurements: Measurements::default() }
    }

    /// What it says of an epoch, if it ends one.
    pub fn as_epoch(&self) -> Option<&Epoch> {
        match self {
            Self::Epoch(epoch) => Some(epoch),
            _ => None,
        }
    }
}

impl From<Epoch> for Event {
    fn from(epoch: Epoch) -> Self {
        Self::Epoch(Box::new(epoch))
    }
}

/// A number; JSON has no NaN and no infinities, and `null` stands for them.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Convergence;
    use crate::training::{Measurement, MetricName, On};

    /// Lines as runs have written them since the first version.
    const LINES: [&str; 12] = [
        r#"{"event":"started","rows":1797}"#,
        r#"{"epoch":1,"event":"pretraining","gradient_norm":2.5,"layer":"hidden1","learning_rate":0.01,"seconds":0.25,"stage":1,"stages":2,"update_ratio":0.003}"#,
        r#"{"event":"stage","stage":"layer 1"}"#,
        r#"{"dead_units":0.0,"epoch":1,"event":"epoch","free_energy.chains":-7.9,"free_energy.chains.std_error":0.5,"free_energy.train":-8.9,"free_energy.train.std_error":0.7,"gradient_norm":0.5,"learning_rate":0.01,"log_likelihood.train":-25.0,"log_likelihood.train.std_error":0.6,"measuring_seconds":0.002,"pseudo_likelihood.train":-24.5,"pseudo_likelihood.train.std_error":1.2,"reconstruction_error":0.14,"reconstruction_error.std_error":0.004,"saturated_units":0.0,"seconds":0.03,"step":18,"update_ratio":0.07}"#,
        r#"{"epoch":2,"event":"epoch","gradient_norm":0.5,"learning_rate":0.01,"mean_field_sweeps":7.5,"mean_field_unconverged":3,"measuring_seconds":0.002,"seconds":0.03,"stage":"layer 2","step":18,"update_ratio":0.07}"#,
        r#"{"epoch":6,"event":"epoch","gradient_norm":1.5,"learning_rate":0.001,"seconds":1.0,"stage":"up-down","step":108,"update_ratio":0.0001}"#,
        r#"{"bound.train":-31.0,"event":"finished","importance.train":-30.5,"seconds":2.0}"#,
        r#"{"event":"finished","seconds":2.0}"#,
        r#"{"event":"stopped","reason":"log_likelihood.valid has not risen above -20.0000 since epoch 3","seconds":2.0}"#,
        r#"{"epoch":3,"event":"warning","what":"all 64 hidden units say nothing"}"#,
        r#"{"acceptance":0.03,"event":"rolled_back","rate_factor":0.5,"seconds":1.0,"step":7}"#,
        r#"{"event":"diverged","reason":"the gradient holds a number that is not finite","seconds":2.0}"#,
    ];

    /// The line of an event, without its line break.
    fn line(event: &Event) -> String {
        super::super::metadata::sorted(serde_json::to_value(event).unwrap()).to_string()
    }

    #[test]
    fn lines_are_written_as_they_were_read() {
        for text in LINES {
            let event: Event = serde_json::from_str(text).unwrap();
            assert!(!matches!(event, Event::Other(_)), "{text}");
            assert_eq!(line(&event), text);
        }
    }

    #[test]
    fn numbers_are_found_under_their_names() {
        let event: Event = serde_json::from_str(LINES[3]).unwrap();
        let epoch = event.as_epoch().unwrap();
        assert_eq!((epoch.epoch, epoch.step, epoch.learning_rate), (1, 18, 0.01));
        let found = epoch.measurements.get(&MetricName::FreeEnergy(On::Train)).unwrap();
        assert_eq!((found.value, found.std_error), (-8.9, Some(0.7)));
        assert_eq!(epoch.measurements.value(&MetricName::ChainsFreeEnergy), Some(-7.9));
        let event: Event = serde_json::from_str(LINES[6]).unwrap();
        let Event::Finished { measurements, .. } = event else { panic!("{event:?}") };
        assert_eq!(measurements.value(&MetricName::Bound(On::Train)), Some(-31.0));
    }

    #[test]
    fn an_epoch_has_the_numbers_of_its_last_update() {
        let convergence = Convergence { sweeps: 9, mean_sweeps: 7.5, change: 0.0, unconverged: 3 };
        let mut report = StepReport {
            step: 18,
            sweeps: 1,
            learning_rate: 0.01,
            gradient_norm: 0.5,
            update_ratio: 0.07,
            convergence: Some(convergence),
            rollback: None,
        };
        let mut epoch = Epoch::new(2, 0.03, &report);
        epoch.measuring_seconds = Some(0.002);
        epoch.stage = Some("layer 2".into());
        assert_eq!(line(&epoch.into()), LINES[4]);
        (report.gradient_norm, report.update_ratio, report.convergence) = (2.5, 0.003, None);
        let epoch = PretrainingEpoch::new("hidden1", (1, 2), 1, 0.25, &report);
        assert_eq!(line(&Event::Pretraining(epoch)), LINES[1]);
        let found = Measurement { name: "mine".into(), value: 1.0, std_error: None };
        let epoch = Epoch { measurements: vec![found].into(), ..Epoch::new(2, 0.0, &report) };
        assert!(line(&epoch.into()).contains(r#""mine":1.0"#));
    }

    #[test]
    fn other_events_are_kept_as_they_are() {
        for text in [r#"{"a":1,"event":"later"}"#, r#"{"step":3}"#, "7"] {
            let event: Event = serde_json::from_str(text).unwrap();
            assert_eq!(event, Event::Other(serde_json::from_str(text).unwrap()));
            assert_eq!(line(&event), text);
        }
    }

    #[test]
    fn the_last_word_says_how_a_run_ended() {
        let events: Vec<Event> = LINES.map(|l| serde_json::from_str(l).unwrap()).into();
        assert_eq!(Ending::of(&events[..6]), Ending::Unfinished);
        assert_eq!(Ending::of(&events[..8]), Ending::Finished);
        assert!(matches!(Ending::of(&events[..9]), Ending::Stopped(why) if why.contains("risen")));
        assert!(matches!(Ending::of(&events), Ending::Diverged(why) if why.contains("gradient")));
        assert_eq!(Ending::of(&[]), Ending::Unfinished);
    }

    #[test]
    fn null_is_a_number_that_is_not_finite() {
        let text = LINES[5].replace("1.5", "null");
        let event: Event = serde_json::from_str(&text).unwrap();
        assert!(event.as_epoch().unwrap().gradient_norm.is_nan());
        assert_eq!(line(&event), text);
    }
}
