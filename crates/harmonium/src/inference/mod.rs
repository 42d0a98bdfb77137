//! Approximate inference on the pairwise graph of the free units, method beside method.
//!
//! | method | file | $\ln\sum e^{-E}$ | marginals |
//! |---|---|---|---|
//! | belief propagation | [`belief_propagation()`] | exact on trees, else an estimate | of units and pairs |
//! | tree-reweighted | [`tree_reweighted()`] | an upper bound | of units and pairs |
//! | TAP | [`tap()`] | an estimate, good for weak dense couplings | of units and pairs |
//! | mean field | [`mean_field()`] | a lower bound | of units; pairs are products |
//!
//! The most probable state of all units together ([`Mode`]) is sought by four roads, beside the exact one of
//! [`crate::graph::Elimination::mode`]: [`max_product()`], which also bounds what any state can reach, [`alternating()`] maximisation
//! from many starts, [`annealed()`] and [`tempered()`] sampling.
//!
//! All of them read the [`Pairwise`](crate::graph::Pairwise) graph of a machine, so binary, spin and categorical units with
//! anything held go the same way; what is exact on it is in [`crate::graph`]. Each looks for fixed
//! points of an iteration. Whether one was found is part of the answer: a value that no fixed point
//! stands behind is never given, except for the two bounds, which hold wherever their iteration stops.
//!
//! ```
//! use harmonium::graph::Pairwise;
//! use harmonium::inference::{Iteration, belief_propagation, mean_field, tree_reweighted};
//! use harmonium::machine::{Clamp, State};
//! use harmonium::{exact, models::ising_torus, progress::Silent};
//!
//! let torus = ising_torus(4, 0.2)?.into_machine();
//! let graph = Pairwise::new(&torus, &Clamp::none(), &State::zeros(&torus, 1)?, 0)?;
//! let log_z = exact::log_partition(&torus)?;
//! let lower = mean_field(&graph, &Iteration::of_mean_field(&graph), &mut Silent)?;
//! let upper = tree_reweighted(&graph, &Iteration::of_messages(&graph), &mut Silent)?;
//! assert!(lower.best.log_sum <= log_z && log_z <= upper.best.log_sum);
//! let bethe = belief_propagation(&graph, &Iteration::of_messages(&graph), &mut Silent)?;
//! assert!((bethe.best.log_sum - log_z).abs() < 0.1);
//! # Ok::<(), harmonium::Error>(())
//! ```

mod alternating;
mod annealed;
mod belief_propagation;
mod fixed_points;
mod flat;
mod max_product;
mod mean_field;
mod messages;
mod mode;
mod resistance;
mod tap;
mod tree_reweighted;

pub use alternating::alternating;
pub use annealed::{annealed, tempered};
pub use belief_propagation::belief_propagation;
pub use fixed_points::{Attempt, FixedPoints, Iteration, Schedule};
pub use max_product::max_product;
pub use mean_field::mean_field;
pub use mode::{Mode, Search};
pub use resistance::effective_resistances;
pub use tap::tap;
pub use tree_reweighted::tree_reweighted;
