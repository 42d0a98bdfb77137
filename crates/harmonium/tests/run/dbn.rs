//! Deep belief networks in files, whole, damaged and hostile; and runs that stop in any stage.

use crate::folder::Folder;
use harmonium::Error;
use harmonium::models::{Dbn, Directed};
use harmonium::progress::Silent;
use harmonium::run::{About, Event, Model, Overwrite, RunDirectory, RunWriter, SavedCheckpoint};
use harmonium::training::{
    DbnLearner, DbnShape, Learner, Observer, Plan, Stop, UpDown, View, drive,
};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Labels, synthetic};
use serde_json::{Value, json};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

/// Updates between two checkpoints: no divisor of the 4 updates of an epoch.
const EVERY: u64 = 3;

fn data() -> Dataset {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    data.with_labels(Labels::from_values([0, 1].repeat(8))).unwrap()
}

fn plan() -> Plan {
    Plan { epochs: 3, batch: 4, chains: 6, ..Plan::default() }
}

fn shape() -> DbnShape {
    DbnShape { visible: (Units::Binary, 9), hidden: vec![5, 4, 3], n_classes: 2 }
}

fn stacked() -> Dbn {
    let data = data();
    let mut learner = DbnLearner::new(shape(), &data, &plan(), &Plan::for_epochs(0)).unwrap();
    drive(&mut learner, &mut [], &mut Silent).unwrap();
    learner.dbn().unwrap()
}

fn refined() -> UpDown<'static> {
    let data: &'static Dataset = Box::leak(Box::new(data()));
    let mut up_down = UpDown::new(stacked(), data, &plan()).unwrap();
    for _ in 0..5 {
        up_down.step().unwrap();
    }
    up_down
}

fn about() -> About {
    About { seed: 3, step: 12, epoch: 4, config: json!({"b": 1, "a": 2}), ..About::default() }
}

fn model(dbn: Dbn) -> Model {
    Model { body: dbn.into(), about: about() }
}

#[test]
fn networks_come_back_to_the_bit() {
    for dbn in [stacked(), refined().dbn().clone()] {
        let model = model(dbn);
        let bytes = model.to_bytes().unwrap();
        assert_eq!(Model::from_bytes(&bytes).unwrap(), model);
        assert_eq!(Model::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
        assert_eq!(model.body.kind(), "dbn");
    }
}

#[test]
fn what_is_tied_is_written_once() {
    let tied = model(stacked()).to_bytes().unwrap();
    let untied = model(refined().dbn().clone()).to_bytes().unwrap();
    assert!(untied.len() > tied.len() + 8 * (9 * 5 + 5 * 4));
}

#[test]
fn checkpoints_come_back_to_the_bit() {
    let mut checkpoint = refined().checkpoint();
    checkpoint.observers.insert("clock".into(), json!({"seconds": 1.5}));
    let saved = SavedCheckpoint { checkpoint, about: about(), events_length: 77 };
    let bytes = saved.to_bytes().unwrap();
    assert_eq!(SavedCheckpoint::from_bytes(&bytes).unwrap(), saved);
    assert_eq!(Model::from_bytes(&bytes).unwrap(), saved.model());
    let model = model(stacked()).to_bytes().unwrap();
    assert!(SavedCheckpoint::from_bytes(&model).is_err());
}

/// The error for a file whose header and description were changed.
fn changed(change: impl FnOnce(&mut Value, &mut Value)) -> Error {
    let bytes = model(refined().dbn().clone()).to_bytes().unwrap();
    let n = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + n]).unwrap();
    let text = header["__metadata__"]["harmonium"].as_str().unwrap();
    let mut description: Value = serde_json::from_str(text).unwrap();
    change(&mut header, &mut description);
    header["__metadata__"]["harmonium"] = Value::String(description.to_string());
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    Model::from_bytes(&[&length[..], header.as_bytes(), &bytes[8 + n..]].concat()).unwrap_err()
}

#[test]
fn hostile_files_are_errors_that_say_where() {
    let says = |error: Error, words: &str| {
        let text = error.to_string();
        assert!(text.contains(words) && !error.hint().is_empty(), "{text:?} lacks {words:?}");
    };
    says(changed(|_, d| d["kind"] = json!("machine")), "does not describe a machine");
    says(changed(|_, d| d["format_version"] = json!(99)), "version 99");
    says(changed(|_, d| d["surprise"] = json!(1)), "surprise");
    says(changed(|_, d| d["directed"] = json!([])), "belongs to no layer");
    says(changed(|_, d| d["top"]["layers"][0]["n_units"] = json!(1u64 << 60)), "in `top`");
    says(changed(|_, d| d["top"]["layers"][0]["name"] = json!("other")), "in `top`");
    says(
        changed(|_, d| d["directed"][1]["recognition"]["layers"][0]["n_units"] = json!(7)),
        "in `directed.1.recognition`",
    );
    says(changed(|_, d| d["directed"][0]["generative"]["layers"][1]["units"] = json!("spin")), "");
    says(changed(|_, d| d["directed"] = json!(vec![d["directed"][0].clone(); 200])), "200");
    says(
        changed(|h, _| {
            let weights = h.as_object_mut().unwrap().remove("top.layers.labels.bias").unwrap();
            h["elsewhere"] = weights;
        }),
        "missing",
    );
}

#[test]
fn every_prefix_is_an_error() {
    let bytes = model(stacked()).to_bytes().unwrap();
    for n in (0..bytes.len()).step_by(7) {
        assert!(Model::from_bytes(&bytes[..n]).is_err(), "{n} bytes");
    }
}

#[test]
fn a_file_whose_layers_do_not_meet_is_no_network() {
    let (directed, top) = stacked().into_parts();
    let swapped: Vec<Directed> = directed.iter().rev().cloned().collect();
    assert!(Dbn::new(swapped, top).is_err());
}

/// Writes an event per step and a checkpoint every few, and dies after some steps.
struct Scribe<'r> {
    run: &'r mut RunWriter,
    /// Steps left until it dies.
    left: Option<u64>,
}

impl Observer for Scribe<'_> {
    fn updated(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        let (stage, report) = (view.stage(), view.report);
        self.run.append(&Event::Other(json!({"stage": stage, "report": report})))?;
        if report.step.is_multiple_of(EVERY) {
            self.run.save_checkpoint(view.checkpoint(), about())?;
        }
        self.left = self.left.map(|left| left.saturating_sub(1));
        Ok(match self.left {
            Some(0) => ControlFlow::Break("died".into()),
            _ => ControlFlow::Continue(()),
        })
    }
}

/// Trains all stages from where the run is; dies after some steps.
fn go(path: &Path, dies_after: Option<u64>) -> bool {
    let data = data();
    let (mut run, saved) = if path.exists() {
        let mut run = RunDirectory::resume(path).unwrap();
        let saved = run.directory().last_checkpoint().unwrap();
        run.truncate_events(saved.as_ref().map_or(0, |s| s.events_length)).unwrap();
        (run, saved)
    } else {
        let mut run = RunDirectory::create(path, Overwrite::No).unwrap();
        run.write_config("# the plan\n").unwrap();
        (run, None)
    };
    let (plan, shape) = (plan(), shape());
    let learner = match &saved {
        Some(saved) => DbnLearner::resume(&saved.checkpoint, shape, &data, &plan, &plan),
        None => DbnLearner::new(shape, &data, &plan, &plan),
    };
    let mut learner = learner.unwrap();
    let mut scribe = Scribe { run: &mut run, left: dies_after };
    if drive(&mut learner, &mut [&mut scribe], &mut Silent).unwrap() != Stop::Finished {
        return false;
    }
    run.finish(&model(learner.dbn().unwrap())).unwrap();
    true
}

#[test]
fn a_run_that_dies_in_any_stage_ends_as_one_that_never_did() {
    let whole = Folder::new();
    let whole = whole.path().join("run");
    assert!(go(&whole, None));
    let all = |run: &Path| {
        ["model.safetensors", "events.jsonl", "checkpoints/last.safetensors"]
            .map(|name| fs::read(run.join(name)).unwrap())
    };
    for pace in [1, 5, 11, 17, 26] {
        let folder = Folder::new();
        let path = folder.path().join("run");
        let mut lives = 0;
        // At least as far as the next checkpoint, or it would never end.
        while !go(&path, Some(pace.max(EVERY + 1) + lives % 2)) {
            lives += 1;
            assert!(lives < 100, "it never ends");
        }
        assert!(lives > 0);
        assert_eq!(all(&whole), all(&path), "after {lives} lives of {pace} steps");
    }
}
