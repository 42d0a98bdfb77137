//! How good a machine is: likelihoods, bounds and baselines, in nats.

pub mod baseline;
pub mod bound;
pub mod dbn;
pub mod likelihood;
pub mod monitor;
pub mod pseudo;
