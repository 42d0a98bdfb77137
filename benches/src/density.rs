//! Binary sets for density estimation, trained and scored as a user would: what a run on autopilot reaches, and
//! whether any run at any rate fails in silence.

use crate::report::Flags;
use crate::sets::{Bracketed, Set, cpu_seconds, density};
use crate::{Fallible, Outcome};
use harmonium::Model;
use harmonium::evaluation::baseline;
use harmonium::evaluation::tracking::Watch;
use harmonium::model::{
    Autopilot, Behind, Blueprint, Effort, Hidden, Method, Open, Training, Trial,
};
use harmonium::models::{Body, Rbm};
use harmonium::optim::Schedule;
use harmonium::progress::Silent;
use harmonium::run::{About, Event, Overwrite, Recorded, Recording, RunDirectory};
use harmonium::training::{Plan, Steering, Stop};
use harmonium_data::Dataset;
use std::time::Instant;

/// A set, and the test log-likelihood that a run on autopilot has to reach, where one is known.
const SETS: [(&str, Option<f64>); 8] = [
    ("nltcs", Some(-6.03)),
    ("mushrooms", Some(-16.5)),
    ("plants", Some(-12.5)),
    ("dna", Some(-89.0)),
    ("jester", None),
    ("baudio", None),
    ("moviereview", None),
    ("nips", None),
];

/// Settings that somebody would try by hand: hidden units, rate, sweeps, updates.
const BY_HAND: [(usize, f64, f64, u64); 6] = [
    (50, 0.01, 1.0, 5_000),
    (100, 0.05, 1.0, 5_000),
    (100, 0.02, 5.0, 10_000),
    (200, 0.01, 1.0, 10_000),
    (200, 0.05, 5.0, 10_000),
    (200, 0.02, 10.0, 10_000),
];

/// Temperatures and chains behind the likelihoods of many runs.
const WORK: (usize, usize) = (500, 50);

/// The sets that were asked for, or all.
fn sets(flags: &Flags) -> Fallible<Vec<(&'static str, Option<f64>)>> {
    let wanted: Vec<String> = flags.list("--sets", &SETS.map(|s| s.0.to_owned()))?;
    Ok(SETS.into_iter().filter(|s| wanted.iter().any(|w| w == s.0)).collect())
}

/// Passes over the data that make as many updates.
fn epochs(set: &Set, updates: u64) -> u64 {
    updates.div_ceil(set.train.n_rows().div_ceil(Plan::default().batch) as u64)
}

/// Trains and records a run, and how it was steered at the end; the directory is gone afterwards.
fn record(set: &Set, hidden: usize, plan: &Plan, watch: Watch) -> Fallible<(Recorded, Steering)> {
    let folder = std::env::temp_dir().join(format!("harmonium-density-{}", std::process::id()));
    let mut writer = RunDirectory::create(&folder, Overwrite::Yes)?;
    writer.write_config("")?;
    let rbm = Rbm::binary(set.train.n_columns(), hidden)?;
    let training = Training::new(rbm.into_machine(), &set.train, plan);
    let about = About { seed: plan.seed, data: training.memory()?, ..About::default() };
    let recording = Recording {
        about,
        train: &set.train,
        valid: Some(&set.valid),
        patience: None,
        checkpoint_seconds: 1e9,
        watch,
        guarding: plan.guarding(),
        metrics: Vec::new(),
    };
    let mut learner = training.learner()?;
    let recorded = writer.record(learner.as_mut(), recording, None, &mut Silent)?;
    let steered = |event: Event| match event {
        Event::Steered { sweeps, rate, tempered, .. } => Some(Steering { sweeps, rate, tempered }),
        _ => None,
    };
    let events = writer.directory().read_events()?.events;
    let steering = events.into_iter().filter_map(steered).next_back().unwrap_or_default();
    drop(writer);
    std::fs::remove_dir_all(&folder)?;
    Ok((recorded, steering))
}

/// Lower end, estimate and upper end of the test log-likelihood, as `score` finds them.
fn scored(model: &Model, test: &Dataset) -> Fallible<[f64; 3]> {
    let score = model.score(test, Method::Auto)?;
    Ok(match &score.behind {
        Behind::Estimated { estimate, .. } => [estimate.lower, estimate.mean, estimate.upper],
        _ => [score.mean; 3],
    })
}

/// A model with $\ln Z$ by a fixed amount of work.
fn bracketed<'m>(model: &'m Model, set: &Set) -> Fallible<Bracketed<'m>> {
    let Body::Machine(machine) = &model.body else { return Err("a machine was trained".into()) };
    Bracketed::new(machine, &set.train, WORK)
}

const AUTOPILOT: &str = "usage: reproduce autopilot [--sets NAME,…] [--effort quick|normal|thorough] [--no-hands] [--trials]";

/// One run on autopilot for each set, beside the best of six settings made by hand.
pub(crate) fn autopilot(words: &[&str]) -> Outcome {
    let flags = Flags::parse(words, AUTOPILOT)?;
    let effort: String = flags.list("--effort", &["normal".to_owned()])?.swap_remove(0);
    let effort = match effort.as_str() {
        "quick" => Effort::Quick,
        "thorough" => Effort::Thorough,
        _ => Effort::Normal,
    };
    println!(
        "set          settings chosen                                        seconds  (CPU)  test log-likelihood [interval]  wanted"
    );
    let mut missed = Vec::new();
    for (name, wanted) in sets(&flags)? {
        let set = density(name)?;
        let (start, cpu) = (Instant::now(), cpu_seconds()?);
        let shape = |hidden: &[usize]| {
            Ok(Blueprint::Machine(Rbm::binary(set.train.n_columns(), hidden[0])?.into_machine()))
        };
        let pilot = Autopilot {
            train: &set.train,
            valid: &set.valid,
            apart: false,
            shape: &shape,
            hidden: Hidden::Searched { layers: 1 },
            plan: Plan::default(),
            open: Open { rule: true, learning_rate: true, k: true, l2: true },
            effort,
        };
        let mut note = |trial: &Trial| {
            if flags.has("--trials") {
                let Trial { round, score, lower, best_epoch, failing, .. } = trial;
                println!(
                    "  {round} {} {score:?} {lower:?} {best_epoch:?} {failing}",
                    settings(trial)
                );
            }
            Ok(())
        };
        let (best, _) = pilot.run(&[], &mut note, &mut Silent)?;
        let run = Watch::Likelihood;
        let (recorded, _) = record(&set, best.hidden[0], &best.plan(&pilot.plan), run)?;
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
        let [lower, middle, upper] = scored(&recorded.model, &set.test)?;
        let wanted = match wanted {
            Some(wanted) => Some(wanted),
            None if flags.has("--no-hands") => None,
            None => Some(by_hand(&set)?),
        };
        println!(
            "{name:11}  {:54}  {seconds:7.0}  {cpu:5.0}  {middle:.3} [{lower:.3}, {upper:.3}]  {}",
            settings(&best),
            wanted.map_or("-".into(), |w| format!("{w:.3}"))
        );
        if wanted.is_some_and(|wanted| lower < wanted) {
            missed.push(name);
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", missed.join(", ")).into()) }
}

fn settings(trial: &Trial) -> String {
    let Trial { hidden, learning_rate, k, l2, epochs, .. } = trial;
    format!(
        "--hidden {} --epochs {epochs} --learning-rate {learning_rate} --k {k} --l2 {l2}",
        hidden[0]
    )
}

/// The test log-likelihood (lower end) of the best of six settings, chosen on the validation data.
fn by_hand(set: &Set) -> Fallible<f64> {
    let mut best = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (hidden, learning_rate, k, updates) in BY_HAND {
        let (k, epochs) = (Schedule::Constant(k), epochs(set, updates));
        let plan = Plan { epochs, learning_rate, k, ..Plan::default() };
        let (recorded, _) = record(set, hidden, &plan, Watch::None)?;
        if matches!(recorded.stop, Stop::Diverged(_)) {
            continue;
        }
        let found = bracketed(&recorded.model, set)?;
        let valid = found.on(&set.valid, usize::MAX)?[0];
        if valid > best.0 {
            best = (valid, found.on(&set.test, usize::MAX)?[0]);
        }
    }
    Ok(best.1)
}

const FAILURE: &str = "usage: reproduce no-silent-failure [--quick] [--sets NAME,…] [--rates X,…] [--seeds N] [--updates N]";

/// Every set at every rate: what a run with `--k auto` leaves, and what plain PCD does.
pub(crate) fn no_silent_failure(words: &[&str]) -> Outcome {
    let flags = Flags::parse(words, FAILURE)?;
    let quick = flags.has("--quick");
    let rates: Vec<f64> = flags.list(
        "--rates",
        if quick { &[0.01, 0.05, 0.5] } else { &[0.002, 0.01, 0.05, 0.1, 0.2, 0.5] },
    )?;
    let seeds: u64 = flags.list("--seeds", &[if quick { 1 } else { 3 }])?.swap_remove(0);
    let updates: u64 = flags.list("--updates", &[4000])?.swap_remove(0);
    println!(
        "log-likelihoods; 200 hidden units, {updates} updates; ln Z by {} temperatures, {} chains",
        WORK.0, WORK.1
    );
    println!("lower and upper end; `best` is the best validated lower end of the run itself");
    println!(
        "set          rate   seed  independent  plain PCD, test     k auto, test        validation          best     steered          CPU s  end"
    );
    let mut silent = Vec::new();
    for (name, _) in sets(&flags)? {
        let set = density(name)?;
        let rbm = Rbm::binary(set.train.n_columns(), 1)?.into_machine();
        let alone = baseline::independent(&rbm, &set.train, &set.test)?.0;
        for &learning_rate in &rates {
            for seed in 0..seeds {
                let epochs = epochs(&set, updates);
                let plan = Plan { epochs, learning_rate, seed, ..Plan::default() };
                let (plain, _) = record(&set, 200, &plan, Watch::None)?;
                let plain = bracketed(&plain.model, &set)?.on(&set.test, usize::MAX)?;
                let cpu = cpu_seconds()?;
                let plan = Plan { steer: true, ..plan };
                let (run, steered) = record(&set, 200, &plan, Watch::Likelihood)?;
                let cpu = cpu_seconds()? - cpu;
                let model = bracketed(&run.model, &set)?;
                let [test, valid] = [&set.test, &set.valid].map(|data| model.on(data, usize::MAX));
                let (test, valid) = (test?, valid?);
                let best = run.best.as_ref().map_or(f64::NEG_INFINITY, |best| best.value);
                let end = match &run.stop {
                    Stop::Observer(reason) if reason.contains("chains do not mix") => {
                        "chains do not mix"
                    }
                    other => other.word(),
                };
                let said = end == "chains do not mix" || end == "diverged";
                let failed = test[2] < alone || valid[2] < best - 1.0;
                let mark = if failed && !said { "  SILENT" } else { "" };
                let both = |ends: [f64; 3]| format!("{:8.2} … {:8.2}", ends[0], ends[2]);
                println!(
                    "{name:11}  {learning_rate:<5}  {seed:4}  {alone:11.2}  {}  {}  {}  {best:7.2}  {:15}  {cpu:5.1}  {end}{mark}",
                    both(plain),
                    both(test),
                    both(valid),
                    told(steered),
                );
                if failed && !said {
                    silent.push(format!("{name} at {learning_rate}, seed {seed}"));
                }
            }
        }
    }
    if silent.is_empty() {
        return Ok(());
    }
    Err(format!("failed in silence: {}", silent.join("; ")).into())
}

/// How a run was steered at its end.
fn told(Steering { sweeps, rate, tempered }: Steering) -> String {
    let tempered = if tempered { ", ptt" } else { "" };
    format!("k {sweeps}, rate/{:.0}{tempered}", 1.0 / rate)
}
