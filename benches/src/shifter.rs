//! The labelled shifter (Hinton & Sejnowski 1986): 8 bits, the same shifted by one place to the
//! left, to the right or not at all around the ring, and which it was. No pair of units says
//! anything about the shift, so hidden units must. An RBM learns it by persistent chains; the
//! total log-likelihood is exact.

use crate::Outcome;
use harmonium::evaluation::likelihood;
use harmonium::models::Rbm;
use harmonium::optim::Schedule;
use harmonium::training::{Plan, Rule, train};
use harmonium_data::{Binarize, Dataset, synthetic};
use std::time::Instant;

/// How far the total may stay behind the best possible one.
const TOLERANCE: f64 = 0.1;
const N_HIDDEN: usize = 40;
const SEEDS: u64 = 3;

pub(crate) fn run() -> Outcome {
    let data = Dataset::new(synthetic::shifter()?, Binarize::None)?;
    let best = synthetic::best_total(data.table());
    let n = data.n_columns();
    println!(
        "labelled shifter, {} rows, {N_HIDDEN} hidden; best possible {best:.2}",
        data.n_rows()
    );
    for seed in 0..SEEDS {
        let start = Instant::now();
        let plan = Plan {
            seed,
            epochs: 4000,
            rule: Rule::Pcd,
            chains: 500,
            k: Schedule::Constant(5.0),
            learning_rate: 0.2,
            momentum: Schedule::Constant(0.0),
            l2: 0.0,
            ..Plan::default()
        };
        let outcome = train(Rbm::binary(n, N_HIDDEN)?.into_machine(), &data, &plan, &mut [])?;
        let total = likelihood::exact(&outcome.machine, &data)?.total();
        println!(
            "seed {seed}: {total:.2}, {:.1} % behind, {:.0} s",
            100.0 * (best - total) / best.abs(),
            start.elapsed().as_secs_f64()
        );
        if total < best * (1.0 + TOLERANCE) {
            return Err(
                format!("seed {seed} stayed more than {TOLERANCE} of the best behind").into()
            );
        }
    }
    Ok(())
}
