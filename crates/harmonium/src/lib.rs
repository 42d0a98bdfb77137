//! Boltzmann machines of every shape, from one energy.
//!
//! $$p(x) = e^{-E(x)}/Z, \qquad E(x) = E_0 + \sum_l E_l(x_l)
//!   - \sum_{(l,m)} \tilde x_l^\top W_{lm}\,\tilde x_m
//!   - \tfrac12\sum_l \tilde x_l^\top J_l\,\tilde x_l, \qquad \tilde x_l = x_l - \mu_l$$
//!
//! A [`Machine`](machine::Machine) is layers and couplings; restricted, deep, multimodal and
//! general Boltzmann machines are graphs of it ([`models`] names them). Sampling, inference,
//! learning and evaluation are written once, over the graph.
//!
//! ```
//! use harmonium::models::Rbm;
//! use harmonium::training::{Plan, train};
//! use harmonium::evaluation::likelihood;
//! use harmonium_data::{Binarize, Dataset, synthetic};
//!
//! let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted)?;
//! let data = Dataset::new(table, Binarize::None)?;
//! let rbm = Rbm::binary(9, 8)?;
//! let plan = Plan { epochs: 50, ..Plan::default() };
//! let outcome = train(rbm.into_machine(), &data, &plan, &mut [])?;
//! let score = likelihood::exact(&outcome.machine, &data)?;
//! assert!(score.mean.is_finite());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules are layered: [`error`], [`units`], [`machine`], [`graph`], [`models`], [`engine`],
//! [`moments`], [`sampling`], [`exact`], [`estimators`], [`optim`], [`training`], [`evaluation`],
//! [`run`]. Each uses only those before it, and a test checks it.

#![forbid(unsafe_code)]

pub mod engine;
pub mod error;
pub mod estimators;
pub mod evaluation;
pub mod exact;
pub mod graph;
pub mod machine;
pub mod models;
pub mod moments;
pub mod optim;
pub mod progress;
pub mod run;
pub mod sampling;
pub mod training;
pub mod units;

pub use error::Error;
pub use harmonium_kernels::random;
