//! The machine a table belongs to.

use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

/// Features that decide how fast products and exponentials are.
const FEATURES: [&str; 10] =
    ["sse4_2", "avx", "avx2", "fma", "bmi2", "avx512f", "avx512bw", "avx512vl", "asimd", "sve"];

/// Processor, system, and the versions of compiler and source.
pub(crate) fn describe() -> Map<String, Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
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
    Map::from_iter([
        (
            "processor".into(),
            field(&["model name"]).unwrap_or_else(|| std::env::consts::ARCH.into()).into(),
        ),
        ("cores".into(), std::thread::available_parallelism().map_or(1, usize::from).into()),
        ("features".into(), features.into()),
        ("kernels".into(), harmonium_kernels::instruction_set().into()),
        ("system".into(), said(Path::new("uname"), &["-srm"], root)),
        (
            "versions".into(),
            json!({
                "commit": said(Path::new("git"), &["describe", "--always", "--dirty"], root),
                "rustc": said(Path::new("rustc"), &["--version"], root),
            }),
        ),
    ])
}

/// The description as lines of text.
pub(crate) fn as_text(machine: &Map<String, Value>) -> String {
    let lines = machine.iter().map(|(key, value)| format!("    {key}: {}\n", plain(value)));
    format!("\nMachine\n{}", lines.collect::<String>())
}

/// The first line that a command prints, or null.
pub(crate) fn said(program: &Path, words: &[&str], folder: &Path) -> Value {
    let output = Command::new(program).args(words).current_dir(folder).output();
    let text = output.ok().filter(|o| o.status.success()).map(|o| o.stdout);
    let text = text.and_then(|t| String::from_utf8(t).ok());
    text.and_then(|t| t.lines().next().map(Into::into)).unwrap_or(Value::Null)
}

/// A value as one would write it on a line.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "no".into(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(" "),
        Value::Object(map) => {
            map.iter().map(|(k, v)| format!("{k} {}", plain(v))).collect::<Vec<_>>().join(", ")
        }
        Value::Null => "unknown".into(),
        other => other.to_string(),
    }
}
