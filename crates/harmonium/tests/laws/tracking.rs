//! $\ln Z$ and likelihoods followed over whole trainings, held against enumeration.

use crate::machines::extent;
use harmonium::engine::Arithmetic;
use harmonium::evaluation::likelihood;
use harmonium::evaluation::log_partition::{TRACKING_ROUNDS, Tracked, Tracker};
use harmonium::evaluation::monitor::Monitor;
use harmonium::evaluation::tracking::Watch;
use harmonium::exact;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, Triangle};
use harmonium::models::Rbm;
use harmonium::sampling::Sampler;
use harmonium::training::{Every, Measurements, Metric, MetricName, On, Plan, View, train};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, synthetic};
use std::ops::ControlFlow;

/// A machine over 9 visible units, with these hidden layers.
fn machine(hidden: &[(Units, usize)], lateral: &[usize]) -> Machine {
    let mut layers = vec![Layer::new("visible", Role::Visible, Units::Binary, 9).unwrap()];
    for (k, &(units, n)) in hidden.iter().enumerate() {
        layers.push(Layer::new(format!("hidden{k}"), Role::Hidden, units, n).unwrap());
    }
    let mut couplings: Vec<Coupling> = (1..layers.len())
        .map(|l| {
            let weights = Matrix::zeros(layers[l - 1].len(), layers[l].len()).unwrap();
            Coupling::between(LayerId(l - 1), LayerId(l), weights)
        })
        .collect();
    for &l in lateral {
        couplings.push(Coupling::lateral(LayerId(l), Triangle::zeros(layers[l].len()).unwrap()));
    }
    Machine::new(layers, couplings).unwrap()
}

/// Graphs that are trained on bars and stripes.
fn learners() -> Vec<(&'static str, Machine)> {
    let (b, s) = (Units::Binary, Units::Spin);
    vec![
        ("rbm", machine(&[(b, 12)], &[])),
        ("rbm of spins", machine(&[(s, 6)], &[])),
        ("dbm", machine(&[(b, 8), (b, 5)], &[])),
        ("bm", machine(&[(b, 5)], &[0, 1])),
        ("visible only", machine(&[], &[0])),
    ]
}

fn bars_and_stripes() -> Dataset {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap();
    Dataset::new(table, Binarize::None).unwrap()
}

/// Trains at a rate and looks after every few epochs: what was tracked, and what is true.
fn track(machine: &Machine, rate: f64, seed: u64) -> Vec<(Tracked, f64)> {
    let data = bars_and_stripes();
    let epochs = extent(120, 240);
    let plan = Plan { epochs, batch: 8, learning_rate: rate, seed, ..Plan::default() };
    let mut tracker = Tracker::new(data.column_means(), seed);
    let mut looks = Vec::new();
    let mut look = Every::new(20, |view: &View<'_>| {
        let sampler = Sampler::new(view.machine().unwrap().clone(), Arithmetic::F32);
        let truth = exact::log_partition(sampler.machine()).unwrap();
        let chains = view.watched().and_then(|w| w.chains);
        looks.push((tracker.look(&sampler, chains, TRACKING_ROUNDS).unwrap(), truth));
        ControlFlow::Continue(())
    });
    train(machine.clone(), &data, &plan, &mut [&mut look]).unwrap();
    looks
}

/// At rates from safe to absurd: the last lets weights grow by thousands.
#[test]
fn the_tracked_log_partition_is_within_three_error_bars_over_whole_trainings() {
    let (mut inside, mut all) = (0, 0);
    for (name, machine) in learners() {
        for rate in extent(vec![0.1, 1.0], vec![0.01, 0.1, 1.0, 10.0]) {
            for seed in 0..extent(1, 5) {
                for (found, truth) in track(&machine, rate, seed) {
                    let error = (found.log_z - truth).abs();
                    inside += usize::from(error <= 3.0 * found.std_error);
                    all += 1;
                    if rate < 0.5 {
                        assert!(found.std_error < 0.5, "{name}: ± {}", found.std_error);
                    }
                }
            }
        }
    }
    assert!(inside * 100 >= all * 95, "{inside} of {all} looks are within three error bars");
}

/// Too many states for the monitor to enumerate beside a look, so that it tracks; enumerated here all the
/// same, once.
#[test]
fn the_watched_likelihood_is_the_exact_one_within_its_error() {
    let table = synthetic::bars_and_stripes(5, synthetic::Repeats::Counted).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    let plan = Plan { epochs: 40, batch: 8, learning_rate: 0.05, seed: 2, ..Plan::default() };
    let mut monitor = Monitor::new(&data, Some(&data), 3).watching(Watch::Likelihood);
    let mut last = None;
    let mut watch = Every::new(1, |view: &View<'_>| {
        let found = Measurements(monitor.measure(view).unwrap());
        if found.get(&MetricName::LogPartition).is_some() {
            last = Some((found, view.machine().unwrap().clone()));
        }
        ControlFlow::Continue(())
    });
    let rbm = Rbm::binary(25, 20).unwrap().into_machine();
    train(rbm, &data, &plan, &mut [&mut watch]).unwrap();
    let (found, machine) = last.expect("a look at the end");
    let truth = likelihood::exact(&machine, &data).unwrap();
    let log_z = found.get(&MetricName::LogPartition).unwrap();
    let error = log_z.std_error.unwrap();
    assert!(error > 0.0, "tracked, not enumerated");
    assert!((log_z.value - truth.log_partition).abs() < 4.0 * error);
    for on in [On::Train, On::Valid] {
        let tracked = found.value(&MetricName::LogLikelihood(on)).unwrap();
        assert!((tracked - truth.mean).abs() < 4.0 * error + 1e-3, "{tracked}, {}", truth.mean);
    }
    assert!(found.get(&MetricName::ChainsLag).is_some());
    let left = found.value(&MetricName::ChainsAutocorrelation).unwrap();
    assert!((-1.0..=1.0).contains(&left));
}

/// A tracker that is written down and read back looks as one that never was.
#[test]
fn a_tracker_goes_on_where_it_was_written_down() {
    for (name, machine) in learners() {
        let data = bars_and_stripes();
        let plan = Plan { epochs: 50, batch: 8, learning_rate: 0.1, ..Plan::default() };
        let trained = train(machine, &data, &plan, &mut []).unwrap().machine;
        let sampler = Sampler::new(trained.clone(), Arithmetic::F32);
        let mut first = Tracker::new(data.column_means(), 1);
        first.look(&sampler, None, 6).unwrap();
        let mut second = Tracker::new(data.column_means(), 1);
        let text = first.export().to_string();
        second.import(&trained, &serde_json::from_str(&text).unwrap()).unwrap();
        let [a, b] = [&mut first, &mut second].map(|t| t.look(&sampler, None, 6).unwrap());
        assert_eq!((a.log_z, a.std_error), (b.log_z, b.std_error), "{name}");
    }
}
