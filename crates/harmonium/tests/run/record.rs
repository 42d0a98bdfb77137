//! A recorded run that is interrupted after any step and resumed ends as one that never was.

use crate::folder::Folder;
use harmonium::evaluation::tracking::Watch;
use harmonium::machine::Machine;
use harmonium::models::{Dbm, Rbm};
use harmonium::progress::{Listener, Silent};
use harmonium::run::{About, Overwrite, Recording, RunDirectory, RunWriter, SavedCheckpoint};
use harmonium::training::{
    DbnLearner, DbnShape, Guarding, Learner, Plan, Pretrained, Rule, Stage, Steering, Stop,
    Trainer, initialise,
};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Labels, synthetic};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Makes the learner of a training, from its start or from a checkpoint.
type Training<'a> =
    dyn for<'d> Fn(&'d Dataset, Option<&SavedCheckpoint>) -> Box<dyn Learner + 'd> + 'a;

/// Asks to stop after some steps.
struct StopAfter(u64);

impl Listener for StopAfter {
    fn cancelled(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }
}

fn bars() -> Dataset {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap();
    Dataset::new(table, Binarize::None).unwrap()
}

/// Rows that are not learned from.
fn held_back() -> Dataset {
    bars().select_rows(&[0, 3, 5, 11]).unwrap()
}

fn recording<'d>(
    train: &'d Dataset,
    valid: Option<&'d Dataset>,
    patience: Option<u64>,
    watch: Watch,
) -> Recording<'d> {
    let about = About { seed: 5, ..About::default() };
    let guarding = match watch {
        Watch::Likelihood => Guarding::Steer,
        Watch::None | Watch::Pseudo => Guarding::Warn,
    };
    let checkpoint_seconds = 1e9;
    Recording {
        about,
        train,
        valid,
        patience,
        checkpoint_seconds,
        watch,
        guarding,
        metrics: Vec::new(),
    }
}

/// What a run is made of.
struct Case<'a> {
    train: Dataset,
    valid: Option<Dataset>,
    patience: Option<u64>,
    watch: Watch,
    training: &'a Training<'a>,
}

impl Case<'_> {
    fn record(
        &self,
        run: &mut RunWriter,
        from: Option<&SavedCheckpoint>,
        listener: &mut dyn Listener,
    ) -> Stop {
        let mut learner = (self.training)(&self.train, from);
        let recording = recording(&self.train, self.valid.as_ref(), self.patience, self.watch);
        run.record(learner.as_mut(), recording, from, listener).unwrap().stop
    }

    fn start(&self, path: &Path, listener: &mut dyn Listener) -> Stop {
        let mut run = RunDirectory::create(path, Overwrite::No).unwrap();
        run.write_config("").unwrap();
        self.record(&mut run, None, listener)
    }

    /// Goes on from the last checkpoint to the end.
    fn resume(&self, path: &Path) -> (Stop, SavedCheckpoint) {
        let mut run = RunDirectory::resume(path).unwrap();
        let saved = run.directory().last_checkpoint().unwrap().unwrap();
        assert!(!saved.has_ended());
        run.truncate_events(saved.events_length).unwrap();
        (self.record(&mut run, Some(&saved), &mut Silent), saved)
    }

    /// Interrupts a run after each of its steps in turn; the stages in which it was interrupted.
    fn check(&self, name: &str) -> Vec<Option<Stage>> {
        let folder = Folder::new();
        let whole = folder.join("whole");
        let ended = self.start(&whole, &mut Silent);
        let mut stages = Vec::new();
        for n in 1.. {
            let path = folder.join(&format!("stopped-{n}"));
            let stop = self.start(&path, &mut StopAfter(n));
            if stop != Stop::Cancelled {
                assert_eq!(stop, ended, "{name}");
                assert!(n > 8, "{name} has only {n} steps");
                assert_same(&whole, &path, &format!("{name}, whole again"));
                return stages;
            }
            assert!(!path.join("model.safetensors").exists(), "{name} after {n} steps");
            let (stop, saved) = self.resume(&path);
            assert_eq!(stop, ended, "{name} after {n} steps");
            assert_same(&whole, &path, &format!("{name} after {n} steps"));
            stages.push(saved.checkpoint.stage);
        }
        unreachable!("every run ends")
    }
}

/// Without what the clock said.
pub(crate) fn timeless(mut value: Value) -> Value {
    if let Some(map) = value.as_object_mut() {
        map.remove("seconds");
        map.remove("measuring_seconds");
    }
    value
}

fn events(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("events.jsonl")).unwrap();
    text.lines().map(|line| timeless(serde_json::from_str(line).unwrap())).collect()
}

/// The last checkpoint without what the clock said.
fn last(run: &Path) -> SavedCheckpoint {
    let mut saved = RunDirectory::open(run).unwrap().last_checkpoint().unwrap().unwrap();
    for state in saved.checkpoint.observers.values_mut() {
        *state = timeless(state.take());
    }
    // Times differ in their number of digits.
    SavedCheckpoint { events_length: 0, ..saved }
}

fn assert_same(a: &Path, b: &Path, what: &str) {
    assert_eq!(events(a), events(b), "{what}");
    for name in ["model.safetensors", "checkpoints/best.safetensors"] {
        let bytes = |run: &Path| fs::read(run.join(name)).ok();
        assert!(bytes(a) == bytes(b), "{what}: {name}");
    }
    assert!(last(a).has_ended() && last(a) == last(b), "{what}: the last checkpoint");
}

fn started(mut machine: Machine, data: &Dataset, plan: &Plan) -> Machine {
    initialise(&mut machine, data, plan).unwrap();
    machine
}

/// An RBM whose training ends by patience.
fn with_patience(check: impl FnOnce(&Case<'_>)) {
    let plan =
        Plan { epochs: 12, batch: 6, chains: 5, seed: 5, learning_rate: 0.3, ..Plan::default() };
    let training = as_training(|data, from| {
        let fresh = || started(Rbm::binary(9, 4).unwrap().into_machine(), data, &plan);
        Box::new(match from {
            None => Trainer::new(fresh(), data, &plan).unwrap(),
            Some(saved) => Trainer::resume(&saved.checkpoint, data, &plan).unwrap(),
        })
    });
    let case = Case {
        train: bars(),
        valid: Some(held_back()),
        patience: Some(2),
        watch: Watch::Pseudo,
        training: &training,
    };
    check(&case);
}

#[test]
fn a_machine_with_patience() {
    with_patience(|case| {
        let stages = case.check("RBM");
        // Patience ends it, so both the best score and its age have come through the checkpoints.
        assert!(stages.len() < 36, "patience never ended: {} steps", stages.len());
    });
}

/// Too large to enumerate, so that ladders are carried along.
#[test]
fn a_machine_whose_likelihood_is_watched() {
    let table = synthetic::bars_and_stripes(5, synthetic::Repeats::Counted).unwrap();
    let train = Dataset::new(table, Binarize::None).unwrap();
    let plan = Plan {
        epochs: 6,
        batch: 32,
        chains: 20,
        seed: 5,
        learning_rate: 2.0,
        steer: true,
        ..Plan::default()
    };
    let training = as_training(|data, from| {
        let fresh = || started(Rbm::binary(25, 25).unwrap().into_machine(), data, &plan);
        Box::new(match from {
            None => Trainer::new(fresh(), data, &plan).unwrap(),
            Some(saved) => Trainer::resume(&saved.checkpoint, data, &plan).unwrap(),
        })
    });
    let valid = Some(train.select_rows(&[0, 3, 5, 11, 40]).unwrap());
    let case = Case { train, valid, patience: None, watch: Watch::Likelihood, training: &training };
    case.check("watched RBM");
    let folder = Folder::new();
    let path = folder.join("run");
    let stop = case.start(&path, &mut Silent);
    let confirmed = events(&path).iter().any(|event| event["event"] == "confirmed");
    assert!(confirmed, "{stop:?}");
    // The result is the best validated model, whatever the last one is.
    let run = RunDirectory::open(&path).unwrap();
    assert_eq!(run.model().unwrap(), run.best().unwrap());
}

#[test]
fn the_result_is_the_best_validated_model() {
    with_patience(|case| {
        let folder = Folder::new();
        let path = folder.join("whole");
        case.start(&path, &mut Silent);
        let run = RunDirectory::open(&path).unwrap();
        let (model, best) = (run.model().unwrap().unwrap(), run.best().unwrap().unwrap());
        let (last, saved) = (run.last_checkpoint().unwrap().unwrap(), &best.about);
        assert!(model == best && saved.epoch < last.model().about.epoch, "{saved:?}");
        let found = last.best().unwrap();
        assert_eq!((found.epoch, found.name.as_str()), (saved.epoch, "log_likelihood.valid"));
        // A run that was killed before its model was written gets the same.
        fs::remove_file(path.join("model.safetensors")).unwrap();
        let mut run = RunDirectory::resume(&path).unwrap();
        let concluded = run.conclude(&last, &mut Silent).unwrap();
        assert_eq!((concluded.model, concluded.best), (model, Some(found)));
    });
    // Without validation the last model is the result.
    with_patience(|case| {
        let case = Case {
            train: bars(),
            valid: None,
            patience: None,
            watch: case.watch,
            training: case.training,
        };
        let folder = Folder::new();
        let path = folder.join("whole");
        case.start(&path, &mut Silent);
        let run = RunDirectory::open(&path).unwrap();
        let (model, last) =
            (run.model().unwrap().unwrap(), run.last_checkpoint().unwrap().unwrap());
        assert_eq!(model.body, last.model().body);
        assert!(run.best().unwrap().is_none());
    });
}

/// Deep machines and real data have no pseudo-likelihood: a rough likelihood takes its place.
#[test]
fn patience_acts_where_there_is_no_pseudo_likelihood() {
    let plan =
        Plan { epochs: 30, batch: 6, chains: 5, seed: 5, learning_rate: 0.5, ..Plan::default() };
    let deep = Dbm::binary(9, &[5, 4]).unwrap().into_machine();
    let visible = (Units::Gaussian, 9);
    let real = Rbm::new(visible, (Units::Binary, 14)).unwrap().into_machine();
    for (name, machine, rate) in [("DBM", deep, 0.5), ("Gaussian", real, 0.05)] {
        let plan = Plan { learning_rate: rate, ..plan.clone() };
        let training = as_training(|data, from| {
            let fresh = started(machine.clone(), data, &plan);
            Box::new(match from {
                None => Trainer::new(fresh, data, &plan).unwrap(),
                Some(saved) => Trainer::resume(&saved.checkpoint, data, &plan).unwrap(),
            })
        });
        let case = Case {
            train: bars(),
            valid: Some(held_back()),
            patience: Some(1),
            watch: Watch::Pseudo,
            training: &training,
        };
        let folder = Folder::new();
        let path = folder.join("whole");
        let stop = case.start(&path, &mut Silent);
        let run = RunDirectory::open(&path).unwrap();
        let best = run.last_checkpoint().unwrap().unwrap().best().unwrap();
        assert!(
            ["annealed_likelihood.valid", "log_likelihood.valid"].contains(&best.name.as_str())
        );
        assert_eq!(run.model().unwrap().unwrap().about.epoch, best.epoch, "{name}");
        assert!(matches!(stop, Stop::Observer(_)), "{name}: {stop:?}");
    }
}

/// How a training departs from its plan is part of its checkpoints, and changes what it learns.
#[test]
fn a_machine_that_is_steered() {
    let data = bars();
    let plan = Plan { epochs: 9, batch: 6, chains: 5, seed: 5, steer: true, ..Plan::default() };
    let fresh = || {
        let machine = started(Rbm::binary(9, 4).unwrap().into_machine(), &data, &plan);
        Trainer::new(machine, &data, &plan).unwrap()
    };
    let steps = |trainer: &mut Trainer<'_>, n: usize| {
        for _ in 0..n {
            trainer.step().unwrap();
        }
    };
    let (mut plain, mut steered) = (fresh(), fresh());
    steps(&mut plain, 10);
    steps(&mut steered, 4);
    let mut bodies = vec![plain.body()];
    for tempered in [false, true] {
        steered.steer(Steering { sweeps: 3.0, rate: 0.5, tempered }).unwrap();
        steps(&mut steered, 2);
        let mut resumed = Trainer::resume(&steered.checkpoint(), &data, &plan).unwrap();
        steps(&mut steered, 4);
        steps(&mut resumed, 4);
        assert_eq!(steered.checkpoint(), resumed.checkpoint());
        assert!(!bodies.contains(&steered.body()));
        bodies.push(steered.body());
        let watched = steered.watched().unwrap();
        assert_eq!(watched.model_side.name(), if tempered { "ptt" } else { "pcd" });
    }
}

#[test]
fn a_machine_with_pre_training() {
    let plan =
        Plan { epochs: 2, pretrain_epochs: 2, batch: 6, chains: 5, seed: 5, ..Plan::default() };
    let training = as_training(|data, from| {
        let fresh = started(Dbm::binary(9, &[5, 4]).unwrap().into_machine(), data, &plan);
        Box::new(match from {
            None => Pretrained::new(fresh, data, &plan).unwrap(),
            Some(saved) => Pretrained::resume(fresh, &saved.checkpoint, data, &plan).unwrap(),
        })
    });
    let case = Case {
        train: bars(),
        valid: Some(held_back()),
        patience: None,
        watch: Watch::Pseudo,
        training: &training,
    };
    let stages = case.check("DBM");
    for stage in [Some(Stage::Pretrain(1)), Some(Stage::Pretrain(2)), None] {
        assert!(stages.contains(&stage), "never interrupted in {stage:?}: {stages:?}");
    }
}

#[test]
fn a_network_with_labels_and_refinement() {
    let plan = Plan { epochs: 2, batch: 6, chains: 5, seed: 5, ..Plan::default() };
    let refinement = Plan { rule: Rule::Cd, learning_rate: 0.001, ..plan.clone() };
    let shape = DbnShape { visible: (Units::Binary, 9), hidden: vec![5, 4], n_classes: 2 };
    let training = as_training(|data, from| {
        let shape = shape.clone();
        let learner = match from {
            None => DbnLearner::new(shape, data, &plan, &refinement),
            Some(saved) => DbnLearner::resume(&saved.checkpoint, shape, data, &plan, &refinement),
        };
        Box::new(learner.unwrap())
    });
    let train = bars().with_labels(Labels::from_values([0, 1].repeat(8))).unwrap();
    let case =
        Case { train, valid: None, patience: None, watch: Watch::Pseudo, training: &training };
    let stages = case.check("DBN");
    for stage in [Stage::Layer(1), Stage::Layer(2), Stage::Refine] {
        assert!(stages.contains(&Some(stage)), "never interrupted in {stage}: {stages:?}");
    }
}

/// Asks to stop after some steps, and keeps what it is told.
struct Notes(StopAfter, Vec<String>);

impl Listener for Notes {
    fn note(&mut self, text: &str) {
        self.1.push(text.to_owned());
    }

    fn cancelled(&mut self) -> bool {
        self.0.cancelled()
    }
}

#[test]
fn a_lost_best_model_is_noticed() {
    with_patience(|case| {
        let (folder, best) = (Folder::new(), "checkpoints/best.safetensors");
        let whole = folder.join("whole");
        case.start(&whole, &mut Silent);
        let flip = |path: &Path| {
            let mut bytes = fs::read(path).unwrap();
            let last = bytes.len() - 5;
            bytes[last] ^= 1;
            fs::write(path, bytes).unwrap();
        };
        let damages: [(&str, Damage<'_>); 4] = [
            ("", &|_| {}),
            ("is missing", &|path| fs::remove_file(path).unwrap()),
            ("has changed since it was written", &flip),
            ("cannot be read", &|path| fs::write(path, "half").unwrap()),
        ];
        for (k, (says, damage)) in damages.into_iter().enumerate() {
            let path = folder.join(&format!("stopped-{k}"));
            assert_eq!(case.start(&path, &mut StopAfter(5)), Stop::Cancelled);
            damage(&path.join(best));
            let mut run = RunDirectory::resume(&path).unwrap();
            let saved = run.directory().last_checkpoint().unwrap().unwrap();
            run.truncate_events(saved.events_length).unwrap();
            let mut notes = Notes(StopAfter(u64::MAX), Vec::new());
            case.record(&mut run, Some(&saved), &mut notes);
            let told = notes.1.iter().any(|note| note.contains("the best model so far"));
            assert_eq!(told, !says.is_empty(), "{says}: {:?}", notes.1);
            let about = |note: &&String| !note.contains("the result is the last one");
            let mut about = notes.1.iter().filter(about);
            assert!(about.all(|note| note.contains(says)), "{says}: {:?}", notes.1);
            assert_eq!(events(&whole), events(&path), "{says}: the run itself goes on as it was");
        }
    });
}

/// What happens to a file between two runs.
type Damage<'a> = &'a dyn Fn(&Path);

/// Says what the lifetimes of such a closure are.
fn as_training<F>(training: F) -> F
where
    F: for<'d> Fn(&'d Dataset, Option<&SavedCheckpoint>) -> Box<dyn Learner + 'd>,
{
    training
}
