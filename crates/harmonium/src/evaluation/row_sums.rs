//! $\ln \sum_{x_\text{free}} e^{-E(x)}$ of each row of data: $\ln p(v)$ before $\ln Z$ is taken off.
//!
//! In closed form where the free units do not see each other, by enumeration where that is cheap.
//! Elsewhere (deep machines, hidden lateral couplings) each row is annealed on its own, from the
//! factorised $q$ that mean field finds to the posterior:
//!
//! $$\underbrace{-\langle E\rangle_q + H(q)}_\text{bound} \;\le\;
//!   \underbrace{E[\ln \overline{w}]}_\text{forward} \;\le\; \ln\sum_h e^{-E(v,h)} \;\le\;
//!   \underbrace{-E[\ln \overline{w}']}_\text{backward}$$
//!
//! The first two are bounds. The last is one if its chains start at samples of the posterior; they
//! start where the forward chains are after as many sweeps again, which is a belief.

use super::bound::{self, Terms};
use super::log_partition::{APART, Bracket, Doubt, Sides, anneal};
use crate::error::Error;
use crate::exact::{self, Budget, Query};
use crate::machine::{Base, LayerId, Machine, State};
use crate::sampling::{
    Clamp, Collapsed, MeanField, Sampler, Tempering, Variates, independent, posterior_factorises,
};
use harmonium_kernels::random::Stream;
use rayon::prelude::*;

/// Rows of chains that are led together: bounds the memory.
const TOGETHER: usize = 1024;

/// Fewest chains that the weights of a row may count as, on average over the rows.
const FEWEST: f64 = 2.0;
/// How often the temperatures of rows may be made four times as many until the rows settle.
const EXTENSIONS: u32 = 2;

/// How a sum was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// In closed form or by enumeration.
    Exact,
    /// By mean field alone: a bound.
    Bounded,
    /// By annealing from mean field to the posterior and back.
    Annealed,
}

/// How much work goes into each row.
#[derive(Clone, Copy, Debug)]
pub struct RowWork {
    /// Temperatures between mean field and posterior, at least 2.
    pub betas: usize,
    /// Chains for each row, at least 2.
    pub chains: usize,
    /// The mean field it starts from.
    pub mean_field: MeanField,
    /// The root of all randomness.
    pub seed: u64,
}

impl Default for RowWork {
    fn default() -> Self {
        Self { betas: 40, chains: 8, mean_field: MeanField::default(), seed: 0 }
    }
}

/// The sums of a number of rows.
#[derive(Clone, Debug)]
pub struct Sums {
    /// How they were found.
    pub how: How,
    /// The estimate of each row, in nats.
    pub rows: Vec<f64>,
    /// The variational bound of each row.
    pub bounds: Vec<f64>,
    /// A stochastic lower bound of each row, without a margin.
    pub lower: Vec<f64>,
    /// A stochastic upper bound of each row, as good as the chains mixed; without a margin.
    pub upper: Vec<f64>,
    /// Standard error of each estimate, and of the two sides.
    pub std_errors: Vec<[f64; 3]>,
    /// How many chains the weights of each annealed row count as, of the worse side.
    pub effective_samples: Vec<f64>,
    /// Chains of each annealed row.
    pub chains: usize,
}

impl Sums {
    /// No rows yet.
    pub fn none() -> Self {
        let empty = Vec::new;
        Self {
            how: How::Exact,
            rows: empty(),
            bounds: empty(),
            lower: empty(),
            upper: empty(),
            std_errors: Vec::new(),
            effective_samples: empty(),
            chains: 0,
        }
    }

    /// Adds those of further rows.
    pub fn extend(&mut self, mut more: Self) {
        self.bounds.append(&mut more.bounds);
        self.add_rows(more);
    }

    /// Adds those of further rows but for their bounds.
    fn add_rows(&mut self, more: Self) {
        if more.how != How::Exact {
            self.how = more.how;
        }
        self.rows.extend(more.rows);
        self.lower.extend(more.lower);
        self.upper.extend(more.upper);
        self.std_errors.extend(more.std_errors);
        self.effective_samples.extend(more.effective_samples);
        self.chains = self.chains.max(more.chains);
    }

    /// Sums that are exact, with their bounds.
    pub(crate) fn exactly(rows: Vec<f64>, bounds: Vec<f64>) -> Self {
        let std_errors = vec![[0.0; 3]; rows.len()];
        let (lower, upper) = (rows.clone(), rows.clone());
        Self { rows, bounds, lower, upper, std_errors, ..Self::none() }
    }

    /// What the interval of a mean over the rows is.
    pub fn bracket(&self) -> Bracket {
        match self.how {
            How::Exact => Bracket::Bound,
            _ if self.doubts().is_empty() => Bracket::Heuristic,
            _ => Bracket::Unsettled,
        }
    }

    /// What speaks against annealed rows: weights that count as less than two chains on average, or
    /// a way back that ends below the way there, which cannot be if it starts at the posterior.
    pub fn doubts(&self) -> Vec<Doubt> {
        let n = self.effective_samples.len();
        if n == 0 {
            return Vec::new();
        }
        let effective = self.effective_samples.iter().sum::<f64>() / n as f64;
        let few =
            (effective < FEWEST).then_some(Doubt::FewEffective { effective, chains: self.chains });
        let pairs = self.lower.iter().zip(&self.upper);
        let apart = pairs.map(|(low, high)| high - low).sum::<f64>() / n as f64;
        let squares = self.std_errors.iter().map(|e| e[1].powi(2) + e[2].powi(2));
        let std_error = squares.sum::<f64>().sqrt() / n as f64;
        let crossed =
            (apart < -APART * std_error - 1e-6).then_some(Doubt::SidesApart { apart, std_error });
        [few, crossed].into_iter().flatten().collect()
    }
}

/// The sums over the units that `clamp` leaves free in each row of `x`.
/// First row number `first` and the seed address the variates.
///
/// # Errors
///
/// If clamp, state or work do not fit, or memory ends.
pub fn log_sums(
    sampler: &Sampler,
    clamp: &Clamp,
    x: &State,
    first: usize,
    work: &RowWork,
) -> Result<Sums, Error> {
    let machine = sampler.machine();
    let (means, bounds) = mean_field(sampler, clamp, x, work)?;
    if posterior_factorises(machine, clamp) {
        return Ok(Sums::exactly(bounds.clone(), bounds));
    }
    let cost = exact::cost(machine, clamp, x, Query::LogSum)?;
    if cost.is_within(Budget::ROWS) || Budget::ROW.affords(cost.log2_work()) {
        return Ok(Sums::exactly(exact::log_sums(machine, clamp, x)?, bounds));
    }
    annealed(sampler, clamp, &means, bounds, first, work)
}

/// [`log_sums`], with four times as many temperatures, and again, where rows have not settled and a
/// `budget` of sweeps of single chains affords it. Returns the temperatures that were used.
///
/// # Errors
///
/// As for [`log_sums`].
pub(crate) fn settled_log_sums(
    sampler: &Sampler,
    clamp: &Clamp,
    x: &State,
    first: usize,
    (work, budget): (&RowWork, f64),
) -> Result<(Sums, usize), Error> {
    let mut work = *work;
    let mut sums = log_sums(sampler, clamp, x, first, &work)?;
    for _ in 0..EXTENSIONS {
        // There, on the spot, and back.
        let sweeps = 3.0 * 4.0 * (work.betas * work.chains * x.n_rows()) as f64;
        if sweeps > budget || sums.doubts().is_empty() {
            break;
        }
        work.betas *= 4;
        sums = log_sums(sampler, clamp, x, first, &work)?;
    }
    Ok((sums, work.betas))
}

impl RowWork {
    fn check(&self) -> Result<(), Error> {
        for (name, n) in [("betas", self.betas), ("chains", self.chains)] {
            if n < 2 {
                return Err(Error::Setting { name, value: n.to_string(), range: "at least 2" });
            }
        }
        Ok(())
    }
}

/// The means of $q$, and its bound.
fn mean_field(
    sampler: &Sampler,
    clamp: &Clamp,
    x: &State,
    work: &RowWork,
) -> Result<(State, Vec<f64>), Error> {
    let machine = sampler.machine();
    let means = means(sampler, clamp, x, work)?;
    let bounds = bound::unnormalised(machine, clamp, &means)?;
    Ok((means, bounds))
}

fn means(sampler: &Sampler, clamp: &Clamp, x: &State, work: &RowWork) -> Result<State, Error> {
    work.check()?;
    let mut means = x.clone();
    sampler.infer(clamp, &mut means, work.mean_field)?;
    Ok(means)
}

/// The variational bound of each row in the place of its sum: cheap, and too small where hidden
/// units see each other; and what it is made of.
///
/// # Errors
///
/// As for [`log_sums`].
pub fn bounds(
    sampler: &Sampler,
    clamp: &Clamp,
    x: &State,
    work: &RowWork,
) -> Result<(Sums, Vec<Terms>), Error> {
    let machine = sampler.machine();
    let terms = bound::terms(machine, clamp, &means(sampler, clamp, x, work)?)?;
    let bounds: Vec<f64> = terms.iter().map(Terms::sum).collect();
    let how = if posterior_factorises(machine, clamp) { How::Exact } else { How::Bounded };
    Ok((Sums { how, ..Sums::exactly(bounds.clone(), bounds) }, terms))
}

/// Sums by annealing, whatever the machine is: what [`log_sums`] does where nothing else helps.
///
/// # Errors
///
/// As for [`log_sums`].
pub fn annealed_log_sums(
    sampler: &Sampler,
    clamp: &Clamp,
    x: &State,
    first: usize,
    work: &RowWork,
) -> Result<Sums, Error> {
    let (means, bounds) = mean_field(sampler, clamp, x, work)?;
    annealed(sampler, clamp, &means, bounds, first, work)
}

fn annealed(
    sampler: &Sampler,
    clamp: &Clamp,
    means: &State,
    bounds: Vec<f64>,
    first: usize,
    work: &RowWork,
) -> Result<Sums, Error> {
    let machine = sampler.machine();
    let whole = |l: LayerId| clamp.holds_layer(l) || clamp.frees_layer(l);
    // Gaussian units that see each other are one, so that they must be held together too.
    let alike = |block: &Vec<LayerId>| {
        block.iter().all(|&l| clamp.holds_layer(l)) || block.iter().all(|&l| clamp.frees_layer(l))
    };
    if !machine.layer_ids().all(whole) || !machine.real_blocks().iter().all(alike) {
        return annealed_by_rest(sampler, clamp, means, bounds, first, work);
    }
    let (how, chains) = (How::Annealed, work.chains);
    let mut sums = Sums { how, bounds, chains, ..Sums::none() };
    let at_once = (TOGETHER / work.chains).max(1);
    for start in (0..means.n_rows()).step_by(at_once) {
        let rows = start..(start + at_once).min(means.n_rows());
        let stream = Stream::new(work.seed).fork(0x5_c07e).fork((first + start) as u64);
        let stacked = repeated(machine, means, rows, work.chains)?;
        for (base, sides) in both_ways(sampler, clamp, &stacked, work, stream)? {
            sums.rows.push(base + sides.middle);
            sums.lower.push(base + sides.forward);
            sums.upper.push(base + sides.backward);
            sums.std_errors.push([sides.std_error, sides.forward_error, sides.backward_error]);
            sums.effective_samples.push(sides.effective_samples);
        }
    }
    Ok(sums)
}

/// The same where layers, or Gaussian units that see each other, are held in part: the free units of each row are a machine of their own.
fn annealed_by_rest(
    sampler: &Sampler,
    clamp: &Clamp,
    means: &State,
    bounds: Vec<f64>,
    first: usize,
    work: &RowWork,
) -> Result<Sums, Error> {
    let (machine, free) = (sampler.machine(), Clamp::none());
    let of_row = |row: usize| {
        let Some(rest) = machine.rest(clamp, means, row)? else {
            let log = -machine.energy_of_row(means, row);
            return Ok(Sums::exactly(vec![log], Vec::new()));
        };
        let means = rest.state(means, row)?;
        let sampler = Sampler::new(rest.machine, sampler.arithmetic());
        annealed(&sampler, &free, &means, Vec::new(), first + row, work)
    };
    // Rows are small and many: each on a thread of its own, their order kept.
    let found: Vec<Result<Sums, Error>> = (0..means.n_rows()).into_par_iter().map(of_row).collect();
    let mut sums = Sums { bounds, ..Sums::none() };
    for of_row in found {
        sums.add_rows(of_row?);
    }
    Ok(Sums { how: How::Annealed, ..sums })
}

/// Each of the rows `n` times, one after the other.
fn repeated(
    machine: &Machine,
    x: &State,
    rows: std::ops::Range<usize>,
    n: usize,
) -> Result<State, Error> {
    let mut out = State::zeros(machine, rows.len() * n)?;
    for l in machine.layer_ids() {
        for (i, row) in rows.clone().enumerate() {
            for chain in 0..n {
                out.set_row(l, i * n + chain, x.row(l, row))?;
            }
        }
    }
    Ok(out)
}

/// Anneals to the posterior, sweeps on, and anneals back: for each row the base's sum, and what
/// the weights say about the rest.
fn both_ways(
    sampler: &Sampler,
    clamp: &Clamp,
    means: &State,
    work: &RowWork,
    stream: Stream,
) -> Result<Vec<(f64, Sides)>, Error> {
    let machine = sampler.machine();
    let base = Base::of_rows(machine, means);
    let mut x = independent(machine, &base, means.n_rows(), stream.fork(0))?;
    for l in machine.layer_ids().filter(|&l| clamp.holds_layer(l)) {
        for row in 0..x.n_rows() {
            x.set_row(l, row, means.row(l, row))?;
        }
    }
    let mut collapsed = Collapsed::new(sampler, &base, clamp, &x)?;
    let mut betas = Tempering::even_ladder(work.betas);
    let forward = anneal(&mut collapsed, &mut x, &betas, stream.fork(1), &mut |_| Ok(()))?;
    let ones = vec![1.0; x.n_rows()];
    for sweep in 0..work.betas {
        collapsed.sweep(&mut x, &ones, Variates { stream: stream.fork(2), sweep });
    }
    betas.reverse();
    let backward = anneal(&mut collapsed, &mut x, &betas, stream.fork(3), &mut |_| Ok(()))?;
    let reversible = collapsed.is_reversible();
    let weights = forward.chunks_exact(work.chains).zip(backward.chunks_exact(work.chains));
    let rows = weights.enumerate().map(|(i, (up, down))| {
        let base = collapsed.base_log_partition(i * work.chains);
        (base, Sides::new(up, down, reversible, None))
    });
    Ok(rows.collect())
}
