//! Rounding, transposing and counting by hand: the twins of what [`super`] does in plain Rust.

pub(super) mod avx2;
pub(super) mod avx512;
