//! Bars and stripes 3×3 with 16 hidden units: ten seeds, exactly and by persistent chains, against
//! the best total any model can reach.

use crate::Outcome;
use harmonium::evaluation::likelihood;
use harmonium::models::Rbm;
use harmonium::optim::Schedule;
use harmonium::training::{Plan, Rule, train};
use harmonium_data::{Binarize, Dataset, synthetic};
use std::time::Instant;

const GOOD: f64 = -42.5;

pub(crate) fn run() -> Outcome {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted)?;
    let data = Dataset::new(table, Binarize::None)?;
    println!(
        "bars and stripes 3x3, 16 rows, 16 hidden; best possible {:.4}",
        synthetic::best_total(data.table())
    );
    let base = Plan {
        epochs: 4000,
        learning_rate: 0.5,
        momentum: Schedule::Constant(0.0),
        l2: 0.0,
        chains: 500,
        ..Plan::default()
    };
    for (rule, k) in [(Rule::Exact, 1.0), (Rule::Pcd, 10.0)] {
        let start = Instant::now();
        let mut totals = Vec::new();
        for seed in 0..10 {
            let plan = Plan { rule, seed, k: Schedule::Constant(k), ..base.clone() };
            let outcome = train(Rbm::binary(9, 16)?.into_machine(), &data, &plan, &mut [])?;
            totals.push(likelihood::exact(&outcome.machine, &data)?.total());
        }
        let good = totals.iter().filter(|t| **t >= GOOD).count();
        let list: Vec<String> = totals.iter().map(|t| format!("{t:.2}")).collect();
        println!(
            "{rule:?}: {good} of 10 at {GOOD} or better, {:.0} s: {}",
            start.elapsed().as_secs_f64(),
            list.join(" ")
        );
        if good < 9 {
            return Err(format!("{rule:?} reached {GOOD} in only {good} of 10 seeds").into());
        }
    }
    Ok(())
}
