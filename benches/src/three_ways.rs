//! One general Boltzmann machine, coupled inside both layers, learned with three data sides:
//! exactly, by clamped Gibbs sampling and by mean field. The model side is exact in the first
//! column, so that nothing else differs, and by persistent chains in the second. All likelihoods
//! are exact.

use crate::Outcome;
use harmonium::evaluation::likelihood;
use harmonium::models::{Bm, Lateral};
use harmonium::optim::Schedule;
use harmonium::training::{Plan, Posterior, Rule, train};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, synthetic};
use std::time::Instant;

const SEEDS: u64 = 2;
const N_HIDDEN: usize = 5;

pub(crate) fn run() -> Outcome {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted)?;
    let data = Dataset::new(table, Binarize::None)?;
    let n = data.n_columns();
    println!(
        "bars and stripes 3x3, 16 rows, bm 9-{N_HIDDEN} with laterals in both layers; best possible {:.4}",
        synthetic::best_total(data.table())
    );
    for (name, posterior) in [
        ("exact", Posterior::Exact),
        ("clamped Gibbs", Posterior::Gibbs),
        ("mean field", Posterior::MeanField),
    ] {
        let start = Instant::now();
        let mut line = format!("{name:14}");
        for (rule, learning_rate) in [(Rule::Exact, 0.5), (Rule::Pcd, 0.1)] {
            let mut totals = Vec::new();
            for seed in 0..SEEDS {
                let plan = Plan {
                    seed,
                    posterior,
                    rule,
                    learning_rate,
                    epochs: 3000,
                    chains: 500,
                    k: Schedule::Constant(10.0),
                    momentum: Schedule::Constant(0.0),
                    l2: 0.0,
                    ..Plan::default()
                };
                let machine =
                    Bm::new((Units::Binary, n), (Units::Binary, N_HIDDEN), Lateral::Both)?;
                let outcome = train(machine.into_machine(), &data, &plan, &mut [])?;
                totals.push(likelihood::exact(&outcome.machine, &data)?.total());
            }
            let list: Vec<String> = totals.iter().map(|t| format!("{t:.2}")).collect();
            line = format!("{line}  model side {rule:?}: {}", list.join(" "));
        }
        println!("{line}  ({:.0} s)", start.elapsed().as_secs_f64());
    }
    Ok(())
}
