//! A guard over a training: whether its chains still stand for the model, and whether the likelihood falls.
//!
//! The worst failure of learning by samples is silent. The chains fall behind the model, the gradient then
//! speaks of a model that is not there, and the likelihood falls while cheaper numbers rise (Fischer & Igel
//! 2010). A [`Guard`] reads what was measured after an epoch. The training fails if
//!
//! - the chains' free energy lies more than a standard deviation, and clearly, away from that
//!   of samples that owe nothing to the training (`chains.lag`), or
//! - the likelihood of the training data is a nat, and clearly, below its best value. That of validation data may fall
//!   because samples are learned by heart, which is no matter of chains; the best model is kept for that.
//!
//! At a high learning rate the likelihood goes up and down before the rate falls, so one failure says little.
//! What follows is a [`Steering`]: twice the sweeps between updates, and where the likelihood
//! is down for a second time in turn and does not rise, or there are many sweeps already, half the learning rate. Where both were tried and it
//! fails all the same, the chains are tempered: from then on they are proposed samples of frozen earlier machines. Who only warns does
//! so after the third failure in turn. All of it follows from the measurements alone, so the same seed
//! gives the same training.

use super::metric::{Measurements, MetricName, On};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The lag of chains that is not tolerated, in standard deviations of the free energy.
const LAG: f64 = 1.0;
/// The fall of the likelihood that is not tolerated, in nats.
const FALL: f64 = 1.0;
/// Failures in turn after which a warning is due.
const FAILURES: u32 = 3;
/// How many standard errors make a number clear.
const CLEAR: f64 = 4.0;
/// Most sweeps between two updates for each that was planned.
const MOST_SWEEPS: f64 = 32.0;
/// The least share of the planned learning rate.
const LEAST_RATE: f64 = 1.0 / 256.0;
/// More sweeps, and failures in turn, after which chains are tempered.
const TEMPERING: (f64, u32) = (8.0, 3);

/// Scores that may not fall, the most telling first.
const SCORES: [MetricName; 4] = [
    MetricName::LogLikelihood(On::Train),
    MetricName::Bound(On::Train),
    MetricName::LogLikelihood(On::Valid),
    MetricName::Bound(On::Valid),
];

/// How a training departs from its plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steering {
    /// Sweeps between updates, for each that was planned.
    pub sweeps: f64,
    /// The share of the planned learning rate.
    pub rate: f64,
    /// Whether persistent chains are tempered, as those of `--rule ptt` are.
    #[serde(default)]
    pub tempered: bool,
}

impl Default for Steering {
    fn default() -> Self {
        Self { sweeps: 1.0, rate: 1.0, tempered: false }
    }
}

/// What an observer has to say about a training to those who run it.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// In words.
    pub note: String,
    /// What to do, if anything is to be done.
    pub steering: Option<Steering>,
}

/// Whether a guard only warns, or steers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guarding {
    /// It says once that the training fails.
    #[default]
    Warn,
    /// It changes sweeps and learning rate.
    Steer,
    /// The same, and tempers persistent chains where that does not help.
    Temper,
}

/// Watches over a training.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    guarding: Guarding,
    steering: Steering,
    best: Option<f64>,
    /// The score at the last look.
    last: Option<f64>,
    /// Why the last look failed, if it did.
    failing: Option<String>,
    /// Looks that failed in turn, and those of them at which the likelihood was down.
    failures: u32,
    falls: u32,
    warned: bool,
}

impl Guard {
    /// Warns or steers.
    pub fn new(guarding: Guarding) -> Self {
        Self { guarding, ..Self::default() }
    }

    /// Why the training failed when it was last looked at, if it did.
    pub fn failing(&self) -> Option<&str> {
        self.failing.as_deref()
    }

    /// How the training departs from its plan.
    pub fn steering(&self) -> Steering {
        self.steering
    }

    /// Looks at what was measured; what to say about it.
    pub fn look(&mut self, found: &Measurements) -> Option<Advice> {
        let score = SCORES.iter().find_map(|name| found.get(name));
        let lag = found.get(&MetricName::ChainsLag);
        if score.is_none() && lag.is_none() {
            return None;
        }
        let doubt = found.get(&MetricName::LogPartition).and_then(|z| z.std_error).unwrap_or(0.0);
        let mut rises = false;
        let fallen = score.and_then(|score| {
            let surely = found.lower_end(&score.name).unwrap_or(score.value);
            let best = self.best.map_or(surely, |best| best.max(surely));
            self.best = Some(best);
            rises = self.last.replace(score.value).is_some_and(|last| score.value > last);
            let fall = best - score.value;
            (fall > FALL.max(CLEAR * doubt)).then(|| {
                format!("{} fell to {:.3}, {fall:.3} below its best", score.name, score.value)
            })
        });
        let behind = lag.and_then(|lag| {
            let clearly = lag.value.abs() > CLEAR * lag.std_error.unwrap_or(0.0);
            (lag.value.abs() > LAG && clearly).then(|| {
                format!(
                    "the chains' free energy is {:+.1} standard deviations from the model's",
                    lag.value
                )
            })
        });
        // What was done takes time to help, and a lower rate takes longer: a likelihood that is down but rises is left alone.
        let recovers = rises && behind.is_none();
        self.falls = if fallen.is_some() { self.falls + 1 } else { 0 };
        self.failing = fallen.or(behind);
        self.failures = if self.failing.is_some() { self.failures + 1 } else { 0 };
        let reason = self.failing.clone()?;
        match self.guarding {
            Guarding::Warn if self.warned || self.failures < FAILURES => None,
            Guarding::Warn => {
                self.warned = true;
                Some(Advice { note: format!("chains do not mix: {reason}"), steering: None })
            }
            Guarding::Steer | Guarding::Temper if recovers => None,
            Guarding::Steer | Guarding::Temper => self.steer(&reason),
        }
    }

    fn steer(&mut self, reason: &str) -> Option<Advice> {
        let Steering { sweeps, rate, tempered } = self.steering;
        let (tried, failures) = TEMPERING;
        if self.guarding == Guarding::Temper
            && !tempered
            && sweeps >= tried
            && self.failures >= failures
        {
            // Tempered chains forget by their jumps: they begin again with few sweeps.
            self.steering = Steering { sweeps: 1.0, rate, tempered: true };
            (self.failures, self.falls) = (0, 0);
            let note = format!("{reason}: from here on the chains are tempered");
            return Some(Advice { note, steering: Some(self.steering) });
        }
        let more = (2.0 * sweeps).min(MOST_SWEEPS);
        let less =
            if self.falls > 1 || more <= sweeps { (0.5 * rate).max(LEAST_RATE) } else { rate };
        if (more, less) == (sweeps, rate) {
            return None;
        }
        self.steering = Steering { sweeps: more, rate: less, tempered };
        let note = format!("{reason}: from here on {more} times the sweeps and {less} of the rate");
        Some(Advice { note, steering: Some(self.steering) })
    }

    /// What it remembers, for a checkpoint.
    pub fn export(&self) -> Value {
        json!({
            "steering": self.steering, "best": self.best, "last": self.last,
            "failing": self.failing, "failures": self.failures, "falls": self.falls,
            "warned": self.warned,
        })
    }

    /// Takes up what [`Guard::export`] gave.
    pub fn import(&mut self, state: &Value) {
        self.steering = serde_json::from_value(state["steering"].clone()).unwrap_or_default();
        self.best = state["best"].as_f64();
        self.last = state["last"].as_f64();
        self.failing = state["failing"].as_str().map(str::to_owned);
        let count = |key: &str| state[key].as_u64().and_then(|n| u32::try_from(n).ok());
        (self.failures, self.falls) = (count("failures").unwrap_or(0), count("falls").unwrap_or(0));
        self.warned = state["warned"].as_bool().unwrap_or(false);
    }
}

#[cfg(test)]
mod tests {
    use super::super::metric::Measurement;
    use super::*;

    fn found(score: f64, doubt: f64, lag: f64) -> Measurements {
        let one = |name, value, std_error| Measurement { name, value, std_error };
        Measurements(vec![
            one(MetricName::LogLikelihood(On::Valid), score, Some(0.3)),
            one(MetricName::LogPartition, 7.0, Some(doubt)),
            one(MetricName::ChainsLag, lag, Some(0.1)),
        ])
    }

    #[test]
    fn a_rising_likelihood_and_chains_that_follow_need_nothing() {
        let mut guard = Guard::new(Guarding::Steer);
        for k in 0..5 {
            assert_eq!(guard.look(&found(-20.0 + f64::from(k), 0.1, 0.2)), None);
        }
        assert_eq!((guard.failing(), guard.steering()), (None, Steering::default()));
    }

    #[test]
    fn chains_that_fall_behind_get_sweeps_and_a_falling_likelihood_half_the_rate() {
        let mut guard = Guard::new(Guarding::Steer);
        guard.look(&found(-20.0, 0.1, 0.0));
        let advice = guard.look(&found(-19.0, 0.1, 2.0)).unwrap();
        assert_eq!(advice.steering, Some(Steering { sweeps: 2.0, ..Steering::default() }));
        let advice = guard.look(&found(-25.0, 0.1, 0.0)).unwrap();
        assert_eq!(advice.steering, Some(Steering { sweeps: 4.0, ..Steering::default() }));
        // It rises again: nothing more is done, unless it does not.
        assert_eq!(guard.look(&found(-24.0, 0.1, 0.0)), None);
        let advice = guard.look(&found(-24.5, 0.1, 0.0)).unwrap();
        assert_eq!(advice.steering, Some(Steering { sweeps: 8.0, rate: 0.5, tempered: false }));
        // Within four error bars of ln Z nothing fell.
        assert_eq!(guard.look(&found(-25.0, 2.0, 0.0)), None);
    }

    #[test]
    fn where_sweeps_and_a_lower_rate_do_not_help_the_chains_are_tempered() {
        let steered = |guarding| {
            let mut guard = Guard::new(guarding);
            guard.look(&found(-20.0, 0.1, 0.0));
            let looks = (0..8).map(|_| guard.look(&found(-30.0, 0.1, 2.0)));
            looks.map(|advice| advice.and_then(|a| a.steering)).collect::<Vec<_>>()
        };
        let tempered = |s: &Option<Steering>| s.is_some_and(|s| s.tempered);
        let found = steered(Guarding::Temper);
        let first = found.iter().position(tempered).unwrap();
        let before = found[first - 1].unwrap();
        assert!(before.sweeps >= 8.0 && before.rate < 1.0, "both were tried: {before:?}");
        assert_eq!(found[first], Some(Steering { sweeps: 1.0, tempered: true, ..before }));
        assert!(found[first..].iter().flatten().all(|s| s.tempered), "it stays so");
        assert!(!steered(Guarding::Steer).iter().any(tempered));
    }

    #[test]
    fn learning_by_heart_is_no_matter_of_chains() {
        let mut guard = Guard::new(Guarding::Steer);
        for (train, valid) in [(-20.0, -20.0), (-15.0, -22.0), (-12.0, -30.0)] {
            let mut found = found(valid, 0.1, 0.0);
            let name = MetricName::LogLikelihood(On::Train);
            found.0.push(Measurement { name, value: train, std_error: Some(0.3) });
            assert_eq!(guard.look(&found), None);
        }
    }

    #[test]
    fn it_warns_once_after_the_third_failure_and_goes_on_where_it_left() {
        let mut guard = Guard::new(Guarding::Warn);
        assert_eq!(guard.look(&found(-20.0, 0.1, 3.0)), None);
        assert_eq!(guard.look(&found(-20.0, 0.1, 3.0)), None);
        let mut resumed = Guard::new(Guarding::Warn);
        resumed.import(&guard.export());
        let advice = resumed.look(&found(-20.0, 0.1, 3.0)).unwrap();
        assert!(advice.steering.is_none() && advice.note.contains("chains do not mix"));
        assert_eq!(resumed.look(&found(-20.0, 0.1, 3.0)), None);
        assert!(resumed.failing().is_some());
    }
}
