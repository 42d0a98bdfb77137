//! Data that is not the same in every epoch.

use crate::error::Error;
use harmonium_data::Dataset;
use std::borrow::Cow;

/// Makes the data of each epoch, always with the same rows: samples of a layer given the one below
/// it, for example.
pub trait Source: Sync {
    /// The data of an epoch. The same epoch gives the same data.
    ///
    /// # Errors
    ///
    /// If it cannot be made, for example for want of memory.
    fn in_epoch(&self, epoch: u64) -> Result<Dataset, Error>;
}

/// What a trainer presents.
#[derive(Clone, Copy)]
pub enum Presented<'d> {
    /// The same samples in every epoch, perhaps drawn anew.
    Fixed(&'d Dataset),
    /// What a source makes of each epoch.
    Anew(&'d dyn Source),
}

impl<'d> Presented<'d> {
    pub(super) fn in_epoch(&self, epoch: u64) -> Result<Cow<'d, Dataset>, Error> {
        match self {
            Self::Fixed(data) => Ok(Cow::Borrowed(data)),
            Self::Anew(source) => source.in_epoch(epoch).map(Cow::Owned),
        }
    }
}

impl<'d> From<&'d Dataset> for Presented<'d> {
    fn from(data: &'d Dataset) -> Self {
        Self::Fixed(data)
    }
}
