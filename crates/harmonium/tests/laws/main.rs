//! The laws of the house: what every graph and every kind of unit obeys, held against enumeration.
//!
//! Statistical laws have fixed seeds, start at the exact distribution, and use tolerances that are
//! computed from the number of draws.

mod bad_input;
mod determinism;
mod energy;
mod exact_sums;
mod inference;
mod layering;
mod learning;
mod machines;
mod rewrites;
mod sampling;
mod statistics;
mod verbs;
