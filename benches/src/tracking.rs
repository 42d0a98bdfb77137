//! The tracked likelihood against the exact one, over whole trainings of twenty small machines at rates from
//! safe to absurd.

use crate::report::Flags;
use crate::{Fallible, Outcome};
use harmonium::engine::Arithmetic;
use harmonium::evaluation::log_partition::{TRACKING_ROUNDS, Tracker};
use harmonium::exact;
use harmonium::machine::Machine;
use harmonium::models::{Bm, Dbm, Lateral, Rbm};
use harmonium::sampling::Sampler;
use harmonium::training::{Every, Plan, View, train};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, synthetic};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: reproduce tracking [--quick]";
const RATES: [f64; 4] = [0.01, 0.1, 1.0, 10.0];

/// What the looks of one training found.
#[derive(Default)]
struct Looks {
    /// Of each look the distance from the exact ln Z, and the error bar.
    found: Vec<(f64, f64)>,
    looking: Duration,
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let quick = Flags::parse(words, USAGE)?.has("--quick");
    let (seeds, epochs) = if quick { (1, 240) } else { (5, 1000) };
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted)?;
    let data = Dataset::new(table, Binarize::None)?;
    println!("bars and stripes 3x3, {epochs} epochs, a look every {} epochs", epochs / 20);
    println!("machine            rate  looks  within 3 bars  median bar  largest bar");
    let (mut inside, mut all) = (0, 0);
    for (name, machine) in machines()? {
        for rate in RATES {
            let mut bars = Vec::new();
            let mut within = 0;
            for seed in 0..seeds {
                let looks = track(&machine, &data, rate, epochs, seed)?;
                within += looks.found.iter().filter(|(d, bar)| d.abs() <= 3.0 * bar).count();
                bars.extend(looks.found.iter().map(|f| f.1));
            }
            bars.sort_by(f64::total_cmp);
            let (median, largest) = (bars[bars.len() / 2], bars[bars.len() - 1]);
            println!(
                "{name:16} {rate:6}  {:5}  {within:13}  {median:10.3}  {largest:11.3}",
                bars.len()
            );
            inside += within;
            all += bars.len();
        }
    }
    println!("{inside} of {all} looks are within three error bars");
    if inside * 100 < all * 95 {
        return Err("fewer than 95 % of the looks are within three error bars".into());
    }
    Ok(())
}

fn machines() -> Fallible<Vec<(&'static str, Machine)>> {
    let (v, b) = ((Units::Binary, 9), Units::Binary);
    Ok(vec![
        ("RBM 9-12", Rbm::binary(9, 12)?.into_machine()),
        ("RBM 9-6 of spins", Rbm::new(v, (Units::Spin, 6))?.into_machine()),
        ("DBM 9-8-5", Dbm::binary(9, &[8, 5])?.into_machine()),
        ("BM 9-5", Bm::new(v, (b, 5), Lateral::Both)?.into_machine()),
        ("BM 9-8, visible", Bm::new(v, (b, 8), Lateral::Visible)?.into_machine()),
    ])
}

fn track(machine: &Machine, data: &Dataset, rate: f64, epochs: u64, seed: u64) -> Fallible<Looks> {
    let plan = Plan { epochs, batch: 8, learning_rate: rate, seed, ..Plan::default() };
    let mut tracker = Tracker::new(data.column_means(), seed);
    let (mut looks, mut failed) = (Looks::default(), None);
    let mut look = Every::new(epochs / 20, |view: &View<'_>| {
        let mut one = || -> Result<(), harmonium::Error> {
            let sampler = Sampler::new(view.machine()?.clone(), Arithmetic::F32);
            let truth = exact::log_partition(sampler.machine())?;
            let start = Instant::now();
            let chains = view.watched().and_then(|w| w.chains);
            let found = tracker.look(&sampler, chains, TRACKING_ROUNDS)?;
            looks.looking += start.elapsed();
            looks.found.push((found.log_z - truth, found.std_error));
            Ok(())
        };
        failed = failed.take().or(one().err());
        ControlFlow::Continue(())
    });
    train(machine.clone(), data, &plan, &mut [&mut look])?;
    failed.map_or(Ok(looks), |error| Err(error.into()))
}
