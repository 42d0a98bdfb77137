//! Binary sets for density estimation, trained and scored as a user would: what a run on autopilot reaches, and
//! whether any run at any rate fails in silence.

use crate::report::Flags;
use crate::{Fallible, Outcome};
use harmonium::Model;
use harmonium::evaluation::baseline;
use harmonium::evaluation::tracking::Watch;
use harmonium::model::{Autopilot, Behind, Blueprint, Effort, Method, Open, Training, Trial};
use harmonium::models::Rbm;
use harmonium::optim::Schedule;
use harmonium::progress::Silent;
use harmonium::run::{About, Overwrite, Recorded, Recording, RunDirectory};
use harmonium::training::{Guarding, Plan, Stop};
use harmonium_data::{Binarize, Dataset, Options, open_dataset};
use std::path::Path;
use std::time::Instant;

const FOLDER: &str = "../shared/data/density";

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

/// Settings that somebody would try by hand: hidden units, rate, sweeps, epochs.
const BY_HAND: [(usize, f64, f64, u64); 6] = [
    (50, 0.01, 1.0, 50),
    (100, 0.05, 1.0, 50),
    (100, 0.02, 5.0, 100),
    (200, 0.01, 1.0, 100),
    (200, 0.05, 5.0, 100),
    (200, 0.02, 10.0, 100),
];

struct Set {
    train: Dataset,
    valid: Dataset,
    test: Dataset,
}

fn open(name: &'static str) -> Fallible<Set> {
    let part = |part: &str| -> Fallible<Dataset> {
        let path = format!("{FOLDER}/{name}/{name}.{part}.data");
        Ok(open_dataset(&path, &Options::default(), Binarize::None)?.dataset)
    };
    Ok(Set { train: part("train")?, valid: part("valid")?, test: part("test")? })
}

/// The sets that were asked for, or all.
fn sets(flags: &Flags) -> Fallible<Vec<(&'static str, Option<f64>)>> {
    if !Path::new(FOLDER).is_dir() {
        return Err(format!("the sets are not there: `{FOLDER}`").into());
    }
    let wanted: Vec<String> = flags.list("--sets", &SETS.map(|s| s.0.to_owned()))?;
    Ok(SETS.into_iter().filter(|s| wanted.iter().any(|w| w == s.0)).collect())
}

/// Trains and records a run; the directory is gone afterwards.
fn record(set: &Set, hidden: usize, plan: &Plan, watch: Watch) -> Fallible<Recorded> {
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
        guarding: if plan.steer { Guarding::Steer } else { Guarding::Warn },
        metrics: Vec::new(),
    };
    let mut learner = training.learner()?;
    let recorded = writer.record(learner.as_mut(), recording, None, &mut Silent)?;
    drop(writer);
    std::fs::remove_dir_all(&folder)?;
    Ok(recorded)
}

/// Lower end, estimate and upper end of the test log-likelihood.
fn bracket(model: &Model, test: &Dataset) -> Fallible<[f64; 3]> {
    let score = model.score(test, Method::Auto)?;
    Ok(match &score.behind {
        Behind::Estimated { estimate, .. } => [estimate.lower, estimate.mean, estimate.upper],
        _ => [score.mean; 3],
    })
}

const AUTOPILOT: &str =
    "usage: reproduce autopilot [--sets NAME,…] [--effort quick|normal|thorough] [--no-hands]";

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
        "set          settings chosen                              seconds  test log-likelihood [interval]  wanted"
    );
    let mut missed = Vec::new();
    for (name, wanted) in sets(&flags)? {
        let set = open(name)?;
        let start = Instant::now();
        let shape = |hidden: &[usize]| {
            Ok(Blueprint::Machine(Rbm::binary(set.train.n_columns(), hidden[0])?.into_machine()))
        };
        let pilot = Autopilot {
            train: &set.train,
            valid: &set.valid,
            shape: &shape,
            hidden: vec![20],
            plan: Plan::default(),
            open: Open { hidden: true, learning_rate: true, k: true, l2: true },
            effort,
        };
        let (best, _) = pilot.run(&[], &mut |_| Ok(()), &mut Silent)?;
        let run = Watch::Likelihood;
        let recorded = record(&set, best.hidden[0], &best.plan(&pilot.plan), run)?;
        let seconds = start.elapsed().as_secs_f64();
        let [lower, middle, upper] = bracket(&recorded.model, &set.test)?;
        let wanted = match wanted {
            Some(wanted) => Some(wanted),
            None if flags.has("--no-hands") => None,
            None => Some(by_hand(&set)?),
        };
        println!(
            "{name:11}  {}  {seconds:7.1}  {middle:.3} [{lower:.3}, {upper:.3}]  {}",
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
    for (hidden, learning_rate, k, epochs) in BY_HAND {
        let plan = Plan { epochs, learning_rate, k: Schedule::Constant(k), ..Plan::default() };
        let recorded = record(set, hidden, &plan, Watch::None)?;
        if matches!(recorded.stop, Stop::Diverged(_)) {
            continue;
        }
        let valid = bracket(&recorded.model, &set.valid)?[0];
        if valid > best.0 {
            best = (valid, bracket(&recorded.model, &set.test)?[0]);
        }
    }
    Ok(best.1)
}

const FAILURE: &str =
    "usage: reproduce no-silent-failure [--quick] [--sets NAME,…] [--rates X,…] [--seeds N]";

/// Every set at every rate: what a run with `--k auto` leaves, and what plain PCD does.
pub(crate) fn no_silent_failure(words: &[&str]) -> Outcome {
    let flags = Flags::parse(words, FAILURE)?;
    let quick = flags.has("--quick");
    let rates: Vec<f64> = flags.list(
        "--rates",
        if quick { &[0.01, 0.05, 0.5] } else { &[0.002, 0.01, 0.05, 0.1, 0.2, 0.5] },
    )?;
    let seeds: u64 = flags.list("--seeds", &[if quick { 1 } else { 3 }])?.swap_remove(0);
    println!("test log-likelihood, lower end of its interval; 200 hidden units, 50 epochs");
    println!("set          rate   seed  independent  plain PCD  k auto  best validated  end");
    let mut silent = Vec::new();
    for (name, _) in sets(&flags)? {
        let set = open(name)?;
        let rbm = Rbm::binary(set.train.n_columns(), 1)?.into_machine();
        let alone = baseline::independent(&rbm, &set.train, &set.test)?.0;
        for &learning_rate in &rates {
            for seed in 0..seeds {
                let plan = Plan { epochs: 50, learning_rate, seed, ..Plan::default() };
                let plain = record(&set, 200, &plan, Watch::None)?;
                let plain = bracket(&plain.model, &set.test)?[0];
                let plan = Plan { steer: true, ..plan };
                let run = record(&set, 200, &plan, Watch::Likelihood)?;
                let found = bracket(&run.model, &set.test)?;
                let validated = bracket(&run.model, &set.valid)?;
                let end = match &run.stop {
                    Stop::Observer(reason) if reason.contains("chains do not mix") => {
                        "chains do not mix"
                    }
                    other => other.word(),
                };
                println!(
                    "{name:11}  {learning_rate:<5}  {seed:4}  {alone:11.2}  {plain:9.2}  {:6.2}  {:14.2}  {end}",
                    found[0], validated[0]
                );
                let said = end == "chains do not mix" || end == "diverged";
                let below = found[2] < alone || found[2] < validated[0] - 1.0;
                if below && !said {
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
