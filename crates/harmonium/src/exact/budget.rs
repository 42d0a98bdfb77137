//! How many terms an exact sum may take, occasion by occasion.
//!
//! A term costs about two thirds of a nanosecond for each unit that is summed in closed form beside
//! the enumerated ones: an RBM with 64 visible units sums $2^{22}$ terms in 0.2 seconds, $2^{26}$ in
//! 3 and $2^{30}$ in 45, on one core. An RBM with 784 takes twelve times as long. A term of an elimination takes
//! a nanosecond or two, so 32 of them count as one: $2^{26}$ stands for $2^{31}$ of them, a few seconds.

use crate::error::Error;

/// A number of terms that an occasion is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    log2_terms: f64,
}

impl Budget {
    /// What may be asked for at all: more is refused.
    pub const LIMIT: Self = Self { log2_terms: 30.0 };
    /// A $\ln Z$, or the likelihood of data, if no method is asked for.
    pub const UNASKED: Self = Self { log2_terms: 26.0 };
    /// The likelihood of a DBN if no method is asked for: a sum over several layers costs more.
    pub const UNASKED_DBN: Self = Self { log2_terms: 24.0 };
    /// The final $\ln Z$ on a page about a run.
    pub const PAGE: Self = Self { log2_terms: 22.0 };
    /// Exact samples that chains start from.
    pub const SAMPLES: Self = Self { log2_terms: 22.0 };
    /// A list of all states, which has to fit into memory.
    pub const STATES: Self = Self { log2_terms: 22.0 };
    /// A bound at the end of a training.
    pub const END_OF_TRAINING: Self = Self { log2_terms: 20.0 };
    /// An enumeration so cheap that no order of elimination is sought.
    pub(super) const ENUMERATION: Self = Self { log2_terms: 16.0 };
    /// The sums of a few hundred rows of data, where annealing each would be the alternative.
    pub const ROWS: Self = Self { log2_terms: 24.0 };
    /// The sum of one row of data among many.
    pub const ROW: Self = Self { log2_terms: 14.0 };

    /// Whether a sum whose number of terms has this binary logarithm is affordable.
    pub fn affords(self, log2_terms: f64) -> bool {
        log2_terms <= self.log2_terms
    }

    /// Binary logarithm of the number of terms.
    pub fn log2_terms(self) -> f64 {
        self.log2_terms
    }

    /// Refuses a sum of more terms.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyTerms`] with both numbers.
    pub fn check(self, log2_terms: f64) -> Result<(), Error> {
        if self.affords(log2_terms) {
            return Ok(());
        }
        Err(Error::TooManyTerms { log2_terms, limit: self.log2_terms })
    }
}

/// Share of an epoch's multiplications that an exact sum may take at its end.
const SHARE_OF_EPOCH: f64 = 0.02;

/// Terms times entries that cost less than a millisecond.
const TRIFLE: f64 = 1e5;

/// Whether a sum over a machine of `n_entries` entries costs little beside the multiplications of an
/// epoch, or next to nothing.
pub(crate) fn costs_little(log2_terms: f64, n_entries: usize, epoch: f64) -> bool {
    let cost = log2_terms.exp2() * n_entries as f64;
    cost <= SHARE_OF_EPOCH * epoch || cost <= TRIFLE
}
