//! The machines under law, all with strong weights and non-zero offsets.

use harmonium::exact;
use harmonium::machine::{
    Coupling, Edges, Layer, LayerId, Machine, Matrix, Role, State, Triangle, Weights,
};
use harmonium::models::{Above, Lateral, over};
use harmonium::moments::Moments;
use harmonium::random::{Site, Stream};
use harmonium::sampling::Clamp;
use harmonium::units::Units;
use std::collections::BTreeSet;

/// A number in (-1/2, 1/2), different for each address.
pub(crate) fn noise(seed: u64, i: usize) -> f64 {
    Stream::new(seed).uniform(Site::default(), i) - 0.5
}

const CATEGORICAL: Units = Units::Categorical { q: 3 };
/// The kinds that hold whole numbers.
const LEVELS: [Units; 3] =
    [Units::Binomial { n: 3 }, Units::Counts { max: 4 }, Units::Ordinal { levels: 4 }];

/// The statistic of the own parameter `k` of a unit, as the kinds are defined.
pub(crate) fn statistic(units: Units, k: usize, x: f64) -> f64 {
    let log_factorial =
        |x: f64| (1..=10).map(f64::from).filter(|k| *k <= x).map(f64::ln).sum::<f64>();
    match units {
        Units::Gaussian => 0.5 * x * x,
        Units::Binomial { n } => {
            log_factorial(x) + log_factorial(n as f64 - x) - log_factorial(n as f64)
        }
        Units::Counts { .. } => log_factorial(x),
        Units::Ordinal { .. } => f64::from(u8::from(x == (k + 1) as f64)),
        _ => 0.0,
    }
}

/// The own energy of an entry without its bias.
pub(crate) fn own_energy(layer: &Layer, i: usize, x: f64) -> f64 {
    let rows = layer.own.chunks_exact(layer.len()).enumerate();
    rows.map(|(k, row)| row[i] * statistic(layer.units, k, x)).sum()
}

/// A graph: kinds and sizes of the layers, how many of them are visible, and the couplings.
struct Graph {
    name: &'static str,
    layers: Vec<(Units, usize)>,
    n_visible: usize,
    edges: &'static [(usize, usize)],
    /// Scale of the weights: weak where Gaussian units see each other.
    strength: f64,
    /// Whether lateral couplings are rings with gaps instead of complete graphs.
    sparse: bool,
}

fn build(graph: &Graph, seed: u64) -> Machine {
    let layers: Vec<Layer> = graph
        .layers
        .iter()
        .enumerate()
        .map(|(l, &(units, n))| {
            let role = if l < graph.n_visible { Role::Visible } else { Role::Hidden };
            let mut layer = Layer::new(format!("layer{l}"), role, units, n).unwrap();
            let at = |k: u64, i: usize| noise(seed * 100 + k, l * 40 + i);
            layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = 2.0 * at(1, i));
            layer.offset.iter_mut().enumerate().for_each(|(i, m)| *m = 0.2 + at(2, i));
            layer.own.iter_mut().enumerate().for_each(|(i, g)| *g = 1.5 + at(3, i));
            layer
        })
        .collect();
    let couplings = graph
        .edges
        .iter()
        .enumerate()
        .map(|(c, &(a, b))| {
            let w = |i: usize, j: usize| {
                4.0 * graph.strength * noise(seed * 100 + 50 + c as u64, i * 31 + j)
            };
            if a == b {
                let (n, units) = (layers[a].len(), layers[a].units);
                if graph.sparse {
                    return Coupling::sparse(LayerId(a), ring(&layers[a], w));
                }
                let triangle =
                    Triangle::from_fn(n, |i, j| if units.same_unit(i, j) { 0.0 } else { w(i, j) });
                Coupling::lateral(LayerId(a), triangle.unwrap())
            } else {
                let matrix = Matrix::from_fn(layers[a].len(), layers[b].len(), w).unwrap();
                Coupling::between(LayerId(a), LayerId(b), matrix)
            }
        })
        .collect();
    Machine::new(layers, couplings).unwrap().with_constant(0.3).unwrap()
}

/// Neighbouring units around a circle, some entries of categorical ones left out.
fn ring(layer: &Layer, w: impl Fn(usize, usize) -> f64) -> Edges {
    let (n, group) = (layer.n_units(), layer.units.group());
    let near = |i: usize, j: usize| {
        let d = (j / group - i / group) % n;
        (d == 1 || d + 1 == n) && (group == 1 || !(i + j).is_multiple_of(3))
    };
    let pairs = (0..layer.len()).flat_map(|i| (i + 1..layer.len()).map(move |j| (i, j)));
    let edges = pairs.filter(|&(i, j)| near(i, j)).map(|(i, j)| (j, i, w(i, j)));
    Edges::new(layer.len(), edges).unwrap()
}

/// How far a law goes: `short` in the default run, `long` where `HARMONIUM_LAWS=all` asks for all of it.
pub(crate) fn extent<T>(short: T, long: T) -> T {
    match std::env::var("HARMONIUM_LAWS").as_deref() {
        Err(_) => short,
        Ok("all") => long,
        Ok(other) => panic!("HARMONIUM_LAWS is `{other}`; it may be `all`, or not set"),
    }
}

/// The graphs of discrete units and the kinds that each is made of in the default run. Every kind is
/// visible, hidden, laterally coupled by a triangle and by edges somewhere.
const COVERING: [(&str, &[&str]); 10] = [
    ("rbm", &["binary", "categorical", "counts"]),
    ("rbm with hidden", &["spin", "ordinal"]),
    ("chain", &["spin", "binomial"]),
    ("tree", &["categorical", "ordinal"]),
    ("triangle", &["binary", "binomial"]),
    ("lateral", &["spin", "counts"]),
    ("hidden lateral", &["categorical", "binomial"]),
    ("visible only", &["binary", "categorical", "ordinal"]),
    ("sparse lateral", &["categorical", "ordinal"]),
    ("sparse ring", &["spin", "counts"]),
];

/// A machine of each graph and kind of [`COVERING`], or of all graphs and kinds: see [`extent`].
pub(crate) fn discrete() -> Vec<(String, Machine)> {
    extent(covering(), product())
}

fn covering() -> Vec<(String, Machine)> {
    let is_in = |name: &str| {
        let (graph, kind) = name.split_once(" of ").expect("a graph of a kind");
        COVERING.iter().any(|(covered, kinds)| *covered == graph && kinds.contains(&kind))
    };
    product().into_iter().filter(|(name, _)| is_in(name)).collect()
}

/// The machine of this name, such as `rbm of binary`.
pub(crate) fn named(name: &str) -> Machine {
    let found = product().into_iter().find(|m| m.0 == name);
    found.unwrap_or_else(|| panic!("a machine `{name}`")).1
}

/// RBM, chain, tree, triangle, both laterals and fully visible, dense and sparse, of
/// every discrete kind.
fn product() -> Vec<(String, Machine)> {
    let mut all = Vec::new();
    let kinds = [Units::Binary, Units::Spin, CATEGORICAL].into_iter().chain(LEVELS);
    for (k, units) in kinds.enumerate() {
        let (b, s) = (Units::Binary, Units::Spin);
        let graphs = [
            ("rbm", vec![(units, 2), (b, 3)], 1, &[(0, 1)][..]),
            ("rbm with hidden", vec![(b, 3), (units, 2)], 1, &[(0, 1)]),
            ("chain", vec![(units, 2), (b, 2), (s, 2)], 1, &[(0, 1), (1, 2)]),
            ("tree", vec![(units, 1), (b, 2), (b, 2), (s, 1)], 2, &[(0, 2), (1, 2), (2, 3)]),
            ("triangle", vec![(units, 2), (b, 2), (s, 1)], 1, &[(0, 1), (1, 2), (0, 2)]),
            ("lateral", vec![(units, 2), (b, 3)], 1, &[(0, 1), (0, 0), (1, 1)]),
            ("hidden lateral", vec![(b, 2), (units, 2)], 1, &[(1, 1), (0, 1)]),
            ("visible only", vec![(units, 3)], 1, &[(0, 0)]),
            ("sparse lateral", vec![(units, 3), (b, 4)], 1, &[(0, 1), (0, 0), (1, 1)]),
            ("sparse ring", vec![(units, 5)], 1, &[(0, 0)]),
        ];
        for (name, layers, n_visible, edges) in graphs {
            let sparse = name.starts_with("sparse");
            // The largest values are three or four.
            let strength = if LEVELS.contains(&units) { 0.4 } else { 1.0 };
            let graph = Graph { name, layers, n_visible, edges, strength, sparse };
            let machine = build(&graph, 7 + k as u64);
            all.push((format!("{} of {}", graph.name, units.name()), machine));
        }
    }
    all
}

/// Machines with real units: seen only by discrete ones, or by each other (`coupled`).
pub(crate) fn gaussian() -> Vec<(String, Machine)> {
    let (b, g, s) = (Units::Binary, Units::Gaussian, Units::Spin);
    let graphs = [
        Graph {
            name: "gaussian rbm",
            layers: vec![(g, 2), (b, 3)],
            n_visible: 1,
            edges: &[(0, 1)],
            strength: 0.6,
            sparse: false,
        },
        Graph {
            name: "gaussian hidden",
            layers: vec![(b, 3), (g, 2)],
            n_visible: 1,
            edges: &[(0, 1)],
            strength: 0.6,
            sparse: false,
        },
        Graph {
            name: "gaussian chain",
            layers: vec![(g, 2), (b, 2), (s, 2)],
            n_visible: 1,
            edges: &[(0, 1), (1, 2)],
            strength: 0.6,
            sparse: false,
        },
        Graph {
            name: "gaussian tree",
            layers: vec![(g, 1), (CATEGORICAL, 1), (b, 2)],
            n_visible: 2,
            edges: &[(0, 2), (1, 2)],
            strength: 0.6,
            sparse: false,
        },
        Graph {
            name: "gaussian with hidden lateral",
            layers: vec![(g, 2), (b, 3)],
            n_visible: 1,
            edges: &[(0, 1), (1, 1)],
            strength: 0.6,
            sparse: false,
        },
        Graph {
            name: "coupled gaussian lateral",
            layers: vec![(g, 2), (b, 2)],
            n_visible: 1,
            edges: &[(0, 0), (0, 1)],
            strength: 0.3,
            sparse: false,
        },
        Graph {
            name: "coupled gaussian ring",
            layers: vec![(g, 2), (b, 2)],
            n_visible: 1,
            edges: &[(0, 0), (0, 1)],
            strength: 0.3,
            sparse: true,
        },
        Graph {
            name: "coupled gaussian layers",
            layers: vec![(g, 1), (g, 1), (b, 2)],
            n_visible: 1,
            edges: &[(0, 1), (1, 2)],
            strength: 0.3,
            sparse: false,
        },
        Graph {
            name: "coupled gaussian table",
            layers: vec![(g, 4), (CATEGORICAL, 1), (b, 2)],
            n_visible: 2,
            edges: &[(0, 0), (0, 2), (1, 2)],
            strength: 0.2,
            sparse: false,
        },
        Graph {
            name: "coupled gaussian stack",
            layers: vec![(g, 2), (g, 2), (b, 2)],
            n_visible: 1,
            edges: &[(0, 0), (0, 1), (1, 1), (0, 2), (1, 2)],
            strength: 0.2,
            sparse: false,
        },
    ];
    graphs.iter().map(|g| (g.name.to_string(), build(g, 3))).collect()
}

/// The graphs of a table whose columns differ in kind and in their number of categories, as `models::over` makes
/// them; in the default run those that every other is a part of.
pub(crate) fn mixed() -> Vec<(String, Machine)> {
    let kinds = [
        ("numbers", Units::Gaussian, 2),
        ("bits", Units::Binary, 1),
        ("categories3", CATEGORICAL, 1),
        ("categories4", Units::Categorical { q: 4 }, 1),
        ("counts", LEVELS[1], 1),
    ];
    let visible: Vec<Layer> = kinds
        .iter()
        .map(|&(name, units, n)| Layer::new(name, Role::Visible, units, n).unwrap())
        .collect();
    let graphs = [
        ("mixed rbm", Above::Rbm(3)),
        ("mixed dbm", Above::Dbm(&[2, 2])),
        ("mixed lateral", Above::Bm(2, Lateral::Both)),
        ("mixed visible lateral", Above::Bm(2, Lateral::Visible)),
        ("mixed hidden lateral", Above::Bm(2, Lateral::Hidden)),
        ("mixed visible only", Above::Bm(0, Lateral::Visible)),
    ];
    let short = ["mixed rbm", "mixed dbm", "mixed lateral"];
    let wanted = graphs.into_iter().filter(|(name, _)| extent(short.contains(name), true));
    let machine = |above| {
        // Numbers that see each other must keep a distribution.
        let strength = if matches!(above, Above::Bm(..)) { 0.25 } else { 0.5 };
        filled(&over(visible.clone(), above).unwrap(), strength, 11)
    };
    wanted.map(|(name, above)| (name.to_string(), machine(above))).collect()
}

/// The machine with parameters that are not zero.
fn filled(machine: &Machine, strength: f64, seed: u64) -> Machine {
    let mut layers = machine.layers().to_vec();
    for (l, layer) in layers.iter_mut().enumerate() {
        let at = |k: u64, i: usize| noise(seed * 100 + k, l * 40 + i);
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = 2.0 * at(1, i));
        layer.offset.iter_mut().enumerate().for_each(|(i, m)| *m = 0.2 + at(2, i));
        layer.own.iter_mut().enumerate().for_each(|(i, g)| *g = 1.5 + at(3, i));
    }
    let couple = |(c, coupling): (usize, &Coupling)| {
        let w = |i: usize, j: usize| 4.0 * strength * noise(seed * 100 + 50 + c as u64, i * 31 + j);
        let (a, b) = coupling.between;
        let units = layers[a.0].units;
        if let Weights::Between(m) = &coupling.weights {
            let (n, k) = m.shape();
            Coupling::between(a, b, Matrix::from_fn(n, k, w).unwrap())
        } else {
            let n = layers[a.0].len();
            let inside = |i, j| if units.same_unit(i, j) { 0.0 } else { w(i, j) };
            Coupling::lateral(a, Triangle::from_fn(n, inside).unwrap())
        }
    };
    let couplings = machine.couplings().iter().enumerate().map(couple).collect();
    Machine::new(layers, couplings).unwrap().with_constant(0.3).unwrap()
}

/// All of them.
pub(crate) fn all() -> Vec<(String, Machine)> {
    discrete().into_iter().chain(gaussian()).chain(mixed()).collect()
}

/// Every state of a machine of discrete units.
pub(crate) fn every_state(machine: &Machine) -> State {
    exact::states(machine, &Clamp::none(), &State::zeros(machine, 1).unwrap(), 0).unwrap()
}

/// `n` states whose real units are anywhere and whose other units have possible values.
pub(crate) fn some_states(machine: &Machine, n: usize, seed: u64) -> State {
    let mut x = State::zeros(machine, n).unwrap();
    for l in machine.layer_ids() {
        let layer = machine.layer(l);
        for row in 0..n {
            let at = |i: usize| noise(seed, (l.0 * 1000 + row) * 20 + i) + 0.5;
            let mut values = Vec::new();
            for unit in 0..layer.n_units() {
                match layer.units.configurations() {
                    Some(all) => {
                        let k = (at(unit) * all.0.len() as f64) as usize;
                        values.extend_from_slice(&all.0[k]);
                    }
                    None => values.push(4.0 * at(unit) - 2.0),
                }
            }
            x.set_row(l, row, &values).unwrap();
        }
    }
    x
}

/// The values of all layers of a row, for comparing states.
pub(crate) fn key(machine: &Machine, x: &State, row: usize) -> Vec<u64> {
    machine.layer_ids().flat_map(|l| x.row(l, row).to_vec()).map(f64::to_bits).collect()
}

/// The machine with `step` added to its parameters.
pub(crate) fn moved(machine: &Machine, step: &Moments) -> Machine {
    let mut layers = machine.layers().to_vec();
    for (l, layer) in layers.iter_mut().enumerate() {
        layer.bias.iter_mut().zip(&step.bias[l]).for_each(|(b, s)| *b += s);
        layer.own.iter_mut().zip(&step.own[l]).for_each(|(g, s)| *g += s);
    }
    let couplings = machine.couplings().iter().zip(&step.weights).map(|(c, s)| {
        let entries: Vec<f64> = c.weights.entries().iter().zip(s).map(|(w, s)| w + s).collect();
        match &c.weights {
            Weights::Between(w) => {
                let (n, m) = w.shape();
                let matrix = Matrix::from_rows(n, m, entries).unwrap();
                Coupling::between(c.between.0, c.between.1, matrix)
            }
            Weights::Lateral(t) => {
                let mut entries = entries.into_iter();
                let triangle = Triangle::from_fn(t.n(), |_, _| entries.next().unwrap()).unwrap();
                Coupling::lateral(c.between.0, triangle)
            }
            Weights::Sparse(edges) => {
                let pairs = edges.pairs().iter().zip(entries);
                let moved = Edges::new(edges.n(), pairs.map(|(&(i, j), w)| (i, j, w)));
                Coupling::sparse(c.between.0, moved.unwrap())
            }
        }
    });
    let machine_constant = machine.constant();
    Machine::new(layers, couplings.collect()).unwrap().with_constant(machine_constant).unwrap()
}

/// Compares an analytic gradient with central differences of `f`, parameter by parameter.
pub(crate) fn assert_gradient(
    name: &str,
    machine: &Machine,
    gradient: &Moments,
    f: impl Fn(&Machine) -> f64,
) {
    let h = 1e-5;
    let mut probe = Moments::zeros(machine);
    let sizes: Vec<usize> = probe.slices().iter().map(|s| s.len()).collect();
    for (s, &n) in sizes.iter().enumerate() {
        for i in 0..n {
            if inside_one_unit(machine, s, i) {
                assert_eq!(gradient.slices()[s][i], 0.0, "{name}: weight inside a unit");
                continue;
            }
            probe.slices_mut()[s][i] = h;
            let up = f(&moved(machine, &probe));
            probe.slices_mut()[s][i] = -h;
            let down = f(&moved(machine, &probe));
            probe.slices_mut()[s][i] = 0.0;
            let (numeric, analytic) = ((up - down) / (2.0 * h), gradient.slices()[s][i]);
            assert!(
                (numeric - analytic).abs() < 1e-6 * (1.0 + analytic.abs()),
                "{name}: slice {s}, entry {i}: {analytic} is not the slope {numeric}"
            );
        }
    }
}

/// Whether slice `s`, entry `i` of the parameters is a lateral weight inside one unit.
fn inside_one_unit(machine: &Machine, s: usize, i: usize) -> bool {
    let Some(c) = s.checked_sub(2 * machine.layers().len()) else { return false };
    let coupling = &machine.couplings()[c];
    let Weights::Lateral(t) = &coupling.weights else { return false };
    let pair = (0..t.n()).flat_map(|a| (a + 1..t.n()).map(move |b| (a, b))).nth(i).unwrap();
    machine.layer(coupling.between.0).units.same_unit(pair.0, pair.1)
}

pub(crate) fn assert_close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + a.abs()), "{what}: {a} != {b}");
}

/// Where a kind of unit stands in a machine: what a law may depend on.
fn roles(machine: &Machine) -> Vec<(String, &'static str)> {
    let beside_real = machine.layers().iter().any(|layer| !layer.units.is_finite());
    let mut roles = Vec::new();
    for l in machine.layer_ids() {
        let (layer, lateral) = (machine.layer(l), |c: &&Coupling| c.between == (l, l));
        let mut add = |role| roles.push((layer.units.name().to_string(), role));
        add(if layer.role == Role::Visible { "visible" } else { "hidden" });
        match machine.couplings().iter().find(lateral).map(|c| &c.weights) {
            Some(Weights::Lateral(_)) => add("lateral dense"),
            Some(Weights::Sparse(_)) => add("lateral sparse"),
            _ => {}
        }
        if beside_real {
            add("beside real units");
        }
    }
    roles
}

/// No graph, and no kind in any role, is left to the long run.
#[test]
fn the_default_run_covers_every_graph_and_every_role_of_every_kind() {
    let graph = |name: &str| name.split(" of ").next().unwrap().to_string();
    let graphs = |all: &[(String, Machine)]| -> BTreeSet<String> {
        all.iter().map(|(name, _)| graph(name)).collect()
    };
    let all_roles = |all: &[(String, Machine)]| -> BTreeSet<(String, &'static str)> {
        all.iter().flat_map(|(_, machine)| roles(machine)).collect()
    };
    let with_real = |discrete: Vec<_>| discrete.into_iter().chain(gaussian()).collect::<Vec<_>>();
    let (short, long) = (with_real(covering()), with_real(product()));
    assert_eq!(graphs(&short), graphs(&long));
    assert_eq!(all_roles(&short), all_roles(&long));
    let kinds = ["binary", "spin", "categorical"];
    let everywhere = ["visible", "hidden", "lateral dense", "lateral sparse", "beside real units"];
    for (kind, role) in kinds.iter().flat_map(|kind| everywhere.map(|role| (kind, role))) {
        assert!(all_roles(&short).contains(&(kind.to_string(), role)), "{kind} is never {role}");
    }
    assert!(short.len() < long.len());
}
