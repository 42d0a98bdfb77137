//! Modules use only those above them in one list.

use std::path::{Path, PathBuf};

/// The modules from top to bottom.
const ORDER: [&str; 14] = [
    "error",
    "units",
    "machine",
    "graph",
    "models",
    "engine",
    "moments",
    "sampling",
    "exact",
    "estimators",
    "optim",
    "training",
    "evaluation",
    "run",
];

/// The text of every file of a module, those of folders inside it included.
fn sources(module: &str) -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![src.join(format!("{module}.rs"))];
    let mut folders = vec![src.join(module)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let paths = entries.map(|f| f.unwrap().path());
        let (inside, plain): (Vec<_>, Vec<_>) = paths.partition(|f| f.is_dir());
        folders.extend(inside);
        files.extend(plain);
    }
    let read = |f: &PathBuf| Some((f.display().to_string(), std::fs::read_to_string(f).ok()?));
    files.iter().filter_map(read).collect()
}

#[test]
fn modules_only_look_up() {
    for (rank, module) in ORDER.iter().enumerate() {
        let sources = sources(module);
        assert!(!sources.is_empty(), "`{module}` has no source");
        for below in &ORDER[rank + 1..] {
            for (file, text) in &sources {
                let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
                let wrong = format!("crate::{below}::");
                let bare = format!("crate::{below};");
                let uses = code.clone().any(|l| l.contains(&wrong) || l.ends_with(&bare));
                assert!(!uses, "{file} uses `{below}`, which stands below `{module}`");
            }
        }
    }
}

#[test]
fn every_module_has_its_place() {
    let lib = include_str!("../../src/lib.rs");
    let declared = lib.lines().filter_map(|l| l.strip_prefix("pub mod ")?.strip_suffix(';'));
    let mut declared: Vec<&str> = declared.collect();
    let mut listed = ORDER.to_vec();
    declared.sort_unstable();
    listed.sort_unstable();
    assert_eq!(declared, listed);
}
