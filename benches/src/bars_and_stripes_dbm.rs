//! Bars and stripes 4×4, each of the 30 patterns once, with an RBM and a DBM: three seeds each by
//! persistent chains, and the DBM's data side by mean field, exactly and by clamped Gibbs sampling.

use crate::Outcome;
use harmonium::evaluation::likelihood;
use harmonium::machine::Machine;
use harmonium::models::{Dbm, Rbm};
use harmonium::optim::Schedule;
use harmonium::training::{Plan, Posterior, Rule, train};
use harmonium_data::{Binarize, Dataset, synthetic};
use std::time::Instant;

const GOOD: f64 = -106.0;
const SEEDS: u64 = 3;

pub(crate) fn run() -> Outcome {
    let table = synthetic::bars_and_stripes(4, synthetic::Repeats::Distinct)?;
    let data = Dataset::new(table, Binarize::None)?;
    println!(
        "bars and stripes 4x4, 30 rows; best possible {:.4}",
        synthetic::best_total(data.table())
    );
    let rbm = || Rbm::binary(16, 16).map(Rbm::into_machine);
    let dbm = || Dbm::binary(16, &[16, 8]).map(Dbm::into_machine);
    learn("rbm 16-16", rbm, Posterior::Auto, &data)?;
    learn("dbm 16-16-8, mean field", dbm, Posterior::MeanField, &data)?;
    learn("dbm 16-16-8, exact posterior", dbm, Posterior::Exact, &data)?;
    learn("dbm 16-16-8, clamped Gibbs", dbm, Posterior::Gibbs, &data)
}

fn learn(
    name: &str,
    machine: impl Fn() -> Result<Machine, harmonium::Error>,
    posterior: Posterior,
    data: &Dataset,
) -> Outcome {
    let start = Instant::now();
    let mut totals = Vec::new();
    for seed in 0..SEEDS {
        let plan = Plan {
            seed,
            posterior,
            rule: Rule::Pcd,
            epochs: 10_000,
            chains: 500,
            k: Schedule::Constant(10.0),
            learning_rate: 0.1,
            momentum: Schedule::Constant(0.0),
            l2: 0.0,
            ..Plan::default()
        };
        let outcome = train(machine()?, data, &plan, &mut [])?;
        totals.push(likelihood::exact(&outcome.machine, data)?.total());
    }
    let list: Vec<String> = totals.iter().map(|t| format!("{t:.2}")).collect();
    println!("{name}: {} ({:.0} s)", list.join(" "), start.elapsed().as_secs_f64());
    if totals.iter().any(|t| *t < GOOD) {
        return Err(format!("{name} stayed below {GOOD}").into());
    }
    Ok(())
}
