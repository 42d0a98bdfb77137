//! Families that are not part of the study: constants of the methods may be chosen by them.

use super::families::{Family, Numbers, Which, lattice, normal_rbm};
use crate::Fallible;
use harmonium::machine::{Coupling, Edges, Layer, LayerId, Machine, Matrix, Role, Triangle};
use harmonium::units::Units;

pub(super) const REHEARSALS: [Family; 6] = [
    Family {
        name: "strong-grids",
        what: "open grids of 8x8 to 16x16, couplings uniform up to 4, 7 or 10, fields up to 1",
        make: strong_grid,
    },
    Family {
        name: "strong-rbms",
        what: "RBMs of 14x14 to 20x20 with weights N(0, 9) to N(0, 25)",
        make: strong_rbm,
    },
    Family {
        name: "spin-rbms",
        what: "RBMs of 16 to 22 spins a side with couplings N(0, 0.25) to N(0, 1.4), fields up to 1 in half of them",
        make: spin_rbm,
    },
    Family {
        name: "cubes",
        what: "spin glasses of 3x3x3 to 4x4x3, couplings of +1 and -1 at beta = 0.8 to 2.5",
        make: cube,
    },
    Family {
        name: "planted",
        what: "18 to 22 spins that remember 2 to 5 patterns of unequal strength (Hopfield)",
        make: planted,
    },
    Family {
        name: "states",
        what: "grids of 4x4 to 6x6 units of three or four states, couplings N(0, 1) to N(0, 4)",
        make: states,
    },
];

fn strong_grid(which: Which) -> Fallible<Machine> {
    let (numbers, k) = (Numbers::new(11, which), which.k);
    let most = [4.0, 7.0, 10.0][k / 3 % 3];
    let edge = |a: usize, b: usize| most * numbers.even(0, a * 400 + b);
    lattice([8, 12, 16][k % 3], false, edge, |i| numbers.even(1, i))
}

fn strong_rbm(which: Which) -> Fallible<Machine> {
    let scale = [3.0, 4.0, 5.0][which.k / 4 % 3];
    normal_rbm(&Numbers::new(12, which), 14 + which.k % 4 * 2, scale)
}

fn spin_rbm(which: Which) -> Fallible<Machine> {
    let (numbers, k) = (Numbers::new(16, which), which.k);
    let (n, scale) = (16 + k % 4 * 2, [0.5, 0.8, 1.0, 1.2][k / 4 % 4]);
    let mut layers = Vec::new();
    for (l, (name, role)) in [("v", Role::Visible), ("h", Role::Hidden)].into_iter().enumerate() {
        let mut layer = Layer::new(name, role, Units::Spin, n)?;
        let field = |i: usize| if k % 8 < 4 { numbers.even(1 + l, i) } else { 0.0 };
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = field(i));
        layers.push(layer);
    }
    let normals = numbers.normals(0, n * n);
    let weights = Matrix::from_fn(n, n, |i, j| scale * normals[i * n + j])?;
    Ok(Machine::new(layers, vec![Coupling::between(LayerId(0), LayerId(1), weights)])?)
}

fn cube(which: Which) -> Fallible<Machine> {
    let (numbers, k) = (Numbers::new(13, which), which.k);
    let sides = [[3, 3, 3], [4, 3, 3], [4, 4, 3]][k % 3];
    let n: usize = sides.iter().product();
    let beta = [0.8, 1.2, 1.7, 2.5][k / 3 % 4];
    let place = |i: usize| [i / (sides[1] * sides[2]), i / sides[2] % sides[1], i % sides[2]];
    let apart = |a: usize, b: usize| -> usize {
        place(a).iter().zip(place(b)).map(|(x, y)| x.abs_diff(y)).sum()
    };
    let pairs = (0..n).flat_map(|b| (0..b).map(move |a| (a, b)));
    let edges = pairs.filter(|&(a, b)| apart(a, b) == 1);
    let edges = edges.map(|(a, b)| (a, b, beta * numbers.even(0, a * 64 + b).signum()));
    let spins = Layer::new("spins", Role::Visible, Units::Spin, n)?;
    Ok(Machine::new(vec![spins], vec![Coupling::sparse(LayerId(0), Edges::new(n, edges)?)])?)
}

fn planted(which: Which) -> Fallible<Machine> {
    let (numbers, k) = (Numbers::new(14, which), which.k);
    let (n, patterns) = (18 + k % 5, 2 + k / 5 % 4);
    let beta = [1.5, 3.0][k / 20 % 2];
    let spins = Layer::new("spins", Role::Visible, Units::Spin, n)?;
    let weight = |a: usize, b: usize| {
        let of = |p: usize| numbers.even(p, a).signum() * numbers.even(p, b).signum();
        let strength = |p: usize| 1.0 + 0.15 * numbers.even(20, p);
        beta / n as f64 * (0..patterns).map(|p| strength(p) * of(p)).sum::<f64>()
    };
    let weights = Triangle::from_fn(n, weight)?;
    Ok(Machine::new(vec![spins], vec![Coupling::lateral(LayerId(0), weights)])?)
}

fn states(which: Which) -> Fallible<Machine> {
    let (numbers, k) = (Numbers::new(15, which), which.k);
    let (side, q) = (4 + k % 3, 3 + k / 3 % 2);
    let scale = [1.0, 1.5, 2.0][k / 6 % 3];
    let n = side * side;
    let units = Layer::new("units", Role::Visible, Units::Categorical { q }, n)?;
    let normals = numbers.normals(0, n * n * q * q);
    let near =
        |a: usize, b: usize| (a / side).abs_diff(b / side) + (a % side).abs_diff(b % side) == 1;
    let pairs = (0..n).flat_map(|b| (0..b).map(move |a| (a, b))).filter(|&(a, b)| near(a, b));
    let edges = pairs.flat_map(|(a, b)| {
        let normals = &normals;
        (0..q * q)
            .map(move |s| (a * q + s / q, b * q + s % q, scale * normals[(a * n + b) * q * q + s]))
    });
    let edges: Vec<_> = edges.collect();
    let edges = Edges::new(n * q, edges)?;
    Ok(Machine::new(vec![units], vec![Coupling::sparse(LayerId(0), edges)])?)
}
