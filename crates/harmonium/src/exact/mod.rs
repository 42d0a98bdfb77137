//! Sums over all states: the oracle that everything else is held against.
//!
//! $$\ln Z = \ln \sum_{x_E} e^{-F(x_E)}, \qquad
//!   F(x_E) = -\ln \sum_{x_S} e^{-E(x_E, x_S)}$$
//!
//! The layers are split in two: $S$ is summed in closed form and only $E$ is enumerated, so an
//! RBM costs 2 to the power of its smaller side, a DBM that of its alternate layers, a machine
//! with lateral couplings what must be. Gaussian layers are always integrated, jointly where they see
//! each other ([`crate::gaussian`]). States are visited in the order of a
//! reflected Gray code, so each differs from the one before in one unit; sums run in f64, in
//! fixed chunks that are reduced in order.
//!
//! Where the graph of the free units is narrow, as a chain, a tree or a grid is, sums, means and samples
//! take one unit after the other instead ([`crate::graph::Elimination`]), which may be far fewer terms.
//! What it takes is known before ([`cost`]). The Ising torus has a closed form.

mod budget;
mod conditional;
mod draw;
mod eliminate;
mod enumerate;
mod expectation;
mod problem;
mod torus;
mod way;

pub use budget::Budget;
pub(crate) use budget::costs_little;
pub(crate) use conditional::equal_rows;
pub use conditional::{
    By, Cost, Query, conditional_means, conditional_means_with, conditional_samples,
    conditional_samples_with, cost, log_sums_with,
};

use crate::error::Error;
use crate::machine::{LayerId, Machine, State};
use crate::moments::Moments;
use crate::progress::{Listener, Silent};
use crate::sampling::Clamp;
use crate::units::log_sum_exp;
use expectation::Order;
use harmonium_kernels::random::Stream;
use problem::{Problem, Split};
use torus::Torus;
use way::Ways;

/// Binary logarithm of what [`log_sums`] takes over the free units of the row that takes most, in terms
/// of an enumeration; 32 terms of an elimination take as long as one. It depends on the graph, not on
/// the weights.
///
/// # Errors
///
/// If the clamp does not fit the machine, or memory ends.
pub fn log2_terms(machine: &Machine, clamp: &Clamp, n_rows: usize) -> Result<f64, Error> {
    clamp.check(machine, n_rows)?;
    let x = State::zeros(machine, n_rows.max(1))?;
    let mut ways = Ways::new(machine, clamp, &x, Query::LogSum);
    let rows = (0..n_rows.max(1)).map(|row| ways.of_row(row).log2_work(Query::LogSum));
    Ok(rows.fold(0.0, f64::max))
}

/// Binary logarithm of the number of terms that an enumeration takes, as [`moments`] needs it, with
/// nothing clamped.
pub fn log2_states(machine: &Machine) -> f64 {
    Split::new(machine, &Clamp::none(), 0).log2_terms
}

/// $\ln Z$.
///
/// ```
/// use harmonium::{exact, models::Rbm};
/// // Without weights every unit is free to choose: Z = 2^7.
/// let rbm = Rbm::binary(4, 3)?;
/// let log_z = exact::log_partition(rbm.machine())?;
/// assert!((log_z - 7.0 * 2.0_f64.ln()).abs() < 1e-12);
/// # Ok::<(), harmonium::Error>(())
/// ```
///
/// # Errors
///
/// If it would take more than $2^{30}$ terms, Gaussian units are coupled so strongly that it
/// diverges, or parameters are so large that no number can hold it.
pub fn log_partition(machine: &Machine) -> Result<f64, Error> {
    log_partition_with(machine, &mut Silent)
}

/// The same, telling how far it is.
///
/// # Errors
///
/// As [`log_partition`]; and if the listener cancels.
pub fn log_partition_with(machine: &Machine, listener: &mut dyn Listener) -> Result<f64, Error> {
    if let Some(torus) = Torus::of(&machine.without_offsets()?) {
        return machine.check_finite("ln Z", torus.log_partition());
    }
    let x = State::zeros(machine, 1)?;
    Ok(log_sums_with(machine, &Clamp::none(), &x, listener)?[0])
}

/// What [`log_partition`] takes: nothing for a torus of spins whose sum is known in closed form.
///
/// # Errors
///
/// If memory ends.
pub fn cost_of_partition(machine: &Machine) -> Result<Cost, Error> {
    if Torus::of(&machine.without_offsets()?).is_some() {
        return Ok(Cost::NOTHING);
    }
    cost(machine, &Clamp::none(), &State::zeros(machine, 1)?, Query::LogSum)
}

/// $\ln \sum_{x_\text{free}} e^{-E(x)}$ of each row, with the clamped units held at `x`.
///
/// # Errors
///
/// As for [`log_partition`], and if clamp or state do not fit the machine.
pub fn log_sums(machine: &Machine, clamp: &Clamp, x: &State) -> Result<Vec<f64>, Error> {
    log_sums_with(machine, clamp, x, &mut Silent)
}

/// $\ln p(x_\text{clamped})$ of each row: the free units are summed out.
///
/// # Errors
///
/// As for [`log_sums`].
pub fn log_probabilities(machine: &Machine, clamp: &Clamp, x: &State) -> Result<Vec<f64>, Error> {
    let log_z = log_partition(machine)?;
    Ok(log_sums(machine, clamp, x)?.into_iter().map(|l| l - log_z).collect())
}

/// `n` independent samples of the machine.
///
/// # Errors
///
/// If there are more than $2^{30}$ states to enumerate, Gaussian units diverge, or memory ends.
pub fn samples(machine: &Machine, n: usize, stream: Stream) -> Result<State, Error> {
    conditional_samples(machine, &Clamp::none(), &State::zeros(machine, 1)?, n, stream)
}

/// Exact moments, each row weighted, of the free units given the clamped ones. With nothing
/// clamped these are the moments of the model; with the data clamped, of the posterior.
///
/// # Errors
///
/// If there are more than $2^{30}$ states to enumerate, Gaussian units diverge, or clamp or state
/// do not fit the machine.
pub fn moments(
    machine: &Machine,
    clamp: &Clamp,
    x: &State,
    weights: &[f64],
) -> Result<Moments, Error> {
    x.check(machine)?;
    clamp.check(machine, x.n_rows())?;
    for row in 0..x.n_rows() {
        Budget::LIMIT.check(Split::new(machine, clamp, row).log2_terms)?;
    }
    if weights.len() != x.n_rows() {
        let (what, found) = ("the number of row weights".into(), weights.len());
        return Err(Error::Shape { what, expected: x.n_rows(), found });
    }
    let folded = machine.without_offsets()?;
    let mut total = Moments::zeros(machine);
    for (row, &weight) in weights.iter().enumerate() {
        let problem = Problem::new(&folded, clamp, x, row)?;
        problem.expectation(Order::Second).add_to(&problem, machine, weight, &mut total);
    }
    Ok(total)
}

/// The gradient of the weighted mean of $\ln p(x_\text{clamped})$ over the rows.
///
/// # Errors
///
/// As for [`log_sums`].
pub fn gradient(
    machine: &Machine,
    clamp: &Clamp,
    x: &State,
    weights: &[f64],
) -> Result<Moments, Error> {
    let total: f64 = weights.iter().sum();
    let normalised: Vec<f64> = weights.iter().map(|w| w / total).collect();
    let data = moments(machine, clamp, x, &normalised)?;
    let one = State::zeros(machine, 1)?;
    Ok(data.minus(&moments(machine, &Clamp::none(), &one, &[1.0])?))
}

/// Whether no two Gaussian units see each other, so that $\sum_x e^{-E(x)}$ exists whatever the
/// weights are.
pub fn always_normalises(machine: &Machine) -> bool {
    machine.joining().next().is_none()
}

/// Whether $\sum_x e^{-E(x)}$ exists: Gaussian units that see each other must leave a positive
/// precision in every direction.
///
/// # Errors
///
/// [`Error::Diverges`] says where the precision fails.
pub fn check_normalises(machine: &Machine) -> Result<(), Error> {
    machine.check_normalises()
}

/// Every state that agrees with row `row` of `x` on the clamped units: slow, obviously right,
/// and what the rest of this module is tested against.
///
/// # Errors
///
/// If a free layer is not discrete, or there are more than $2^{22}$ states.
pub fn states(machine: &Machine, clamp: &Clamp, x: &State, row: usize) -> Result<State, Error> {
    let limit = Budget::STATES.log2_terms();
    let mut units: Vec<(LayerId, usize, Vec<Vec<f64>>)> = Vec::new();
    for l in machine.layer_ids() {
        let layer = machine.layer(l);
        for unit in (0..layer.n_units()).filter(|&u| !clamp.holds(l, row, u)) {
            let values = layer
                .units
                .configurations()
                .ok_or(Error::TooManyTerms { log2_terms: f64::INFINITY, limit })?;
            units.push((l, unit * layer.units.group(), values.0));
        }
    }
    let log2_terms: f64 = units.iter().map(|u| (u.2.len() as f64).log2()).sum();
    Budget::STATES.check(log2_terms)?;
    let n: usize = units.iter().map(|u| u.2.len()).product();
    let mut all = State::zeros(machine, n)?;
    for state in 0..n {
        let mut values: Vec<Vec<f64>> =
            machine.layer_ids().map(|l| x.row(l, row).to_vec()).collect();
        let mut code = state;
        for (l, start, configurations) in &units {
            let chosen = &configurations[code % configurations.len()];
            code /= configurations.len();
            values[l.0][*start..start + chosen.len()].copy_from_slice(chosen);
        }
        for (l, values) in machine.layer_ids().zip(&values) {
            all.set_row(l, state, values)?;
        }
    }
    Ok(all)
}

/// $p(x)$ of every row, normalised over the rows.
///
/// # Errors
///
/// If the state does not fit the machine.
pub fn probabilities(machine: &Machine, all: &State) -> Result<Vec<f64>, Error> {
    let logs: Vec<f64> = machine.energies(all)?.iter().map(|e| -e).collect();
    let log_z = log_sum_exp(&logs);
    Ok(logs.iter().map(|l| (l - log_z).exp()).collect())
}
