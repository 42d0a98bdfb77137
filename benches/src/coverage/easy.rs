//! 200 random machines small enough to enumerate, with the work given: an interval of 95 % that holds
//! in more than 99 % of the cases would be too wide. The sandwich starts from exact samples and may.

use super::{Asked, Tally, UNSETTLED, judged, table};
use crate::Fallible;
use harmonium::evaluation::log_partition::{Method, Settings, log_partition};
use harmonium::exact;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, Triangle};
use harmonium::progress::Silent;
use harmonium::random::{Site, Stream};
use harmonium::units::Units;
use rayon::prelude::*;
use serde_json::Value;
use std::time::Instant;

/// What these families are called together.
pub(super) const NAME: &str = "easy";
const N: u64 = 200;
/// Share of intervals of 95 % above which they are too wide.
const TOO_WIDE: f64 = 0.99;

/// Layers as (is visible, most units), and the couplings.
pub(crate) type Shape = (&'static str, &'static [(bool, u32)], &'static [(usize, usize)]);

pub(crate) const SHAPES: [Shape; 7] = [
    ("RBM", &[(true, 8), (false, 7)], &[(0, 1)]),
    ("DBM, 2 hidden", &[(true, 6), (false, 5), (false, 5)], &[(0, 1), (1, 2)]),
    ("DBM, 3 hidden", &[(true, 5), (false, 4), (false, 4), (false, 4)], &[(0, 1), (1, 2), (2, 3)]),
    (
        "multimodal",
        &[(true, 4), (true, 4), (false, 4), (false, 3), (false, 3)],
        &[(0, 2), (1, 3), (2, 4), (3, 4)],
    ),
    ("semi-restricted", &[(true, 7), (false, 6)], &[(0, 1), (0, 0)]),
    ("general BM", &[(true, 5), (false, 5)], &[(0, 1), (0, 0), (1, 1)]),
    ("visible only", &[(true, 9)], &[(0, 0)]),
];

const METHODS: [(&str, Method); 3] =
    [("sandwich", Method::Sandwich), ("ais", Method::Ais), ("bar", Method::Bar)];

/// The easy families: their numbers, and what falls short.
pub(super) fn run(asked: &Asked<'_>) -> Fallible<(Value, Vec<String>)> {
    let n = if asked.quick { N / 4 } else { N };
    let one = |seed: u64| -> Result<(usize, Vec<Tally>), String> {
        #[expect(clippy::cast_possible_truncation, reason = "seven shapes")]
        let shape = (seed % SHAPES.len() as u64) as usize;
        let stream = Stream::new(1000 + 10_000 * asked.draw + seed);
        let machine = random(&SHAPES[shape], stream).map_err(|e| e.to_string())?;
        let exact = exact::log_partition(&machine).map_err(|e| e.to_string())?;
        let mut tallies = vec![Tally::default(); METHODS.len()];
        for (tally, (_, method)) in tallies.iter_mut().zip(METHODS) {
            let start = Instant::now();
            let found = log_partition(&machine, &settings(method, seed), &mut Silent)
                .map_err(|e| e.to_string())?;
            tally.add(&found, exact, start.elapsed().as_secs_f64());
        }
        Ok((shape, tallies))
    };
    let each: Result<Vec<_>, String> = (0..n).into_par_iter().map(one).collect();
    let mut shapes = vec![vec![Tally::default(); METHODS.len()]; SHAPES.len()];
    for (shape, tallies) in each? {
        shapes[shape].iter_mut().zip(&tallies).for_each(|(sum, tally)| sum.join(tally));
    }
    let mut sums = vec![Tally::default(); METHODS.len()];
    for ((name, ..), row) in SHAPES.iter().zip(&shapes) {
        let rows: Vec<(&str, &Tally)> = METHODS.iter().map(|m| m.0).zip(row).collect();
        if !asked.json {
            println!("{NAME}, {name}");
            table(&rows);
        }
        sums.iter_mut().zip(row).for_each(|(sum, tally)| sum.join(tally));
    }
    let rows: Vec<(&str, &Tally)> = METHODS.iter().map(|m| m.0).zip(&sums).collect();
    if !asked.json {
        println!("{NAME}: {n} random machines");
        table(&rows);
    }
    let (value, mut complaints) = judged(NAME, &rows, UNSETTLED[0]);
    for (name, tally) in rows.iter().filter(|(name, _)| *name != "sandwich") {
        if tally.coverage() > TOO_WIDE {
            let percent = 100.0 * tally.coverage();
            complaints.push(format!("{NAME}, {name}: {percent:.1} % hold: they are too wide"));
        }
    }
    Ok((value, complaints))
}

fn settings(method: Method, seed: u64) -> Settings {
    let (betas, chains) = if method == Method::Bar { (None, 20) } else { (Some(100), 100) };
    Settings {
        method: Some(method),
        betas,
        chains: Some(chains),
        sweeps: Some(40_000),
        seed,
        ..Settings::default()
    }
}

/// A machine of the shape with units, sizes, biases, offsets and weights drawn at random.
pub(crate) fn random(shape: &Shape, stream: Stream) -> Result<Machine, harmonium::Error> {
    let (_, layers, edges) = *shape;
    let at = |lane: usize| Site::new(0, 0, lane);
    let centered = |lane: usize, i: usize| stream.uniform(at(lane), i) - 0.5;
    let mut made = Vec::new();
    for (l, &(visible, most)) in layers.iter().enumerate() {
        let units = match stream.below(at(0), l, 4) {
            0 => Units::Spin,
            1 => Units::Categorical { q: 3 },
            // Real units that see each other need not have a distribution.
            2 if visible && !edges.contains(&(l, l)) => Units::Gaussian,
            _ => Units::Binary,
        };
        let most = if matches!(units, Units::Categorical { .. }) { most * 2 / 3 } else { most };
        let n = 2 + stream.below(at(1), l, most - 1) as usize;
        let role = if visible { Role::Visible } else { Role::Hidden };
        let mut layer = Layer::new(format!("layer{l}"), role, units, n)?;
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = 2.0 * centered(10 + l, i));
        layer.offset.iter_mut().enumerate().for_each(|(i, m)| *m = centered(20 + l, i));
        layer.own.iter_mut().enumerate().for_each(|(i, g)| *g = 1.5 + centered(30 + l, i));
        made.push(layer);
    }
    // From nearly independent to strongly coupled.
    let strength = 0.5 + 3.0 * stream.uniform(at(2), 0);
    let mut couplings = Vec::new();
    for (c, &(a, b)) in edges.iter().enumerate() {
        let weight = |i: usize, j: usize| strength * centered(40 + c, i * 64 + j);
        let (a, b) = (LayerId(a), LayerId(b));
        let (first, second) = (&made[a.0], &made[b.0]);
        couplings.push(if a == b {
            let outside = |i, j| if first.units.same_unit(i, j) { 0.0 } else { weight(i, j) };
            Coupling::lateral(a, Triangle::from_fn(first.len(), outside)?)
        } else {
            Coupling::between(a, b, Matrix::from_fn(first.len(), second.len(), weight)?)
        });
    }
    Machine::new(made, couplings)
}
