//! The tracked likelihood against the exact one, over whole trainings of twenty small machines at rates from
//! safe to absurd; and what watching costs where nothing can be enumerated.

use crate::report::Flags;
use crate::sets::{Set, cpu_seconds, density};
use crate::{Fallible, Outcome};
use harmonium::engine::Arithmetic;
use harmonium::evaluation::log_partition::{TRACKING_ROUNDS, Tracker};
use harmonium::evaluation::tracking::Watch;
use harmonium::exact;
use harmonium::machine::Machine;
use harmonium::model::Training;
use harmonium::models::{Bm, Dbm, Lateral, Rbm};
use harmonium::progress::Silent;
use harmonium::random::{Site, Stream};
use harmonium::run::{About, Overwrite, Recording, RunDirectory};
use harmonium::sampling::Sampler;
use harmonium::training::{Every, Plan, View, train};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Options, Table, open_dataset, synthetic};
use std::ops::ControlFlow;

const USAGE: &str = "usage: reproduce tracking [--quick] [--no-cost] [--no-machines] [--each]";
const RATES: [f64; 4] = [0.01, 0.1, 1.0, 10.0];
/// Columns of every set: few enough that all states can be enumerated.
const COLUMNS: usize = 9;
/// Looks at each training.
const LOOKS: u64 = 20;
/// Updates of each.
const UPDATES: u64 = 2000;

pub(crate) fn run(words: &[&str]) -> Outcome {
    let flags = Flags::parse(words, USAGE)?;
    if !flags.has("--no-machines") {
        machines(if flags.has("--quick") { 1 } else { 3 }, flags.has("--each"))?;
    }
    if flags.has("--no-cost") { Ok(()) } else { costs() }
}

/// What is found of twenty machines: five graphs, four sets.
fn machines(seeds: u64, each: bool) -> Outcome {
    println!(
        "ln Z as it is tracked against enumeration, {UPDATES} updates, {LOOKS} looks, {seeds} seeds"
    );
    println!(
        "data              machine            rate  looks  within 3 bars  median bar  largest bar  largest error"
    );
    let (mut inside, mut all) = (0, 0);
    for (set, data) in sets()? {
        for (name, machine) in graphs()? {
            for rate in RATES {
                let mut found = Vec::new();
                for seed in 0..seeds {
                    found.extend(track(&machine, &data, rate, seed)?);
                }
                if each {
                    found.iter().for_each(|(off, bar)| println!("    {off:+.6} ± {bar:.6}"));
                }
                let within = found.iter().filter(|(d, bar)| d.abs() <= 3.0 * bar).count();
                let largest = found.iter().map(|f| f.0.abs()).fold(0.0, f64::max);
                let mut bars: Vec<f64> = found.iter().map(|f| f.1).collect();
                bars.sort_by(f64::total_cmp);
                println!(
                    "{set:16}  {name:16} {rate:6}  {:5}  {within:13}  {:10.3}  {:11.3}  {largest:13.3}",
                    bars.len(),
                    bars[bars.len() / 2],
                    bars[bars.len() - 1]
                );
                inside += within;
                all += bars.len();
            }
        }
    }
    println!("{inside} of {all} looks are within three error bars");
    if inside * 100 < all * 95 {
        return Err("fewer than 95 % of the looks are within three error bars".into());
    }
    Ok(())
}

/// Four sets: patterns, pixels of digits, two modes that are far apart, and three that are in each other's way.
fn sets() -> Fallible<Vec<(&'static str, Dataset)>> {
    let bars = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted)?;
    let digits = open_dataset("digits", &Options::default(), Binarize::None)?.dataset;
    // Nine pixels of the middle, of every twentieth digit.
    let pixels: Vec<usize> = (2..5).flat_map(|y| (2..5).map(move |x| 8 * y + x)).collect();
    let pixel = |row: usize, c: usize| f32::from(u8::from(digits.table().at(row, c) > 8.0));
    let rows = (0..digits.n_rows()).step_by(20);
    let digits: Vec<f32> = rows
        .flat_map(|row| pixels.iter().map(move |&c| (row, c)))
        .map(|(r, c)| pixel(r, c))
        .collect();
    let noisy = |modes: &[[u8; COLUMNS]], flips: f64| -> Vec<f32> {
        let bit = |row: usize, c: usize| {
            let flip = Stream::new(5).uniform(Site::new(row, 0, 0), c) < flips;
            f32::from(modes[row % modes.len()][c] ^ u8::from(flip))
        };
        (0..60)
            .flat_map(|row| (0..COLUMNS).map(move |c| (row, c)))
            .map(|(r, c)| bit(r, c))
            .collect()
    };
    let two = noisy(&[[0; 9], [1; 9]], 0.02);
    let three = noisy(
        &[[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1]],
        0.05,
    );
    let real = |values| -> Fallible<Dataset> {
        Ok(Dataset::new(Table::from_real(values, COLUMNS)?, Binarize::None)?)
    };
    Ok(vec![
        ("bars and stripes", Dataset::new(bars, Binarize::None)?),
        ("pixels of digits", real(digits)?),
        ("two far modes", real(two)?),
        ("three modes", real(three)?),
    ])
}

fn graphs() -> Fallible<Vec<(&'static str, Machine)>> {
    let (v, b) = ((Units::Binary, COLUMNS), Units::Binary);
    Ok(vec![
        ("RBM 9-12", Rbm::binary(COLUMNS, 12)?.into_machine()),
        ("RBM 9-6 of spins", Rbm::new(v, (Units::Spin, 6))?.into_machine()),
        ("DBM 9-8-5", Dbm::binary(COLUMNS, &[8, 5])?.into_machine()),
        ("BM 9-5", Bm::new(v, (b, 5), Lateral::Both)?.into_machine()),
        ("BM 9-8, visible", Bm::new(v, (b, 8), Lateral::Visible)?.into_machine()),
    ])
}

/// Of each look of one training the distance from the exact ln Z, and the error bar.
fn track(machine: &Machine, data: &Dataset, rate: f64, seed: u64) -> Fallible<Vec<(f64, f64)>> {
    let batch = 8;
    let epochs = UPDATES / data.n_rows().div_ceil(batch) as u64;
    let plan = Plan { epochs, batch, learning_rate: rate, seed, ..Plan::default() };
    let mut tracker = Tracker::new(data.column_means(), seed);
    let (mut looks, mut failed) = (Vec::new(), None);
    let mut look = Every::new((epochs / LOOKS).max(1), |view: &View<'_>| {
        let mut one = || -> Result<(), harmonium::Error> {
            let sampler = Sampler::new(view.machine()?.clone(), Arithmetic::F32);
            let truth = exact::log_partition(sampler.machine())?;
            let chains = view.watched().and_then(|w| w.chains);
            let found = tracker.look(&sampler, chains, TRACKING_ROUNDS)?;
            looks.push((found.log_z - truth, found.std_error));
            Ok(())
        };
        failed = failed.take().or(one().err());
        ControlFlow::Continue(())
    });
    train(machine.clone(), data, &plan, &mut [&mut look])?;
    failed.map_or(Ok(looks), |error| Err(error.into()))
}

/// What watching the likelihood costs: processor time of whole runs, with and without.
fn costs() -> Outcome {
    println!(
        "processor time of runs of 200 hidden units, in turns, medians of 3: what `--watch` adds"
    );
    println!("set          updates  none, s  pseudo  likelihood  share of the likelihood");
    for name in ["nltcs", "mushrooms", "plants", "dna", "jester", "moviereview"] {
        let set = density(name)?;
        for updates in [2_000, 20_000] {
            let watches = [Watch::None, Watch::Pseudo, Watch::Likelihood];
            let mut times = [const { Vec::new() }; 3];
            for _ in 0..3 {
                for (watch, times) in watches.iter().zip(&mut times) {
                    times.push(time(&set, updates, *watch)?);
                }
            }
            let [none, pseudo, likelihood] = times.map(|mut t| {
                t.sort_by(f64::total_cmp);
                t[1]
            });
            println!(
                "{name:11}  {updates:7}  {none:7.2}  {:+6.2}  {:+10.2}  {:.0} %",
                pseudo - none,
                likelihood - none,
                100.0 * (likelihood - none) / none
            );
        }
    }
    Ok(())
}

/// Processor time of one run.
fn time(set: &Set, updates: u64, watch: Watch) -> Fallible<f64> {
    let folder = std::env::temp_dir().join(format!("harmonium-watching-{}", std::process::id()));
    let mut writer = RunDirectory::create(&folder, Overwrite::Yes)?;
    writer.write_config("")?;
    let plan = Plan::for_epochs(updates.div_ceil(set.train.n_rows().div_ceil(100) as u64));
    let rbm = Rbm::binary(set.train.n_columns(), 200)?;
    let training = Training::new(rbm.into_machine(), &set.train, &plan);
    let recording = Recording {
        about: About { data: training.memory()?, ..About::default() },
        train: &set.train,
        valid: Some(&set.valid),
        patience: None,
        checkpoint_seconds: 1e9,
        watch,
        guarding: plan.guarding(),
        metrics: Vec::new(),
    };
    let mut learner = training.learner()?;
    let start = cpu_seconds()?;
    writer.record(learner.as_mut(), recording, None, &mut Silent)?;
    let seconds = cpu_seconds()? - start;
    drop(writer);
    std::fs::remove_dir_all(&folder)?;
    Ok(seconds)
}
