//! Modules use only those above them in the list of `lib.rs`.

use std::path::Path;

/// The modules from top to bottom, read from `lib.rs` itself.
fn order() -> Vec<String> {
    include_str!("../../src/lib.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect()
}

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
    let order = order();
    assert!(order.len() > 8, "the list of modules was not found: {order:?}");
    for (rank, module) in order.iter().enumerate() {
        let sources = sources(module);
        assert!(!sources.is_empty(), "`{module}` has no source");
        for below in &order[rank + 1..] {
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
