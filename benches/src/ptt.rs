//! Trajectory tempering against plain persistent chains and parallel tempering, each with about the
//! same time: more sweeps for the first, fewer ladders for the second. Times are printed beside the results.
//!
//! Test likelihoods are bracketed by annealing from both sides. Beside them stand how far the chains'
//! mean free energy is from that of the training data (far below: the chains do not mix), and for
//! trajectory tempering $\ln Z$ by its own ladder beside the two-sided estimate.

use crate::{Fallible, Outcome};
use harmonium::engine::Arithmetic;
use harmonium::evaluation::likelihood;
use harmonium::evaluation::log_partition::{Settings, log_partition};
use harmonium::evaluation::row_sums::{RowWork, Sums, log_sums};
use harmonium::machine::Machine;
use harmonium::models::{Dbm, Rbm};
use harmonium::optim::Schedule;
use harmonium::progress::Silent;
use harmonium::random::Stream;
use harmonium::sampling::{Clamp, Sampler, TrackedLogPartition};
use harmonium::schema::Feed;
use harmonium::training::{Learner, Plan, Rule, Stop, Trainer, initialise};
use harmonium_data::{Binarize, Dataset, Options, open_dataset};
use std::path::Path;
use std::time::Instant;

/// Rows that are looked at together.
const TOGETHER: usize = 500;

/// A problem, and how long it is learned.
struct Problem<'a> {
    name: &'static str,
    files: [&'a str; 2],
    binarize: Binarize,
    hidden: &'a [usize],
    learning_rate: f64,
    epochs: u64,
    /// Sweeps of plain chains, and ladders of parallel tempering, that take about as long.
    sweeps: f64,
    ladders: usize,
    /// Test rows that are scored.
    rows: usize,
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let quick = words.contains(&"--quick");
    let picked: Vec<&str> = words.iter().copied().filter(|w| !w.starts_with("--")).collect();
    let short = |epochs: u64| if quick { (epochs / 10).max(1) } else { epochs };
    let mushrooms =
        ["density/mushrooms/mushrooms.train.data", "density/mushrooms/mushrooms.test.data"];
    let plants = ["density/plants/plants.train.data", "density/plants/plants.test.data"];
    let mnist = ["mnist/train-images-idx3-ubyte.gz", "mnist/t10k-images-idx3-ubyte.gz"];
    let whole = usize::MAX;
    let problems = [
        Problem {
            name: "mushrooms, rbm 200",
            files: mushrooms,
            binarize: Binarize::None,
            hidden: &[200],
            learning_rate: 0.05,
            epochs: short(100),
            sweeps: 10.0,
            ladders: 20,
            rows: whole,
        },
        Problem {
            name: "plants, rbm 200",
            files: plants,
            binarize: Binarize::None,
            hidden: &[200],
            learning_rate: 0.05,
            epochs: short(50),
            sweeps: 10.0,
            ladders: 20,
            rows: whole,
        },
        Problem {
            name: "mnist, rbm 500",
            files: mnist,
            binarize: Binarize::Threshold(0.5),
            hidden: &[500],
            learning_rate: 0.05,
            epochs: short(10),
            sweeps: 10.0,
            ladders: 10,
            rows: whole,
        },
        Problem {
            name: "mushrooms, dbm 100-50",
            files: mushrooms,
            binarize: Binarize::None,
            hidden: &[100, 50],
            learning_rate: 0.02,
            epochs: short(100),
            sweeps: 10.0,
            ladders: 20,
            rows: 200,
        },
    ];
    for problem in problems.iter().filter(|p| picked.iter().all(|word| p.name.contains(word))) {
        problem.run()?;
    }
    Ok(())
}

impl Problem<'_> {
    fn run(&self) -> Outcome {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
        let [train, test] = self.files.map(|name| -> Fallible<Dataset> {
            let path = folder.join(name);
            let path = path.to_str().ok_or("a path that is not text")?;
            Ok(open_dataset(path, &Options::default(), self.binarize)?.dataset)
        });
        let (train, test) = (train?, test?);
        println!("{}, rate {}, {} epochs", self.name, self.learning_rate, self.epochs);
        let usual =
            Plan { epochs: self.epochs, learning_rate: self.learning_rate, ..Plan::default() };
        let k = Schedule::Constant(self.sweeps);
        for (name, plan) in [
            ("pcd, k 1".to_owned(), usual.clone()),
            (format!("pcd, k {}", self.sweeps), Plan { k, ..usual.clone() }),
            (
                format!("pt, {} ladders of 10", self.ladders),
                Plan { rule: Rule::Pt, chains: self.ladders, ..usual.clone() },
            ),
            ("ptt, k 1".to_owned(), Plan { rule: Rule::Ptt, ..usual.clone() }),
            (
                "ptt, k 4".to_owned(),
                Plan { rule: Rule::Ptt, k: Schedule::Constant(4.0), ..usual.clone() },
            ),
        ] {
            self.measure(&name, &plan, (&train, &test))?;
        }
        Ok(())
    }

    /// Trains once, and prints what it led to.
    fn measure(&self, name: &str, plan: &Plan, (train, test): (&Dataset, &Dataset)) -> Outcome {
        let mut machine = match self.hidden {
            [n] => Rbm::binary(train.n_columns(), *n)?.into_machine(),
            layers => Dbm::binary(train.n_columns(), layers)?.into_machine(),
        };
        initialise(&mut machine, train, plan)?;
        let mut trainer = Trainer::new(machine, train, plan)?;
        let start = Instant::now();
        let stop = trainer.run(&mut [])?;
        let seconds = start.elapsed().as_secs_f64();
        if stop != Stop::Finished {
            println!("  {name:22} {seconds:6.1} s  {}", stop.word());
            return Ok(());
        }
        let watched = trainer.watched().ok_or("a trainer of a machine can be watched")?;
        let tracked = watched.model_side.log_partition(watched.sampler)?;
        let gap = match watched.chains {
            Some(x) => {
                let machine = watched.sampler.machine();
                let sums = sums(machine, &x.clone(), 0)?;
                let rows = first_sums(machine, train, 1000)?;
                let mean = |sums: &Sums| sums.rows.iter().sum::<f64>() / sums.rows.len() as f64;
                format!("{:+7.2}", mean(&rows) - mean(&sums))
            }
            None => "      –".to_owned(),
        };
        let machine = trainer.machine();
        let feed = Feed::of(machine, train)?;
        let settings = Settings { means: Some(feed.means().concat()), ..Settings::default() };
        let log_z = log_partition(machine, &settings, &mut Silent)?;
        let rows = first_sums(machine, test, self.rows)?;
        let found = likelihood::estimate(&rows, &vec![1.0; rows.rows.len()], &log_z);
        let ladder = tracked.map_or(String::new(), |t| ladder(&t, &log_z));
        println!(
            "  {name:22} {seconds:6.1} s  test {:8.2} … {:8.2}  F(chains) - F(data) {gap}{ladder}",
            found.lower, found.upper
        );
        Ok(())
    }
}

/// Sums of the first `n` rows of a set.
fn first_sums(machine: &Machine, data: &Dataset, n: usize) -> Fallible<Sums> {
    let feed = Feed::of(machine, data)?;
    let n = n.min(data.n_rows());
    let mut all = Sums::none();
    for first in (0..n).step_by(TOGETHER) {
        let batch = feed.batch(first..(first + TOGETHER).min(n), Stream::new(0));
        all.extend(sums(machine, &batch.to_state(machine)?, first)?);
    }
    Ok(all)
}

/// $\ln\sum_h e^{-E}$ of each row.
fn sums(machine: &Machine, x: &harmonium::machine::State, first: usize) -> Fallible<Sums> {
    let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
    Ok(log_sums(&sampler, &Clamp::visible(machine), x, first, &RowWork::default())?)
}

/// $\ln Z$ by the ladder of a trajectory, beside a two-sided estimate.
fn ladder(
    tracked: &TrackedLogPartition,
    log_z: &harmonium::evaluation::log_partition::LogPartition,
) -> String {
    format!(
        "  ln Z {:.2} ± {:.2} by {} machines ({}), two-sided {:.2} … {:.2}",
        tracked.log_z,
        tracked.std_error,
        tracked.rungs,
        if tracked.is_settled { "settled" } else { "not settled" },
        log_z.lower,
        log_z.upper
    )
}
