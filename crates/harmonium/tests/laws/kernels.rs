//! The kernels do what the reference does: products, samples and whole steps of learning.

use crate::machines::{all, discrete, noise, some_states};
use harmonium::Error;
use harmonium::engine::Arithmetic;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, State};
use harmonium::models::{Dbm, MultimodalDbm, Pathway, Rbm};
use harmonium::random::Stream;
use harmonium::sampling::{Clamp, Sampler};
use harmonium::training::{
    Numbers, Observer, Plan, Posterior, Rule, Trainer, View, initialise, train,
};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Table};
use std::ops::ControlFlow;

/// How far a mean of units between 0 and 1 may be off.
const TOLERANCE: [(Arithmetic, f64); 2] = [(Arithmetic::F32, 2e-6), (Arithmetic::I16, 1e-3)];

/// Largest difference between the conditional means of two engines, over all layers.
fn largest_difference(machine: &Machine, x: &State, precision: Arithmetic) -> f64 {
    let reference = Sampler::new(machine.clone(), Arithmetic::F64);
    let sampler = Sampler::new(machine.clone(), precision);
    let mut worst = 0.0_f64;
    for l in machine.layer_ids() {
        let means = |s: &Sampler| s.conditional_means(&Clamp::none(), x, &[l]).unwrap();
        let (exact, found) = (means(&reference), means(&sampler));
        let pairs = exact.layer(l).iter().zip(found.layer(l));
        worst = pairs.map(|(a, b)| (a - b).abs()).fold(worst, f64::max);
    }
    worst
}

#[test]
fn conditional_means_are_those_of_the_reference() {
    for (name, machine) in all() {
        for n in [1, 2, 37] {
            let x = some_states(&machine, n, 7);
            for (precision, tolerance) in TOLERANCE {
                let found = largest_difference(&machine, &x, precision);
                // Means of real units are as large as their inputs.
                assert!(found < 10.0 * tolerance, "{name}, {n} rows, {precision:?}: {found}");
            }
        }
    }
}

/// Two layers of the given kinds, wider than a panel and a block of the kernels.
fn wide(units: Units, n_visible: usize, n_hidden: usize) -> Machine {
    let layer = |name: &str, role, units, n, seed| {
        let mut layer = Layer::new(name, role, units, n).unwrap();
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = 2.0 * noise(seed, i));
        layer.offset.iter_mut().enumerate().for_each(|(i, m)| *m = 0.3 + noise(seed + 1, i));
        layer
    };
    let layers = vec![
        layer("v", Role::Visible, units, n_visible, 1),
        layer("h", Role::Hidden, Units::Binary, n_hidden, 3),
    ];
    let weight = |i, j| 0.3 * noise(5, i * 1009 + j);
    let weights = Matrix::from_fn(layers[0].len(), n_hidden, weight).unwrap();
    Machine::new(layers, vec![Coupling::between(LayerId(0), LayerId(1), weights)]).unwrap()
}

#[test]
fn products_reach_over_panels_and_blocks() {
    for (units, n) in [(Units::Binary, 700), (Units::Spin, 650), (Units::Categorical { q: 5 }, 131)]
    {
        for hidden in [1, 63, 65, 330] {
            let machine = wide(units, n, hidden);
            for rows in [1, 9, 130] {
                let x = some_states(&machine, rows, 11);
                for (precision, tolerance) in TOLERANCE {
                    let found = largest_difference(&machine, &x, precision);
                    let what = format!("{} × {hidden}, {rows} rows, {precision:?}", units.name());
                    assert!(found < 10.0 * tolerance, "{what}: {found}");
                }
            }
        }
    }
}

/// Whether visits take bits or numbers, a clamp holds what it holds.
#[test]
fn sampling_by_the_kernels_respects_what_is_held() {
    for (name, machine) in discrete() {
        let clamp = Clamp::visible(&machine);
        for precision in [Arithmetic::F32, Arithmetic::I16] {
            let mut x = some_states(&machine, 12, 3);
            let before = x.clone();
            let sampler = Sampler::new(machine.clone(), precision);
            sampler.gibbs(&clamp, &mut x, 2, Stream::new(5)).unwrap();
            for l in machine.visible_layers() {
                assert_eq!(x.layer(l), before.layer(l), "{name} {precision:?}");
            }
        }
    }
}

/// Random bits with some structure, one column per entry.
fn data(machine: &Machine, n_rows: usize) -> Dataset {
    let mut values = Vec::new();
    for row in 0..n_rows {
        for l in machine.visible_layers() {
            let (layer, at) = (machine.layer(l), l.0 * 1000);
            for unit in 0..layer.n_units() {
                let u =
                    noise(row as u64 % 7 + 20, at + unit) + 0.4 * noise(row as u64 + 90, at + unit);
                match layer.units {
                    Units::Spin => values.push(if u > 0.1 { 1.0 } else { -1.0 }),
                    Units::Categorical { q } => {
                        let k = ((u + 0.7) / 1.4 * q as f64) as usize;
                        values.extend((0..q).map(|i| if i == k.min(q - 1) { 1.0 } else { 0.0 }));
                    }
                    _ => values.push(if u > 0.1 { 1.0 } else { 0.0 }),
                }
            }
        }
    }
    let width = values.len() / n_rows;
    let binary = machine.visible_layers().iter().all(|&l| machine.layer(l).units != Units::Spin);
    let way = if binary { Binarize::Threshold(0.5) } else { Binarize::None };
    Dataset::new(Table::from_real(values, width).unwrap(), way).unwrap()
}

/// Machines that learn inside the engine.
fn learners() -> Vec<(&'static str, Machine)> {
    let spins = |machine: Machine| machine.bits_to_spins(LayerId(1)).unwrap();
    let pathway = |name: &str, n, hidden| Pathway {
        name: name.into(),
        visible: (Units::Binary, n),
        hidden: vec![hidden],
    };
    let pathways = [pathway("image", 40, 13), pathway("text", 9, 7)];
    let joint = MultimodalDbm::new(&pathways, 6).unwrap().into_machine();
    vec![
        ("rbm", Rbm::binary(70, 45).unwrap().into_machine()),
        ("spin rbm", wide(Units::Spin, 35, 70)),
        ("spins hidden", spins(Rbm::binary(20, 66).unwrap().into_machine())),
        ("potts rbm", wide(Units::Categorical { q: 4 }, 11, 20)),
        ("dbm", Dbm::binary(50, &[20, 8]).unwrap().into_machine()),
        ("deep dbm", Dbm::binary(30, &[20, 15, 70]).unwrap().into_machine()),
        ("multimodal", joint),
    ]
}

fn parameters(machine: &Machine) -> Vec<f64> {
    let layers = machine.layers().iter().flat_map(|l| l.bias.iter().chain(&l.offset));
    let weights = machine.couplings().iter().flat_map(|c| c.weights.entries());
    layers.chain(weights).copied().collect()
}

fn learned(machine: &Machine, data: &Dataset, plan: &Plan) -> Vec<f64> {
    parameters(&train(machine.clone(), data, plan, &mut []).unwrap().machine)
}

/// Whether the sampler and the moments in double precision arrive at the same parameters.
fn assert_learns_alike(
    what: &str,
    machine: &Machine,
    data: &Dataset,
    plan: impl Fn(Numbers) -> Plan,
) {
    let reference = learned(machine, data, &plan(Numbers::F64));
    let found = learned(machine, data, &plan(Numbers::F32));
    for (a, b) in reference.iter().zip(&found) {
        assert!((a - b).abs() < 2e-5, "{what}: {a} is not {b}");
    }
}

/// A whole step is the same: both phases, centering, decay, momentum, recentering.
#[test]
fn learning_in_the_engine_is_learning_by_moments() {
    for (name, machine) in learners() {
        let data = data(&machine, 50);
        for (rule, posterior, center, plain, clip) in [
            (Rule::Pcd, Posterior::Auto, true, false, None),
            (Rule::Cd, Posterior::Auto, false, false, None),
            (Rule::Pcd, Posterior::Gibbs, true, false, None),
            (Rule::Pcd, Posterior::Auto, true, true, None),
            (Rule::Cd, Posterior::Auto, false, true, None),
            // Gradients that are too long, and others that are not.
            (Rule::Pcd, Posterior::Auto, true, false, Some(0.5)),
            (Rule::Cd, Posterior::Auto, false, true, Some(0.5)),
            (Rule::Pcd, Posterior::Gibbs, true, true, Some(1e3)),
        ] {
            let penalty = if plain { 0.0 } else { 1e-3 };
            let momentum = if plain { "0" } else { "0.5@0,0.9@1" };
            let plan = |precision| Plan {
                precision,
                rule,
                posterior,
                center,
                epochs: 2,
                batch: 20,
                chains: 15,
                learning_rate: 0.1,
                momentum: momentum.parse().unwrap(),
                l1: penalty,
                l2: 10.0 * penalty,
                clip,
                initial_std: 0.3,
                mean_field_tolerance: 1e-9,
                mean_field_sweeps: 200,
                seed: 4,
                ..Plan::default()
            };
            assert_learns_alike(&format!("{name} {rule:?} {posterior:?}"), &machine, &data, plan);
        }
    }
}

/// Without centering, momentum and penalties weights of pixels that nobody has are left alone; a
/// run that was interrupted goes on with nothing remembered of its last update.
#[test]
fn what_nothing_moves_rests() {
    let machine = Rbm::binary(100, 70).unwrap().into_machine();
    let pixel = |r: u32, i: u32| i % 30 < 9 && r.wrapping_mul(31).wrapping_add(i) % 7 < 2;
    let pixels = (0..60).flat_map(|r| (0..100).map(move |i| f32::from(u8::from(pixel(r, i)))));
    let table = Table::from_real(pixels.collect(), 100).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    let plan = |precision| Plan {
        precision,
        center: false,
        momentum: "0".parse().unwrap(),
        decay: "1".parse().unwrap(),
        l2: 0.0,
        epochs: 2,
        batch: 10,
        chains: 10,
        learning_rate: 0.1,
        initial_std: 0.3,
        ..Plan::default()
    };
    assert_learns_alike("at rest", &machine, &data, plan);
    for precision in [Numbers::F32, Numbers::I16] {
        let (plan, mut stops) = (plan(precision), StopAfter(7));
        let mut trainer = Trainer::new(machine.clone(), &data, &plan).unwrap();
        trainer.run(&mut [&mut stops]).unwrap();
        let mut resumed = Trainer::resume(&trainer.checkpoint(), &data, &plan).unwrap();
        trainer.run(&mut []).unwrap();
        resumed.run(&mut []).unwrap();
        assert_eq!(parameters(trainer.machine()), parameters(resumed.machine()), "{precision:?}");
    }
}

/// Stops a run after a number of updates.
struct StopAfter(usize);

impl Observer for StopAfter {
    fn updated(&mut self, _: &View<'_>) -> Result<ControlFlow<String>, Error> {
        self.0 -= 1;
        Ok(if self.0 == 0 {
            ControlFlow::Break("enough".into())
        } else {
            ControlFlow::Continue(())
        })
    }
}

/// Samples that weigh differently, and different numbers of samples and chains.
#[test]
fn learning_in_the_engine_follows_the_weights_of_samples() {
    let machine = Rbm::binary(70, 45).unwrap().into_machine();
    let weights = (0..50).map(|i| 0.1 + f64::from(i % 5)).collect();
    let data = data(&machine, 50).with_weights(weights).unwrap();
    let plan = |precision| Plan {
        precision,
        epochs: 1,
        batch: 20,
        chains: 7,
        learning_rate: 0.1,
        initial_std: 0.3,
        ..Plan::default()
    };
    assert_learns_alike("weighted", &machine, &data, plan);
}

/// Quantised weights, coarse variates and rounded probabilities leave the mean of a step where it
/// is: over many seeds it agrees with single precision within 5 standard errors.
#[test]
fn a_quantised_step_has_the_same_mean() {
    const SEEDS: u64 = 600;
    for chains in [20, 12] {
        let mut machine = Rbm::binary(6, 5).unwrap().into_machine();
        let data = data(&machine, 20);
        let plan = |precision, seed| Plan {
            precision,
            seed,
            epochs: 2,
            batch: 20,
            chains,
            learning_rate: 1.0,
            momentum: "0".parse().unwrap(),
            decay: "1".parse().unwrap(),
            l2: 0.0,
            initial_std: 0.5,
            ..Plan::default()
        };
        initialise(&mut machine, &data, &plan(Numbers::F32, 9)).unwrap();
        // The same start for every seed: only what a step draws differs.
        let step = |precision, seed| {
            let plan = Plan { epochs: 1, ..plan(precision, seed) };
            let mut trainer = Trainer::new(machine.clone(), &data, &plan).unwrap();
            trainer.run(&mut []).unwrap();
            parameters(trainer.machine())
        };
        let moments = |precision| {
            let runs: Vec<Vec<f64>> = (0..SEEDS).map(|seed| step(precision, seed)).collect();
            let n = SEEDS as f64;
            let mean = |i: usize| runs.iter().map(|r| r[i]).sum::<f64>() / n;
            let variance = |i: usize, m: f64| {
                runs.iter().map(|r| (r[i] - m).powi(2)).sum::<f64>() / (n * (n - 1.0))
            };
            (0..runs[0].len()).map(|i| (mean(i), variance(i, mean(i)))).collect::<Vec<(f64, f64)>>()
        };
        for ((a, va), (b, vb)) in moments(Numbers::F32).into_iter().zip(moments(Numbers::I16)) {
            // A rounded weight shifts probabilities by up to a thousandth.
            let error = 5.0 * (va + vb).sqrt() + 1e-3;
            assert!((a - b).abs() < error, "{chains} chains: {a} is not {b} ± {error}");
        }
    }
}
