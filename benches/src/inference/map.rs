//! The most probable states of random RBMs, by every search.

use crate::{Fallible, Outcome};
use harmonium::graph::{BucketTree, Elimination, Pairwise};
use harmonium::inference::{Iteration, Mode, Search, alternating, annealed, max_product, tempered};
use harmonium::machine::{Clamp, Coupling, LayerId, Machine, Matrix, State};
use harmonium::models::Rbm;
use harmonium::progress::Silent;
use harmonium::random::{Site, Stream};
use std::time::Instant;

/// Machines of each size.
const MACHINES: u64 = 20;

/// An RBM of `n` visible and `n` hidden units: weights are normal, biases logistic.
fn random_rbm(n: usize, seed: u64) -> Fallible<Machine> {
    let stream = Stream::new(seed);
    let site = |lane| Site::new(0, 0, lane);
    let logistic = |lane: usize, i: usize| {
        let u = stream.uniform(site(lane), i).clamp(1e-12, 1.0 - 1e-12);
        (u / (1.0 - u)).ln()
    };
    let mut layers = Rbm::binary(n, n)?.machine().layers().to_vec();
    for (l, layer) in layers.iter_mut().enumerate() {
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = logistic(1 + l, i));
    }
    let weights = Matrix::from_fn(n, n, |i, j| stream.normal(site(0), i * n + j))?;
    Ok(Machine::new(layers, vec![Coupling::between(LayerId(0), LayerId(1), weights)])?)
}

/// A search, by its name.
type Road = (&'static str, fn(&Machine, &Pairwise) -> Result<Mode, harmonium::Error>);

const ROADS: [Road; 4] = [
    ("max-product", |_, graph| {
        let iteration = Iteration { max_sweeps: 200, ..Iteration::of_messages(graph) };
        max_product(graph, &iteration, &mut Silent)
    }),
    ("alternating, 1000 starts", |_, graph| {
        let search = Search { starts: 1000, ..Search::of_alternating(graph) };
        alternating(graph, &search, &mut Silent)
    }),
    ("annealing", |machine, graph| annealed(machine, &Search::of_annealing(graph), &mut Silent)),
    ("tempering", |machine, graph| tempered(machine, &Search::of_tempering(graph), &mut Silent)),
];

pub(super) fn run() -> Outcome {
    println!("most probable states of {MACHINES} random RBMs of each size");
    println!(
        "{:<8} {:<26} {:>14} {:>12} {:>10}",
        "units", "search", "mean energy", "best of all", "seconds"
    );
    for units in [40, 60, 100, 200] {
        let machines: Vec<Machine> =
            (0..MACHINES).map(|seed| random_rbm(units / 2, seed)).collect::<Fallible<_>>()?;
        let mut table: Vec<(&str, Vec<f64>, f64)> = Vec::new();
        if units == 40 {
            table.push(by("exact", &machines, |_, graph| {
                let tree = BucketTree::narrower(graph, 26.0)?;
                let states = Elimination::new(graph, &tree).mode(&mut Silent)?;
                Ok(Mode::exact(graph, states))
            })?);
        }
        for (name, road) in ROADS {
            table.push(by(name, &machines, road)?);
        }
        let best: Vec<f64> = (0..machines.len())
            .map(|k| table.iter().map(|(_, energies, _)| energies[k]).fold(f64::INFINITY, f64::min))
            .collect();
        for (name, energies, seconds) in &table {
            let mean = energies.iter().sum::<f64>() / energies.len() as f64;
            let hits = energies.iter().zip(&best).filter(|(e, b)| **e <= **b + 1e-9).count();
            println!(
                "{units:<8} {name:<26} {mean:>14.6} {:>12} {seconds:>10.3}",
                format!("{hits} of {}", energies.len())
            );
        }
    }
    Ok(())
}

/// The energies that a search finds, and the mean of its seconds.
fn by(
    name: &'static str,
    machines: &[Machine],
    road: impl Fn(&Machine, &Pairwise) -> Result<Mode, harmonium::Error>,
) -> Fallible<(&'static str, Vec<f64>, f64)> {
    let started = Instant::now();
    let mut energies = Vec::new();
    for machine in machines {
        let graph = Pairwise::new(machine, &Clamp::none(), &State::zeros(machine, 1)?, 0)?;
        energies.push(-road(machine, &graph)?.log_weight);
    }
    Ok((name, energies, started.elapsed().as_secs_f64() / machines.len() as f64))
}
