//! Gibbs sweeps in each precision against dense ones.

use crate::products::dense_weights;
use crate::report::{Flags, Report, times};
use crate::step::random_bits;
use crate::turns::{Contender, median, pool, ratio, take_turns};
use crate::yardstick::Dense;
use crate::{Fallible, Outcome};
use harmonium::engine::Arithmetic;
use harmonium::machine::{Edges, Machine, Weights};
use harmonium::models::{Bm, Dbm, Lateral, Rbm, ising_torus};
use harmonium::random::Stream;
use harmonium::sampling::{Chains, Sampler};
use harmonium::training::{Plan, initialise};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Table};
use rayon::ThreadPool;
use serde_json::json;
use std::fmt::Write as _;
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask bench sweep [--quick] [--chains N,…] [--threads N,…] [--seconds S] [--json [FILE]]";

const NAMES: [&str; 4] = ["f64", "f32", "i16", "dense"];

pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut flags = Flags::parse(words, USAGE)?;
    let quick = flags.has("--quick");
    let chains = flags.list("--chains", if quick { &[100] } else { &[100, 1000] })?;
    let threads = flags.list("--threads", if quick { &[1] } else { &[1, 2] })?;
    let seconds = flags.list("--seconds", &[if quick { 0.5 } else { 2.0 }])?[0];
    let mut report = flags.report("sweep");
    report.say("µs for a sweep of all chains, and how many times as long the dense sweep takes\n");
    report.say(&format!(
        "{:<20} {:>6} {:>7} {:>11} {:>11} {:>11} {:>11} {:>8} {:>8} {:>8}",
        "machine", "chains", "threads", "f64", "f32", "i16", "dense", "f64", "f32", "i16"
    ));
    let visible = |n| Bm::new((Units::Binary, n), (Units::Binary, 0), Lateral::Visible);
    let machines = [
        ("RBM 784x500", Rbm::binary(784, 500)?.into_machine()),
        ("DBM 784-500-1000", Dbm::binary(784, &[500, 1000])?.into_machine()),
        ("lateral BM 200", visible(200)?.into_machine()),
        ("lateral BM 1000", visible(1000)?.into_machine()),
        ("Ising torus 32x32", ising_torus(32, 0.4)?.into_machine()),
        ("Ising torus 64x64", ising_torus(64, 0.4)?.into_machine()),
    ];
    for (name, mut machine) in machines {
        if machine.layers()[0].units == Units::Binary {
            let bits = random_bits(500, machine.layers()[0].len(), 0.19, 1);
            let data = Dataset::new(Table::from_bits(bits)?, Binarize::None)?;
            initialise(&mut machine, &data, &Plan::default())?;
        }
        for &n_chains in &chains {
            for &n_threads in &threads {
                let cell = Cell { name, machine: &machine, n_chains, n_threads };
                cell.measure(&pool(n_threads)?, seconds, &mut report)?;
            }
        }
    }
    report.finish(&[
        "dense: f32 products with the gemm crate and harmonium's own exponentials and variates; ! marks where it is faster",
        "the dense sweep of a lateral machine takes 32 units at a time: one product for their inputs from all units, then unit by unit \
         over all chains, correcting the inputs of those that follow (two to three times as fast as a dot product or a row update per unit)",
        "the yardstick of a torus is not dense: it goes through the chessboard, a row of f32 for each spin over all chains, on one thread",
        "ratios are medians over the rounds of one run in which all take turns; other work on the machine moves them by 10 % and more",
    ])
}

struct Cell<'a> {
    name: &'a str,
    machine: &'a Machine,
    n_chains: usize,
    n_threads: usize,
}

impl Cell<'_> {
    fn measure(&self, pool: &ThreadPool, seconds: f64, report: &mut Report) -> Outcome {
        let ours = |precision| -> Fallible<_> {
            let machine = self.machine;
            let sampler = Sampler::new(machine.clone(), precision);
            let mut chains = Chains::new(machine, self.n_chains, Stream::new(1))?;
            let mut done = 0;
            Ok(move |n: usize| -> Fallible<f64> {
                done += 1;
                let start = Instant::now();
                pool.install(|| chains.advance(&sampler, n, Stream::new(2).fork(done)))?;
                Ok(start.elapsed().as_secs_f64())
            })
        };
        let mut double = ours(Arithmetic::F64)?;
        let mut single = ours(Arithmetic::F32)?;
        let mut quantised = ours(Arithmetic::I16)?;
        let mut dense = self.dense();
        let mut by_dense = |n: usize| -> Fallible<f64> {
            let start = Instant::now();
            pool.install(|| (0..n).for_each(|_| dense.sweep(self.n_threads)));
            Ok(start.elapsed().as_secs_f64())
        };
        let contenders: &mut [&mut Contender] =
            &mut [&mut double, &mut single, &mut quantised, &mut by_dense];
        let rounds = take_turns(seconds, contenders)?;
        let micros: Vec<f64> = rounds.iter().map(|s| 1e6 * median(s.clone())).collect();
        let ratios: Vec<f64> =
            (0..3).map(|c| ratio(&rounds[3], &rounds[c]).unwrap_or(f64::NAN)).collect();
        let mut line = format!("{:<20} {:>6} {:>7}", self.name, self.n_chains, self.n_threads);
        for micros in &micros {
            let _ = write!(line, " {micros:>11.1}");
        }
        for ratio in &ratios {
            let _ = write!(line, " {:>8}", times(*ratio));
        }
        report.row(
            &line,
            json!({
                "machine": self.name, "chains": self.n_chains, "threads": self.n_threads,
                "contenders": NAMES, "microseconds": micros, "ratio": ratios,
            }),
        );
        Ok(())
    }

    fn dense(&self) -> DenseChains {
        let n = self.n_chains;
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let bias: Vec<Vec<f32>> = self
            .machine
            .layers()
            .iter()
            .map(|l| l.bias.iter().map(|b| *b as f32).collect())
            .collect();
        if let Some(Weights::Sparse(edges)) = self.machine.couplings().first().map(|c| &c.weights) {
            return DenseChains::Sparse(SparseLateral::new(self.machine, n, edges));
        }
        if self.machine.has_lateral(Bm::VISIBLE) {
            return DenseChains::Lateral(DenseLateral::new(self.machine, n, &bias[0]));
        }
        let zeros = |b: &Vec<f32>| Dense::zeros(n, b.len());
        DenseChains::Stack {
            layers: bias.iter().map(zeros).collect(),
            weights: (0..bias.len() - 1).map(|c| dense_weights(self.machine, c)).collect(),
            bias,
            done: 0,
        }
    }
}

/// Chains of a dense program.
enum DenseChains {
    /// Layers one above the other.
    Stack {
        layers: Vec<Dense>,
        weights: Vec<Dense>,
        bias: Vec<Vec<f32>>,
        done: u64,
    },
    Lateral(DenseLateral),
    Sparse(SparseLateral),
}

impl DenseChains {
    fn sweep(&mut self, threads: usize) {
        let (layers, weights, bias, done) = match self {
            Self::Lateral(lateral) => return lateral.sweep(threads),
            Self::Sparse(sparse) => return sparse.sweep(),
            Self::Stack { layers, weights, bias, done } => (layers, weights, bias, done),
        };
        *done += 1;
        let (n_layers, n_chains) = (layers.len(), layers[0].n_rows);
        for l in (1..n_layers).step_by(2).chain((0..n_layers).step_by(2)) {
            let mut theta = std::mem::replace(&mut layers[l], Dense::zeros(0, 0));
            let mut starts = true;
            if l > 0 {
                let (x, w) = (layers[l - 1].all(), weights[l - 1].all());
                theta.respond(threads, 0..n_chains, &bias[l], x, w);
                starts = false;
            }
            if l + 1 < n_layers {
                let w = weights[l].transposed(0..weights[l].n_rows);
                let x = layers[l + 1].all();
                if starts {
                    theta.respond(threads, 0..n_chains, &bias[l], x, w);
                } else {
                    theta.multiply(threads, 0..n_chains, x, w, (1.0, 1.0));
                }
            }
            theta.make_samples(threads, 0..n_chains, Stream::new(*done).fork(l as u64));
            layers[l] = theta;
        }
    }
}

/// Units of a lateral machine that are taken together: 1 is a dot product per unit, all of them a
/// row update; both took two to three times as long as anything from 16 to 64.
const BLOCK: usize = 32;

/// A machine of one layer whose units see each other; a row holds one unit of all chains.
struct DenseLateral {
    weights: Dense,
    bias: Vec<f32>,
    units: Dense,
    inputs: Dense,
    changes: Vec<f32>,
    done: u64,
}

impl DenseLateral {
    fn new(machine: &Machine, n_chains: usize, bias: &[f32]) -> Self {
        let n = bias.len();
        let Weights::Lateral(w) = &machine.couplings()[0].weights else {
            unreachable!("the machine has a lateral coupling");
        };
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let entry = |i, j| if i == j { 0.0 } else { w.at(i, j) as f32 };
        Self {
            weights: Dense::from_fn(n, n, entry),
            bias: bias.to_vec(),
            units: Dense::zeros(n, n_chains),
            inputs: Dense::zeros(BLOCK, n_chains),
            changes: vec![0.0; n_chains],
            done: 0,
        }
    }

    fn sweep(&mut self, threads: usize) {
        self.done += 1;
        let n = self.bias.len();
        for first in (0..n).step_by(BLOCK) {
            let size = BLOCK.min(n - first);
            let w = self.weights.factor(first..first + size);
            self.inputs.multiply(threads, 0..size, w, self.units.all(), (0.0, 1.0));
            for (i, bias) in self.bias[first..first + size].iter().enumerate() {
                self.inputs.row_mut(i).iter_mut().for_each(|x| *x += bias);
            }
            for i in 0..size {
                let stream = Stream::new(self.done).fork(first as u64);
                self.inputs.make_samples(1, i..i + 1, stream);
                let (old, new) = (self.units.row_mut(first + i), self.inputs.row(i));
                for ((change, old), new) in self.changes.iter_mut().zip(old).zip(new) {
                    *change = new - *old;
                    *old = *new;
                }
                for j in i + 1..size {
                    let w = self.weights.row(first + j)[first + i];
                    let inputs = self.inputs.row_mut(j).iter_mut();
                    inputs.zip(&self.changes).for_each(|(x, c)| *x += w * c);
                }
            }
        }
    }
}

/// Spins without biases that see few others; a row holds one spin of all chains.
struct SparseLateral {
    order: Vec<usize>,
    neighbours: Vec<Vec<(usize, f32)>>,
    units: Dense,
    input: Dense,
    done: u64,
}

impl SparseLateral {
    fn new(machine: &Machine, n_chains: usize, edges: &Edges) -> Self {
        let mut neighbours = vec![Vec::new(); edges.n()];
        for (i, j, w) in edges.iter() {
            #[expect(clippy::cast_possible_truncation, reason = "single precision")]
            let w = w as f32;
            neighbours[i].push((j, w));
            neighbours[j].push((i, w));
        }
        Self {
            order: machine.unit_blocks(Bm::VISIBLE).concat(),
            neighbours,
            units: Dense::from_fn(edges.n(), n_chains, |_, _| 1.0),
            input: Dense::zeros(1, n_chains),
            done: 0,
        }
    }

    fn sweep(&mut self) {
        self.done += 1;
        for &i in &self.order {
            self.input.row_mut(0).fill(0.0);
            for &(j, w) in &self.neighbours[i] {
                let (input, unit) = (self.input.row_mut(0), self.units.row(j));
                input.iter_mut().zip(unit).for_each(|(x, s)| *x += 2.0 * w * s);
            }
            let stream = Stream::new(self.done).fork(i as u64);
            self.input.make_samples(1, 0..1, stream);
            let unit = self.units.row_mut(i).iter_mut();
            unit.zip(self.input.row(0)).for_each(|(s, bit)| *s = 2.0 * bit - 1.0);
        }
    }
}
