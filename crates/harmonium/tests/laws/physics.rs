//! Machines of statistical physics against closed forms.

use crate::machines::{assert_close, some_states};
use crate::statistics::assert_mean;
use harmonium::engine::Arithmetic;
use harmonium::exact;
use harmonium::machine::{Coupling, Edges, Layer, LayerId, Machine, Role, State};
use harmonium::models::{LONGEST_SIDE, MOST_SPINS, curie_weiss, ising, ising_torus, potts};
use harmonium::random::Stream;
use harmonium::sampling::{Chains, Clamp, Sampler};
use harmonium::units::{Units, log_sum_exp};

/// $\ln Z$ of the torus by Kaufman's formula (Phys. Rev. 76, 1949), $K$ in both directions.
fn kaufman(side: usize, k: f64) -> f64 {
    let n = side as f64;
    // cosh γ_q = cosh 2K coth 2K - cos(π q / n); γ_0 = 2K + ln tanh K may be negative.
    let gamma = |q: usize| {
        if q == 0 {
            return 2.0 * k + k.tanh().ln();
        }
        let c = (2.0 * k).cosh() / (2.0 * k).tanh() - (std::f64::consts::PI * q as f64 / n).cos();
        c.acosh()
    };
    let product = |odd: usize, sign: f64| {
        let factors = (0..side).map(|r| {
            let half = 0.5 * n * gamma(2 * r + odd);
            let e = half.exp() + sign * (-half).exp();
            (e.signum(), e.abs().ln())
        });
        factors.fold((1.0, 0.0), |a, f| (a.0 * f.0, a.1 + f.1))
    };
    let terms = [product(1, 1.0), product(1, -1.0), product(0, 1.0), product(0, -1.0)];
    let most = terms.iter().map(|t| t.1).fold(f64::MIN, f64::max);
    let sum: f64 = terms.iter().map(|t| t.0 * (t.1 - most).exp()).sum();
    0.5 * n * n * (2.0 * (2.0 * k).sinh()).ln() - 2.0_f64.ln() + most + sum.ln()
}

#[test]
fn the_torus_has_kaufmans_partition_function() {
    // The formula itself against the values that were computed elsewhere.
    for (side, k, log_z) in [
        (4, 0.4, 14.561_093),
        (16, 0.4, 225.228_847),
        (64, 0.4, 3_601.874_269),
        (8, 0.2, 47.010_147),
        (32, 0.2, 752.159_552),
    ] {
        assert!((kaufman(side, k) - log_z).abs() < 1e-6, "{side}, {k}");
    }
    for side in 1..=4 {
        for k in [0.2, 0.4, 0.9] {
            let torus = ising_torus(side, k).unwrap();
            let found = exact::log_partition(torus.machine()).unwrap();
            assert_close(kaufman(side, k), found, 1e-11, &format!("{side}, {k}"));
        }
    }
}

/// Sums that take more than 2^60 terms by enumeration.
#[test]
fn larger_tori_have_it_too() {
    for (side, k, log_z) in
        [(6, 0.9, kaufman(6, 0.9)), (8, 0.4, 56.599_389), (9, 0.2, kaufman(9, 0.2))]
    {
        let torus = ising_torus(side, k).unwrap();
        let found = exact::log_partition(torus.machine()).unwrap();
        assert!((found - log_z).abs() < 1e-6, "{side}, {k}: {found}");
    }
}

/// The library's own closed form against elimination, which knows nothing of it: other weights along
/// rows and columns, both phases, weights of either sign where sides are even.
#[test]
fn tori_of_any_shape_have_the_sum_that_elimination_finds() {
    for (rows, columns, k1, k2) in [
        (3, 3, 0.4, 0.4),
        (3, 8, 0.2, 0.9),
        (8, 3, 0.2, 0.9),
        (4, 6, -0.3, 0.5),
        (6, 4, 0.7, -1.1),
        (5, 5, 0.440_686_793_509_771_5, 0.440_686_793_509_771_5),
        (4, 5, 3.0, 0.01),
        (4, 5, 0.01, 3.0),
        (4, 4, 40.0, 40.0),
    ] {
        let n = rows * columns;
        let bonds = (0..n).flat_map(|i| {
            let (r, c) = (i / columns, i % columns);
            let down = ((r + 1) % rows) * columns + c;
            let right = r * columns + (c + 1) % columns;
            [(i.min(down), i.max(down), k1), (i.min(right), i.max(right), k2)]
        });
        let layer = Layer::new("spins", Role::Visible, Units::Spin, n).unwrap();
        let edges = Edges::new(n, bonds).unwrap();
        let machine = Machine::new(vec![layer], vec![Coupling::sparse(LayerId(0), edges)]).unwrap();
        let machine = machine.with_constant(0.7).unwrap();
        let x = State::zeros(&machine, 1).unwrap();
        let eliminated = exact::log_sums(&machine, &Clamp::none(), &x).unwrap()[0];
        let found = exact::log_partition(&machine).unwrap();
        assert_close(eliminated, found, 1e-12, &format!("{rows}x{columns}, {k1}, {k2}"));
        assert_eq!(exact::cost_of_partition(&machine).unwrap().log2_total, 0.0);
        // With a field, or a bond of its own, it is another machine.
        let mut layers = machine.layers().to_vec();
        layers[0].bias[1] = 0.1;
        let other = Machine::new(layers, machine.couplings().to_vec()).unwrap();
        let changed = exact::log_sums(&other, &Clamp::none(), &x).unwrap()[0];
        assert_close(changed, exact::log_partition(&other).unwrap(), 1e-12, "with a field");
        assert!((changed - found).abs() > 1e-4);
    }
}

/// Lattices bond by bond: every site with one to the next in each direction, double bonds and loops to
/// the letter.
#[test]
fn lattices_have_the_energy_of_their_bonds() {
    for sides in [vec![3, 4], vec![2, 3], vec![1, 4], vec![2, 2, 3], vec![1, 1], vec![5]] {
        let n: usize = sides.iter().product();
        let next = |site: usize, direction: usize| {
            let stride: usize = sides[direction + 1..].iter().product();
            let (at, side) = (site / stride % sides[direction], sides[direction]);
            site - at * stride + (at + 1) % side * stride
        };
        let bonds: Vec<(usize, usize)> = (0..n)
            .flat_map(|site| (0..sides.len()).map(move |d| (site, d)))
            .map(|(site, d)| (site, next(site, d)))
            .collect();
        let spins = ising(&sides, 0.7, -0.3).unwrap().into_machine();
        let colours = potts(&sides, 3, 0.6).unwrap().into_machine();
        for machine in [&spins, &colours] {
            let x = some_states(machine, 5, 70);
            for (row, energy) in machine.energies(&x).unwrap().iter().enumerate() {
                let values = x.row(LayerId(0), row);
                let expected: f64 = if machine.layers()[0].units == Units::Spin {
                    let pairs: f64 = bonds.iter().map(|&(i, j)| values[i] * values[j]).sum();
                    -0.7 * pairs + 0.3 * values.iter().sum::<f64>()
                } else {
                    let same = |&&(i, j): &&(usize, usize)| {
                        values[3 * i..3 * i + 3] == values[3 * j..3 * j + 3]
                    };
                    -0.6 * bonds.iter().filter(same).count() as f64
                };
                assert_close(expected, *energy, 1e-12, &format!("{sides:?}"));
            }
        }
    }
    // Two states of a Potts model are spins of half the strength, up to a constant for each bond.
    let two = exact::log_partition(potts(&[4, 4], 2, 0.9).unwrap().machine()).unwrap();
    let spins = exact::log_partition(ising(&[4, 4], 0.45, 0.0).unwrap().machine()).unwrap();
    assert_close(spins + 32.0 * 0.45, two, 1e-12, "Potts with two states");
    // A box of 3x3x3 spins is narrow enough to be summed.
    let strong = exact::log_partition(ising(&[3, 3, 3], 20.0, 0.0).unwrap().machine()).unwrap();
    assert_close(81.0 * 20.0 + 2.0_f64.ln(), strong, 1e-12, "frozen");
}

/// Large tori at once, in both phases.
#[test]
fn large_tori_have_their_known_sums_at_once() {
    for (side, k, log_z) in [
        (16, 0.4, 225.228_847),
        (32, 0.4, 900.478_308),
        (64, 0.4, 3_601.874_269),
        (16, 0.2, 188.039_888),
        (64, 0.2, 3_008.638_207),
        (200, 0.6, kaufman(200, 0.6)),
    ] {
        let found = exact::log_partition(ising_torus(side, k).unwrap().machine()).unwrap();
        assert!((found - log_z).abs() < 1e-6, "{side}, {k}: {found}, not {log_z}");
    }
}

/// Long chains of a large torus: $\langle\sum s_i s_j\rangle = \partial\ln Z/\partial K$.
#[test]
fn large_tori_have_kaufmans_energy() {
    let (side, k, h) = (32, 0.3, 1e-5);
    let expected = (kaufman(side, k + h) - kaufman(side, k - h)) / (2.0 * h);
    let torus = ising_torus(side, k).unwrap().into_machine();
    for precision in [Arithmetic::F64, Arithmetic::F32, Arithmetic::I16] {
        let sampler = Sampler::new(torus.clone(), precision);
        let mut chains = Chains::new(&torus, 200, Stream::new(61)).unwrap();
        chains.advance(&sampler, 100, Stream::new(62)).unwrap();
        let energies = torus.energies(chains.state()).unwrap();
        let bonds: Vec<f64> = energies.iter().map(|e| -e / k).collect();
        assert_mean(&format!("{precision:?}"), &bonds, expected);
    }
}

#[test]
fn the_curie_weiss_model_has_its_partition_function() {
    for (n, beta, log_z) in [(20, 0.5, 14.198_376), (20, 1.0, 14.959_815), (20, 1.5, 17.190_061)] {
        let found = exact::log_partition(curie_weiss(n, beta).unwrap().machine()).unwrap();
        assert!((found - log_z).abs() < 1e-6, "{n}, {beta}: {found}");
    }
    for n in 1..8 {
        // By the number of spins that point up.
        let log_choose = |k: usize| -> f64 {
            (0..k).map(|i| ((n - i) as f64).ln() - ((i + 1) as f64).ln()).sum()
        };
        let term = |k: usize| {
            let sum = 2.0 * k as f64 - n as f64;
            log_choose(k) + 0.7 / (2.0 * n as f64) * sum * sum
        };
        let expected = log_sum_exp(&(0..=n).map(term).collect::<Vec<_>>());
        let found = exact::log_partition(curie_weiss(n, 0.7).unwrap().machine()).unwrap();
        assert_close(expected, found, 1e-12, &format!("{n} spins"));
    }
}

#[test]
fn an_even_torus_is_a_chessboard() {
    for (side, n_colours) in [(1, 1), (2, 2), (4, 2), (64, 2)] {
        let torus = ising_torus(side, 0.4).unwrap();
        assert_eq!(torus.machine().unit_blocks(LayerId(0)).len(), n_colours, "side {side}");
    }
    for side in [3, 5, 31] {
        let torus = ising_torus(side, 0.4).unwrap();
        assert!(torus.machine().unit_blocks(LayerId(0)).len() <= 5, "side {side}");
    }
}

#[test]
fn nonsense_is_refused() {
    for side in [0, LONGEST_SIDE + 1, usize::MAX] {
        let error = ising_torus(side, 0.4).unwrap_err();
        assert!(error.to_string().contains(&side.to_string()), "{error}");
    }
    for n in [0, MOST_SPINS + 1, usize::MAX] {
        assert!(curie_weiss(n, 1.0).is_err());
    }
    for k in [f64::NAN, f64::INFINITY] {
        assert!(ising_torus(4, k).is_err() && curie_weiss(4, k).is_err());
    }
}
