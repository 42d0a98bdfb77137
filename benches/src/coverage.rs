//! Do intervals of ln Z hold what they promise? 200 random machines small enough to enumerate.
//!
//! The sandwich starts from exact samples and has to hold the exact value in at least 95 % of the
//! cases; the 95 % intervals of AIS and BAR in 90 % to 99 %: more would mean that they are too wide.

use crate::Outcome;
use harmonium::evaluation::log_partition::{LogPartition, Method, Settings, log_partition};
use harmonium::exact;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, Triangle};
use harmonium::random::{Site, Stream};
use harmonium::units::Units;
use std::time::Instant;

const N: u64 = 200;

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

/// How often an interval held the truth, and how wide it was.
#[derive(Clone, Copy, Default)]
struct Tally {
    held: f64,
    n: f64,
    width: f64,
    /// Of the estimates, in standard errors.
    squares: f64,
}

impl Tally {
    fn add(&mut self, found: &LogPartition, exact: f64) {
        // Numbers are rounded to single precision on the way.
        let slack = 1e-5;
        self.held +=
            f64::from(u8::from(found.lower - slack <= exact && exact <= found.upper + slack));
        self.n += 1.0;
        self.width += found.width();
        self.squares += ((found.log_z - exact) / (found.std_error + 1e-5)).powi(2);
    }

    fn coverage(self) -> f64 {
        100.0 * self.held / self.n
    }
}

pub(crate) fn run() -> Outcome {
    let start = Instant::now();
    let mut tallies = vec![[Tally::default(); METHODS.len()]; SHAPES.len()];
    for seed in 0..N {
        #[expect(clippy::cast_possible_truncation, reason = "seven shapes")]
        let shape = (seed % SHAPES.len() as u64) as usize;
        let machine = random(&SHAPES[shape], Stream::new(1000 + seed))?;
        let exact = exact::log_partition(&machine)?;
        for (tally, (_, method)) in tallies[shape].iter_mut().zip(METHODS) {
            tally.add(&log_partition(&machine, &settings(method, seed), &mut |_, _| {})?, exact);
        }
    }
    println!("share of {N} random machines whose exact ln Z lies in the interval, and its width");
    println!("{:<18}{:>22}{:>22}{:>22}", "", "sandwich", "ais", "bar");
    let mut sums = [Tally::default(); METHODS.len()];
    for ((name, ..), row) in SHAPES.iter().zip(&tallies) {
        line(name, row);
        for (sum, tally) in sums.iter_mut().zip(row) {
            sum.held += tally.held;
            sum.n += tally.n;
            sum.width += tally.width;
            sum.squares += tally.squares;
        }
    }
    line("all", &sums);
    let spread = sums.map(|t| format!("{:.2}", (t.squares / t.n).sqrt()));
    println!("errors in standard errors, root mean square: {}", spread.join(", "));
    println!("{:.0} s", start.elapsed().as_secs_f64());
    for ((name, method), tally) in METHODS.iter().zip(sums) {
        let range = if *method == Method::Sandwich { 95.0..=100.0 } else { 90.0..=99.0 };
        if !range.contains(&tally.coverage()) {
            return Err(format!(
                "{name} holds the exact value in {:.1} % of the cases, not in {} to {} %",
                tally.coverage(),
                range.start(),
                range.end()
            )
            .into());
        }
    }
    Ok(())
}

fn line(name: &str, tallies: &[Tally]) {
    let cell = |t: &Tally| format!("{:.1} %  {:.3} nats", t.coverage(), t.width / t.n);
    let cells: Vec<String> = tallies.iter().map(|t| format!("{:>22}", cell(t))).collect();
    println!("{name:<18}{}", cells.concat());
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
