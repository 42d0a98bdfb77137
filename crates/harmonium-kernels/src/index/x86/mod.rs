//! Bits by hand: the twin of what [`super`] does in plain Rust.

pub(super) mod bmi2;
