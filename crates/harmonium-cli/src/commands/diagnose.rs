//! `harmonium inspect --diagnostics`: whether chains mix, and how samples compare with data.

use super::logz::means_for;
use crate::args::{Common, InspectArgs};
use crate::failure::Failure;
use crate::load::{self, Input, Remembered};
use crate::render::progress;
use harmonium::evaluation::diagnose::{DataSide, Diagnosis, Questions, Scalar, diagnose, samples};
use harmonium::evaluation::diagnostics::LEAST_DRAWS;
use harmonium::evaluation::two_sample::{Samples, TwoSample};
use harmonium::machine::{Base, Engine, LayerId, Machine, Precision, State};
use harmonium::random::Stream;
use harmonium::sampling::Clamp;
use harmonium_data::Dataset;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::fmt::Write;

/// Chains, unless asked for otherwise.
const CHAINS: usize = 50;
/// Sweeps that are watched, unless asked for otherwise.
const SWEEPS: usize = 1000;
/// Rows turned into samples at a time.
const ROWS: usize = 1000;

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
    let data = data.filter(|d| d.dataset.n_rows() > 0);
    let stream = Stream::new(common.seed()).fork(300);
    let engine = Engine::with_precision(machine, common.precision(Precision::F32));
    let sample_engine = Engine::with_precision(machine, common.precision(Precision::I16));
    let layers = data
        .as_ref()
        .map_or_else(Vec::new, |d| super::given_layers(machine, d.dataset.n_columns()));
    let seen = |d: &Input| seen(machine, &d.dataset, &layers);
    let (held_out, train) =
        (data.as_ref().map(seen).transpose()?, train.as_ref().map(seen).transpose()?);
    let side = match (&data, &held_out) {
        (Some(data), Some(held_out)) => Some(DataSide {
            starts: starts(machine, &data.dataset, n_chains / 2)?,
            layers: &layers,
            held_out,
            train: train.as_ref(),
            engine: &sample_engine,
        }),
        _ => None,
    };
    let base = match means_for(machine, remembered) {
        Some(means) => Base::from_visible_means(machine, &means)?,
        None => Base::of_biases(machine),
    };
    let questions = Questions { chains: n_chains, sweeps, base, data: side };
    let mut bar = Bars::new(common);
    let found = diagnose(machine, &engine, &questions, stream, &mut |what, done, of| {
        bar.at(what, done, of);
    })?;
    Ok((json(&found)?, text(&found)))
}

/// A bar for each kind of work, one after the other.
struct Bars<'c> {
    common: &'c Common,
    bar: ProgressBar,
}

impl<'c> Bars<'c> {
    fn new(common: &'c Common) -> Self {
        Self { common, bar: ProgressBar::hidden() }
    }

    fn at(&mut self, what: &str, done: u64, of: u64) {
        if done == 1 {
            self.bar = progress::bar(of, what, self.common);
        }
        self.bar.set_position(done);
        if done == of {
            self.bar.finish_and_clear();
        }
    }
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

/// Rows of the data, spread over it, that start chains.
fn starts(machine: &Machine, data: &Dataset, n: usize) -> Result<(State, Clamp), Failure> {
    let rows: Vec<usize> = (0..n).map(|k| k * data.n_rows() / n).collect();
    super::states(machine, &data.select_rows(&rows)?, 0..n)
}

/// The data as the units see it.
fn seen(machine: &Machine, data: &Dataset, layers: &[LayerId]) -> Result<Samples, Failure> {
    let pieces = (0..data.n_rows()).step_by(ROWS).map(|first| {
        let rows = first..(first + ROWS).min(data.n_rows());
        Ok(super::states(machine, data, rows)?.0)
    });
    samples(machine, layers, pieces)
}

fn json(found: &Diagnosis) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(found)
        .map_err(|e| Failure::new(format!("cannot write the result: {e}"), "report this"))?;
    value["warnings"] = json!(found.warnings());
    Ok(value)
}

fn text(found: &Diagnosis) -> String {
    let mut text = format!(
        "{} chains, {} sweeps after as many to settle\n  {:28}{:>22}{:>9}{:>11}{:>8}\n",
        found.chains, found.sweeps, "", "mean ± error", "τ", "effective", "R-hat"
    );
    let tempered = ("energy, by tempering", &found.tempering.energy);
    let plain = found.scalars.iter().map(|s| (s.name.as_str(), &s.mixing));
    for (name, m) in plain.chain([tempered]) {
        let number =
            |x: Option<f64>, digits: usize| x.map_or("–".to_owned(), |x| format!("{x:.digits$}"));
        let mean = format!("{:.4} ± {}", m.mean, number(m.std_error, 4));
        let _ = writeln!(
            text,
            "  {name:28}{mean:>22}{:>9}{:>11}{:>8}",
            number(m.autocorrelation_time, 1),
            number(m.effective_samples, 0),
            number(m.r_hat, 3)
        );
    }
    text += &travel(found);
    if let Some(two_sample) = &found.two_sample {
        text += &comparison(two_sample);
    }
    for warning in found.warnings() {
        let _ = writeln!(text, "worry: {warning}");
    }
    text
}

/// How replicas of parallel tempering got through their ladders.
fn travel(found: &Diagnosis) -> String {
    let mut text = String::new();
    let travel = &found.tempering.travel;
    if let Some((k, rate)) = travel.narrowest() {
        let trip = travel.rounds_per_trip.map_or("none came round".to_owned(), |rounds| {
            format!("{} round trips, one in {rounds:.0} rounds", travel.round_trips)
        });
        let _ = writeln!(
            text,
            "{} ladders of {} temperatures: {trip}; fewest swaps {:.0} %, between β = {:.2} \
             and {:.2}",
            found.tempering.ladders,
            travel.betas.len(),
            100.0 * rate,
            travel.betas[k],
            travel.betas[k + 1]
        );
    }
    text
}

/// A scalar as the line of a small table.
pub(super) fn fact(scalar: &Scalar) -> Option<(String, String)> {
    let m = &scalar.mixing;
    let text = format!(
        "τ = {:.1} sweeps, {:.0} effective samples, R-hat {:.3}{}",
        m.autocorrelation_time?,
        m.effective_samples?,
        m.r_hat?,
        if m.is_fine() { "" } else { ": not mixed" }
    );
    Some((scalar.name.clone(), text))
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
