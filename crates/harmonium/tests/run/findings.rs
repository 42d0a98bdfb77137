//! Each finding in a small real run where it must be said, and in one where it must not.

use crate::folder::Folder;
use harmonium::evaluation::tracking::Watch;
use harmonium::findings::{Evidence, Finding, Level, findings, verdict};
use harmonium::machine::Machine;
use harmonium::model::{Judging, Portrait, Training};
use harmonium::models::{Dbm, Rbm};
use harmonium::progress::Silent;
use harmonium::run::{About, Overwrite, Recorded, Recording, RunDirectory};
use harmonium::training::{Guarding, Plan, Rule, Stop};
use harmonium::units::Units;
use harmonium_data::Dataset;
use harmonium_data::ndarray::Array2;

/// A number below `n` that depends on its place alone.
fn scattered(seed: u64, place: usize, n: u64) -> u64 {
    let mut x = (seed << 40 ^ place as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ x >> 31) % n
}

fn data(n: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Dataset {
    Dataset::from_array(Array2::from_shape_fn((n, columns), |(r, c)| value(r, c)).view()).unwrap()
}

/// Six pairs of bits that agree nine times in ten: easy to learn, and chains mix.
fn pairs(n: usize, seed: u64) -> Dataset {
    data(n, 12, |row, column| {
        let shared = scattered(seed, 100 * row + column / 2, 2);
        let flipped =
            u64::from(column % 2 == 1 && scattered(seed, 100 * row + 50 + column, 10) == 0);
        (shared ^ flipped) as f64
    })
}

/// The same in the order of a sorted file.
fn sorted_pairs(n: usize) -> Dataset {
    let rows = pairs(n, 3).to_array(harmonium::random::Stream::new(0));
    let key = |row: usize| rows.row(row).iter().fold(0, |k, x| 2 * k + u64::from(*x > 0.5));
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&row| key(row));
    pairs(n, 3).select_rows(&order).unwrap()
}

/// All off or all on, with a little noise: two modes that chains do not leave.
fn two_modes(n: usize) -> Dataset {
    data(n, 20, |row, column| {
        let mode = (row % 2) as u64;
        (mode ^ u64::from(scattered(5, 100 * row + column, 50) == 0)) as f64
    })
}

/// Bits without any structure.
fn coins(n: usize, columns: usize, seed: u64) -> Dataset {
    data(n, columns, |row, column| scattered(seed, 100 * row + column, 2) as f64)
}

fn plan(epochs: u64, learning_rate: f64) -> Plan {
    Plan { epochs, learning_rate, batch: 20, seed: 1, ..Plan::default() }
}

fn rbm(visible: usize, hidden: usize) -> Machine {
    Rbm::binary(visible, hidden).unwrap().into_machine()
}

/// What a run ended as, and everything that is said about it.
struct Judged {
    recorded: Recorded,
    found: Vec<Finding>,
}

impl Judged {
    fn of(machine: Machine, train: &Dataset, valid: Option<&Dataset>, plan: &Plan) -> Self {
        Self::with(machine, train, valid, plan, None, valid.unwrap_or(train))
    }

    fn with(
        machine: Machine,
        train: &Dataset,
        valid: Option<&Dataset>,
        plan: &Plan,
        patience: Option<u64>,
        beside: &Dataset,
    ) -> Self {
        let folder = Folder::new();
        let mut run = RunDirectory::create(folder.join("run"), Overwrite::No).unwrap();
        run.write_config("").unwrap();
        let training = Training::new(harmonium::model::Blueprint::Machine(machine), train, plan);
        let about = About { data: training.memory().unwrap(), ..About::default() };
        let recording = Recording {
            about,
            train,
            valid,
            patience,
            checkpoint_seconds: 1e9,
            watch: Watch::Pseudo,
            guarding: Guarding::Warn,
            metrics: Vec::new(),
        };
        let mut learner = training.learner().unwrap();
        let recorded = run.record(learner.as_mut(), recording, None, &mut Silent).unwrap();
        let events = run.directory().read_events().unwrap().events;
        let model = &recorded.model;
        let Portrait { weights, activities, .. } =
            model.portrait(Some(train), 0, None, &mut Silent).unwrap();
        let mut evidence = Evidence {
            plan: plan.clone(),
            result: Some(model.about.epoch),
            weights,
            activities,
            ..Evidence::of(&events)
        };
        model.judge(&mut evidence, Some(beside), &Judging::thorough(0, None), &mut Silent).unwrap();
        Self { found: findings(&evidence), recorded }
    }

    /// The level of the finding that says this.
    fn says(&self, fragment: &str) -> Option<Level> {
        self.found.iter().find(|f| f.what.contains(fragment)).map(|f| f.level)
    }

    #[track_caller]
    fn fires(&self, fragment: &str) {
        let level = self.says(fragment);
        assert!(level.is_some_and(|l| l <= Level::Warning), "{fragment}: {:#?}", self.found);
        assert!(verdict(&self.found) <= Some(Level::Warning));
        assert_eq!(self.says("No problem"), None, "{:#?}", self.found);
    }
}

/// An RBM that learned what there is to learn.
fn healthy() -> Judged {
    let (train, valid) = (pairs(600, 1), pairs(300, 2));
    Judged::of(rbm(12, 8), &train, Some(&valid), &plan(60, 0.1))
}

#[test]
fn a_healthy_run_has_no_problem() {
    let run = healthy();
    assert_eq!(verdict(&run.found), Some(Level::Good), "{:#?}", run.found);
    assert!(run.found[0].what.starts_with("No problem was found."), "{:#?}", run.found);
    for good in ["Better than independent columns", "look like", "Chains of the model"] {
        assert!(run.says(good) >= Some(Level::Note), "{good}: {:#?}", run.found);
    }
    for bad in ["too large", "too small", "hardly left", "by heart", "all alike", "did not rise"] {
        assert_eq!(run.says(bad), None, "{:#?}", run.found);
    }
}

#[test]
fn an_untrained_model_has_learned_nothing_and_has_not_collapsed() {
    let train = pairs(600, 1);
    let run = Judged::of(rbm(12, 8), &train, None, &plan(0, 0.1));
    run.fires("No better than independent columns");
    run.fires("neighbours tell them apart");
    assert_eq!(run.says("all alike"), None, "{:#?}", run.found);
    assert_eq!(run.says("they vary"), None, "{:#?}", run.found);
}

#[test]
fn samples_that_are_all_alike_are_a_problem() {
    let constant = data(200, 12, |_, column| (column % 2) as f64);
    let run = Judged::with(rbm(12, 4), &constant, None, &plan(20, 0.1), None, &pairs(600, 1));
    run.fires("all alike");
    assert_eq!(verdict(&run.found), Some(Level::Problem));
}

#[test]
fn sorted_rows_are_no_evidence_of_anything() {
    let run = Judged::of(rbm(12, 8), &sorted_pairs(600), None, &plan(60, 0.1));
    assert_eq!(run.says("they vary"), None, "{:#?}", run.found);
    assert_eq!(run.says("differ from"), None, "{:#?}", run.found);
}

#[test]
fn chains_that_stay_in_their_mode_do_not_pass() {
    // Exact sums learn both modes, which chains of samples could lose.
    let exact = Plan { rule: Rule::Exact, ..plan(60, 0.3) };
    let run = Judged::of(rbm(20, 8), &two_modes(400), None, &exact);
    run.fires("Chains of the model stand apart");
}

#[test]
fn a_model_of_one_class_does_not_pass() {
    let both = two_modes(400);
    let one: Vec<usize> = (0..400).step_by(2).collect();
    let train = both.select_rows(&one).unwrap();
    let run = Judged::with(rbm(20, 10), &train, None, &plan(30, 0.05), None, &both);
    run.fires("means of columns are off");
    assert_eq!(verdict(&run.found), Some(Level::Problem));
}

#[test]
fn learning_by_heart_is_told_and_the_result_is_from_before() {
    let (train, valid) = (coins(20, 12, 1), coins(200, 12, 2));
    let run = Judged::of(rbm(12, 12), &train, Some(&valid), &plan(400, 0.3));
    assert!(run.says("by heart").is_some(), "{:#?}", run.found);
    let best = run.recorded.best.clone().unwrap();
    assert!(best.epoch < run.recorded.epochs && run.recorded.model.about.epoch == best.epoch);
}

#[test]
fn updates_of_the_wrong_size_are_told() {
    let train = pairs(200, 1);
    Judged::of(rbm(12, 8), &train, None, &plan(5, 1e-6)).fires("too small");
    Judged::of(rbm(12, 8), &train, None, &plan(5, 1e-6)).fires("hardly left their start");
    Judged::of(rbm(12, 8), &train, None, &plan(20, 20.0)).fires("too large");
}

#[test]
fn a_score_that_falls_is_told() {
    let suddenly = Plan { decay: "1@0,200@10".parse().unwrap(), ..plan(20, 0.1) };
    let run = Judged::of(rbm(12, 8), &pairs(200, 1), None, &suddenly);
    let said = run.says("did not rise").or(run.says("fell at the end"));
    assert!(said <= Some(Level::Warning) && said.is_some(), "{:#?}", run.found);
}

/// A pull towards units that are never on, stronger than anything the data says.
fn silencing(epochs: u64, target: f64) -> Plan {
    Plan { sparsity_target: Some(target), sparsity_cost: 5.0, ..plan(epochs, 0.5) }
}

#[test]
fn silent_units_are_told_while_training_and_afterwards() {
    let (train, valid) = (pairs(200, 1), pairs(200, 2));
    for (target, word) in [(0.0001, "dead (never on)"), (0.9999, "saturated (always on)")] {
        let plan = silencing(40, target);
        let run = Judged::with(rbm(12, 8), &train, Some(&valid), &plan, Some(30), &valid);
        run.fires("all 8 hidden units say nothing");
        assert!(
            matches!(&run.recorded.stop, Stop::Observer(why) if why.contains("say nothing")),
            "{:?}",
            run.recorded.stop
        );
        let run = Judged::of(rbm(12, 8), &train, None, &plan);
        assert_eq!(run.says(word), Some(Level::Problem), "{word}: {:#?}", run.found);
        assert_eq!(run.recorded.stop, Stop::Finished, "nobody asked for patience");
    }
    let run = healthy();
    assert_eq!(run.says("say nothing"), None);
    assert!(run.says("No hidden unit is dead").is_some(), "{:#?}", run.found);
    assert!(run.says("No hidden unit is saturated").is_some(), "{:#?}", run.found);
}

#[test]
fn mean_field_without_time_is_told() {
    let machine = || Dbm::binary(12, &[8, 4]).unwrap().into_machine();
    let train = pairs(200, 1);
    let few = Plan { mean_field_sweeps: 1, ..plan(20, 0.1) };
    Judged::of(machine(), &train, None, &few).fires("did not settle within 1 sweeps");
    let many = Plan { mean_field_sweeps: 100, ..plan(20, 0.1) };
    let run = Judged::of(machine(), &train, None, &many);
    assert_eq!(run.says("Mean field settles"), Some(Level::Good), "{:#?}", run.found);
}

#[test]
fn real_columns_are_held_against_a_gaussian() {
    let train = data(300, 4, |row, column| {
        let uniform = |k| scattered(9, 10 * row + k, 1000) as f64 / 500.0 - 1.0;
        uniform(0) + 0.3 * uniform(1 + column)
    });
    let machine = Rbm::new((Units::Gaussian, 4), (Units::Binary, 6)).unwrap().into_machine();
    let run = Judged::of(machine, &train, None, &plan(2, 1e-4));
    run.fires("than one full Gaussian");
}

/// Rows of four real columns at one of two places, with this much noise around them.
fn two_places(n: usize, noise: f64) -> Dataset {
    data(n, 4, |row, column| {
        let uniform = scattered(11, 10 * row + column, 1000) as f64 / 500.0 - 1.0;
        2.0 * (row % 2) as f64 + noise * uniform
    })
}

#[test]
fn precisions_at_the_end_of_their_range_are_said() {
    let judged = |noise| {
        let machine = Rbm::new((Units::Gaussian, 4), (Units::Binary, 4)).unwrap().into_machine();
        let suited = Plan::suited_to(&machine);
        let plan = Plan { rule: Rule::Exact, epochs: 400, learning_rate: 0.1, batch: 20, ..suited };
        Judged::of(machine, &two_places(40, noise), None, &plan)
    };
    // Given its place, a column hardly varies: a hundredth of what it does over all rows would be the end.
    judged(1e-4).fires("is at the end of its range");
    assert_eq!(judged(0.5).says("is at the end of its range"), None);
}

#[test]
fn a_run_that_diverged_is_a_problem() {
    let train = data(100, 4, |row, column| scattered(9, 10 * row + column, 1000) as f64);
    let machine = Rbm::new((Units::Gaussian, 4), (Units::Binary, 6)).unwrap().into_machine();
    let run = Judged::of(machine, &train, None, &plan(50, 1e8));
    assert!(matches!(run.recorded.stop, Stop::Diverged(_)), "{:?}", run.recorded.stop);
    assert_eq!(run.says("Training diverged"), Some(Level::Problem), "{:#?}", run.found);
    assert_eq!(healthy().says("diverged"), None);
}
