//! Machines that anybody can build or download, with values of ln Z, its approximations and the best
//! state that were computed elsewhere in double precision.

use crate::approximations::graph_of;
use crate::machines::extent;
use harmonium::Error;
use harmonium::exact;
use harmonium::graph::{BucketTree, Elimination, Pairwise};
use harmonium::inference::{
    FixedPoints, Iteration, Schedule, belief_propagation, mean_field, tap, tree_reweighted,
};
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Role, Triangle};
use harmonium::models::{Body, ising_torus};
use harmonium::progress::Silent;
use harmonium::run::Model;
use harmonium::units::Units;
use std::path::Path;

/// The machine of a file of shared data; said where it is not there.
fn shared(path: &str) -> Option<Machine> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    if !path.exists() {
        eprintln!("skipped: no {}", path.display());
        return None;
    }
    let model = Model::open(path.to_str().unwrap(), &mut Silent).unwrap();
    match model.body {
        Body::Machine(machine) => Some(machine),
        _ => None,
    }
}

/// 16 spins, all coupled, by a formula without random numbers.
fn dense16(beta: f64) -> Machine {
    let mut layer = Layer::new("spins", Role::Visible, Units::Spin, 16).unwrap();
    layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = 0.1 * (i as f64 + 1.0).cos());
    let coupling = |i: usize, j: usize| {
        let (i, j) = (i as f64 + 1.0, j as f64 + 1.0);
        beta / 4.0 * 2.0_f64.sqrt() * (37.0 * i + 101.0 * j + 11.0 * i * j).sin()
    };
    let triangle = Triangle::from_fn(16, coupling).unwrap();
    Machine::new(vec![layer], vec![Coupling::lateral(LayerId(0), triangle)]).unwrap()
}

/// What is known of a machine: errors of ln Z.
struct Known {
    name: &'static str,
    /// Of belief propagation started from units that know nothing, and at its best; nothing where no start converges.
    bethe: Option<(Option<f64>, f64)>,
    trees: f64,
    /// Of mean field from units that know nothing, and at its best.
    means: (f64, f64),
    tap: Option<f64>,
}

/// Differences that the digits of published values leave open.
const PUBLISHED: f64 = 1e-6;

impl Known {
    /// Holds everything that was computed elsewhere against what is found here. Where starts are random
    /// others may find something better, and nothing worse.
    fn check(&self, machine: &Machine) {
        let (graph, log_z) = (graph_of(machine), exact::log_partition(machine).unwrap());
        let messages = Iteration::of_messages(&graph);
        let value = |found: &FixedPoints| found.best.log_sum - log_z;
        let first = |found: &FixedPoints| found.attempts[0].log_sum.map(|v| v - log_z);
        let is = |found: f64, expected: f64, what: &str| {
            let far = (found - expected).abs();
            assert!(far < PUBLISHED, "{}, {what}: {found}, not {expected}", self.name);
        };
        // What a start from nothing finds depends on the order of messages: this is the published one.
        let at_once = Iteration { schedule: Schedule::Parallel, ..only_first(messages) };
        let from_nothing = belief_propagation(&graph, &at_once, &mut Silent).ok();
        let expected = self.bethe.and_then(|b| b.0);
        assert_eq!(from_nothing.is_some(), expected.is_some(), "{}", self.name);
        let both = from_nothing.as_ref().map(value).zip(expected);
        both.into_iter().for_each(|(a, b)| is(a, b, "belief propagation from nothing"));
        match (self.bethe, belief_propagation(&graph, &messages, &mut Silent)) {
            (None, found) => {
                assert!(matches!(found, Err(Error::NotConverged { .. })), "{}", self.name);
            }
            (Some((_, best)), found) => {
                let found = value(&found.unwrap());
                assert!(found > best - PUBLISHED, "{}: {found}, not {best}", self.name);
            }
        }
        let found = tree_reweighted(&graph, &messages, &mut Silent).unwrap();
        // Some are published with fewer digits.
        let digits = if self.trees.abs() > 20.0 { 0.05 } else { PUBLISHED };
        let far = (value(&found) - self.trees).abs();
        assert!(far < digits, "{}, trees: {}, not {}", self.name, value(&found), self.trees);
        let found = mean_field(&graph, &Iteration::of_mean_field(&graph), &mut Silent).unwrap();
        let digits = if self.means.0 < -20.0 { 0.05 } else { PUBLISHED };
        let at_first = first(&found).unwrap();
        assert!((at_first - self.means.0).abs() < digits, "{}: {at_first}", self.name);
        let best = value(&found);
        assert!(best > self.means.1 - digits && best <= 0.0, "{}: {best}", self.name);
        match (self.tap, tap(&graph, &only_first(Iteration::of_tap(&graph)), &mut Silent)) {
            (Some(expected), found) => is(value(&found.unwrap()), expected, "TAP"),
            (None, found) => {
                assert!(matches!(found, Err(Error::NotConverged { .. })), "{}", self.name);
            }
        }
    }
}

fn only_first(iteration: Iteration) -> Iteration {
    Iteration { random_starts: 0, ..iteration }
}

fn known(
    name: &'static str,
    bethe: Option<(Option<f64>, f64)>,
    trees: f64,
    means: (f64, f64),
    tap: Option<f64>,
) -> Known {
    Known { name, bethe, trees, means, tap }
}

/// One value, wherever it starts.
const fn once(value: f64) -> (Option<f64>, f64) {
    (Some(value), value)
}

#[test]
fn sixteen_coupled_spins_have_their_known_values() {
    for (beta, log_z, found) in [
        (
            0.3,
            11.489_320_747,
            known(
                "0.3",
                Some(once(-0.016_164)),
                2.122_090,
                (-0.348_580, -0.348_580),
                Some(-0.015_779),
            ),
        ),
        (
            0.6,
            12.641_361_711,
            known(
                "0.6",
                Some(once(-0.140_783)),
                6.821_626,
                (-1.276_577, -1.276_577),
                Some(-0.136_014),
            ),
        ),
        (
            1.0,
            15.383_283_002,
            known(
                "1.0",
                Some(once(-0.475_265)),
                13.790_187,
                (-2.067_797, -1.579_955),
                Some(-0.454_636),
            ),
        ),
        (
            1.5,
            19.936_869_814,
            known("1.5", Some(once(-0.736_822)), 22.22, (-2.036_688, -1.375_553), Some(-0.351_274)),
        ),
    ] {
        let machine = dense16(beta);
        assert!((exact::log_partition(&machine).unwrap() - log_z).abs() < 1e-9);
        found.check(&machine);
    }
}

#[test]
fn the_torus_has_its_known_values() {
    for (side, k, found) in [
        (
            8,
            0.2,
            known(
                "8, 0.2",
                Some(once(-0.105_614)),
                2.415_406,
                (-2.648_727, -2.648_727),
                Some(-0.088_727),
            ),
        ),
        (
            8,
            0.4,
            known(
                "8, 0.4",
                Some((Some(-2.259_923), -1.166_852)),
                6.613_558,
                (-12.237_969, -2.412_966),
                Some(-1.997_969),
            ),
        ),
        (
            16,
            0.2,
            known(
                "16, 0.2",
                Some(once(-0.421_757)),
                9.436_177,
                (-10.594_210, -10.594_210),
                Some(-0.354_210),
            ),
        ),
        (
            16,
            0.4,
            known(
                "16, 0.4",
                Some((Some(-7.870_984), -3.498_699)),
                26.890_919,
                (-47.783_169, -8.483_153),
                Some(-6.823_169),
            ),
        ),
    ] {
        let machine = ising_torus(side, k).unwrap().into_machine();
        // The paramagnetic Bethe value is a closed form.
        let n = (side * side) as f64;
        let closed = n * 2.0_f64.ln() + 2.0 * n * k.cosh().ln();
        let error = closed - exact::log_partition(&machine).unwrap();
        let (Some(first), _) = found.bethe.unwrap() else { panic!("it converges") };
        assert!((error - first).abs() < 2e-6, "{error}, not {first}");
        found.check(&machine);
    }
}

#[test]
fn published_files_have_their_known_values() {
    let quick = [
        known(
            "uai-rbm/libdai_testfast.fg",
            Some(once(0.000_719)),
            1.048_625,
            (-1.234_977, -1.234_977),
            Some(0.119_560),
        ),
        known(
            "uai-rbm/DBN_11.uai",
            Some((Some(-2.089_531), -0.108_061)),
            184.5,
            (-2.308_792, -0.675_401),
            None,
        ),
        known(
            "uai-grids/Segmentation_11.uai",
            Some((Some(-5.248_165), -4.431_346)),
            10.433_581,
            (-8.194_136, -6.939_832),
            Some(-4.777_808),
        ),
        known(
            "uai-grids/Segmentation_12.uai",
            Some(once(-0.000_341)),
            0.111_341,
            (-0.009_267, -0.009_267),
            Some(-0.002_595),
        ),
        known(
            "uai-grids/Segmentation_13.uai",
            Some(once(-2.289_118)),
            9.402_154,
            (-16.067_531, -6.495_595),
            Some(-2.155_513),
        ),
    ];
    let long = [
        known("uai-rbm/DBN_12.uai", Some(once(-0.078_126)), 193.7, (-3.279_580, -0.611_158), None),
        known(
            "uai-rbm/DBN_13.uai",
            Some((None, -0.998_513)),
            253.0,
            (-5.240_721, -1.088_948),
            None,
        ),
        known("uai-grids/Grids_11.uai", None, 97.1, (-32.0, -22.65), None),
        known("uai-grids/Grids_12.uai", None, 210.3, (-35.2, -36.0), None),
        known("uai-grids/Grids_15.uai", None, 128.668_470, (-38.88, -38.89), None),
        known("uai-grids/Grids_16.uai", None, 355.5, (-122.7, -122.8), None),
    ];
    let all: Vec<Known> =
        quick.into_iter().chain(extent(None, Some(long)).into_iter().flatten()).collect();
    for known in all {
        let Some(machine) = shared(known.name) else { return };
        known.check(&machine);
    }
}

/// ln Z, and the largest $-E$ of all states, by elimination.
fn sum_and_mode(graph: &Pairwise) -> (f64, f64) {
    let tree = BucketTree::narrow(graph, 26.0).unwrap();
    let elimination = Elimination::new(graph, &tree);
    let mode = elimination.mode(&mut Silent).unwrap();
    (elimination.log_sum(&mut Silent).unwrap(), graph.log_weight(&mode))
}

#[test]
fn the_best_states_of_known_machines_are_found() {
    for (beta, log_z, most) in [
        (0.3, 11.489_320_747, 3.969_408),
        (0.6, 12.641_361_711, 7.265_536),
        (1.0, 15.383_283_002, 11.760_993),
        (1.5, 19.936_869_814, 17.380_313),
    ] {
        let (sum, mode) = sum_and_mode(&graph_of(&dense16(beta)));
        assert!((sum - log_z).abs() < 1e-9, "{beta}: {sum}");
        assert!((mode - most).abs() < PUBLISHED, "{beta}: {mode}");
    }
    let quick = [
        ("uai-rbm/libdai_testfast.fg", 14.328_233_281, 9.799_580),
        ("uai-rbm/DBN_11.uai", 134.771_832, 133.464_195),
        ("uai-grids/Grids_11.uai", 390.077_166, 387.894_789),
        ("uai-grids/Grids_12.uai", 697.881_206, 695.824_870),
        ("uai-grids/Segmentation_11.uai", -55.253_044, -56.036_789),
        ("uai-grids/Segmentation_12.uai", -23.687_207, -24.233_552),
        ("uai-grids/Segmentation_13.uai", -76.834_438, -82.669_508),
    ];
    let long = [
        ("uai-rbm/DBN_12.uai", 145.400_678, 143.730_908),
        ("uai-rbm/DBN_13.uai", 153.245_748, 151.524_503),
        ("uai-grids/Grids_15.uai", 671.739_257, 635.450_992),
        ("uai-grids/Grids_16.uai", 1_531.487_263, 1_521.661_463),
    ];
    for (name, log_z, most) in
        quick.into_iter().chain(extent(None, Some(long)).into_iter().flatten())
    {
        let Some(machine) = shared(name) else { return };
        let (sum, mode) = sum_and_mode(&graph_of(&machine));
        assert!((sum - log_z).abs() < PUBLISHED, "{name}: {sum}");
        assert!((mode - most).abs() < PUBLISHED, "{name}: {mode}");
    }
}
