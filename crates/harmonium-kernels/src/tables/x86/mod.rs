//! Tables by hand: the twins of what [`super`] and [`super::build`] do in plain Rust.

pub(super) mod avx2;
pub(super) mod avx512;
