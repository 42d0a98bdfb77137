//! The most probable state against the best of all states, and what is claimed about it.

use crate::approximations::{clamps, forest, graph_of};
use crate::machines::{assert_close, discrete, extent, gaussian, named, noise, some_states};
use harmonium::Error;
use harmonium::exact;
use harmonium::graph::{BucketTree, Elimination, Pairwise};
use harmonium::inference::{Iteration, Mode, Search, alternating, annealed, max_product, tempered};
use harmonium::machine::{Clamp, Coupling, LayerId, Machine, Matrix, State};
use harmonium::models::{Rbm, ising_torus};
use harmonium::progress::Silent;
use harmonium::random::{Site, Stream};

/// The largest $-E$ of all states.
fn best(machine: &Machine, clamp: &Clamp, x: &State) -> f64 {
    let all = exact::states(machine, clamp, x, 0).unwrap();
    machine.energies(&all).unwrap().into_iter().map(|e| -e).fold(f64::NEG_INFINITY, f64::max)
}

fn of_elimination(graph: &Pairwise) -> Mode {
    let tree = BucketTree::narrow(graph, 26.0).unwrap();
    let states = Elimination::new(graph, &tree).mode(&mut Silent).unwrap();
    Mode::exact(graph, states)
}

#[test]
fn states_are_worth_what_they_say_and_bounds_hold() {
    for (name, machine) in discrete().into_iter().chain(gaussian()) {
        let x = some_states(&machine, 1, 80);
        for clamp in clamps(&machine) {
            let most = best(&machine, &clamp, &x);
            let slack = 1e-10 * (1.0 + most.abs());
            let graph = Pairwise::new(&machine, &clamp, &x, 0).unwrap();
            let exact = of_elimination(&graph);
            assert!(exact.is_proved() && (exact.log_weight - most).abs() < slack, "{name}");
            let few = Search { starts: 50, sweeps: 200, seed: 3 };
            let found = alternating(&graph, &few, &mut Silent).unwrap();
            assert!((graph.log_weight(&found.states) - found.log_weight).abs() < slack, "{name}");
            assert!((found.log_weight - most).abs() < slack, "{name}: 50 starts are enough here");
            assert!(!found.is_proved(), "{name}: nothing was proved");
            assert_eq!(found.starts, 50, "{name}");
            assert!((1..=50).contains(&found.hits), "{name}");
            for max_sweeps in [1, 3, 1000] {
                let iteration = Iteration { max_sweeps, ..Iteration::of_messages(&graph) };
                let found = max_product(&graph, &iteration, &mut Silent).unwrap();
                assert!(found.log_weight <= most + slack, "{name}");
                assert!(found.upper >= most - slack, "{name}: {} < {most}", found.upper);
                if found.is_proved() {
                    assert!((found.log_weight - most).abs() < 1e-8 * (1.0 + most.abs()), "{name}");
                }
            }
        }
    }
}

#[test]
fn max_product_proves_the_best_state_of_a_forest() {
    for seed in 0..extent(20, 200) {
        let machine = forest(seed);
        let x = some_states(&machine, 1, seed);
        for clamp in clamps(&machine) {
            let graph = Pairwise::new(&machine, &clamp, &x, 0).unwrap();
            let expected = of_elimination(&graph).log_weight;
            let iteration = Iteration::of_messages(&graph);
            let found = max_product(&graph, &iteration, &mut Silent).unwrap();
            assert!(found.is_proved(), "{seed}: {} below {}", found.log_weight, found.upper);
            assert_close(expected, found.log_weight, 1e-10, "the best state of a forest");
        }
    }
}

/// Couplings that do not frustrate each other: the bound of trees is met, whatever the fields are.
#[test]
fn the_best_state_of_a_ferromagnet_in_any_field_is_proved() {
    for seed in 0..5 {
        let mut machine = ising_torus(6, 0.3).unwrap().into_machine();
        let mut layers = machine.layers().to_vec();
        layers[0].bias.iter_mut().enumerate().for_each(|(i, b)| *b = 2.0 * noise(seed, i));
        machine = Machine::new(layers, machine.couplings().to_vec()).unwrap();
        let graph = graph_of(&machine);
        let found = max_product(&graph, &Iteration::of_messages(&graph), &mut Silent).unwrap();
        assert!(found.is_proved(), "{seed}: {} below {}", found.log_weight, found.upper);
        assert_close(of_elimination(&graph).log_weight, found.log_weight, 1e-10, "the torus");
    }
}

#[test]
fn sampling_finds_the_best_state_of_small_machines() {
    for (name, machine) in discrete() {
        let x = State::zeros(&machine, 1).unwrap();
        let most = best(&machine, &Clamp::none(), &x);
        let annealing = Search { starts: 20, sweeps: 200, seed: 5 };
        let found = annealed(&machine, &annealing, &mut Silent).unwrap();
        assert_close(most, found.log_weight, 1e-10, &format!("{name}, annealed"));
        let tempering = Search { starts: 2, sweeps: 200, seed: 5 };
        let found = tempered(&machine, &tempering, &mut Silent).unwrap();
        assert_close(most, found.log_weight, 1e-10, &format!("{name}, tempered"));
        assert!(!found.is_proved(), "{name}: sampling proves nothing");
    }
}

/// The machines of a published comparison, with our own variates: weights are normal, biases logistic.
fn random_rbm(n: usize, seed: u64) -> Machine {
    let stream = Stream::new(seed);
    let site = |lane| Site::new(0, 0, lane);
    let logistic = |lane: usize, i: usize| {
        let u = stream.uniform(site(lane), i).clamp(1e-12, 1.0 - 1e-12);
        (u / (1.0 - u)).ln()
    };
    let mut layers = Rbm::binary(n, n).unwrap().machine().layers().to_vec();
    for (l, layer) in layers.iter_mut().enumerate() {
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = logistic(1 + l, i));
    }
    let weights = Matrix::from_fn(n, n, |i, j| stream.normal(site(0), i * n + j)).unwrap();
    Machine::new(layers, vec![Coupling::between(LayerId(0), LayerId(1), weights)]).unwrap()
}

#[test]
fn every_road_leads_to_the_best_state_of_random_rbms() {
    for seed in 0..extent(3, 20) {
        let machine = random_rbm(extent(12, 20), seed);
        let graph = graph_of(&machine);
        let exact = of_elimination(&graph).log_weight;
        let roads = [
            ("alternating", alternating(&graph, &Search::of_alternating(&graph), &mut Silent)),
            ("annealed", annealed(&machine, &Search::of_annealing(&graph), &mut Silent)),
            ("tempered", tempered(&machine, &Search::of_tempering(&graph), &mut Silent)),
        ];
        for (name, found) in roads {
            let found = found.unwrap();
            assert_close(exact, found.log_weight, 1e-10, &format!("{name}, machine {seed}"));
        }
    }
}

#[test]
fn a_search_without_starts_is_refused() {
    let machine = named("rbm of binary");
    let none = Search { starts: 0, sweeps: 10, seed: 0 };
    for found in [
        alternating(&graph_of(&machine), &none, &mut Silent),
        annealed(&machine, &none, &mut Silent),
        tempered(&machine, &none, &mut Silent),
    ] {
        assert!(matches!(found, Err(Error::Setting { name: "starts", .. })), "{found:?}");
    }
    let (_, real) = gaussian().remove(0);
    let some = Search { starts: 1, ..none };
    let error = annealed(&real, &some, &mut Silent).unwrap_err();
    assert!(error.to_string().contains("real"), "{error}");
}

#[test]
fn searches_give_the_same_on_any_number_of_threads() {
    let machine = random_rbm(14, 4);
    let graph = graph_of(&machine);
    let on = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let few = Search { starts: 9, sweeps: 40, seed: 1 };
        pool.install(|| {
            [
                alternating(&graph, &few, &mut Silent).unwrap(),
                annealed(&machine, &few, &mut Silent).unwrap(),
                tempered(&machine, &few, &mut Silent).unwrap(),
            ]
        })
    };
    assert_eq!(on(1), on(3));
}
