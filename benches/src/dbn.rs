//! A deep belief network on the embedded digits, small enough that everything is exact: the first
//! RBM, a second one on it, and all weights refined by up–down, side by side.

use crate::{Fallible, Outcome};
use harmonium::evaluation::dbn::{exact, importance};
use harmonium::exact::log_partition;
use harmonium::models::Dbn;
use harmonium::optim::Schedule;
use harmonium::random::Stream;
use harmonium::training::{DbnShape, Plan, Stack, Trainer, UpDown};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, digits};
use std::time::Instant;

/// Units of the two hidden layers: the first is summed over, and the second is as large as the
/// visible layer, so that it may start as the first RBM upside down.
const HIDDEN: [usize; 2] = [12, 64];
const TEST_ROWS: usize = 297;
const DRAWS: usize = 20;

pub(crate) fn run() -> Outcome {
    let (table, _) = digits::digits()?;
    let data = Dataset::new(table, Binarize::Threshold(0.5))?;
    let n = data.n_rows();
    let train = data.select_rows(&(0..n - TEST_ROWS).collect::<Vec<_>>())?;
    let test = data.select_rows(&(n - TEST_ROWS..n).collect::<Vec<_>>())?;
    let shape = DbnShape { visible: (Units::Binary, 64), hidden: HIDDEN.to_vec(), n_classes: 0 };
    let plan = Plan { epochs: 200, batch: 50, learning_rate: 0.05, ..Plan::default() };
    let stack = Stack::new(shape, &train, &plan)?;
    println!(
        "digits at 0.5, {} rows to learn from, {TEST_ROWS} to test; 64-{}-{}, nats per row\n\n{:34} {:>9} {:>9} {:>11} {:>9} {:>6}",
        train.n_rows(),
        HIDDEN[0],
        HIDDEN[1],
        "",
        "exact",
        "bound",
        "importance",
        "test",
        "s"
    );
    let start = Instant::now();
    let first = stack.first()?;
    let rbm = learn(&stack, &first, stack.initial(&first, &stack.data(&first))?)?;
    let alone = tell("the first RBM", &rbm, &train, &test, start)?;

    let start = Instant::now();
    let fresh = stack.next(rbm.clone())?;
    let initial = stack.initial(&fresh, &stack.data(&fresh))?;
    let random = learn(&stack, &fresh, initial)?;
    tell("a second on it, from random weights", &random, &train, &test, start)?;

    let start = Instant::now();
    let turned = rbm.deepened()?;
    let begun = tell("a second on it, upside down", &turned, &train, &test, start)?;
    let top = turned.top().clone();
    let deep = learn(&stack, &turned, top)?;
    let stacked = tell("… and trained", &deep, &train, &test, start)?;

    let start = Instant::now();
    let gentle = Plan {
        epochs: 100,
        learning_rate: 0.01,
        momentum: Schedule::Constant(0.5),
        ..stack.plan(3)
    };
    let refined = UpDown::new(deep, &train, &gentle)?.run()?;
    let after = tell("… and refined by up–down", &refined, &train, &test, start)?;
    if (begun - alone).abs() > 1e-9 {
        return Err(format!("the upside-down layer changed {alone} to {begun}").into());
    }
    if stacked <= alone || after <= stacked {
        return Err(format!("no gain: {alone:.3}, {stacked:.3}, {after:.3}").into());
    }
    Ok(())
}

/// Trains the top RBM of `dbn` from `machine` on.
fn learn(stack: &Stack<'_>, dbn: &Dbn, machine: harmonium::machine::Machine) -> Fallible<Dbn> {
    let data = stack.data(dbn);
    let mut trainer = Trainer::new(machine, data.presented(), &stack.plan(dbn.depth()))?;
    trainer.run(&mut [])?;
    Ok(Dbn::new(dbn.directed().to_vec(), trainer.machine().clone())?)
}

/// Prints a line, and gives the exact mean log-likelihood of the training data.
fn tell(name: &str, dbn: &Dbn, train: &Dataset, test: &Dataset, start: Instant) -> Fallible<f64> {
    let seconds = start.elapsed().as_secs_f64();
    let found = exact(dbn, train)?.mean;
    let drawn = importance(dbn, train, log_partition(dbn.top())?, DRAWS, Stream::new(0))?;
    let tested = exact(dbn, test)?.mean;
    let (bound, estimate) = (drawn.bound, drawn.estimate);
    println!("{name:34} {found:9.3} {bound:9.3} {estimate:11.3} {tested:9.3} {seconds:6.1}");
    Ok(found)
}
