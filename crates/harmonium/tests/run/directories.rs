//! Run directories: who may write where, and what is left after a kill.

use crate::folder::{Folder, names};
use crate::machines::model;
use harmonium::Error;
use harmonium::estimators::Snapshot;
use harmonium::run::{Event, Model, Overwrite, RunDirectory, RunWriter};
use harmonium::training::Checkpoint;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;

fn checkpoint(epoch: u64) -> Checkpoint {
    Checkpoint {
        body: model().body,
        stage: None,
        epoch,
        batches_done: 0,
        state: Snapshot::default(),
        observers: BTreeMap::new(),
    }
}

fn save(run: &mut RunWriter, epoch: u64) {
    run.save_checkpoint(checkpoint(epoch), model().about).unwrap();
}

/// A finished run with everything in it.
fn finished(path: &std::path::Path) {
    let mut run = RunDirectory::create(path, Overwrite::No).unwrap();
    run.write_config("epochs = 3\n").unwrap();
    run.append(&Event::Other(json!({"step": 1, "a": 2}))).unwrap();
    save(&mut run, 1);
    run.save_best(&model()).unwrap();
    run.finish(&model()).unwrap();
}

#[test]
fn a_run_has_the_promised_files() {
    let folder = Folder::new();
    let path = folder.join("deep/run");
    finished(&path);
    let visible = ["checkpoints", "events.jsonl", "model.safetensors", "run.toml"];
    assert_eq!(names(&path), [&[".lock"][..], &visible].concat());
    assert_eq!(names(&path.join("checkpoints")), ["best.safetensors", "last.safetensors"]);
    assert_eq!(fs::read_to_string(path.join("events.jsonl")).unwrap(), "{\"a\":2,\"step\":1}\n");
    assert_eq!(fs::read(path.join(".lock")).unwrap(), b"", "no number of a process stays");
    let run = RunDirectory::open(&path).unwrap();
    assert_eq!(run.config().unwrap(), "epochs = 3\n");
    assert_eq!(run.model().unwrap().unwrap(), model());
    assert_eq!(run.best().unwrap().unwrap(), model());
    let last = run.last_checkpoint().unwrap().unwrap();
    assert_eq!((last.checkpoint.epoch, last.events_length), (1, 17));
}

#[test]
fn a_run_is_replaced_only_when_told() {
    let folder = Folder::new();
    let path = folder.join("run");
    finished(&path);
    fs::write(path.join("notes.txt"), "mine").unwrap();
    fs::write(path.join("checkpoints/mine.safetensors"), "mine").unwrap();
    fs::write(path.join("report.html"), "report").unwrap();
    let error = RunDirectory::create(&path, Overwrite::No).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    assert!(error.hint().contains("--resume") && error.hint().contains("--force"));
    assert!(path.join("model.safetensors").exists());
    let mut run = RunDirectory::create(&path, Overwrite::Yes).unwrap();
    assert_eq!(names(&path), [".lock", "checkpoints", "events.jsonl", "notes.txt"]);
    assert_eq!(names(&path.join("checkpoints")), ["mine.safetensors"]);
    assert_eq!(run.events_length(), 0);
    run.write_config("").unwrap();
    let error = run.write_config("").unwrap_err();
    assert!(error.to_string().contains("already"), "{error}");
}

/// Temporary files of a killed writer go when the run is resumed or replaced; those that another
/// process may be writing stay.
#[test]
fn temporary_files_of_a_killed_writer_are_removed() {
    let folder = Folder::new();
    let path = folder.join("run");
    let strew = || {
        fs::write(path.join(".lock"), "4242").unwrap();
        fs::create_dir_all(path.join("checkpoints")).unwrap();
        for name in [
            ".harmonium-4242-0.tmp",
            ".harmonium-4242-17.tmp",
            ".harmonium-4243-0.tmp",
            ".harmonium-4242-.tmp",
            ".harmonium-x.tmp",
            "checkpoints/.harmonium-4242-3.tmp",
            "checkpoints/.harmonium-7-3.tmp",
        ] {
            fs::write(path.join(name), "half").unwrap();
        }
    };
    let stays = [".harmonium-4242-.tmp", ".harmonium-4243-0.tmp", ".harmonium-x.tmp", ".lock"];
    finished(&path);
    strew();
    let run = RunDirectory::resume(&path).unwrap();
    let visible = ["checkpoints", "events.jsonl", "model.safetensors", "run.toml"];
    assert_eq!(names(&path), [&stays[..], &visible].concat());
    assert_eq!(names(&path.join("checkpoints")), ["best.safetensors", "last.safetensors"]);
    let held = fs::read_to_string(path.join(".lock")).unwrap();
    assert_eq!(held, std::process::id().to_string());
    drop(run);
    strew();
    drop(RunDirectory::create(&path, Overwrite::Yes).unwrap());
    assert_eq!(names(&path), [&stays[..], &["events.jsonl"]].concat());
}

#[test]
fn other_folders_and_files_are_left_alone() {
    let folder = Folder::new();
    let file = folder.join("file");
    fs::write(&file, "x").unwrap();
    for overwrite in [Overwrite::No, Overwrite::Yes] {
        for path in [folder.path(), &file, &file.join("below")] {
            assert!(RunDirectory::create(path, overwrite).is_err());
        }
        assert_eq!(names(folder.path()), ["file"], "not even a lock is left");
    }
    let error = RunDirectory::create(folder.path(), Overwrite::Yes).unwrap_err();
    assert!(error.hint().contains("leaves other folders alone"), "{}", error.hint());
    assert_eq!(fs::read(&file).unwrap(), b"x");
    for path in [folder.path(), &file, &folder.join("none")] {
        let error = RunDirectory::open(path).unwrap_err();
        assert!(matches!(error, Error::NotARun { .. }), "{error}");
        assert!(RunDirectory::resume(path).is_err());
    }
}

#[test]
fn a_folder_that_was_hardly_begun_is_free() {
    let folder = Folder::new();
    let path = folder.join("run");
    fs::create_dir(&path).unwrap();
    fs::write(path.join(".gitkeep"), "").unwrap();
    drop(RunDirectory::create(&path, Overwrite::No).unwrap());
    drop(RunDirectory::create(&path, Overwrite::No).unwrap());
    assert_eq!(names(&path), [".gitkeep", ".lock", "events.jsonl"]);
}

#[test]
fn one_training_at_a_time() {
    let folder = Folder::new();
    let path = folder.join("run");
    let mut first = RunDirectory::create(&path, Overwrite::No).unwrap();
    first.write_config("").unwrap();
    for second in [RunDirectory::resume(&path), RunDirectory::create(&path, Overwrite::Yes)] {
        let error = second.unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    }
    RunDirectory::open(&path).unwrap().read_events().unwrap();
    drop(first);
    fs::write(path.join(".lock"), "123456").unwrap();
    RunDirectory::resume(&path).expect("a file without a lock is stale");
}

#[test]
fn a_torn_line_is_reported_and_then_cut_off() {
    let folder = Folder::new();
    let path = folder.join("run");
    let mut run = RunDirectory::create(&path, Overwrite::No).unwrap();
    for step in 0..3 {
        run.append(&Event::Other(json!({"step": step}))).unwrap();
    }
    let length = run.events_length();
    drop(run);
    let mut file = fs::OpenOptions::new().append(true).open(path.join("events.jsonl")).unwrap();
    file.write_all(b"{\"step\":3,\"text\":\"\xC3").unwrap();
    let log = RunDirectory::open(&path).unwrap().read_events().unwrap();
    assert_eq!(log.events.len(), 3);
    assert_eq!(log.length, length);
    assert!(log.torn.unwrap().starts_with("{\"step\":3"));
    let mut run = RunDirectory::resume(&path).unwrap();
    assert_eq!(run.events_length(), length);
    run.append(&Event::Other(json!({"step": 3}))).unwrap();
    let log = run.directory().read_events().unwrap();
    assert_eq!((log.events.len(), log.torn), (4, None));
    let tail = run.directory().read_events_from(length).unwrap();
    assert_eq!(tail.events, [Event::Other(json!({"step": 3}))]);
    assert_eq!(tail.length, run.events_length());
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_with_its_number() {
    let folder = Folder::new();
    fs::write(folder.join("events.jsonl"), "{}\n{\"a\"\n{}\n").unwrap();
    let error = RunDirectory::open(folder.path()).unwrap().read_events().unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
}

#[test]
fn events_are_cut_only_between_lines() {
    let folder = Folder::new();
    let path = folder.join("run");
    let mut run = RunDirectory::create(&path, Overwrite::No).unwrap();
    run.append(&Event::Other(json!(1))).unwrap();
    run.append(&Event::Other(json!(22))).unwrap();
    assert_eq!(run.events_length(), 5);
    for wrong in [1, 3, 4, 6, u64::MAX] {
        assert!(run.truncate_events(wrong).is_err(), "{wrong}");
    }
    run.truncate_events(2).unwrap();
    run.append(&Event::Other(json!(3))).unwrap();
    assert_eq!(fs::read(path.join("events.jsonl")).unwrap(), b"1\n3\n");
    let shorter = run.directory().read_events_from(100).unwrap();
    assert_eq!(shorter.length, 4, "says that the file has become shorter");
    run.truncate_events(0).unwrap();
    assert_eq!(run.directory().read_events().unwrap().events, []);
}

#[test]
fn the_model_of_a_run_is_its_result_or_its_newest_checkpoint() {
    let folder = Folder::new();
    let path = folder.join("run");
    let mut run = RunDirectory::create(&path, Overwrite::No).unwrap();
    run.write_config("").unwrap();
    let error = Model::load(&path).unwrap_err();
    assert!(error.to_string().contains("neither"), "{error}");
    run.save_best(&model()).unwrap();
    assert!(Model::locate(&path).unwrap().path.ends_with("best.safetensors"));
    save(&mut run, 2);
    let located = Model::locate(&path).unwrap();
    assert!(located.path.ends_with("last.safetensors"));
    assert!(located.note.unwrap().contains("has not finished"));
    assert_eq!(Model::load(&path).unwrap(), model());
    run.finish(&model()).unwrap();
    let located = Model::locate(&path).unwrap();
    assert!(located.path.ends_with("model.safetensors") && located.note.is_none());
}
