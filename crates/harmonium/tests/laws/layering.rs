//! Modules use only those above them in one list.

use std::path::Path;

/// The modules from top to bottom.
const ORDER: [&str; 13] = [
    "error",
    "progress",
    "units",
    "machine",
    "models",
    "moments",
    "sampling",
    "exact",
    "estimators",
    "optim",
    "training",
    "evaluation",
    "run",
];

/// The text of every file of a module.
fn sources(module: &str) -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![src.join(format!("{module}.rs"))];
    if let Ok(folder) = std::fs::read_dir(src.join(module)) {
        files.extend(folder.map(|f| f.unwrap().path()));
    }
    let read =
        |f: &std::path::PathBuf| Some((f.display().to_string(), std::fs::read_to_string(f).ok()?));
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
