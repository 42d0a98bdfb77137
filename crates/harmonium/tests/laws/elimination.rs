//! Elimination: sums, marginals and samples against all states written out, and against what is known of
//! chains, trees and grids.

use crate::machines::{assert_close, discrete, extent, gaussian, noise, some_states};
use crate::statistics::{assert_distributed, assert_mean};
use harmonium::Error;
use harmonium::exact::{self, Budget, By, Query};
use harmonium::graph::{BucketTree, Elimination, Node, Order, Pairwise};
use harmonium::machine::{Coupling, Edges, Layer, LayerId, Machine, Role, State};
use harmonium::models::{Body, Rbm, ising_torus};
use harmonium::progress::{Listener, Silent, Work};
use harmonium::random::{Site, Stream};
use harmonium::run::Model;
use harmonium::sampling::Clamp;
use harmonium::units::{Units, log_sum_exp};
use ndarray::Array2;
use std::path::Path;

/// Nothing held; real units always; about half of the other units, others in each row.
fn clamps(machine: &Machine, n_rows: usize) -> Vec<Clamp> {
    let real = |l: &LayerId| !machine.layer(*l).units.is_finite();
    let held = Clamp::layers(machine.layer_ids().filter(real));
    let some = machine.layer_ids().filter(|l| !real(l)).fold(held.clone(), |clamp, l| {
        let n = machine.layer(l).n_units();
        let held = |(row, unit)| noise(60 + l.0 as u64, row * n + unit) > 0.2;
        clamp.with_mask(l, Array2::from_shape_fn((n_rows, n), held).view())
    });
    vec![held, some]
}

/// All states of the nodes of a graph, and the logarithms of their weights.
fn all_states(graph: &Pairwise) -> (Vec<Vec<usize>>, Vec<f64>) {
    let mut states = vec![Vec::new()];
    for node in graph.nodes() {
        states = states
            .iter()
            .flat_map(|s: &Vec<usize>| {
                (0..node.n_states()).map(move |k| s.iter().copied().chain([k]).collect())
            })
            .collect();
    }
    let logs = states.iter().map(|s| graph.log_weight(s)).collect();
    (states, logs)
}

/// Greedy orders, and the worst: as the nodes stand, and the other way round.
fn trees(graph: &Pairwise) -> Vec<BucketTree> {
    let narrow = BucketTree::narrow(graph, 30.0).unwrap();
    let n_states: Vec<usize> = graph.nodes().iter().map(Node::n_states).collect();
    let n = n_states.len();
    let mut sees = vec![vec![false; n]; n];
    for edge in graph.edges() {
        let (i, j) = edge.between;
        (sees[i][j], sees[j][i]) = (true, true);
    }
    let mut seen = vec![Vec::new(); n];
    let mut terms = 0.0;
    for u in (0..n).rev() {
        seen[u] = (0..u).rev().filter(|&v| sees[u][v]).collect();
        for (&v, &w) in seen[u].iter().flat_map(|v| seen[u].iter().map(move |w| (v, w))) {
            sees[v][w] |= v != w;
        }
        let entries: usize = seen[u].iter().map(|&v| n_states[v]).product();
        terms += (n_states[u] * entries) as f64;
    }
    let backwards = Order { nodes: (0..n).rev().collect(), seen, log2_terms: terms.log2() };
    vec![narrow, BucketTree::new(backwards, n_states)]
}

#[test]
fn sums_and_marginals_are_those_of_all_states() {
    for (name, machine) in discrete().into_iter().chain(gaussian()) {
        let x = some_states(&machine, 3, 61);
        for (clamp, row) in clamps(&machine, 3).iter().flat_map(|c| (0..3).map(move |r| (c, r))) {
            let graph = Pairwise::new(&machine, clamp, &x, row).unwrap();
            let (states, logs) = all_states(&graph);
            let log_z = log_sum_exp(&logs);
            let p: Vec<f64> = logs.iter().map(|l| (l - log_z).exp()).collect();
            for tree in trees(&graph) {
                let elimination = Elimination::new(&graph, &tree);
                assert_close(log_z, elimination.log_sum(&mut Silent).unwrap(), 1e-12, &name);
                let found = elimination.marginals(&mut Silent).unwrap();
                assert_close(log_z, found.log_sum, 1e-12, &name);
                for (u, found) in found.nodes.iter().enumerate() {
                    for (k, found) in found.iter().enumerate() {
                        let in_k = states.iter().zip(&p).filter(|(s, _)| s[u] == k);
                        assert_close(in_k.map(|x| x.1).sum(), *found, 1e-12, &name);
                    }
                }
                for (edge, found) in graph.edges().iter().zip(&found.edges) {
                    let (u, v) = edge.between;
                    let m = graph.nodes()[v].n_states();
                    assert_eq!(found.len(), graph.nodes()[u].n_states() * m);
                    for (k, found) in found.iter().enumerate() {
                        let in_k = |s: &Vec<usize>| s[u] == k / m && s[v] == k % m;
                        let in_k = states.iter().zip(&p).filter(|(s, _)| in_k(s));
                        assert_close(in_k.map(|x| x.1).sum(), *found, 1e-12, &name);
                    }
                }
            }
        }
    }
}

#[test]
fn samples_are_distributed_as_all_states() {
    let n = extent(4_000, 20_000);
    for (name, machine) in discrete() {
        let x = some_states(&machine, 1, 62);
        for (k, clamp) in clamps(&machine, 1).iter().enumerate() {
            let graph = Pairwise::new(&machine, clamp, &x, 0).unwrap();
            let (states, logs) = all_states(&graph);
            let log_z = log_sum_exp(&logs);
            let p: Vec<f64> = logs.iter().map(|l| (l - log_z).exp()).collect();
            if p.iter().filter(|p| **p * n as f64 >= 5.0).count() < 2 {
                continue;
            }
            for tree in trees(&graph) {
                let elimination = Elimination::new(&graph, &tree);
                let mut counts = vec![0.0; p.len()];
                let take = |_, drawn: &[u32]| {
                    let same = |s: &Vec<usize>| s.iter().zip(drawn).all(|(a, b)| *a == *b as usize);
                    counts[states.iter().position(same).unwrap()] += 1.0;
                    Ok(())
                };
                let uniform = |row, u| Stream::new(63).uniform(Site::new(row, 0, 0), u);
                let log_sum = elimination.samples(n, uniform, take, &mut Silent).unwrap();
                assert_close(log_z, log_sum, 1e-12, &name);
                assert_distributed(&format!("{name}, clamp {k}"), &counts, &p);
            }
        }
    }
}

#[test]
fn the_most_probable_state_is_the_best_of_all() {
    for (name, machine) in discrete().into_iter().chain(gaussian()) {
        let x = some_states(&machine, 3, 69);
        for (clamp, row) in clamps(&machine, 3).iter().flat_map(|c| (0..3).map(move |r| (c, r))) {
            let graph = Pairwise::new(&machine, clamp, &x, row).unwrap();
            let (_, logs) = all_states(&graph);
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for tree in trees(&graph) {
                let found = Elimination::new(&graph, &tree).mode(&mut Silent).unwrap();
                assert_close(most, graph.log_weight(&found), 1e-12, &name);
            }
        }
    }
}

/// Tables that are made again are the same, whatever the budget.
#[test]
fn a_budget_changes_nothing_but_the_work() {
    let rbm = {
        let mut rbm = Rbm::binary(13, 11).unwrap().into_machine();
        let noise = |k: usize| 4.0 * noise(71, k);
        let matrix = harmonium::machine::Matrix::from_fn(13, 11, |i, j| noise(i * 11 + j)).unwrap();
        let layers = rbm.layers().to_vec();
        rbm =
            Machine::new(layers, vec![Coupling::between(LayerId(0), LayerId(1), matrix)]).unwrap();
        rbm
    };
    let parts: Vec<(usize, usize)> =
        grid(4, 10).into_iter().filter(|&(u, v)| u / 20 == v / 20 && (u, v) != (33, 34)).collect();
    for (name, machine) in [
        ("grid", layer_of(Units::Spin, 40, &grid(4, 10), 1.5)),
        ("parts", layer_of(Units::Binary, 40, &parts, 1.5)),
        ("three states", layer_of(Units::Categorical { q: 3 }, 24, &grid(3, 8), 1.0)),
        ("rbm", rbm),
    ] {
        let x = State::zeros(&machine, 1).unwrap();
        let graph = Pairwise::new(&machine, &Clamp::none(), &x, 0).unwrap();
        let tree = BucketTree::narrow(&graph, 20.0).unwrap();
        let whole = Elimination::new(&graph, &tree);
        let (marginals, mode) =
            (whole.marginals(&mut Silent).unwrap(), whole.mode(&mut Silent).unwrap());
        let means = exact::conditional_means(&machine, &Clamp::none(), &x).unwrap();
        for (node, p) in graph.nodes().iter().zip(&marginals.nodes) {
            let values = machine.layer(node.layer).units.configurations().unwrap().0;
            let mean: f64 = values.iter().zip(p).map(|(x, p)| p * x[0]).sum();
            let group = values[0].len();
            let expected = means.row(node.layer, 0)[node.unit * group];
            assert_close(expected, mean, 1e-10, name);
        }
        let uniform = |row, u| Stream::new(70).uniform(Site::new(row, 0, 0), u);
        let samples = |elimination: &Elimination<'_>| {
            let mut all = Vec::new();
            let take = |_, states: &[u32]| {
                all.push(states.to_vec());
                Ok(())
            };
            elimination.samples(20, uniform, take, &mut Silent).unwrap();
            all
        };
        let drawn = samples(&whole);
        let all = tree.marginals_within(f64::INFINITY).unwrap();
        assert!(!all.recompute(), "{name}");
        let (mut cut, mut refused) = (0, 0);
        for k in 1..40 {
            let budget = all.bytes() * 0.9_f64.powi(k);
            let within = Elimination::new(&graph, &tree).within(budget);
            if let Some(pieces) = tree.marginals_within(budget) {
                assert!(pieces.bytes() <= budget, "{name}: {} > {budget}", pieces.bytes());
                assert!(!pieces.recompute() || pieces.log2_terms() > all.log2_terms());
                cut += usize::from(pieces.recompute());
                assert_eq!(within.marginals(&mut Silent).unwrap(), marginals, "{name} {k}");
            } else {
                refused += 1;
                let error = within.marginals(&mut Silent).unwrap_err();
                assert!(error.to_string().contains("junction tree"), "{error}");
                let Error::MemoryBudget { least, .. } = error else { panic!("{error}") };
                assert!(
                    least > budget && tree.marginals_within(least).is_some(),
                    "{name}: {least}"
                );
                let given = Elimination::new(&graph, &tree).within(least);
                assert_eq!(given.marginals(&mut Silent).unwrap(), marginals, "{name} {k}");
            }
            if tree.samples_within(budget).is_some() {
                assert_eq!(within.mode(&mut Silent).unwrap(), mode, "{name} {k}");
                assert_eq!(samples(&within), drawn, "{name} {k}");
            }
        }
        assert!(cut > 3 && refused > 0, "{name}: {cut} cut, {refused} refused");
    }
}

/// One layer of units with edges and noise everywhere, `scale` times as strong.
fn layer_of(units: Units, n: usize, pairs: &[(usize, usize)], scale: f64) -> Machine {
    let mut layer = Layer::new("units", Role::Visible, units, n).unwrap();
    let bias = layer.bias.iter_mut().enumerate();
    bias.for_each(|(i, b)| *b = scale * noise(64, i));
    let group = units.group();
    let edges = pairs.iter().enumerate().flat_map(|(e, &(u, v))| {
        let of = move |k: usize| (u * group + k / group, v * group + k % group);
        (0..group * group).map(move |k| {
            let (i, j) = of(k);
            (i.min(j), i.max(j), 2.0 * scale * noise(65, e * 16 + k))
        })
    });
    let edges = Edges::new(n * group, edges).unwrap();
    Machine::new(vec![layer], vec![Coupling::sparse(LayerId(0), edges)]).unwrap()
}

fn grid(width: usize, height: usize) -> Vec<(usize, usize)> {
    let right = (0..width * height).filter(|u| u % width + 1 < width).map(|u| (u, u + 1));
    right.chain((0..width * (height - 1)).map(|u| (u, u + width))).collect()
}

/// Where enumeration would take more terms, the verbs of rows eliminate; the moments still enumerate.
#[test]
fn rows_of_narrow_graphs_are_eliminated_and_agree_with_enumeration() {
    for (units, width, height) in
        [(Units::Spin, 3, 6), (Units::Binary, 6, 3), (Units::Categorical { q: 3 }, 2, 6)]
    {
        let machine = layer_of(units, width * height, &grid(width, height), 1.5);
        let x = some_states(&machine, 2, 66);
        let held = |(row, unit): (usize, usize)| row == 1 && unit == 4;
        let n_units = width * height;
        let mask = Array2::from_shape_fn((2, n_units), held);
        let clamp = Clamp::none().with_mask(LayerId(0), mask.view());
        for query in [Query::LogSum, Query::Means, Query::Samples] {
            let cost = exact::cost(&machine, &clamp, &x, query).unwrap();
            assert_eq!(cost.by, By::Elimination, "{units:?} {query:?}");
            assert!(cost.bytes > 0.0 && cost.is_within(Budget::ROW));
        }
        let means = exact::conditional_means(&machine, &clamp, &x).unwrap();
        let n = 2_000;
        let drawn = exact::conditional_samples(&machine, &clamp, &x, n, Stream::new(67)).unwrap();
        for row in 0..2 {
            let weights = [f64::from(u8::from(row == 0)), f64::from(u8::from(row == 1))];
            let moments = exact::moments(&machine, &clamp, &x, &weights).unwrap();
            let average = |f: &dyn Fn(&[f64]) -> f64| {
                (row * n..(row + 1) * n).map(|k| f(drawn.row(LayerId(0), k))).sum::<f64>()
                    / n as f64
            };
            for (i, expected) in moments.bias[0].iter().enumerate() {
                let what = format!("{units:?}, row {row}, entry {i}");
                assert_close(*expected, means.row(LayerId(0), row)[i], 1e-10, &what);
                let mean = average(&|x| x[i]);
                assert_share(&what, units, mean, *expected, n);
            }
            let edges = match &machine.couplings()[0].weights {
                harmonium::machine::Weights::Sparse(edges) => edges.pairs().to_vec(),
                other => panic!("{other:?}"),
            };
            for (&(i, j), &expected) in edges.iter().zip(&moments.weights[0]) {
                let what = format!("{units:?}, row {row}, pair {i} {j}");
                assert_share(&what, units, average(&|x| x[i] * x[j]), expected, n);
            }
        }
    }
}

/// Fails unless the mean of `n` draws of a number that is 0 or 1, or -1 or 1 for spins, is within five
/// standard errors of what is expected. The error follows from the expectation, because something rare
/// may not occur at all; what is expected fewer than five times is left to the counts of all states.
fn assert_share(what: &str, units: Units, mean: f64, expected: f64, n: usize) {
    let p = if units == Units::Spin { 0.5 * (1.0 + expected) } else { expected };
    let found = if units == Units::Spin { 0.5 * (1.0 + mean) } else { mean };
    let n = n as f64;
    if n * p.min(1.0 - p) >= 5.0 {
        let error = (p * (1.0 - p) / n).sqrt();
        assert!((found - p).abs() <= 5.0 * error, "{what}: {found}, not {p} ± {error}");
    }
}

/// $\ln Z$ and means of a chain by multiplying its 2×2 matrices, each vector kept relative to its sum.
fn transfer(graph: &Pairwise) -> (f64, Vec<f64>) {
    let n = graph.nodes().len();
    let step = |k: usize, s: usize, t: usize| graph.log_pair(&graph.edges()[k], (s, t)).exp();
    let field = |u: usize, s: usize| graph.nodes()[u].log_fields[s].exp();
    let mut forwards = vec![[field(0, 0), field(0, 1)]];
    let mut log_z = graph.constant();
    for u in 1..n {
        let before = forwards[u - 1];
        let total: f64 = before.iter().sum();
        log_z += total.ln();
        let at = |t: usize| {
            (0..2).map(|s| before[s] / total * step(u - 1, s, t)).sum::<f64>() * field(u, t)
        };
        forwards.push([at(0), at(1)]);
    }
    log_z += forwards[n - 1].iter().sum::<f64>().ln();
    let mut after = [0.5, 0.5];
    let mut p = vec![0.0; n];
    for u in (0..n).rev() {
        let both = [forwards[u][0] * after[0], forwards[u][1] * after[1]];
        p[u] = both[1] / (both[0] + both[1]);
        if u > 0 {
            let at =
                |s: usize| (0..2).map(|t| step(u - 1, s, t) * field(u, t) * after[t]).sum::<f64>();
            let new = [at(0), at(1)];
            after = new.map(|a| a / (new[0] + new[1]));
        }
    }
    (log_z, p)
}

#[test]
fn a_long_chain_agrees_with_its_transfer_matrices() {
    let n = extent(100_000, 1_000_000);
    let pairs: Vec<(usize, usize)> = (1..n).map(|u| (u - 1, u)).collect();
    let machine = layer_of(Units::Binary, n, &pairs, 3.0);
    let x = State::zeros(&machine, 1).unwrap();
    let graph = Pairwise::new(&machine, &Clamp::none(), &x, 0).unwrap();
    let (log_z, p) = transfer(&graph);
    let found = exact::log_partition(&machine).unwrap();
    assert!((found - log_z).abs() < 1e-11 * log_z.abs(), "{found}, not {log_z}");
    let means = exact::conditional_means(&machine, &Clamp::none(), &x).unwrap();
    for (u, p) in p.iter().enumerate() {
        assert_close(*p, means.row(LayerId(0), 0)[u], 1e-10, "a mean");
    }
    // Every pair of neighbours of one sample is as likely as the next: their mean over the chain.
    let drawn = exact::conditional_samples(&machine, &Clamp::none(), &x, 1, Stream::new(68));
    let drawn = drawn.unwrap();
    let differences: Vec<f64> =
        drawn.row(LayerId(0), 0).iter().zip(&p).step_by(50).map(|(x, p)| x - p).collect();
    assert_mean("a sample of the chain", &differences, 0.0);
}

/// A star, a caterpillar, and several parts: all have width one, and are what they are when a hub with
/// many neighbours is in them.
#[test]
fn trees_and_parts_of_any_size_cost_pairs() {
    let n = 20_000;
    let star: Vec<(usize, usize)> = (1..n).map(|u| (0, u)).collect();
    let binary: Vec<(usize, usize)> = (1..n).map(|u| ((u - 1) / 2, u)).collect();
    let parts: Vec<(usize, usize)> =
        (1..n).filter(|u| !u.is_multiple_of(7)).map(|u| (u - 1, u)).collect();
    for (name, pairs) in [("star", star), ("binary tree", binary), ("parts", parts)] {
        let machine = layer_of(Units::Spin, n, &pairs, 1.0);
        let x = State::zeros(&machine, 1).unwrap();
        let graph = Pairwise::new(&machine, &Clamp::none(), &x, 0).unwrap();
        let tree = BucketTree::narrow(&graph, 10.0).unwrap();
        assert_eq!(tree.width(), 1, "{name}");
        let found = Elimination::new(&graph, &tree).log_sum(&mut Silent).unwrap();
        // Without fields a tree of spins is its edges, n ln 2 + Σ ln cosh J; with them the last nodes
        // are summed first.
        let mut logs: Vec<[f64; 2]> =
            graph.nodes().iter().map(|u| [u.log_fields[0], u.log_fields[1]]).collect();
        let mut of_child = vec![None; n];
        graph.edges().iter().for_each(|e| of_child[e.between.0.max(e.between.1)] = Some(e));
        let mut expected = graph.constant();
        for u in (0..n).rev() {
            let Some(edge) = of_child[u] else {
                expected += log_sum_exp(&logs[u]);
                continue;
            };
            let (i, j) = edge.between;
            let parent = i.min(j);
            for s in 0..2 {
                let at = |t: usize| graph.log_pair(edge, if i == u { (t, s) } else { (s, t) });
                logs[parent][s] += log_sum_exp(&[logs[u][0] + at(0), logs[u][1] + at(1)]);
            }
        }
        assert_close(expected, found, 1e-11, name);
    }
}

/// Factors that differ by more than a number can hold: no state is lost, however unlikely it looks
/// while its neighbours are not known.
#[test]
fn huge_weights_are_summed_as_logarithms() {
    for scale in [1.0, 100.0, 2_000.0] {
        let machine = layer_of(Units::Spin, 12, &grid(4, 3), scale);
        let x = State::zeros(&machine, 1).unwrap();
        let graph = Pairwise::new(&machine, &Clamp::none(), &x, 0).unwrap();
        let (states, logs) = all_states(&graph);
        let log_z = log_sum_exp(&logs);
        for tree in trees(&graph) {
            let found = Elimination::new(&graph, &tree).marginals(&mut Silent).unwrap();
            assert_close(log_z, found.log_sum, 1e-12, "ln Z");
            for (u, found) in found.nodes.iter().enumerate() {
                let on = states.iter().zip(&logs).filter(|(s, _)| s[u] == 1);
                let expected: f64 = on.map(|(_, l)| (l - log_z).exp()).sum();
                assert!((expected - found[1]).abs() < 1e-9, "{scale}: {expected} {}", found[1]);
            }
        }
    }
    // A chain that is pulled up at one end and down at the other, by turns far beyond e^745.
    let n = 300;
    let mut layer = Layer::new("units", Role::Visible, Units::Binary, n).unwrap();
    layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = if i < 150 { -900.0 } else { 900.0 });
    let edges = Edges::new(n, (1..n).map(|u| (u - 1, u, 800.0))).unwrap();
    let machine = Machine::new(vec![layer], vec![Coupling::sparse(LayerId(0), edges)]).unwrap();
    // The first k units off, the rest on: 900 for each of the last 150, 800 for each pair that is on.
    let best = |k: usize| {
        let on = n - k;
        900.0 * (150.0 - f64::max(0.0, on as f64 - 150.0)) + 800.0 * (on as f64 - 1.0)
    };
    let expected = best(150);
    let found = exact::log_partition(&machine).unwrap();
    assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
}

/// Counts reports and stops at the third.
struct Third(usize);

impl Listener for Third {
    fn at(&mut self, work: Work<'_>) {
        assert!(work.done <= work.total);
        self.0 += 1;
    }

    fn cancelled(&mut self) -> bool {
        self.0 >= 3
    }
}

#[test]
fn long_eliminations_tell_how_far_they_are_and_stop() {
    let torus = ising_torus(11, 0.3).unwrap().into_machine();
    let x = State::zeros(&torus, 1).unwrap();
    let graph = Pairwise::new(&torus, &Clamp::none(), &x, 0).unwrap();
    let tree = BucketTree::narrow(&graph, 24.0).unwrap();
    let found = Elimination::new(&graph, &tree).log_sum(&mut Third(0));
    assert!(matches!(found, Err(harmonium::Error::Cancelled { .. })), "{found:?}");
}

#[test]
fn what_is_dense_is_left_to_enumeration() {
    // All units have the same neighbours on the other side.
    let rbm = Rbm::binary(300, 18).unwrap().into_machine();
    let x = State::zeros(&rbm, 1).unwrap();
    let cost = exact::cost(&rbm, &Clamp::none(), &x, Query::LogSum).unwrap();
    assert_eq!((cost.by, cost.log2_terms, cost.bytes), (By::Enumeration, 18.0, 0.0));
    // A torus that is too wide to be summed at all.
    let torus = ising_torus(64, 0.4).unwrap().into_machine();
    let x = State::zeros(&torus, 1).unwrap();
    let graph = Pairwise::new(&torus, &Clamp::none(), &x, 0).unwrap();
    assert_eq!(BucketTree::narrow(&graph, 26.0), None);
}

/// A file of the shared data, if it is there.
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

/// Marginals in the competition's form: variables, then for each its states and their probabilities.
fn published_marginals(path: &str) -> Vec<f64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    let text = std::fs::read_to_string(path).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let n = numbers[0] as usize;
    let rest = &numbers[numbers.len() - 3 * n..];
    rest.chunks_exact(3).map(|c| c[2]).collect()
}

#[test]
fn grids_of_the_competition_have_their_published_sums_and_marginals() {
    for (name, log_z) in [("Grids_11", 390.077_166), ("Grids_12", 697.881_206)] {
        let Some(machine) = shared(&format!("uai-grids/{name}.uai")) else { return };
        assert!((exact::log_partition(&machine).unwrap() - log_z).abs() < 1e-6, "{name}");
        let x = State::zeros(&machine, 1).unwrap();
        let means = exact::conditional_means(&machine, &Clamp::none(), &x).unwrap();
        let published = published_marginals(&format!("uai-grids/{name}.uai.MAR"));
        assert_eq!(published.len(), machine.layers()[0].len(), "{name}");
        for (found, expected) in means.row(LayerId(0), 0).iter().zip(published) {
            assert!((found - expected).abs() < 1e-5, "{name}: {found}, not {expected}");
        }
    }
}
