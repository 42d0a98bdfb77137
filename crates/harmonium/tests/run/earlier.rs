//! Files of version 0.1.0: they load, say the same, and runs go on from them. The folder `files` says
//! which commands wrote them; the numbers are those that the same program printed.

use crate::folder::Folder;
use crate::record::timeless;
use harmonium::evaluation::dbn::final_bounds;
use harmonium::evaluation::tracking::Watch;
use harmonium::exact;
use harmonium::models::{Body, Dbm, Rbm};
use harmonium::progress::Silent;
use harmonium::run::{Model, Overwrite, Recording, RunDirectory, SavedCheckpoint};
use harmonium::training::{
    DbnLearner, DbnShape, Guarding, Learner, Plan, Stage, Trainer, drive, train,
};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Labels, synthetic};
use safetensors::SafeTensors;
use serde_json::{Value, json};
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    let files = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/run/files");
    files.join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(path(&format!("{name}.safetensors"))).unwrap()
}

fn model(name: &str) -> Model {
    Model::load(path(&format!("{name}.safetensors"))).unwrap()
}

fn bars() -> Dataset {
    let table = synthetic::bars_and_stripes(2, synthetic::Repeats::Counted).unwrap();
    Dataset::new(table, Binarize::None).unwrap()
}

fn labelled() -> Dataset {
    bars().with_labels(Labels::from_values([0, 1].repeat(4))).unwrap()
}

fn plan(epochs: u64) -> Plan {
    Plan { epochs, batch: 4, chains: 4, seed: 3, ..Plan::default() }
}

fn refinement(epochs: u64) -> Plan {
    Plan { learning_rate: 0.001, ..plan(epochs) }
}

fn shape(n_classes: usize) -> DbnShape {
    DbnShape { visible: (Units::Binary, 4), hidden: vec![3, 2], n_classes }
}

/// Every tensor of a file, by name.
fn tensors(bytes: &[u8]) -> Vec<(String, Vec<usize>, Vec<u8>)> {
    let file = SafeTensors::deserialize(bytes).unwrap();
    let mut all: Vec<_> = file
        .iter()
        .map(|(name, t)| (name.to_owned(), t.shape().to_vec(), t.data().to_vec()))
        .collect();
    all.sort();
    all
}

#[test]
fn models_are_written_again_as_they_were() {
    let names = [
        "rbm",
        "labels",
        "gaussian",
        "categorical",
        "bm",
        "sparse",
        "dbm",
        "dbn-tied",
        "dbn-refined",
        "rbm-3000",
        "dbn-3000",
    ];
    for name in names {
        let bytes = bytes(name);
        let again = Model::from_bytes(&bytes).unwrap().to_bytes().unwrap();
        assert_eq!(tensors(&again), tensors(&bytes), "{name}");
        assert!(again == bytes, "{name}: the description differs");
    }
}

#[test]
fn checkpoints_are_written_again_with_the_same_numbers() {
    for name in ["rbm-interrupted", "dbn-interrupted-layer", "dbn-interrupted-refine"] {
        let bytes = bytes(name);
        let saved = SavedCheckpoint::from_bytes(&bytes).unwrap();
        assert_eq!(tensors(&saved.to_bytes().unwrap()), tensors(&bytes), "{name}");
        assert!(!saved.has_ended() && saved.events_length > 0, "{name}");
        let seconds = &saved.checkpoint.observers["recorder"]["seconds"];
        assert!(seconds.as_f64().unwrap() > 0.0, "{name}");
        let again = SavedCheckpoint::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        assert_eq!(again, saved, "{name}");
    }
}

#[test]
fn what_is_remembered_of_the_data_is_read() {
    let data = model("labels").about.data;
    assert_eq!((data.rows, data.hash.as_str()), (8, "fff438fac23ac9a3"));
    assert_eq!(data.classes, ["0", "1"]);
    assert_eq!(data.reading.binarize.as_deref(), Some("none"));
    assert_eq!(data.means(6), Some(vec![0.5; 6]));
    assert_eq!(model("gaussian").about.config["visible"], json!("gaussian"));
}

#[test]
fn the_partition_functions_are_the_same() {
    for (name, expected) in [
        ("rbm", 4.858_368_673_742_977),
        ("labels", 4.860_165_519_687_142),
        ("gaussian", 3.465_652_524_659_078_4),
        ("categorical", 1.386_504_148_075_330_8),
        ("bm", 4.166_939_843_662_742_5),
        ("sparse", 8.456_456_373_638_867),
        ("dbm", 6.196_417_864_477_582),
        ("rbm-3000", 6.005_132_083_140_293_5),
    ] {
        let found = exact::log_partition(model(name).body.top().unwrap()).unwrap();
        assert!((found - expected).abs() < 1e-12, "{name}: {found} is not {expected}");
    }
}

#[test]
fn the_bounds_of_networks_are_the_same() {
    for (name, data, expected) in [
        ("dbn-tied", bars(), [-2.849_295_839_771_109_2, -2.794_110_951_785_515_6]),
        ("dbn-refined", labelled(), [-3.542_290_431_985_584, -3.487_263_677_121_640_5]),
    ] {
        let Body::Dbn(dbn) = model(name).body else { panic!("{name} is a network") };
        let found = final_bounds(&dbn, &data).unwrap();
        for (found, expected) in found.iter().zip(expected) {
            assert!((found.value - expected).abs() < 1e-12, "{name}: {found:?} is not {expected}");
        }
    }
}

#[test]
fn the_same_command_gives_the_same_model() {
    let (rbm, data) = (Rbm::binary(4, 3).unwrap().into_machine(), bars());
    let trained = train(rbm, &data, &plan(4), &mut []).unwrap().machine;
    assert_eq!(Body::from(trained), model("rbm").body);
    let dbm = Dbm::binary(4, &[3, 2]).unwrap().into_machine();
    let pretrained = Plan { pretrain_epochs: 2, ..plan(4) };
    let trained = train(dbm, &data, &pretrained, &mut []).unwrap().machine;
    assert_eq!(Body::from(trained), model("dbm").body);
    let mut tied = DbnLearner::new(shape(0), &data, &plan(4), &refinement(0)).unwrap();
    drive(&mut tied, &mut [], &mut Silent).unwrap();
    assert_eq!(tied.body(), model("dbn-tied").body);
}

#[test]
fn the_same_command_gives_the_same_events() {
    let (folder, data) = (Folder::new(), labelled());
    let mut run = RunDirectory::create(folder.join("run"), Overwrite::No).unwrap();
    let mut learner = DbnLearner::new(shape(2), &data, &plan(4), &refinement(4)).unwrap();
    let expected = model("dbn-refined");
    let recording = Recording {
        about: expected.about.clone(),
        train: &data,
        valid: None,
        patience: None,
        checkpoint_seconds: 30.0,
        watch: Watch::Pseudo,
        guarding: Guarding::Warn,
        metrics: Vec::new(),
    };
    let recorded = run.record(&mut learner, recording, None, &mut Silent).unwrap();
    assert_eq!(recorded.model, expected);
    // Version 0.1.0 divided the variance behind a standard error by n, not by n - 1.
    let same_definition = |mut event: Value| {
        event.as_object_mut().unwrap().retain(|key, _| !key.ends_with(".std_error"));
        event
    };
    let lines = |path: PathBuf| -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        let event = |line| same_definition(timeless(serde_json::from_str(line).unwrap()));
        text.lines().map(event).collect()
    };
    assert_eq!(lines(folder.join("run/events.jsonl")), lines(path("dbn-refined.jsonl")));
}

#[test]
fn training_goes_on_from_old_checkpoints() {
    let saved = SavedCheckpoint::from_bytes(&bytes("rbm-interrupted")).unwrap();
    let data = bars();
    let mut trainer = Trainer::resume(&saved.checkpoint, &data, &plan(3000)).unwrap();
    assert_eq!((trainer.progress().epoch, trainer.progress().step), (1757, 3515));
    trainer.run(&mut []).unwrap();
    assert_eq!(trainer.body(), model("rbm-3000").body);
    let data = labelled();
    for (name, stage) in
        [("dbn-interrupted-layer", Stage::Layer(2)), ("dbn-interrupted-refine", Stage::Refine)]
    {
        let checkpoint = SavedCheckpoint::from_bytes(&bytes(name)).unwrap().checkpoint;
        assert_eq!(checkpoint.stage, Some(stage));
        let (plan, refinement) = (plan(3000), refinement(3000));
        let learner = DbnLearner::resume(&checkpoint, shape(2), &data, &plan, &refinement);
        let mut learner = learner.unwrap();
        drive(&mut learner, &mut [], &mut Silent).unwrap();
        assert_eq!(learner.body(), model("dbn-3000").body, "{name}");
    }
}
