//! The laws of the house: what every graph and every kind of unit obeys, held against enumeration.
//!
//! Statistical laws have fixed seeds, start at the exact distribution, and use tolerances that are
//! computed from the number of draws.

#![expect(
    clippy::unwrap_used,
    clippy::needless_range_loop,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests may panic, and index several tables by one row"
)]

mod anomalies;
mod approximations;
mod autopilot;
mod bad_input;
mod baselines;
mod classify;
mod clusters;
mod conditional;
mod dbn;
mod determinism;
mod diagnostics;
mod doubts;
mod elimination;
mod energy;
mod exact_rows;
mod exact_sums;
mod graph;
mod greedy;
mod holes;
mod inference;
mod kernels;
mod known_machines;
mod layering;
mod learn_on;
mod learning;
mod levels;
mod log_partition;
mod machines;
mod model;
mod model_dbn;
mod model_infer;
mod model_methods;
mod model_samples;
mod model_scores;
mod model_train;
mod modes;
mod multimodal;
mod network;
mod objectives;
mod physics;
mod posterior;
mod reals;
mod reduce;
mod rewrites;
mod sampling;
mod scores;
mod statistics;
mod tables;
mod tracking;
mod trajectory;
mod two_sample;
mod verbs;
