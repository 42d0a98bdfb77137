//! The encoder problem of Ackley, Hinton & Sejnowski (1985) with a general Boltzmann machine: two
//! groups of visible units, each coupled inside, talk to each other through a few hidden units
//! alone and must agree on which one of them is on.
//!
//! A machine has solved it when $p(\text{correct } v_2 \mid v_1) > 0.9$ for every pattern, by exact
//! sums. What makes it fail is that two patterns settle on one code of the hidden units. Two things
//! prevent it: the data are noisy at first, as in the paper (a unit that should be on is off with
//! probability 0.15, one that should be off is on with 0.05), and hidden units are pulled towards
//! being on half of the time, as they are when every code is used once. Likelihood alone, by exact
//! gradients from small weights, solves 8 of 20 of the small ones.

use crate::{Fallible, Outcome};
use harmonium::exact;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, State, Triangle};
use harmonium::optim::Schedule;
use harmonium::sampling::Clamp;
use harmonium::training::{Plan, Rule, Trainer, initialise};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Table};
use std::time::Instant;

const V1: LayerId = LayerId(0);
const V2: LayerId = LayerId(1);
const HIDDEN: LayerId = LayerId(2);
const SEEDS: u64 = 20;
const SOLVED: f64 = 0.9;

pub(crate) fn run() -> Outcome {
    let problems = [
        Problem { n: 4, n_hidden: 2, epochs: 2000, chains: 50, rate: 0.2, needed: 19 },
        Problem { n: 8, n_hidden: 3, epochs: 6000, chains: 100, rate: 0.4, needed: 16 },
    ];
    for problem in problems {
        let Problem { n, n_hidden, needed, .. } = problem;
        let start = Instant::now();
        let worst = (0..SEEDS)
            .map(|seed| worst_agreement(&problem.learn(seed)?, n))
            .collect::<Fallible<Vec<f64>>>()?;
        let solved = worst.iter().filter(|p| **p > SOLVED).count();
        let list: Vec<String> = worst.iter().map(|p| format!("{p:.3}")).collect();
        println!(
            "{n}-{n_hidden}-{n}: {solved} of {SEEDS} solved, {:.0} s; least p(v2 | v1) of each: {}",
            start.elapsed().as_secs_f64(),
            list.join(" ")
        );
        if solved < needed {
            return Err(format!("{solved} of {SEEDS} solved, {needed} wanted").into());
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Problem {
    n: usize,
    n_hidden: usize,
    /// With noise, and once more without it.
    epochs: u64,
    chains: usize,
    /// The learning rate without noise.
    rate: f64,
    /// Seeds that have to be solved.
    needed: usize,
}

impl Problem {
    fn learn(self, seed: u64) -> Fallible<Machine> {
        let Self { n, n_hidden, epochs, chains, rate, .. } = self;
        let noisy = Plan {
            seed,
            epochs,
            chains,
            rule: Rule::Pcd,
            k: Schedule::Constant(5.0),
            learning_rate: 0.2,
            decay: Schedule::Constant(1.0),
            momentum: Schedule::Constant(0.0),
            l2: 0.0,
            sparsity_target: Some(0.5),
            sparsity_cost: 3.0,
            ..Plan::default()
        };
        let clean = Plan { learning_rate: rate, decay: Plan::default().decay, ..noisy.clone() };
        let (first, then) = (patterns(n, 0.85, 0.05)?, patterns(n, 1.0, 0.0)?);
        let mut machine = machine(n, n_hidden)?;
        initialise(&mut machine, &then, &noisy)?;
        for (data, plan) in [(&first, &noisy), (&then, &clean)] {
            let mut trainer = Trainer::new(machine, data, plan)?;
            trainer.run(&mut [])?;
            machine = trainer.machine().clone();
        }
        Ok(machine)
    }
}

/// In each row the same unit of both groups is on, with probability `on`; the others are on with
/// probability `off`. Drawn anew at each presentation.
fn patterns(n: usize, on: f32, off: f32) -> Fallible<Dataset> {
    let p = |row: usize, column: usize| if column % n == row { on } else { off };
    let values = (0..n).flat_map(|row| (0..2 * n).map(move |column| p(row, column))).collect();
    Ok(Dataset::new(Table::from_real(values, 2 * n)?, Binarize::Sample)?)
}

fn machine(n: usize, n_hidden: usize) -> Fallible<Machine> {
    let layers = vec![
        Layer::new("v1", Role::Visible, Units::Binary, n)?,
        Layer::new("v2", Role::Visible, Units::Binary, n)?,
        Layer::new("hidden", Role::Hidden, Units::Binary, n_hidden)?,
    ];
    let couplings = vec![
        Coupling::between(V1, HIDDEN, Matrix::zeros(n, n_hidden)?),
        Coupling::between(V2, HIDDEN, Matrix::zeros(n, n_hidden)?),
        Coupling::lateral(V1, Triangle::zeros(n)?),
        Coupling::lateral(V2, Triangle::zeros(n)?),
    ];
    Ok(Machine::new(layers, couplings)?)
}

/// The least $p(v_2 \mid v_1)$ over the patterns.
fn worst_agreement(machine: &Machine, n: usize) -> Fallible<f64> {
    let mut x = State::zeros(machine, n)?;
    for row in 0..n {
        let pattern: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i == row))).collect();
        x.set_row(V1, row, &pattern)?;
        x.set_row(V2, row, &pattern)?;
    }
    let both = exact::log_sums(machine, &Clamp::layers([V1, V2]), &x)?;
    let first = exact::log_sums(machine, &Clamp::layers([V1]), &x)?;
    Ok(both.iter().zip(&first).map(|(b, f)| (b - f).exp()).fold(1.0, f64::min))
}
