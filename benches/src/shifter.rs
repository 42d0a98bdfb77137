//! The labelled shifter (Hinton & Sejnowski 1986): 8 bits, the same shifted by one place to the
//! left, to the right or not at all around the ring, and which it was. No pair of units says
//! anything about the shift, so hidden units must. The total log-likelihood is exact.

use crate::{Fallible, Outcome};
use harmonium::evaluation::likelihood;
use harmonium::machine::Machine;
use harmonium::models::{Bm, Lateral, Rbm};
use harmonium::optim::Schedule;
use harmonium::training::{Plan, Rule, train};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, synthetic};
use std::time::Instant;

/// How far the total may stay behind the best possible one.
const TOLERANCE: f64 = 0.1;
const N_HIDDEN: usize = 40;

pub(crate) fn run() -> Outcome {
    let data = Dataset::new(synthetic::shifter()?, Binarize::None)?;
    let best = synthetic::best_total(data.table());
    let n = data.n_columns();
    println!(
        "labelled shifter, {} rows, {N_HIDDEN} hidden; best possible {best:.2}",
        data.n_rows()
    );
    let binary = |n| (Units::Binary, n);
    let semi = Bm::new(binary(n), binary(N_HIDDEN), Lateral::Visible)?.into_machine();
    let plan = Plan {
        rule: Rule::Pcd,
        chains: 500,
        k: Schedule::Constant(5.0),
        learning_rate: 0.2,
        momentum: Schedule::Constant(0.0),
        l2: 0.0,
        ..Plan::default()
    };
    learn(
        "rbm",
        Rbm::binary(n, N_HIDDEN)?.into_machine(),
        &data,
        best,
        &Plan { epochs: 4000, ..plan.clone() },
    )?;
    learn("bm, visible units coupled", semi, &data, best, &Plan { epochs: 4000, ..plan })
}

fn learn(name: &str, machine: Machine, data: &Dataset, best: f64, plan: &Plan) -> Fallible<()> {
    let start = Instant::now();
    let outcome = train(machine, data, plan, &mut [])?;
    let total = likelihood::exact(&outcome.machine, data)?.total();
    println!(
        "{name}: {total:.2}, {:.1} % behind, {} epochs in {:.0} s",
        100.0 * (best - total) / best.abs(),
        outcome.epochs,
        start.elapsed().as_secs_f64()
    );
    if total < best * (1.0 + TOLERANCE) {
        return Err(format!("{name} stayed more than {TOLERANCE} of the best behind").into());
    }
    Ok(())
}
