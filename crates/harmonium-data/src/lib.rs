//! Tables of samples: where they come from and how they are presented to a machine.
//!
//! This crate knows no model. A [`Table`] is what a file or a generator holds, one sample per row;
//! a [`Dataset`] adds how it is presented (binarised anew at each presentation, thresholded, or
//! as it is) and the weight of each sample. With the feature `readers`, `open` finds out what a
//! file is and reads it.

mod array;
mod canonical;
mod dataset;
mod error;
pub mod frame;
mod hide;
mod labels;
mod modality;
mod options;
mod reading;
pub mod split;
mod store;
mod summary;
pub mod synthetic;
mod table;

#[cfg(feature = "readers")]
pub mod digits;
#[cfg(feature = "readers")]
mod format;
#[cfg(feature = "readers")]
mod groups;
mod hash;
#[cfg(feature = "readers")]
mod input;
#[cfg(feature = "readers")]
mod open;
#[cfg(feature = "readers")]
mod opened;
#[cfg(feature = "readers")]
mod read;
#[cfg(feature = "readers")]
mod rows;

#[cfg(feature = "readers")]
pub use array::fingerprint_of_array;
pub use array::{Number, SparseRows};
pub use dataset::{Binarize, Dataset};
pub use error::Error;
#[cfg(feature = "readers")]
pub use format::Format;
pub use hide::Hide;
pub use labels::Labels;
pub use modality::{Modality, Source, check_name, matched};
pub use ndarray;
#[cfg(feature = "readers")]
pub use open::{
    About, Loaded, LoadedDataset, decode, open, open_dataset, open_labels, open_labels_of,
};
#[cfg(feature = "readers")]
pub use opened::{Found, Opened, Remembered};
pub use options::{ImageLayout, LabelColumn, Options};
pub use reading::Reading;
pub use split::{Part, Split};
pub use summary::{Summary, Visible};
pub use table::{Block, BlockValues, Column, Image, Table};
