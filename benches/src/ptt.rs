//! Trajectory tempering against plain persistent chains and parallel tempering, each with the same processor time.
//!
//! The time is that of trajectory tempering with one sweep between updates. Plain chains spend it on more sweeps, or on more
//! epochs; parallel tempering on as many ladders as it buys. How many that are is measured on a part of the training, and the
//! processor time of every run stands beside its result.
//!
//! Test likelihoods are bracketed by annealing from both sides. Beside them stand how far the chains' mean free energy is from
//! that of tempered samples that owe nothing to the training, in standard deviations (`lag`), and for trajectory tempering
//! $\ln Z$ by its own ladder beside the two-sided estimate. The first table holds ladders of small machines against enumeration.

use crate::report::Flags;
use crate::sets::{Bracketed, cpu_seconds, file};
use crate::{Fallible, Outcome};
use harmonium::evaluation::monitor::Monitor;
use harmonium::evaluation::tracking::Watch;
use harmonium::exact;
use harmonium::machine::Machine;
use harmonium::models::{Bm, Dbm, Lateral, Rbm};
use harmonium::optim::Schedule;
use harmonium::sampling::TrackedLogPartition;
use harmonium::training::{
    Learner, Measurements, MetricName, Plan, Rule, Stop, Trainer, initialise,
};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, synthetic};

const USAGE: &str = "usage: reproduce ptt [--only NAME,…] [--quick] [--chains N] [--reservoir N] [--k N] [--freeze-below X]";

/// Ladders of parallel tempering that are timed.
const LADDERS: usize = 10;
/// Sweeps of plain chains that are timed.
const SWEEPS: f64 = 11.0;
/// Temperatures and chains behind likelihoods.
const WORK: (usize, usize) = (1000, 100);

/// A problem, and how long it is learned.
struct Problem<'a> {
    name: &'static str,
    files: [&'a str; 2],
    binarize: Binarize,
    hidden: &'a [usize],
    learning_rates: [f64; 2],
    epochs: u64,
    /// Test rows that are scored.
    rows: usize,
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let flags = Flags::parse(words, USAGE)?;
    let picked: Vec<String> = flags.list("--only", &[])?;
    let wanted = |name: &str| picked.is_empty() || picked.iter().any(|p| name.contains(p.as_str()));
    let short = |epochs: u64| if flags.has("--quick") { (epochs / 10).max(1) } else { epochs };
    if wanted("enumeration") {
        enumeration(&flags)?;
    }
    let mushrooms =
        ["density/mushrooms/mushrooms.train.data", "density/mushrooms/mushrooms.test.data"];
    let plants = ["density/plants/plants.train.data", "density/plants/plants.test.data"];
    let mnist = ["mnist/train-images-idx3-ubyte.gz", "mnist/t10k-images-idx3-ubyte.gz"];
    let whole = usize::MAX;
    let (none, threshold) = (Binarize::None, Binarize::Threshold(0.5));
    let problem = |name, files, binarize, hidden, learning_rates, epochs, rows| {
        let epochs = short(epochs);
        Problem { name, files, binarize, hidden, learning_rates, epochs, rows }
    };
    let problems = [
        problem("mushrooms, rbm 200", mushrooms, none, &[200][..], [0.01, 0.05], 200, whole),
        problem("plants, rbm 200", plants, none, &[200], [0.01, 0.05], 50, whole),
        problem("mnist, rbm 500", mnist, threshold, &[500], [0.01, 0.05], 3, whole),
        problem("mushrooms, dbm 100-50", mushrooms, none, &[100, 50], [0.01, 0.05], 200, 200),
    ];
    for problem in problems.iter().filter(|p| wanted(p.name)) {
        problem.run(&flags)?;
    }
    Ok(())
}

/// Small machines with modes that sweeps alone do not leave, trained until their ladders are long.
fn enumeration(flags: &Flags) -> Outcome {
    let (visible, b) = ((Units::Binary, 9), Units::Binary);
    let machines = [
        ("rbm 9-10", Rbm::binary(9, 10)?.into_machine()),
        ("dbm 9-6-4", Dbm::binary(9, &[6, 4])?.into_machine()),
        ("bm 9-5", Bm::new(visible, (b, 5), Lateral::Both)?.into_machine()),
        ("bm 9, visible", Bm::new(visible, (b, 0), Lateral::Visible)?.into_machine()),
    ];
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted)?;
    let data = Dataset::new(table, Binarize::None)?;
    let (chains, k): (Vec<usize>, Vec<f64>) =
        (flags.list("--chains", &[100])?, flags.list("--k", &[1.0])?);
    let reservoir: Vec<usize> = flags.list("--reservoir", &[])?;
    let freeze: Vec<f64> = flags.list("--freeze-below", &[])?;
    println!("ln Z by the ladder against enumeration: bars and stripes 3x3, rate 0.5, 10 seeds");
    println!("machine         machines  settled  mean bar  mean error  mean (error/bar)²");
    for (name, machine) in machines {
        let (mut rungs, mut settled, mut bars, mut errors, mut squares) = (0, 0, 0.0, 0.0, 0.0);
        let seeds = 10;
        for seed in 0..seeds {
            let plan = Plan {
                rule: Rule::Ptt,
                epochs: if flags.has("--quick") { 300 } else { 3000 },
                batch: 16,
                learning_rate: 0.5,
                l2: 0.0,
                chains: chains[0],
                reservoir: reservoir.first().copied(),
                freeze_below: freeze.first().copied(),
                k: Schedule::Constant(k[0]),
                seed,
                ..Plan::default()
            };
            let trainer = train(machine.clone(), &data, &plan)?.0;
            let found = tracked(&trainer)?.ok_or("a ladder knows ln Z")?;
            let off = found.log_z - exact::log_partition(trainer.machine())?;
            rungs += found.rungs;
            settled += usize::from(found.is_settled);
            (bars, errors) = (bars + found.std_error, errors + off);
            squares += (off / found.std_error).powi(2);
        }
        let n = seeds as f64;
        println!(
            "{name:14}  {:8.1}  {settled:4}/{seeds}  {:8.3}  {:+10.3}  {:17.2}",
            rungs as f64 / n,
            bars / n,
            errors / n,
            squares / n
        );
    }
    Ok(())
}

/// Trains from the data's own start: the trainer, the processor time it took and how it ended.
fn train<'d>(
    mut machine: Machine,
    data: &'d Dataset,
    plan: &Plan,
) -> Fallible<(Trainer<'d>, f64, Stop)> {
    initialise(&mut machine, data, plan)?;
    let mut trainer = Trainer::new(machine, data, plan)?;
    let start = cpu_seconds()?;
    let stop = trainer.run(&mut [])?;
    Ok((trainer, cpu_seconds()? - start, stop))
}

/// What the model side knows of ln Z.
fn tracked(trainer: &Trainer<'_>) -> Fallible<Option<TrackedLogPartition>> {
    let watched = trainer.watched().ok_or("a trainer of a machine can be watched")?;
    Ok(watched.model_side.log_partition(watched.sampler)?)
}

impl Problem<'_> {
    fn run(&self, flags: &Flags) -> Outcome {
        let [train, test] = self.files.map(|name| file(name, self.binarize));
        let (train, test) = (train?, test?);
        for learning_rate in self.learning_rates {
            self.run_at(learning_rate, flags, (&train, &test))?;
        }
        Ok(())
    }

    fn run_at(
        &self,
        learning_rate: f64,
        flags: &Flags,
        (train, test): (&Dataset, &Dataset),
    ) -> Outcome {
        println!("{}, rate {learning_rate}, {} epochs", self.name, self.epochs);
        let plan = Plan { learning_rate, ..Plan::for_epochs(self.epochs) };
        let freeze_below = flags.list("--freeze-below", &[])?.first().copied();
        let k = Schedule::Constant(flags.list("--k", &[1.0])?[0]);
        let tempered = Plan { rule: Rule::Ptt, freeze_below, k, ..plan.clone() };
        let time = self.measure("ptt, k 1", &tempered, (train, test))?;
        // What a sweep, an epoch and a ladder cost, on a part of the training.
        let part = self.epochs.div_ceil(10).max(1);
        let share = part as f64 / self.epochs as f64;
        let timed = |plan: Plan| -> Fallible<f64> {
            Ok((self.train(train, &Plan { epochs: part, ..plan })?.1 / share).max(0.01))
        };
        let one = timed(plan.clone())?;
        let many = timed(Plan { k: Schedule::Constant(SWEEPS), ..plan.clone() })?;
        let ladders =
            timed(Plan { rule: Rule::Pt, chains: LADDERS, ..plan.clone() })? / LADDERS as f64;
        let sweeps =
            (1.0 + (time - one) * (SWEEPS - 1.0) / (many - one).max(1e-3)).round().max(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let (epochs, ladders) = (
            (self.epochs as f64 * time / one).round().max(1.0) as u64,
            (time / ladders).round().max(1.0) as usize,
        );
        let longer = Plan { epochs, ..plan.clone() };
        self.measure(&format!("pcd, k 1, {epochs} epochs"), &longer, (train, test))?;
        let more = Plan { k: Schedule::Constant(sweeps), ..plan.clone() };
        self.measure(&format!("pcd, k {sweeps}"), &more, (train, test))?;
        let pt = Plan { rule: Rule::Pt, chains: ladders, ..plan };
        self.measure(&format!("pt, {ladders} ladders of 10"), &pt, (train, test))?;
        Ok(())
    }

    fn train<'d>(&self, data: &'d Dataset, plan: &Plan) -> Fallible<(Trainer<'d>, f64, Stop)> {
        let machine = match self.hidden {
            [n] => Rbm::binary(data.n_columns(), *n)?.into_machine(),
            layers => Dbm::binary(data.n_columns(), layers)?.into_machine(),
        };
        train(machine, data, plan)
    }

    /// Trains once and prints what it led to; the processor time.
    fn measure(
        &self,
        name: &str,
        plan: &Plan,
        (train, test): (&Dataset, &Dataset),
    ) -> Fallible<f64> {
        let (trainer, seconds, stop) = self.train(train, plan)?;
        if stop != Stop::Finished {
            println!("  {name:22} {seconds:6.1} s  {}", stop.word());
            return Ok(seconds);
        }
        let watched = trainer.watched().ok_or("a trainer of a machine can be watched")?;
        let mut monitor = Monitor::new(train, None, plan.seed).watching(Watch::Likelihood);
        let found: Measurements = monitor.measure_likelihood(&watched, plan.epochs, 1)?.into();
        let mixing = |name: &MetricName| match found.get(name) {
            Some(m) => format!("{:+5.1} ± {:.1}", m.value, m.std_error.unwrap_or(0.0)),
            None => "          –".to_owned(),
        };
        let model = Bracketed::new(trainer.machine(), train, WORK)?;
        let [lower, _, upper] = model.on(test, self.rows)?;
        let rate = watched.model_side.caution();
        let ladder = tracked(&trainer)?.map_or(String::new(), |t| ladder(&t, rate, &model));
        println!(
            "  {name:22} {seconds:6.1} s  test {lower:8.2} … {upper:8.2}  lag {}{ladder}",
            mixing(&MetricName::ChainsLag)
        );
        Ok(seconds)
    }
}

/// $\ln Z$ by the ladder of a trajectory, beside a two-sided estimate.
fn ladder(tracked: &TrackedLogPartition, rate: f64, model: &Bracketed<'_>) -> String {
    format!(
        "  ln Z {:.2} ± {:.2} by {} machines ({}; rate {rate:.0e} of the plan's), two-sided {:.2} … {:.2}",
        tracked.log_z,
        tracked.std_error,
        tracked.rungs,
        if tracked.is_settled { "settled" } else { "not settled" },
        model.log_z.lower,
        model.log_z.upper
    )
}
