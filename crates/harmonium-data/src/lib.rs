//! Tables of samples: where they come from and how they are presented to a machine.
//!
//! This crate knows no model. A [`Table`] is what a file or a generator holds, one sample per row;
//! a [`Dataset`] adds how it is presented (binarised anew at each presentation, thresholded, or
//! as it is) and the weight of each sample.

mod dataset;
mod error;
pub mod synthetic;
mod table;

#[cfg(feature = "readers")]
pub mod digits;

pub use dataset::{Binarize, Dataset};
pub use error::Error;
pub use table::{Image, Table, Values};
