//! Readers: one file for each format, all filling the same [`rows::RowSink`].

pub(crate) mod arff;
pub(crate) mod array;
pub(crate) mod cells;
pub(crate) mod idx;
pub(crate) mod jpeg;
pub(crate) mod lines;
pub(crate) mod mat;
pub(crate) mod npy;
pub(crate) mod npz;
pub(crate) mod number;
pub(crate) mod pictures;
pub(crate) mod png;
pub(crate) mod rows;
pub(crate) mod source;
pub(crate) mod sparse;
pub(crate) mod svmlight;
pub(crate) mod text;
