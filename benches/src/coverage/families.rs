//! Families of machines whose $\ln Z$ is known and hard to sample. The study is draw 0; others are for those who
//! change a method, so that its constants are never chosen by the machines that judge it.

use crate::Fallible;
use harmonium::machine::{Coupling, Edges, Layer, LayerId, Machine, Matrix, Role, Triangle};
use harmonium::models::Rbm;
use harmonium::random::{Site, Stream};
use harmonium::run::load_uai;
use harmonium::training::{Plan, train};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, digits::digits, synthetic};

/// A name, what it holds, and how a machine of it is made.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) make: fn(Which) -> Fallible<Machine>,
}

/// Machine number `k` of a draw.
#[derive(Clone, Copy)]
pub(super) struct Which {
    pub(super) draw: u64,
    pub(super) k: usize,
}

pub(super) const FAMILIES: [Family; 7] = [
    Family {
        name: "grids",
        what: "open grids of 6x6 to 20x20, couplings uniform up to 1, 2, 3 or 5, fields up to 1",
        make: grid,
    },
    Family {
        name: "tori",
        what: "tori of 4x4 to 7x7, ferromagnets at K = 0.3 to 1 and mixed couplings up to 3",
        make: torus,
    },
    Family {
        name: "glasses",
        what: "plane spin glasses of 8x8 to 10x10, couplings of +1 and -1 at beta = 1 to 3",
        make: glass,
    },
    Family {
        name: "sk",
        what: "dense spin glasses of 12 to 20 spins (Sherrington & Kirkpatrick) at beta = 1 to 3",
        make: dense_glass,
    },
    Family {
        name: "rbms",
        what: "DBN_11 to 13 of the UAI collection, RBMs of 12x12 to 20x20 with weights N(0, 1) to N(0, 4)",
        make: rbm,
    },
    Family {
        name: "trained",
        what: "RBMs of 20 hidden units trained on digits, bars and stripes, shifter, at five rates",
        make: trained,
    },
    Family {
        name: "general",
        what: "general Boltzmann machines of 8 to 10 visible and hidden units, weights N(0, 1)",
        make: general,
    },
];

/// Numbers of machine `k` of a family.
pub(super) struct Numbers(Stream);

impl Numbers {
    pub(super) fn new(family: u64, which: Which) -> Self {
        Self(Stream::new(2026 + which.draw).fork(family).fork(which.k as u64))
    }

    /// Uniform between -1 and 1.
    pub(super) fn even(&self, lane: usize, i: usize) -> f64 {
        2.0 * self.0.uniform(Site::new(0, 0, lane), i) - 1.0
    }

    pub(super) fn normals(&self, lane: usize, n: usize) -> Vec<f64> {
        let mut out = vec![0.0; n];
        self.0.normals_into(Site::new(0, 0, lane), &mut out);
        out
    }
}

/// Spins on a square lattice; `coupling` of the two sites that an edge joins.
pub(super) fn lattice(
    side: usize,
    closed: bool,
    coupling: impl Fn(usize, usize) -> f64,
    field: impl Fn(usize) -> f64,
) -> Fallible<Machine> {
    let mut spins = Layer::new("spins", Role::Visible, Units::Spin, side * side)?;
    spins.bias.iter_mut().enumerate().for_each(|(i, b)| *b = field(i));
    let step = |x: usize, y: usize| {
        let apart = x.abs_diff(y);
        if closed { apart.min(side - apart) } else { apart }
    };
    let near = |a: usize, b: usize| step(a / side, b / side) + step(a % side, b % side) == 1;
    let pairs = (0..side * side).flat_map(|b| (0..b).map(move |a| (a, b)));
    let edges = pairs.filter(|&(a, b)| near(a, b)).map(|(a, b)| (a, b, coupling(a, b)));
    let edges = Edges::new(side * side, edges)?;
    Ok(Machine::new(vec![spins], vec![Coupling::sparse(LayerId(0), edges)])?)
}

fn grid(which: Which) -> Fallible<Machine> {
    let k = which.k;
    let (numbers, side) = (Numbers::new(1, which), [6, 8, 10, 14, 20][k % 5]);
    let most = [1.0, 2.0, 3.0, 5.0][k / 5 % 4];
    let edge = |a: usize, b: usize| most * numbers.even(0, a * 400 + b);
    lattice(side, false, edge, |i| numbers.even(1, i))
}

fn torus(which: Which) -> Fallible<Machine> {
    let k = which.k;
    let (numbers, side) = (Numbers::new(2, which), 4 + k % 4);
    if (k / 4).is_multiple_of(2) {
        let coupling = 0.3 + 0.7 * (k / 8) as f64 / 4.0;
        return lattice(side, true, |_, _| coupling, |_| 0.0);
    }
    let most = [1.0, 1.5, 2.0, 2.5, 3.0][k / 8 % 5];
    let edge = |a: usize, b: usize| most * numbers.even(0, a * 128 + b);
    lattice(side, true, edge, |i| 0.5 * numbers.even(1, i))
}

fn glass(which: Which) -> Fallible<Machine> {
    let k = which.k;
    let (numbers, side) = (Numbers::new(3, which), 8 + k % 3);
    let beta = [1.0, 1.5, 2.0, 2.5, 3.0][k / 3 % 5];
    let edge = |a: usize, b: usize| beta * numbers.even(0, a * 128 + b).signum();
    lattice(side, false, edge, |_| 0.0)
}

fn dense_glass(which: Which) -> Fallible<Machine> {
    let k = which.k;
    let (numbers, n) = (Numbers::new(4, which), 12 + k % 9);
    let beta = [1.0, 1.5, 2.0, 2.5, 3.0][k / 8 % 5];
    let spins = Layer::new("spins", Role::Visible, Units::Spin, n)?;
    let normals = numbers.normals(0, n * n);
    let weight = |a: usize, b: usize| beta / (n as f64).sqrt() * normals[a * n + b];
    let weights = Triangle::from_fn(n, weight)?;
    Ok(Machine::new(vec![spins], vec![Coupling::lateral(LayerId(0), weights)])?)
}

/// The three of the collection come first in the study, where they are there.
fn rbm(which: Which) -> Fallible<Machine> {
    let k = which.k;
    if which.draw == 0 && k < 3 {
        let path = format!("../shared/data/uai-rbm/DBN_{}.uai", 11 + k);
        if let Ok(model) = load_uai(&path) {
            return Ok(model.machine);
        }
    }
    normal_rbm(&Numbers::new(5, which), 12 + k % 9, [1.0, 1.5, 2.0][k / 9 % 3])
}

/// As many visible as hidden units, biases N(0, 1), weights N(0, scale²).
pub(super) fn normal_rbm(numbers: &Numbers, n: usize, scale: f64) -> Fallible<Machine> {
    let mut layers = Vec::new();
    for (l, (name, role)) in [("v", Role::Visible), ("h", Role::Hidden)].into_iter().enumerate() {
        let mut layer = Layer::new(name, role, Units::Binary, n)?;
        layer.bias.copy_from_slice(&numbers.normals(1 + l, n));
        layers.push(layer);
    }
    let normals = numbers.normals(0, n * n);
    let weights = Matrix::from_fn(n, n, |i, j| scale * normals[i * n + j])?;
    Ok(Machine::new(layers, vec![Coupling::between(LayerId(0), LayerId(1), weights)])?)
}

/// From hardly trained to strongly trained: the rate is 20 times higher at the end of the list.
fn trained(which: Which) -> Fallible<Machine> {
    let k = which.k;
    let rate = [0.01, 0.03, 0.05, 0.1, 0.2][k / 3 % 5];
    let (table, epochs) = match k % 3 {
        0 => (digits()?.0, 20),
        1 => (synthetic::bars_and_stripes(4, synthetic::Repeats::Counted)?, 2000),
        _ => (synthetic::shifter()?, 100),
    };
    let binarize = if k.is_multiple_of(3) { Binarize::Threshold(0.5) } else { Binarize::None };
    let data = Dataset::new(table, binarize)?;
    let plan =
        Plan { epochs, learning_rate: rate, seed: 1000 * which.draw + k as u64, ..Plan::default() };
    let rbm = Rbm::binary(data.table().n_columns(), 20)?.into_machine();
    Ok(train(rbm, &data, &plan, &mut [])?.machine)
}

fn general(which: Which) -> Fallible<Machine> {
    let k = which.k;
    let (numbers, n) = (Numbers::new(7, which), 8 + k % 3);
    let scale = [0.7, 1.0, 1.3][k / 3 % 3];
    let mut layers = Vec::new();
    for (name, role) in [("v", Role::Visible), ("h", Role::Hidden)] {
        let units = if k.is_multiple_of(2) { Units::Binary } else { Units::Spin };
        layers.push(Layer::new(name, role, units, n)?);
    }
    let normals: Vec<Vec<f64>> = (0..3).map(|lane| numbers.normals(lane, n * n)).collect();
    let weight = |lane: usize, i: usize, j: usize| scale * normals[lane][i * n + j];
    let couplings = vec![
        Coupling::between(LayerId(0), LayerId(1), Matrix::from_fn(n, n, |i, j| weight(0, i, j))?),
        Coupling::lateral(LayerId(0), Triangle::from_fn(n, |i, j| weight(1, i, j))?),
        Coupling::lateral(LayerId(1), Triangle::from_fn(n, |i, j| weight(2, i, j))?),
    ];
    Ok(Machine::new(layers, couplings)?)
}
