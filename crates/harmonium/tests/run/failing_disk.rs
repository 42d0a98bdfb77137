//! Disks that are full or read-only: the old file stays, nothing is left behind.

use crate::folder::{Folder, names};
use crate::machines::model;
use harmonium::Error;
use harmonium::run::{About, Event, Model, Overwrite, RunDirectory};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where the child of [`a_full_disk_leaves_the_old_model`] works.
const FOLDER: &str = "HARMONIUM_TEST_FOLDER";

/// A file may grow to 8 blocks of 512 or 1024 bytes; the new model is larger.
#[test]
fn a_full_disk_leaves_the_old_model() {
    let folder = Folder::new();
    let path = folder.join("m.safetensors");
    model().save(&path).unwrap();
    let before = fs::read(&path).unwrap();
    let test = std::env::current_exe().unwrap();
    let limited = "trap '' XFSZ && ulimit -f 8 && exec \"$0\" --exact failing_disk::child --ignored --nocapture";
    let child =
        Command::new("sh").args(["-c", limited]).arg(test).env(FOLDER, folder.path()).output();
    let Ok(child) = child else { return println!("skipped: there is no shell to set a limit") };
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{said}\n{}", String::from_utf8_lossy(&child.stderr));
    assert!(said.contains("1 passed"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(names(folder.path()), ["m.safetensors"]);
}

#[test]
#[ignore = "runs as the child of another test, under a limit"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return println!("skipped: no limit") };
    let path = Path::new(&folder).join("m.safetensors");
    let about = About { config: json!("x".repeat(20_000)), ..About::default() };
    let error = Model { about, ..model() }.write(&path, Overwrite::Yes).unwrap_err();
    assert!(matches!(error, Error::File { action: "write", .. }), "{error}");
    assert!(error.to_string().contains("m.safetensors"), "{error}");
    assert!(error.hint().contains("unharmed"), "{}", error.hint());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_says_so_when_events_are_added() {
    let folder = Folder::new();
    let path = folder.join("run");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("run.toml"), "").unwrap();
    std::os::unix::fs::symlink("/dev/full", path.join("events.jsonl")).unwrap();
    let mut run = RunDirectory::resume(&path).unwrap();
    let error = run.append(&Event::Other(json!({"step": 1}))).unwrap_err();
    assert!(matches!(error, Error::File { kind: std::io::ErrorKind::StorageFull, .. }), "{error}");
    assert!(error.hint().contains("make room"));
    assert_eq!(run.events_length(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn devices_are_never_replaced() {
    let folder = Folder::new();
    let link = folder.join("link");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    let error = model().write(&link, Overwrite::Yes).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    assert!(model().write(folder.path(), Overwrite::Yes).is_err(), "nor are folders");
}

#[cfg(unix)]
#[test]
fn a_link_goes_on_pointing_where_it_did() {
    let folder = Folder::new();
    let (link, target) = (folder.join("link"), folder.join("target"));
    model().save(&target).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let about = About { seed: 99, ..About::default() };
    Model { about, ..model() }.write(&link, Overwrite::Yes).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(Model::load(&target).unwrap().about.seed, 99);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = Folder::new();
    let error = model().save(folder.join("none/m.safetensors")).unwrap_err();
    assert!(error.to_string().contains("none/m.safetensors"), "{error}");
    assert!(error.hint().contains("must exist"), "{}", error.hint());
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_keeps_the_old_model() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.join("m.safetensors");
    model().save(&path).unwrap();
    let mode = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    if fs::write(folder.join("probe"), "").is_ok() {
        mode(0o755);
        return println!("skipped: this user may write to read-only folders");
    }
    let about = About { seed: 99, ..About::default() };
    let result = Model { about, ..model() }.write(&path, Overwrite::Yes);
    let run = RunDirectory::create(folder.join("run"), Overwrite::No);
    mode(0o755);
    let error = result.unwrap_err();
    assert!(error.hint().contains("who may"), "{error}");
    assert!(run.is_err());
    assert_eq!(Model::load(&path).unwrap(), model());
    assert_eq!(names(folder.path()), ["m.safetensors"]);
}

/// In a container every process may have the same number.
#[test]
fn a_temporary_file_of_a_killed_process_is_no_obstacle() {
    let folder = Folder::new();
    for count in 0..2000 {
        let name = format!(".harmonium-{}-{count}.tmp", std::process::id());
        fs::write(folder.join(&name), "half").unwrap();
    }
    let path = folder.join("m.safetensors");
    model().save(&path).unwrap();
    assert_eq!(Model::load(&path).unwrap(), model());
}
