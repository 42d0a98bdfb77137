//! UAI files: the energy of the file, pointwise; and nothing that is not one.

use harmonium::Error;
use harmonium::exact;
use harmonium::machine::{LayerId, Machine, Role, State};
use harmonium::models::{curie_weiss, ising_torus};
use harmonium::run::{UaiModel, load_uai, read_uai, write_uai};
use harmonium::sampling::Clamp;
use harmonium::units::Units;
use std::io::Write;
use std::path::PathBuf;

/// A file of the shared data, unless that folder is absent.
fn shared(file: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !folder.is_dir() {
        // Written past the capture of the test harness, so that it is seen.
        let _ = writeln!(std::io::stderr(), "SKIPPED: ../shared/data is absent");
        return None;
    }
    Some(folder.join(file))
}

/// The state in which variable `i` of the file has the value `bit(i)`.
fn state(model: &UaiModel, bit: impl Fn(usize) -> bool) -> State {
    let mut x = State::zeros(&model.machine, 1).unwrap();
    for (l, variables) in model.variables.iter().enumerate() {
        let values: Vec<f64> = variables.iter().map(|&i| f64::from(u8::from(bit(i)))).collect();
        x.set_row(LayerId(l), 0, &values).unwrap();
    }
    x
}

/// $-\ln\prod\phi$ straight from the text.
fn energy_of_text(text: &str, bit: impl Fn(usize) -> bool) -> f64 {
    let mut words = text.split_whitespace().skip(1);
    let mut next = || words.next().unwrap();
    let n: usize = next().parse().unwrap();
    (0..n).for_each(|_| assert_eq!(next(), "2"));
    let n_factors: usize = next().parse().unwrap();
    let scopes: Vec<Vec<usize>> = (0..n_factors)
        .map(|_| {
            let size: usize = next().parse().unwrap();
            (0..size).map(|_| next().parse().unwrap()).collect()
        })
        .collect();
    let mut energy = 0.0;
    for scope in &scopes {
        let size: usize = next().parse().unwrap();
        let table: Vec<f64> = (0..size).map(|_| next().parse().unwrap()).collect();
        let at = scope.iter().fold(0, |at, &i| 2 * at + usize::from(bit(i)));
        energy -= table[at].ln();
    }
    energy
}

const PAIRS: &str = "MARKOV 4 2 2 2 2 7
    1 0  1 2  2 0 1  2 2 1  2 3 0  0  2 0 1
    2 0.3 1.7   2 2.5 4e-3
    4 1 2 3 4   4 0.1 7 0.2 9   4 5 1e-5 6 3   1 11   4 2 2 1 0.5";

#[test]
fn the_energy_is_that_of_the_factors() {
    let model = read_uai(PAIRS).unwrap();
    for code in 0..16_usize {
        let bit = |i: usize| code >> i & 1 == 1;
        let found = model.machine.energies(&state(&model, bit)).unwrap()[0];
        let expected = energy_of_text(PAIRS, bit);
        assert!((found - expected).abs() < 1e-12, "state {code}: {found}, not {expected}");
    }
}

/// The two bits that a unit of the first machine and one of the second have.
fn assert_round_trip(name: &str, machine: &Machine) {
    let text = write_uai(machine).unwrap();
    let read = read_uai(&text).unwrap();
    let all =
        exact::states(machine, &Clamp::none(), &State::zeros(machine, 1).unwrap(), 0).unwrap();
    let expected = machine.energies(&all).unwrap();
    for (row, expected) in expected.into_iter().enumerate() {
        let values: Vec<f64> = machine.layer_ids().flat_map(|l| all.row(l, row).to_vec()).collect();
        let bit = |i: usize| values[i] > 0.0;
        let found = read.machine.energies(&state(&read, bit)).unwrap()[0];
        assert!((found - expected).abs() < 1e-11, "{name}: {found}, not {expected}");
        assert!((energy_of_text(&text, bit) - expected).abs() < 1e-11, "{name}");
    }
}

#[test]
fn written_machines_come_back_with_every_energy() {
    let pairwise =
        |m: &Machine| m.layers().iter().all(|l| matches!(l.units, Units::Binary | Units::Spin));
    let mut tried = 0;
    for (name, machine) in crate::machines::all().into_iter().filter(|m| pairwise(&m.1)) {
        assert_round_trip(&name, &machine);
        tried += 1;
    }
    assert!(tried > 10);
    assert_round_trip("torus", ising_torus(3, 0.4).unwrap().machine());
    assert_round_trip("small torus", ising_torus(1, 0.4).unwrap().machine());
    assert_round_trip("Curie-Weiss", curie_weiss(7, 1.5).unwrap().machine());
}

#[test]
fn other_units_and_unbounded_factors_cannot_be_written() {
    let gaussian = crate::machines::model();
    let error = write_uai(crate::machines::machine(&gaussian.body)).unwrap_err();
    assert!(error.to_string().contains("gaussian"), "{error}");
    let strong = ising_torus(4, 200.0).unwrap();
    let error = write_uai(strong.machine()).unwrap_err();
    assert!(error.to_string().contains("would be e^"), "{error}");
    assert!(error.hint().contains("1e308"));
}

#[test]
fn what_is_no_pairwise_file_is_refused_with_a_reason() {
    for (text, words) in [
        ("", "ends after 0 words"),
        ("BAYES 1 2", "instead of MARKOV"),
        ("MARKOV x", "the number of variables is `x`"),
        ("MARKOV -1", "the number of variables is `-1`"),
        ("MARKOV 0 0", "no variables"),
        ("MARKOV 18446744073709551615 2 2", "before the number of values of variable 2"),
        ("MARKOV 99999999999999999999", "the number of variables is"),
        ("MARKOV 1 3", "has 3 values"),
        ("MARKOV 1 2 18446744073709551615 1 0", "the number of variables of factor 1"),
        ("MARKOV 3 2 2 2 1 3 0 1 2", "factor 0 has 3 variables"),
        ("MARKOV 1 2 1 1 1", "names variable 1, but there are 1"),
        ("MARKOV 2 2 2 1 2 1 1", "names variable 1 twice"),
        ("MARKOV 1 2 1 1 0 3 1 1 1", "must have 2 entries, found 3"),
        ("MARKOV 1 2 1 1 0 2 1", "before entry 1 of table 0"),
        ("MARKOV 1 2 1 1 0 2 1 -2", "is -2"),
        ("MARKOV 1 2 1 1 0 2 1 nan", "is NaN"),
        ("MARKOV 1 2 1 1 0 2 1 inf", "is inf"),
        ("MARKOV 1 2 1 1 0 2 1 0", "ln 0"),
        ("MARKOV 1 2 1 1 0 2 1 1 7", "more after"),
    ] {
        let error = read_uai(text).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
        assert!(matches!(error, Error::Foreign { .. }) && !error.hint().is_empty());
    }
    let zero = read_uai("MARKOV 1 2 1 1 0 2 1 0").unwrap_err();
    assert!(zero.hint().contains("1e-30"));
    let error = load_uai("/dev/null").unwrap_err();
    assert!(error.to_string().contains("`/dev/null`"), "{error}");
}

#[test]
fn bipartite_files_become_rbms_and_others_sparse() {
    let roles = |m: &Machine| m.layers().iter().map(|l| l.role).collect::<Vec<_>>();
    // Variables 0 and 2 see 1 and 3, but not each other.
    let pairs = "MARKOV 4 2 2 2 2 4  2 0 1  2 3 0  2 1 2  2 2 3
        4 1 2 3 4  4 1 2 3 4  4 1 2 3 4  4 1 2 3 4";
    let rbm = read_uai(pairs).unwrap();
    assert_eq!(roles(&rbm.machine), [Role::Visible, Role::Hidden]);
    assert_eq!(rbm.variables, [[0, 2], [1, 3]]);
    let torus = write_uai(ising_torus(6, 0.3).unwrap().machine()).unwrap();
    let torus = read_uai(&torus).unwrap();
    assert_eq!(roles(&torus.machine), [Role::Visible], "a grid is not an RBM");
    assert_eq!(torus.machine.n_parameters(), 36 + 72);
    assert_eq!(torus.machine.unit_blocks(LayerId(0)).len(), 2);
    let alone = read_uai("MARKOV 1 2 0").unwrap();
    assert!(alone.machine.couplings().is_empty());
}

#[test]
fn competition_grids_have_their_partition_function() {
    for (file, log_z) in [
        ("Grids_11", 390.077_166),
        ("Grids_12", 697.881_206),
        ("Grids_16", 1_531.487_263),
        ("Segmentation_11", -55.253_044),
        ("Segmentation_12", -23.687_207),
        ("Segmentation_13", -76.834_438),
    ] {
        let Some(path) = shared(&format!("uai-grids/{file}.uai")) else { return };
        let model = load_uai(path).unwrap();
        assert_eq!(model.machine.layers().len(), 1, "{file} is not an RBM");
        let found = exact::log_partition(&model.machine).unwrap();
        assert!((found - log_z).abs() < 1e-5, "{file}: {found}");
    }
}

#[test]
fn competition_rbms_have_their_partition_function() {
    for (file, log_z) in [("DBN_11", 134.771_832), ("DBN_12", 145.400_678), ("DBN_13", 153.245_748)]
    {
        let Some(path) = shared(&format!("uai-rbm/{file}.uai")) else { return };
        let model = load_uai(path).unwrap();
        assert_eq!(model.machine.layers().len(), 2, "{file} is an RBM");
        let found = exact::log_partition(&model.machine).unwrap();
        assert!((found - log_z).abs() < 1e-6, "{file}: {found}");
        let again = read_uai(&write_uai(&model.machine).unwrap()).unwrap();
        let found = exact::log_partition(&again.machine).unwrap();
        assert!((found - log_z).abs() < 1e-6, "{file} again: {found}");
    }
}
