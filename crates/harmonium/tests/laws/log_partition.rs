//! $\ln Z$ from samples, held against enumeration.

use crate::machines::{all, assert_close, discrete, every_state, extent, gaussian, key, named};
use crate::statistics::{assert_distributed, assert_mean};
use harmonium::engine::Arithmetic;
use harmonium::error::Error;
use harmonium::evaluation::log_partition::{
    Bracket, Doubt, LogPartition, Method, Settings, Starts, choose, log_partition,
};
use harmonium::exact;
use harmonium::machine::{Base, Machine, State};
use harmonium::progress::{Listener, Silent, Work};
use harmonium::random::Stream;
use harmonium::sampling::Clamp;
use std::collections::HashMap;

const METHODS: [Method; 3] = [Method::Ais, Method::Sandwich, Method::Bar];

/// All of them; in the default run one, another for each `turn`.
fn precisions(turn: usize) -> &'static [Arithmetic] {
    const ALL: [Arithmetic; 3] = [Arithmetic::F64, Arithmetic::F32, Arithmetic::I16];
    extent(&ALL[turn % 3..][..1], &ALL)
}

fn settings(method: Method) -> Settings {
    let (betas, chains) = if method == Method::Bar { (6, 20) } else { (12, 1000) };
    Settings {
        method: Some(method),
        betas: Some(betas),
        chains: Some(chains),
        sweeps: Some(60_000),
        ..Settings::default()
    }
}

/// Never hears of more work done than there is.
struct Counts;

impl Listener for Counts {
    fn at(&mut self, work: Work<'_>) {
        assert!(work.done <= work.total, "{work:?}");
    }
}

fn find(machine: &Machine, settings: &Settings) -> LogPartition {
    log_partition(machine, settings, &mut Counts).unwrap()
}

#[test]
fn exact_samples_follow_the_distribution() {
    for (name, machine) in discrete() {
        let states = every_state(&machine);
        let p = exact::probabilities(&machine, &states).unwrap();
        let place: HashMap<Vec<u64>, usize> =
            (0..p.len()).map(|r| (key(&machine, &states, r), r)).collect();
        let drawn = exact::samples(&machine, 20_000, Stream::new(31)).unwrap();
        let mut counts = vec![0.0; p.len()];
        for row in 0..drawn.n_rows() {
            counts[place[&key(&machine, &drawn, row)]] += 1.0;
        }
        assert_distributed(&name, &counts, &p);
    }
}

#[test]
fn exact_samples_of_real_units_have_the_exact_moments() {
    for (name, machine) in gaussian() {
        let drawn = exact::samples(&machine, 20_000, Stream::new(32)).unwrap();
        let one = State::zeros(&machine, 1).unwrap();
        let expected = exact::moments(&machine, &Clamp::none(), &one, &[1.0]).unwrap();
        for l in machine.layer_ids() {
            for i in 0..machine.layer(l).len() {
                let values: Vec<f64> = (0..drawn.n_rows()).map(|r| drawn.row(l, r)[i]).collect();
                assert_mean(&format!("{name}, {l:?}, {i}"), &values, expected.bias[l.0][i]);
                if !machine.layer(l).units.is_finite() {
                    let squares: Vec<f64> = values.iter().map(|x| -0.5 * x * x).collect();
                    assert_mean(&name, &squares, expected.own[l.0][i]);
                }
            }
        }
        for (c, moments) in machine.couplings().iter().zip(&expected.weights) {
            let (a, b) = c.between;
            let product = |r: usize| {
                let (i, j) = (0, usize::from(a == b));
                (drawn.row(a, r)[i] - machine.layer(a).offset[i])
                    * (drawn.row(b, r)[j] - machine.layer(b).offset[j])
            };
            let values: Vec<f64> = (0..drawn.n_rows()).map(product).collect();
            assert_mean(&format!("{name}, {a:?} and {b:?}"), &values, moments[0]);
        }
    }
}

#[test]
fn every_method_finds_log_z_on_every_machine_in_every_precision() {
    for (m, (name, machine)) in all().into_iter().enumerate() {
        let exact = exact::log_partition(&machine).unwrap();
        for (k, method) in METHODS.into_iter().enumerate() {
            for &precision in precisions(m + k) {
                let found = find(&machine, &Settings { precision, ..settings(method) });
                let error = (found.log_z - exact).abs();
                assert!(
                    error <= 5.0 * found.std_error + 1e-6 && found.std_error < 0.2,
                    "{name}, {method:?}, {precision:?}: {exact} is not {found:?}"
                );
                assert!(found.lower <= found.log_z && found.log_z <= found.upper, "{name}");
                let exactly = found.starts == Some(Starts::Exact);
                assert_eq!(found.bracket == Bracket::Bound, exactly, "{name}, {method:?}");
                assert_eq!(found.is_unsettled(), !found.doubts.is_empty(), "{name}, {method:?}");
            }
        }
    }
}

#[test]
fn weights_are_unbiased_however_few_temperatures_there_are() {
    for (m, (name, machine)) in all().into_iter().enumerate() {
        let exact = exact::log_partition(&machine).unwrap();
        for &precision in precisions(m) {
            let ratios: Vec<f64> = (0..extent(16, 24))
                .map(|seed| {
                    let ais = Settings {
                        betas: Some(3),
                        chains: Some(300),
                        seed,
                        precision,
                        ..settings(Method::Ais)
                    };
                    (find(&machine, &ais).log_z - exact).exp()
                })
                .collect();
            assert_mean(&format!("{name}, {precision:?}"), &ratios, 1.0);
        }
    }
}

#[test]
fn intervals_hold_what_they_promise() {
    for method in METHODS {
        let (mut tried, mut missed) = (0.0, 0.0);
        for (_, machine) in all() {
            let exact = exact::log_partition(&machine).unwrap();
            for seed in 0..extent(2, 5) {
                let (betas, chains) = if method == Method::Bar { (5, 12) } else { (20, 50) };
                let how = Settings {
                    method: Some(method),
                    betas: Some(betas),
                    chains: Some(chains),
                    sweeps: Some(12_000),
                    seed: 100 + seed,
                    ..Settings::default()
                };
                let found = find(&machine, &how);
                tried += 1.0;
                if exact < found.lower - 1e-5 || exact > found.upper + 1e-5 {
                    missed += 1.0;
                }
            }
        }
        // Five in a hundred may miss; four standard deviations more cannot be.
        let allowed = 0.05 * tried + 4.0 * (0.05_f64 * 0.95 * tried).sqrt();
        assert!(missed < allowed, "{method:?}: {missed} of {tried} miss");
    }
}

#[test]
fn a_base_of_visible_means_does_not_know_the_offsets() {
    for (name, machine) in all() {
        let n: usize = machine.visible_layers().iter().map(|&l| machine.layer(l).len()).sum();
        let means = vec![0.3; n];
        let base = Base::from_visible_means(&machine, &means).unwrap();
        let mut moved = machine.clone();
        let offsets: Vec<Vec<f64>> = machine.layers().iter().map(|l| vec![-0.4; l.len()]).collect();
        moved.recenter(&offsets).unwrap();
        let again = Base::from_visible_means(&moved, &means).unwrap();
        let same = |m: &Machine, b: &Base| b.log_partition(m);
        assert_close(same(&machine, &base), same(&moved, &again), 1e-12, &name);
        let with = Settings { means: Some(means), ..settings(Method::Sandwich) };
        let (exact, found) = (exact::log_partition(&machine).unwrap(), find(&machine, &with));
        assert!((found.log_z - exact).abs() <= 5.0 * found.std_error + 1e-6, "{name}: {found:?}");
    }
}

#[test]
fn what_can_be_summed_is_summed() {
    let machine = named("rbm of binary");
    assert_eq!(choose(&machine).unwrap(), Method::Exact);
    let found = find(&machine, &Settings::default());
    assert_eq!((found.method, found.bracket), (Method::Exact, Bracket::Bound));
    assert_eq!(found.log_z, exact::log_partition(&machine).unwrap());
    assert_eq!((found.lower, found.upper, found.std_error), (found.log_z, found.log_z, 0.0));
}

#[test]
fn a_width_is_reached_or_it_is_said_that_it_was_not() {
    let machine = named("chain of binary");
    let narrow = Settings { width: Some(0.05), chains: Some(20), ..settings(Method::Sandwich) };
    let found = find(&machine, &narrow);
    assert_eq!(found.width_reached, Some(true), "{found:?}");
    assert!(found.width() <= 0.05 && found.chains > 20);
    let few = Settings { betas: Some(2), chains: Some(2), width: Some(1e-9), ..narrow };
    let found = find(&machine, &few);
    assert_eq!(found.width_reached, Some(false));
    assert!(found.width() > 1e-9);
}

#[test]
fn settings_that_cannot_be_are_explained() {
    let machine = named("rbm of binary");
    let fails = |settings: Settings| log_partition(&machine, &settings, &mut Silent);
    for method in METHODS {
        for n in [0, 1] {
            let chains = Settings { chains: Some(n), ..settings(method) };
            let betas = Settings { betas: Some(n), ..settings(method) };
            assert!(matches!(fails(chains), Err(Error::Setting { name: "chains", .. })));
            assert!(matches!(fails(betas), Err(Error::Setting { name: "betas", .. })));
        }
    }
    for width in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let width = Settings { width: Some(width), ..Settings::default() };
        assert!(matches!(fails(width), Err(Error::Setting { name: "width", .. })));
    }
    let means = Settings { means: Some(vec![0.5]), ..settings(Method::Ais) };
    assert!(matches!(fails(means), Err(Error::Shape { .. })));
}

#[test]
fn machines_without_a_distribution_are_told_so() {
    let (_, machine) = gaussian().remove(5);
    let mut step = harmonium::moments::Moments::zeros(&machine);
    step.weights[0][0] = 50.0;
    let machine = crate::machines::moved(&machine, &step);
    for method in METHODS {
        let found = log_partition(&machine, &settings(method), &mut Silent);
        assert!(matches!(found, Err(Error::Diverges { .. })), "{found:?}");
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let machine = large();
    for method in METHODS {
        let how = Settings {
            betas: Some(5),
            chains: Some(130),
            sweeps: Some(5 * 130 * 50),
            ..settings(method)
        };
        let on = |n: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| find(&machine, &how))
        };
        assert_eq!(on(1), on(3), "{method:?}");
    }
}

/// A machine of two hidden layers that is too large for one thread's share.
fn large() -> Machine {
    use harmonium::machine::{Coupling, Layer, LayerId, Matrix, Role};
    use harmonium::units::Units;
    let layer = |name: &str, role, n| Layer::new(name, role, Units::Binary, n).unwrap();
    let layers = vec![
        layer("v", Role::Visible, 200),
        layer("a", Role::Hidden, 150),
        layer("b", Role::Hidden, 90),
    ];
    let weights = |n: usize, m: usize, seed: u64| {
        Matrix::from_fn(n, m, |i, j| crate::machines::noise(seed, i * m + j)).unwrap()
    };
    let couplings = vec![
        Coupling::between(LayerId(0), LayerId(1), weights(200, 150, 1)),
        Coupling::between(LayerId(1), LayerId(2), weights(150, 90, 2)),
    ];
    Machine::new(layers, couplings).unwrap()
}

/// Spins on a square lattice of `n` by `n` that is closed in both directions.
fn torus(n: usize, coupling: f64) -> Machine {
    use harmonium::machine::{Coupling, Layer, LayerId, Role, Triangle};
    use harmonium::units::Units;
    let spins = Layer::new("spins", Role::Visible, Units::Spin, n * n).unwrap();
    let near = |a: usize, b: usize| {
        let step = |x: usize, y: usize| x.abs_diff(y).min(n - x.abs_diff(y));
        step(a / n, b / n) + step(a % n, b % n) == 1
    };
    let weights = Triangle::from_fn(n * n, |a, b| if near(a, b) { coupling } else { 0.0 });
    Machine::new(vec![spins], vec![Coupling::lateral(LayerId(0), weights.unwrap())]).unwrap()
}

/// $\ln Z$ of the torus (Kaufman 1949).
fn torus_log_z(n: usize, k: f64) -> f64 {
    let gamma = |l: usize| {
        if l == 0 {
            return 2.0 * k + k.tanh().ln();
        }
        let angle = (l as f64 * std::f64::consts::PI / n as f64).cos();
        ((2.0 * k).cosh() / (2.0 * k).tanh() - angle).acosh()
    };
    let product = |first: usize, f: fn(f64) -> f64| -> f64 {
        (0..n).map(|r| 2.0 * f(0.5 * n as f64 * gamma(2 * r + first))).product()
    };
    let sum = product(1, f64::cosh) + product(1, f64::sinh) + product(0, f64::cosh);
    let sum = sum + product(0, f64::sinh);
    0.5 * (n * n) as f64 * (2.0 * (2.0 * k).sinh()).ln() + (0.5 * sum).ln()
}

#[test]
fn the_ising_torus_has_the_log_z_of_kaufman() {
    let exact = exact::log_partition(&torus(4, 0.4)).unwrap();
    assert_close(exact, torus_log_z(4, 0.4), 1e-9, "4 by 4, by enumeration");
    let machine = torus(10, 0.4);
    for method in [Method::Ais, Method::Bar] {
        let (betas, chains) = if method == Method::Bar { (None, 16) } else { (Some(400), 60) };
        let sweeps = Some(60_000);
        let found =
            find(&machine, &Settings { betas, chains: Some(chains), sweeps, ..settings(method) });
        let error = (found.log_z - torus_log_z(10, 0.4)).abs();
        assert!(found.std_error < 0.1 && error < 5.0 * found.std_error, "{error}: {found:?}");
    }
}

/// Spins on an open grid with couplings of +`beta` and -`beta`: a spin glass.
fn glass(side: usize, beta: f64, seed: u64) -> Machine {
    use harmonium::machine::{Coupling, Edges, Layer, LayerId, Role};
    use harmonium::random::Site;
    use harmonium::units::Units;
    let n = side * side;
    let spins = Layer::new("spins", Role::Visible, Units::Spin, n).unwrap();
    let right = (0..n).filter(|i| i % side + 1 < side).map(|i| (i, i + 1));
    let below = (0..n - side).map(|i| (i, i + side));
    let sign = |i: usize| (Stream::new(seed).uniform(Site::new(0, 0, 0), i) - 0.5).signum();
    let edges = right.chain(below).enumerate().map(|(k, (i, j))| (i, j, beta * sign(k)));
    let edges = Edges::new(n, edges).unwrap();
    Machine::new(vec![spins], vec![Coupling::sparse(LayerId(0), edges)]).unwrap()
}

#[test]
fn intervals_of_spin_glasses_hold_or_say_that_they_are_unsettled() {
    let (mut unsettled, mut held, mut believed) = (0.0, 0.0, 0.0);
    for seed in 0..extent(6, 40) {
        let machine = glass(7, 1.0 + 0.4 * (seed % 6) as f64, seed);
        let exact = exact::log_partition(&machine).unwrap();
        for method in METHODS {
            // So little work that some cannot be known.
            let (betas, chains) = if method == Method::Bar { (8, 10) } else { (60, 40) };
            let how = Settings {
                betas: Some(betas),
                chains: Some(chains),
                sweeps: Some(8000),
                starts: Some(Starts::Tempered),
                seed,
                ..settings(method)
            };
            let found = find(&machine, &how);
            if found.is_unsettled() {
                unsettled += 1.0;
                assert!(!found.doubts.is_empty() && found.width().is_finite(), "{found:?}");
            } else {
                believed += 1.0;
                held += f64::from(u8::from(found.lower <= exact && exact <= found.upper));
            }
        }
    }
    assert!(unsettled > 0.0 && believed > 0.0, "{unsettled} unsettled, {believed} believed");
    // Five in a hundred may miss; four standard deviations more cannot be.
    let allowed = 0.05 * believed + 4.0 * (0.05_f64 * 0.95 * believed).sqrt();
    assert!(believed - held < allowed, "{held} of {believed} hold");
}

#[test]
fn more_work_is_spent_until_an_interval_settles() {
    let machine = glass(6, 2.0, 3);
    let exact = exact::log_partition(&machine).unwrap();
    let short = Settings {
        betas: Some(12),
        chains: Some(20),
        sweeps: Some(4000),
        starts: Some(Starts::Tempered),
        ..settings(Method::Sandwich)
    };
    let judged = find(&machine, &short);
    assert!(judged.is_unsettled() && (judged.betas, judged.chains) == (12, 20), "{judged:?}");
    let longer = find(&machine, &Settings { extensions: Some(5), ..short });
    assert!(!longer.is_unsettled() && longer.sweeps > 4 * judged.sweeps, "{longer:?}");
    assert!(longer.lower <= exact && exact <= longer.upper, "{exact}: {longer:?}");
}

#[test]
fn doubts_are_sentences_with_numbers() {
    let doubt = Doubt::FewEffective { effective: 1.14, chains: 100 };
    assert_eq!(doubt.to_string(), "the weights count as 1.1 of 100 chains");
    let found = find(&glass(6, 2.0, 3), &Settings { betas: Some(4), ..settings(Method::Ais) });
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["bracket"], "unsettled", "{json}");
    assert!(json["doubts"][0].as_str().unwrap().contains("chains"), "{json}");
}

/// Cancels after it has heard of some work.
struct Impatient(u64);

impl Listener for Impatient {
    fn at(&mut self, work: Work<'_>) {
        self.0 = work.done;
    }

    fn cancelled(&mut self) -> bool {
        self.0 > 1000
    }
}

#[test]
fn a_search_is_cancelled_in_its_middle() {
    for method in METHODS {
        let found = log_partition(&named("rbm of binary"), &settings(method), &mut Impatient(0));
        let Err(Error::Cancelled { done, total, .. }) = found else { panic!("{found:?}") };
        assert!(done > 1000 && 2 * done < total, "{method:?}: {done} of {total}");
    }
}
