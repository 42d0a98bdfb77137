//! Changes of coordinates keep the energy of every state.

use crate::machines::{all, assert_close, discrete, extent, noise, some_states};
use harmonium::exact;
use harmonium::machine::{LayerId, Machine, State};
use harmonium::units::Units;

/// `x` with layer `l` mapped value by value.
fn mapped(x: &State, machine: &Machine, l: LayerId, f: impl Fn(f64) -> f64) -> State {
    let mut y = State::zeros(machine, x.n_rows()).unwrap();
    for m in machine.layer_ids() {
        for row in 0..x.n_rows() {
            let values = x.row(m, row).iter().map(|&v| if m == l { f(v) } else { v });
            y.set_row(m, row, &values.collect::<Vec<_>>()).unwrap();
        }
    }
    y
}

fn assert_same_energies(name: &str, a: (&Machine, &State), b: (&Machine, &State)) {
    let (e, f) = (a.0.energies(a.1).unwrap(), b.0.energies(b.1).unwrap());
    for (e, f) in e.iter().zip(&f) {
        assert_close(*e, *f, 1e-12, name);
    }
}

#[test]
fn recentering_keeps_every_energy() {
    for (name, machine) in all() {
        let x = some_states(&machine, 20, 5);
        let mut moved = machine.clone();
        let offsets: Vec<Vec<f64>> = machine
            .layers()
            .iter()
            .enumerate()
            .map(|(l, layer)| (0..layer.len()).map(|i| 3.0 * noise(60 + l as u64, i)).collect())
            .collect();
        moved.recenter(&offsets).unwrap();
        assert_same_energies(&name, (&machine, &x), (&moved, &x));
        let log_z = |m: &Machine| exact::log_partition(m).unwrap();
        assert_close(log_z(&machine), log_z(&moved), 1e-10, &name);
        for (layer, offset) in moved.layers().iter().zip(&offsets) {
            assert_eq!(&layer.offset, offset);
        }
    }
}

#[test]
fn spins_and_bits_are_one_distribution() {
    let mut tried = 0;
    for (name, machine) in all() {
        for l in machine.layer_ids() {
            let x = some_states(&machine, 20, 6);
            let (changed, y) = match machine.layer(l).units {
                Units::Spin => (
                    machine.spins_to_bits(l).unwrap(),
                    mapped(&x, &machine, l, |s| 0.5 * (s + 1.0)),
                ),
                Units::Binary => {
                    (machine.bits_to_spins(l).unwrap(), mapped(&x, &machine, l, |b| 2.0 * b - 1.0))
                }
                _ => {
                    assert!(machine.spins_to_bits(l).is_err() && machine.bits_to_spins(l).is_err());
                    continue;
                }
            };
            assert_same_energies(&name, (&machine, &x), (&changed, &y));
            let log_z = |m: &Machine| exact::log_partition(m).unwrap();
            assert_close(log_z(&machine), log_z(&changed), 1e-10, &name);
            tried += 1;
        }
    }
    assert!(tried > extent(25, 30), "{tried} layers");
}

#[test]
fn flipping_and_permuting_keep_every_energy() {
    for (name, machine) in discrete() {
        let x = some_states(&machine, 20, 7);
        for l in machine.layer_ids() {
            if machine.layer(l).units == Units::Binary {
                let flipped = machine.flip_bits(l).unwrap();
                let y = mapped(&x, &machine, l, |b| 1.0 - b);
                assert_same_energies(&name, (&machine, &x), (&flipped, &y));
            }
            let (units, n) = (machine.layer(l).units, machine.layer(l).n_units());
            let order: Vec<usize> = (0..n).map(|u| (u + 1) % n).collect();
            let permuted = machine.permute(l, &order).unwrap();
            let mut y = x.clone();
            for row in 0..x.n_rows() {
                let group = units.group();
                let values: Vec<f64> = order
                    .iter()
                    .flat_map(|&u| x.row(l, row)[u * group..(u + 1) * group].to_vec())
                    .collect();
                y.set_row(l, row, &values).unwrap();
            }
            assert_same_energies(&name, (&machine, &x), (&permuted, &y));
            assert!(machine.permute(l, &vec![0; n + 1]).is_err());
        }
    }
}
