//! `harmonium inspect --diagnostics`: whether chains mix, and how samples compare with data.

use crate::args::{Common, InspectArgs};
use crate::failure::Failure;
use crate::load;
use crate::render::progress::Terminal;
use crate::render::verdict;
use harmonium::evaluation::diagnose::{APART, Diagnosis, Scalar};
use harmonium::evaluation::diagnostics::LEAST_DRAWS;
use harmonium::evaluation::two_sample::TwoSample;
use harmonium::findings::{Evidence, Finding, findings};
use harmonium::model::{Diagnosing, Judging};
use harmonium::run::RunDirectory;
use harmonium::{Dataset, Model};
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs the diagnostics that were asked for: as JSON, and in words.
pub(super) fn run(
    model: &Model,
    args: &InspectArgs,
    common: &Common,
    terminal: &mut Terminal,
) -> Result<(Value, String), Failure> {
    let usual = Diagnosing::default();
    let diagnosing = Diagnosing {
        chains: args.chains.unwrap_or(usual.chains),
        sweeps: args.sweeps.unwrap_or(usual.sweeps),
        seed: common.seed(),
        arithmetic: common.arithmetic(),
    };
    check(&diagnosing, &usual)?;
    let mut read = |spec: &Option<String>| -> Result<Option<Dataset>, Failure> {
        let open = |spec: &String| load::data_for(model, spec, &args.reading, terminal);
        spec.as_ref().map(open).transpose()
    };
    let (held_out, train) = (read(&args.data)?, read(&args.train)?);
    let found = model.diagnose(held_out.as_ref(), train.as_ref(), &diagnosing, terminal)?;
    let judged =
        judged(model, &found, held_out.as_ref().or(train.as_ref()), args, common, terminal)?;
    let (mut value, text) = (json(&found)?, text(&found));
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), verdict::json(&judged)) {
        value.extend(more);
    }
    Ok((value, format!("{text}{}", verdict::text(&judged))))
}

/// Everything that is to be said of the model, from its run too if it is one.
fn judged(
    model: &Model,
    found: &Diagnosis,
    data: Option<&Dataset>,
    args: &InspectArgs,
    common: &Common,
    terminal: &mut Terminal,
) -> Result<Vec<Finding>, Failure> {
    let run = RunDirectory::open(&args.model).ok();
    let mut evidence = match &run {
        Some(run) => Evidence::of(&run.read_events()?.events),
        None => Evidence::default(),
    };
    if let Some(plan) = run.and_then(|run| super::report::settings(&run.config().ok()?, model).ok())
    {
        evidence.plan = plan;
    }
    evidence.result = Some(model.about.epoch);
    evidence.mixing.clone_from(&found.scalars);
    evidence.two_sample.clone_from(&found.two_sample);
    let judging = Judging::thorough(common.seed(), common.arithmetic());
    model.judge(&mut evidence, data, &judging, terminal)?;
    Ok(findings(&evidence))
}

fn check(asked: &Diagnosing, usual: &Diagnosing) -> Result<(), Failure> {
    let Diagnosing { chains, sweeps, .. } = asked;
    if *chains < 2 {
        return Err(Failure::new(
            format!("`--chains {chains}` is too few: one chain cannot disagree with itself"),
            format!("leave it out for {} chains", usual.chains),
        ));
    }
    if *sweeps < LEAST_DRAWS {
        return Err(Failure::new(
            format!("`--sweeps {sweeps}` is too few: nothing can be said below {LEAST_DRAWS}"),
            format!("leave it out for {} sweeps", usual.sweeps),
        ));
    }
    Ok(())
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
        match m.r_hat {
            Some(r) if r > APART => ": not mixed",
            _ if m.is_fine() => "",
            _ => ": slow",
        }
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
