//! Scores that stand beside the likelihood.

use crate::machines::{all, assert_close, extent, named, some_states};
use crate::statistics::assert_mean;
use harmonium::engine::Arithmetic;
use harmonium::evaluation::monitor::Monitor;
use harmonium::evaluation::pseudo::{Visit, log_pseudo_likelihood};
use harmonium::exact;
use harmonium::machine::{Batch, Machine, State};
use harmonium::random::Stream;
use harmonium::sampling::{Clamp, Sampler, posterior_factorises};
use harmonium::training::MetricName;
use harmonium_data::{Binarize, Dataset, Table};

fn visible_rows(machine: &Machine, x: &State) -> Vec<f64> {
    (0..x.n_rows())
        .flat_map(|r| machine.visible_layers().into_iter().flat_map(move |l| x.row(l, r).to_vec()))
        .collect()
}

/// $\ln PL$ from exact sums with one unit let go at a time.
fn by_definition(machine: &Machine, x: &State, row: usize) -> f64 {
    let clamp = Clamp::visible(machine);
    let with_all = exact::log_sums(machine, &clamp, x).unwrap()[row];
    let mut total = 0.0;
    for l in machine.visible_layers() {
        for unit in 0..machine.layer(l).n_units() {
            let held = (0..machine.layer(l).n_units()).map(|u| u != unit).collect();
            let others = machine.visible_layers().into_iter().filter(|&m| m != l);
            let freed = Clamp::layers(others).with_units(l, held);
            total += with_all - exact::log_sums(machine, &freed, x).unwrap()[row];
        }
    }
    total
}

#[test]
fn pseudo_likelihood_is_each_unit_given_the_others() {
    let mut tried = 0;
    for (name, machine) in all() {
        let x = some_states(&machine, 4, 71);
        let n = machine.visible_layers().iter().map(|&l| machine.layer(l).len()).sum();
        let batch = Batch::from_rows(&machine, n, &visible_rows(&machine, &x)).unwrap();
        let found = log_pseudo_likelihood(&machine, &batch, Visit::All);
        let real = machine.visible_layers().iter().any(|&l| !machine.layer(l).units.is_finite());
        if real || !posterior_factorises(&machine, &Clamp::visible(&machine)) {
            assert!(found.is_err(), "{name}");
            continue;
        }
        tried += 1;
        for (row, found) in found.unwrap().into_iter().enumerate() {
            assert_close(by_definition(&machine, &x, row), found, 1e-10, &name);
        }
        let draws: Vec<f64> = (0..extent(1500, 4000))
            .map(|s| {
                let visit = Visit::One(Stream::new(s));
                log_pseudo_likelihood(&machine, &batch, visit).unwrap()[1]
            })
            .collect();
        assert_mean(&format!("{name}, one unit"), &draws, by_definition(&machine, &x, 1));
    }
    assert!(tried >= extent(6, 9), "{tried}");
}

#[test]
fn a_monitor_measures_every_machine() {
    for (name, machine) in all() {
        let x = some_states(&machine, 30, 72);
        let n: usize = machine.visible_layers().iter().map(|&l| machine.layer(l).len()).sum();
        let values = visible_rows(&machine, &x).into_iter().map(|v| v as f32).collect();
        let data = Dataset::new(Table::from_real(values, n).unwrap(), Binarize::None).unwrap();
        let monitor = Monitor::new(&data, Some(&data), 1);
        let found = monitor
            .measure_cheap(&Sampler::new(machine.clone(), Arithmetic::F64), Some(&x))
            .unwrap();
        let get = |key: &str| found.iter().find(|m| m.name.as_str() == key).map(|m| m.value);
        assert!(found.iter().all(|m| m.value.is_finite()), "{name}: {found:?}");
        assert_eq!(get("free_energy_gap"), Some(0.0), "{name}: one set twice");
        assert_eq!(get("free_energy.train"), get("free_energy.valid"), "{name}");
        assert!(get("reconstruction_error").unwrap() >= 0.0, "{name}");
        let exact = monitor.measure_exact(&machine).unwrap();
        let logs = exact::log_probabilities(&machine, &Clamp::visible(&machine), &x).unwrap();
        // The data is kept in f32, so real values are rounded on their way in.
        assert_close(logs.iter().sum::<f64>() / 30.0, exact[0].value, 1e-5, &name);
        if posterior_factorises(&machine, &Clamp::visible(&machine)) {
            let log_z = exact::log_partition(&machine).unwrap();
            assert_close(-get("free_energy.train").unwrap() - log_z, exact[0].value, 1e-10, &name);
        }
    }
}

#[test]
fn idle_units_are_counted() {
    let machine = named("rbm of binary");
    let mut step = harmonium::moments::Moments::zeros(&machine);
    step.bias[1] = vec![-50.0, 50.0, 0.0];
    let machine = crate::machines::moved(&machine, &step);
    let data = Dataset::new(Table::from_real(vec![0.0, 1.0, 1.0, 1.0], 2).unwrap(), Binarize::None);
    let data = data.unwrap();
    let found = Monitor::new(&data, None, 0)
        .measure_cheap(&Sampler::new(machine.clone(), Arithmetic::F64), None)
        .unwrap();
    let get = |key: &str| found.iter().find(|m| m.name.as_str() == key).unwrap().value;
    assert_eq!((get("dead_units"), get("saturated_units")), (1.0, 1.0));
    assert!(
        found
            .iter()
            .all(|m| ![MetricName::ChainsFreeEnergy, MetricName::FreeEnergyGap].contains(&m.name))
    );
}
