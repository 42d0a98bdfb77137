//! The oracle itself, against sums written out and numbers known from elsewhere.

use crate::machines::{
    all, assert_close, assert_gradient, discrete, every_state, gaussian, named, some_states,
    statistic,
};
use harmonium::Error;
use harmonium::exact;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Role, State, Triangle, Weights};
use harmonium::models::{Bm, Dbm, Lateral, Rbm};
use harmonium::moments::Moments;
use harmonium::sampling::Clamp;
use harmonium::units::{Units, log_sum_exp};

/// The clamps every law about conditional sums is tried with.
fn clamps(machine: &Machine) -> Vec<(&'static str, Clamp)> {
    let first_unit =
        |l: LayerId| (0..machine.layer(l).n_units()).map(|u| u == 0).collect::<Vec<bool>>();
    let last = LayerId(machine.layers().len() - 1);
    vec![
        ("nothing", Clamp::none()),
        ("the visible layers", Clamp::visible(machine)),
        (
            "a unit of each end",
            Clamp::none()
                .with_units(LayerId(0), first_unit(LayerId(0)))
                .with_units(last, first_unit(last)),
        ),
    ]
}

#[test]
fn sums_and_moments_agree_with_all_states_written_out() {
    for (name, machine) in discrete() {
        let x = some_states(&machine, 3, 11);
        for (held, clamp) in clamps(&machine) {
            let what = format!("{name}, {held} held");
            let sums = exact::log_sums(&machine, &clamp, &x).unwrap();
            for (row, sum) in sums.iter().enumerate() {
                let states = exact::states(&machine, &clamp, &x, row).unwrap();
                let logs: Vec<f64> =
                    machine.energies(&states).unwrap().iter().map(|e| -e).collect();
                assert_close(log_sum_exp(&logs), *sum, 1e-11, &what);
            }
            let weights = [0.2, 0.5, 0.3];
            let found = exact::moments(&machine, &clamp, &x, &weights).unwrap();
            let mut expected = Moments::zeros(&machine);
            for (row, w) in weights.iter().enumerate() {
                let states = exact::states(&machine, &clamp, &x, row).unwrap();
                let p = exact::probabilities(&machine, &states).unwrap();
                let p: Vec<f64> = p.iter().map(|p| p * w).collect();
                expected.add(&machine, &states, &p);
            }
            for (a, b) in expected.slices().concat().iter().zip(found.slices().concat()) {
                assert_close(*a, b, 1e-11, &what);
            }
        }
    }
}

#[test]
fn moments_are_weighted_averages_of_products() {
    for (name, machine) in all() {
        let x = some_states(&machine, 4, 12);
        let weights = [0.1, 0.4, 0.2, 0.3];
        let mut moments = Moments::zeros(&machine);
        moments.add(&machine, &x, &weights);
        let average = |f: &dyn Fn(usize) -> f64| (0..4).map(|r| weights[r] * f(r)).sum::<f64>();
        for l in machine.layer_ids() {
            for i in 0..machine.layer(l).len() {
                let mean = average(&|r| x.row(l, r)[i]);
                assert_close(mean, moments.bias[l.0][i], 1e-12, &name);
                let (units, n) = (machine.layer(l).units, machine.layer(l).len());
                for k in 0..units.own_parameters().len() {
                    let term = average(&|r| -statistic(units, k, x.row(l, r)[i]));
                    assert_close(term, moments.own[l.0][k * n + i], 1e-12, &name);
                }
            }
        }
        for (c, found) in machine.couplings().iter().zip(&moments.weights) {
            let (a, b) = c.between;
            let (la, lb) = (machine.layer(a), machine.layer(b));
            let pairs: Vec<(usize, usize)> = match &c.weights {
                Weights::Sparse(edges) => edges.pairs().to_vec(),
                _ => (0..la.len())
                    .flat_map(|i| (if a == b { i + 1 } else { 0 }..lb.len()).map(move |j| (i, j)))
                    .collect(),
            };
            assert_eq!(pairs.len(), found.len());
            for ((i, j), found) in pairs.into_iter().zip(found) {
                let inside = a == b && la.units.same_unit(i, j);
                let product =
                    average(&|r| (x.row(a, r)[i] - la.offset[i]) * (x.row(b, r)[j] - lb.offset[j]));
                assert_close(if inside { 0.0 } else { product }, *found, 1e-12, &name);
            }
        }
    }
}

/// The trapezoidal rule for at most two Gaussian units at a time, everything else held.
#[test]
fn gaussian_sums_agree_with_quadrature() {
    for (name, machine) in gaussian() {
        let x = some_states(&machine, 2, 13);
        let discrete = machine.layer_ids().filter(|&l| machine.layer(l).units.is_finite());
        let mut real: Vec<(LayerId, usize)> = machine
            .layer_ids()
            .filter(|&l| !machine.layer(l).units.is_finite())
            .flat_map(|l| (0..machine.layer(l).len()).map(move |i| (l, i)))
            .collect();
        // Of many the first and the last, which may stand in different layers.
        real = if real.len() > 2 { vec![real[0], real[real.len() - 1]] } else { real };
        let mut clamp = Clamp::layers(discrete);
        for l in machine.layer_ids().filter(|&l| !machine.layer(l).units.is_finite()) {
            let held = (0..machine.layer(l).len()).map(|i| !real.contains(&(l, i))).collect();
            clamp = clamp.with_units(l, held);
        }
        let (n, h) = (240_usize, 0.125);
        let nodes: Vec<f64> = (0..=n).map(|k| (k as f64 - n as f64 / 2.0) * h).collect();
        let found = exact::log_sums(&machine, &clamp, &x).unwrap();
        for (row, found) in found.iter().enumerate() {
            // The trapezoidal rule converges geometrically for a Gaussian.
            let mut grid = State::zeros(&machine, nodes.len().pow(real.len() as u32)).unwrap();
            for point in 0..grid.n_rows() {
                let mut values: Vec<Vec<f64>> =
                    machine.layer_ids().map(|l| x.row(l, row).to_vec()).collect();
                let mut code = point;
                for &(l, i) in &real {
                    values[l.0][i] = nodes[code % nodes.len()];
                    code /= nodes.len();
                }
                for (l, values) in machine.layer_ids().zip(&values) {
                    grid.set_row(l, point, values).unwrap();
                }
            }
            let logs: Vec<f64> = machine.energies(&grid).unwrap().iter().map(|e| -e).collect();
            let quadrature = log_sum_exp(&logs) + real.len() as f64 * f64::ln(h);
            assert_close(quadrature, *found, 1e-9, &name);
        }
    }
}

#[test]
fn exact_gradients_are_slopes_of_the_exact_log_likelihood() {
    for (name, machine) in all() {
        let x = some_states(&machine, 3, 14);
        let weights = [1.0, 2.0, 0.5];
        let clamp = Clamp::visible(&machine);
        let gradient = exact::gradient(&machine, &clamp, &x, &weights).unwrap();
        assert_gradient(&name, &machine, &gradient, |m| {
            let logs = exact::log_probabilities(m, &clamp, &x).unwrap();
            logs.iter().zip(&weights).map(|(l, w)| l * w).sum::<f64>() / 3.5
        });
    }
}

#[test]
fn strong_couplings_do_not_overflow() {
    // Inputs of several hundred: beyond what exponentials can hold.
    let machine = named("rbm of binary");
    let mut step = Moments::zeros(&machine);
    step.weights[0].fill(500.0);
    step.bias[1].fill(300.0);
    let strong = crate::machines::moved(&machine, &step);
    let states = every_state(&strong);
    let logs: Vec<f64> = strong.energies(&states).unwrap().iter().map(|e| -e).collect();
    assert_close(log_sum_exp(&logs), exact::log_partition(&strong).unwrap(), 1e-12, "strong");
}

/// One layer of spins with couplings `weight(i, j)` for i < j.
fn spins(n: usize, weight: impl Fn(usize, usize) -> f64) -> Machine {
    let layer = Layer::new("spins", Role::Visible, Units::Spin, n).unwrap();
    let lateral = Coupling::lateral(LayerId(0), Triangle::from_fn(n, weight).unwrap());
    Machine::new(vec![layer], vec![lateral]).unwrap()
}

/// The square lattice of side `side` with periodic boundaries and coupling `k`.
fn ising_torus(side: usize, k: f64) -> Machine {
    spins(side * side, |i, j| {
        let ((r, c), (s, d)) = ((i / side, i % side), (j / side, j % side));
        let near = |a: usize, b: usize| (a + 1) % side == b || (b + 1) % side == a;
        f64::from(u8::from((r == s && near(c, d)) || (c == d && near(r, s)))) * k
    })
}

/// Kaufman 1949, as computed in the table of truths.
#[test]
fn the_ising_torus_has_its_known_partition_function() {
    for (k, log_z) in [(0.4, 14.561_093), (0.2, 11.771_470)] {
        assert!((exact::log_partition(&ising_torus(4, k)).unwrap() - log_z).abs() < 1e-6);
    }
}

/// $\ln\sum_s e^{(\beta/2N)(\sum s)^2}$; the diagonal is in it, so $E_0 = -\beta/2$.
#[test]
fn curie_weiss_has_its_known_partition_function() {
    for (beta, log_z) in [(0.5, 14.198_376), (1.0, 14.959_815), (1.5, 17.190_061)] {
        let machine = spins(20, |_, _| beta / 20.0).with_constant(-0.5 * beta).unwrap();
        assert!((exact::log_partition(&machine).unwrap() - log_z).abs() < 1e-6, "beta = {beta}");
    }
}

#[test]
fn the_cheaper_side_is_enumerated() {
    let terms = |m: &Machine| exact::log2_terms(m, &Clamp::none(), 1).unwrap();
    assert_eq!(terms(Rbm::binary(784, 20).unwrap().machine()), 20.0);
    assert_eq!(terms(Rbm::binary(5, 500).unwrap().machine()), 5.0);
    // Alternate layers: 6 + 4 against 50 + 5.
    assert_eq!(terms(Dbm::binary(50, &[6, 5, 4]).unwrap().machine()), 10.0);
    let sizes = ((Units::Binary, 7), (Units::Binary, 4));
    let lateral = |l| Bm::new(sizes.0, sizes.1, l).unwrap().into_machine();
    assert_eq!(terms(&lateral(Lateral::Visible)), 7.0);
    assert_eq!(terms(&lateral(Lateral::Hidden)), 4.0);
    assert_eq!(terms(&lateral(Lateral::Both)), 11.0);
    let gaussian = Rbm::new((Units::Gaussian, 100), (Units::Categorical { q: 4 }, 3)).unwrap();
    assert_eq!(terms(gaussian.machine()), 6.0);
}

#[test]
fn too_many_terms_are_refused_with_their_number() {
    let rbm = Rbm::binary(40, 35).unwrap();
    let error = exact::log_partition(rbm.machine()).unwrap_err();
    assert_eq!(error, Error::TooManyTerms { log2_terms: 35.0, limit: 30.0 });
    assert!(error.hint().contains("ais"));
    let x = State::zeros(rbm.machine(), 1).unwrap();
    // With the visible units held the hidden ones are summed in closed form.
    let clamp = Clamp::visible(rbm.machine());
    assert!(exact::log_sums(rbm.machine(), &clamp, &x).is_ok());
}

#[test]
fn a_machine_without_couplings_factorises() {
    for (name, machine) in all() {
        let base = harmonium::machine::Base::of_biases(&machine);
        let mut flat = machine.temper(&base, 0.0).unwrap();
        flat = flat.with_constant(0.0).unwrap();
        // Gaussian units that see each other are one Gaussian: they have their own law.
        let real = |l: LayerId| !machine.layer(l).units.is_finite();
        let joined = |c: &Coupling| real(c.between.0) && real(c.between.1);
        if machine.couplings().iter().any(joined) {
            continue;
        }
        let softplus: f64 =
            flat.layers().iter().map(|l| l.units.log_partition(&l.bias, l.own())).sum();
        assert_close(softplus, exact::log_partition(&flat).unwrap(), 1e-12, &name);
    }
}

#[test]
fn without_laterals_a_general_machine_is_the_rbm() {
    for units in [Units::Binary, Units::Spin, Units::Categorical { q: 3 }] {
        let rbm = named(&format!("rbm of {}", units.name()));
        let mut couplings = rbm.couplings().to_vec();
        for l in rbm.layer_ids() {
            couplings.push(Coupling::lateral(l, Triangle::zeros(rbm.layer(l).len()).unwrap()));
        }
        let constant = rbm.constant();
        let bm = Machine::new(rbm.layers().to_vec(), couplings)
            .unwrap()
            .with_constant(constant)
            .unwrap();
        assert!(
            exact::log2_terms(&bm, &Clamp::none(), 1).unwrap()
                > exact::log2_terms(&rbm, &Clamp::none(), 1).unwrap()
        );
        let log_z = |m: &Machine| exact::log_partition(m).unwrap();
        assert_close(log_z(&rbm), log_z(&bm), 1e-12, units.name());
        let x = some_states(&rbm, 3, 15);
        let clamp = Clamp::visible(&rbm);
        let p = |m: &Machine| exact::log_probabilities(m, &clamp, &x).unwrap();
        for (a, b) in p(&rbm).iter().zip(p(&bm)) {
            assert_close(*a, b, 1e-12, units.name());
        }
        let moments = |m: &Machine| exact::moments(m, &clamp, &x, &[1.0; 3]).unwrap();
        for (a, b) in moments(&rbm).weights[0].iter().zip(&moments(&bm).weights[0]) {
            assert_close(*a, *b, 1e-12, units.name());
        }
    }
}

#[test]
fn gaussian_couplings_that_are_too_strong_diverge_by_name() {
    let layer = Layer::new("real", Role::Visible, Units::Gaussian, 3).unwrap();
    let lateral = Coupling::lateral(LayerId(0), Triangle::from_fn(3, |_, _| 0.9).unwrap());
    let machine = Machine::new(vec![layer], vec![lateral]).unwrap();
    let error = exact::log_partition(&machine).unwrap_err();
    assert!(matches!(error, Error::Diverges { n_units: 3, .. }), "{error:?}");
}
