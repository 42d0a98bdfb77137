//! Data that a learner presents: the same in every epoch, or made anew.

use crate::error::Error;
use harmonium_data::Dataset;
use std::borrow::Cow;

/// Makes the data of each epoch, always with the same rows: samples of a layer given the one below
/// it, for example.
pub trait EpochData: Send + Sync {
    /// The data of an epoch. The same epoch gives the same data.
    ///
    /// # Errors
    ///
    /// If it cannot be made, for example for want of memory.
    fn in_epoch(&self, epoch: u64) -> Result<Dataset, Error>;
}

/// Makes the data of the epochs to come.
type Maker<'d> = Box<dyn EpochData + 'd>;

/// What a trainer presents.
#[expect(clippy::large_enum_variant, reason = "there is one of it at a time")]
pub enum Presented<'d> {
    /// The same samples in every epoch, perhaps drawn anew.
    Fixed(Cow<'d, Dataset>),
    /// What a source makes of each epoch.
    Anew(Box<dyn EpochData + 'd>),
}

impl<'d> Presented<'d> {
    /// The data of an epoch, and what makes that of the next, if it differs.
    pub(super) fn in_epoch(
        self,
        epoch: u64,
    ) -> Result<(Cow<'d, Dataset>, Option<Maker<'d>>), Error> {
        match self {
            Self::Fixed(data) => Ok((data, None)),
            Self::Anew(source) => Ok((Cow::Owned(source.in_epoch(epoch)?), Some(source))),
        }
    }
}

impl<'d> From<&'d Dataset> for Presented<'d> {
    fn from(data: &'d Dataset) -> Self {
        Self::Fixed(Cow::Borrowed(data))
    }
}

impl From<Dataset> for Presented<'_> {
    fn from(data: Dataset) -> Self {
        Self::Fixed(Cow::Owned(data))
    }
}

impl<'d> From<Cow<'d, Dataset>> for Presented<'d> {
    fn from(data: Cow<'d, Dataset>) -> Self {
        Self::Fixed(data)
    }
}
