//! Whether samples can be trusted, in one word.
//!
//! Chains that start dispersed are watched over the second half of their sweeps: their energy, the
//! activity of each layer, and the directions in which they differ most
//! ([`diagnostics`](super::diagnostics)). Each is cut into two halves of $N$ sweeps, and
//! $\hat R^2 - 1$ is about $\tau/N$. A sample is the last state of a chain of $4N$ sweeps, so that
//! $\hat R \le 1.05$ says that the chain was at least forty $\tau$ long and has forgotten where it
//! started. Chains of different rows that are given have different distributions: they are judged row
//! by row, and the worst row counts. A row has few chains, the worst of several rows lies farther out,
//! and twice that $\hat R^2 - 1$ is allowed.

use super::diagnostics::{LEAST_DRAWS, Mixing, Watch};
use crate::error::Error;
use crate::machine::{Machine, State};
use serde::{Serialize, Serializer};
use std::fmt;

/// Up to this $\hat R$ the last states of chains count as samples.
pub const R_HAT_OF_SAMPLES: f64 = 1.05;
/// The same for the worst of several rows, each with few chains.
pub const R_HAT_OF_ROWS: f64 = 1.1;
/// Looks at the chains over the second half of their sweeps.
pub(crate) const LOOKS: usize = 64;
/// What stands for an $\hat R$ without bound, of chains that never move.
const LARGEST_R_HAT: f64 = 1000.0;

/// What is known about samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Independent draws from the distribution itself.
    Exact,
    /// Chains agree with each other and with their own past.
    Mixed,
    /// Chains disagree: the samples depend on where they started.
    NotMixed,
    /// Too few sweeps to say anything.
    Unknown,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Mixed => "mixed",
            Self::NotMixed => "not mixed",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A verdict and the numbers behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trust {
    /// The verdict.
    pub verdict: Verdict,
    /// The largest $\hat R$ of what was watched; at most 1000.
    pub r_hat: Option<f64>,
    /// Independent samples that the samples are worth; unknown if nothing was watched. Of chains that
    /// have not mixed it is $n/\hat R^2$, the share of the variance that a chain sees on its own.
    pub effective_samples: Option<f64>,
    /// What had the largest $\hat R$.
    pub scalar: Option<String>,
    /// Its autocorrelation time in sweeps.
    pub autocorrelation_time: Option<f64>,
}

impl Trust {
    /// Of `n` independent draws from the distribution itself.
    pub fn exact(n: usize) -> Self {
        let effective_samples = Some(n as f64);
        Self { effective_samples, ..Self::none(Verdict::Exact) }
    }

    /// Nothing is known.
    pub fn unknown() -> Self {
        Self::none(Verdict::Unknown)
    }

    fn none(verdict: Verdict) -> Self {
        Self {
            verdict,
            r_hat: None,
            effective_samples: None,
            scalar: None,
            autocorrelation_time: None,
        }
    }

    /// Of `n` samples that are the last states of as many chains, which were like those watched.
    pub(crate) fn of_last_states(n: usize, worst: &Worst, spacing: usize) -> Self {
        let mixed = worst.is_fine();
        let share = if mixed { 1.0 } else { worst.r_hat.map_or(1.0, |r| r.powi(-2)) };
        Self {
            effective_samples: Some(n as f64 * share),
            ..Self::none(if mixed { Verdict::Mixed } else { Verdict::NotMixed })
        }
        .seen(worst, spacing)
    }

    /// Of `n` samples taken one after the other from few chains, whose `draws` were watched.
    pub(crate) fn of_series(n: usize, draws: usize, worst: &Worst, spacing: usize) -> Self {
        let mixed = worst.is_fine();
        let independent = worst.longest.map_or(n as f64, |tau| draws as f64 / tau);
        Self {
            effective_samples: Some(independent.min(n as f64)),
            ..Self::none(if mixed { Verdict::Mixed } else { Verdict::NotMixed })
        }
        .seen(worst, spacing)
    }

    fn seen(self, worst: &Worst, spacing: usize) -> Self {
        Self {
            r_hat: worst.r_hat,
            scalar: worst.r_hat.map(|_| worst.name.clone()),
            autocorrelation_time: worst.longest.map(|tau| tau * spacing as f64),
            ..self
        }
    }

    /// The warning, if there is one, for chains of `sweeps` sweeps.
    pub fn warning(&self, sweeps: usize) -> Option<String> {
        match self.verdict {
            Verdict::Exact | Verdict::Mixed => None,
            Verdict::Unknown => {
                Some(format!("{sweeps} sweeps are too few to say whether the chains have mixed"))
            }
            Verdict::NotMixed => Some(format!(
                "the chains have not mixed after {sweeps} sweeps: R-hat {:.2} of the {} (about 1 if \
                 they had); the samples depend on where the chains started and are worth \
                 about {:.0} independent ones",
                self.r_hat.unwrap_or(LARGEST_R_HAT),
                self.scalar.as_deref().unwrap_or("energy"),
                self.effective_samples.unwrap_or(0.0)
            )),
        }
    }
}

/// The scalar of all groups of chains that speaks most against them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Worst {
    pub(crate) name: String,
    /// The largest $\hat R$; unknown if nothing ever moved, in any chain.
    pub(crate) r_hat: Option<f64>,
    /// The longest autocorrelation time, in looks.
    pub(crate) longest: Option<f64>,
    /// The largest $\hat R$ that is allowed.
    limit: f64,
}

impl Worst {
    fn is_fine(&self) -> bool {
        self.r_hat.is_none_or(|r| r <= self.limit)
    }
}

/// Groups of chains, each with a distribution of its own.
#[derive(Clone, Debug)]
pub(crate) struct Watches {
    groups: Vec<(Vec<usize>, Watch)>,
    looks: usize,
}

impl Watches {
    /// Begins with chains that stand at `x`, the rows of a group being chains of one distribution.
    pub(crate) fn new(machine: &Machine, x: &State, groups: &[Vec<usize>]) -> Result<Self, Error> {
        let watch =
            |rows: &Vec<usize>| Ok((rows.clone(), Watch::new(machine, &x.select_rows(rows))?));
        Ok(Self { groups: groups.iter().map(watch).collect::<Result<_, Error>>()?, looks: 0 })
    }

    /// Takes down where the chains stand.
    pub(crate) fn look(&mut self, machine: &Machine, x: &State) -> Result<(), Error> {
        self.looks += 1;
        self.groups
            .iter_mut()
            .try_for_each(|(rows, watch)| watch.look(machine, &x.select_rows(rows)))
    }

    /// Draws that were watched.
    pub(crate) fn draws(&self) -> usize {
        self.looks * self.groups.iter().map(|g| g.0.len()).sum::<usize>()
    }

    /// What speaks most against the chains; `None` if there were too few looks.
    pub(crate) fn worst(&self) -> Result<Option<Worst>, Error> {
        if self.looks < LEAST_DRAWS {
            return Ok(None);
        }
        let limit = if self.groups.len() > 1 { R_HAT_OF_ROWS } else { R_HAT_OF_SAMPLES };
        let mut worst = Worst { name: "energy".into(), r_hat: None, longest: None, limit };
        for series in self.groups.iter().flat_map(|g| g.1.series()) {
            let mixing = Mixing::of(&series.chains)?;
            let r_hat = mixing.r_hat.map(|r| r.min(LARGEST_R_HAT));
            if r_hat > worst.r_hat {
                (worst.r_hat, worst.name) = (r_hat, series.name.clone());
            }
            if mixing.autocorrelation_time > worst.longest {
                worst.longest = mixing.autocorrelation_time;
            }
        }
        Ok(Some(worst))
    }
}
