//! From data to a model, to a file and back; what is left when numbers run away or somebody stops.

use crate::machines::all;
use crate::model::Holed;
use harmonium::data::{Labels, synthetic};
use harmonium::evaluation::log_partition::Settings;
use harmonium::machine::Machine;
use harmonium::model::{Blueprint, Completing, Training};
use harmonium::models::{Bm, Body, Dbm, Lateral, Rbm, ising_torus, with_labels};
use harmonium::optim::Schedule;
use harmonium::progress::{Listener, Silent, Work};
use harmonium::run::{About, Model, Overwrite, RunDirectory, write_uai};
use harmonium::training::{
    DbnLearner, Every, Learner, Numbers, Pretrained, Rule, Trainer, drive, initialise,
};
use harmonium::units::Units;
use harmonium::{Binarize, Dataset, DbnShape, Error, Method, Plan, Sweeps, exact};
use ndarray::Array2;
use std::ops::ControlFlow;
use std::path::PathBuf;

fn bars() -> Dataset {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap();
    Dataset::new(table, Binarize::None).unwrap()
}

fn labelled_bars() -> Dataset {
    let data = bars();
    let classes = (0..data.n_rows()).map(|row| row as u32 % 3).collect();
    data.with_labels(Labels::from_values(classes)).unwrap()
}

fn few() -> Plan {
    Plan { batch: 5, seed: 11, ..Plan::for_epochs(3) }
}

/// The bytes of a model's parameters.
fn bytes(body: Body) -> Vec<u8> {
    Model { body, about: About::default() }.to_bytes().unwrap()
}

/// What a machine becomes under a trainer, without the verb.
fn by_hand(mut machine: Machine, data: &Dataset, plan: &Plan) -> Body {
    initialise(&mut machine, data, plan).unwrap();
    let mut learner: Box<dyn Learner> = if plan.pretrain_epochs > 0 {
        Box::new(Pretrained::new(machine, data, plan).unwrap())
    } else {
        Box::new(Trainer::new(machine, data, plan).unwrap())
    };
    drive(learner.as_mut(), &mut [], &mut Silent).unwrap();
    learner.body()
}

#[test]
fn the_verb_gives_the_model_of_its_learner() {
    let (data, plan) = (bars(), few());
    let deep = Plan { pretrain_epochs: 2, ..few() };
    let rbm = || Rbm::binary(9, 4).unwrap();
    let bm = || Bm::new((Units::Binary, 9), (Units::Binary, 2), Lateral::Both).unwrap();
    let dbm = || Dbm::binary(9, &[4, 3]).unwrap();
    let cases = [
        (rbm().train(&data, &plan), by_hand(rbm().into_machine(), &data, &plan)),
        (bm().train(&data, &plan), by_hand(bm().into_machine(), &data, &plan)),
        (dbm().train(&data, &plan), by_hand(dbm().into_machine(), &data, &plan)),
        (dbm().train(&data, &deep), by_hand(dbm().into_machine(), &data, &deep)),
        (rbm().into_machine().train(&data, &plan), by_hand(rbm().into_machine(), &data, &plan)),
    ];
    for (k, (model, expected)) in cases.into_iter().enumerate() {
        let model = model.unwrap();
        assert!(bytes(model.body.clone()) == bytes(expected), "case {k}");
        assert_eq!((model.about.seed, model.about.epoch), (11, 3), "{k}");
    }
    let shape = DbnShape::binary(9, &[4, 3]);
    let none = Plan { epochs: 0, ..plan.clone() };
    let mut learner = DbnLearner::new(shape.clone(), &data, &plan, &none).unwrap();
    drive(&mut learner, &mut [], &mut Silent).unwrap();
    let model = shape.train(&data, &plan).unwrap();
    assert!(bytes(model.body) == bytes(Body::Dbn(learner.dbn().unwrap())));
}

#[test]
fn a_model_remembers_its_data() {
    let data = labelled_bars();
    let machine = with_labels(Rbm::binary(9, 4).unwrap().machine(), 3).unwrap();
    let shape = DbnShape { n_classes: 3, ..DbnShape::binary(9, &[4, 3]) };
    for model in [machine.train(&data, &few()).unwrap(), shape.train(&data, &few()).unwrap()] {
        let memory = &model.about.data;
        assert_eq!(memory.classes, ["0", "1", "2"]);
        assert_eq!((memory.image, memory.rows), (Some((3, 3)), data.n_rows()));
        let mut means: Vec<f64> = data.column_means();
        means.extend(data.class_shares());
        assert_eq!(memory.means.len(), means.len());
        for (a, b) in memory.means.iter().zip(&means) {
            assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        }
        let schema = memory.schema.as_ref().unwrap();
        assert_eq!((schema.n_columns(), schema.classes().len()), (9, 3));
        assert_eq!(model.sample(2, Sweeps(3), 0).unwrap().nrows(), 2);
        assert_eq!(model.of_class("2").unwrap().sample(2, Sweeps(3), 0).unwrap().nrows(), 2);
    }
}

fn is_finite(machine: &Machine) -> bool {
    let layers = machine.layers().iter();
    let layers = layers.flat_map(|l| l.bias.iter().chain(&l.offset).chain(&l.own));
    let weights = machine.couplings().iter().flat_map(|c| c.weights.entries());
    layers.chain(weights).all(|x| x.is_finite())
}

fn parts_are_finite(body: &Body) -> bool {
    match body {
        Body::Machine(machine) => is_finite(machine),
        Body::Dbn(dbn) => {
            let parts = dbn.directed().iter();
            let mut parts = parts.flat_map(|d| [&d.generative, &d.recognition]);
            is_finite(dbn.top()) && parts.all(is_finite)
        }
        other => panic!("{other:?}"),
    }
}

/// Numbers run away in every arithmetic and with every rule; the model that is left does not hold
/// what ran away.
#[test]
fn divergence_leaves_the_last_good_model() {
    let data = bars();
    let mut diverged = 0;
    for precision in [Numbers::F64, Numbers::F32, Numbers::I16] {
        for rule in [Rule::Pcd, Rule::Cd, Rule::Exact] {
            for rate in [1e30, 1e200, 1e308] {
                let plan = Plan { learning_rate: rate, rule, precision, ..few() };
                let what = format!("{precision:?}, {rule:?}, a rate of {rate:e}");
                let blueprints = [
                    Blueprint::from(Rbm::binary(9, 4).unwrap()),
                    Blueprint::from(Dbm::binary(9, &[4, 3]).unwrap()),
                    Blueprint::from(DbnShape::binary(9, &[4, 3])),
                ];
                for blueprint in blueprints {
                    let training = Training::new(blueprint, &data, &plan);
                    match training.run(&mut [], &mut Silent) {
                        Ok(model) => {
                            assert!(parts_are_finite(&model.body), "{what}: finished");
                        }
                        Err(failed) => {
                            diverged += 1;
                            let error = &failed.error;
                            assert!(matches!(error, Error::Diverged { .. }), "{what}: {error}");
                            let model = failed.model.expect("the last good model");
                            assert!(parts_are_finite(&model.body), "{what}: {error}");
                            assert!(Model::from_bytes(&model.to_bytes().unwrap()).is_ok());
                        }
                    }
                }
            }
        }
    }
    assert!(diverged >= 10, "only {diverged} trainings diverged");
}

/// Weights that run away where nothing is centered leave the biases as they are; every model that an
/// epoch shows, and the one that is left, is finite all the same.
#[test]
fn weights_that_run_away_without_centering_are_noticed() {
    let data = bars();
    let mut diverged = 0;
    for precision in [Numbers::F64, Numbers::F32, Numbers::I16] {
        for rule in [Rule::Pcd, Rule::Cd, Rule::Exact] {
            for (learning_rate, l2) in [(0.01, 1000.0), (1e5, 1.0), (1e30, 0.0)] {
                let plan =
                    Plan { learning_rate, l2, center: false, epochs: 40, rule, precision, ..few() };
                let what = format!("{precision:?}, {rule:?}, a rate of {learning_rate:e}, {l2}");
                let blueprints = [
                    Blueprint::from(Rbm::binary(9, 4).unwrap()),
                    Blueprint::from(Dbm::binary(9, &[4, 3]).unwrap()),
                    Blueprint::from(DbnShape::binary(9, &[4, 3])),
                ];
                for blueprint in blueprints {
                    let mut seen = Every::new(1, |view| {
                        let report = view.report;
                        assert!(report.gradient_norm.is_finite(), "{what}: {report:?}");
                        assert!(report.update_ratio.is_finite(), "{what}: {report:?}");
                        assert!(parts_are_finite(&view.body()), "{what}: epoch {}", view.epoch());
                        ControlFlow::Continue(())
                    });
                    let training = Training::new(blueprint, &data, &plan);
                    let model = match training.run(&mut [&mut seen], &mut Silent) {
                        Ok(model) => model,
                        Err(failed) => {
                            diverged += 1;
                            let error = &failed.error;
                            assert!(matches!(error, Error::Diverged { .. }), "{what}: {error}");
                            *failed.model.expect("the last good model")
                        }
                    };
                    assert!(parts_are_finite(&model.body), "{what}");
                    assert!(Model::from_bytes(&model.to_bytes().unwrap()).is_ok(), "{what}");
                }
            }
        }
    }
    assert!(diverged >= 40, "only {diverged} trainings diverged");
}

/// Stops after a number of epochs.
struct StopsAfter(u64);

impl Listener for StopsAfter {
    fn at(&mut self, work: Work<'_>) {
        self.0 -= u64::from(work.done > 0 && self.0 > 0);
    }

    fn cancelled(&mut self) -> bool {
        self.0 == 0
    }
}

#[test]
fn a_cancelled_training_keeps_its_model() {
    let data = bars();
    // Nothing in this plan depends on how many epochs there are.
    let plan = Plan { decay: Schedule::Constant(1.0), ..few() };
    let training = Training::new(Rbm::binary(9, 4).unwrap(), &data, &plan);
    let stopped = training.run(&mut [], &mut StopsAfter(1)).unwrap();
    assert_eq!(stopped.about.epoch, 1);
    let shorter = Plan { epochs: 1, ..plan.clone() };
    let one = Training::new(Rbm::binary(9, 4).unwrap(), &data, &shorter);
    let one = one.run(&mut [], &mut Silent).unwrap();
    assert!(bytes(stopped.body) == bytes(one.body), "it is the model after one epoch");
}

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("harmonium-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Everything that can be asked, as bits.
fn answers(model: &Model, data: &Dataset) -> Vec<u64> {
    let mut all: Vec<f64> = Vec::new();
    let mut add = |values: Array2<f64>| all.extend(values.iter());
    add(model.sample(5, Sweeps(10), 3).unwrap());
    let completing = Completing { sweeps: Some(10), seed: 4, ..Completing::default() };
    if let Ok(found) = model.complete_with(data, None, &completing, &mut Silent) {
        add(found.values);
    }
    if let Ok(found) = model.features(data) {
        add(found);
    }
    let portrait = model.portrait(None, 1, None, &mut Silent).unwrap();
    all.extend(portrait.model_samples.concat());
    all.extend(portrait.filters.iter().flat_map(|f| f.tiles.concat()));
    all.extend(model.score(data, Method::Exact).unwrap().rows);
    all.push(model.log_partition(&Settings::default(), &mut Silent).unwrap().log_z);
    all.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn a_model_that_was_saved_gives_the_same_answers() {
    let folder = Folder::new("answers");
    for (k, (name, machine)) in all().into_iter().enumerate() {
        let (model, data) = (Model::from(machine.clone()), Holed::new(&machine, 9));
        let data = data.data(&machine, 1);
        let path = folder.0.join(format!("{k}.safetensors"));
        model.save(&path).unwrap();
        let loaded = Model::load(&path).unwrap();
        assert_eq!(loaded, model, "{name}");
        assert_eq!(answers(&loaded, &data), answers(&model, &data), "{name}");
        let opened = Model::open(path.to_str().unwrap(), &mut Silent).unwrap();
        assert_eq!(opened, model, "{name}");
        assert!(model.save(&path).is_err(), "{name}: a file is not replaced unasked");
    }
    for (k, (name, dbn)) in crate::dbn::networks().into_iter().enumerate() {
        let data = crate::dbn::dataset(&crate::dbn::all_values(dbn.layer(0)));
        let model = Model::from(dbn);
        let path = folder.0.join(format!("network-{k}.safetensors"));
        model.save(&path).unwrap();
        let loaded = Model::load(&path).unwrap();
        assert_eq!(answers(&loaded, &data), answers(&model, &data), "{name}");
    }
}

/// Keeps what it is told.
#[derive(Default)]
struct Notes(Vec<String>);

impl Listener for Notes {
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

#[test]
fn names_files_and_runs_are_opened() {
    let folder = Folder::new("open");
    let named = Model::open("ising:3,0.4", &mut Silent).unwrap();
    let torus = ising_torus(3, 0.4).unwrap().into_machine();
    assert_eq!(named.body, Body::Machine(torus.clone()));
    assert!(matches!(Model::open("ising:3", &mut Silent), Err(Error::BuiltIn { .. })));

    let uai = folder.0.join("torus.UAI");
    std::fs::write(&uai, write_uai(&torus).unwrap()).unwrap();
    let read = Model::open(uai.to_str().unwrap(), &mut Silent).unwrap();
    let settings = Settings::default();
    let log_z = read.log_partition(&settings, &mut Silent).unwrap().log_z;
    let expected = exact::log_partition(&torus).unwrap();
    assert!((log_z - expected).abs() < 1e-9, "{log_z} is not {expected}");

    let model = Rbm::binary(9, 4).unwrap().train(&bars(), &few()).unwrap();
    let run = folder.0.join("run");
    let mut writer = RunDirectory::create(&run, Overwrite::No).unwrap();
    writer.save_best(&model).unwrap();
    writer.finish(&model).unwrap();
    drop(writer);
    let mut notes = Notes::default();
    assert_eq!(Model::open(run.to_str().unwrap(), &mut notes).unwrap(), model);
    assert_eq!(notes.0, Vec::<String>::new(), "a finished run needs no note");

    let gone = folder.0.join("nowhere");
    assert!(matches!(Model::open(gone.to_str().unwrap(), &mut Silent), Err(Error::File { .. })));
}
