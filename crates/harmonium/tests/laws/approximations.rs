//! Belief propagation, tree-reweighted messages, TAP and mean field against enumeration.

use crate::machines::{
    assert_close, discrete, extent, gaussian, moved, noise, some_states, statistic,
};
use harmonium::Error;
use harmonium::exact;
use harmonium::graph::{BucketTree, Elimination, Marginals, Node, Pairwise};
use harmonium::inference::{
    FixedPoints, Iteration, Schedule, belief_propagation, mean_field, tap, tree_reweighted,
};
use harmonium::machine::{Coupling, Edges, Layer, LayerId, Machine, Matrix, Role, State, Weights};
use harmonium::models::ising_torus;
use harmonium::moments::Moments;
use harmonium::progress::{Listener, Silent};
use harmonium::sampling::Clamp;
use harmonium::units::Units;

/// A method that looks for fixed points.
type Method = fn(&Pairwise, &Iteration, &mut dyn Listener) -> Result<FixedPoints, Error>;

pub(crate) fn graph_of(machine: &Machine) -> Pairwise {
    Pairwise::new(machine, &Clamp::none(), &State::zeros(machine, 1).unwrap(), 0).unwrap()
}

fn exactly(graph: &Pairwise) -> Marginals {
    let tree = BucketTree::narrow(graph, 26.0).unwrap();
    Elimination::new(graph, &tree).marginals(&mut Silent).unwrap()
}

/// How a method iterates where nothing else is said.
type Usual = fn(&Pairwise) -> Iteration;

fn only_first(iteration: Iteration) -> Iteration {
    Iteration { random_starts: 0, ..iteration }
}

/// Nothing held, the first layer, every other unit; real units always.
pub(crate) fn clamps(machine: &Machine) -> Vec<Clamp> {
    let real = |l: &LayerId| !machine.layer(*l).units.is_finite();
    let reals = Clamp::layers(machine.layer_ids().filter(real));
    let every_other = machine.layer_ids().filter(|l| !real(l)).fold(reals.clone(), |clamp, l| {
        clamp.with_units(l, (0..machine.layer(l).n_units()).map(|u| u % 2 == 0).collect())
    });
    let first = machine.layer_ids().filter(|l| real(l) || *l == LayerId(0));
    vec![reals, Clamp::layers(first), every_other, Clamp::layers(machine.layer_ids())]
}

/// A forest of twelve binary units, spins and units of three states, in an order that depends on the
/// seed; some units see nobody.
pub(crate) fn forest(seed: u64) -> Machine {
    let kinds = [Units::Binary, Units::Spin, Units::Categorical { q: 3 }];
    let per_layer = 4;
    let mut layers: Vec<Layer> = Vec::new();
    for (l, units) in kinds.into_iter().enumerate() {
        let mut layer = Layer::new(format!("layer{l}"), Role::Visible, units, per_layer).unwrap();
        let bias = layer.bias.iter_mut().enumerate();
        bias.for_each(|(i, b)| *b = 3.0 * noise(seed, 100 * l + i));
        let offset = layer.offset.iter_mut().enumerate();
        offset.for_each(|(i, m)| *m = noise(seed, 1000 + 100 * l + i));
        layers.push(layer);
    }
    let n = kinds.len() * per_layer;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| noise(seed + 1, a).total_cmp(&noise(seed + 1, b)));
    let mut joined = vec![vec![false; n]; n];
    for k in 1..n {
        let parent = order[((noise(seed + 2, k) + 0.5) * k as f64) as usize];
        let u = order[k];
        let alone = noise(seed + 3, k) > 0.35;
        (joined[u][parent], joined[parent][u]) = (!alone, !alone);
    }
    let weight = |a: usize, i: usize, b: usize, j: usize| {
        let (u, v) = (i / kinds[a].group(), j / kinds[b].group());
        let joined = joined[a * per_layer + u][b * per_layer + v];
        if joined { 5.0 * noise(seed + 4, (a * 3 + b) * 200 + i * 14 + j) } else { 0.0 }
    };
    let mut couplings = Vec::new();
    for a in 0..3 {
        for b in a + 1..3 {
            let (rows, columns) = (layers[a].len(), layers[b].len());
            let matrix = Matrix::from_fn(rows, columns, |i, j| weight(a, i, b, j)).unwrap();
            couplings.push(Coupling::between(LayerId(a), LayerId(b), matrix));
        }
        let len = layers[a].len();
        let pairs = (0..len).flat_map(|i| (i + 1..len).map(move |j| (i, j)));
        let edges = pairs.map(|(i, j)| (i, j, weight(a, i, a, j))).filter(|e| e.2 != 0.0);
        couplings.push(Coupling::sparse(LayerId(a), Edges::new(len, edges).unwrap()));
    }
    Machine::new(layers, couplings).unwrap().with_constant(-0.4).unwrap()
}

fn assert_same(found: &Marginals, expected: &Marginals, tolerance: f64, name: &str) {
    assert_close(expected.log_sum, found.log_sum, tolerance, name);
    let known = found.edges.iter().zip(&expected.edges).filter(|pair| !pair.0.is_empty());
    for (found, expected) in found.nodes.iter().zip(&expected.nodes).chain(known) {
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < tolerance, "{name}: {found}, not {expected}");
        }
    }
}

#[test]
fn belief_propagation_is_exact_on_forests() {
    for seed in 0..extent(20, 300) {
        let machine = forest(seed);
        let x = some_states(&machine, 1, seed);
        for clamp in clamps(&machine) {
            let graph = Pairwise::new(&machine, &clamp, &x, 0).unwrap();
            let expected = exactly(&graph);
            assert_close(
                exact::log_sums(&machine, &clamp, &x).unwrap()[0],
                expected.log_sum,
                1e-10,
                "the sum",
            );
            for schedule in [Schedule::Sequential, Schedule::Parallel] {
                let iteration = Iteration { schedule, ..Iteration::of_messages(&graph) };
                let found = belief_propagation(&graph, &iteration, &mut Silent).unwrap();
                assert_eq!(found.attempts.len(), 1, "a forest needs one start");
                assert_same(&found.best, &expected, 1e-10, &format!("forest {seed}"));
                for (edge, pair) in graph.edges().iter().zip(&found.best.edges) {
                    let [n, m] =
                        [edge.between.0, edge.between.1].map(|u| graph.nodes()[u].n_states());
                    let states = (0..n).flat_map(|s| (0..m).map(move |t| (s, t)));
                    let feel = states.into_iter().any(|at| graph.log_pair(edge, at) != 0.0);
                    assert_eq!(feel, !pair.is_empty(), "only pairs that feel each other have one");
                }
                // A forest is one of its own spanning forests.
                let found = tree_reweighted(&graph, &iteration, &mut Silent).unwrap();
                assert_same(&found.best, &expected, 1e-10, &format!("trees of {seed}"));
            }
        }
    }
}

#[test]
fn mean_field_and_trees_bracket_ln_z_on_every_machine() {
    for (name, machine) in discrete().into_iter().chain(gaussian()) {
        let x = some_states(&machine, 1, 5);
        for clamp in clamps(&machine) {
            let graph = Pairwise::new(&machine, &clamp, &x, 0).unwrap();
            let log_sum = exact::log_sums(&machine, &clamp, &x).unwrap()[0];
            let slack = 1e-10 * (1.0 + log_sum.abs());
            let messages = Iteration::of_messages(&graph);
            let upper = tree_reweighted(&graph, &messages, &mut Silent).unwrap().best.log_sum;
            let means = Iteration::of_mean_field(&graph);
            let lower = mean_field(&graph, &means, &mut Silent).unwrap().best.log_sum;
            assert!(lower <= log_sum + slack, "{name}: {lower} > {log_sum}");
            assert!(log_sum <= upper + slack, "{name}: {log_sum} > {upper}");
            // Bounds wherever the iteration stops.
            for max_sweeps in [1, 2, 5] {
                let few = |i: Iteration| Iteration { max_sweeps, random_starts: 0, ..i };
                let early = tree_reweighted(&graph, &few(messages), &mut Silent).unwrap();
                assert!(log_sum <= early.best.log_sum + slack, "{name}: {max_sweeps} sweeps");
                assert!(upper <= early.best.log_sum + slack, "{name}: the fixed point is best");
                let early = mean_field(&graph, &few(means), &mut Silent).unwrap();
                assert!(early.best.log_sum <= log_sum + slack, "{name}: {max_sweeps} sweeps");
            }
        }
    }
}

/// $\langle\tilde x_i \tilde x_j\rangle$ of each weight and $\langle x_i\rangle$ of each bias, from probabilities.
fn moments_of(machine: &Machine, graph: &Pairwise, found: &Marginals) -> Moments {
    let mut moments = Moments::zeros(machine);
    let values = |node: &Node| machine.layer(node.layer).units.configurations().unwrap().0;
    let mut means: Vec<Vec<f64>> = machine.layers().iter().map(|l| vec![0.0; l.len()]).collect();
    let mut at = vec![Vec::new(); machine.layers().len()];
    for (u, (node, p)) in graph.nodes().iter().zip(&found.nodes).enumerate() {
        at[node.layer.0].push(u);
        let states = values(node);
        let group = states[0].len();
        for k in 0..group {
            let mean = states.iter().zip(p).map(|(x, p)| p * x[k]).sum();
            means[node.layer.0][node.unit * group + k] = mean;
        }
        let layer = machine.layer(node.layer);
        for k in 0..layer.units.own_parameters().len() {
            let term: f64 =
                states.iter().zip(p).map(|(x, p)| p * statistic(layer.units, k, x[0])).sum();
            moments.own[node.layer.0][k * layer.len() + node.unit] = -term;
        }
    }
    moments.bias.clone_from(&means);
    for (c, (coupling, found_weights)) in
        machine.couplings().iter().zip(&mut moments.weights).enumerate()
    {
        let (a, b) = coupling.between;
        let (la, lb) = (machine.layer(a), machine.layer(b));
        let (ga, gb) = (la.units.group(), lb.units.group());
        let pairs: Vec<(usize, usize)> = match &coupling.weights {
            Weights::Sparse(edges) => edges.pairs().to_vec(),
            _ => (0..la.len())
                .flat_map(|i| (if a == b { i + 1 } else { 0 }..lb.len()).map(move |j| (i, j)))
                .collect(),
        };
        for (place, (i, j)) in pairs.into_iter().enumerate() {
            if a == b && la.units.same_unit(i, j) {
                continue;
            }
            let (u, v) = (at[a.0][i / ga], at[b.0][j / gb]);
            let edge = graph.edges().iter().position(|e| e.between == (u, v));
            let edge = edge.unwrap_or_else(|| panic!("coupling {c} has no edge {u} {v}"));
            let (of_u, of_v) = (values(&graph.nodes()[u]), values(&graph.nodes()[v]));
            for (s, x) in of_u.iter().enumerate() {
                for (t, y) in of_v.iter().enumerate() {
                    let p = found.edges[edge][s * of_v.len() + t];
                    let (x, y) = (x[i % ga] - la.offset[i], y[j % gb] - lb.offset[j]);
                    found_weights[place] += p * x * y;
                }
            }
        }
    }
    moments
}

/// The machine with all weights multiplied.
fn weakened(machine: &Machine, by: f64) -> Machine {
    let mut step = Moments::zeros(machine);
    for (coupling, step) in machine.couplings().iter().zip(&mut step.weights) {
        let entries = coupling.weights.entries().iter();
        step.iter_mut().zip(entries).for_each(|(s, w)| *s = (by - 1.0) * w);
    }
    moved(machine, &step)
}

/// At a fixed point the value of a method is stationary in its probabilities, so that its derivatives by the
/// parameters are the moments under them: value and probabilities belong together.
#[test]
fn probabilities_are_the_derivatives_of_the_value() {
    let methods: [(&str, Method, Usual, f64); 4] = [
        ("belief propagation", belief_propagation, Iteration::of_messages, 0.6),
        ("trees", tree_reweighted, Iteration::of_messages, 0.6),
        ("mean field", mean_field, Iteration::of_mean_field, 0.6),
        ("TAP", tap, Iteration::of_tap, 0.2),
    ];
    for (name, machine) in discrete() {
        for (method, run, iteration, by) in methods {
            let machine = weakened(&machine, by);
            let name = format!("{name}, {method}");
            let solve = |machine: &Machine| {
                let graph = graph_of(machine);
                run(&graph, &only_first(iteration(&graph)), &mut Silent).unwrap()
            };
            let found = solve(&machine);
            assert!(found.attempts[0].converged, "{name}");
            let moments = moments_of(&machine, &graph_of(&machine), &found.best);
            let value = |machine: &Machine| solve(machine).best.log_sum;
            crate::machines::assert_gradient(&name, &machine, &moments, value);
        }
    }
}

/// The errors of TAP fall with the third power of the couplings, those of mean field with the second.
#[test]
fn tap_is_right_to_second_order() {
    for (name, machine) in discrete() {
        let error = |by: f64, run: Method, iteration: Usual| {
            let machine = weakened(&machine, by);
            let graph = graph_of(&machine);
            let exact = exactly(&graph);
            let found = run(&graph, &only_first(iteration(&graph)), &mut Silent).unwrap().best;
            let far = |(a, b): (&Vec<f64>, &Vec<f64>)| {
                a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
            };
            let nodes = found.nodes.iter().zip(&exact.nodes).map(far).fold(0.0, f64::max);
            [(found.log_sum - exact.log_sum).abs(), nodes]
        };
        for (k, what) in ["ln Z", "units"].into_iter().enumerate() {
            let [near, half] = [0.04, 0.02].map(|by| error(by, tap, Iteration::of_tap)[k]);
            // A third order that vanishes leaves less; rounding leaves no ratio.
            let third = half < 1e-12 || near / half > 6.0;
            assert!(third, "{name}, {what}: {near:e} at twice the strength of {half:e}");
            let plain = error(0.02, mean_field, Iteration::of_mean_field)[k];
            assert!(half <= plain, "{name}, {what}: {half:e}, mean field {plain:e}");
        }
    }
}

#[test]
fn what_does_not_converge_has_no_value() {
    // Strong couplings of both signs on a torus: messages go round in circles.
    let torus = ising_torus(8, 1.0).unwrap().into_machine();
    let mut step = Moments::zeros(&torus);
    for (k, s) in step.weights[0].iter_mut().enumerate() {
        *s = 8.0 * noise(8, k) - 1.0;
    }
    step.bias[0].iter_mut().enumerate().for_each(|(i, s)| *s = noise(9, i));
    let glass = moved(&torus, &step);
    let graph = graph_of(&glass);
    let few =
        Iteration { max_sweeps: 500, max_sweeps_of_random: 500, ..Iteration::of_messages(&graph) };
    for (method, words) in [(belief_propagation as Method, "belief propagation"), (tap, "TAP")] {
        let error = method(&graph, &few, &mut Silent).unwrap_err();
        assert!(matches!(error, Error::NotConverged { starts: 21, sweeps: 500, .. }), "{error}");
        assert!(error.to_string().starts_with(words), "{error}");
        assert!(error.hint().contains("junction-tree"), "{}", error.hint());
    }
    let bounds = [mean_field as Method, tree_reweighted];
    let [lower, upper] = bounds.map(|m| m(&graph, &few, &mut Silent).unwrap().best.log_sum);
    let log_z = exactly(&graph).log_sum;
    assert!(lower <= log_z && log_z <= upper);
}

#[test]
fn settings_out_of_range_are_refused() {
    let graph = graph_of(&forest(1));
    let good = Iteration::of_messages(&graph);
    for (bad, name) in [
        (Iteration { damping: 1.0, ..good }, "damping"),
        (Iteration { damping: f64::NAN, ..good }, "damping"),
        (Iteration { tolerance: 0.0, ..good }, "tolerance"),
        (Iteration { max_sweeps: 0, ..good }, "max-sweeps"),
    ] {
        for method in [belief_propagation as Method, tree_reweighted, mean_field, tap] {
            let error = method(&graph, &bad, &mut Silent).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

/// The ordered phases of a ferromagnet are found, and that there are several is told.
#[test]
fn several_fixed_points_are_told() {
    let graph = graph_of(&ising_torus(8, 0.45).unwrap().into_machine());
    for (method, iteration) in [
        (belief_propagation as Method, Iteration::of_messages(&graph)),
        (mean_field, Iteration::of_mean_field(&graph)),
    ] {
        let found = method(&graph, &iteration, &mut Silent).unwrap();
        assert!(found.distinct >= 2, "{} fixed points", found.distinct);
        assert!(found.spread > 0.3, "apart by {}", found.spread);
        let first = found.attempts[0].log_sum.unwrap();
        assert!(found.best.log_sum > first + 0.1, "{} after {first}", found.best.log_sum);
    }
}

#[test]
fn the_same_seed_finds_the_same_on_any_number_of_threads() {
    let machine = crate::machines::named("sparse lateral of categorical");
    let graph = graph_of(&machine);
    for (method, iteration) in [
        (belief_propagation as Method, Iteration::of_messages(&graph)),
        (mean_field, Iteration::of_mean_field(&graph)),
    ] {
        let on = |n: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| method(&graph, &iteration, &mut Silent).unwrap())
        };
        assert_eq!(on(1), on(3));
    }
}
