//! Hidden units that have all fallen silent while a run goes on.
//!
//! A learning rate that is far too high drives every hidden unit to one end, where its gradient
//! vanishes: the model is then one of independent units, and no further epoch changes that. It is said
//! when it begins, and a run with patience ends when it has lasted [`HOPELESS`] epochs.

use crate::machine::{Machine, Role};
use crate::training::{Measurements, MetricName};
use serde_json::{Value, json};

/// Epochs without a unit that says anything after which nothing is to be hoped for.
const HOPELESS: u64 = 3;

/// Since when all hidden units are dead or saturated.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Idle {
    since: Option<u64>,
    /// Whether it was said: units that come and go are told of once.
    told: bool,
    /// What was said of it.
    what: String,
}

/// Hidden units that are 0 or 1: those that are counted as dead or saturated.
pub(super) fn n_binary_hidden(machine: &Machine) -> usize {
    let hidden = machine.layers().iter().filter(|l| l.role == Role::Hidden);
    hidden.filter(|l| l.units.is_zero_or_one()).map(crate::machine::Layer::len).sum()
}

impl Idle {
    /// Looks at what was measured after an epoch of a machine with `n` such units: a warning when all of
    /// them have fallen silent for the first time.
    pub(super) fn look(&mut self, found: &Measurements, n: usize, epoch: u64) -> Option<String> {
        let value = |name| found.value(&name);
        let (dead, saturated) =
            value(MetricName::DeadUnits).zip(value(MetricName::SaturatedUnits))?;
        if n == 0 || dead + saturated < n as f64 {
            self.since = None;
            return None;
        }
        self.since.get_or_insert(epoch);
        let fresh = !std::mem::replace(&mut self.told, true);
        self.what = format!(
            "after epoch {epoch} all {n} hidden units say nothing: {dead:.0} are dead (never on), \
             {saturated:.0} saturated (always on); the learning rate is too high"
        );
        fresh.then(|| self.what.clone())
    }

    /// The reason to stop, if that has lasted too long.
    pub(super) fn is_hopeless(&self, epoch: u64) -> Option<String> {
        let since = self.since?;
        (epoch >= since + HOPELESS).then(|| self.what.clone())
    }

    /// Writes what a checkpoint holds of it.
    pub(super) fn export(&self, state: &mut Value) {
        if self.told {
            state["idle_since"] = json!(self.since);
            state["idle"] = json!(self.what);
        }
    }

    /// What a checkpoint says.
    pub(super) fn import(state: &Value) -> Self {
        let what = state["idle"].as_str().unwrap_or_default().to_owned();
        Self { since: state["idle_since"].as_u64(), told: !what.is_empty(), what }
    }
}
