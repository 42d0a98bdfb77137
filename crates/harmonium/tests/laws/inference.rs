//! Mean field and its bound.

use crate::machines::{all, assert_close, assert_gradient, named, noise, own_energy, some_states};
use harmonium::engine::Arithmetic;
use harmonium::evaluation::bound;
use harmonium::exact;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, State, Triangle};
use harmonium::models::{Bm, Dbm, Lateral};
use harmonium::moments::Moments;
use harmonium::sampling::{Clamp, MeanField, Sampler};
use harmonium::units::{Storage, Units};

/// `x` with the hidden layers at random means of a factorised `q`.
fn random_means(machine: &Machine, x: &State, seed: u64) -> State {
    let mut q = x.clone();
    for l in machine.layer_ids().filter(|&l| !Clamp::visible(machine).holds_layer(l)) {
        let layer = machine.layer(l);
        for row in 0..x.n_rows() {
            let theta = |i: usize| 3.0 * noise(seed, (l.0 * 50 + row) * 20 + i);
            let mut means: Vec<f64> = (0..layer.len()).map(theta).collect();
            layer.units.mean_in_place(&mut means, layer.own());
            q.set_row(l, row, &means).unwrap();
        }
    }
    q
}

/// Machines whose hidden units are discrete, so that $KL(q\|p)$ is a sum.
fn with_discrete_hidden() -> Vec<(String, Machine)> {
    let hidden_discrete = |m: &Machine| {
        let clamp = Clamp::visible(m);
        m.layer_ids().all(|l| clamp.holds_layer(l) || m.layer(l).units.is_finite())
    };
    all().into_iter().filter(|(_, m)| hidden_discrete(m) && m.layers().len() > 1).collect()
}

/// The probability of a value of a unit of whole numbers whose mean is known: its own energy and a $\theta$ that is
/// found by halving.
fn share_of(layer: &Layer, i: usize, mean: f64, x: f64) -> f64 {
    let values = layer.units.configurations().unwrap().0.concat();
    let weight = |theta: f64, k: f64| (theta * k - own_energy(layer, i, k)).exp();
    let total = |theta: f64| values.iter().map(|&k| weight(theta, k)).sum::<f64>();
    let (mut low, mut high) = (-60.0, 60.0);
    for _ in 0..200 {
        let theta = 0.5 * (low + high);
        let found = values.iter().map(|&k| k * weight(theta, k)).sum::<f64>() / total(theta);
        if found < mean { low = theta } else { high = theta }
    }
    weight(low, x) / total(low)
}

/// The probability that independent units with means `q` take the values of `x`.
fn factorised(machine: &Machine, q: &State, row: usize, x: &State, state: usize) -> f64 {
    let clamp = Clamp::visible(machine);
    let mut p = 1.0;
    for l in machine.layer_ids().filter(|&l| !clamp.holds_layer(l)) {
        for (i, (m, x)) in q.row(l, row).iter().zip(x.row(l, state)).enumerate() {
            p *= match machine.layer(l).units {
                units if units.storage() == Storage::Levels => {
                    share_of(machine.layer(l), i, *m, *x)
                }
                Units::Binary => {
                    if *x == 1.0 {
                        *m
                    } else {
                        1.0 - m
                    }
                }
                Units::Spin => 0.5 * (1.0 + x * m),
                _ => {
                    if *x == 1.0 {
                        *m
                    } else {
                        1.0
                    }
                }
            };
        }
    }
    p
}

#[test]
fn the_bound_misses_the_likelihood_by_the_kl_divergence() {
    for (name, machine) in with_discrete_hidden() {
        let x = some_states(&machine, 3, 21);
        let clamp = Clamp::visible(&machine);
        let log_z = exact::log_partition(&machine).unwrap();
        let log_p = exact::log_probabilities(&machine, &clamp, &x).unwrap();
        for seed in 0..4 {
            let q = random_means(&machine, &x, seed);
            let elbo = bound::unnormalised(&machine, &clamp, &q).unwrap();
            for row in 0..x.n_rows() {
                let states = exact::states(&machine, &clamp, &x, row).unwrap();
                let p = exact::probabilities(&machine, &states).unwrap();
                let kl: f64 = (0..states.n_rows())
                    .map(|s| {
                        let q = factorised(&machine, &q, row, &states, s);
                        if q > 0.0 { q * (q / p[s]).ln() } else { 0.0 }
                    })
                    .sum();
                assert!(kl >= -1e-12, "{name}: KL = {kl}");
                assert_close(log_p[row] - (elbo[row] - log_z), kl, 1e-10, &name);
            }
        }
    }
}

#[test]
fn sequential_mean_field_never_lowers_the_bound() {
    for (name, machine) in all() {
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let clamp = Clamp::visible(&machine);
        let x = some_states(&machine, 5, 22);
        for damping in [0.0, 0.5] {
            let mut q = random_means(&machine, &x, 5);
            let mut before = bound::unnormalised(&machine, &clamp, &q).unwrap();
            let first = before.clone();
            for _ in 0..20 {
                let one = MeanField { tolerance: 0.0, max_sweeps: 1, damping };
                sampler.mean_field(&clamp, &mut q, one).unwrap();
                let after = bound::unnormalised(&machine, &clamp, &q).unwrap();
                for (b, a) in before.iter().zip(&after) {
                    assert!(*a >= b - 1e-12 * (1.0 + b.abs()), "{name}: {b} fell to {a}");
                }
                before = after;
            }
            let clamped_all = machine.layer_ids().all(|l| clamp.holds_layer(l));
            assert!(clamped_all || before.iter().zip(&first).any(|(a, b)| a > b), "{name}");
        }
    }
}

#[test]
fn the_fixed_point_is_stationary_and_reported() {
    let settings = MeanField { tolerance: 1e-12, max_sweeps: 2000, damping: 0.0 };
    for (name, machine) in all() {
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let clamp = Clamp::visible(&machine);
        let mut q = random_means(&machine, &some_states(&machine, 3, 23), 6);
        let report = sampler.mean_field(&clamp, &mut q, settings).unwrap();
        assert_eq!(report.unconverged, 0, "{name}: {report:?}");
        assert!(report.change <= 1e-12 && report.mean_sweeps <= report.sweeps as f64);
        // Along each mean, kept inside its simplex, the slope of the bound is zero.
        for l in machine.layer_ids().filter(|&l| !clamp.holds_layer(l)) {
            let layer = machine.layer(l);
            let group = layer.units.group();
            for i in 0..layer.len() {
                let slope = |h: f64| {
                    let mut moved = q.clone();
                    let mut values = q.row(l, 0).to_vec();
                    values[i] += h;
                    if group > 1 {
                        let other = i / group * group + (i + 1) % group;
                        values[other] -= h;
                    }
                    moved.set_row(l, 0, &values).unwrap();
                    bound::unnormalised(&machine, &clamp, &moved).unwrap()[0]
                };
                let h = 1e-6;
                let numeric = (slope(h) - slope(-h)) / (2.0 * h);
                assert!(numeric.abs() < 1e-5, "{name}: {numeric} at {l:?}, {i}");
            }
        }
    }
}

/// Damping keeps that share of the old value: one damped sweep of an RBM's posterior goes part of
/// the way to the mean.
#[test]
fn a_damped_sweep_goes_part_of_the_way() {
    let machine = named("rbm of binary");
    let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
    let clamp = Clamp::visible(&machine);
    let start = random_means(&machine, &some_states(&machine, 3, 23), 6);
    let sweep = |damping: f64| {
        let mut q = start.clone();
        let one = MeanField { tolerance: 0.0, max_sweeps: 1, damping };
        let report = sampler.mean_field(&clamp, &mut q, one).unwrap();
        (q, report.change)
    };
    let ((full, whole_change), (damped, change)) = (sweep(0.0), sweep(0.75));
    assert_close(0.25 * whole_change, change, 1e-12, "one sweep");
    for l in machine.layer_ids().filter(|&l| !clamp.holds_layer(l)) {
        for row in 0..3 {
            let ends = start.row(l, row).iter().zip(full.row(l, row));
            for ((old, new), found) in ends.zip(damped.row(l, row)) {
                assert_close(0.75 * old + 0.25 * new, *found, 1e-12, "one sweep");
            }
        }
    }
}

#[test]
fn what_has_not_converged_says_so() {
    let machine = named("lateral of binary");
    let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
    let mut q = random_means(&machine, &some_states(&machine, 3, 23), 6);
    let one = MeanField { tolerance: 1e-12, max_sweeps: 1, damping: 0.0 };
    let report = sampler.mean_field(&Clamp::visible(&machine), &mut q, one).unwrap();
    assert_eq!((report.sweeps, report.unconverged), (1, 3));
    assert!(report.change > 1e-12);
}

#[test]
fn mean_field_is_exact_where_the_posterior_factorises() {
    let mut tried = 0;
    for (name, machine) in all() {
        let clamp = Clamp::visible(&machine);
        let hidden: Vec<_> = machine.layer_ids().filter(|&l| !clamp.holds_layer(l)).collect();
        let sees = hidden.iter().any(|&l| hidden.iter().any(|&m| machine.coupled(l, m)));
        if sees || hidden.is_empty() {
            continue;
        }
        tried += 1;
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let x = some_states(&machine, 3, 24);
        let mut q = random_means(&machine, &x, 7);
        let report = sampler.mean_field(&clamp, &mut q, MeanField::default()).unwrap();
        assert_eq!(report.sweeps, 2, "{name}: one sweep moves, the second sees that it is done");
        let weights = [0.5, 0.25, 0.25];
        let exact = exact::moments(&machine, &clamp, &x, &weights).unwrap();
        let mut found = Moments::zeros(&machine);
        found.add(&machine, &q, &weights);
        for (a, b) in exact.slices().concat().iter().zip(found.slices().concat()) {
            assert_close(*a, b, 1e-11, &name);
        }
        let elbo = bound::unnormalised(&machine, &clamp, &q).unwrap();
        let sums = exact::log_sums(&machine, &clamp, &x).unwrap();
        for (a, b) in sums.iter().zip(&elbo) {
            assert_close(*a, *b, 1e-11, &name);
        }
    }
    assert!(tried >= 8);
}

/// With q fixed the gradient of the bound is a difference of moments, for every parameter.
#[test]
fn mean_field_gradients_are_slopes_of_the_bound() {
    for (name, machine) in all() {
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let clamp = Clamp::visible(&machine);
        let mut q = random_means(&machine, &some_states(&machine, 2, 25), 8);
        let settings = MeanField { tolerance: 1e-13, max_sweeps: 3000, damping: 0.0 };
        sampler.mean_field(&clamp, &mut q, settings).unwrap();
        let mut gradient = Moments::zeros(&machine);
        gradient.add(&machine, &q, &[0.5, 0.5]);
        let one = State::zeros(&machine, 1).unwrap();
        let model = exact::moments(&machine, &Clamp::none(), &one, &[1.0]).unwrap();
        let gradient = gradient.minus(&model);
        // At the fixed point q may be held or found anew: the slope is the same (envelope).
        assert_gradient(&name, &machine, &gradient, |m| {
            let mut q = q.clone();
            Sampler::new(m.clone(), Arithmetic::F64).mean_field(&clamp, &mut q, settings).unwrap();
            let elbo = bound::unnormalised(m, &clamp, &q).unwrap();
            elbo.iter().sum::<f64>() / 2.0 - exact::log_partition(m).unwrap()
        });
    }
}

#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    for (name, machine) in all() {
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let clamp = Clamp::visible(&machine);
        let mut many = random_means(&machine, &some_states(&machine, 40, 26), 9);
        let start = many.clone();
        sampler.mean_field(&clamp, &mut many, MeanField::default()).unwrap();
        for row in [0, 17, 39] {
            let mut one = State::zeros(&machine, 1).unwrap();
            for l in machine.layer_ids() {
                one.set_row(l, 0, start.row(l, row)).unwrap();
            }
            sampler.mean_field(&clamp, &mut one, MeanField::default()).unwrap();
            for l in machine.layer_ids() {
                assert_eq!(one.row(l, 0), many.row(l, row), "{name}");
            }
        }
    }
}

/// Chains of layers, a label layer beside the data, spins: what the kernels' own way takes.
fn deep() -> Vec<(&'static str, Machine)> {
    let bits = |n| (Units::Binary, n);
    let mut machines = vec![
        ("two hidden layers", Dbm::binary(70, &[130, 33]).unwrap().into_machine()),
        ("three hidden layers", Dbm::binary(70, &[65, 64, 10]).unwrap().into_machine()),
        (
            "spins",
            Dbm::new((Units::Spin, 40), &[(Units::Spin, 70), bits(9)]).unwrap().into_machine(),
        ),
        (
            "real data",
            Dbm::new((Units::Gaussian, 20), &[bits(70), bits(9)]).unwrap().into_machine(),
        ),
    ];
    for (_, machine) in &mut machines {
        let layers: Vec<Layer> = machine
            .layers()
            .iter()
            .enumerate()
            .map(|(l, layer)| {
                let mut layer = layer.clone();
                layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = noise(40 + l as u64, i));
                layer.offset.iter_mut().enumerate().for_each(|(i, o)| *o = noise(50 + l as u64, i));
                layer
            })
            .collect();
        let couplings = machine.couplings().iter().enumerate().map(|(c, coupling)| {
            let (a, b) = coupling.between;
            let (n, m) = (machine.layer(a).len(), machine.layer(b).len());
            let w = |i, j| 3.0 * noise(60 + c as u64, i * 200 + j) / (n as f64).sqrt();
            Coupling::between(a, b, Matrix::from_fn(n, m, w).unwrap())
        });
        *machine = Machine::new(layers, couplings.collect()).unwrap();
    }
    machines
}

/// The kernels' way ends where double precision does, from the same start; rows that have settled are out
/// of the way, and how long each took is reported alike.
#[test]
fn every_precision_finds_the_same_fixed_point() {
    let mut rested_early = false;
    for (name, machine) in deep() {
        let clamp = Clamp::visible(&machine);
        let x = some_states(&machine, 150, 27);
        for damping in [0.0, 0.3] {
            let settings = MeanField { tolerance: 1e-6, max_sweeps: 500, damping };
            let found = |precision: Arithmetic| {
                let sampler = Sampler::new(machine.clone(), precision);
                let mut q = x.clone();
                let report = sampler.mean_field(&clamp, &mut q, settings).unwrap();
                (q, report)
            };
            let (exact, slow) = found(Arithmetic::F64);
            for precision in [Arithmetic::F32, Arithmetic::I16] {
                let (q, report) = found(precision);
                assert_eq!(report.unconverged, 0, "{name}");
                rested_early |= report.mean_sweeps < report.sweeps as f64;
                let apart = (report.mean_sweeps - slow.mean_sweeps).abs() / slow.mean_sweeps;
                // Means of 14 bits move in steps of 6e-5: the last sweeps to 1e-6 are others.
                let alike = if precision == Arithmetic::I16 { 0.3 } else { 0.1 };
                assert!(apart < alike, "{name}: {report:?} {slow:?}");
                for l in machine.layer_ids().filter(|&l| !clamp.holds_layer(l)) {
                    // A layer that the data drives takes quantised weights for its first part.
                    let tolerance = if precision == Arithmetic::I16 { 1e-2 } else { 3e-5 };
                    for (a, b) in q.layer(l).iter().zip(exact.layer(l)) {
                        assert_close(*a, *b, tolerance, &format!("{name}, {precision:?}"));
                    }
                }
            }
        }
    }
    assert!(rested_early, "no row came to rest before another");
}

/// The start is each layer's mean given what is held or was started before it, with the rest at
/// their offsets: on a chain and wherever several layers are held, in every precision.
#[test]
fn a_start_outwards_takes_what_is_known_and_offsets_for_the_rest() {
    let precisions = [(Arithmetic::F64, 1e-12), (Arithmetic::F32, 3e-6), (Arithmetic::I16, 1e-2)];
    for ((name, machine), (precision, tolerance)) in
        all().into_iter().flat_map(|m| precisions.map(|p| (m.clone(), p)))
    {
        let sampler = Sampler::new(machine.clone(), precision);
        let clamp = Clamp::visible(&machine);
        let mut q = some_states(&machine, 3, 28);
        sampler.start_outwards(&clamp, &mut q).unwrap();
        let mut known = machine.visible_layers();
        let coupled = |l: LayerId, m: &LayerId| *m != l && machine.coupled(l, *m);
        let next = |known: &[LayerId]| {
            let reached = |l: &LayerId| known.iter().any(|m| coupled(*l, m));
            machine.layer_ids().find(|l| !known.contains(l) && reached(l))
        };
        while let Some(l) = next(&known) {
            // Laterally coupled layers are visited unit by unit: another law holds them.
            for row in (0..3).filter(|_| !machine.has_lateral(l)) {
                let mut alone = State::zeros(&machine, 1).unwrap();
                for m in machine.layer_ids() {
                    let values = if known.contains(&m) {
                        q.row(m, row).to_vec()
                    } else {
                        machine.layer(m).offset.clone()
                    };
                    alone.set_row(m, 0, &values).unwrap();
                }
                let layer = machine.layer(l);
                let mut expected = machine.theta(l, &alone, 0).unwrap();
                layer.units.mean_in_place(&mut expected, layer.own());
                for (a, b) in q.row(l, row).iter().zip(&expected) {
                    assert_close(*a, *b, tolerance, &format!("{name}, {precision:?}"));
                }
            }
            known.push(l);
        }
    }
}

/// The parts of the bound add up to it, and on a general Boltzmann machine they are the terms of
/// the formula, written out.
#[test]
fn the_terms_of_the_bound_are_those_of_the_formula() {
    for (name, machine) in all() {
        let clamp = Clamp::visible(&machine);
        let q = random_means(&machine, &some_states(&machine, 4, 29), 11);
        let whole = bound::unnormalised(&machine, &clamp, &q).unwrap();
        for (terms, whole) in bound::terms(&machine, &clamp, &q).unwrap().iter().zip(whole) {
            assert_close(terms.sum(), whole, 1e-10, &name);
        }
    }
    let (n, m) = (5, 4);
    let mut machine =
        Bm::new((Units::Binary, n), (Units::Binary, m), Lateral::Both).unwrap().into_machine();
    let w = |i: usize, j: usize| noise(70, i * 10 + j);
    let (l, j) =
        (|i: usize, k: usize| noise(71, i * 10 + k), |i: usize, k: usize| noise(72, i * 10 + k));
    let layers: Vec<Layer> = machine
        .layers()
        .iter()
        .cloned()
        .map(|mut layer| {
            layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = noise(73, i));
            layer
        })
        .collect();
    let couplings = vec![
        Coupling::between(LayerId(0), LayerId(1), Matrix::from_fn(n, m, w).unwrap()),
        Coupling::lateral(LayerId(0), Triangle::from_fn(n, l).unwrap()),
        Coupling::lateral(LayerId(1), Triangle::from_fn(m, j).unwrap()),
    ];
    machine = Machine::new(layers, couplings).unwrap();
    let clamp = Clamp::visible(&machine);
    let q = random_means(&machine, &some_states(&machine, 1, 30), 12);
    let terms = bound::terms(&machine, &clamp, &q).unwrap()[0];
    let (v, mu) = (q.row(LayerId(0), 0), q.row(LayerId(1), 0));
    let pairs = |n: usize| (0..n).flat_map(move |i| (i + 1..n).map(move |k| (i, k)));
    let a: f64 = (0..n).flat_map(|i| (0..m).map(move |k| v[i] * w(i, k) * mu[k])).sum();
    let b: f64 = pairs(m).map(|(i, k)| mu[i] * j(i, k) * mu[k]).sum();
    let c: f64 = mu.iter().map(|p| -(p * p.ln() + (1.0 - p) * (1.0 - p).ln())).sum();
    let visible: f64 = pairs(n).map(|(i, k)| v[i] * l(i, k) * v[k]).sum();
    let bias: f64 = v.iter().chain(mu).zip((0..n).chain(0..m)).map(|(x, i)| x * noise(73, i)).sum();
    for (found, expected) in [
        (terms.held_free, a),
        (terms.free_free, b),
        (terms.entropy, c),
        (terms.held_held, visible),
        (terms.own, bias),
        (terms.constant, 0.0),
    ] {
        assert_close(found, expected, 1e-12, "a term of the bound");
    }
}
