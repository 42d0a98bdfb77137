//! What was tracked while a machine learned, held against an estimate from both sides.
//!
//! Ladders that are carried along are cheap, and may all miss the same mode: then $\ln Z$ is too small, the likelihood too
//! large, and of many looks the best one is the one that is most wrong. So the models that may become the result of a run
//! are looked at once more, by annealing forwards and backwards, and compared by the lower ends of what that
//! finds.

use super::tracked::row_logs;
use super::{Monitor, mean_of};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::evaluation::log_partition::{self, LogPartition};
use crate::evaluation::tracking;
use crate::machine::Machine;
use crate::progress::Silent;
use crate::sampling::Sampler;

/// The standard error of a tracked $\ln Z$ beyond which it is only rough, in nats.
const ROUGH: f64 = 1.0;

/// $\ln Z$ as it was tracked, and from both sides anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confirmation {
    /// What was tracked, and its standard error.
    pub tracked: (f64, f64),
    /// The interval that was found anew.
    pub fresh: (f64, f64),
    /// Whether nothing speaks against that interval.
    pub is_settled: bool,
}

impl Confirmation {
    /// Whether the tracked value lies within three error bars of the interval.
    pub fn agrees(&self) -> bool {
        let (log_z, margin) = (self.tracked.0, 3.0 * self.tracked.1);
        self.fresh.0 - margin <= log_z && log_z <= self.fresh.1 + margin
    }

    /// Whether both are known well enough that their agreement means something.
    pub fn is_telling(&self) -> bool {
        self.is_settled && self.tracked.1 <= ROUGH
    }
}

/// A model that was looked at once more.
#[derive(Clone, Debug)]
pub(crate) struct Confirmed {
    pub(crate) log_z: LogPartition,
    /// Mean of $\ln\sum_h e^{-E}$, or of its bound, over the validation rows; without those over the training rows.
    rows: f64,
}

impl Confirmed {
    /// Ends of the mean log-likelihood, or of its bound.
    pub(crate) fn likelihood(&self) -> (f64, f64) {
        (self.rows - self.log_z.upper, self.rows - self.log_z.lower)
    }

    /// The lower end, where the likelihood was tracked as `value` with the lower end `end`: if the two agree, the
    /// higher lower end holds.
    pub(crate) fn lower_end(&self, (value, end): (f64, f64)) -> f64 {
        let (lower, upper) = self.likelihood();
        let agree = end <= upper && 2.0 * value - end >= lower && !self.log_z.is_unsettled();
        if agree { lower.max(end) } else { lower }
    }
}

impl Monitor<'_> {
    /// Looks at a machine once more, when `epochs` epochs were learned.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub(crate) fn look_again(&self, machine: &Machine, epochs: u64) -> Result<Confirmed, Error> {
        let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
        let (logs, _) = row_logs(&sampler, self.valid.as_ref().unwrap_or(&self.train))?;
        let settings = log_partition::Settings {
            means: Some(self.train.feed(machine)?.means().concat()),
            seed: self.seed,
            ..tracking::confirming(machine, epochs as f64 * self.train.data.n_rows() as f64)
        };
        let log_z = log_partition::log_partition(machine, &settings, &mut Silent)?;
        Ok(Confirmed { log_z, rows: mean_of(&logs).0 })
    }

    /// The same with as much work as an estimate of $\ln Z$ takes that was asked for.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub(crate) fn look_thoroughly(&self, machine: &Machine) -> Result<Confirmed, Error> {
        let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
        let (logs, _) = row_logs(&sampler, self.valid.as_ref().unwrap_or(&self.train))?;
        let means = Some(self.train.feed(machine)?.means().concat());
        let settings = log_partition::Settings { means, seed: self.seed, ..Default::default() };
        let log_z = log_partition::log_partition(machine, &settings, &mut Silent)?;
        Ok(Confirmed { log_z, rows: mean_of(&logs).0 })
    }

    /// What was tracked last, beside what was found anew; none where $\ln Z$ was enumerated, or never looked at.
    pub(crate) fn compared(&self, again: &Confirmed) -> Option<Confirmation> {
        let tracked = self.tracking.last_found()?;
        let LogPartition { lower, upper, .. } = again.log_z;
        let is_settled = !again.log_z.is_unsettled();
        Some(Confirmation { tracked, fresh: (lower, upper), is_settled })
    }

    /// Whether $\ln Z$ was tracked at the last look, and not enumerated.
    pub(crate) fn has_tracked(&self) -> bool {
        self.tracking.last_found().is_some()
    }
}
