//! Modules use only those above them in one list.

use std::path::{Path, PathBuf};

/// The modules from top to bottom.
const ORDER: [&str; 22] = [
    "error",
    "progress",
    "units",
    "gaussian",
    "machine",
    "graph",
    "models",
    "schema",
    "spread",
    "engine",
    "moments",
    "sampling",
    "exact",
    "inference",
    "estimators",
    "optim",
    "training",
    "evaluation",
    "network",
    "run",
    "findings",
    "model",
];

/// A file of a module.
struct Source {
    path: PathBuf,
    text: String,
    /// How many `super::` lead from it to the root of the crate.
    depth: usize,
}

/// Every file of a module, those in folders of folders too.
fn sources(module: &str) -> Vec<Source> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let alone = src.join(format!("{module}.rs"));
    let mut found: Vec<Source> = read(&alone, 1).into_iter().collect();
    let mut folders = vec![(src.join(module), 1)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push((path, depth + 1));
            } else {
                let inside = usize::from(!path.ends_with("mod.rs"));
                found.extend(read(&path, depth + inside));
            }
        }
    }
    found
}

fn read(path: &Path, depth: usize) -> Option<Source> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(Source { path: path.to_path_buf(), text, depth })
}

/// The names at the root of the crate that code uses: `a` of `crate::a::b`, `a` and `c` of
/// `crate::{a::b, c}`, and the same after `depth` times `super::`.
fn names_at_the_root(text: &str, depth: usize) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let roots = ["crate::".to_string(), "super::".repeat(depth)];
    let whole =
        |at: usize| !code[..at].ends_with(|c: char| c == ':' || c == '_' || c.is_alphanumeric());
    let starts = roots.iter().flat_map(|root| {
        let found = code.match_indices(root.as_str()).filter(|(at, _)| whole(*at));
        found.map(|(at, root)| code[at + root.len()..].trim_start())
    });
    starts.flat_map(heads).collect()
}

/// The first name of a path, or of each path of a group in braces.
fn heads(path: &str) -> Vec<String> {
    let name = |path: &str| -> String {
        path.trim_start().chars().take_while(|c| *c == '_' || c.is_alphanumeric()).collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut open, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => open += 1,
            '}' if open > 0 => open -= 1,
            ',' | '}' if open == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}

#[test]
fn modules_only_look_up() {
    for (rank, module) in ORDER.iter().enumerate() {
        let sources = sources(module);
        assert!(!sources.is_empty(), "`{module}` has no source");
        for Source { path, text, depth } in &sources {
            for name in names_at_the_root(text, *depth) {
                let below = ORDER[rank + 1..].contains(&name.as_str());
                let path = path.display();
                assert!(!below, "{path} uses `{name}`, which stands below `{module}`");
            }
        }
    }
}

#[test]
fn folders_of_folders_are_read() {
    let depths = |module: &str| -> Vec<usize> {
        sources(module).iter().map(|source| source.depth).collect()
    };
    assert!(depths("evaluation").contains(&3), "evaluation/log_partition/ has files");
    assert_eq!(depths("error"), [1]);
}

#[test]
fn every_way_to_name_a_module_is_seen() {
    let seen = |code: &str| names_at_the_root(code, 2);
    assert_eq!(seen("use crate::run::model;"), ["run"]);
    assert_eq!(seen("use crate::run;"), ["run"]);
    assert_eq!(seen("let x = crate::run\n::load();"), ["run"]);
    assert_eq!(
        seen("use crate::{\n    machine::{Layer, run},\n    training::Plan, run as r};"),
        ["machine", "training", "run"]
    );
    assert_eq!(seen("use super::super::run::model;"), ["run"]);
    assert_eq!(seen("use super::super::{run, training::Plan};"), ["run", "training"]);
    assert!(seen("// use crate::run;\nuse super::run;").is_empty());
    assert!(seen("use my_crate::run;\nuse other::crate_name::run;").is_empty());
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
