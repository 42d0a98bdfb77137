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
//! use harmonium::data::synthetic::{Repeats, bars_and_stripes};
//! use harmonium::{Binarize, Dataset, Method, Plan, Rbm};
//!
//! let data = Dataset::new(bars_and_stripes(3, Repeats::Counted)?, Binarize::None)?;
//! let model = Rbm::binary(9, 8)?.train(&data, &Plan::for_epochs(50))?;
//! let score = model.score(&data, Method::Exact)?;
//! assert!(score.mean.is_finite());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules are layered: [`error`], [`progress`], [`units`], [`gaussian`], [`machine`], [`graph`], [`models`],
//! [`schema`], [`spread`], [`engine`], [`moments`], [`sampling`], [`exact`], [`inference`], [`estimators`], [`optim`],
//! [`training`], [`evaluation`], [`network`], [`run`], [`findings`], [`model`]. Each uses only those before it, and a test
//! checks it.

#![forbid(unsafe_code)]

pub mod engine;
pub mod error;
pub mod estimators;
pub mod evaluation;
pub mod exact;
pub mod findings;
pub mod gaussian;
pub mod graph;
pub mod inference;
pub mod machine;
pub mod model;
pub mod models;
pub mod moments;
pub mod network;
pub mod optim;
pub mod progress;
pub mod run;
pub mod sampling;
pub mod schema;
pub mod spread;
pub mod training;
pub mod units;

pub use error::Error;
pub use harmonium_data as data;
pub use harmonium_data::{Binarize, Dataset};
pub use harmonium_kernels::random;
pub use model::{Method, Score, Sweeps};
pub use models::{Bm, Dbm, Rbm};
pub use run::Model;
pub use training::{DbnShape, Plan};

// The program of the README and the examples run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
#[cfg(doctest)]
#[doc = concat!("```\n", include_str!("../examples/own_data.rs"), "```")]
mod own_data {}
#[cfg(doctest)]
#[doc = concat!("```\n", include_str!("../examples/half_an_image.rs"), "```")]
mod half_an_image {}
#[cfg(doctest)]
#[doc = concat!("```\n", include_str!("../examples/likelihood.rs"), "```")]
mod likelihood {}
#[cfg(doctest)]
#[doc = concat!("```\n", include_str!("../examples/ising.rs"), "```")]
mod ising {}
