//! Lanes to bits by hand, with instructions that the compiler does not find: the twins of what
//! [`super`] does in plain Rust.

pub(super) mod avx512;
pub(super) mod sse2;
