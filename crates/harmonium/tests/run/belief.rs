//! Deep belief networks in files, whole, damaged and hostile; and runs that stop in any stage.

use crate::folder::Folder;
use harmonium::Error;
use harmonium::models::{Dbn, Directed};
use harmonium::run::{
    About, DbnModel, Event, Model, Overwrite, RunDirectory, RunWriter, SavedDbnCheckpoint, Stored,
};
use harmonium::training::{
    DbnCheckpoint, DbnShape, Observer, Plan, Stack, Stage, Stop, Trainer, UpDown, View, train_dbn,
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
    train_dbn(&Stack::new(shape(), &data, &plan()).unwrap(), &mut []).unwrap()
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

#[test]
fn networks_come_back_to_the_bit() {
    for dbn in [stacked(), refined().dbn().clone()] {
        let model = DbnModel { dbn, about: about() };
        let bytes = model.to_bytes().unwrap();
        assert_eq!(DbnModel::from_bytes(&bytes).unwrap(), model);
        assert_eq!(DbnModel::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
        assert_eq!(Stored::from_bytes(&bytes).unwrap(), Stored::Dbn(Box::new(model)));
        let error = Model::from_bytes(&bytes).unwrap_err();
        assert!(error.to_string().contains("`dbn`"), "{error}");
    }
}

#[test]
fn what_is_tied_is_written_once() {
    let tied = DbnModel { dbn: stacked(), about: about() }.to_bytes().unwrap();
    let untied = DbnModel { dbn: refined().dbn().clone(), about: about() }.to_bytes().unwrap();
    assert!(untied.len() > tied.len() + 8 * (9 * 5 + 5 * 4));
}

#[test]
fn checkpoints_come_back_to_the_bit() {
    let checkpoint = refined().checkpoint();
    let extra = json!({"seconds": 1.5});
    let saved = SavedDbnCheckpoint { checkpoint, about: about(), events_length: 77, extra };
    let bytes = saved.to_bytes().unwrap();
    assert_eq!(SavedDbnCheckpoint::from_bytes(&bytes).unwrap(), saved);
    assert_eq!(DbnModel::from_bytes(&bytes).unwrap().dbn, saved.checkpoint.dbn);
    let model = DbnModel { dbn: stacked(), about: about() }.to_bytes().unwrap();
    assert!(SavedDbnCheckpoint::from_bytes(&model).is_err());
}

/// The error for a file whose header and description were changed.
fn changed(change: impl FnOnce(&mut Value, &mut Value)) -> Error {
    let bytes = DbnModel { dbn: refined().dbn().clone(), about: about() }.to_bytes().unwrap();
    let n = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + n]).unwrap();
    let text = header["__metadata__"]["harmonium"].as_str().unwrap();
    let mut description: Value = serde_json::from_str(text).unwrap();
    change(&mut header, &mut description);
    header["__metadata__"]["harmonium"] = Value::String(description.to_string());
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    DbnModel::from_bytes(&[&length[..], header.as_bytes(), &bytes[8 + n..]].concat()).unwrap_err()
}

#[test]
fn hostile_files_are_errors_that_say_where() {
    let says = |error: Error, words: &str| {
        let text = error.to_string();
        assert!(text.contains(words) && !error.hint().is_empty(), "{text:?} lacks {words:?}");
    };
    says(changed(|_, d| d["kind"] = json!("machine")), "only `dbn`");
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
    let bytes = DbnModel { dbn: stacked(), about: about() }.to_bytes().unwrap();
    for n in (0..bytes.len()).step_by(7) {
        assert!(Stored::from_bytes(&bytes[..n]).is_err(), "{n} bytes");
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
    dbn: &'r Dbn,
    /// Steps left until it dies.
    left: &'r mut Option<u64>,
}

/// Counts a step; whether to go on.
fn goes_on(left: &mut Option<u64>) -> bool {
    if let Some(left) = left {
        *left = left.saturating_sub(1);
    }
    *left != Some(0)
}

impl Observer for Scribe<'_> {
    fn updated(&mut self, view: &View<'_, '_>) -> ControlFlow<String> {
        self.run
            .append(&Event::Other(json!({"stage": self.dbn.depth(), "report": view.report})))
            .unwrap();
        if view.report.step.is_multiple_of(EVERY) {
            let checkpoint = DbnCheckpoint::of_layer(self.dbn, view.checkpoint()).unwrap();
            self.run.save_dbn_checkpoint(checkpoint, about(), Value::Null).unwrap();
        }
        if goes_on(self.left) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break("died".into())
        }
    }
}

/// Trains all stages from where the run is; dies after some steps.
fn go(path: &Path, dies_after: Option<u64>) -> bool {
    let (data, mut left) = (data(), dies_after);
    let stack = Stack::new(shape(), &data, &plan()).unwrap();
    let (mut run, saved) = if path.exists() {
        let mut run = RunDirectory::resume(path).unwrap();
        let saved = run.directory().last_dbn_checkpoint().unwrap();
        run.truncate_events(saved.as_ref().map_or(0, |s| s.events_length)).unwrap();
        (run, saved.map(|s| s.checkpoint))
    } else {
        let mut run = RunDirectory::create(path, Overwrite::No).unwrap();
        run.write_config("# the plan\n").unwrap();
        (run, None)
    };
    let mut refine_from = saved.clone().filter(|c| c.stage == Stage::Refine);
    let mut dbn = saved.as_ref().map_or_else(|| stack.first().unwrap(), |c| c.dbn.clone());
    let mut from = saved.filter(|c| c.stage != Stage::Refine).map(|c| c.to_layer());
    while refine_from.is_none() {
        let samples = stack.data(&dbn);
        let plan = stack.plan(dbn.depth());
        let trainer = match from.take() {
            Some(c) => Trainer::resume(&c, samples.presented(), &plan),
            None => {
                Trainer::new(stack.initial(&dbn, &samples).unwrap(), samples.presented(), &plan)
            }
        };
        let mut trainer = trainer.unwrap();
        let mut scribe = Scribe { run: &mut run, dbn: &dbn, left: &mut left };
        if trainer.run(&mut [&mut scribe]).unwrap() != Stop::Finished {
            return false;
        }
        let (directed, _) = dbn.into_parts();
        dbn = Dbn::new(directed, trainer.machine().clone()).unwrap();
        if stack.is_complete(&dbn) {
            break;
        }
        dbn = stack.next(dbn).unwrap();
    }
    let mut up_down = match refine_from.take() {
        Some(c) => UpDown::resume(&c, &data, &plan()).unwrap(),
        None => UpDown::new(dbn, &data, &plan()).unwrap(),
    };
    while !up_down.is_done() {
        let report = up_down.step().unwrap();
        run.append(&Event::Other(json!({"stage": "refine", "report": report}))).unwrap();
        if report.step.is_multiple_of(EVERY) {
            run.save_dbn_checkpoint(up_down.checkpoint(), about(), Value::Null).unwrap();
        }
        if !goes_on(&mut left) {
            return false;
        }
    }
    run.finish_dbn(&DbnModel { dbn: up_down.dbn().clone(), about: about() }).unwrap();
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
