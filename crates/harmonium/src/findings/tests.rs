//! Each symptom, where it is there and where it is not.

use super::chains::free_energy;
use super::health::{dead_units, mean_field, saturated_units, update_ratio, weights};
use super::*;
use crate::training::{Measurement, Rule};

/// A run that measured these metrics, one value per epoch, with a standard error of 0.5.
pub(super) fn run(metrics: &[(&str, &[f64])]) -> Evidence {
    let n = metrics.iter().map(|m| m.1.len()).max().unwrap_or(0);
    let epoch = |i: usize| {
        let found = metrics.iter().filter_map(|(name, values)| {
            let (name, value) = ((*name).into(), *values.get(i)?);
            Some(Measurement { name, value, std_error: Some(0.5) })
        });
        Epoch {
            epoch: i as u64 + 1,
            step: 10 * (i as u64 + 1),
            update_ratio: 1e-3,
            measurements: found.collect::<Vec<_>>().into(),
            ..Epoch::default()
        }
    };
    Evidence { epochs: (0..n).map(epoch).collect(), ..Evidence::default() }
}

/// A run with these sizes of its updates.
fn updating(ratios: &[f64]) -> Evidence {
    let epoch = |r: &f64| Epoch { update_ratio: *r, ..Epoch::default() };
    Evidence { epochs: ratios.iter().map(epoch).collect(), ..Evidence::default() }
}

/// A curve that rises to `top` and flattens.
pub(super) fn rising(top: f64) -> Vec<f64> {
    (0..20).map(|i| top - 10.0 * (-0.6 * f64::from(i)).exp()).collect()
}

fn named(name: &str, values: Vec<f64>) -> Vec<Named> {
    vec![Named { name: name.into(), values }]
}

#[test]
fn numbers_that_are_not_finite_are_a_problem() {
    let mut evidence = run(&[("log_likelihood.train", &[-3.0, f64::NAN])]);
    evidence.plan.learning_rate = 0.03;
    let found = ending(&evidence).unwrap();
    assert_eq!(found.level, Level::Problem);
    assert!(found.what.contains("`log_likelihood.train` became not a number in epoch 2"));
    assert_eq!(found.remedies[0], Remedy::LowerLearningRate(0.01));
    let found = ending(&updating(&[1e-3, f64::INFINITY])).unwrap();
    assert!(found.what.contains("`update_ratio` became infinite"), "{}", found.what);
    let ending_of = Ending::Diverged("the gradient holds a number that is not finite.".into());
    let found = ending(&Evidence { ending: ending_of, ..Evidence::default() }).unwrap();
    assert_eq!(found.level, Level::Problem);
    assert!(found.what.contains("not finite. The model"), "{}", found.what);
}

#[test]
fn other_endings_are_told() {
    let level = |e| ending(&Evidence { ending: e, ..Evidence::default() }).map(|f| f.level);
    assert_eq!(level(Ending::Finished), None);
    assert_eq!(level(Ending::Unfinished), Some(Level::Note));
    assert_eq!(level(Ending::Stopped("it was enough".into())), Some(Level::Note));
}

#[test]
fn a_healthy_run_is_called_healthy() {
    let found = findings(&run(&[("log_likelihood.train", &rising(-20.0))]));
    assert!(found.iter().all(|f| f.level >= Level::Note), "{found:?}");
    assert!(found[0].what.starts_with("No problem"));
    assert!(found[0].what.contains("Not looked at: whether chains mix"), "{}", found[0].what);
}

#[test]
fn the_worst_comes_first_and_is_not_called_healthy() {
    let mut evidence = run(&[("log_likelihood.train", &rising(-20.0))]);
    evidence.epochs.iter_mut().for_each(|e| e.update_ratio = 0.3);
    let found = findings(&evidence);
    assert!(found[0].level <= Level::Warning, "{found:?}");
    assert!(found.windows(2).all(|w| w[0].level <= w[1].level));
    assert!(!found.iter().any(|f| f.what.starts_with("No problem")));
}

#[test]
fn nothing_measured_is_not_called_healthy() {
    let found = findings(&Evidence::default());
    assert!(found.iter().all(|f| f.level != Level::Good), "{found:?}");
}

#[test]
fn updates_should_be_a_thousandth_of_the_weights() {
    let finding = |ratio: f64| {
        let mut evidence = updating(&[ratio; 5]);
        evidence.plan.learning_rate = 0.05;
        update_ratio(&evidence).unwrap()
    };
    assert_eq!(finding(2e-3).level, Level::Good);
    let large = finding(0.05);
    assert_eq!(large.level, Level::Warning);
    assert!(large.what.contains("by 0.05 of their size, which is too large"), "{}", large.what);
    assert_eq!(large.remedies, [Remedy::LowerLearningRate(0.001)]);
    let small = finding(1e-5);
    assert!(small.what.contains("too small"));
    assert_eq!(small.remedies, [Remedy::RaiseLearningRate(5.0)]);
    assert_eq!(finding(0.0).remedies, [Remedy::RaiseLearningRate(5.0)]);
    assert_eq!(update_ratio(&Evidence::default()), None);
}

#[test]
fn the_decay_of_the_learning_rate_is_no_alarm() {
    let ratios: Vec<f64> = (0..20).map(|i| 5e-3 * 0.7_f64.powi(i)).collect();
    assert_eq!(update_ratio(&updating(&ratios)).unwrap().level, Level::Good);
}

#[test]
fn dead_and_saturated_units_are_counted() {
    let mut evidence = run(&[("dead_units", &[0.0, 12.0]), ("saturated_units", &[0.0, 1.0])]);
    evidence.activities = named("hidden", vec![0.5; 100]);
    let dead = dead_units(&evidence).unwrap();
    assert_eq!(dead.level, Level::Warning);
    assert!(dead.what.starts_with("12 of 100 hidden units are dead"));
    assert!(dead.remedies.contains(&Remedy::FewerHidden));
    let saturated = saturated_units(&evidence).unwrap();
    assert_eq!((saturated.level, saturated.remedies.len()), (Level::Note, 0));
    assert!(saturated.what.starts_with("1 of 100 hidden units is saturated"));
}

#[test]
fn without_a_metric_the_activities_are_counted() {
    let mut mixed = vec![0.4; 10];
    mixed.extend([0.0, 0.001, 1.0, 0.999]);
    let evidence = Evidence { activities: named("hidden", mixed), ..Evidence::default() };
    assert!(dead_units(&evidence).unwrap().what.starts_with("2 of 14"));
    assert!(saturated_units(&evidence).unwrap().what.starts_with("2 of 14"));
    let spins = Evidence { activities: named("hidden", vec![-1.0, 0.0]), ..Evidence::default() };
    assert_eq!(dead_units(&spins), None);
    let awake = Evidence { activities: named("hidden", vec![0.4; 9]), ..Evidence::default() };
    assert_eq!(dead_units(&awake).unwrap().level, Level::Good);
}

#[test]
fn chains_far_from_the_data_do_not_mix() {
    let finding = |chains: f64| {
        let metrics: [(&str, &[f64]); 2] =
            [("free_energy.train", &[-50.0; 8]), ("free_energy.chains", &[chains; 8])];
        free_energy(&run(&metrics)).unwrap()
    };
    assert_eq!(finding(-48.0).level, Level::Good);
    assert_eq!(finding(-44.0).level, Level::Warning);
    assert!(finding(-20.0).what.contains("do not reach"));
    assert!(finding(-80.0).what.contains("deep wells"));
    assert!(finding(-80.0).remedies.contains(&Remedy::Tempering));
}

#[test]
fn a_difference_that_may_be_noise_is_no_alarm() {
    let metrics: [(&str, &[f64]); 2] =
        [("free_energy.train", &[-50.0; 8]), ("free_energy.chains", &[-20.0; 8])];
    let mut evidence = run(&metrics);
    for m in evidence.epochs.iter_mut().flat_map(|e| &mut e.measurements.0) {
        m.std_error = Some(6.0);
    }
    assert_eq!(free_energy(&evidence).unwrap().level, Level::Good);
}

#[test]
fn remedies_know_what_was_already_asked() {
    let metrics: [(&str, &[f64]); 2] =
        [("free_energy.train", &[-50.0; 8]), ("free_energy.chains", &[0.0; 8])];
    let mut evidence = run(&metrics);
    evidence.plan.rule = Rule::Pt;
    let found = free_energy(&evidence).unwrap();
    assert_eq!(
        found.remedies,
        [Remedy::MoreChains(500), Remedy::MoreSweeps(5), Remedy::MoreReplicas(20)]
    );
    evidence.plan.rule = Rule::Cd;
    let found = free_energy(&evidence).unwrap();
    assert_eq!(found.remedies, [Remedy::MoreSweeps(5), Remedy::Tempering]);
}

#[test]
fn mean_field_that_uses_every_sweep_is_told() {
    let finding = |sweeps: f64| {
        let epoch = Epoch { mean_field_sweeps: Some(sweeps), ..Epoch::default() };
        mean_field(&Evidence { epochs: vec![epoch; 8], ..Evidence::default() }).unwrap()
    };
    assert_eq!(finding(12.5).level, Level::Good);
    assert_eq!(finding(30.0).level, Level::Warning);
    assert_eq!(finding(30.0).remedies[0], Remedy::MeanFieldSweeps(90));
    assert_eq!(mean_field(&Evidence::default()), None);
}

#[test]
fn weights_have_a_healthy_size() {
    let finding = |size: f64| {
        let values = named("visible – hidden", vec![size, -size]);
        weights(&Evidence { weights: values, ..Evidence::default() }).unwrap()
    };
    assert_eq!(finding(0.2).level, Level::Good);
    assert!(finding(0.01).what.contains("hardly left their start (0.01)"));
    assert_eq!(finding(f64::NAN).level, Level::Problem);
    assert!(finding(9.0).what.contains("so large"));
    let mut both = named("a", vec![0.2]);
    both.extend(named("b", vec![9.0]));
    let worst = weights(&Evidence { weights: both, ..Evidence::default() }).unwrap();
    assert!(worst.what.contains("of b"));
}

#[test]
fn broken_numbers_break_no_rule() {
    let names = ["dead_units", "free_energy.train", "free_energy.chains"];
    let mut evidence = run(&names.map(|n| (n, &[f64::NAN; 4][..])));
    evidence.epochs.iter_mut().for_each(|e| e.update_ratio = f64::NAN);
    for rule in [update_ratio, dead_units, free_energy, mean_field, weights] {
        assert_eq!(rule(&evidence), None);
    }
}
