//! A search for settings: found again from its seed, gone on with where it was left, and honest about what it ranks by.

use harmonium::model::{Autopilot, Blueprint, Effort, Hidden, Open, Training, Trial};
use harmonium::models::Rbm;
use harmonium::progress::Silent;
use harmonium::training::{Measurement, Measurements, MetricName, On, Plan};
use harmonium::{Error, exact};
use harmonium_data::{Binarize, Dataset, synthetic};

const EVERYTHING: Open = Open { rule: true, learning_rate: true, k: true, l2: true };
const ANY: Hidden = Hidden::Searched { layers: 1 };

/// Rows of bars and stripes 3×3, each three times to learn from and once to validate.
fn data() -> (Dataset, Dataset) {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).expect("a table");
    let all = Dataset::new(table, Binarize::None).expect("bits");
    let rows: Vec<usize> = (0..48).map(|k| k % 16).collect();
    (all.select_rows(&rows).expect("rows"), all)
}

fn shape(hidden: &[usize]) -> Result<Blueprint, Error> {
    Ok(Blueprint::Machine(Rbm::binary(9, hidden[0])?.into_machine()))
}

fn search(hidden: Hidden, open: Open, done: &[Trial]) -> (Trial, Vec<Trial>, Vec<Trial>) {
    let (train, valid) = data();
    let autopilot = Autopilot {
        train: &train,
        valid: &valid,
        apart: false,
        shape: &shape,
        hidden,
        plan: Plan { seed: 3, ..Plan::default() },
        open,
        effort: Effort::Quick,
    };
    let mut noted = Vec::new();
    let mut note = |trial: &Trial| {
        noted.push(trial.clone());
        Ok(())
    };
    let (best, all) = autopilot.run(done, &mut note, &mut Silent).expect("it finds something");
    assert!(all.len() <= autopilot.work().0, "no more work than was announced");
    (best, all, noted)
}

#[test]
fn a_search_is_found_again_and_its_best_trial_is_that_of_the_highest_lower_end() {
    let (best, all, _) = search(ANY, EVERYTHING, &[]);
    assert_eq!(search(ANY, EVERYTHING, &[]).1, all, "everything follows from the seed");
    let lowest = |t: &Trial| t.lower.unwrap_or(f64::NEG_INFINITY);
    assert!(all.iter().all(|t| lowest(t) <= lowest(&best)));
    // Every pattern is as probable as any other: ln 16, or better where two patterns are alike.
    assert!(best.score.expect("a score") > -4.0, "{best:?}");
}

#[test]
fn trials_that_were_made_are_not_made_again() {
    let (best, all, noted) = search(ANY, EVERYTHING, &[]);
    assert_eq!(noted, all);
    let (again, _, noted) = search(ANY, EVERYTHING, &all[..3]);
    assert_eq!((again, noted.as_slice()), (best, &all[3..]));
}

#[test]
fn what_was_asked_for_is_not_searched() {
    let open = Open { learning_rate: false, ..EVERYTHING };
    let (_, all, _) = search(Hidden::Given(vec![7]), open, &[]);
    let plan = Plan::default();
    assert!(all.iter().all(|t| t.hidden == [7] && t.learning_rate == plan.learning_rate));
    assert!(all.iter().any(|t| t.l2 != plan.l2));
}

#[test]
fn the_plan_of_a_trial_repeats_it() {
    let (best, ..) = search(ANY, EVERYTHING, &[]);
    let (train, valid) = data();
    // The best epoch need not be the last: train for as long with a plan of that length's decay.
    let plan = best.plan(&Plan { seed: 3, ..Plan::default() });
    let blueprint = shape(&best.hidden).expect("it fits");
    let model = Training::new(blueprint, &train, &plan).run(&mut [], &mut Silent).expect("trained");
    let harmonium::models::Body::Machine(machine) = &model.body else { panic!("a machine") };
    let rows: f64 = {
        let score = model.score(&valid, harmonium::Method::Exact).expect("16 rows");
        score.mean
    };
    assert!(exact::log_partition(machine).is_ok());
    if best.best_epoch == Some(best.epochs) {
        assert!((rows - best.score.expect("a score")).abs() < 1e-4, "{rows} {best:?}");
    } else {
        // Later models were no better at the looks that were taken.
        assert!(rows < best.score.expect("a score") + 1e-4, "{rows} {best:?}");
    }
}

#[test]
fn an_uncertain_likelihood_does_not_beat_a_sure_one() {
    let look = |value: f64, doubt: f64| {
        let one = |name, value, std_error| Measurement { name, value, std_error };
        Measurements::from(vec![
            one(MetricName::LogLikelihood(On::Valid), value, Some(doubt.hypot(0.2))),
            one(MetricName::PseudoLikelihood(On::Valid), value, Some(0.2)),
            one(MetricName::LogPartition, 40.0, Some(doubt)),
        ])
    };
    let likelihood = MetricName::LogLikelihood(On::Valid);
    let end = |look: &Measurements, name| look.lower_end(name).expect("it was measured");
    assert!(end(&look(-10.0, 5.0), &likelihood) < end(&look(-14.0, 0.1), &likelihood));
    assert_eq!(end(&look(-10.0, 0.0), &likelihood), -10.0);
    // A pseudo-likelihood needs no ln Z.
    assert_eq!(end(&look(-10.0, 5.0), &MetricName::PseudoLikelihood(On::Valid)), -10.0);
}
