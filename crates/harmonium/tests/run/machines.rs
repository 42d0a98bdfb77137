//! Machines of every kind of unit and coupling, with numbers that are hard to write in decimal.

use harmonium::machine::{Coupling, Edges, Layer, LayerId, Machine, Matrix, Role, Triangle};
use harmonium::models::Body;
use harmonium::run::{About, Memory, Model};
use harmonium::units::Units;
use harmonium_data::Reading;
use serde_json::json;

/// Numbers between -1 and 1 with all 53 bits in use.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn bits(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn next(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.bits() % n as u64).unwrap()
    }
}

fn layer(name: &str, role: Role, units: Units, n_units: usize, numbers: &mut Numbers) -> Layer {
    let mut layer = Layer::new(name, role, units, n_units).unwrap();
    for x in layer.bias.iter_mut().chain(&mut layer.offset) {
        *x = numbers.next();
    }
    layer.own.iter_mut().for_each(|g| *g = 2.0 + numbers.next());
    layer
}

fn between(layers: &[Layer], a: usize, b: usize, numbers: &mut Numbers) -> Coupling {
    let weights = Matrix::from_fn(layers[a].len(), layers[b].len(), |_, _| numbers.next());
    Coupling::between(LayerId(a), LayerId(b), weights.unwrap())
}

fn lateral(layers: &[Layer], l: usize, numbers: &mut Numbers) -> Coupling {
    let units = layers[l].units;
    let weight = |i, j| if units.same_unit(i, j) { 0.0 } else { 0.01 * numbers.next() };
    Coupling::lateral(LayerId(l), Triangle::from_fn(layers[l].len(), weight).unwrap())
}

fn sparse(layers: &[Layer], l: usize, numbers: &mut Numbers) -> Coupling {
    let (n, units) = (layers[l].len(), layers[l].units);
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let some = pairs.filter(|&(i, j)| !units.same_unit(i, j) && !(i + j).is_multiple_of(3));
    let edges: Vec<_> = some.map(|(i, j)| (i, j, 0.01 * numbers.next())).collect();
    Coupling::sparse(LayerId(l), Edges::new(n, edges).unwrap())
}

/// Two layers of the given kinds, each coupled with itself or not.
fn pair(kinds: [Units; 2], laterals: [bool; 2], numbers: &mut Numbers) -> Machine {
    let layers = vec![
        layer("visible", Role::Visible, kinds[0], 3, numbers),
        layer("hidden", Role::Hidden, kinds[1], 2, numbers),
    ];
    let mut couplings = vec![between(&layers, 0, 1, numbers)];
    for (l, _) in laterals.iter().enumerate().filter(|(_, lateral)| **lateral) {
        couplings.push(lateral(&layers, l, numbers));
    }
    Machine::new(layers, couplings).unwrap().with_constant(numbers.next() / 3.0).unwrap()
}

/// Names that are not plain, a tree, couplings against the order of the layers.
fn odd(numbers: &mut Numbers) -> Machine {
    let layers = vec![
        layer("a", Role::Visible, Units::Binary, 2, numbers),
        layer("b.c", Role::Hidden, Units::Spin, 3, numbers),
        layer("a.b", Role::Visible, Units::Gaussian, 1, numbers),
        layer("c", Role::Hidden, Units::Categorical { q: 3 }, 1, numbers),
        layer("Wörter %2E \"\\\n", Role::Visible, Units::Binary, 1, numbers),
        layer("", Role::Hidden, Units::Binary, 1, numbers),
    ];
    let pairs = [(3, 2), (0, 1), (4, 5), (5, 0)];
    let mut couplings: Vec<_> =
        pairs.iter().map(|&(a, b)| between(&layers, a, b, numbers)).collect();
    couplings.push(lateral(&layers, 4, numbers));
    Machine::new(layers, couplings).unwrap().with_constant(-0.0).unwrap()
}

/// Every machine, by name.
pub(crate) fn all() -> Vec<(String, Machine)> {
    let numbers = &mut Numbers(1);
    let kinds = [Units::Binary, Units::Spin, Units::Categorical { q: 3 }, Units::Gaussian];
    let mut machines = vec![("odd".to_owned(), odd(numbers))];
    for visible in kinds {
        for hidden in kinds {
            for laterals in [[false, false], [true, false], [true, true]] {
                let name = format!("{visible:?} {hidden:?} {laterals:?}");
                machines.push((name, pair([visible, hidden], laterals, numbers)));
            }
        }
    }
    for units in kinds {
        let layers = vec![
            layer("v.1", Role::Visible, units, 4, numbers),
            layer("h", Role::Hidden, Units::Binary, 2, numbers),
        ];
        let couplings = vec![
            sparse(&layers, 0, numbers),
            between(&layers, 1, 0, numbers),
            Coupling::sparse(LayerId(1), Edges::new(2, []).unwrap()),
        ];
        machines.push((format!("sparse {units:?}"), Machine::new(layers, couplings).unwrap()));
    }
    let alone = vec![layer("v", Role::Visible, Units::Binary, 4, numbers)];
    machines.push(("alone".into(), Machine::new(alone, Vec::new()).unwrap()));
    machines
}

/// A small model with a sparse coupling.
pub(crate) fn sparse_model() -> Model {
    let found = all().into_iter().find(|m| m.0 == "sparse Spin").unwrap();
    found.1.into()
}

/// A small model with a description of every sort.
pub(crate) fn model() -> Model {
    let machine = pair([Units::Gaussian, Units::Binary], [false, true], &mut Numbers(2));
    let config =
        json!({"rule": "pcd", "learning-rate": 0.1, "k": [1, 2.5], "a": {"z": 1, "b": null}});
    let data = Memory {
        reading: Reading { binarize: Some("none".into()), ..Reading::default() },
        image: Some((1, 3)),
        means: vec![0.1, 1e-300, -0.0],
        ..Memory::default()
    };
    let about = About { seed: u64::MAX, step: 12, epoch: 3, config, data, ..About::default() };
    Model { body: machine.into(), about }
}

/// The machine of a model that is one.
pub(crate) fn machine(body: &Body) -> &Machine {
    let Body::Machine(machine) = body else { panic!("a {}", body.kind()) };
    machine
}

/// Every parameter as bits, with where it stands.
pub(crate) fn bits(machine: &Machine) -> Vec<u64> {
    let layers = machine.layers().iter();
    let own = layers.flat_map(|l| l.bias.iter().chain(&l.own).chain(&l.offset));
    let weights = machine.couplings().iter().flat_map(|c| c.weights.entries());
    own.chain(weights).chain([&machine.constant()]).map(|x| x.to_bits()).collect()
}
