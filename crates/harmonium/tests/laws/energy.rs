//! The energy, its conditionals and its schedule.

use crate::machines::{all, assert_close, discrete, every_state, noise, own_energy, some_states};
use harmonium::exact;
use harmonium::machine::{Base, Coupling, Layer, LayerId, Machine, Matrix, Role, State, Weights};
use harmonium::sampling::Clamp;
use harmonium::units::{Units, log_sum_exp};

/// $E(x)$ by its definition, one product at a time.
fn energy_by_definition(machine: &Machine, x: &State, row: usize) -> f64 {
    let mut energy = machine.constant();
    for l in machine.layer_ids() {
        let layer = machine.layer(l);
        for (i, x) in x.row(l, row).iter().enumerate() {
            energy -= layer.bias[i] * x;
            energy += own_energy(layer, i, *x);
        }
    }
    let centered = |l: LayerId, i: usize| x.row(l, row)[i] - machine.layer(l).offset[i];
    for c in machine.couplings() {
        let (a, b) = c.between;
        for i in 0..machine.layer(a).len() {
            for j in 0..machine.layer(b).len() {
                let w = match &c.weights {
                    Weights::Between(w) => w.at(i, j),
                    Weights::Lateral(t) => 0.5 * t.at(i, j),
                    Weights::Sparse(edges) => {
                        let here = |e: &(usize, usize, f64)| (e.0, e.1) == (i.min(j), i.max(j));
                        edges.iter().find(here).map_or(0.0, |e| 0.5 * e.2)
                    }
                };
                energy -= w * centered(a, i) * centered(b, j);
            }
        }
    }
    energy
}

#[test]
fn the_energy_is_its_definition() {
    for (name, machine) in all() {
        let x = some_states(&machine, 20, 1);
        for (row, e) in machine.energies(&x).unwrap().into_iter().enumerate() {
            assert_close(energy_by_definition(&machine, &x, row), e, 1e-12, &name);
        }
    }
}

#[test]
fn parameters_are_biases_precisions_and_weights() {
    for (name, machine) in all() {
        let slices = harmonium::moments::Moments::zeros(&machine);
        let n: usize = slices.slices().iter().map(|s| s.len()).sum();
        assert_eq!(machine.n_parameters(), n, "{name}");
    }
}

#[test]
fn conditionals_are_energy_differences() {
    for (name, machine) in all() {
        let x = some_states(&machine, 10, 2);
        let y = some_states(&machine, 10, 3);
        let before = machine.energies(&x).unwrap();
        for l in machine.layer_ids() {
            let layer = machine.layer(l);
            let group = layer.units.group();
            for row in 0..x.n_rows() {
                let theta = machine.theta(l, &x, row).unwrap();
                for unit in 0..layer.n_units() {
                    // One unit takes another value: the energy changes by -theta times the change.
                    let range = unit * group..(unit + 1) * group;
                    let mut values = x.row(l, row).to_vec();
                    values[range.clone()].copy_from_slice(&y.row(l, row)[range.clone()]);
                    let mut expected = before[row];
                    for i in range {
                        let (old, new) = (x.row(l, row)[i], values[i]);
                        expected -= theta[i] * (new - old);
                        expected += own_energy(layer, i, new) - own_energy(layer, i, old);
                    }
                    let mut changed = x.clone();
                    changed.set_row(l, row, &values).unwrap();
                    let found = machine.energies(&changed).unwrap()[row];
                    assert_close(expected, found, 1e-12, &format!("{name}, {l:?}, unit {unit}"));
                }
            }
        }
    }
}

#[test]
fn tempering_mixes_energies_pointwise() {
    for (name, machine) in all() {
        let x = some_states(&machine, 10, 4);
        for base in [Base::uniform(&machine), Base::of_biases(&machine)] {
            let e = machine.energies(&x).unwrap();
            let flat = machine.temper(&base, 0.0).unwrap();
            let e0 = flat.energies(&x).unwrap();
            // Gaussian units still see each other: together they are one Gaussian.
            let real = |l: LayerId| !machine.layer(l).units.is_finite();
            for (c, whole) in flat.couplings().iter().zip(machine.couplings()) {
                let joined = real(c.between.0) && real(c.between.1);
                let none = c.weights.entries().iter().all(|w| *w == 0.0);
                assert!(if joined { c == whole } else { none }, "{name}");
            }
            assert_close(
                base.log_partition(&machine),
                exact::log_partition(&flat).unwrap(),
                1e-12,
                &name,
            );
            assert_eq!(machine.temper(&base, 1.0).unwrap(), machine, "{name}: beta = 1");
            for beta in [0.25, 0.9] {
                let tempered = machine.temper(&base, beta).unwrap();
                for (row, found) in tempered.energies(&x).unwrap().into_iter().enumerate() {
                    assert_close((1.0 - beta) * e0[row] + beta * e[row], found, 1e-12, &name);
                }
                for (a, b) in tempered.layers().iter().zip(machine.layers()) {
                    assert_eq!(a.offset, b.offset, "{name}: offsets stay");
                }
            }
        }
        assert!(machine.temper(&Base::uniform(&machine), 1.5).is_err());
    }
}

#[test]
fn a_base_from_means_has_these_means() {
    for (name, machine) in all() {
        let means: Vec<Vec<f64>> = machine
            .layers()
            .iter()
            .map(|l| match l.units {
                Units::Categorical { q: 4 } => [0.1, 0.5, 0.3, 0.1].repeat(l.n_units()),
                Units::Categorical { .. } => [0.2, 0.5, 0.3].repeat(l.n_units()),
                _ => vec![0.3; l.len()],
            })
            .collect();
        let base = Base::from_means(&machine, &means).unwrap();
        let flat = machine.temper(&base, 0.0).unwrap();
        let one = State::zeros(&machine, 1).unwrap();
        let found = exact::moments(&flat, &Clamp::none(), &one, &[1.0]).unwrap();
        for (found, mean) in found.bias.iter().zip(&means) {
            for (a, b) in mean.iter().zip(found) {
                assert_close(*a, *b, 1e-12, &name);
            }
        }
        assert!(Base::from_means(&machine, &means[1..]).is_err());
        // Constant features: finite all the same.
        let ends: Vec<Vec<f64>> = machine.layers().iter().map(|l| vec![1.0; l.len()]).collect();
        let log_z = Base::from_means(&machine, &ends).unwrap().log_partition(&machine);
        assert!(log_z.is_finite(), "{name}");
    }
}

#[test]
fn free_energy_is_the_exact_marginal() {
    for (name, machine) in discrete() {
        let states = every_state(&machine);
        let energies = machine.energies(&states).unwrap();
        for summed in machine.schedule() {
            let coupled = summed.iter().any(|&l| machine.has_lateral(l));
            let free = machine.free_energy_over(&summed, &states);
            assert_eq!(free.is_err(), coupled, "{name}: {summed:?}");
            let Ok(free) = free else { continue };
            let kept = |row: usize| -> Vec<u64> {
                let rest = machine.layer_ids().filter(|l| !summed.contains(l));
                rest.flat_map(|l| states.row(l, row).to_vec()).map(f64::to_bits).collect()
            };
            for row in 0..states.n_rows() {
                let same = (0..states.n_rows()).filter(|&r| kept(r) == kept(row));
                let logs: Vec<f64> = same.map(|r| -energies[r]).collect();
                assert_close(-log_sum_exp(&logs), free[row], 1e-11, &name);
            }
        }
    }
}

#[test]
fn free_energy_integrates_gaussian_layers() {
    for (name, machine) in crate::machines::gaussian() {
        let x = some_states(&machine, 5, 6);
        let summed: Vec<LayerId> =
            machine.layer_ids().filter(|&l| !machine.layer(l).units.is_finite()).collect();
        let held = machine.layer_ids().filter(|l| !summed.contains(l));
        let exact = exact::log_sums(&machine, &Clamp::layers(held), &x).unwrap();
        match machine.free_energy_over(&summed, &x) {
            Ok(free) => {
                for (f, e) in free.iter().zip(&exact) {
                    assert_close(-f, *e, 1e-11, &name);
                }
            }
            Err(error) => assert!(name.starts_with("coupled"), "{name}: {error}"),
        }
    }
}

#[test]
fn blocks_are_few_cover_every_layer_and_never_see_each_other() {
    for (name, machine) in all() {
        let blocks = machine.schedule();
        let expected = match machine.layers().len() {
            1 => 1,
            _ if name.starts_with("triangle") => 3,
            // Here every layer sees every other.
            n if name == "mixed lateral" || name == "mixed visible lateral" => n,
            n if name == "mixed visible only" => n,
            _ => 2,
        };
        assert_eq!(blocks.len(), expected, "{name}");
        let mut layers: Vec<LayerId> = blocks.concat();
        layers.sort_unstable();
        assert!(layers.into_iter().eq(machine.layer_ids()), "{name}");
        for block in blocks {
            for (i, &l) in block.iter().enumerate() {
                // Gaussian layers that see each other are drawn together.
                let real = |l: LayerId| !machine.layer(l).units.is_finite();
                let apart = |m: LayerId| !machine.coupled(l, m) || real(l) && real(m);
                assert!(block[..i].iter().all(|&m| apart(m)), "{name}");
            }
        }
    }
}

/// A machine of single units with these couplings.
fn graph(n: usize, edges: &[(usize, usize)]) -> Machine {
    let layers: Vec<Layer> = (0..n)
        .map(|l| Layer::new(l.to_string(), Role::Hidden, Units::Binary, 1).unwrap())
        .collect();
    let join = |&(a, b): &(usize, usize)| {
        Coupling::between(LayerId(a), LayerId(b), Matrix::zeros(1, 1).unwrap())
    };
    Machine::new(layers, edges.iter().map(join).collect()).unwrap()
}

fn assert_coloured(machine: &Machine, what: &str) {
    for block in machine.schedule() {
        for (i, &l) in block.iter().enumerate() {
            assert!(block[..i].iter().all(|&m| !machine.coupled(l, m)), "{what}: {block:?}");
        }
    }
}

#[test]
fn chains_and_trees_have_two_blocks_however_they_are_numbered() {
    // Taken by index, the first would need three.
    let chain = graph(4, &[(0, 2), (2, 3), (3, 1)]);
    let tree = graph(7, &[(6, 0), (6, 3), (0, 5), (0, 1), (3, 2), (3, 4)]);
    for machine in [chain, tree] {
        assert_coloured(&machine, "two blocks");
        assert_eq!(machine.schedule().len(), 2);
    }
}

#[test]
fn random_graphs_are_coloured() {
    for seed in 0..200 {
        let n = 3 + (seed as usize) % 7;
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        let kept = pairs.filter(|&(a, b)| noise(seed, a * 10 + b) < -0.1).collect::<Vec<_>>();
        assert_coloured(&graph(n, &kept), &format!("graph {seed}: {kept:?}"));
    }
}
