//! Cluster moves leave the distribution of a ferromagnet where it is, and cross what plain chains
//! cannot.

use crate::machines::{discrete, every_state, key, noise, some_states};
use crate::statistics::assert_distributed;
use harmonium::exact;
use harmonium::machine::{Coupling, Edges, Layer, LayerId, Machine, Matrix, Role, State, Triangle};
use harmonium::random::{Site, Stream};
use harmonium::sampling::{Clamp, Clusters};
use harmonium::units::Units;
use std::collections::BTreeMap;

const N: usize = 20_000;

/// Machines that are ferromagnets up to the signs `turned`, with fields of either sign.
fn ferromagnets() -> Vec<(String, Machine)> {
    let mut all = Vec::new();
    for units in [Units::Spin, Units::Binary] {
        for strength in [0.5, 2.0] {
            let sign = |lane: u64, i: usize| if noise(lane, i) > 0.0 { 1.0 } else { -1.0 };
            let layer = |name: &str, role, n: usize, seed: u64| {
                let mut layer = Layer::new(name, role, units, n).unwrap();
                layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = noise(seed, i));
                layer.offset.iter_mut().enumerate().for_each(|(i, m)| *m = noise(seed + 1, i));
                layer
            };
            let j = |i: usize, k: usize, a: u64, b: u64| {
                strength * (noise(9, 7 * i + k) + 0.5) * sign(a, i) * sign(b, k)
            };
            let visible = || layer("v", Role::Visible, 4, 20);
            let hidden = layer("h", Role::Hidden, 3, 30);
            let name = |graph: &str| format!("{graph} of {}, {strength}", units.name());
            let weights = Matrix::from_fn(4, 3, |i, k| j(i, k, 1, 2)).unwrap();
            let between = Coupling::between(LayerId(0), LayerId(1), weights);
            let rbm = Machine::new(vec![visible(), hidden], vec![between]).unwrap();
            all.push((name("rbm"), rbm));
            let dense = Triangle::from_fn(4, |i, k| j(i, k, 1, 1)).unwrap();
            let lateral = Coupling::lateral(LayerId(0), dense);
            all.push((name("complete"), Machine::new(vec![visible()], vec![lateral]).unwrap()));
            let ring = [(0, 1), (1, 2), (2, 3), (0, 3)].map(|(i, k)| (i, k, j(i, k, 1, 1)));
            let sparse = Coupling::sparse(LayerId(0), Edges::new(4, ring).unwrap());
            all.push((name("ring"), Machine::new(vec![visible()], vec![sparse]).unwrap()));
        }
    }
    all
}

fn rows_of(machine: &Machine, states: &State, chosen: impl Fn(usize) -> usize) -> State {
    let mut x = State::zeros(machine, N).unwrap();
    for row in 0..N {
        for l in machine.layer_ids() {
            x.set_row(l, row, states.row(l, chosen(row))).unwrap();
        }
    }
    x
}

fn count(machine: &Machine, states: &State, x: &State) -> Vec<f64> {
    let places: BTreeMap<Vec<u64>, usize> =
        (0..states.n_rows()).map(|s| (key(machine, states, s), s)).collect();
    let mut counts = vec![0.0; states.n_rows()];
    (0..x.n_rows()).for_each(|row| counts[places[&key(machine, x, row)]] += 1.0);
    counts
}

/// Rows drawn from `p`.
fn drawn(machine: &Machine, states: &State, p: &[f64], stream: Stream) -> State {
    rows_of(machine, states, |row| {
        let mut u = stream.uniform(Site::default(), row);
        let found = p.iter().position(|p| {
            u -= p;
            u < 0.0
        });
        found.unwrap_or(p.len() - 1)
    })
}

#[test]
fn cluster_moves_are_stationary_free_and_with_units_held() {
    for (name, machine) in ferromagnets() {
        let first = (0..machine.layer(LayerId(0)).n_units()).map(|u| u == 1).collect();
        let one = some_states(&machine, 1, 50);
        for clamp in [Clamp::none(), Clamp::none().with_units(LayerId(0), first)] {
            let states = exact::states(&machine, &clamp, &one, 0).unwrap();
            let p = exact::probabilities(&machine, &states).unwrap();
            let clusters = Clusters::new(&machine, &clamp, &one, 0).unwrap();
            let clusters = clusters.unwrap_or_else(|| panic!("{name} is a ferromagnet"));
            let mut x = drawn(&machine, &states, &p, Stream::new(51));
            (0..3).for_each(|k| clusters.advance(&mut x, Stream::new(52).fork(k)));
            assert_distributed(&name, &count(&machine, &states, &x), &p);
        }
    }
}

/// The transition of Swendsen and Wang, written without one: a sum over all sets of closed bonds.
fn transition(machine: &Machine, states: &State, start: usize) -> Vec<f64> {
    let energies = machine.energies(states).unwrap();
    let n: usize = machine.layers().iter().map(Layer::len).sum();
    let keys: Vec<Vec<u64>> = (0..states.n_rows()).map(|s| key(machine, states, s)).collect();
    let at: BTreeMap<&Vec<u64>, usize> = keys.iter().enumerate().map(|(s, k)| (k, s)).collect();
    // The other value of each unit.
    let other = |u: usize, v: u64| keys.iter().map(|k| k[u]).find(|w| *w != v).unwrap();
    let turned = |s: usize, set: &[usize]| {
        let mut key = keys[s].clone();
        set.iter().for_each(|&u| key[u] = other(u, key[u]));
        at[&key]
    };
    // In spins -E = c + Σ h s + Σ J s s; a pair that turns together keeps J, so that of the start
    // follows from four energies. The ghost is unit n, its bond to u the field.
    let e = |set: &[usize]| energies[turned(start, set)];
    let mut bonds = Vec::new();
    for u in 0..n {
        let mut tie = e(&[u]) - e(&[]);
        for v in (0..n).filter(|&v| v != u) {
            let j = (e(&[u]) + e(&[v]) - e(&[u, v]) - e(&[])) / 4.0;
            tie -= 2.0 * j;
            if v > u && j > 1e-12 {
                bonds.push((u, v, 1.0 - (-2.0 * j).exp()));
            }
        }
        // E(u turned) - E = 2 h s + 2 Σ J s s.
        if tie > 1e-12 {
            bonds.push((u, n, 1.0 - (-tie).exp()));
        }
    }
    let mut p = vec![0.0; states.n_rows()];
    for closed in 0..1_usize << bonds.len() {
        let mut island: Vec<usize> = (0..=n).collect();
        let mut weight = 1.0;
        for (k, &(u, v, q)) in bonds.iter().enumerate() {
            if closed >> k & 1 == 0 {
                weight *= 1.0 - q;
                continue;
            }
            weight *= q;
            let (a, b) = (island[u], island[v]);
            island.iter_mut().filter(|i| **i == a).for_each(|i| *i = b);
        }
        let mut free: Vec<usize> = island[..n].to_vec();
        free.retain(|i| *i != island[n]);
        free.sort_unstable();
        free.dedup();
        for turning in 0..1_usize << free.len() {
            let turns = |u: &usize| {
                free.iter().position(|i| *i == island[*u]).is_some_and(|k| turning >> k & 1 == 1)
            };
            let set: Vec<usize> = (0..n).filter(turns).collect();
            p[turned(start, &set)] += weight / (1_usize << free.len()) as f64;
        }
    }
    p
}

/// A move that does nothing, or turns the wrong islands, fails here.
#[test]
fn a_cluster_move_goes_where_the_sum_over_bonds_says() {
    let one = |m: &Machine| State::zeros(m, 1).unwrap();
    for (name, machine) in ferromagnets().into_iter().filter(|m| !m.0.starts_with("rbm")) {
        let states = every_state(&machine);
        let clusters = Clusters::new(&machine, &Clamp::none(), &one(&machine), 0).unwrap();
        let clusters = clusters.expect("a ferromagnet");
        for start in [0, 5] {
            let p = transition(&machine, &states, start);
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{name}");
            let mut x = rows_of(&machine, &states, |_| start);
            clusters.advance(&mut x, Stream::new(53));
            assert_distributed(&format!("{name} from {start}"), &count(&machine, &states, &x), &p);
        }
    }
}

/// Frustrated machines, real units and units of three values have no gauge.
#[test]
fn only_ferromagnets_have_cluster_moves() {
    let found = |machine: &Machine| {
        let x = State::zeros(machine, 1).unwrap();
        Clusters::new(machine, &Clamp::none(), &x, 0).unwrap().is_some()
    };
    let layer = Layer::new("v", Role::Visible, Units::Spin, 3).unwrap();
    for (signs, has) in
        [([1.0, 1.0, 1.0], true), ([-1.0, -1.0, 1.0], true), ([1.0, 1.0, -1.0], false)]
    {
        let pairs = [(0, 1), (0, 2), (1, 2)].into_iter().zip(signs).map(|((i, j), w)| (i, j, w));
        let edges = Edges::new(3, pairs).unwrap();
        let triangle =
            Machine::new(vec![layer.clone()], vec![Coupling::sparse(LayerId(0), edges)]).unwrap();
        assert_eq!(found(&triangle), has, "{signs:?}");
    }
    for (name, machine) in crate::machines::gaussian() {
        assert!(!found(&machine), "{name}");
    }
    for (name, machine) in discrete().iter().filter(|m| m.0.ends_with("of categorical")) {
        assert!(!found(machine), "{name}");
    }
}
