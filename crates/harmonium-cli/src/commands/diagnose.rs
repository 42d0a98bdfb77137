//! `harmonium inspect --diagnostics`: whether chains mix, and how samples compare with data.

use super::logz::means_for;
use crate::args::{Common, InspectArgs};
use crate::failure::Failure;
use crate::load::{self, Remembered};
use crate::render::progress;
use harmonium::engine::{Arithmetic, Engine};
use harmonium::evaluation::diagnostics::{
    LEAST_DRAWS, LEAST_EFFECTIVE_SAMPLES, Mixing, R_HAT_LIMIT, Series, Travel, Watch,
};
use harmonium::evaluation::two_sample::{
    Correlations, MOST_ROWS, Samples, TwoSample, Values, compare,
};
use harmonium::machine::{Base, LayerId, Machine, State};
use harmonium::random::Stream;
use harmonium::sampling::{Chains, Clamp, Tempering, gibbs};
use harmonium::schema::Feed;
use harmonium::units::Units;
use harmonium_data::Dataset;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;

/// Chains, unless asked for otherwise.
const CHAINS: usize = 50;
/// Sweeps that are watched, unless asked for otherwise.
const SWEEPS: usize = 1000;
/// Inverse temperatures of the ladders.
const RUNGS: usize = 20;
/// Chains for each ladder of parallel tempering.
const CHAINS_PER_LADDER: usize = 10;
/// Sweeps of the hidden units under a row of data before it starts a chain.
const DATA_SWEEPS: usize = 5;
/// Rows turned into samples at a time.
const ROWS: usize = 1000;
/// Beyond it chains do not merely need more time.
const APART: f64 = 1.1;
/// Swaps that should be accepted everywhere in a ladder.
const LEAST_SWAPS: f64 = 0.1;
/// Standard errors from which on two means differ.
const SURE: f64 = 4.0;
/// Times the noise of the data from which on correlations differ.
const NOTABLE: f64 = 1.5;

/// A scalar and what it says.
#[derive(Debug, Serialize)]
pub(super) struct Scalar {
    name: String,
    #[serde(flatten)]
    mixing: Mixing,
}

/// What parallel tempering says.
#[derive(Debug, Serialize)]
struct Tempered {
    ladders: usize,
    #[serde(flatten)]
    travel: Travel,
    /// The energy at the machine's end.
    energy: Mixing,
}

/// Everything that was found.
#[derive(Debug)]
struct Diagnostics {
    chains: usize,
    sweeps: usize,
    scalars: Vec<Scalar>,
    tempered: Tempered,
    two_sample: Option<TwoSample>,
}

/// Runs the diagnostics that were asked for: as JSON, and in words.
pub(super) fn run(
    machine: &Machine,
    remembered: &Remembered,
    args: &InspectArgs,
    common: &Common,
) -> Result<(Value, String), Failure> {
    let (n_chains, sweeps) = (args.chains.unwrap_or(CHAINS), args.sweeps.unwrap_or(SWEEPS));
    check(n_chains, sweeps)?;
    let read = |spec: &Option<String>| {
        spec.as_ref().map(|s| load::data_for(s, &args.reading, remembered)).transpose()
    };
    let (data, train) = (read(&args.data)?, read(&args.train)?);
    let stream = Stream::new(common.seed()).fork(300);
    let engine = Engine::with_arithmetic(machine, common.precision(Arithmetic::F32));
    let start = start(machine, &engine, n_chains, data.as_ref().map(|d| &d.dataset), stream)?;
    let scalars = watch(machine, &engine, start, sweeps, stream.fork(1), Some(common))?;
    let base = match means_for(machine, remembered) {
        Some(means) => Base::from_visible_means(machine, &means)?,
        None => Base::of_biases(machine),
    };
    let ladders = n_chains.div_ceil(CHAINS_PER_LADDER);
    let tempered = temper(machine, &engine, base, ladders, sweeps, stream.fork(2), common)?;
    let two_sample = data
        .map(|data| {
            let train = train.as_ref().map(|t| &t.dataset);
            against_data(machine, &data.dataset, train, sweeps, stream.fork(3), common)
        })
        .transpose()?;
    let found = Diagnostics { chains: n_chains, sweeps, scalars, tempered, two_sample };
    Ok((found.json(), found.text()))
}

fn check(chains: usize, sweeps: usize) -> Result<(), Failure> {
    if chains < 2 {
        return Err(Failure::new(
            format!("`--chains {chains}` is too few: one chain cannot disagree with itself"),
            format!("leave it out for {CHAINS} chains"),
        ));
    }
    if sweeps < LEAST_DRAWS {
        return Err(Failure::new(
            format!("`--sweeps {sweeps}` is too few: nothing can be said below {LEAST_DRAWS}"),
            format!("leave it out for {SWEEPS} sweeps"),
        ));
    }
    Ok(())
}

/// Chains from independent units, every second one from a row of the data if there is any: chains
/// that all start alike can agree without having seen the rest.
fn start(
    machine: &Machine,
    engine: &Engine,
    n: usize,
    data: Option<&Dataset>,
    stream: Stream,
) -> Result<Chains, Failure> {
    let chains = Chains::new(machine, n, stream.fork(0))?;
    let Some(data) = data.filter(|d| d.n_rows() > 0) else { return Ok(chains) };
    let mut x = chains.state().clone();
    let rows: Vec<usize> = (0..n / 2).map(|k| k * data.n_rows() / (n / 2)).collect();
    let chosen = data.select_rows(&rows)?;
    let (mut known, clamp) = super::states(machine, &Feed::of(machine, &chosen)?, 0..rows.len())?;
    gibbs(machine, engine, &clamp, &mut known, DATA_SWEEPS, stream.fork(4))?;
    for l in machine.layer_ids() {
        for row in 0..known.n_rows() {
            x.set_row(l, 2 * row, known.row(l, row))?;
        }
    }
    Ok(Chains::from_state(x))
}

/// Lets chains settle for `sweeps` sweeps and watches them for as many.
pub(super) fn watch(
    machine: &Machine,
    engine: &Engine,
    mut chains: Chains,
    sweeps: usize,
    stream: Stream,
    common: Option<&Common>,
) -> Result<Vec<Scalar>, Failure> {
    chains.advance(machine, engine, sweeps, stream.fork(0))?;
    let mut watch = Watch::new(machine, chains.state())?;
    let bar = common.map(|c| progress::bar(sweeps as u64, "chains", c));
    for sweep in 0..sweeps as u64 {
        chains.advance(machine, engine, 1, stream.fork(1).fork(sweep))?;
        watch.look(machine, chains.state())?;
        bar.iter().for_each(|b| b.inc(1));
    }
    bar.iter().for_each(indicatif::ProgressBar::finish_and_clear);
    let scalar = |s: &Series| Ok(Scalar { name: s.name.clone(), mixing: Mixing::of(&s.chains)? });
    watch.series().iter().map(scalar).collect()
}

fn temper(
    machine: &Machine,
    engine: &Engine,
    base: Base,
    n_ladders: usize,
    sweeps: usize,
    stream: Stream,
    common: &Common,
) -> Result<Tempered, Failure> {
    let betas = Tempering::even_ladder(RUNGS);
    let mut ladders = Tempering::new(machine, n_ladders, &betas, base, stream.fork(0))?;
    let mut energies = vec![Vec::new(); n_ladders];
    let bar = progress::bar(2 * sweeps as u64, "tempering", common);
    for sweep in 0..2 * sweeps {
        ladders.advance(machine, engine, 1, stream.fork(1).fork(sweep as u64))?;
        if sweep >= sweeps {
            let now = machine.energies(&ladders.targets(machine)?)?;
            energies.iter_mut().zip(now).for_each(|(e, now)| e.push(now));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let energy = Mixing::of(&energies)?;
    Ok(Tempered { ladders: n_ladders, travel: Travel::of(&ladders), energy })
}

/// Samples of the model, each from a chain of its own, against data.
fn against_data(
    machine: &Machine,
    data: &Dataset,
    train: Option<&Dataset>,
    sweeps: usize,
    stream: Stream,
    common: &Common,
) -> Result<TwoSample, Failure> {
    let layers = Feed::of(machine, data)?.filled();
    let held_out = samples(machine, data, &layers)?;
    let train = train.map(|t| samples(machine, t, &layers)).transpose()?;
    let engine = Engine::with_arithmetic(machine, common.precision(Arithmetic::I16));
    let n = data.n_rows().min(MOST_ROWS);
    let mut x = Chains::new(machine, n, stream.fork(0))?.state().clone();
    let bar = progress::bar(2 * sweeps as u64, "samples", common);
    for sweep in 0..2 * sweeps as u64 {
        gibbs(machine, &engine, &Clamp::none(), &mut x, 1, stream.fork(1).fork(sweep))?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut generated = empty(machine, &layers);
    append(&mut generated, &x, &layers)?;
    Ok(compare(&generated, &held_out, train.as_ref(), stream.fork(2))?)
}

/// What the rows of some layers hold.
fn empty(machine: &Machine, layers: &[LayerId]) -> Samples {
    let all = |fits: fn(Units) -> bool| layers.iter().all(|&l| fits(machine.layer(l).units));
    let values = if all(|u| matches!(u, Units::Binary | Units::Categorical { .. })) {
        Values::Bits
    } else if all(|u| u == Units::Spin) {
        Values::Spins
    } else {
        Values::Numbers
    };
    Samples::new(layers.iter().map(|&l| machine.layer(l).len()).sum(), values)
}

fn append(samples: &mut Samples, x: &State, layers: &[LayerId]) -> Result<(), Failure> {
    for row in 0..x.n_rows() {
        let values: Vec<f64> = layers.iter().flat_map(|&l| x.row(l, row)).copied().collect();
        samples.push(&values)?;
    }
    Ok(())
}

/// The data as the units see it.
fn samples(machine: &Machine, data: &Dataset, layers: &[LayerId]) -> Result<Samples, Failure> {
    let mut samples = empty(machine, layers);
    let feed = Feed::of(machine, data)?.without_holes()?;
    for first in (0..data.n_rows()).step_by(ROWS) {
        let rows = first..(first + ROWS).min(data.n_rows());
        append(&mut samples, &super::states(machine, &feed, rows)?.0, layers)?;
    }
    Ok(samples)
}

impl Diagnostics {
    fn json(&self) -> Value {
        json!({
            "chains": self.chains,
            "sweeps": self.sweeps,
            "scalars": self.scalars,
            "tempering": self.tempered,
            "two_sample": self.two_sample,
            "warnings": self.warnings(),
        })
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} chains, {} sweeps after as many to settle\n  {:28}{:>22}{:>9}{:>11}{:>8}\n",
            self.chains, self.sweeps, "", "mean ± error", "τ", "effective", "R-hat"
        );
        let tempered = ("energy, by tempering", &self.tempered.energy);
        let plain = self.scalars.iter().map(|s| (s.name.as_str(), &s.mixing));
        for (name, m) in plain.chain([tempered]) {
            let number = |x: Option<f64>, digits: usize| {
                x.map_or("–".to_owned(), |x| format!("{x:.digits$}"))
            };
            let mean = format!("{:.4} ± {}", m.mean, number(m.std_error, 4));
            let _ = writeln!(
                text,
                "  {name:28}{mean:>22}{:>9}{:>11}{:>8}",
                number(m.autocorrelation_time, 1),
                number(m.effective_samples, 0),
                number(m.r_hat, 3)
            );
        }
        let travel = &self.tempered.travel;
        if let Some((k, rate)) = travel.narrowest() {
            let trip = travel.rounds_per_trip.map_or("none came round".to_owned(), |rounds| {
                format!("{} round trips, one in {rounds:.0} rounds", travel.round_trips)
            });
            let _ = writeln!(
                text,
                "{} ladders of {} temperatures: {trip}; fewest swaps {:.0} %, between β = {:.2} \
                 and {:.2}",
                self.tempered.ladders,
                travel.betas.len(),
                100.0 * rate,
                travel.betas[k],
                travel.betas[k + 1]
            );
        }
        if let Some(found) = &self.two_sample {
            text += &comparison(found);
        }
        for warning in self.warnings() {
            let _ = writeln!(text, "worry: {warning}");
        }
        text
    }

    /// What should not be overlooked, in sentences.
    fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> =
            self.scalars.iter().filter_map(|s| s.warning(self.sweeps)).collect();
        let (travel, tempered) = (&self.tempered.travel, &self.tempered.energy);
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
        let plain = &self.scalars[0].mixing;
        if let (Some(a), Some(b)) = (plain.std_error, tempered.std_error) {
            let gap = plain.mean - tempered.mean;
            if gap.abs() > SURE * a.hypot(b) {
                warnings.push(format!(
                    "plain chains have a mean energy of {:.3} ± {a:.3}, parallel tempering {:.3} ± \
                     {b:.3}: one of them has not found where the model is",
                    plain.mean, tempered.mean
                ));
            }
        }
        warnings.extend(self.two_sample.iter().flat_map(differences));
        warnings
    }
}

impl Scalar {
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

    /// The line of a small table.
    pub(super) fn fact(&self) -> Option<(String, String)> {
        let m = &self.mixing;
        let text = format!(
            "τ = {:.1} sweeps, {:.0} effective samples, R-hat {:.3}{}",
            m.autocorrelation_time?,
            m.effective_samples?,
            m.r_hat?,
            if m.is_fine() { "" } else { ": not mixed" }
        );
        Some((self.name.clone(), text))
    }
}

fn comparison(found: &TwoSample) -> String {
    let (m, a) = (&found.means, found.adversarial);
    let mut text = format!(
        "{} samples of the model against {} rows of data\n  means: rms difference {:.4}, rms z \
         {:.2} (1 by chance), largest {:.1} in column {} (by chance below {:.1})\n",
        found.n_generated,
        found.n_held_out,
        m.rms_difference,
        m.rms_z,
        m.max_z,
        m.column,
        m.max_z_by_chance
    );
    if let Some(c) = &found.correlations {
        let _ = writeln!(
            text,
            "  correlations: rms difference {:.4} (noise {:.4}), largest {:.3} of columns {} and {} \
             (noise {:.3})",
            c.rms_difference, c.rms_noise, c.max_difference, c.columns.0, c.columns.1, c.max_noise
        );
    }
    let _ = writeln!(
        text,
        "  neighbours tell them apart {:.1} % of the time (50 ± {:.1} by chance)",
        100.0 * a.accuracy,
        100.0 * a.std_error
    );
    if let Some(m) = &found.memorisation {
        let _ = writeln!(
            text,
            "  from training rows {:.1} %: privacy loss {:.3} ± {:.3}\n  close to one of {} training \
             rows: {:.1} % of the samples, {:.1} % of the data; copies {:.1} %",
            100.0 * m.train.accuracy,
            m.privacy_loss,
            m.train.std_error.hypot(a.std_error),
            m.n_train,
            100.0 * m.generated_close,
            100.0 * m.held_out_close,
            100.0 * m.copies
        );
    }
    text
}

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
