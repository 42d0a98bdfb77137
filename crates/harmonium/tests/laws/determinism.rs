//! The same seed gives the same bits, whatever the number of threads.

use crate::machines::all;
use harmonium::Error;
use harmonium::engine::Arithmetic;
use harmonium::exact;
use harmonium::machine::Machine;
use harmonium::models::{Dbm, curie_weiss, ising_torus};
use harmonium::random::Stream;
use harmonium::sampling::{Chains, Sampler};
use harmonium::training::{Numbers, Observer, Plan, Posterior, Rule, View, train};
use harmonium_data::{Binarize, Dataset, digits};
use std::ops::ControlFlow;

fn on_threads<R: Send>(n: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(work)
}

/// All parameters, bit by bit.
fn bits(machine: &Machine) -> Vec<u64> {
    let layers = machine.layers().iter().flat_map(|l| l.bias.iter().chain(&l.own).chain(&l.offset));
    let weights = machine.couplings().iter().flat_map(|c| c.weights.entries());
    layers.chain(weights).chain([&machine.constant()]).map(|x| x.to_bits()).collect()
}

fn trained(rule: Rule, precision: Numbers) -> Machine {
    watched(&plan(rule, precision), &mut [])
}

fn plan(rule: Rule, precision: Numbers) -> Plan {
    Plan {
        rule,
        precision,
        epochs: 2,
        batch: 50,
        chains: 40,
        replicas: 3,
        seed: 5,
        ..Plan::default()
    }
}

fn watched(plan: &Plan, observers: &mut [&mut dyn Observer]) -> Machine {
    let (table, _) = digits::digits().unwrap();
    let data =
        Dataset::new(table.select_rows(&(0..120).collect::<Vec<_>>()).unwrap(), Binarize::Sample)
            .unwrap();
    let dbm = Dbm::binary(64, &[20, 8]).unwrap().into_machine();
    train(dbm, &data, plan, observers).unwrap().machine
}

/// Looks at the machine after each update, as monitors and checkpoints do now and then.
struct Looks;

impl Observer for Looks {
    fn updated(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        assert!(view.machine()?.n_parameters() > 0);
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn looking_at_the_machine_does_not_change_it() {
    for precision in [Numbers::F64, Numbers::F32, Numbers::I16] {
        // So few sweeps that it matters where they start.
        let (posterior, mean_field_sweeps) = (Posterior::MeanField, 2);
        let plan = Plan { posterior, mean_field_sweeps, ..plan(Rule::Pcd, precision) };
        let alone = bits(&watched(&plan, &mut []));
        let watched = bits(&watched(&plan, &mut [&mut Looks]));
        assert_eq!(watched, alone, "{precision:?}");
    }
}

#[test]
fn training_gives_the_same_bits_on_1_2_and_7_threads() {
    for rule in [Rule::Pcd, Rule::Cd, Rule::Pt, Rule::Ptt] {
        for precision in [Numbers::F64, Numbers::F32, Numbers::I16] {
            let one = on_threads(1, || bits(&trained(rule, precision)));
            for n in [2, 7] {
                let many = on_threads(n, || bits(&trained(rule, precision)));
                assert_eq!(many, one, "{rule:?} {precision:?} on {n} threads");
            }
        }
    }
}

/// Large enough for the kernels to share panels out.
#[test]
fn panels_give_the_same_bits_on_1_2_and_3_threads() {
    let run = |precision| {
        let data = harmonium_data::Table::from_bytes(
            (0..200 * 600_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect(),
            600,
            255,
        );
        let data = Dataset::new(data.unwrap(), Binarize::Sample).unwrap();
        let plan = Plan { precision, epochs: 1, seed: 3, ..Plan::default() };
        let dbm = Dbm::binary(600, &[300, 130]).unwrap().into_machine();
        bits(&train(dbm, &data, &plan, &mut []).unwrap().machine)
    };
    for precision in [Numbers::F32, Numbers::I16] {
        let one = on_threads(1, || run(precision));
        for n in [2, 3] {
            assert_eq!(on_threads(n, || run(precision)), one, "{precision:?} on {n} threads");
        }
    }
}

/// Rows of laterally coupled layers are cut into tasks.
#[test]
fn lateral_sweeps_give_the_same_bits_on_1_2_and_7_threads() {
    let torus = ising_torus(24, 0.4).unwrap().into_machine();
    let dense = curie_weiss(150, 1.2).unwrap().into_machine();
    for machine in [torus, dense] {
        for precision in [Arithmetic::F64, Arithmetic::F32, Arithmetic::I16] {
            let sampler = Sampler::new(machine.clone(), precision);
            let run = |n| {
                let mut chains = Chains::new(&machine, 300, Stream::new(1)).unwrap();
                on_threads(n, || chains.advance(&sampler, 3, Stream::new(2))).unwrap();
                chains.state().clone()
            };
            assert_eq!(run(1), run(2), "{precision:?}");
            assert_eq!(run(1), run(7), "{precision:?}");
        }
    }
}

#[test]
fn exact_sums_give_the_same_bits_on_1_2_and_7_threads() {
    for (name, machine) in all().into_iter().chain([("trained".into(), small())]) {
        let sums = |n| on_threads(n, || exact::log_partition(&machine).unwrap().to_bits());
        assert_eq!(sums(1), sums(2), "{name}");
        assert_eq!(sums(1), sums(7), "{name}");
    }
}

/// Large enough for many chunks.
fn small() -> Machine {
    let mut machine = Dbm::binary(18, &[15, 3]).unwrap().into_machine();
    let table =
        harmonium_data::synthetic::bars_and_stripes(3, harmonium_data::synthetic::Repeats::Counted)
            .unwrap();
    let bits: Vec<f32> = (0..16)
        .flat_map(|r| (0..18).map(move |c| (r, c % 9)))
        .map(|(r, c)| table.at(r, c))
        .collect();
    let data =
        Dataset::new(harmonium_data::Table::from_real(bits, 18).unwrap(), Binarize::None).unwrap();
    let plan = Plan { initial_std: 0.5, ..Plan::default() };
    harmonium::training::initialise(&mut machine, &data, &plan).unwrap();
    machine
}

/// Pins the variates and the arithmetic: a change of either is a change for every saved seed.
#[test]
fn values_are_stable() {
    for (precision, pinned) in [
        (
            Numbers::F64,
            [-0.004_114_218_434, -0.009_908_517_349, -0.000_037_639_005, 0.499_995_168_686],
        ),
        (
            Numbers::F32,
            [-0.004_114_218_056, -0.009_908_516_891, -0.000_037_642_914, 0.499_995_168_715],
        ),
        (
            Numbers::I16,
            [-0.004_114_218_056, -0.009_919_730_015, -0.000_037_748_252, 0.499_995_161_532],
        ),
    ] {
        let machine = trained(Rule::Pcd, precision);
        let weights = machine.couplings()[0].weights.entries();
        let found =
            [weights[0], weights[777], machine.layers()[1].bias[3], machine.layers()[2].offset[5]];
        for (found, pinned) in found.iter().zip(pinned) {
            // Logistic functions come from the platform's library, so the last digits may differ.
            assert!(
                (found - pinned).abs() < 1e-9,
                "{precision:?}: {found:.12} is not {pinned:.12}"
            );
        }
    }
}
