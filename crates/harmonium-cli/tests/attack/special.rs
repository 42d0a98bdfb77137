//! Files that are not files: pipes without a writer, devices, folders, links to nothing and to themselves;
//! and outputs that cannot be written.

use crate::program::{Attack, Said, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Endings that choose a reader.
const ENDINGS: [&str; 8] = ["csv", "npy", "npz", "mat", "png", "arff", "gz", "safetensors"];

/// Makes every sort of special file with an ending; their names.
fn special(folder: &Path, ending: &str) -> Vec<String> {
    let name = |what: &str| format!("{what}.{ending}");
    let path = |what: &str| folder.join(name(what));
    let made = Command::new("mkfifo").arg(path("pipe")).status();
    assert!(made.expect("there is `mkfifo`").success());
    fs::create_dir(path("folder")).expect("a folder");
    fs::write(path("empty"), "").expect("an empty file");
    symlink("nothing", path("dangling")).expect("a link");
    symlink(path("loop"), path("loop")).expect("a link");
    symlink("/dev/null", path("null")).expect("a link");
    symlink("/dev/zero", path("zero")).expect("a link");
    symlink("/proc/self/mem", path("memory")).expect("a link");
    ["pipe", "folder", "empty", "dangling", "loop", "null", "zero", "memory", "absent"]
        .map(name)
        .into()
}

#[test]
fn special_files_are_refused() {
    let folder = TempDir::new().expect("a folder");
    let mut attack = Attack::new("special files");
    for ending in ENDINGS {
        for name in special(folder.path(), ending) {
            let command = if ending == "safetensors" { "inspect" } else { "data" };
            let said = run(folder.path(), &[command, &name], 10);
            attack.case(|| format!("{command} {name}"), said.refused());
        }
    }
    attack.finish();
}

/// Whether nothing was replaced.
fn kept(said: &Said, path: &Path, is: impl Fn(&Path) -> bool) -> Result<(), String> {
    said.refused()?;
    if is(path) { Ok(()) } else { Err(format!("{} was replaced", path.display())) }
}

#[test]
fn special_outputs_are_not_replaced() {
    let folder = TempDir::new().expect("a folder");
    let names = special(folder.path(), "csv");
    let mut attack = Attack::new("special outputs");
    for name in names.iter().filter(|name| !name.starts_with("absent")) {
        let path = folder.path().join(name);
        let before = fs::symlink_metadata(&path).expect("it was made").file_type();
        let words = ["sample", "ising:3,0.4", "--n", "2", "--sweeps", "2", "--out", name];
        let said = run(folder.path(), &words, 10);
        let same = |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| m.file_type() == before);
        attack.case(|| words.join(" "), kept(&said, &path, same));
    }
    for name in ["no/such/folder.csv", "/dev/full/x.csv", "/proc/x.csv"] {
        let words = ["sample", "ising:3,0.4", "--n", "2", "--sweeps", "2", "--out", name];
        attack.case(|| words.join(" "), run(folder.path(), &words, 10).refused());
    }
    attack.finish();
}
