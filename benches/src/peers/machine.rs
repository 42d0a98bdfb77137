//! The machine a table belongs to.

use super::python::Python;
use super::{Fallible, Places};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

/// Features that decide how fast products and exponentials are.
const FEATURES: [&str; 10] =
    ["sse4_2", "avx", "avx2", "fma", "bmi2", "avx512f", "avx512bw", "avx512vl", "asimd", "sve"];

/// Processor, system and versions of everything that took part.
pub(super) fn describe(places: &Places, python: &Python) -> Fallible<Map<String, Value>> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |names: &[&str]| {
        let pair = |line: &'_ str| {
            line.split_once(':').map(|(k, v)| (k.trim().to_string(), v.trim().to_string()))
        };
        cpu.lines().filter_map(pair).find(|(k, _)| names.contains(&k.as_str())).map(|(_, v)| v)
    };
    let flags = field(&["flags", "Features"]).unwrap_or_default();
    let has = |feature: &&str| flags.split_whitespace().any(|flag| flag == *feature);
    let features: Vec<&str> = FEATURES.into_iter().filter(has).collect();
    let mut versions = Map::from_iter([
        ("harmonium".into(), said(&places.harmonium, &["--version"], &places.root)),
        (
            "commit".into(),
            said(Path::new("git"), &["describe", "--always", "--dirty"], &places.root),
        ),
        ("rustc".into(), said(Path::new("rustc"), &["--version"], &places.root)),
    ]);
    versions.extend(python.versions()?);
    let described = json!({
        "processor": field(&["model name"]).unwrap_or_else(|| std::env::consts::ARCH.into()),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "features": features,
        "system": said(Path::new("uname"), &["-srm"], &places.root),
        "threads": 1,
        "pinned": places.pin.join(" "),
        "versions": versions,
    });
    match described {
        Value::Object(map) => Ok(map),
        _ => unreachable!("an object was written above"),
    }
}

/// The first line that a command prints, or null.
fn said(program: &Path, words: &[&str], folder: &Path) -> Value {
    let output = Command::new(program).args(words).current_dir(folder).output();
    let text = output.ok().filter(|o| o.status.success()).map(|o| o.stdout);
    let text = text.and_then(|t| String::from_utf8(t).ok());
    text.and_then(|t| t.lines().next().map(Into::into)).unwrap_or(Value::Null)
}
