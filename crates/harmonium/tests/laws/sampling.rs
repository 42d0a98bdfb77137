//! Samplers leave the exact distribution where it is, and move as their conditionals say.

use crate::machines::{
    assert_close, discrete, every_state, extent, gaussian, key, named, noise, some_states,
};
use crate::statistics::{assert_distributed, assert_mean};
use harmonium::engine::Arithmetic;
use harmonium::exact;
use harmonium::machine::{
    Base, Coupling, Edges, Layer, LayerId, Machine, Role, State, Triangle, Weights,
};
use harmonium::moments::Moments;
use harmonium::random::{Site, Stream};
use harmonium::sampling::{Chains, Clamp, Sampler, Tempering, independent};
use harmonium::units::Units;
use ndarray::Array2;
use std::collections::BTreeMap;

/// Chains whose states are counted.
fn n_chains() -> usize {
    extent(8_000, 20_000)
}

const PRECISIONS: [Arithmetic; 3] = [Arithmetic::F64, Arithmetic::F32, Arithmetic::I16];

/// Rows drawn from `p` over the rows of `states`.
fn draw(machine: &Machine, states: &State, p: &[f64], n: usize, stream: Stream) -> State {
    let mut x = State::zeros(machine, n).unwrap();
    for row in 0..n {
        let mut u = stream.uniform(Site::default(), row);
        let chosen = p.iter().position(|p| {
            u -= p;
            u < 0.0
        });
        for l in machine.layer_ids() {
            x.set_row(l, row, states.row(l, chosen.unwrap_or(p.len() - 1))).unwrap();
        }
    }
    x
}

/// How often each row of `states` occurs in `x`.
fn count(
    machine: &Machine,
    states: &State,
    x: &State,
    rows: impl Iterator<Item = usize>,
) -> Vec<f64> {
    let places: BTreeMap<Vec<u64>, usize> =
        (0..states.n_rows()).map(|s| (key(machine, states, s), s)).collect();
    let mut counts = vec![0.0; states.n_rows()];
    for row in rows {
        counts[places[&key(machine, x, row)]] += 1.0;
    }
    counts
}

/// The exact distribution after one sweep from `start`, by resampling unit after unit over the
/// list of all states: what a sampler must do, written without one.
fn one_sweep(machine: &Machine, clamp: &Clamp, states: &State, start: usize) -> Vec<f64> {
    let weights = exact::probabilities(machine, states).unwrap();
    let keys: Vec<Vec<u64>> = (0..states.n_rows()).map(|s| key(machine, states, s)).collect();
    let mut p = vec![0.0; states.n_rows()];
    p[start] = 1.0;
    let first_entry = |l: LayerId| machine.layers()[..l.0].iter().map(Layer::len).sum::<usize>();
    for l in machine.schedule().concat() {
        let group = machine.layer(l).units.group();
        for unit in machine.unit_blocks(l).concat() {
            if clamp.holds(l, 0, unit) {
                continue;
            }
            // States that differ in this unit only are one class.
            let at = first_entry(l) + unit * group;
            let mut classes: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
            for (s, key) in keys.iter().enumerate() {
                let mut rest = key.clone();
                rest.drain(at..at + group);
                classes.entry(rest).or_default().push(s);
            }
            for class in classes.values() {
                let mass: f64 = class.iter().map(|&s| p[s]).sum();
                let total: f64 = class.iter().map(|&s| weights[s]).sum();
                class.iter().for_each(|&s| p[s] = mass * weights[s] / total);
            }
        }
    }
    p
}

#[test]
fn gibbs_sampling_is_stationary() {
    for (name, machine) in discrete() {
        let states = every_state(&machine);
        let p = exact::probabilities(&machine, &states).unwrap();
        for precision in PRECISIONS {
            let mut x = draw(&machine, &states, &p, n_chains(), Stream::new(1));
            let sampler = Sampler::new(machine.clone(), precision);
            sampler.gibbs(&Clamp::none(), &mut x, 3, Stream::new(2)).unwrap();
            let name = format!("{name} {precision:?}");
            assert_distributed(&name, &count(&machine, &states, &x, 0..n_chains()), &p);
        }
    }
}

/// What the law above relies on: the blocks cover the layer, and inside one nobody sees anybody.
#[test]
fn units_of_a_block_do_not_see_each_other() {
    for (name, machine) in discrete() {
        for l in machine.layer_ids() {
            let (layer, blocks) = (machine.layer(l), machine.unit_blocks(l));
            let mut units = blocks.concat();
            units.sort_unstable();
            assert!(units.into_iter().eq(0..layer.n_units()), "{name}");
            let Some(c) = machine.couplings().iter().find(|c| c.between == (l, l)) else {
                assert_eq!(blocks.len(), 1, "{name}");
                continue;
            };
            let group = layer.units.group();
            let Weights::Sparse(edges) = &c.weights else {
                assert_eq!(blocks.len(), layer.n_units(), "{name}");
                continue;
            };
            let of = |e: usize| blocks.iter().position(|b| b.contains(&(e / group)));
            assert!(edges.pairs().iter().all(|&(i, j)| of(i) != of(j)), "{name}");
            assert!(blocks.len() <= 3, "{name}: a ring needs no more than three colours");
        }
    }
}

/// An identity sampler, a wrong colour or a missed lateral input fails here.
#[test]
fn one_sweep_moves_as_the_conditionals_say() {
    for (name, machine) in discrete() {
        let states = every_state(&machine);
        for start in [0, states.n_rows() / 2] {
            let p = one_sweep(&machine, &Clamp::none(), &states, start);
            for precision in PRECISIONS {
                let mut x =
                    draw(&machine, &states, &delta(start, p.len()), n_chains(), Stream::new(3));
                let sampler = Sampler::new(machine.clone(), precision);
                sampler.gibbs(&Clamp::none(), &mut x, 1, Stream::new(4)).unwrap();
                let counts = count(&machine, &states, &x, 0..n_chains());
                assert_distributed(&format!("{name} from {start}, {precision:?}"), &counts, &p);
            }
        }
    }
}

/// Six units far apart in a layer of 150, the rest uncoupled: whatever the kernels cut a layer
/// into, these must move as the machine of six does.
#[test]
fn a_small_machine_inside_a_large_one_moves_as_it_does_alone() {
    const PLACES: [usize; 6] = [0, 31, 33, 70, 128, 149];
    let pairs = |n: usize| (0..n).flat_map(move |i| (i + 1..n).map(move |j| (i, j)));
    for units in [Units::Binary, Units::Spin] {
        for sparse in [false, true] {
            let build = |n: usize, places: &[usize]| {
                let mut layer = Layer::new("v", Role::Visible, units, n).unwrap();
                layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = noise(41, i));
                for (k, &at) in places.iter().enumerate() {
                    (layer.bias[at], layer.offset[at]) = (noise(42, k), 0.3 + noise(43, k));
                }
                let weight = |i: usize, j: usize| {
                    let at = |e: usize| places.iter().position(|&p| p == e);
                    let (i, j) = (at(i)?, at(j)?);
                    (!sparse || (i + j) % 3 > 0).then(|| 3.0 * noise(44, 6 * i + j))
                };
                let l = LayerId(0);
                let coupling = if sparse {
                    let edges = pairs(n).filter_map(|(i, j)| Some((i, j, weight(i, j)?)));
                    Coupling::sparse(l, Edges::new(n, edges).unwrap())
                } else {
                    let weight = |i, j| weight(i, j).unwrap_or(0.0);
                    Coupling::lateral(l, Triangle::from_fn(n, weight).unwrap())
                };
                Machine::new(vec![layer], vec![coupling]).unwrap()
            };
            let (small, large) = (build(6, &[0, 1, 2, 3, 4, 5]), build(150, &PLACES));
            let states = every_state(&small);
            let exact = exact::probabilities(&small, &states).unwrap();
            let moved = one_sweep(&small, &Clamp::none(), &states, 21);
            for (start, expected) in [(&exact, &exact), (&delta(21, 64), &moved)] {
                let begin = draw(&small, &states, start, n_chains(), Stream::new(45));
                for precision in PRECISIONS {
                    let sampler = Sampler::new(large.clone(), precision);
                    let mut x =
                        independent(&large, &Base::of_biases(&large), n_chains(), Stream::new(46))
                            .unwrap();
                    for row in 0..n_chains() {
                        let mut values = x.row(LayerId(0), row).to_vec();
                        PLACES.iter().enumerate().for_each(|(k, &at)| {
                            values[at] = begin.row(LayerId(0), row)[k];
                        });
                        x.set_row(LayerId(0), row, &values).unwrap();
                    }
                    sampler.gibbs(&Clamp::none(), &mut x, 1, Stream::new(47)).unwrap();
                    let mut inside = State::zeros(&small, n_chains()).unwrap();
                    for row in 0..n_chains() {
                        let all = x.row(LayerId(0), row);
                        inside.set_row(LayerId(0), row, &PLACES.map(|at| all[at])).unwrap();
                    }
                    let counts = count(&small, &states, &inside, 0..n_chains());
                    let name = format!("{} {sparse} {precision:?}", units.name());
                    assert_distributed(&name, &counts, expected);
                }
            }
        }
    }
}

/// One sweep of a large dense layer in single precision is that in double precision, but for the
/// few units whose variate falls between two roundings, and what follows from them.
#[test]
fn large_lateral_layers_sweep_alike_in_single_and_double_precision() {
    for units in [Units::Binary, Units::Spin] {
        let n = 200;
        let mut layer = Layer::new("v", Role::Visible, units, n).unwrap();
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = noise(51, i));
        layer.offset.iter_mut().enumerate().for_each(|(i, m)| *m = noise(52, i));
        let weights = Triangle::from_fn(n, |i, j| 0.4 * noise(53, n * i + j)).unwrap();
        let couplings = vec![Coupling::lateral(LayerId(0), weights)];
        let machine = Machine::new(vec![layer], couplings).unwrap();
        let start =
            independent(&machine, &Base::of_biases(&machine), 300, Stream::new(54)).unwrap();
        let after = |precision| {
            let mut x = start.clone();
            let sampler = Sampler::new(machine.clone(), precision);
            sampler.gibbs(&Clamp::none(), &mut x, 1, Stream::new(55)).unwrap();
            x
        };
        let (double, single) = (after(Arithmetic::F64), after(Arithmetic::F32));
        let rows = (0..300).filter(|&r| double.row(LayerId(0), r) != single.row(LayerId(0), r));
        // 60,000 variates of 24 bits meet errors of about 1e-6: less than one differs on average.
        assert!(rows.count() <= 5, "{}", units.name());
        assert_ne!(double, start);
    }
}

fn delta(at: usize, n: usize) -> Vec<f64> {
    (0..n).map(|s| f64::from(u8::from(s == at))).collect()
}

#[test]
fn clamped_sampling_moves_only_what_is_free() {
    for (name, machine) in discrete() {
        let x = some_states(&machine, 1, 31);
        for (held, clamp) in [
            ("visible", Clamp::visible(&machine)),
            (
                "first unit",
                Clamp::none().with_units(
                    LayerId(0),
                    (0..machine.layer(LayerId(0)).n_units()).map(|u| u == 0).collect(),
                ),
            ),
        ] {
            if machine.layer_ids().all(|l| clamp.holds_layer(l)) {
                continue;
            }
            let states = exact::states(&machine, &clamp, &x, 0).unwrap();
            let p = exact::probabilities(&machine, &states).unwrap();
            let moved = one_sweep(&machine, &clamp, &states, 0);
            for precision in PRECISIONS {
                let sampler = Sampler::new(machine.clone(), precision);
                let mut chains = draw(&machine, &states, &p, n_chains(), Stream::new(5));
                sampler.gibbs(&clamp, &mut chains, 2, Stream::new(6)).unwrap();
                let what = format!("{name}, {held} held, {precision:?}");
                // A state that moved what is held has no place among `states`: `count` panics.
                assert_distributed(&what, &count(&machine, &states, &chains, 0..n_chains()), &p);
                let start = delta(0, p.len());
                let mut chains = draw(&machine, &states, &start, n_chains(), Stream::new(7));
                sampler.gibbs(&clamp, &mut chains, 1, Stream::new(8)).unwrap();
                assert_distributed(
                    &what,
                    &count(&machine, &states, &chains, 0..n_chains()),
                    &moved,
                );
            }
        }
    }
}

#[test]
fn a_mask_holds_row_by_row() {
    for (name, machine) in discrete() {
        let l = LayerId(0);
        let n = machine.layer(l).n_units();
        if n == 1 {
            continue; // a mask with one unit per row would hold the whole layer
        }
        let x = some_states(&machine, 200, 32);
        let mask = Array2::from_shape_fn((200, n), |(row, unit)| unit == row % n);
        let mut y = x.clone();
        let clamp = Clamp::none().with_mask(l, mask.view());
        Sampler::new(machine.clone(), Arithmetic::F64)
            .gibbs(&clamp, &mut y, 5, Stream::new(9))
            .unwrap();
        let group = machine.layer(l).units.group();
        let mut moved = 0;
        for row in 0..200 {
            for unit in 0..n {
                let range = unit * group..(unit + 1) * group;
                let same = x.row(l, row)[range.clone()] == y.row(l, row)[range];
                assert!(same || unit != row % n, "{name}: row {row} moved a held unit");
                moved += usize::from(!same);
            }
        }
        assert!(moved > 20, "{name}: only {moved} free units moved");
    }
}

/// Gaussian machines: the discrete part is drawn from its exact marginal, the real part from its
/// conditional; both must stay there.
#[test]
fn gibbs_sampling_is_stationary_with_real_units() {
    for (name, machine) in gaussian() {
        if name.starts_with("coupled") {
            continue; // their real units have no closed conditional to start from
        }
        let (chains, p, states, real) = exact_start(&machine);
        let mut x = chains;
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        sampler.gibbs(&Clamp::none(), &mut x, 2, Stream::new(12)).unwrap();
        let held: Vec<LayerId> = machine.layer_ids().filter(|l| !real.contains(l)).collect();
        let keys = |x: &State, row: usize| -> Vec<u64> {
            held.iter().flat_map(|&l| x.row(l, row).to_vec()).map(f64::to_bits).collect()
        };
        let places: BTreeMap<Vec<u64>, usize> =
            (0..states.n_rows()).map(|s| (keys(&states, s), s)).collect();
        let mut counts = vec![0.0; states.n_rows()];
        (0..n_chains()).for_each(|row| counts[places[&keys(&x, row)]] += 1.0);
        assert_distributed(&name, &counts, &p);
        assert_moments(&name, &machine, &x, &real);
    }
}

/// Coupled real units start at exact samples, and stay at the exact moments, products included.
#[test]
fn coupled_real_units_stay_at_their_exact_moments() {
    for (name, machine) in gaussian().into_iter().filter(|m| m.0.starts_with("coupled")) {
        let real: Vec<LayerId> =
            machine.layer_ids().filter(|&l| !machine.layer(l).units.is_finite()).collect();
        for precision in PRECISIONS {
            let mut x = exact::samples(&machine, n_chains(), Stream::new(13)).unwrap();
            let sampler = Sampler::new(machine.clone(), precision);
            sampler.gibbs(&Clamp::none(), &mut x, 2, Stream::new(14)).unwrap();
            assert_moments(&format!("{name}, {precision:?}"), &machine, &x, &real);
            let expected = exact::moments(
                &machine,
                &Clamp::none(),
                &State::zeros(&machine, 1).unwrap(),
                &[1.0],
            )
            .unwrap();
            assert_products(&format!("{name}, {precision:?}"), &machine, &x, &expected);
        }
    }
}

/// Real units are drawn together: one sweep over them forgets wherever they stood, whatever part of them
/// is held. Units that were visited one after the other would not.
#[test]
fn one_sweep_over_real_units_forgets_where_they_stood() {
    for (name, machine) in gaussian() {
        let real: Vec<LayerId> =
            machine.layer_ids().filter(|&l| !machine.layer(l).units.is_finite()).collect();
        let start = some_states(&machine, 1, 15);
        for part in 0..3 {
            // Everything free, some units held, other units held.
            let mut clamp = Clamp::layers(machine.layer_ids().filter(|l| !real.contains(l)));
            for &l in &real {
                let held = |i: usize| part > 0 && (i + l.0 + part).is_multiple_of(2);
                clamp = clamp.with_units(l, (0..machine.layer(l).len()).map(held).collect());
            }
            let expected = exact::moments(&machine, &clamp, &start, &[1.0]).unwrap();
            for precision in PRECISIONS {
                let mut x = State::zeros(&machine, n_chains()).unwrap();
                for l in machine.layer_ids() {
                    for row in 0..n_chains() {
                        let mut values = start.row(l, 0).to_vec();
                        for (i, value) in values.iter_mut().enumerate() {
                            if real.contains(&l) && !clamp.holds(l, 0, i) {
                                *value = 40.0;
                            }
                        }
                        x.set_row(l, row, &values).unwrap();
                    }
                }
                let sampler = Sampler::new(machine.clone(), precision);
                sampler.gibbs(&clamp, &mut x, 1, Stream::new(16)).unwrap();
                let what = format!("{name}, {precision:?}, part {part}");
                assert_moments_are(&what, &machine, &x, &real, &expected);
                assert_products(&what, &machine, &x, &expected);
            }
        }
    }
}

/// Compares products along the couplings of real units with their expectation.
fn assert_products(name: &str, machine: &Machine, x: &State, expected: &Moments) {
    let real = |l: LayerId| !machine.layer(l).units.is_finite();
    for (c, expected) in machine.couplings().iter().zip(&expected.weights) {
        let (a, b) = c.between;
        if !(real(a) && real(b)) {
            continue;
        }
        let mut one = Moments::zeros(machine);
        let k = machine.couplings().iter().position(|other| other.between == (a, b)).unwrap();
        let rows: Vec<Vec<f64>> = (0..x.n_rows())
            .map(|row| {
                let mut single = State::zeros(machine, 1).unwrap();
                for l in machine.layer_ids() {
                    single.set_row(l, 0, x.row(l, row)).unwrap();
                }
                one.clear();
                one.add(machine, &single, &[1.0]);
                one.weights[k].clone()
            })
            .collect();
        for (i, expected) in expected.iter().enumerate() {
            let values: Vec<f64> = rows.iter().map(|row| row[i]).collect();
            if values.iter().all(|v| (v - expected).abs() < 1e-6) {
                continue;
            }
            assert_mean(&format!("{name}: product {i} of {c:?}"), &values, *expected);
        }
    }
}

fn assert_moments(name: &str, machine: &Machine, x: &State, real: &[LayerId]) {
    let one = State::zeros(machine, 1).unwrap();
    let exact = exact::moments(machine, &Clamp::none(), &one, &[1.0]).unwrap();
    assert_moments_are(name, machine, x, real, &exact);
}

fn assert_moments_are(name: &str, machine: &Machine, x: &State, real: &[LayerId], exact: &Moments) {
    for &l in real {
        for i in 0..machine.layer(l).len() {
            let values: Vec<f64> = (0..x.n_rows()).map(|r| x.row(l, r)[i]).collect();
            // Held units have one value.
            if values.iter().all(|v| (v - exact.bias[l.0][i]).abs() < 1e-6) {
                continue;
            }
            assert_mean(&format!("{name}: mean"), &values, exact.bias[l.0][i]);
            let squares: Vec<f64> = values.iter().map(|v| -0.5 * v * v).collect();
            assert_mean(&format!("{name}: square"), &squares, exact.own[l.0][i]);
        }
    }
}

/// Chains at the exact distribution of a machine whose real layers see only discrete ones.
fn exact_start(machine: &Machine) -> (State, Vec<f64>, State, Vec<LayerId>) {
    let real: Vec<LayerId> =
        machine.layer_ids().filter(|&l| !machine.layer(l).units.is_finite()).collect();
    // All states of the discrete part, the real units at zero.
    let zero = State::zeros(machine, 1).unwrap();
    let states = exact::states(machine, &Clamp::layers(real.clone()), &zero, 0).unwrap();
    let held = machine.layer_ids().filter(|l| !real.contains(l));
    let logs = exact::log_probabilities(machine, &Clamp::layers(held), &states).unwrap();
    let p: Vec<f64> = logs.iter().map(|l| l.exp()).collect();
    assert_close(1.0, p.iter().sum(), 1e-10, "marginals sum to one");
    let mut x = draw(machine, &states, &p, n_chains(), Stream::new(10));
    for &l in &real {
        let layer = machine.layer(l);
        for row in 0..n_chains() {
            let mut values = machine.theta(l, &x, row).unwrap();
            for (i, v) in values.iter_mut().enumerate() {
                let site = Site { row: row as u32, sweep: 0, lane: l.0 as u32 };
                let z = Stream::new(11).normal(site, i);
                *v = *v / layer.own[i] + z / layer.own[i].sqrt();
            }
            x.set_row(l, row, &values).unwrap();
        }
    }
    (x, p, states, real)
}

#[test]
fn parallel_tempering_is_stationary_at_every_temperature() {
    let betas = [0.0, 0.4, 1.0];
    for (name, machine) in discrete() {
        let states = every_state(&machine);
        let base = Base::of_biases(&machine);
        let ladders = n_chains() / 2;
        let mut tempering =
            Tempering::new(&machine, ladders, &betas, base.clone(), Stream::new(15)).unwrap();
        let at: Vec<Vec<f64>> = betas
            .iter()
            .map(|&b| exact::probabilities(&machine.temper(&base, b).unwrap(), &states).unwrap())
            .collect();
        // Put each temperature at its own exact distribution, then let them sweep and swap.
        let mut x = State::zeros(&machine, ladders * 3).unwrap();
        for (k, p) in at.iter().enumerate() {
            let rows = draw(&machine, &states, p, ladders, Stream::new(16 + k as u64));
            for ladder in 0..ladders {
                for l in machine.layer_ids() {
                    x.set_row(l, ladder * 3 + k, rows.row(l, ladder)).unwrap();
                }
            }
        }
        tempering.set_replicas(&machine, x).unwrap();
        tempering
            .advance(&Sampler::new(machine.clone(), Arithmetic::F64), 3, Stream::new(20))
            .unwrap();
        for (k, p) in at.iter().enumerate() {
            let rows = (0..ladders).map(|l| l * 3 + k);
            let counts = count(&machine, &states, tempering.replicas(), rows);
            assert_distributed(&format!("{name} at beta {}", betas[k]), &counts, p);
        }
        for swap in tempering.swap_rates() {
            assert!(swap.proposed >= ladders as u64 && swap.accepted < swap.proposed, "{name}");
            assert!(swap.rate() > 0.05, "{name}: {swap:?}");
        }
        let targets = tempering.targets(&machine).unwrap();
        assert_eq!(targets.n_rows(), ladders);
        assert_eq!(key(&machine, &targets, 1), key(&machine, tempering.replicas(), 5));
    }
}

/// From the exact distribution, where a sweep changes nothing, exchanges happen as often as the
/// formula says on average.
#[test]
fn replicas_swap_as_often_as_they_should() {
    let machine = named("rbm of binary");
    let states = every_state(&machine);
    let base = Base::of_biases(&machine);
    let n = 20_000;
    let at = |b: f64| exact::probabilities(&machine.temper(&base, b).unwrap(), &states).unwrap();
    let mut tempering =
        Tempering::new(&machine, n, &[0.0, 1.0], base.clone(), Stream::new(1)).unwrap();
    let mut x = State::zeros(&machine, 2 * n).unwrap();
    let (cold, hot) = (
        draw(&machine, &states, &at(1.0), n, Stream::new(2)),
        draw(&machine, &states, &at(0.0), n, Stream::new(3)),
    );
    for ladder in 0..n {
        for l in machine.layer_ids() {
            x.set_row(l, 2 * ladder, hot.row(l, ladder)).unwrap();
            x.set_row(l, 2 * ladder + 1, cold.row(l, ladder)).unwrap();
        }
    }
    tempering.set_replicas(&machine, x).unwrap();
    tempering.advance(&Sampler::new(machine.clone(), Arithmetic::F64), 1, Stream::new(4)).unwrap();
    let (p0, p1) = (at(0.0), at(1.0));
    let mut accept = 0.0;
    for a in 0..p0.len() {
        for b in 0..p0.len() {
            // (hot a, cold b) -> (hot b, cold a)
            accept += p0[a] * p1[b] * ((p0[b] * p1[a]) / (p0[a] * p1[b])).min(1.0);
        }
    }
    let found = tempering.swap_rates()[0];
    let error = (accept * (1.0 - accept) / n as f64).sqrt();
    assert_eq!(found.proposed, n as u64);
    assert!((found.rate() - accept).abs() < 5.0 * error, "{} is not {accept}", found.rate());
}

/// Between equal distributions every swap happens, and a replica moves one place a round and waits
/// one round at each end: it is back after `2 n` rounds, whatever the ladder.
#[test]
fn replicas_that_always_swap_come_round_like_clockwork() {
    let layer = Layer::new("bits", Role::Visible, Units::Binary, 3).unwrap();
    let machine = Machine::new(vec![layer], Vec::new()).unwrap();
    let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
    for n in 2..7 {
        let ladders = 3;
        let (base, betas) = (Base::of_biases(&machine), Tempering::even_ladder(n));
        let mut tempering =
            Tempering::new(&machine, ladders, &betas, base, Stream::new(1)).unwrap();
        let mut trips = Vec::new();
        for period in 0..5 {
            tempering.advance(&sampler, 2 * n, Stream::new(period)).unwrap();
            trips.push(tempering.round_trips());
            let at_home = (0..ladders * n).all(|r| tempering.replica_at(r) == Some(r));
            assert!(at_home, "{n} temperatures, period {period}");
        }
        // In the first period a replica first has to reach the hot end.
        assert!(trips.windows(2).all(|t| t[1] - t[0] == (ladders * n) as u64), "{n}: {trips:?}");
        tempering.advance(&sampler, 1, Stream::new(9)).unwrap();
        assert_eq!((tempering.replica_at(0), tempering.replica_at(1)), (Some(1), Some(0)));
        assert_eq!(tempering.replica_at(ladders * n), None);
    }
}

/// No worse than 5 standard errors below the equilibrium at beta = 2.
#[test]
fn annealing_finds_the_ground_state() {
    let betas: Vec<f64> = (1..=1000).map(|k| 0.02 * f64::from(k)).collect();
    for (name, machine) in discrete() {
        let states = every_state(&machine);
        let energies = machine.energies(&states).unwrap();
        let lowest = energies.iter().copied().fold(f64::INFINITY, f64::min);
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let base = Base::uniform(&machine);
        let mut x = independent(&machine, &base, 64, Stream::new(40)).unwrap();
        sampler.anneal(&Clamp::none(), &mut x, &betas, Stream::new(41)).unwrap();
        let found = machine.energies(&x).unwrap();
        let hits = found.iter().filter(|e| (**e - lowest).abs() < 1e-9).count();
        // Slow cooling follows the equilibrium at least until beta = 2, well before it freezes.
        let total: f64 = energies.iter().map(|e| (2.0 * (lowest - e)).exp()).sum();
        let ground = energies.iter().filter(|e| (**e - lowest).abs() < 1e-9).count() as f64;
        let p = ground / total;
        let least = 64.0 * p - 5.0 * (64.0 * p * (1.0 - p)).sqrt();
        assert!(hits as f64 >= least.max(1.0), "{name}: {hits} of 64, not {least}, at {lowest}");
        assert!(sampler.anneal(&Clamp::none(), &mut x, &[0.0], Stream::new(0)).is_err());
    }
}

#[test]
fn settling_never_raises_the_energy_and_ends_where_nothing_moves() {
    for (name, machine) in discrete().into_iter().chain(gaussian()) {
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let mut x = some_states(&machine, 50, 42);
        let mut before = machine.energies(&x).unwrap();
        for _ in 0..30 {
            sampler.settle(&Clamp::none(), &mut x, 1).unwrap();
            let after = machine.energies(&x).unwrap();
            for (b, a) in before.iter().zip(&after) {
                assert!(*a <= b + 1e-12 * (1.0 + b.abs()), "{name}: {b} rose to {a}");
            }
            before = after;
        }
        let report = sampler.settle(&Clamp::none(), &mut x, 500).unwrap();
        assert_eq!(report.unconverged, 0, "{name}");
    }
}

/// Three patterns stored by Hebb's rule are recalled from damaged cues (Hopfield 1982).
#[test]
fn a_hopfield_network_recalls_its_patterns() {
    let n = 64;
    let pattern = |p: usize, i: usize| {
        if crate::machines::noise(90 + p as u64, i) > 0.0 { 1.0 } else { -1.0 }
    };
    let hebb =
        |i: usize, j: usize| (0..3).map(|p| pattern(p, i) * pattern(p, j)).sum::<f64>() / n as f64;
    let layer = Layer::new("spins", Role::Visible, Units::Spin, n).unwrap();
    let couplings = vec![Coupling::lateral(LayerId(0), Triangle::from_fn(n, hebb).unwrap())];
    let machine = Machine::new(vec![layer], couplings).unwrap();
    let mut x = State::zeros(&machine, 3).unwrap();
    for p in 0..3 {
        let cue = |i: usize| if i.is_multiple_of(7) { -pattern(p, i) } else { pattern(p, i) };
        x.set_row(LayerId(0), p, &(0..n).map(cue).collect::<Vec<_>>()).unwrap();
    }
    Sampler::new(machine.clone(), Arithmetic::F64).settle(&Clamp::none(), &mut x, 100).unwrap();
    for p in 0..3 {
        let overlap: f64 =
            x.row(LayerId(0), p).iter().enumerate().map(|(i, s)| s * pattern(p, i)).sum();
        assert!(overlap >= n as f64 - 2.0, "pattern {p}: overlap {overlap} of {n}");
    }
}

#[test]
fn chains_go_on_from_where_they_are() {
    for (name, machine) in discrete() {
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let mut chains = Chains::new(&machine, 5, Stream::new(1)).unwrap();
        let mut state = chains.state().clone();
        for step in 0..3 {
            chains.advance(&sampler, 2, Stream::new(step)).unwrap();
            sampler.gibbs(&Clamp::none(), &mut state, 2, Stream::new(step)).unwrap();
        }
        assert_eq!(chains.state(), &state, "{name}");
        assert!(Chains::new(&machine, 0, Stream::new(0)).is_err());
    }
}

#[test]
fn a_sampler_follows_its_machine() {
    let name = "lateral of binary";
    let before = &named(name);
    let mut step = harmonium::moments::Moments::zeros(before);
    step.weights.iter_mut().flatten().enumerate().for_each(|(i, w)| *w = 0.1 * i as f64);
    step.bias.iter_mut().flatten().for_each(|b| *b = -0.4);
    let after = crate::machines::moved(before, &step);
    let (other, start) = (named("rbm of binary"), some_states(before, 30, 50));
    for arithmetic in PRECISIONS {
        // The same graph, and another one in between.
        let mut follower = Sampler::new(before.clone(), arithmetic);
        let mut wanderer = Sampler::new(other.clone(), arithmetic);
        follower.set_machine(after.clone());
        wanderer.set_machine(after.clone());
        let fresh = Sampler::new(after.clone(), arithmetic);
        let run = |sampler: &Sampler| {
            assert_eq!((sampler.machine(), sampler.arithmetic()), (&after, arithmetic));
            let mut x = start.clone();
            sampler.gibbs(&Clamp::none(), &mut x, 3, Stream::new(1)).unwrap();
            x
        };
        assert_eq!(run(&follower), run(&fresh), "{name}");
        assert_eq!(run(&wanderer), run(&fresh), "{name}");
    }
}
