//! Sums over all states: the oracle that everything else is held against.
//!
//! $$\ln Z = \ln \sum_{x_E} e^{-F(x_E)}, \qquad
//!   F(x_E) = -\ln \sum_{x_S} e^{-E(x_E, x_S)}$$
//!
//! The layers are split in two: $S$ is summed in closed form and only $E$ is enumerated, so an
//! RBM costs 2 to the power of its smaller side, a DBM that of its alternate layers, a machine
//! with lateral couplings what must be. Gaussian layers are always integrated, jointly by a
//! Cholesky factorisation when they see each other. States are visited in the order of a
//! reflected Gray code, so each differs from the one before in one unit; sums run in f64, in
//! fixed chunks that are reduced in order.
//!
//! Where the graph of the free units is narrow, as a grid is, [`log_sums`] sums out one unit after
//! the other instead, which may take far fewer terms.

mod budget;
mod conditional;
mod draw;
mod eliminate;
mod enumerate;
mod expectation;
mod gaussian;
mod problem;

pub use budget::Budget;
pub(crate) use budget::costs_little;
pub(crate) use conditional::equal_rows;
pub use conditional::{
    Cost, Query, conditional_means, conditional_means_with, conditional_samples,
    conditional_samples_with, cost,
};

use crate::error::Error;
use crate::machine::{LayerId, Machine, State};
use crate::moments::Moments;
use crate::sampling::Clamp;
use crate::units::log_sum_exp;
use eliminate::Elimination;
use expectation::Order;
use harmonium_kernels::random::Stream;
use problem::{Problem, Split};

/// What a term of an elimination costs against one of an enumeration, as a binary logarithm.
const ELIMINATED_LOG2: f64 = 3.0;

/// Binary logarithm of the number of terms that [`log_sums`] takes over the free units; that of
/// the row with the most free units. It depends on the graph, not on the weights.
///
/// # Errors
///
/// If the clamp does not fit the machine, or memory ends.
pub fn log2_terms(machine: &Machine, clamp: &Clamp, n_rows: usize) -> Result<f64, Error> {
    clamp.check(machine, n_rows)?;
    let x = State::zeros(machine, n_rows.max(1))?;
    let rows = (0..n_rows.max(1)).map(|row| Way::new(machine, clamp, &x, row).log2_terms());
    Ok(rows.fold(0.0, f64::max))
}

/// Binary logarithm of the number of terms that an enumeration takes, as [`samples`] and
/// [`moments`] need it, with nothing clamped.
pub fn log2_states(machine: &Machine) -> f64 {
    Split::new(machine, &Clamp::none(), 0).log2_terms
}

/// How a sum over the free units of a row is taken.
enum Way {
    Enumerate { log2_terms: f64 },
    Eliminate(Elimination),
}

impl Way {
    fn new(machine: &Machine, clamp: &Clamp, x: &State, row: usize) -> Self {
        let log2_terms = Split::new(machine, clamp, row).log2_terms;
        if !Budget::ENUMERATION.affords(log2_terms) {
            let below = log2_terms - ELIMINATED_LOG2;
            if let Some(elimination) = Elimination::new(machine, clamp, x, row, below) {
                return Self::Eliminate(elimination);
            }
        }
        Self::Enumerate { log2_terms }
    }

    fn log2_terms(&self) -> f64 {
        match self {
            Self::Enumerate { log2_terms } => *log2_terms,
            Self::Eliminate(elimination) => elimination.log2_terms(),
        }
    }
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
    let x = State::zeros(machine, 1)?;
    Ok(log_sums(machine, &Clamp::none(), &x)?[0])
}

/// $\ln \sum_{x_\text{free}} e^{-E(x)}$ of each row, with the clamped units held at `x`.
///
/// # Errors
///
/// As for [`log_partition`], and if clamp or state do not fit the machine.
pub fn log_sums(machine: &Machine, clamp: &Clamp, x: &State) -> Result<Vec<f64>, Error> {
    x.check(machine)?;
    clamp.check(machine, x.n_rows())?;
    let folded = machine.without_offsets()?;
    let log_sum = |row| {
        let way = Way::new(&folded, clamp, x, row);
        Budget::LIMIT.check(way.log2_terms())?;
        let value = match way {
            Way::Enumerate { .. } => Problem::new(&folded, clamp, x, row)?.log_sum(),
            Way::Eliminate(elimination) => elimination.log_sum(),
        };
        machine.check_finite("the logarithm of a sum over all states", value)
    };
    (0..x.n_rows()).map(log_sum).collect()
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
    let (clamp, x) = (Clamp::none(), State::zeros(machine, 1)?);
    Budget::LIMIT.check(log2_states(machine))?;
    let mut samples = State::zeros(machine, n)?;
    let rows: Vec<usize> = (0..n).collect();
    let problem = Problem::new(&machine.without_offsets()?, &clamp, &x, 0)?;
    problem.draw(machine, &rows, stream, &mut samples)?;
    Ok(samples)
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
    let real = |l: LayerId| !machine.layer(l).units.is_finite();
    machine.couplings().iter().all(|c| !(real(c.between.0) && real(c.between.1)))
}

/// Whether $\sum_x e^{-E(x)}$ exists: Gaussian units that see each other must leave a positive
/// precision in every direction.
///
/// # Errors
///
/// [`Error::Diverges`] says where the precision fails.
pub fn check_normalises(machine: &Machine) -> Result<(), Error> {
    let finite = machine.layer_ids().filter(|&l| machine.layer(l).units.is_finite());
    let clamp = Clamp::layers(finite);
    Problem::new(machine, &clamp, &State::zeros(machine, 1)?, 0).map(drop)
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
