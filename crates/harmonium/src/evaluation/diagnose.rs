//! Whether chains of a machine mix, and whether its samples look like data.
//!
//! Chains start from independent units, every second one from a row of the data if there is any:
//! chains that all start alike can agree without having seen the rest. They settle, and then some
//! scalars are watched ([`diagnostics`](super::diagnostics)). Parallel tempering must find the same
//! mean energy by another way. Samples, each from a chain of its own, are compared with data
//! ([`two_sample`](super::two_sample)).

use super::diagnostics::{LEAST_EFFECTIVE_SAMPLES, Mixing, R_HAT_LIMIT, Series, Travel, Watch};
use super::two_sample::{Correlations, Domain, MOST_ROWS, Samples, TwoSample, compare};
use crate::error::Error;
use crate::machine::{Base, Layer, LayerId, MOST_STEPS, Machine, State, check_memory};
use crate::sampling::{Chains, Clamp, Sampler, Tempering};
use crate::units::{Storage, Units};
use harmonium_kernels::random::Stream;
use serde::Serialize;

/// Inverse temperatures of the ladders.
const RUNGS: usize = 20;
/// Chains for each ladder of parallel tempering.
const CHAINS_PER_LADDER: usize = 10;
/// Sweeps of the hidden units under a row of data before it starts a chain.
const DATA_SWEEPS: usize = 5;
/// R-hat beyond which chains do not merely need more time.
pub const APART: f64 = 1.1;
/// Swaps that should be accepted everywhere in a ladder.
const LEAST_SWAPS: f64 = 0.1;
/// Standard errors from which on two means differ.
const SURE: f64 = 4.0;
/// Times the noise of the data from which on correlations differ.
pub(crate) const NOTABLE: f64 = 1.5;

/// Told while it works: what is done, how much of it, and of how much.
pub type Progress<'p> = &'p mut dyn FnMut(&str, u64, u64);

/// What is asked of [`diagnose`].
#[derive(Clone, Debug)]
pub struct Questions<'q> {
    /// Chains that are watched.
    pub chains: usize,
    /// Sweeps that they are watched for, after as many to settle.
    pub sweeps: usize,
    /// Where parallel tempering begins.
    pub base: Base,
    /// The data that samples are compared with.
    pub data: Option<DataSide<'q>>,
}

/// Data to compare with.
#[derive(Clone, Debug)]
pub struct DataSide<'q> {
    /// Rows of data that start chains, at most half as many as there are chains, and what of them
    /// is data.
    pub starts: (State, Clamp),
    /// The layers that the data fills.
    pub layers: &'q [LayerId],
    /// Data that the machine did not learn from.
    pub held_out: &'q Samples,
    /// Data that it did learn from, to see whether samples repeat it.
    pub train: Option<&'q Samples>,
    /// The machine laid out for the samples.
    pub sampler: &'q Sampler,
}

/// A scalar and what it says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scalar {
    /// What is watched.
    pub name: String,
    /// What it says about the chains.
    #[serde(flatten)]
    pub mixing: Mixing,
}

/// What parallel tempering says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tempered {
    /// Ladders side by side.
    pub ladders: usize,
    /// How replicas move.
    #[serde(flatten)]
    pub travel: Travel,
    /// The energy at the machine's end.
    pub energy: Mixing,
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Chains that were watched.
    pub chains: usize,
    /// Sweeps that they were watched for.
    pub sweeps: usize,
    /// The scalars; the first is the energy.
    pub scalars: Vec<Scalar>,
    /// Parallel tempering.
    pub tempering: Tempered,
    /// Samples against data, if there was data.
    pub two_sample: Option<TwoSample>,
}

/// Runs chains, tempers and compares.
///
/// # Errors
///
/// If there are too few chains or sweeps to say anything, shapes differ, or memory ends.
pub fn diagnose(
    sampler: &Sampler,
    questions: &Questions<'_>,
    stream: Stream,
    progress: Progress<'_>,
) -> Result<Diagnosis, Error> {
    let &Questions { chains, sweeps, .. } = questions;
    if chains < 2 {
        let value = chains.to_string();
        return Err(Error::Setting { name: "chains", value, range: "at least 2" });
    }
    if sweeps > MOST_STEPS {
        let value = sweeps.to_string();
        return Err(Error::Setting { name: "sweeps", value, range: "at most 10^15" });
    }
    check_cost(sampler.machine(), chains, sweeps)?;
    let start = start(sampler, questions, stream)?;
    let scalars = watch(sampler, start, sweeps, stream.fork(1), progress)?;
    let tempering = temper(sampler, questions, stream.fork(2), progress)?;
    let two_sample = match &questions.data {
        Some(data) => Some(against_data(data, sweeps, stream.fork(3), progress)?),
        None => None,
    };
    Ok(Diagnosis { chains, sweeps, scalars, tempering, two_sample })
}

/// Whether the chains and what is watched of them fit into memory: the energy, the activity of each
/// layer and two directions, for every chain and sweep.
///
/// # Errors
///
/// If they do not.
pub(crate) fn check_cost(machine: &Machine, chains: usize, sweeps: usize) -> Result<(), Error> {
    let entries: usize = machine.layers().iter().map(Layer::len).sum();
    let watched = (machine.layers().len() + 3) as f64 * sweeps as f64;
    let bytes = chains as f64 * (2.0 * entries as f64 + watched) * 8.0;
    check_memory(bytes, || format!("{chains} chains watched for {sweeps} sweeps"))
}

/// Chains from independent units, every second one from a row of the data if there is any.
fn start(sampler: &Sampler, questions: &Questions<'_>, stream: Stream) -> Result<Chains, Error> {
    let machine = sampler.machine();
    let chains = Chains::new(machine, questions.chains, stream.fork(0))?;
    let Some(data) = &questions.data else { return Ok(chains) };
    let (mut known, clamp) = data.starts.clone();
    let (most, found) = (questions.chains / 2, known.n_rows());
    if found > most {
        let what = "rows that start chains".into();
        return Err(Error::Shape { what, expected: most, found });
    }
    let mut x = chains.state().clone();
    sampler.gibbs(&clamp, &mut known, DATA_SWEEPS, stream.fork(4))?;
    for l in machine.layer_ids() {
        for row in 0..known.n_rows() {
            x.set_row(l, 2 * row, known.row(l, row))?;
        }
    }
    Ok(Chains::from_state(x))
}

/// Lets chains settle for `sweeps` sweeps and watches them for as many.
///
/// # Errors
///
/// If `sweeps` are too few to say anything, or memory ends.
pub fn watch(
    sampler: &Sampler,
    mut chains: Chains,
    sweeps: usize,
    stream: Stream,
    progress: Progress<'_>,
) -> Result<Vec<Scalar>, Error> {
    let machine = sampler.machine();
    chains.advance(sampler, sweeps, stream.fork(0))?;
    let mut watch = Watch::new(machine, chains.state())?;
    for sweep in 0..sweeps as u64 {
        chains.advance(sampler, 1, stream.fork(1).fork(sweep))?;
        watch.look(machine, chains.state())?;
        progress("chains", sweep + 1, sweeps as u64);
    }
    let scalar = |s: &Series| Ok(Scalar { name: s.name.clone(), mixing: Mixing::of(&s.chains)? });
    watch.series().iter().map(scalar).collect()
}

fn temper(
    sampler: &Sampler,
    questions: &Questions<'_>,
    stream: Stream,
    progress: Progress<'_>,
) -> Result<Tempered, Error> {
    let (sweeps, n_ladders) = (questions.sweeps, questions.chains.div_ceil(CHAINS_PER_LADDER));
    let machine = sampler.machine();
    let (betas, base) = (Tempering::even_ladder(RUNGS), questions.base.clone());
    let mut ladders = Tempering::new(machine, n_ladders, &betas, base, stream.fork(0))?;
    let mut energies = vec![Vec::new(); n_ladders];
    for sweep in 0..2 * sweeps {
        ladders.advance(sampler, 1, stream.fork(1).fork(sweep as u64))?;
        if sweep >= sweeps {
            let now = machine.energies(&ladders.targets(machine)?)?;
            energies.iter_mut().zip(now).for_each(|(e, now)| e.push(now));
        }
        progress("tempering", sweep as u64 + 1, 2 * sweeps as u64);
    }
    let energy = Mixing::of(&energies)?;
    Ok(Tempered { ladders: n_ladders, travel: Travel::of(&ladders), energy })
}

/// Samples of the model, each from a chain of its own, against data.
fn against_data(
    data: &DataSide<'_>,
    sweeps: usize,
    stream: Stream,
    progress: Progress<'_>,
) -> Result<TwoSample, Error> {
    let machine = data.sampler.machine();
    let n = data.held_out.n_rows().min(MOST_ROWS);
    let mut x = Chains::new(machine, n, stream.fork(0))?.state().clone();
    for sweep in 0..2 * sweeps as u64 {
        data.sampler.gibbs(&Clamp::none(), &mut x, 1, stream.fork(1).fork(sweep))?;
        progress("samples", sweep + 1, 2 * sweeps as u64);
    }
    let generated = samples(machine, data.layers, [Ok(x)])?;
    compare(&generated, data.held_out, data.train, stream.fork(2))
}

/// What some layers hold in the rows of some states, packed where they have two values.
///
/// # Errors
///
/// If a state could not be made, or holds other values than the units have.
pub fn samples(
    machine: &Machine,
    layers: &[LayerId],
    states: impl IntoIterator<Item = Result<State, Error>>,
) -> Result<Samples, Error> {
    let all = |fits: fn(Units) -> bool| layers.iter().all(|&l| fits(machine.layer(l).units));
    let spins = |u: Units| u.bit_coordinates().is_some_and(|c| c.shift != 0.0);
    let domain = if all(|u| u.is_zero_or_one() || u.storage() == Storage::OneHot) {
        Domain::Bits
    } else if all(spins) {
        Domain::Spins
    } else {
        Domain::Numbers
    };
    let n_columns = layers.iter().map(|&l| machine.layer(l).len()).sum();
    let mut samples = Samples::new(n_columns, domain);
    for x in states {
        let x = x?;
        for row in 0..x.n_rows() {
            let values: Vec<f64> = layers.iter().flat_map(|&l| x.row(l, row)).copied().collect();
            samples.push(&values)?;
        }
    }
    Ok(samples)
}

impl Diagnosis {
    /// What should not be overlooked, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        let scalars = self.scalars.iter().filter_map(|s| s.warning(self.sweeps));
        let data = self.two_sample.iter().flat_map(differences);
        scalars.chain(self.travel_warnings()).chain(self.disagreement()).chain(data).collect()
    }

    /// Replicas that do not get through the ladder.
    fn travel_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let travel = &self.tempering.travel;
        if travel.round_trips == 0 {
            warnings.push(
                "no replica of parallel tempering went from the base to the model and back".into(),
            );
        }
        if let Some((k, rate)) = travel.narrowest().filter(|n| n.1 < LEAST_SWAPS) {
            let (a, b) = (travel.betas[k], travel.betas[k + 1]);
            warnings.push(format!(
                "replicas swap only {:.1} % of the time between β = {a:.2} and {b:.2}: a ladder \
                 needs more temperatures there",
                100.0 * rate
            ));
        }
        warnings
    }

    /// Plain chains and tempering that find different energies.
    fn disagreement(&self) -> Option<String> {
        let (plain, tempered) = (&self.scalars.first()?.mixing, &self.tempering.energy);
        let (a, b) = (plain.std_error?, tempered.std_error?);
        let gap = plain.mean - tempered.mean;
        (gap.abs() > SURE * a.hypot(b)).then(|| {
            format!(
                "plain chains have a mean energy of {:.3} ± {a:.3}, parallel tempering {:.3} ± \
                 {b:.3}: one of them has not found where the model is",
                plain.mean, tempered.mean
            )
        })
    }
}

impl Scalar {
    /// What is worrying about it, if anything is.
    fn warning(&self, sweeps: usize) -> Option<String> {
        let (name, m) = (&self.name, &self.mixing);
        let (r_hat, tau) = (m.r_hat?, m.autocorrelation_time?);
        if r_hat > APART {
            return Some(format!(
                "{name}: R-hat {r_hat:.2}, so chains stand apart and samples depend on where they \
                 started"
            ));
        }
        (!m.is_fine()).then(|| {
            format!(
                "{name}: R-hat {r_hat:.3} (at most {R_HAT_LIMIT}) and {:.0} effective samples \
                 (at least {LEAST_EFFECTIVE_SAMPLES}); with τ = {tau:.0}, {sweeps} sweeps are few, \
                 {:.0} would do",
                m.effective_samples.unwrap_or(0.0),
                (100.0 * tau).max(2.0 * sweeps as f64)
            )
        })
    }
}

/// What samples of the model have that data does not.
fn differences(found: &TwoSample) -> Vec<String> {
    let mut warnings = Vec::new();
    let (m, a) = (&found.means, found.adversarial);
    if m.max_z > m.max_z_by_chance {
        warnings.push(format!(
            "the mean of column {} is off by {:.1} standard errors",
            m.column, m.max_z
        ));
    }
    let apart = |c: &&Correlations| c.rms_difference > NOTABLE * c.rms_noise;
    if let Some(c) = found.correlations.as_ref().filter(apart) {
        warnings.push(format!(
            "correlations differ by {:.1} times the noise of the data, most between columns {} and \
             {}",
            c.rms_difference / c.rms_noise,
            c.columns.0,
            c.columns.1
        ));
    }
    if (a.accuracy - 0.5).abs() > SURE * a.std_error {
        let share = 100.0 * a.accuracy;
        warnings.push(if a.accuracy > 0.5 {
            format!("neighbours tell samples from data {share:.0} % of the time: they look different")
        } else {
            format!(
                "neighbours tell samples from data only {share:.0} % of the time: samples lie closer \
                 to the data than the data to itself"
            )
        });
    }
    if let Some(m) = &found.memorisation {
        warnings.extend(m.sentence());
        if m.close == 0.0 {
            warnings.push(format!(
                "{:.0} % of the held-out rows are training rows too: whether samples repeat those \
                 cannot be seen",
                100.0 * m.held_out_close
            ));
        }
    }
    warnings
}
