//! How good a machine is: likelihoods, bounds and baselines, in nats.

pub mod baseline;
pub mod bound;
pub mod class_scores;
pub mod dbn;
pub mod diagnose;
pub mod diagnostics;
pub mod error_rate;
pub mod filters;
pub mod likelihood;
pub mod log_partition;
pub mod monitor;
pub mod pseudo;
pub mod ranking;
pub mod row_sums;
pub mod tracking;
pub mod two_sample;
pub mod validation;
pub mod verdict;
