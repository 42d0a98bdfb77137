//! The arithmetic under harmonium: slices in, slices out.
//!
//! Nothing here knows what a layer or a machine is. This is the only crate of the workspace that
//! may hold `unsafe`, and each block says why it is sound. Every fast path stands next to a
//! portable twin and is tested against it.

#[cfg(test)]
mod arbitrary;
pub mod bits;
pub mod dense;
mod dispatch;
pub mod index;
pub mod lateral;
pub mod line;
pub mod lists;
pub mod log_product;
pub mod means;
pub mod neurons;
pub mod pairs;
pub mod quantised;
pub mod random;
pub mod real;
pub mod response;
pub mod softplus;
#[cfg(feature = "startup")]
pub mod startup;
pub mod tables;
pub mod update;

pub use dispatch::instruction_set;
