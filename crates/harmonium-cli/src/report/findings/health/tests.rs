//! Each symptom, where it is there and where it is not.

use super::super::super::{Record, Values};
use super::super::tests::run;
use super::*;

fn values(name: &str, values: Vec<f64>) -> Vec<Values> {
    vec![Values { name: name.into(), values }]
}

#[test]
fn updates_should_be_a_thousandth_of_the_weights() {
    let finding = |ratio: f64| {
        let mut input = run(&[("update_ratio", &[ratio; 5])]);
        input.config = "learning-rate = 0.05".into();
        update_ratio(&input).unwrap()
    };
    assert_eq!(finding(2e-3).level, Level::Good);
    let large = finding(0.05);
    assert_eq!(large.level, Level::Warning);
    assert!(large.what.contains("by 0.05 of their size, which is too large"), "{}", large.what);
    assert!(large.advice.contains("Lower") && large.advice.contains("`--learning-rate 0.001`"));
    let small = finding(1e-5);
    assert!(small.what.contains("too small") && small.advice.contains("`--learning-rate 5`"));
    assert_eq!(finding(0.0).advice, "Raise `--learning-rate`.");
    assert_eq!(update_ratio(&Input::default()), None);
}

#[test]
fn the_decay_of_the_learning_rate_is_no_alarm() {
    let ratios: Vec<f64> = (0..20).map(|i| 5e-3 * 0.7_f64.powi(i)).collect();
    assert_eq!(update_ratio(&run(&[("update_ratio", &ratios)])).unwrap().level, Level::Good);
}

#[test]
fn dead_and_saturated_units_are_counted() {
    let mut input = run(&[("dead_units", &[0.0, 12.0]), ("saturated_units", &[0.0, 1.0])]);
    input.activities = values("hidden", vec![0.5; 100]);
    let dead = dead_units(&input).unwrap();
    assert_eq!(dead.level, Level::Warning);
    assert!(dead.what.starts_with("12 of 100 hidden units are dead"));
    let saturated = saturated_units(&input).unwrap();
    assert_eq!(saturated.level, Level::Note);
    assert!(saturated.what.starts_with("1 of 100 hidden units is saturated"));
}

#[test]
fn without_a_metric_the_activities_are_counted() {
    let mut mixed = vec![0.4; 10];
    mixed.extend([0.0, 0.001, 1.0, 0.999]);
    let input = Input { activities: values("hidden", mixed), ..Input::default() };
    assert!(dead_units(&input).unwrap().what.starts_with("2 of 14"));
    assert!(saturated_units(&input).unwrap().what.starts_with("2 of 14"));
    let spins = Input { activities: values("hidden", vec![-1.0, 0.0]), ..Input::default() };
    assert_eq!(dead_units(&spins), None);
    let awake = Input { activities: values("hidden", vec![0.4; 9]), ..Input::default() };
    assert_eq!(dead_units(&awake).unwrap().level, Level::Good);
}

#[test]
fn chains_far_from_the_data_do_not_mix() {
    let level = |chains: f64| {
        let input = run(&[("free_energy.data", &[-50.0; 8]), ("free_energy.chains", &[chains; 8])]);
        super::chains(&input).unwrap()
    };
    assert_eq!(level(-48.0).level, Level::Good);
    assert!(level(-20.0).what.contains("do not reach"));
    assert!(level(-80.0).what.contains("deep wells"));
    assert!(level(-80.0).advice.contains("`--rule pt`"));
}

#[test]
fn advice_knows_what_was_already_asked() {
    let config = "rule = \"pt\"\nchains = 100\nk = 1".into();
    let advice = mixing(&Input { config, ..Input::default() });
    assert_eq!(advice, "Try `--chains 500`, `--k 5`, or more `--replicas`.");
}

#[test]
fn equal_samples_are_a_collapse() {
    let data: Vec<Vec<f64>> = (0..20).map(|i| vec![f64::from(i % 2), f64::from(i % 3)]).collect();
    let finding = |model_samples: Vec<Vec<f64>>| {
        let input = Input { data_samples: data.clone(), model_samples, ..Input::default() };
        collapse(&input)
    };
    let equal = finding(vec![vec![0.3, 0.7]; 20]).unwrap();
    assert_eq!(equal.level, Level::Problem);
    assert!(equal.what.contains("vary 0.0 % as much"), "{}", equal.what);
    assert_eq!(finding(data.clone()).unwrap().level, Level::Good);
    let narrow = data.iter().map(|s| s.iter().map(|x| 0.3 * x).collect()).collect();
    assert_eq!(finding(narrow).unwrap().level, Level::Warning);
    assert_eq!(finding(vec![vec![0.0, 0.0]; 2]), None);
    assert_eq!(finding(vec![vec![f64::NAN, 0.0]; 9]), None);
}

#[test]
fn mean_field_that_uses_every_sweep_is_told() {
    let finding = |sweeps: f64| mean_field(&run(&[("mean_field_sweeps", &[sweeps; 8])])).unwrap();
    assert_eq!(finding(12.5).level, Level::Good);
    assert_eq!(finding(30.0).level, Level::Warning);
    assert!(finding(30.0).advice.contains("`--mean-field-sweeps 90`"));
    assert_eq!(mean_field(&Input::default()), None);
}

#[test]
fn weights_have_a_healthy_size() {
    let finding = |size: f64| {
        let weights = values("visible – hidden", vec![size, -size]);
        super::weights(&Input { weights, ..Input::default() }).unwrap()
    };
    assert_eq!(finding(0.2).level, Level::Good);
    assert!(finding(0.01).what.contains("hardly left their start (0.01)"));
    assert_eq!(finding(f64::NAN).level, Level::Problem);
    assert!(finding(9.0).what.contains("so large"));
    let mut both = values("a", vec![0.2]);
    both.extend(values("b", vec![9.0]));
    let worst = super::weights(&Input { weights: both, ..Input::default() }).unwrap();
    assert!(worst.what.contains("of b"));
}

#[test]
fn broken_numbers_break_no_rule() {
    let values = ["update_ratio", "dead_units", "free_energy.data", "free_energy.chains"];
    let values = values.map(|n| (n.to_owned(), f64::NAN)).into_iter().collect();
    let input = Input { records: vec![Record { values, ..Record::default() }], ..Input::default() };
    for rule in [update_ratio, dead_units, chains, collapse, mean_field, weights] {
        assert_eq!(rule(&input), None);
    }
}
