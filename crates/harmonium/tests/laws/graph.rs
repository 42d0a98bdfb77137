//! The graph of the free units: its energy, its colours, and orders in which it is summed.

use crate::machines::{assert_close, discrete, gaussian};
use harmonium::exact;
use harmonium::graph::{Node, Order, Pair, Pairwise};
use harmonium::machine::{LayerId, Machine, State};
use harmonium::sampling::Clamp;
use harmonium::units::{Storage, log_sum_exp};

/// One row in which every unit has some value that it can take, different from unit to unit.
fn some_state(machine: &Machine) -> State {
    let mut x = State::zeros(machine, 1).unwrap();
    for l in machine.layer_ids() {
        let layer = machine.layer(l);
        let unit = |u: usize| match layer.units.configurations() {
            Some(listed) => listed.0[(u + l.0) % listed.0.len()].clone(),
            None => vec![0.4 - 0.3 * u as f64],
        };
        let values: Vec<f64> = (0..layer.n_units()).flat_map(unit).collect();
        x.set_row(l, 0, &values).unwrap();
    }
    x
}

/// Nothing held, the first layer, every other unit of each layer; real units always.
fn clamps(machine: &Machine) -> Vec<Clamp> {
    let real = |l: &LayerId| !machine.layer(*l).units.is_finite();
    let reals: Vec<LayerId> = machine.layer_ids().filter(real).collect();
    let every_other = |clamp: Clamp, l: LayerId| {
        clamp.with_units(l, (0..machine.layer(l).n_units()).map(|u| u % 2 == 0).collect())
    };
    let finite = machine.layer_ids().filter(|l| !real(l));
    vec![
        Clamp::layers(reals.clone()),
        Clamp::layers(reals.iter().copied().chain([LayerId(0)])),
        finite.fold(Clamp::layers(reals.clone()), every_other),
        Clamp::layers(machine.layer_ids()),
    ]
}

/// The states of the nodes of a graph in one row of a state of the machine.
fn states_of(machine: &Machine, graph: &Pairwise, x: &State, row: usize) -> Vec<usize> {
    let state = |node: &Node| {
        let units = machine.layer(node.layer).units;
        let group = units.group();
        let entries = &x.row(node.layer, row)[node.unit * group..(node.unit + 1) * group];
        units.configurations().unwrap().0.iter().position(|s| s == entries).unwrap()
    };
    graph.nodes().iter().map(state).collect()
}

#[test]
fn the_energy_of_the_graph_is_that_of_the_machine() {
    for (name, machine) in discrete().into_iter().chain(gaussian()) {
        let x = some_state(&machine);
        for clamp in clamps(&machine) {
            let graph = Pairwise::new(&machine, &clamp, &x, 0).unwrap();
            let all = exact::states(&machine, &clamp, &x, 0).unwrap();
            let energies = machine.energies(&all).unwrap();
            let mut logs = Vec::new();
            for (row, energy) in energies.iter().enumerate() {
                let states = states_of(&machine, &graph, &all, row);
                logs.push(graph.log_weight(&states));
                assert_close(-energy, logs[row], 1e-11, &name);
            }
            let n_states: usize = graph.nodes().iter().map(Node::n_states).product();
            assert_eq!(energies.len(), n_states, "{name}");
            let sum = exact::log_sums(&machine, &clamp, &x).unwrap()[0];
            assert_close(sum, log_sum_exp(&logs), 1e-11, &name);
        }
    }
}

#[test]
fn units_see_each_other_once_and_products_join_units_of_one_entry() {
    for (name, machine) in discrete() {
        let x = some_state(&machine);
        let graph = Pairwise::new(&machine, &Clamp::none(), &x, 0).unwrap();
        let mut pairs: Vec<(usize, usize)> = graph
            .edges()
            .iter()
            .map(|e| (e.between.0.min(e.between.1), e.between.0.max(e.between.1)))
            .collect();
        pairs.sort_unstable();
        let n_pairs = pairs.len();
        pairs.dedup();
        assert_eq!(pairs.len(), n_pairs, "{name}");
        assert!(pairs.iter().all(|(u, v)| u != v), "{name}");
        let bits =
            |u: usize| machine.layer(graph.nodes()[u].layer).units.storage() != Storage::OneHot;
        for edge in graph.edges() {
            let product = matches!(edge.pair, Pair::Product(_));
            assert_eq!(product, bits(edge.between.0) && bits(edge.between.1), "{name}");
        }
        let topology = graph.topology();
        let sets = topology.colours();
        assert_eq!(sets.iter().map(Vec::len).sum::<usize>(), graph.nodes().len(), "{name}");
        for set in &sets {
            let alone = |&u: &usize| topology.neighbours(u).all(|v| !set.contains(&v));
            assert!(set.iter().all(alone), "{name}");
        }
    }
}

/// The terms that an order announces are those that summing out node after node takes.
#[test]
fn an_order_counts_its_terms() {
    for (name, machine) in discrete() {
        let x = some_state(&machine);
        let graph = Pairwise::new(&machine, &Clamp::none(), &x, 0).unwrap();
        let topology = graph.topology();
        let n_states: Vec<usize> = graph.nodes().iter().map(Node::n_states).collect();
        let order = Order::narrow(&topology, &n_states, 30.0).unwrap();
        let n = topology.n();
        let mut sees = vec![vec![false; n]; n];
        for u in 0..n {
            topology.neighbours(u).for_each(|v| sees[u][v] = true);
        }
        let (mut terms, mut width) = (0, 0);
        let mut left = vec![true; n];
        for &u in &order.nodes {
            left[u] = false;
            let near: Vec<usize> = (0..n).filter(|&v| left[v] && sees[u][v]).collect();
            terms += n_states[u] * near.iter().map(|&v| n_states[v]).product::<usize>();
            width = width.max(near.len());
            for (&v, &w) in near.iter().flat_map(|v| near.iter().map(move |w| (v, w))) {
                sees[v][w] |= v != w;
            }
        }
        assert!(left.iter().all(|l| !l), "{name}");
        assert_close((terms as f64).log2(), order.log2_terms, 1e-12, &name);
        assert!(topology.least_width() <= width, "{name}");
    }
}

#[test]
fn real_units_must_be_held() {
    for (name, machine) in gaussian() {
        let x = some_state(&machine);
        let error = Pairwise::new(&machine, &Clamp::none(), &x, 0).unwrap_err();
        assert!(error.to_string().contains("real"), "{name}: {error}");
    }
}
