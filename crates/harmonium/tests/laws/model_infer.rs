//! The verbs of inference: every method on what is free, evidence by number and by name, and the most
//! probable state.

use crate::machines::{assert_close, discrete, extent, gaussian, named, some_states};
use harmonium::Error;
use harmonium::data::{Binarize, Dataset, Table};
use harmonium::evaluation::log_partition::Settings;
use harmonium::exact;
use harmonium::machine::{Clamp, LayerId, Machine, State};
use harmonium::model::{Approach, Course, Inferred, Inferring, Maximiser, Maximising, Side};
use harmonium::models::{Rbm, ising_torus};
use harmonium::progress::{Listener, Silent, Work};
use harmonium::run::{Model, read_uai};

fn little(approach: Approach) -> Inferring {
    let annealing = Settings { betas: Some(100), chains: Some(50), ..Settings::default() };
    Inferring { approach, annealing, ..Inferring::default() }
}

/// Every other unit of each layer, at the states of `x`.
fn some_evidence(model: &Model, machine: &Machine, x: &State) -> Vec<(usize, usize)> {
    let state = |(l, unit): (LayerId, usize)| {
        let units = machine.layer(l).units;
        let group = units.group();
        let entries = &x.row(l, 0)[unit * group..(unit + 1) * group];
        units.configurations().unwrap().0.iter().position(|s| s == entries).unwrap()
    };
    let variables = model.variables().into_iter().enumerate();
    variables.filter(|(k, _)| k % 2 == 1).map(|(k, unit)| (k, state(unit))).collect()
}

/// ln of the sum, and the probabilities of the states of all units by listing every state.
fn by_listing(machine: &Machine, clamp: &Clamp, x: &State) -> (f64, Vec<Vec<Vec<f64>>>) {
    let all = exact::states(machine, clamp, x, 0).unwrap();
    let p = exact::probabilities(machine, &all).unwrap();
    let of = |l: LayerId| {
        let units = machine.layer(l).units;
        let group = units.group();
        let states = units.configurations().unwrap().0;
        let of_unit = |unit: usize| -> Vec<f64> {
            let share = |state: &Vec<f64>| {
                let is =
                    |row: &usize| all.row(l, *row)[unit * group..(unit + 1) * group] == state[..];
                (0..p.len()).filter(is).map(|row| p[row]).sum()
            };
            states.iter().map(share).collect()
        };
        (0..machine.layer(l).n_units()).map(of_unit).collect()
    };
    let log_sum = exact::log_sums(machine, clamp, x).unwrap()[0];
    (log_sum, machine.layer_ids().map(of).collect())
}

fn answer(inferred: &Inferred, approach: Approach) -> &harmonium::model::Answer {
    inferred.answers.iter().find(|a| a.approach == approach).unwrap()
}

#[test]
fn every_method_answers_about_what_is_free() {
    for (name, machine) in discrete() {
        let model = Model::from(machine.clone());
        let x = some_states(&machine, 1, 90);
        for evidence in [Vec::new(), some_evidence(&model, &machine, &x)] {
            let mut held: Vec<Vec<bool>> =
                machine.layers().iter().map(|l| vec![false; l.n_units()]).collect();
            for (variable, _) in &evidence {
                let (l, unit) = model.variables()[*variable];
                held[l.0][unit] = true;
            }
            let units = held.into_iter().enumerate();
            let clamp =
                units.fold(Clamp::none(), |clamp, (l, held)| clamp.with_units(LayerId(l), held));
            let (log_sum, expected) = by_listing(&machine, &clamp, &x);
            let given = model.with_evidence(&evidence).unwrap();
            let found = given.infer(&little(Approach::All), &mut Silent).unwrap();
            assert_eq!(found.answers.len(), 8, "{name}");
            for approach in [Approach::Exact, Approach::JunctionTree] {
                let answer = answer(&found, approach);
                assert_eq!(answer.side, Side::Exact, "{name}");
                assert_close(log_sum, answer.log_z.unwrap(), 1e-11, &name);
                let by_variable =
                    given.by_variable(&found, answer.marginals.as_ref().unwrap()).unwrap();
                for ((l, unit), found) in model.variables().into_iter().zip(by_variable) {
                    for (found, expected) in found.iter().zip(&expected[l.0][unit]) {
                        assert!((found - expected).abs() < 1e-11, "{name}");
                    }
                }
            }
            let (lower, upper) =
                (answer(&found, Approach::MeanField), answer(&found, Approach::TreeReweighted));
            let slack = 1e-10 * (1.0 + log_sum.abs());
            assert!(lower.side == Side::Lower && lower.log_z.unwrap() <= log_sum + slack, "{name}");
            assert!(upper.side == Side::Upper && upper.log_z.unwrap() >= log_sum - slack, "{name}");
            let (low, high) = found.bounds();
            assert!(low.unwrap() <= log_sum + slack && high.unwrap() >= log_sum - slack, "{name}");
            for a in found.answers.iter().filter(|a| a.marginals.is_some()) {
                let error = a.largest_error.unwrap();
                let graph = found.graph.nodes().iter().zip(&a.marginals.as_ref().unwrap().nodes);
                let far = graph.flat_map(|(node, p)| {
                    p.iter().zip(&expected[node.layer.0][node.unit]).map(|(p, q)| (p - q).abs())
                });
                let far = far.fold(0.0, f64::max);
                assert!(
                    (far - error).abs() < 1e-10,
                    "{name}, {:?}: {far}, not {error}",
                    a.approach
                );
            }
            if let Course::Annealed(ais) = &answer(&found, Approach::Ais).course {
                // A seed may be one of the few in a hundred that miss.
                let room = ais.width() + 1e-9;
                assert!(
                    (ais.lower - room..=ais.upper + room).contains(&log_sum),
                    "{name}: {ais:?}"
                );
            }
            assert!(found.trusted_log_z().unwrap().is_exact(), "{name}");
            assert!(found.trusted_marginals().unwrap().is_exact(), "{name}");
            let log_z = exact::log_partition(&machine).unwrap();
            match found.log_evidence {
                None => assert!(evidence.is_empty(), "{name}"),
                Some(p) => assert!((p - (log_sum - log_z)).abs() < 1e-10, "{name}: {p}"),
            }
        }
    }
}

/// Chains of independent seeds: 95 of 100 intervals hold the probability; here none is five errors off.
#[test]
fn sampled_probabilities_are_within_their_errors() {
    for (name, machine) in discrete() {
        let model = Model::from(machine);
        let exact = model.infer(Approach::Exact).unwrap();
        let exact = exact.answers[0].marginals.as_ref().unwrap();
        for seed in 0..extent(1, 5) {
            let annealing = Settings { seed, ..Settings::default() };
            let inferring =
                Inferring { approach: Approach::Gibbs, annealing, ..Inferring::default() };
            let found = model.freely().infer(&inferring, &mut Silent).unwrap();
            let Course::Sampled { errors, mixed, .. } = &found.answers[0].course else {
                panic!("it samples")
            };
            let levels = found.graph.nodes().iter().any(|node| node.values.len() > 2);
            let Some(sampled) = &found.answers[0].marginals else {
                // Chains average means, which do not say the probabilities of whole numbers.
                assert!(levels, "{name}");
                continue;
            };
            assert!(!levels, "{name}");
            let nodes = &sampled.nodes;
            for ((found, exact), errors) in nodes.iter().zip(&exact.nodes).zip(errors) {
                for ((found, exact), error) in found.iter().zip(exact).zip(errors) {
                    let near = (found - exact).abs() <= 5.0 * error;
                    assert!(near || !mixed, "{name}: {found} ± {error}, not {exact}");
                }
            }
        }
    }
}

#[test]
fn the_most_probable_state_given_something_is_the_best_of_all() {
    for (name, machine) in discrete() {
        let model = Model::from(machine.clone());
        let x = some_states(&machine, 1, 91);
        for evidence in [Vec::new(), some_evidence(&model, &machine, &x)] {
            let given = model.with_evidence(&evidence).unwrap();
            let most = {
                let agree = |row: usize, all: &State| {
                    evidence.iter().all(|&(variable, state)| {
                        let (l, unit) = model.variables()[variable];
                        let units = machine.layer(l).units;
                        let group = units.group();
                        let entries = &all.row(l, row)[unit * group..(unit + 1) * group];
                        entries == units.configurations().unwrap().0[state]
                    })
                };
                let all = crate::machines::every_state(&machine);
                let energies = machine.energies(&all).unwrap();
                let rows = (0..energies.len()).filter(|&row| agree(row, &all));
                rows.map(|row| energies[row]).fold(f64::INFINITY, f64::min)
            };
            for (by, word) in Maximiser::NAMES {
                assert_eq!(Maximiser::named(word), Some(by));
                let maximising = Maximising { by, sweeps: Some(100), ..Maximising::default() };
                let found = given.most_probable(&maximising, &mut Silent).unwrap();
                assert!(found.energy >= most - 1e-10, "{name}, {word}");
                assert!(found.mode.upper >= -most - 1e-10, "{name}, {word}: {}", found.mode.upper);
                // Messages on a graph with loops may end in another state; they prove it where they do not.
                let may_miss = by == Maximiser::MaxProduct && !found.mode.is_proved();
                let near = (found.energy - most).abs() < 1e-9;
                assert!(near || may_miss, "{name}, {word}: {}", found.energy);
                if matches!(by, Maximiser::Auto | Maximiser::Exact) {
                    assert!(found.mode.is_proved(), "{name}, {word}");
                }
                for (variable, state) in &evidence {
                    assert_eq!(found.states[*variable], Some(*state), "{name}, {word}");
                }
                let mut state = State::zeros(&machine, 1).unwrap();
                for (l, values) in machine.layer_ids().zip(&found.layers) {
                    state.set_row(l, 0, values).unwrap();
                }
                assert_close(found.energy, machine.energies(&state).unwrap()[0], 1e-10, &name);
            }
        }
    }
}

#[test]
fn everything_may_be_given() {
    let machine = named("chain of spin");
    let model = Model::from(machine.clone());
    let x = some_states(&machine, 1, 92);
    let all = (0..).zip(model.variables());
    let evidence: Vec<(usize, usize)> = all
        .map(|(k, (l, unit))| {
            let listed = machine.layer(l).units.configurations().unwrap().0;
            (k, listed.iter().position(|s| s[0] == x.row(l, 0)[unit]).unwrap())
        })
        .collect();
    let given = model.with_evidence(&evidence).unwrap();
    let energy = machine.energies(&x).unwrap()[0];
    let found = given.infer(&little(Approach::All), &mut Silent).unwrap();
    for answer in &found.answers {
        if answer.approach != Approach::Gibbs {
            assert_close(-energy, answer.log_z.unwrap(), 1e-12, answer.approach.name());
        }
    }
    for (by, _) in Maximiser::NAMES {
        let found = given.most_probable(&Maximising { by, ..Maximising::default() }, &mut Silent);
        assert_close(energy, found.unwrap().energy, 1e-12, "a state that is given");
    }
}

#[test]
fn evidence_that_makes_no_sense_is_refused() {
    let model = Model::from(named("tree of categorical"));
    let n = model.variables().len();
    let refused = |evidence: &[(usize, usize)]| {
        model.with_evidence(evidence).err().unwrap_or_else(|| panic!("{evidence:?}"))
    };
    let error = refused(&[(n, 0)]);
    assert!(matches!(error, Error::NoUnit { .. }), "{error}");
    assert!(error.to_string().contains(&format!("{n} variables")), "{error}");
    let error = refused(&[(0, 3)]);
    assert!(error.to_string().contains("variable 0 cannot be 3: it takes 3 states"), "{error}");
    let error = refused(&[(0, 1), (0, 2)]);
    assert!(matches!(error, Error::Contradiction { .. }), "{error}");
    assert!(error.to_string().contains("probability is 0"), "{error}");
    assert!(model.with_evidence(&[(0, 1), (0, 1)]).is_ok(), "the same twice is known once");
    let given = |name: &str, value: &str| {
        model.freely().and_values(&[(name.into(), value.into())]).err().map(|e| e.to_string())
    };
    assert_eq!(given("layer1[1]", "1"), None);
    assert_eq!(given("layer3", "-1"), None);
    assert!(given("layer9[0]", "1").unwrap().contains("layer1[0] to layer1[1]"));
    assert!(given("layer1[2]", "1").unwrap().contains("has no unit"));
    assert!(given("layer1[1]", "2").unwrap().contains("0 or 1"));
    assert!(given("layer3", "0").unwrap().contains("-1 or 1"));
    assert!(given("layer0", "3").unwrap().contains("categories 0 to 2"));
    let twice = model.with_evidence(&[(0, 1)]).unwrap();
    let error = twice.and_values(&[("layer0".into(), "2".into())]).err().unwrap();
    assert!(error.to_string().contains("given as 1 and as 2"), "{error}");
}

/// Columns name the units that were learned from them.
#[test]
fn columns_name_units() {
    let table = Table::from_bytes(vec![0, 1, 1, 0, 1, 1], 3, 1).unwrap();
    let table = table.with_names(&["wind".into(), "rain".into(), "sun, high".into()]);
    let data = Dataset::new(table, Binarize::None).unwrap();
    let model = Rbm::binary(3, 2).unwrap().train(&data, &harmonium::Plan::for_epochs(2)).unwrap();
    assert_eq!(model.unit_named("rain").unwrap(), (LayerId(0), 1));
    assert_eq!(model.unit_named("visible[2]").unwrap(), (LayerId(0), 2));
    assert_eq!(model.unit_name(LayerId(0), 2), "sun, high");
    assert_eq!(model.unit_name(LayerId(1), 1), "hidden[1]");
    let by_name = model.freely().and_values(&[("rain".into(), "1".into())]).unwrap();
    let by_number = model.with_evidence(&[(1, 1)]).unwrap();
    let [a, b] = [by_name, by_number]
        .map(|given| given.infer(&little(Approach::Exact), &mut Silent).unwrap().log_evidence);
    assert_eq!(a, b);
}

/// Variables of a file keep their numbers, however they fall into layers.
#[test]
fn variables_are_numbered_as_in_their_file() {
    let text = "MARKOV 4 2 2 2 2 4  2 0 1  2 1 2  2 2 3  1 3
        4 1 2 3 4  4 5 1 1 2  4 1 1 1 6  2 1 3";
    let read = read_uai(text).unwrap();
    assert_eq!(read.variables, [vec![0, 2], vec![1, 3]], "a chain falls into two sides");
    let path = std::env::temp_dir().join(format!("harmonium-{}-chain.uai", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let model = Model::open(path.to_str().unwrap(), &mut Silent).unwrap();
    std::fs::remove_file(&path).unwrap();
    let saved = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let factors = |x: [usize; 4]| {
        [1.0, 2.0, 3.0, 4.0][2 * x[0] + x[1]]
            * [5.0, 1.0, 1.0, 2.0][2 * x[1] + x[2]]
            * [1.0, 1.0, 1.0, 6.0][2 * x[2] + x[3]]
            * [1.0, 3.0][x[3]]
    };
    let all = (0..16).map(|k| [k >> 3 & 1, k >> 2 & 1, k >> 1 & 1, k & 1]);
    for model in [model, saved] {
        let given = model.with_evidence(&[(1, 0)]).unwrap();
        let found = given.infer(&little(Approach::JunctionTree), &mut Silent).unwrap();
        let total: f64 = all.clone().filter(|x| x[1] == 0).map(factors).sum();
        assert_close(total.ln(), found.answers[0].log_z.unwrap(), 1e-12, "the sum");
        let p = given.by_variable(&found, found.answers[0].marginals.as_ref().unwrap()).unwrap();
        for variable in 0..4 {
            let on = all.clone().filter(|x| x[1] == 0 && x[variable] == 1).map(factors);
            assert_close(on.sum::<f64>() / total, p[variable][1], 1e-12, "a marginal");
        }
        let best = given.most_probable(&Maximising::default(), &mut Silent).unwrap();
        let found: Vec<usize> = best.states.into_iter().flatten().collect();
        let most = all.clone().filter(|x| x[1] == 0).map(factors).fold(0.0, f64::max);
        assert_close(most.ln(), -best.energy, 1e-12, "the best state");
        assert_close(most, factors([found[0], found[1], found[2], found[3]]), 1e-12, "its states");
    }
}

#[test]
fn what_is_too_large_says_what_it_would_take() {
    let torus = Model::from(ising_torus(40, 0.5).unwrap().into_machine());
    let error = torus.infer(Approach::JunctionTree).unwrap_err();
    let Error::TooWide { n_units, log2_entries, bytes, limit, .. } = error else {
        panic!("{error}")
    };
    assert_eq!((n_units, limit), (1600, 26.0));
    assert!(log2_entries > 30.0 && bytes >= 8.0 * log2_entries.exp2() * 0.99, "{log2_entries}");
    assert!(error.hint().contains("mean-field"), "{}", error.hint());
    // The torus has a closed form all the same; with a unit held it has none.
    let found = torus.infer(Approach::Exact).unwrap();
    assert!(found.answers[0].marginals.is_none());
    assert_eq!(
        found.answers[0].course,
        Course::Summed { by: None, log2_terms: 0.0, bytes: 0.0, width: 0, recomputed: false }
    );
    let held = torus.with_evidence(&[(7, 1)]).unwrap();
    let error = held.infer(&little(Approach::Exact), &mut Silent).unwrap_err();
    assert!(matches!(error, Error::TooManyTerms { .. }), "{error}");
    let small = Inferring { memory: Some(1e3), ..little(Approach::JunctionTree) };
    let grid = Model::from(ising_torus(8, 0.5).unwrap().into_machine());
    let error = grid.freely().infer(&small, &mut Silent).unwrap_err();
    assert!(matches!(error, Error::MemoryBudget { .. }), "{error}");
}

#[test]
fn real_units_are_refused_with_a_way_out() {
    for (name, machine) in gaussian() {
        let model = Model::from(machine.clone());
        let error = model.infer(Approach::All).unwrap_err();
        assert!(matches!(error, Error::RealUnits { .. }), "{name}: {error}");
        assert!(error.hint().contains("--given"), "{name}");
        let error = model.freely().most_probable(&Maximising::default(), &mut Silent).unwrap_err();
        assert!(matches!(error, Error::RealUnits { .. }), "{name}: {error}");
        // Given their values, the others are a graph like any other.
        let mut values = Vec::new();
        for l in machine.layer_ids().filter(|&l| !machine.layer(l).units.is_finite()) {
            let unit = |u: usize| (format!("{}[{u}]", machine.layer(l).name), "0.5".to_owned());
            values.extend((0..machine.layer(l).n_units()).map(unit));
        }
        let given = model.freely().and_values(&values).unwrap();
        let found = given.infer(&little(Approach::Exact), &mut Silent).unwrap();
        assert!(found.answers[0].log_z.unwrap().is_finite(), "{name}");
    }
}

/// A listener that asks to stop at once.
struct Impatient;

impl Listener for Impatient {
    fn at(&mut self, _: Work<'_>) {}
    fn cancelled(&mut self) -> bool {
        true
    }
}

#[test]
fn inference_stops_when_asked() {
    let model = Model::from(ising_torus(5, 0.4).unwrap().into_machine());
    let error = model.freely().infer(&little(Approach::All), &mut Impatient).unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    let maximising = Maximising { by: Maximiser::Alternating, ..Maximising::default() };
    let error = model.freely().most_probable(&maximising, &mut Impatient).unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
}
