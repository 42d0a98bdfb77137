//! Whether an interval can be believed.
//!
//! An interval from samples is as good as its samples. Five signs say that they are not good enough,
//! each in units of its own noise:
//!
//! | sign | what it means |
//! |---|---|
//! | few effective samples | the largest weights decide; those that no chain found are missing |
//! | the sides are apart | forward and backward chains estimate the same number and disagree |
//! | the ladders or their halves are apart | replicas of parallel tempering still remember where they started |
//! | replicas did not travel | the cold end of a ladder was never renewed from the hot one |
//! | another base finds more | a mode is missing that chains from elsewhere found |
//!
//! Then the interval is widened to hold everything that was seen, and is called
//! [`unsettled`](super::Bracket::Unsettled).

use super::weights::{Z, student};
use serde::{Serialize, Serializer};
use std::fmt;

/// Fewest effective samples of a side that is believed.
const FEW: f64 = 10.0;
/// Standard errors between two estimates of one number beyond which they contradict each other.
pub(crate) const APART: f64 = 4.0;
/// Standard deviations of Fisher's $z = \frac12 \ln F$ beyond which ladders differ by more than
/// their own noise: chance alone does it once in a thousand times.
const UNLIKE: f64 = 3.1;
/// The same, beyond which the highest ladder is inside the interval: one time in twenty.
const HARDLY_ALIKE: f64 = 1.64;
/// Nats between ladders beyond which they are apart whatever their noise is: the mean of logarithms
/// stands for none of them.
const FAR: f64 = 1.0;

/// Fewest ways of replicas through a ladder and back, for each ladder. A ladder that was renewed less often
/// says what a few states say, and the spread of ten such ladders is no error of their mean.
const TRIPS: u64 = 25;

/// A sign that samples do not stand for the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// The weights of a side count as few samples.
    FewEffective {
        /// $(\sum w)^2/\sum w^2$.
        effective: f64,
        /// Number of chains.
        chains: usize,
    },
    /// Forward and backward chains disagree.
    SidesApart {
        /// Backward minus forward, in nats.
        apart: f64,
        /// The standard error of the difference.
        std_error: f64,
    },
    /// Ladders of parallel tempering disagree by more than their own noise.
    LaddersApart {
        /// Standard deviation of what the ladders say, in nats.
        between: f64,
        /// The standard deviation that the noise inside a ladder explains.
        within: f64,
        /// Number of ladders.
        ladders: usize,
    },
    /// The first and the second half of the rounds of parallel tempering disagree.
    HalvesApart {
        /// Second minus first, in nats.
        apart: f64,
        /// The standard error of the difference.
        std_error: f64,
    },
    /// Replicas hardly went from the hot end of a ladder to the machine and back.
    NotTravelled {
        /// Ways there and back of all replicas.
        round_trips: u64,
        /// Number of ladders.
        ladders: usize,
    },
    /// Chains from another base bound from below what the interval ends short of.
    OtherBase {
        /// The bound minus the upper end, in nats.
        above: f64,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewEffective { effective, chains } => {
                write!(f, "the weights count as {effective:.1} of {chains} chains")
            }
            Self::SidesApart { apart, std_error } => write!(
                f,
                "forward and backward chains lie {:.2} nats apart, {:.1} of their standard errors",
                apart.abs(),
                apart.abs() / std_error
            ),
            Self::LaddersApart { between, within, ladders } => write!(
                f,
                "{ladders} ladders differ by {between:.2} nats where {within:.2} would be their noise"
            ),
            Self::HalvesApart { apart, std_error } => write!(
                f,
                "the two halves of the rounds lie {:.2} nats apart, {:.1} of their standard errors",
                apart.abs(),
                apart.abs() / std_error
            ),
            Self::NotTravelled { round_trips, ladders } => write!(
                f,
                "replicas went through their ladder and back {round_trips} times in {ladders} ladders"
            ),
            Self::OtherBase { above } => {
                write!(f, "chains from another base find at least {above:.2} nats more")
            }
        }
    }
}

impl Serialize for Doubt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The doubt that `effective` samples of `chains` leave, if they are few.
pub(super) fn few(effective: f64, chains: usize) -> Option<Doubt> {
    (effective < FEW).then_some(Doubt::FewEffective { effective, chains })
}

/// The doubt that two estimates of one number leave, if they contradict each other.
pub(super) fn sides(forward: (f64, f64), backward: (f64, f64)) -> Option<Doubt> {
    let (apart, std_error) = (backward.0 - forward.0, forward.1.hypot(backward.1));
    (apart.abs() > APART * std_error + 1e-6).then_some(Doubt::SidesApart { apart, std_error })
}

/// What independent ladders of parallel tempering say, each on its own.
#[derive(Clone, Debug)]
pub(super) struct Ladders {
    /// $\ln Z_1/Z_0$ of each ladder.
    pub(super) each: Vec<f64>,
    /// That of the second half of its rounds minus that of the first.
    pub(super) drifts: Vec<f64>,
    /// Ways from the hot end to the machine and back, of all replicas.
    pub(super) round_trips: u64,
}

impl Ladders {
    fn count(&self) -> usize {
        self.each.len()
    }

    /// How far the second half of the rounds lies above the first, and its standard error.
    pub(super) fn drift(&self) -> (f64, f64) {
        let (mean, deviation) = moments(&self.drifts);
        (mean, deviation / (self.count() as f64).sqrt())
    }

    /// Standard deviation between the ladders.
    fn between(&self) -> f64 {
        moments(&self.each).1
    }

    /// That which the halves of a ladder explain: half their difference has the variance of the
    /// whole if they are independent.
    fn within(&self) -> f64 {
        0.5 * moments(&self.drifts).1
    }

    /// The highest that a ladder says, with its own noise.
    pub(super) fn highest(&self) -> f64 {
        let margin = student(self.count() - 1) * self.within();
        self.each.iter().copied().fold(f64::NEG_INFINITY, f64::max) + margin
    }

    /// Whether replicas came through often enough.
    pub(super) fn travelled(&self) -> Option<Doubt> {
        let (round_trips, ladders) = (self.round_trips, self.count());
        (round_trips < TRIPS * ladders as u64)
            .then_some(Doubt::NotTravelled { round_trips, ladders })
    }

    /// Whether ladders agree with each other, and with themselves.
    pub(super) fn disagree(&self) -> Option<Doubt> {
        let (between, within, ladders) = (self.between(), self.within(), self.count());
        if self.unlike(UNLIKE) || between > FAR {
            return Some(Doubt::LaddersApart { between, within, ladders });
        }
        let (apart, std_error) = self.drift();
        self.drifts_by(APART).then_some(Doubt::HalvesApart { apart, std_error })
    }

    /// Whether ladders differ, or drift, more than one time in twenty by chance.
    pub(super) fn hardly_agree(&self) -> bool {
        self.unlike(HARDLY_ALIKE) || self.drifts_by(Z)
    }

    /// Whether Fisher's $z$ of the variance between ladders over that within is above `limit`
    /// standard deviations.
    fn unlike(&self, limit: f64) -> bool {
        let deviation = ((self.count() - 1) as f64).recip().sqrt();
        let between = self.between();
        between > 1e-6 && (between / self.within().max(1e-9)).ln() > limit * deviation
    }

    /// Whether the halves of the rounds are more than `limit` standard errors apart, counted by
    /// Student's quantiles.
    fn drifts_by(&self, limit: f64) -> bool {
        let (apart, std_error) = self.drift();
        apart.abs() > limit * student(self.count() - 1) / Z * std_error + 1e-6
    }
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use harmonium_kernels::random::{Site, Stream};

    fn ladders(seed: u64, remembered: f64, drift: f64) -> Ladders {
        let mut normal = vec![0.0; 60];
        Stream::new(seed).normals_into(Site::new(0, 0, 0), &mut normal);
        let halves = |i: usize| (normal[i], normal[20 + i] + drift, remembered * normal[40 + i]);
        Ladders {
            each: (0..20).map(&halves).map(|(a, b, c)| 0.5 * (a + b) + c).collect(),
            drifts: (0..20).map(halves).map(|(a, b, _)| b - a).collect(),
            round_trips: 500,
        }
    }

    #[test]
    fn ladders_that_forget_are_believed_and_those_that_remember_are_not() {
        let doubts = |remembered, drift| {
            (0..300).filter(|&seed| ladders(seed, remembered, drift).disagree().is_some()).count()
        };
        // Two tests of about one in a thousand each: more than 4 of 300 is unlikely.
        assert!(doubts(0.0, 0.0) <= 4, "{}", doubts(0.0, 0.0));
        assert!(doubts(5.0, 0.0) > 290 && doubts(0.0, 3.0) > 290);
    }

    #[test]
    fn replicas_have_to_travel_many_times_through_each_ladder() {
        let mut ladders = ladders(1, 0.0, 0.0);
        assert_eq!(ladders.travelled(), None);
        ladders.round_trips = 499;
        let doubt = ladders.travelled().unwrap();
        assert_eq!(doubt, Doubt::NotTravelled { round_trips: 499, ladders: 20 });
        assert!(doubt.to_string().contains("499 times in 20"), "{doubt}");
    }

    #[test]
    fn sides_and_samples_are_judged_in_their_own_units() {
        assert_eq!(sides((1.0, 0.1), (1.3, 0.1)), None);
        assert!(sides((1.0, 0.1), (0.3, 0.1)).is_some());
        assert!(few(9.9, 100).is_some() && few(10.1, 100).is_none());
    }
}
